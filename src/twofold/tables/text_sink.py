"""Frames as lines of text, with the shortest numbers that read back equal."""

from __future__ import annotations

import codecs
import csv
import io
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from twofold.array_types import FloatArray
from twofold.tables.cells import cell_rules
from twofold.tables.dialect import Dialect
from twofold.tables.number_columns import text_of

if TYPE_CHECKING:
    import pandas as pd

_MAX_WHOLE = 1e15  # whole numbers up to here are written without exponent by repr as well


class BytesOut(Protocol):
    """The part of a binary file that is needed here."""

    def write(self, data: bytes, /) -> Any:
        """Write some bytes."""
        ...

    def flush(self) -> Any:
        """Hand all bytes on."""
        ...


class TextSink:
    """Write frames as text; see `twofold.tables.writing.Sink`."""

    def __init__(self, file: BytesOut, dialect: Dialect, *, closes: bool = True) -> None:
        self._file = file
        self._dialect = dialect
        self._closes = closes
        self._is_new = True

    def write(self, frame: pd.DataFrame, has_index: bool) -> None:
        """Write the rows of a frame, above the first one the names of the columns."""
        columns = [texts(frame[name], self._dialect.decimal) for name in frame.columns]
        if has_index:
            columns.insert(0, text_of(frame.index.to_series()))
        if self._is_new:
            if self._dialect.encoding == "utf-8-sig":
                self._file.write(codecs.BOM_UTF8)
            if self._dialect.has_separator_line:
                line = f"sep={self._dialect.separator}{self._dialect.line_end}"
                self._file.write(line.encode())
            self._file.write(self._header(frame, has_index))
            self._is_new = False
        self._file.write(self._lines(zip(*columns, strict=True)))

    def finish(self) -> None:
        """Hand on what is still kept back."""
        self._file.flush()

    def close(self) -> None:
        """Close the file, unless it is standard output."""
        if self._closes:
            self._file.close()  # type: ignore[attr-defined]

    def _header(self, frame: pd.DataFrame, has_index: bool) -> bytes:
        """Return the line of names; quoted if they could be taken for numbers."""
        names = [str(name) for name in frame.columns]
        quoting = csv.QUOTE_ALL if any(_looks_like_number(n) for n in names) else csv.QUOTE_MINIMAL
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


def texts(column: pd.Series, decimal: str = ".") -> list[str]:
    """Return the cells of a column as text; missing ones are empty."""
    dtype = column.dtype
    if dtype.kind == "f":
        values = column.to_numpy(na_value=np.nan, dtype=getattr(dtype, "numpy_dtype", dtype))
        found = _float_texts(values)
        return [text.replace(".", ",") for text in found] if decimal == "," else found
    return text_of(column)


def _float_texts(values: FloatArray) -> list[str]:
    """Return the shortest text of each number that reads back equal in its own precision."""
    with np.errstate(invalid="ignore"):
        is_whole = np.isfinite(values) & (np.abs(values) < _MAX_WHOLE) & (values == np.rint(values))
    if is_whole.all() and not np.signbit(values[values == 0]).any():
        return [str(whole) for whole in values.astype(np.int64).tolist()]
    written = values.tolist() if values.dtype == np.float64 else values.astype(str).tolist()
    if values.dtype == np.float64:
        written = [repr(value) for value in written]
    return ["" if text == "nan" else text.removesuffix(".0") for text in written]


def _looks_like_number(name: str) -> bool:
    try:
        return bool(name) and cell_rules().number(name) is not None
    except ValueError:
        return False
