"""Odd rows of a table: unlikely under all rows, under those around them, far from any or lonelier.

Five numbers say how odd a row is, all from rows that are trusted:

- the negative log density under one Gaussian of them (:mod:`twofold.noise.factor_model`);
- that under the Gaussian of the k nearest of them (:mod:`twofold.noise.local_gaussians`), the
  manifold's tangent there with the spread across it;
- the log of the mean distance to the five nearest of them;
- twice, among the 20 and the 40 nearest, the log of the local outlier factor (Breunig et al. 2000):
  how much sparser it is around the row than around its neighbours.

Each is counted from its median among trusted rows in distances between their quartiles, no less
than -1, and added up. At first all rows are trusted, then the four fifths that are least odd, then
also others that lie no farther above the upper quartile than one and a half distances between the
quartiles (Tukey's fence): odd rows do not teach what is usual, and a table without any does not
lose its border. Densities of rows with gaps are those of their observed entries, times columns over
their number.
"""

from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, OutlierMixin
from sklearn.utils.validation import check_is_fitted

from twofold.array_types import BoolArray, FloatArray, IntArray
from twofold.checks.parameters import check_count, is_number
from twofold.checks.rows import check_missing, validate_rows
from twofold.contract.distinct_rows import RowIndex
from twofold.engine.threads import single_threaded_blas
from twofold.noise import LocalGaussians, condition, fit_factors

TRUSTED_SHARE, FENCE = 0.8, 1.5
# A neighbourhood is at most this share of the trusted rows.
LARGEST_SHARE = 0.3
NEAREST = 5
# Numbers of neighbours that a row is compared with in how sparse it is around them.
COMPARED = (20, 40)
# Rows beyond these are compared with this many, drawn by their hash.
MOST_TRUSTED = 10_000
ROWS_AT_A_TIME = 256


@dataclass(frozen=True)
class Sparseness:
    """How sparse it is around trusted rows: mean reach ``values`` (n,) to their k neighbours.

    A row reaches a neighbour at their distance, or at that of the neighbour's own k-th one
    (``radii`` (n,)), if that is farther.
    """

    k: int
    smallest: float
    radii: FloatArray
    values: FloatArray

    def mean_reach(self, distances: FloatArray, neighbors: IntArray) -> FloatArray:
        """Return the mean reach (m,) of rows to neighbours, of which the first k count."""
        radii = self.radii[neighbors[:, : self.k]]
        return np.asarray(np.maximum(distances[:, : self.k], radii).mean(axis=1) + self.smallest)


class ManifoldOutlierDetector(OutlierMixin, BaseEstimator):
    """Find rows off the manifold of a table, even in the table it learns from.

    Parameters
    ----------
    n_neighbors : int, default=60
        Size of the neighbourhood that a row is compared with; at most 30 % of the rows.
    contamination : float, default=0.05
        Share of the training rows that :meth:`predict` calls odd.

    Attributes
    ----------
    trusted_ : ndarray of bool of shape (n_samples,)
        Training rows from which the detector learnt what is usual.
    offset_ : float
        Score below which a row is odd.
    n_features_in_, feature_names_in_ : int, ndarray
        As in scikit-learn.

    Examples
    --------
    >>> import numpy as np
    >>> from twofold import ManifoldOutlierDetector
    >>> circle = np.random.default_rng(0).normal(size=(200, 2))
    >>> circle /= np.linalg.norm(circle, axis=1)[:, None]
    >>> detector = ManifoldOutlierDetector().fit(circle)
    >>> detector.predict([[0.0, 0.0], [1.0, 0.0]])
    array([-1,  1])
    """

    def __init__(self, *, n_neighbors: int = 60, contamination: float = 0.05) -> None:
        self.n_neighbors = n_neighbors
        self.contamination = contamination

    def fit(self, X: Any, y: Any = None) -> Self:
        """Learn what is usual from ``X`` (n_samples, n_features); NaN is missing, y is ignored."""
        self._check_parameters()
        Y = validate_rows(self, X, reset=True)
        check_missing(Y, getattr(self, "feature_names_in_", None))
        Y = Y.astype(np.float64)
        self.center_ = np.nanmean(Y, axis=0)
        deviation = np.nanstd(Y, axis=0)
        self.spread_ = np.where(deviation > np.finfo(np.float64).tiny, deviation, 1)
        Z = (Y - self.center_) / self.spread_
        with single_threaded_blas():
            odd = self._learn(Z, np.ones(len(Z), dtype=bool))
            self.trusted_ = _least(odd, max(2, round(TRUSTED_SHARE * len(Z))))
            odd = self._learn(Z, self.trusted_)
            low, high = np.quantile(odd, [0.25, 0.75])
            self.trusted_ |= odd <= high + FENCE * (high - low)
            odd = self._learn(Z, self.trusted_)
        self.offset_ = -float(np.quantile(odd, 1 - self.contamination))
        return self

    def score_samples(self, X: Any) -> FloatArray:
        """Return how usual rows ``X`` (n_samples, n_features) are, (n_samples,); low is odd."""
        check_is_fitted(self)
        Y = validate_rows(self, X, reset=False)
        check_missing(Y, columns=False)
        Z = (Y.astype(np.float64) - self.center_) / self.spread_
        with single_threaded_blas():
            # A trusted row is compared with the others, as it was when the fence was set.
            return -self._oddness(Z, self._index.find(Z))

    def decision_function(self, X: Any) -> FloatArray:
        """Return :meth:`score_samples` of ``X`` less ``offset_``: negative is odd."""
        return self.score_samples(X) - self.offset_

    def predict(self, X: Any) -> IntArray:
        """Return -1 for odd rows of ``X`` (n_samples, n_features) and 1 for others."""
        return np.where(self.decision_function(X) < 0, -1, 1)

    def _check_parameters(self) -> None:
        check_count("n_neighbors", self.n_neighbors, 1)
        share = self.contamination
        if not is_number(share) or not 0 < share <= 0.5:
            raise ValueError(
                f"`contamination` must be a number above 0 and up to 0.5; got {share!r}."
            )

    def _learn(self, Z: FloatArray, trusted: BoolArray) -> FloatArray:
        """Learn from trusted rows, and return how odd all rows Z (n, D) are."""
        rows = Z[trusted]
        if len(rows) > MOST_TRUSTED:
            rows = rows[RowIndex(rows).order[:MOST_TRUSTED]]
        self._gaussian = fit_factors(rows)
        self._index = RowIndex(rows)
        found = condition(rows, self._gaussian.repeated(len(rows)))
        gaps = np.isnan(rows)
        filled, doubt = np.where(gaps, found.means, rows), np.where(gaps, found.variances, 0)
        self._around = LocalGaussians(filled, doubt, filled, self._gaussian, doubt.sum(axis=1))
        self._quartiles = np.tile([[0.0], [1.0]], (1, 3 + len(COMPARED)))
        self._sparse = self._sparseness(filled)
        usual = self._numbers(rows, np.arange(len(rows)))
        low, middle, high = np.quantile(usual, [0.25, 0.5, 0.75], axis=0)
        # Numbers of which most are equal have no quartiles apart; they count in ones.
        self._quartiles = np.stack([middle, np.where(high > low, high - low, 1)])
        return self._oddness(Z, self._index.find(Z))

    def _oddness(self, Z: FloatArray, own: IntArray) -> FloatArray:
        middle, width = self._quartiles
        counted = (self._numbers(Z, own) - middle) / width
        # The centre of a ring is as usual as can be for one Gaussian: that must not outweigh more.
        return np.asarray(np.maximum(counted, -1).sum(axis=1))

    def _numbers(self, Z: FloatArray, own: IntArray) -> FloatArray:
        """Return the numbers (m, 5) of rows; ``own`` are those of trusted rows, else -1."""
        parts = [slice(i, i + ROWS_AT_A_TIME) for i in range(0, len(Z), ROWS_AT_A_TIME)]
        return np.concatenate([self._numbers_of(Z[part], own[part]) for part in parts])

    def _numbers_of(self, Z: FloatArray, own: IntArray) -> FloatArray:
        whole = condition(Z, self._gaussian.repeated(len(Z)))
        places = np.where(np.isnan(Z), whole.means, Z)
        k = max(1, min(self.n_neighbors, int(LARGEST_SHARE * len(self._around.rows))))
        neighbors = self._around.neighbors(places, k, own)
        weights = self._around.weights(places, neighbors)
        local = condition(Z, self._around.around(neighbors, weights))
        distances = self._distances(places, neighbors)
        distance = distances[:, :NEAREST].mean(axis=1)
        share = Z.shape[1] / (~np.isnan(Z)).sum(axis=1)
        # Rows that are there already are at no distance, of which there is no log.
        far = np.log(distance + self._smallest())
        factors = [
            np.log(around.mean_reach(distances, neighbors))
            - np.log(around.values[neighbors[:, : around.k]]).mean(axis=1)
            for around in self._sparse
        ]
        return np.column_stack(
            [-share * whole.log_density, -share * local.log_density, far, *factors]
        )

    def _distances(self, places: FloatArray, neighbors: IntArray) -> FloatArray:
        """Return distances (m, k) from places to trusted rows."""
        most = max(COMPARED)
        gaps = self._around.rows[neighbors[:, :most]] - places[:, None]
        return np.asarray(np.sqrt(np.einsum("mkd,mkd->mk", gaps, gaps)))

    def _smallest(self) -> float:
        """Return a distance that rows that are equal have."""
        return 1e-6 * float(np.sqrt(self._around.rows.shape[1]))

    def _sparseness(self, rows: FloatArray) -> "list[Sparseness]":
        """Return how sparse it is around each trusted row, for each number of neighbours."""
        most = max(1, min(max(COMPARED), len(rows) - 2))
        parts = [slice(i, i + ROWS_AT_A_TIME) for i in range(0, len(rows), ROWS_AT_A_TIME)]
        numbers = np.arange(len(rows))
        near = np.concatenate(
            [self._around.neighbors(rows[part], most, numbers[part]) for part in parts]
        )
        far = np.concatenate([self._distances(rows[part], near[part]) for part in parts])
        found = []
        for k in (min(k, far.shape[1]) for k in COMPARED):
            start = Sparseness(k, self._smallest(), far[:, k - 1], np.empty(0))
            found.append(replace(start, values=start.mean_reach(far, near)))
        return found

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        return tags


def _least(values: FloatArray, count: int) -> BoolArray:
    """Return which are the ``count`` least of values (n,)."""
    chosen = np.zeros(len(values), dtype=bool)
    chosen[np.argsort(values, kind="stable")[:count]] = True
    return chosen
