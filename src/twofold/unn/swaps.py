"""Rows that change places: who is a neighbour of whom stays, who stands there does not.

So the neighbours of each place are known once and for all: `near` lists them, `users` the places
that have it among theirs. A swap changes the error at the two places, and at those that have
exactly one of them as a neighbour. Where rows may be taken away from sums, the sum over neighbours
changes there by one row, so a try costs O(K D); otherwise it is made anew, O(K² D). When a swap is
kept, the O(K) places are summed up anew in any case, so that rounding does not add up.

`try_swaps` is the loop of the (1+1) evolution (Kramer 2013, Algorithm 7), `swap_beside` that of the
refinement of lattices, where a row tries the places beside the rows nearest to it in data space.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from twofold.array_types import FloatArray, IntArray
from twofold.compiled import compiled
from twofold.unn.growing import tree_of
from twofold.unn.regression import find_neighbors
from twofold.unn.rows import Rows, Rule, add_row, error_of_sums, is_even

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
    sums, masses : (n, D), (n, 1) or (n, D)
        Sums of rows by their weights, and of these weights, over the nearest places.
    errors : (n,) error of the row at each place
    is_even : whether rows may be taken away from sums
    """

    near: IntArray
    first: IntArray
    users: IntArray
    row_at: IntArray
    sums: FloatArray
    masses: FloatArray
    errors: FloatArray
    is_even: bool


class Scratch(NamedTuple):
    """Room that tries write over: a mean of rows with its mass, marks of places (n,)."""

    sums: FloatArray
    masses: FloatArray
    shared: IntArray


def places_of(sites: FloatArray, order: IntArray, rows: Rows, rule: Rule) -> Places:
    """Return the places at sites (n, q), sorted by coordinates, with the rows ``order`` on them.

    Of sites as near the first one is a neighbour first: on a line the left one.
    """
    n = len(sites)
    m = min(rule.n_others, n - 1)
    near = np.empty((n, m), dtype=np.int64)
    find_neighbors(tree_of(sites), sites, np.arange(n), near, np.empty((n, m)))
    users = np.argsort(near.ravel(), kind="stable") // m
    first = np.concatenate([[0], np.cumsum(np.bincount(near.ravel(), minlength=n))])
    places = Places(
        near,
        first.astype(np.int64),
        users.astype(np.int64),
        np.array(order, dtype=np.int64),
        np.empty((n, rows.values.shape[1])),
        np.empty((n, rows.mass.shape[1])),
        np.empty(n),
        is_even(rows),
    )
    _refresh_all(places, rows, rule)
    return places


@compiled
def _scratch(places: Places) -> Scratch:
    return Scratch(
        np.empty(places.sums.shape[1]),
        np.empty(places.masses.shape[1]),
        np.zeros(places.row_at.size, dtype=np.int64),
    )


@compiled
def _sum_up(place: int, places: Places, rows: Rows, sums: FloatArray, masses: FloatArray) -> None:
    """Write the sums and masses over the neighbours of a place."""
    sums[:] = 0.0
    masses[:] = 0.0
    for other in places.near[place]:
        add_row(sums, masses, rows, places.row_at[other])


@compiled
def _error_of(sums: FloatArray, masses: FloatArray, number: int, rows: Rows, rule: Rule) -> float:
    """Return the error of a row whose neighbours have these sums and masses; writes over both."""
    if rule.include_self:
        add_row(sums, masses, rows, number)
    return error_of_sums(sums, masses, rows, number, rule.error)


@compiled
def _refresh(place: int, places: Places, rows: Rows, rule: Rule, room: Scratch) -> None:
    """Compute sums, masses and the error of a place."""
    _sum_up(place, places, rows, places.sums[place], places.masses[place])
    room.sums[:] = places.sums[place]
    room.masses[:] = places.masses[place]
    places.errors[place] = _error_of(room.sums, room.masses, places.row_at[place], rows, rule)


@compiled
def _refresh_all(places: Places, rows: Rows, rule: Rule) -> None:
    room = _scratch(places)
    for place in range(places.row_at.size):
        _refresh(place, places, rows, rule, room)


@compiled
def _exchange(a: int, b: int, places: Places) -> None:
    """Let the rows of two places change places; sums and errors are left as they were."""
    row_at = places.row_at
    row_at[a], row_at[b] = row_at[b], row_at[a]


@compiled
def _sum_after(
    place: int, leaves: int, comes: int, places: Places, rows: Rows, room: Scratch
) -> None:
    """Write the sums of a place one of whose neighbours was exchanged for another row."""
    if not places.is_even:
        _sum_up(place, places, rows, room.sums, room.masses)
        return
    w_out, w_in = rows.mass[leaves, 0], rows.mass[comes, 0]
    room.masses[0] = places.masses[place, 0] + w_in - w_out
    for d in range(room.sums.size):
        step = w_in * rows.values[comes, d] - w_out * rows.values[leaves, d]
        room.sums[d] = places.sums[place, d] + step


@compiled
def _change_around(
    here: int, there: int, places: Places, rows: Rows, rule: Rule, room: Scratch
) -> tuple[float, float]:
    """Return what an exchange changed at places near `here` only, and the size of that sum.

    `room.shared` is 3 for places that have both as neighbours, whose sums stay what they are.
    """
    comes, leaves = places.row_at[here], places.row_at[there]
    change, size = 0.0, 0.0
    for user in range(places.first[here], places.first[here + 1]):
        place = places.users[user]
        if room.shared[place] == 3 or place == there:
            continue
        _sum_after(place, leaves, comes, places, rows, room)
        number = places.row_at[place]
        w = rows.weights[number]
        new = w * _error_of(room.sums, room.masses, number, rows, rule)
        change += new - w * places.errors[place]
        size += abs(new)
    return change, size


@compiled
def _change_by(
    a: int, b: int, places: Places, rows: Rows, rule: Rule, room: Scratch
) -> tuple[float, float]:
    """Exchange two rows; return the change of the sum of all errors, and the size of what it sums.

    Sums and errors of places are left as they were.
    """
    weights, row_at = rows.weights, places.row_at
    old = weights[row_at[a]] * places.errors[a] + weights[row_at[b]] * places.errors[b]
    _exchange(a, b, places)
    for user in range(places.first[a], places.first[a + 1]):
        room.shared[places.users[user]] += 1
    for user in range(places.first[b], places.first[b + 1]):
        room.shared[places.users[user]] += 2
    change, size = _change_around(a, b, places, rows, rule, room)
    more, more_size = _change_around(b, a, places, rows, rule, room)
    change, size = change + more, size + more_size
    new = 0.0
    for place in (a, b):
        for user in range(places.first[place], places.first[place + 1]):
            room.shared[places.users[user]] = 0
        _sum_up(place, places, rows, room.sums, room.masses)
        number = row_at[place]
        new += weights[number] * _error_of(room.sums, room.masses, number, rows, rule)
    return change + new - old, size + abs(new) + abs(old)


@compiled
def _keep(a: int, b: int, places: Places, rows: Rows, rule: Rule, room: Scratch) -> None:
    """Bring sums and errors up to date after an exchange."""
    for place in (a, b):
        _refresh(place, places, rows, rule, room)
        for user in range(places.first[place], places.first[place + 1]):
            _refresh(places.users[user], places, rows, rule, room)


@compiled
def try_swaps(
    pairs: IntArray, idle: int, patience: int, places: Places, rows: Rows, rule: Rule
) -> tuple[int, int]:
    """Try to swap the rows of pairs (m, 2) of places; keep that if the error does not rise.

    Parameters
    ----------
    idle : int
        How many tries before these have changed nothing.
    patience : int
        Stop when it reaches this number.

    Returns
    -------
    n_tried, idle : int
    """
    room = _scratch(places)
    for step in range(len(pairs)):
        if idle >= patience:
            return step, idle
        a, b = pairs[step, 0], pairs[step, 1]
        change, size = _change_by(a, b, places, rows, rule, room)
        idle = 0 if change < -_ROUNDING * size else idle + 1
        if change > _ROUNDING * size:
            _exchange(a, b, places)
        else:
            _keep(a, b, places, rows, rule, room)
    return len(pairs), idle


@compiled
def swap_beside(nearest: IntArray, n_beside: int, places: Places, rows: Rows, rule: Rule) -> int:
    """Let each row change places with those beside its nearest rows where that lowers the error.

    Parameters
    ----------
    nearest : (n, k) rows nearest to each row in data space
    n_beside : int
        How many places beside each of them are tried, the nearest first.

    Returns
    -------
    int
        How many swaps were kept.
    """
    room = _scratch(places)
    place_of = np.empty_like(places.row_at)
    for place in range(places.row_at.size):
        place_of[places.row_at[place]] = place
    kept = 0
    for number in range(len(nearest)):
        for other in nearest[number]:
            for beside in range(min(n_beside, places.near.shape[1])):
                here, there = place_of[number], places.near[place_of[other], beside]
                if here == there:
                    continue
                change, size = _change_by(here, there, places, rows, rule, room)
                if change >= -_ROUNDING * size:
                    _exchange(here, there, places)
                    continue
                _keep(here, there, places, rows, rule, room)
                place_of[number], place_of[places.row_at[here]] = there, here
                kept += 1
    return kept
