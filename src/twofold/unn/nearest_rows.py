"""The nearest rows in data space: where searches look for places (Kramer 2013, eq. 5.7).

    y* = argmin_j ||y_i - y_j||²

over the rows that came before, or over all others, whatever the order of the Minkowski distance of
errors. In feature space it is ``k(y_j, y_j) - 2 k(y_i, y_j)`` up to a constant. Inner products come
from matrix products of tiles, which are the same for any number of threads. Equal distances: the
row that came first.

With missing entries the squared distance goes over the entries that both rows have, times D over
their number; rows with none in common are as far as can be.
"""

import math

import numpy as np

from twofold.array_types import FloatArray, IntArray
from twofold.compiled import compiled
from twofold.engine.threads import run_tasks
from twofold.neighborhoods.nearest import insert_sorted
from twofold.unn.point_errors import NO_KERNEL, RBF_KERNEL, TANH_KERNEL, PointError, kernel_of
from twofold.unn.rows import Rows, is_complete, squared_gap

# Tiles of products of 4 MB, and how many of their numbers are passed over if the least is too far.
_ROWS = 256
_COLUMNS = 2_048
_CHUNK = 64


def nearest_rows(
    rows: Rows,
    error: PointError,
    k: int = 1,
    *,
    first: int = 0,
    earlier: bool = False,
    by_value: bool = False,
    n_threads: int = 1,
) -> IntArray:
    """Return the k nearest others (n - first, k) of rows from `first` on, or of `earlier` ones."""
    # With `by_value` those of the largest kernel values, as the book has it (7.15).
    Y = rows.values
    own = np.einsum("id,id->i", Y, Y)
    if by_value and error.kernel != RBF_KERNEL:  # whose values fall with the distance anyway
        own[:] = 0.0  # what is left of distances are kernel values, -2 k(y_i, y_j)
        if error.kernel == TANH_KERNEL:  # rises with the products, which never saturate
            error = error._replace(kernel=NO_KERNEL)

    def search(start: int) -> IntArray:
        stop = min(start + _ROWS, len(Y))
        nearest = np.zeros((stop - start, k), dtype=np.intp)
        best = np.full((stop - start, k), math.inf)
        if not is_complete(rows):
            _take_nearest_in_common(rows, start, nearest, best, earlier)
            return nearest
        n = stop - 1 if earlier else len(Y)
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
            # RBF kernels are falling functions of the distance, which does not underflow.
            for j in range(last):
                row[j] = own[column + j] - 2.0 * row[j]
        else:
            for j in range(last):
                row[j] = kernel_of(own[column + j], error) - 2.0 * kernel_of(row[j], error)
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
                        insert_sorted(best[i], nearest[i], row[j], column + j)


@compiled
def _take_nearest_in_common(
    rows: Rows, start: int, nearest: IntArray, best: FloatArray, earlier: bool
) -> None:
    """Put the nearest rows by the entries they have in common into `nearest` and `best`."""
    Y, mass, k = rows.values, rows.mass, best.shape[1]
    for i in range(start, start + len(best)):
        found = 0
        for j in range(i if earlier else len(Y)):
            if j == i:
                continue
            total, common = squared_gap(Y[i], mass[i], Y[j], mass[j])
            value = total * Y.shape[1] / common if common > 0.0 else math.inf
            # Rows with nothing in common count when there are no others, the first ones first.
            if value < best[i - start, k - 1] or found < k:
                if value == math.inf:
                    nearest[i - start, found] = j
                else:
                    insert_sorted(best[i - start], nearest[i - start], value, j)
                found += 1
