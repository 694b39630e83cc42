"""The table a model is fitted to: which columns and rows of a file take part, and why."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import pandas as pd

from twofold.cli.arguments import Text, Texts, shown
from twofold.cli.columns import are_default, find_columns, naming_column, split_names
from twofold.cli.console import CommandError, Console, UsageError, counted, listed, missing_option
from twofold.cli.large_tables import LargeTable, exceeds_memory
from twofold.cli.mixed_columns import check_named, columns_of_codes, kinds_of_texts, whole_numbers
from twofold.contract.distinct_rows import merge_duplicates
from twofold.contract.label_values import as_days
from twofold.mixed.kinds import choose
from twofold.tables.reading import open_table
from twofold.tables.text_types import date_texts, typed_column

if TYPE_CHECKING:
    from twofold.contract import TwoWayModel
    from twofold.tables.reading import TableSource
    from twofold.tables.table import CellRules, NearlyNumbers

    # A table, its label columns, those to use and those to leave out.
    Opened: TypeAlias = tuple[TableSource, list[str], list[str], list[str]]

# Whole numbers with at most this many values are taken for classes, not for an amount.
MOST_CLASSES = 20
# Of more columns than this the first and the last are named.
NAMES_TO_LIST = 20
# Tables with more columns than this are slow to read.
MANY_COLUMNS = 10_000
# In fewer rows than this texts differ by chance.
ROWS_TO_JUDGE_NAMES = 4


@dataclass(frozen=True)
class TrainingTable:
    """Rows to fit, and what is known about them."""

    frame: pd.DataFrame  # (n, D) numbers, NaN where missing; other columns, too, if it is mixed
    names: Any  # (n,) names of the rows, or None
    labels: dict[str, Any]  # columns by name
    left_out: list[tuple[str, str]]  # columns that take no part, with the reason
    n_empty: int  # rows without any value, which take no part either
    has_names: bool  # whether columns have names of their own
    # Columns left out for some cells only.
    nearly_numbers: dict[str, NearlyNumbers] = field(default_factory=dict)
    is_mixed: bool = False  # whether some columns are no numbers, or have kinds of their own

    @property
    def table(self) -> Any:
        """What a model is fitted to."""
        # Columns without names of their own are given as an array: the model then has none either.
        return self.frame if self.has_names else self.frame.to_numpy()

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return len(self.frame)

    @property
    def columns(self) -> list[str]:
        """Columns to fit."""
        return list(self.frame.columns)

    @property
    def spreads(self) -> pd.Series:
        """The standard deviations of the columns."""
        return self.numbers.std()

    @property
    def numbers(self) -> pd.DataFrame:
        """The columns of numbers."""
        if not self.is_mixed:
            return self.frame
        found = self.frame.select_dtypes("number")
        return found.astype(dict.fromkeys(found, "float64"))

    def row_in_file(self, row: int) -> int:
        """Return the number of a row in the file, from 1."""
        return int(self.frame.index[row]) + 1

    def variance(self, model: TwoWayModel) -> float:
        """Return the mean squared distance of rows from their mean, in the units of a model."""
        from twofold.cli.streaming import variance_of_rows

        rows = model.features(self.frame) if self.is_mixed else self.frame.to_numpy()
        return variance_of_rows(model, rows)

    @property
    def missing_share(self) -> float:
        """Share of cells that are missing."""
        return float(self.frame.isna().to_numpy().mean())

    @property
    def constant(self) -> list[str]:
        """Columns with one value only."""
        return constant_columns(self.numbers)


def constant_columns(numbers: pd.DataFrame) -> list[str]:
    """Return the columns with one value only."""
    Y = numbers.to_numpy()
    # Unlike minimum and maximum these pass over missing cells.
    is_constant = np.fmin.reduce(Y, axis=0) == np.fmax.reduce(Y, axis=0)
    return list(numbers.columns[is_constant])


def facts_of(rows: TrainingTable | LargeTable) -> dict[str, Any]:
    """Return what a program would like to know of a table."""
    return {
        "rows": rows.n_rows,
        "rows_left_out": rows.n_empty,
        "columns": rows.columns,
        "columns_left_out": [{"column": name, "reason": why} for name, why in rows.left_out],
        "labels": list(rows.labels),
        "missing_share": rows.missing_share,
    }


def read_training_table(
    path: str,
    console: Console,
    q: int,
    *,
    image_shape: tuple[int, ...] | None = None,
    may_exceed_columns: bool = False,
    kinds: dict[str, Any] | None = None,
    **wanted: Any,
) -> TrainingTable:
    """Read a table, choose its columns and rows, say what was chosen, and check it.

    ``kinds`` are kinds of columns that were asked for; with None only numbers are used. ``wanted``
    are options about columns and cells, as `open_training_table` has them.
    """
    opened = open_training_table(path, console, **wanted)
    return _read_rows(opened, path, console, q, image_shape, may_exceed_columns, kinds)


def read_or_walk(
    path: str,
    console: Console,
    q: int,
    *,
    image_shape: tuple[int, ...] | None = None,
    may_exceed_columns: bool = False,
    may_walk: bool = False,
    kinds: dict[str, Any] | None = None,
    **wanted: Any,
) -> TrainingTable | LargeTable:
    """Read a table as `read_training_table` does; only look through one larger than memory."""
    opened = source, labels, chosen, dropped = open_training_table(path, console, **wanted)
    if not may_walk or not exceeds_memory(source, console):
        return _read_rows(opened, path, console, q, image_shape, may_exceed_columns, kinds)
    large = LargeTable(source, labels, dropped, partial(label_values, source.rules))
    large.look_through(console, chosen)
    if not large.columns:
        raise _no_numbers(path, large.left_out, {})
    describe(console, path, large)
    check_width(large, path, q, image_shape)
    return large


def open_training_table(
    path: str,
    console: Console,
    *,
    label: Texts = None,
    columns: Texts = None,
    drop: Texts = None,
    index: Text = None,
    missing: Texts = None,
) -> Opened:
    """Open a table, and find its labels, the columns to use if they are named, and to leave out."""
    source = open_table(path, index=index, missing=missing or ())
    for note in source.notes:
        console.say(note)
    if len(source.columns) > MANY_COLUMNS:  # said before they are read: that may take a minute
        console.say(f"{shown(source.path)}: {counted(len(source.columns), 'column')}")
    labels, chosen, dropped = (
        find_columns(split_names(given, source.columns), source.columns, path, f"{option} names")
        for option, given in (("--label", label), ("--columns", columns), ("--drop", drop))
    )
    told = {*labels, *chosen, *dropped}
    if beside := [name for name in source.companions if name not in told]:
        words = "a label: it is" if len(beside) == 1 else "labels: they are"
        console.say(f"{listed(beside)} taken as {words} not part of X")
        labels += beside
    if both := [name for name in chosen if name in labels]:
        raise UsageError(
            f"{listed(both)} cannot be a label and a column to fit at once: a map coloured by "
            "what it was made from proves nothing.",
            "Leave it out of --columns or of --label.",
        )
    return source, labels, chosen, dropped


def _read_rows(
    opened: Opened,
    path: str,
    console: Console,
    q: int,
    image_shape: tuple[int, ...] | None,
    may_exceed_columns: bool,
    kinds: dict[str, Any] | None,
) -> TrainingTable:
    """Read the rows of a table, say which are used, and check them."""
    source, labels, chosen, dropped = opened
    frame = source.read(numbers="detect")
    names, names_from = _row_names(source, frame, {*labels, *dropped, *chosen, *(kinds or ())})
    if names_from is not None:
        dropped = [*dropped, names_from]
    values, left_out = _choose_columns(source, frame, labels, chosen, dropped, kinds)
    if not values.shape[1]:
        raise _no_numbers(path, left_out, source.nearly_numbers)
    empty = list(values.columns[values.isna().to_numpy().all(axis=0)])
    left_out += [(name, "it has no value in any row") for name in empty]
    values = values.drop(columns=empty)
    is_mixed = bool(kinds) or any(dtype != np.float64 for dtype in values.dtypes)
    if image_shape is None and not chosen and not is_mixed:
        constant = constant_columns(values)
        if 0 < len(constant) < values.shape[1]:
            left_out += [(name, "the same value in every row") for name in constant]
            values = values.drop(columns=constant)
    is_empty = values.isna().all(axis=1).to_numpy()
    rows = TrainingTable(
        values[~is_empty],
        None if names is None else names[~is_empty],
        {name: label_values(source.rules, frame[name][~is_empty]) for name in labels},
        left_out,
        int(is_empty.sum()),
        is_mixed or not are_default(list(values.columns)),
        source.nearly_numbers,
        is_mixed,
    )
    if names_from is not None:
        console.say(f"row names: '{names_from}'")
    describe(console, path, rows)
    for name, (cell, value) in source.rules.marked.items():
        if name in values:
            console.say(f"'{name}': {cell!r} is read as {value:.15g}")
    q = min(q, values.shape[1]) if may_exceed_columns else q
    check_width(rows, path, q, image_shape)
    check(rows, path, q)
    _suggest(console, frame, rows)
    return rows


def _row_names(source: TableSource, frame: pd.DataFrame, others: set[str]) -> tuple[Any, Text]:
    """Return the names of the rows, None for none, and the column that they are, if it is one."""
    if source.has_index:
        return frame.index.astype(str).to_numpy(), None
    if len(frame) < ROWS_TO_JUDGE_NAMES:
        return None, None
    others = others | {*source.nearly_numbers, *source.amounts}
    text = frame[[name for name, _ in source.left_out if name not in others]]
    column = naming_column(text, source.rules)
    return None if column is None else frame[column].astype(str).to_numpy(dtype=str), column


def _choose_columns(
    source: TableSource,
    frame: pd.DataFrame,
    labels: list[str],
    chosen: list[str],
    dropped: list[str],
    kinds: dict[str, Any] | None,
) -> tuple[pd.DataFrame, list[tuple[str, str]]]:
    """Return the columns to fit, and those left out with the reason."""
    taken = chosen or [name for name in source.columns if name not in {*dropped, *labels}]
    left = {name: why for name, why in source.left_out if name in taken}
    used: dict[str, pd.Series] = {}
    if kinds is not None:
        check_named(list(kinds), taken, source.path)
        nearly = {*source.nearly_numbers, *source.amounts} - set(kinds)
        texts = {name: why for name, why in left.items() if name not in nearly}
        used, reasons = kinds_of_texts(frame, texts, source.rules, kinds)
        used |= columns_of_codes(source, [name for name in taken if name not in left], kinds)
        left = {name: reasons.get(name, why) for name, why in left.items() if name not in used}
    if chosen and left:  # raises, with line and cell, unless the columns are only empty
        text = list(left)
        used |= dict(source.read(numbers=text)[text].items())
        left = {}
    values = pd.DataFrame(
        {name: used.get(name, frame[name]) for name in taken if name not in left}, index=frame.index
    )
    if kinds is None or not (used or kinds):
        return values, list(left.items())
    # Whole numbers may be counts or classes, or count the rows.
    for name in [name for name in values if name not in used]:
        values[name] = whole_numbers(values[name])
        kind, why = choose(values[name]) if values[name].notna().any() else ("", "")
        if kind == "out" and name not in kinds:
            left[str(name)] = why
    return values.drop(columns=[name for name in left if name in values]), list(left.items())


def label_values(rules: CellRules, column: pd.Series) -> Any:
    """Return a label column as text or as numbers; few whole numbers are classes, so text.

    Categories with an order stay such. A text that stands for a missing cell, such as "n/a", is no
    class, but "". Dates, in any format that columns may have, are written as ISO dates.
    """
    if getattr(column.dtype, "ordered", False):
        texts = [str(level).strip().casefold() for level in column.cat.categories]
        missing = [text in rules.texts for text in texts]
        return column.cat.remove_categories(column.cat.categories[missing])
    values = column.to_numpy()
    if values.dtype.kind != "f":
        texts = column.astype(object).where(column.notna(), "").astype(str)
        is_missing = texts.str.strip().str.casefold().isin(rules.texts)
        found = texts.mask(is_missing, "").to_numpy(dtype=str)
        dates = typed_column(column, rules)
        if dates.dtype.kind != "M" or as_days(found) is not None:
            return found
        return np.array(date_texts(dates), dtype=str)
    seen = np.unique(values[~np.isnan(values)])
    if len(seen) > MOST_CLASSES or np.any(seen != np.round(seen)):
        return values
    return np.array(["" if np.isnan(value) else str(int(value)) for value in values])


def describe(console: Console, path: str, rows: TrainingTable | LargeTable) -> None:
    """Say which rows and columns are used and which are not."""
    n, D = rows.n_rows, len(rows.columns)
    # A mixed model asks for no column that tells nothing, and gives it back.
    idle = rows.constant if getattr(rows, "is_mixed", False) else []
    columns = [name for name in rows.columns if name not in idle]
    used = f"{shown(path)}: {counted(n, 'row')}, {counted(len(columns), 'column')} used: "
    if len(columns) <= NAMES_TO_LIST:
        console.say(used + listed(columns, D))
    else:
        console.say(f"{used}{listed(columns[:5])} ... {listed(columns[-3:])}")
    for name in idle:
        console.say(f"left out: '{name}': the same value in every row, which comes back")
    for name, reason in rows.left_out:
        console.say(f"left out: '{name}': {reason}")
        if name in rows.nearly_numbers:
            console.say(f"  {_remedy(rows.nearly_numbers[name])}")
    if rows.n_empty:
        console.say(f"left out: {counted(rows.n_empty, 'row')} without any value")
    if rows.labels:
        console.say(f"labels: {listed(rows.labels)}")
    if rows.missing_share:
        cells = round(rows.missing_share * n * D)
        console.say(f"missing: {counted(cells, 'cell')}, {100 * rows.missing_share:.2g} %")


def check_width(
    rows: TrainingTable | LargeTable, path: str, q: int, image_shape: tuple[int, ...] | None
) -> None:
    """Raise, in words of the command line, if no map can be fitted to this number of columns."""
    D = len(rows.columns)
    if getattr(rows, "is_mixed", False) and image_shape is None:
        return  # a category has as many features as levels; the model counts them
    if q > D:
        raise CommandError(
            f"A map of {q} dimension{'s' * (q > 1)} needs at least {q} columns of numbers; "
            f"{shown(path)} has "
            f"{D}.",
            f"{_how_to_use(rows.nearly_numbers)} Or ask for fewer: --dimensions {D}."
            if rows.nearly_numbers
            else f"Ask for fewer: --dimensions {D}.",
        )
    if image_shape is not None and math.prod(image_shape) != D:
        raise CommandError(
            f"--image-shape {'x'.join(map(str, image_shape))} has {math.prod(image_shape)} pixels, "
            f"but {counted(D, 'column')} are used.",
            "Leave other columns out with --label, --index or --drop.",
        )


def check(rows: TrainingTable, path: str, q: int) -> None:
    """Raise, in words of the command line, if no map can be fitted to these rows."""
    n, D = rows.frame.shape
    least = max(3, q + 2)
    if rows.is_mixed:
        distinct = len(rows.frame.drop_duplicates())
    else:
        distinct = len(merge_duplicates(rows.frame.to_numpy(), np.ones(n)).Y)
    if distinct < least:
        raise CommandError(
            f"A map of {q} dimension{'s' * (q > 1)} needs at least {least} different rows; "
            f"{shown(path)} has "
            f"{distinct}.",
            "A table with samples in columns must be transposed first: here, rows are samples."
            if 3 * n < D
            else "Pass more rows.",
        )
    infinite = np.argwhere(np.isinf(rows.numbers.to_numpy()))
    if len(infinite):
        row, column = infinite[0]
        name = rows.frame.index[row] + 1 if rows.names is None else rows.names[row]
        raise CommandError(
            f"{shown(path)} has {counted(len(infinite), 'infinite value')}, the first in column "
            f"'{rows.numbers.columns[column]}' of row {name}.",
            "Count them as missing with --missing inf --missing=-inf, or correct the table.",
        )


def _suggest(console: Console, frame: pd.DataFrame, rows: TrainingTable) -> None:
    """Point at columns that look like names or numbers of rows."""
    n = len(frame)
    for name, _ in rows.left_out:
        if rows.names is None and n > 3 and frame[name].nunique() == n:
            console.say(f"'{name}' differs in every row: --index '{name}' takes it for their names")
            break
    counts_rows = (np.diff(rows.numbers.to_numpy(), axis=0) == 1).all(axis=0)
    for name in rows.numbers.columns[counts_rows] if rows.has_names and n > 3 else ():
        console.warn(
            f"Column '{name}' counts the rows. If it is not a measurement, leave it out: "
            f"--index '{name}' or --drop '{name}'."
        )


def _remedy(nearly: NearlyNumbers) -> str:
    """Say how a column of numbers, except for some cells, becomes one to fit."""
    if nearly.advice:
        return nearly.advice
    first, *more = nearly.texts
    others = f" (and {len(more)} more such texts)" if more else ""
    return f"if it stands for a missing value: {missing_option(first)}{others}"


def _how_to_use(nearly_numbers: dict[str, NearlyNumbers]) -> str:
    first = list(nearly_numbers.items())[:3]
    return " ".join(f"'{name}' could be used; {_remedy(nearly)}." for name, nearly in first)


def _no_numbers(
    path: str, left_out: list[tuple[str, str]], nearly_numbers: dict[str, NearlyNumbers]
) -> CommandError:
    """Say why there is nothing to fit."""
    left_out = sorted(left_out, key=lambda pair: pair[0] not in nearly_numbers)
    example = f" For example '{left_out[0][0]}': {left_out[0][1]}." if left_out else ""
    return CommandError(
        f"{shown(path)} has no column of numbers to fit.{example}",
        _how_to_use(nearly_numbers)
        or "If numbers have units, take these out of the cells; if some cells "
        "say that a value is missing, name their text with --missing TEXT.",
    )
