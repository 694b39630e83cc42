"""Rows that grow in number, and what is kept of each: arrays with room to spare.

Rows are kept centred where the error allows it: inner products then lose fewer digits, and the
centre is what a column without any observed entry is taken to be.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from twofold.array_types import BoolArray, FloatArray
from twofold.unn.point_errors import NO_KERNEL, PointError


class RowStore:
    """Values, weights and masses of rows, and arrays that others keep beside them.

    ``store["values"]`` and the like have more rows than there are; ``len(store)`` says how many
    count. `mass` is (n, 1), the weights, until an entry is missing, then (n, D) with zeros there.
    """

    def __init__(self, error: PointError) -> None:
        self._error = error
        self._arrays: dict[str, npt.NDArray[Any]] = {}
        self._n = 0
        self.center: FloatArray = np.empty(0)

    def __len__(self) -> int:
        return self._n

    def __getitem__(self, name: str) -> npt.NDArray[Any]:
        return self._arrays[name]

    @property
    def has_missing(self) -> bool:
        """Whether an entry was missing when its row came."""
        return self._n > 0 and self["mass"].shape[1] > 1

    def append(self, Y: FloatArray, weights: FloatArray | None = None) -> None:
        """Add rows (m, D), NaN for missing entries, with their weights (m,)."""
        Y = np.asarray(Y, dtype=np.float64)
        observed = ~np.isnan(Y)
        is_complete = bool(observed.all())
        if not is_complete and self._error.kernel != NO_KERNEL:
            raise ValueError(
                "A data kernel needs complete rows; entries are missing. Fill them in first, or "
                "use no data kernel."
            )
        if not observed.any(axis=1).all():
            raise ValueError("A row without any observed entry cannot be placed; leave it out.")
        start, D = self._n, Y.shape[1]
        if start == 0:
            counts = observed.sum(axis=0)
            sums = np.where(observed, Y, 0.0).sum(axis=0)
            self.center = np.where(counts > 0, sums / np.maximum(counts, 1), 0.0)
            if not self._error.is_shift_invariant:
                self.center = np.zeros(D)
        self._n += len(Y)
        self.reserve("values", D)
        self.reserve("weights")
        self.reserve("own")
        if start == 0:
            self.reserve("mass", 1 if is_complete else D)
        elif not is_complete and self["mass"].shape[1] == 1:
            self._arrays["mass"] = np.repeat(self["mass"], D, axis=1)
        self.reserve("mass", self["mass"].shape[1])
        new = slice(start, self._n)
        self["values"][new] = np.where(observed, Y - self.center, 0.0)
        self["weights"][new] = 1.0 if weights is None else weights
        if self.has_missing:
            self["mass"][new] = self["weights"][new, None] * observed
        else:
            self["mass"][new] = self["weights"][new, None]
        self["own"][new] = np.einsum("id,id->i", self["values"][new], self["values"][new])

    def reserve(self, name: str, width: int | None = None, dtype: Any = np.float64) -> None:
        """Make sure that an array of that name has a row for each of ours."""
        old = self._arrays.get(name)
        if old is not None and len(old) >= self._n:
            return
        # Rows that come one by one must not copy the table each time.
        room = self._n if old is None else max(self._n, len(old) + len(old) // 2)
        fresh = np.zeros(room if width is None else (room, width), dtype=dtype)
        if old is not None:
            fresh[: len(old)] = old
        self._arrays[name] = fresh

    def rows(self) -> FloatArray:
        """Return the centred rows, (n, D)."""
        return self["values"][: self._n]

    def observed(self) -> BoolArray | None:
        """Return which entries are there, (n, D); None if all are."""
        mass: FloatArray = self["mass"][: self._n]
        return mass > 0 if self.has_missing else None

    def row(self, number: int) -> FloatArray:
        """Return a row as it came, (D,), with what has been filled in."""
        values: FloatArray = self["values"][number] + self.center
        if self.has_missing:
            values[self["mass"][number] <= 0] = np.nan
        return values
