"""Rows as whole numbers of 8 or 16 bits: ``value = low + code * step``.

Columns of whole numbers, and of numbers with few decimals, have the step that they are written
with, so that 9.38 stays 9.38, as far as the bits suffice.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from twofold.array_types import FloatArray, IntArray

# Rows that become codes at a time, so that their doubles take little memory.
ROWS_AT_A_TIME = 4096
# More decimals than this are not looked for; first some rows are looked at.
MOST_DECIMALS, FIRST_LOOK = 6, 64
# Roundings that a number with decimals may be off.
ROUNDINGS = 4


@dataclass(frozen=True, eq=False)
class Scale:
    """How values of each feature become codes and codes values."""

    low: FloatArray  # (D,)
    step: FloatArray  # (D,)
    missing: int | None  # the code of a missing entry, None if none is missing
    bits: int  # 8 or 16
    is_exact: bool  # whether every value is kept as it is

    @classmethod
    def of(cls, tables: list[FloatArray], bits: int) -> Scale:
        """Return the scale that covers the tables."""
        low = np.nanmin([np.nanmin(table, axis=0) for table in tables], axis=0)
        high = np.nanmax([np.nanmax(table, axis=0) for table in tables], axis=0)
        has_gaps = any(bool(np.isnan(table).any()) for table in tables)
        top = 2**bits - 1
        # The largest code marks a gap, which leaves one step fewer for values.
        n_steps = top - 1 if has_gaps else top
        step = short((high.astype(float) - low) / n_steps)
        exact = high == low
        decimals = _common_decimals(tables)
        fine = np.where(decimals >= 0, 10.0**-decimals, 0)
        with np.errstate(divide="ignore", invalid="ignore"):
            fits = (decimals >= 0) & (np.rint((high.astype(float) - low) / fine) <= n_steps)
        step, exact = np.where(fits, fine, step), exact | fits
        low = np.where(fits, np.rint(low * 10.0**decimals) / 10.0**decimals, low)
        return cls(short(low), step, top if has_gaps else None, bits, bool(exact.all()))

    def codes(self, Y: FloatArray) -> npt.NDArray[np.unsignedinteger[Any]]:
        """Return the codes of rows Y (n, D)."""
        top = 2**self.bits - (1 if self.missing is None else 2)
        found = np.empty(Y.shape, dtype=f"<u{self.bits // 8}")
        step = np.where(self.step > 0, self.step, 1)
        for start in range(0, len(Y), ROWS_AT_A_TIME):
            part = Y[start : start + ROWS_AT_A_TIME].astype(np.float64)
            code = np.clip(np.rint((part - self.low) / step), 0, top)
            code = np.where(np.isnan(code), self.missing or 0, code)
            found[start : start + ROWS_AT_A_TIME] = code
        return found

    def rounded(self, Y: FloatArray) -> FloatArray:
        """Return rows as they come out of their codes."""
        codes = self.codes(Y)
        values = self.low + codes * self.step
        return values if self.missing is None else np.where(codes == self.missing, np.nan, values)

    def of_feature(self, j: int) -> Scale:
        """Return the scale of one feature."""
        return replace(self, low=self.low[j : j + 1], step=self.step[j : j + 1])


def _common_decimals(tables: list[FloatArray]) -> IntArray:
    """Return with how many decimals each column is written in all tables, -1 for too many."""
    columns = np.arange(tables[0].shape[1])
    found = np.zeros(len(columns), dtype=int)
    for table in tables:
        for rows in (table[:: max(1, len(table) // FIRST_LOOK)], table):
            left = columns[found >= 0]
            found[left] = [decimals_of(rows[:, j], int(found[j])) for j in left]
    return found


def decimals_of(values: FloatArray, least: int = 0) -> int:
    """Return how many decimals, from ``least`` on, some values have; -1 if more than most have."""
    values = values[~np.isnan(values)]
    eps = float(np.finfo(values.dtype).eps) if values.dtype.kind == "f" else 0.0
    largest = float(np.abs(values).max(initial=0))
    for decimals in range(least, MOST_DECIMALS + 1):
        units = values.astype(np.float64) * 10.0**decimals
        rounding = ROUNDINGS * eps * largest * 10.0**decimals
        # Where rounding is as large as that, anything would look like a number with decimals.
        if (np.abs(units - np.rint(units)) <= (rounding if rounding < 0.02 else 0)).all():
            return decimals
    return -1


def bits_for(tables: list[FloatArray]) -> tuple[int, ...]:
    """Return the bits to try for tables, finest first; more than needed are none the finer."""
    return (8,) if Scale.of(tables, 8).is_exact else (16, 8)


def short(values: Any) -> FloatArray:
    """Return numbers rounded to nine digits: half the text, and finer than any code."""
    flat = np.asarray(values, dtype=np.float64)
    return np.array([float(f"{value:.9g}") for value in flat.ravel()]).reshape(flat.shape)
