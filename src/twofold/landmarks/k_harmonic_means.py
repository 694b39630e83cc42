"""K-harmonic means: clusters that hardly depend on where the search starts.

Centres ``c_l`` minimise the sum over rows of the harmonic average of powers of their distances to
all k centres,

    E = Σ_i ω_i k / Σ_l d_il^-p,        d_il = ||y_i - c_l||,

so a row that no centre is near pulls on all of them, and a centre among many others is set free
(Zhang, Hsu and Dayal, "K-harmonic means: a data clustering algorithm", 1999; with a power p, Zhang,
"Generalized K-harmonic means", 2000; Klanke 2007, eqs. 2.12 to 2.14, where p = 2). Setting dE/dc_l
to zero gives the update

    c_l = Σ_i w_il y_i / Σ_i w_il,      w_il = ω_i d_il^-(p+2) / (Σ_m d_im^-p)².

With ``m_i`` the smallest ``d_il``, ``t_il = m_i / d_il`` and s the largest ``m_i`` (or 1, where
that will do) nothing overflows:

    E = s^p Σ_i ω_i k (m_i / s)^p / Σ_l t_il^p,
    w_il ∝ ω_i t_il^(p+2) (m_i / s)^(p-2) / (Σ_m t_im^p)².

The update is a step down the gradient, and for p = 2 never too long a one: E is concave in the
squared distances there. For larger p it can overshoot (one centre in one dimension diverges from
p = 3 on), so a step that would raise E is halved until it does not.

In δ dimensions p must not be too small. With e a direction and u_i that of row i from its centres,
centres in one place stay together if ``(p + 2) Σ_i ω_i d_i^(p-2) (u_i·e)² < Σ_i ω_i d_i^(p-2)`` for
all e (the second derivative of E): for rows spread alike in all directions, if p < δ - 2.
"""

from collections.abc import Callable
from itertools import pairwise
from typing import Any, Literal, Self

import numpy as np
from sklearn.base import (
    BaseEstimator,
    ClassNamePrefixFeaturesOutMixin,
    ClusterMixin,
    TransformerMixin,
)
from sklearn.cluster import kmeans_plusplus
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_array, check_random_state
from sklearn.utils.validation import check_is_fitted, validate_data

from twofold.array_types import FloatArray, IntArray
from twofold.checks.parameters import check_at_least, check_count
from twofold.checks.rows import check_entries, checked_weights
from twofold.compiled import compiled
from twofold.engine.threads import count_threads, run_tasks, single_threaded_blas
from twofold.neighborhoods.distances import Units, block_slices, merge_equal_rows, squared_distances
from twofold.process_settings import warn
from twofold.rowwise import power_of_two

# Distances of such rows are numbers.
LARGEST = 1e300
# Sums are taken over this many runs of rows, however many threads there are.
N_TASKS = 16
# Centres so near to another, as a share of the distance of rows to theirs, are one centre.
COINCIDE = 0.05
# Sums of powers within SAFE and its inverse keep their digits; sums of weights do above the other.
SAFE, LEAST_WEIGHT = 1e-200, 1e-290
# Up to this power, products are quicker than a logarithm.
MOST_PRODUCTS = 32


class KHarmonicMeans(
    ClassNamePrefixFeaturesOutMixin, TransformerMixin, ClusterMixin, BaseEstimator
):
    """K-harmonic means: clusters that hardly depend on the start.

    Equal rows count as one with the sum of their weights; their order does not matter, nor does the
    number of threads.

    Parameters
    ----------
    n_clusters : int
        Number of centres. Where there are fewer distinct rows, several centres share a row.
    p : "auto" or float
        Power of the distances, at least 2. The more dimensions the rows spread in, the larger it
        must be, or centres gather in one place; the larger, the more do the start and far rows
        count. "auto" is the first of 3.5 (the usual power), 5, 7, 10, ... with which all centres
        are apart and have rows.
    max_iter : int
        Most updates to try.
    tol : float
        Stop when the squared moves of all centres add up to less than ``tol`` times the mean
        variance of the features.
    init : "k-means++" or array-like of shape (n_clusters, n_features)
        Where the centres start; no two in one place.
    random_state : int, RandomState instance or None
        Seed of the start.

    Attributes
    ----------
    cluster_centers_ : ndarray of shape (n_clusters, n_features)
    labels_ : ndarray of shape (n_samples,)
        The nearest centre of each row.
    p_ : float
        The power used.
    objective_ : float
        ``E`` at the centres; 0 or infinite where that is no floating-point number.
    n_iter_ : int
        Updates tried, with this power.

    Examples
    --------
    >>> import numpy as np
    >>> from twofold.landmarks.k_harmonic_means import KHarmonicMeans
    >>> Y = np.array([[0.0], [1.0], [10.0], [11.0]])
    >>> model = KHarmonicMeans(2, init=[[2.0], [3.0]]).fit(Y)
    >>> model.predict([[-1.0], [12.0]])
    array([0, 1])
    """

    def __init__(
        self,
        n_clusters: int = 8,
        *,
        p: float | Literal["auto"] = "auto",
        max_iter: int = 300,
        tol: float = 1e-4,
        init: Any = "k-means++",
        random_state: Any = None,
    ) -> None:
        self.n_clusters = n_clusters
        self.p = p
        self.max_iter = max_iter
        self.tol = tol
        self.init = init
        self.random_state = random_state

    def fit(self, X: Any, y: None = None, sample_weight: Any = None) -> Self:
        """Find the centres of rows X (n_samples, n_features).

        ``sample_weight`` (n_samples,) says how much each row counts; a row of weight 0 takes no
        part.
        """
        self._check_parameters()
        Y = validate_data(self, X, dtype=[np.float64, np.float32])
        check_entries(Y, LARGEST, LARGEST)
        weights = checked_weights(sample_weight, Y)
        rows, summed = merge_equal_rows(Y, weights)
        if len(Y) < self.n_clusters or len(rows) == 0:
            raise ValueError(
                f"`n_clusters` = {self.n_clusters} needs as many rows, not all of weight 0; got "
                f"n_samples = {len(Y)}. Lower `n_clusters` or pass more rows."
            )
        with single_threaded_blas():
            units = Units.of(rows, summed)
            Z = units.apply(rows)
            start = self._choose_start(Z, summed, units)
            for p in powers_to_try(Z, summed) if self.p == "auto" else [float(self.p)]:
                problem = Problem(Z, summed, p)
                C, log_value, self.n_iter_, is_still = descend(
                    problem, start, self.max_iter, self.tol
                )
                lost = count_lost(problem, C)
                if not any(lost) or len(rows) < self.n_clusters:
                    break
        self.cluster_centers_ = (C / units.factor + units.shift).astype(Y.dtype)
        with np.errstate(over="ignore", under="ignore"):
            self.objective_ = float(np.exp(log_value - p * np.log(units.factor)))
        self.p_ = p
        self.labels_ = self._map_distances(lambda d: d.argmin(axis=1), Y)
        self._warn(is_still, *lost, len(rows))
        return self

    def predict(self, X: Any) -> IntArray:
        """Return the number (n_samples,) of the nearest centre of each row."""
        return self._map_distances(lambda d: d.argmin(axis=1), self._check_rows(X))

    def transform(self, X: Any) -> FloatArray:
        """Return the distance (n_samples, n_clusters) of each row to each centre."""
        Y = self._check_rows(X)
        return self._map_distances(lambda d: d.astype(Y.dtype), Y)

    def _map_distances(self, use: Callable[[FloatArray], Any], Y: FloatArray) -> Any:
        """Return ``use(distances)`` of every row, with the distances to the centres in blocks."""
        C = self.cluster_centers_
        units_of_centres = Units.of(C)

        def visit(rows: slice) -> Any:
            units = units_of_centres.with_room_for(Y[rows])
            sq_dists = squared_distances(units.apply(Y[rows]), units.apply(C))
            return use(np.sqrt(sq_dists) / units.factor)

        tasks = block_slices(len(Y), max(C.shape))
        return np.concatenate(run_tasks(visit, tasks, count_threads(None)))

    @property
    def _n_features_out(self) -> int:
        return len(self.cluster_centers_)

    def _check_rows(self, X: Any) -> FloatArray:
        check_is_fitted(self)
        Y: FloatArray = validate_data(self, X, dtype=[np.float64, np.float32], reset=False)
        check_entries(Y, LARGEST, LARGEST)
        return Y

    def _check_parameters(self) -> None:
        for name in ("n_clusters", "max_iter"):
            check_count(name, getattr(self, name))
        check_at_least("p", self.p, 2, may_be_auto=True)
        check_at_least("tol", self.tol)
        is_name = isinstance(self.init, str)
        if not (self.init == "k-means++" if is_name else np.ndim(self.init) == 2):
            raise ValueError(
                f"`init` must be 'k-means++' or an array of n_clusters centres; got {self.init!r}."
            )

    def _choose_start(self, Z: FloatArray, weights: FloatArray, units: Units) -> FloatArray:
        """Return the centres (k, D) to start from, in the units of the rows Z."""
        if not isinstance(self.init, str):
            start = check_array(self.init, dtype=np.float64, input_name="init")
            if start.shape != (self.n_clusters, Z.shape[1]):
                raise ValueError(
                    "`init` must hold n_clusters centres of n_features values, shape "
                    f"({self.n_clusters}, {Z.shape[1]}); got {start.shape}."
                )
            if len(np.unique(start, axis=0)) < len(start):
                raise ValueError(
                    "`init` must hold distinct centres: equal ones get the same updates and stay "
                    "together. Move them apart or lower `n_clusters`."
                )
            return units.apply(start)
        if len(Z) <= self.n_clusters:
            return Z[np.arange(self.n_clusters) % len(Z)]
        rng = check_random_state(self.random_state)
        return kmeans_plusplus(Z, self.n_clusters, sample_weight=weights, random_state=rng)[0]

    def _warn(self, is_still: bool, n_doubled: int, n_empty: int, n_distinct: int) -> None:
        """Warn of an early end, and of centres that are none."""
        k, found = self.n_clusters, []
        if not is_still:
            found.append(
                f"K-harmonic means stopped at max_iter = {self.max_iter} with centres on the move. "
                "Raise `max_iter` or `tol`."
            )
        if n_doubled or n_empty:
            why, raise_p = f"p = {self.p_:g}", " or raise `p`"
            if n_distinct < k:
                why, raise_p = f"there are only {n_distinct} distinct rows", ""
            found.append(
                f"Of {k} centres {n_doubled} lie on another and {n_empty} are nearest to no row; "
                f"{why}. Lower `n_clusters`{raise_p}."
            )
        for message in found:
            warn(message, ConvergenceWarning)


def ruling_power(Z: FloatArray, weights: FloatArray) -> float:
    """Return δ + 1.5, a power with which near centres rule, for centred and scaled rows Z (n, D).

    A sum of ``d^-p`` over centres spread in δ dimensions is ruled by the near ones if p > δ; for δ
    stands the participation ratio of the variances, (Σ λ)² / Σ λ².
    """
    scaled = Z * np.sqrt(weights / weights.max())[:, None]
    moments = scaled.T @ scaled if Z.shape[1] <= len(Z) else scaled @ scaled.T
    return float(np.trace(moments) ** 2 / (np.square(moments).sum() or 1.0)) + 1.5


def powers_to_try(Z: FloatArray, weights: FloatArray) -> list[float]:
    """Return 3.5 and more, in steps of √2, up to the first from which on near centres rule."""
    powers, enough = [3.5], ruling_power(Z, weights)
    while powers[-1] < enough:
        # Multiples of 1/2 are quick.
        powers.append(round(7 * 2 ** (len(powers) / 2)) / 2)
    return powers


class Problem:
    """The objective of scaled rows Z (n, D), and where the update would take the centres."""

    def __init__(self, Z: FloatArray, weights: FloatArray, p: float) -> None:
        self.Z = Z
        self.unit = 1 / float(power_of_two(weights.max()))
        self.weights = weights * self.unit
        self.exponent = p / 2
        # Powers in steps of a quarter are a few roots and products: half the time of a pass.
        self.quarters = int(2 * p) if p <= MOST_PRODUCTS and 2 * p == int(2 * p) else 0

    def evaluate(self, C: FloatArray) -> tuple[float, FloatArray]:
        """Return log E and the updated centres (k, D)."""
        size = 1.0
        value, total, pulled, largest = self._sum(C, size)
        if largest > 0 and not SAFE < value < 1 / SAFE:
            size = largest
            value, total, pulled, _ = self._sum(C, size)
        # A centre on which nothing pulls, say one on each row, stays where it is.
        still = ~(total > LEAST_WEIGHT)
        log_value = np.log(value / self.unit) + self.exponent * np.log(size) if value else -np.inf
        return float(log_value), np.where(still, C, pulled / np.where(still, 1, total))

    def _sum(self, C: FloatArray, size: float) -> tuple[float, FloatArray, FloatArray, float]:
        """Return E / s^p, Σ_i w_il (k, 1), Σ_i w_il y_i (k, D) with s² = ``size``, and max m_i²."""
        blocks = block_slices(len(self.Z), max(C.shape))
        bounds = np.linspace(0, len(blocks), N_TASKS + 1).astype(int)
        tasks = [blocks[a:b] for a, b in pairwise(bounds) if a < b]
        parts = run_tasks(lambda task: self._sum_blocks(C, task, size), tasks, count_threads(None))
        values, totals, pulled, largest = zip(*parts, strict=True)
        return sum(values), sum(totals), sum(pulled), max(largest)

    def _sum_blocks(
        self, C: FloatArray, blocks: list[slice], size: float
    ) -> tuple[float, FloatArray, FloatArray, float]:
        """Return the same of some rows."""
        value, largest, total, pulled = 0.0, 0.0, np.zeros((len(C), 1)), np.zeros(C.shape)
        for rows in blocks:
            W = squared_distances(self.Z[rows], C)
            part, far = _weigh(W, self.weights[rows], self.exponent, self.quarters, size)
            value, largest = value + part, max(largest, far)
            # Where powers were too large for floating-point numbers, the sums are taken again.
            with np.errstate(invalid="ignore", over="ignore"):
                total += W.sum(axis=0)[:, None]
                pulled += W.T @ self.Z[rows]
        return value, total, pulled, largest


def descend(
    problem: Problem, C: FloatArray, max_iter: int, tol: float
) -> tuple[FloatArray, float, int, bool]:
    """Return centres, log E, how many updates were tried, and whether the last was small enough."""
    enough = tol * np.average((problem.Z**2).mean(axis=1), weights=problem.weights)
    value, target = problem.evaluate(C)
    step, n_iter, shift = 1.0, 0, np.inf
    while n_iter < max_iter and shift > enough:
        n_iter += 1
        moved = C + step * (target - C)
        shift = ((moved - C) ** 2).sum()
        new_value, new_target = problem.evaluate(moved)
        # None that raises E is taken.
        if new_value <= value:
            C, value, target = moved, new_value, new_target
        else:
            step /= 2
    return C, value, n_iter, bool(shift <= enough)


def count_lost(problem: Problem, C: FloatArray) -> tuple[int, int]:
    """Return how many centres lie on an earlier one, and how many are nearest to no row.

    How near is too near is measured by the distances of rows to their centres.
    """
    nearest, has_rows = np.empty(len(problem.Z)), np.zeros(len(C), dtype=bool)
    for rows in block_slices(len(problem.Z), max(C.shape)):
        sq_dists = squared_distances(problem.Z[rows], C)
        nearest[rows] = sq_dists.min(axis=1)
        has_rows[sq_dists.argmin(axis=1)] = True
    limit = COINCIDE**2 * np.average(nearest, weights=problem.weights)
    n_doubled = 0
    for some in block_slices(len(C), max(C.shape)):
        is_near = squared_distances(C[some], C) <= limit
        n_doubled += int(np.tril(is_near, some.start - 1).any(axis=1).sum())
    return n_doubled, int((~has_rows).sum())


@compiled
def _weigh(
    W: FloatArray, weights: FloatArray, exponent: float, quarters: int, size: float
) -> tuple[float, float]:
    """Turn squared distances W (rows, k) into the w_il; return E / s^p and the largest m_i²."""
    value, largest = 0.0, 0.0
    k = W.shape[1]
    power = np.empty(k)
    for i in range(W.shape[0]):
        ratio = W[i]
        nearest = ratio.min()
        largest = max(largest, nearest)
        for j in range(k):
            # Where a centre lies on the row, t is 1 for that centre and 0 for the others.
            ratio[j] = nearest / ratio[j] if ratio[j] > 0 else 1.0
        _raise(ratio, exponent, quarters, power)
        total = 0.0
        for j in range(k):
            total += power[j]
        value += weights[i] * k * (nearest / size) ** exponent / total
        share = weights[i] * (nearest / size) ** (exponent - 1) / (total * total)
        for j in range(k):
            ratio[j] *= power[j] * share
    return value, largest


@compiled
def _raise(ratio: FloatArray, exponent: float, quarters: int, power: FloatArray) -> None:
    """Set ``power`` to ``ratio`` to the exponent; ``quarters`` is four times it, or 0."""
    if quarters == 0:
        power[:] = ratio**exponent
        return
    power[:] = 1.0
    if quarters % 2:
        power *= np.sqrt(np.sqrt(ratio))
    if quarters // 2 % 2:
        power *= np.sqrt(ratio)
    for _ in range(quarters // 4):
        power *= ratio
