"""What a line and a lattice of rows have in common: the rows, the rule of their places, refinement.

Refinement goes over the rows again, which the book (Kramer 2013) does not do.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Literal

import numpy as np

from twofold.array_types import IntArray
from twofold.unn.nearest_rows import nearest_rows
from twofold.unn.point_errors import PointError
from twofold.unn.rows import NOBODY, RowStore, Rule, get_rule

Criterion = Literal["point", "full"]
Watch = Callable[[int], None]

# Rows next to which a row is put again where not all places are tried: more of them hardly help.
N_CANDIDATES = 10


class SortedRows(ABC):
    """Rows that are put somewhere one after the other.

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
        Whether all places are tried, or those next to the nearest row.
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
        self._error = PointError() if error is None else error
        self._rule = get_rule(n_neighbors, criterion, self._error, include_self)
        self._exhaustive = exhaustive
        self._n_threads = n_threads
        self._keeps_errors = criterion == "full"
        self._store = RowStore(self._error)

    def __len__(self) -> int:
        return len(self._store)

    def refine(self, n_sweeps: int = 1, watch: Watch | None = None) -> list[float]:
        """Put each row elsewhere if that lowers the sum of all errors.

        Sweeps end early when no row moves. `watch` hears after each how many were made.

        Returns
        -------
        list of float
            The sum of errors before and after each sweep.
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
    def _candidates(self) -> IntArray:
        """Return the rows next to which each row may be put, (n, candidates)."""

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

    def _nearest_others(self) -> IntArray:
        """Return the ten nearest others of each row, fewer if there are fewer rows."""
        k = min(N_CANDIDATES, len(self) - 1)
        return nearest_rows(self._store.rows(), self._error, k, n_threads=self._n_threads)
