"""How wide the kernels of a density over latent points are."""

from __future__ import annotations

import numpy as np

from twofold.array_types import FloatArray


def scott_widths(X: FloatArray, weights: FloatArray, least_share: float = 0.0) -> FloatArray:
    """Return the widths (q,) of a density over latent points X (n, q) by Scott's rule.

    They are those of standard deviations, each at least ``least_share`` of the largest, and of 1
    along an axis on which all points are equal: none is 0.
    """
    n, q = X.shape
    shares = weights / weights.sum()
    gaps = X.astype(np.float64) - shares @ X
    deviation: FloatArray = np.sqrt(shares @ gaps**2)
    deviation = np.maximum(deviation, least_share * deviation.max())
    return np.where(deviation > 0, deviation, 1.0) * float(n ** (-1 / (q + 4)))
