"""What people know about the rows of a model beside the numbers: names, labels, image shape.

Fitting never looks at them. Pictures do: they colour by label, find rows by name and draw rows as
images. They are saved with the model, so that a map opened next year still says what is on it.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

NoteArray: TypeAlias = npt.NDArray[Any]

# The name of a label column that was given without one.
UNNAMED = "label"
# Below it Python writes hours with one digit.
TEN_HOURS = 36_000
# What is listed when a name is not found.
SHOWN_NAMES = 8


@dataclass(frozen=True, eq=False)
class RowNotes:
    """Notes on n rows."""

    names: NoteArray | None = None  # (n,) text
    # Columns of n values by name: text, "" for none, or numbers, NaN for none.
    labels: dict[str, NoteArray] = field(default_factory=dict)
    # The levels of labels whose type has an order, from the lowest to the highest.
    orders: dict[str, list[str]] = field(default_factory=dict)
    # (height, width) or (height, width, 3), what a row's features fill
    image_shape: tuple[int, ...] | None = None

    def updated(
        self, names: Any, labels: Any, image_shape: Any, n: int, n_features: int
    ) -> RowNotes:
        """Return the notes on n rows with what is not None in place of what was noted."""
        notes = self if names is None else self.with_names(names, n)
        notes = notes if labels is None else notes.with_labels(labels, n)
        return notes if image_shape is None else notes.with_image_shape(image_shape, n_features)

    def with_names(self, names: Any, n: int) -> RowNotes:
        """Return the notes with other names of the rows."""
        found = _as_text(_column(names))
        _check_length("names", found, n)
        return replace(self, names=found)

    def with_labels(self, labels: Any, n: int) -> RowNotes:
        """Return the notes with other labels: a column, or several as a mapping or a frame."""
        if not isinstance(labels, Mapping) and not hasattr(labels, "columns"):
            labels = {getattr(labels, "name", None) or UNNAMED: labels}
        names = list(labels.columns) if hasattr(labels, "columns") else list(labels)
        columns = {str(name): _column(_with_starts(labels[name])) for name in names}
        orders = {str(name): order for name in names if (order := order_of(labels[name]))}
        for name, column in columns.items():
            _check_length(f"labels[{name!r}]", column, n)
            if column.dtype.kind not in "iuf" or name in orders:
                columns[name] = _as_text(column)
        return replace(self, labels=columns, orders=orders)

    def with_image_shape(self, shape: Any, n_features: int) -> RowNotes:
        """Return the notes with another shape of images."""
        try:
            found = tuple(int(side) for side in shape)
        except (TypeError, ValueError, OverflowError) as error:
            raise ValueError(
                "`image_shape` must be (height, width) or (height, width, 3), whole numbers; got "
                f"{shape!r}."
            ) from error
        is_image = len(found) == 2 or (len(found) == 3 and found[2] == 3)
        if not is_image or math.prod(found) != n_features or min(found) < 1:
            raise ValueError(
                "`image_shape` must be (height, width) or (height, width, 3) and fill the "
                f"{n_features} features of a row; got {found}, which fills {math.prod(found)}."
            )
        return replace(self, image_shape=found)

    def with_more_names(self, names: NoteArray | None, n: int) -> RowNotes:
        """Return the notes on n rows, of which the last have names that are new, None for none."""
        notes = self.for_rows(n)
        if names is None:
            return notes
        before = np.full(n, "") if notes.names is None else notes.names
        return replace(notes, names=np.concatenate([before[: n - len(names)], names]))

    def row_called(self, name: str) -> int:
        """Return the number of the row with a name, from 0."""
        known = [] if self.names is None else [str(known) for known in self.names]
        if name not in known:
            shown = ", ".join(repr(other) for other in known[:SHOWN_NAMES])
            more = ", …" if len(known) > SHOWN_NAMES else ""
            there = f"are {shown}{more}" if known else "have no names: pass a number, from 0"
            raise ValueError(f"No row is called {name!r}. The rows {there}.")
        if known.count(name) > 1:
            n = known.count(name)
            raise ValueError(f"{n} rows are called {name!r}; pass a number, from 0.")
        return known.index(name)

    def for_rows(self, n: int) -> RowNotes:
        """Return the notes for n rows: those that were added later have no name and no label."""
        names = None if self.names is None else _longer(self.names, n)
        return replace(self, names=names, labels={k: _longer(v, n) for k, v in self.labels.items()})


def names_in(X: Any) -> NoteArray | None:
    """Return the names (n,) that a data frame has for its rows: an index of texts or dates.

    Numbers count rows more often than they name them.
    """
    index: Any = getattr(X, "index", None) if hasattr(X, "columns") else None
    if getattr(index, "nlevels", 0) != 1 or index.dtype.kind in "biufcm":
        return None
    names = _as_text(_column(index))
    return names if (names != "").any() else None


def order_of(values: Any) -> list[str]:
    """Return the levels of a column of ordered categories, none for other columns."""
    dtype = getattr(values, "dtype", None)
    # pandas says that categories have an order, polars calls those Enum.
    has_order = getattr(dtype, "ordered", False) or type(dtype).__name__ == "Enum"
    return [text_of(level) for level in dtype.categories] if dtype is not None and has_order else []


def _with_starts(values: Any) -> Any:
    """Return a column with the times at which its periods begin, such as months, others as is."""
    if type(getattr(values, "dtype", None)).__name__ != "PeriodDtype":
        return values
    return getattr(values, "dt", values).to_timestamp(how="start")


def _column(values: Any) -> NoteArray:
    column = np.asarray(values)
    # pandas has numbers that may be missing, and makes objects of them.
    if column.dtype == object and getattr(getattr(values, "dtype", None), "kind", "O") in "iuf":
        column = values.to_numpy(dtype=np.float64, na_value=np.nan)
    if column.ndim != 1:
        raise ValueError(f"Expected one value for each row; got an array of shape {column.shape}.")
    return column


def _as_text(column: NoteArray) -> NoteArray:
    if column.dtype.kind == "M":  # as ISO dates, days without a time; lists of them may be numbers
        days = column.astype("datetime64[D]")
        is_whole = bool((np.isnat(column) | (days == column)).all())
        texts = np.datetime_as_string(days if is_whole else column.astype("datetime64[s]"))
        return np.where(np.isnat(column), "", texts)
    if column.dtype.kind == "m":  # lists of nanoseconds are numbers
        column = column.astype("timedelta64[us]").astype(object)
    return np.array([text_of(value) for value in column.tolist()], dtype=str)


def text_of(value: Any) -> str:
    """Return a value as text; None, NaN, which is not equal to itself, and NA become empty.

    Durations are written as pandas writes them: "1 days 02:30:00".
    """
    try:
        is_missing = value is None or bool(value != value)
    except TypeError:  # pandas' NA does not say whether it equals itself
        is_missing = True
    if isinstance(value, timedelta) and not is_missing:
        clock = timedelta(seconds=value.seconds, microseconds=value.microseconds)
        return f"{value.days} days {'0' * (value.seconds < TEN_HOURS)}{clock}"
    return "" if is_missing else str(value)


def _check_length(what: str, column: NoteArray, n: int) -> None:
    if len(column) != n:
        raise ValueError(
            f"`{what}` must have one value for each of the {n} rows the model was fitted to; got "
            f"{len(column)}."
        )


def _longer(column: NoteArray, n: int) -> NoteArray:
    if len(column) >= n:
        return column
    if column.dtype.kind in "iu":
        column = column.astype(np.float64)
    none = "" if column.dtype.kind == "U" else np.nan
    return np.concatenate([column, np.full(n - len(column), none, dtype=column.dtype)])
