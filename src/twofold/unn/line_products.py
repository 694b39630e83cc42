"""Where a row goes on a line by inner products: for complete rows and Euclidean errors.

All gaps together cost O(n m), whatever the number of columns: for a mean ``f = S / M`` of rows,
``S = Σ w_k y_k``, the error of a row y depends on ``<S, S>``, ``<S, y>`` and ``<y, y>`` alone. With
the products of the new row and all others at hand, ``<S, y>`` of all windows of m ranks is one
running sum, and ``<S, S>`` is kept for each window. A row that gets a new neighbour has then that
one and a window of m ranks which it is part of itself: one of two, by the side on which the new one
comes.
"""

import numpy as np

from twofold.array_types import FloatArray
from twofold.compiled import compiled, written_into_callers
from twofold.unn.line_moves import (
    INNER,
    LEFT,
    MASS,
    OWN,
    RIGHT,
    SQUARE,
    LinkedRows,
    cheapest,
    link,
    put_into,
    room_for,
    take_out,
    unlink,
)
from twofold.unn.point_errors import error_of_products
from twofold.unn.rows import Rule, is_cheaper


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


@compiled
def _costs(number: int, n: int, products: FloatArray, line: LinkedRows) -> FloatArray:
    """Return the cost of each gap of n ranks (n + 1,), by the products with all rows."""
    # Loops over plain arrays: passing the arrays on for each gap would cost more than the rest.
    order, weights, errors = line.order, line.rows.weights, line.errors
    kept, rule = line.products, line.rule
    own, w, m = kept[number, OWN], weights[number], min(rule.n_others, n)
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
            cost = _error_of(kept[k, SQUARE], sums[first], kept[k, MASS], own, w, False, rule)
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
                kept[k, SQUARE] + w * (2.0 * sums[first] + w * own),
                kept[j, INNER + (RIGHT if rank < gap else LEFT)] + w * products[j],
                kept[k, MASS] + w,
                kept[j, OWN],
                weights[j],
                True,
                rule,
            )
            total += weights[j] * (fresh - errors[j])
        costs[gap] = total
    return costs


@compiled
def put_by_products(start: int, products: FloatArray, line: LinkedRows, is_there: bool) -> int:
    """Put rows from `start` on where it costs least, by products (rows, n) with the others.

    Rows that are there are taken out before; return how many of them go elsewhere.
    """
    # The rule of a line with all its rows is that of the full criterion. A row stays unless the sum
    # of errors falls by more than rounding.
    moves, room = 0, room_for(line.rows, line.rule)
    for i in range(len(products)):
        number, gap = start + i, 0
        n = len(line.beside) - 1 if is_there else number
        if is_there:
            unlink(number, line, room)
            gap = take_out(line.order, n + 1, number)
        if n > 0:
            costs = _costs(number, n, products[i], line)
            best = cheapest(costs)
            if not is_there or is_cheaper(costs[best], costs[gap]):
                gap = best
                moves += is_there
        left, right = put_into(line.order, n, gap, number)
        link(left, right, number, line, room)
    return moves
