"""Number columns of a frame, and the names of rows, from columns of any type."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Collection
from typing import TYPE_CHECKING, Any

import numpy as np

from twofold.tables.cells import BadCell, CellRules, shown, why_no_number
from twofold.tables.table_error import NotANumber

if TYPE_CHECKING:
    import pandas as pd

_CELLS_TO_JUDGE = 2000


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
    elif (plain := rules.plain_numbers(part.to_numpy(dtype=object))) is not None:
        part = pd.DataFrame(plain, columns=wanted, index=frame.index)
    else:
        converted = {}
        for name in wanted:
            try:
                converted[name] = rules.numbers_of(part[name])
            except BadCell as bad:
                raise _not_a_number(bad, name, place(bad.position), rules.decimal) from None
        part = pd.DataFrame(converted, index=frame.index)
    if len(wanted) == frame.shape[1]:
        return part
    others = frame.drop(columns=wanted)
    return pd.concat([part, others], axis=1)[list(frame.columns)]


def text_of(column: pd.Series) -> list[str]:
    """Return the cells of a column as text, missing ones as empty text."""
    cells, missing = column.tolist(), column.isna().tolist()
    return ["" if gap else str(cell) for cell, gap in zip(cells, missing, strict=True)]


def nearly_numbers(column: pd.Series, rules: CellRules) -> tuple[str, str] | None:
    """Say what keeps a column whose cells are mostly numbers from being one, and what to do.

    Returns None for other columns; those are told from their first cells, for a look at every cell
    of a long column of text would take its time.
    """
    if column.dtype.kind in "iufb":
        return None
    cells = [None if gap else cell for cell, gap in zip(column, column.isna(), strict=True)]
    if not _is_mostly_numbers(cells[:_CELLS_TO_JUDGE], rules):
        return None
    bad = [(row, cell) for row, cell in enumerate(cells, 1) if not is_number(cell, rules)]
    if not bad or 2 * len(bad) >= len(cells):
        return None
    row, cell = bad[0]
    why, verb = why_no_number(cell, rules.decimal), "is" if len(bad) == 1 else "are"
    place = (
        f"{len(bad):,} of {len(cells):,} cells {verb} no number, first {shown(cell)} in row {row}"
    )
    if why.endswith("is no number"):
        texts = {str(other).strip() for _, other in bad}
        marker = f"--missing {shlex.quote(str(cell).strip())}"
        others = f" (and {len(texts) - 1} more such texts)" if len(texts) > 1 else ""
        return place, f"if it stands for a missing value: {marker}{others}"
    return place, f"{why}: write it as the others"


def _is_mostly_numbers(cells: list[Any], rules: CellRules) -> bool:
    given = [cell for cell in cells if cell is not None]
    return 2 * sum(is_number(cell, rules) for cell in given) > len(given)


def is_number(cell: Any, rules: CellRules) -> bool:
    """Whether a cell is a number or missing."""
    try:
        rules.number(cell)
    except (ValueError, TypeError):
        return False
    return True


def _not_a_number(bad: BadCell, name: str, place: str, decimal: str) -> NotANumber:
    cell = str(bad.cell)
    return NotANumber(
        f"{place}, column {name!r}: {why_no_number(bad.cell, decimal)}.",
        f"If it stands for a missing value, say so with --missing {cell[:40]!r}; "
        "otherwise correct the cell or leave the column out.",
        name,
    )
