"""Rows that change places: who is a neighbour of whom stays, who stands there does not.

So the neighbours of each place are known once and for all: `near` lists them, `users` the places
that have it among theirs. A swap changes the error at the two places, and at those that have
exactly one of them as a neighbour. Where rows may be taken away from sums, the sum over neighbours
changes there by one row, so a try costs O(K D); otherwise it is made anew, O(K² D). When a swap is
kept, the O(K) places are summed up anew in any case, so that rounding does not add up.

`try_swaps` is the loop of the (1+1) evolution (Kramer 2013, Algorithm 7), `swap_beside` that of the
refinement of lattices, where a row tries the places beside the rows nearest to it in data space.
"""

from typing import NamedTuple

import numpy as np

from twofold.array_types import FloatArray, IntArray
from twofold.compiled import compiled
from twofold.small_systems import assign
from twofold.unn.growing import tree_of
from twofold.unn.regression import find_neighbors
from twofold.unn.rows import Rows, Rule, add_row, error_of_sums, is_even

# Swaps that change nothing are kept, and come out of the sums with a little rounding.
_ROUNDING = 1e-13


class Places(NamedTuple):
    """Places with the rows on them."""

    rows: Rows
    is_even: bool  # whether rows may be taken away from sums
    near: IntArray  # (n, m) the nearest other places of each place
    first: IntArray  # (n + 1,) `users[first[p] : first[p + 1]]` are the places that
    users: IntArray  # (n m,) have p among their nearest
    row_at: IntArray  # (n,) the row at each place
    sums: FloatArray  # (n + 1, D) of rows by their weights over the nearest places, and of
    masses: FloatArray  # (n + 1, 1 or D) these weights; the last are written over in a try
    errors: FloatArray  # (n,) error of the row at each place
    shared: IntArray  # (n,) marks of places, zeros between tries


def places_of(sites: FloatArray, order: IntArray, rows: Rows, rule: Rule) -> Places:
    """Return the places at sites (n, q), sorted by coordinates, with the rows ``order`` on them."""
    # Of sites as near the first one is a neighbour first: on a line the left one.
    n = len(sites)
    m = min(rule.n_others, n - 1)
    near = np.empty((n, m), dtype=np.int64)
    find_neighbors(tree_of(sites), sites, np.arange(n), near, np.empty((n, m)))
    users = np.argsort(near.ravel(), kind="stable") // m  # entry k of all lists is of place k // m
    first = np.concatenate([[0], np.cumsum(np.bincount(near.ravel(), minlength=n))])
    places = Places(
        rows,
        is_even(rows),
        near,
        first.astype(np.int64),
        users.astype(np.int64),
        np.array(order, dtype=np.int64),
        np.empty((n + 1, rows.values.shape[1])),
        np.empty((n + 1, rows.mass.shape[1])),
        np.empty(n),
        np.zeros(n, dtype=np.int64),
    )
    _refresh(np.arange(n), places, rule)
    return places


@compiled
def _sum_up(place: int, into: int, places: Places) -> None:
    """Write the sums and masses over the neighbours of a place."""
    sums, masses = places.sums[into], places.masses[into]
    sums[:] = 0.0
    masses[:] = 0.0
    for other in places.near[place]:
        add_row(sums, masses, places.rows, places.row_at[other])


@compiled
def _error_in_try(number: int, places: Places, rule: Rule) -> float:
    """Return the error of a row whose neighbours have the last sums; writes over these."""
    sums, masses = places.sums[-1], places.masses[-1]
    if rule.include_self:
        add_row(sums, masses, places.rows, number)
    return error_of_sums(sums, masses, places.rows, number, rule.error)


@compiled
def _refresh(some: IntArray, places: Places, rule: Rule) -> None:
    """Compute sums, masses and errors of some places."""
    for place in some:
        _sum_up(place, place, places)
        assign(places.sums[-1], places.sums[place])
        assign(places.masses[-1], places.masses[place])
        places.errors[place] = _error_in_try(places.row_at[place], places, rule)


@compiled
def _users_of(place: int, places: Places) -> IntArray:
    return places.users[places.first[place] : places.first[place + 1]]


@compiled
def _change_around(here: int, there: int, places: Places, rule: Rule) -> tuple[float, float]:
    """Return what an exchange changed at places near `here` only, and the size of that sum."""
    # `shared` is 3 for places that have both as neighbours, whose sums stay what they are.
    values, weights = places.rows.values, places.rows.weights
    comes, leaves = places.row_at[here], places.row_at[there]
    change, size = 0.0, 0.0
    for place in _users_of(here, places):
        if places.shared[place] == 3 or place == there:
            continue
        if places.is_even:
            w_out, w_in = weights[leaves], weights[comes]
            places.masses[-1, 0] = places.masses[place, 0] + w_in - w_out
            for d in range(values.shape[1]):
                step = w_in * values[comes, d] - w_out * values[leaves, d]
                places.sums[-1, d] = places.sums[place, d] + step
        else:
            _sum_up(place, -1, places)
        number = places.row_at[place]
        new = weights[number] * _error_in_try(number, places, rule)
        change += new - weights[number] * places.errors[place]
        size += abs(new)
    return change, size


@compiled
def _change_by(a: int, b: int, places: Places, rule: Rule) -> tuple[float, float]:
    """Exchange two rows; return the change of the sum of all errors, and the size of its terms."""
    # Sums and errors of places are left as they were.
    weights, row_at = places.rows.weights, places.row_at
    old = weights[row_at[a]] * places.errors[a] + weights[row_at[b]] * places.errors[b]
    row_at[a], row_at[b] = row_at[b], row_at[a]
    for place in _users_of(a, places):
        places.shared[place] += 1
    for place in _users_of(b, places):
        places.shared[place] += 2
    change, size = _change_around(a, b, places, rule)
    more, more_size = _change_around(b, a, places, rule)
    new = 0.0
    for place in (a, b):
        for user in _users_of(place, places):
            places.shared[user] = 0
        _sum_up(place, -1, places)
        new += weights[row_at[place]] * _error_in_try(row_at[place], places, rule)
    return change + more + new - old, size + more_size + abs(new) + abs(old)


@compiled
def _decide(a: int, b: int, places: Places, rule: Rule, is_kept: bool) -> None:
    """Bring sums and errors up to date after an exchange, or take it back."""
    if not is_kept:
        places.row_at[a], places.row_at[b] = places.row_at[b], places.row_at[a]
        return
    _refresh(np.array([a, b]), places, rule)
    _refresh(_users_of(a, places), places, rule)
    _refresh(_users_of(b, places), places, rule)


@compiled
def try_swaps(
    pairs: IntArray, idle: int, patience: int, places: Places, rule: Rule
) -> tuple[int, int]:
    """Try swaps of places (m, 2) until `patience` change nothing; return how many, and `idle`."""
    for step in range(len(pairs)):
        if idle >= patience:
            return step, idle
        a, b = pairs[step, 0], pairs[step, 1]
        change, size = _change_by(a, b, places, rule)
        idle = 0 if change < -_ROUNDING * size else idle + 1
        _decide(a, b, places, rule, change <= _ROUNDING * size)
    return len(pairs), idle


@compiled
def swap_beside(nearest: IntArray, n_beside: int, places: Places, rule: Rule) -> int:
    """Let rows swap with places beside their `nearest` (n, k) where that pays; return how often."""
    kept, place_of = 0, np.argsort(places.row_at)
    for number in range(len(nearest)):
        for other in nearest[number]:
            for beside in range(min(n_beside, places.near.shape[1])):
                here, there = place_of[number], places.near[place_of[other], beside]
                if here == there:
                    continue
                change, size = _change_by(here, there, places, rule)
                is_lower = change < -_ROUNDING * size
                _decide(here, there, places, rule, is_lower)
                if is_lower:
                    place_of[number], place_of[places.row_at[here]] = there, here
                    kept += 1
    return kept
