"""Tables walked in chunks of numbers, as often as wanted, and never held whole.

A chunk is an array of rows, or a data frame where columns have names: a slice of an array that is
mapped into memory, rows of a file, or what an iterable yields. What can be walked only once is
copied to a temporary file first. The file has no name, so that the system removes it even if the
process is killed.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from twofold.checks.rows import check_numeric, is_lazy
from twofold.memory import available, readable

if TYPE_CHECKING:
    from twofold.tables.table import TableError

# Eight bytes each, 16 MB; and this many tables fit into memory during a fit.
CELLS_AT_A_TIME = 2_000_000
COPIES = 4


def open_chunks(table: Any, beside: str | os.PathLike[str] | None = None) -> ChunkedTable:
    """Return a path, a mapped array, a table of dask or an iterable of chunks, to be walked.

    A copy of what can be walked only once goes to the folder of ``beside``, a file, or to the
    folder for temporary files.
    """
    if isinstance(table, str | os.PathLike):
        return FileChunks(table)
    if isinstance(table, np.ndarray):
        return ArrayChunks(table, f"the array of shape {table.shape}")
    if is_lazy(table):
        from twofold.tables.dask_tables import DaskTable

        return DaskTable(table)
    if hasattr(table, "__next__"):
        return _spooled(table, None if beside is None else Path(beside).parent)
    return IterableChunks(table)


class ChunkedTable:
    """A table that is walked in chunks."""

    name: str  # in messages
    n_rows: int | None = None  # None while it is not known

    def __iter__(self) -> Iterator[Any]:
        raise NotImplementedError

    def whole(self) -> Any:
        """Return all rows in memory; a MemoryError says how many there are if that is too small."""
        n, width, bytes_each = self._size()
        there = available()
        if there is not None and COPIES * n * width * bytes_each > there:
            raise MemoryError(
                f"{self.name} has about {n:,} rows and {width:,} columns, "
                f"{readable(n * width * bytes_each)} of numbers, and {readable(there)} of memory "
                "are free, too little for a fit that holds all of it. UKR(landmarks='auto') is "
                "fitted to tables of any length."
            )
        return self._joined(self._all())

    def _all(self) -> list[Any]:
        """Return all chunks."""
        return list(self)

    def _size(self) -> tuple[int, int, int]:
        """Return how many rows and columns there are, and the bytes of a number."""
        first = np.empty((0, 0))
        n = 0
        for chunk in self:
            first, n = (chunk if n == 0 else first), n + len(chunk)
        return n, np.shape(first)[1] if np.ndim(first) == 2 else 1, 8

    def _joined(self, chunks: list[Any]) -> Any:
        if hasattr(chunks[0], "columns"):
            import pandas as pd

            return pd.concat([pd.DataFrame(chunk) for chunk in chunks], ignore_index=True)
        return np.concatenate([np.asarray(chunk) for chunk in chunks])


class ArrayChunks(ChunkedTable):
    """An array, of which only the slices are read that are looked at."""

    def __init__(self, array: npt.NDArray[Any], name: str, columns: Any = None) -> None:
        self.array, self.name, self.columns, self.n_rows = array, name, columns, len(array)

    def __iter__(self) -> Iterator[Any]:
        n_rows = max(1, CELLS_AT_A_TIME // max(1, self.array[:1].size))
        for first in range(0, len(self.array), n_rows):
            yield self._named(np.array(self.array[first : first + n_rows]))

    def _named(self, values: npt.NDArray[Any]) -> Any:
        if self.columns is None:
            return values
        import pandas as pd

        return pd.DataFrame(values, columns=self.columns)

    def _size(self) -> tuple[int, int, int]:
        return len(self.array), self.array[:1].size, self.array.itemsize

    def _joined(self, chunks: list[Any]) -> Any:
        return self._named(np.asarray(self.array))


class FileChunks(ChunkedTable):
    """A file of one of the kinds that `tables` reads; every column must hold numbers."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        # Imported at first use: arrays need no pandas.
        from twofold.tables.reading import open_table
        from twofold.tables.table import TableError

        self.name, self._error = f"'{os.fspath(path)}'", TableError
        try:
            self._source = open_table(path)
            self._features = [n for n in self._source.columns if n not in self._source.companions]
            self._dtype = self._source.number_type(self._features)
        except TableError as error:
            raise _in_one_text(error) from error
        self.n_rows = self._source.n_rows

    def __iter__(self) -> Iterator[Any]:
        features, is_named = self._features, not self._source.has_default_names
        n_rows = max(1, CELLS_AT_A_TIME // max(1, len(features)))
        try:
            for frame in self._source.chunks(n_rows, numbers=features):
                part = frame[features].astype(self._dtype, copy=False)
                yield part if is_named else part.to_numpy()
        except self._error as error:
            raise _in_one_text(error) from error
        self.n_rows = self._source.n_rows

    def _size(self) -> tuple[int, int, int]:
        first = next(iter(self))
        n = self._source.expected_rows()
        return len(first) if n is None else n, len(self._features), self._dtype.itemsize


class IterableChunks(ChunkedTable):
    """An iterable that yields the same chunks each time it is walked."""

    name = "the table in chunks"

    def __init__(self, chunks: Iterable[Any]) -> None:
        self._chunks = chunks

    def __iter__(self) -> Iterator[Any]:
        return iter(self._chunks)


def _spooled(chunks: Iterator[Any], folder: Path | None) -> ArrayChunks:
    """Copy the chunks of an iterator to a temporary file, and map that into memory."""
    dtype: np.dtype[Any] = np.dtype(np.float64)
    columns, n_rows, width = None, 0, 0
    with tempfile.TemporaryFile(dir=folder, prefix="twofold-", suffix=".npy") as file:
        for number, chunk in enumerate(chunks):
            shape = check_chunk(chunk, number, width)
            check_numeric(chunk)
            if n_rows == 0:
                columns, width, dtype = getattr(chunk, "columns", None), shape[1], _type_of(chunk)
            _check_names(columns, getattr(chunk, "columns", None), number)
            values = np.asarray(chunk, dtype=_type_of(chunk))
            check_precision(values, dtype, number)
            file.write(np.ascontiguousarray(values, dtype=dtype).data)
            n_rows += shape[0]
        if n_rows == 0:
            raise ValueError(NO_ROWS)
        file.flush()
        # The map outlives the file, which is gone when it is closed.
        rows = np.memmap(file, dtype=dtype, mode="r", shape=(n_rows, width))
    return ArrayChunks(rows, "the table in chunks", columns)


NO_ROWS = (
    "The table in chunks has no rows; expected chunks (rows, columns) of numbers. If they come "
    "from an iterator, it may be used up: make a new one."
)


def check_chunk(chunk: Any, number: int, width: int) -> tuple[int, int]:
    """Return the shape of a chunk; raise unless it is a table of that width, 0 for any."""
    shape = np.shape(chunk)
    if len(shape) != 2:
        is_line = isinstance(chunk, str | bytes)
        raise ValueError(
            f"Chunk {number} {'is text' if is_line else f'has shape {shape}'}; every chunk must be "
            f"a table (rows, columns) of numbers."
            + (" To fit the rows of a file, pass its path." if is_line else "")
        )
    if width and shape[1] != width:
        raise ValueError(
            f"Chunk {number} has {shape[1]} columns and those before it have {width}; every chunk "
            "must hold the same columns. Put NaN where entries are missing."
        )
    return shape


def check_precision(values: npt.NDArray[Any], dtype: np.dtype[Any], number: int) -> None:
    """Raise if a chunk has more digits than those before it."""
    if dtype == np.float32 and values.dtype != np.float32:
        raise ValueError(
            f"Chunk {number} holds {values.dtype} numbers and those before it float32; pass all "
            "chunks in one type."
        )


def _check_names(columns: Any, others: Any, number: int) -> None:
    """Raise if a frame has other columns than the first one."""
    if list(() if columns is None else columns) != list(() if others is None else others):
        raise ValueError(
            f"Chunk {number} has other column names than those before it; pass the same columns in "
            "the same order, or arrays without names."
        )


def _type_of(chunk: Any) -> np.dtype[Any]:
    """Return float32 for a chunk that holds nothing else, otherwise float64."""
    dtypes = getattr(chunk, "dtypes", None)
    kinds = list(dtypes) if dtypes is not None else [np.asarray(chunk).dtype]
    return np.dtype(np.float32 if all(kind == np.float32 for kind in kinds) else np.float64)


def _in_one_text(error: TableError) -> ValueError:
    """Return an error of a table with what to do about it; some of this is for other callers."""
    hint = error.hint or ""
    if hasattr(error, "cell"):
        hint = (
            "Every column must hold numbers: leave others out of the file, or pass chunks of some "
            "columns, e.g. `pandas.read_csv(path, usecols=[...], chunksize=10_000)`."
        )
    return ValueError(f"{error} {hint}".strip())
