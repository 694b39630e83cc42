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

from abc import ABC, abstractmethod
from typing import Literal

import numpy as np

from twofold.array_types import FloatArray, IntArray
from twofold.engine.threads import run_tasks, slices
from twofold.rowwise import VALUES_AT_A_TIME, blocks
from twofold.unn import line_gaps, line_moves, line_products
from twofold.unn.line_moves import LEFT, N_PRODUCTS, OWN, LinkedRows
from twofold.unn.nearest_rows import nearest_rows
from twofold.unn.point_errors import PointError
from twofold.unn.rows import NOBODY, RowStore, Rule, Watch, Weights, get_rule, is_even

# Rows next to which a row is put again where not all places are tried: more of them hardly help.
N_CANDIDATES = 10
_TILE = 1_024


class SortedRows(ABC):
    """Rows put somewhere one after the other, in all places or next to the nearest row only."""

    _most_rows = 256  # between two looks at the progress

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
        self._error = error or PointError()
        self._rule = get_rule(n_neighbors, criterion, self._error, include_self)
        self._exhaustive = exhaustive
        self._n_threads = n_threads
        self._store = RowStore(self._error)

    def __len__(self) -> int:
        return len(self._store)

    def insert(self, Y: FloatArray, weights: Weights = None, watch: Watch | None = None) -> None:
        """Put rows Y (m, D), NaN for missing entries, one by one; `watch` hears how many."""
        start = len(self)
        self._append(Y, weights)
        nearest = self._nearest_earlier(start)
        for part in self._parts(start):
            self._insert(part, nearest[part.start - start : part.stop - start])
            if watch is not None:
                watch(part.stop)

    def fill(self, number: int) -> FloatArray:
        """Fill the missing entries of a row with the means of its neighbours; return it (D,)."""
        # Rows that come later see it complete. An entry that no neighbour has gets the mean of the
        # first rows that came.
        if self._store.has_missing:
            self._fill(number)
        return self._store.row(number)

    def refine(self, n_sweeps: int = 1, watch: Watch | None = None) -> list[float]:
        """Put rows elsewhere while that lowers the sum of all errors; return how that fell."""
        # The sum of all errors decides here, whatever the search went by: it must not rise.
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
    def _append(self, Y: FloatArray, weights: Weights) -> None:
        """Make room for what is kept of new rows."""

    @abstractmethod
    def _insert(self, part: slice, nearest: IntArray) -> None:
        """Put some rows somewhere, next to their nearest ones if there are any."""

    @abstractmethod
    def _fill(self, number: int) -> None:
        """Fill a row."""

    @abstractmethod
    def _update_errors(self) -> None:
        """Compute the error of each row."""

    @abstractmethod
    def _sweep(self, candidates: IntArray, rule: Rule) -> int:
        """Go over all rows once; return how many went elsewhere."""

    def _parts(self, start: int) -> list[slice]:
        """Return the rows from ``start`` on in parts whose products with all rows fit in memory."""
        n = len(self)
        parts = blocks(n - start, max(n, VALUES_AT_A_TIME // self._most_rows))
        return [slice(start + part.start, start + part.stop) for part in parts]

    def _nearest_earlier(self, start: int) -> IntArray:
        """Return the nearest earlier row of each from `start` on, NOBODY for the first of all."""
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
    """Rows in an order that grows."""

    # Refinement tries all gaps or, after a greedy search, those next to the ten nearest rows.

    @property
    def order(self) -> IntArray:
        """Row numbers from left to right, (n,)."""
        n = len(self)
        if n == 0:
            return np.empty(0, dtype=np.intp)
        first = int(np.flatnonzero(self._store["beside"][:, LEFT] == NOBODY)[0])
        return line_moves.ranks_of(first, n, self._store["beside"])

    @property
    def latent(self) -> FloatArray:
        """The rank of each row, 1 to n, (n, 1)."""
        ranks = np.empty(len(self))
        ranks[self.order] = np.arange(1, len(self) + 1)
        return ranks[:, None]

    def load(self, Y: FloatArray, latent: FloatArray, weights: Weights = None) -> None:
        """Take over rows (n, D) that have their ranks (n, 1) already."""
        self._store = RowStore(self._error)
        order = np.argsort(np.asarray(latent)[:, 0], kind="stable")
        self._append(Y, weights)
        line_moves.rebuild(order, self._line(self._rule))

    def _insert(self, part: slice, nearest: IntArray) -> None:
        self._put(part, nearest[:, None], self._rule, is_there=False)

    def _fill(self, number: int) -> None:
        line_moves.fill_row(number, self._line(self._rule))

    def _update_errors(self) -> None:
        line_moves.rebuild(self.order, self._line(self._rule._replace(is_full=True)))

    def _candidates(self) -> IntArray:
        if self._exhaustive:  # all gaps
            return np.empty((len(self), 0), dtype=np.intp)
        return super()._candidates()

    def _sweep(self, candidates: IntArray, rule: Rule) -> int:
        parts = self._parts(0)
        return sum(self._put(part, candidates[part], rule, is_there=True) for part in parts)

    def _put(self, part: slice, beside: IntArray, rule: Rule, is_there: bool) -> int:
        """Put rows in their places, or those that are there in better ones; return how many are."""
        line = self._line(rule)
        if not self._exhaustive:
            return line_gaps.put_beside(part.start, beside, line, is_there)
        if not line.products.size:
            return line_gaps.put_anywhere(part.start, part.stop, line, is_there)
        products = self._products(part, len(self) if is_there else part.stop)
        return line_products.put_by_products(part.start, products, line, is_there)

    def _append(self, Y: FloatArray, weights: Weights) -> None:
        start, store = len(self), self._store
        store.append(Y, weights)
        store.reserve("beside", 2, dtype=np.intp)
        store.reserve("order", dtype=np.intp)
        store.reserve("errors")
        store.reserve("products", N_PRODUCTS)
        store["products"][start:, OWN] = np.einsum("id,id->i", *[store["values"][start:]] * 2)

    def _line(self, rule: Rule) -> LinkedRows:
        store, rows, n = self._store, self._store.rows(), len(self)
        # Running sums of products take rows away again, so they need rows that allow that.
        can_take_away = is_even(rows)
        by_products = self._exhaustive and self._error.is_euclidean and can_take_away
        return LinkedRows(
            rows=rows,
            rule=rule,
            is_even=can_take_away,
            beside=store["beside"],
            errors=store["errors"],
            order=store["order"][: n if self._exhaustive else 0],
            products=store["products"][: n if by_products else 0],
        )

    def _products(self, part: slice, n: int) -> FloatArray:
        """Return the products of some rows with the first n."""
        Y = self._store.rows().values
        products = np.empty((part.stop - part.start, n))

        def multiply(tile: slice) -> None:
            products[:, tile] = Y[part] @ Y[tile].T

        tiles = slices(n, _TILE)
        run_tasks(multiply, tiles, self._n_threads)
        return products
