"""AnnData files: the matrix ``X`` in slices of rows, with the annotations of the observations."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from twofold.tables.array_files import CHUNK_BYTES
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
        data = self._open()
        try:
            if data.X is None:
                raise TableError(f"'{name}' has no matrix X.", "Store the layer to use as X.")
            self.n_rows: int | None = data.n_obs
            variables = [str(variable) for variable in data.var_names]
            self._obs = _plain_columns(data.obs)
            self._row_names = [str(observation) for observation in data.obs_names]
        finally:
            data.file.close()
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
        data = self._open()
        try:
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
        finally:
            data.file.close()

    def _open(self) -> Any:
        try:
            return self._anndata.read_h5ad(self._path, backed="r")
        except (OSError, KeyError, ValueError) as error:
            raise TableError(
                f"'{self._name}' is damaged or no h5ad file: {error}.", "Copy it again."
            ) from error


def _plain_columns(obs: Any) -> Any:
    """Return the annotations with categories as their plain values."""
    plain = {
        str(name): obs[name].astype(obs[name].cat.categories.dtype)
        if obs[name].dtype.name == "category"
        else obs[name]
        for name in obs.columns
    }
    return type(obs)(plain, index=obs.index)
