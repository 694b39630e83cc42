"""Parameterized self-organizing maps: the estimator.

A PSOM is a grid of nodes with values in data space and the polynomial map through them (Walter &
Ritter 1995); PSOM+ finds node values from noisy, incomplete, scattered or unplaced data by a
roughness penalty (Klanke 2007, chapter 3). The rooms of this folder: `grid`, `basis` and
`interpolation` are the map, `best_match` the way from data to places; `roughness` is the penalty;
`known_places` with `smoothness_choice` and `penalized` the fits at known places, `unsupervised`
with `annealing` the fit without; `parameters` and `training_places` belong to the estimator.
"""

from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import replace
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_array, check_random_state
from sklearn.utils.validation import check_is_fitted

from twofold.array_types import BoolArray, FloatArray, IntArray
from twofold.checks.rows import check_entries, check_images, check_missing, checked_weights
from twofold.contract import TwoWayModel
from twofold.contract.distinct_rows import merge_duplicates
from twofold.contract.fitted_state import COMMON, Array, FittedState, Report, Value
from twofold.engine.threads import count_threads
from twofold.latent.density import scott_widths
from twofold.model_files import register_value_type
from twofold.optimize import Callback
from twofold.optimize.loop import enter_all
from twofold.process_settings import warn
from twofold.psom import parameters
from twofold.psom.annealing import Annealing, get_schedule
from twofold.psom.best_match import BestMatch, best_match
from twofold.psom.grid import Grid
from twofold.psom.interpolation import hessian, interpolate, interpolate_with_jacobian
from twofold.psom.known_places import FittedNodes, fit_scattered, smooth_grid
from twofold.psom.smoothness_choice import GCV, Discrepancy
from twofold.psom.training_places import LEAST_WIDTH, TrainingPlaces, best_inside
from twofold.psom.unsupervised import INTERRUPTED, ManifoldTask, find_start, fit_manifold
from twofold.rowwise import data_unit

for value_type in (Grid, GCV, Discrepancy, Annealing):
    register_value_type(value_type)

# How far beyond the box, in shares of its width, rounding may carry a place.
SLACK = 1e-6


def _refuse_infinity(Y: Any) -> None:
    """Raise if data at known places hold infinity; what is no number is left to later checks."""
    if np.iscomplexobj(Y):
        return
    try:
        is_infinite = np.isinf(np.asarray(Y, dtype=np.float64))
    except (TypeError, ValueError):
        return
    if is_infinite.any():
        raise ValueError("`Y` must be finite, or NaN where a value is missing; it holds infinity.")


def _in_unit(smoothness: Any, unit: float) -> Any:
    """Return what a parameter ``smoothness`` means for data divided by a unit."""
    is_noise = isinstance(smoothness, Discrepancy)
    return Discrepancy(smoothness.sigma / unit) if is_noise else smoothness


class PSOM(TwoWayModel):
    """Parameterized self-organizing map (PSOM, PSOM+): a polynomial manifold on a grid of nodes.

    Three ways to fit: ``fit`` learns a map without known places; ``fit_grid`` takes data measured
    at the nodes; ``fit_scattered`` takes samples at known places.

    Parameters
    ----------
    n_components : int, default=2
        Number of latent dimensions q.
    grid : "auto", int or tuple of int, default="auto"
        Nodes on each latent axis, one number for all of them or one for each; the number of nodes
        is their product. "auto" is 10 on each of one or two axes, 5 on three, 3 on more.
    nodes : {"chebyshev", "regular"} or list of arrays, default="chebyshev"
        Spacing of the nodes, or their coordinates on each axis, which then replace ``grid``.
        Regular spacing swings near the borders from about ten nodes on.
    bounds : array-like of shape (q, 2), default=None
        Lowest and highest coordinate of each axis. None is [-1, 1] (the outermost nodes, where
        their coordinates are given) for ``fit_grid`` and the box around the places for
        ``fit_scattered``; ``fit`` always learns on [-1, 1].
    local : int, default=None
        Number of nodes per axis, around each place, to interpolate from (local PSOM), for
        ``fit_grid``. The map then jumps where the nodes change.
    smoothness : object, default=None
        How much to smooth. None: ``fit`` lets the smoothness fall until held-out rows say stop,
        ``fit_grid`` keeps data as they are and only fills gaps, ``fit_scattered`` chooses by
        "gcv". A number λ is the factor before the roughness (``fit`` ends at it). "gcv" or
        ``Discrepancy(sigma)`` choose it for ``fit_grid`` and ``fit_scattered``, ``Annealing(...)``
        is a schedule for ``fit``, and an array has one λ for each node of ``fit_grid``, from 0
        (exact) to inf (unknown).
    n_starts : int, default=3
        Starts of a search for a best match; it ends with the first that reaches its target.
    init : "pca", array or estimator, default="pca"
        Where ``fit`` starts: the principal plane, latent coordinates (n_samples, q), or any
        estimator with ``fit_transform``.
    max_iter : int, default=60
        Maximum number of steps of a search from each start.
    n_jobs : int or None, default=-1
        Threads: -1 for every core, None for one. The result does not depend on it.
    random_state : int, RandomState or None, default=None
        Seed for which rows ``fit`` holds out to find the end of the annealing.
    verbose : bool or "auto", default=False
        Progress of ``fit`` on standard error: for fits of over two seconds, never, always, or if
        that is a terminal ("auto").
    callbacks : sequence of callables, default=()
        Each is called with a :class:`twofold.optimize.Event` after every cycle of ``fit``;
        returning True stops it.

    Attributes
    ----------
    grid_ : Grid
        The grid, with its nodes and domain.
    node_values_ : ndarray of shape (n_nodes, n_features)
        Values of the nodes, in C order of the axes.
    smoothness_ : float or ndarray of shape (n_nodes,)
        λ that was used; 0 for plain interpolation. For ``fit`` λ is that for 1,000 rows.
    roughness_ : float
        Integral of the squared second derivatives over the domain.
    objective_ : float
        Mean squared error of the training rows plus λ times the roughness, per row. Where there is
        one λ a node, the error alone.
    annealing_ : dict of ndarrays
        After ``fit``, of each cycle: "smoothness", "error", "roughness", "held_out_error".
    history_, n_iter_, stop_reason_ : ndarray, int, str
        Objective of each cycle, their number, and why it ended.
    embedding_ : ndarray of shape (n_samples, q)
        Places of the rows passed to a fit, in their order.
    latent_, data_, weights_ : ndarrays
        Places, rows and weights of the distinct rows.
    domain_threshold_ : float
        Density that bounds the domain. At known places it is 1 inside the box and 0 outside.
    n_features_in_, feature_names_in_ : int, ndarray
        As in scikit-learn.

    References
    ----------
    S. Klanke, Learning manifolds with the Parametrized Self-Organizing Map and Unsupervised Kernel
    Regression, PhD thesis, Bielefeld University, 2007, chapter 3.
    J. Walter and H. Ritter, Local PSOMs and Chebyshev PSOMs, ICANN 1995.

    Examples
    --------
    >>> import numpy as np
    >>> from twofold import PSOM
    >>> angle = np.linspace(0, np.pi, 7)
    >>> Y = np.column_stack([np.cos(angle), np.sin(angle)])
    >>> model = PSOM(1, nodes=[angle]).fit_grid(Y)
    >>> model.inverse_transform([[np.pi / 4]]).round(3)
    array([[0.707, 0.707]])
    >>> model.complete([[0.5, np.nan]]).round(3)
    array([[0.5  , 0.866]])
    """

    fitted_state: ClassVar[FittedState] = {
        **COMMON,
        "grid_": Value((Grid,)),
        "node_values_": Array(("nodes", "D")),
        "places_are_known_": Value((bool,)),
        **dict.fromkeys(("smoothness_", "roughness_", "annealing_"), Report()),
    }

    def __init__(
        self,
        n_components: int = 2,
        *,
        grid: str | int | Sequence[int] = "auto",
        nodes: Any = "chebyshev",
        bounds: Any = None,
        local: int | None = None,
        smoothness: Any = None,
        n_starts: int = 3,
        init: Any = "pca",
        max_iter: int = 60,
        n_jobs: int | None = -1,
        random_state: Any = None,
        verbose: bool | str = "auto",
        callbacks: Sequence[Callback] = (),
    ) -> None:
        self.n_components = n_components
        self.grid = grid
        self.nodes = nodes
        self.bounds = bounds
        self.local = local
        self.smoothness = smoothness
        self.n_starts = n_starts
        self.init = init
        self.max_iter = max_iter
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose
        self.callbacks = callbacks

    # ---- fitting at known places ----------------------------------------------------------------

    def fit_grid(self, Y: Any) -> Self:
        """Fit to data measured at the nodes of the grid.

        Parameters
        ----------
        Y : array-like of shape (n_nodes, n_features) or (*grid, n_features)
            Rows in C order of the axes (the last axis runs fastest). NaN marks missing nodes and
            missing entries; they are filled with what makes the map least rough. ``embedding_``
            holds the nodes, and ``transform`` gives each row its node; rows that are equal at
            several nodes get the first one. Nodes without data are not rows.
        """
        parameters.check_common(self)
        with self._changing():
            self._forget()
            rows = self._node_rows(Y)
            _refuse_infinity(rows)
            table = self._validate(rows, reset=True)
            grid = parameters.make_grid(self, self.bounds)
            has_gaps = bool(np.isnan(table).any())
            parameters.check_axes(grid, is_smoothed=self.smoothness is not None or has_gaps)
            is_known: BoolArray = np.logical_not(np.isnan(table).all(axis=1))
            check_missing(table[is_known], getattr(self, "feature_names_in_", None))
            unit = data_unit(table[is_known])
            smoothness = _in_unit(0.0 if self.smoothness is None else self.smoothness, unit)
            found = smooth_grid(grid, table / unit, smoothness, n_jobs=self.n_jobs)
            self._keep(table, grid, found, unit, grid.places(), np.where(is_known, 1.0, 0.0))
        return self

    def _node_rows(self, Y: Any) -> Any:
        """Return data of the nodes as rows; arrays of the grid's shape, then D, are flattened."""
        if np.ndim(Y) <= 2:
            return Y
        array = np.asarray(Y)
        shape = parameters.make_grid(self, None).shape
        if array.shape[:-1] != shape:
            raise ValueError(
                f"`Y` must have the shape {shape} of the grid and one axis of features more, or "
                f"one row for each node; got shape {array.shape}."
            )
        return array.reshape(-1, array.shape[-1])

    def fit_scattered(self, X: Any, Y: Any, sample_weight: Any = None) -> Self:
        """Fit to samples at known latent places.

        Parameters
        ----------
        X : array-like of shape (n_samples, q)
            Latent places.
        Y : array-like of shape (n_samples, n_features)
            Data there, without gaps. With ``smoothness=0`` the smoothest map through them.
            ``embedding_`` holds the places, and ``transform`` gives each row its place; rows that
            are equal at several places get the first one, and rows of weight 0 the nearest point.
        sample_weight : array-like of shape (n_samples,), default=None
            How much each sample counts.
        """
        parameters.check_common(self)
        parameters.refuse_local(self, "fit_scattered")
        with self._changing():
            self._forget()
            _refuse_infinity(Y)
            table = self._validate(Y, reset=True)
            places = check_array(X, dtype=np.float64, input_name="X")
            weights = checked_weights(sample_weight, table)
            counted = places[weights > 0]
            bounds = (
                parameters.enclose(counted, self.n_components)
                if self.bounds is None
                else self.bounds
            )
            grid = parameters.make_grid(self, bounds)
            parameters.check_inside(counted, grid)
            parameters.check_axes(grid, is_smoothed=True)
            check_missing(table, getattr(self, "feature_names_in_", None))
            unit = data_unit(table)
            smoothness = _in_unit("gcv" if self.smoothness is None else self.smoothness, unit)
            data = table / unit
            found = fit_scattered(grid, places, data, smoothness, weights, n_jobs=self.n_jobs)
            self._keep(table, grid, found, unit, places, weights)
        return self

    def _keep(
        self,
        Y: FloatArray,
        grid: Grid,
        found: FittedNodes,
        unit: float,
        X: FloatArray,
        weights: FloatArray,
    ) -> None:
        """Set what a fit of rows Y (m, D), divided by a unit, at known places X (m, q) leaves.

        Rows keep the places they came with. Equal rows at several places, as in data where one
        answer has many causes, count once; such a row projects to the first of its places.
        """
        self.grid_ = grid
        self.node_values_: FloatArray = found.W * unit
        self.smoothness_: float | FloatArray = found.smoothness
        self.roughness_ = found.roughness * unit**2
        self.places_are_known_ = True
        counted = weights > 0
        distinct = merge_duplicates(Y[counted], weights[counted])
        self._keep_distinct(distinct, counted)
        self.latent_ = X[counted][distinct.first].astype(Y.dtype)
        factor = 0.0 if isinstance(found.smoothness, np.ndarray) else found.smoothness
        error = found.squared_error * unit**2
        self.objective_ = (error + factor * self.roughness_) / float(weights.sum())
        self.history_ = np.array([self.objective_])
        self.n_iter_, self.stop_reason_ = 1, "closed form"
        self._wake()
        self._bound_domain()
        self.embedding_ = X.astype(Y.dtype)

    # ---- best matches -------------------------------------------------------------------------

    def best_match(
        self, Y: Any, component_weights: Any = None, start: Any = None, n_starts: int | None = None
    ) -> BestMatch:
        """Find the places whose images best match rows of data.

        Parameters
        ----------
        Y : array-like of shape (n_samples, n_features)
            Data; features that are NaN are not searched for.
        component_weights : array-like of shape (n_features,) or (n_samples, n_features)
            How much each feature counts in the distance; 1 if None.
        start : array-like of shape (n_samples, q), default=None
            Where to start, such as the present joint angles: among several answers, the one nearby
            is found. None starts at the best matching nodes.
        n_starts : int, default=None
            Number of starts, a given one included; 1 with ``start``, else the parameter.
        """
        check_is_fitted(self)
        count = n_starts
        if count is None:
            count = self.n_starts if start is None else 1
        rows = self._validate(Y, reset=False)
        parameters.check_searched(rows, component_weights)
        return self._match(rows, component_weights, start, count)

    def _match(self, Y: FloatArray, component_weights: Any, start: Any, n_starts: int) -> BestMatch:
        """Return best matches of rows Y (m, D); warn of those not found."""
        found = best_match(
            self.grid_,
            self._surface,
            Y,
            component_weights=component_weights,
            start=start,
            n_starts=n_starts,
            local=self.local,
            max_iter=self.max_iter,
            n_jobs=self.n_jobs,
        )
        lost = int((~found.converged).sum())
        if lost:
            warn(
                f"The search for the best match did not converge for {lost} of {len(Y)} rows; "
                "raise `max_iter`, or look at `best_match(...).converged`.",
                ConvergenceWarning,
            )
        return found

    def hessian(self, X: Any) -> FloatArray:
        """Return the second derivatives of the map at latent places ``X`` (n_samples, q).

        Element [i, d, a, b] is the derivative of feature d by coordinates a and b at place i.
        """
        places = self._validate_latent(X)
        with np.errstate(over="ignore", invalid="ignore"):
            H = hessian(self.grid_, self._surface, places, local=self.local, n_jobs=self.n_jobs)
            return check_images(np.ascontiguousarray(H).astype(places.dtype))

    # ---- what the contract asks for -------------------------------------------------------------

    def _fit_distinct(self, Y: FloatArray, weights: FloatArray, source: IntArray) -> FloatArray:
        # Far from zero, rounding errors would blur where searches end.
        level = np.nanmean(Y, axis=0, dtype=np.float64)
        grid = parameters.make_unit_grid(self)
        parameters.warn_of_size(grid, len(Y))
        rng = check_random_state(self.random_state)
        with ExitStack() as stack:
            callbacks: list[Callback] = [*self.callbacks, *self._bars()]
            enter_all(stack, callbacks)
            rows, unit = Y.astype(np.float64), data_unit(Y)
            start = find_start(self.init, grid, rows, weights, source, self.n_jobs)
            task = ManifoldTask(
                grid,
                (rows - level) / unit,
                weights,
                replace(start, W=(start.W - level) / unit),
                get_schedule(self.smoothness),
                self.max_iter,
                self.n_jobs,
                callbacks,
                unit,
            )
            found = fit_manifold(task, rng)
        self.grid_ = grid
        self.node_values_, self.smoothness_ = found.W + level, found.smoothness
        self.roughness_ = found.roughness
        self.objective_, self.history_ = found.objective, found.steps[:, 3]
        columns = {"smoothness": 0, "error": 1, "roughness": 2, "held_out_error": 4}
        self.annealing_ = {name: found.steps[:, column] for name, column in columns.items()}
        self.n_iter_, self.stop_reason_ = len(found.steps), found.stop_reason
        self.places_are_known_ = False
        if found.stop_reason == INTERRUPTED:
            warn(
                f"Interrupted after {self.n_iter_} cycles; the best model so far is kept.",
                ConvergenceWarning,
            )
        return found.X

    def _restore(self) -> None:
        # Compiled loops want writable arrays, which those of a pickled model need not be.
        self._surface = np.require(self.node_values_, np.float64, ["C", "W"])
        self._space = None
        if not self.places_are_known_:
            X = self.latent_
            images = interpolate(self.grid_, self._surface, X, n_jobs=self.n_jobs)
            n_threads = count_threads(self.n_jobs)
            self._space = TrainingPlaces(X, images, self.weights_, n_threads)

    def _project(self, Y: FloatArray, observed: BoolArray | None) -> FloatArray:
        start = None if self._space is None else self._space.nearest(Y)
        X = self._match(Y, None, start, self.n_starts).places.astype(Y.dtype)
        if self._space is None or start is None:
            return X
        outside = np.flatnonzero(~self._is_inside(X))
        if len(outside):

            def errors_at(places: FloatArray, rows: IntArray) -> FloatArray:
                return np.nansum((self._regress(places) - Y[outside[rows]]) ** 2, axis=1)

            X[outside] = best_inside(start[outside], X[outside], self._is_inside, errors_at)
        return X

    def _regress(self, X: FloatArray) -> FloatArray:
        # Far outside of the domain polynomials may leave the range of numbers.
        with np.errstate(over="ignore", invalid="ignore"):
            Y = interpolate(self.grid_, self._surface, X, local=self.local, n_jobs=self.n_jobs)
            return check_images(Y.astype(X.dtype))

    def _jacobian(self, X: FloatArray) -> FloatArray:
        with np.errstate(over="ignore", invalid="ignore"):
            _, J = interpolate_with_jacobian(
                self.grid_, self._surface, X, local=self.local, n_jobs=self.n_jobs
            )
            return check_images(np.ascontiguousarray(J).astype(X.dtype))

    def _fills_by_noise(self) -> bool:
        # At known places the map is what is wanted: a robot's arm takes no pose beside it.
        return not self.places_are_known_

    def _without(self, rows: IntArray) -> Self | None:
        return self if self.places_are_known_ else None

    def _check_range(self, Y: FloatArray, *, reset: bool) -> None:
        check_entries(Y)

    def _density(self, X: FloatArray) -> FloatArray:
        slack = SLACK * (self.grid_.hi - self.grid_.lo)
        lo, hi = self.grid_.lo - slack, self.grid_.hi + slack
        in_box = ((lo <= X) & (hi >= X)).all(axis=1)
        p = np.ones(len(X)) if self._space is None else self._space.density(X)
        return np.where(in_box, p, 0.0).astype(X.dtype)

    def _latent_unit(self) -> FloatArray:
        return scott_widths(self.latent_, self.weights_, LEAST_WIDTH)

    def _wanted_dimensions(self, Y: FloatArray | None = None) -> int:
        q = int(self.n_components)
        if Y is not None and q > Y.shape[1]:
            raise ValueError(
                f"`n_components` is {q}, more than the {Y.shape[1]} feature(s) of the data; take "
                f"at most {Y.shape[1]}."
            )
        return q

    def _check_restored(self) -> None:
        parameters.check_common(self)
        shape = parameters.make_unit_grid(self).shape
        if self.grid_.shape != shape or len(self.node_values_) != self.grid_.size:
            raise ValueError(
                f"`grid_` has nodes {self.grid_.shape} and `node_values_` {len(self.node_values_)} "
                f"rows; the parameters ask for {shape}"
            )
        if self._n_features_out != self.grid_.n_axes:
            raise ValueError(f"`latent_` has no column for each of {self.grid_.n_axes} axes")

    def _check_parameters(self) -> None:
        parameters.check_for_fit(self)
