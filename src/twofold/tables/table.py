"""What every kind of file provides, and which cells are missing, numbers, or neither.

A number is what Python's `float` reads in ASCII digits: ``1``, ``-.5``, ``2e-3``, ``inf``. Its
whole part may have thousands marks, groups of three digits behind one to three that do not begin
with 0: ``1,234.5`` in a table with a decimal point, ``1.234,5`` in one with a decimal comma, blanks
and apostrophes in both. A percent sign may follow, and the number is that of percents. The first
such cell of each column is kept, so that what was read can be said. Other units are not guessed
away, for a guess that is wrong in one cell of a million goes unseen.
"""

from __future__ import annotations

import dataclasses
import difflib
import importlib
import math
import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterable, Iterator
from types import ModuleType
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pandas as pd

from twofold.array_types import FloatArray
from twofold.checks.installing import install_command
from twofold.tables.text_types import typed_column

if TYPE_CHECKING:
    from zipfile import ZipInfo

    from twofold.tables.dialect import Dialect

# By default frames have about this many cells: eight bytes each, 64 MB.
CHUNK_CELLS = 8_000_000
# What unpacks to more than this, and to this many times its own size, is no data.
LARGE_BYTES, MOST_PACKED = 1 << 30, 200
MISSING_MARKERS = ("", "NA", "N/A", "NaN", "null", "None", "#N/A", "<NA>", "?", "-")
BLANK_MARKS = "'’ \u00a0\u202f"  # between groups of digits, beside comma or point
_GROUPED = {
    decimal: re.compile(
        rf"[+-]?[1-9]\d{{0,2}}(?P<mark>[{other}{BLANK_MARKS}])\d{{3}}(?:(?P=mark)\d{{3}})*"
        rf"(?:{re.escape(decimal)}\d*)?"
    )
    for decimal, other in ((".", ","), (",", "."))
}
_SHOWN = 40  # characters of a cell in a message
_CELLS_TO_JUDGE = 2000


class TableError(ValueError):
    """A table that cannot be read or written; ``hint`` says what to do about it."""

    def __init__(self, message: str, hint: str | None = None) -> None:
        super().__init__(message)
        self.hint = hint


def check_unpacked(member: ZipInfo, name: str, hint: str) -> None:
    """Refuse what would unpack to far more than real data would."""
    if member.file_size > max(LARGE_BYTES, MOST_PACKED * member.compress_size):
        raise TableError(
            f"'{name}' unpacks {member.compress_size:,} bytes to {member.file_size:,}, which is "
            "far more than real data would.",
            hint,
        )


class NotANumberError(TableError):
    """A cell of a number column that is not a number; ``cell`` is its text."""

    def __init__(self, message: str, hint: str, cell: str) -> None:
        super().__init__(message, hint)
        self.cell = cell


class BadCell(ValueError):  # noqa: N818 - never leaves this package
    """A cell that is neither missing nor a number, and its position in the column."""

    def __init__(self, position: int, cell: object) -> None:
        super().__init__(position, cell)
        self.position, self.cell = position, cell


@dataclasses.dataclass(frozen=True)
class CellRules:
    """Which cells are missing, and which character starts the decimals."""

    texts: frozenset[str]  # markers of missing cells in lower case
    numbers: tuple[float, ...] = ()  # markers such as -999, which count in any spelling
    decimal: str = "."
    # By column, the first cell with thousands marks or a percent sign, and the number it is.
    marked: dict[str, tuple[str, float]] = dataclasses.field(default_factory=dict, compare=False)

    def number(self, cell: object) -> float:
        """Return the cell as a number, NaN if it is missing; raise a ValueError if neither."""
        if not isinstance(cell, str):
            if cell is None or type(cell).__name__ in ("NAType", "NaTType"):
                return math.nan
            # Truth values, dates and lists are no numbers.
            if isinstance(cell, bool | np.bool_ | complex) or not hasattr(cell, "__float__"):
                raise ValueError(cell)
            return float(cell)
        text = cell.strip()
        if text.casefold() in self.texts:
            return math.nan
        return self._read(text.replace("\u2212", "-"), cell)  # the minus sign of typeset tables

    def _read(self, text: str, cell: str) -> float:
        """Return a text as a number, which may have thousands marks and a percent sign."""
        if text.endswith("%"):
            text = text[:-1].rstrip()
        if grouped := _GROUPED[self.decimal].fullmatch(text):
            text = text.replace(grouped["mark"], "")
        if "_" in text or not text.isascii():  # float() would read 1_000 and digits of any script
            raise ValueError(cell)
        if self.decimal == ",":
            if "." in text:
                raise ValueError(cell)
            text = text.replace(",", ".")
        return float(text)

    def is_number(self, cell: object) -> bool:
        """Whether a cell is a number or missing."""
        try:
            self.number(cell)
        except (ValueError, TypeError):
            return False
        return True

    def is_missing(self, cell: object) -> bool:
        """Whether a cell is missing."""
        value = self.number(cell) if self.is_number(cell) else 0.0
        return math.isnan(value) or value in self.numbers

    def is_other_number(self, cell: object) -> bool:
        """Whether a cell is a number in a table with the other decimal mark."""
        if not isinstance(cell, str):
            return False
        other = CellRules(frozenset(), self.numbers, "," if self.decimal == "." else ".")
        return other.decimal in cell and other.is_number(cell) and math.isfinite(other.number(cell))

    def why_no_number(self, cell: object) -> str:
        """Say in a few words why a cell is not a number."""
        shown = shown_cell(cell)
        if _is_truth(cell):
            return f"{shown} is not a number; to use true and false, write 1 and 0"
        if not self.is_other_number(cell):
            return f"{shown} is not a number"
        marks = ["a decimal point", "a decimal comma"]
        own, other = marks if self.decimal == "." else marks[::-1]
        return f"{shown} has {other}, but the table has {own}"

    def numbers_of(self, column: Any) -> FloatArray:
        """Return a pandas column as float64, missing cells as NaN; raise `BadCell` if it is not."""
        if pd.api.types.is_numeric_dtype(column) and column.dtype.kind in "iuf":
            values = column.to_numpy(dtype=np.float64, na_value=np.nan)
        else:
            values = np.empty(len(column))
            for position, cell in enumerate(column.tolist()):
                try:
                    values[position] = self.number(cell)
                except (ValueError, TypeError) as error:
                    raise BadCell(position, cell) from error
                if isinstance(cell, str) and _is_marked(cell):
                    self.marked.setdefault(str(column.name), (cell.strip(), values[position]))
        return self.without_markers(values)

    def plain_numbers(self, cells: Any) -> FloatArray | None:
        """Return an array of texts as float64 in one step, None unless all are plain numbers."""
        try:
            letters = "".join(cells.ravel())
            if self.decimal != "." or "_" in letters or not letters.isascii():  # see `number`
                return None
            values: FloatArray = cells.astype(np.float64)
        except (ValueError, TypeError):
            return None
        return self.without_markers(values)

    def without_markers(self, values: FloatArray) -> FloatArray:
        """Return the values with those that mark a missing cell replaced by NaN."""
        if not self.numbers:
            return values
        return np.where(np.isin(values, self.numbers), np.nan, values)

    def spellings(self) -> list[str]:
        """Return the markers in the usual cases, for parsers that compare exactly."""
        # NaN, as numpy and pandas write it, is none of the three.
        forms = [(text, text.upper(), text.capitalize()) for text in self.texts]
        return sorted({form for three in forms for form in three} | {"NaN"})


def cell_rules(missing: Iterable[str] = (), decimal: str = ".") -> CellRules:
    """Return the rules for the usual markers of missing cells and some more."""
    texts = {marker.strip().casefold() for marker in (*MISSING_MARKERS, *missing)}
    plain = CellRules(frozenset(), (), decimal)
    # A marker such as -999 also stands for -999.0; NaN needs no marker.
    numbers = {plain.number(marker) for marker in missing if plain.is_number(marker)}
    return CellRules(frozenset(texts), tuple(sorted(n for n in numbers if n == n)), decimal)


def shown_cell(cell: object) -> str:
    """Return a cell as it is quoted in messages."""
    text = str(cell)
    return repr(text if len(text) <= _SHOWN else text[: _SHOWN - 1] + "…")


def _is_marked(cell: str) -> bool:
    """Whether a number has thousands marks or a percent sign."""
    text = cell.strip()
    return text.endswith("%") or any(rule.fullmatch(text) for rule in _GROUPED.values())


def is_percentage(cells: Any) -> bool:
    """Whether all cells that are texts and not empty end with a percent sign."""
    texts = [cell.strip() for cell in cells if isinstance(cell, str) and cell.strip()]
    return bool(texts) and all(text.endswith("%") for text in texts)


def _is_truth(cell: object) -> bool:
    return str(cell).strip().casefold() in ("true", "false")


# ---- columns ------------------------------------------------------------------------------------


def with_numbers(
    frame: pd.DataFrame, numbers: Collection[str], rules: CellRules, place: Callable[[int], str]
) -> pd.DataFrame:
    """Return the frame with columns as float64; `place(i)` says where row i stands in the file."""
    wanted = [name for name in frame.columns if name in numbers]
    if not wanted:
        return frame
    part = frame[wanted]
    values: FloatArray | None  # all in one step, which counts when the table is wide
    if all(isinstance(dtype, np.dtype) and dtype.kind in "iuf" for dtype in part.dtypes):
        values = rules.without_markers(part.to_numpy(dtype=np.float64))
    else:
        values = rules.plain_numbers(part.to_numpy(dtype=object))
    if values is not None:
        part = pd.DataFrame(values, columns=wanted, index=frame.index)
    else:
        converted = {}
        for name in wanted:
            converted[name] = named_numbers(part[name], rules, place)
        part = pd.DataFrame(converted, index=frame.index)
    if len(wanted) == frame.shape[1]:
        return part
    return pd.concat([part, frame.drop(columns=wanted)], axis=1)[list(frame.columns)]


def named_numbers(column: pd.Series, rules: CellRules, place: Callable[[int], str]) -> FloatArray:
    """Return a column as float64; say where it is if a cell is neither missing nor a number.

    Nothing but truth values are 1 and 0, as they are in other files.
    """
    try:
        return rules.numbers_of(column)
    except BadCell as bad:
        typed = typed_column(column, rules)
        if pd.api.types.is_bool_dtype(typed.dtype):
            return typed.to_numpy(dtype=np.float64, na_value=np.nan)
        raise NotANumberError(
            f"{place(bad.position)}, column {column.name!r}: {rules.why_no_number(bad.cell)}.",
            "If it stands for a missing value, say so with `missing`; otherwise correct "
            "the cell or leave the column out.",
            str(bad.cell),
        ) from None


def text_of(column: pd.Series) -> list[str]:
    """Return the cells of a column as text, missing ones as empty text."""
    cells, missing = column.tolist(), column.isna().tolist()
    return ["" if gap else str(cell) for cell, gap in zip(cells, missing, strict=True)]


class NearlyNumbers(NamedTuple):
    """What keeps a column whose cells are mostly numbers from being one."""

    reason: str  # how many cells, and the first of them
    advice: str  # how to write them as numbers; "" for texts that may stand for missing values
    texts: tuple[str, ...]  # the different texts of these cells, the first one first


def nearly_numbers(column: pd.Series, rules: CellRules) -> NearlyNumbers | None:
    """Return what keeps a column of mostly numbers from being one, None for other columns."""
    # Those are told from their first cells: a look at all of a long text column would take its
    # time. Missing cells tell nothing.
    if column.dtype.kind in "iufb":
        return None
    cells = [None if gap else cell for cell, gap in zip(column, column.isna(), strict=True)]
    some = [cell for cell in cells[:_CELLS_TO_JUDGE] if not rules.is_missing(cell)]
    if some and 2 * sum(map(rules.is_number, some)) <= len(some):
        return None
    bad = [(row, cell) for row, cell in enumerate(cells, 1) if not rules.is_number(cell)]
    n_known = sum(not rules.is_missing(cell) for cell in cells) if bad else 0
    if not bad or 2 * len(bad) >= n_known:
        return None
    row, cell = bad[0]
    verdict = "is not a number" if len(bad) == 1 else "are not numbers"
    has_meaning = rules.is_other_number(cell) or _is_truth(cell)
    return NearlyNumbers(
        f"{len(bad):,} of {len(cells):,} cells {verdict}, first {shown_cell(cell)} in row {row}",
        f"{rules.why_no_number(cell)}: write it as the others" if has_meaning else "",
        tuple(dict.fromkeys(str(other).strip() for _, other in bad)),
    )


# ---- files --------------------------------------------------------------------------------------


class Table(ABC):
    """An opened file: names, and blocks of rows with all columns."""

    names: tuple[str, ...]  # of all columns
    own_index: str | None = None  # what the file itself calls its index, "" if that has no name
    companions: tuple[str, ...] = ()  # columns that the file keeps beside its matrix
    n_rows: int | None = None  # None while it is not known
    share_read = 0.0  # of the bytes of a text, by the last block
    dialect: Dialect | None = None  # how a text is written

    def __init__(self, name: str, rules: CellRules) -> None:
        self.notes: list[str] = []  # sentences worth telling the user
        self.rules = rules
        self._name = name

    @abstractmethod
    def blocks(self, numbers: frozenset[str], rows: int | None) -> Iterator[pd.DataFrame]:
        """Yield frames in order; ``numbers`` as float64, ``rows`` the length asked for."""


class TypedTable(Table):
    """A file whose columns have types."""

    def blocks(self, numbers: frozenset[str], rows: int | None) -> Iterator[pd.DataFrame]:
        """Yield frames; see `Table`."""
        done = 0
        for frame in self._frames(rows or max(1, CHUNK_CELLS // max(1, len(self.names)))):

            def place(row: int, start: int = done) -> str:
                return f"'{self._name}', row {start + row + 1}"

            done += len(frame)
            yield with_numbers(frame, numbers, self.rules, place)

    @abstractmethod
    def _frames(self, rows: int) -> Iterator[pd.DataFrame]:
        """Yield frames of this many rows, with the types of the file."""


def close_names(name: str, known: Iterable[str]) -> str:
    """Return the known names most like the given one as text, or '' if none is close."""
    by_folded = {other.casefold(): other for other in known}
    close = difflib.get_close_matches(name.casefold(), list(by_folded), n=3, cutoff=0.6)
    return ", ".join(repr(by_folded[folded]) for folded in close)


def load_package(module: str, purpose: str) -> ModuleType:
    """Import a module of the optional packages, or say how to install it."""
    try:
        return importlib.import_module(module)
    except ImportError as error:
        raise TableError(
            f"{purpose} needs the package {module.split('.')[0]}, which is not installed.",
            install_command("tables"),
        ) from error
