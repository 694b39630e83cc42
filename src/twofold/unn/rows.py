"""Rows, checked and as compiled loops take them: with weights, means of some, the error of one.

Every entry has a mass: the weight of its row, or 0 where it is missing. The mean of some rows goes
over the entries that are there,

    f_d = Σ_j m_jd y_jd / Σ_j m_jd,

and is that of the whole column if none is. A sum is updated by taking a row away only where all
rows are complete and none outweighs the others by far: otherwise rounding would leave a mass where
there is none.
"""

from collections.abc import Callable
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt
from sklearn.utils.validation import check_is_fitted, validate_data

from twofold.array_types import FloatArray, IntArray
from twofold.checks.parameters import check_choice, check_count
from twofold.checks.rows import check_differences, check_entries
from twofold.compiled import compiled, square, written_into_callers
from twofold.unn.point_errors import NO_KERNEL, PointError, row_error

# Hears how many rows were embedded, or sweeps made.
Watch: TypeAlias = Callable[[int], None]
# (n,) how much rows count; None for all alike.
Weights: TypeAlias = FloatArray | None

NOBODY = -1
_ROUNDING = 1e-11
# Rows are taken away from sums where none weighs more than this many times another.
_EVEN = 1e6
# Latent steps of Gaussian embedding are squared distances, and squared again: sums of many fourth
# powers of values between these bounds neither overflow nor vanish. Single precision is computed
# with in double precision, but its latent points must be numbers of its own.
LARGEST, SMALLEST = 1e60, 1e-60
LARGEST_SINGLE, SMALLEST_SINGLE = 1e15, 1e-15


def check_range(Y: FloatArray, *, differences: bool) -> None:
    """Raise if squares of entries of Y (n, D), or of their differences, leave the numbers."""
    # Differences matter where rows are told apart by them: in a training set.
    check_entries(Y, LARGEST, LARGEST_SINGLE)
    if differences:
        check_differences(Y, SMALLEST if Y.dtype == np.float64 else SMALLEST_SINGLE)


def training_rows(model: Any, X: Any, y: Any = "no_validation", **options: Any) -> Any:
    """Return the checked rows (n, D) of a training set, and their targets if there are any."""
    found = validate_data(model, X, y, dtype=[np.float64, np.float32], **options)
    check_range(found[0] if isinstance(found, tuple) else found, differences=True)
    return found


def new_rows(model: Any, X: Any) -> FloatArray:
    """Return the checked rows (m, D) that a fitted model is asked about."""
    check_is_fitted(model)
    Y: FloatArray = validate_data(model, X, dtype=[np.float64, np.float32], reset=False)
    check_range(Y, differences=False)
    return Y


class Rows(NamedTuple):
    """Rows with their weights."""

    values: FloatArray  # (n, D) zeros where entries are missing
    mass: FloatArray  # (n, 1) weights of complete rows, else (n, D), zeros for missing entries
    weights: FloatArray  # (n,)
    usual: FloatArray  # (D,) the mean of a column that none of the rows in question has


def rows_of(Y: FloatArray, weights: FloatArray) -> Rows:
    """Return rows Y (n, D), NaN where entries are missing."""
    Y = np.ascontiguousarray(Y, dtype=np.float64)
    weights = np.ascontiguousarray(weights, dtype=np.float64)
    observed = ~np.isnan(Y)
    if observed.all():
        return Rows(Y, weights[:, None], weights, np.zeros(Y.shape[1]))
    Y, mass = np.where(observed, Y, 0.0), weights[:, None] * observed
    # 0 for a column that no row has: 0 / tiny.
    usual = (mass * Y).sum(axis=0) / np.maximum(mass.sum(axis=0), np.finfo(float).tiny)
    return Rows(Y, mass, weights, usual)


def is_complete(rows: Rows) -> bool:
    """Say whether no entry is missing; of one column none can be, as no row is empty."""
    return rows.mass.shape[1] == 1


def is_even(rows: Rows) -> bool:
    """Say whether rows may be taken away from sums of them."""
    w = rows.weights
    return is_complete(rows) and bool(w.max(initial=0.0) <= _EVEN * w.min(initial=np.inf))


class Rule(NamedTuple):
    """Who is a neighbour, and what a place costs: its own error, or that of all rows."""

    n_others: int
    include_self: bool
    is_full: bool
    error: PointError


def get_rule(n_neighbors: int, criterion: str, error: PointError, include_self: bool) -> Rule:
    """Return the rule of neighbours and costs, checked."""
    check_count("n_neighbors", n_neighbors)
    check_choice("criterion", criterion, ("point", "full"))
    # At least one other, or nothing would count.
    n_others = max(1, int(n_neighbors) - 1) if include_self else int(n_neighbors)
    return Rule(n_others, bool(include_self), criterion == "full", error)


@compiled
def is_cheaper(cost: float, best: float) -> bool:
    """Return whether a cost is smaller than the best so far by more than rounding."""
    return cost < best - _ROUNDING * abs(best)


@compiled
def add_row(sums: FloatArray, masses: FloatArray, rows: Rows, number: int) -> None:
    """Add a row to the sums (D,) and masses (1,) or (D,) of a mean."""
    if masses.size == 1:
        w = rows.weights[number]
        masses[0] += w
        for d in range(sums.size):
            sums[d] += w * rows.values[number, d]
    else:
        for d in range(sums.size):
            masses[d] += rows.mass[number, d]
            sums[d] += rows.mass[number, d] * rows.values[number, d]


@written_into_callers
def divide(sums: FloatArray, masses: FloatArray, rows: Rows) -> None:
    """Turn sums (D,) into means."""
    if masses.size == 1:
        mass = masses[0]
        for d in range(sums.size):
            sums[d] /= mass
    else:
        for d in range(sums.size):
            sums[d] = sums[d] / masses[d] if masses[d] > 0.0 else rows.usual[d]


@compiled
def write_mean(rows: Rows, found: IntArray, count: int, f: FloatArray) -> None:
    """Write the mean of ``found[:count]`` into f (D,)."""
    # Not by `add_row`: a call for each row would cost more than the row.
    f[:] = 0.0
    if rows.mass.shape[1] == 1:
        mass = 0.0
        for place in range(count):
            j = found[place]
            w = rows.weights[j]
            mass += w
            for d in range(f.size):
                f[d] += w * rows.values[j, d]
        for d in range(f.size):
            f[d] /= mass
        return
    for d in range(f.size):
        mass = 0.0
        for place in range(count):
            j = found[place]
            mass += rows.mass[j, d]
            f[d] += rows.mass[j, d] * rows.values[j, d]
        f[d] = f[d] / mass if mass > 0.0 else rows.usual[d]


@written_into_callers
def error_of_mean(f: FloatArray, rows: Rows, number: int, error: PointError) -> float:
    """Return the error of a row for the mean f (D,) of its neighbours; may write over that."""
    y = rows.values[number]
    if rows.mass.shape[1] > 1:  # the residual goes over observed entries, scaled up to all of them
        n_seen = 0
        for d in range(y.size):
            n_seen += rows.mass[number, d] > 0.0
        # Σ over seen entries times D / seen, inside of the root of order p.
        stretch = (y.size / max(n_seen, 1)) ** (1.0 / error.power)
        for d in range(y.size):
            f[d] = y[d] + stretch * (f[d] - y[d]) if rows.mass[number, d] > 0.0 else y[d]
    return row_error(f, y, error)


@written_into_callers
def error_of_sums(
    sums: FloatArray, masses: FloatArray, rows: Rows, number: int, error: PointError
) -> float:
    """Return the error of a row whose neighbours have these sums and masses; writes over sums."""
    divide(sums, masses, rows)
    return error_of_mean(sums, rows, number, error)


@compiled
def fill_gaps(sums: FloatArray, masses: FloatArray, rows: Rows, number: int) -> None:
    """Put the means of the neighbours with these sums where entries of a row are missing."""
    divide(sums, masses, rows)
    for d in range(rows.mass.shape[1]):
        if rows.mass[number, d] == 0.0:
            rows.mass[number, d] = rows.weights[number]
            rows.values[number, d] = sums[d]


@compiled
def squared_gap(
    y: FloatArray, seen: FloatArray, z: FloatArray, there: FloatArray
) -> tuple[float, float]:
    """Return the squared distance of two rows over common entries, and how many these are."""
    # `seen` and `there` are their masses: both (1,), where all rows are complete, or both (D,).
    total, common = 0.0, 0.0
    if seen.size == 1:
        for d in range(y.size):
            total += square(y[d] - z[d])
        return total, float(y.size)
    for d in range(y.size):  # without branches, so that several entries are taken at a time
        both = 1.0 if seen[d] > 0.0 and there[d] > 0.0 else 0.0
        total += both * square(y[d] - z[d])
        common += both
    return total, common


class RowStore:
    """Rows that grow in number, and arrays that others keep of each of them."""

    # Rows are centred where the error allows it: inner products then lose fewer digits, and the
    # mean of a column that no neighbour has, that of the first rows to come, is 0.

    def __init__(self, error: PointError) -> None:
        self._error = error
        self._arrays: dict[str, npt.NDArray[Any]] = {}
        self._n = 0
        self.center: FloatArray = np.empty(0)

    def __len__(self) -> int:
        return self._n

    def __getitem__(self, name: str) -> npt.NDArray[Any]:
        return self._arrays[name][: self._n]

    @property
    def has_missing(self) -> bool:
        """Whether an entry was missing when its row came."""
        return self._n > 0 and self["mass"].shape[1] > 1

    def append(self, Y: FloatArray, weights: Weights = None) -> None:
        """Add rows (m, D), NaN for missing entries, with their weights (m,)."""
        Y = np.asarray(Y, dtype=np.float64)
        observed = ~np.isnan(Y)
        has_gaps = not observed.all()
        if has_gaps and self._error.kernel != NO_KERNEL:
            raise ValueError(
                "A data kernel needs complete rows; entries are missing. Fill them in first, or "
                "use no data kernel."
            )
        if not observed.any(axis=1).all():
            raise ValueError("A row without any observed entry cannot be placed; leave it out.")
        start, D = self._n, Y.shape[1]
        if start == 0:
            counts = observed.sum(axis=0)
            sums = np.where(observed, Y, 0.0).sum(axis=0)
            self.center = np.where(counts > 0, sums / np.maximum(counts, 1), 0.0)
            if not self._error.is_shift_invariant:
                self.center = np.zeros(D)
        is_wide = has_gaps or self.has_missing
        if is_wide and start > 0 and not self.has_missing:
            self._arrays["mass"] = np.repeat(self._arrays["mass"], D, axis=1)
        self._n += len(Y)
        for name, width in (("values", D), ("weights", None), ("mass", D if is_wide else 1)):
            self.reserve(name, width)
        self["values"][start:] = np.where(observed, Y - self.center, 0.0)
        self["weights"][start:] = 1.0 if weights is None else weights
        self["mass"][start:] = self["weights"][start:, None] * (observed if is_wide else 1.0)

    def reserve(self, name: str, width: int | None = None, dtype: Any = np.float64) -> None:
        """Make sure that an array of that name has a row for each of ours."""
        old = self._arrays.get(name)
        if old is not None and len(old) >= self._n:
            return
        # Rows that come one by one must not copy the table each time.
        room = self._n if old is None else max(self._n, len(old) + len(old) // 2)
        fresh = np.zeros(room if width is None else (room, width), dtype=dtype)
        if old is not None:
            fresh[: len(old)] = old
        self._arrays[name] = fresh

    def rows(self) -> Rows:
        """Return the centred rows."""
        return Rows(self["values"], self["mass"], self["weights"], np.zeros(len(self.center)))

    def row(self, number: int) -> FloatArray:
        """Return a row as it came, (D,), with what has been filled in."""
        values: FloatArray = self["values"][number] + self.center
        if self.has_missing:
            values[self["mass"][number] <= 0] = np.nan
        return values
