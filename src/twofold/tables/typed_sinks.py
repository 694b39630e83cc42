"""Files whose columns have types, written frame by frame: arrays, Parquet, AnnData.

An ``.npy`` file states its number of rows at the start; it is written with room for any number
there, and the right one is put in at the end. An ``.npz`` or ``.h5ad`` file is collected in memory:
number columns are the matrix ``X``, others are arrays of their own name, or annotations of the
observations.
"""

from collections.abc import Collection
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from twofold.tables.table import TableError, load_package, text_of
from twofold.tables.typed_files import (
    INDEX_KEY,
    INDEX_NAME_KEY,
    NAMES_KEY,
    ORDER_KEY,
    RESERVED,
    AnyArray,
)

_HEADER_BYTES = 128  # of an npy file, with room for any number of rows


class NpySink:
    """Write frames of numbers to an npy file."""

    def __init__(self, path: Path) -> None:
        self._file = path.open("wb")
        self._n_rows = self._width = 0
        self._dtype: np.dtype[Any] | None = None

    def write(self, frame: pd.DataFrame, has_index: bool) -> None:
        """Append rows; the first frame sets the type of the numbers."""
        names = [name for name in frame.columns if not _is_numeric(frame[name])]
        if names:
            raise TableError(
                f"An .npy file holds numbers only; the column {names[0]!r} does not.",
                "Write .npz, .csv or .parquet, or leave the column out.",
            )
        values = _matrix(frame, list(frame.columns))
        if self._dtype is None:
            self._dtype, self._width = values.dtype, values.shape[1]
            self._file.write(self._header())
        if not np.can_cast(values.dtype, self._dtype, "same_kind"):
            raise TableError(f"Rows of {values.dtype} came after rows of {self._dtype}.")
        self._file.write(np.ascontiguousarray(values, dtype=self._dtype).tobytes())
        self._n_rows += len(values)

    def finish(self) -> None:
        """Put the number of rows into the header."""
        self._file.seek(0)
        self._file.write(self._header())

    def close(self) -> None:
        """Close the file as it is."""
        self._file.close()

    def _header(self) -> bytes:
        """Return a header of format 1.0, padded to a fixed length."""
        assert self._dtype is not None
        shape = (self._n_rows, self._width)
        fields = f"{{'descr': {self._dtype.str!r}, 'fortran_order': False, 'shape': {shape}, }}"
        # Eight bytes of magic and two of the length come before the fields, a line end after them.
        start = np.lib.format.magic(1, 0) + (_HEADER_BYTES - 10).to_bytes(2, "little")
        return start + fields.ljust(_HEADER_BYTES - 11).encode() + b"\n"


class NpzSink:
    """Collect frames and write them to an npz file."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._frames: list[pd.DataFrame] = []
        self._has_index = False

    def write(self, frame: pd.DataFrame, has_index: bool) -> None:
        """Keep a frame until the end."""
        if clash := sorted(RESERVED & {str(name) for name in frame.columns}):
            raise TableError(
                f"A column named {clash[0]!r} cannot be kept in an .npz file.",
                "Rename it, or write .csv or .parquet.",
            )
        self._frames.append(frame)
        self._has_index = has_index

    def finish(self) -> None:
        """Write all arrays."""
        frame = pd.concat(self._frames)
        numbers = [name for name in frame.columns if _is_numeric(frame[name])]
        arrays: dict[str, AnyArray] = {
            "X": _matrix(frame, numbers),
            NAMES_KEY: np.array([str(name) for name in numbers], dtype=str),
            ORDER_KEY: np.array([str(name) for name in frame.columns]),
        }
        if self._has_index:
            arrays[INDEX_KEY] = np.array(text_of(frame.index.to_series()), dtype=str)
            if frame.index.name is not None:
                arrays[INDEX_NAME_KEY] = np.array(str(frame.index.name))
        for name in frame.columns:
            if name not in numbers:
                arrays[str(name)] = np.array(text_of(frame[name]), dtype=str)
        with self._path.open("wb") as file:
            np.savez_compressed(file, allow_pickle=False, **arrays)

    def close(self) -> None:
        """Forget what was collected."""
        self._frames = []


def _is_numeric(column: pd.Series) -> bool:
    return column.dtype.kind in "iufb"


def _matrix(frame: pd.DataFrame, names: list[Any]) -> AnyArray:
    """Return columns of numbers as one array of their common type."""
    if not names:
        return np.empty((len(frame), 0))
    part = frame[names]
    if all(isinstance(dtype, np.dtype) for dtype in part.dtypes):
        return part.to_numpy()
    return part.to_numpy(dtype=np.float64, na_value=np.nan)


class ParquetSink:
    """Write frames to a Parquet file."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._arrow = load_package("pyarrow", "Writing Parquet")
        self._parquet = load_package("pyarrow.parquet", "Writing Parquet")
        self._writer: Any = None
        self._schema: Any = None

    def write(self, frame: pd.DataFrame, has_index: bool) -> None:
        """Write a frame; the first one sets the types of the columns."""
        arrow = self._arrow
        try:
            if self._writer is None:
                self._schema = self._first_schema(frame, has_index)
                self._writer = self._parquet.ParquetWriter(self._path, self._schema)
            table = arrow.Table.from_pandas(frame, schema=self._schema, preserve_index=has_index)
        except (arrow.ArrowException, TypeError) as error:
            raise TableError(f"The columns do not fit into a Parquet file: {error}.") from error
        self._writer.write_table(table)

    def finish(self) -> None:
        """Write the end of the file."""
        self._writer.close()

    def close(self) -> None:
        """Close the file as it is."""
        if self._writer is not None and self._writer.is_open:
            self._writer.close()

    def _first_schema(self, frame: pd.DataFrame, has_index: bool) -> Any:
        """Return the types; text where the first frame has only missing cells."""
        schema = self._arrow.Schema.from_pandas(frame, preserve_index=has_index)
        for i, field in enumerate(schema):
            if self._arrow.types.is_null(field.type):
                schema = schema.set(i, field.with_type(self._arrow.string()))
        return schema


class AnnDataSink:
    """Collect frames and write them to an h5ad file: numbers as X, other columns as obs.

    Columns ``beside`` were observations where they come from, and stay that, numbers or not.
    """

    def __init__(self, path: Path, beside: Collection[str] = ()) -> None:
        self._path, self._beside = path, frozenset(beside)
        self._anndata = load_package("anndata", "Writing h5ad")
        self._frames: list[pd.DataFrame] = []

    def write(self, frame: pd.DataFrame, has_index: bool) -> None:
        """Keep a frame until the end."""
        self._frames.append(frame)

    def finish(self) -> None:
        """Write the file."""
        frame = pd.concat(self._frames)
        numbers = [
            name
            for name in frame.columns
            if _is_numeric(frame[name]) and str(name) not in self._beside
        ]
        if not numbers:
            raise TableError(
                "An .h5ad file needs columns of numbers, and there are none.", "Write .csv."
            )
        beside = {
            str(n): frame[n].to_numpy() if _is_numeric(frame[n]) else text_of(frame[n])
            for n in frame.columns
            if n not in numbers
        }
        rows = pd.DataFrame(beside, index=[str(label) for label in frame.index])
        variables = pd.DataFrame(index=[str(name) for name in numbers])
        data = self._anndata.AnnData(_matrix(frame, numbers), obs=rows, var=variables)
        data.write_h5ad(self._path)

    def close(self) -> None:
        """Forget what was collected."""
        self._frames = []
