"""The nearest of the rows that came before: where a greedy search looks (Kramer 2013, eq. 5.7).

    y* = argmin_{j < i} ||y_i - y_j||²

In feature space the distance is ``k(y_j, y_j) - 2 k(y_i, y_j)`` up to a constant. Rows are taken
in tiles, inner products come from matrix products, so memory is a tile for each thread. The tiles
are the same for any number of threads. Equal distances: the row that came first.

With missing entries the squared distance goes over the entries that both rows have, times D over
their number; rows with none in common are as far as can be.
"""

from __future__ import annotations

import math

import numpy as np

from twofold.array_types import BoolArray, FloatArray, IntArray
from twofold.compiled import compiled
from twofold.engine.threads import run_tasks
from twofold.unn.point_errors import NO_KERNEL, RBF_KERNEL, PointError, nearness

_ROWS = 256
_COLUMNS = 2_048
_CHUNK = 64


def nearest_earlier(
    Y: FloatArray,
    error: PointError | None = None,
    *,
    first: int = 1,
    n_threads: int = 1,
    observed: BoolArray | None = None,
) -> IntArray:
    """Return the number of the nearest earlier row for the rows from `first` on.

    Parameters
    ----------
    Y : (n, D)
        Rows in the order in which they come; zeros for missing entries.
    error : PointError, optional
        Says in which feature space distances are measured; Euclidean by default.
    first : int
        The first row that looks for its nearest one, at least 1.
    observed : (n, D), optional
        Which entries are there; all by default.

    Returns
    -------
    (n - first,)
    """
    return _search(Y, error, first, n_threads, observed, True, 1)[:, 0]


def nearest_others(
    Y: FloatArray,
    error: PointError | None = None,
    *,
    n_threads: int = 1,
    observed: BoolArray | None = None,
) -> IntArray:
    """Return the number of the nearest other row of each row, (n,); see `nearest_earlier`."""
    return _search(Y, error, 0, n_threads, observed, False, 1)[:, 0]


def several_nearest_others(
    Y: FloatArray,
    k: int,
    error: PointError | None = None,
    *,
    n_threads: int = 1,
    observed: BoolArray | None = None,
) -> IntArray:
    """Return the numbers of the k < n nearest other rows of each row, (n, k), the nearest first."""
    return _search(Y, error, 0, n_threads, observed, False, k)


def _search(
    Y: FloatArray,
    error: PointError | None,
    first: int,
    n_threads: int,
    observed: BoolArray | None,
    earlier: bool,
    k: int,
) -> IntArray:
    error = PointError() if error is None else error
    seen = None if observed is None else observed.astype(np.float64)
    own = np.einsum("id,id->i", Y, Y)

    def search(start: int) -> IntArray:
        stop = min(start + _ROWS, len(Y))
        nearest = np.zeros((stop - start, k), dtype=np.intp)
        best = np.full((stop - start, k), math.inf)
        n = stop - 1 if earlier else len(Y)
        if seen is not None:
            _take_nearest_in_common(Y, seen, start, nearest, best, earlier)
            return nearest
        for column in range(0, n, _COLUMNS):
            products = Y[start:stop] @ Y[column : min(column + _COLUMNS, n)].T
            _take_nearest(products, own, error, start, column, nearest, best, earlier)
        return nearest

    # The last tiles have the most earlier rows: begin with them, so that no thread is left waiting.
    tasks = range(first, len(Y), _ROWS)[::-1]
    if not tasks:
        return np.empty((0, k), dtype=np.intp)
    return np.concatenate(run_tasks(search, tasks, n_threads)[::-1])


@compiled
def _sort_in(value: float, number: int, best: FloatArray, nearest: IntArray) -> None:
    """Put a row that is nearer than the last of those found into its place."""
    place = len(best) - 1
    while place > 0 and best[place - 1] > value:
        best[place], nearest[place] = best[place - 1], nearest[place - 1]
        place -= 1
    best[place], nearest[place] = value, number


@compiled
def _take_nearest(
    products: FloatArray,
    own: FloatArray,
    error: PointError,
    start: int,
    column: int,
    nearest: IntArray,
    best: FloatArray,
    earlier: bool,
) -> None:
    """Put what is nearer than the best so far into `nearest` and `best`; writes over `products`."""
    k = best.shape[1]
    for i in range(products.shape[0]):
        row, itself = products[i], start + i - column
        last = min(len(row), itself) if earlier else len(row)
        if error.kernel == NO_KERNEL or error.kernel == RBF_KERNEL:
            for j in range(last):  # `nearness` without its branches, several numbers at a time
                row[j] = own[column + j] - 2.0 * row[j]
        else:
            for j in range(last):
                row[j] = nearness(row[j], own[column + j], error)
        if 0 <= itself < last:
            row[itself] = math.inf
        for low in range(0, last, _CHUNK):
            high = min(low + _CHUNK, last)
            smallest = math.inf  # without its place: again several numbers at a time
            for j in range(low, high):
                smallest = min(smallest, row[j])
            if smallest < best[i, k - 1]:
                for j in range(low, high):
                    if row[j] < best[i, k - 1]:
                        _sort_in(row[j], column + j, best[i], nearest[i])


@compiled
def squared_gap_in_common(
    y: FloatArray, seen: FloatArray, a: FloatArray, there: FloatArray
) -> float:
    """Return the squared distance over common entries, scaled up to all D; inf without any."""
    total, common = 0.0, 0.0
    for d in range(len(y)):
        both = 1.0 if seen[d] > 0.0 and there[d] > 0.0 else 0.0
        total += both * (y[d] - a[d]) ** 2
        common += both
    return total * len(y) / common if common > 0.0 else math.inf


@compiled
def _take_nearest_in_common(
    Y: FloatArray,
    seen: FloatArray,
    start: int,
    nearest: IntArray,
    best: FloatArray,
    earlier: bool,
) -> None:
    """Put the nearest rows by the entries they have in common into `nearest` and `best`."""
    k = best.shape[1]
    for i in range(start, start + len(best)):
        found = 0
        for j in range(i if earlier else len(Y)):
            if j == i:
                continue
            value = squared_gap_in_common(Y[i], seen[i], Y[j], seen[j])
            # Rows with nothing in common count when there are no others, the first ones first.
            if value < best[i - start, k - 1] or found < k:
                if value == math.inf:
                    nearest[i - start, found] = j
                else:
                    _sort_in(value, j, best[i - start], nearest[i - start])
                found += 1
