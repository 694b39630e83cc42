"""Data in a unit of their own size, so that squares neither overflow nor vanish.

Units are powers of two: dividing by one loses no digit.
"""

from __future__ import annotations

import numpy as np

from twofold.array_types import FloatArray


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
