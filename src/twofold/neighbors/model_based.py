"""Model-based nearest neighbours: a few balls in place of all rows.

A ball around a row takes in rows of its class and ends before the nearest row of another class. As
long as rows are left, the ball that takes in most of them is kept (Kramer 2013, section 2.7; the
details after Guo, Wang, Bell, Bi and Greer, KNN model-based approach in classification, 2003):

    r_i = distance of row i to the nearest row of another class,
    M_i = {j not yet taken in: y_j = y_i, d(i, j) < r_i} and i itself,
    keep the i of the largest M_i (then of the smallest radius, then the first),
    with its class, its radius max_{j in M_i} d(i, j) and its count |M_i|.

A new row that lies in balls has the class of the one with the largest count (then the nearest
border), one outside all balls the class of the nearest border, ``d(x, x_i) - radius_i``. Or plain K
nearest neighbours run on the middles of the balls, which forgets how large each ball is. Rows of
the training set are always recognised by balls, unless rows of two classes lie on the same place.

Sets M_i only shrink while rows are taken in. So the largest is found without counting them all
again: only that which was the largest when last counted is.
"""

import heapq
from typing import Any, Self

import numpy as np
import numpy.typing as npt
from scipy.spatial.distance import cdist
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.neighbors import KNeighborsClassifier
from sklearn.utils.multiclass import check_classification_targets

from twofold.array_types import FloatArray, IntArray
from twofold.checks.parameters import check_choice
from twofold.rowwise import blocks
from twofold.unn.rows import new_rows, training_rows

MODES = ("balls", "representatives")


class ModelBasedKNN(ClassifierMixin, BaseEstimator):
    """Classification by balls around few rows.

    Parameters
    ----------
    mode : {"balls", "representatives"}, default="balls"
        Whether a row gets the class of the ball it lies in or next to, or that of the nearest
        centres of balls.
    n_neighbors : int, default=1
        K of mode "representatives", at most their number.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
    representatives_ : ndarray of shape (n_balls, n_features)
        Centres of the balls, in the order in which they were found.
    representative_labels_ : ndarray of shape (n_balls,)
    radii_, counts_ : ndarrays of shape (n_balls,)
        Size of each ball, and how many rows it took in.
    n_features_in_, feature_names_in_ : int, ndarray

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from twofold.neighbors import ModelBasedKNN
    >>> X, y = load_iris(return_X_y=True)
    >>> model = ModelBasedKNN().fit(X, y)
    >>> model.score(X, y), len(model.representatives_) < 20
    (1.0, True)
    """

    def __init__(self, mode: str = "balls", *, n_neighbors: int = 1) -> None:
        self.mode = mode
        self.n_neighbors = n_neighbors

    def fit(self, X: Any, y: Any) -> Self:
        """Find the balls of rows X (n_samples, n_features) with labels y (n_samples,)."""
        check_choice("mode", self.mode, MODES)
        Y, y = training_rows(self, X, y)
        check_classification_targets(y)
        self.classes_, codes = np.unique(y, return_inverse=True)
        limits = _distance_to_others(Y, codes)
        balls: list[tuple[int, float, int]] = []
        for code in range(len(self.classes_)):
            own = np.flatnonzero(codes == code)
            balls += [(int(own[i]), r, count) for i, r, count in _cover(Y[own], limits[own])]
        # Largest first, as if rows of all classes were taken in together.
        balls.sort(key=lambda ball: (-ball[2], ball[1], ball[0]))
        middle, radii, counts = zip(*balls, strict=True)
        self.representatives_ = Y[list(middle)]
        self.representative_labels_ = y[list(middle)]
        self.radii_, self.counts_ = np.array(radii), np.array(counts)
        if self.mode == "representatives":
            k = min(self.n_neighbors, len(balls))
            middles = self.representatives_, self.representative_labels_
            self.neighbors_ = KNeighborsClassifier(k).fit(*middles)
        return self

    def predict(self, X: Any) -> npt.NDArray[Any]:
        """Return the class (n_samples,) of each row."""
        Y = new_rows(self, X)
        if self.mode == "representatives":
            return self.neighbors_.predict(Y)
        chosen = [self._choose_balls(Y[rows]) for rows in blocks(len(Y), len(self.radii_))]
        return self.representative_labels_[np.concatenate(chosen)]

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        # Middles of large and of small balls count alike, so few of them tell little.
        tags.classifier_tags.poor_score = self.mode == "representatives"
        return tags

    def _choose_balls(self, Y: FloatArray) -> IntArray:
        """Return the number of the ball that decides about each row."""
        border = cdist(Y, self.representatives_) - self.radii_
        inside = border <= 0
        # Of the balls a row lies in only the largest count; outside of all, every ball does.
        largest = np.where(inside, self.counts_, 0).max(axis=1, keepdims=True)
        competes = (inside & (self.counts_ == largest)) | ~inside.any(axis=1, keepdims=True)
        return np.where(competes, border, np.inf).argmin(axis=1)


def _distance_to_others(Y: FloatArray, codes: IntArray) -> FloatArray:
    """Return the distance (n,) of each row to the nearest row of another class."""
    limits = np.full(len(Y), np.inf)
    for rows in blocks(len(Y), len(Y)):
        distances = cdist(Y[rows], Y)
        distances[codes[rows, None] == codes] = np.inf
        limits[rows] = distances.min(axis=1)
    return limits


def _cover(Y: FloatArray, limits: FloatArray) -> list[tuple[int, float, int]]:
    """Return (row, radius, count) of balls that take in all rows Y (n, D) of one class."""
    left = np.ones(len(Y), dtype=bool)
    waiting: list[tuple[int, float, int]] = []
    for rows in blocks(len(Y), len(Y)):  # while all are left, many at a time
        distances = cdist(Y[rows], Y)
        members = distances < limits[rows, None]
        members[np.arange(len(distances)), np.arange(rows.start, rows.stop)] = True
        radii = np.where(members, distances, 0).max(axis=1).tolist()
        counts = members.sum(axis=1).tolist()
        numbers = range(rows.start, rows.stop)
        waiting += [(-c, r, i) for c, r, i in zip(counts, radii, numbers, strict=True)]
    heapq.heapify(waiting)
    balls = []
    while waiting:
        promised, _, i = heapq.heappop(waiting)
        if not left[i]:
            continue
        distances = cdist(Y[i : i + 1], Y)[0]
        members = left & (distances < limits[i])
        members[i] = True
        radius, count = float(distances[members].max()), int(members.sum())
        if count == -promised:
            balls.append((i, radius, count))
            left[members] = False
        else:
            heapq.heappush(waiting, (-count, radius, i))
    return balls
