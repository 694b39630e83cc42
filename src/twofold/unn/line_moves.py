"""The compiled loops of a line: what a gap costs, putting a row there, taking one out.

The line is a linked list of row numbers; a search of all gaps also keeps them from left to right in
`order`. A row at rank j of n has ``m`` others as neighbours, ``h = ceil(m / 2)`` of them on its
left and the rest on its right, moved inwards at the two ends; with itself they are ``m + 1`` ranks
in a row:

    first rank = min(max(j - h, 0), n - 1 - m)

What a row put into a gap changes lies near the gap, so every question is asked of a short list
`near` of rows around it.

Where inner products of complete rows decide, all gaps together cost O(n m), whatever the number of
columns: for a mean ``f = S / M`` of rows, ``S = Σ w_k y_k``, the error of a row y depends on
``<S, S>``, ``<S, y>`` and ``<y, y>`` alone. With the products of the new row and all others at
hand, ``<S, y>`` of all windows of m ranks is one running sum, and ``<S, S>`` is kept for each
window. A row that gets a new neighbour has then that one and a window of m ranks which it is part
of itself: one of two, by the side on which the new one comes.

Gaps near the ends, and all gaps while there are few rows, give a row the same neighbours: they cost
the same but for rounding, so a gap must be cheaper by more than that to be taken before one on its
left.
"""

from typing import NamedTuple

import numpy as np

from twofold.array_types import FloatArray, IntArray
from twofold.compiled import compiled, written_into_callers
from twofold.small_systems import assign, dot
from twofold.unn.point_errors import error_of_products, row_error
from twofold.unn.rows import NOBODY, Rows, Rule, add_row, error_of_sums, fill_gaps, is_cheaper

LEFT, RIGHT = 0, 1


class LinkedRows(NamedTuple):
    """Rows on a line; arrays are empty where a search does without them."""

    rows: Rows
    rule: Rule
    is_even: bool  # whether rows may be taken away from sums
    before: IntArray  # (n,) the row on the left of each, NOBODY at the end
    after: IntArray  # (n,) the row on the right
    errors: FloatArray  # (n,) error of each row at its place, kept for the full criterion
    order: IntArray  # (n,) row numbers from left to right, for a search of all gaps
    own: FloatArray  # (n,) <y, y>; this and what follows for a search by products
    square: FloatArray  # (n,) <S, S> of the window of m ranks that begins with a row
    mass: FloatArray  # (n,) M of that window
    inner: FloatArray  # (n, 2) <S, y> of a row and its window with a new one on either side


# Apart from the rows: arrays are counted each time they are taken out of a record.
class _Room(NamedTuple):
    """What loops write over: a sum with its mass, a mean, errors, two lists of rows."""

    sums: FloatArray
    masses: FloatArray
    f: FloatArray
    fresh: FloatArray
    near: IntArray
    grown: IntArray


@compiled
def _room_for(rows: Rows, rule: Rule) -> _Room:
    (n, D), width = rows.values.shape, rows.mass.shape[1]
    m = min(rule.n_others, n)
    near, grown = np.empty(4 * m + 6, dtype=np.intp), np.empty(4 * m + 7, dtype=np.intp)
    return _Room(np.empty(D), np.empty(width), np.empty(D), np.empty(2 * m + 1), near, grown)


@compiled
def _first_rank(rank: int, n: int, m: int) -> int:
    return min(max(rank - (m + 1) // 2, 0), n - 1 - m)


@compiled
def _sum_up(near: IntArray, first: int, stop: int, skip: int, rows: Rows, room: _Room) -> None:
    """Write the sum over some ranks but one."""
    room.sums[:] = 0.0
    room.masses[:] = 0.0
    for rank in range(first, stop):
        if rank != skip:
            add_row(room.sums, room.masses, rows, near[rank])


@compiled
def _slide(near: IntArray, before: int, first: int, m: int, rows: Rows, room: _Room) -> None:
    """Turn the sum over m ranks from `before` on into that from `first` on; below 0: none yet."""
    if before < 0:
        _sum_up(near, first, first + m, first - 1, rows, room)
        return
    for rank in range(before, first):
        out, into = near[rank], near[rank + m]
        w_out, w_in = rows.weights[out], rows.weights[into]
        room.masses[0] += w_in - w_out
        for d in range(room.sums.size):
            room.sums[d] += w_in * rows.values[into, d] - w_out * rows.values[out, d]


@compiled
def _error_with(number: int, w: float, rows: Rows, rule: Rule, room: _Room) -> float:
    """Return the error of a complete row for the present sum and itself by the weight w."""
    y, f, mass = rows.values[number], room.f, room.masses[0] + w
    for d in range(y.size):
        f[d] = (room.sums[d] + w * y[d]) / mass
    return row_error(f, y, rule.error)


@compiled
def _error_at(near: IntArray, count: int, rank: int, rows: Rows, rule: Rule, room: _Room) -> float:
    """Return the error of the row at a rank of the list `near` of `count` rows."""
    m = min(rule.n_others, count - 1)
    if m == 0:
        return 0.0
    first = _first_rank(rank, count, m)
    _sum_up(near, first, first + m + 1, -1 if rule.include_self else rank, rows, room)
    return error_of_sums(room.sums, room.masses, rows, near[rank], rule.error)


@compiled
def _errors_around(
    near: IntArray, count: int, at: int, line: LinkedRows, room: _Room
) -> tuple[int, int]:
    """Write errors of rows that may have rank `at` as a neighbour to `room.fresh`; say where."""
    rows, rule = line.rows, line.rule
    m, before = min(rule.n_others, count - 1), -1 - count
    low, high = max(0, at - m), min(count, at + m + 1)
    for rank in range(low, high):
        first, number = _first_rank(rank, count, m), near[rank]
        if not first <= at <= first + m:
            room.fresh[rank - low] = line.errors[number]
        elif m > 0 and line.is_even:  # the sum slides on by one rank at a time, O(D) each
            _slide(near, before, first, m + 1, rows, room)
            before = first
            w = 0.0 if rule.include_self else -rows.weights[number]
            room.fresh[rank - low] = _error_with(number, w, rows, rule, room)
        else:
            room.fresh[rank - low] = _error_at(near, count, rank, rows, rule, room)
    return low, high


@compiled
def _refresh(near: IntArray, count: int, at: int, line: LinkedRows, room: _Room) -> None:
    """Recompute what is kept near a changed rank."""
    if line.rule.is_full:
        low, high = _errors_around(near, count, at, line, room)
        for rank in range(low, high):
            line.errors[near[rank]] = room.fresh[rank - low]
    if line.square.size > 0:
        _refresh_windows(near, count, at, line, room)


@compiled
def _refresh_windows(near: IntArray, count: int, at: int, line: LinkedRows, room: _Room) -> None:
    """Recompute what is kept of the windows of m ranks that have the rank `at` in them."""
    values, is_full = line.rows.values, line.rule.is_full
    m, before = min(line.rule.n_others, count), -1 - count
    for rank in range(count + 1):  # of a row to come, or after it came
        first = min(max(rank - (m + 1) // 2, 0), count - m)
        if not first <= at < first + m:
            continue
        _slide(near, before, first, m, line.rows, room)
        before = first
        line.square[near[first]] = dot(room.sums, room.sums)
        line.mass[near[first]] = room.masses[0]
        if is_full and rank < count:
            line.inner[near[rank], RIGHT] = dot(room.sums, values[near[rank]])
        if is_full and rank > 0:
            line.inner[near[rank - 1], LEFT] = dot(room.sums, values[near[rank - 1]])


@compiled
def _look_around(left: int, right: int, line: LinkedRows, near: IntArray) -> tuple[int, int]:
    """List rows on either side of a gap in `near`; return their number and the place of the gap."""
    # The gap is between the rows `left` and `right`, NOBODY beyond the ends. There are as many rows
    # as it takes to tell the neighbours of any row that a row in this gap, or in the next, can
    # touch.
    reach = 2 * min(line.rule.n_others, line.before.size) + 3
    gap = 0
    while left != NOBODY and gap < reach:
        near[gap] = left
        left = line.before[left]
        gap += 1
    for place in range(gap // 2):  # from left to right
        near[place], near[gap - 1 - place] = near[gap - 1 - place], near[place]
    count = gap
    while right != NOBODY and count < gap + reach:
        near[count] = right
        right = line.after[right]
        count += 1
    return count, gap


@written_into_callers
def _link(left: int, right: int, number: int, line: LinkedRows, room: _Room) -> None:
    """Put a row between two others."""
    line.before[number], line.after[number] = left, right
    if left != NOBODY:
        line.after[left] = number
    if right != NOBODY:
        line.before[right] = number
    if line.rule.is_full or line.square.size > 0:
        count, gap = _look_around(number, right, line, room.near)
        _refresh(room.near, count, gap - 1, line, room)


@written_into_callers
def _unlink(number: int, line: LinkedRows, room: _Room) -> tuple[int, int]:
    """Take one of several rows out; return those that were beside it."""
    left, right = line.before[number], line.after[number]
    if left != NOBODY:
        line.after[left] = right
    if right != NOBODY:
        line.before[right] = left
    count, gap = _look_around(left, right, line, room.near)
    _refresh(room.near, count, min(gap, count - 1), line, room)
    return left, right


@compiled
def ranks_of(first: int, n: int, after: IntArray) -> IntArray:
    """Return the n row numbers from left to right, beginning with `first`."""
    order = np.empty(n, dtype=np.intp)
    j = first
    for rank in range(n):
        order[rank] = j
        j = after[j]
    return order


@compiled
def rebuild(order: IntArray, line: LinkedRows) -> None:
    """Compute all that is kept of rows, whose numbers from left to right are given."""
    n, rule, room = order.size, line.rule, _room_for(line.rows, line.rule)
    assign(line.order, order[: line.order.size])
    for rank in range(n):
        line.before[order[rank]] = order[rank - 1] if rank > 0 else NOBODY
        line.after[order[rank]] = order[rank + 1] if rank < n - 1 else NOBODY
    for rank in range(n):
        number = order[rank]
        if rule.is_full:
            line.errors[number] = _error_at(order, n, rank, line.rows, rule, room)
        if line.square.size > 0 and rank % min(rule.n_others, n) == 0:
            count, gap = _look_around(number, line.after[number], line, room.near)
            _refresh_windows(room.near, count, gap - 1, line, room)


@compiled
def fill_row(number: int, line: LinkedRows) -> None:
    """Put the means of the neighbours where entries of a row are missing."""
    room = _room_for(line.rows, line.rule)
    count, gap = _look_around(number, line.after[number], line, room.near)
    m = min(line.rule.n_others, count - 1)
    first = _first_rank(gap - 1, count, m)
    _sum_up(room.near, first, first + m + 1, gap - 1, line.rows, room)
    fill_gaps(room.sums, room.masses, line.rows, number)
    _refresh(room.near, count, gap - 1, line, room)


@compiled
def _cost_at(
    near: IntArray, count: int, gap: int, number: int, line: LinkedRows, room: _Room
) -> float:
    """Return the error of a row in a gap of `count` rows or, if asked for, the change of all."""
    rule, grown, weights = line.rule, room.grown, line.rows.weights
    assign(grown, near[:gap])
    grown[gap] = number
    assign(grown[gap + 1 :], near[gap:count])
    if not rule.is_full:
        return _error_at(grown, count + 1, gap, line.rows, rule, room)
    low, high = _errors_around(grown, count + 1, gap, line, room)
    total = weights[number] * room.fresh[gap - low]
    for rank in range(low, high):
        if rank != gap:
            total += weights[grown[rank]] * (room.fresh[rank - low] - line.errors[grown[rank]])
    return total


@written_into_callers
def _best_side(number: int, beside: int, line: LinkedRows, room: _Room) -> tuple[int, int, float]:
    """Return the rows left and right of the cheaper gap next to a row, left first, and its cost."""
    left, right, near = line.before[beside], line.after[beside], room.near
    count, gap = _look_around(left, beside, line, near)
    on_left = _cost_at(near, count, gap, number, line, room)
    on_right = _cost_at(near, count, gap + 1, number, line, room)
    if is_cheaper(on_right, on_left):
        return beside, right, on_right
    return left, beside, on_left


@compiled
def _costs(number: int, n: int, products: FloatArray, line: LinkedRows, room: _Room) -> FloatArray:
    """Return the cost of each gap of n ranks (n + 1,), by `products` with all rows if any."""
    if products.size > 0:
        return _product_costs(number, n, products, line)
    order, rows, rule = line.order, line.rows, line.rule
    costs, m, before = np.empty(n + 1), min(rule.n_others, n), -1 - n
    if rule.is_full or not line.is_even:
        reach = 2 * m + 2
        for gap in range(n + 1):
            low, high = max(0, gap - reach), min(n, gap + reach)
            costs[gap] = _cost_at(order[low:], high - low, gap - low, number, line, room)
        return costs
    w, cost = rows.weights[number] if rule.include_self else 0.0, 0.0
    for gap in range(n + 1):
        first = min(max(gap - (m + 1) // 2, 0), n - m)
        if first != before:
            _slide(order, before, first, m, rows, room)
            before, cost = first, _error_with(number, w, rows, rule, room)
        costs[gap] = cost
    return costs


@written_into_callers
def _cheapest(costs: FloatArray) -> int:
    """Return the first of the cheapest gaps."""
    at = 0
    for gap in range(1, len(costs)):
        if is_cheaper(costs[gap], costs[at]):
            at = gap
    return at


@written_into_callers
def _error_of(
    square: float, inner: float, mass: float, own: float, w: float, has: bool, rule: Rule
) -> float:
    """Return the error of a row from the sum S over a window, which has the row in it or not."""
    # `square`, `inner`, `mass` are <S, S>, <S, y>, M; `own`, `w` are <y, y> and the weight of the
    # row.
    if has and not rule.include_self:
        square += w * (w * own - 2.0 * inner)
        inner -= w * own
        mass -= w
    elif rule.include_self and not has:
        square += w * (w * own + 2.0 * inner)
        inner += w * own
        mass += w
    return error_of_products(square / (mass * mass), inner / mass, own, rule.error)


@written_into_callers
def _product_costs(number: int, n: int, products: FloatArray, line: LinkedRows) -> FloatArray:
    # Loops over plain arrays: passing the arrays on for each gap would cost more than the rest.
    order, weights, owns, errors = line.order, line.rows.weights, line.own, line.errors
    square, mass, inner, rule = line.square, line.mass, line.inner, line.rule
    own, w, m = owns[number], weights[number], min(rule.n_others, n)
    h = (m + 1) // 2
    sums = np.empty(n - m + 1)  # <S, y> of the window that begins at each rank
    total = 0.0
    for rank in range(m):
        total += weights[order[rank]] * products[order[rank]]
    sums[0] = total
    for first in range(1, n - m + 1):
        out, into = order[first - 1], order[first + m - 1]
        total += weights[into] * products[into] - weights[out] * products[out]
        sums[first] = total
    costs = np.empty(n + 1)
    before, cost = -1, 0.0
    for gap in range(n + 1):
        first = min(max(gap - h, 0), n - m)
        if first != before:
            k = order[first]
            cost = _error_of(square[k], sums[first], mass[k], own, w, False, rule)
            before = first
        costs[gap] = cost
    if not rule.is_full:
        return costs
    for gap in range(n + 1):
        total = w * costs[gap]
        # The ranks, of n + 1, whose neighbours the new row is one of; at the ends all up to there.
        low = 0 if gap <= m else gap - m + h
        high = n if gap >= n - m else gap + h
        for rank in range(low, high + 1):
            if rank == gap:
                continue
            first = min(max(rank - h, 0), n - m)
            j, k = order[rank if rank < gap else rank - 1], order[first]
            fresh = _error_of(
                square[k] + w * (2.0 * sums[first] + w * own),
                inner[j, RIGHT if rank < gap else LEFT] + w * products[j],
                mass[k] + w,
                owns[j],
                weights[j],
                True,
                rule,
            )
            total += weights[j] * (fresh - errors[j])
        costs[gap] = total
    return costs


@written_into_callers
def _put_into(order: IntArray, n: int, gap: int, number: int) -> tuple[int, int]:
    """Put a row into a gap of n ranks; return those on its left and right."""
    for rank in range(n, gap, -1):
        order[rank] = order[rank - 1]
    order[gap] = number
    return order[gap - 1] if gap > 0 else NOBODY, order[gap + 1] if gap < n else NOBODY


@compiled
def insert_rows(start: int, nearest: IntArray, products: FloatArray, line: LinkedRows) -> None:
    """Put rows from `start` on next to their `nearest` or, without these, where it costs least."""
    # `products` (rows, n) are those with the rows before them, (rows, 0) to do without.
    room = _room_for(line.rows, line.rule)
    for i in range(len(products)):
        number, left, right = start + i, NOBODY, NOBODY
        if nearest.size == 0:
            gap = 0
            if number > 0:
                gap = _cheapest(_costs(number, number, products[i], line, room))
            left, right = _put_into(line.order, number, gap, number)
        elif number > 0:
            left, right, _ = _best_side(number, nearest[i], line, room)
        _link(left, right, number, line, room)


@compiled
def refine_rows(start: int, nearest: IntArray, products: FloatArray, line: LinkedRows) -> int:
    """Take rows out and put them back where the full error is smallest; return how many moved."""
    # As for `insert_rows`, next to several `nearest` rows (rows, k) or anywhere. The rule of the
    # line is that of the full criterion. A row stays unless the sum of errors falls by more than
    # rounding.
    n, moves, room = line.before.size, 0, _room_for(line.rows, line.rule)
    for i in range(len(products)):
        number, is_moved = start + i, False
        left, right = _unlink(number, line, room)
        if nearest.size > 0:
            count, gap = _look_around(left, right, line, room.near)
            best = _cost_at(room.near, count, gap, number, line, room)
            for beside in nearest[i]:
                a, b, cost = _best_side(number, beside, line, room)
                if is_cheaper(cost, best):
                    left, right, best, is_moved = a, b, cost, True
        else:
            rank = 0
            while line.order[rank] != number:
                rank += 1
            assign(line.order[rank:], line.order[rank + 1 : n])
            costs = _costs(number, n - 1, products[i], line, room)
            gap = _cheapest(costs)
            is_moved = is_cheaper(costs[gap], costs[rank])
            left, right = _put_into(line.order, n - 1, gap if is_moved else rank, number)
        _link(left, right, number, line, room)
        moves += is_moved
    return moves
