"""The compiled loops of a line: putting a row into a gap, taking one out, what is kept of each.

The line is a linked list of row numbers; a search of all gaps also keeps them from left to right in
`order`. A row at rank j of n has ``m`` others as neighbours, ``h = ceil(m / 2)`` of them on its
left and the rest on its right, moved inwards at the two ends; with itself they are ``m + 1`` ranks
in a row:

    first rank = min(max(j - h, 0), n - 1 - m)

What a row put into a gap changes lies near the gap, so every question is asked of a short list
`near` of rows around it.
"""

from typing import NamedTuple

import numpy as np

from twofold.array_types import FloatArray, IntArray
from twofold.compiled import compiled, written_into_callers
from twofold.small_systems import assign, dot
from twofold.unn.point_errors import row_error
from twofold.unn.rows import NOBODY, Rows, Rule, add_row, error_of_sums, fill_gaps, is_cheaper

LEFT, RIGHT = 0, 1
OWN, SQUARE, MASS, INNER = range(4)
N_PRODUCTS = INNER + 2


class LinkedRows(NamedTuple):
    """Rows on a line; arrays are empty where a search does without them."""

    rows: Rows
    rule: Rule
    is_even: bool  # whether rows may be taken away from sums
    beside: IntArray  # (n, 2) the rows on the LEFT and on the RIGHT of each, NOBODY at an end
    errors: FloatArray  # (n,) error of each row at its place, kept for the full criterion
    order: IntArray  # (n,) row numbers from left to right, for a search of all gaps
    # (n, 5) for a search by products: OWN, SQUARE and MASS, <y, y> of a row and <S, S>, M of the
    # window of m ranks that begins with it; INNER + LEFT, INNER + RIGHT, <S, y> of a row and its
    # window with a new one on either side.
    products: FloatArray


# Apart from the rows: arrays are counted each time they are taken out of a record.
class Room(NamedTuple):
    """What loops write over: a sum with its mass, a mean, errors, two lists of rows."""

    sums: FloatArray
    masses: FloatArray
    f: FloatArray
    fresh: FloatArray
    near: IntArray
    grown: IntArray


@compiled
def room_for(rows: Rows, rule: Rule) -> Room:
    """Return what loops over a line of these rows write over."""
    (n, D), width = rows.values.shape, rows.mass.shape[1]
    m = min(rule.n_others, n)
    near, grown = np.empty(4 * m + 6, dtype=np.intp), np.empty(4 * m + 7, dtype=np.intp)
    return Room(np.empty(D), np.empty(width), np.empty(D), np.empty(2 * m + 1), near, grown)


@written_into_callers
def _first_rank(rank: int, n: int, m: int) -> int:
    return min(max(rank - (m + 1) // 2, 0), n - 1 - m)


@compiled
def _sum_up(near: IntArray, first: int, stop: int, skip: int, rows: Rows, room: Room) -> None:
    """Write the sum over some ranks but one."""
    room.sums[:] = 0.0
    room.masses[:] = 0.0
    for rank in range(first, stop):
        if rank != skip:
            add_row(room.sums, room.masses, rows, near[rank])


@compiled
def slide(near: IntArray, before: int, first: int, m: int, rows: Rows, room: Room) -> None:
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


@written_into_callers
def error_with(number: int, w: float, rows: Rows, rule: Rule, room: Room) -> float:
    """Return the error of a complete row for the present sum and itself by the weight w."""
    y, f, mass = rows.values[number], room.f, room.masses[0] + w
    for d in range(y.size):
        f[d] = (room.sums[d] + w * y[d]) / mass
    return row_error(f, y, rule.error)


@compiled
def error_at(near: IntArray, count: int, rank: int, rows: Rows, rule: Rule, room: Room) -> float:
    """Return the error of the row at a rank of the list `near` of `count` rows."""
    m = min(rule.n_others, count - 1)
    if m == 0:
        return 0.0
    first = _first_rank(rank, count, m)
    _sum_up(near, first, first + m + 1, -1 if rule.include_self else rank, rows, room)
    return error_of_sums(room.sums, room.masses, rows, near[rank], rule.error)


@written_into_callers
def errors_around(
    near: IntArray, count: int, at: int, line: LinkedRows, room: Room
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
            slide(near, before, first, m + 1, rows, room)
            before = first
            w = 0.0 if rule.include_self else -rows.weights[number]
            room.fresh[rank - low] = error_with(number, w, rows, rule, room)
        else:
            room.fresh[rank - low] = error_at(near, count, rank, rows, rule, room)
    return low, high


@compiled
def _refresh(near: IntArray, count: int, at: int, line: LinkedRows, room: Room) -> None:
    """Recompute what is kept near a changed rank."""
    if line.rule.is_full:
        low, high = errors_around(near, count, at, line, room)
        for rank in range(low, high):
            line.errors[near[rank]] = room.fresh[rank - low]
    if line.products.size > 0:
        _refresh_windows(near, count, at, line, room)


@compiled
def _refresh_windows(near: IntArray, count: int, at: int, line: LinkedRows, room: Room) -> None:
    """Recompute what is kept of the windows of m ranks that have the rank `at` in them."""
    values, is_full = line.rows.values, line.rule.is_full
    m, before = min(line.rule.n_others, count), -1 - count
    for rank in range(count + 1):  # of a row to come, or after it came
        first = min(max(rank - (m + 1) // 2, 0), count - m)
        if not first <= at < first + m:
            continue
        slide(near, before, first, m, line.rows, room)
        before = first
        line.products[near[first], SQUARE] = dot(room.sums, room.sums)
        line.products[near[first], MASS] = room.masses[0]
        if is_full and rank < count:
            line.products[near[rank], INNER + RIGHT] = dot(room.sums, values[near[rank]])
        if is_full and rank > 0:
            before_it = near[rank - 1]
            line.products[before_it, INNER + LEFT] = dot(room.sums, values[before_it])


@compiled
def look_around(left: int, right: int, line: LinkedRows, near: IntArray) -> tuple[int, int]:
    """List rows on either side of a gap in `near`; return their number and the place of the gap."""
    # The gap is between the rows `left` and `right`, NOBODY beyond the ends. There are as many rows
    # as it takes to tell the neighbours of any row that a row in this gap, or in the next, can
    # touch.
    reach = 2 * min(line.rule.n_others, len(line.beside)) + 3
    gap = 0
    while left != NOBODY and gap < reach:
        near[gap] = left
        left = line.beside[left, LEFT]
        gap += 1
    for place in range(gap // 2):  # from left to right
        near[place], near[gap - 1 - place] = near[gap - 1 - place], near[place]
    count = gap
    while right != NOBODY and count < gap + reach:
        near[count] = right
        right = line.beside[right, RIGHT]
        count += 1
    return count, gap


@written_into_callers
def link(left: int, right: int, number: int, line: LinkedRows, room: Room) -> None:
    """Put a row between two others."""
    line.beside[number, LEFT], line.beside[number, RIGHT] = left, right
    if left != NOBODY:
        line.beside[left, RIGHT] = number
    if right != NOBODY:
        line.beside[right, LEFT] = number
    if line.rule.is_full or line.products.size > 0:
        count, gap = look_around(number, right, line, room.near)
        _refresh(room.near, count, gap - 1, line, room)


@written_into_callers
def unlink(number: int, line: LinkedRows, room: Room) -> tuple[int, int]:
    """Take one of several rows out; return those that were beside it."""
    left, right = line.beside[number, LEFT], line.beside[number, RIGHT]
    if left != NOBODY:
        line.beside[left, RIGHT] = right
    if right != NOBODY:
        line.beside[right, LEFT] = left
    count, gap = look_around(left, right, line, room.near)
    _refresh(room.near, count, min(gap, count - 1), line, room)
    return left, right


@compiled
def ranks_of(first: int, n: int, beside: IntArray) -> IntArray:
    """Return the n row numbers from left to right, beginning with `first`."""
    order = np.empty(n, dtype=np.intp)
    j = first
    for rank in range(n):
        order[rank] = j
        j = beside[j, RIGHT]
    return order


@compiled
def rebuild(order: IntArray, line: LinkedRows) -> None:
    """Compute all that is kept of rows, whose numbers from left to right are given."""
    n, rule, room = order.size, line.rule, room_for(line.rows, line.rule)
    assign(line.order, order[: line.order.size])
    for rank in range(n):
        line.beside[order[rank], LEFT] = order[rank - 1] if rank > 0 else NOBODY
        line.beside[order[rank], RIGHT] = order[rank + 1] if rank < n - 1 else NOBODY
    for rank in range(n):
        number = order[rank]
        if rule.is_full:
            line.errors[number] = error_at(order, n, rank, line.rows, rule, room)
        if line.products.size > 0 and rank % min(rule.n_others, n) == 0:
            count, gap = look_around(number, line.beside[number, RIGHT], line, room.near)
            _refresh_windows(room.near, count, gap - 1, line, room)


@compiled
def fill_row(number: int, line: LinkedRows) -> None:
    """Put the means of the neighbours where entries of a row are missing."""
    room = room_for(line.rows, line.rule)
    count, gap = look_around(number, line.beside[number, RIGHT], line, room.near)
    m = min(line.rule.n_others, count - 1)
    first = _first_rank(gap - 1, count, m)
    _sum_up(room.near, first, first + m + 1, gap - 1, line.rows, room)
    fill_gaps(room.sums, room.masses, line.rows, number)
    _refresh(room.near, count, gap - 1, line, room)


@compiled
def cheapest(costs: FloatArray) -> int:
    """Return the first of the cheapest gaps."""
    at = 0
    for gap in range(1, len(costs)):
        if is_cheaper(costs[gap], costs[at]):
            at = gap
    return at


@compiled
def put_into(order: IntArray, n: int, gap: int, number: int) -> tuple[int, int]:
    """Put a row into a gap of n ranks; return those on its left and right."""
    for rank in range(n, gap, -1):
        order[rank] = order[rank - 1]
    order[gap] = number
    return order[gap - 1] if gap > 0 else NOBODY, order[gap + 1] if gap < n else NOBODY


@compiled
def take_out(order: IntArray, n: int, number: int) -> int:
    """Take a row out of n ranks; return which it had."""
    rank = 0
    while order[rank] != number:
        rank += 1
    assign(order[rank:], order[rank + 1 : n])
    return rank
