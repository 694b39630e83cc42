"""Whole numbers for values: the rows of a page in 8 or 16 bits.

``value = low + code * step``, with a low and a step for each feature. Columns of whole numbers keep
them as they are where the bits suffice; the largest code stands for a missing entry.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from twofold.array_types import BoolArray, FloatArray

CodeArray = npt.NDArray[np.unsignedinteger[Any]]
# Rows that become codes at a time, so that their doubles take little memory.
ROWS_AT_A_TIME = 4096


@dataclass(frozen=True, eq=False)
class Scale:
    """How values of each feature become codes and codes values.

    Attributes
    ----------
    low, step : (D,) ``value = low + code * step``
    missing : the code of a missing entry, or None if none is missing
    bits : 8 or 16
    is_exact : whether every value is kept as it is
    """

    low: FloatArray
    step: FloatArray
    missing: int | None
    bits: int
    is_exact: bool

    @classmethod
    def of(cls, tables: list[FloatArray], bits: int) -> Scale:
        """Return the scale that covers the tables."""
        low = np.nanmin([np.nanmin(table, axis=0) for table in tables], axis=0)
        high = np.nanmax([np.nanmax(table, axis=0) for table in tables], axis=0)
        has_gaps = any(bool(np.isnan(table).any()) for table in tables)
        top = 2**bits - 1
        n_steps = top - 1 if has_gaps else top
        whole = np.all([_is_whole(table) for table in tables], axis=0) & (high - low <= n_steps)
        step = np.where(whole, 1.0, short((high.astype(float) - low) / n_steps))
        exact = whole | (high == low)
        return cls(short(low), step, top if has_gaps else None, bits, bool(exact.all()))

    def codes(self, Y: FloatArray) -> CodeArray:
        """Return the codes of rows Y (n, D)."""
        top = 2**self.bits - (1 if self.missing is None else 2)
        found = np.empty(Y.shape, dtype=f"<u{self.bits // 8}")
        step = np.where(self.step > 0, self.step, 1)
        for start in range(0, len(Y), ROWS_AT_A_TIME):
            part = Y[start : start + ROWS_AT_A_TIME].astype(np.float64)
            code = np.clip(np.rint((part - self.low) / step), 0, top)
            found[start : start + ROWS_AT_A_TIME] = np.where(
                np.isnan(code), self.missing or 0, code
            )
        return found

    def rounded(self, Y: FloatArray) -> FloatArray:
        """Return rows as they come out of their codes."""
        codes = self.codes(Y)
        values = self.low + codes * self.step
        return values if self.missing is None else np.where(codes == self.missing, np.nan, values)


def _is_whole(Y: FloatArray) -> BoolArray:
    """Say which columns hold whole numbers, or nothing, only."""
    return ((np.rint(Y) == Y) | np.isnan(Y)).all(axis=0)


def bits_for(tables: list[FloatArray]) -> tuple[int, ...]:
    """Return the bits to try for tables, finest first; more than needed are none the finer."""
    return (8,) if Scale.of(tables, 8).is_exact else (16, 8)


def short(values: Any) -> FloatArray:
    """Return numbers rounded to nine digits: half the text, and finer than any code."""
    flat = np.asarray(values, dtype=np.float64)
    return np.array([float(f"{value:.9g}") for value in flat.ravel()]).reshape(flat.shape)
