"""Several manifolds side by side: clusters first, then one UNN a cluster (SL-UNN).

Algorithm 12 of Kramer 2013 lets constructive K-means say to which cluster a row belongs, and embeds
it among the rows of that cluster only. The order of the two does not matter: here all rows are
clustered, then embedded. When a cluster has reached ``selection_size`` rows, the book chooses its
kernel: the one with which these rows are embedded with the smallest reconstruction error. Errors
are those in data space, each row left out of its own neighbourhood; errors in feature spaces of
different kernels cannot be compared. The candidates are linear, quadratic, RBF with gamma = 10^-l,
0 <= l <= 8 (the book prints 10^l), and tanh with alpha = 10^-l, 1 <= l <= 6, beta = -0.01. On the
digits 0 to 5 it gains nothing over no kernel: a mean distance of 14.1 in both cases, 12.6 and 12.7
with refinement; so it is not done unless asked for.

The map. Latent points of a cluster are centred and scaled to about one point a unit of length, area
or volume; clusters stand on a lattice, as far from each other as the largest of them is wide. So a
latent place belongs to the cluster of its nearest latent point, and f is the mean of the K nearest
points of that cluster. A new row is projected onto all of them, and the nearest image wins. That is
the cluster of the nearest centre for nine in ten unseen digits; to look at that one only, as in the
book, leaves 4 % more error.

Clusters of fewer than q + 2 rows, too few for a manifold, stand in a row.
"""

from itertools import product
from typing import Any, ClassVar

import numpy as np
from sklearn.utils import check_random_state

from twofold.array_types import BoolArray, FloatArray, IntArray
from twofold.checks.parameters import check_count
from twofold.checks.rows import check_size
from twofold.contract.fitted_state import COMMON, Array, FittedState, Number, Value
from twofold.features import RBF, Linear, Polynomial, Sigmoid
from twofold.unn.constructive_k_means import ConstructiveKMeans
from twofold.unn.embedding import INTERRUPTED, repair
from twofold.unn.estimator import UNN, NeighborModel
from twofold.unn.regression import Surface
from twofold.unn.searches import Discrete, get_search

CANDIDATE_KERNELS = (
    Linear(),
    Polynomial(2),
    *(RBF(10.0**-k) for k in range(9)),
    *(Sigmoid(10.0**-k, -0.01) for k in range(1, 7)),
)


class SubmanifoldUNN(NeighborModel):
    """Clusters, each with a manifold of its own, on one map (Kramer 2013, section 7.5).

    Parameters
    ----------
    n_components : int, default=2
        Latent dimensions q.
    threshold : "auto" or float, default="auto"
        Distance from its centre beyond which a row opens a cluster, as for
        :class:`ConstructiveKMeans`.
    order : {"farthest", "given"}, default="farthest"
        Which rows open clusters first, as for :class:`ConstructiveKMeans`.
    n_neighbors : int, default=5
        Latent neighbours K whose mean is the way back.
    search : str or object, default="gaussian"
        How places are found, as for :class:`UNN`.
    data_kernel : str or object, default=None
        Measure distances in the feature space of a kernel, as for :class:`UNN`; "select" chooses
        one for each cluster as in the book: of linear, quadratic, RBF and tanh kernels the one
        that embeds ``selection_size`` of its rows with the smallest error in data space.
    selection_size : int, default=50
        Rows on which "select" compares kernels; smaller clusters get none.
    shuffle : bool, default=True
        Whether rows are embedded in a random order; with False they come in that of the table.
    refine : int or "auto", default="auto"
        Sweeps after the last row, as for :class:`UNN`; 0 for the method of the book.
    n_jobs, random_state : default=-1, None
        As for :class:`UNN`.

    Attributes
    ----------
    embedding_ : ndarray of shape (n_samples, n_components)
        Latent points of the rows passed to ``fit``, in their order.
    labels_ : ndarray of shape (n_samples,)
        The cluster of each row passed to ``fit``.
    latent_, data_, weights_, clusters_ : ndarrays
        Latent points, rows, weights and clusters of the distinct rows.
    filled_ : ndarray
        ``data_`` with its gaps filled from the nearest complete rows, where ``fit`` met gaps.
    cluster_centers_ : ndarray of shape (n_clusters, n_features)
    threshold_ : float
        The distance that opens clusters.
    kernels_ : list
        The data kernel of each cluster, None for none.
    objective_ : float
        Mean squared distance between rows and the means of their K nearest latent neighbours, each
        row left out of its own; rows that are alone in their cluster are not counted.
    n_iter_, stop_reason_, history_ : int, str, ndarray
        As for other models.
    domain_threshold_ : float
        Density that bounds the domain.
    n_features_in_, feature_names_in_ : int, ndarray

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from twofold.unn.submanifold import SubmanifoldUNN
    >>> Y = load_iris().data
    >>> model = SubmanifoldUNN(random_state=0).fit(Y)
    >>> model.embedding_.shape, len(model.cluster_centers_)
    ((150, 2), 2)
    """

    fitted_state: ClassVar[FittedState] = {
        **COMMON,
        "filled_": Array(("n", "D"), is_optional=True),
        "cluster_centers_": Array(("clusters", "D")),
        "clusters_": Array(("n",), "i", low=0, high="clusters"),
        "labels_": Array(("N",), "i", low=0, high="clusters"),
        "kernels_": Value((list,)),
        "threshold_": Number(low=0),
    }

    def __init__(
        self,
        n_components: int = 2,
        *,
        threshold: str | float = "auto",
        order: str = "farthest",
        n_neighbors: int = 5,
        search: Any = "gaussian",
        data_kernel: Any = None,
        selection_size: int = 50,
        shuffle: bool = True,
        refine: int | str = "auto",
        n_jobs: int | None = -1,
        random_state: Any = None,
    ) -> None:
        self.n_components = n_components
        self.threshold = threshold
        self.order = order
        self.n_neighbors = n_neighbors
        self.search = search
        self.data_kernel = data_kernel
        self.selection_size = selection_size
        self.shuffle = shuffle
        self.refine = refine
        self.n_jobs = n_jobs
        self.random_state = random_state

    # ---- what the contract asks for -------------------------------------------------------------

    def _fit_distinct(self, Y: FloatArray, weights: FloatArray, source: IntArray) -> FloatArray:
        self._warn_of_many_neighbors(len(Y))
        rows = Y
        if np.isnan(Y).any():
            rows = repair(Y.astype(np.float64), int(self.n_neighbors)).astype(Y.dtype)
            self.filled_ = rows
        # The order of the table, for those who want it to matter.
        arrival = np.arange(len(Y)) if self.shuffle else np.argsort(source, kind="stable")
        coming = arrival if self.order == "farthest" else np.argsort(source, kind="stable")
        clusters = ConstructiveKMeans(self.threshold, order=self.order)
        found = clusters.fit(rows[coming], sample_weight=weights[coming])
        self.threshold_ = found.threshold_
        used, labels = np.unique(found.labels_, return_inverse=True)
        self.cluster_centers_ = found.cluster_centers_[used]
        self.clusters_ = np.empty(len(Y), dtype=np.int64)
        self.clusters_[coming] = labels
        rng = check_random_state(self.random_state)
        self.kernels_: list[Any] = []
        parts: list[FloatArray] = []
        members = [arrival[self.clusters_[arrival] == code] for code in range(len(used))]
        for own in members:
            X, kernel = self._embed_cluster(rows[own], weights[own], rng.randint(2**31 - 1))
            self.kernels_.append(kernel)
            parts.append(X)
        latent: FloatArray = np.empty((len(Y), int(self.n_components)))
        for own, X in zip(members, _spread_out(parts), strict=True):
            latent[own] = X
        latent = latent.astype(Y.dtype)
        surfaces = [surface for surface in self._surfaces_of(latent) if len(surface.X) > 1]
        errors = [surface.mean_squared_error() for surface in surfaces]
        masses = [surface.rows.weights.sum() for surface in surfaces]
        self.objective_ = float(np.average(errors, weights=masses)) if surfaces else 0.0
        self.history_ = np.array([self.objective_])
        self.n_iter_ = len(Y)
        self.stop_reason_ = f"all rows embedded in {len(used)} clusters"
        return latent

    def _embed_cluster(
        self, Y: FloatArray, weights: FloatArray, seed: int
    ) -> tuple[FloatArray, Any]:
        """Return latent points of the rows of one cluster, about one a unit, and their kernel."""
        q = int(self.n_components)
        try:
            check_size(Y, q, len(Y))
        except ValueError:
            return np.eye(1, q) * np.arange(len(Y))[:, None], None
        kernel = self.data_kernel
        if kernel == "select":
            kernel = self._select_kernel(Y, weights, seed)
        model = self._template(kernel, seed)
        # A small cluster is nothing to warn of.
        model.set_params(n_neighbors=min(int(self.n_neighbors), len(Y) - 1))
        model.fit(Y, sample_weight=weights)
        if model.stop_reason_ == INTERRUPTED:
            # The cluster kept its best; who interrupts wants all of them to stop.
            raise KeyboardInterrupt
        X = model.embedding_.astype(np.float64)
        if isinstance(model.search_, Discrete):
            return X, kernel
        # m points at one a unit of volume are about m^(1/q) wide.
        deviation = np.sqrt(((X - X.mean(axis=0)) ** 2).mean())
        return X * (len(X) ** (1 / q) / deviation if deviation > 0 else 1.0), kernel

    def _select_kernel(self, Y: FloatArray, weights: FloatArray, seed: int) -> Any:
        """Return the kernel with which the first rows are embedded best, None for too few."""
        size = int(self.selection_size)
        if len(Y) < size:
            return None
        first = np.random.default_rng(seed).permutation(len(Y)) if self.shuffle else np.arange(size)
        some, share = Y[first[:size]], weights[first[:size]]
        errors = [
            self._template(kernel, seed).fit(some, sample_weight=share).objective_
            for kernel in CANDIDATE_KERNELS
        ]
        return CANDIDATE_KERNELS[int(np.argmin(errors))]

    def _template(self, kernel: Any, seed: int) -> UNN:
        names = ("n_components", "n_neighbors", "search", "shuffle", "refine", "n_jobs")
        common = {name: getattr(self, name) for name in names}
        return UNN(**common, data_kernel=kernel, random_state=seed)

    def _surfaces_of(self, X: FloatArray) -> list[Surface]:
        """Return the way back of each cluster."""
        codes = range(len(self.cluster_centers_))
        return [self._surface_of(X, self.clusters_ == code) for code in codes]

    def _embed(self, Y: FloatArray) -> None:
        super()._embed(Y)
        self.labels_ = self.clusters_[self.member_]
        left_out = self.member_ < 0
        if left_out.any():
            gaps = [np.nansum((Y[left_out] - c) ** 2, axis=1) for c in self.cluster_centers_]
            self.labels_[left_out] = np.argmin(gaps, axis=0)

    def _restore(self) -> None:
        super()._restore()
        self._surface.parts = self._surfaces_of(self.latent_)

    def _project(self, Y: FloatArray, observed: BoolArray | None) -> FloatArray:
        X: FloatArray = np.empty((len(Y), self._n_features_out), dtype=Y.dtype)
        lowest = np.full(len(Y), np.inf)
        for surface in self._surface.parts:
            places = self._project_onto(surface, Y, observed)
            gaps = np.nansum((surface.regress(places) - Y) ** 2, axis=1)
            nearer = gaps < lowest
            X[nearer], lowest[nearer] = places[nearer], gaps[nearer]
        return X

    def _regress(self, X: FloatArray) -> FloatArray:
        return self._ask_clusters("regress", X)

    def _jacobian(self, X: FloatArray) -> FloatArray:
        return self._ask_clusters("slopes", X, X.shape[1])

    def _ask_clusters(self, method: str, X: FloatArray, *shape: int) -> FloatArray:
        """Return what the cluster of its nearest latent point says of each place, (m, D, ...)."""
        whole = self._surface
        labels = self.clusters_[whole.order[whole.neighbors(X, 1)[:, 0]]]
        answers: FloatArray = np.empty((len(X), self.data_.shape[1], *shape), dtype=X.dtype)
        for code in np.unique(labels):
            here = labels == code
            answers[here] = getattr(whole.parts[code], method)(X[here])
        return answers

    def _latent_unit(self) -> FloatArray:
        n, q = self.latent_.shape
        if isinstance(get_search(self.search, q, n), Discrete):
            return np.ones(q)  # a step of the line or the lattice
        # With one point a unit a cluster of m points deviates by m^(1/q); that times Scott's rule.
        m = n / len(self.cluster_centers_)
        return np.full(q, max(1.0, m ** (1 / q - 1 / (q + 4))))

    def _check_restored(self) -> None:
        super()._check_restored()
        if len(np.unique(self.clusters_)) != len(self.cluster_centers_):
            raise ValueError("`clusters_` leaves a cluster without rows")

    def _check_parameters(self) -> None:
        ConstructiveKMeans(self.threshold, order=self.order)._check_parameters()
        selecting = isinstance(self.data_kernel, str) and self.data_kernel == "select"
        self._template(None if selecting else self.data_kernel, 0)._check_parameters()
        check_count("selection_size", self.selection_size, max(3, int(self.n_components) + 2))


def _spread_out(parts: list[FloatArray]) -> list[FloatArray]:
    """Return latent points of clusters, each moved to a site of a lattice of its own."""
    centred = [X - (X.min(axis=0) + X.max(axis=0)) / 2 for X in parts]
    widest = max(2 * float(np.abs(X).max()) for X in centred)
    q = parts[0].shape[1]
    side = int(np.ceil(len(parts) ** (1 / q) - 1e-9))
    sites = product(range(side), repeat=q)
    spacing = 2 * max(widest, 1.0)  # a gap as wide as the widest of them
    return [X + spacing * np.array(site) for X, site in zip(centred, sites, strict=False)]
