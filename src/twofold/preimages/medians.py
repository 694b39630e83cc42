"""Weighted medians of every column, and again and again for the Laplacian kernel.

A column's median is the t that minimises ``Σ_i w_i |t - y_i|``. Single weights may be negative, as
those of local polynomials are; with a positive sum the function is still piecewise linear and grows
to both sides, so its lowest corner is found by passing all of them in order. Columns are sorted
once. Points are passed in lanes, side by side, so that one pass through a sorted column serves
several; a point gets the same bits in any lane.

Under the Laplacian kernel ``exp(-gamma ||y - y'||₁)`` the distance to ψ falls as
``Σ_i α_i k(y, y_i)`` grows. The exponential lies above its tangent, so for positive α it grows at
least as much as

    Σ_i w_i (||y - y_i||₁ - ||y' - y_i||₁),    w_i = gamma α_i k(y, y_i),

when y moves to y', and the best y' has the weighted median of every column. With negative α the sum
need not grow: the step is shortened until it does. Medians take few different values, so the
iteration comes to an end, usually after some ten steps.
"""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from twofold.array_types import BoolArray, FloatArray, IntArray
from twofold.compiled import compiled
from twofold.engine.threads import run_tasks, slices
from twofold.features import Laplacian
from twofold.preimages.points import FeaturePoints, Iterative, PreImages, Status
from twofold.rowwise import GAP, exponentials, in_tiles, pair_sums
from twofold.small_systems import assign

# Sums of weights below this share of the sum of their sizes are cancelled; see `criteria`.
_CANCELLED = 1e-3
_SMALLEST_SHARE = 2.0**-10
_LANES = 32
# Corners passed between two looks at whether the rest can be skipped.
_CORNERS = 32
# Points of a task, a multiple of the lanes: each task passes all columns.
_AT_A_TIME = 64


@dataclass(frozen=True)
class Medians(Iterative):
    """Iterated weighted medians.

    Parameters
    ----------
    tol, max_iter : float, int
        A row has converged once its step is below this share of the kernel's width; and the maximum
        number of evaluations for each row.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from twofold import KernelPCA
    >>> from twofold.preimages import Medians
    >>> model = KernelPCA(2, kernel="laplacian", preimage=Medians()).fit(load_iris().data)
    >>> model.inverse_transform(model.embedding_[:2]).shape
    (2, 4)
    """

    tol: float = 1e-6
    max_iter: int = 100

    name = "medians"
    needs = "a Laplacian kernel"
    suits: ClassVar = {
        Laplacian: "Laplacian kernel, where each step is a weighted median of every column"
    }

    def find(self, target: FeaturePoints) -> PreImages:
        """Return the pre-images of the points."""
        self.check(target.kernel)
        space = _LaplacianSpace(target)
        Z = target.rows[target.distances_to_rows().argmin(axis=1)]
        n = len(Z)
        total, goal, _ = space.look(Z, np.arange(n), np.full(n, -np.inf))
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
        self.n_threads = target.n_threads

    def look(
        self, Z: FloatArray, which: IntArray, before: FloatArray
    ) -> tuple[FloatArray, FloatArray, BoolArray]:
        """Return sums (a,) of points `which` at rows Z (a, D), where to go, and which grew."""
        # There is nowhere to go but Z itself from rows whose sums have not grown.
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
        # A median of weights without a positive sum lies at infinity.
        felt = np.flatnonzero(grown & (W.sum(axis=1) > 0))
        goal = Z.copy()
        goal[felt] = self.columns.medians(W[felt])
        return total, goal, grown


class SortedColumns:
    """Rows (m, D) with every column sorted."""

    def __init__(self, rows: FloatArray) -> None:
        order = np.argsort(rows, axis=0, kind="stable")
        self._values = np.ascontiguousarray(np.take_along_axis(rows, order, axis=0).T)
        self._order: IntArray = np.ascontiguousarray(order.T)

    def medians(self, W: FloatArray, n_threads: int = 1) -> FloatArray:
        """Return the lowest medians (n, D) for weights W (n, m), each row of positive sum."""

        def work(part: slice) -> FloatArray:
            return _medians(np.ascontiguousarray(W[part]), self._values, self._order)

        tasks = slices(len(W), _AT_A_TIME) or [slice(0, 0)]
        return np.concatenate(run_tasks(work, tasks, n_threads))


@compiled
def _medians(W: FloatArray, values: FloatArray, order: IntArray) -> FloatArray:
    """Return the medians (n, D) for weights (n, m), sorted columns (D, m) and whose values."""
    n, m = W.shape
    found = np.empty((n, values.shape[0]))
    lanes = np.zeros((m, _LANES))  # twice the weights: by so much corners turn the slope
    first_slope, steep = np.empty(_LANES), np.empty(_LANES)
    slope, height = np.empty(_LANES), np.empty(_LANES)
    lowest, best = np.empty(_LANES), np.empty(_LANES)
    for first in range(0, n, _LANES):
        used = min(_LANES, n - first)
        lanes[:], first_slope[:], steep[:] = 0, 0, 0
        for k in range(used):
            for i in range(m):
                lanes[i, k] = 2 * W[first + k, i]
                first_slope[k] -= W[first + k, i]
                steep[k] -= min(lanes[i, k], 0.0)
        for d in range(values.shape[0]):
            assign(slope, first_slope)
            height[:], lowest[:], best[:] = 0, 0, values[d, 0]
            before = values[d, 0]
            for start in range(0, m, _CORNERS):
                for i in range(start, min(start + _CORNERS, m)):
                    value, row = values[d, i], order[d, i]
                    gap = value - before
                    before = value
                    for k in range(_LANES):
                        height[k] += slope[k] * gap
                        is_lower = height[k] < lowest[k]
                        lowest[k] = height[k] if is_lower else lowest[k]
                        best[k] = value if is_lower else best[k]
                        slope[k] += lanes[row, k]
                if _end_lanes(slope, steep, lowest):
                    break
            for k in range(used):
                found[first + k, d] = best[k]
    return found


@compiled
def _end_lanes(slope: FloatArray, steep: FloatArray, lowest: FloatArray) -> bool:
    """End lanes that all negative weights together could not turn down again; return if all are."""
    # Such a lane goes on beside others, but nothing is lower than its lowest corner then, not even
    # by rounding: what it finds does not depend on them.
    ended = 0
    for k in range(_LANES):
        is_over = slope[k] >= steep[k]
        lowest[k] = -np.inf if is_over else lowest[k]
        ended += is_over
    return ended == _LANES
