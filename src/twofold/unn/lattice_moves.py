"""Compiled loops of the lattice: who is near a site, what an insertion costs, doing it.

A row that is put next to another one may find the site taken. Then the rows from there on, up to
the first free site in that direction, move one step outwards. Nothing is moved to try this out: a
`Push` says how the sites would be taken, and looking up a site goes through it. A push of length 0
puts a row on a free site, one of length ``NO_PUSH`` changes nothing.

A row is touched by a push if it moves, or if a site that changes hands is not farther than the
farthest of its neighbours.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from twofold.array_types import BoolArray, FloatArray, IntArray
from twofold.compiled import compiled
from twofold.unn.rows import NOBODY, Rows, Rule, add_row, error_of_sums, fill_gaps, is_cheaper

NO_PUSH = -1


class Cells(NamedTuple):
    """Rows on the sites of a box.

    Attributes
    ----------
    rows : Rows
    errors : (n,) error of each row on its site, kept for the full criterion
    reach : (n,) squared distance from each row to its farthest neighbour; kept with the errors
    sites : (n, q) the site of each row, from 0 to side - 1
    grid : (side ** q,) number of the row on each site, NOBODY on free ones
    offsets : (sites, q) steps to all other sites, the nearest first
    side : sites along an edge of the box
    """

    rows: Rows
    errors: FloatArray
    reach: IntArray
    sites: IntArray
    grid: IntArray
    offsets: IntArray
    side: int


class Push(NamedTuple):
    """A row put on a site, and those from there on, `length` of them, moved one step."""

    number: int
    at: int
    axis: int
    sign: int
    length: int


@compiled
def flat(site: IntArray, side: int) -> int:
    """Return the place of a site in the grid."""
    place = 0
    for a in range(len(site)):
        place = place * side + site[a]
    return place


@compiled
def _steps(place: int, push: Push, stride: int) -> int:
    """Return how many steps of a push lead to a place, -1 if none do or it is not that long."""
    gap = (place - push.at) * push.sign
    if push.length < 0 or gap < 0 or gap % stride != 0:
        return -1
    steps = gap // stride
    return steps if steps <= push.length else -1


@compiled
def _occupant(place: int, push: Push, stride: int, cells: Cells) -> int:
    """Return the row on a site as it would be after a push."""
    steps = _steps(place, push, stride)
    if steps < 0:
        return cells.grid[place]
    if steps == 0:
        return push.number
    return cells.grid[place - push.sign * stride]


@compiled
def _stride(axis: int, cells: Cells) -> int:
    """Return how far apart in the grid two neighbouring sites along an axis are."""
    stride = 1
    for _ in range(axis + 1, cells.sites.shape[1]):
        stride *= cells.side
    return stride


@compiled
def _add_neighbors(
    site: IntArray,
    n_others: int,
    push: Push,
    cells: Cells,
    sums: FloatArray,
    masses: FloatArray,
) -> int:
    """Add the nearest rows of a site after a push; return the squared distance to the last one."""
    side, q = cells.side, len(site)
    stride = _stride(push.axis, cells)
    found, reach = 0, 0
    for k in range(len(cells.offsets)):
        place, is_inside = 0, True
        for a in range(q):
            c = site[a] + cells.offsets[k, a]
            is_inside = is_inside and 0 <= c < side
            place = place * side + c
        if not is_inside:
            continue
        other = _occupant(place, push, stride, cells)
        if other == NOBODY:
            continue
        add_row(sums, masses, cells.rows, other)
        found += 1
        if found == n_others:
            for a in range(q):
                reach += cells.offsets[k, a] ** 2
            break
    return reach


@compiled
def _error_on(
    site: IntArray, number: int, n_others: int, push: Push, cells: Cells, rule: Rule
) -> tuple[float, int]:
    """Return the error of a row on a site after a push, and the squared reach of its neighbours."""
    if n_others == 0:
        return 0.0, 0
    rows = cells.rows
    sums, masses = np.zeros(rows.values.shape[1]), np.zeros(rows.mass.shape[1])
    if rule.include_self:
        add_row(sums, masses, rows, number)
    reach = _add_neighbors(site, n_others, push, cells, sums, masses)
    return error_of_sums(sums, masses, rows, number, rule.error), reach


@compiled
def _is_touched(
    number: int, at: IntArray, push: Push, n: int, cells: Cells, rule: Rule
) -> tuple[bool, bool]:
    """Return whether the neighbours of a row change by a push, and whether it moves itself.

    `at` is the site at which the push begins.
    """
    site = cells.sites[number]
    squared, moves = 0, True
    for a in range(len(site)):
        gap = site[a] - at[a]
        if a == push.axis:
            along = gap * push.sign
            moves = moves and 0 <= along < push.length
            gap = 0 if 0 <= along <= push.length else (along if along < 0 else along - push.length)
        else:
            moves = moves and gap == 0
        squared += gap * gap
    return moves or n <= rule.n_others or squared <= cells.reach[number], moves


@compiled
def cost_of(push: Push, at: IntArray, n: int, cells: Cells, rule: Rule) -> float:
    """Return what a push of a further row costs on a lattice of n rows.

    That is the error of the new row or, for the full criterion, the change of the sum of all.
    """
    n_others = min(rule.n_others, n)
    own, _ = _error_on(at, push.number, n_others, push, cells, rule)
    if not rule.is_full:
        return own
    weights, errors = cells.rows.weights, cells.errors
    total = weights[push.number] * own
    site = np.empty_like(at)
    for j in range(n):
        touched, moves = _is_touched(j, at, push, n, cells, rule)
        if touched:
            site[:] = cells.sites[j]
            site[push.axis] += push.sign * moves
            fresh, _ = _error_on(site, j, n_others, push, cells, rule)
            total += weights[j] * (fresh - errors[j])
    return total


@compiled
def commit(push: Push, at: IntArray, n: int, cells: Cells, rule: Rule, keep: bool) -> None:
    """Put a further row on a lattice of n rows by a push."""
    stride = _stride(push.axis, cells) * push.sign
    touched = np.ones(n + 1, dtype=np.bool_)
    if keep:
        for j in range(n):
            touched[j] = _is_touched(j, at, push, n, cells, rule)[0]
    for step in range(push.length, 0, -1):
        j = cells.grid[push.at + (step - 1) * stride]
        cells.grid[push.at + step * stride] = j
        cells.sites[j, push.axis] += push.sign
    cells.grid[push.at] = push.number
    cells.sites[push.number] = at
    if keep:
        refresh(touched, n + 1, cells, rule)


@compiled
def refresh(touched: BoolArray, n: int, cells: Cells, rule: Rule) -> None:
    """Recompute the error and the reach of some of n rows."""
    nothing = Push(NOBODY, 0, 0, 1, NO_PUSH)
    n_others = min(rule.n_others, n - 1)
    for j in range(len(touched)):
        if touched[j]:
            found, reach = _error_on(cells.sites[j], j, n_others, nothing, cells, rule)
            cells.errors[j], cells.reach[j] = found, reach


@compiled
def _push_beside(number: int, beside: int, axis: int, sign: int, cells: Cells) -> Push:
    """Return the push that puts a row beside another one; of length NO_PUSH without room."""
    side, site = cells.side, cells.sites[beside]
    stride = _stride(axis, cells) * sign
    at = flat(site, side) + stride
    length, along = 0, site[axis] + sign
    while 0 <= along < side and cells.grid[at + length * stride] != NOBODY:
        along += sign
        length += 1
    if not 0 <= along < side:
        length = NO_PUSH
    return Push(number, at, axis, sign, length)


@compiled
def _nearest_free(number: int, beside: int, site: IntArray, cells: Cells) -> Push:
    """Return the push that puts a row on the free site nearest to another; write it to `site`."""
    for k in range(len(cells.offsets)):
        is_inside = True
        for a in range(len(site)):
            site[a] = cells.sites[beside, a] + cells.offsets[k, a]
            is_inside = is_inside and 0 <= site[a] < cells.side
        if is_inside and cells.grid[flat(site, cells.side)] == NOBODY:
            break
    return Push(number, flat(site, cells.side), 0, 1, 0)


@compiled
def _spread_of(push: Push, at: IntArray, cells: Cells) -> int:
    """Return the squared distance from the middle of the box to the site that a push fills.

    It is 0 on a line, which has the same shape whichever way rows go.
    """
    q = len(at)
    if q == 1:
        return 0
    squared = 0
    for a in range(q):
        c = at[a] + (push.sign * push.length if a == push.axis else 0)
        squared += (c - cells.side // 2) ** 2
    return squared


@compiled
def best_push(number: int, low: int, high: int, cells: Cells, rule: Rule, site: IntArray) -> Push:
    """Return the best of the cheapest pushes of a further row next to the rows `low` to `high`.

    Of pushes as cheap the one that keeps rows closest together is best, then the first: while there
    are few rows all cost the same, and always to go the first way would make a column. The site of
    the row is written to `site`. Only if none of these pushes has room, the free site nearest to
    the row `low` is taken.
    """
    q = len(site)
    best, best_cost, best_spread = Push(number, 0, 0, 1, NO_PUSH), 0.0, 0
    trial = np.empty_like(site)
    for beside in range(low, high):
        for direction in range(2 * q):
            axis, sign = direction // 2, 2 * (direction % 2) - 1
            push = _push_beside(number, beside, axis, sign, cells)
            if push.length == NO_PUSH:
                continue
            trial[:] = cells.sites[beside]
            trial[axis] += sign
            cost = cost_of(push, trial, number, cells, rule)
            spread = _spread_of(push, trial, cells)
            is_tie = not is_cheaper(best_cost, cost)
            if (
                best.length == NO_PUSH
                or is_cheaper(cost, best_cost)
                or (is_tie and spread < best_spread)
            ):
                best, best_cost, best_spread = push, cost, spread
                site[:] = trial
    if best.length == NO_PUSH:
        best = _nearest_free(number, low, site, cells)
    return best


@compiled
def insert_rows(
    start: int, stop: int, nearest: IntArray, cells: Cells, rule: Rule, keep_errors: bool
) -> None:
    """Put rows on the lattice, next to their nearest row or, if `nearest` is empty, any row."""
    site = np.empty(cells.sites.shape[1], dtype=np.intp)
    for number in range(start, stop):
        low, high = 0, number
        if len(nearest) > 0:
            low = nearest[number - start]
            high = low + 1
        push = best_push(number, low, high, cells, rule, site)
        commit(push, site, number, cells, rule, keep_errors)


@compiled
def fill_row(number: int, n: int, cells: Cells, rule: Rule, keep_errors: bool) -> None:
    """Put the means of the neighbours where entries of one of n rows are missing."""
    rows, nothing = cells.rows, Push(NOBODY, 0, 0, 1, NO_PUSH)
    sums, masses = np.zeros(rows.values.shape[1]), np.zeros(rows.mass.shape[1])
    if n > 1:
        n_others = min(rule.n_others, n - 1)
        _add_neighbors(cells.sites[number], n_others, nothing, cells, sums, masses)
    fill_gaps(sums, masses, rows, number)
    if keep_errors:
        refresh(np.ones(n, dtype=np.bool_), n, cells, rule)
