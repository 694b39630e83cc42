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

from twofold.array_types import BoolArray, FloatArray
from twofold.mixed.columns import LevelColumn

N_TREES = 100
# On six tables with cells hidden at random, shares from 1/2 to 1 did about equally well.
SHARE_OF_TREES = 2 / 3
# More rows make trees slower and hardly better.
MOST_ROWS = 5_000
# Fewer rows teach trees nothing.
LEAST_ROWS = 20


class LevelTrees:
    """Trees for one column, whose features stand in ``part`` of all features (n, D)."""

    def __init__(
        self, column: LevelColumn, part: slice, rows: FloatArray, known: BoolArray, weights: Any
    ) -> None:
        # Imported at first use: it takes a while.
        from sklearn.ensemble import ExtraTreesClassifier

        self._column, self._part = column, part
        self._trees: Any = ExtraTreesClassifier(N_TREES, random_state=0)
        classes = column.classes(rows[known, part])
        self._trees.fit(self._others(rows[known]), classes, sample_weight=weights[known])

    def features(self, rows: FloatArray) -> FloatArray:
        """Return what the features of the column are (m, k), given filled rows (m, D)."""
        P = np.zeros((len(rows), self._column.n_classes))
        P[:, self._trees.classes_] = self._trees.predict_proba(self._others(rows))
        return self._column.from_classes(P)

    def _others(self, rows: FloatArray) -> FloatArray:
        return np.delete(rows, np.r_[self._part], axis=1)
