"""Unsupervised nearest neighbours: the estimator.

UNN finds latent points such that the mean of each one's latent neighbours reconstructs its row
(O. Kramer, Dimensionality Reduction with Unsupervised Nearest Neighbors, Springer 2013). Rows are
embedded one after the other. The rooms of this folder: `searches` names the ways to do that,
`embedding` goes them by `line`, `lattice` or `continuous` with `gaussian`, `swarm` and `placing`;
`point_errors` is what they minimise, `growing` finds latent neighbours, `filling` fills gaps,
`evolution` (by `swaps`) and `cma_es` change whole embeddings, judged by `whole_error`; for the
fitted model `regression` and `projection`.
"""

from __future__ import annotations

import time
from contextlib import ExitStack
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.utils import check_random_state
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from twofold.array_types import BoolArray, FloatArray, IntArray
from twofold.checks.numbers import check_count
from twofold.contract import TwoWayModel
from twofold.contract.fitted_state import COMMON, Array, FittedState, Value
from twofold.contract.kernel_description import NearestMeans
from twofold.engine.threads import count_threads
from twofold.features import RBF, Linear, Polynomial, Sigmoid
from twofold.latent.density import scott_widths
from twofold.losses import EpsilonInsensitive, Huber, Squared
from twofold.model_files import register_value_type
from twofold.optimize import Event, ProgressBar
from twofold.unn.data_range import check_range, warn_of_many_neighbors
from twofold.unn.description import describe
from twofold.unn.embedding import (
    MISSING,
    check_dimensions,
    embed,
    is_constructive,
    is_discrete,
)
from twofold.unn.partial import grow, is_growing
from twofold.unn.point_errors import get_point_error
from twofold.unn.projection import LatentDensity, project
from twofold.unn.regression import Surface
from twofold.unn.searches import NAMES, get_search
from twofold.unn.task import Task, Tell

for value_type in (Linear, Polynomial, RBF, Sigmoid, Squared, Huber, EpsilonInsensitive):
    register_value_type(value_type)

# The first halves the error of rows that went where there was room, the fifth gains a hundredth.
LATTICE_SWEEPS = 5
_TWO_ROWS = np.array([[0.0, 0.0], [1.0, 1.0]])


class UNN(TwoWayModel):
    """Unsupervised nearest neighbours: rows are embedded one by one, and means lead back.

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
        Of the distance between a row and its mean: "squared", "absolute", "row_huber",
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
        and let distances and means go over observed entries.
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
        Decides about the order of rows and about random places.
    verbose : bool or "auto", default=False
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
        The search with all its numbers.
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
        As in scikit-learn.

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

    @available_if(is_growing)  # type: ignore[untyped-decorator]
    def partial_fit(self, X: Any, y: None = None, sample_weight: Any = None) -> Self:
        """Embed new rows among those that are there.

        Rows of the model stay where they are, but for the line and the lattice, where they make
        room. ``embedding_`` grows by the new rows, and nothing is refined. On an unfitted model it
        is ``fit``, which needs a few rows.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
        y : None
            Ignored.
        sample_weight : array-like of shape (n_samples,), default=None

        Returns
        -------
        self
        """
        if not hasattr(self, "latent_"):
            return self._begin(X, sample_weight)
        self._check_parameters()
        with self._all_or_nothing():
            grow(self, self._rows_to_take_in(X), sample_weight)
        return self

    def kernel_regression(self) -> NearestMeans:
        """Return the way back, means of nearest rows, in plain arrays."""
        check_is_fitted(self)
        return describe(self)

    # ---- what the contract asks for -------------------------------------------------------------

    def _check_range(self, Y: FloatArray, *, reset: bool) -> None:
        check_range(Y, differences=reset)

    def _fit_distinct(self, Y: FloatArray, weights: FloatArray, source: IntArray) -> FloatArray:
        warn_of_many_neighbors(int(self.n_neighbors), len(Y))
        self.search_ = get_search(self.search, int(self.n_components), len(Y))
        check_dimensions(self.search_, int(self.n_components))
        rng = self._generator()
        order = rng.permutation(len(Y)) if self.shuffle else np.argsort(source, kind="stable")
        with ExitStack() as stack:
            task = self._task(Y, weights, rng, self._tell(stack), len(Y))
            found = embed(
                task,
                self.search_,
                self.missing,
                self.data_kernel is not None,
                self._sweeps(),
                order,
            )
        if found.filled is not None:
            self.filled_ = found.filled.astype(Y.dtype)
        self.n_iter_, self.stop_reason_ = found.n_iter, found.stop_reason
        X = found.X.astype(Y.dtype)
        self.history_ = np.array(
            [self._surface_of(stage.astype(Y.dtype)).mean_squared_error() for stage in found.stages]
        )
        self.objective_ = float(self.history_[-1])
        return X

    def _check_refine(self) -> None:
        if isinstance(self.refine, str) and self.refine == "auto":
            return
        try:
            check_count("refine", self.refine, 0)
        except ValueError as error:
            raise ValueError(
                f"`refine` must be 'auto' or an integer of at least 0; got {self.refine!r}."
            ) from error

    def _sweeps(self) -> int:
        """Return how many sweeps refine the embedding."""
        if not is_constructive(self.search_):
            if self.refine not in ("auto", 0):
                raise ValueError(
                    f"refine={self.refine!r} goes with searches that put one row after the other; "
                    f"search={self.search_!r} changes the whole embedding anyway. Leave `refine` "
                    "at 'auto'."
                )
            return 0
        if self.refine != "auto":
            return int(self.refine)
        is_lattice = is_discrete(self.search_) and int(self.n_components) > 1
        return LATTICE_SWEEPS if is_lattice else 1

    def _task(
        self, Y: FloatArray, weights: FloatArray, rng: np.random.Generator, tell: Tell, most: int
    ) -> Task:
        """Return what is to be embedded; there will be no more than ``most`` rows."""
        complete = Y[~np.isnan(Y).any(axis=1)].astype(np.float64)
        known = complete if len(complete) > 1 else np.nan_to_num(Y.astype(np.float64))
        return Task(
            np.ascontiguousarray(Y, dtype=np.float64),
            weights,
            int(self.n_components),
            min(int(self.n_neighbors), most),
            get_point_error(self.loss, self.power, self.data_kernel, known),
            rng,
            count_threads(self.n_jobs),
            tell,
        )

    def _generator(self) -> np.random.Generator:
        return np.random.default_rng(check_random_state(self.random_state).randint(2**31 - 1))

    def _tell(self, stack: ExitStack) -> Tell:
        """Return what shows the progress, on a bar that closes with the stack."""
        bars = [stack.enter_context(ProgressBar())] if self._shows_progress() else []
        began = time.perf_counter()

        def tell(words: str, done: int, most: int, value: float) -> None:
            elapsed = time.perf_counter() - began
            for bar in bars:
                bar(Event(done, most, value, np.empty((0, 0)), elapsed, words))

        return tell

    def _surface_of(self, X: FloatArray) -> Surface:
        return Surface(
            X,
            getattr(self, "filled_", self.data_),
            self.weights_,
            int(self.n_neighbors),
            count_threads(self.n_jobs),
        )

    def _restore(self) -> None:
        self._surface = self._surface_of(self.latent_)
        self._space = LatentDensity(self.latent_, self.weights_, self._latent_unit(), self.n_jobs)

    def _project(self, Y: FloatArray, observed: BoolArray | None) -> FloatArray:
        def is_inside(X: FloatArray) -> BoolArray:
            # As the user gets to see them: a place on the border must not fall out by rounding.
            return self._density(X.astype(Y.dtype)) >= self.domain_threshold_

        return project(self._surface, Y, observed, is_inside).astype(Y.dtype)

    def _regress(self, X: FloatArray) -> FloatArray:
        return self._surface.regress(X).astype(X.dtype)

    def _density(self, X: FloatArray) -> FloatArray:
        return self._space.at(X).astype(X.dtype)

    def _jacobian(self, X: FloatArray) -> FloatArray:
        return self._surface.slopes(X).astype(X.dtype)

    def _latent_unit(self) -> FloatArray:
        if is_discrete(self.search_):
            return np.ones(self.latent_.shape[1])  # a step of the line or the lattice
        return scott_widths(self.latent_, self.weights_)

    def _check_restored(self) -> None:
        super()._check_restored()
        if not is_discrete(self.search_):
            return
        n = len(self.latent_)
        # A lattice has room for all sites up to the farthest, so that one must not be far.
        if np.abs(self.latent_).max() > n or len(np.unique(np.rint(self.latent_), axis=0)) < n:
            raise ValueError("`latent_` holds no sites of a line or lattice, each taken once")

    def _check_parameters(self) -> None:
        check_count("n_components", self.n_components)
        check_count("n_neighbors", self.n_neighbors)
        self._check_refine()
        for name, allowed in (
            ("missing", MISSING),
            ("shuffle", (True, False)),
            ("verbose", (True, False, "auto")),
        ):
            if getattr(self, name) not in allowed:
                raise ValueError(f"`{name}` must be one of {allowed}; got {getattr(self, name)!r}.")
        count_threads(self.n_jobs)
        get_search(self.search, self.n_components, 1)
        get_point_error(self.loss, self.power, self.data_kernel, _TWO_ROWS)
