"""A feature that stands for a column of the table, and the table's own values of it.

A model computes with rounded numbers, some in units or on scales of its own. The table's values are
found again by leaving out the digits that only rounding made.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from twofold.array_types import FloatArray
from twofold.explorer.scale import ROUNDINGS, decimals_of, short
from twofold.mixed.columns import DateColumn, NumberColumn

# More digits than this the page does not take out of a code.
MOST_DIGITS = 1e9
MICROSECONDS = 86_400e6


@dataclass(frozen=True, eq=False)
class TableFeature:
    """A column of numbers or dates, and the feature (n,) that stands for it."""

    values: FloatArray
    column: NumberColumn | DateColumn | None  # None: the feature is the column
    in_other_units: bool  # a model computes in units of its own, which leaves roundings

    def amounts(self, z: FloatArray) -> FloatArray:
        """Return what features z stand for: amounts, or days since 1970."""
        z = z.astype(np.float64)
        return self.column.numbers(z[:, None]) if isinstance(self.column, NumberColumn) else z

    def own(self) -> FloatArray:
        """Return the values (n,) of the table, without digits that only rounding made."""
        z = self.values
        if isinstance(self.column, DateColumn):
            unit = 86_400 / self.column.resolution if self.column.resolution else MICROSECONDS
            return np.asarray(np.rint(z.astype(np.float64) * unit) / unit)
        found = self.amounts(z)
        if isinstance(self.column, NumberColumn) and self.column.is_whole:
            return np.asarray(np.rint(found))
        if self.column is None and (decimals := decimals_of(z)) >= 0:
            return np.asarray(np.round(found, decimals))
        if not self.in_other_units:
            # Of single precision the digits that tell its numbers apart.
            return z.astype(str).astype(np.float64) if z.dtype == np.float32 else found
        error = roundings_of(z)
        reach = np.abs(self.amounts(z.astype(np.float64) + error) - found)
        return certain(found, reach)

    def as_in_table(self) -> FloatArray:
        """Return the feature (n,) of the table's own values."""
        own = self.own()
        return short(self.column.scaled(own)) if isinstance(self.column, NumberColumn) else own

    def comes_out_of(self, codes: FloatArray, step: float, own: FloatArray) -> bool:
        """Whether the page writes a column's own values from those that its codes give back."""
        known = ~np.isnan(own)
        own, z = own[known], codes[known]
        if step == 0:
            return bool((self.amounts(short(z)) == own).all())
        found = self.amounts(z)
        if isinstance(self.column, DateColumn):
            unit = self.column.resolution / 86_400 or 1 / MICROSECONDS
            return bool((np.abs(found - own) < 0.4 * unit).all())
        if isinstance(self.column, NumberColumn) and self.column.is_whole:
            return bool((np.abs(found - own) < 0.4).all())
        reach = np.abs(self.amounts(z + step) - found) / 2
        decimals = decimals_of(own)
        fine = 10.0**-decimals
        is_near = decimals >= 0 and bool((np.abs(found - own) < 0.4 * fine).all())
        if self.column is not None:
            return is_near and bool((reach < fine).all())
        # Digits beyond half a step are not written.
        return is_near and bool(
            (reach >= 0.4 * fine).all() and (np.abs(own) < MOST_DIGITS * reach).all()
        )


def roundings_of(values: FloatArray) -> FloatArray:
    """Return how far numbers in other units may be off: a share of the largest of each column."""
    largest = np.nanmax(np.abs(values), axis=0, initial=0)
    return np.asarray(ROUNDINGS * np.finfo(values.dtype).eps * largest)


def certain(values: FloatArray, reach: FloatArray) -> FloatArray:
    """Return values rounded to the decimals that errors of up to ``reach`` leave certain."""
    with np.errstate(divide="ignore"):
        decimals = np.floor(-np.log10(2 * reach))
    decimals, found = np.broadcast_to(decimals, values.shape), values.copy()
    for number in np.unique(decimals[np.isfinite(decimals)]):
        these = decimals == number
        found[these] = np.round(values[these], int(number))
    return found
