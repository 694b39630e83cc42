"""Nearest neighbours weighted by inverse squared distance, of K rows or of all.

    f(x) = Σ_i w_i y_i / Σ_i w_i,    w_i = 1 / ||x - x_i||²,    i among the K nearest      (2.12)

(Kramer 2013, section 2.6; scikit-learn's ``weights="distance"`` is ``1 / ||x - x_i||``). On a
training row the mean of the rows that lie there is returned. With K = N no search is needed, and f
is continuous (2.14; the book prints the distances upside down there). Classes are voted for with
the same weights.
"""

from typing import Any, Self

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin
from sklearn.neighbors import KNeighborsClassifier, KNeighborsRegressor
from sklearn.utils.multiclass import check_classification_targets

from twofold.array_types import FloatArray
from twofold.checks.parameters import check_count, is_number
from twofold.engine.threads import count_threads
from twofold.process_settings import same_warnings_after
from twofold.rowwise import blocks
from twofold.unn.rows import new_rows, training_rows


def inverse_squared_distances(distances: FloatArray) -> FloatArray:
    """Return ``1 / d²`` (n, K) up to a factor a row, to be passed as ``weights`` to scikit-learn.

    Of distances (n, K) the nearest has weight 1; where it lies on the row itself, all others have
    weight 0.

    Examples
    --------
    >>> from sklearn.neighbors import KNeighborsRegressor
    >>> from twofold.neighbors import inverse_squared_distances
    >>> model = KNeighborsRegressor(2, weights=inverse_squared_distances)
    >>> float(model.fit([[0.0], [3.0]], [0.0, 5.0]).predict([[1.0]])[0])
    1.0
    """
    nearest = distances.min(axis=1, keepdims=True)
    # Relative to the nearest, the square of no distance overflows or vanishes.
    on_a_row = nearest == 0
    ratio = nearest / np.where(distances > 0, distances, 1)
    return np.where(on_a_row, distances == 0, ratio**2).astype(distances.dtype)


class _DistanceWeighted(BaseEstimator):
    """What both kinds share: rows in, neighbours of scikit-learn inside."""

    def __init__(
        self, n_neighbors: int | None = 5, *, p: float = 2.0, n_jobs: int | None = -1
    ) -> None:
        self.n_neighbors = n_neighbors
        self.p = p
        self.n_jobs = n_jobs

    def _neighbors(self, kind: Any, n: int) -> Any:
        k = self.n_neighbors
        if k is not None:
            check_count("n_neighbors", k)
        if not is_number(self.p) or not self.p >= 1:
            raise ValueError(f"`p` must be a number of at least 1; got {self.p!r}.")
        count_threads(self.n_jobs)
        return kind(
            n if k is None else min(int(k), n),
            weights=inverse_squared_distances,
            algorithm="brute" if k is None else "auto",
            p=float(self.p),
            n_jobs=self.n_jobs,
        )

    def _ask(self, method: str, X: Any) -> Any:
        """Return what a method of the neighbours says of rows, a bounded number at a time."""
        rows = new_rows(self, X)
        parts = blocks(len(rows), self.neighbors_.n_neighbors)
        with same_warnings_after():
            return np.concatenate([getattr(self.neighbors_, method)(rows[part]) for part in parts])


class DistanceWeightedKNNRegressor(RegressorMixin, _DistanceWeighted):
    """Mean of the nearest rows' targets, weighted by inverse squared distance.

    Parameters
    ----------
    n_neighbors : int or None, default=5
        K, at most the number of rows; None for all rows.
    p : float, default=2.0
        Order of the Minkowski distance.
    n_jobs : int or None, default=-1
        As in scikit-learn.

    Attributes
    ----------
    neighbors_ : KNeighborsRegressor
    n_features_in_, feature_names_in_ : int, ndarray

    Examples
    --------
    >>> from twofold.neighbors import DistanceWeightedKNNRegressor
    >>> model = DistanceWeightedKNNRegressor(None).fit([[0.0], [3.0]], [0.0, 5.0])
    >>> model.predict([[1.0], [3.0]]).tolist()
    [1.0, 5.0]
    """

    def fit(self, X: Any, y: Any) -> Self:
        """Keep the rows X (n_samples, n_features) and their targets y (n_samples, [n_outputs])."""
        if y is not None and np.asarray(y).dtype.kind in "US":
            raise ValueError(
                "A regressor needs targets that are numbers; got strings, such as "
                f"{str(np.asarray(y).flat[0])!r}. For classes use DistanceWeightedKNNClassifier."
            )
        rows, y = training_rows(self, X, y, multi_output=True, y_numeric=True)
        self.neighbors_ = self._neighbors(KNeighborsRegressor, len(rows)).fit(rows, y)
        return self

    def predict(self, X: Any) -> FloatArray:
        """Return the weighted means (n_samples, [n_outputs]) of the nearest rows' targets."""
        return self._ask("predict", X)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = True
        return tags


class DistanceWeightedKNNClassifier(ClassifierMixin, _DistanceWeighted):
    """Vote of the nearest rows, weighted by inverse squared distance.

    Parameters
    ----------
    n_neighbors, p, n_jobs : default=5, 2.0, -1
        As for :class:`DistanceWeightedKNNRegressor`.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
    neighbors_ : KNeighborsClassifier
    n_features_in_, feature_names_in_ : int, ndarray

    Examples
    --------
    >>> from twofold.neighbors import DistanceWeightedKNNClassifier
    >>> model = DistanceWeightedKNNClassifier(3).fit([[0.0], [3.0], [4.0]], ["a", "b", "b"])
    >>> model.predict([[1.0], [3.5]]).tolist()
    ['a', 'b']
    """

    def fit(self, X: Any, y: Any) -> Self:
        """Keep the rows X (n_samples, n_features) and their labels y (n_samples,)."""
        rows, y = training_rows(self, X, y)
        check_classification_targets(y)
        self.neighbors_ = self._neighbors(KNeighborsClassifier, len(rows)).fit(rows, y)
        self.classes_ = self.neighbors_.classes_
        return self

    def predict_proba(self, X: Any) -> FloatArray:
        """Return the share of the votes (n_samples, n_classes) that each class has."""
        return self._ask("predict_proba", X)

    def predict(self, X: Any) -> npt.NDArray[Any]:
        """Return the class (n_samples,) with most votes; the smallest one wins a tie."""
        best = self.predict_proba(X).argmax(axis=1)
        return self.classes_[best]
