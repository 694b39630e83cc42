"""Latent sorting from inner products: every gap, whatever the number of columns.

For a mean ``f = S / M`` of rows, ``S = Σ w_k y_k``, the error of a row y depends on ``<S, S>``,
``<S, y>`` and ``<y, y>`` alone. With the products of the new row and all others at hand, ``<S, y>``
of all windows of neighbours is one running sum along the line, and ``<S, S>`` is kept: a row put
into a gap changes only the windows that span it. So an insertion costs O(n) for the point
criterion and O(n m) for the full one, beside the O(n D) of the products, which are one matrix
product for many rows.

A window is ``m`` ranks in a row (all of them while there are fewer); it is known by its first row.
The neighbours of a row that is put into a gap are a window, and a row whose neighbours change has
then one window, which it is part of, and the new row.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from twofold.array_types import FloatArray, IntArray
from twofold.compiled import compiled
from twofold.unn.line_vectors import Rule, first_rank, is_cheaper
from twofold.unn.point_errors import error_of_products


class Products(NamedTuple):
    """Rows on a line with the products of near ones; all but `order` by row number.

    Attributes
    ----------
    values : (n, D)
        Complete rows.
    weights, own : (n,)
        Weight of each row, and ``<y, y>``.
    order : (n,)
        Row numbers from left to right.
    band : (n, m + 1)
        Products of a row with itself and the next ones on its right.
    square, mass : (n,)
        ``<S, S>`` and ``M`` of the window that begins with a row.
    inner : (n, m)
        ``<S, y>`` of that window with each of its rows.
    errors : (n,)
        Error of each row at its place; only kept where a search asks for the full error.
    """

    values: FloatArray
    weights: FloatArray
    own: FloatArray
    order: IntArray
    band: FloatArray
    square: FloatArray
    mass: FloatArray
    inner: FloatArray
    errors: FloatArray


@compiled
def _product(rank: int, other: int, line: Products) -> float:
    """Return the product of the rows at two ranks, not more than m apart."""
    if rank <= other:
        return line.band[line.order[rank], other - rank]
    return line.band[line.order[other], rank - other]


@compiled
def _refresh_windows(low: int, high: int, n: int, n_others: int, line: Products) -> None:
    """Recompute the windows of n ranks that begin at the ranks `low` to `high`."""
    m = min(n_others, n)
    low, high = max(low, 0), min(high, n - m)
    order, weights = line.order, line.weights
    for first in range(low, high + 1):
        j = order[first]
        mass = 0.0
        for t in range(m):
            mass += weights[order[first + t]]
        for t in range(m):
            if first > low and t < m - 1:
                # The same row in the window one to the left, less its first row, plus a new one.
                lost = weights[order[first - 1]] * _product(first + t, first - 1, line)
                won = weights[order[first + m - 1]] * _product(first + t, first + m - 1, line)
                line.inner[j, t] = line.inner[order[first - 1], t + 1] - lost + won
            else:
                total = 0.0
                for k in range(m):
                    total += weights[order[first + k]] * _product(first + t, first + k, line)
                line.inner[j, t] = total
        square = 0.0
        for t in range(m):
            square += weights[order[first + t]] * line.inner[j, t]
        line.square[j], line.mass[j] = square, mass


@compiled
def _error(
    square: float, inner: float, mass: float, own: float, w: float, has: bool, rule: Rule
) -> float:
    """Return the error of a row from the sum S over a window, which has the row in it or not.

    `square`, `inner`, `mass` are ``<S, S>``, ``<S, y>``, ``M``; `own`, `w` are those of the row.
    """
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
def _error_at(rank: int, n: int, line: Products, rule: Rule) -> float:
    """Return the error of the row at a rank of n ranks."""
    if n == 1:
        return 0.0
    j = line.order[rank]
    own, w = line.own[j], line.weights[j]
    m = min(rule.n_others, n)
    if n <= rule.n_others:
        k = line.order[0]
        return _error(line.square[k], line.inner[k, rank], line.mass[k], own, w, True, rule)
    first = first_rank(rank, n, m)
    # m + 1 ranks are a window and one row more, at that end where the row itself is not.
    extra = first + m
    if rank == extra:
        first, extra = first + 1, first
    k, x = line.order[first], line.order[extra]
    cross = 0.0
    for t in range(m):
        cross += line.weights[line.order[first + t]] * _product(first + t, extra, line)
    v = line.weights[x]
    square = line.square[k] + v * (2.0 * cross + v * line.own[x])
    inner = line.inner[k, rank - first] + v * _product(rank, extra, line)
    return _error(square, inner, line.mass[k] + v, own, w, True, rule)


@compiled
def _refresh_errors(middle: int, n: int, line: Products, rule: Rule) -> None:
    """Recompute the errors that a change at a rank can have touched."""
    reach = rule.n_others + 2
    for rank in range(max(0, middle - reach), min(n, middle + reach + 1)):
        line.errors[line.order[rank]] = _error_at(rank, n, line, rule)


@compiled
def _window_sums(n: int, products: FloatArray, m: int, line: Products) -> FloatArray:
    """Return ``<S, y>`` of a row with each window of m ranks, by the rank at which it begins."""
    order, weights = line.order, line.weights
    sums = np.empty(n - m + 1)
    total = 0.0
    for rank in range(m):
        total += weights[order[rank]] * products[order[rank]]
    sums[0] = total
    for first in range(1, n - m + 1):
        out, into = order[first - 1], order[first + m - 1]
        total += weights[into] * products[into] - weights[out] * products[out]
        sums[first] = total
    return sums


@compiled
def _costs(number: int, n: int, products: FloatArray, line: Products, rule: Rule) -> FloatArray:
    """Return what it costs to put a row into each gap of n ranks, (n + 1,)."""
    # One loop over plain arrays: passing the arrays on for each gap would cost more than the rest.
    order, square, mass = line.order, line.square, line.mass
    m = min(rule.n_others, n)
    own, w = line.own[number], line.weights[number]
    sums = _window_sums(n, products, m, line)
    costs = np.empty(n + 1)
    before, cost = -1, 0.0
    for gap in range(n + 1):
        first = min(max(gap - (m + 1) // 2, 0), n - m)
        if first != before:
            k = order[first]
            cost = _error(square[k], sums[first], mass[k], own, w, False, rule)
            before = first
        costs[gap] = cost
    if rule.is_full:
        _add_changes(costs, number, n, products, sums, line, rule)
    return costs


@compiled
def _add_changes(
    costs: FloatArray,
    number: int,
    n: int,
    products: FloatArray,
    sums: FloatArray,
    line: Products,
    rule: Rule,
) -> None:
    """Turn own errors of a row in each gap into changes of the weighted sum of all errors.

    `sums` (n,) are ``<S, y>`` of the new row with the window that begins at each rank.
    """
    order, weights, owns, errors = line.order, line.weights, line.own, line.errors
    square, mass, inner = line.square, line.mass, line.inner
    m = min(rule.n_others, n)
    h = (m + 1) // 2
    own, w = owns[number], weights[number]
    for gap in range(n + 1):
        total = w * costs[gap]
        # The ranks, of n + 1, whose neighbours the new row is one of; at the ends all up to there.
        low = 0 if gap <= m else gap - m + h
        high = n if gap >= n - m else gap + h
        for rank in range(low, high + 1):
            if rank == gap:
                continue
            old_rank = rank if rank < gap else rank - 1
            first = min(max(rank - h, 0), n - m)
            j, k = order[old_rank], order[first]
            fresh = _error(
                square[k] + w * (2.0 * sums[first] + w * own),
                inner[k, old_rank - first] + w * products[j],
                mass[k] + w,
                owns[j],
                weights[j],
                True,
                rule,
            )
            total += weights[j] * (fresh - errors[j])
        costs[gap] = total


@compiled
def _put(
    gap: int, n: int, number: int, products: FloatArray, line: Products, rule: Rule, keep: bool
) -> None:
    """Put a row into a gap of n ranks; `products` (all rows,) are those with it."""
    order, band, width = line.order, line.band, line.band.shape[1]
    for rank in range(n, gap, -1):
        order[rank] = order[rank - 1]
    order[gap] = number
    band[number, 0] = line.own[number]
    for t in range(1, min(width, n + 1 - gap)):
        band[number, t] = products[order[gap + t]]
    for rank in range(max(0, gap - width + 1), gap):
        j = order[rank]
        for t in range(width - 1, gap - rank, -1):
            band[j, t] = band[j, t - 1]
        band[j, gap - rank] = products[j]
    if n < rule.n_others:
        _refresh_windows(0, n, n + 1, rule.n_others, line)
    else:
        _refresh_windows(gap - rule.n_others + 1, gap, n + 1, rule.n_others, line)
    if keep:
        _refresh_errors(gap, n + 1, line, rule)


@compiled
def _take_out(rank: int, n: int, line: Products, rule: Rule) -> None:
    """Take the row at a rank out of n ranks."""
    order, band, width = line.order, line.band, line.band.shape[1]
    for k in range(rank, n - 1):
        order[k] = order[k + 1]
    for k in range(max(0, rank - width + 1), rank):
        j = order[k]
        for t in range(rank - k, width - 1):
            band[j, t] = band[j, t + 1]
        if k + width - 1 < n - 1:
            band[j, width - 1] = _dot(line.values[j], line.values[order[k + width - 1]])
    if n - 1 <= rule.n_others:
        _refresh_windows(0, n, n - 1, rule.n_others, line)
    else:
        _refresh_windows(rank - rule.n_others + 1, rank, n - 1, rule.n_others, line)
    _refresh_errors(rank, n - 1, line, rule)


@compiled
def _dot(a: FloatArray, b: FloatArray) -> float:
    total = 0.0
    for d in range(len(a)):
        total += a[d] * b[d]
    return total


@compiled
def _cheapest(costs: FloatArray) -> int:
    """Return the first of the cheapest gaps."""
    at = 0
    for gap in range(1, len(costs)):
        if is_cheaper(costs[gap], costs[at]):
            at = gap
    return at


@compiled
def insert_rows(
    start: int, products: FloatArray, line: Products, rule: Rule, keep_errors: bool
) -> None:
    """Put rows from number `start` on where it costs least, one after the other.

    `products` (rows, n) are those of each with all rows before it.
    """
    for i in range(len(products)):
        number = start + i
        gap = 0
        if number > 0:
            gap = _cheapest(_costs(number, number, products[i], line, rule))
        _put(gap, number, number, products[i], line, rule, keep_errors)


@compiled
def rebuild(n: int, line: Products, rule: Rule, keep_errors: bool) -> None:
    """Compute all that is kept of n rows from their order."""
    for rank in range(n):
        j = line.order[rank]
        for t in range(min(line.band.shape[1], n - rank)):
            line.band[j, t] = _dot(line.values[j], line.values[line.order[rank + t]])
    _refresh_windows(0, n, n, rule.n_others, line)
    if keep_errors:
        for rank in range(n):
            line.errors[line.order[rank]] = _error_at(rank, n, line, rule)


@compiled
def refine_rows(start: int, products: FloatArray, n: int, line: Products, rule: Rule) -> int:
    """Take rows from number `start` on out and put them back where the full error is smallest.

    `products` (rows, n) are those with all rows. Returns how many rows moved. `rule` is that of
    the full criterion. A row stays unless the sum of errors falls by more than rounding.
    """
    moves = 0
    for i in range(len(products)):
        number = start + i
        rank = 0
        while line.order[rank] != number:
            rank += 1
        _take_out(rank, n, line, rule)
        costs = _costs(number, n - 1, products[i], line, rule)
        gap = _cheapest(costs)
        if is_cheaper(costs[gap], costs[rank]):
            moves += 1
        else:
            gap = rank
        _put(gap, n - 1, number, products[i], line, rule, True)
    return moves
