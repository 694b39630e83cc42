"""What texts of labels mean: the order in which people read classes, and dates.

Classes whose type has an order keep it. Others are in the order of the calendar if they are months
or days of the week, else in that of the alphabet with numbers by size ("class 2" before "class
10"). Text that is a date in every row is a date: a number of days since 1970. Text that is a
duration in every row is a number of seconds.
"""

import re
from typing import Any

import numpy as np

from twofold.array_types import FloatArray
from twofold.contract.row_notes import NoteArray

# A day, or a time by the clock of its place, whatever the zone.
DATE = re.compile(r"(\d{4}-\d\d-\d\d([ T]\d\d:\d\d(:\d\d(\.\d+)?)?)?)(Z|[+-]\d\d:?\d\d)?")
# As pandas writes it; below zero the days are rounded down: "-1 days +23:00:00".
DURATION = re.compile(r"(-?\d+) days? \+?(\d\d):(\d\d):(\d\d(?:\.\d+)?)")
IN_SECONDS = np.array([86_400.0, 3_600.0, 60.0, 1.0])
CALENDAR = (
    "january february march april may june july august september october november december",
    "monday tuesday wednesday thursday friday saturday sunday",
)
SHORTEST_NAME = 3


def reading_order(values: list[str], known: list[str] | None = None) -> list[int]:
    """Return the places of values in their known order, or else that in which people read them."""
    if known:
        place = {level: number for number, level in enumerate(known)}
        return sorted(range(len(values)), key=lambda number: place.get(values[number], len(place)))
    for names in CALENDAR:
        months = [_calendar_place(value, names.split()) for value in values]
        if values and None not in months:
            return sorted(range(len(values)), key=lambda number: (months[number], values[number]))
    return sorted(range(len(values)), key=lambda number: _natural_key(values[number]))


def _calendar_place(value: str, names: list[str]) -> int | None:
    """Return which of the names a value is or abbreviates."""
    word = value.strip().lower().rstrip(".")
    if len(word) < SHORTEST_NAME:
        return None
    return next((place for place, name in enumerate(names) if name.startswith(word)), None)


def _natural_key(value: str) -> tuple[Any, ...]:
    """Return a key that sorts numbers by size, before other text and within it."""
    try:
        number = float(value)
    except ValueError:
        number = float("nan")
    if number == number:
        return (0, number, value)
    parts = re.split(r"(\d+)", value)
    return (1, [(int(part), "") if part.isdigit() else (-1, part) for part in parts], value)


def as_days(column: NoteArray) -> FloatArray | None:
    """Return dates as days since 1970, NaN for none; None if the text is not all dates."""
    texts, place = np.unique(column, return_inverse=True)
    found = [DATE.fullmatch(text) for text in texts if text]
    clock = [match.group(1) for match in found if match]
    if not clock or len(clock) < len(found):
        return None
    import pandas as pd

    dates = pd.to_datetime(pd.Series(clock, dtype=object), format="ISO8601", errors="coerce")
    if dates.isna().any():
        return None
    days = np.full(len(texts), np.nan)
    days[texts != ""] = (dates - pd.Timestamp(0)) / pd.Timedelta(days=1)
    return days[place]


def as_seconds(column: NoteArray) -> FloatArray | None:
    """Return durations in seconds, NaN for none; None if the text is not all durations.

    >>> as_seconds(np.array(["0 days 00:01:30", "", "-1 days 23:59:59"]))
    array([90., nan, -1.])
    """
    texts, place = np.unique(column, return_inverse=True)
    found = [DURATION.fullmatch(text) for text in texts if text]
    parts = [match.groups() for match in found if match]
    if not parts or len(parts) < len(found):
        return None
    seconds = np.full(len(texts), np.nan)
    seconds[texts != ""] = np.array(parts, dtype=np.float64) @ IN_SECONDS
    return seconds[place]
