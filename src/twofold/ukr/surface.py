"""The fitted manifold: the rows it carries, its regression, density and domain.

At degree 0 the regression is the ratio of two sums of the engine (Nadaraya-Watson, Klanke 2007,
eq. 4.18), with weights ω and, entry by entry, ``m = 1`` where y is observed and 0 where it is not:

    f(x) = Σ_i ω_i m_i y_i F(s_i) / Σ_i ω_i m_i F(s_i)
    p(x) = Σ_i ω_i F(s_i) / Σ_i ω_i                     (4.19, with F(0) = 1)
    domain = {x : p(x) >= η}                            (4.55)

At a higher degree f is the value at x of a polynomial fitted around x with the weights
``ω_i m_i F`` (section 5.4, eq. 5.61), and the sums are already its value: the ratio's denominator
is 1. Where no row is within reach the mean of the data stands in.

The thesis bounds the domain by min_i p(x_i) (4.56) and, for the Swiss roll, by half a kernel
height. With leave-one-out training latent points lie about a bandwidth apart, in more dimensions
farther, and p(x_i) is little more than what point i itself adds: such a bound leaves islands
around each point, and new rows, which have no island, none of the places between. So η is half of
that minimum or, if that is lower, what 19 of 20 training points would have around them if they were
not there themselves. On digits, wine, breast cancer and 3,000 rows of MNIST that lowers the
round-trip error of held-out rows by up to 4 % at q = 2, 5 to 12 % at q = 3 and 12 to 27 % at q = 5.
"""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np
from scipy.sparse import csr_array

from twofold.array_types import BoolArray, FloatArray, IntArray
from twofold.checks.rows import LARGEST, LARGEST_SINGLE
from twofold.compiled import compiled, compiled_in_order, square
from twofold.contract.family import DOMAIN_SHARE
from twofold.engine import (
    Degree,
    FitGroup,
    KernelSums,
    LocalFit,
    PreparedReferences,
    Sums,
    polynomial_terms,
)
from twofold.engine.cells import GRIDDED, build_grid
from twofold.losses import Loss, is_rotation_invariant
from twofold.rowwise import MultipliedRows, power_of_two, same_gaps
from twofold.ukr.distant_columns import DistantColumns

# The share of training points that would be outside of the domain as new ones.
LONELY_SHARE = 0.05
# Above this many training points one of each cell of the latent space, half a kernel width wide, is
# tried as a start of a projection.
MOST_PLACES = 5_000
# Local fits are held by a ridge of 1e-7 where few rows are near: what is left out of them must be
# smaller than that.
FITTED_CUTOFF = 1e-12
# Directions in which rows have a smaller share of the largest variance count as not spanned.
SPANNED = 1e-12
# The largest share of a column's variance in directions that are left out.
LOST = 1e-10
# Rows are turned into at most this share of their columns, otherwise it would not pay; of long
# tables at most so many columns are looked at, which takes time in their square.
WORTH_TURNING, MOST_TURNED = 0.9, 100
# So many places are grouped by cells of the latent space, this many kernel widths wide.
GROUP_WIDTH = 8


class CarriedRows:
    """Data rows as columns of the engine: numerators, denominators, and the weights last.

    The weights' own sum is the latent density. Columns that miss the same rows share a denominator.
    Rows Y (n, D), any value where they are not ``observed`` (None: everywhere), are centred by
    ``mean`` (D,), None for their own, and kept in a ``unit`` in which squares neither overflow nor
    vanish.
    """

    def __init__(
        self,
        Y: FloatArray,
        weights: FloatArray,
        observed: BoolArray | None,
        unit: float = 1.0,
        degree: Degree = 0,
        mean: FloatArray | None = None,
    ) -> None:
        self.observed, self.unit, self.degree = observed, unit, degree
        self.n_features = Y.shape[1]
        self.weights = weights
        omega = weights.astype(Y.dtype)[:, None]
        self.mass = omega if observed is None else (omega * observed).astype(Y.dtype, copy=False)
        self.mean = (self._own_mean(Y) if mean is None else mean).astype(Y.dtype)
        self.Y = self.scaled(Y)
        if observed is not None:
            np.copyto(self.Y, 0, where=~observed)
        self.groups = [np.arange(Y.shape[1])] if observed is None else same_gaps(observed)
        self.group_of = np.empty(Y.shape[1], dtype=np.int64)  # the number of a column's group
        for number, columns in enumerate(self.groups):
            self.group_of[columns] = number
        self.V = self._columns(omega)
        self.total = self.mass.sum(axis=0)
        self.total_sum = (self.mass * self.Y).sum(axis=0)
        self.denominators = slice(self.n_features, self.n_features + len(self.groups))
        self._locals: dict[int, LocalFit] = {}

    def __getstate__(self) -> dict[str, Any]:
        # Half of what would travel to another process is made there.
        return {name: value for name, value in vars(self).items() if name != "V"}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state)
        self.V = self._columns(self.weights.astype(self.Y.dtype)[:, None])

    def _own_mean(self, Y: FloatArray) -> FloatArray:
        total = self.mass.sum(axis=0)
        # In units, so that sums of very large rows are numbers. Memory for another copy of a long
        # table takes longer than the sum itself.
        weighed = Y / self.unit
        weighed *= self.mass
        np.copyto(weighed, 0, where=~(self.mass > 0))  # NaN where nothing is observed drops out
        return np.asarray(weighed.sum(axis=0) / np.where(total > 0, total, 1) * self.unit)

    def _columns(self, omega: FloatArray) -> FloatArray:
        if self.degree == 0 and self.observed is None:
            return np.concatenate([omega * self.Y, omega], axis=1)
        first = [columns[0] for columns in self.groups]
        if self.degree == 0:
            n, D = self.Y.shape
            V = np.empty((n, D + len(first) + 1), dtype=self.Y.dtype)
            np.multiply(self.mass, self.Y, out=V[:, :D])
            V[:, D:-1], V[:, -1:] = self.mass[:, first], omega
            return V
        # Local fits bring the weights themselves, so that columns are the rows as they are.
        present = np.ones_like(omega) if self.observed is None else self.observed[:, first]
        return np.concatenate([self.Y, present, omega], axis=1).astype(self.Y.dtype)

    def local(self, q: int) -> LocalFit | None:
        """Return how the engine fits these rows over q latent dimensions, None for degree 0."""
        if self.degree == 0:
            return None
        if q not in self._locals:
            self._locals[q] = self._make_local(q)
        return self._locals[q]

    def _make_local(self, q: int) -> LocalFit:
        terms, D = polynomial_terms(self.degree, q), self.n_features
        if self.observed is None:
            whole = FitGroup(np.arange(D + 1), self.weights.astype(np.float64))
            return LocalFit(terms, (whole,))
        groups = []
        for number, columns in enumerate(self.groups):
            mass = (self.weights * self.observed[:, columns[0]]).astype(np.float64)
            groups.append(FitGroup(np.append(columns, D + number), mass))
        return LocalFit(terms, tuple(groups))

    def whole_fit(self, q: int) -> LocalFit:
        """Return the fit of rows without regard to missing entries, at any degree."""
        columns = np.arange(self.V.shape[1])
        mass = self.weights.astype(np.float64)
        return LocalFit(polynomial_terms(self.degree, q), (FitGroup(columns, mass),))

    def with_values(self, Y: FloatArray) -> CarriedRows:
        """Return the same rows with other, complete data."""
        return CarriedRows(Y, self.weights, None, self.unit, self.degree, self.mean)

    def scaled(self, Y: FloatArray) -> FloatArray:
        """Return rows as the regression sees them: centred, in units.

        New rows may be so far away that their squares would be no numbers; they stay within that.
        """
        largest = LARGEST if Y.dtype == np.float64 else LARGEST_SINGLE
        with np.errstate(over="ignore"):
            found = Y - self.mean
            found /= np.asarray(self.unit, dtype=Y.dtype)
            return np.clip(found, -largest, largest, out=found)

    def unscaled(self, F: FloatArray) -> FloatArray:
        """Return what the regression sees as data."""
        return F * np.asarray(self.unit, dtype=F.dtype) + self.mean

    def regress(self, A: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return f - mean (m, D) and the denominators (m, 1) or (m, D), zero where undefined."""
        if self.observed is not None:
            f, denominator = np.empty((2, len(A), self.n_features), dtype=A.dtype)
            _divide(np.ascontiguousarray(A), self.group_of, f, denominator)
            return f, denominator
        numerator, denominator = A[:, : self.n_features], A[:, self.denominators]
        return numerator / np.where(denominator > 0, denominator, 1), denominator

    def of_columns(self, A: Any) -> Any:
        """Return the denominators among sums (..., C), tensors too: (..., 1) or one a column."""
        found = A[..., self.denominators]
        return found if len(self.groups) in (1, self.n_features) else found[..., self.group_of]

    def regress_tensor(self, A: Any) -> tuple[Any, Any]:
        """Return the same for sums that are a tensor."""
        denominator = self.of_columns(A)
        return A[:, : self.n_features] / (denominator + (denominator <= 0)), denominator

    def mean_without(self, hidden: IntArray) -> FloatArray:
        """Return, for lists of hidden rows (m, K), the mean of all others, as scaled (m, D)."""
        seen = (hidden >= 0)[:, :, None]
        # Entries of -1, which hide nothing, would index the last row.
        mass = self.mass[hidden] * seen
        rest = self.total - mass.sum(axis=1)
        left = self.total_sum - (mass * self.Y[hidden]).sum(axis=1)
        return left / np.where(rest > 0, rest, np.inf)

    def jacobian(self, A: FloatArray, dA: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return f - mean (m, D) and its derivative (m, q, D) from sums and their slopes."""
        f, denominator = self.regress(A)
        D = self.n_features
        if self.degree != 0:
            return f, dA[:, :, :D]
        safe = np.where(denominator > 0, denominator, 1)[:, None, :]
        return f, (dA[:, :, :D] - f[:, None, :] * self.of_columns(dA)) / safe

    def answer(self, f: FloatArray, denominator: FloatArray, slope: FloatArray) -> FloatArray:
        """Return ``U = dR/dA`` from ``slope = dR/df``; rows out of reach do not answer."""
        # f = N / S with the sums N and S: dR/dN = slope / S and dR/dS = -slope f / S.
        if self.observed is not None:
            # The last column is the density, which the error does not look at.
            U = np.zeros((len(f), self.V.shape[1]), dtype=f.dtype)
            _answer_groups(f, denominator, slope, self.group_of, U)
            return U
        E = np.where(denominator > 0, slope, 0) / np.where(denominator > 0, denominator, 1)
        back = (-E * f).sum(axis=1, keepdims=True)
        if self.degree == 0:
            return np.concatenate([E, back], axis=1)
        return np.concatenate([E, back, np.zeros_like(E[:, :1])], axis=1)


@compiled_in_order
def _divide(A: FloatArray, group_of: IntArray, f: FloatArray, denominator: FloatArray) -> None:
    """Write ``N / S`` (m, D) and S from sums A (m, C) of rows with gaps; N where S is 0."""
    D = group_of.size
    for i in range(f.shape[0]):
        for d in range(D):
            denominator[i, d] = A[i, D + group_of[d]]
        for d in range(D):
            total = denominator[i, d]
            f[i, d] = A[i, d] / (total if total > 0 else A.dtype.type(1))


@compiled_in_order
def _answer_groups(
    f: FloatArray,
    denominator: FloatArray,
    slope: FloatArray,
    group_of: IntArray,
    U: FloatArray,
) -> None:
    """Write the answer of rows with gaps over the zeros of U (m, C)."""
    D = group_of.size
    for i in range(f.shape[0]):
        for d in range(D):
            total = denominator[i, d]
            if total > 0:
                U[i, d] = slope[i, d] / total
        for d in range(D):
            U[i, D + group_of[d]] -= U[i, d] * f[i, d]


def in_fewer_coordinates(Y: FloatArray, loss: Loss) -> FloatArray:
    """Return rows in fewer coordinates where columns that are known together span fewer.

    n rows span at most n - 1 directions, indicators of L levels L - 1. Turned into those, distances
    stay as they are, with gaps too, and training with a loss of lengths alone does not notice.
    """
    if not is_rotation_invariant(loss):
        return Y
    groups = same_gaps(~np.isnan(Y))
    turned = [_spanned(Y[:, columns]) for columns in groups]
    width = sum(part.shape[1] for part in turned)
    return np.concatenate(turned, axis=1) if width <= WORTH_TURNING * Y.shape[1] else Y


def _spanned(Y: FloatArray) -> FloatArray:
    """Return rows (n, k), NaN in whole rows alone, in the directions they span if that is known."""
    known = ~np.isnan(Y[:, 0])
    n, k = int(known.sum()), Y.shape[1]
    if k == 1 or n == 0 or (n >= k and k > MOST_TURNED):
        return Y
    rows = Y[known].astype(np.float64)
    unit = float(power_of_two(np.abs(rows).max()))
    rows /= unit
    centred = rows - rows.mean(axis=0)
    turn = _turn_of_wide if n < k else _turn_of_long
    coordinates = turn(centred)
    if coordinates is None:
        return Y
    found = np.full((len(Y), coordinates.shape[1]), np.nan, dtype=Y.dtype)
    found[known] = np.multiply(coordinates, unit, out=coordinates)
    return found


def _turn_of_wide(R: FloatArray) -> FloatArray:
    """Return the coordinates of centred rows (n, k), fewer than columns, that they span."""
    values, vectors = np.linalg.eigh(R @ R.T)
    kept = values > SPANNED * values[-1]
    return np.asarray(vectors[:, kept] * np.sqrt(values[kept]))


def _turn_of_long(R: FloatArray) -> FloatArray | None:
    """Return the same for as many rows as columns or more, None where a column would be lost."""
    values, vectors = np.linalg.eigh(R.T @ R)
    kept = values > SPANNED * values[-1]
    lost = vectors[:, ~kept] ** 2 @ np.abs(values[~kept])
    # Beside a column of a much larger unit, rounding hides what a small one spans.
    return None if (lost > LOST * (R**2).sum(axis=0)).any() else R @ vectors[:, kept]


class Surface:
    """A manifold given by latent points, the rows they carry and a kernel of unit bandwidth.

    ``widths`` (n,) makes the kernel of each point wider or narrower.
    """

    def __init__(
        self, X: FloatArray, rows: CarriedRows, engine: KernelSums, widths: FloatArray | None = None
    ) -> None:
        self.X = np.ascontiguousarray(X, dtype=rows.Y.dtype)
        if rows.degree != 0 and engine.kernel.is_exponential:
            engine = engine.with_cutoff(min(engine.cutoff, FITTED_CUTOFF))
        self.rows, self.engine, self.widths = rows, engine, widths
        self.total_weight = float(rows.weights.sum())
        local = rows.local(X.shape[1])
        self.prepared = PreparedReferences(engine, self.X, rows.V, widths, local)
        self._distant: DistantColumns | None = None
        if rows.observed is not None and engine.kernel.is_exponential:
            self._distant = DistantColumns(engine, self.X, rows, widths)

    def _sums(self, X: FloatArray, *, hidden: IntArray | None = None, slopes: bool = False) -> Sums:
        sums = self.prepared.at(X, hidden=hidden, slopes=slopes)
        if self._distant is not None:
            self._distant.mend(sums, X, hidden)
        return sums

    def sums_tensor(self, X: Any, *, slopes: bool = False, is_sorted: bool = False) -> Any:
        """Return sums (m, C), shifts (m,) and slopes at places that are a tensor on the device."""
        A, shift, dA = self.prepared.at_tensor(X, slopes=slopes, is_sorted=is_sorted)
        if self._distant is not None:
            self._distant.mend_tensor(A, dA, X)
        return A, shift, dA

    @cached_property
    def kernel_width(self) -> float:
        """The distance at which half of the kernel's weight is gone."""
        return self.engine.kernel.half_width()

    def regress(self, X: FloatArray) -> FloatArray:
        """Return f(x) (m, D) at any latent places."""
        f, _ = self.rows.regress(self._sums(X).values)
        return self.rows.unscaled(f)

    def regress_without(self, X: FloatArray, own: IntArray) -> FloatArray:
        """Return f(x) (m, D) without the row ``own`` (m,) of each place, -1 for all rows."""
        f, denominator = self.rows.regress(self._sums(X, hidden=own).values)
        alone = (denominator <= 0) & (own >= 0)[:, None]
        f = np.where(alone, self.rows.mean_without(own[:, None]), f)
        return self.rows.unscaled(f.astype(self.rows.Y.dtype))

    def can_answer(self, X: Any) -> bool:
        """Say whether sums are done on the device that a tensor X is on."""
        device = self.engine.device
        is_there = device != "cpu" and X.device.type == device.partition(":")[0]
        return is_there and self.prepared.on_device is not None

    def regress_tensor(self, X: Any) -> Any:
        """Return f(x) (m, D) at latent places that are a tensor on the device of the sums."""
        f, _ = self.rows.regress_tensor(self.sums_tensor(X)[0])
        return f * self.rows.unit + f.new_tensor(self.rows.mean)

    def density_tensor(self, X: Any) -> Any:
        """Return p(x) (m,) at latent places that are a tensor on the device of the sums."""
        values, shift, _ = self._weights_alone.at_tensor(X)
        # Only exponential kernels are shifted.
        return (-0.5 * shift).exp() * values[:, -1] / self.total_weight

    def density(self, X: FloatArray) -> FloatArray:
        """Return p(x) (m,), relative to F(0) = 1."""
        return self._density(self._weights_alone.at(X))

    @cached_property
    def _weights_alone(self) -> PreparedReferences:
        """The last column, all that a density needs: others may be many, and fitted locally."""
        return PreparedReferences(self.engine, self.X, self.rows.V[:, -1:], self.widths)

    def _density(self, sums: Sums) -> FloatArray:
        # F(s) = F(s - shift) F(shift) for exponential kernels; no others are shifted.
        lowered = self.engine.kernel.value(sums.shift)
        return np.where(sums.shift > 0, lowered, 1) * sums.values[:, -1] / self.total_weight

    def basis(self, X: FloatArray) -> FloatArray:
        """Return how much of each row is in f at latent places: b (m, n), each row of sum 1."""
        B: FloatArray = self.sparse_basis(X).toarray()
        alone = ~(B != 0).any(axis=1)
        B[alone] = self.rows.weights / self.total_weight
        return B

    def sparse_basis(self, X: FloatArray) -> csr_array:
        """Return the same without places that no row reaches, whose rows are empty."""
        return self.prepared.basis(X, self.rows.whole_fit(X.shape[1]))

    def look(self, X: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
        """Return f as the rows are scaled (m, D), its derivative (m, q, D), density and its rise.

        The rise (m, q) is the derivative of the logarithm of the density.
        """
        sums = self._sums(X, slopes=True)
        f, J = self.rows.jacobian(sums.values, sums.slopes)
        total = np.where(sums.values[:, -1:] > 0, sums.values[:, -1:], 1)
        return f, J, self._density(sums), sums.slopes[:, :, -1] / total

    def distances_can_be_taken(self) -> bool:
        """Say whether `distances_at` serves: for plain means of complete rows."""
        return self.rows.degree == 0 and self.rows.observed is None

    def distances_at(
        self, X: FloatArray, Y: FloatArray, known: FloatArray
    ) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray, FloatArray]:
        """Return ``||r||²`` (m,), ``Jᵀr`` (m, q) and ``JᵀJ`` (m, q, q) with ``r = f(x) - y``.

        Rows Y (m, D) are scaled; entries count where ``known`` (m, D), or (1, D) for all, is 1 and
        not where it is 0. Density and its rise come last, as in `look`; to form f and J for
        all places at once would take as long as the sums themselves.
        """
        sums = self.prepared.at(X, slopes=True)
        m, q = X.shape
        error, gradient, curvature = np.empty(m), np.empty((m, q)), np.empty((m, q, q))
        rise = np.empty(X.shape, dtype=sums.values.dtype)
        _take_distances(sums.values, sums.slopes, Y, known, error, gradient, curvature, rise)
        return error, gradient, curvature, self._density(sums), rise

    def lowest_density(self) -> float:
        """Return the lowest density at a training point."""
        return float(self.density(self.X).min())

    @cached_property
    def threshold(self) -> float:
        """The density that bounds the domain, unless a model has set another."""
        return self.domain_bound()

    def domain_bound(self) -> float:
        """Return the density η that the training points bound the domain by."""
        half = DOMAIN_SHARE * self.lowest_density()
        sums = self._weights_alone.at(self.X, hidden=np.arange(len(self.X)))
        around = float(np.quantile(self._density(sums), LONELY_SHARE))
        # Points out of the kernel's reach of all others tell nothing of the places between.
        return min(half, around) if around > 0 else half

    def prepare_projection(self) -> None:
        """Make what all rows need that are projected, once."""
        _ = self.starting_places, self.threshold

    @cached_property
    def starting_places(self) -> StartingPlaces:
        """Training points from which rows are projected."""
        numbers, groups = np.arange(len(self.X)), None
        if len(numbers) > MOST_PLACES and self.X.shape[1] <= GRIDDED:
            grid = build_grid(self.X, self.kernel_width)
            numbers = np.sort(grid.order[grid.starts[:-1][np.diff(grid.starts) > 0]])
            # Cells are half as wide as the radius they are made for.
            grid = build_grid(self.X[numbers], 2 * GROUP_WIDTH * self.kernel_width)
            numbers, groups = numbers[grid.order], np.unique(grid.starts)
        X = self.X[numbers]
        if X.shape[1] > GRIDDED:
            f, _ = self.rows.regress(self._sums(X).values)
            return StartingPlaces(numbers, f, X)
        f, J = self.look(X)[:2]
        return StartingPlaces(numbers, f, X, J, groups)


@compiled
def _take_distances(
    A: FloatArray,
    dA: FloatArray,
    Y: FloatArray,
    known: FloatArray,
    error: FloatArray,
    gradient: FloatArray,
    curvature: FloatArray,
    rise: FloatArray,
) -> None:
    """Write what `Surface.distances_at` returns, from sums (m, D + 1) and their slopes."""
    m, q, C = dA.shape
    f, r, J = np.empty(C - 1, A.dtype), np.empty(C - 1, A.dtype), np.empty((q, C - 1), A.dtype)
    for i in range(m):
        total, squares = A[i, C - 1], 0.0
        # A row takes the same way whether others have gaps or not.
        counted = known[min(i, known.shape[0] - 1)]
        if not total > 0:
            total = A.dtype.type(1)
        for d in range(C - 1):
            f[d] = A[i, d] / total
            r[d] = (f[d] - Y[i, d]) * counted[d]
        for d in range(C - 1):
            squares += square(np.float64(r[d]))
        error[i] = squares
        for a in range(q):
            rise[i, a] = dA[i, a, C - 1] / total
            pull = 0.0
            for d in range(C - 1):
                J[a, d] = (dA[i, a, d] / total - f[d] * rise[i, a]) * counted[d]
            for d in range(C - 1):
                pull += np.float64(J[a, d]) * np.float64(r[d])
            gradient[i, a] = pull
            for b in range(a + 1):
                product = 0.0
                for d in range(C - 1):
                    product += np.float64(J[a, d]) * np.float64(J[b, d])
                curvature[i, a, b] = product
                curvature[i, b, a] = product


class StartingPlaces:
    """Training points X (k, q), by number, and their reconstructions as rows are scaled, (k, D).

    In up to three dimensions the derivative of the regression there is kept, too, (k, q, D). Of
    very many places group g holds those from ``groups[g]`` to ``groups[g + 1]``, which lie in one
    cell of the latent space and so mostly near each other in the data, too.
    """

    def __init__(
        self,
        numbers: IntArray,
        reconstructions: FloatArray,
        X: FloatArray,
        slopes: FloatArray | None = None,
        groups: IntArray | None = None,
    ) -> None:
        self.numbers, self.X, self.groups = numbers, X, groups
        self.reconstructions = np.ascontiguousarray(reconstructions)
        self.slopes = None if slopes is None else np.ascontiguousarray(slopes)

    @cached_property
    def centres(self) -> FloatArray:
        """What rows are compared with first: the means of groups, or all reconstructions."""
        if self.groups is None:
            return self.reconstructions
        sums = np.add.reduceat(self.reconstructions, self.groups[:-1], axis=0)
        return (sums / np.diff(self.groups)[:, None]).astype(sums.dtype)

    @cached_property
    def spacing(self) -> float:
        """The typical distance of a point from the nearest other one."""
        # Imported at first use: it is made of what is here.
        from twofold.ukr.objective import typical_spacing

        return typical_spacing(self.X)

    @cached_property
    def _plain(self) -> MultipliedRows:
        return MultipliedRows(-2 * self.centres, self.centres.dtype)

    @cached_property
    def _masked(self) -> MultipliedRows:
        both = np.concatenate([-2 * self.centres, self.centres**2], axis=1)
        return MultipliedRows(both, both.dtype)

    @cached_property
    def _lengths(self) -> FloatArray:
        return np.square(self.centres).sum(axis=1)

    def distances(self, Y: FloatArray, known: FloatArray | None) -> FloatArray:
        """Return ``||c_i - y||² - ||y||²`` (m, at least k) of k centres, at most ``TILE`` rows Y.

        Only entries that are ``known`` count, the others are 0. Beyond k all are infinite.
        """
        k = len(self.centres)
        if known is None:
            distances = self._plain.padded_products(Y)
            distances[:, :k] += self._lengths
        else:
            distances = self._masked.padded_products(np.concatenate([Y, known], axis=1))
        distances[:, k:] = np.inf
        return distances
