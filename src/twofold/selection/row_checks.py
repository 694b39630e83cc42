"""What is checked, and said, about rows before methods see them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.utils import column_or_1d

from twofold.array_types import BoolArray, FloatArray, IntArray

# Fewer rows have no neighbours to speak of, and some methods crash on them.
FEWEST_ROWS = 4
# One column with a larger share of the variance decides nearly alone who is near whom.
DOMINANT_SHARE = 0.9


@dataclass(frozen=True, eq=False)
class DistinctRows:
    """The different rows of a table.

    Attributes
    ----------
    rows : ndarray of shape (m, D)
        Every row once, in the order of the table.
    first : ndarray of shape (m,)
        Where in the table each of them comes first.
    member : ndarray of shape (n,)
        Which of them each row of the table is.
    """

    rows: FloatArray
    first: IntArray
    member: IntArray

    @property
    def n_copies(self) -> int:
        """How many rows of the table are copies of an earlier one."""
        return len(self.member) - len(self.first)


def distinct_rows(Y: FloatArray) -> DistinctRows:
    """Return the different rows of Y (n, D), or say that there are too few to embed."""
    _, first, member = np.unique(Y, axis=0, return_index=True, return_inverse=True)
    if len(first) < FEWEST_ROWS:
        raise ValueError(
            f"Embeddings need at least {FEWEST_ROWS} different rows; got {len(Y)} rows, "
            f"{len(first)} of them different."
        )
    order = np.argsort(first)
    place = np.empty_like(order)
    place[order] = np.arange(len(order))
    return DistinctRows(Y[first[order]], first[order], place[member.reshape(-1)])


def data_notes(Y: FloatArray, n_copies: int, n_neighbors: int) -> list[str]:
    """Return what a reader of scores of distinct rows Y (n, D) should know about them."""
    notes = []
    if n_copies:
        notes.append(
            f"{n_copies} {'row is a copy' if n_copies == 1 else 'rows are copies'} of others: "
            "methods see every row once, and so do the scores."
        )
    most = most_scored_neighbors(len(Y))
    if n_neighbors > most:
        notes.append(
            f"{n_neighbors} neighbours are too many for {len(Y)} different rows: scores look at "
            f"{most}, less than half of them."
        )
    variances = Y.var(axis=0)
    largest = int(np.argmax(variances))
    if len(variances) > 1 and variances[largest] > DOMINANT_SHARE * variances.sum():
        notes.append(
            f"Column {largest} holds {100 * variances[largest] / variances.sum():.3g} % of the "
            "variance and decides nearly alone. If units differ, scale the columns: Scaled in "
            "Python, --scale on the command line."
        )
    return notes


def most_scored_neighbors(n: int) -> int:
    """Return the most neighbours that scores of n rows can look at."""
    return max(1, (n - 1) // 2)


def check_whole(value: Any, name: str, most: int | None = None, hint: str = "") -> int:
    """Return a whole number of at least 1, and at most ``most``."""
    is_whole = isinstance(value, (int, np.integer)) and not isinstance(value, (bool, np.bool_))
    if not is_whole or value < 1 or (most is not None and value > most):
        upper = "at least 1" if most is None else f"within [1, {most}]"
        raise ValueError(f"`{name}` must be a whole number {upper}; got {value!r}.{hint}")
    return int(value)


def checked_labels(labels: Any, n: int) -> Any:
    """Return labels (n,) as an array, or say what is wrong with them."""
    found = column_or_1d(labels)
    if len(found) != n:
        raise ValueError(f"`labels` must have one label for each of {n} rows; got {len(found)}.")
    return found


def label_notes(labels: Any) -> list[str]:
    """Say how many rows have no label, if some have none."""
    without = int((~has_label(labels)).sum())
    if not without:
        return []
    rows = "1 row has" if without == 1 else f"{without} rows have"
    return [f"{rows} no label and no part in the neighborhood_hit."]


def has_label(labels: Any) -> BoolArray:
    """Say which labels (n,) are there: None, NaN and empty text are none."""
    import pandas as pd

    is_empty = [isinstance(label, str) and not label.strip() for label in labels]
    return np.asarray(~(pd.isna(np.asarray(labels)) | np.array(is_empty, dtype=bool)))
