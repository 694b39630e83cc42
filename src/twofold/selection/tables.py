"""Tables of any columns as numbers that methods and scores can take."""

import warnings
from collections.abc import Mapping
from typing import Any

import numpy as np

from twofold.latent.starts import fill_for_start
from twofold.mixed import has_other_columns, scaled_features


def numbers_of_table(
    Y: Any, kinds: Mapping[str, Any] | None, weights: Mapping[str, float] | None
) -> Any:
    """Return a table with categories, dates, or kinds or weights of columns as numbers (n, D).

    Its gaps are filled. Tables of numbers alone are returned as they are.
    """
    if not (kinds or weights or has_other_columns(Y)):
        return Y
    rows = scaled_features(Y, kinds, weights)
    if not np.isnan(rows).any():
        return rows
    warnings.warn(
        "Missing entries are filled by principal components, for this comparison only.",
        UserWarning,
        stacklevel=3,
    )
    return fill_for_start(rows)
