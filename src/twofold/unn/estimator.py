"""Unsupervised nearest neighbours: the estimator.

UNN finds latent points such that the mean of each one's latent neighbours reconstructs its row
(O. Kramer, Dimensionality Reduction with Unsupervised Nearest Neighbors, Springer 2013). `searches`
names the ways to do that, `embedding` goes them, `regression` is the fitted model, there and back.
"""

import time
from contextlib import ExitStack
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from twofold.array_types import BoolArray, FloatArray, IntArray
from twofold.checks.parameters import check_choice, check_count, check_progress
from twofold.contract import TwoWayModel
from twofold.contract.distinct_rows import DistinctRows
from twofold.contract.fitted_state import COMMON, Array, FittedState, Value
from twofold.contract.growing import GrowingModel
from twofold.contract.kernel_description import NearestMeans
from twofold.engine import KernelSums, PreparedReferences
from twofold.engine.threads import count_threads
from twofold.features import RBF, Linear, Polynomial, Sigmoid
from twofold.kernels import get_kernel
from twofold.latent.density import scott_widths
from twofold.losses import EpsilonInsensitive, Huber, Squared
from twofold.model_files import register_value_type
from twofold.optimize import Event
from twofold.process_settings import warn
from twofold.rowwise import float_rows
from twofold.unn.embedding import MISSING, Embedding, KnownRows, Task, Tell, embed
from twofold.unn.point_errors import get_point_error
from twofold.unn.regression import Surface, project
from twofold.unn.rows import check_range
from twofold.unn.searches import NAMES, Constructive, Discrete, get_search

for value_type in (Linear, Polynomial, RBF, Sigmoid, Squared, Huber, EpsilonInsensitive):
    register_value_type(value_type)

# The first halves the error of rows that went where there was room, the fifth gains a hundredth.
LATTICE_SWEEPS = 5
_TWO_ROWS = np.array([[0.0, 0.0], [1.0, 1.0]])
# Kernel weights below this, relative to the largest, are left out of a density.
CUTOFF = 1e-6
# As many as the models take unless told: who has no more rows than that sees it without a warning.
FEW_NEIGHBORS = 5


class NeighborModel(TwoWayModel):
    """A model whose regression is a mean of nearest rows, with a Gaussian latent density."""

    n_neighbors: Any
    n_jobs: int | None
    data_: FloatArray
    weights_: FloatArray
    filled_: FloatArray

    def kernel_regression(self) -> NearestMeans:
        """Return the way back, means of nearest rows, in plain arrays."""
        check_is_fitted(self)
        return NearestMeans(
            latent=self.latent_.astype(np.float64),
            data=self._rows_of_means().astype(np.float64),
            weights=np.asarray(self.weights_, dtype=np.float64),
            widths=None,
            kernel="gaussian",
            degree=0,
            cutoff=CUTOFF,
            latent_scale=1 / np.asarray(self._latent_unit(), dtype=np.float64),
            n_neighbors=int(self.n_neighbors),
            groups=getattr(self, "clusters_", None),
            observed=~np.isnan(self.data_) if hasattr(self, "filled_") else None,
        )

    def _rows_of_means(self) -> FloatArray:
        """Return the rows (n, D) that means are made of, with what was filled in."""
        return getattr(self, "filled_", self.data_)

    def _surface_of(self, X: FloatArray, some: Any = slice(None)) -> Surface:
        """Return the way back from latent points X (n, q), or from some of them."""
        rows, n_threads = self._rows_of_means(), count_threads(self.n_jobs)
        return Surface(X[some], rows[some], self.weights_[some], int(self.n_neighbors), n_threads)

    def _warn_of_many_neighbors(self, n: int) -> None:
        """Say so if all of n distinct rows are neighbours of each: every mean is the same then."""
        if self.n_neighbors >= n and self.n_neighbors > FEW_NEIGHBORS:
            warn(
                f"n_neighbors={self.n_neighbors} takes in all {n} distinct rows, so the way back "
                "leads to their mean from everywhere. Take fewer neighbours, or more rows."
            )

    def _check_range(self, Y: FloatArray, *, reset: bool) -> None:
        check_range(Y, differences=reset)

    def _restore(self) -> None:
        self._surface = self._surface_of(self.latent_)
        unit, shares = self._latent_unit(), (self.weights_ / self.weights_.sum())[:, None]
        engine = KernelSums(get_kernel("gaussian"), CUTOFF, self.n_jobs)
        self._space = PreparedReferences(engine, float_rows(self.latent_) / unit, shares), unit

    def _density(self, X: FloatArray) -> FloatArray:
        references, unit = self._space
        sums = references.at(float_rows(X) / unit)
        return (sums.values[:, 0] * references.engine.kernel.value(sums.shift)).astype(X.dtype)

    def _project_onto(
        self, surface: Surface, Y: FloatArray, observed: BoolArray | None
    ) -> FloatArray:
        def is_inside(X: FloatArray) -> BoolArray:
            # As the user gets to see them: a place on the border must not fall out by rounding.
            return self._is_inside(X.astype(Y.dtype))

        return project(surface, Y, observed, is_inside)


class UNN(NeighborModel, GrowingModel):
    """Unsupervised nearest neighbours: rows are embedded one by one; means of rows lead back.

    Parameters
    ----------
    n_components : int, default=1
        Latent dimensions q. With one, rows are sorted: latent points are their ranks.
    n_neighbors : int, default=5
        Latent neighbours K whose mean is the way back.
    search : str or object, default="auto"
        How places are found: "exhaustive", "greedy", "gaussian", "swarm", "evolution", "strategy",
        "cma", or an object with numbers of your own, see :mod:`twofold.unn.searches`. "auto" is
        "exhaustive" for one dimension ("greedy" above 5,000 rows), and "gaussian" for more.
        "exhaustive", "greedy" and "evolution" put rows on a line or, in two and three dimensions,
        on a lattice.
    loss : str or object, default="squared"
        Loss of the distance between a row and its mean: "squared", "absolute", "row_huber",
        ``Huber(delta, per="vector")`` or ``EpsilonInsensitive(eps, per="vector", order=1)`` of
        :mod:`twofold.losses`.
    power : float, default=2.0
        Order of the Minkowski distance, from 1 to infinity.
    data_kernel : str or object, default=None
        Measure distances in the feature space of a kernel: "linear", "poly", "rbf", "tanh" or an
        object of :mod:`twofold.features`. Scores stay in data space.
    missing : {"repair_and_embed", "embed_and_repair", "distances"}, default="repair_and_embed"
        What ``fit`` does about NaN: fill rows from their nearest complete ones before embedding;
        embed them by what they have and fill them from their latent neighbours; or fill nothing
        and compute distances and means from observed entries.
    shuffle : bool, default=True
        Whether rows come in a random order, which does not depend on the order of the table. With
        False they come in that order, as in the book, and another order is another embedding.
    refine : int or "auto", default="auto"
        Sweeps after the last row, in which each row is taken out and put back where the error of
        the whole embedding is lowest, or on a lattice changes places with another where that
        lowers it; each row is left out of its own neighbours then, as in ``objective_``. 0 for the
        methods of the book. "auto" is 1, and 5 on a lattice. Not for searches that change the
        whole embedding anyway.
    n_jobs : int or None, default=-1
        Threads: -1 for every core, None for one. The result does not depend on it.
    random_state : int, RandomState or None, default=None
        Seed for the order of rows and for random places.
    verbose : bool or "auto", default="auto"
        Progress on standard error: for fits of over two seconds, never, always, or if that is a
        terminal ("auto").

    Attributes
    ----------
    embedding_ : ndarray of shape (n_samples, n_components)
        Latent points of the rows passed to ``fit``, in their order.
    latent_, data_, weights_ : ndarrays
        Latent points, rows and weights of the distinct rows.
    filled_ : ndarray
        ``data_`` with its gaps filled, where ``fit`` met gaps and filled them. For rows in the
        order of the table use ``complete``.
    member_ : ndarray
        Which of the distinct rows each row passed to ``fit`` is, -1 for those of weight 0.
    search_ : object
        The search with all its parameters.
    objective_ : float
        Mean squared distance between rows and the means of their K nearest latent neighbours, each
        row left out of its own. Rows are the distinct ones, by their weights, with what was filled.
    history_ : ndarray
        The same before refinement, after each sweep and after each ``partial_fit``. With
        missing="distances" it may rise a little: sweeps scale errors up to all entries of a row.
    n_iter_, stop_reason_ : int, str
        Rows embedded and sweeps or steps made, and why it ended.
    domain_threshold_ : float
        Density that bounds the domain.
    n_features_in_, feature_names_in_ : int, ndarray

    References
    ----------
    O. Kramer, Dimensionality Reduction with Unsupervised Nearest Neighbors, Springer, 2013.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from twofold import UNN
    >>> Y, _ = load_digits(return_X_y=True)
    >>> model = UNN(2, random_state=0).fit(Y[:300])
    >>> model.transform(Y[300:302]).shape
    (2, 2)
    >>> model.inverse_transform(model.embedding_[:1]).shape
    (1, 64)
    """

    fitted_state: ClassVar[FittedState] = {
        **COMMON,
        "filled_": Array(("n", "D"), is_optional=True),
        "search_": Value(tuple(NAMES.values())),
    }

    def __init__(
        self,
        n_components: int = 1,
        *,
        n_neighbors: int = 5,
        search: Any = "auto",
        loss: Any = "squared",
        power: float = 2.0,
        data_kernel: Any = None,
        missing: str = "repair_and_embed",
        shuffle: bool = True,
        refine: int | str = "auto",
        n_jobs: int | None = -1,
        random_state: Any = None,
        verbose: bool | str = "auto",
    ) -> None:
        self.n_components = n_components
        self.n_neighbors = n_neighbors
        self.search = search
        self.loss = loss
        self.power = power
        self.data_kernel = data_kernel
        self.missing = missing
        self.shuffle = shuffle
        self.refine = refine
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose

    # ---- what the contract asks for -------------------------------------------------------------

    def _fit_distinct(self, Y: FloatArray, weights: FloatArray, source: IntArray) -> FloatArray:
        self._warn_of_many_neighbors(len(Y))
        self.search_ = get_search(self.search, int(self.n_components), len(Y))
        found = self._embed_rows(Y, weights, source, self._sweeps())
        if found.filled is not None:
            self.filled_ = found.filled.astype(Y.dtype)
        self.n_iter_, self.stop_reason_ = found.n_iter, found.stop_reason
        stages = [X.astype(Y.dtype) for X in found.stages]
        self.history_ = np.array([self._surface_of(X).mean_squared_error() for X in stages])
        self.objective_ = float(self.history_[-1])
        return stages[-1]

    def _embed_rows(
        self,
        Y: FloatArray,
        weights: FloatArray,
        arrival: IntArray,
        n_sweeps: int,
        known: KnownRows | None = None,
    ) -> Embedding:
        """Embed distinct rows one by one, among others that are known if there are any."""
        # One draw from what scikit-learn takes for a seed starts the generator of all searches.
        rng = np.random.default_rng(check_random_state(self.random_state).randint(2**31 - 1))
        order = rng.permutation(len(Y)) if self.shuffle else np.argsort(arrival, kind="stable")
        # Numbers that loss and kernel leave open are those of the first rows.
        first = (Y if known is None else self.data_).astype(np.float64)
        complete = first[~np.isnan(first).any(axis=1)]
        representative = complete if len(complete) > 1 else np.nan_to_num(first)
        with ExitStack() as stack:
            task = Task(
                np.ascontiguousarray(Y, dtype=np.float64),
                weights,
                int(self.n_components),
                min(int(self.n_neighbors), len(Y) if known is None else len(Y) + len(first)),
                get_point_error(self.loss, self.power, self.data_kernel, representative),
                rng,
                self.data_kernel is not None,
                count_threads(self.n_jobs),
                self._tell(stack),
            )
            return embed(task, self.search_, self.missing, n_sweeps, order, known)

    # ---- new rows -------------------------------------------------------------------------------

    def _is_growing(self) -> bool:
        try:
            search = get_search(self.search, int(self.n_components), 1)
        except (TypeError, ValueError):
            return True  # the call itself says what is wrong with it
        if not isinstance(search, Constructive):
            raise AttributeError(
                f"A model with search={search!r} has no partial_fit: it moves all latent points "
                "together. Fit it again with the new rows."
            )
        return True

    def _insert(self, added: DistinctRows, arrival: IntArray) -> None:
        Y, rows = added.Y, self._rows_of_means()
        known = KnownRows(float_rows(rows), float_rows(self.latent_), self.weights_)
        found = self._embed_rows(Y, added.weights, arrival, 0, known)
        if hasattr(self, "filled_") or found.filled is not None:
            filled = Y if found.filled is None else found.filled.astype(Y.dtype)
            self.filled_ = np.concatenate([rows, filled])
        self.latent_ = found.X.astype(Y.dtype)
        self.data_ = np.concatenate([self.data_, Y])
        self.weights_ = np.concatenate([self.weights_, added.weights])
        self.n_iter_ += len(Y)

    def _settle(self) -> None:
        self.objective_ = self._surface_of(self.latent_).mean_squared_error()
        self.history_ = np.append(self.history_, self.objective_)

    def _moved_along(self, X: FloatArray, old: FloatArray) -> FloatArray:
        # With their nearest latent neighbours, where these make room for others.
        nearest = [int(((old - x) ** 2).sum(axis=1).argmin()) for x in X]
        return X + (self.latent_[nearest] - old[nearest])

    def _sweeps(self) -> int:
        """Return how many sweeps refine the embedding."""
        if not isinstance(self.search_, Constructive):
            if self.refine not in ("auto", 0):
                raise ValueError(
                    f"refine={self.refine!r} is for searches that place one row after another; "
                    f"search={self.search_!r} changes the whole embedding anyway. Leave `refine` "
                    "at 'auto'."
                )
            return 0
        if self.refine != "auto":
            return int(self.refine)
        is_lattice = isinstance(self.search_, Discrete) and int(self.n_components) > 1
        return LATTICE_SWEEPS if is_lattice else 1

    def _tell(self, stack: ExitStack) -> Tell:
        """Return what shows the progress, on a bar that closes with the stack."""
        bars = [stack.enter_context(bar) for bar in self._bars()]
        began = time.perf_counter()

        def tell(words: str, done: int, most: int, value: float) -> None:
            elapsed = time.perf_counter() - began
            for bar in bars:
                bar(Event(done, most, value, np.empty((0, 0)), elapsed, words))

        return tell

    def _project(self, Y: FloatArray, observed: BoolArray | None) -> FloatArray:
        return self._project_onto(self._surface, Y, observed).astype(Y.dtype)

    def _regress(self, X: FloatArray) -> FloatArray:
        return self._surface.regress(X).astype(X.dtype)

    def _jacobian(self, X: FloatArray) -> FloatArray:
        return self._surface.slopes(X).astype(X.dtype)

    def _latent_unit(self) -> FloatArray:
        if isinstance(self.search_, Discrete):
            return np.ones(self.latent_.shape[1])  # a step of the line or the lattice
        return scott_widths(self.latent_, self.weights_)

    def _without(self, rows: IntArray) -> Self | None:
        return self._copy_without(rows, ("data_", "weights_", "latent_", "filled_"))

    def _check_restored(self) -> None:
        super()._check_restored()
        if not isinstance(self.search_, Discrete):
            return
        n = len(self.latent_)
        # A lattice has room for all sites up to the farthest, so that one must not be far.
        if np.abs(self.latent_).max() > n or len(np.unique(np.rint(self.latent_), axis=0)) < n:
            raise ValueError("`latent_` holds no sites of a line or lattice, each taken once")

    def _check_parameters(self) -> None:
        check_count("n_components", self.n_components)
        check_count("n_neighbors", self.n_neighbors)
        check_count("refine", self.refine, 0, may_be_auto=True)
        check_choice("missing", self.missing, MISSING)
        check_choice("shuffle", self.shuffle, (True, False))
        check_progress(self.verbose)
        count_threads(self.n_jobs)
        get_search(self.search, self.n_components, 1)
        get_point_error(self.loss, self.power, self.data_kernel, _TWO_ROWS)
