"""Files whose columns have types: arrays (``.npy``, ``.npz``), AnnData (``.h5ad``) and Parquet.

An ``.npy`` file is mapped into memory, an ``.npz`` read whole, the others in slices of rows.
An ``.npz`` holds the matrix under the name ``X`` or ``data``, or as its only array of two
dimensions; what `scipy.sparse.save_npz` writes is made dense some rows at a time. Names of its
columns are in ``feature_names``, names of the rows in ``index``; other arrays of one dimension and
the same length, such as ``y`` or ``labels``, become columns, and count as companions of the matrix
unless the file says that they stand in one table with it.

Of an ``.h5ad`` file of AnnData the annotations of the observations are columns as well.
"""

import contextlib
import functools
import math
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import pandas as pd

from twofold.tables.table import (
    LARGE_BYTES,
    MOST_PACKED,
    TableError,
    TypedTable,
    cell_rules,
    check_unpacked,
    load_package,
)

AnyArray: TypeAlias = npt.NDArray[Any]

INDEX_KEY, INDEX_NAME_KEY = "index", "index_name"
NAMES_KEY, ORDER_KEY = "feature_names", "columns"
_MATRIX_KEYS = ("X", "data")
RESERVED = {*_MATRIX_KEYS, INDEX_KEY, INDEX_NAME_KEY, NAMES_KEY, ORDER_KEY}
_HEADERS: dict[tuple[int, ...], Any] = {
    (1, 0): np.lib.format.read_array_header_1_0,
    (2, 0): np.lib.format.read_array_header_2_0,
}
_STARTS = {".npy": b"\x93NUMPY", ".npz": b"PK"}


@contextlib.contextmanager
def telling_damage(
    name: str,
    kind: str,
    hint: str = "Copy it again.",
    errors: tuple[type[Exception], ...] = (Exception,),  # damaged files raise errors of every kind
) -> Iterator[None]:
    """Let errors within say that a file is damaged; those that say more stay as they are."""
    try:
        yield
    except (TableError, MemoryError):
        raise
    except errors as error:
        raise TableError(f"'{name}' is damaged or not a {kind} file: {error}.", hint) from error


class ArrayTable(TypedTable):
    """An npy or npz file."""

    def __init__(self, path: Path, name: str, missing: Sequence[str]) -> None:
        super().__init__(name, cell_rules(missing))
        content = _load(path, name)
        if isinstance(content, np.ndarray):
            matrix, arrays = content, dict[str, AnyArray]()
        else:
            matrix, arrays = _matrix_of(content, name)
        if matrix.ndim != 2:
            raise TableError(
                f"'{name}' holds an array of shape {matrix.shape}; expected (rows, columns).",
                "Reshape it, such as images by array.reshape(len(array), -1).",
            )
        if matrix.dtype.kind not in "iufb":
            raise TableError(f"'{name}' holds {matrix.dtype} values; expected numbers.")
        if 0 in matrix.shape:
            raise TableError(f"'{name}' has no {'columns' if matrix.shape[0] else 'rows'}.")
        # A whole matrix of truth values is meant as zeros and ones; a column of them is not.
        if matrix.dtype.kind == "b":
            is_array = isinstance(matrix, np.ndarray)  # which may lie in a file
            matrix = matrix.view(np.uint8) if is_array else matrix.astype(np.uint8)
        self._matrix = matrix
        self.n_rows = matrix.shape[0]
        self._matrix_names = self._names_of_matrix(arrays)
        self._columns = {
            key: array
            for key, array in arrays.items()
            if key != NAMES_KEY and array.shape == (self.n_rows,) and array.dtype.kind in "iufbUSO"
        }
        ordered = [str(key) for key in arrays.get(ORDER_KEY, np.array([], dtype=str))]
        beside = tuple(key for key in self._columns if key != INDEX_KEY)
        names = [*self._matrix_names, *beside]
        self.companions = () if ORDER_KEY in arrays else beside
        if INDEX_KEY in self._columns:
            self.own_index = str(arrays.get(INDEX_NAME_KEY, ""))
        if sorted(ordered) == sorted(names):
            names = ordered
        self.names = tuple(names) if self.own_index is None else (self.own_index, *names)

    def _frames(self, rows: int) -> Iterator[pd.DataFrame]:
        for start in range(0, self._matrix.shape[0], rows):
            part = slice(start, start + rows)
            values = self._matrix[part]
            dense = values.toarray() if hasattr(values, "toarray") else np.array(values)
            frame = pd.DataFrame(dense, columns=list(self._matrix_names))
            for key, array in self._columns.items():
                label = self.own_index if key == INDEX_KEY else key
                is_text = array.dtype.kind in "US"
                frame[label] = array[part].astype(str).astype(object) if is_text else array[part]
            yield frame if tuple(frame.columns) == self.names else frame[list(self.names)]

    def _names_of_matrix(self, arrays: Mapping[str, AnyArray]) -> tuple[str, ...]:
        """Return the names in the file, otherwise x1, x2 and so on."""
        width = self._matrix.shape[1]
        names = arrays.get(NAMES_KEY)
        if names is None and len(arrays.get(ORDER_KEY, ())) == width:
            names = arrays[ORDER_KEY]
        if names is not None and names.shape == (width,):
            return tuple(str(name) for name in names)
        if names is not None:
            self.notes.append(
                f"'{self._name}' has {names.size} names for {width} columns; they are not used."
            )
        return tuple(f"x{i + 1}" for i in range(width))


def _load(path: Path, name: str) -> AnyArray | dict[str, AnyArray]:
    """Return the array of an npy file, or the readable arrays of an npz file."""
    start = _STARTS[path.suffix.lower()]
    found: dict[str, AnyArray] = {}
    with telling_damage(name, path.suffix, "Copy or save it again."):
        with path.open("rb") as file:
            if file.read(len(start)) != start:  # numpy would speak of pickles
                raise ValueError("it begins otherwise")
        try:
            if path.suffix.lower() == ".npy":
                return np.load(path, mmap_mode="r", allow_pickle=False)
            with path.open("rb") as opened, np.load(opened, allow_pickle=False) as archive:
                for member in archive.zip.infolist():
                    _check_size(member, archive.zip, name)
                for key in archive.files:
                    # Labels often cannot be loaded without running code.
                    with contextlib.suppress(ValueError):
                        found[key] = archive[key]
        except Exception as error:
            is_object = "pickle" in str(error).lower() or "object" in str(error).lower()
            if not is_object or isinstance(error, TableError):
                raise
            raise TableError(
                f"'{name}' holds Python objects, which are never loaded.",
                "Save an array of numbers: np.save(path, np.asarray(array, dtype=float)).",
            ) from error
    return {key: array for key, array in found.items() if isinstance(array, np.ndarray)}


def _check_size(member: zipfile.ZipInfo, archive: zipfile.ZipFile, name: str) -> None:
    """Refuse what would unpack to far more than it says, or than it is."""
    check_unpacked(member, name, "If it is right, save it unpacked: np.savez(path, X=matrix).")
    with archive.open(member) as file:
        if file.read(len(_STARTS[".npy"])) != _STARTS[".npy"]:
            return
        read_header = _HEADERS.get(tuple(file.read(2)))
        if read_header is None:
            return
        shape, _, dtype = read_header(file)
    if not dtype.hasobject and math.prod(shape) * dtype.itemsize > member.file_size:
        raise TableError(
            f"'{name}' is damaged: {member.filename} ends before its {shape} entries do.",
            "Copy or save it again.",
        )


def _matrix_of(arrays: dict[str, AnyArray], name: str) -> tuple[Any, dict[str, AnyArray]]:
    """Return the matrix of an archive, dense or sparse, and its other arrays."""
    if {"format", "shape", "data"} <= set(arrays):
        return _sparse_matrix(arrays, name), {}
    flat = [key for key, array in arrays.items() if array.ndim == 2 and array.dtype.kind in "iuf"]
    key = next((key for key in _MATRIX_KEYS if key in arrays), flat[0] if len(flat) == 1 else None)
    if key is None:
        found = ", ".join(f"{key} {array.shape}" for key, array in arrays.items()) or "no arrays"
        raise TableError(
            f"'{name}' has no array 'X' or 'data' and not exactly one matrix; it holds {found}.",
            "Save the matrix under the name X: np.savez(path, X=matrix).",
        )
    return arrays[key], {other: array for other, array in arrays.items() if other != key}


def _sparse_matrix(arrays: dict[str, AnyArray], name: str) -> Any:
    """Return the matrix that `scipy.sparse.save_npz` has written, by rows."""
    from scipy import sparse

    kind = arrays["format"].item()
    kind = kind.decode("ascii", "replace") if isinstance(kind, bytes) else str(kind)
    parts = {"csr": ("indices", "indptr"), "csc": ("indices", "indptr"), "coo": ("row", "col")}
    if kind not in parts or not set(parts[kind]) <= set(arrays):
        raise TableError(
            f"'{name}' holds a sparse matrix of the format {kind!r}; expected csr, csc or coo.",
            "Save it by scipy.sparse.save_npz(path, matrix.tocsr()).",
        )
    a, b = (arrays[key] for key in parts[kind])
    with telling_damage(name, "sparse .npz"):
        values, shape = arrays["data"], tuple(int(size) for size in arrays["shape"])
        if kind == "coo":
            return sparse.csr_matrix(sparse.coo_matrix((values, (a, b)), shape=shape))
        matrix = sparse.csr_matrix if kind == "csr" else sparse.csc_matrix
        found = matrix((values, a, b), shape=shape)
        found.check_format(full_check=True)  # products and slices trust its indices
        return found.tocsr()


class AnnDataTable(TypedTable):
    """An h5ad file."""

    own_index = ""

    def __init__(
        self, path: Path, name: str, missing: Sequence[str], part: str | None = None
    ) -> None:
        super().__init__(name, cell_rules(missing))
        self._path, self._part = path, part
        self._anndata = load_package("anndata", "Reading h5ad")
        with self._open() as data:
            matrix = self._matrix_of(data)
            self.n_rows = data.n_obs
            self._variables = [str(variable) for variable in data.var_names]
            if part is not None and part.startswith("obsm/"):
                stem = part.removeprefix("obsm/").removeprefix("X_")
                self._variables = [f"{stem}{k + 1}" for k in range(matrix.shape[1])]
            self._obs = data.obs.copy()
            for label, column in data.obs.items():
                if column.dtype.name == "category":  # as its plain values
                    self._obs[label] = column.astype(column.cat.categories.dtype)
            self._obs.columns = [str(label) for label in self._obs.columns]
            self._row_names = [str(observation) for observation in data.obs_names]
        self.companions = tuple(str(column) for column in self._obs.columns)
        self.names = ("", *self._variables, *self.companions)
        if not self.n_rows:
            raise TableError(f"'{name}' has no rows.")

    def _frames(self, rows: int) -> Iterator[pd.DataFrame]:
        with self._open() as data:
            whole = self._matrix_of(data)
            for start in range(0, len(self._row_names), rows):
                part = slice(start, start + rows)
                matrix = whole[part]
                dense = matrix.toarray() if hasattr(matrix, "toarray") else np.asarray(matrix)
                frame = pd.DataFrame(dense, columns=self._variables)
                observed = self._obs.iloc[part].reset_index(drop=True)
                row_names = pd.DataFrame({"": self._row_names[part]})
                yield pd.concat([row_names, frame, observed], axis=1)

    def _matrix_of(self, data: Any) -> Any:
        """Return X, or what is asked for instead: ``obsm/KEY`` or ``layers/KEY``."""
        home, _, key = (self._part or "").partition("/")
        there = [f"{home}/{key}" for home in ("layers", "obsm") for key in getattr(data, home)]
        others = f"It has {', '.join(there)}." if there else "It has no others."
        if self._part is None:
            if data.X is None:
                raise TableError(
                    f"'{self._name}' has no matrix X.",
                    f"Name one: {self._name}:layers/KEY. {others}",
                )
            return data.X
        if self._part not in there:
            raise TableError(f"'{self._name}' has no '{self._part}'.", others)
        found = getattr(data, home)[key]
        return found.to_numpy() if isinstance(found, pd.DataFrame) else found

    @contextlib.contextmanager
    def _open(self) -> Iterator[Any]:
        with telling_damage(self._name, "h5ad"):
            self._check_sizes()
            data = self._anndata.read_h5ad(self._path, backed="r")
            with contextlib.closing(data.file):
                yield data

    def _check_sizes(self) -> None:
        """Refuse arrays that are far larger than what is stored of them."""
        h5py = load_package("h5py", "Reading h5ad")

        def check(key: str, part: Any) -> None:
            is_array = isinstance(part, h5py.Dataset)
            stored = part.id.get_storage_size() if is_array else 0
            if is_array and part.nbytes > max(LARGE_BYTES, MOST_PACKED * stored):
                raise TableError(
                    f"'{self._name}' unpacks {key} to {part.nbytes:,} bytes, far more than it "
                    "stores.",
                    "Write it again, without compression if it is right.",
                )

        with h5py.File(self._path, "r") as file:
            file.visititems(check)


class ParquetTable(TypedTable):
    """A Parquet file."""

    def __init__(self, path: Path, name: str, missing: Sequence[str]) -> None:
        super().__init__(name, cell_rules(missing))
        self._path = path
        self._arrow = load_package("pyarrow", "Reading Parquet")
        self._parquet = load_package("pyarrow.parquet", "Reading Parquet")
        with self._open() as file:
            schema = file.schema_arrow
            self.n_rows = file.metadata.num_rows
            self._types = self._nullable_types(schema, file.metadata)
            index = self._stored_index(schema)
        is_unnamed = index is not None and index.startswith("__index_level_")
        self.own_index = "" if is_unnamed else index
        self.names = tuple("" if is_unnamed and n == index else n for n in schema.names)
        if self.n_rows == 0:
            raise TableError(f"'{name}' has column names but no rows.")

    def _frames(self, rows: int) -> Iterator[pd.DataFrame]:
        with self._open() as file:
            yield from map(self._frame, file.iter_batches(batch_size=rows))

    @contextlib.contextmanager
    def _open(self) -> Iterator[Any]:
        # What is wrong with a file may come out at any of its columns.
        errors = (self._arrow.ArrowException, OSError, ValueError, AttributeError)
        with (
            telling_damage(self._name, "Parquet", errors=errors),
            # Read ahead, a file stays in memory until its last row.
            self._parquet.ParquetFile(self._path, pre_buffer=False) as file,
        ):
            yield file

    def _frame(self, batch: Any) -> pd.DataFrame:
        """Return a batch as a frame without index, categories without an order as plain values."""
        arrow = self._arrow
        columns = [
            column.dictionary_decode() if arrow.types.is_dictionary(column.type) else column
            for column in batch.columns
        ]
        table = arrow.Table.from_arrays(columns, names=[str(i) for i in range(len(columns))])
        frame = table.to_pandas()
        for i, dtype in self._types.items():
            frame[str(i)] = table.column(i).to_pandas(types_mapper=lambda _, kind=dtype: kind)
        for i, levels in self._orders.items():
            frame[str(i)] = frame[str(i)].astype(levels)
        frame.columns = list(self.names)
        return frame

    @functools.cached_property
    def _orders(self) -> dict[int, pd.CategoricalDtype]:
        """Return the levels of categories with an order, by position of the column."""
        # They stand with the rows and may differ from batch to batch: all batches are looked at, so
        # that each has the same levels. As where Arrow reads whole files, new levels come last.
        with self._open() as file:
            schema = file.schema_arrow
            parts: dict[str, list[Any]] = {
                field.name: []
                for field in schema
                if self._arrow.types.is_dictionary(field.type) and field.type.ordered
            }
            for batch in file.iter_batches(columns=list(parts)) if parts else ():
                for name, found in parts.items():
                    levels = batch.column(name).dictionary
                    if not any(levels.equals(known) for known in found):
                        found.append(levels)
        return {
            schema.names.index(name): pd.CategoricalDtype(_joined(self._arrow, found), ordered=True)
            for name, found in parts.items()
        }

    def _nullable_types(self, schema: Any, metadata: Any) -> dict[int, Any]:
        """Return pandas' nullable types for columns of whole numbers or truth values with gaps."""
        # Without them a column would change its type from batch to batch, as gaps come and go.
        types = self._arrow.types
        found: dict[int, Any] = {}
        if any(types.is_nested(field.type) for field in schema):
            return found  # columns of the file and of the schema do not correspond
        for i, field in enumerate(schema):
            is_whole = types.is_integer(field.type)
            if (is_whole or types.is_boolean(field.type)) and _may_have_gaps(metadata, i):
                # pandas writes its nullable types with capitals: UInt8, Int64.
                name = str(field.type).replace("uint", "UInt").replace("int", "Int")
                found[i] = pd.api.types.pandas_dtype(name if is_whole else "boolean")
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


def _joined(arrow: Any, dictionaries: list[Any]) -> pd.Index:
    """Return the levels of dictionaries, each once."""
    return pd.Index(arrow.chunked_array(dictionaries).unique().drop_null().to_pandas())


def _may_have_gaps(metadata: Any, column: int) -> bool:
    """Whether a column has missing cells, or keeps no count of them."""
    for group in range(metadata.num_row_groups):
        statistics = metadata.row_group(group).column(column).statistics
        if statistics is None or not statistics.has_null_count or statistics.null_count:
            return True
    return False
