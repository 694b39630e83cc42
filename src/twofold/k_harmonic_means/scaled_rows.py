"""The rows as the sums over distances need them: each once, and in units that lose no digits.

Equal rows are one row with the sum of their weights. Centred and scaled by a power of two, squares
and products of any table have room in double precision, and nothing is rounded by the scaling.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Self

import numpy as np

from twofold.array_types import FloatArray


def merge_equal_rows(Y: FloatArray, weights: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return the distinct rows of positive weight, sorted, and the sums of their weights."""
    counted = weights > 0
    rows, member = np.unique(Y[counted], axis=0, return_inverse=True)
    summed = np.zeros(len(rows))
    np.add.at(summed, member.ravel(), weights[counted])
    return rows, summed


@dataclass(frozen=True)
class Units:
    """Coordinates in which a table is centred and its largest entry lies between 1/2 and 1."""

    shift: FloatArray
    factor: float

    @classmethod
    def of(cls, Y: FloatArray, weights: FloatArray | None = None) -> Self:
        """Return the units of Y (n, D), centred at its weighted mean."""
        ends = np.stack([Y.min(axis=0), Y.max(axis=0)]).astype(np.float64)
        size = power_of_two(ends)
        shift = np.average(Y * np.float64(size), axis=0, weights=weights) / size
        return cls(shift, power_of_two(ends - shift))

    def with_room_for(self, Y: FloatArray) -> Self:
        """Return units in which squares of Y (n, D), however far away, are numbers, too."""
        ends = np.stack([Y.min(axis=0), Y.max(axis=0)]).astype(np.float64)
        return replace(self, factor=min(self.factor, power_of_two(ends - self.shift)))

    def apply(self, Y: FloatArray) -> FloatArray:
        """Return Y (n, D) in these units, in double precision."""
        return np.ascontiguousarray((Y - self.shift) * self.factor)


def power_of_two(Y: FloatArray) -> float:
    """Return the power of two that brings the largest entry to between 1/2 and 1."""
    # A power of two, so that scaling loses nothing; within 1000, so that it has an inverse.
    return float(np.ldexp(1.0, -int(np.clip(np.frexp(np.abs(Y).max())[1], -1000, 1000))))
