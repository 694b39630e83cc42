"""Rows that are put anywhere in latent space, one after the other: Gaussian and swarm embedding.

Each row looks around the place of the nearest row that is there already. Refinement (beyond the
book, which never looks at a row twice) takes each row up again, looks around the nearest of *all*
rows, and moves it if that lowers the error of the whole embedding.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from twofold.array_types import FloatArray, IntArray
from twofold.unn.growing import find_nearest, tree_of
from twofold.unn.nearest_rows import nearest_rows
from twofold.unn.placing import (
    Judge,
    Tries,
    insert_rows,
    judge_of,
    largest_earlier,
    list_errors,
    move_rows,
)
from twofold.unn.point_errors import PointError
from twofold.unn.rows import NOBODY, Rows, is_complete, rows_of, write_mean
from twofold.unn.searches import Continuous, Gaussian

# Rows between two looks at the progress; random numbers are drawn for this many rows at a time.
BLOCK = 256


class ContinuousPoints:
    """Rows with latent points, to which rows can be added.

    Parameters
    ----------
    q : int
        Latent dimensions.
    search : Gaussian or Swarm
    n_neighbors : int
        K.
    rng : numpy Generator
        Decides about the places that are tried.
    error : PointError
    has_kernel : bool
        Whether a data kernel was given; the linear one leaves no trace in ``error``.
    n_threads : int
    """

    def __init__(
        self,
        q: int,
        search: Continuous,
        *,
        n_neighbors: int,
        rng: np.random.Generator,
        error: PointError | None = None,
        has_kernel: bool = False,
        n_threads: int = 1,
    ) -> None:
        self.search, self.rng, self.n_threads = search, rng, n_threads
        self.error = PointError() if error is None else error
        self.by_product = has_kernel and search.nearest == "argmax"
        self.k = max(1, n_neighbors - 1) if search.include_self else n_neighbors
        self.Y: FloatArray = np.empty((0, 0))
        self.weights: FloatArray = np.empty(0)
        self.X: FloatArray = np.empty((0, q))
        self.tree = tree_of(self.X, BLOCK)

    @property
    def latent(self) -> FloatArray:
        """The latent points (n, q)."""
        return self.X

    def load(self, Y: FloatArray, X: FloatArray, weights: FloatArray | None = None) -> None:
        """Take over rows that have latent points already."""
        self._append(Y, weights)
        self.X = np.ascontiguousarray(X, dtype=np.float64)
        self.tree = tree_of(self.X, len(X) + BLOCK)

    def insert(
        self,
        Y: FloatArray,
        weights: FloatArray | None = None,
        watch: Callable[[int], object] | None = None,
    ) -> None:
        """Embed rows Y (m, D), one after the other; NaN where entries are missing.

        ``watch`` hears now and then how many rows there are.
        """
        before = len(self.X)
        self._append(Y, weights)
        n, q = len(self.Y), self.X.shape[1]
        rows = self._rows()
        judge = self._judge(rows)
        nearest = np.zeros(n - before, dtype=np.int64)
        first = max(before, 1)
        if n > first:
            nearest[first - before :] = self._nearest_earlier(rows, first)
        if n > len(self.tree.X):
            self.tree = tree_of(self.X, n + max(n // 2, BLOCK))
        for start in range(before, n, BLOCK):
            stop = min(start + BLOCK, n)
            # The stream of random numbers is one for all blocks, so their size does not matter.
            insert_rows(
                self.tree,
                rows,
                start,
                nearest[start - before : stop - before],
                self._draw(stop - start, q),
                judge,
            )
            if watch is not None:
                watch(stop)
        self.X = self.tree.X[:n].copy()

    def fill(self, number: int) -> FloatArray:
        """Fill the missing entries of a row by the mean of its neighbours; return it (D,)."""
        gaps, rows = np.isnan(self.Y[number]), self._rows()
        if gaps.any():
            near = self._judge(rows)
            count = find_nearest(
                self.tree, self.X[number], number, self.k, near.found, near.sq_dists
            )
            write_mean(rows, near.found, count, NOBODY, near.f)
            self.Y[number, gaps] = near.f[gaps]
        return self.Y[number]

    def full_error(self) -> float:
        """Return the weighted sum of the errors of all rows, as the search counts them."""
        rows = self._rows()
        errors, _ = list_errors(self.tree, rows, self._judge(rows))
        return float(self.weights @ errors)

    def refine(
        self, n_sweeps: int = 1, watch: Callable[[int], object] | None = None
    ) -> list[float]:
        """Take each row up and put it where the whole error falls; return the errors on the way.

        `watch` hears after each sweep how many were made. An interrupt ends it between two blocks
        of rows, with every row in its place.
        """
        rows = self._rows()
        judge = self._judge(rows)
        n, q = self.X.shape
        nearest = self._nearest(rows)
        errors, reach = list_errors(self.tree, rows, judge)
        totals = [float(self.weights @ errors)]
        try:
            for sweep in range(n_sweeps):
                for start in range(0, n, BLOCK):
                    stop = min(start + BLOCK, n)
                    move_rows(
                        self.tree,
                        rows,
                        start,
                        nearest[start:stop],
                        self._draw(stop - start, q),
                        judge,
                        errors,
                        reach,
                    )
                self.X = self.tree.X[:n].copy()
                totals.append(float(self.weights @ errors))
                if watch is not None:
                    watch(sweep + 1)
        finally:
            self.X = self.tree.X[:n].copy()
        return totals

    # ---- inside -----------------------------------------------------------------------------

    def _append(self, Y: FloatArray, weights: FloatArray | None) -> None:
        new = np.array(Y, dtype=np.float64, ndmin=2)
        own = np.ones(len(new)) if weights is None else np.asarray(weights, dtype=np.float64)
        self.Y = new if not len(self.Y) else np.concatenate([self.Y, new])
        self.weights = np.concatenate([self.weights, own])

    def _rows(self) -> Rows:
        return rows_of(self.Y, self.weights)

    def _judge(self, rows: Rows) -> Judge:
        return judge_of(rows, self.k, self.search.include_self, self.error)

    def _draw(self, m: int, q: int) -> Tries:
        """Return the random numbers for m rows."""
        search = self.search
        if isinstance(search, Gaussian):
            Z = self.rng.standard_normal((m, search.n_candidates, q))
            return Tries(search.spread == "squared", Z, np.empty((m, 0, 2)), np.zeros(2))
        numbers = [
            (self.rng.standard_normal((1, q)), self.rng.random((search.n_steps, 2)))
            for _ in range(m)
        ]
        return Tries(
            False,
            np.stack([velocity for velocity, _ in numbers]),
            np.stack([lots for _, lots in numbers]),
            np.array(search.pull),
        )

    def _nearest_earlier(self, rows: Rows, first: int) -> IntArray:
        if self.by_product:
            return largest_earlier(rows.values, first, self.error)
        return self._nearest(rows, first=first, earlier=True)

    def _nearest(self, rows: Rows, **which: Any) -> IntArray:
        if self.error.is_shift_invariant and is_complete(rows):
            # About their mean less is lost to rounding.
            rows = rows._replace(values=rows.values - rows.values.mean(axis=0))
        return nearest_rows(rows, self.error, n_threads=self.n_threads, **which)[:, 0]
