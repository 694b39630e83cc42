"""Where a row goes on a line by the errors of the rows around each gap: anywhere, or beside others.

Gaps near the ends, and all gaps while there are few rows, give a row the same neighbours: they cost
the same but for rounding, so a gap must be cheaper by more than that to be taken before one on its
left.
"""

import numpy as np

from twofold.array_types import FloatArray, IntArray
from twofold.compiled import compiled
from twofold.small_systems import assign
from twofold.unn.line_moves import (
    LEFT,
    RIGHT,
    LinkedRows,
    Room,
    cheapest,
    error_at,
    error_with,
    errors_around,
    link,
    look_around,
    put_into,
    room_for,
    slide,
    take_out,
    unlink,
)
from twofold.unn.rows import NOBODY, is_cheaper


@compiled
def _cost_at(
    near: IntArray, count: int, gap: int, number: int, line: LinkedRows, room: Room
) -> float:
    """Return the error of a row in a gap of `count` rows or, if asked for, the change of all."""
    rule, grown, weights = line.rule, room.grown, line.rows.weights
    assign(grown, near[:gap])
    grown[gap] = number
    assign(grown[gap + 1 :], near[gap:count])
    if not rule.is_full:
        return error_at(grown, count + 1, gap, line.rows, rule, room)
    low, high = errors_around(grown, count + 1, gap, line, room)
    total = weights[number] * room.fresh[gap - low]
    for rank in range(low, high):
        if rank != gap:
            total += weights[grown[rank]] * (room.fresh[rank - low] - line.errors[grown[rank]])
    return total


@compiled
def _best_side(number: int, beside: int, line: LinkedRows, room: Room) -> tuple[int, int, float]:
    """Return the rows left and right of the cheaper gap next to a row, left first, and its cost."""
    left, right, near = line.beside[beside, LEFT], line.beside[beside, RIGHT], room.near
    count, gap = look_around(left, beside, line, near)
    on_left = _cost_at(near, count, gap, number, line, room)
    on_right = _cost_at(near, count, gap + 1, number, line, room)
    if is_cheaper(on_right, on_left):
        return beside, right, on_right
    return left, beside, on_left


@compiled
def _costs(number: int, n: int, line: LinkedRows, room: Room) -> FloatArray:
    """Return the cost of each gap of n ranks (n + 1,)."""
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
            slide(order, before, first, m, rows, room)
            before, cost = first, error_with(number, w, rows, rule, room)
        costs[gap] = cost
    return costs


@compiled
def put_anywhere(start: int, stop: int, line: LinkedRows, is_there: bool) -> int:
    """Put rows where it costs least, by the rules of `put_by_products`."""
    moves, room = 0, room_for(line.rows, line.rule)
    for number in range(start, stop):
        gap = 0
        n = len(line.beside) - 1 if is_there else number
        if is_there:
            unlink(number, line, room)
            gap = take_out(line.order, n + 1, number)
        if n > 0:
            costs = _costs(number, n, line, room)
            best = cheapest(costs)
            if not is_there or is_cheaper(costs[best], costs[gap]):
                gap = best
                moves += is_there
        left, right = put_into(line.order, n, gap, number)
        link(left, right, number, line, room)
    return moves


@compiled
def put_beside(start: int, nearest: IntArray, line: LinkedRows, is_there: bool) -> int:
    """Put rows next to those of `nearest` (rows, k) where it costs least, by the same rules."""
    moves, room = 0, room_for(line.rows, line.rule)
    for i in range(len(nearest)):
        number, left, right, best, is_moved = start + i, NOBODY, NOBODY, np.inf, False
        if is_there:
            left, right = unlink(number, line, room)
            count, gap = look_around(left, right, line, room.near)
            best = _cost_at(room.near, count, gap, number, line, room)
        for beside in nearest[i]:
            if beside == NOBODY:  # the first of all has none
                continue
            a, b, cost = _best_side(number, beside, line, room)
            if best == np.inf or is_cheaper(cost, best):
                left, right, best, is_moved = a, b, cost, is_there
        link(left, right, number, line, room)
        moves += is_moved
    return moves
