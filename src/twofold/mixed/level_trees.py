"""Trees that tell the level of a category from the other columns of a row.

A map of few dimensions says which levels are likely at a place. What the other columns say beyond
that, extremely randomised trees (Geurts, Ernst & Wehenkel 2006) find, as in missForest (Stekhoven &
Bühlmann 2012). A hidden category is filled by a mean of both probabilities in which trees have the
larger part:

    p(level) = (1 - a) p_map(level) + a p_trees(level),    a = 2/3

Trees learn from the rows of the fit whose category is known, other gaps filled along the map.
"""

from typing import Any

import numpy as np

from twofold.array_types import FloatArray
from twofold.mixed.columns import Column, LevelColumn

# Where many rows teach them, half as many trees are about as good (0.748 and 0.749 of the hidden
# levels right on a made-up table of 6,000 rows); of few rows each tree counts.
N_TREES, N_TREES_OF_MANY_ROWS, MANY_ROWS = 100, 50, 1_000
# On six tables with cells hidden at random, shares from 1/2 to 1 did about equally well.
SHARE_OF_TREES = 2 / 3
# More rows make trees slower and no better: on a made-up table of 18,000 rows and eleven columns of
# levels, 2,000 taught as much as 5,000 (0.787 and 0.781 right), 1,000 a little less (0.774).
MOST_ROWS = 2_000
# Fewer rows teach trees nothing.
LEAST_ROWS = 20


class LevelTrees:
    """Trees for columns of levels, each planted when a gap of its column is first to be filled.

    Parameters
    ----------
    columns : list of (Column, slice)
        All columns, and where their features stand.
    rows, filled : ndarrays of shape (n, D)
        Features of the rows to learn from, with gaps, and with these filled along the map.
    weights : ndarray of shape (n,)
    """

    def __init__(
        self,
        columns: list[tuple[Column, slice]],
        rows: FloatArray,
        filled: FloatArray,
        weights: FloatArray,
    ) -> None:
        self._columns, self._weights = columns, weights
        self._gaps, self._filled = np.isnan(rows), filled
        self._planted: dict[str, Any] = {}

    def told(self, Y: FloatArray, filled: FloatArray) -> FloatArray:
        """Return filled rows (m, D), the missing levels of Y by a mean of map and trees."""
        whole = filled.copy()
        for column, part in self._columns:
            gaps = np.isnan(Y[:, part]).any(axis=1)
            if not isinstance(column, LevelColumn) or not gaps.any():
                continue
            told = self.features(column, part, filled[gaps])
            if told is not None:
                mapped = column.proper(filled[gaps, part])
                whole[gaps, part] = mapped + SHARE_OF_TREES * (told - mapped)
        return whole

    def features(self, column: LevelColumn, part: slice, rows: FloatArray) -> FloatArray | None:
        """Return what trees say of a column (m, k), given filled rows (m, D); None if nothing."""
        if column.name not in self._planted:
            self._planted[column.name] = self._trees(column, part)
        trees = self._planted[column.name]
        if trees is None:
            return None
        P = np.zeros((len(rows), column.n_classes))
        P[:, trees.classes_] = trees.predict_proba(_without(rows, part))
        return column.from_classes(P)

    def _trees(self, column: LevelColumn, part: slice) -> Any:
        """Return the trees of a column, None where there is nothing to learn."""
        known = ~self._gaps[:, part].any(axis=1)
        others = _without(self._filled[known], part)
        if len(others) < LEAST_ROWS or others.shape[1] == 0:
            return None
        # Imported at first use: it takes a while.
        from sklearn.ensemble import ExtraTreesClassifier

        levels = column.classes(self._filled[known, part])
        n_trees = N_TREES if len(others) < MANY_ROWS else N_TREES_OF_MANY_ROWS
        trees = ExtraTreesClassifier(n_trees, random_state=0)
        return trees.fit(others, levels, sample_weight=self._weights[known])


def _without(rows: FloatArray, part: slice) -> FloatArray:
    return np.delete(rows, np.r_[part], axis=1)
