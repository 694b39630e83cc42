"""How much rows count, checked in one place."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils.validation import _check_sample_weight

from twofold.array_types import FloatArray

# Products of such weights with squares of data are numbers, and so are their sums.
LARGEST, SMALLEST = 1e60, 1e-60


def checked_weights(sample_weight: Any, Y: Any) -> FloatArray:
    """Return the weights (n,) of the rows of Y (n, D) that a user passed; ones if None.

    They must be finite and not negative, the largest of them neither huge nor next to nothing.
    """
    weights: FloatArray = _check_sample_weight(
        sample_weight, Y, dtype=np.float64, ensure_non_negative=True
    )
    largest = float(weights.max(initial=0.0))
    if largest > 0 and not SMALLEST <= largest <= LARGEST:
        raise ValueError(
            f"The largest entry of `sample_weight` is {largest:.3g}; sums weighted by it leave the "
            f"range of numbers. It must lie between {SMALLEST:g} and {LARGEST:g}: divide all "
            "weights by a number of their size."
        )
    return weights
