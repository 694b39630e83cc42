"""Number columns of a frame, and the names of rows, from columns of any type."""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import TYPE_CHECKING

import numpy as np

from twofold.tables.cells import BadCell, CellRules, why_no_number
from twofold.tables.table_error import NotANumber

if TYPE_CHECKING:
    import pandas as pd


def with_numbers(
    frame: pd.DataFrame,
    numbers: Collection[str],
    rules: CellRules,
    place: Callable[[int], str],
) -> pd.DataFrame:
    """Return the frame with the named columns as float64.

    ``place(i)`` says where row i of the frame stands in the file; a cell that is no number raises
    `NotANumber` with it.
    """
    import pandas as pd

    wanted = [name for name in frame.columns if name in numbers]
    if not wanted:
        return frame
    part = frame[wanted]
    if all(isinstance(dtype, np.dtype) and dtype.kind in "iuf" for dtype in part.dtypes):
        values = rules.without_markers(part.to_numpy(dtype=np.float64))  # one step when wide
        part = pd.DataFrame(values, columns=wanted, index=frame.index)
    else:
        converted = {}
        for name in wanted:
            try:
                converted[name] = rules.numbers_of(part[name])
            except BadCell as bad:
                raise _not_a_number(bad, name, place(bad.position)) from None
        part = pd.DataFrame(converted, index=frame.index)
    if len(wanted) == frame.shape[1]:
        return part
    others = frame.drop(columns=wanted)
    return pd.concat([part, others], axis=1)[list(frame.columns)]


def text_of(column: pd.Series) -> list[str]:
    """Return the cells of a column as text, missing ones as empty text."""
    cells, missing = column.tolist(), column.isna().tolist()
    return ["" if gap else str(cell) for cell, gap in zip(cells, missing, strict=True)]


def _not_a_number(bad: BadCell, name: str, place: str) -> NotANumber:
    cell = str(bad.cell)
    return NotANumber(
        f"{place}, column {name!r}: {why_no_number(bad.cell)}.",
        f"If it stands for a missing value, say so with --missing {cell[:40]!r}; "
        "otherwise correct the cell or leave the column out.",
        name,
    )
