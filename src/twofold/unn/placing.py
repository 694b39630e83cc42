"""The compiled loops of continuous embedding: putting rows somewhere, and moving them.

A row's places come from :mod:`twofold.unn.gaussian` or, if there are lots for its steps, from
:mod:`twofold.unn.swarm`. When a row moves, the error changes for itself and for the rows that have
it among their neighbours before or after; these are found by their distances to their last
neighbours.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from twofold.array_types import FloatArray, IntArray
from twofold.compiled import compiled
from twofold.unn.gaussian import try_places
from twofold.unn.growing import ROUNDING, PointTree, insert, remove
from twofold.unn.point_errors import POLYNOMIAL_KERNEL, RBF_KERNEL, PointError
from twofold.unn.regression import Judge, Rows, place_error
from twofold.unn.swarm import fly


@compiled
def squared_gap(rows: Rows, i: int, j: int) -> float:
    """Return the squared distance of two rows, over common entries and scaled up to all."""
    total, common, D = 0.0, 0, rows.Y.shape[1]
    for d in range(D):
        if rows.observed.size == 0 or (rows.observed[i, d] and rows.observed[j, d]):
            total += (rows.Y[i, d] - rows.Y[j, d]) ** 2
            common += 1
    return total * D / common if common else 1.0


@compiled
def largest_earlier(Y: FloatArray, first: int, error: PointError) -> IntArray:
    """Return the earlier row of the largest kernel value for rows from ``first`` on (7.15)."""
    found = np.zeros(Y.shape[0] - first, dtype=np.int64)
    for i in range(first, Y.shape[0]):
        best = -np.inf
        for j in range(i):
            product, gap = 0.0, 0.0
            for d in range(Y.shape[1]):
                product += Y[i, d] * Y[j, d]
                gap += (Y[i, d] - Y[j, d]) ** 2
            value = product
            if error.kernel == RBF_KERNEL:
                value = -gap
            elif error.kernel == POLYNOMIAL_KERNEL:
                value = (error.scale * product + error.shift) ** error.degree
            if value > best:
                best, found[i - first] = value, j
    return found


class Tries(NamedTuple):
    """Random numbers for the places of some rows.

    Attributes
    ----------
    is_squared : whether places spread by the squared distance to the nearest row
    Z : (rows, places, q) steps from there; of a particle the first velocity, (rows, 1, q)
    lots : (rows, steps, 2) for a particle; no steps if places are drawn
    pull : (2,) how strongly a particle is drawn
    """

    is_squared: bool
    Z: FloatArray
    lots: FloatArray
    pull: FloatArray


@compiled
def _find_place(
    tree: PointTree,
    rows: Rows,
    i: int,
    near: int,
    tries: Tries,
    place: int,
    judge: Judge,
    best: FloatArray,
) -> float:
    """Write the best place around that of row ``near``; return the error of row i there."""
    origin, Z, lots = tree.X[near], tries.Z[place], tries.lots[place]
    if lots.shape[0]:
        return fly(tree, rows, i, origin, Z[0], lots, tries.pull, judge, best)
    sigma = squared_gap(rows, i, near)
    if not tries.is_squared:
        sigma = np.sqrt(sigma)
    return try_places(tree, rows, i, origin, sigma, Z, judge, best)


@compiled
def insert_rows(
    tree: PointTree, rows: Rows, first: int, nearest: IntArray, tries: Tries, judge: Judge
) -> None:
    """Embed rows from ``first`` on, each around the place of its nearest one."""
    best = np.zeros(tree.X.shape[1])
    for place in range(nearest.size):
        i = first + place
        best[:] = 0.0
        if i > 0:
            _find_place(tree, rows, i, nearest[place], tries, place, judge, best)
        tree.X[i] = best
        insert(tree, i)


@compiled
def list_errors(tree: PointTree, rows: Rows, judge: Judge) -> tuple[FloatArray, FloatArray]:
    """Return the error of each row, and the squared distance to its last neighbour."""
    n = rows.Y.shape[0]
    errors, reach = np.empty(n), np.empty(n)
    for i in range(n):
        errors[i] = place_error(tree, rows, tree.X[i], i, judge)
        reach[i] = judge.sq_dists[min(judge.k, n - 1) - 1]
    return errors, reach


@compiled
def _list_touched(
    X: FloatArray,
    n: int,
    i: int,
    old: FloatArray,
    new: FloatArray,
    reach: FloatArray,
    touched: IntArray,
) -> int:
    """Write the rows that have row i among their neighbours before or after its move."""
    count = 0
    for j in range(n):
        before, after = 0.0, 0.0
        for m in range(X.shape[1]):
            before += (X[j, m] - old[m]) ** 2
            after += (X[j, m] - new[m]) ** 2
        touched[count] = j
        count += (j != i) & (min(before, after) <= reach[j] * ROUNDING)
    return count


@compiled
def move_rows(
    tree: PointTree,
    rows: Rows,
    first: int,
    nearest: IntArray,
    tries: Tries,
    judge: Judge,
    errors: FloatArray,
    reach: FloatArray,
) -> None:
    """Take rows from ``first`` on up and put them where the whole error is lower."""
    n, last = rows.Y.shape[0], min(judge.k, rows.Y.shape[0] - 1) - 1
    best, old = np.zeros(tree.X.shape[1]), np.zeros(tree.X.shape[1])
    touched, e_new, r_new = np.empty(n + 1, dtype=np.int64), np.empty(n), np.empty(n)
    for place in range(nearest.size):
        i = first + place
        old[:] = tree.X[i]
        remove(tree, i)
        lowest = _find_place(tree, rows, i, nearest[place], tries, place, judge, best)
        if lowest >= errors[i]:
            insert(tree, i)
            continue
        tree.X[i] = best
        insert(tree, i)
        count = _list_touched(tree.X, n, i, old, best, reach, touched)
        touched[count] = i
        change = 0.0
        for t in range(count + 1):
            j = touched[t]
            e_new[t] = place_error(tree, rows, tree.X[j], j, judge)
            r_new[t] = judge.sq_dists[last]
            change += rows.weights[j] * (e_new[t] - errors[j])
        if change < 0.0:
            for t in range(count + 1):
                errors[touched[t]], reach[touched[t]] = e_new[t], r_new[t]
        else:
            remove(tree, i)
            tree.X[i] = old
            insert(tree, i)
