"""Labels of rows as the page has them: classes in the order people expect, numbers, and dates.

Classes are in the order of the calendar if they are months or days of the week, else in that of the
alphabet with numbers by size ("class 2" before "class 10"). Text that is a date in every row is a
date: a number of days since 1970.
"""

import re
from typing import Any

import numpy as np
import pandas as pd

from twofold.array_types import FloatArray
from twofold.contract.row_notes import NoteArray
from twofold.explorer.sections import Sections

# A label of whole numbers names classes if it has at most this many values.
MOST_NUMBERED_CLASSES = 30
MOST_CLASSES = 65_535
# A day, or a time by the clock of its place, whatever the zone.
DATE = re.compile(r"(\d{4}-\d\d-\d\d([ T]\d\d:\d\d(:\d\d(\.\d+)?)?)?)(Z|[+-]\d\d:?\d\d)?")
CALENDAR = (
    "january february march april may june july august september october november december",
    "monday tuesday wednesday thursday friday saturday sunday",
)
SHORTEST_NAME = 3


def add_labels(sections: Sections, labels: dict[str, NoteArray]) -> dict[str, dict[str, Any]]:
    """Add columns of labels; return what the header says about them."""
    about: dict[str, dict[str, Any]] = {}
    for name, column in labels.items():
        is_text = column.dtype.kind == "U"
        days = as_days(column) if is_text else None
        if days is not None:
            has_no_time = bool((days == np.floor(days))[np.isfinite(days)].all())
            about[name] = {"kind": "date", "days": has_no_time}
            sections.add(f"rows.label.{name}", days)
            continue
        known = np.empty(0) if is_text else np.unique(column[np.isfinite(column)])
        # Whole numbers may name classes; a quantity has others, or too many for that.
        if len(known) > MOST_NUMBERED_CLASSES or (known != np.rint(known)).any():
            about[name] = {"kind": "number"}
            sections.add(f"rows.label.{name}", column.astype(np.float32))
            continue
        codes, values = _classes(name, column)
        about[name] = {"kind": "category", "values": values}
        sections.add(f"rows.label.{name}", codes)
    return about


def _classes(name: str, column: NoteArray) -> tuple[NoteArray, list[str]]:
    """Return the code of each row's class, the largest code for none, and the classes."""
    is_text = column.dtype.kind == "U"
    has_none = column == "" if is_text else ~np.isfinite(column)
    found, code = np.unique(column[~has_none], return_inverse=True)
    if len(found) > MOST_CLASSES:
        raise ValueError(
            f"The label {name!r} has {len(found):,} different values, more than the "
            f"{MOST_CLASSES:,} classes that can be shown. If it tells rows apart, pass it as "
            "`names`."
        )
    values = [str(value) if is_text else str(int(value)) for value in found]
    order = reading_order(values)
    place = np.argsort(order)
    dtype = np.uint8 if len(found) <= np.iinfo(np.uint8).max else np.uint16
    codes = np.full(len(column), np.iinfo(dtype).max, dtype=dtype)
    codes[~has_none] = place[code] if len(found) else code
    return codes, [values[number] for number in order]


def reading_order(values: list[str]) -> list[int]:
    """Return the places of values in the order in which people read them."""
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
    clock = pd.Series([match.group(1) for match in found if match], dtype=object)
    dates = pd.to_datetime(clock, format="ISO8601", errors="coerce")
    if not found or None in found or dates.isna().any():
        return None
    days = np.full(len(texts), np.nan)
    days[texts != ""] = (dates - pd.Timestamp(0)) / pd.Timedelta(days=1)
    return days[place]
