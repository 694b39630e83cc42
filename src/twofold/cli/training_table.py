"""The table a model is fitted to: which columns and rows of a file take part, and why."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from twofold.cli.columns import are_default, find_columns, split_names
from twofold.cli.console import CommandError, Console, UsageError, counted, listed
from twofold.cli.files import shown
from twofold.tables import open_table

if TYPE_CHECKING:
    import pandas as pd

    from twofold.tables import TableSource

# Whole numbers with at most this many values are taken for classes, not for an amount.
MOST_CLASSES = 20


@dataclass(frozen=True)
class Wanted:
    """What the options of ``fit`` say about columns."""

    labels: Sequence[str]
    columns: Sequence[str]
    drop: Sequence[str]
    index: str | None
    missing: tuple[str, ...]


@dataclass(frozen=True)
class TrainingTable:
    """Rows to fit, and what is known about them.

    Attributes
    ----------
    frame : (n, D) numbers, NaN where missing
    names : (n,) names of the rows, or None
    labels : label columns by name
    left_out : columns that take no part, with the reason
    n_empty : rows without any value, which take no part either
    has_names : whether columns have names of their own
    """

    frame: pd.DataFrame
    names: Any
    labels: dict[str, Any]
    left_out: list[tuple[str, str]]
    n_empty: int
    has_names: bool

    @property
    def missing_share(self) -> float:
        """Share of cells that are missing."""
        return float(self.frame.isna().to_numpy().mean())

    @property
    def constant(self) -> list[str]:
        """Columns with one value only."""
        return [name for name in self.frame.columns if self.frame[name].nunique() < 2]

    def facts(self) -> dict[str, Any]:
        """Return what a program would like to know."""
        return {
            "rows": len(self.frame),
            "rows_left_out": self.n_empty,
            "columns": list(self.frame.columns),
            "columns_left_out": [
                {"column": name, "reason": reason} for name, reason in self.left_out
            ],
            "labels": list(self.labels),
            "missing_share": self.missing_share,
        }


def read_training_table(
    path: str, wanted: Wanted, console: Console, q: int, image_shape: tuple[int, ...] | None
) -> TrainingTable:
    """Read a table, choose its columns and rows, say what was chosen, and check it."""
    source = open_table(path, index=wanted.index, missing=wanted.missing)
    console.say_each(source.notes)
    labels = find_columns(
        split_names(wanted.labels, source.columns), source.columns, path, "--label names"
    )
    frame, features, left_out = _read_columns(source, path, wanted, labels)
    values = frame[features]
    if not features:
        raise _no_numbers(path, left_out)
    empty = [name for name in features if values[name].isna().all()]
    left_out += [(name, "it has no value in any row") for name in empty]
    values = values.drop(columns=empty)
    is_empty = values.isna().all(axis=1).to_numpy()
    rows = TrainingTable(
        values[~is_empty],
        frame.index[~is_empty].astype(str).to_numpy() if source.has_index else None,
        {name: label_values(frame[name][~is_empty]) for name in labels},
        left_out,
        int(is_empty.sum()),
        not are_default(source.columns),
    )
    describe(console, path, rows)
    check(rows, path, q, image_shape)
    _suggest(console, frame, rows)
    return rows


def _read_columns(
    source: TableSource, path: str, wanted: Wanted, labels: list[str]
) -> tuple[pd.DataFrame, list[str], list[tuple[str, str]]]:
    """Return the table, the columns to fit, and those left out with the reason."""
    columns = source.columns
    if wanted.columns:
        chosen = find_columns(
            split_names(wanted.columns, columns), columns, path, "--columns names"
        )
        both = [name for name in chosen if name in labels]
        if both:
            raise UsageError(
                f"{listed(both)} cannot be a label and a column to fit at once: a map coloured by "
                "what it was made from proves nothing.",
                "Leave it out of --columns or of --label.",
            )
        frame = source.read(numbers="detect")
        text = [name for name, _ in source.left_out if name in chosen]
        if text:  # raises, with line and cell, unless the columns are only empty
            frame[text] = source.read(numbers=text)[text]
        return frame, chosen, []
    dropped = find_columns(split_names(wanted.drop, columns), columns, path, "--drop names")
    frame = source.read(numbers="detect")
    left_out = [(name, why) for name, why in source.left_out if name not in {*dropped, *labels}]
    without = {*dropped, *labels, *(name for name, _ in left_out)}
    return frame, [name for name in columns if name not in without], left_out


def label_values(column: pd.Series) -> Any:
    """Return a label column as text or as numbers; few whole numbers are classes, so text."""
    values = column.to_numpy()
    if values.dtype.kind != "f":
        return column.where(column.notna(), "").astype(str).to_numpy(dtype=str)
    seen = np.unique(values[~np.isnan(values)])
    if len(seen) > MOST_CLASSES or np.any(seen != np.round(seen)):
        return values
    return np.array(["" if np.isnan(value) else str(int(value)) for value in values])


def describe(console: Console, path: str, rows: TrainingTable) -> None:
    """Say which rows and columns are used and which are not."""
    n, D = rows.frame.shape
    names = f": {listed(rows.frame.columns)}" if rows.has_names else ""
    console.say(f"{shown(path)}: {counted(n, 'row')}, {counted(D, 'column')} used{names}")
    for name, reason in rows.left_out:
        console.say(f"left out: '{name}' ({reason})")
    if rows.n_empty:
        console.say(f"left out: {counted(rows.n_empty, 'row')} without any value")
    if rows.labels:
        console.say(f"labels: {listed(rows.labels)}")
    if rows.missing_share:
        cells = int(rows.frame.isna().to_numpy().sum())
        console.say(f"missing: {counted(cells, 'cell')}, {100 * rows.missing_share:.2g} %")


def check(rows: TrainingTable, path: str, q: int, image_shape: tuple[int, ...] | None) -> None:
    """Raise, in words of the command line, if no map can be fitted to these rows."""
    n, D = rows.frame.shape
    least = max(3, q + 2)
    if q > D:
        raise CommandError(
            f"A map of {q} dimensions needs at least {q} columns of numbers; {shown(path)} has "
            f"{D}.",
            f"Ask for fewer: --dimensions {D}." if D else None,
        )
    distinct = len(rows.frame.drop_duplicates())
    if distinct < least:
        raise CommandError(
            f"A map of {q} dimensions needs at least {least} different rows; {shown(path)} has "
            f"{distinct}.",
            "A table with samples in columns must be turned round first: rows are samples here."
            if 3 * n < D
            else "Pass more rows.",
        )
    infinite = np.argwhere(np.isinf(rows.frame.to_numpy()))
    if len(infinite):
        row, column = infinite[0]
        raise CommandError(
            f"{shown(path)} has {counted(len(infinite), 'infinite value')}, the first in column "
            f"'{rows.frame.columns[column]}' of row {rows.frame.index[row]}.",
            "Count them as missing with --missing inf --missing=-inf, or correct the table.",
        )
    if image_shape is not None and math.prod(image_shape) != D:
        raise CommandError(
            f"--image-shape {'x'.join(map(str, image_shape))} has {math.prod(image_shape)} pixels, "
            f"but {counted(D, 'column')} are used.",
            "Leave other columns out with --label, --index or --drop.",
        )


def _suggest(console: Console, frame: pd.DataFrame, rows: TrainingTable) -> None:
    """Point at columns that look like names or numbers of rows."""
    n = len(frame)
    for name, _ in rows.left_out:
        if rows.names is None and n > 3 and frame[name].nunique() == n:
            console.say(f"'{name}' differs in every row: --index '{name}' takes it for their names")
            break
    for name in rows.frame.columns if rows.has_names else ():
        steps = np.diff(rows.frame[name].to_numpy())
        if n > 3 and np.all(steps == 1):
            console.warn(
                f"Column '{name}' counts the rows. If it is no measurement, leave it out: "
                f"--index '{name}' or --drop '{name}'."
            )


def _no_numbers(path: str, left_out: list[tuple[str, str]]) -> CommandError:
    """Say why there is nothing to fit."""
    example = f" For example '{left_out[0][0]}': {left_out[0][1]}." if left_out else ""
    return CommandError(
        f"{shown(path)} has no column of numbers to fit.{example}",
        "If numbers have thousands marks or units, take these out of the cells; if some cells say "
        "that a value is missing, name their text with --missing TEXT.",
    )
