"""What a page is told about the columns of a mixed table, so that it can show them as such.

The page computes with features; ``columns`` in its header says which features are which column,
and ``forms`` how a feature is written: as it is (null), as an amount whose logarithm it is, as a
date, or not at all, where only its column means something. By the same facts a row that people
paste becomes features, as :meth:`twofold.mixed.columns.Column.encode` has them.
"""

from typing import Any

import numpy as np
import pandas as pd

from twofold.array_types import FloatArray
from twofold.contract.label_values import reading_order
from twofold.explorer.scale import decimals_of
from twofold.mixed import Mixed
from twofold.mixed.columns import CALENDARS, Column, DateColumn, LevelColumn, NumberColumn

HIDDEN = {"form": "hidden"}
# In seconds.
DAY = 86_400


def page_columns(model: Mixed) -> dict[str, Any]:
    """Return ``columns`` and ``forms`` of the header of a page."""
    columns, forms, start = [], [], 0
    rows = getattr(model, "data_", np.empty((0, len(model.feature_labels()))))
    for column in model.columns_:
        n = len(column.features)
        if n == 0:
            continue
        columns.append({"name": column.name, "at": start, "size": n, **_facts(column)})
        forms += [_form(column, rows[:, start : start + n]), *([HIDDEN] * (n - 1))]
        start += n
    if len(columns) < len(model.columns_):
        # A line in the order of the table has the columns of one value, too.
        return {"columns": columns, "forms": forms, "table": [c.name for c in model.columns_]}
    return {"columns": columns, "forms": forms}


def _facts(column: Column) -> dict[str, Any]:
    if isinstance(column, LevelColumn):
        levels = [str(level) for level in column.levels]
        is_ordered = column.kind == "ordered"
        found: dict[str, Any] = {
            "kind": "ordered" if is_ordered else "category",
            "levels": levels,
            "order": list(range(len(levels))) if is_ordered else reading_order(levels),
            "groups": column.groups.tolist(),
            "shares": [float(f"{share:.6g}") for share in column.shares],
        }
        if not any(isinstance(level, str) for level in column.levels):
            found["numbers"] = True  # or truth values
        return found
    if isinstance(column, DateColumn):
        zone = {"zone": column.zone} if column.zone else {}
        circles = {"periods": list(column.periods), "scales": list(column.scales)}
        kept: dict[str, Any] = {"times": list(column.times_of_day)} if column.times_of_day else {}
        if calendars := _calendars(column):
            kept["calendars"] = calendars
        return {"kind": "date", **circles, **kept, **zone}
    return {"kind": "number"} | ({"duration": True} if column.type.form == "duration" else {})


def _calendars(column: DateColumn) -> list[dict[str, int]]:
    """Return the days that generated dates are moved to, one after the other as in the model."""
    found = [_starts(*CALENDARS[column.calendar])] if column.calendar else []
    if column.type.form == "period" and column.resolution >= DAY:
        dtype = pd.PeriodDtype.construct_from_string(column.type.dtype)
        found.append(_starts(dtype.freq.base))  # of two months, say, any month may be the first
    return found


def _starts(freq: Any, before: int = 0) -> dict[str, int]:
    """Return how many months or days apart periods begin, and the first from 1970 on.

    Days are meant that lie so many days ``before`` these.
    """
    period = pd.Period(pd.Timestamp(0), freq=freq)
    begin, end = (each.start_time for each in (period, period + 1))
    first, after = (12 * (each.year - 1970) + each.month - 1 for each in (begin, end))
    if first < after and begin.day == end.day == 1:
        length = after - first
        return {"months": length, "first": first % length, "before": before}
    length = max((end - begin).days, 1)
    return {"days": length, "first": (begin - pd.Timestamp(0)).days % length, "before": before}


def _form(column: Column, rows: FloatArray) -> dict[str, Any]:
    if isinstance(column, NumberColumn):
        found: dict[str, Any] = {"form": column.kind, "title": column.name}
        if column.is_whole:
            found["whole"] = True
        elif (decimals := decimals_of(column.numbers(rows))) >= 0 and len(rows):
            found["decimals"] = decimals
        if column.kind == "robust":
            found |= {"middle": column.middle, "reach": column.reach}
        return found
    if isinstance(column, DateColumn):
        return {"form": "date", "title": column.name, "unit": column.resolution}
    return HIDDEN


def single_features(model: Mixed) -> dict[int, NumberColumn | DateColumn]:
    """Return the columns whose values one feature stands for, by that feature."""
    first = np.cumsum([0, *(len(column.features) for column in model.columns_)])
    return {
        int(j): column
        for j, column in zip(first[:-1], model.columns_, strict=True)
        if isinstance(column, NumberColumn | DateColumn)
    }


def training_features(model: Mixed, data: Any) -> Any:
    """Return the table that a model was fitted to as its features, None for none."""
    if data is None:
        return None
    return pd.DataFrame(model.features(data), columns=model.feature_labels())
