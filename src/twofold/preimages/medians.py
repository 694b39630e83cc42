"""Weighted medians again and again, for the Laplacian kernel ``exp(-gamma ||y - y'||₁)``.

The distance to ψ falls as ``Σ_i α_i k(y, y_i)`` grows. The exponential lies above its tangent, so
for positive α it grows at least as much as

    Σ_i w_i (||y - y_i||₁ - ||y' - y_i||₁),    w_i = gamma α_i k(y, y_i),

when y moves to y', and the best y' has the weighted median of every column. With negative α the sum
need not grow: the step is shortened until it does. Medians take few different values, so the
iteration comes to an end, usually after some ten steps.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from twofold.array_types import BoolArray, FloatArray, IntArray
from twofold.engine.threads import count_threads
from twofold.features.data_kernels import Laplacian
from twofold.preimages.checks import check_loop
from twofold.preimages.points import FeaturePoints, PreImageMethod, PreImages, Status
from twofold.preimages.weighted_medians import SortedColumns
from twofold.rowwise import GAP, exponentials, in_tiles, pair_sums

_CANCELLED = 1e-3
_SMALLEST_SHARE = 2.0**-10


@dataclass(frozen=True)
class Medians(PreImageMethod):
    """Iterated weighted medians.

    Parameters
    ----------
    tol : float
        A row has converged once a step is below this share of the kernel's width.
    max_iter : int
        Most evaluations for each row.
    """

    tol: float = 1e-6
    max_iter: int = 100

    name: ClassVar[str] = "medians"
    needs: ClassVar[str] = "a Laplacian kernel"

    def __post_init__(self) -> None:
        check_loop(self.tol, self.max_iter)

    def fits(self, kernel: Any) -> str | None:
        """Return why the method fits that kernel, None if it does not."""
        if isinstance(kernel, Laplacian):
            return "Laplacian kernel, where each step is a weighted median of every column"
        return None

    def find(self, target: FeaturePoints) -> PreImages:
        """Return the pre-images of the points."""
        self.check(target.kernel)
        space = _LaplacianSpace(target)
        Z = target.rows[target.distances_to_rows().argmin(axis=1)]
        n = len(Z)
        before = np.full(n, -np.inf)
        total, goal, _ = space.look(Z, np.arange(n), before)
        if target.start is not None:  # it counts only where it is nearer than any row
            there, its_goal, better = space.look(target.start, np.arange(n), total)
            Z[better], total[better] = target.start[better], there[better]
            goal[better] = its_goal[better]
        status = np.full(n, Status.ITERATION_LIMIT, dtype=np.int64)
        n_iter, share = np.zeros(n, dtype=np.int64), np.ones(n)
        while True:
            moves = np.abs(goal - Z).sum(axis=1) * space.gamma
            status[(moves <= self.tol) & (status == Status.ITERATION_LIMIT)] = Status.CONVERGED
            status[(share < _SMALLEST_SHARE) & (status == Status.ITERATION_LIMIT)] = Status.STALLED
            active = np.flatnonzero((status == Status.ITERATION_LIMIT) & (n_iter < self.max_iter))
            if not len(active):
                return PreImages(Z, status, n_iter, target.distances_to(Z))
            trial = Z[active] + share[active, None] * (goal[active] - Z[active])
            there, next_goal, grown = space.look(trial, active, total[active])
            n_iter[active] += 1
            accepted = active[grown]
            Z[accepted], total[accepted] = trial[grown], there[grown]
            goal[accepted], share[accepted] = next_goal[grown], 1.0
            share[active[~grown]] *= 0.5


class _LaplacianSpace:
    """Sums ``Σ_i α_i k(y, y_i)`` that are to grow, and where they do."""

    def __init__(self, target: FeaturePoints) -> None:
        self.rows, self.alpha = target.rows, target.alpha
        self.gamma = target.kernel.number()
        self.columns = SortedColumns(target.rows)
        self.n_threads = count_threads(target.n_jobs)

    def look(
        self, Z: FloatArray, which: IntArray, before: FloatArray
    ) -> tuple[FloatArray, FloatArray, BoolArray]:
        """Return the sums (a,) of points `which` (a,) at rows Z (a, D), and where to go from there.

        The third array says where the sums are larger than `before` (a,). There is nowhere to go
        but Z itself from other rows.
        """
        total, goal, grown = in_tiles(
            lambda tile: self._look(Z[tile], which[tile], before[tile]), len(Z), self.n_threads
        )
        return total, goal, grown.astype(bool)

    def _look(
        self, Z: FloatArray, which: IntArray, before: FloatArray
    ) -> tuple[FloatArray, FloatArray, BoolArray]:
        W = exponentials(pair_sums(np.ascontiguousarray(Z), self.rows, GAP), self.gamma)
        W *= self.alpha[which]
        total, size = W.sum(axis=1), np.abs(W).sum(axis=1)
        grown = total > before
        # Cancelled weights have no median; without the negative ones they lead towards rows.
        is_cancelled = ~(total > _CANCELLED * size)
        W[is_cancelled] = np.maximum(W[is_cancelled], 0)
        felt = np.flatnonzero(grown & (W.sum(axis=1) > 0))
        goal = Z.copy()
        goal[felt] = self.columns.medians(W[felt])
        return total, goal, grown
