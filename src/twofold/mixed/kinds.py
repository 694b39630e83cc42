"""Which kind each column of a table has: the rules, in the order in which they are tried.

1. One value in every row: nothing to learn. No value at all: left out.
2. Truth values, and numbers with two whole values: "category".
3. Categories of pandas, polars or Arrow: "ordered" if their type says so, else "category".
4. Times, dates and periods: "date"; the season counts where rows cover two years and are spread by
   more than about three weeks of it, the time of day where they have one, spread by more than about
   an hour, and cover two days.
5. Whole numbers that count the rows (each one more than the last), or some of which are equal
   once they are floats of 64 bits, as long identifiers are: left out.
6. Whole numbers from 0 on with a skewness above 1: "count".
7. Amounts above 0 with a skewness above 1, of which their logarithms have less than half: "log".
   Heavy tails, a standard deviation of more than 1.5 times what the quartiles let expect: "robust".
   Others: "number".
8. Texts that are dates of one format: "date". Other texts: "category", unless more than half of
   them are different (names and free text) or all of them are rare; then they are left out.

A level is rare if it has fewer than three rows or less than half a percent of them, or if 50 others
are more frequent; two rare levels or more are joined. Where all are rare, the 50 most frequent
stay.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import Any

import numpy as np
import pandas as pd
from pandas.api import types

from twofold.array_types import BoolArray, FloatArray, IntArray
from twofold.mixed.column_types import ColumnType, plain, wall_days
from twofold.mixed.columns import (
    CALENDARS,
    YEAR,
    Column,
    ConstantColumn,
    DateColumn,
    LevelColumn,
    NumberColumn,
    scales,
)
from twofold.tables.text_types import date_format, parsed_dates

KINDS = ("number", "log", "count", "robust", "category", "ordered", "date", "out")
QUARTILES_TO_DEVIATION = 0.741301109252801
HEAVY = 1.5
SKEWED = 1.0
MOST_WHOLE = 2.0**53  # floats hold every whole number up to it
RARE_ROWS, RARE_SHARE, MOST_LEVELS = 3, 0.005, 50
# Fewer rows than this say nothing about whether texts are names.
ROWS_TO_JUDGE = 4
WORDS_OF_TEXT = 3
# Times of day within about an hour, as clocks are changed in summer, and first days of years have a
# longer mean direction on their circle.
TOGETHER = 0.95
# Texts that are dates only if somebody says so.
FORMATS_IF_ASKED = ("%Y-%m", "%Y", "%B %d, %Y", "%b %d, %Y")
RESOLUTIONS = (86_400.0, 3_600.0, 60.0, 1.0)


def check_kinds(kinds: Any) -> None:
    """Raise if kinds that were asked for, by names of columns, are none."""
    if kinds is not None and not isinstance(kinds, Mapping):
        raise TypeError(f"`kinds` must be a dict by names of columns; got {kinds!r}.")
    for name, kind in (kinds or {}).items():
        is_order = isinstance(kind, list | tuple) and len(kind) > 1
        if not is_order and not (isinstance(kind, str) and kind in KINDS):
            raise ValueError(
                f"`kinds[{name!r}]` must be one of {KINDS} or a list of levels in their order; "
                f"got {kind!r}."
            )
        if is_order and len(set(kind)) < len(kind):
            twice = next(level for level in kind if list(kind).count(level) > 1)
            raise ValueError(f"`kinds[{name!r}]` names the level {twice!r} twice.")


@dataclass(frozen=True)
class LeftOut:
    """A column that takes no part, and why."""

    name: str
    why: str


def fit_column(
    name: str, values: pd.Series, row_weights: FloatArray, asked: Any, weight: float
) -> Column | LeftOut:
    """Return a column as it is fitted to values (n,), of a kind that was asked for or is chosen."""
    counted = values[row_weights > 0]
    if asked == "out":
        return LeftOut(name, "as asked")
    if not counted.notna().any():
        return LeftOut(name, "it has no value in any row")
    kind, why = ("", "as asked") if asked is not None else choose(counted)
    if kind == "out":
        return LeftOut(name, why)
    if asked is None and kind == "constant":
        return _constant(name, counted, why)
    order = None if asked is None or isinstance(asked, str) else [plain(level) for level in asked]
    kind = kind or ("ordered" if order else asked)
    if kind in ("category", "ordered"):
        return _levels(name, counted, row_weights[row_weights > 0], kind, why, weight, order)
    if kind == "date":
        return _date(name, counted, row_weights[row_weights > 0], why, weight)
    return _number(name, counted, kind, why, weight)


# ---- the choice ---------------------------------------------------------------------------------


def choose(values: pd.Series) -> tuple[str, str]:
    """Return the kind of a column with at least one value, "out" and "constant" included; why."""
    known, dtype = values.dropna(), values.dtype
    try:
        n_different = int(known.nunique())
    except TypeError:
        return "out", f"it holds cells of type {type(known.iloc[0]).__name__}"
    if isinstance(dtype, pd.ArrowDtype) and str(dtype).startswith("dictionary"):
        return "out", f"its type is {dtype}; `.astype('category')` makes levels of it"
    if types.is_complex_dtype(dtype):
        return "out", "it holds complex numbers"
    if n_different == 1:
        where = "every row" if len(known) == len(values) else "every row that has one"
        return "constant", f"the same value in {where}"
    if isinstance(dtype, pd.CategoricalDtype):
        return ("ordered", "its levels have an order") if dtype.ordered else _text_kind(known)
    if types.is_bool_dtype(dtype) or _are_all(known, bool):
        return "category", "true or false"
    if types.is_datetime64_any_dtype(dtype) or ColumnType.of(known).form in ("date", "period"):
        return "date", "its type"
    if types.is_timedelta64_dtype(dtype) or types.is_numeric_dtype(dtype):
        return _number_kind(ColumnType.of(known).numbers(known), _whole(known))
    if _are_all(known, (int, float, Decimal)):
        return _number_kind(known.to_numpy(dtype=np.float64), None)
    if _are_all(known, str):
        return ("date", "texts that are dates") if date_format(known) else _text_kind(known)
    names = sorted({type(cell).__name__ for cell in known})
    return "out", f"it holds cells of type {', '.join(names[:4])}"


def _whole(known: pd.Series) -> IntArray | None:
    """Return numbers of an integer type without rounding, None for other types."""
    if not types.is_integer_dtype(known.dtype):
        return None
    is_unsigned = types.is_unsigned_integer_dtype(known.dtype)
    return np.asarray(known.to_numpy(dtype=np.uint64 if is_unsigned else np.int64))


def _number_kind(y: FloatArray, whole: IntArray | None) -> tuple[str, str]:
    """Return the kind of numbers y (n,), and why; ``whole`` are the same without rounding."""
    y = y[np.isfinite(y)]
    # Beyond 2**53 floats skip whole numbers, and that all of them are whole says nothing.
    is_whole = whole is not None or bool(
        (y == np.rint(y)).all() and np.abs(y).max(initial=0) <= MOST_WHOLE
    )
    exact = y if whole is None else whole
    n_different = len(np.unique(exact))
    if is_whole and n_different == 2:
        return "category", "two whole numbers"
    if is_whole and len(y) >= ROWS_TO_JUDGE and (np.diff(exact) == 1).all():
        return "out", "it counts the rows"
    if len(np.unique(y)) < n_different:
        return "out", "identifiers: whole numbers that differ in digits beyond those of floats"
    # Differences of large numbers that are close together are exact; their mean is not.
    skewness = _skewness(y - y.min() if np.abs(y).max() > MOST_WHOLE else y)
    if whole is not None and y.min() >= 0 and skewness > SKEWED:
        return "count", f"whole numbers from {y.min():g} on, skewed"
    if y.min() > 0 and skewness > SKEWED and 2 * abs(_skewness(np.log(y))) < skewness:
        return "log", f"amounts above 0 with a skewness of {skewness:.2g}"
    tails = _tails(y)
    if tails > HEAVY:
        return "robust", f"the deviation is {tails:.2g} times that of the quartiles"
    return "number", "numbers"


def _text_kind(known: pd.Series) -> tuple[str, str]:
    counts = known.value_counts()
    counts = counts[counts > 0]
    if 2 * len(counts) > len(known) and len(known) >= ROWS_TO_JUDGE:
        words = known.astype(str).head(1000).str.split().str.len().mean()
        what = "free text" if words > WORDS_OF_TEXT else "names or identifiers"
        return "out", f"{what}: {len(counts):,} different texts in {len(known):,} rows"
    if len(counts) > 2 and is_rare(counts.to_numpy()).all():
        return "out", f"all of its {len(counts):,} levels are rare"
    return "category", "levels without an order"


def _tails(y: FloatArray) -> float:
    """Return the standard deviation in units of what the quartiles let expect; 1 is normal."""
    low, high = np.quantile(y, [0.25, 0.75])
    deviation = float(np.std(y))
    if high > low:
        return deviation / (QUARTILES_TO_DEVIATION * float(high - low))
    return np.inf if deviation > 0 else 1.0


def _skewness(y: FloatArray) -> float:
    deviation = float(np.std(y))
    z = (y - y.mean()) / (deviation or 1.0)
    return float((z * z * z).mean())  # ten times as fast as a power


def _are_all(known: pd.Series, kind: Any) -> bool:
    if types.is_numeric_dtype(known.dtype) or types.is_datetime64_any_dtype(known.dtype):
        return False  # cells of one type that is none of Python's own
    found = set(map(type, known))
    is_truth = kind is bool
    return all(issubclass(each, kind) and (is_truth or each is not bool) for each in found)


def is_rare(counts: IntArray) -> BoolArray:
    """Say which levels, by their numbers of rows from the highest on, are rare."""
    few = (counts < RARE_ROWS) | (counts < RARE_SHARE * counts.sum())
    return np.asarray(few | (np.arange(len(counts)) >= MOST_LEVELS))


# ---- columns of a kind --------------------------------------------------------------------------


def _constant(name: str, values: pd.Series, why: str) -> ConstantColumn:
    kind, first = ColumnType.of(values), values.dropna().iloc[:1]
    value: Any = plain(first.iloc[0])
    if kind.form in ("time", "date", "period"):
        value = float(wall_days(kind.times(first))[0])
    elif kind.form in ("number", "decimal", "duration"):
        value = float(kind.numbers(first)[0])
    return ConstantColumn(name, "constant", why, 1.0, kind, value)


def _number(name: str, values: pd.Series, kind: str, why: str, weight: float) -> NumberColumn:
    of_table = ColumnType.of(values)
    if types.is_complex_dtype(values.dtype):
        raise ValueError(f"Column {name!r} cannot be a {kind}: it holds complex numbers.")
    y = of_table.numbers(values)
    if np.isnan(y[values.notna().to_numpy()]).any():
        bad = values[values.notna() & np.isnan(y)].iloc[0]
        raise ValueError(f"Column {name!r} cannot be a {kind}: {str(bad)!r} is no number.")
    y = y[~np.isnan(y)]
    if not np.isfinite(y).all():
        raise ValueError(f"Column {name!r} holds infinity; replace it by a number or leave it out.")
    if (kind == "log" and y.min() <= 0) or (kind == "count" and y.min() < 0):
        least = "above 0" if kind == "log" else "of at least 0"
        raise ValueError(f"Column {name!r} cannot be a {kind}: it holds {y.min():g}, none {least}.")
    is_whole = (
        kind == "count"
        or types.is_integer_dtype(values.dtype)
        or (types.is_object_dtype(values.dtype) and _are_all(values.dropna(), int))
    )
    low, middle, high = np.quantile(y, [0.25, 0.5, 0.75])
    reach = QUARTILES_TO_DEVIATION * float(high - low) or float(np.std(y)) or 1.0
    if kind != "robust":
        middle, reach = 0.0, 1.0
    return NumberColumn(name, kind, why, weight, of_table, is_whole, float(middle), reach)


def _levels(
    name: str,
    values: pd.Series,
    row_weights: FloatArray,
    kind: str,
    why: str,
    weight: float,
    order: Sequence[Any] | None,
) -> Column:
    of_table = ColumnType.of(values)
    levels = _in_order(name, values, of_table, order)
    if len(levels) == 1:
        return ConstantColumn(name, "constant", "one level", 1.0, of_table, levels[0])
    codes = of_table.codes(values, levels)
    counts = np.bincount(codes[codes >= 0], minlength=len(levels))
    shares = np.bincount(codes[codes >= 0], row_weights[codes >= 0], minlength=len(levels))
    by_size = np.argsort(-counts, kind="stable")
    rare = np.empty(len(levels), dtype=bool)
    rare[by_size] = is_rare(counts[by_size])
    if rare.all():  # the most frequent stay, the first of equally frequent ones
        rare[by_size[:MOST_LEVELS]] = False
    if kind == "ordered" or rare.sum() < 2:
        rare[:] = False
    groups = np.cumsum(~rare) - 1
    groups[rare] = (~rare).sum()
    total = np.bincount(groups, shares)
    held = LevelColumn(name, kind, why, weight, of_table, levels)
    return replace(held, groups=groups.astype(np.int64), shares=shares / total[groups])


def _in_order(
    name: str, values: pd.Series, of_table: ColumnType, order: Sequence[Any] | None
) -> tuple[Any, ...]:
    """Return the levels that occur: in the order asked for, that of their type, or sorted."""
    seen = {plain(level) for level in values.dropna().unique()}
    if order is not None:
        if unknown := sorted(map(str, seen - set(order))):
            raise ValueError(
                f"Column {name!r} has levels that `kinds` does not name: {', '.join(unknown[:5])}. "
                "Name all of them, from the lowest to the highest."
            )
        return tuple(level for level in order if level in seen)
    if of_table.categories:
        return tuple(level for level in of_table.categories if level in seen)
    return tuple(sorted(seen, key=lambda level: (isinstance(level, str), level)))


def resolution_of(days: FloatArray) -> float:
    """Return the seconds that times, known days since 1970, are multiples of; 0 for anything."""
    seconds = np.rint(days * 86_400e6) / 1e6
    return next((step for step in RESOLUTIONS if (seconds % step == 0).all()), 0.0)


def _date(
    name: str, values: pd.Series, row_weights: FloatArray, why: str, weight: float
) -> DateColumn:
    of_table = ColumnType.of(values)
    if of_table.form in ("number", "decimal", "level") or _are_all(values.dropna(), (int, float)):
        raise ValueError(
            f"Column {name!r} cannot be dates: it holds numbers. Make dates of them, such as "
            "`pandas.to_datetime(years, format='%Y')` or `pandas.to_datetime(seconds, unit='s')`."
        )
    if of_table.form == "text":
        of_table = replace(of_table, date_format=_written_format(values.dropna()))
    times = of_table.times(values)
    if not times.notna().equals(values.notna()):
        bad = values[values.notna() & times.isna()].iloc[0]
        raise ValueError(f"Column {name!r} cannot be dates: {str(bad)!r} is none.")
    days = wall_days(times)
    known = days[~np.isnan(days)]
    resolution, span = resolution_of(known), float(np.ptp(known))
    season = span >= 2 * YEAR and _is_spread(known, YEAR)
    is_spread = _is_spread(known, 1.0)
    hour = resolution < 86_400 and span >= 2 and is_spread
    periods = (YEAR,) * season + (1.0,) * hour
    made = DateColumn(
        *(name, "date", why, weight, of_table, periods, resolution),
        calendar=_calendar_of(known) if resolution >= 86_400 else "",
        times_of_day=_times_of_day(known) if resolution < 86_400 and not is_spread else (),
    )
    _, spread = scales(made.encode(values), made.parts, 1.0, row_weights)
    first = np.cumsum([0, *made.parts[:-1]])
    return replace(made, scales=tuple(float(spread[k]) for k in first))


def _is_spread(days: FloatArray, period: float) -> bool:
    """Say whether times lie in more than a small part of a circle."""
    return bool(np.abs(np.exp(2j * np.pi * days / period).mean()) < TOGETHER)


def _times_of_day(days: FloatArray) -> tuple[float, ...]:
    """Return the first and last time of day, as shares of it, of times that lie together."""
    middle = np.angle(np.exp(2j * np.pi * days).mean()) / (2 * np.pi)
    after = days - np.rint(days - middle)
    return float(after.min()), float(after.max())


def _calendar_of(days: FloatArray) -> str:
    """Return the name of the days of a calendar that all days are, "" for any."""
    for name, (unit, before) in CALENDARS.items():
        shifted = (days + before).astype(np.int64).astype("datetime64[D]")
        if (shifted.astype(f"datetime64[{unit}]") == shifted).all():
            return name
    return ""


def _written_format(texts: pd.Series) -> str:
    """Return how dates that are texts are written, "" if they are not all written alike."""
    known = date_format(texts)
    if known == "ISO8601":
        times = parsed_dates(texts, known)
        has_time = texts.str.len() > len("2021-03-31")
        if has_time.nunique() > 1:
            return ""
        if not has_time.iloc[0]:
            return "%Y-%m-%d"
        fraction = ".%f" if texts.str.contains(".", regex=False).any() else ""
        between = "T" if texts.str.contains("T", regex=False).any() else " "
        in_utc = "Z" if texts.str.endswith("Z").all() else "+00:00"
        zone = "" if times.dt.tz is None else in_utc
        return f"%Y-%m-%d{between}%H:%M:%S{fraction}{zone}"
    fitting = (form for form in FORMATS_IF_ASKED if parsed_dates(texts, form).notna().all())
    return known or next(fitting, "")
