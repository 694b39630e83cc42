"""Latent sorting: rows put on a line one after the other (Kramer 2013, Algorithm 3).

The latent points are the ranks 1 to n. Each new row is tried in the gaps between the rows that are
there, in all n + 1 of them (UNN) or only next to its nearest row (UNN_g, 5.7), and put where

* its own error is smallest (criterion "point", 5.1), or
* the weighted sum of all errors, its own included, is smallest (criterion "full", 5.3).

The error of a row is that of the mean of its K nearest ranks, see `point_errors`; of two ranks as
near the left one is taken first. With ``include_self`` the row itself is one of the K, as in the
book's figures, and always has at least one other neighbour. While there are fewer rows than K, all
of them are neighbours. Of gaps as good the leftmost is taken.

Errors that inner products of complete rows decide are searched by `line_products`, all others, and
the greedy search, by `line_vectors`. After that rows can be taken out and put back (`refine`),
which the book does not do.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from twofold.array_types import FloatArray, IntArray
from twofold.engine.threads import run_tasks
from twofold.unn import line_products, line_vectors
from twofold.unn.line_products import Products
from twofold.unn.line_vectors import NOBODY, Rows, Rule
from twofold.unn.point_errors import PointError
from twofold.unn.row_store import RowStore
from twofold.unn.sorted_rows import Criterion, SortedRows, Watch

_BLOCK_ENTRIES = 2**22  # 32 MB of products at a time
_BLOCK_ROWS = 256
_TILE = 1_024


class Line(SortedRows):
    """Rows in an order that grows.

    Refinement tries all gaps or, after a greedy search, those next to the ten nearest rows.

    Parameters
    ----------
    n_neighbors : int
        K, at least 1.
    criterion : {"point", "full"}
        What a place is judged by: the error of the row put there, or that of all rows.
    error : PointError
        The error of one row.
    include_self : bool
        Whether a row is one of its own K neighbours.
    exhaustive : bool
        Whether all gaps are tried, or the two next to the nearest row.
    n_threads : int
        Changes nothing but the time.
    """

    def __init__(
        self,
        *,
        n_neighbors: int,
        criterion: Criterion = "point",
        error: PointError | None = None,
        include_self: bool = True,
        exhaustive: bool = True,
        n_threads: int = 1,
    ) -> None:
        super().__init__(
            n_neighbors=n_neighbors,
            criterion=criterion,
            error=error,
            include_self=include_self,
            exhaustive=exhaustive,
            n_threads=n_threads,
        )
        self._uses_products = exhaustive and self._error.is_euclidean

    @property
    def order(self) -> IntArray:
        """Row numbers from left to right, (n,)."""
        n = len(self)
        if self._uses_products or n == 0:
            return self._store["order"][:n].copy() if n else np.empty(0, dtype=np.intp)
        return line_vectors.ranks_of(self._first(n), n, self._rows())

    @property
    def latent(self) -> FloatArray:
        """The rank of each row, 1 to n, (n, 1)."""
        ranks = np.empty(len(self))
        ranks[self.order] = np.arange(1, len(self) + 1)
        return ranks[:, None]

    def insert(
        self, Y: FloatArray, weights: FloatArray | None = None, watch: Watch | None = None
    ) -> None:
        """Put rows on the line, one after the other.

        Parameters
        ----------
        Y : (rows, D)
            NaN for missing entries; with a data kernel none may be missing.
        weights : (rows,), optional
            Ones by default.
        watch : callable, optional
            Called with the number of rows on the line, now and then.
        """
        start = len(self)
        self._store.append(Y, weights)
        if self._uses_products and self._store.has_missing:
            self._turn_to_vectors(start)
        self._reserve()
        if self._uses_products:
            self._insert_by_products(start, watch)
        else:
            self._insert_by_vectors(start, watch)

    def load(self, Y: FloatArray, latent: FloatArray, weights: FloatArray | None = None) -> None:
        """Take over rows (n, D) that have their ranks (n, 1) already."""
        order = np.argsort(np.asarray(latent)[:, 0], kind="stable")
        self._store = RowStore(self._error)
        self._store.append(Y, weights)
        self._uses_products = (
            self._exhaustive and self._error.is_euclidean and not self._store.has_missing
        )
        self._reserve()
        if self._uses_products:
            self._store["order"][: len(order)] = order
            line_products.rebuild(len(self), self._products(), self._rule, self._keeps_errors)
        else:
            self._tie(order)
            if self._keeps_errors:
                line_vectors.all_errors(self.order, self._rows(), self._rule)

    def fill(self, number: int) -> FloatArray:
        """Fill the missing entries of a row with the means of its neighbours; return it (D,).

        Rows that come later see it complete. An entry that no neighbour has gets the mean of the
        first rows that came.
        """
        if not self._uses_products:
            line_vectors.fill_row(number, self._rows(), self._rule, self._keeps_errors)
        return self._store.row(number)

    def _update_errors(self) -> None:
        line_vectors.all_errors(self.order, self._rows(), self._rule)

    def _candidates(self) -> IntArray:
        if self._exhaustive:  # all gaps
            return np.empty((0, 0), dtype=np.intp)
        return self._nearest_others()

    def _sweep(self, candidates: IntArray, rule: Rule) -> int:
        if self._uses_products:
            return self._refine_by_products(rule)
        first = int(self.order[0])
        _, moves = line_vectors.refine_rows(candidates, first, len(self), self._rows(), rule)
        return moves

    def _insert_by_products(self, start: int, watch: Watch | None) -> None:
        n, line = len(self), self._products()
        while start < n:
            stop = min(n, start + self._block_rows(n))
            products = self._multiply(start, stop, stop)
            line_products.insert_rows(start, products, line, self._rule, self._keeps_errors)
            start = stop
            if watch is not None:
                watch(start)

    def _refine_by_products(self, rule: Rule) -> int:
        n, line, moves = len(self), self._products(), 0
        step = self._block_rows(n)
        for start in range(0, n, step):
            products = self._multiply(start, min(n, start + step), n)
            moves += line_products.refine_rows(start, products, n, line, rule)
        return moves

    def _multiply(self, start: int, stop: int, n: int) -> FloatArray:
        """Return the products (stop - start, n) of some rows with the first n."""
        values = self._store["values"]
        products = np.empty((stop - start, n))

        def multiply(first: int) -> None:
            last = min(n, first + _TILE)
            products[:, first:last] = values[start:stop] @ values[first:last].T

        run_tasks(multiply, range(0, n, _TILE), self._n_threads)
        return products

    def _insert_by_vectors(self, start: int, watch: Watch | None) -> None:
        n, rows = len(self), self._rows()
        keep = self._keeps_errors
        if start == 0 and n > 0:
            line_vectors.link(NOBODY, NOBODY, 0, rows, self._rule, keep)
            start = 1
        nearest: IntArray = np.empty(0, dtype=np.intp)
        order = np.empty(n, dtype=np.intp)
        if not self._exhaustive:
            nearest = self._nearest_earlier(start)
        elif start < n:
            order[:start] = line_vectors.ranks_of(self._first(start), start, rows)
        for low in range(start, n, _BLOCK_ROWS):
            high = min(n, low + _BLOCK_ROWS)
            if self._exhaustive:
                line_vectors.insert_anywhere(low, high, order, rows, self._rule, keep)
            else:
                near = nearest[low - start : high - start]
                line_vectors.insert_greedily(low, high, near, rows, self._rule, keep)
            if watch is not None:
                watch(high)

    def _first(self, n: int) -> int:
        return int(np.flatnonzero(self._store["before"][:n] == NOBODY)[0])

    def _turn_to_vectors(self, n: int) -> None:
        """Go on with the rows themselves: from now on entries are missing."""
        order = self._store["order"][:n].copy() if n else np.empty(0, dtype=np.intp)
        self._uses_products = False
        self._reserve()
        self._tie(order)

    def _tie(self, order: IntArray) -> None:
        """Link rows in that order."""
        before, after = self._store["before"], self._store["after"]
        before[order[1:]], after[order[:-1]] = order[:-1], order[1:]
        if len(order):
            before[order[0]], after[order[-1]] = NOBODY, NOBODY

    def _block_rows(self, n: int) -> int:
        return int(np.clip(_BLOCK_ENTRIES // max(n, 1), 1, _BLOCK_ROWS))

    def _reserve(self) -> None:
        """Make room for what is kept of each row."""
        m = self._rule.n_others
        self._store.reserve("errors")
        if self._uses_products:
            self._store.reserve("order", dtype=np.intp)
            self._store.reserve("band", m + 1)
            self._store.reserve("square")
            self._store.reserve("mass_of_window")
            self._store.reserve("inner", m)
        else:
            self._store.reserve("before", dtype=np.intp)
            self._store.reserve("after", dtype=np.intp)

    def _rows(self) -> Rows:
        store = self._store
        none = np.empty(0, dtype=np.intp)
        before, after = (none, none) if self._uses_products else (store["before"], store["after"])
        return Rows(
            store["values"], store["mass"], store["weights"], before, after, store["errors"]
        )

    def _products(self) -> Products:
        store = self._store
        return Products(
            store["values"],
            store["weights"],
            store["own"],
            store["order"],
            store["band"],
            store["square"],
            store["mass_of_window"],
            store["inner"],
            store["errors"],
        )


def sort_rows(
    Y: FloatArray, *, n_neighbors: int, weights: FloatArray | None = None, **options: Any
) -> IntArray:
    """Return the numbers of the rows Y (n, D) from left to right; options as for `Line`.

    >>> import numpy as np
    >>> from twofold.unn.line import sort_rows
    >>> sort_rows(np.array([[0.0], [3.0], [1.0], [2.0]]), n_neighbors=2, criterion="full")
    array([1, 3, 2, 0])
    """
    line = Line(n_neighbors=n_neighbors, **options)
    line.insert(Y, weights)
    return line.order
