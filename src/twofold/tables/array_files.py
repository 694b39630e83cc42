"""Arrays of numpy as tables: ``.npy`` mapped into memory, ``.npz`` read whole.

An ``.npz`` holds the matrix under the name ``X`` or ``data``, or as its only array of two
dimensions. Names of its columns are in ``feature_names``, names of the rows in ``index``; other
arrays of one dimension and the same length, such as ``y`` or ``labels``, become columns, and count
as companions of the matrix unless the file says that they stand in one table with it.
"""

from __future__ import annotations

import math
import zipfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import numpy.typing as npt

from twofold.tables.cells import CellRules
from twofold.tables.number_columns import with_numbers
from twofold.tables.table_error import TableError

if TYPE_CHECKING:
    import pandas as pd

AnyArray: TypeAlias = npt.NDArray[Any]

CHUNK_BYTES = 64_000_000
INDEX_KEY, INDEX_NAME_KEY = "index", "index_name"
NAMES_KEY, ORDER_KEY = "feature_names", "columns"
_MATRIX_KEYS = ("X", "data")
# What unpacks to more than this, and to so many times its own size, is no data.
LARGE_BYTES, MOST_PACKED = 1 << 30, 200
_HEADERS: dict[tuple[int, ...], Any] = {
    (1, 0): np.lib.format.read_array_header_1_0,
    (2, 0): np.lib.format.read_array_header_2_0,
}
_STARTS = {".npy": b"\x93NUMPY", ".npz": b"PK"}


class ArrayTable:
    """An npy or npz file; see `twofold.tables.reading.Table`."""

    dialect = None

    def __init__(self, path: Path, name: str, rules: CellRules) -> None:
        self.rules = rules
        self.notes: list[str] = []
        self._name = name
        content = _load(path, name)
        if isinstance(content, np.ndarray):
            matrix, arrays = content, dict[str, AnyArray]()
        else:
            matrix, arrays = _matrix_of(content, name)
        _check_matrix(matrix, name)
        # A whole matrix of truth values is meant as zeros and ones; a column of them is not.
        self._matrix = matrix.view(np.uint8) if matrix.dtype.kind == "b" else matrix
        self.n_rows: int | None = len(matrix)
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
        self.own_index = _own_index(self._columns, arrays)
        if sorted(ordered) == sorted(names):
            names = ordered
        self.names = tuple(names) if self.own_index is None else (self.own_index, *names)

    def blocks(self, numbers: frozenset[str], rows: int | None) -> Iterator[pd.DataFrame]:
        """Yield frames; see `twofold.tables.reading.Table`."""
        import pandas as pd

        n_rows, width = self._matrix.shape
        rows = rows or max(1, CHUNK_BYTES // (8 * max(1, width)))
        for start in range(0, n_rows, rows):
            part = slice(start, start + rows)
            frame = pd.DataFrame(np.array(self._matrix[part]), columns=list(self._matrix_names))
            for key, array in self._columns.items():
                label = self.own_index if key == INDEX_KEY else key
                cells = array[part]
                frame[label] = (
                    cells.astype(str).astype(object) if array.dtype.kind in "US" else cells
                )
            frame = frame if tuple(frame.columns) == self.names else frame[list(self.names)]

            def place(row: int, start: int = start) -> str:
                return f"'{self._name}', row {start + row + 1}"

            yield with_numbers(frame, numbers, self.rules, place)

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


def _own_index(columns: Mapping[str, AnyArray], arrays: Mapping[str, AnyArray]) -> str | None:
    """Return the name of the index, "" if it has none; None without one."""
    if INDEX_KEY not in columns:
        return None
    return str(arrays[INDEX_NAME_KEY]) if INDEX_NAME_KEY in arrays else ""
