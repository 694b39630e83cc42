"""K-harmonic means: clustering that hardly depends on where it starts.

Centres ``c_l`` minimise the sum over rows of the harmonic average of powers of their distances to
all k centres,

    E = Σ_i ω_i k / Σ_l d_il^-p,        d_il = ||y_i - c_l||,

so a row that no centre is near pulls on all of them, and a centre among many others is set free
(Zhang, Hsu and Dayal, "K-harmonic means: a data clustering algorithm", 1999; with a power p, Zhang,
"Generalized K-harmonic means", 2000; Klanke 2007, eqs. 2.12 to 2.14, where p = 2). Setting dE/dc_l
to zero gives the update

    c_l = Σ_i w_il y_i / Σ_i w_il,      w_il = ω_i d_il^-(p+2) / (Σ_m d_im^-p)².

With ``m_i`` the smallest ``d_il`` and ``t_il = m_i / d_il`` neither overflows:

    E = Σ_i ω_i k m_i^p / Σ_l t_il^p,   w_il = ω_i t_il^(p+2) m_i^(p-2) / (Σ_m t_im^p)².

The update is a step down the gradient, and for p = 2 never too long a one: E is concave in the
squared distances there. For larger p it can overshoot (one centre in one dimension diverges from
p = 3 on), so a step that would raise E is halved until it does not.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from numbers import Integral, Real
from typing import Any, Self

import numpy as np
from sklearn.base import (
    BaseEstimator,
    ClassNamePrefixFeaturesOutMixin,
    ClusterMixin,
    TransformerMixin,
)
from sklearn.cluster import kmeans_plusplus
from sklearn.utils import check_array, check_random_state
from sklearn.utils.validation import _check_sample_weight, check_is_fitted, validate_data

from twofold.array_types import FloatArray, IntArray
from twofold.engine.compiled import compiled
from twofold.engine.threads import count_threads, run_tasks, single_threaded_blas

BLOCK_BYTES = 2**21
# Sums are taken over this many runs of rows, however many threads there are.
N_TASKS = 16
# Below this share of ||y||² + ||c||², ||y||² + ||c||² - 2 y·c has lost too many digits.
CANCELLED = 1e-6


class KHarmonicMeans(
    ClassNamePrefixFeaturesOutMixin, TransformerMixin, ClusterMixin, BaseEstimator
):
    """Clusters by K-harmonic means.

    Equal rows count as one with the sum of their weights; their order does not matter, nor does the
    number of threads.

    Parameters
    ----------
    n_clusters : int
        Number of centres. Where there are fewer distinct rows, several centres share a row.
    p : float
        Power of the distances, at least 2; larger looks more like k-means. Unless it is larger than
        the number of dimensions in which the rows spread, far centres outweigh near ones and many
        centres gather in the middle.
    max_iter : int
        Most updates to try.
    tol : float
        Stop when the squared moves of all centres add up to less than ``tol`` times the mean
        variance of the features.
    init : "k-means++" or array-like of shape (n_clusters, n_features)
        Where the centres start.
    random_state : int, RandomState instance or None
        Seed of the start.

    Attributes
    ----------
    cluster_centers_ : ndarray of shape (n_clusters, n_features)
    labels_ : ndarray of shape (n_samples,)
        The nearest centre of each row.
    objective_ : float
        ``E`` at the centres.
    n_iter_ : int
        Updates tried.

    Examples
    --------
    >>> import numpy as np
    >>> from twofold.k_harmonic_means import KHarmonicMeans
    >>> Y = np.array([[0.0], [1.0], [10.0], [11.0]])
    >>> model = KHarmonicMeans(2, init=[[2.0], [3.0]]).fit(Y)
    >>> model.predict([[-1.0], [12.0]])
    array([0, 1])
    """

    def __init__(
        self,
        n_clusters: int = 8,
        *,
        p: float = 3.5,
        max_iter: int = 100,
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
        """Find the centres.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
        y : None
            Ignored.
        sample_weight : array-like of shape (n_samples,), default=None
            How much each row counts; a row of weight 0 takes no part.

        Returns
        -------
        self
        """
        self._check_parameters()
        Y = validate_data(self, X, dtype=[np.float64, np.float32])
        weights = _check_sample_weight(sample_weight, Y, dtype=np.float64, ensure_non_negative=True)
        rows, summed = merge_equal_rows(Y, weights)
        if len(Y) < self.n_clusters or len(rows) == 0:
            raise ValueError(
                f"`n_clusters` = {self.n_clusters} needs as many rows, not all of weight 0; got "
                f"n_samples = {len(Y)}. Lower `n_clusters` or pass more rows."
            )
        with single_threaded_blas():
            units = Units.of(rows, summed)
            problem = _Problem(units.apply(rows), summed, float(self.p))
            start = units.apply(self._choose_start(rows, summed))
            C, value, self.n_iter_ = _descend(problem, start, self.max_iter, self.tol)
        self.cluster_centers_ = (C / units.factor + units.shift).astype(Y.dtype)
        with np.errstate(over="ignore", under="ignore"):
            self.objective_ = float(value * np.float64(1 / units.factor) ** self.p)
        self.labels_ = self._label(Y)
        return self

    def predict(self, X: Any) -> IntArray:
        """Return the number of the nearest centre of each row.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples,)
        """
        return self._label(self._check_rows(X))

    def transform(self, X: Any) -> FloatArray:
        """Return the distance of each row to each centre.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples, n_clusters)
        """
        Y = self._check_rows(X)
        return map_distances(lambda d: d.astype(Y.dtype), Y, self.cluster_centers_)

    def _label(self, Y: FloatArray) -> IntArray:
        return map_distances(lambda d: d.argmin(axis=1), Y, self.cluster_centers_)

    @property
    def _n_features_out(self) -> int:
        return len(self.cluster_centers_)

    def _check_rows(self, X: Any) -> FloatArray:
        check_is_fitted(self)
        return validate_data(self, X, dtype=[np.float64, np.float32], reset=False)

    def _check_parameters(self) -> None:
        for name in ("n_clusters", "max_iter"):
            value = getattr(self, name)
            if not isinstance(value, Integral) or isinstance(value, bool) or value < 1:
                raise ValueError(f"`{name}` must be an integer of at least 1; got {value!r}.")
        for name, least in (("p", 2), ("tol", 0)):
            value = getattr(self, name)
            if not isinstance(value, Real) or not least <= float(value) < np.inf:
                raise ValueError(f"`{name}` must be a number of at least {least}; got {value!r}.")
        if isinstance(self.init, str) and self.init != "k-means++":
            raise ValueError(
                f"`init` must be 'k-means++' or an array of n_clusters centres; got {self.init!r}."
            )

    def _choose_start(self, Y: FloatArray, weights: FloatArray) -> FloatArray:
        """Return the centres (k, D) to start from."""
        if not isinstance(self.init, str):
            start = check_array(self.init, dtype=np.float64, input_name="init")
            if start.shape != (self.n_clusters, Y.shape[1]):
                raise ValueError(
                    "`init` must hold n_clusters centres of n_features values, shape "
                    f"({self.n_clusters}, {Y.shape[1]}); got {start.shape}."
                )
            return start
        if len(Y) <= self.n_clusters:
            return Y[np.arange(self.n_clusters) % len(Y)]
        rng = check_random_state(self.random_state)
        return kmeans_plusplus(Y, self.n_clusters, sample_weight=weights, random_state=rng)[0]


def merge_equal_rows(Y: FloatArray, weights: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return the distinct rows of positive weight, sorted, and the sums of their weights."""
    counted = weights > 0
    rows, member = np.unique(Y[counted], axis=0, return_inverse=True)
    summed = np.zeros(len(rows))
    np.add.at(summed, member.ravel(), weights[counted])
    return rows, summed


@dataclass(frozen=True)
class Units:
    """Coordinates in which a table is centred and its largest entry lies between 1/2 and 1."""

    shift: FloatArray
    factor: float

    @classmethod
    def of(cls, Y: FloatArray, weights: FloatArray | None = None) -> Self:
        """Return the units of Y (n, D), centred at its weighted mean."""
        ends = np.stack([Y.min(axis=0), Y.max(axis=0)]).astype(np.float64)
        size = _power_of_two(ends)
        shift = np.average(Y * np.float64(size), axis=0, weights=weights) / size
        return cls(shift, _power_of_two(ends - shift))

    def apply(self, Y: FloatArray) -> FloatArray:
        """Return Y (n, D) in these units, in double precision."""
        return np.ascontiguousarray((Y - self.shift) * self.factor)


def _power_of_two(Y: FloatArray) -> float:
    """Return the power of two that brings the largest entry to between 1/2 and 1."""
    # A power of two, so that scaling loses nothing; within 1000, so that it has an inverse.
    return float(np.ldexp(1.0, -int(np.clip(np.frexp(np.abs(Y).max())[1], -1000, 1000))))


class _Problem:
    """The objective of scaled rows Z (n, D), and where the update would take the centres."""

    def __init__(self, Z: FloatArray, weights: FloatArray, p: float) -> None:
        self.Z = Z
        self.weights = weights
        self.exponent = p / 2
        # Powers in steps of a quarter are a few roots and products: half the time of a pass.
        self.quarters = int(2 * p) if 2 * p == int(2 * p) else 0

    def evaluate(self, C: FloatArray) -> tuple[float, FloatArray]:
        """Return E and the updated centres (k, D)."""
        blocks = block_slices(len(self.Z), max(C.shape))
        bounds = np.linspace(0, len(blocks), N_TASKS + 1).astype(int)
        tasks = [blocks[a:b] for a, b in pairwise(bounds) if a < b]
        parts = run_tasks(lambda task: self._sum_blocks(C, task), tasks, count_threads(None))
        value, total, pulled = (sum(column) for column in zip(*parts, strict=True))
        # A centre on which nothing pulls, say one on each row, stays where it is.
        still = ~(total > 0)
        return value, np.where(still, C, pulled / np.where(still, 1, total))

    def _sum_blocks(
        self, C: FloatArray, blocks: list[slice]
    ) -> tuple[float, FloatArray, FloatArray]:
        """Return E, Σ_i w_il (k, 1) and Σ_i w_il y_i (k, D) of some rows."""
        value, total, pulled = 0.0, np.zeros((len(C), 1)), np.zeros(C.shape)
        for rows in blocks:
            W = squared_distances(self.Z[rows], C)
            value += _weigh(W, self.weights[rows], self.exponent, self.quarters)
            total += W.sum(axis=0)[:, None]
            pulled += W.T @ self.Z[rows]
        return value, total, pulled


def _descend(
    problem: _Problem, C: FloatArray, max_iter: int, tol: float
) -> tuple[FloatArray, float, int]:
    """Return centres, E and the number of updates tried; none that raised E was taken."""
    enough = tol * np.average((problem.Z**2).mean(axis=1), weights=problem.weights)
    value, target = problem.evaluate(C)
    step, n_iter, shift = 1.0, 0, np.inf
    while n_iter < max_iter and shift > enough:
        n_iter += 1
        moved = C + step * (target - C)
        shift = ((moved - C) ** 2).sum()
        new_value, new_target = problem.evaluate(moved)
        if new_value <= value:
            C, value, target = moved, new_value, new_target
        else:
            step /= 2
    return C, value, n_iter


@compiled
def _weigh(W: FloatArray, weights: FloatArray, exponent: float, quarters: int) -> float:
    """Turn squared distances W (rows, k) into the w_il of the update, and return the rows' E."""
    value = 0.0
    k = W.shape[1]
    power = np.empty(k)
    for i in range(W.shape[0]):
        ratio = W[i]
        nearest = ratio[0]
        for j in range(1, k):
            nearest = min(nearest, ratio[j])
        for j in range(k):
            # Where a centre lies on the row, t is 1 for that centre and 0 for the others.
            ratio[j] = nearest / ratio[j] if ratio[j] > 0 else 1.0
        _raise(ratio, exponent, quarters, power)
        total = 0.0
        for j in range(k):
            total += power[j]
        value += weights[i] * k * nearest**exponent / total
        share = weights[i] * nearest ** (exponent - 1) / (total * total)
        for j in range(k):
            ratio[j] *= power[j] * share
    return value


@compiled
def _raise(ratio: FloatArray, exponent: float, quarters: int, power: FloatArray) -> None:
    """Set ``power`` to ``ratio`` to the exponent; ``quarters`` is four times it, or 0."""
    if quarters == 0:
        for j in range(ratio.size):
            power[j] = ratio[j] ** exponent
        return
    power[:] = 1.0
    if quarters % 2:
        for j in range(ratio.size):
            power[j] = np.sqrt(np.sqrt(ratio[j]))
    if quarters // 2 % 2:
        for j in range(ratio.size):
            power[j] *= np.sqrt(ratio[j])
    for _ in range(quarters // 4):
        for j in range(ratio.size):
            power[j] *= ratio[j]


def block_slices(n: int, width: int) -> list[slice]:
    """Return runs of rows, each with about ``BLOCK_BYTES`` of ``width`` numbers a row."""
    rows = int(np.clip(BLOCK_BYTES // (8 * width), 16, 1024))
    return [slice(start, min(start + rows, n)) for start in range(0, n, rows)]


def squared_distances(Z: FloatArray, C: FloatArray) -> FloatArray:
    """Return ``||z_i - c_l||²`` (m, k) of centred rows, accurate for near ones, too."""
    sq_dists = Z @ C.T
    _finish_distances(sq_dists, Z, C, (Z * Z).sum(axis=1), (C * C).sum(axis=1))
    return sq_dists


@compiled
def _finish_distances(
    sq_dists: FloatArray, Z: FloatArray, C: FloatArray, sq_rows: FloatArray, sq_centres: FloatArray
) -> None:
    """Turn products (m, k) of rows and centres into squared distances."""
    for i in range(sq_dists.shape[0]):
        for j in range(sq_dists.shape[1]):
            sq_dists[i, j] = sq_rows[i] + sq_centres[j] - 2 * sq_dists[i, j]
        for j in range(sq_dists.shape[1]):
            if sq_dists[i, j] < CANCELLED * (sq_rows[i] + sq_centres[j]):
                sq_dists[i, j] = squared_distance(Z[i], C[j], 1.0)


@compiled
def squared_distance(y: FloatArray, c: FloatArray, factor: float) -> float:
    """Return ``||factor (y - c)||²``, taken entry by entry in double precision."""
    total = 0.0
    for d in range(y.size):
        gap = (np.float64(y[d]) - np.float64(c[d])) * factor
        total += gap * gap
    return total


def map_distances(
    use: Callable[[FloatArray], FloatArray | IntArray], Y: FloatArray, C: FloatArray
) -> Any:
    """Return ``use(distances)`` of every row, with the distances (rows, k) to C in blocks."""
    units = Units.of(C)
    centres = units.apply(C)

    def visit(rows: slice) -> FloatArray | IntArray:
        return use(np.sqrt(squared_distances(units.apply(Y[rows]), centres)) / units.factor)

    return np.concatenate(run_tasks(visit, block_slices(len(Y), max(C.shape)), count_threads(None)))
