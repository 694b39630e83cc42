"""Latent sorting: rows put on a line one after the other (Kramer 2013, Algorithm 3).

The latent points are the ranks 1 to n. Each new row is tried in the gaps between the rows that are
there, in all n + 1 of them (UNN) or only next to its nearest row (UNN_g, 5.7), and put where

* its own error is smallest (criterion "point", 5.1), or
* the weighted sum of all errors, its own included, is smallest (criterion "full", 5.3).

The error of a row is that of the mean of its K nearest ranks, see `point_errors`; of two ranks as
near the left one is taken first. With ``include_self`` the row itself is one of the K, as in the
book's figures, and always has at least one other neighbour. While there are fewer rows than K, all
of them are neighbours. Of gaps as good the leftmost is taken.

After that rows can be taken out and put back (`refine`), which the book does not do. `SortedRows`
is what a line has in common with a lattice.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from typing import Any, Literal

import numpy as np

from twofold.array_types import FloatArray, IntArray
from twofold.engine.threads import run_tasks
from twofold.unn import line_moves
from twofold.unn.embedding import Watch
from twofold.unn.line_moves import LinkedRows
from twofold.unn.nearest_rows import nearest_rows
from twofold.unn.point_errors import PointError
from twofold.unn.rows import NOBODY, RowStore, Rule, get_rule, is_even

# Rows next to which a row is put again where not all places are tried: more of them hardly help.
N_CANDIDATES = 10
_BLOCK_ENTRIES = 2**22  # 32 MB of products at a time
_BLOCK_ROWS = 256
_TILE = 1_024


class SortedRows(ABC):
    """Rows that are put somewhere one after the other.

    The criterion "point" judges a place by the error of the row put there, "full" by that of all
    rows. With `include_self` a row is one of its own K neighbours, with `exhaustive` all places are
    tried and not only those next to the nearest row.
    """

    def __init__(
        self,
        *,
        n_neighbors: int,
        criterion: Literal["point", "full"] = "point",
        error: PointError | None = None,
        include_self: bool = True,
        exhaustive: bool = True,
        n_threads: int = 1,
    ) -> None:
        self._error = PointError() if error is None else error
        self._rule = get_rule(n_neighbors, criterion, self._error, include_self)
        self._exhaustive = exhaustive
        self._n_threads = n_threads
        self._keeps_errors = criterion == "full"
        self._store = RowStore(self._error)

    def __len__(self) -> int:
        return len(self._store)

    def refine(self, n_sweeps: int = 1, watch: Watch | None = None) -> list[float]:
        """Put each row elsewhere if that lowers the sum of all errors; return it before and after.

        Sweeps end early when no row moves. `watch` hears after each how many were made.
        """
        rule = self._rule._replace(is_full=True)
        history = [self.full_error()]  # which also computes the error of each row
        if len(self) < 3:
            return history
        candidates = self._candidates()
        for sweep in range(n_sweeps):
            moves = self._sweep(candidates, rule)
            history.append(self.full_error())
            if watch is not None:
                watch(sweep + 1)
            if moves == 0:
                break
        return history

    def full_error(self) -> float:
        """Return the weighted sum of the errors of all rows."""
        if len(self) == 0:
            return 0.0
        self._update_errors()
        return float(self._store["weights"] @ self._store["errors"])

    @abstractmethod
    def _update_errors(self) -> None:
        """Compute the error of each row."""

    @abstractmethod
    def _sweep(self, candidates: IntArray, rule: Rule) -> int:
        """Go over all rows once; return how many went elsewhere."""

    def _nearest_earlier(self, start: int) -> IntArray:
        """Return the nearest earlier row of each row from ``start`` on; none to try all places.

        The first row of all has none.
        """
        if self._exhaustive:
            return np.empty(0, dtype=np.intp)
        first = max(start, 1)
        found = nearest_rows(
            self._store.rows(), self._error, first=first, earlier=True, n_threads=self._n_threads
        )[:, 0]
        return np.concatenate([np.full(first - start, NOBODY), found])

    def _candidates(self) -> IntArray:
        """Return the rows next to which each row may be put, (n, candidates): the nearest ones."""
        k = min(N_CANDIDATES, len(self) - 1)
        return nearest_rows(self._store.rows(), self._error, k, n_threads=self._n_threads)


class Line(SortedRows):
    """Rows in an order that grows; parameters as for :class:`SortedRows`.

    Refinement tries all gaps or, after a greedy search, those next to the ten nearest rows.
    """

    @property
    def order(self) -> IntArray:
        """Row numbers from left to right, (n,)."""
        n = len(self)
        if n == 0:
            return np.empty(0, dtype=np.intp)
        first = int(np.flatnonzero(self._store["before"] == NOBODY)[0])
        return line_moves.ranks_of(first, n, self._store["after"])

    @property
    def latent(self) -> FloatArray:
        """The rank of each row, 1 to n, (n, 1)."""
        ranks = np.empty(len(self))
        ranks[self.order] = np.arange(1, len(self) + 1)
        return ranks[:, None]

    def insert(
        self, Y: FloatArray, weights: FloatArray | None = None, watch: Watch | None = None
    ) -> None:
        """Put rows Y (m, D) on the line, one after the other; NaN where entries are missing.

        With a data kernel none may be missing. ``watch`` hears now and then how many rows there
        are.
        """
        start = len(self)
        line = self._append(Y, weights)
        nearest = self._nearest_earlier(start)
        for low, products in self._blocks(start, line, earlier=True):
            high = low + len(products)
            near = nearest[low - start : high - start]
            line_moves.insert_rows(low, near, products, line, self._rule, self._keeps_errors)
            if watch is not None:
                watch(high)

    def load(self, Y: FloatArray, latent: FloatArray, weights: FloatArray | None = None) -> None:
        """Take over rows (n, D) that have their ranks (n, 1) already."""
        self._store = RowStore(self._error)
        order = np.argsort(np.asarray(latent)[:, 0], kind="stable")
        line_moves.rebuild(order, self._append(Y, weights), self._rule, self._keeps_errors)

    def fill(self, number: int) -> FloatArray:
        """Fill the missing entries of a row with the means of its neighbours; return it (D,).

        Rows that come later see it complete. An entry that no neighbour has gets the mean of the
        first rows that came.
        """
        if self._store.has_missing:
            line_moves.fill_row(number, self._line(), self._rule, self._keeps_errors)
        return self._store.row(number)

    def _update_errors(self) -> None:
        line_moves.rebuild(self.order, self._line(), self._rule, True)

    def _candidates(self) -> IntArray:
        if self._exhaustive:  # all gaps
            return np.empty((len(self), 0), dtype=np.intp)
        return super()._candidates()

    def _sweep(self, candidates: IntArray, rule: Rule) -> int:
        line, moves = self._line(), 0
        for low, products in self._blocks(0, line, earlier=False):
            near = candidates[low : low + len(products)]
            moves += line_moves.refine_rows(low, near, products, line, rule)
        return moves

    def _append(self, Y: FloatArray, weights: FloatArray | None) -> LinkedRows:
        """Make room for what is kept of new rows."""
        start, store = len(self), self._store
        store.append(Y, weights)
        for name in ("before", "after", "order"):
            store.reserve(name, dtype=np.intp)
        for name in ("errors", "own", "square", "window"):
            store.reserve(name)
        store.reserve("inner", 2)
        store["own"][start:] = np.einsum("id,id->i", *[store["values"][start:]] * 2)
        return self._line()

    def _line(self) -> LinkedRows:
        store, rows = self._store, self._store.rows()
        can_take_away = is_even(rows)
        by_products = self._exhaustive and self._error.is_euclidean and can_take_away
        some, n = slice(len(self) if by_products else 0), len(self)
        return LinkedRows(
            rows,
            can_take_away,
            store["before"],
            store["after"],
            store["errors"],
            store["order"][: n if self._exhaustive else 0],
            store["own"][some],
            store["square"][some],
            store["window"][some],
            store["inner"][some],
        )

    def _blocks(
        self, start: int, line: LinkedRows, *, earlier: bool
    ) -> Iterator[tuple[int, FloatArray]]:
        """Yield the first of some rows and their products with all, or all earlier rows.

        They have no columns where the search does not go by products.
        """
        n, Y = len(self), line.rows.values
        size = int(np.clip(_BLOCK_ENTRIES // max(n, 1), 1, _BLOCK_ROWS))
        for low in range(start, n, size):
            high = min(n, low + size)
            products = np.empty((high - low, (high if earlier else n) if line.own.size else 0))

            def multiply(
                first: int, some: FloatArray = Y[low:high], out: FloatArray = products
            ) -> None:
                tile = slice(first, min(out.shape[1], first + _TILE))
                out[:, tile] = some @ Y[tile].T

            run_tasks(multiply, range(0, products.shape[1], _TILE), self._n_threads)
            yield low, products


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
