"""Weighted medians of every column, for many points over the same rows.

A column's median is the t that minimises ``Σ_i w_i |t - y_i|``. Single weights may be negative, as
those of local polynomials are; with a positive sum the function is still piecewise linear and grows
to both sides, so its lowest corner is found by passing all of them in order. Columns are sorted
once. Points are passed in lanes, side by side, so that one pass through a sorted column serves
several; a point gets the same bits in any lane.
"""

from __future__ import annotations

import numpy as np

from twofold.array_types import FloatArray, IntArray
from twofold.compiled import compiled
from twofold.engine.threads import run_tasks

_LANES = 32
# Corners passed between two looks at whether the rest can be skipped.
_CORNERS = 32
# Points of a task, a multiple of the lanes: each task passes all columns.
_AT_A_TIME = 64


class SortedColumns:
    """Rows (m, D) with every column sorted."""

    def __init__(self, rows: FloatArray) -> None:
        order = np.argsort(rows, axis=0, kind="stable")
        self._values = np.ascontiguousarray(np.take_along_axis(rows, order, axis=0).T)
        self._order: IntArray = np.ascontiguousarray(order.T)

    def medians(self, W: FloatArray, n_threads: int = 1) -> FloatArray:
        """Return the medians (n, D) for weights W (n, m), each row of positive sum.

        Of several minima it is the lowest.
        """
        tasks = [slice(first, first + _AT_A_TIME) for first in range(0, len(W), _AT_A_TIME)]

        def work(part: slice) -> FloatArray:
            return _medians(np.ascontiguousarray(W[part]), self._values, self._order)

        if not tasks:
            return np.empty((0, len(self._values)))
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
            slope[:], height[:], lowest[:], best[:] = first_slope, 0, 0, values[d, 0]
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
    """End lanes that all negative weights together could not turn down again; return if all are.

    Such a lane goes on beside others, but nothing is lower than its lowest corner then, not even
    by rounding: what it finds does not depend on them.
    """
    ended = 0
    for k in range(_LANES):
        is_over = slope[k] >= steep[k]
        lowest[k] = -np.inf if is_over else lowest[k]
        ended += is_over
    return ended == _LANES
