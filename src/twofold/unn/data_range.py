"""Whether squares of data are numbers: this family works with sums of squared distances."""

from __future__ import annotations

import numpy as np

from twofold.array_types import FloatArray
from twofold.checks.rows import check_differences, check_entries

# Latent steps of Gaussian embedding are squared distances, and squared again: sums of many fourth
# powers of values between these bounds neither overflow nor vanish. Single precision is computed
# with in double precision, but its latent points must be numbers of its own.
LARGEST, SMALLEST = 1e60, 1e-60
LARGEST_SINGLE, SMALLEST_SINGLE = 1e15, 1e-15


def check_range(Y: FloatArray, *, differences: bool = True) -> None:
    """Raise if squares of entries of Y (n, D), or of their differences, leave the numbers.

    Parameters
    ----------
    Y : (n, D)
        Finite, or NaN where entries are missing.
    differences : bool
        Whether rows are told apart by how they differ from each other: those of a training set.
    """
    check_entries(Y, LARGEST, LARGEST_SINGLE)
    if differences:
        check_differences(Y, SMALLEST if Y.dtype == np.float64 else SMALLEST_SINGLE)
