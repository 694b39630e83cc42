"""Weighted sums of kernel values for points that have weights on few rows.

Regression gives a point weights on its neighbours only, a few hundredths of all rows. Loops over
these take less time than products with all rows, which kernel PCA's full weights need.
"""

from __future__ import annotations

import math
from typing import TypeAlias

import numpy as np

from twofold.array_types import FloatArray, IntArray
from twofold.compiled import compiled

Sums: TypeAlias = tuple[FloatArray, FloatArray, FloatArray]
"""Sums (n,), the sums of the sizes of what is added up (n,), and weighted sums of rows (n, D)."""


class SparseWeights:
    """Rows (m, D) and the weights (n, m) of those points that have few."""

    def __init__(self, rows: FloatArray, alpha: FloatArray) -> None:
        m, D = rows.shape
        counts = np.count_nonzero(alpha, axis=1)
        # A point's own weights decide, so that others beside it change nothing. The numbers weigh
        # a loop's additions and exponentials against those of matrix products.
        self.is_few = counts * (D + 10) <= m * (D / 4 + 8)
        few = np.flatnonzero(self.is_few)
        points, self._columns = np.nonzero(alpha[few])
        self._weights = alpha[few[points], self._columns]
        ends = np.cumsum(np.where(self.is_few, counts, 0))
        self._first = np.concatenate([[0], ends]).astype(np.int64)
        self._rows = rows

    def gaussian(self, Z: FloatArray, which: IntArray, gamma: float) -> Sums:
        """Return ``Σ w``, ``Σ |w|`` and ``Σ w (y_i - z)``, ``w = α_i exp(-gamma ||z - y_i||²)``."""
        return _gaussian(Z, which, self._rows, self._first, self._columns, self._weights, gamma)

    def polynomial(
        self, Z: FloatArray, which: IntArray, degree: int, gamma: float, coef0: float
    ) -> Sums:
        """Return ``Σ w b``, ``Σ |w b|`` and ``Σ w y_i``, ``w = α_i b^(p-1)``, b the base."""
        return _polynomial(
            Z, which, self._rows, self._first, self._columns, self._weights, degree, gamma, coef0
        )


@compiled
def _gaussian(
    Z: FloatArray,
    which: IntArray,
    rows: FloatArray,
    first: IntArray,
    columns: IntArray,
    weights: FloatArray,
    gamma: float,
) -> Sums:
    n, D = Z.shape
    total, size, pull = np.zeros(n), np.zeros(n), np.zeros((n, D))
    for j in range(n):
        for e in range(first[which[j]], first[which[j] + 1]):
            i = columns[e]
            sq_dist = 0.0
            for d in range(D):
                sq_dist += (rows[i, d] - Z[j, d]) * (rows[i, d] - Z[j, d])
            weight = weights[e] * math.exp(-gamma * sq_dist)
            total[j] += weight
            size[j] += abs(weight)
            for d in range(D):
                pull[j, d] += weight * (rows[i, d] - Z[j, d])
    return total, size, pull


@compiled
def _polynomial(
    Z: FloatArray,
    which: IntArray,
    rows: FloatArray,
    first: IntArray,
    columns: IntArray,
    weights: FloatArray,
    degree: int,
    gamma: float,
    coef0: float,
) -> Sums:
    n, D = Z.shape
    total, size, pull = np.zeros(n), np.zeros(n), np.zeros((n, D))
    for j in range(n):
        for e in range(first[which[j]], first[which[j] + 1]):
            i = columns[e]
            product = 0.0
            for d in range(D):
                product += Z[j, d] * rows[i, d]
            base = gamma * product + coef0
            weight = weights[e]
            for _ in range(degree - 1):
                weight *= base
            total[j] += weight * base
            size[j] += abs(weight * base)
            for d in range(D):
                pull[j, d] += weight * rows[i, d]
    return total, size, pull
