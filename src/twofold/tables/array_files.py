"""Arrays as tables: ``.npy`` mapped into memory, ``.npz`` read whole, ``.h5ad`` in slices of rows.

An ``.npz`` holds the matrix under the name ``X`` or ``data``, or as its only array of two
dimensions. Names of its columns are in ``feature_names``, names of the rows in ``index``; other
arrays of one dimension and the same length, such as ``y`` or ``labels``, become columns, and count
as companions of the matrix unless the file says that they stand in one table with it.

An ``.npy`` file states its number of rows at the start; it is written with room for any number
there, and the right one is put in at the end. To be written, an ``.npz`` file is collected in
memory: number columns are the matrix ``X`` with ``feature_names``, others are arrays of their own
name. Of an ``.h5ad`` file of AnnData the annotations of the observations are columns as well.
"""

from __future__ import annotations

import contextlib
import math
import zipfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import pandas as pd

from twofold.tables.cells import CellRules, TableError, text_of
from twofold.tables.table import LARGE_BYTES, MOST_PACKED, TypedTable, load_package

AnyArray: TypeAlias = npt.NDArray[Any]

INDEX_KEY, INDEX_NAME_KEY = "index", "index_name"
NAMES_KEY, ORDER_KEY = "feature_names", "columns"
_MATRIX_KEYS = ("X", "data")
_RESERVED = {*_MATRIX_KEYS, INDEX_KEY, INDEX_NAME_KEY, NAMES_KEY, ORDER_KEY}
_HEADERS: dict[tuple[int, ...], Any] = {
    (1, 0): np.lib.format.read_array_header_1_0,
    (2, 0): np.lib.format.read_array_header_2_0,
}
_STARTS = {".npy": b"\x93NUMPY", ".npz": b"PK"}
_HEADER_BYTES = 128  # of an npy file, with room for any number of rows


class ArrayTable(TypedTable):
    """An npy or npz file."""

    def __init__(self, path: Path, name: str, rules: CellRules) -> None:
        super().__init__(name, rules)
        content = _load(path, name)
        if isinstance(content, np.ndarray):
            matrix, arrays = content, dict[str, AnyArray]()
        else:
            matrix, arrays = _matrix_of(content, name)
        _check_matrix(matrix, name)
        # A whole matrix of truth values is meant as zeros and ones; a column of them is not.
        self._matrix = matrix.view(np.uint8) if matrix.dtype.kind == "b" else matrix
        self.n_rows = len(matrix)
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
        for start in range(0, len(self._matrix), rows):
            part = slice(start, start + rows)
            frame = pd.DataFrame(np.array(self._matrix[part]), columns=list(self._matrix_names))
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
    try:
        with path.open("rb") as file:
            if file.read(len(start)) != start:  # numpy would speak of pickles
                raise ValueError("it begins otherwise")
        if path.suffix.lower() == ".npy":
            return np.load(path, mmap_mode="r", allow_pickle=False)
        with path.open("rb") as opened, np.load(opened, allow_pickle=False) as archive:
            for member in archive.zip.infolist():
                _check_size(member, archive.zip, name)
            found = {key: _plain_array(archive, key) for key in archive.files}
            return {key: array for key, array in found.items() if array is not None}
    except (TableError, MemoryError):
        raise
    except Exception as error:  # of damaged archives there are errors of every kind
        if "pickle" in str(error).lower() or "object" in str(error).lower():
            hint = "Save an array of numbers: np.save(path, np.asarray(array, dtype=float))."
            raise TableError(
                f"'{name}' holds Python objects, which are never loaded.", hint
            ) from error
        raise TableError(
            f"'{name}' is damaged or no {path.suffix} file: {error}.", "Copy or save it again."
        ) from error


def _check_size(member: zipfile.ZipInfo, archive: zipfile.ZipFile, name: str) -> None:
    """Refuse what would unpack to far more than it says, or than it is."""
    if member.file_size > max(LARGE_BYTES, MOST_PACKED * member.compress_size):
        raise TableError(
            f"'{name}' unpacks {member.compress_size:,} bytes to {member.file_size:,}, which is "
            "more than data does.",
            "If it is right, save it unpacked: np.savez(path, X=matrix).",
        )
    with archive.open(member) as file:
        if file.read(len(_STARTS[".npy"])) != _STARTS[".npy"]:
            return
        version = tuple(file.read(2))
        read_header = _HEADERS.get(version)
        if read_header is None:
            return
        shape, _, dtype = read_header(file)
    if not dtype.hasobject and math.prod(shape) * dtype.itemsize > member.file_size:
        raise TableError(
            f"'{name}' is damaged: {member.filename} ends before its {shape} entries do.",
            "Copy or save it again.",
        )


def _plain_array(archive: Any, key: str) -> AnyArray | None:
    """Return an array, None if it cannot be loaded without running code; labels are often so."""
    try:
        found = archive[key]
    except ValueError:
        return None
    return found if isinstance(found, np.ndarray) else None


def _matrix_of(arrays: dict[str, AnyArray], name: str) -> tuple[AnyArray, dict[str, AnyArray]]:
    """Return the matrix of an archive and its other arrays."""
    flat = [key for key, array in arrays.items() if array.ndim == 2 and array.dtype.kind in "iuf"]
    key = next((key for key in _MATRIX_KEYS if key in arrays), flat[0] if len(flat) == 1 else None)
    if key is None:
        found = ", ".join(f"{key} {array.shape}" for key, array in arrays.items()) or "no arrays"
        raise TableError(
            f"'{name}' has no array 'X' or 'data' and not exactly one matrix; it holds {found}.",
            "Save the matrix under the name X: np.savez(path, X=matrix).",
        )
    return arrays[key], {other: array for other, array in arrays.items() if other != key}


def _check_matrix(matrix: AnyArray, name: str) -> None:
    """Refuse anything but a matrix of numbers with rows."""
    if matrix.ndim != 2:
        raise TableError(
            f"'{name}' holds an array of shape {matrix.shape}; expected (rows, columns).",
            "Reshape it, such as images by array.reshape(len(array), -1).",
        )
    if matrix.dtype.kind not in "iufb":
        raise TableError(f"'{name}' holds {matrix.dtype} values; expected numbers.")
    if matrix.size == 0:
        raise TableError(f"'{name}' has no {'columns' if len(matrix) else 'rows'}.")


class AnnDataTable(TypedTable):
    """An h5ad file."""

    own_index = ""

    def __init__(self, path: Path, name: str, rules: CellRules) -> None:
        super().__init__(name, rules)
        self._path = path
        self._anndata = load_package("anndata", "Reading h5ad")
        with self._open() as data:
            if data.X is None:
                raise TableError(f"'{name}' has no matrix X.", "Store the layer to use as X.")
            self.n_rows = data.n_obs
            self._variables = [str(variable) for variable in data.var_names]
            self._obs = _plain_columns(data.obs)
            self._row_names = [str(observation) for observation in data.obs_names]
        self.companions = tuple(str(column) for column in self._obs.columns)
        self.names = ("", *self._variables, *self.companions)
        if not self.n_rows:
            raise TableError(f"'{name}' has no rows.")

    def _frames(self, rows: int) -> Iterator[pd.DataFrame]:
        with self._open() as data:
            for start in range(0, len(self._row_names), rows):
                part = slice(start, start + rows)
                matrix = data.X[part]
                dense = matrix.toarray() if hasattr(matrix, "toarray") else np.asarray(matrix)
                frame = pd.DataFrame(dense, columns=self._variables)
                observed = self._obs.iloc[part].reset_index(drop=True)
                row_names = pd.DataFrame({"": self._row_names[part]})
                yield pd.concat([row_names, frame, observed], axis=1)

    @contextlib.contextmanager
    def _open(self) -> Iterator[Any]:
        """Give the opened file; of damaged ones HDF5 and AnnData raise errors of every kind."""
        try:
            self._check_sizes()
            data = self._anndata.read_h5ad(self._path, backed="r")
            try:
                yield data
            finally:
                data.file.close()
        except (TableError, MemoryError):
            raise
        except Exception as error:
            raise TableError(
                f"'{self._name}' is damaged or no h5ad file: {error}.", "Copy it again."
            ) from error

    def _check_sizes(self) -> None:
        """Refuse arrays that are far larger than what is stored of them."""
        h5py = load_package("h5py", "Reading h5ad")

        def check(key: str, part: Any) -> None:
            if not isinstance(part, h5py.Dataset):
                return
            if part.nbytes > max(LARGE_BYTES, MOST_PACKED * part.id.get_storage_size()):
                raise TableError(
                    f"'{self._name}' unpacks {key} to {part.nbytes:,} bytes, far more than it "
                    "stores.",
                    "Write it again, without compression if it is right.",
                )

        with h5py.File(self._path, "r") as file:
            file.visititems(check)


def _plain_columns(obs: Any) -> Any:
    """Return the annotations with categories as their plain values."""
    plain = {
        str(name): obs[name].astype(obs[name].cat.categories.dtype)
        if obs[name].dtype.name == "category"
        else obs[name]
        for name in obs.columns
    }
    return type(obs)(plain, index=obs.index)


# ---- writing ------------------------------------------------------------------------------------


class NpySink:
    """Write frames of numbers to an npy file."""

    def __init__(self, path: Path) -> None:
        self._file = path.open("wb")
        self._n_rows = 0
        self._width = 0
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
        self._file.close()

    def close(self) -> None:
        """Close the file as it is."""
        self._file.close()

    def _header(self) -> bytes:
        """Return a header of format 1.0, padded to a fixed length."""
        assert self._dtype is not None
        shape = (self._n_rows, self._width)
        fields = f"{{'descr': {self._dtype.str!r}, 'fortran_order': False, 'shape': {shape}, }}"
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
        if clash := sorted(_RESERVED & {str(name) for name in frame.columns}):
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
        names = np.array([str(name) for name in frame.columns])
        arrays: dict[str, AnyArray] = {
            "X": _matrix(frame, numbers),
            NAMES_KEY: np.array([str(name) for name in numbers], dtype=str),
            ORDER_KEY: names,
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
