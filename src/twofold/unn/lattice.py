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
change hands × K D). With all rows as candidates that is O(n²) tries in all.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from twofold.array_types import FloatArray, IntArray
from twofold.unn import lattice_moves
from twofold.unn.lattice_moves import Cells
from twofold.unn.rows import NOBODY, RowStore, Rule
from twofold.unn.sorted_rows import SortedRows, Watch
from twofold.unn.swaps import places_of, swap_beside

_ROOM = 1.25  # sites for each row
_BLOCK_ROWS = 64


class Lattice(SortedRows):
    """Rows on a lattice that grows.

    Refinement lets each row change places with those beside its ten nearest rows, where that lowers
    the sum of all errors. Free sites stay free.

    Parameters
    ----------
    n_components : int
        1, 2 or 3.
    n_rows : int
        How many rows are expected; the box grows if more come.
    options
        As for :class:`SortedRows`.
    """

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
    def side(self) -> int:
        """Sites along an edge of the box."""
        return self._side

    @property
    def latent(self) -> FloatArray:
        """The sites of the rows, (n, q); the first row came to 0."""
        sites = self._store["sites"] if len(self) else np.empty((0, self._q))
        return sites - float(self._middle)

    def insert(
        self, Y: FloatArray, weights: FloatArray | None = None, watch: Watch | None = None
    ) -> None:
        """Put rows on the lattice, one after the other; as for :meth:`Line.insert`."""
        start = len(self)
        self._append(Y, weights)
        n, cells, keep = len(self), self._cells(), self._keeps_errors
        if start == 0 and n > 0:
            self._place(np.full((1, self._q), self._middle))
            start = 1
        nearest = self._nearest_earlier(start)
        for low in range(start, n, _BLOCK_ROWS):
            high = min(n, low + _BLOCK_ROWS)
            near = nearest[low - start : high - start]
            lattice_moves.insert_rows(low, high, near, cells, self._rule, keep)
            if watch is not None:
                watch(high)

    def load(self, Y: FloatArray, latent: FloatArray, weights: FloatArray | None = None) -> None:
        """Take over rows (n, D) that have their sites (n, q) already."""
        sites = np.rint(np.asarray(latent, dtype=float)).astype(np.intp)
        self._store = RowStore(self._error)
        farthest = int(np.abs(sites).max(initial=0))
        n = max(len(sites), self._n_expected)
        self._make_box(max(self._side_for(n), 2 * farthest + 1))
        self._append(Y, weights)
        self._place(sites + self._middle)
        if self._keeps_errors:
            self.full_error()

    def fill(self, number: int) -> FloatArray:
        """Fill the missing entries of a row with the means of its neighbours; return it (D,)."""
        if self._store.has_missing:
            cells = self._cells()
            lattice_moves.fill_row(number, len(self), cells, self._rule, self._keeps_errors)
        return self._store.row(number)

    def _update_errors(self) -> None:
        n = len(self)
        lattice_moves.refresh(np.ones(n, dtype=np.bool_), n, self._cells(), self._rule)

    def _candidates(self) -> IntArray:
        return self._nearest_others()

    def _sweep(self, candidates: IntArray, rule: Rule) -> int:
        sites, rows = self._store["sites"], self._store.rows()
        order = np.lexsort(sites.T[::-1])
        ordered = sites[order]
        places = places_of(ordered.astype(np.float64), order, rows, rule)
        kept = swap_beside(candidates, 2 * self._q, places, rows, rule)
        fresh = np.empty_like(sites)
        fresh[places.row_at] = ordered
        self._place(fresh)
        return kept

    def _side_for(self, n: int) -> int:
        side = math.ceil((_ROOM * max(n, 1)) ** (1 / self._q) - 1e-9)
        return max(side, 3)

    def _append(self, Y: FloatArray, weights: FloatArray | None) -> None:
        n_before = len(self)
        self._store.append(Y, weights)
        self._store.reserve("sites", self._q, dtype=np.intp)
        self._store.reserve("errors")
        self._store.reserve("reach", dtype=np.intp)
        if self._side_for(len(self)) > self._side:
            shift = -self._middle
            self._make_box(self._side_for(len(self)))
            self._place(self._store["sites"][:n_before] + (shift + self._middle))

    def _make_box(self, side: int) -> None:
        """Make an empty box. Its middle is 0 of the latent points, so that none moves by this."""
        self._side, self._middle = side, side // 2
        self._grid = np.full(side**self._q, NOBODY, dtype=np.intp)
        steps = np.arange(-side + 1, side)
        mesh = np.meshgrid(*[steps] * self._q, indexing="ij")
        offsets = np.stack([axis.ravel() for axis in mesh], axis=1)
        nearest_first = np.argsort((offsets**2).sum(axis=1), kind="stable")
        self._offsets = offsets[nearest_first[1:]].astype(np.int32)

    def _place(self, sites: IntArray) -> None:
        """Put the first rows on free sites (rows, q)."""
        self._store["sites"][: len(sites)] = sites
        places = np.ravel_multi_index(tuple(sites.T), (self._side,) * self._q)
        self._grid[places] = np.arange(len(sites))

    def _cells(self) -> Cells:
        store = self._store
        return Cells(
            store.rows(),
            store["errors"],
            store["reach"],
            store["sites"],
            self._grid,
            self._offsets,
            self._side,
        )
