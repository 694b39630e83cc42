"""Constructive K-means: the number of clusters follows from how far a row may lie from its centre.

Algorithm 11 of Kramer 2013, one pass over the rows in the order in which they come:

    c* = the nearest centre of y;   if ||y - c*|| > zeta, a new centre opens at y,
    else y joins it and c* moves to the mean of its rows, c* += (y - c*) / n*.

The number of clusters depends on the order: the digits 0 to 5 of scikit-learn (1,083 rows) make 6
clusters in their own order with zeta = 43, and from 4 to 9 in twenty others. ``order="farthest"``
takes the order out. It starts from one centre, the mean of all rows; as long as a row lies farther
than zeta from its centre, a new one opens at the row that is farthest, and K-means settles all of
them. Between shuffled digits the adjusted Rand index is then 1.0, that of the one pass 0.5.

``threshold="auto"`` follows that path of 1, 2, 3, … clusters and takes the zeta at which it would
stop at the clearest clusters, those with the largest mean silhouette of distances to centres,

    s = (b - a) / b,    a the distance to the nearest centre, b to the second nearest.

Any cloud can be cut to pieces, and s of the pieces is not small. So the same path is followed for
clouds of one piece: normal and uniform ones, as long along their principal axes as the data. Of
each number of clusters the best s of these clouds is what no clusters reach. Clusters count only
if their 1 - s is below ``CLEARLY`` times that of the clouds and none of them is a single row;
without such a number there is one cluster. With 0.77 clear blobs, iris (two) and the digits 0 to 5
(seven) have clusters, and one sheet, wine, and all ten digits, which lie closer together, do not.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple, Self

import numpy as np
from sklearn.base import BaseEstimator, ClusterMixin
from sklearn.cluster import KMeans
from sklearn.metrics import pairwise_distances_argmin_min
from sklearn.metrics.pairwise import euclidean_distances

from twofold.array_types import FloatArray, IntArray
from twofold.checks.parameters import check_choice, is_number
from twofold.checks.rows import checked_weights
from twofold.compiled import compiled, square
from twofold.engine.threads import single_threaded
from twofold.rowwise import blocks
from twofold.small_systems import assign
from twofold.unn.rows import new_rows, training_rows

ORDERS = ("farthest", "given")
# "auto" looks at no more clusters than this.
MOST_AUTO_CLUSTERS = 30
# 1 - silhouette of clusters is below so much of that of clouds without any.
CLEARLY = 0.77
CLOUD_DRAWS = 2
# Clusters that "auto" chose have to be found once more, whatever the rounding.
SLACK = 1 + 1e-9
MOST_CLOUD_ROWS = 2_000
# Of many clusters one in this many may open at a time, so that thousands open in a hundred rounds.
CLUSTERS_PER_OPENING = 8
SETTLING_STEPS = 20


class ConstructiveKMeans(ClusterMixin, BaseEstimator):
    """K-means that finds the number of clusters from a distance threshold.

    Parameters
    ----------
    threshold : "auto" or float, default="auto"
        Distance zeta from its centre beyond which a row opens a cluster of its own; "auto" takes
        the one that makes the clearest clusters, and one cluster of all rows where none are clear:
        where the silhouettes of distances to centres are hardly better than in a normal or uniform
        cloud. With order "given" the one pass may still leave single rows.
    order : {"farthest", "given"}, default="farthest"
        In which order rows open clusters: always the farthest, which does not depend on how the
        rows are sorted, or in one pass as they are given, which is the method of the book.

    Attributes
    ----------
    cluster_centers_ : ndarray of shape (n_clusters, n_features)
        Means of the rows of each cluster, in the order in which the clusters opened.
    labels_ : ndarray of shape (n_samples,)
        The cluster that each row joined; after ``partial_fit`` of the rows of that call. A row
        that joined in the one pass may lie nearer to another centre at its end.
    counts_ : ndarray of shape (n_clusters,)
        Sum of the weights of the rows of each cluster.
    threshold_ : float
        Zeta.
    n_features_in_, feature_names_in_ : int, ndarray

    References
    ----------
    O. Kramer, Dimensionality Reduction with Unsupervised Nearest Neighbors, Springer, 2013,
    section 7.5. The order by farthest rows is akin to B. Kulis and M. I. Jordan, Revisiting
    k-means: new algorithms via Bayesian nonparametrics, ICML 2012.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from twofold.unn.constructive_k_means import ConstructiveKMeans
    >>> Y = load_digits(n_class=6).data
    >>> len(ConstructiveKMeans(43, order="given").fit(Y).cluster_centers_)
    6
    """

    def __init__(self, threshold: str | float = "auto", *, order: str = "farthest") -> None:
        self.threshold = threshold
        self.order = order

    def fit(self, X: Any, y: None = None, sample_weight: Any = None) -> Self:
        """Find the clusters of rows X (n_samples, n_features).

        ``sample_weight`` (n_samples,) says how much each row counts in the means; a row of weight 0
        takes no part.
        """
        self._check_parameters()
        Y = training_rows(self, X)
        weights = checked_weights(sample_weight, Y)
        rows, counted = Y[weights > 0].astype(np.float64, order="C"), weights[weights > 0]
        # Far from 0, inner products lose the digits that tell rows apart.
        middle = np.average(rows, axis=0, weights=counted)
        rows = rows - middle
        with single_threaded():  # sums in an order that no number of threads changes
            is_auto = self.threshold == "auto"
            zeta = _clearest_threshold(rows, counted) if is_auto else float(self.threshold)
            if self.order == "given":
                nothing = np.empty((0, Y.shape[1])), np.empty(0)
                grown = _Clusters(*_one_pass(rows, counted, *nothing, zeta))
            else:
                for clusters, gaps in _farthest_path(rows, counted, zeta):
                    grown = clusters
                    if gaps.max() <= zeta:
                        break  # or there are as many clusters as distinct rows
        self.threshold_ = zeta
        self._keep(grown._replace(centers=grown.centers + middle), Y, weights)
        return self

    def partial_fit(self, X: Any, y: None = None, sample_weight: Any = None) -> Self:
        """Take in new rows in the order in which they are given, by one pass.

        The threshold stays that of the first call, with "auto" too: pass enough rows to it, or a
        threshold. Arguments are those of :meth:`fit`.
        """
        if not hasattr(self, "cluster_centers_"):
            return self.fit(X, sample_weight=sample_weight)
        Y = new_rows(self, X)
        weights = checked_weights(sample_weight, Y)
        rows = Y[weights > 0].astype(np.float64, order="C")
        centers = self.cluster_centers_.astype(np.float64)
        grown = _one_pass(rows, weights[weights > 0], centers, self.counts_, self.threshold_)
        self._keep(_Clusters(*grown), Y, weights)
        return self

    def predict(self, X: Any) -> IntArray:
        """Return the number (n_samples,) of the nearest centre of each row."""
        return _nearest(new_rows(self, X), self.cluster_centers_)[0]

    def _keep(self, clusters: _Clusters, Y: FloatArray, weights: FloatArray) -> None:
        self.cluster_centers_ = clusters.centers.astype(Y.dtype)
        self.counts_ = clusters.counts
        self.labels_ = np.empty(len(Y), dtype=np.int64)
        self.labels_[weights > 0] = clusters.labels
        if (weights == 0).any():
            self.labels_[weights == 0] = _nearest(Y[weights == 0], self.cluster_centers_)[0]

    def _check_parameters(self) -> None:
        zeta = self.threshold
        is_distance = is_number(zeta) and 0 < float(zeta) < np.inf
        if not is_distance and not (isinstance(zeta, str) and zeta == "auto"):
            raise ValueError(f"`threshold` must be 'auto' or a distance above 0; got {zeta!r}.")
        check_choice("order", self.order, ORDERS)


class _Clusters(NamedTuple):
    """Centres (k, D), the summed weights (k,) of their rows, and the clusters of rows (n,)."""

    centers: FloatArray
    counts: FloatArray
    labels: IntArray


@compiled
def _one_pass(
    Y: FloatArray, weights: FloatArray, centers: FloatArray, counts: FloatArray, zeta: float
) -> tuple[FloatArray, FloatArray, IntArray]:
    """Return centres, counts and labels after rows Y came one by one."""
    n, D = Y.shape
    k = len(centers)
    C, total = np.empty((k + n, D)), np.empty(k + n)  # room for a cluster of each row
    assign(total, counts)
    for j in range(k):
        assign(C[j], centers[j])
    labels = np.empty(n, dtype=np.int64)
    for i in range(n):
        nearest, best = -1, np.inf
        for j in range(k):
            sq_dist = 0.0
            for d in range(D):
                sq_dist += square(Y[i, d] - C[j, d])
            if sq_dist < best:
                nearest, best = j, sq_dist
        if nearest < 0 or np.sqrt(best) > zeta:
            assign(C[k], Y[i])
            total[k], labels[i] = weights[i], k
            k += 1
        else:
            # The weighted mean so far, c + w (y - c) / Σ w, without keeping the rows.
            total[nearest] += weights[i]
            share = weights[i] / total[nearest]
            for d in range(D):
                C[nearest, d] += share * (Y[i, d] - C[nearest, d])
            labels[i] = nearest
    return C[:k].copy(), total[:k].copy(), labels


def _clearest_threshold(Y: FloatArray, weights: FloatArray) -> float:
    """Return the zeta at which the path of farthest rows has the clearest clusters, if any are."""
    rows, member = np.unique(Y, axis=0, return_inverse=True)
    masses = np.bincount(member.ravel(), weights).astype(np.float64)
    levels = _levels(rows, masses)
    wanted = [level for level in levels if level.is_wanted]
    unclear = _without_clusters(rows) if wanted else {}
    # Of one cluster the widest distance, or any if all rows are equal.
    best, threshold = CLEARLY, levels[0].widest or 1.0
    for level in wanted:
        usual = unclear.get(level.n_clusters, 1.0)
        if level.overlap < best * usual:
            best, threshold = level.overlap / usual, level.widest
    return SLACK * threshold


class _Level(NamedTuple):
    """What there is to say about some number of clusters."""

    n_clusters: int
    overlap: float  # 1 - s
    widest: float  # the largest distance of a row to its centre
    is_wanted: bool  # the path would end here at that distance, and none is a single row


def _levels(Y: FloatArray, weights: FloatArray) -> list[_Level]:
    """Return the levels of the path of farthest rows, that of one cluster first."""
    levels: list[_Level] = []
    narrowest = np.inf
    for clusters, gaps in _farthest_path(Y, weights, 0.0):
        k, widest = len(clusters.centers), float(gaps.max())
        b = _second_nearest(Y, clusters.centers) if k > 1 else gaps
        overlap = float(np.average(gaps / np.where(b > 0, b, 1), weights=weights))
        smallest = np.bincount(clusters.labels, minlength=k).min()
        is_wanted = k > 1 and smallest > 1 and 0 < widest < narrowest
        levels.append(_Level(k, overlap, widest, bool(is_wanted)))
        narrowest = min(narrowest, widest)
        if k >= MOST_AUTO_CLUSTERS:
            break
    return levels


def _without_clusters(Y: FloatArray) -> dict[int, float]:
    """Return the smallest 1 - s of clouds without clusters, by the number of clusters."""
    rng = np.random.default_rng(0)  # the same clouds for everybody
    some = Y if len(Y) <= MOST_CLOUD_ROWS else rng.permutation(Y)[:MOST_CLOUD_ROWS]
    U, lengths, _ = np.linalg.svd(some - some.mean(axis=0), full_matrices=False)
    along = U * lengths
    low, high, deviation = along.min(axis=0), along.max(axis=0), along.std(axis=0)
    smallest: dict[int, float] = {}
    for _ in range(CLOUD_DRAWS):
        for cloud in (
            deviation * rng.standard_normal(along.shape),
            low + (high - low) * rng.random(along.shape),
        ):
            for level in _levels(cloud, np.ones(len(cloud))):
                known = smallest.get(level.n_clusters, 1.0)
                smallest[level.n_clusters] = min(known, level.overlap)
    return smallest


def _farthest_path(
    Y: FloatArray, weights: FloatArray, zeta: float
) -> Iterator[tuple[_Clusters, FloatArray]]:
    """Yield ever more clusters, and the distance of each row to its centre."""
    distinct = len(np.unique(Y, axis=0))
    C = np.average(Y, axis=0, weights=weights)[None]
    while True:
        k_means = KMeans(len(C), init=C, n_init=1, max_iter=SETTLING_STEPS)
        settled = k_means.fit(Y, sample_weight=weights)
        C = settled.cluster_centers_
        labels, gaps = _nearest(Y, C)
        counts: FloatArray = np.bincount(labels, weights, minlength=len(C)).astype(np.float64)
        yield _Clusters(C, counts, labels), gaps
        room = min(max(1, len(C) // CLUSTERS_PER_OPENING), distinct - len(C))
        for _ in range(room):
            farthest = int(gaps.argmax())
            if gaps[farthest] <= zeta:
                break
            C = np.concatenate([C, Y[farthest : farthest + 1]])
            gaps = np.minimum(gaps, np.linalg.norm(Y - Y[farthest], axis=1))
        if len(C) == len(settled.cluster_centers_):
            return


def _nearest(Y: FloatArray, C: FloatArray) -> tuple[IntArray, FloatArray]:
    """Return the number of the nearest centre of each row, and its distance."""
    middle = C.mean(axis=0)
    labels, _ = pairwise_distances_argmin_min(Y - middle, (C - middle).astype(Y.dtype))
    # Once more by differences: products lose the digits of rows that lie near their centre.
    return labels.astype(np.int64), np.linalg.norm(Y - C[labels], axis=1)


def _second_nearest(Y: FloatArray, C: FloatArray) -> FloatArray:
    """Return the distance of each row to its second nearest centre."""
    second = np.empty(len(Y))
    for rows in blocks(len(Y), len(C)):
        second[rows] = np.partition(euclidean_distances(Y[rows], C), 1, axis=1)[:, 1]
    return second
