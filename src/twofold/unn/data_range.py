"""Whether data suit this family.

Their squares must be numbers, for sums of squared distances are what it works with; and there must
be more rows than neighbours.
"""

from __future__ import annotations

import warnings

import numpy as np

from twofold.array_types import FloatArray
from twofold.checks.rows import check_differences, check_entries

# Latent steps of Gaussian embedding are squared distances, and squared again: sums of many fourth
# powers of values between these bounds neither overflow nor vanish. Single precision is computed
# with in double precision, but its latent points must be numbers of its own.
LARGEST, SMALLEST = 1e60, 1e-60
LARGEST_SINGLE, SMALLEST_SINGLE = 1e15, 1e-15
# As many as the models take unless told: who has no more rows than that sees it without a warning.
FEW_NEIGHBORS = 5


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


def warn_of_many_neighbors(n_neighbors: int, n: int) -> None:
    """Say so if all of n distinct rows are neighbours of each, so that every mean is the same."""
    if n_neighbors >= n and n_neighbors > FEW_NEIGHBORS:
        warnings.warn(
            f"n_neighbors={n_neighbors} of {n} distinct rows are all of them: the way back leads "
            "to their mean from everywhere. Take fewer neighbours, or more rows.",
            UserWarning,
            stacklevel=2,
        )
