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
lose its border. Rows that lie together, far from all others, are each other's neighbours and would
seem usual: clumps of up to a fifth of the rows with emptiness around them are not trusted either.
Densities of rows with gaps are those of their observed entries, times columns over
their number.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
from scipy.sparse import csr_matrix
from scipy.sparse.csgraph import connected_components
from sklearn.base import BaseEstimator, OutlierMixin
from sklearn.utils.validation import check_is_fitted

from twofold.array_types import BoolArray, FloatArray, IntArray
from twofold.checks.parameters import check_count, is_number
from twofold.checks.rows import check_missing, validate_rows
from twofold.contract.distinct_rows import RowIndex
from twofold.engine.threads import single_threaded_blas
from twofold.neighborhoods.nearest import FARTHEST, RowSearch
from twofold.noise import Conditional, LocalGaussians, condition, fit_factors
from twofold.rowwise import center_and_spread

TRUSTED_SHARE, FENCE = 0.8, 1.5
# A neighbourhood is at most this share of the trusted rows.
LARGEST_SHARE = 0.3
NEAREST = 5
# A clump is farther from other rows than so many times what this share of rows has to go for five.
GAP, NEARLY_ALL = 3.0, 0.95
# Numbers of neighbours that a row is compared with in how sparse it is around them.
COMPARED = (20, 40)
# Of more rows than these, so many, drawn by their hash, tell what is usual.
MOST_ROWS = 10_000
ROWS_AT_A_TIME = 256
INSTEAD = "In tables of categories and dates `Mixed().fit(table).p_values(table)` finds odd rows."


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
        Y = validate_rows(self, X, reset=True, instead=INSTEAD)
        check_missing(Y, getattr(self, "feature_names_in_", None))
        self.center_, self.spread_ = center_and_spread("standard", Y, np.ones(len(Y)))
        Z = self._scaled(Y)
        some = RowIndex(Z).order[:MOST_ROWS] if len(Z) > MOST_ROWS else np.arange(len(Z))
        self.trusted_ = np.zeros(len(Z), dtype=bool)
        with single_threaded_blas():
            self.trusted_[some] = self._learn_by_turns(Z[some])
            odd = self._oddness(Z)
        self.offset_ = -float(np.quantile(odd, 1 - self.contamination))
        return self

    def score_samples(self, X: Any) -> FloatArray:
        """Return how usual rows ``X`` (n_samples, n_features) are, (n_samples,); low is odd."""
        check_is_fitted(self)
        Y = validate_rows(self, X, reset=False)
        check_missing(Y, columns=False)
        with single_threaded_blas():
            return -self._oddness(self._scaled(Y))

    def decision_function(self, X: Any) -> FloatArray:
        """Return :meth:`score_samples` of ``X`` less ``offset_``: negative is odd."""
        return self.score_samples(X) - self.offset_

    def predict(self, X: Any) -> IntArray:
        """Return -1 for odd rows of ``X`` (n_samples, n_features) and 1 for others."""
        return np.where(self.decision_function(X) < 0, -1, 1)

    def _scaled(self, Y: FloatArray) -> FloatArray:
        with np.errstate(over="ignore"):
            Z = (Y.astype(np.float64) - self.center_) / self.spread_
        return np.asarray(np.clip(Z, -FARTHEST, FARTHEST))

    def _check_parameters(self) -> None:
        check_count("n_neighbors", self.n_neighbors, 1)
        share = self.contamination
        if not is_number(share) or not 0 < share <= 0.5:
            raise ValueError(
                f"`contamination` must be a number above 0 and up to 0.5; got {share!r}."
            )

    # ---- learning -----------------------------------------------------------------------------

    def _learn_by_turns(self, Z: FloatArray) -> BoolArray:
        """Learn from rows Z (n, D) that are usual among themselves; return which these are."""
        self._learn(Z)
        apart = self._lies_apart()[self._index.find(Z)]
        odd = np.where(apart, np.inf, self._oddness(Z))
        trusted = _least(odd, min(max(2, round(TRUSTED_SHARE * len(Z))), int((~apart).sum())))
        # Of a few rows with gaps these may tell nothing of a column: then the others do.
        untold = np.isnan(Z[trusted]).all(axis=0)
        trusted |= ~np.isnan(Z[:, untold]).all(axis=1)
        self._learn(Z[trusted])
        odd = self._oddness(Z)
        low, high = np.quantile(odd, [0.25, 0.75])
        trusted |= odd <= high + FENCE * (high - low)
        self._learn(Z[trusted])
        return trusted

    def _lies_apart(self) -> BoolArray:
        """Return which of the rows learnt from lie in a clump with emptiness around it.

        Rows are linked with their nearest ones, if these are no farther than GAP times what nearly
        all rows have to go. The largest parts that hang together hold most of the rows; others, at
        most a fifth of the rows, are clumps if no other row is nearer to them than that.
        """
        rows = self._around.rows
        near = self._near(rows, np.arange(len(rows)))[:, : max(COMPARED)]
        far = self._distances(rows, near)
        longest = GAP * float(np.quantile(far[:, :NEAREST][:, -1], NEARLY_ALL))
        apart = np.zeros(len(rows), dtype=bool)
        if longest == 0:  # most rows are equal to others, which makes no clump of the rest
            return apart
        source, k = np.nonzero(far[:, :NEAREST] <= longest)
        links = csr_matrix((np.ones(len(k)), (source, near[source, k])), (len(rows), len(rows)))
        part = connected_components(links, directed=False)[1]
        sizes = np.bincount(part)
        order = np.argsort(-sizes, kind="stable")
        before = np.cumsum(sizes[order]) - sizes[order]
        outside = np.where(part[near] != part[:, None], far, np.inf).min(axis=1)
        for clump in order[before >= TRUSTED_SHARE * len(rows)]:
            inside = part == clump
            if sizes[clump] > near.shape[1]:  # others may be beyond all neighbours
                others = rows[~inside]
                nearest = RowSearch(others).nearest(rows[inside], 1)[:, 0]
                outside[inside] = np.linalg.norm(others[nearest] - rows[inside], axis=1)
            apart[inside] = outside[inside].min() > longest
        return apart

    def _learn(self, rows: FloatArray) -> None:
        """Learn from trusted rows (n, D)."""
        self._gaussian = fit_factors(rows)
        self._index = RowIndex(rows)
        whole = self._gaussian.condition(rows)
        gaps = np.isnan(rows)
        filled, doubt = np.where(gaps, whole.means, rows), np.where(gaps, whole.variances, 0)
        self._around = LocalGaussians(filled, doubt, filled, self._gaussian, doubt.sum(axis=1))
        self._k = max(1, min(self.n_neighbors, int(LARGEST_SHARE * len(rows))))
        near = self._near(filled, np.arange(len(rows)))
        self._sparse = self._sparseness(filled, near)
        usual = self._numbers_of(rows, whole, filled, near)
        low, middle, high = np.quantile(usual, [0.25, 0.5, 0.75], axis=0)
        # Numbers of which most are equal have no quartiles apart; they count in ones.
        self._quartiles = np.stack([middle, np.where(high > low, high - low, 1)])
        # No row tells of itself: what is said of a trusted row stays as it is said here.
        self._odd = self._counted(usual)

    def _sparseness(self, rows: FloatArray, near: IntArray) -> "list[Sparseness]":
        """Return how sparse it is around each trusted row, for each number of neighbours."""
        far = self._distances(rows, near)
        found = []
        for k in (min(k, far.shape[1]) for k in COMPARED):
            start = Sparseness(k, self._smallest(), far[:, k - 1], np.empty(0))
            found.append(replace(start, values=start.mean_reach(far, near)))
        return found

    # ---- how odd rows are ---------------------------------------------------------------------

    def _oddness(self, Z: FloatArray) -> FloatArray:
        """Return how odd rows (m, D) are; trusted ones among the others."""
        own = self._index.find(Z)
        odd = self._odd[own]
        for new in _blocks(np.flatnonzero(own < 0)):
            odd[new] = self._counted(self._numbers(Z[new]))
        return np.asarray(odd)

    def _counted(self, numbers: FloatArray) -> FloatArray:
        middle, width = self._quartiles
        # The centre of a ring is as usual as can be for one Gaussian: that must not outweigh more.
        return np.asarray(np.maximum((numbers - middle) / width, -1).sum(axis=1))

    def _numbers(self, Z: FloatArray) -> FloatArray:
        """Return the numbers (m, 5) of rows that are not trusted."""
        whole = self._gaussian.condition(Z)
        places = np.where(np.isnan(Z), whole.means, Z)
        return self._numbers_of(Z, whole, places, self._near(places, None))

    def _near(self, places: FloatArray, own: IntArray | None) -> IntArray:
        """Return the nearest trusted rows of places, as many as are looked at."""
        most = min(max(self._k, *COMPARED), len(self._around.rows) - 2)
        return self._around.neighbors(places, max(1, most), own)

    def _numbers_of(
        self, Z: FloatArray, whole: Conditional, places: FloatArray, near: IntArray
    ) -> FloatArray:
        """Return the numbers (m, 5) of rows at places whose nearest trusted rows are known."""
        distances = self._distances(places, near)
        # Rows that are there already are at no distance, of which there is no log.
        far = np.log(distances[:, :NEAREST].mean(axis=1) + self._smallest())
        factors = [
            np.log(around.mean_reach(distances, near))
            - np.log(around.values[near[:, : around.k]]).mean(axis=1)
            for around in self._sparse
        ]
        share = Z.shape[1] / (~np.isnan(Z)).sum(axis=1)
        densities = [whole.log_density, self._local_log_density(Z, places, near)]
        return np.column_stack([*(-share * density for density in densities), far, *factors])

    def _local_log_density(self, Z: FloatArray, places: FloatArray, near: IntArray) -> FloatArray:
        found = np.empty(len(Z))
        for part in _blocks(np.arange(len(Z))):
            neighbors = near[part, : self._k + 1]
            weights = self._around.weights(places[part], neighbors)
            found[part] = condition(Z[part], self._around.around(neighbors, weights)).log_density
        return found

    def _distances(self, places: FloatArray, near: IntArray) -> FloatArray:
        """Return distances (m, k) from places to trusted rows."""
        near = near[:, : max(COMPARED)]
        found = np.empty(near.shape)
        for part in _blocks(np.arange(len(places))):
            gaps = self._around.rows[near[part]] - places[part, None]
            found[part] = np.sqrt(np.einsum("mkd,mkd->mk", gaps, gaps))
        return found

    def _smallest(self) -> float:
        """Return a distance that rows that are equal have."""
        return 1e-6 * float(np.sqrt(self._around.rows.shape[1]))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        return tags


def _least(values: FloatArray, count: int) -> BoolArray:
    """Return which are the ``count`` least of values (n,)."""
    chosen = np.zeros(len(values), dtype=bool)
    chosen[np.argsort(values, kind="stable")[:count]] = True
    return chosen


def _blocks(numbers: IntArray) -> Iterator[IntArray]:
    for i in range(0, len(numbers), ROWS_AT_A_TIME):
        yield numbers[i : i + ROWS_AT_A_TIME]
