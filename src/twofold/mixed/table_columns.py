"""All columns of a table as one: frames become features, and features frames.

What a single column does is in :mod:`.columns`; here its features get their place among the others.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import pandas as pd

from twofold.array_types import FloatArray, IntArray
from twofold.contract.distinct_rows import DistinctRows
from twofold.mixed.columns import Column, LevelColumn, scales
from twofold.mixed.frames import fill_gaps
from twofold.mixed.kinds import LeftOut, fit_column
from twofold.process_settings import warn

LEVELS_NAMED = 5


class UnknownLevelWarning(UserWarning):
    """Cells hold what the fit has not seen or cannot use, and count as missing.

    Examples
    --------
    >>> import warnings
    >>> import pandas as pd
    >>> from twofold import UKR, Mixed
    >>> from twofold.mixed import UnknownLevelWarning
    >>> sizes = [1.0, 2.1, 3.0, 4.2, 5.0, 6.1] * 3
    >>> table = pd.DataFrame({"size": sizes, "colour": ["red", "blue"] * 9})
    >>> model = Mixed(UKR(1, init="pca", max_iter=3)).fit(table)
    >>> with warnings.catch_warnings(record=True) as caught:
    ...     warnings.simplefilter("always")
    ...     _ = model.transform(pd.DataFrame({"size": [2.0], "colour": ["green"]}))
    >>> [warning.category is UnknownLevelWarning for warning in caught]
    [True]
    """


def choose_columns(
    frame: pd.DataFrame, weights: FloatArray, kinds: Mapping[str, Any], shares: Mapping[str, float]
) -> tuple[TableColumns, dict[str, str]]:
    """Return the columns of a table with rows of weights (n,), and why others are left out."""
    for given in (kinds, shares):
        if unknown := [name for name in given if name not in frame.columns]:
            raise ValueError(
                f"`kinds` and `weights` name columns of the table; it has no {unknown[0]!r}. "
                f"Its columns are {', '.join(map(repr, frame.columns[:20]))}."
            )
    made = [
        fit_column(name, frame[name], weights, kinds.get(name), float(shares.get(name, 1)))
        for name in frame.columns
    ]
    found = TableColumns(tuple(column for column in made if isinstance(column, Column)))
    left_out = {column.name: column.why for column in made if isinstance(column, LeftOut)}
    if not found.labels:
        reasons = [f"{name!r}: {why}" for name, why in left_out.items()]
        constant = [f"{column.name!r}: {column.why}" for column in found.columns]
        raise ValueError(
            "No column of the table tells anything: "
            f"{'; '.join((reasons + constant)[:5])}. Name kinds for some by `kinds`."
        )
    return found, left_out


class TableColumns:
    """The columns of a fit, in their order."""

    def __init__(self, columns: tuple[Column, ...]) -> None:
        self.columns = columns

    @property
    def labels(self) -> list[str]:
        """The names of all features."""
        return [name for column in self.columns for name in column.features]

    @property
    def widths(self) -> list[int]:
        """How many features each column has."""
        return [len(column.features) for column in self.columns]

    def __iter__(self) -> Iterator[tuple[Column, slice]]:
        """Return each column, and where its features stand."""
        start = 0
        for column, width in zip(self.columns, self.widths, strict=True):
            yield column, slice(start, start + width)
            start += width

    def groups(self) -> IntArray:
        """Return the number of its column for each feature."""
        return np.repeat(np.arange(len(self.columns)), self.widths)

    def scales(self, distinct: DistinctRows) -> tuple[FloatArray, FloatArray]:
        """Return what to subtract from each feature and to divide it by, from rows of features."""
        found = [
            scales(distinct.Y[:, part], column.parts, column.weight, distinct.weights)
            for column, part in self
        ]
        center, spread = (np.concatenate(each) for each in zip(*found, strict=True))
        return center, spread

    def encode(self, frame: pd.DataFrame) -> FloatArray:
        """Return the features (n, D) of rows of a table, whose columns are found by name."""
        needed = [column.name for column in self.columns if column.features]
        if missing := [name for name in needed if name not in frame.columns]:
            more = f" and {len(missing) - 5} more" * (len(missing) > 5)
            raise ValueError(
                f"The table lacks {len(missing)} of the {len(needed)} columns of the fit: "
                f"{', '.join(map(repr, missing[:5]))}{more}. Entries may be missing, columns may "
                "not."
            )
        parts: list[FloatArray] = []
        strange: dict[str, list[str]] = {}
        for column in self.columns:
            if not column.features:
                continue
            values = frame[column.name]
            F = column.encode(values)
            if np.isinf(F).any():
                row = int(np.isinf(F).any(axis=1).argmax())
                raise ValueError(
                    f"Column {column.name!r} holds infinity (first: row {row}); replace it by a "
                    "number or a gap."
                )
            unknown = values.notna().to_numpy() & np.isnan(F[:, 0])
            if unknown.any():
                texts = list(dict.fromkeys(map(str, values[unknown])))
                more = f" and {len(texts) - LEVELS_NAMED} more" * (len(texts) > LEVELS_NAMED)
                named = ", ".join(map(repr, texts[:LEVELS_NAMED]))
                why = f"No {column.wanted}" if column.wanted else "Unknown to the fit"
                strange.setdefault(why, []).append(f"{column.name}: {named}{more}")
            parts.append(F)
        if strange:
            warn(
                " ".join(
                    f"{why}, and counted as missing: {'; '.join(cells)}."
                    for why, cells in strange.items()
                ),
                UnknownLevelWarning,
            )
        return np.hstack(parts)

    def decode(self, F: FloatArray, index: Any = None) -> pd.DataFrame:
        """Return features (n, D) as a frame of the columns of the fit."""
        frame = pd.DataFrame({column.name: column.decode(F[:, part]) for column, part in self})
        return frame if index is None else frame.set_axis(index)

    def ends(self, F: FloatArray, index: Any) -> pd.DataFrame:
        """Return features that are ends of intervals as a frame, levels missing."""
        found = {column.name: column.end(F[:, part]) for column, part in self}
        return pd.DataFrame(found).set_axis(index)

    def filled(self, F: FloatArray, given: pd.DataFrame) -> pd.DataFrame:
        """Return a table whose missing entries are those of features F (n, D)."""
        made = self.decode(F, given.index)
        filled = given.copy()
        for column in self.columns:
            if column.name not in given.columns:
                continue
            gaps = given[column.name].isna().to_numpy()
            if gaps.any():
                filled[column.name] = fill_gaps(given[column.name], gaps, made[column.name])
        return filled

    def probabilities(self, F: FloatArray, index: Any) -> dict[str, pd.DataFrame]:
        """Return how likely each level of each column of categories is."""
        return {
            column.name: pd.DataFrame(
                column.probabilities(F[:, part]), columns=list(column.levels), index=index
            )
            for column, part in self
            if isinstance(column, LevelColumn)
        }

    def deviations(self, F: FloatArray, std: FloatArray, index: Any) -> pd.DataFrame:
        """Return standard deviations in units of the columns, NaN for categories."""
        found = {}
        for column, part in self:
            if isinstance(column, LevelColumn):
                found[column.name] = np.full(len(F), np.nan)
            else:
                own = std[:, part][:, :, None].astype(np.float64)
                found[column.name] = column.slopes(F[:, part], own)[:, 0]
        return pd.DataFrame(found, index=index)

    def levels_as_text(self, F: FloatArray) -> dict[str, Any]:
        """Return the levels of rows of features as text, "" where one is missing.

        Rare levels that are joined cannot be told apart in features, and have one text.
        """
        found = {}
        for column, part in self:
            if isinstance(column, LevelColumn):
                text = np.array(column.shown_levels())
                own = text[column.probabilities(F[:, part]).argmax(axis=1)]
                found[column.name] = np.where(np.isnan(F[:, part.start]), "", own)
        return found

    def telling_features(self, Y: FloatArray) -> IntArray:
        """Return the feature of each column (n, columns) that tells of the entry of a row.

        Of a category it is the indicator of the row's level, of others the first.
        """
        found = np.zeros((len(Y), len(self.columns)), dtype=int)
        for k, (column, part) in enumerate(self):
            is_level = isinstance(column, LevelColumn) and column.kind != "ordered"
            own = np.nan_to_num(Y[:, part]).argmax(axis=1) if is_level else 0
            found[:, k] = min(part.start, Y.shape[1] - 1) + own
        return found
