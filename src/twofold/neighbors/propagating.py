"""Propagating nearest neighbour: labels spread from row to nearest row.

Of all pairs of an unlabelled and a labelled row the nearest is taken, and the label passed on; the
row that has it now passes it on as well (Kramer 2013, eq. 2.15):

    (u*, l*) = argmin_{u unlabelled, l labelled} ||x_u - x_l||²,    label of u* = label of l*,

until every row has a label. New rows have the label of the nearest row. For every unlabelled row
the nearest labelled one is kept and compared with each row that is newly labelled, as in Prim's
algorithm; u unlabelled and l labelled rows of D entries take O(u (u + l) D) steps.
"""

from typing import Any, Self

import numpy as np
import numpy.typing as npt
from scipy.spatial.distance import cdist
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.neighbors import KNeighborsClassifier
from sklearn.utils.multiclass import check_classification_targets

from twofold.array_types import BoolArray, FloatArray, IntArray
from twofold.compiled import compiled, square
from twofold.engine.threads import count_threads
from twofold.process_settings import same_warnings_after, warn
from twofold.rowwise import blocks
from twofold.unn.rows import new_rows, training_rows

Labels = npt.NDArray[Any]


class PropagatingNearestNeighbor(ClassifierMixin, BaseEstimator):
    """A nearest-neighbour classifier that also learns from unlabelled rows.

    Rows without a label are marked by -1, as in :mod:`sklearn.semi_supervised`, or by None or NaN.

    Parameters
    ----------
    n_jobs : int or None, default=-1
        As in scikit-learn; for new rows.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
    transduction_ : ndarray of shape (n_samples,)
        The labels of all rows, those found included.
    order_ : ndarray of shape (n_unlabelled,)
        The rows that had no label, in the order in which they got one.
    neighbors_ : KNeighborsClassifier
        One neighbour, of all rows.
    n_features_in_, feature_names_in_ : int, ndarray

    Examples
    --------
    >>> from twofold.neighbors import PropagatingNearestNeighbor
    >>> X = [[0.0], [1.0], [2.0], [3.0], [4.5]]
    >>> PropagatingNearestNeighbor().fit(X, [0, -1, -1, -1, 1]).transduction_.tolist()
    [0, 0, 0, 0, 1]
    """

    def __init__(self, *, n_jobs: int | None = -1) -> None:
        self.n_jobs = n_jobs

    def fit(self, X: Any, y: Any) -> Self:
        """Spread the labels y (n_samples,) over all rows X (n_samples, n_features)."""
        labels, unlabelled = _read_labels(y)
        Y, codes = training_rows(self, X, labels)
        check_classification_targets(codes[~unlabelled])
        self.classes_, found = np.unique(codes[~unlabelled], return_inverse=True)
        numbers = np.full(len(Y), -1)
        numbers[~unlabelled] = found
        self.order_ = _spread(Y.astype(np.float64), numbers)
        self.transduction_ = self.classes_[numbers]
        count_threads(self.n_jobs)
        self.neighbors_ = KNeighborsClassifier(1, n_jobs=self.n_jobs).fit(Y, self.transduction_)
        return self

    def predict(self, X: Any) -> Labels:
        """Return the label (n_samples,) of the nearest row of the training set."""
        Y = new_rows(self, X)
        with same_warnings_after():
            return self.neighbors_.predict(Y)


def _read_labels(y: Any) -> tuple[Labels, BoolArray]:
    """Return labels with any label in place of none, and where there was none."""
    if y is None:
        raise ValueError("requires y to be passed, but the target y is None")
    labels = np.asarray(y)
    if labels.ndim == 2 and labels.shape[1] == 1:
        return labels, np.zeros(len(labels), dtype=bool)  # scikit-learn warns of the shape
    if labels.ndim != 1:
        raise ValueError(
            f"`y` must hold one label per row, shape (n_samples,); got {labels.shape}."
        )
    unlabelled = np.array([_is_none(label) for label in labels.tolist()], dtype=bool)
    if unlabelled.all() and len(labels):
        raise ValueError("No row has a label; at least one must have a label other than -1.")
    if unlabelled.any():
        known = labels[~unlabelled]
        if labels.dtype.kind in "if" and set(np.unique(labels).tolist()) == {-1, 1}:
            warn(
                "The labels are -1 and 1, and -1 marks rows without a label: only class 1 is left. "
                "If -1 is a class, give it another name, for example 0."
            )
        filled = np.empty(len(labels), dtype=np.array(known.tolist()).dtype)
        filled[~unlabelled], filled[unlabelled] = known, known[0]
        labels = filled
    return labels, unlabelled


def _is_none(label: Any) -> bool:
    is_number = isinstance(label, int | float) and not isinstance(label, bool)
    return label is None or (is_number and (label == -1 or label != label))


def _spread(Y: FloatArray, numbers: IntArray) -> IntArray:
    """Give every row of Y (n, D) numbered -1 the number of the row that reaches it first."""
    labelled, left = np.flatnonzero(numbers >= 0), np.flatnonzero(numbers < 0)
    if len(left) == 0:
        return left
    nearest, sq_dists = np.empty(len(left), dtype=np.int64), np.empty(len(left))
    for part in blocks(len(left), len(labelled)):
        table = cdist(Y[left[part]], Y[labelled], "sqeuclidean")
        nearest[part] = labelled[table.argmin(axis=1)]
        sq_dists[part] = table.min(axis=1)
    return _spread_on(np.ascontiguousarray(Y), numbers, left, nearest, sq_dists)


@compiled
def _spread_on(
    Y: FloatArray, numbers: IntArray, left: IntArray, nearest: IntArray, sq_dists: FloatArray
) -> IntArray:
    """Set the numbers of the rows that are left; return them in the order of that."""
    order = np.empty(len(left), dtype=np.int64)
    for step in range(len(left)):
        chosen, best = -1, np.inf
        for u in range(len(left)):
            if numbers[left[u]] < 0 and (chosen < 0 or sq_dists[u] < best):
                chosen, best = u, sq_dists[u]
        row = left[chosen]
        numbers[row] = numbers[nearest[chosen]]
        order[step] = row
        for u in range(len(left)):
            if numbers[left[u]] < 0:
                sq_dist = 0.0
                for d in range(Y.shape[1]):
                    sq_dist += square(Y[left[u], d] - Y[row, d])
                if sq_dist < sq_dists[u]:
                    nearest[u], sq_dists[u] = row, sq_dist
    return order
