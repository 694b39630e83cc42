"""Ranks of all points as seen from some of them, in data and in latent space, tallied at once.

The rank of point j seen from point i is its place when all others are sorted by distance, 1 to
n - 1, equal distances by index:

    ρ_ij = 1 + |{k ≠ i : d_ik < d_ij or (d_ik = d_ij and k < j)}|

in data space, and r_ij likewise in latent space. Everything co-ranking curves need is a sum over
pairs that one pass over the pairs can take, without the (n - 1) × (n - 1) matrix:

    row SAME      [ρ]  pairs with ρ = r
    row CLOSER    [ρ]  pairs with ρ > r (intrusions)
    row FARTHER   [r]  pairs with ρ < r (extrusions)
    row CLOSER_BY [r]  Σ ρ - r over intrusions
    row FARTHER_BY[ρ]  Σ r - ρ over extrusions

Distances are sums of squared differences in a fixed order, not by a matrix product: equal rows
then have equal distances to the last bit and ties are ties.
"""

from __future__ import annotations

import numpy as np

from twofold.array_types import FloatArray, IntArray
from twofold.compiled import compiled_in_order

SAME, CLOSER, FARTHER, CLOSER_BY, FARTHER_BY = range(5)
N_SUMS = 5

# Rows of distances that are computed together, so that a tile of points is read once for all.
ROWS_AT_ONCE = 8
TILE_ENTRIES = 2**15  # 256 KB of points, the second-level cache of most processors


def scaled_columns(A: FloatArray) -> FloatArray:
    """Return A (n, d) as (d, n), scaled by a power of two so that no squared distance overflows.

    Such a factor changes no digit, so it changes no rank. Nor does leaving out constant columns.
    """
    A = A[:, A.max(axis=0) > A.min(axis=0)]
    if A.shape[1] == 0:
        return np.zeros((1, len(A)))
    _, exponent = np.frexp(np.abs(A).max())
    return np.ascontiguousarray(np.ldexp(A, -exponent).T)


def tally_ranks(
    data: FloatArray, latent: FloatArray, queries: IntArray, Q: IntArray, sums: IntArray
) -> None:
    """Add the ranks of all n points seen from ``queries`` to ``sums`` (5, n) and ``Q`` (K, K).

    ``data`` (D, n) and ``latent`` (q, n) hold a point a column; ``Q[k - 1, l - 1]`` counts pairs
    with ρ = k and r = l, as far as the array goes.
    """
    rank = np.empty(data.shape[1], dtype=np.int32)
    for start in range(0, len(queries), ROWS_AT_ONCE):
        block = queries[start : start + ROWS_AT_ONCE]
        _add_pairs(_sort_points(data, block), _sort_points(latent, block), rank, Q, sums)


def _sort_points(points: FloatArray, queries: IntArray) -> IntArray:
    """Return for each query all points, nearest first, itself at place 0; ties by index."""
    distances = np.empty((len(queries), points.shape[1]))
    _squared_distances(points, queries, distances)
    # An unstable sort and a repair of ties is several times faster than a stable sort.
    order = np.argsort(distances, axis=1)
    _sort_ties_by_index(distances, order)
    return order


@compiled_in_order
def _sort_ties_by_index(distances: FloatArray, order: IntArray) -> None:
    """Put points of equal distance in each row of ``order`` in the order of their index."""
    for b in range(len(order)):
        row, n = order[b], order.shape[1]
        start = 0
        before = distances[b, row[0]]
        for k in range(1, n + 1):
            now = distances[b, row[k]] if k < n else np.inf
            if now != before:
                if k - start > 1:
                    row[start:k].sort()
                start, before = k, now


@compiled_in_order
def _add_pairs(
    data_order: IntArray, latent_order: IntArray, rank: IntArray, Q: IntArray, sums: IntArray
) -> None:
    """Tally pairs: each row lists the points seen from one query, itself at place 0."""
    size, n = len(Q), data_order.shape[1]
    for b in range(len(data_order)):
        for k in range(n):
            rank[data_order[b, k]] = k
        for r in range(1, n):
            rho = rank[latent_order[b, r]]
            if rho > r:
                sums[CLOSER, rho] += 1
                sums[CLOSER_BY, r] += rho - r
            elif rho < r:
                sums[FARTHER, r] += 1
                sums[FARTHER_BY, rho] += r - rho
            else:
                sums[SAME, r] += 1
            if rho <= size and r <= size:
                Q[rho - 1, r - 1] += 1


@compiled_in_order
def _squared_distances(points: FloatArray, queries: IntArray, out: FloatArray) -> None:
    """Write the squared distances of ``points`` (d, n) from some of them to rows of ``out``.

    A query's distance to itself is -1, so that it comes first even where others are equal to it.
    """
    d, n = points.shape
    width = max(128, TILE_ENTRIES // d)
    whole = d - d % 4
    for start in range(0, n, width):
        stop = min(start + width, n)
        for b in range(len(queries)):
            i = queries[b]
            row = out[b, start:stop]
            row[:] = 0.0
            # Four columns at a time, to read and write the sum only once for them.
            for m in range(0, whole, 4):
                y0, y1, y2, y3 = points[m, i], points[m + 1, i], points[m + 2, i], points[m + 3, i]
                p0, p1 = points[m, start:stop], points[m + 1, start:stop]
                p2, p3 = points[m + 2, start:stop], points[m + 3, start:stop]
                for j in range(len(row)):
                    g0, g1, g2, g3 = p0[j] - y0, p1[j] - y1, p2[j] - y2, p3[j] - y3
                    row[j] += (g0 * g0 + g1 * g1) + (g2 * g2 + g3 * g3)
            for m in range(whole, d):
                y0, p0 = points[m, i], points[m, start:stop]
                for j in range(len(row)):
                    g0 = p0[j] - y0
                    row[j] += g0 * g0
    for b in range(len(queries)):
        out[b, queries[b]] = -1.0
