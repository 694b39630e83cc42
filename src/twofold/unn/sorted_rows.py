"""What a line and a lattice of rows have in common: the rows, the rule of their places, refinement.

Refinement goes over the rows again, which the book (Kramer 2013) does not do.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Literal

import numpy as np

from twofold.array_types import FloatArray, IntArray
from twofold.unn.earlier_neighbors import nearest_earlier, several_nearest_others
from twofold.unn.line_vectors import Rows, Rule
from twofold.unn.point_errors import PointError
from twofold.unn.row_store import RowStore

Criterion = Literal["point", "full"]
Watch = Callable[[int], None]

# Rows next to which a row is put again where not all places are tried: more of them hardly help.
N_CANDIDATES = 10


class SortedRows(ABC):
    """Rows that are put somewhere one after the other; parameters as for a line or a lattice."""

    def __init__(
        self,
        *,
        n_neighbors: int,
        criterion: Criterion,
        error: PointError | None,
        include_self: bool,
        exhaustive: bool,
        n_threads: int,
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
        n = len(self)
        if n == 0:
            return 0.0
        self._update_errors()
        return float(self._store["weights"][:n] @ self._store["errors"][:n])

    @abstractmethod
    def _update_errors(self) -> None:
        """Compute the error of each row."""

    @abstractmethod
    def _candidates(self) -> IntArray:
        """Return the rows next to which each row may be put, (n, candidates)."""

    @abstractmethod
    def _sweep(self, candidates: IntArray, rule: Rule) -> int:
        """Go over all rows once; return how many went elsewhere."""

    def _nearest_earlier(self, first: int) -> IntArray:
        """Return the nearest earlier row of each row from ``first`` on."""
        return nearest_earlier(
            self._store.rows(),
            self._error,
            first=first,
            n_threads=self._n_threads,
            observed=self._store.observed(),
        )

    def _nearest_others(self) -> IntArray:
        """Return the ten nearest others of each row, fewer if there are not so many."""
        return several_nearest_others(
            self._store.rows(),
            min(N_CANDIDATES, len(self) - 1),
            self._error,
            n_threads=self._n_threads,
            observed=self._store.observed(),
        )


def rows_in(store: RowStore, errors: FloatArray) -> Rows:
    """Return the rows of a store for compiled loops, not linked to a line."""
    nobody: IntArray = np.empty(0, dtype=np.intp)
    return Rows(store["values"], store["mass"], store["weights"], nobody, nobody, errors)


def get_rule(n_neighbors: int, criterion: str, error: PointError, include_self: bool) -> Rule:
    """Return the rule of neighbours and costs, checked."""
    if n_neighbors < 1:
        raise ValueError(f"`n_neighbors` must be at least 1; got {n_neighbors!r}.")
    if criterion not in ("point", "full"):
        raise ValueError(f"`criterion` must be 'point' or 'full'; got {criterion!r}.")
    n_others = max(1, n_neighbors - 1) if include_self else n_neighbors
    return Rule(int(n_others), bool(include_self), criterion == "full", error)
