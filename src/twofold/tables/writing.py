"""Tables to files, piece by piece, and the file appears whole or not at all.

Text has the shortest numbers that read back equal.
"""

from __future__ import annotations

import codecs
import contextlib
import csv
import gzip
import io
import os
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import pandas as pd

from twofold.array_types import FloatArray
from twofold.checks.harmless_text import for_terminal
from twofold.replacing import replacing
from twofold.tables.dialect import Dialect
from twofold.tables.excel_files import ExcelSink
from twofold.tables.reading import TEXT_SUFFIXES, TableSource
from twofold.tables.table import TableError, cell_rules, text_of
from twofold.tables.text_types import date_texts
from twofold.tables.typed_sinks import AnnDataSink, NpySink, NpzSink, ParquetSink

_MAX_WHOLE = 1e15  # whole numbers up to here are written without exponent by repr as well


class TableWriter:
    """Write frames to a file one after the other, as a context manager; made by `open_writer`."""

    # The file is written under another name and takes its place when the block ends without an
    # exception; otherwise an older file of that name stays as it was.
    def __init__(
        self,
        path: str,
        make: Callable[[Path], Sink],
        *,
        in_place: bool = False,
        dialect: Dialect | None = None,
    ) -> None:
        self.path = path
        self.dialect = dialect  # None unless it is text
        self.n_rows = 0  # written so far
        self.notes: list[str] = []  # sentences worth telling the user
        self._make = make
        self._in_place = in_place
        self._sink: Sink | None = None
        self._session = self._writing()
        self._columns: list[object] | None = None
        self._has_index = False

    def __enter__(self) -> TableWriter:
        self._session.__enter__()
        return self

    def __exit__(self, *raised: Any) -> bool | None:
        return self._session.__exit__(*raised)

    @contextlib.contextmanager
    def _writing(self) -> Iterator[None]:
        """Open the file, and finish it if the block ends without an exception."""
        target = Path(self.path)
        destination = contextlib.nullcontext(target) if self._in_place else replacing(target)
        is_within_block = False
        try:
            with destination as place, contextlib.closing(self._make(place)) as sink:
                self._sink, is_within_block = sink, True
                yield
                self._sink, is_within_block = None, False
                if self._columns is None:
                    raise TableError(f"Nothing was written to '{self.path}': no rows came.")
                sink.finish()
        except OSError as error:
            if is_within_block or isinstance(error, BrokenPipeError):
                raise
            raise _cannot_write(self.path, error) from error
        finally:
            self._sink = None

    def write(self, frame: pd.DataFrame) -> None:
        """Append the rows of a frame, which must have the same columns each time."""
        if self._sink is None:
            raise RuntimeError("Use the writer in a with block: `with open_writer(path) as out:`.")
        if frame.index.nlevels > 1:
            raise TableError("An index of several levels cannot be written.", "Use reset_index().")
        # More than row numbers: a name, or anything but whole numbers.
        has_index = frame.index.name is not None or frame.index.dtype.kind not in "iu"
        columns = list(frame.columns)
        if self._columns is None:
            self._columns, self._has_index = columns, has_index
            if has_index and isinstance(self._sink, NpySink):
                self.notes.append("An .npy file does not keep the names of rows; .npz does.")
        if columns != self._columns or has_index != self._has_index:
            raise ValueError(
                f"Expected the columns {self._columns} {'with' if self._has_index else 'without'} "
                f"an index, as before; got {columns} {'with' if has_index else 'without'} one."
            )
        try:
            self._sink.write(frame, has_index)
        except BrokenPipeError:
            raise
        except OSError as error:
            raise _cannot_write(self.path, error) from error
        self.n_rows += len(frame)


# What takes frames: `write`, then `finish` once all rows are there, then `close` in any case.
Sink: TypeAlias = "TextSink | ParquetSink | NpySink | NpzSink | ExcelSink | AnnDataSink"
_PARQUET: dict[str, Callable[[Path], Sink]] = dict.fromkeys((".parquet", ".pq"), ParquetSink)
_BINARY: dict[str, Callable[[Path], Sink]] = {
    **_PARQUET,
    ".npy": NpySink,
    ".npz": NpzSink,
    ".xlsx": ExcelSink,
    ".h5ad": AnnDataSink,
}


def open_writer(path: str | os.PathLike[str], *, like: TableSource | None = None) -> TableWriter:
    """Return a writer for a table of the kind that the suffix tells; "-" is standard output."""
    # Of `like`, if it has the same suffix, separator (and Excel's line about it), decimal comma,
    # byte order mark and line ends are kept. What stood beside a matrix stays beside it in h5ad.
    name = os.fspath(path)
    kind = _kind(name)
    if kind in TEXT_SUFFIXES:
        dialect = _dialect(kind, like, is_file=name != "-")
        # Pipes and devices such as /dev/null cannot be replaced, only written to.
        in_place = name == "-" or _is_device(Path(name))
        make = partial(TextSink, name=name, dialect=dialect)
        return TableWriter(name, make, in_place=in_place, dialect=dialect)
    if kind == ".h5ad" and like is not None:
        return TableWriter(name, partial(AnnDataSink, beside=like.companions))
    if kind in _BINARY:
        return TableWriter(name, _BINARY[kind])
    hint = "Writable are csv, tsv, txt (also .gz), parquet, xlsx, npy, npz and h5ad."
    raise TableError(f"A table cannot be written to '{name}': unknown kind '{kind}'.", hint)


def _kind(name: str) -> str:
    """Return the suffix that tells the kind, in lower case; .gz only compresses."""
    path = Path(name)
    if name == "-":
        return ".csv"
    is_compressed = path.suffix.lower() == ".gz"
    kind = Path(path.stem).suffix.lower() if is_compressed else path.suffix.lower()
    if is_compressed and kind not in TEXT_SUFFIXES:
        return path.suffix.lower()
    # Devices have no suffix, and text is what can be written to them.
    return ".csv" if not kind and _is_device(path) else kind


def _is_device(path: Path) -> bool:
    return path.exists() and not path.is_file() and not path.is_dir()


def _dialect(kind: str, like: TableSource | None, is_file: bool) -> Dialect:
    """Return how to write text: as ``like`` if it is of the same kind, else the usual way."""
    # What came in a Western encoding goes back as UTF-8 with a byte order mark: without it the
    # programs that write such files would take the letters with accents for others.
    usual = Dialect("," if kind == ".csv" else "\t")
    if like is None or like.dialect is None or _kind(like.path) != kind:
        return usual
    old = like.dialect
    marked = ("utf-8-sig", "utf-16", *(("cp1252", "latin-1") if is_file else ()))
    return Dialect(
        # Missing cells would be lost between blanks.
        separator=usual.separator if old.separator == " " else old.separator,
        decimal=old.decimal,
        encoding="utf-8-sig" if old.encoding in marked else "utf-8",
        line_end="\r\n" if old.line_end == "\r\n" else "\n",
        has_separator_line=old.has_separator_line,
    )


def _cannot_write(path: str, error: OSError) -> TableError:
    """Say why a file cannot be written."""
    reason = str(error) if error.strerror is None else error.strerror
    return TableError(f"'{path}' cannot be written: {reason}", "Check the folder and the disk.")


# ---- text ---------------------------------------------------------------------------------------


class TextSink:
    """Write frames as text to a file, compressed if its name says so, or to standard output."""

    def __init__(self, path: Path, name: str, dialect: Dialect) -> None:
        self._dialect = dialect
        self._is_new = True
        self._files = contextlib.ExitStack()
        if name == "-":
            sys.stdout.flush()
            binary = None if sys.stdout.isatty() else getattr(sys.stdout, "buffer", None)
            self._put: Callable[[bytes], Any] = binary.write if binary else _put_text
            self._flush = (binary or sys.stdout).flush
            return
        file: Any = self._files.enter_context(path.open("wb"))
        if name.lower().endswith(".gz"):
            # No name and no time inside, so that the same table gives the same bytes.
            file = gzip.GzipFile("", "wb", compresslevel=6, fileobj=file, mtime=0)
            self._files.callback(file.close)
        self._put, self._flush = file.write, file.flush

    def write(self, frame: pd.DataFrame, has_index: bool) -> None:
        """Write the rows of a frame, above the first one the names of the columns."""
        columns = [number_texts(frame[name], self._dialect.decimal) for name in frame.columns]
        if has_index:
            columns.insert(0, text_of(frame.index.to_series()))
        if self._is_new:
            if self._dialect.encoding == "utf-8-sig":
                self._put(codecs.BOM_UTF8)
            if self._dialect.has_separator_line:
                line = f"sep={self._dialect.separator}{self._dialect.line_end}"
                self._put(line.encode())
            self._put(self._header(frame, has_index))
            self._is_new = False
        self._put(self._lines(zip(*columns, strict=True)))

    def finish(self) -> None:
        """Hand on what is still kept back."""
        self._flush()

    def close(self) -> None:
        """Close the file, unless it is standard output."""
        self._files.close()

    def _header(self, frame: pd.DataFrame, has_index: bool) -> bytes:
        """Return the line of names; quoted if they could be taken for numbers."""
        names = [str(name) for name in frame.columns]
        looks_like_number = any(name and cell_rules().is_number(name) for name in names)
        quoting = csv.QUOTE_ALL if looks_like_number else csv.QUOTE_MINIMAL
        index_name = frame.index.name
        index = ["" if index_name is None else str(index_name)] if has_index else []
        return self._lines([[*index, *names]], quoting)

    def _lines(self, rows: Iterable[Sequence[str]], quoting: int = csv.QUOTE_MINIMAL) -> bytes:
        rows = list(rows)
        text = self._joined(rows, quoting)
        # Before Python 3.13 the csv module leaves a carriage return unquoted, which ends a line.
        if self._dialect.line_end != "\r\n" and "\r" in text:
            text = self._joined(rows, csv.QUOTE_ALL)
        return text.encode()

    def _joined(self, rows: Iterable[Sequence[str]], quoting: int) -> str:
        buffer = io.StringIO(newline="")
        writer = csv.writer(
            buffer,
            delimiter=self._dialect.separator,
            lineterminator=self._dialect.line_end,
            quoting=quoting,  # type: ignore[arg-type]
        )
        writer.writerows(rows)
        return buffer.getvalue()


def _put_text(data: bytes) -> None:
    """Write to standard output where it takes text only, or obeys it, as a terminal does."""
    text = data.decode()
    if sys.stdout.isatty():
        text = for_terminal(text.replace("\r\n", "\n"))
    sys.stdout.write(text)


def number_texts(column: pd.Series, decimal: str = ".") -> list[str]:
    """Return the cells of a column as text; missing ones are empty."""
    dtype = column.dtype
    if dtype.kind == "f":
        values = column.to_numpy(na_value=np.nan, dtype=getattr(dtype, "numpy_dtype", dtype))
        found = _float_texts(values)
        return [text.replace(".", ",") for text in found] if decimal == "," else found
    return date_texts(column) if dtype.kind == "M" else text_of(column)


def _float_texts(values: FloatArray) -> list[str]:
    """Return the shortest text of each number that reads back equal in its own precision."""
    with np.errstate(invalid="ignore"):
        is_whole = np.isfinite(values) & (np.abs(values) < _MAX_WHOLE) & (values == np.rint(values))
    if is_whole.all() and not np.signbit(values[values == 0]).any():
        return [str(whole) for whole in values.astype(np.int64).tolist()]
    is_double = values.dtype == np.float64
    written = map(repr, values.tolist()) if is_double else values.astype(str).tolist()
    return ["" if text == "nan" else text.removesuffix(".0") for text in written]
