"""Workbooks of Excel (``.xlsx``): one sheet is a table, by default the first one.

The first line that is not empty has the names of the columns, and an unnamed first column those of
the rows. Formulas count as the values that Excel has stored for them. Cells keep their types:
numbers, truth values, times and text; a text that begins like a formula is written as text.
"""

from __future__ import annotations

import contextlib
import datetime
import itertools
import warnings
import zipfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from twofold.tables.table import (
    TableError,
    TypedTable,
    cell_rules,
    check_unpacked,
    close_names,
    load_package,
)
from twofold.tables.typed_files import telling_damage

# What a sheet has room for.
MOST_ROWS, MOST_COLUMNS = 1_048_576, 16_384
_SHEET = "table"


class ExcelTable(TypedTable):
    """A sheet of a workbook."""

    def __init__(
        self, path: Path, name: str, missing: Sequence[str], part: str | None = None
    ) -> None:
        super().__init__(name, cell_rules(missing))
        load_package("openpyxl", "Reading Excel files")
        with telling_damage(name, "xlsx", "Save it again, or save the sheet as CSV."):
            _check_sizes(path, name)
            lines = self._read_sheet(path, part)
        self._frame = self._as_frame(lines)
        self.n_rows = len(self._frame)
        if not self.n_rows:
            raise TableError(f"'{name}' has column names but no rows.")

    def _frames(self, rows: int) -> Iterator[pd.DataFrame]:
        for start in range(0, len(self._frame), rows):
            yield self._frame.iloc[start : start + rows].reset_index(drop=True)

    def _read_sheet(self, path: Path, part: str | None) -> list[tuple[Any, ...]]:
        """Return the lines of the sheet that is asked for, without empty ones."""
        openpyxl = load_package("openpyxl", "Reading Excel files")
        with warnings.catch_warnings(), path.open("rb") as file:
            warnings.simplefilter("ignore")  # of styles and menus, which are not read
            book = openpyxl.load_workbook(file, read_only=True, data_only=True)
            with contextlib.closing(book):
                sheet = self._sheet_of(book, part)
                lines = sheet.iter_rows(values_only=True)
                return [line for line in lines if any(cell is not None for cell in line)]

    def _sheet_of(self, book: Any, part: str | None) -> Any:
        names = [sheet.title for sheet in book.worksheets]
        if not names:
            raise TableError(f"'{self._name}' has no sheets of cells.")
        if part is None:
            if len(names) > 1:
                self.notes.append(
                    f"'{self._name}' has {len(names)} sheets; the first, '{names[0]}', is read. "
                    f"Another one: '{self._name}:{names[1]}'."
                )
            return book[names[0]]
        if part not in names:
            close = close_names(part, names)
            raise TableError(
                f"'{self._name}' has no sheet '{part}'.",
                f"Did you mean {close}?" if close else f"It has {', '.join(map(repr, names))}.",
            )
        return book[part]

    def _as_frame(self, lines: list[tuple[Any, ...]]) -> pd.DataFrame:
        """Return lines, the first of them the names, as columns with types; set the names."""
        if not lines:
            raise TableError(f"'{self._name}' has no cells.", "Check that it is the right sheet.")
        header, body = lines[0], lines[1:]
        has_names = any(isinstance(cell, str) for cell in header)
        if not has_names:
            self.notes.append("The first line holds no text, so the columns are named x1, x2, ...")
            header, body = tuple(f"x{k + 1}" for k in range(len(header))), lines
        width = max(map(len, lines))
        columns = list(itertools.zip_longest(*body)) if body else [()] * width
        columns += [()] * (width - len(columns))
        names = [*header, *[None] * (width - len(header))]
        found = {}
        for k, (label, cells) in enumerate(zip(names, columns, strict=True)):
            text = "" if label is None else str(label).strip()
            if not text and all(cell is None for cell in cells):
                continue
            if not text and k > 0:
                text = f"column_{k + 1}"
                self.notes.append(f"Column {k + 1} of '{self._name}' has no name: {text}.")
            if text in found:
                raise TableError(
                    f"'{self._name}' has several columns of the same name: {text!r}.",
                    "Give each column a name of its own.",
                )
            found[text] = _typed(cells)
        self.names = tuple(found)
        self.own_index = "" if "" in found else None
        return pd.DataFrame(found)


def _typed(cells: Sequence[Any]) -> pd.Series:
    """Return cells as a column of the type that they have in common."""
    column = pd.Series(list(cells), dtype=object)
    kinds = {type(cell) for cell in cells if cell is not None}
    has_gaps = any(cell is None for cell in cells)
    if kinds == {bool}:
        return column.astype("boolean" if has_gaps else bool)
    if kinds == {int} and all(abs(cell) < 2**63 for cell in cells if cell is not None):
        return column.astype("Int64" if has_gaps else "int64")
    if kinds and kinds <= {int, float}:
        return column.astype("float64")
    if kinds and kinds <= {datetime.datetime, datetime.date}:
        return pd.to_datetime(column)
    return column


def _check_sizes(path: Path, name: str) -> None:
    """Refuse a workbook that unpacks to far more than it is."""
    with zipfile.ZipFile(path) as archive:
        for member in archive.infolist():
            check_unpacked(member, name, "If it is right, save the sheet as CSV.")


class ExcelSink:
    """Write frames to a sheet of a workbook."""

    def __init__(self, path: Path) -> None:
        openpyxl = load_package("openpyxl", "Writing Excel files")
        self._cell = load_package("openpyxl.cell", "Writing Excel files").WriteOnlyCell
        exceptions = load_package("openpyxl.utils.exceptions", "Writing Excel files")
        self._refused = (ValueError, exceptions.IllegalCharacterError)
        self._path = path
        self._book = openpyxl.Workbook(write_only=True)
        self._sheet = self._book.create_sheet(_SHEET)
        self._n_lines = 0

    def write(self, frame: pd.DataFrame, has_index: bool) -> None:
        """Append rows, above the first one the names of the columns."""
        columns = [_cells_of(frame[name]) for name in frame.columns]
        if has_index:
            columns.insert(0, [str(label) for label in frame.index])
        if len(columns) > MOST_COLUMNS or self._n_lines + len(frame) >= MOST_ROWS:
            raise TableError(
                f"A sheet of Excel has room for {MOST_ROWS - 1:,} rows below the names and "
                f"{MOST_COLUMNS:,} columns.",
                "Write .csv or .parquet.",
            )
        if self._n_lines == 0:
            names = [str(name) for name in frame.columns]
            index_name = "" if frame.index.name is None else str(frame.index.name)
            self._append([index_name, *names] if has_index else names)
        for line in zip(*columns, strict=True):
            self._append(line)

    def finish(self) -> None:
        """Write the file."""
        with self._path.open("wb") as file:
            self._book.save(file)

    def close(self) -> None:
        """Let go of what was written."""
        self._book.close()

    def _append(self, line: Sequence[Any]) -> None:
        try:
            self._sheet.append([self._as_text(c) if isinstance(c, str) else c for c in line])
        except self._refused as error:  # characters and times that a workbook cannot hold
            raise TableError(
                f"An Excel file cannot hold a cell: {str(error)!r}.",
                "Write .csv or .parquet.",
            ) from error
        self._n_lines += 1

    def _as_text(self, text: str) -> Any:
        """Return a cell that is text, whatever it looks like."""
        if not text.startswith("="):
            return text
        cell = self._cell(self._sheet, text)
        cell.data_type = "s"
        return cell


def _cells_of(column: pd.Series) -> list[Any]:
    """Return what a sheet holds for a column: numbers, truth values, times or text."""
    if getattr(column.dtype, "tz", None) is not None:  # cells have no time zones
        column = column.astype(str).where(column.notna())
    elif column.dtype.name == "category":
        column = column.astype(object)
    gaps = column.isna().to_numpy()
    kind = column.dtype.kind
    cells = (
        [cell.to_pydatetime() if cell is not pd.NaT else None for cell in column]
        if kind == "M"
        else column.tolist()
    )
    if kind not in "iufbM":
        cells = [
            cell if isinstance(cell, bool | int | float | str | datetime.date) else str(cell)
            for cell in cells
        ]
    return [None if gap else cell for cell, gap in zip(cells, gaps, strict=True)]
