"""Tables from files of several kinds, whole or in chunks, behind one small interface.

The kind is told by the suffix: text (``.csv``, ``.tsv``, ``.txt``, also with ``.gz``), Parquet,
numpy's ``.npy`` and ``.npz``, Excel's ``.xlsx`` and AnnData's ``.h5ad``; ``-`` is text from
standard input. Parts of a file are named behind a colon (:mod:`.parts`): ``book.xlsx:Sheet2``.
Text has no types, so its cells come as text, exactly as they are in the file, and become numbers
where they are asked for as numbers. The other kinds keep the types of their columns.
"""

import os
import shutil
import sys
import tempfile
import weakref
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pandas as pd

from twofold.checks.parameters import check_count
from twofold.tables.excel_files import ExcelTable
from twofold.tables.parts import split_part
from twofold.tables.table import (
    BadCell,
    NearlyNumbers,
    NotANumberError,
    Table,
    TableError,
    close_names,
    nearly_numbers,
    text_of,
)
from twofold.tables.text_files import TextTable
from twofold.tables.typed_files import AnnDataTable, ArrayTable, ParquetTable

TEXT_SUFFIXES = (".csv", ".tsv", ".txt", ".tab", ".dat", ".data")
_READABLE = "csv, tsv, txt (also .gz), parquet, xlsx, npy, npz and h5ad"
_ELSEWHERE = {
    **dict.fromkeys((".xls", ".ods"), "Save it as .xlsx or CSV in the spreadsheet program."),
    ".twofold": "This is the suffix of a saved model; give the table here.",
}


class TableSource:
    """A table that is read whole or in chunks, as often as wanted; made by `open_table`."""

    # Frames carry the index as text exactly as in the file, or row numbers from 0 without one.
    columns: tuple[str, ...]  # in their order, without the index
    has_index: bool  # whether the rows have names
    index_name: str | None  # None if the index has no name, or there is none
    companions: tuple[str, ...]  # kept beside the matrix, such as the ``y`` of an npz file

    def __init__(self, path: str, table: Table, index: str | None) -> None:
        self.path = path
        self.dialect = table.dialect  # None unless it is text
        self.rules = table.rules  # which cells are missing or numbers
        self.notes = table.notes  # sentences worth telling the user
        self.n_rows = table.n_rows  # None while it is unknown
        # After read(numbers="detect"): the other columns, each with the reason; those of them that
        # are numbers in most cells; and those left out for how their numbers are written.
        self.left_out: list[tuple[str, str]] = []
        self.nearly_numbers: dict[str, NearlyNumbers] = {}
        self.amounts: set[str] = set()
        self._table = table
        self._rows_read = 0
        self.take_index(table.own_index if index is None else index)

    def take_index(self, index: str | None) -> None:
        """Take another column for the names of the rows, None for none."""
        names = self._table.names
        twice = [name for name, times in Counter(names).items() if times > 1]
        if twice:
            raise TableError(
                f"'{self.path}' has several columns of the same name: {_listed(twice)}.",
                "Give each column a name of its own.",
            )
        if index is not None and index not in names:
            raise _no_column(self.path, index, names, " to take as the index")
        self._index = index
        self.has_index = index is not None
        self.index_name = index or None
        self.columns = tuple(name for name in names if name != index)
        self.companions = tuple(name for name in self._table.companions if name != index)

    def expected_rows(self) -> int | None:
        """Return the number of rows; while a text is read, an estimate from its bytes so far."""
        if self.n_rows is not None:
            return self.n_rows
        # Nobody has counted the lines of a text yet: as many more as bytes are left.
        share = self._table.share_read
        return round(self._rows_read / share) if share > 0 and self._rows_read else None

    @property
    def has_default_names(self) -> bool:
        """Whether the file has no names of its own, and columns are x1, x2 and so on."""
        names = [name for name in self.columns if name not in self.companions]
        return names == [f"x{number + 1}" for number in range(len(names))]

    def number_type(self, columns: Iterable[str]) -> np.dtype[Any]:
        """Return float32 if the file holds these columns so, otherwise float64."""
        kinds = next(self._table.blocks(frozenset(), 1)).dtypes
        is_single = all(kinds[name] == np.float32 for name in columns)
        return np.dtype(np.float32 if is_single else np.float64)

    def __repr__(self) -> str:
        rows = "?" if self.n_rows is None else self.n_rows
        return f"<TableSource {self.path!r}: {rows} rows, {len(self.columns)} columns>"

    def read(self, numbers: Iterable[str] | Literal["detect"] = ()) -> pd.DataFrame:
        """Return the whole table, ``numbers`` as float64; "detect" lists others in ``left_out``."""
        if isinstance(numbers, str) and numbers == "detect":
            return self._read_detected()
        frames = list(self.chunks(numbers=numbers))
        return frames[0] if len(frames) == 1 else pd.concat(frames)

    def chunks(
        self, rows: int | None = None, *, numbers: Iterable[str] = ()
    ) -> Iterator[pd.DataFrame]:
        """Yield the table in frames of ``rows``, by default of 64 MB, ``numbers`` as float64."""
        if rows is not None:
            check_count("rows", rows)
        wanted, known = [numbers] if isinstance(numbers, str) else list(numbers), set(self.columns)
        for name in wanted:
            if name not in known:
                raise _no_column(self.path, name, self.columns)
        frames = self._indexed(frozenset(wanted), rows)
        return frames if rows is None else _regrouped(frames, rows)

    def _indexed(self, numbers: frozenset[str], rows: int | None) -> Iterator[pd.DataFrame]:
        """Yield the blocks of the file with their index, and count the rows."""
        done = 0
        for frame in self._table.blocks(numbers, rows):
            self._rows_read = done + len(frame)
            if self._index is None:
                frame.index = pd.RangeIndex(done, done + len(frame))
            else:
                names = text_of(frame[self._index])
                frame = frame[list(self.columns)].copy()  # pop() is slow in a wide table
                frame.index = pd.Index(names, name=self.index_name)
            done += len(frame)
            yield frame
        if done == 0:
            raise TableError(
                f"'{self.path}' has column names but no rows.", "Check that the file is complete."
            )
        self.n_rows = done

    def _read_detected(self) -> pd.DataFrame:
        """Read whole with number columns found by their cells."""
        # The first block rules most text columns out. If a cell further down is no number, one more
        # pass over the text finds all such columns.
        reasons: dict[str, str] = {}
        self.look_for_text(reasons, blocks=1)
        try:
            frame = self.read(self._without(reasons))
        except NotANumberError:
            self.look_for_text(reasons)
            frame = self.read(self._without(reasons))
        is_empty = frame[self._without(reasons)].isna().all()
        for name in is_empty.index[is_empty.to_numpy()]:
            reasons[name] = "all its cells are missing"
            frame[name] = frame[name].astype(object)
        self.nearly_numbers = {}
        for name in reasons:
            if (nearly := nearly_numbers(frame[name], self.rules)) is not None:
                reasons[name], self.nearly_numbers[name] = nearly.reason, nearly
        self.left_out = [(name, reasons[name]) for name in self.columns if name in reasons]
        return frame

    def _without(self, reasons: dict[str, str]) -> list[str]:
        return [name for name in self.columns if name not in reasons]

    def look_for_text(self, reasons: dict[str, str], blocks: int | None = None) -> None:
        """Note for each column with a cell that is not a number the first such cell."""
        for number, frame in enumerate(self._table.blocks(frozenset(), None)):
            if number == blocks:
                break
            for name in self._without(reasons):
                if isinstance(frame[name].dtype, pd.CategoricalDtype):
                    reasons[name] = "its levels have an order"  # even if they look like numbers
                    continue
                try:
                    self.rules.numbers_of(frame[name])
                except BadCell as bad:
                    reasons[name] = self.rules.why_no_number(bad.cell)
                    if self.rules.is_other_number(bad.cell):
                        self.amounts.add(name)


def open_table(
    path: str | os.PathLike[str], *, index: str | None = None, missing: Iterable[str] = ()
) -> TableSource:
    """Open a table, having read its names and found out how it is written."""
    # By default an unnamed first column is the index, or what the file itself calls so; `missing`
    # are markers beside the usual ones.
    markers = [missing] if isinstance(missing, str) else [str(marker) for marker in missing]
    name = os.fspath(path)
    if name == "-":
        return _from_stdin(index, markers)
    bare, part = (name, None) if Path(name).exists() else split_part(name)
    file = Path(bare)
    _check_file(file)
    suffixes = [suffix.lower() for suffix in file.suffixes]
    kind = suffixes[-2] if suffixes[-1:] == [".gz"] and len(suffixes) > 1 else file.suffix.lower()
    make = _KINDS.get(kind)
    if make is None or (kind != file.suffix.lower() and kind not in TEXT_SUFFIXES):
        raise TableError(
            f"'{name}' has the suffix '{file.suffix}', which is not a known kind of table.",
            _ELSEWHERE.get(kind, f"Known kinds are {_READABLE}; rename the file if it is one."),
        )
    try:
        table = (
            make(file, name, markers)
            if part is None
            else _WITH_PARTS[kind](file, bare, markers, part)
        )
        return TableSource(name, table, index)
    except OSError as error:
        raise TableError(f"'{name}' cannot be read: {error.strerror or error}.") from error


_KINDS: dict[str, Callable[[Path, str, Sequence[str]], Table]] = {
    **dict.fromkeys(TEXT_SUFFIXES, TextTable),
    **dict.fromkeys((".parquet", ".pq"), ParquetTable),
    **dict.fromkeys((".npy", ".npz"), ArrayTable),
    **dict.fromkeys((".xlsx", ".xlsm"), ExcelTable),
    ".h5ad": AnnDataTable,
}
_WITH_PARTS: dict[str, Callable[[Path, str, Sequence[str], str], Table]] = {
    **dict.fromkeys((".xlsx", ".xlsm"), ExcelTable),
    ".h5ad": AnnDataTable,
}


def _from_stdin(index: str | None, missing: Sequence[str]) -> TableSource:
    """Copy standard input to a temporary file, for a table may be read more than once."""
    descriptor, spooled = tempfile.mkstemp(prefix="twofold-", suffix=".csv")
    try:
        with os.fdopen(descriptor, "wb") as file:
            shutil.copyfileobj(sys.stdin.buffer, file)
        source = TableSource("-", TextTable(Path(spooled), "standard input", missing), index)
    except BaseException:
        os.unlink(spooled)
        raise
    # The copy goes when nobody holds the table any more, at the end of the process at the latest.
    weakref.finalize(source, os.unlink, spooled)
    return source


def _regrouped(frames: Iterator[pd.DataFrame], rows: int) -> Iterator[pd.DataFrame]:
    """Yield frames of exactly ``rows`` rows, the last of what is left."""
    pending: list[pd.DataFrame] = []
    n_pending = 0
    for frame in frames:
        start = 0
        while n_pending + len(frame) - start >= rows:
            stop = start + rows - n_pending
            yield pd.concat([*pending, frame.iloc[start:stop]])
            pending, n_pending, start = [], 0, stop
        if start < len(frame):
            pending.append(frame.iloc[start:])
            n_pending += len(frame) - start
    if pending:
        yield pd.concat(pending)


def _check_file(file: Path) -> None:
    """Refuse what is no file, with the nearest names as a hint."""
    if file.is_dir():
        raise TableError(f"'{file}' is a folder; expected a table.", "Name a file in it.")
    if file.exists():
        return
    if not file.parent.is_dir():
        raise TableError(f"There is no file '{file}': the folder '{file.parent}' does not exist.")
    close = close_names(file.name, (other.name for other in file.parent.iterdir()))
    raise TableError(f"There is no file '{file}'.", f"Did you mean {close}?" if close else None)


def _no_column(path: str, name: str, known: Sequence[str], purpose: str = "") -> TableError:
    close = close_names(name, known)
    return TableError(
        f"'{path}' has no column {name!r}{purpose}.",
        f"Did you mean {close}?" if close else f"It has {_listed(known)}.",
    )


def _listed(names: Sequence[str], most: int = 12) -> str:
    """Return names as text, many of them cut short."""
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(repr(name) for name in names[:most]) + more
