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

from twofold.array_types import FloatArray, IntArray
from twofold.engine.threads import count_threads, run_tasks
from twofold.features import L1, preimages
from twofold.features.data_kernels import Laplacian
from twofold.preimages.checks import check_loop
from twofold.preimages.points import FeaturePoints, PreImageMethod, PreImages, Status

_CANCELLED = 1e-3
_SMALLEST_SHARE = 2.0**-10
# Points at a time on each thread; a call sorts all columns anew, so not too few.
_AT_A_TIME = 256


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
        rows, alpha = target.rows, target.alpha
        start = rows[target.distances_to_rows().argmin(axis=1)]
        tasks = [slice(first, first + _AT_A_TIME) for first in range(0, len(alpha), _AT_A_TIME)]

        def work(part: slice) -> tuple[FloatArray, IntArray, IntArray]:
            begun = [start[part]]
            if target.start is not None:
                begun.append(target.start[part])
            return self._iterate(target.kernel, rows, alpha[part], begun)

        if not tasks:
            return PreImages.in_closed_form(target, start)
        found = run_tasks(work, tasks, count_threads(target.n_jobs))
        Y, status, n_iter = (np.concatenate(arrays) for arrays in zip(*found, strict=True))
        return PreImages(Y, status, n_iter, target.distances_to(Y))

    def _iterate(
        self, kernel: Laplacian, rows: FloatArray, alpha: FloatArray, starts: list[FloatArray]
    ) -> tuple[FloatArray, IntArray, IntArray]:
        """Return rows, status and evaluations of points with coefficients alpha (n, m)."""
        Z = starts[0].copy()
        sums = _weights(kernel, Z, rows, alpha).sum(axis=1)
        for other in starts[1:]:  # the start given counts only where it is nearer than any row
            better = _weights(kernel, other, rows, alpha).sum(axis=1) > sums
            Z[better] = other[better]
        status = np.full(len(Z), Status.ITERATION_LIMIT, dtype=np.int64)
        n_iter, share = np.zeros(len(Z), dtype=np.int64), np.ones(len(Z))
        goal, total = self._medians(kernel, Z, rows, alpha)
        while True:
            moves = np.abs(goal - Z).sum(axis=1) * kernel.number()
            status[(moves <= self.tol) & (status == Status.ITERATION_LIMIT)] = Status.CONVERGED
            status[(share < _SMALLEST_SHARE) & (status == Status.ITERATION_LIMIT)] = Status.STALLED
            active = np.flatnonzero((status == Status.ITERATION_LIMIT) & (n_iter < self.max_iter))
            if not len(active):
                return Z, status, n_iter
            trial = Z[active] + share[active, None] * (goal[active] - Z[active])
            next_goal, next_total = self._medians(kernel, trial, rows, alpha[active])
            n_iter[active] += 1
            grown = next_total > total[active]
            accepted = active[grown]
            Z[accepted], total[accepted] = trial[grown], next_total[grown]
            goal[accepted], share[accepted] = next_goal[grown], 1.0
            share[active[~grown]] *= 0.5

    @staticmethod
    def _medians(
        kernel: Laplacian, Z: FloatArray, rows: FloatArray, alpha: FloatArray
    ) -> tuple[FloatArray, FloatArray]:
        """Return where to go from rows Z (n, D), and the sums that are to grow there."""
        W = _weights(kernel, Z, rows, alpha)
        total, size = W.sum(axis=1), np.abs(W).sum(axis=1)
        # Cancelled weights have no median; without the negative ones they lead towards rows.
        W = np.where((total > _CANCELLED * size)[:, None], W, np.maximum(W, 0))
        sums = W.sum(axis=1, keepdims=True)
        goal = Z.copy()
        felt = sums[:, 0] > 0
        if felt.any():
            goal[felt] = preimages(L1(), rows, W[felt] / sums[felt])
        return goal, total


def _weights(kernel: Laplacian, Z: FloatArray, rows: FloatArray, alpha: FloatArray) -> FloatArray:
    return alpha * kernel.gram(Z, rows)
