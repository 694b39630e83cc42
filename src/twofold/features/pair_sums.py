"""Sums over the columns of pairs of rows: what kernels of rows are made of.

Each pair is summed by the same compiled loop whatever rows lie beside it. So a row of a kernel
matrix is the same to the last bit alone or among others, which matrix products do not promise.
"""

from __future__ import annotations

import math

import numpy as np

from twofold.array_types import FloatArray
from twofold.compiled import compiled

PRODUCT, SQUARED_GAP, OVERLAP, GAP = 0, 1, 2, 3  # what is summed over the columns of a pair of rows
_BLOCK = 32  # rows of B that stay in the cache while the rows of A pass by


@compiled
def pair_sums(A: FloatArray, B: FloatArray, kind: int) -> FloatArray:
    """Return the sums (m, n) of one kind for rows A (m, D) with rows B (n, D)."""
    sums = np.empty((A.shape[0], B.shape[0]))
    for first in range(0, B.shape[0], _BLOCK):
        for j in range(A.shape[0]):
            for i in range(first, min(first + _BLOCK, B.shape[0])):
                total = 0.0
                if kind == PRODUCT:
                    for d in range(A.shape[1]):
                        total += A[j, d] * B[i, d]
                elif kind == SQUARED_GAP:
                    for d in range(A.shape[1]):
                        total += (A[j, d] - B[i, d]) ** 2
                elif kind == GAP:
                    for d in range(A.shape[1]):
                        total += abs(A[j, d] - B[i, d])
                else:
                    for d in range(A.shape[1]):  # ½(|a| + |b| - |a - b|) without the cancellation
                        low, high = min(A[j, d], B[i, d]), max(A[j, d], B[i, d])
                        total += max(low, 0.0) - min(high, 0.0)
                sums[j, i] = total
    return sums


@compiled
def own_sums(A: FloatArray, kind: int) -> FloatArray:
    """Return ``||a||²`` of each row for products, ``||a||₁`` for overlaps."""
    sums = np.zeros(A.shape[0])
    for j in range(A.shape[0]):
        for d in range(A.shape[1]):
            sums[j] += A[j, d] * A[j, d] if kind == PRODUCT else abs(A[j, d])
    return sums


@compiled
def exponentials(sq_dists: FloatArray, gamma: float) -> FloatArray:
    """Return ``exp(-gamma s)`` of sums (m, n), written over them."""
    for j in range(sq_dists.shape[0]):  # numpy's exp may round by the place in the whole array
        for i in range(sq_dists.shape[1]):
            sq_dists[j, i] = math.exp(-gamma * sq_dists[j, i])
    return sq_dists
