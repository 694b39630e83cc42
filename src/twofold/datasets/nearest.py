"""The nearest point of a manifold with one free parameter.

The squared distance from a row to a curve may have one minimum a winding. All of them are bracketed
on a grid, each bracket is narrowed by golden sections, and the least value wins; so the answer is
global as long as the grid steps are short against the curve's radius of curvature.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

import numpy as np

from twofold.array_types import FloatArray, IntArray

GOLDEN = (np.sqrt(5) - 1) / 2
# 0.618 ** 75 = 2e-16: a bracket of any width shrinks to the rounding of its ends.
N_SECTIONS = 75
# Rows of the distance table held at once; with 512 nodes a block takes 4 MiB.
BLOCK_ROWS = 1024


# Squared distance of rows Y (..., D) to the points with parameters t, broadcast together.
SquaredDistance: TypeAlias = Callable[[FloatArray, FloatArray], FloatArray]


def nearest_parameter(sq_dist: SquaredDistance, Y: FloatArray, nodes: FloatArray) -> FloatArray:
    """Return, for each row of Y (n, D), the parameter (n,) of the nearest point.

    The parameter is sought between the first and the last of the rising `nodes`.
    """
    rows, cols = _bracket_minima(sq_dist, Y, nodes)
    lo = nodes[np.maximum(cols - 1, 0)]
    hi = nodes[np.minimum(cols + 1, len(nodes) - 1)]
    t, value = _narrow(sq_dist, Y[rows], lo, hi)
    order = np.lexsort((value, rows))
    # Each row brackets at least one minimum, so the firsts are the best of rows 0, 1, ..., n - 1.
    _, first = np.unique(rows[order], return_index=True)
    return t[order][first]


def _bracket_minima(
    sq_dist: SquaredDistance, Y: FloatArray, nodes: FloatArray
) -> tuple[IntArray, IntArray]:
    """Row and node indices of every local minimum on the grid, ends included."""
    rows, cols = [], []
    for start in range(0, len(Y), BLOCK_ROWS):
        table = sq_dist(nodes, Y[start : start + BLOCK_ROWS, None, :])
        walled = np.pad(table, ((0, 0), (1, 1)), constant_values=np.inf)
        is_low = (table <= walled[:, :-2]) & (table <= walled[:, 2:])
        block_rows, block_cols = np.nonzero(is_low)
        rows.append(block_rows + start)
        cols.append(block_cols)
    if not rows:
        return np.empty(0, dtype=np.intp), np.empty(0, dtype=np.intp)
    return np.concatenate(rows), np.concatenate(cols)


def _narrow(
    sq_dist: SquaredDistance, Y: FloatArray, lo: FloatArray, hi: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Golden-section search in each bracket; returns the parameters and their values."""
    a, b = hi - GOLDEN * (hi - lo), lo + GOLDEN * (hi - lo)
    value_a, value_b = sq_dist(a, Y), sq_dist(b, Y)
    for _ in range(N_SECTIONS):
        go_left = value_a <= value_b
        lo, hi = np.where(go_left, lo, a), np.where(go_left, b, hi)
        kept, value_kept = np.where(go_left, a, b), np.where(go_left, value_a, value_b)
        fresh = np.where(go_left, hi - GOLDEN * (hi - lo), lo + GOLDEN * (hi - lo))
        value_fresh = sq_dist(fresh, Y)
        a, b = np.where(go_left, fresh, kept), np.where(go_left, kept, fresh)
        value_a = np.where(go_left, value_fresh, value_kept)
        value_b = np.where(go_left, value_kept, value_fresh)
    return np.where(value_a <= value_b, a, b), np.minimum(value_a, value_b)
