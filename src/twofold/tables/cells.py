"""Cells as numbers: what counts as missing, as a number, and as neither.

A number is what Python's `float` reads in ASCII digits, without digit groups: ``1``, ``-.5``,
``2e-3``, ``inf``. Thousands marks, units and percent signs are not guessed away, for a guess that
is wrong in one cell of a million goes unseen.
"""

from __future__ import annotations

import dataclasses
import math
import re
from collections.abc import Iterable
from typing import Any

import numpy as np

from twofold.array_types import FloatArray

MISSING_MARKERS = ("", "NA", "N/A", "NaN", "null", "None", "#N/A", "<NA>", "?", "-")
_GROUPED = re.compile(r"[+-]?\d{1,3}([,.' \u00a0\u202f]\d{3})+([.,]\d+)?")
_SHOWN = 40  # characters of a cell in a message


class BadCell(ValueError):  # noqa: N818 - never leaves this package
    """A cell that is neither missing nor a number, and its position in the column."""

    def __init__(self, position: int, cell: object) -> None:
        super().__init__(position, cell)
        self.position = position
        self.cell = cell


@dataclasses.dataclass(frozen=True)
class CellRules:
    """Which cells are missing, and which character starts the decimals.

    Parameters
    ----------
    texts : frozenset of str
        Markers of missing cells in lower case.
    numbers : tuple of float
        Markers that are numbers, such as -999; they count in any spelling.
    decimal : {".", ","}
        Character before the decimals.
    """

    texts: frozenset[str]
    numbers: tuple[float, ...] = ()
    decimal: str = "."

    def number(self, cell: object) -> float:
        """Return the cell as a number, NaN if it is missing; raise a ValueError if neither."""
        if not isinstance(cell, str):
            return _number_of_object(cell)
        text = cell.strip()
        if text.casefold() in self.texts:
            return math.nan
        text = text.replace("\u2212", "-")  # the minus sign of typeset tables
        if "_" in text or not text.isascii():  # float() would read 1_000 and digits of any script
            raise ValueError(cell)
        if self.decimal == ",":
            if "." in text:
                raise ValueError(cell)
            text = text.replace(",", ".")
        return float(text)

    def numbers_of(self, column: Any) -> FloatArray:
        """Return a pandas column as float64, missing cells as NaN; raise `BadCell` if it is not."""
        from pandas.api import types

        if types.is_numeric_dtype(column) and column.dtype.kind in "iuf":
            values = column.to_numpy(dtype=np.float64, na_value=np.nan)
        else:
            values = np.empty(len(column))
            for position, cell in enumerate(column.tolist()):
                try:
                    values[position] = self.number(cell)
                except (ValueError, TypeError) as error:
                    raise BadCell(position, cell) from error
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
        forms = [(text, text.upper(), text.capitalize()) for text in self.texts]
        return sorted({form for three in forms for form in three} | {"NaN"})


def cell_rules(missing: Iterable[str] = (), decimal: str = ".") -> CellRules:
    """Return the rules for the usual markers of missing cells and some more."""
    texts = {marker.strip().casefold() for marker in (*MISSING_MARKERS, *missing)}
    plain, numbers = CellRules(frozenset(), (), decimal), set()
    for marker in missing:
        try:
            numbers.add(plain.number(marker))
        except ValueError:
            continue
    return CellRules(frozenset(texts), tuple(sorted(n for n in numbers if n == n)), decimal)


def shown(cell: object) -> str:
    """Return a cell as it is quoted in messages."""
    text = str(cell)
    return repr(text if len(text) <= _SHOWN else text[: _SHOWN - 1] + "…")


def why_no_number(cell: object, decimal: str = ".") -> str:
    """Say in a few words why a cell is no number."""
    if str(cell).strip().casefold() in ("true", "false"):
        return f"{shown(cell)} is no number; to use true and false, write 1 and 0"
    if isinstance(cell, str) and _GROUPED.fullmatch(cell.strip()):
        return f"{shown(cell)} may have thousands marks, which are not read"
    other = "," if decimal == "." else "."
    if isinstance(cell, str) and _is_number_with(cell, other):
        marks = {".": "a decimal point", ",": "a decimal comma"}
        return f"{shown(cell)} has {marks[other]}, but the table has {marks[decimal]}"
    return f"{shown(cell)} is no number"


def _is_number_with(cell: str, decimal: str) -> bool:
    """Whether a cell with a decimal mark is a number if that mark is the table's."""
    try:
        return decimal in cell and math.isfinite(CellRules(frozenset(), (), decimal).number(cell))
    except ValueError:
        return False


def _number_of_object(cell: Any) -> float:
    """Return a cell that is no text as a number; booleans, dates and lists are none."""
    if cell is None or type(cell).__name__ in ("NAType", "NaTType"):
        return math.nan
    if isinstance(cell, bool | np.bool_ | complex) or not hasattr(cell, "__float__"):
        raise ValueError(cell)
    return float(cell)
