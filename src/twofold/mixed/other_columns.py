"""What the other columns of a row tell of its gaps, beside the map.

A map of few dimensions says what is likely at a place. The other columns of a row know more. What
is missing is first filled by the mean of two: the map with its residuals, and
:class:`~twofold.filling.ManifoldImputer`, which looks for similar rows in all columns. Numbers and
dates stay so. A level is then told from the filled row in several ways e, and

    p(level) = Σ_e w_e p_e(level)

- extremely randomised trees (Geurts, Ernst & Wehenkel 2006) that tell all indicators together,
- a random forest (Breiman 2001); both as in missForest (Stekhoven & Bühlmann 2012),
- a logistic regression on all features.

To trees and among similar rows a category is one number: its levels stand where the means of their
rows lie along the axis on which these means differ most, so that one split parts similar levels
from others.

The weights are those under which the known levels l_i of the rows are most likely, each told by
trees that were grown, and a regression that was fitted, without row i; λ = 10 rows more for which
all ways are equally right keep them apart from 0:

    Σ_i log Σ_e w_e p_e(l_i) + (λ / E) Σ_e log w_e
"""

from typing import Any, NamedTuple

import numpy as np
from scipy.special import softmax
from sklearn import config_context
from sklearn.linear_model import LogisticRegression
from sklearn.tree import DecisionTreeRegressor, ExtraTreeRegressor

from twofold.array_types import FloatArray, IntArray
from twofold.filling import ManifoldImputer
from twofold.filling.experts import MOST_SEEN
from twofold.mixed.columns import Column, LevelColumn
from twofold.process_settings import without_warnings

# Where many rows teach them, fewer trees are about as good; of few rows each tree counts.
N_TREES, N_TREES_OF_MANY_ROWS, MANY_ROWS = 100, 30, 1_000
# The share of the columns that trees of all indicators look at for a split.
SHARE_TRIED = 0.4
# Rows to learn from: so many entries in all, between fewest and most. Of 10,000 rows of 17 columns
# with pixels of digits (10 of them levels) 5,000 taught more than 2,000 (0.769 and 0.755 of the
# hidden levels right) and 10,000 little more (0.774).
MOST_ENTRIES, FEWEST_ROWS, MOST_ROWS = 125_000, 500, 10_000
# Fewer rows teach nothing.
LEAST_ROWS = 20
# A level is told from so many columns, those that go most with it.
MOST_PREDICTORS = 64
# Parts of the rows that take turns in being told by a regression of the others.
FOLDS = 3
MOST_STEPS = 30
# λ of the weights, steps of EM to them, and what any level is given at least.
ROWS_OF_PRIOR, STEPS, LEAST_CHANCE = 10.0, 100, 1e-3


def most_rows(D: int) -> int:
    """Return how many rows of D features are learnt from at most."""
    return int(np.clip(MOST_ENTRIES // D, FEWEST_ROWS, MOST_ROWS))


class OtherColumns:
    """Fills gaps; what a column of levels needs is made when one of its gaps is first filled.

    Parameters
    ----------
    columns : list of (Column, slice)
        All columns, and where their features stand.
    unit : ndarray of shape (D,)
        What features are divided by, so that columns count alike.
    rows, mapped : ndarrays of shape (n, D)
        Features of the rows to learn from, with gaps, and with these filled along the map.
    weights : ndarray of shape (n,)
    """

    def __init__(
        self,
        columns: list[tuple[Column, slice]],
        unit: FloatArray,
        rows: FloatArray,
        mapped: FloatArray,
        weights: FloatArray,
    ) -> None:
        self._columns, self._weights = in_both(columns), weights
        # Around 0 regressions take few steps: days since 1970 are far from it.
        self._center, self._unit = mapped.mean(axis=0), unit
        self._gaps = np.isnan(rows)
        self._axes = {
            column.name: self._axis(column, part, mapped)
            for column, part in columns
            if isinstance(column, LevelColumn)
        }
        known = self._numbers(self._standard(rows))
        self._is_told = ~np.isnan(known).all(axis=0) & (len(rows) >= LEAST_ROWS)
        self._imputer = ManifoldImputer(trees=False, n_jobs=None, random_state=0)
        if self._is_told.any():
            self._imputer.fit(known[:, self._is_told])
        self._filled = self._between(rows, mapped)
        self._tellers: dict[str, LevelTeller | None] = {}

    def told(self, Y: FloatArray, mapped: FloatArray) -> FloatArray:
        """Return rows Y (m, D), filled along the map, filled by what other columns say, too."""
        filled = self._between(Y, mapped)
        whole = filled.features * self._unit + self._center
        for place in self._columns:
            column, part = place.column, place.features
            gaps = np.isnan(Y[:, part]).any(axis=1)
            if not isinstance(column, LevelColumn) or not gaps.any():
                continue
            teller = self._teller(place, column)
            whole[gaps, part] = (
                column.proper(mapped[gaps, part])
                if teller is None
                else teller.features(*filled.part(gaps).without(place))
            )
        return whole

    def _standard(self, F: FloatArray) -> FloatArray:
        return (F - self._center) / self._unit

    def _axis(self, column: LevelColumn, part: slice, mapped: FloatArray) -> FloatArray:
        """Return what the features (k,) of a column count in the one number that stands for it."""
        if column.kind == "ordered":
            return np.ones(part.stop - part.start)
        others = np.delete(self._standard(mapped), part, axis=1)
        return places_of_levels(self._weights[:, None] * column.proper(mapped[:, part]), others)

    def _numbers(self, Z: FloatArray) -> FloatArray:
        """Return standard features (m, D) as numbers (m, C), one for each column of levels."""
        found = []
        for column, part, _ in self._columns:
            axis = self._axes.get(column.name)
            # Sums along rows, whose order does not depend on how many there are.
            found.append(Z[:, part] if axis is None else (Z[:, part] * axis).sum(axis=1)[:, None])
        return np.hstack(found)

    def _between(self, Y: FloatArray, mapped: FloatArray) -> "FilledRows":
        """Return rows Y (m, D) filled by the mean of what the map and similar rows say."""
        features = self._standard(mapped)
        known, numbers, told = (
            self._numbers(self._standard(Y)),
            self._numbers(features),
            self._is_told,
        )
        if told.any():
            similar = self._imputer.transform(known[:, told])
            numbers[:, told] = np.where(
                np.isnan(known[:, told]), (numbers[:, told] + similar) / 2, similar
            )
        for column, part, place in self._columns:
            if column.name not in self._axes:
                features[:, part] = numbers[:, place]
        return FilledRows(numbers, features)

    def _teller(self, place: "InBoth", column: LevelColumn) -> "LevelTeller | None":
        """Return what tells the levels of a column, None where there is nothing to learn."""
        if column.name not in self._tellers:
            part = place.features
            known = ~self._gaps[:, part].any(axis=1)
            F = self._filled.features[known, part] * self._unit[part] + self._center[part]
            teller = None
            if len(F) >= LEAST_ROWS and len(np.unique(column.classes(F))) > 1:
                predictors = self._filled.part(known).without(place)
                if predictors.numbers.shape[1]:
                    teller = LevelTeller(column, F, *predictors, self._weights[known])
            self._tellers[column.name] = teller
        return self._tellers[column.name]


class InBoth(NamedTuple):
    """Where a column stands among the features and among the numbers."""

    column: Column
    features: slice
    numbers: slice


def in_both(columns: list[tuple[Column, slice]]) -> list[InBoth]:
    """Return where columns stand; those of levels are one number, others as many as features."""
    found, start = [], 0
    for column, part in columns:
        width = 1 if isinstance(column, LevelColumn) else part.stop - part.start
        found.append(InBoth(column, part, slice(start, start + width)))
        start += width
    return found


class FilledRows(NamedTuple):
    """Filled rows in units of their columns: numbers (m, C) and features (m, D)."""

    numbers: FloatArray
    features: FloatArray

    def part(self, some: Any) -> "FilledRows":
        """Return some of the rows."""
        return FilledRows(self.numbers[some], self.features[some])

    def without(self, place: InBoth) -> "FilledRows":
        """Return all columns but one."""
        return FilledRows(
            np.delete(self.numbers, place.numbers, axis=1),
            np.delete(self.features, place.features, axis=1),
        )


class LevelTeller:
    """Tells the levels of a column from the others of a row.

    Parameters
    ----------
    column : LevelColumn
    F : ndarray of shape (n, k)
        Its features in rows where they are known.
    numbers, features : ndarrays of shape (n, C) and (n, D)
        The other columns of these rows, filled; in the first, a category is one number.
    weights : ndarray of shape (n,)
    """

    def __init__(
        self,
        column: LevelColumn,
        F: FloatArray,
        numbers: FloatArray,
        features: FloatArray,
        weights: FloatArray,
    ) -> None:
        self._column = column
        self._used = strongest(numbers, F), strongest(features, F)
        numbers, features = numbers[:, self._used[0]], features[:, self._used[1]]
        levels = column.classes(F)
        self._extremely_random = Forest(ExtraTreeRegressor, SHARE_TRIED, numbers, F, weights)
        self._forest = Forest(DecisionTreeRegressor, "sqrt", numbers, F, weights)
        self._regression = Regression(features, levels, weights, column.n_classes)
        apart = (
            column.to_classes(self._extremely_random.apart),
            column.to_classes(self._forest.apart),
            self._regression.told_apart(features, levels, weights),
        )
        chances = np.stack([P[np.arange(len(F)), levels] for P in apart])
        self.weights = mixture_weights(chances, weights)

    def features(self, numbers: FloatArray, features: FloatArray) -> FloatArray:
        """Return the features (m, k) of the column, given the others of rows."""
        numbers, features = numbers[:, self._used[0]], features[:, self._used[1]]
        told = (
            self._extremely_random.told(numbers),
            self._forest.told(numbers),
            self._column.from_classes(self._regression.told(features)),
        )
        return np.asarray(sum(w * F for w, F in zip(self.weights, told, strict=True)))


class Forest:
    """Trees of one kind that tell features F (n, k) from X (n, C), each from rows drawn by lot.

    Variances of indicators add up to Gini's impurity of the levels. ``apart`` (n, k) is what those
    trees say of a row that have not seen it.
    """

    def __init__(
        self, kind: Any, columns_tried: Any, X: FloatArray, F: FloatArray, weights: FloatArray
    ) -> None:
        random, n, seen = np.random.RandomState(0), len(X), self._seen(X)
        asked, self.apart, self._trees = np.zeros(n), np.zeros(F.shape), []
        # One by one: on a few hundred rows a forest of scikit-learn takes longer to hand its
        # parameters to its trees, and each tree to check them, than they take to grow.
        with config_context(skip_parameter_validation=True):
            for _ in range(N_TREES if n < MANY_ROWS else N_TREES_OF_MANY_ROWS):
                drawn = np.bincount(random.randint(0, n, n), minlength=n)
                tree = kind(max_features=columns_tried, random_state=random)
                tree.fit(seen, F, sample_weight=drawn * weights, check_input=False)
                self._trees.append(tree.tree_)
                out = drawn == 0
                self.apart[out] += self._said(tree.tree_, seen[out])
                asked += out
        self.apart /= np.maximum(asked, 1)[:, None]

    def told(self, X: FloatArray) -> FloatArray:
        """Return the features (m, k) of rows X (m, C)."""
        seen = self._seen(X)
        return np.asarray(sum(self._said(tree, seen) for tree in self._trees) / len(self._trees))

    @staticmethod
    def _seen(X: FloatArray) -> FloatArray:
        return np.ascontiguousarray(np.clip(X, -MOST_SEEN, MOST_SEEN), dtype=np.float32)

    @staticmethod
    def _said(tree: Any, seen: FloatArray) -> FloatArray:
        return np.asarray(tree.value[tree.apply(seen), :, 0])


class Regression:
    """A logistic regression that knows which of all classes it has seen."""

    def __init__(
        self, X: FloatArray, classes: IntArray, weights: FloatArray, n_classes: int
    ) -> None:
        self.n_classes, self._seen = n_classes, np.unique(classes)
        if len(self._seen) > 1:
            # It is as near as it gets in a few steps, and classes may be many.
            with without_warnings(UserWarning):
                self._model = LogisticRegression(max_iter=MOST_STEPS)
                self._model.fit(X, classes, sample_weight=weights)

    def told(self, X: FloatArray) -> FloatArray:
        """Return how likely classes of rows are (m, n_classes)."""
        if len(self._seen) == 1:
            return np.tile(np.eye(self.n_classes)[self._seen[0]], (len(X), 1))
        model = self._model
        # Not a product of matrices, whose last bits depend on how many rows there are.
        logits = [
            (X * slope).sum(axis=1) + height
            for slope, height in zip(model.coef_, model.intercept_, strict=True)
        ]
        if len(logits) == 1:  # of two classes
            logits.insert(0, np.zeros(len(X)))
        P = softmax(np.column_stack(logits), axis=1)
        return whole_classes(P, self._seen, self.n_classes)

    def told_apart(self, X: FloatArray, classes: IntArray, weights: FloatArray) -> FloatArray:
        """Return the same of the rows it was fitted to, each told by others."""
        fold = np.empty(len(X), dtype=int)
        # Each part has its share of each class.
        fold[np.argsort(classes, kind="stable")] = np.arange(len(X)) % FOLDS
        P = np.empty((len(X), self.n_classes))
        for number in range(FOLDS):
            out = fold == number
            others = Regression(X[~out], classes[~out], weights[~out], self.n_classes)
            P[out] = others.told(X[out])
        return P


def places_of_levels(shares: FloatArray, others: FloatArray) -> FloatArray:
    """Return one number (k,) for each level, alike for levels of similar rows.

    ``shares`` (n, k) of rows belong to the levels, ``others`` (n, D) are their other features.
    """
    total = np.maximum(shares.sum(axis=0), np.finfo(np.float64).tiny)
    means = (shares.T @ others) / total[:, None]
    means -= total @ means / total.sum()
    axis = np.linalg.svd(np.sqrt(total)[:, None] * means, full_matrices=False)[2][:1]
    return np.asarray((means * axis).sum(axis=1))


def strongest(X: FloatArray, F: FloatArray) -> IntArray:
    """Return which columns of X (n, D) go most with any of F (n, k), in their order."""
    if X.shape[1] <= MOST_PREDICTORS:
        return np.arange(X.shape[1])
    X, F = X - X.mean(axis=0), F - F.mean(axis=0)
    size = np.sqrt(np.outer((X**2).sum(axis=0), (F**2).sum(axis=0)))
    strength = (np.abs(X.T @ F) / np.where(size > 0, size, 1)).max(axis=1)
    return np.sort(np.argsort(-strength, kind="stable")[:MOST_PREDICTORS])


def whole_classes(P: FloatArray, seen: IntArray, n_classes: int) -> FloatArray:
    """Return probabilities (m, n_classes) from those of the classes seen (m, s)."""
    whole = np.zeros((len(P), n_classes))
    whole[:, seen] = P
    return whole


def mixture_weights(chances: FloatArray, weights: FloatArray) -> FloatArray:
    """Return the weights (E,) of ways that give what is true the chances (E, n), by EM."""
    n_ways = len(chances)
    found = np.full(n_ways, 1 / n_ways)
    likely = np.clip(chances, 0, 1) + LEAST_CHANCE
    for _ in range(STEPS):
        shares = found[:, None] * likely
        shares /= shares.sum(axis=0)
        counted = shares @ weights + ROWS_OF_PRIOR / n_ways
        found = counted / counted.sum()
    return found
