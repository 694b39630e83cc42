"""Unsupervised nearest neighbours: the estimator.

UNN finds latent points such that the mean of each one's latent neighbours reconstructs its row
(O. Kramer, Dimensionality Reduction with Unsupervised Nearest Neighbors, Springer 2013). Rows are
embedded one after the other. The rooms of this folder: `searches` names the ways to do that,
`embedding` goes them by `line`, `lattice` or `continuous`; `point_errors` is what they minimise,
`growing` finds latent neighbours, `filling` fills gaps, `evolution` (by `swaps`) and `cma_es`
change whole embeddings; for the fitted model `regression` and `projection`.
"""

from __future__ import annotations

import time
from contextlib import ExitStack
from typing import Any, ClassVar, Self, cast

import numpy as np
from sklearn.utils import check_random_state
from sklearn.utils.metaestimators import available_if

from twofold.array_types import BoolArray, FloatArray, IntArray
from twofold.checks.numbers import check_count
from twofold.checks.rows import check_missing, checked_weights
from twofold.contract.distinct_rows import merge_duplicates
from twofold.contract.fitted_state import COMMON, Array, FittedState, Value
from twofold.engine.threads import count_threads
from twofold.features import RBF, Linear, Polynomial, Sigmoid
from twofold.latent.density import scott_widths
from twofold.losses import EpsilonInsensitive, Huber, Squared
from twofold.model_files import register_value_type
from twofold.optimize import Event, ProgressBar
from twofold.unn.embedding import (
    MISSING,
    Task,
    Tell,
    check_dimensions,
    embed,
    is_constructive,
    is_discrete,
    make_embedder,
)
from twofold.unn.neighbor_model import NeighborModel
from twofold.unn.point_errors import get_point_error
from twofold.unn.searches import NAMES, Constructive, get_search

for value_type in (Linear, Polynomial, RBF, Sigmoid, Squared, Huber, EpsilonInsensitive):
    register_value_type(value_type)

# The first halves the error of rows that went where there was room, the fifth gains a hundredth.
LATTICE_SWEEPS = 5
_TWO_ROWS = np.array([[0.0, 0.0], [1.0, 1.0]])


def _is_growing(model: UNN) -> bool:
    """Say whether a model of these parameters takes new rows in, by an error if it does not."""
    try:
        search = get_search(model.search, int(model.n_components), 1)
    except (TypeError, ValueError):
        return True  # the call itself says what is wrong with it
    if not is_constructive(search):
        raise AttributeError(
            f"A model with search={search!r} has no partial_fit: it moves all latent points "
            "together. Fit it again with the new rows."
        )
    return True


class UNN(NeighborModel):
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

    @available_if(_is_growing)  # type: ignore[untyped-decorator]
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
            Y = self._rows_to_take_in(X)
            weights = checked_weights(sample_weight, Y)
            check_missing(Y, columns=False)
            self._grow(Y, weights)
        return self

    # ---- what the contract asks for -------------------------------------------------------------

    def _fit_distinct(self, Y: FloatArray, weights: FloatArray, source: IntArray) -> FloatArray:
        self._warn_of_many_neighbors(len(Y))
        self.search_ = get_search(self.search, int(self.n_components), len(Y))
        check_dimensions(self.search_, int(self.n_components))
        rng = self._generator()
        order = rng.permutation(len(Y)) if self.shuffle else np.argsort(source, kind="stable")
        with ExitStack() as stack:
            task = self._task(Y, weights, rng, self._tell(stack), len(Y))
            found = embed(task, self.search_, self.missing, self._sweeps(), order)
        if found.filled is not None:
            self.filled_ = found.filled.astype(Y.dtype)
        self.n_iter_, self.stop_reason_ = found.n_iter, found.stop_reason
        X = found.X.astype(Y.dtype)
        self.history_ = np.array(
            [self._surface_of(stage.astype(Y.dtype)).mean_squared_error() for stage in found.stages]
        )
        self.objective_ = float(self.history_[-1])
        return X

    def _grow(self, Y: FloatArray, weights: FloatArray) -> None:
        """Take in rows Y (m, D).

        Rows that are known add to the weight of those they equal. Rows of weight 0, which have a
        latent point but are no part of the model, go along with their nearest latent neighbour
        where others make room.
        """
        known = self._index.find(Y)
        fresh = (known < 0) & (weights > 0)
        old, before, member = self.latent_, len(self.data_), known.copy()
        self.weights_ = self.weights_.copy()
        np.add.at(self.weights_, known[known >= 0], weights[known >= 0])
        if fresh.any():
            added = merge_duplicates(Y[fresh], weights[fresh])
            member[fresh] = before + added.member
            self._insert(added.Y, added.weights, np.flatnonzero(fresh)[added.first])
        placed = self.embedding_.copy()
        for j in np.flatnonzero(self.member_ < 0):
            nearest = int(((old - placed[j]) ** 2).sum(axis=1).argmin())
            placed[j] += self.latent_[nearest] - old[nearest]
        self.member_ = np.concatenate([self.member_, member])
        self.objective_ = self._surface_of(self.latent_).mean_squared_error()
        self.history_ = np.append(self.history_, self.objective_)
        self._wake()
        self._bound_domain()
        self.embedding_ = np.concatenate([placed, self._place(Y)])
        there = self.member_ >= 0
        self.embedding_[there] = self.latent_[self.member_[there]]
        if hasattr(self, "notes_"):
            self.notes_ = self.notes_.for_rows(len(self.embedding_))

    def _insert(self, Y: FloatArray, weights: FloatArray, arrival: IntArray) -> None:
        """Embed distinct new rows one by one, by the search that made the model."""
        rng, n = self._generator(), len(self.data_)
        order = rng.permutation(len(Y)) if self.shuffle else np.argsort(arrival, kind="stable")
        old = self._rows_of_means()
        new: FloatArray = Y.astype(np.float64)
        gaps = np.isnan(new)
        if gaps.any() and self.missing == "repair_and_embed":
            from twofold.unn.filling import repair

            table = np.concatenate([old.astype(np.float64), new])
            masses = np.concatenate([self.weights_, weights])
            new = repair(table, int(self.n_neighbors), masses)[n:]
        is_repairing = bool(gaps.any()) and self.missing == "embed_and_repair"
        if is_repairing:
            order = order[np.argsort(gaps[order].sum(axis=1), kind="stable")]
        with ExitStack() as stack:
            tell = self._tell(stack)
            task = self._task(self.data_, self.weights_, rng, tell, n + len(Y))
            embedder = make_embedder(task, cast(Constructive, self.search_), n + len(Y))
            embedder.load(old.astype(np.float64), self.latent_.astype(np.float64), self.weights_)
            if is_repairing:
                from twofold.unn.filling import insert_and_fill

                filled = new[order]
                insert_and_fill(embedder, filled, weights[order], n)
                new[order] = filled
            else:
                embedder.insert(
                    new[order],
                    weights[order],
                    lambda done: tell("embedding rows", done - n, len(Y), np.nan),
                )
        if hasattr(self, "filled_") or (gaps.any() and self.missing != "distances"):
            self.filled_ = np.concatenate([old, new.astype(Y.dtype)])
        X = embedder.latent.copy()
        X[n + order] = embedder.latent[n:]
        self.latent_ = X.astype(Y.dtype)
        self.data_ = np.concatenate([self.data_, Y])
        self.weights_ = np.concatenate([self.weights_, weights])
        self.n_iter_ += len(Y)

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
            self.data_kernel is not None,
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

    def _project(self, Y: FloatArray, observed: BoolArray | None) -> FloatArray:
        return self._project_onto(self._surface, Y, observed).astype(Y.dtype)

    def _regress(self, X: FloatArray) -> FloatArray:
        return self._surface.regress(X).astype(X.dtype)

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
        if not (isinstance(self.refine, str) and self.refine == "auto"):
            try:
                check_count("refine", self.refine, 0)
            except ValueError as error:
                raise ValueError(
                    f"`refine` must be 'auto' or an integer of at least 0; got {self.refine!r}."
                ) from error
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
