"""Which column of a table holds the names of its rows, if nobody says so.

A table without an index whose text columns have exactly one with a different text in each row has
its names there. Numbers that could not be read as such, for a thousands mark or another decimal
mark, are no names.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pandas as pd

    from twofold.tables import TableSource

# Judged by the first rows: names are carried along, and nothing breaks if one comes again later.
ROWS_TO_LOOK_AT = 4096


def naming_column(text: pd.DataFrame) -> str | None:
    """Return the only column without gaps whose cells all differ."""
    found = [
        str(name) for name in text.columns if text[name].notna().all() and text[name].is_unique
    ]
    return found[0] if len(found) == 1 else None


def is_amount(reason: str) -> bool:
    """Say whether a column was left out for how its numbers are written."""
    return "thousands marks" in reason or "a decimal " in reason


def find_row_names(source: TableSource, others: list[str]) -> str | None:
    """Return the column among ``others`` that names the rows of a table without an index."""
    from pandas.api import types

    from twofold.tables.cells import why_no_number
    from twofold.tables.number_columns import is_number

    if source.has_index or not others:
        return None
    frame = next(source.chunks(ROWS_TO_LOOK_AT))[others]
    text = [
        name
        for name in others
        if not types.is_numeric_dtype(frame[name])
        and not any(
            is_number(cell, source.rules) or is_amount(why_no_number(cell, source.rules.decimal))
            for cell in frame[name].dropna().head(20)
        )
    ]
    return naming_column(frame[text])
