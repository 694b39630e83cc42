"""Columns of text as what they say: dates, truth values, or texts with gaps.

Dates are read in the formats below, if all cells of a column have one and the same. Where a month
could be a day in every cell (03/05/2020), nothing is guessed. Truth values are the words that
spreadsheets write for them, in any case.
"""

from __future__ import annotations

import datetime
import re
import warnings
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

if TYPE_CHECKING:
    from twofold.tables.table import CellRules

DATE_FORMATS = (
    "%Y/%m/%d",  # which pandas takes for ISO dates, too
    "%Y/%m/%d %H:%M:%S",
    "ISO8601",
    "%d.%m.%Y",
    "%d.%m.%Y %H:%M",
    "%d.%m.%Y %H:%M:%S",
    "%m/%d/%Y",
    "%d/%m/%Y",
    "%m/%d/%Y %H:%M",
    "%d/%m/%Y %H:%M",
    "%d %b %Y",
    "%d %B %Y",
)
# What Excel writes in English, German, French, Spanish, Italian, Portuguese and Dutch.
TRUTHS = (
    ("true", "false"),
    ("wahr", "falsch"),
    ("vrai", "faux"),
    ("verdadero", "falso"),
    ("vero", "falso"),
    ("verdadeiro", "falso"),
    ("waar", "onwaar"),
)
_TRUTH_OF = {word: word == pair[0] for pair in TRUTHS for word in pair}
# What a date begins with; plain numbers such as 2020 are none.
_LIKE_A_DATE = r"\s*\d{1,4}[-/. ]\s*(\d{1,2}[-/. ]|[A-Za-z]{3,9} )\s*\d{1,4}"
_ISO_DAY = r"\d{4}-\d\d-\d\d"
_FIRST_CELLS = 50


def typed_column(column: pd.Series, rules: CellRules) -> pd.Series:
    """Return a column of texts with its gaps, as times or truth values if its cells are such."""
    if not holds_texts(column):
        return column
    known = with_gaps(column, rules)
    truths = {cell: truth_of(cell) for cell in known.dropna().unique()}
    if truths and None not in truths.values():
        return known.map(truths).astype("boolean")
    found = date_format(known)
    return known if found is None else parsed_dates(known, found)


def truth_of(cell: object) -> bool | None:
    """Return the truth value that a cell is or says, None if it is none."""
    if isinstance(cell, bool | np.bool_):
        return bool(cell)
    return _TRUTH_OF.get(cell.strip().casefold()) if isinstance(cell, str) else None


def as_truths(column: pd.Series) -> pd.Series | None:
    """Return a column of truth values, words for them, or 0 and 1; None for another one."""
    zero_or_one = {0: False, 1: True}
    found = {cell: truth_of(cell) for cell in column.dropna().unique()}
    found = {c: zero_or_one.get(c) if truth is None else truth for c, truth in found.items()}
    return None if None in found.values() else column.map(found).astype("boolean")


def truth_words(texts: pd.Series) -> dict[bool, str] | None:
    """Return the words for truth values in a column, None if its texts are others."""
    words = set(texts)
    if words and words <= {"0", "1"}:
        return {True: "1", False: "0"}
    pairs = [pair for pair in TRUTHS if all(str(word).casefold() in pair for word in words)]
    if not words or not pairs or not all(isinstance(word, str) for word in words):
        return None
    first = str(texts.iloc[0])
    spelled = str.upper if first.isupper() else str.lower if first.islower() else str.capitalize
    return {True: spelled(pairs[0][0]), False: spelled(pairs[0][1])}


def is_date_column(column: pd.Series, rules: CellRules) -> bool:
    """Say whether the cells of a column are dates, by their type or as texts."""
    typed = typed_column(column, rules)
    known = typed.dropna()
    return bool(
        pd.api.types.is_datetime64_any_dtype(typed.dtype)
        or isinstance(typed.dtype, pd.PeriodDtype)
        or (len(known) and isinstance(known.iloc[0], datetime.date))
    )


def holds_texts(column: pd.Series) -> bool:
    """Say whether the cells of a column may be texts."""
    return bool(column.dtype == object or isinstance(column.dtype, pd.StringDtype))


def with_gaps(column: pd.Series, rules: CellRules) -> pd.Series:
    """Return texts without blanks around them, None where they stand for a missing cell."""
    cells = column.astype(object)
    codes, found = pd.factorize(cells)
    plain = [text.strip() if isinstance(text, str) else text for text in found]
    kept = [
        None if isinstance(text, str) and text.casefold() in rules.texts else text for text in plain
    ]
    values = pd.Series([*kept, None], dtype=object).to_numpy()
    return pd.Series(values[codes], index=column.index, dtype=object, name=column.name)


def date_format(cells: pd.Series) -> str | None:
    """Return the format in which all cells of a column of texts are dates, None if there is none.

    None, too, if there are several that tell different dates.
    """
    known = cells.dropna()
    first = known.head(_FIRST_CELLS)
    if not len(first) or not all(isinstance(cell, str) for cell in first):
        return None
    if not first.str.match(_LIKE_A_DATE).all():
        return None
    fitting = [name for name in DATE_FORMATS if parsed_dates(first, name).notna().all()]
    fitting = [name for name in fitting if parsed_dates(known, name).notna().all()]
    if len(fitting) > 1 and not parsed_dates(known, fitting[0]).equals(
        parsed_dates(known, fitting[1])
    ):
        return None
    return fitting[0] if fitting else None


def parsed_dates(cells: pd.Series, form: str) -> pd.Series:
    """Return texts of a format as times, NaT for others; with a zone if they have one.

    Where zones differ from cell to cell, as clocks are changed in summer, the times are in UTC.
    """
    with warnings.catch_warnings():
        # What pandas 3 refuses, pandas 2 warns about.
        warnings.filterwarnings("error", ".*mixed time zones", FutureWarning)
        try:
            found = pd.to_datetime(cells, format=form, errors="coerce")
            is_whole = form != "ISO8601" or found.notna().equals(cells.notna())
            return found if is_whole else _days_of_any_year(cells, found)
        except (ValueError, FutureWarning):
            return pd.to_datetime(cells, format=form, errors="coerce", utc=True)


def date_texts(times: pd.Series, form: str | None = None, like: str = "") -> list[str]:
    """Return times as text of a format, by default as ISO dates, with the time if there is one.

    ISO dates have a T, times and the kind of zone as the text that they are ``like`` has them.
    """
    if form not in (None, "ISO8601"):
        return _filled_texts(times, str(form))
    naive = times.dt.tz_localize(None) if times.dt.tz is not None else times
    has_time = bool((naive.dropna() != naive.dropna().dt.normalize()).any()) or ":" in like
    form = f"%Y-%m-%d{'T' if 'T' in like else ' '}%H:%M:%S" if has_time else "%Y-%m-%d"
    if times.dt.tz is None:
        return _filled_texts(times, form)
    texts = _filled_texts(times, f"{form}%z")
    if like.endswith("Z"):
        return [text.replace("+0000", "Z") for text in texts]
    has_colon = re.search(r"[+-]\d\d:\d\d$", like) is not None
    return [f"{text[:-2]}:{text[-2:]}" if text and has_colon else text for text in texts]


def _filled_texts(times: pd.Series, form: str) -> list[str]:
    """Return times as text of a format, missing ones as empty text."""
    return ["" if pd.isna(text) else str(text) for text in times.dt.strftime(form)]


def _days_of_any_year(cells: pd.Series, found: pd.Series) -> pd.Series:
    """Return ISO days as times where pandas, which knows 584 years, ``found`` not all of them."""
    known = cells.dropna()
    if found.dt.tz is not None or not known.astype(str).str.fullmatch(_ISO_DAY).all():
        return found
    days = cells.where(cells.notna(), "NaT").to_numpy(dtype=str)
    try:
        return pd.Series(days.astype("datetime64[s]"), index=cells.index, name=cells.name)
    except ValueError:  # such as 2021-02-30
        return found
