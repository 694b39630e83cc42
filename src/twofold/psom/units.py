"""Data in a unit of their own size, so that squares neither overflow nor vanish.

Units are powers of two: dividing by one loses no digit.
"""

from __future__ import annotations

import numpy as np

from twofold.array_types import FloatArray

# Sums of squares of such values, and of their products with weights, are still numbers.
LARGEST = 1e140


def power_of_two(sizes: FloatArray) -> FloatArray:
    """Return the powers of two near sizes >= 0, and 1 for those that are 0."""
    positive = np.where(sizes > 0, sizes, 1.0)
    return np.asarray(2.0 ** np.clip(np.round(np.log2(positive)), -1022, 1022))


def data_unit(Y: FloatArray) -> float:
    """Return a power of two near the largest deviation of data Y (n, D) from their means."""
    values = Y.astype(np.float64)
    if np.isnan(values).all():
        return 1.0
    return float(power_of_two(np.nanmax(np.abs(values - np.nanmean(values, axis=0)))))


def check_range(Y: FloatArray) -> None:
    """Raise if squares of entries of Y (n, D) would leave the range of numbers."""
    if Y.dtype != np.float64:
        return  # float32 ends far below, and is computed with in float64
    rows = np.flatnonzero((np.abs(Y) > LARGEST).any(axis=1))
    if len(rows):
        raise ValueError(
            f"{len(rows)} row(s) have entries beyond {LARGEST:g} (first: row {rows[0]}), the "
            "squares of which leave the range of numbers; scale the data, or leave these out."
        )


def check_in_reach(values: FloatArray) -> FloatArray:
    """Return values (m, …) of a map at m places, or raise where polynomials left all numbers."""
    rows = np.flatnonzero(~np.isfinite(values).reshape(len(values), -1).all(axis=1))
    if len(rows):
        raise ValueError(
            f"{len(rows)} place(s) lie so far outside of the domain that the map leaves the range "
            f"of numbers (first: row {rows[0]}); pass places for which `in_domain` is True."
        )
    return values
