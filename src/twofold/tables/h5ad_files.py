"""AnnData files: the matrix ``X`` in slices of rows, with the annotations of the observations."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from twofold.tables.array_files import CHUNK_BYTES, LARGE_BYTES, MOST_PACKED
from twofold.tables.cells import CellRules
from twofold.tables.number_columns import with_numbers
from twofold.tables.table_error import TableError, load_package

if TYPE_CHECKING:
    import pandas as pd


class AnnDataTable:
    """An h5ad file; see `twofold.tables.reading.Table`."""

    dialect = None

    def __init__(self, path: Path, name: str, rules: CellRules) -> None:
        self.rules = rules
        self.notes: list[str] = []
        self._name = name
        self._path = path
        self._anndata = load_package("anndata", "Reading h5ad")
        with self._open() as data:
            if data.X is None:
                raise TableError(f"'{name}' has no matrix X.", "Store the layer to use as X.")
            self.n_rows: int | None = data.n_obs
            variables = [str(variable) for variable in data.var_names]
            self._obs = _plain_columns(data.obs)
            self._row_names = [str(observation) for observation in data.obs_names]
        self._variables = variables
        self.own_index = ""
        self.companions = tuple(str(column) for column in self._obs.columns)
        self.names = ("", *variables, *(str(column) for column in self._obs.columns))
        if not self.n_rows:
            raise TableError(f"'{name}' has no rows.")

    def blocks(self, numbers: frozenset[str], rows: int | None) -> Iterator[pd.DataFrame]:
        """Yield frames; see `twofold.tables.reading.Table`."""
        import pandas as pd

        rows = rows or max(1, CHUNK_BYTES // (8 * max(1, len(self._variables))))
        with self._open() as data:
            for start in range(0, len(self._row_names), rows):
                stop = start + rows
                matrix = data.X[start:stop]
                dense = matrix.toarray() if hasattr(matrix, "toarray") else np.asarray(matrix)
                frame = pd.DataFrame(dense, columns=self._variables)
                observed = self._obs.iloc[start:stop].reset_index(drop=True)
                row_names = pd.DataFrame({"": self._row_names[start:stop]})
                frame = pd.concat([row_names, frame, observed], axis=1)

                def place(row: int, start: int = start) -> str:
                    return f"'{self._name}', row {start + row + 1}"

                yield with_numbers(frame, numbers, self.rules, place)

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
