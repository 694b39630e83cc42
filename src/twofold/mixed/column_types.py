"""Which type a column has in the user's table: read into numbers, times and levels, and restored.

Types are kept as pandas spells them, so that a model file can hold them as text. Times are handled
as days since 1970 on the clock of their own time zone, where seasons and hours belong; a period is
its first day.
"""

from __future__ import annotations

import datetime
import re
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import numpy as np
import pandas as pd
from pandas.api import types

from twofold.array_types import FloatArray, IntArray
from twofold.model_files import register_value_type
from twofold.tables.text_types import parsed_dates

# Beyond these days a time has no place in 64 bits of nanoseconds.
MOST_DAYS = 106_000.0
# The years 1 to 9999, which are all that Python's own dates and texts know.
FIRST_DAY, LAST_DAY = -719_162.0, 2_932_896.0


@register_value_type
@dataclass(frozen=True)
class ColumnType:
    """The type of a column."""

    dtype: str  # as `_spelled` writes it
    # Its cells: "number", "decimal", "duration", "time", "date", "period", "text" or "level".
    form: str
    categories: tuple[Any, ...] = ()  # all of a categorical column, in its order
    categories_dtype: str = "object"
    is_ordered: bool = False
    date_format: str = ""  # of texts that are dates, "" for none that is known

    @classmethod
    def of(cls, values: pd.Series) -> ColumnType:
        """Return the type of a column."""
        dtype = values.dtype
        if isinstance(dtype, pd.CategoricalDtype):
            known = dtype.categories
            named = tuple(plain(level) for level in known)
            return cls("category", "level", named, _spelled(known.dtype), bool(dtype.ordered))
        form = _form(values)
        is_object = form == "decimal" and types.is_object_dtype(dtype)
        return cls(f"decimal({_places(values)})" if is_object else _spelled(dtype), form)

    # ---- out of the table -----------------------------------------------------------------------

    def numbers(self, values: pd.Series) -> FloatArray:
        """Return cells (n,) as numbers, durations in seconds; NaN for what is none."""
        if self.form == "duration":
            values = pd.to_timedelta(values)
            return (values / pd.Timedelta(seconds=1)).to_numpy(dtype=np.float64)
        if not types.is_numeric_dtype(values.dtype):
            values = pd.to_numeric(values.astype(object), errors="coerce")
        return values.to_numpy(dtype=np.float64, na_value=np.nan)

    def times(self, values: pd.Series) -> pd.Series:
        """Return cells as times on the clock of this column; NaT for what is none."""
        if isinstance(values.dtype, pd.ArrowDtype) and values.dtype.kind == "M":
            # Of Arrow's days pandas does not say in which zone they are.
            zone = _zone_of(values.dtype)
            values = values.astype(f"datetime64[ns, {zone}]" if zone else "datetime64[ns]")
        if isinstance(values.dtype, pd.PeriodDtype):
            values = starts_of(values)
        elif not types.is_datetime64_any_dtype(values.dtype):
            values = self._parsed(values.astype(object).where(values.notna(), None))
        zone = self.zone()
        if zone is not None:
            aware = values.dt.tz is not None
            return values.dt.tz_convert(zone) if aware else values.dt.tz_localize(
                zone, ambiguous="NaT", nonexistent="shift_forward"
            )  # fmt: skip
        return values if values.dt.tz is None else values.dt.tz_convert("UTC").dt.tz_localize(None)

    def _parsed(self, cells: pd.Series) -> pd.Series:
        """Return cells of Python's own dates, or of texts, as times."""
        if {type(cell) for cell in cells} <= {datetime.date, type(None)}:
            days = np.array(cells.tolist(), dtype="datetime64[s]")  # any year has a place there
            return pd.Series(days, index=cells.index)
        # Of a time of day pandas would make one of today.
        cells = cells.mask(cells.astype(str).str.match(r"\s*\d{1,2}:\d\d"), None)
        known = "ISO8601" if self.date_format.startswith("%Y-%m-%d") else self.date_format
        found = parsed_dates(cells, known or "mixed")
        return found if found.notna().equals(cells.notna()) else parsed_dates(cells, "mixed")

    def codes(self, values: pd.Series, levels: tuple[Any, ...]) -> IntArray:
        """Return the number (n,) of each cell's level, -1 for none of them."""
        if isinstance(values.dtype, pd.CategoricalDtype):
            code, found = values.cat.codes.to_numpy(), values.cat.categories
        else:
            code, found = pd.factorize(values)
        number = {level: k for k, level in enumerate(levels)}
        of_found = np.array([number.get(plain(level), -1) for level in found] + [-1])
        return np.asarray(of_found[code], dtype=np.int64)

    # ---- and back -------------------------------------------------------------------------------

    def from_numbers(self, y: FloatArray) -> pd.Series:
        """Return numbers (n,) in the type of the column."""
        if self.form == "duration":
            return pd.Series(pd.to_timedelta(y, unit="s")).astype(self._dtype)
        dtype = self._dtype
        if self.form == "decimal":
            places = _places_of(self.dtype)
            return pd.Series([Decimal(f"{value:.{places}f}") for value in y], dtype=dtype)
        if self.form == "text" or self.dtype == "object":
            return pd.Series([_number_text(value) for value in y], dtype=dtype)
        if self.dtype == "category":
            return self._nearest_category(y)
        kind = getattr(dtype, "numpy_dtype", dtype)
        if getattr(kind, "kind", "f") in "iu":
            ends = np.iinfo(kind)
            # The largest number of 64 bits is no float; the next one below is.
            most = float(ends.max) if ends.bits < 64 else np.nextafter(float(ends.max), 0)
            y = np.clip(np.rint(y), float(ends.min), most)
        found = pd.Series(y)
        return (found > 0.5 if self.form == "level" else found).astype(dtype)

    def from_days(self, days: FloatArray, unit: float = 0.0) -> pd.Series:
        """Return days (n,) since 1970 on the column's clock in its type.

        ``unit`` is the seconds that its times are multiples of: text has times of day where they
        are of less than days, at midnight, too.
        """
        is_fine = self.form == "time" and "[ns" in self.dtype
        ends = (-MOST_DAYS, MOST_DAYS) if is_fine else (FIRST_DAY, LAST_DAY)
        found = times_of(np.clip(days, *ends))
        zone = self.zone()
        if zone is not None:
            dst = np.ones(len(found), dtype=bool)
            found = found.dt.tz_localize(zone, ambiguous=dst, nonexistent="shift_forward")
        if self.form == "date":
            return pd.Series(list(found.dt.date), dtype=object)
        if self.form == "period":
            return pd.Series(nearest_periods(found, self._dtype.freq)).astype(self._dtype)
        if self.form == "text":
            form = "%Y-%m-%d" if unit >= 86_400 else "%Y-%m-%dT%H:%M:%S"
            form = self.date_format or (form if unit else f"{form}.%f")
            return found.dt.strftime(form).astype(self._dtype)
        return found.astype(self._dtype)

    def _nearest_category(self, y: FloatArray) -> pd.Series:
        """Return the categories, which are numbers, that are nearest to y (n,)."""
        known = pd.to_numeric(pd.Series(list(self.categories), dtype=object)).to_numpy(dtype=float)
        return self.from_levels(self.categories, np.abs(y[:, None] - known).argmin(axis=1))

    def from_levels(self, levels: tuple[Any, ...], codes: IntArray) -> pd.Series:
        """Return levels by their numbers (n,) in the type of the column."""
        if self.dtype == "category":
            number = {level: k for k, level in enumerate(self.categories)}
            place = np.array([number[level] for level in levels])
            known = _index_of(self.categories, _dtype_of(self.categories_dtype))
            made = pd.Categorical.from_codes(place[codes], known, ordered=self.is_ordered)
            return pd.Series(made)
        values = np.empty(len(levels), dtype=object)
        read: dict[str, Any] = {"decimal": Decimal, "date": datetime.date.fromisoformat}
        values[:] = list(map(read[self.form], levels)) if self.form in read else levels
        return pd.Series(values[codes], dtype=object).astype(self._dtype)

    def repeated(self, value: Any, n: int) -> pd.Series:
        """Return one value n times."""
        if self.form in ("time", "date", "period"):
            unit = 86_400.0 if float(value).is_integer() else 1.0
            return self.from_days(np.full(n, float(value)), unit)
        if self.form in ("number", "decimal", "duration"):
            return self.from_numbers(np.full(n, float(value)))
        return self.from_levels((value,), np.zeros(n, dtype=np.int64))

    def zone(self) -> Any:
        """Return the time zone of its times, None for none."""
        return _zone_of(self._dtype) if self.form == "time" else None

    @property
    def _dtype(self) -> Any:
        return _dtype_of(self.dtype)


def _zone_of(dtype: Any) -> Any:
    """Return the time zone of a type, None for none."""
    return getattr(getattr(dtype, "pyarrow_dtype", dtype), "tz", None)


def _spelled(dtype: Any) -> str:
    """Return a type as text: as pandas spells it where that tells it from others."""
    is_string = isinstance(dtype, pd.StringDtype) and dtype.name == "string"
    return "string pyarrow" if is_string and dtype.storage == "pyarrow" else str(dtype)


def _dtype_of(spelled: str) -> Any:
    """Return the type that a text stands for."""
    if spelled == "string pyarrow":
        return pd.StringDtype("pyarrow")
    if spelled.startswith("decimal"):
        return _decimal_dtype(spelled)
    if spelled == "string[pyarrow]":  # Arrow's type prints so, but pandas reads its own from it
        import pyarrow

        return pd.ArrowDtype(pyarrow.string())
    return types.pandas_dtype(spelled)


def _decimal_dtype(spelled: str) -> Any:
    """Return Arrow's type of decimal numbers, whose text pandas does not read, or object."""
    found = re.fullmatch(r"(decimal\d+)\((\d+), (-?\d+)\)\[pyarrow\]", spelled)
    if found is None:
        return np.dtype(object)
    import pyarrow

    name, digits, places = found.groups()
    return pd.ArrowDtype(getattr(pyarrow, name)(int(digits), int(places)))


def _places_of(spelled: str) -> int:
    """Return how many digits after the point decimal numbers of a type have."""
    return max(int(re.findall(r"-?\d+", spelled)[-1]), 0)


def _places(values: pd.Series) -> int:
    """Return how many digits after the point decimal numbers have at most."""
    exponents = [cell.as_tuple().exponent for cell in values.dropna()]
    return max([-each for each in exponents if isinstance(each, int)] + [0])


def starts_of(periods: pd.Series) -> pd.Series:
    """Return when periods begin, to the second: pandas would know it from 1677 to 2262 alone."""
    seconds = periods.dt.asfreq("s", how="start").astype(np.int64).to_numpy()
    return pd.Series(seconds.view("datetime64[s]"), index=periods.index)


def nearest_periods(times: pd.Series, freq: Any) -> pd.Series:
    """Return the periods, such as months, that begin nearest to times."""
    before = times.dt.to_period(freq)
    after = before + 1
    is_later = wall_days(times) - wall_days(starts_of(before)) > (
        wall_days(starts_of(after)) - wall_days(times)
    )
    return before.where(~is_later, after)


def _index_of(texts: tuple[Any, ...], dtype: Any) -> pd.Index:
    """Return categories of a type; intervals, such as those of `pandas.cut`, are kept as texts."""
    if not isinstance(dtype, pd.IntervalDtype):
        return pd.Index(list(texts), dtype=dtype)
    ends = [text[1:-1].split(", ") for text in texts]
    left, right = (pd.Index([each[k] for each in ends]).astype(dtype.subtype) for k in (0, 1))
    return pd.IntervalIndex.from_arrays(left, right, closed=dtype.closed)


def wall_days(times: pd.Series) -> FloatArray:
    """Return times as days (n,) since 1970 on their own clock, NaN for missing ones."""
    naive = times if times.dt.tz is None else times.dt.tz_localize(None)
    # Differences of pandas would be of nanoseconds, in which only 584 years have a place.
    exact = naive.to_numpy().astype("datetime64[us]")
    return np.where(np.isnat(exact), np.nan, exact.astype(np.int64) / 86_400e6)


def times_of(days: FloatArray) -> pd.Series:
    """Return days (n,) since 1970 as times, NaT for NaN."""
    found = np.full(len(days), np.datetime64("NaT", "us"))
    known = ~np.isnan(days)
    found[known] = np.rint(days[known] * 86_400e6).astype(np.int64).view("datetime64[us]")
    return pd.Series(found)


def plain(value: Any) -> Any:
    """Return a level as a value that a file can hold: text, a number or a truth value."""
    value = value.item() if isinstance(value, np.generic) else value
    if isinstance(value, Decimal) and value.is_finite():
        return format(value.normalize(), "f")  # 1.50 and 1.5 are equal
    return value if type(value) in (str, int, float, bool) else str(value)


def _form(values: pd.Series) -> str:
    dtype = values.dtype
    if types.is_bool_dtype(dtype):
        return "level"
    if types.is_numeric_dtype(dtype):
        return "decimal" if str(dtype).startswith("decimal") else "number"
    if isinstance(dtype, pd.PeriodDtype):
        return "period"
    if types.is_timedelta64_dtype(dtype):
        return "duration"
    if types.is_datetime64_any_dtype(dtype):
        return "time"
    known = values.dropna()
    first = known.iloc[0] if len(known) else None
    if isinstance(first, datetime.date) and not isinstance(first, datetime.datetime):
        return "date"
    if len(known) and all(isinstance(cell, Decimal) for cell in known):
        return "decimal"
    return "text"


def _number_text(value: float) -> Any:
    return int(value) if float(value).is_integer() else float(value)
