"""Tables of pandas, polars and pyarrow, read as frames of pandas and handed back as they came."""

from __future__ import annotations

import io
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
from pandas.api import types

from twofold.checks.rows import is_lazy
from twofold.model_files import register_value_type


@register_value_type
@dataclass(frozen=True, eq=False)
class TableKind:
    """The library of a table and, for those with types of their own, an empty table with them."""

    library: str  # "pandas", "polars", "pyarrow"
    schema: npt.NDArray[np.uint8] | None = None  # an empty file of Arrow's format

    def restored(self, frame: pd.DataFrame) -> Any:
        """Return a frame as a table of this kind, in its types."""
        if self.library == "pandas" or self.schema is None:
            return frame
        empty = io.BytesIO(self.schema.tobytes())
        if self.library == "polars":
            import polars

            schema = polars.read_ipc(empty).schema
            made = {name: _for_polars(frame[name]) for name in frame.columns}
            found = polars.DataFrame(made)
            return found.with_columns(polars.col(name).cast(schema[name]) for name in made)
        import pyarrow

        with pyarrow.ipc.open_stream(empty) as reader:
            schema = pyarrow.schema([reader.schema.field(name) for name in frame.columns])
        return pyarrow.Table.from_pandas(frame, schema=schema, preserve_index=False)


def as_frame(X: Any) -> tuple[pd.DataFrame, TableKind]:
    """Return a table as a frame of pandas, and what it was.

    Whole numbers with gaps are such in all libraries: pandas would make fractions of them.
    """
    if isinstance(X, pd.DataFrame):
        return _named(X), TableKind("pandas")
    library = type(X).__module__.split(".")[0]
    if library == "polars" and hasattr(X, "to_pandas") and hasattr(X, "columns"):
        empty = io.BytesIO()
        X.clear().write_ipc(empty)
        whole = {c.name: str(c.dtype) for c in X if c.dtype.is_integer() and c.null_count()}
        return X.to_pandas().astype(whole), TableKind("polars", _bytes(empty.getvalue()))
    if hasattr(X, "__arrow_c_stream__"):
        import pyarrow

        table = pyarrow.table(X)
        sink = pyarrow.BufferOutputStream()
        with pyarrow.ipc.new_stream(sink, table.schema):
            pass
        kind = TableKind("pyarrow", _bytes(sink.getvalue().to_pybytes()))
        frame = _named(table.to_pandas(date_as_object=False))
        whole = {
            field.name: str(field.type).replace("uint", "UInt").replace("int", "Int")
            for field in table.schema
            if pyarrow.types.is_integer(field.type) and table[field.name].null_count
        }
        return frame.astype(whole), kind
    if isinstance(X, dict):
        if not any(np.ndim(cells) for cells in X.values()):
            raise ValueError(
                "Expected a list of cells for each name of a dict; got single cells. A row is "
                "`{'size': [1.5], 'colour': ['red']}`."
            )
        return _named(pd.DataFrame(X)), TableKind("pandas")
    if is_lazy(X):
        raise TypeError(
            "Expected a table in memory; got a dask dataframe. Pass some of its rows, such as one "
            "in a hundred, `X.sample(frac=0.01).compute()`."
        )
    if library == "polars" and hasattr(X, "collect"):
        raise TypeError("Expected a table in memory; got a LazyFrame. Pass `X.collect()`.")
    raise TypeError(
        "Expected a table with named columns, of pandas, polars or pyarrow; got "
        f"{type(X).__name__}. Arrays of numbers go to twofold.Scaled, or become a table by "
        "pandas.DataFrame(X, columns=[...])."
    )


def has_other_columns(X: Any) -> bool:
    """Say whether something is a table with columns that are no numbers.

    Examples
    --------
    >>> import pandas as pd
    >>> from twofold.mixed import has_other_columns
    >>> has_other_columns(pd.DataFrame({"colour": ["red", "blue"]}))
    True
    """
    is_table = hasattr(X, "columns") or hasattr(X, "__arrow_c_stream__")
    if isinstance(X, np.ndarray) or not is_table or not len(X):
        return False
    frame = X if isinstance(X, pd.DataFrame) else as_frame(X)[0]
    return not all(_is_numeric(column) for _, column in frame.items())


def _is_numeric(column: pd.Series) -> bool:
    if types.is_numeric_dtype(column.dtype):
        return True
    numbers = pd.to_numeric(column, errors="coerce") if column.dtype == np.dtype("O") else None
    return numbers is not None and bool(numbers.notna().equals(column.notna()))


def _named(frame: pd.DataFrame) -> pd.DataFrame:
    """Return a frame whose columns have texts as names, each its own."""
    wrong = [name for name in frame.columns if not isinstance(name, str)]
    if wrong:
        raise ValueError(
            f"Every column needs a text as its name; got {wrong[0]!r}. Rename them, e.g. "
            "`X.columns = X.columns.astype(str)`."
        )
    if frame.columns.has_duplicates:
        twice = frame.columns[frame.columns.duplicated()][0]
        raise ValueError(f"Every column needs a name of its own; several are called {twice!r}.")
    return frame


def _for_polars(column: pd.Series) -> Any:
    import polars

    if isinstance(column.dtype, pd.CategoricalDtype):
        return polars.Series(column.astype(object).tolist())
    return polars.from_pandas(column)


def _bytes(raw: bytes) -> npt.NDArray[np.uint8]:
    return np.frombuffer(raw, dtype=np.uint8).copy()


def fill_gaps(given: pd.Series, gaps: Any, made: pd.Series) -> pd.Series:
    """Return a column with what was made in its gaps, in a type that holds both."""
    filled = given.astype(object)
    filled[gaps] = made[gaps].astype(object)
    # A gap may have turned whole numbers or truth values into objects; the fit knows better then.
    for dtype in (given.dtype, made.dtype):
        try:
            found = filled.astype(dtype)
        except (TypeError, ValueError, OverflowError):
            continue
        if not found.isna().any():
            return found
    return filled
