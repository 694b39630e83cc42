"""Latent sorting in two or three dimensions: rows put on the sites of a lattice.

Kramer's latent sorting (2013, Algorithm 3) carried over from the line: the latent points are
integer points within a box, a quarter larger than the rows need. The first row takes the middle.
Each further row is tried on the 2 q sites beside rows that are there, of all of them or only of its
nearest row, and put where its own error or the sum of all errors is smallest, as on the line; of
places as good, where the site that is filled in the end is nearest to the middle. If
the site is taken, the rows from there on move one step outwards, up to the first free site; where
the border comes first, this direction is not tried. If no direction is left, the row takes the
free site nearest to its nearest row.

Neighbours are the rows on the nearest sites; of sites as near the one with the smaller first
coordinate comes first, then the second. With q = 1 and a box that is large enough this is latent
sorting itself.

A try costs O(K D) for the point criterion; for the full one O(n + the rows around the sites that
change hands × K D). With all rows as candidates that is O(n²) tries in all. Nothing is moved to try
a place out: a `Push` says how the sites would be taken, and looking up a site goes through it. A
push of length 0 puts a row on a free site, one of length ``NO_PUSH`` changes nothing. A row is
touched by a push if it moves, or if a site that changes hands is not farther than the farthest of
its neighbours.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from twofold.array_types import BoolArray, FloatArray, IntArray
from twofold.compiled import compiled, square
from twofold.small_systems import assign
from twofold.unn.line import SortedRows
from twofold.unn.rows import (
    NOBODY,
    Rows,
    RowStore,
    Rule,
    Weights,
    add_row,
    error_of_sums,
    fill_gaps,
    is_cheaper,
)
from twofold.unn.swaps import places_of, swap_beside

_ROOM = 1.25  # sites for each row
NO_PUSH = -1


class Lattice(SortedRows):
    """Rows on a lattice for `n_rows`, in a box that grows if more come."""

    # Refinement lets each row change places with those beside its ten nearest rows, where that
    # lowers the sum of all errors. Free sites stay free.

    _most_rows = 64

    def __init__(self, n_components: int, *, n_rows: int = 1, **options: Any) -> None:
        if n_components not in (1, 2, 3):
            raise ValueError(
                f"A lattice has 1, 2 or 3 dimensions; got `n_components` {n_components!r}."
            )
        super().__init__(**options)
        self._q = n_components
        self._n_expected = n_rows
        self._make_box(self._side_for(n_rows))

    @property
    def latent(self) -> FloatArray:
        """The sites of the rows, (n, q); the first row came to 0."""
        sites = self._store["sites"] if len(self) else np.empty((0, self._q))
        return sites - float(self._middle)

    def load(self, Y: FloatArray, latent: FloatArray, weights: Weights = None) -> None:
        """Take over rows (n, D) that have their sites (n, q) already."""
        sites = np.rint(np.asarray(latent, dtype=float)).astype(np.intp)
        self._store = RowStore(self._error)
        farthest = int(np.abs(sites).max(initial=0))
        n = max(len(sites), self._n_expected)
        self._make_box(max(self._side_for(n), 2 * farthest + 1))
        self._append(Y, weights)
        self._place(sites + self._middle)
        if self._rule.is_full:
            self.full_error()

    def _insert(self, part: slice, nearest: IntArray) -> None:
        _insert_rows(part.start, part.stop, nearest, self._cells(), self._rule)

    def _fill(self, number: int) -> None:
        _fill_row(number, len(self), self._cells(), self._rule)

    def _update_errors(self) -> None:
        n = len(self)
        _refresh(np.ones(n, dtype=np.bool_), n, self._cells(), self._rule)

    def _sweep(self, candidates: IntArray, rule: Rule) -> int:
        sites = self._store["sites"]
        order = np.lexsort(sites.T[::-1])
        ordered = sites[order]
        places = places_of(ordered.astype(np.float64), order, self._store.rows(), rule)
        kept = swap_beside(candidates, 2 * self._q, places, rule)
        fresh = np.empty_like(sites)
        fresh[places.row_at] = ordered
        self._place(fresh)
        return kept

    def _side_for(self, n: int) -> int:
        # Rounding of the root must not add a layer of sites to a box that fits exactly.
        side = math.ceil((_ROOM * max(n, 1)) ** (1 / self._q) - 1e-9)
        return max(side, 3)

    def _append(self, Y: FloatArray, weights: Weights) -> None:
        n_before = len(self)
        self._store.append(Y, weights)
        self._store.reserve("sites", self._q, dtype=np.intp)
        self._store.reserve("errors")
        self._store.reserve("reach", dtype=np.intp)
        if self._side_for(len(self)) > self.side:
            shift = -self._middle
            self._make_box(self._side_for(len(self)))
            self._place(self._store["sites"][:n_before] + (shift + self._middle))

    def _make_box(self, side: int) -> None:
        """Make an empty box. Its middle is 0 of the latent points, so that none moves by this."""
        self.side, self._middle = side, side // 2
        self._grid = np.full(side**self._q, NOBODY, dtype=np.intp)
        steps = np.arange(-side + 1, side)
        mesh = np.meshgrid(*[steps] * self._q, indexing="ij")
        offsets = np.stack([axis.ravel() for axis in mesh], axis=1)
        nearest_first = np.argsort((offsets**2).sum(axis=1), kind="stable")
        self._offsets = offsets[nearest_first[1:]].astype(np.int32)

    def _place(self, sites: IntArray) -> None:
        """Put the first rows on free sites (rows, q)."""
        self._store["sites"][: len(sites)] = sites
        places = np.ravel_multi_index(tuple(sites.T), (self.side,) * self._q)
        self._grid[places] = np.arange(len(sites))

    def _cells(self) -> Cells:
        store = self._store
        errors, reach, sites = (store[name] for name in ("errors", "reach", "sites"))
        return Cells(store.rows(), errors, reach, sites, self._grid, self._offsets, self.side)


class Cells(NamedTuple):
    """Rows on the sites of a box."""

    rows: Rows
    errors: FloatArray  # (n,) error of each row on its site, kept for the full criterion
    reach: IntArray  # (n,) squared distance from each row to its farthest neighbour; kept likewise
    sites: IntArray  # (n, q) the site of each row, from 0 to side - 1
    grid: IntArray  # (side ** q,) number of the row on each site, NOBODY on free ones
    offsets: IntArray  # (sites, q) steps to all other sites, the nearest first
    side: int  # sites along an edge of the box


class Push(NamedTuple):
    """A row put on a site, and those from there on, `length` of them, moved one step."""

    number: int
    at: int
    axis: int
    sign: int
    length: int


@compiled
def _flat(site: IntArray, side: int) -> int:
    """Return the place of a site in the grid."""
    place = 0
    for a in range(len(site)):
        place = place * side + site[a]
    return place


@compiled
def _occupant(place: int, push: Push, stride: int, cells: Cells) -> int:
    """Return the row on a site as it would be after a push."""
    gap = (place - push.at) * push.sign
    if gap < 0 or gap > push.length * stride or gap % stride != 0:  # any gap is above NO_PUSH
        return cells.grid[place]
    if gap == 0:
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
    site: IntArray, n_others: int, push: Push, cells: Cells, sums: FloatArray, masses: FloatArray
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
                reach += square(cells.offsets[k, a])
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
    """Return whether a push that begins at site `at` changes a row's neighbours, or moves it."""
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
def _cost_of(push: Push, at: IntArray, n: int, cells: Cells, rule: Rule) -> float:
    """Return the error of a further row after a push or, if asked for, the change of all errors."""
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
            assign(site, cells.sites[j])
            site[push.axis] += push.sign * moves
            fresh, _ = _error_on(site, j, n_others, push, cells, rule)
            total += weights[j] * (fresh - errors[j])
    return total


@compiled
def _commit(push: Push, at: IntArray, n: int, cells: Cells, rule: Rule) -> None:
    """Put a further row on a lattice of n rows by a push."""
    stride = _stride(push.axis, cells) * push.sign
    touched = np.ones(n + 1, dtype=np.bool_)
    if rule.is_full:
        for j in range(n):
            touched[j] = _is_touched(j, at, push, n, cells, rule)[0]
    for step in range(push.length, 0, -1):
        j = cells.grid[push.at + (step - 1) * stride]
        cells.grid[push.at + step * stride] = j
        cells.sites[j, push.axis] += push.sign
    cells.grid[push.at] = push.number
    assign(cells.sites[push.number], at)
    if rule.is_full:
        _refresh(touched, n + 1, cells, rule)


@compiled
def _refresh(touched: BoolArray, n: int, cells: Cells, rule: Rule) -> None:
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
    at = _flat(site, side) + stride
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
        if is_inside and cells.grid[_flat(site, cells.side)] == NOBODY:
            break
    return Push(number, _flat(site, cells.side), 0, 1, 0)


@compiled
def _best_push(number: int, low: int, high: int, cells: Cells, rule: Rule, site: IntArray) -> Push:
    """Return the best of the cheapest pushes of a further row next to the rows `low` to `high`."""
    # Of pushes as cheap the one that keeps rows closest together is best, then the first: while
    # there are few rows all cost the same, and always to go the first way would make a column. The
    # site of the row is written to `site`.
    q = len(site)
    best, best_cost, best_spread = Push(number, 0, 0, 1, NO_PUSH), 0.0, 0
    trial = np.empty_like(site)
    for beside in range(low, high):
        for direction in range(2 * q):
            axis, sign = direction // 2, 2 * (direction % 2) - 1
            push = _push_beside(number, beside, axis, sign, cells)
            if push.length == NO_PUSH:
                continue
            assign(trial, cells.sites[beside])
            trial[axis] += sign
            cost = _cost_of(push, trial, number, cells, rule)
            spread = 0  # of the site that is filled in the end, from the middle of the box
            for a in range(q if q > 1 else 0):  # a line has the same shape whichever way rows go
                c = trial[a] + (sign * push.length if a == axis else 0)
                spread += square(c - cells.side // 2)
            is_better = best.length == NO_PUSH or is_cheaper(cost, best_cost)
            if is_better or (not is_cheaper(best_cost, cost) and spread < best_spread):
                best, best_cost, best_spread = push, cost, spread
                assign(site, trial)
    if best.length == NO_PUSH:
        best = _nearest_free(number, low, site, cells)
    return best


@compiled
def _insert_rows(start: int, stop: int, nearest: IntArray, cells: Cells, rule: Rule) -> None:
    """Put rows on the lattice, next to their nearest row or, if `nearest` is empty, any row."""
    site = np.empty(cells.sites.shape[1], dtype=np.intp)
    for number in range(start, stop):
        if number == 0:
            site[:] = cells.side // 2
            push = Push(number, _flat(site, cells.side), 0, 1, 0)
        elif len(nearest) > 0:
            beside = nearest[number - start]
            push = _best_push(number, beside, beside + 1, cells, rule, site)
        else:
            push = _best_push(number, 0, number, cells, rule, site)
        _commit(push, site, number, cells, rule)


@compiled
def _fill_row(number: int, n: int, cells: Cells, rule: Rule) -> None:
    """Put the means of the neighbours where entries of one of n rows are missing."""
    rows, nothing = cells.rows, Push(NOBODY, 0, 0, 1, NO_PUSH)
    sums, masses = np.zeros(rows.values.shape[1]), np.zeros(rows.mass.shape[1])
    if n > 1:
        n_others = min(rule.n_others, n - 1)
        _add_neighbors(cells.sites[number], n_others, nothing, cells, sums, masses)
    fill_gaps(sums, masses, rows, number)
    if rule.is_full:
        _refresh(np.ones(n, dtype=np.bool_), n, cells, rule)
