"""Distances of rows to centres, in blocks of rows, so that memory does not grow with both.

Rows are taken once each, equal ones with the sum of their weights, and in units that lose no
digits: centred and scaled by a power of two, squares and products of any table have room in double
precision, and nothing is rounded by the scaling.

Products of rows and centres are quick, ``||y - c||² = ||y||² + ||c||² - 2 y·c``, and wrong where
the two are near each other; there the entries are subtracted one by one.
"""

from dataclasses import dataclass, replace
from typing import Self

import numpy as np

from twofold.array_types import FloatArray
from twofold.compiled import compiled
from twofold.rowwise import blocks, power_of_two

# 2 MB, which stay in the cache until they are used.
BLOCK_VALUES = 2**18
MOST_ROWS = 1024
# Below this share of ||y||² + ||c||², ||y||² + ||c||² - 2 y·c has lost too many digits.
CANCELLED = 1e-6


def block_slices(n: int, width: int) -> list[slice]:
    """Return blocks of rows with ``width`` numbers each, small enough for threads to share out."""
    return blocks(n, max(width, BLOCK_VALUES // MOST_ROWS), at_a_time=BLOCK_VALUES)


def squared_distances(Z: FloatArray, C: FloatArray) -> FloatArray:
    """Return ``||z_i - c_l||²`` (m, k) of centred rows, accurate for near ones, too."""
    sq_dists = Z @ C.T
    _finish_distances(sq_dists, Z, C, (Z * Z).sum(axis=1), (C * C).sum(axis=1))
    return sq_dists


@compiled
def _finish_distances(
    sq_dists: FloatArray, Z: FloatArray, C: FloatArray, sq_rows: FloatArray, sq_centres: FloatArray
) -> None:
    """Turn products (m, k) of rows and centres into squared distances."""
    for i in range(sq_dists.shape[0]):
        for j in range(sq_dists.shape[1]):
            sq_dists[i, j] = sq_rows[i] + sq_centres[j] - 2 * sq_dists[i, j]
        for j in range(sq_dists.shape[1]):
            if sq_dists[i, j] < CANCELLED * (sq_rows[i] + sq_centres[j]):
                sq_dists[i, j] = squared_distance(Z[i], C[j], 1.0)


@compiled
def squared_distance(y: FloatArray, c: FloatArray, factor: float) -> float:
    """Return ``||factor (y - c)||²``, taken entry by entry in double precision."""
    total = 0.0
    for d in range(y.size):
        gap = (np.float64(y[d]) - np.float64(c[d])) * factor
        total += gap * gap
    return total


def merge_equal_rows(Y: FloatArray, weights: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return the distinct rows of positive weight, sorted, and the sums of their weights."""
    counted = weights > 0
    rows, member = np.unique(Y[counted], axis=0, return_inverse=True)
    summed = np.zeros(len(rows))
    np.add.at(summed, member.ravel(), weights[counted])
    return rows, summed


@dataclass(frozen=True)
class Units:
    """Coordinates in which a table is centred and its largest entry lies near 1."""

    shift: FloatArray
    factor: float

    @classmethod
    def of(cls, Y: FloatArray, weights: FloatArray | None = None) -> Self:
        """Return the units of Y (n, D), centred at its weighted mean."""
        ends = np.stack([Y.min(axis=0), Y.max(axis=0)]).astype(np.float64)
        size = _factor(ends)
        shift = np.average(Y * np.float64(size), axis=0, weights=weights) / size
        return cls(shift, _factor(ends - shift))

    def with_room_for(self, Y: FloatArray) -> Self:
        """Return units in which squares of Y (n, D), however far away, are numbers, too."""
        ends = np.stack([Y.min(axis=0), Y.max(axis=0)]).astype(np.float64)
        return replace(self, factor=min(self.factor, _factor(ends - self.shift)))

    def apply(self, Y: FloatArray) -> FloatArray:
        """Return Y (n, D) in these units, in double precision."""
        return np.ascontiguousarray((Y - self.shift) * self.factor)


def _factor(Y: FloatArray) -> float:
    """Return the power of two that brings the largest entry near 1."""
    return float(1 / power_of_two(np.abs(Y).max()))
