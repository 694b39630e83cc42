"""Rows that users pass, whose squares must be numbers: this family sums up squared distances."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted, validate_data

from twofold.array_types import FloatArray
from twofold.checks.rows import check_differences, check_entries

# Latent steps of Gaussian embedding are squared distances, and squared again: sums of many fourth
# powers of values between these bounds neither overflow nor vanish. Single precision is computed
# with in double precision, but its latent points must be numbers of its own.
LARGEST, SMALLEST = 1e60, 1e-60
LARGEST_SINGLE, SMALLEST_SINGLE = 1e15, 1e-15


def check_range(Y: FloatArray, *, differences: bool) -> None:
    """Raise if squares of entries of Y (n, D), or of their differences, leave the numbers.

    Differences matter where rows are told apart by them: in a training set.
    """
    check_entries(Y, LARGEST, LARGEST_SINGLE)
    if differences:
        check_differences(Y, SMALLEST if Y.dtype == np.float64 else SMALLEST_SINGLE)


def training_rows(model: Any, X: Any, y: Any = "no_validation", **options: Any) -> Any:
    """Return the checked rows (n, D) of a training set, and their targets if there are any."""
    found = validate_data(model, X, y, dtype=[np.float64, np.float32], **options)
    check_range(found[0] if isinstance(found, tuple) else found, differences=True)
    return found


def new_rows(model: Any, X: Any) -> FloatArray:
    """Return the checked rows (m, D) that a fitted model is asked about."""
    check_is_fitted(model)
    Y: FloatArray = validate_data(model, X, dtype=[np.float64, np.float32], reset=False)
    check_range(Y, differences=False)
    return Y
