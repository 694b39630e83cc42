"""Columns of categories, dates and counts on the command line: which are used, and how.

A table with such columns is fitted by :class:`twofold.Mixed`; one of numbers alone by `Scaled`, as
``--scale`` says. Cells of text files are texts: what they say is found here, the same way for a fit
and for the rows that come later.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from twofold.cli.arguments import Texts, shown
from twofold.cli.console import CommandError, UsageError, listed
from twofold.tables.table import is_percentage, named_numbers
from twofold.tables.text_types import date_format, date_texts, holds_texts, typed_column, with_gaps
from twofold.tables.writing import number_texts

if TYPE_CHECKING:
    from twofold.mixed import Mixed
    from twofold.tables.dialect import Dialect
    from twofold.tables.reading import TableSource
    from twofold.tables.table import CellRules

USED = ("category", "ordered", "date", "count")


def parse_pairs(given: Texts, option: str) -> dict[str, str]:
    """Return names and values of options such as ``year=category,price=log``."""
    found: dict[str, str] = {}
    for part in (part for text in given or () for part in text.split(",")):
        name, equals, value = part.partition("=")
        if not equals or not name.strip() or not value.strip():
            raise UsageError(
                f"{option} takes names and values such as {_example(option)}; got '{part}'."
            )
        found[name.strip()] = value.strip()
    return found


def parse_kinds(given: Texts) -> dict[str, Any]:
    """Return kinds by column; levels with < between them are an order."""
    from twofold.mixed.kinds import KINDS

    found: dict[str, Any] = {}
    for name, kind in parse_pairs(given, "--kinds").items():
        order = [level.strip() for level in kind.split("<")]
        if len(order) > 1:
            found[name] = order
        elif kind not in KINDS:
            raise UsageError(
                f"There is no kind '{kind}'.",
                f"Choose from {', '.join(KINDS)}, or give an order: {name}=low<middle<high",
            )
        else:
            found[name] = kind
    return found


def parse_weights(given: Texts) -> dict[str, float]:
    """Return weights by column."""
    found = {}
    for name, text in parse_pairs(given, "--weights").items():
        try:
            found[name] = float(text)
        except ValueError:
            raise UsageError(f"--weights takes numbers; got '{text}' for '{name}'.") from None
        if not 0 < found[name] < np.inf:
            raise UsageError(f"A weight must be a number above 0; got {text} for '{name}'.")
    return found


def check_named(named: list[str], columns: list[str], path: str) -> None:
    """Raise if ``--kinds`` or ``--weights`` names what is not used."""
    if unknown := [name for name in named if name not in columns]:
        raise CommandError(
            f"--kinds and --weights name columns that are used; {shown(path)} has no such column "
            f"{listed(unknown)}.",
            f"Columns that could be used: {listed(columns)}.",
        )


def check_weighed(weights: dict[str, float], used: list[str], left_out: dict[str, str]) -> None:
    """Raise if ``--weights`` names what is not fitted, and say why it is not."""
    for name in weights:
        if name in left_out:
            raise CommandError(
                f"--weights names '{name}', which is left out: {left_out[name]}.",
                f"Use it as what it is: --kinds {name}=category, for example.",
            )
        if name not in used:
            raise CommandError(
                f"--weights names '{name}', which is not fitted.", f"Columns: {listed(used, 20)}."
            )


def kinds_of_texts(
    frame: pd.DataFrame, candidates: dict[str, str], rules: CellRules, asked: dict[str, Any]
) -> tuple[dict[str, pd.Series], dict[str, str]]:
    """Return columns that are no numbers but can be used, and why others cannot.

    ``candidates`` are names of columns and why they are no numbers.
    """
    from twofold.mixed.kinds import choose

    used: dict[str, pd.Series] = {}
    reasons: dict[str, str] = {}
    for name, why in candidates.items():
        column = typed_column(frame[name], rules)
        if asked.get(name) == "out":
            reasons[name] = "as asked"
            continue
        if not column.notna().any():
            reasons[name] = why
            continue
        kind, reason = choose(column)
        if name in asked or kind in USED:
            used[name] = column
        else:
            reasons[name] = reason
    return used, reasons


def whole_numbers(column: pd.Series) -> pd.Series:
    """Return a column of numbers as whole ones if all of them are."""
    values = column.to_numpy(dtype=np.float64)
    known = values[~np.isnan(values)]
    if not len(known) or np.abs(known).max() > 2**53 or (known != np.rint(known)).any():
        return column
    return column.astype("Int64")


# ---- rows for a fitted model --------------------------------------------------------------------


def rows_for(
    model: Mixed, frame: pd.DataFrame, source: TableSource, before: int = 0
) -> pd.DataFrame:
    """Return rows of a file, after ``before`` others, as a model of mixed columns takes them."""
    from twofold.mixed.columns import NumberColumn

    def place(row: int) -> str:
        return f"{shown(source.path)}, row {before + row + 1}"

    found = {}
    for column in model.columns_:
        if column.name not in frame:
            continue
        cells = frame[column.name]
        if source.dialect is None and not holds_texts(cells):
            found[column.name] = cells
        elif isinstance(column, NumberColumn) or column.type.form == "number":
            numbers = named_numbers(cells, source.rules, place)
            found[column.name] = pd.Series(numbers, index=frame.index)
        elif column.type.form == "time":
            found[column.name] = typed_column(cells, source.rules)
        else:
            found[column.name] = with_gaps(cells, source.rules)
    return pd.DataFrame(found, index=frame.index)


def texts_of(
    column: pd.Series, cells: pd.Series, rules: CellRules, written: Dialect | None
) -> list[str]:
    """Return values of a column as text, dates in the format of the cells they stand among."""
    if pd.api.types.is_datetime64_any_dtype(column.dtype):
        return date_texts(column, date_format(with_gaps(cells, rules)))
    texts = number_texts(column, "." if written is None else written.decimal)
    if is_percentage(with_gaps(cells, rules)):
        return [text and f"{text}%" for text in texts]
    return texts


def _example(option: str) -> str:
    return "year=category,price=log" if option == "--kinds" else "price=3,age=0.5"
