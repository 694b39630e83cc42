"""Parquet tables, read and written batch by batch with the types of their columns."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pandas as pd

from twofold.tables.cells import CellRules, TableError
from twofold.tables.table import TypedTable, load_package


class ParquetTable(TypedTable):
    """A Parquet file."""

    def __init__(self, path: Path, name: str, rules: CellRules) -> None:
        super().__init__(name, rules)
        self._path = path
        self._arrow = load_package("pyarrow", "Reading Parquet")
        self._parquet = load_package("pyarrow.parquet", "Reading Parquet")
        with self._open() as file:
            schema = file.schema_arrow
            self.n_rows = file.metadata.num_rows
            self._types = self._nullable_types(schema, file.metadata)
            index = self._stored_index(schema)
        stored = list(schema.names)
        self._unnamed = index if index is not None and index.startswith("__index_level_") else None
        self.own_index = "" if self._unnamed else index
        self.names = tuple("" if n == self._unnamed else n for n in stored)
        if self.n_rows == 0:
            raise TableError(f"'{name}' has column names but no rows.")

    def _frames(self, rows: int) -> Iterator[pd.DataFrame]:
        with self._open() as file:
            for batch in file.iter_batches(batch_size=rows):
                yield self._frame(batch)

    @contextlib.contextmanager
    def _open(self) -> Iterator[Any]:
        """Give the opened file; what is wrong with it may come out at any of its columns."""
        try:
            with self._parquet.ParquetFile(self._path) as file:
                yield file
        except (TableError, MemoryError):
            raise
        except (self._arrow.ArrowException, OSError, ValueError, AttributeError) as error:
            raise TableError(
                f"'{self._name}' is damaged or no Parquet file: {error}.", "Copy it again."
            ) from error

    def _frame(self, batch: Any) -> pd.DataFrame:
        """Return a batch as a frame without index, categories as plain values."""
        arrow = self._arrow
        columns = [
            column.dictionary_decode() if arrow.types.is_dictionary(column.type) else column
            for column in batch.columns
        ]
        table = arrow.Table.from_arrays(columns, names=[str(i) for i in range(len(columns))])
        frame = table.to_pandas()
        for i, dtype in self._types.items():
            frame[str(i)] = table.column(i).to_pandas(types_mapper=lambda _, kind=dtype: kind)
        frame.columns = list(self.names)
        return frame

    def _nullable_types(self, schema: Any, metadata: Any) -> dict[int, Any]:
        """Return pandas' nullable types for the columns whole numbers or truth values have gaps in.

        Without them a column would change its type from batch to batch, as gaps come and go.
        """
        types = self._arrow.types
        found: dict[int, Any] = {}
        if any(types.is_nested(field.type) for field in schema):
            return found  # columns of the file and of the schema do not correspond
        for i, field in enumerate(schema):
            kind = str(field.type)
            is_whole = types.is_integer(field.type)
            if (is_whole or types.is_boolean(field.type)) and _may_have_gaps(metadata, i):
                bits = kind.removeprefix("u").removeprefix("int")
                name = (
                    f"{'UInt' if kind.startswith('u') else 'Int'}{bits}" if is_whole else "boolean"
                )
                found[i] = pd.api.types.pandas_dtype(name)
        return found

    def _stored_index(self, schema: Any) -> str | None:
        """Return the column that pandas stored its index in, if it is one column."""
        stored = (schema.pandas_metadata or {}).get("index_columns", [])
        columns = [name for name in stored if isinstance(name, str) and name in schema.names]
        if len(columns) > 1:
            self.notes.append(
                f"'{self._name}' has an index of {len(columns)} levels; they are columns here."
            )
        return columns[0] if len(columns) == 1 else None


def _may_have_gaps(metadata: Any, column: int) -> bool:
    """Whether a column has missing cells, or keeps no count of them."""
    for group in range(metadata.num_row_groups):
        statistics = metadata.row_group(group).column(column).statistics
        if statistics is None or not statistics.has_null_count or statistics.null_count:
            return True
    return False


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
