"""Columns of categories, dates and counts on the command line: which are used, and how.

A table with such columns is fitted by :class:`twofold.Mixed`; one of numbers alone by `Scaled`, as
``--scale`` says. Cells of text files are texts: what they say is found here, the same way for a fit
and for the rows that come later.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from twofold.cli.arguments import Texts, shown
from twofold.cli.console import CommandError, UsageError, listed
from twofold.tables.table import cell_rules, is_percentage, named_numbers
from twofold.tables.text_types import (
    as_truths,
    date_format,
    date_texts,
    holds_texts,
    truth_of,
    truth_words,
    typed_column,
    with_gaps,
)
from twofold.tables.writing import number_texts

if TYPE_CHECKING:
    from twofold.mixed import Mixed
    from twofold.tables.dialect import Dialect
    from twofold.tables.reading import TableSource
    from twofold.tables.table import CellRules

_FIRST_ROWS = 100
_CODE = re.compile("0[0-9]+")
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


def columns_of_codes(
    source: TableSource, names: list[str], asked: dict[str, Any]
) -> dict[str, pd.Series]:
    """Return those columns of numbers, asked to be categories, whose texts numbers would change."""
    wanted = [name for name in names if asked.get(name) in ("category", "ordered")]
    wanted += [name for name in names if isinstance(asked.get(name), list)]
    if not wanted:
        return {}
    frame = source.read()
    texts = {n: with_gaps(frame[n], source.rules) for n in wanted if holds_texts(frame[n])}
    return {name: cells for name, cells in texts.items() if has_codes(cells.dropna())}


def named_as_levels(asked: dict[str, Any], frame: pd.DataFrame) -> dict[str, Any]:
    """Return kinds by column, in which orders name levels as the table has them, not as texts."""
    found = dict(asked)
    for name, kind in asked.items():
        if isinstance(kind, list):
            levels = tuple(frame[name].dropna().unique())
            order = as_levels(pd.Series(kind, dtype=object), levels, cell_rules())
            found[name] = [level for level in order if level is not None]
    return found


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
    from twofold.mixed.columns import LevelColumn, NumberColumn

    def place(row: int) -> str:
        return f"{shown(source.path)}, row {before + row + 1}"

    found = {}
    for column in model.columns_:
        if column.name not in frame:
            continue
        cells = frame[column.name]
        if isinstance(column, LevelColumn) and column.type.form != "decimal":
            cells = as_levels(cells, column.levels, source.rules)
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


def as_levels(cells: pd.Series, levels: tuple[Any, ...], rules: CellRules) -> pd.Series:
    """Return cells as the levels that they say, which may be written in another way.

    A truth value is a word in one file, a type of its own in another, and 0 or 1 in a third.
    """
    if isinstance(cells.dtype, pd.CategoricalDtype):
        return cells
    known = with_gaps(cells, rules)
    different = known.dropna().unique()
    if set(different) <= set(levels):
        return cells
    meant = {_meaning(level, rules): level for level in reversed(levels)}
    found = {
        cell: cell if cell in levels else meant.get(_meaning(cell, rules), cell)
        for cell in different
    }
    return known.map(found).astype(object).where(known.notna(), None)


def _meaning(cell: Any, rules: CellRules) -> Any:
    """Return a truth value or a number as a number, and any other cell as it is."""
    if (truth := truth_of(cell)) is not None:
        return float(truth)
    return rules.number(cell) if rules.is_number(cell) else cell


# ---- and back -----------------------------------------------------------------------------------


def as_cells(
    made: pd.Series, cells: pd.Series, source: TableSource, written: Dialect | None
) -> pd.Series:
    """Return values in the form of the cells of a file that they replace.

    ``written`` says how text is written, None for files of other kinds.
    """
    if source.dialect is not None and written is None:
        return made  # text has no types, the file to write has
    if pd.api.types.is_numeric_dtype(made.dtype) and made.dtype == cells.dtype:
        return made
    if not are_texts(cells, source):
        return in_type_of(made, cells)
    texts = texts_of(made, cells, source.rules, written)
    return pd.Series(texts, index=made.index, dtype=object).where(made.notna(), None)


def are_texts(cells: pd.Series, source: TableSource) -> bool:
    """Say whether a column of a file holds texts alone."""
    if source.dialect is not None:
        return True
    known = cells.dropna() if holds_texts(cells) else cells[:0]
    return len(known) > 0 and all(isinstance(cell, str) for cell in known)


def in_type_of(made: pd.Series, cells: pd.Series) -> pd.Series:
    """Return values in the type of cells if it holds them, whatever they are in other rows."""
    dtype = cells.dtype
    loses = pd.api.types.is_float_dtype(made.dtype) and not pd.api.types.is_float_dtype(dtype)
    if loses or pd.api.types.is_object_dtype(dtype) or isinstance(dtype, pd.CategoricalDtype):
        return made
    same: Any = made  # perhaps levels that say truth values or numbers
    if pd.api.types.is_bool_dtype(dtype):
        same = as_truths(made)
    elif pd.api.types.is_numeric_dtype(dtype) and holds_texts(made):
        same = pd.to_numeric(made, errors="coerce")
    if same is None or not same.notna().equals(made.notna()):
        return made
    try:
        found = same.astype(dtype)
    except (TypeError, ValueError, OverflowError):
        return made
    return found if (found == same)[same.notna()].all() else made


def texts_of(
    column: pd.Series, cells: pd.Series, rules: CellRules, written: Dialect | None
) -> list[str]:
    """Return values of a column as text, in the form of the cells that they stand among."""
    known = with_gaps(cells, rules).dropna()
    if pd.api.types.is_datetime64_any_dtype(column.dtype):
        return date_texts(column, date_format(known), str(known.iloc[0]) if len(known) else "")
    words = truth_words(known)
    if words is not None and (truths := as_truths(column)) is not None:
        return ["" if pd.isna(truth) else words[bool(truth)] for truth in truths]
    texts = number_texts(column, "." if written is None else written.decimal)
    if is_percentage(known):
        blank = " " * bool(known.astype(str).str.endswith(" %").all())
        return [text and f"{text}{blank}%" for text in texts]
    if (width := _digits_of_codes(known)) is not None:
        return [text.zfill(width) if text.isdecimal() else text for text in texts]
    return texts


def _digits_of_codes(known: pd.Series) -> int | None:
    """Return how many digits cells have if that is why some begin with 0, None for other cells."""
    widths = set(known.astype(str).str.len())
    if len(widths) != 1 or not has_codes(known):
        return None
    return int(widths.pop()) if known.astype(str).str.isdecimal().all() else None


def has_marks(source: TableSource, names: list[str]) -> bool:
    """Say whether the first cells of a text hold percentages or codes, which numbers would lose."""
    if source.dialect is None:
        return False
    first = next(source.chunks(_FIRST_ROWS))[names].to_numpy(dtype=object).ravel()
    texts = [cell.strip() for cell in first if isinstance(cell, str)]
    return any(text.endswith("%") for text in texts) or has_codes(texts)


def has_codes(known: Iterable[Any]) -> bool:
    """Say whether some cells are texts of digits that begin with 0, which a number would lose."""
    return any(isinstance(cell, str) and _CODE.fullmatch(cell) for cell in known)


def _example(option: str) -> str:
    return "year=category,price=log" if option == "--kinds" else "price=3,age=0.5"
