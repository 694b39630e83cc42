"""Swapping the rows of two places: the compiled loops of the (1+1) evolution (Kramer 2013, Alg. 7).

Rows move, places do not. So who is a neighbour of whom is known once and for all, by place: `near`
lists the neighbours of each place, `users` the places that have it among theirs. A swap changes the
error at the two places, and at those that have exactly one of them as a neighbour. There the sum
over neighbours changes by one row, so a try costs O(K D); the O(K) places are summed up anew only
when a swap is kept, so that rounding does not add up.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from twofold.array_types import FloatArray, IntArray
from twofold.compiled import compiled
from twofold.unn.growing import tree_of
from twofold.unn.point_errors import PointError, row_error
from twofold.unn.regression import Rows, find_neighbors

# Swaps that change nothing are kept, and come out of the sums with a little rounding.
_ROUNDING = 1e-13


class Places(NamedTuple):
    """Places with the rows on them.

    Attributes
    ----------
    near : (n, m) the nearest other places of each place
    first, users : (n + 1,), (n m,)
        ``users[first[p] : first[p + 1]]`` are the places that have p among their nearest.
    row_at : (n,) the row at each place
    sums, masses : (n, D), (n,)
        Sums of rows by their weights, and of these weights, over the nearest places.
    errors : (n,) error of the row at each place
    """

    near: IntArray
    first: IntArray
    users: IntArray
    row_at: IntArray
    sums: FloatArray
    masses: FloatArray
    errors: FloatArray


def places_of(
    sites: FloatArray, order: IntArray, k: int, rows: Rows, include_self: bool, error: PointError
) -> Places:
    """Return the places at sites (n, q), sorted by coordinates, with the rows ``order`` on them.

    Of sites as near the first one is a neighbour first: on a line the left one.
    """
    n, m = len(sites), min(k, len(sites) - 1)
    near = np.empty((n, m), dtype=np.int64)
    find_neighbors(tree_of(sites), sites, np.arange(n), near, np.empty((n, m)))
    users = np.argsort(near.ravel(), kind="stable") // m
    first = np.concatenate([[0], np.cumsum(np.bincount(near.ravel(), minlength=n))])
    places = Places(
        near,
        first.astype(np.int64),
        users.astype(np.int64),
        np.array(order, dtype=np.int64),
        np.empty(rows.Y.shape),
        np.empty(n),
        np.empty(n),
    )
    refresh_all(places, rows, include_self, error)
    return places


@compiled
def _error_of(
    sums: FloatArray,
    mass: float,
    number: int,
    rows: Rows,
    include_self: bool,
    error: PointError,
    f: FloatArray,
) -> float:
    """Return the error of a row whose neighbours have this sum and mass; f (D,) is written over."""
    own = rows.weights[number] if include_self else 0.0
    for d in range(f.size):
        f[d] = (sums[d] + own * rows.Y[number, d]) / (mass + own)
    return row_error(f, rows.Y[number], error)


@compiled
def _sum_up(place: int, places: Places, rows: Rows, sums: FloatArray) -> float:
    """Write the sum over the neighbours of a place; return its mass."""
    sums[:] = 0.0
    mass = 0.0
    for other in places.near[place]:
        number = places.row_at[other]
        w = rows.weights[number]
        mass += w
        for d in range(sums.size):
            sums[d] += w * rows.Y[number, d]
    return mass


@compiled
def _refresh(
    place: int,
    places: Places,
    rows: Rows,
    include_self: bool,
    error: PointError,
    f: FloatArray,
) -> None:
    sums = places.sums[place]
    places.masses[place] = _sum_up(place, places, rows, sums)
    places.errors[place] = _error_of(
        sums, places.masses[place], places.row_at[place], rows, include_self, error, f
    )


@compiled
def refresh_all(places: Places, rows: Rows, include_self: bool, error: PointError) -> None:
    """Compute sums, masses and errors of all places."""
    f = np.empty(rows.Y.shape[1])
    for place in range(places.row_at.size):
        _refresh(place, places, rows, include_self, error, f)


@compiled
def _change_around(
    here: int,
    there: int,
    shared: IntArray,
    places: Places,
    rows: Rows,
    include_self: bool,
    error: PointError,
    sums: FloatArray,
    f: FloatArray,
) -> tuple[float, float]:
    """Return what changes at places near `here` but not `there`, and the size of that sum.

    `shared` is 3 for places that have both as neighbours, whose sums stay what they are.
    """
    leaves, comes = places.row_at[here], places.row_at[there]
    w_out, w_in = rows.weights[leaves], rows.weights[comes]
    change, size = 0.0, 0.0
    for user in range(places.first[here], places.first[here + 1]):
        place = places.users[user]
        if shared[place] == 3 or place == there:
            continue
        for d in range(sums.size):
            step = w_in * rows.Y[comes, d] - w_out * rows.Y[leaves, d]
            sums[d] = places.sums[place, d] + step
        mass = places.masses[place] + w_in - w_out
        number = places.row_at[place]
        w = rows.weights[number]
        new = w * _error_of(sums, mass, number, rows, include_self, error, f)
        change += new - w * places.errors[place]
        size += abs(new)
    return change, size


@compiled
def _change_by(
    a: int,
    b: int,
    shared: IntArray,
    places: Places,
    rows: Rows,
    include_self: bool,
    error: PointError,
    sums: FloatArray,
    f: FloatArray,
) -> tuple[float, float]:
    """Return what a swap changes in the sum of all errors, and the size of what was summed."""
    for user in range(places.first[a], places.first[a + 1]):
        shared[places.users[user]] += 1
    for user in range(places.first[b], places.first[b + 1]):
        shared[places.users[user]] += 2
    change, size = _change_around(a, b, shared, places, rows, include_self, error, sums, f)
    more, more_size = _change_around(b, a, shared, places, rows, include_self, error, sums, f)
    change, size = change + more, size + more_size
    for place in (a, b):
        for user in range(places.first[place], places.first[place + 1]):
            shared[places.users[user]] = 0
    row_at = places.row_at
    old = rows.weights[row_at[a]] * places.errors[a] + rows.weights[row_at[b]] * places.errors[b]
    row_at[a], row_at[b] = row_at[b], row_at[a]
    new = 0.0
    for place in (a, b):
        mass = _sum_up(place, places, rows, sums)
        number = row_at[place]
        new += rows.weights[number] * _error_of(sums, mass, number, rows, include_self, error, f)
    row_at[a], row_at[b] = row_at[b], row_at[a]
    return change + new - old, size + abs(new) + abs(old)


@compiled
def try_swaps(
    pairs: IntArray,
    idle: int,
    patience: int,
    places: Places,
    rows: Rows,
    include_self: bool,
    error: PointError,
) -> tuple[int, int]:
    """Try to swap the rows of pairs (m, 2) of places; keep that if the error does not rise.

    Parameters
    ----------
    idle : int
        How many tries before these have changed nothing.
    patience : int
        Stop when it is so many.

    Returns
    -------
    n_tried, idle : int
    """
    sums, f = np.empty(rows.Y.shape[1]), np.empty(rows.Y.shape[1])
    shared = np.zeros(places.row_at.size, dtype=np.int64)
    for step in range(len(pairs)):
        if idle >= patience:
            return step, idle
        a, b = pairs[step, 0], pairs[step, 1]
        change, size = _change_by(a, b, shared, places, rows, include_self, error, sums, f)
        idle = 0 if change < -_ROUNDING * size else idle + 1
        if change > _ROUNDING * size:
            continue
        row_at = places.row_at
        row_at[a], row_at[b] = row_at[b], row_at[a]
        for place in (a, b):
            _refresh(place, places, rows, include_self, error, f)
            for user in range(places.first[place], places.first[place + 1]):
                _refresh(places.users[user], places, rows, include_self, error, f)
    return len(pairs), idle
