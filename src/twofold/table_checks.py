"""Checks of data tables that name the rows and columns at fault."""

from __future__ import annotations

import numpy as np

from twofold.array_types import FloatArray


def check_missing(Y: FloatArray, names: FloatArray | None = None, *, columns: bool = True) -> None:
    """Raise if a row of Y (n, D), or a column where that matters, has no observed entry."""
    missing = np.isnan(Y)
    if not missing.any():
        return
    rows = np.flatnonzero(missing.all(axis=1))
    if len(rows):
        raise ValueError(
            f"{len(rows)} row(s) have no observed entry (first: row {rows[0]}); a row needs at "
            "least one. Leave them out, e.g. `X[~np.isnan(X).all(axis=1)]`."
        )
    empty = np.flatnonzero(missing.all(axis=0))
    if columns and len(empty):
        label = f"'{names[empty[0]]}'" if names is not None else str(empty[0])
        raise ValueError(
            f"{len(empty)} column(s) have no observed entry (first: column {label}); nothing can "
            "be learned about them. Leave them out."
        )


def describe_rows(Y: FloatArray, limit: int = 6) -> str:
    """Return the first few values, for messages."""
    return np.array2string(Y.ravel()[:limit], precision=4, threshold=limit)
