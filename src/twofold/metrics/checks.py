"""Checks that every score makes of the tables it is given."""

from typing import Any

import numpy as np
from sklearn.utils import check_array

from twofold.array_types import FloatArray
from twofold.checks.rows import check_entries, check_numeric, is_lazy

# What takes the tables that are refused here.
INSTEAD = "`twofold.mixed.scaled_features(table)` makes numbers of categories and dates."


def checked_table(
    table: Any, name: str, *, allow_missing: bool = False, any_size: bool = False
) -> FloatArray:
    """Return a table of numbers as float64 (n, d), or say what is wrong with it.

    Their squares must be numbers, too, unless ``any_size`` says that only ranks are looked at.
    """
    if is_lazy(table):
        some = ".sample(frac=0.01)" if hasattr(table, "columns") else "[::100]"
        raise TypeError(
            f"`{name}` is a dask table, and its rows are compared with each other: pass a part "
            f"that fits into memory, such as one in a hundred, `{name}{some}.compute()`."
        )
    check_numeric(table, INSTEAD)
    if isinstance(table, np.ma.MaskedArray):
        table = np.ma.filled(table.astype(np.float64), np.nan)
    if np.ndim(table) == 1:
        raise ValueError(
            f"`{name}` must be a table of rows and columns; got {len(table)} single values. If "
            f"they are one column, pass np.reshape({name}, (-1, 1))."
        )
    array: FloatArray = check_array(
        table, dtype=np.float64, ensure_all_finite=False, input_name=name
    )
    if np.isinf(array).any():
        raise ValueError(f"`{name}` must be finite; {_first(np.isinf(array))} is infinite.")
    if not any_size:
        check_entries(array)
    if not allow_missing and np.isnan(array).any():
        raise ValueError(
            f"`{name}` must have no missing entries, as distances are measured in it; "
            f"{_first(np.isnan(array))} is NaN. Fill them first, e.g. by a model's `complete`."
        )
    return array


def check_same_rows(first: FloatArray, name: str, second: FloatArray, other_name: str) -> None:
    """Raise unless row i of both tables can be the same point."""
    if len(first) != len(second):
        raise ValueError(
            f"Row i of `{name}` and of `{other_name}` must be the same point; got "
            f"{len(first)} and {len(second)} rows."
        )


def check_neighbors(n_neighbors: Any, most: int, why: str) -> int:
    """Return a number of neighbours within [1, most]."""
    is_whole = isinstance(n_neighbors, (int, np.integer)) and not isinstance(n_neighbors, bool)
    if not is_whole or not 1 <= n_neighbors <= most:
        raise ValueError(
            f"A number of neighbours must be a whole number within [1, {most}] ({why}); "
            f"got {n_neighbors!r}."
        )
    return int(n_neighbors)


def _first(found: Any) -> str:
    row, column = np.argwhere(found)[0]
    more = int(found.sum()) - 1
    others = f" (and {more} more)" if more else ""
    return f"row {row}, column {column}{others}"
