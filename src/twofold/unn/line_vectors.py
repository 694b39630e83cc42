"""Latent sorting with the rows themselves: any distance, missing entries, the greedy search.

The line is a linked list of row numbers. What a row put into a gap changes lies near the gap, so
every question is asked of a short list of rows around it. A row at rank j has ``m`` others as
neighbours, ``ceil(m / 2)`` on its left and the rest on its right, moved inwards at the two ends;
with itself they are ``m + 1`` ranks in a row:

    first rank = min(max(j - ceil(m / 2), 0), n - 1 - m)

Sums over neighbours are never updated by taking away, so that a column without any observed entry
has mass zero and not what rounding left of it. Gaps near the ends, and all gaps while there are few
rows, give a row the same neighbours: they cost the same but for rounding, so a gap must be cheaper
by more than that to be taken before one on its left.

`mass` holds the weight of each entry: (n, 1) where all rows are complete, (n, D) with zeros for
missing entries otherwise.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from twofold.array_types import FloatArray, IntArray
from twofold.compiled import compiled
from twofold.unn.point_errors import PointError, row_error

NOBODY = -1
_ROUNDING = 1e-11


class Rows(NamedTuple):
    """Rows on a line, as compiled loops take them.

    Attributes
    ----------
    values : (n, D)
        Rows, zeros for missing entries.
    mass : (n, 1) or (n, D)
        Weight of each row, or of each entry.
    weights : (n,)
        Weight of each row.
    before, after : (n,)
        Number of the row next to it on either side, NOBODY at the ends.
    errors : (n,)
        Error of each row at its place; only kept where a search asks for the full error.
    """

    values: FloatArray
    mass: FloatArray
    weights: FloatArray
    before: IntArray
    after: IntArray
    errors: FloatArray


class Rule(NamedTuple):
    """Who is a neighbour, and what a place costs."""

    n_others: int
    include_self: bool
    is_full: bool
    error: PointError


@compiled
def is_cheaper(cost: float, best: float) -> bool:
    """Return whether a cost is smaller than the best so far by more than rounding."""
    return cost < best - _ROUNDING * abs(best)


@compiled
def add_row(sums: FloatArray, masses: FloatArray, rows: Rows, number: int) -> None:
    """Add a row, by its weights, to the sums (D,) and masses of a mean."""
    values = rows.values[number]
    mass = rows.mass[number]
    if len(mass) == 1:
        masses[0] += mass[0]
        for d in range(len(sums)):
            sums[d] += mass[0] * values[d]
    else:
        for d in range(len(sums)):
            masses[d] += mass[d]
            sums[d] += mass[d] * values[d]


@compiled
def error_of_sums(
    sums: FloatArray, masses: FloatArray, rows: Rows, number: int, error: PointError
) -> float:
    """Return the error of a row whose neighbours have these sums and masses; writes over sums."""
    y, seen = rows.values[number], rows.mass[number]
    D = len(sums)
    if len(seen) == 1:
        for d in range(D):
            sums[d] /= masses[0]
        return row_error(sums, y, error)
    n_seen = 0
    for d in range(D):
        if seen[d] > 0.0:
            n_seen += 1
    if n_seen == 0:
        return 0.0
    # Distances over some entries are scaled up to all of them.
    stretch = (D / n_seen) ** (1.0 / error.power)
    for d in range(D):
        if seen[d] > 0.0:
            mean = sums[d] / masses[d] if masses[d] > 0.0 else 0.0  # the centre of the data
            sums[d] = y[d] + stretch * (mean - y[d])
        else:
            sums[d] = y[d]
    return row_error(sums, y, error)


@compiled
def first_rank(rank: int, n: int, n_others: int) -> int:
    """Return the first of the ranks that a row at a rank and its neighbours take."""
    return min(max(rank - (n_others + 1) // 2, 0), n - 1 - n_others)


@compiled
def error_at(near: IntArray, count: int, rank: int, rows: Rows, rule: Rule) -> float:
    """Return the error of the row at a rank of the list `near` of `count` rows."""
    n_others = min(rule.n_others, count - 1)
    if n_others == 0:
        return 0.0
    sums = np.zeros(rows.values.shape[1])
    masses = np.zeros(rows.mass.shape[1])
    first = first_rank(rank, count, n_others)
    for k in range(first, first + n_others + 1):
        if k != rank or rule.include_self:
            add_row(sums, masses, rows, near[k])
    return error_of_sums(sums, masses, rows, near[rank], rule.error)


@compiled
def change_at(near: IntArray, count: int, gap: int, number: int, rows: Rows, rule: Rule) -> float:
    """Return what it costs to put a row into a gap of the list `near` of `count` rows.

    That is its own error or, for the full criterion, the change of the weighted sum of all.
    """
    grown = np.empty(count + 1, dtype=np.intp)
    grown[:gap] = near[:gap]
    grown[gap] = number
    grown[gap + 1 :] = near[gap:count]
    own = error_at(grown, count + 1, gap, rows, rule)
    if not rule.is_full:
        return own
    total = rows.weights[number] * own
    n_others = min(rule.n_others, count)
    for rank in range(max(0, gap - n_others - 1), min(count, gap + n_others + 1) + 1):
        first = first_rank(rank, count + 1, n_others)
        if rank != gap and first <= gap <= first + n_others:
            j = grown[rank]
            change = error_at(grown, count + 1, rank, rows, rule) - rows.errors[j]
            total += rows.weights[j] * change
    return total


@compiled
def look_around(left: int, right: int, reach: int, rows: Rows, near: IntArray) -> tuple[int, int]:
    """Fill `near` with up to `reach` rows on either side of a gap; return their number, the gap.

    The gap is between the rows `left` and `right`, which are NOBODY beyond the ends.
    """
    gap = 0
    while left != NOBODY and gap < reach:
        near[gap] = left
        left = rows.before[left]
        gap += 1
    near[:gap] = near[:gap][::-1].copy()
    count = gap
    while right != NOBODY and count < gap + reach:
        near[count] = right
        right = rows.after[right]
        count += 1
    return count, gap


@compiled
def refresh_errors(near: IntArray, count: int, gap: int, rows: Rows, rule: Rule) -> float:
    """Recompute the errors that a change at a gap can have touched; return the weighted change."""
    total = 0.0
    for rank in range(max(0, gap - rule.n_others - 1), min(count, gap + rule.n_others + 2)):
        j = near[rank]
        fresh = error_at(near, count, rank, rows, rule)
        total += rows.weights[j] * (fresh - rows.errors[j])
        rows.errors[j] = fresh
    return total


@compiled
def link(left: int, right: int, number: int, rows: Rows, rule: Rule, keep_errors: bool) -> None:
    """Put a row between two others."""
    rows.before[number], rows.after[number] = left, right
    if left != NOBODY:
        rows.after[left] = number
    if right != NOBODY:
        rows.before[right] = number
    if keep_errors:
        rows.errors[number] = 0.0
        reach = 2 * rule.n_others + 3
        near = np.empty(2 * reach, dtype=np.intp)
        count, gap = look_around(number, right, reach, rows, near)
        refresh_errors(near, count, gap - 1, rows, rule)


@compiled
def unlink(number: int, rows: Rows, rule: Rule) -> float:
    """Take a row out; return the change of the weighted sum of errors."""
    left, right = rows.before[number], rows.after[number]
    if left != NOBODY:
        rows.after[left] = right
    if right != NOBODY:
        rows.before[right] = left
    reach = 2 * rule.n_others + 3
    near = np.empty(2 * reach, dtype=np.intp)
    count, gap = look_around(left, right, reach, rows, near)
    return refresh_errors(near, count, gap, rows, rule) - (
        rows.weights[number] * rows.errors[number]
    )


@compiled
def ranks_of(first: int, n: int, rows: Rows) -> IntArray:
    """Return the n row numbers from left to right, beginning with `first`."""
    order = np.empty(n, dtype=np.intp)
    j = first
    for rank in range(n):
        order[rank] = j
        j = rows.after[j]
    return order


@compiled
def all_errors(order: IntArray, rows: Rows, rule: Rule) -> None:
    """Recompute the errors of all rows, whose numbers from left to right are given."""
    for rank in range(len(order)):
        rows.errors[order[rank]] = error_at(order, len(order), rank, rows, rule)


@compiled
def fill_row(number: int, rows: Rows, rule: Rule, keep_errors: bool) -> None:
    """Put the means of the neighbours where entries of a row are missing."""
    reach = 2 * rule.n_others + 3
    near = np.empty(2 * reach, dtype=np.intp)
    count, gap = look_around(number, rows.after[number], reach, rows, near)
    rank = gap - 1
    sums = np.zeros(rows.values.shape[1])
    masses = np.zeros(rows.mass.shape[1])
    n_others = min(rule.n_others, count - 1)
    first = first_rank(rank, count, n_others)
    for k in range(first, first + n_others + 1):
        if k != rank:
            add_row(sums, masses, rows, near[k])
    for d in range(rows.mass.shape[1]):
        if rows.mass[number, d] == 0.0:
            rows.mass[number, d] = rows.weights[number]
            rows.values[number, d] = sums[d] / masses[d] if masses[d] > 0.0 else 0.0
    if keep_errors:
        refresh_errors(near, count, rank, rows, rule)


@compiled
def best_gap(order: IntArray, number: int, rows: Rows, rule: Rule) -> tuple[int, float]:
    """Return the first of the cheapest gaps among all, and its cost."""
    n = len(order)
    reach = 2 * rule.n_others + 2 if rule.is_full else rule.n_others
    n_others = min(rule.n_others, n)
    D, is_complete = rows.values.shape[1], rows.mass.shape[1] == 1
    window, weight = np.zeros(D), np.zeros(1)
    at, best, place = 0, 0.0, -1
    for gap in range(n + 1):
        if rule.is_full or not is_complete:
            low, high = max(0, gap - reach), min(n, gap + reach)
            cost = change_at(order[low:high], high - low, gap - low, number, rows, rule)
        else:  # neighbouring gaps share all but one neighbour
            start = min(max(gap - (n_others + 1) // 2, 0), n - n_others)
            if place < 0:
                for k in range(n_others):
                    add_row(window, weight, rows, order[k])
            elif start > place:
                add_row(window, weight, rows, order[start + n_others - 1])
                out = rows.weights[order[place]]
                weight[0] -= out
                for d in range(D):
                    window[d] -= out * rows.values[order[place], d]
            place = start
            sums, masses = window.copy(), weight.copy()
            if rule.include_self:
                add_row(sums, masses, rows, number)
            cost = error_of_sums(sums, masses, rows, number, rule.error)
        if gap == 0 or is_cheaper(cost, best):
            at, best = gap, cost
    return at, best


@compiled
def best_side(number: int, beside: int, rows: Rows, rule: Rule) -> tuple[int, int, float]:
    """Return the rows left and right of the cheaper gap next to a row, left first, and its cost."""
    reach = 2 * rule.n_others + 2
    near = np.empty(2 * reach, dtype=np.intp)
    left, right = rows.before[beside], rows.after[beside]
    count, gap = look_around(left, beside, reach, rows, near)
    cost_left = change_at(near, count, gap, number, rows, rule)
    count, gap = look_around(beside, right, reach, rows, near)
    cost_right = change_at(near, count, gap, number, rows, rule)
    if is_cheaper(cost_right, cost_left):
        return beside, right, cost_right
    return left, beside, cost_left


@compiled
def insert_greedily(
    start: int, stop: int, nearest: IntArray, rows: Rows, rule: Rule, keep_errors: bool
) -> None:
    """Put the rows `start` to `stop` next to their nearest ones, one after the other."""
    for number in range(start, stop):
        left, right, _ = best_side(number, nearest[number - start], rows, rule)
        link(left, right, number, rows, rule, keep_errors)


@compiled
def insert_anywhere(
    start: int, stop: int, order: IntArray, rows: Rows, rule: Rule, keep_errors: bool
) -> None:
    """Put the rows `start` to `stop` where it costs least; `order` (stop,) holds `start` ranks."""
    for number in range(start, stop):
        gap, _ = best_gap(order[:number], number, rows, rule)
        left = order[gap - 1] if gap > 0 else NOBODY
        right = order[gap] if gap < number else NOBODY
        link(left, right, number, rows, rule, keep_errors)
        for rank in range(number, gap, -1):
            order[rank] = order[rank - 1]
        order[gap] = number


@compiled
def refine_rows(nearest: IntArray, first: int, n: int, rows: Rows, rule: Rule) -> tuple[int, int]:
    """Take each row out and put it back where the full error is smallest; return first and moves.

    Where `nearest` (n, k) is empty all gaps are tried, else those next to these rows. `rule` is
    that of the full criterion. A row stays unless the sum of errors falls by more than rounding.
    """
    reach = 2 * rule.n_others + 2
    near = np.empty(2 * reach, dtype=np.intp)
    moves = 0
    for number in range(n):
        left, right = rows.before[number], rows.after[number]
        if number == first:
            first = right
        unlink(number, rows, rule)
        count, gap = look_around(left, right, reach, rows, near)
        stay = change_at(near, count, gap, number, rows, rule)
        if len(nearest) > 0:
            new_left, new_right, cost = best_side(number, nearest[number, 0], rows, rule)
            for k in range(1, nearest.shape[1]):
                a, b, value = best_side(number, nearest[number, k], rows, rule)
                if is_cheaper(value, cost):
                    new_left, new_right, cost = a, b, value
        else:
            order = ranks_of(first, n - 1, rows)
            at, cost = best_gap(order, number, rows, rule)
            new_left = order[at - 1] if at > 0 else NOBODY
            new_right = order[at] if at < n - 1 else NOBODY
        if is_cheaper(cost, stay):
            left, right = new_left, new_right
            moves += 1
        link(left, right, number, rows, rule, True)
        if left == NOBODY:
            first = number
    return first, moves
