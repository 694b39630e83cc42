"""Labels of rows as the page has them: classes in the order people expect, numbers, and dates.

Durations are numbers of seconds.
"""

from typing import Any

import numpy as np

from twofold.contract.label_values import as_days, as_seconds, reading_order
from twofold.contract.row_notes import NoteArray
from twofold.explorer.scale import decimals_of
from twofold.explorer.sections import Sections
from twofold.mixed.kinds import resolution_of

# A label of whole numbers names classes if it has at most this many values.
MOST_NUMBERED_CLASSES = 30
MOST_CLASSES = 65_535
# Whole numbers below this, and those with decimals in place of as many digits, take four bytes.
SHORT_NUMBERS = 1e6


def add_labels(
    sections: Sections, labels: dict[str, NoteArray], orders: dict[str, list[str]] | None = None
) -> dict[str, dict[str, Any]]:
    """Add columns of labels, some with a known order; return what the header says about them."""
    about: dict[str, dict[str, Any]] = {}
    for name, column in labels.items():
        is_text, order = column.dtype.kind == "U", (orders or {}).get(name)
        seconds = as_seconds(column) if is_text and not order else None
        if seconds is not None:
            _add_numbers(sections, about, name, seconds)
            continue
        days = as_days(column) if is_text and not order else None
        if days is not None:
            about[name] = {"kind": "date", "unit": resolution_of(days[np.isfinite(days)])}
            sections.add(f"rows.label.{name}", days)
            continue
        known = np.empty(0) if is_text else np.unique(column[np.isfinite(column)])
        # Whole numbers may name classes; a quantity has others, or too many for that.
        if len(known) > MOST_NUMBERED_CLASSES or (known != np.rint(known)).any():
            _add_numbers(sections, about, name, column)
            continue
        codes, values = _classes(name, column, order)
        about[name] = {"kind": "category", "values": values}
        sections.add(f"rows.label.{name}", codes)
    return about


def _add_numbers(
    sections: Sections, about: dict[str, dict[str, Any]], name: str, numbers: NoteArray
) -> None:
    about[name] = {"kind": "number"}
    is_short = _has_few_digits(numbers[np.isfinite(numbers)])
    sections.add(f"rows.label.{name}", numbers.astype(np.float32 if is_short else float))


def _has_few_digits(numbers: NoteArray) -> bool:
    """Whether single precision holds numbers as they are written."""
    decimals = decimals_of(numbers)
    return decimals >= 0 and bool((np.abs(numbers) * 10.0**decimals < SHORT_NUMBERS).all())


def _classes(name: str, column: NoteArray, known: list[str] | None) -> tuple[NoteArray, list[str]]:
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
    order = reading_order(values, known)
    place = np.argsort(order)
    dtype = np.uint8 if len(found) <= np.iinfo(np.uint8).max else np.uint16
    codes = np.full(len(column), np.iinfo(dtype).max, dtype=dtype)
    codes[~has_none] = place[code] if len(found) else code
    return codes, [values[number] for number in order]
