"""Columns of a table as features that a model measures distances in, and the way back.

A column becomes one or more features φ_k. They are centred and divided by one number, so that their
variances add up to the weight w of the column, 1 unless the user says otherwise: a column counts
like a column, whatever its kind and however many levels it has.

    z_k = (φ_k(y) - mean φ_k) / s,   s² = Σ_k var φ_k / w

======== ==================================================== ==================================
number   φ = y
log      φ = log y
count    φ = log(1 + y)
robust   φ = arsinh((y - m) / r)                              m median, r from the quartiles
category φ_k = 1 if y is the level k, else 0                  f_k(x) is the probability of k
ordered  φ_k = 1 if y is above the level k, else 0            differences are probabilities
date     φ = days, and in equal parts cos and sin of          where the rows cover two years,
         2π days / 365.2425 and of 2π days                    or two days with times of day
======== ==================================================== ==================================

A kernel regression of an indicator is the share of a level among rows nearby, so that the way back
of a category is a distribution. Rare levels share one indicator; its probability is divided among
them as they are divided in the table. A date on the way back is the one whose features are nearest.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from twofold.array_types import FloatArray, IntArray
from twofold.mixed.column_types import ColumnType, nearest_periods, starts_of, times_of, wall_days
from twofold.model_files import register_value_type

YEAR = 365.2425
# Days of the calendar that dates may keep to: periods that begin so many days after them.
CALENDARS = {
    "first days of years": ("Y", 0),
    "last days of years": ("Y", 1),
    "first days of months": ("M", 0),
    "last days of months": ("M", 1),
}
# Places on a circle that are compared before the best is refined.
AROUND = 96
# Two levels are as far from usual as each other, up to rounding.
ABOVE_FIRST = 1.001
SHARE_DIGITS = 9
# Largest exponent on the way back: what is beyond has no number in half of the types.
MOST_LOG = 300.0


@dataclass(frozen=True)
class Column:
    """A column of a fitted table. The parts of its features count alike."""

    name: str
    kind: str
    why: str  # why that kind
    weight: float
    type: ColumnType

    @property
    def features(self) -> list[str]:
        """The names of its features."""
        return [self.name]

    @property
    def titles(self) -> list[str]:
        """What its features are called where they stand in the table's own units."""
        return self.features

    @property
    def parts(self) -> list[int]:
        """How many features each part has."""
        return [len(self.features)] if self.features else []

    @property
    def wanted(self) -> str:
        """What a cell has to be to have features; "" if it has to be a level of the fit."""
        return ""

    @property
    def shown(self) -> list[int]:
        """The numbers of the features that are worth a picture."""
        return list(range(len(self.features)))

    def encode(self, values: pd.Series) -> FloatArray:
        """Return the features (n, k), NaN where an entry is missing or unknown to the fit."""
        raise NotImplementedError

    def decode(self, F: FloatArray) -> Any:
        """Return the column's values (n,) for features (n, k), in the type of the column."""
        raise NotImplementedError

    def end(self, F: FloatArray) -> Any:
        """Return the values (n,) at an end of intervals, given that of the features."""
        return self.decode(F)

    def amounts(self, z: FloatArray) -> list[Any]:
        """Return what values (n,) of a feature stand for, means of rows too: they are not whole."""
        return z.tolist()

    def spreads(self, z: FloatArray, spread: FloatArray) -> list[Any]:
        """Return how far amounts reach if the feature reaches so far (n,) around values z (n,)."""
        return spread.tolist()

    def most_unusual(self, off: FloatArray) -> int:
        """Return which feature to name, given how far each (k,) is from usual."""
        return 0

    def slopes(self, F: FloatArray, J: FloatArray) -> FloatArray:
        """Return how the column moves (n, q), given features (n, k) and their slopes (n, k, q)."""
        raise NotImplementedError

    def described(self) -> str:
        """Return what was chosen, and why."""
        weight = "" if self.weight == 1 else f", weight {self.weight:g}"
        return f"{self.kind} ({self.why}){weight}"


@register_value_type
@dataclass(frozen=True)
class NumberColumn(Column):
    """Amounts on a scale: "number", "log", "count" or "robust"."""

    is_whole: bool = False
    middle: float = 0.0  # of "robust"
    reach: float = 1.0

    @property
    def wanted(self) -> str:
        """A number that its scale has a value for."""
        bounds = {"log": " above 0", "count": " of at least 0"}
        return f"number{bounds.get(self.kind, '')}"

    @property
    def features(self) -> list[str]:
        """The name of its one feature, which says the scale it is on."""
        forms = {"log": "log({})", "count": "log(1 + {})", "robust": "arsinh({})"}
        return [forms.get(self.kind, "{}").format(self.name)]

    def described(self) -> str:
        """Return what was chosen, and the unit of durations."""
        return super().described() + (", in seconds" if self.type.form == "duration" else "")

    def encode(self, values: pd.Series) -> FloatArray:
        """Return the number on its scale; what a logarithm has no value for is missing."""
        return self.scaled(self.type.numbers(values))[:, None]

    def scaled(self, y: FloatArray) -> FloatArray:
        """Return amounts (n,) on the column's scale: the opposite of ``numbers``."""
        with np.errstate(divide="ignore", invalid="ignore"):
            if self.kind == "log":
                y = np.where(y > 0, np.log(y), np.nan)
            elif self.kind == "count":
                y = np.where(y >= 0, np.log1p(y), np.nan)
            elif self.kind == "robust":
                y = np.arcsinh((y - self.middle) / self.reach)
        return y

    def numbers(self, F: FloatArray) -> FloatArray:
        """Return the amounts (n,) that features stand for."""
        z = F[:, 0].astype(np.float64)
        if self.kind == "number":
            return z
        z = np.clip(z, -MOST_LOG, MOST_LOG)
        if self.kind == "log":
            return np.exp(z)
        if self.kind == "count":
            return np.maximum(np.expm1(z), 0.0)
        return self.middle + self.reach * np.sinh(z)

    @property
    def titles(self) -> list[str]:
        """The name of the column, whatever its scale."""
        return [self.name]

    def amounts(self, z: FloatArray) -> list[Any]:
        """Return numbers, or durations."""
        return self._as_durations(self.numbers(z[:, None]))

    def spreads(self, z: FloatArray, spread: FloatArray) -> list[Any]:
        """Return half of the way from the lower to the upper end."""
        ends = self.numbers((z - spread)[:, None]), self.numbers((z + spread)[:, None])
        return self._as_durations((ends[1] - ends[0]) / 2)

    def _as_durations(self, y: FloatArray) -> list[Any]:
        """Return numbers as durations if the column has such."""
        return list(pd.to_timedelta(y, unit="s")) if self.type.form == "duration" else y.tolist()

    def decode(self, F: FloatArray) -> Any:
        """Return the amounts, whole ones of whole columns."""
        y = self.numbers(F)
        return self.type.from_numbers(np.rint(y) if self.is_whole else y)

    def slopes(self, F: FloatArray, J: FloatArray) -> FloatArray:
        """Return slopes in the units of the column."""
        z = F[:, :1].astype(np.float64)
        if self.kind == "number":
            return J[:, 0]
        return np.asarray(
            J[:, 0] * (self.reach * np.cosh(z) if self.kind == "robust" else np.exp(z))
        )


@register_value_type
@dataclass(frozen=True)
class LevelColumn(Column):
    """Levels, with an order ("ordered") or none ("category", "boolean")."""

    levels: tuple[Any, ...] = ()  # those of the fit
    groups: IntArray = None  # type: ignore[assignment] # (L,) the indicator of each level
    shares: FloatArray = None  # type: ignore[assignment] # (L,) of each level in its indicator

    @property
    def features(self) -> list[str]:
        """A name for each indicator."""
        texts = self.shown_levels()
        if self.kind == "ordered":
            return [f"{self.name} > {text}" for text in texts[:-1]]
        first = np.unique(self.groups, return_index=True)[1]
        return [f"{self.name} = {texts[k]}" for k in first]

    @property
    def shown(self) -> list[int]:
        """All, but one of two levels: the other is its opposite."""
        return [1] if self.kind == "category" and len(self.features) == 2 else super().shown

    def amounts(self, z: FloatArray) -> list[Any]:
        """Return shares of a level, 0 where only rounding is left of it."""
        return np.round(z, SHARE_DIGITS).tolist()

    def most_unusual(self, off: FloatArray) -> int:
        """Return the indicator that is farthest from usual; of opposites, the one above it."""
        size = np.abs(np.nan_to_num(off))
        return int(np.argmax(np.where(off > 0, ABOVE_FIRST * size, size)))

    def shown_levels(self) -> list[str]:
        """Return what each level (L,) of a row is called where only its indicator is known."""
        texts = [str(level) for level in self.levels]
        if self.kind == "ordered":
            return texts
        size = np.bincount(self.groups)[self.groups]
        joined = f"one of {size.max()} rare levels"
        return [joined if n > 1 else text for n, text in zip(size, texts, strict=True)]

    def encode(self, values: pd.Series) -> FloatArray:
        """Return indicators; a level that the fit has not seen is missing."""
        code = self.type.codes(values, self.levels)
        if self.kind == "ordered":
            F = (code[:, None] > np.arange(len(self.levels) - 1)).astype(np.float64)
        else:
            F = (self.groups[code][:, None] == np.arange(len(self.features))).astype(np.float64)
        F[code < 0] = np.nan
        return F

    @property
    def n_classes(self) -> int:
        """How many levels are told apart: rare ones that are joined count as one."""
        return len(self.levels) if self.kind == "ordered" else len(self.features)

    def classes(self, F: FloatArray) -> IntArray:
        """Return which of them rows of known features (n, k) have."""
        found = (F > 0.5).sum(axis=1) if self.kind == "ordered" else F.argmax(axis=1)
        return np.asarray(found)

    def from_classes(self, P: FloatArray) -> FloatArray:
        """Return features (n, k) for probabilities (n, n_classes)."""
        if self.kind == "ordered":
            return np.asarray(np.cumsum(P[:, :0:-1], axis=1)[:, ::-1])
        return P

    def to_classes(self, F: FloatArray) -> FloatArray:
        """Return probabilities (n, n_classes) of features (n, k): undo `from_classes`."""
        if self.kind == "ordered":
            return np.asarray(-np.diff(F, axis=1, prepend=1.0, append=0.0))
        return F

    def proper(self, F: FloatArray) -> FloatArray:
        """Return the nearest features that are probabilities."""
        F = np.clip(F.astype(np.float64), 0, 1)
        if self.kind == "ordered":
            return np.asarray(np.minimum.accumulate(F, axis=1))
        total = F.sum(axis=1, keepdims=True)
        return np.where(total > 0, F / np.where(total > 0, total, 1), 1 / F.shape[1])

    def probabilities(self, F: FloatArray) -> FloatArray:
        """Return the probability (n, L) of each level."""
        F = np.clip(F.astype(np.float64), 0, 1)
        if self.kind == "ordered":
            above = np.minimum.accumulate(F, axis=1)
            ends = np.ones((len(F), 1)), np.zeros((len(F), 1))
            P = np.abs(np.diff(np.hstack([ends[0], above, ends[1]]), axis=1))
        else:
            P = F[:, self.groups] * self.shares
        total = P.sum(axis=1, keepdims=True)
        # Where every indicator is 0 or below, nothing is known but the shares in the table.
        usual = np.full(P.shape[1], 1 / P.shape[1])
        return np.where(total > 0, P / np.where(total > 0, total, 1), usual)

    def decode(self, F: FloatArray) -> Any:
        """Return the most likely levels."""
        return self.type.from_levels(self.levels, self.probabilities(F).argmax(axis=1))

    def end(self, F: FloatArray) -> Any:
        """Return missing values: levels have no ends, but probabilities."""
        return pd.Series(np.full(len(F), None), dtype=object)

    def slopes(self, F: FloatArray, J: FloatArray) -> FloatArray:
        """Return how much probability moves to other levels; of an order, how many levels up."""
        if self.kind == "ordered":
            return np.asarray(J.sum(axis=1))
        return np.asarray(np.abs(J).sum(axis=1) / 2)

    def described(self) -> str:
        """Return what was chosen, and how many levels it has."""
        n_rare = int((np.bincount(self.groups)[self.groups] > 1).sum())
        rare = f", {n_rare} rare ones joined" if n_rare and self.kind != "ordered" else ""
        return super().described() + f": {len(self.levels)} levels{rare}"


@register_value_type
@dataclass(frozen=True)
class DateColumn(Column):
    """Dates and times: how much time has passed, the season, the time of day."""

    periods: tuple[float, ...] = ()  # circles, in days
    resolution: float = 0.0  # seconds; 86400 for dates without times, 0 for anything
    # What the parts are divided by on the way back: elapsed days, then each circle.
    scales: tuple[float, ...] = (1.0,)
    calendar: str = ""  # which of `CALENDARS` all dates keep to, "" for any
    # Between which shares of the day, below 0 before midnight, times lie that have no circle.
    times_of_day: tuple[float, ...] = ()

    @property
    def features(self) -> list[str]:
        """Days since 1970, and two features for each circle."""
        words = {YEAR: "season", 1.0: "time of day"}
        circles = [words[period] for period in self.periods]
        around = [f"{self.name}: {f} of the {word}" for word in circles for f in ("cos", "sin")]
        return [self.name, *around]

    @property
    def zone(self) -> str:
        """The time zone of its clock, "" for none."""
        zone = self.type.zone()
        return "" if zone is None else str(zone)

    @property
    def wanted(self) -> str:
        """A date."""
        return "date"

    @property
    def parts(self) -> list[int]:
        """Elapsed time, and each circle."""
        return [1, *(2 for _ in self.periods)]

    @property
    def shown(self) -> list[int]:
        """Elapsed time: circles say nothing alone."""
        return [0]

    def encode(self, values: pd.Series) -> FloatArray:
        """Return days since 1970 on the clock of the place, and where they are on the circles."""
        days = wall_days(self.type.times(values))
        return np.column_stack([days, *self._on_circles(days)])

    def _on_circles(self, days: FloatArray) -> list[FloatArray]:
        angles = [2 * np.pi * days / period for period in self.periods]
        return [f(angle) for angle in angles for f in (np.cos, np.sin)]

    def days(self, F: FloatArray) -> FloatArray:
        """Return the days (n,) whose features are nearest to F (n, k)."""
        days = F[:, 0].astype(np.float64)
        for k, period in enumerate(self.periods):
            around = F[:, 1 + 2 * k : 3 + 2 * k].astype(np.float64)
            days = days + self._shift(days, around, period, self.scales[0], self.scales[1 + k])
        if not self.times_of_day:
            return days
        low, high = self.times_of_day
        midnight = np.rint(days - (low + high) / 2)
        return midnight + np.clip(days - midnight, low, high)

    def _shift(
        self, days: FloatArray, around: FloatArray, period: float, unit: float, radius: float
    ) -> FloatArray:
        """Return how far days (n,) move, half a period at most, towards their place on a circle."""
        steps = np.linspace(-0.5, 0.5, AROUND, endpoint=False) * period
        angle = 2 * np.pi * (days[:, None] + steps) / period
        cost = (steps / unit) ** 2 + (
            (np.cos(angle) - around[:, :1]) ** 2 + (np.sin(angle) - around[:, 1:]) ** 2
        ) / radius**2
        best = cost.argmin(axis=1)
        rows = np.arange(len(days))
        # A parabola through the best place and those beside it.
        low, mid, high = (cost[rows, (best + step) % AROUND] for step in (-1, 0, 1))
        bend = low - 2 * mid + high
        inside = (bend > 0) & (best > 0) & (best < AROUND - 1)
        part = np.where(inside, 0.5 * (low - high) / np.where(inside, bend, 1), 0)
        return np.asarray(steps[best] + part * (steps[1] - steps[0]))

    def decode(self, F: FloatArray) -> Any:
        """Return dates, as fine as those of the table."""
        return self._of_days(self.days(F))

    def end(self, F: FloatArray) -> Any:
        """Return dates by their elapsed time alone: circles have no ends."""
        return self._of_days(F[:, 0].astype(np.float64))

    def amounts(self, z: FloatArray) -> list[Any]:
        """Return dates, by their elapsed time."""
        return list(self.end(z[:, None]))

    def spreads(self, z: FloatArray, spread: FloatArray) -> list[Any]:
        """Return durations."""
        return list(pd.to_timedelta(spread, unit="D").round("s"))

    def _of_days(self, days: FloatArray) -> Any:
        if self.resolution:
            days = np.rint(days * 86_400 / self.resolution) * self.resolution / 86_400
        if self.calendar:
            unit, before = CALENDARS[self.calendar]
            periods = nearest_periods(times_of(days + before), unit)
            days = wall_days(starts_of(periods)) - before
        return self.type.from_days(days, self.resolution)

    def slopes(self, F: FloatArray, J: FloatArray) -> FloatArray:
        """Return slopes in days."""
        return J[:, 0]

    def described(self) -> str:
        """Return what was chosen, and which circles."""
        words = {YEAR: "season", 1.0: "time of day"}
        more = "".join(f", {words[period]} on a circle" for period in self.periods)
        kept = f", {self.calendar}" if self.calendar else ""
        if self.times_of_day:
            ends = [
                f"{pd.Timestamp(0) + pd.Timedelta(days=end):%H:%M}" for end in self.times_of_day
            ]
            kept = f", at {ends[0]} to {ends[1]}"
        return super().described() + f": elapsed time{more}{kept}"


@register_value_type
@dataclass(frozen=True)
class ConstantColumn(Column):
    """One value in every row: nothing to learn, nothing to ask for, and known on the way back."""

    value: Any = None

    @property
    def features(self) -> list[str]:
        """None."""
        return []

    def encode(self, values: pd.Series) -> FloatArray:
        """Return no feature."""
        return np.empty((len(values), 0))

    def decode(self, F: FloatArray) -> Any:
        """Return the value for each row."""
        return self.type.repeated(self.value, len(F))

    def slopes(self, F: FloatArray, J: FloatArray) -> FloatArray:
        """Return zeros."""
        return np.zeros((len(F), J.shape[2]))


def scales(
    F: FloatArray, parts: list[int], weight: float, row_weights: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Return what to subtract from features F (n, k) and to divide them by, (k,) each.

    Every part then has the same share of the variance, ``weight`` in all.
    """
    seen = row_weights[:, None] * ~np.isnan(F)
    total = np.maximum(seen.sum(axis=0), np.finfo(np.float64).tiny)
    center = np.nansum(seen * F, axis=0) / total
    variance = np.nansum(seen * (F - center) ** 2, axis=0) / total
    spread: list[npt.NDArray[np.float64]] = []
    start = 0
    for size in parts:
        part = float(variance[start : start + size].sum()) * len(parts) / weight
        spread.append(np.full(size, np.sqrt(part) if part > 0 else 1.0))
        start += size
    return center, np.concatenate(spread) if spread else np.empty(0)
