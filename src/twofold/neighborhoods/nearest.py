"""The nearest rows of a row: exactly, nearest first, of equal distances the row that comes first.

What a fitted model answers rests on these, so they depend neither on the other rows that are asked
for nor on the machine. Large tables of neighbours for a start, where ties and last digits do not
matter, come from trees (:func:`twofold.neighborhoods.graphs.find_neighbors`): ten neighbours of
each of 20,000 rows with 3 columns take 0.25 s there and 2.5 s here.
"""

import math
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from twofold.array_types import FloatArray, IntArray
from twofold.checks.parameters import is_integer
from twofold.compiled import compiled
from twofold.engine.threads import count_threads, run_tasks
from twofold.neighborhoods.distances import Units, block_slices, squared_distance

if TYPE_CHECKING:
    from scipy.spatial import cKDTree

# Rows farther off, in sizes of the others, count as being there: squares have no room for more.
FARTHEST = 1e100
# In more columns, and of fewer rows, products are as quick as a tree. For 2,000 places on a map of
# 200,000 rows, 242 neighbours each take 0.25 s by a tree and 6.6 s by products.
MOST_IN_TREE, LEAST_FOR_TREE = 3, 4_096
# Rows that a tree finds beyond those asked for, to see that none is as near as the last.
SPARE = 4
# Arias 2007 takes the mean distance to the 10th neighbour for a width throughout.
NEIGHBOR_FOR_SCALE = 10


def nearest_rows(Y: FloatArray, rows: FloatArray, k: int, n_jobs: int | None = None) -> IntArray:
    """Return the numbers (n, k) of the rows (m, D) nearest to each of Y (n, D), nearest first.

    Exact: products only rule out what is farther away than their rounding could hide. Of rows at
    the same distance the first comes first. No entry is missing.
    """
    return RowSearch(rows).by_products(Y, k, n_jobs)


class RowSearch:
    """The rows (m, D) nearest to others, for rows that are searched many times."""

    def __init__(self, rows: FloatArray) -> None:
        self.rows = np.ascontiguousarray(rows)
        self.units = Units.of(self.rows)
        self.points = self.units.apply(self.rows)

    def nearest(self, Y: FloatArray, k: int) -> IntArray:
        """Return what :func:`nearest_rows` returns, of many rows with few columns by a tree."""
        if len(self.rows) < LEAST_FOR_TREE or self.rows.shape[1] > MOST_IN_TREE:
            return self.by_products(Y, k)
        Y = np.ascontiguousarray(Y)
        found = np.zeros((len(Y), k), dtype=np.int64)
        for part in block_slices(len(Y), k + SPARE):
            self._by_tree(Y[part], found[part])
        return found

    def _by_tree(self, Y: FloatArray, found: IntArray) -> None:
        k = found.shape[1]
        with np.errstate(over="ignore"):
            Z = np.nan_to_num(self.units.apply(Y), nan=FARTHEST)
        Z = np.clip(Z, -FARTHEST, FARTHEST)
        distances, near = self._tree.query(Z, min(k + SPARE, len(self.rows)))
        # The last one found is farther away than rounding can hide, so no other is missing.
        rounding = 8 * (Y.shape[1] + 4) * np.finfo(np.float64).eps
        limit = (1 + rounding) * distances[:, k - 1] + rounding * (1 + np.abs(Z).max(axis=1))
        whole = distances[:, -1] > limit
        near.sort(axis=1)  # of equal distances the first row comes first
        _sort_exactly(near, Y, self.rows, self.units.factor, found)
        if not whole.all():
            found[~whole] = self.by_products(Y[~whole], k)

    @cached_property
    def _tree(self) -> "cKDTree":
        from scipy.spatial import cKDTree  # it takes a while, and few maps need it

        return cKDTree(self.points)

    @cached_property
    def _squares(self) -> FloatArray:
        return np.asarray((self.points * self.points).sum(axis=1))

    def by_products(self, Y: FloatArray, k: int, n_jobs: int | None = None) -> IntArray:
        """Return what :func:`nearest_rows` returns."""
        rows, units, squares, doubled = self.rows, self.units, self._squares, -2 * self.points
        if not is_integer(k) or not 1 <= k <= len(rows):
            raise ValueError(
                f"`k` must be an integer from 1 to {len(rows)}, the number of rows to choose from; "
                f"got {k!r}."
            )
        Y = np.ascontiguousarray(Y)
        rounding = 8 * (Y.shape[1] + 4) * np.finfo(np.float64).eps
        # Zeros: a row without a distance, as NaN leaves it, gets a neighbour that exists.
        found = np.zeros((len(Y), k), dtype=np.int64)

        def fill(part: slice) -> None:
            with np.errstate(over="ignore"):
                Z = np.clip(units.apply(Y[part]), -FARTHEST, FARTHEST)
            sq_dists = Z @ doubled.T
            sq_dists += squares  # short of ||z||², the same for every row
            hidden = rounding * ((Z * Z).sum(axis=1) + squares.max())
            _select(sq_dists, hidden, Y[part], rows, units.factor, found[part])

        run_tasks(fill, block_slices(len(Y), max(rows.shape)), count_threads(n_jobs))
        return found


def other_rows(Y: FloatArray, k: int) -> IntArray:
    """Return the k nearest others (m, k) of each row of Y (m, D), fewer if there are fewer."""
    m = len(Y)
    found = nearest_rows(Y, Y, min(k, m - 1) + 1)
    others = found != np.arange(m)[:, None]
    others[others.all(axis=1), -1] = False  # as many equal rows, one of which stands for itself
    return found[others].reshape(m, -1)


def neighbor_distances(Z: FloatArray, Y: FloatArray, neighbors: IntArray) -> FloatArray:
    """Return the distances (n, k) of rows Z (n, D) to their neighbours (n, k) in Y."""
    found = np.empty(neighbors.shape)
    for j in range(neighbors.shape[1]):
        gaps = Z - Y[neighbors[:, j]]
        found[:, j] = np.sqrt((gaps * gaps).sum(axis=1))
    return found


def neighbor_scale(Y: FloatArray, n: int = NEIGHBOR_FOR_SCALE, *, order: int = 2) -> float:
    """Return the mean distance of rows Y (m, D) to their n-th nearest other (Arias 2007, 2.34).

    With ``order`` 1 it is the city-block distance to that row.
    """
    Y = np.asarray(Y, dtype=np.float64)
    n = min(n, len(Y) - 1)
    last = Y[nearest_rows(Y, Y, n + 1)[:, n]]
    scale = float(np.linalg.norm(Y - last, order, axis=1).mean())
    if not 0 < scale < math.inf:
        raise ValueError(
            f"The mean distance to the {n}th neighbour is {scale}, which cannot be the width "
            "of a kernel. Scale the data, or give the kernel a width."
        )
    return scale


@compiled
def _select(
    sq_dists: FloatArray,
    hidden: FloatArray,
    Y: FloatArray,
    rows: FloatArray,
    factor: float,
    found: IntArray,
) -> None:
    """Set ``found`` (rows, k); ``sq_dists`` are wrong by less than half of ``hidden``."""
    k = found.shape[1]
    least = np.empty(k)
    for i in range(sq_dists.shape[0]):
        k_smallest(sq_dists[i], found[i], least)
        limit = least[k - 1] + hidden[i]
        least[:] = np.inf
        for j in range(sq_dists.shape[1]):
            if sq_dists[i, j] <= limit:
                exact = squared_distance(Y[i], rows[j], factor)
                if exact < least[k - 1]:
                    insert_sorted(least, found[i], exact, j)


@compiled
def _sort_exactly(
    near: IntArray, Y: FloatArray, rows: FloatArray, factor: float, found: IntArray
) -> None:
    """Set ``found`` (n, k) to the nearest of the rows ``near`` (n, at least k), which rise."""
    k = found.shape[1]
    least = np.empty(k)
    for i in range(near.shape[0]):
        least[:] = np.inf
        for j in range(near.shape[1]):
            exact = squared_distance(Y[i], rows[near[i, j]], factor)
            if exact < least[k - 1]:
                insert_sorted(least, found[i], exact, near[i, j])


# Values whose smallest one is found at a time: most chunks hold none of the smallest of all.
_CHUNK = 16


@compiled
def k_smallest(values: FloatArray, found: IntArray, least: FloatArray) -> None:
    """Write the places of the k smallest values and these themselves (k,); ties by place.

    Where fewer than k are finite, the rest are zeros.
    """
    lowest = np.empty(-(-values.size // _CHUNK))
    for chunk in range(lowest.size):
        start = chunk * _CHUNK
        smallest = values[start]
        for j in range(start + 1, min(start + _CHUNK, values.size)):
            smallest = min(smallest, values[j])
        lowest[chunk] = smallest
    least[:] = np.inf
    if lowest.size > 2 * least.size:  # with fewer chunks this rules out too little
        for chunk in range(lowest.size):
            if lowest[chunk] < least[least.size - 1]:
                insert_sorted(least, found, lowest[chunk], chunk)
    # As many values as are asked for are no larger: each is the smallest of a chunk.
    limit = least[least.size - 1]
    found[:] = 0
    least[:] = np.inf
    for chunk in range(lowest.size):
        if lowest[chunk] > limit or lowest[chunk] >= least[least.size - 1]:
            continue
        start = chunk * _CHUNK
        for j in range(start, min(start + _CHUNK, values.size)):
            if values[j] <= limit and values[j] < least[least.size - 1]:
                insert_sorted(least, found, values[j], j)


@compiled
def insert_sorted(least: FloatArray, found: IntArray, value: float, number: int) -> None:
    """Put a value into its place in a rising list, behind its equals; the last one drops out."""
    place = least.size - 1
    while place > 0 and least[place - 1] > value:
        least[place] = least[place - 1]
        found[place] = found[place - 1]
        place -= 1
    least[place] = value
    found[place] = number
