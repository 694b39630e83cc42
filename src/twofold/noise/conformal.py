"""Intervals from the errors of hidden entries (split conformal prediction, Lei et al. 2018).

The error of a hidden entry, in deviations that were expected of it, is a ratio. Intervals reach as
far as the ratio below which the share ``level`` of these lie, counted as they are like entries that
are missing (:func:`twofold.noise.hidden_entries.likeness`). A column has its own, with those of all
columns counted like 30 more entries of it. The entry that is asked for is one more: of n ratios,
the share (n + 1) / n times the level is taken. n ratios of the column and N of all are as sure of
that share as ``(n + 30)² / (n + 30² / N)`` ratios of one kind, whose variance is the same.

What is expected of an entry of column d where local Gaussians expect the variance s:

    v = (c s)^a u_d^(1 - a)

with u_d the mean squared error of hidden entries of the column, c such that the local variances
have the size of the errors, and a from 0 to 1. Local variances know the places where more is open,
but little where neighbours had many gaps; of all a, that with the narrowest intervals is taken.

Where trees tell between which values an entry lies, each side is ``v^((1 - b) / 2) r^b`` with r the
way from what is filled in to the end that they tell: values that pile up at one end of their column
have intervals to one side, and short ones. Of b = 0, 1/2 and 1, again the narrowest.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from twofold.array_types import FloatArray, IntArray
from twofold.checks.parameters import is_number
from twofold.noise.hidden_entries import mean_squares
from twofold.process_settings import warn

# Choices of a, and the level at which intervals are compared.
LOCALITIES, COMPARED = (0.0, 0.25, 0.5, 0.75, 1.0), 0.9
ENTRIES_OF_ALL = 30.0
# Shares that trees may have in the shape of intervals, and the least side, in deviations.
SHARES_OF_TREES, LEAST_OF_DEVIATION = (0.0, 0.5, 1.0), 0.05
# Ratios of all columns together are told by so many of them.
POOLED = 400


@dataclass(frozen=True)
class Ratios:
    """Errors of hidden entries (h,) in expected deviations, their columns and how they count."""

    sizes: FloatArray
    columns: IntArray
    counts: FloatArray


@dataclass(frozen=True)
class Scale:
    """How far off entries may be, see the module: c, u (D,) and a."""

    stretch: float
    usual: FloatArray
    locality: float

    def variances(self, spread: FloatArray) -> FloatArray:
        """Return the variances (m, D) of entries for which local Gaussians expect ``spread``."""
        local = np.maximum(self.stretch * spread, np.finfo(np.float64).tiny)
        return np.asarray(local**self.locality * self.usual ** (1 - self.locality))


def scale_of(
    errors: FloatArray,
    spread: FloatArray,
    columns: IntArray,
    n_columns: int,
    counts: FloatArray,
) -> Scale:
    """Return the scale of hidden entries (h,), from their errors and expected variances."""
    expected = max(float(counts @ spread), np.finfo(np.float64).tiny)
    stretch = max(float(counts @ errors**2) / expected, np.finfo(np.float64).tiny)
    usual = mean_squares(errors, columns, n_columns, counts)

    def width(locality: float) -> float:
        own = Scale(stretch, usual[columns], locality).variances(spread)
        deviations = np.sqrt(own)
        reach = quantile(np.abs(errors) / deviations, counts, COMPARED)
        return reach * float(counts @ deviations)

    best = min(LOCALITIES, key=width) if len(errors) else 0.5
    return Scale(stretch, usual, best)


@dataclass(frozen=True)
class Sides:
    """How far entries may lie below and above what is filled in, of any shape.

    ``deviations`` are those of both sides alike, ``below`` and ``above`` what trees expect.
    """

    deviations: FloatArray
    below: FloatArray
    above: FloatArray

    @classmethod
    def joined(cls, parts: "Sequence[Sides]") -> "Sides":
        """Return the parts one after the other."""
        names = ("deviations", "below", "above")
        return cls(*(np.concatenate([getattr(part, name) for part in parts]) for name in names))

    def mixed(self, share: float) -> tuple[FloatArray, FloatArray]:
        """Return both sides, with the trees having a share from 0 to 1."""
        least = LEAST_OF_DEVIATION * self.deviations
        below, above = (
            self.deviations ** (1 - share) * np.maximum(side, least) ** share
            for side in (self.below, self.above)
        )
        return below, above


@dataclass(frozen=True)
class HiddenErrors:
    """Errors of hidden entries (h,): filled less true, their sides, columns and counts.

    ``room`` is how far it is from what is filled in to the bounds of the column, below and above.
    """

    errors: FloatArray
    sides: Sides
    room: tuple[FloatArray, FloatArray]
    columns: IntArray
    counts: FloatArray

    def narrowest(self, n_columns: int, level: float) -> tuple[float, FloatArray]:
        """Return the share of trees with the narrowest intervals, and their reach (n_columns,)."""
        choices = []
        for share in SHARES_OF_TREES:
            below, above = self.sides.mixed(share)
            ratios = np.where(self.errors > 0, self.errors / below, -self.errors / above)
            reach = conformal_reach(Ratios(ratios, self.columns, self.counts), n_columns, level)
            far = reach[self.columns]
            widths = np.minimum(far * below, self.room[0]) + np.minimum(far * above, self.room[1])
            choices.append((float(self.counts @ widths), share, reach))
        _, share, reach = min(choices, key=lambda choice: choice[0])
        return share, reach


def check_level(level: Any) -> None:
    """Raise ValueError unless the value is a share of entries that intervals can hold."""
    if not is_number(level) or not 0 < level < 1:
        raise ValueError(f"`level` must be a number between 0 and 1, as 0.9; got {level!r}.")


def conformal_reach(hidden: Ratios, n_columns: int, level: float) -> FloatArray:
    """Return the ratio (n_columns,) that holds the share ``level`` of those of hidden entries."""
    check_level(level)
    if len(hidden.sizes) == 0:
        raise ValueError(
            "No entry could be hidden to learn how far off the others are. Fit to more rows, and "
            "to more than one column."
        )
    reach = np.full(n_columns, quantile(hidden.sizes, hidden.counts, level))
    shares = (np.arange(POOLED) + 0.5) / POOLED
    pooled = quantiles(hidden.sizes, hidden.counts, shares)
    weight = np.full(POOLED, ENTRIES_OF_ALL / POOLED)
    entries = entries_of_columns(hidden, n_columns)
    for d in np.unique(hidden.columns):
        own = hidden.columns == d
        sizes = np.concatenate([hidden.sizes[own], pooled])
        counts = np.concatenate([hidden.counts[own], weight])
        reach[d] = quantiles(sizes, counts, np.array([with_new_one(level, entries[d])]))[0]
    return reach


def entries_of_columns(hidden: Ratios, n_columns: int) -> FloatArray:
    """Return how many entries of one kind tell as much of a column (n_columns,) as there is."""
    most = worth(hidden.counts)
    found = np.full(n_columns, most)
    for d in np.unique(hidden.columns):
        of_column = worth(hidden.counts[hidden.columns == d])
        entries = (of_column + ENTRIES_OF_ALL) ** 2 / (of_column + ENTRIES_OF_ALL**2 / most)
        found[d] = min(entries, most)  # of the column, too, which is among them
    return found


def warn_of_level(hidden: Ratios, n_columns: int, level: float) -> None:
    """Warn if hidden entries are too few to tell of a level: intervals then hold less."""
    check_level(level)
    if len(hidden.sizes) == 0:
        return
    least = max(float(entries_of_columns(hidden, n_columns).min()), 1.0)
    possible = least / (least + 1)
    if level > possible + 1e-9:
        warn(
            f"Intervals cannot be sure to hold {100 * level:.4g} %: the rows of the fit tell of "
            f"{100 * possible:.3g} % at most, and that is what these hold. Fit to more rows, or "
            "ask for less."
        )


def quantile(values: FloatArray, counts: FloatArray, level: float) -> float:
    """Return the least value such that a new one is below it with probability ``level``."""
    return float(quantiles(values, counts, np.array([with_new_one(level, worth(counts))]))[0])


def worth(counts: FloatArray) -> float:
    """Return how many entries that count alike those that count by ``counts`` (h,) are worth."""
    return float(counts.sum() ** 2 / max((counts**2).sum(), np.finfo(np.float64).tiny))


def with_new_one(level: float, entries: float) -> float:
    """Return the share of so many entries below which a new one lies with probability ``level``.

    The new one may be larger than all: of n entries it is (n + 1) / n times the level.
    """
    return min(level * (1 + 1 / max(entries, 1)), 1.0)


def quantiles(values: FloatArray, counts: FloatArray, shares: FloatArray) -> FloatArray:
    """Return below which of the values (h,) shares of them lie, counted by ``counts`` (h,)."""
    order = np.argsort(values, kind="stable")
    rising = np.cumsum(counts[order])
    found = np.searchsorted(rising, shares * rising[-1] * (1 - 1e-12))
    return np.asarray(values[order[np.minimum(found, len(values) - 1)]])
