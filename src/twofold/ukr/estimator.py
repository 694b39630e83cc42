"""Unsupervised Kernel Regression: the estimator.

UKR finds latent points X such that kernel regression from X to the data reconstructs each row from
the others (Meinicke, Klanke, Memisevic & Ritter 2005; Klanke 2007, chapter 4). The rooms of this
folder, in the order a fit passes through them: `filling`, `candidates`, `scale`, `unfolding` and
`training` (`objective`, `terms`), and for the fitted model `surface` and `projection`.
"""

from __future__ import annotations

import numbers
import sys
import time
import warnings
from collections.abc import Callable, Iterable, Sequence
from contextlib import ExitStack
from dataclasses import replace
from typing import Any, Self

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state
from sklearn.utils.validation import _check_sample_weight

from twofold.array_types import BoolArray, FloatArray, IntArray
from twofold.contract import TwoWayModel
from twofold.distinct_rows import merge_duplicates
from twofold.engine import KernelSums, check_tolerance
from twofold.engine.threads import count_threads, single_threaded_blas
from twofold.kernels import Kernel, get_kernel
from twofold.losses import Squared
from twofold.optimize import Callback, Event, ProgressBar, Solution, StopReason
from twofold.regularization import (
    Density,
    Extension,
    LeaveOneOut,
    Regularization,
    get_regularization,
)
from twofold.table_checks import check_missing
from twofold.tables import register_value_type
from twofold.ukr.projection import project
from twofold.ukr.rows import CarriedRows, data_unit
from twofold.ukr.starts import choose_start
from twofold.ukr.surface import Surface
from twofold.ukr.training import Problem, Training, train
from twofold.ukr.unfolding import unfold

OPTIMIZERS = ("auto", "lbfgs", "rprop", "rprop-", "irprop-", "irprop+")
for value_type in (LeaveOneOut, Extension, Density):
    register_value_type(value_type)

# A tenth of a fit is enough to settle rows that arrive where the others already lie.
PARTIAL_SHARE = 10


class UKR(TwoWayModel):
    """Unsupervised Kernel Regression: a smooth manifold through the data, with a way back.

    Parameters
    ----------
    n_components : int, default=2
        Latent dimensions q.
    kernel : str or Kernel, default="gaussian"
        "gaussian", "quartic", "triweight", or a radial kernel of your own
        (:class:`twofold.kernels.Kernel`).
    regularization : "loo" or object, default="loo"
        ``LeaveOneOut()``, ``Extension(...)`` or ``Density(...)`` of
        :mod:`twofold.regularization`.
    init : str, array or estimator, default="auto"
        Where latent points start. "auto" tries PCA, LLE, Isomap, Laplacian eigenmaps and, if
        these leave much open, t-SNE, and keeps what has the lowest leave-one-out error once
        scaled; one of "pca", "lle", "isomap",
        "laplacian", "tsne" uses only that; an (n_samples, n_components) array or any estimator
        with ``fit_transform`` is a start of your own.
    optimizer : str, default="auto"
        "lbfgs" (what "auto" takes), or one of "rprop", "rprop-", "irprop-", "irprop+".
    max_iter : int, default=200
        Most iterations of the optimiser, each stage of a homotopy counted by itself. With 0 the
        start is only scaled.
    tol : float, default=1e-4
        Stop when the objective falls by less than this fraction over some iterations.
    tolerance : float, default=1e-6
        Kernel weights below this, relative to the largest of a row, are left out.
    n_jobs : int, default=None
        Threads; None means all cores. The result does not depend on it.
    random_state : int, RandomState or None, default=None
        Decides about t-SNE and which rows stand for the others when starts are sought on large
        data.
    verbose : bool or "auto", default="auto"
        Progress on standard error: for fits of over two seconds, if that is a terminal ("auto"),
        always, or never.
    callbacks : sequence of callables, default=()
        Each is called with a :class:`twofold.optimize.Event` after every iteration; returning True
        stops the fit.

    Attributes
    ----------
    embedding_ : ndarray of shape (n_samples, n_components)
        Latent points of the rows passed to ``fit``, in their order.
    latent_, data_, weights_ : ndarrays
        The model: latent points, rows and weights of the distinct rows.
    objective_ : float
        Value of the objective, e.g. the mean squared leave-one-out error.
    n_iter_, stop_reason_, history_ : int, str, ndarray
        How the optimisation went.
    start_, starts_ : str, dict
        Name of the start that won, and the leave-one-out error of every start tried.
    domain_threshold_ : float
        Density that bounds the domain.
    backend_ : str
        Which back end of the engine ran the last evaluation, and why.
    n_features_in_, feature_names_in_ : int, ndarray
        As in scikit-learn.

    References
    ----------
    S. Klanke, Learning manifolds with the Parametrized Self-Organizing Map and Unsupervised Kernel
    Regression, PhD thesis, Bielefeld University, 2007, chapter 4.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from twofold import UKR
    >>> Y, _ = load_digits(return_X_y=True)
    >>> model = UKR(random_state=0, max_iter=20).fit(Y[:300])
    >>> model.transform(Y[300:302]).shape
    (2, 2)
    >>> model.inverse_transform([[0.0, 0.0]]).shape
    (1, 64)
    """

    def __init__(
        self,
        n_components: int = 2,
        *,
        kernel: str | Kernel = "gaussian",
        regularization: str | Regularization = "loo",
        init: Any = "auto",
        optimizer: str = "auto",
        max_iter: int = 200,
        tol: float = 1e-4,
        tolerance: float = 1e-6,
        n_jobs: int | None = None,
        random_state: Any = None,
        verbose: bool | str = "auto",
        callbacks: Sequence[Callback] = (),
    ) -> None:
        self.n_components = n_components
        self.kernel = kernel
        self.regularization = regularization
        self.init = init
        self.optimizer = optimizer
        self.max_iter = max_iter
        self.tol = tol
        self.tolerance = tolerance
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose
        self.callbacks = callbacks

    def partial_fit(self, X: Any, y: None = None, sample_weight: Any = None) -> Self:
        """Take new rows in without starting over.

        New rows begin where they project to; then all latent points are improved together for a
        tenth of ``max_iter``. ``embedding_`` grows by the new rows. On an unfitted model it is
        ``fit``.

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
            return self.fit(X, sample_weight=sample_weight)
        self._check_parameters()
        if hasattr(self, "widths_"):
            raise ValueError(
                "A model with local bandwidths cannot take new rows in: they belong to the "
                "picture it was made from. Call `upgrade` with a picture of all rows."
            )
        with self._all_or_nothing():
            self._grow(X, sample_weight)
        return self

    def _grow(self, X: Any, sample_weight: Any) -> None:
        Y = self._validate(X, reset=False)
        weights = _check_sample_weight(sample_weight, Y, dtype=np.float64, ensure_non_negative=True)
        check_missing(Y, columns=False)
        places = self._place(Y)
        known = self._index.find(Y)
        fresh = (known < 0) & (weights > 0)
        self.weights_ = self.weights_.copy()
        np.add.at(self.weights_, known[known >= 0], weights[known >= 0])
        member = known.copy()
        if fresh.any():
            added = merge_duplicates(Y[fresh], weights[fresh])
            member[fresh] = len(self.data_) + added.member
            self.data_ = np.concatenate([self.data_, added.Y])
            self.weights_ = np.concatenate([self.weights_, added.weights])
            self.latent_ = np.concatenate([self.latent_, places[fresh][added.first]])
        self.member_ = np.concatenate([self.member_, member])
        self.latent_ = self._settle(self.data_, self.weights_, self.latent_)
        self._wake()
        self._bound_domain()
        placed = np.concatenate([self.embedding_, places])
        self.embedding_ = np.where(
            self.member_[:, None] >= 0, self.latent_[self.member_], placed
        ).astype(Y.dtype)

    # ---- what the contract asks for -------------------------------------------------------------

    def _fit_distinct(self, Y: FloatArray, weights: FloatArray, source: IntArray) -> FloatArray:
        self.kernel_ = self.kernel
        problem = self._problem(*_turned(Y, weights))
        seed = int(check_random_state(self.random_state).randint(2**31 - 1))
        with ExitStack() as stack:
            bars = [stack.enter_context(bar) for bar in self._progress_bars()]
            start = choose_start(
                problem, Y, self.n_components, self.init, source, seed, self.n_jobs, _teller(bars)
            )
            training = self._training(0 if start.interrupted else self.max_iter, bars)
            go = unfold if start.linear and training.max_iter else train
            solution = go(problem, start.X, training)
        if start.interrupted:
            solution = replace(solution, stop_reason=StopReason.INTERRUPTED)
        unit = problem.error_unit
        self.start_ = start.name
        self.starts_ = {name: float(error * unit) for name, error in start.errors.items()}
        self.latent_scale_: FloatArray = np.ones(self.n_components)
        self._report(solution, problem)
        X = solution.X
        if isinstance(problem.regularization, Extension) and not start.is_own:
            return X if problem.regularization.penalty is None else _principal_axes(X)
        if start.is_own:
            # The user's picture keeps its own units; the kernel's are behind a factor.
            self.latent_scale_ = start.scales
            return X / start.scales + start.centre
        return _principal_axes(X)

    def _settle(self, Y: FloatArray, weights: FloatArray, X: FloatArray) -> FloatArray:
        """Improve latent points (in the user's units) that are already good."""
        problem = self._problem(Y, weights)
        training = self._training(-(-self.max_iter // PARTIAL_SHARE), self._progress_bars())
        scaled = X * self.latent_scale_
        solution = train(problem, scaled, training)
        self._report(solution, problem)
        return ((solution.X + scaled.mean(axis=0)) / self.latent_scale_).astype(Y.dtype)

    def _restore(self) -> None:
        problem = self._problem(self.data_, self.weights_)
        X = self.latent_ * self.latent_scale_
        widths = getattr(self, "widths_", None)
        self._surface = Surface(X, problem.rows, self.weights_, problem.engine, widths)
        self._surface.threshold = getattr(self, "domain_threshold_", 0.0)

    def _bound_domain(self) -> None:
        regularization = get_regularization(self.regularization)
        if isinstance(regularization, Density) and regularization.threshold is not None:
            # The constraint is the domain; a point on its border may lie a rounding error below.
            lowest = self._surface.lowest_density()
            self.domain_threshold_ = min(lowest, regularization.threshold)
        else:
            self.domain_threshold_ = self._surface.default_threshold()
        self._surface.threshold = self.domain_threshold_

    def _project(self, Y: FloatArray, observed: BoolArray | None) -> FloatArray:
        return project(self._surface, Y, observed).X / self.latent_scale_

    def _regress(self, X: FloatArray) -> FloatArray:
        return self._surface.regress(X * self.latent_scale_)

    def _density(self, X: FloatArray) -> FloatArray:
        return self._surface.density(X * self.latent_scale_)

    def _jacobian(self, X: FloatArray) -> FloatArray:
        J = self._surface.look(X * self.latent_scale_)[1]
        scale = self.latent_scale_ * self._surface.rows.unit
        return np.ascontiguousarray(J.transpose(0, 2, 1) * scale).astype(X.dtype)

    def _latent_unit(self) -> FloatArray:
        return 1 / self.latent_scale_

    # ---- inside -----------------------------------------------------------------------------

    def _problem(self, Y: FloatArray, weights: FloatArray) -> Problem:
        observed = ~np.isnan(Y)
        rows = CarriedRows(Y, weights, None if observed.all() else observed, data_unit(Y))
        engine = KernelSums(get_kernel(self.kernel_, training=True), self.tolerance, self.n_jobs)
        return Problem(rows, weights, Squared(), get_regularization(self.regularization), engine)

    def _training(self, max_iter: int, bars: list[ProgressBar]) -> Training:
        method = "lbfgs" if self.optimizer == "auto" else self.optimizer
        return Training(method, max_iter, self.tol, [*self.callbacks, *bars])

    def _progress_bars(self) -> list[ProgressBar]:
        wanted = sys.stderr.isatty() if self.verbose == "auto" else self.verbose
        return [ProgressBar()] if wanted else []

    def _report(self, solution: Solution, problem: Problem) -> None:
        plan = problem.engine.last_plan
        self.backend_ = f"{plan.backend}: {plan.reason}" if plan else ""
        self.objective_ = float(solution.value * problem.error_unit)
        self.history_ = solution.history * problem.error_unit
        self.n_iter_, self.stop_reason_ = solution.n_iter, str(solution.stop_reason)
        if solution.stop_reason is StopReason.INTERRUPTED:
            warnings.warn(
                f"Interrupted after {solution.n_iter} iterations; the best model so far is kept.",
                ConvergenceWarning,
                stacklevel=4,
            )

    def _check_parameters(self) -> None:
        _check_number("n_components", self.n_components, numbers.Integral, 1)
        _check_number("max_iter", self.max_iter, numbers.Integral, 0)
        _check_number("tol", self.tol, numbers.Real, 0)
        check_tolerance(self.tolerance)
        count_threads(self.n_jobs)
        get_kernel(self.kernel, training=True)
        get_regularization(self.regularization)
        listeners = self.callbacks if isinstance(self.callbacks, Iterable) else [self.callbacks]
        if not isinstance(self.callbacks, Iterable) or not all(map(callable, listeners)):
            raise ValueError(
                "`callbacks` must be a sequence of functions, e.g. [print]; "
                f"got {self.callbacks!r}."
            )
        if self.optimizer not in OPTIMIZERS:
            raise ValueError(f"`optimizer` must be one of {OPTIMIZERS}; got {self.optimizer!r}.")
        if self.verbose not in (True, False, "auto"):
            raise ValueError(f"`verbose` must be True, False or 'auto'; got {self.verbose!r}.")


def _teller(bars: list[ProgressBar]) -> Callable[[str, int, int], None]:
    """Return a function that shows what happens before the first iteration."""
    began = time.perf_counter()

    def tell(words: str, step: int, total: int) -> None:
        nothing = np.empty((0, 0))
        event = Event(step, total, float("nan"), nothing, time.perf_counter() - began, words)
        for bar in bars:
            bar(event)

    return tell


def _check_number(name: str, value: Any, kind: Any, least: int) -> None:
    if not isinstance(value, kind) or isinstance(value, bool) or not value >= least:
        noun = "an integer" if kind is numbers.Integral else "a number"
        raise ValueError(f"`{name}` must be {noun} of at least {least}; got {value!r}.")


def _turned(Y: FloatArray, weights: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return rows in fewer coordinates if they have more columns than there are rows.

    n rows span at most n - 1 directions; turned into those, all distances stay as they are and
    squared-loss training does not notice.
    """
    n, D = Y.shape
    if n >= D or np.isnan(Y).any():
        return Y, weights
    unit = data_unit(Y)
    centred = (Y / unit - (Y / unit).mean(axis=0)).astype(np.float64)
    with single_threaded_blas():
        values, vectors = np.linalg.eigh(centred @ centred.T)
    kept = values > 1e-12 * values[-1]
    return (unit * vectors[:, kept] * np.sqrt(values[kept])).astype(Y.dtype), weights


def _principal_axes(X: FloatArray) -> FloatArray:
    """Turn latent points so that their axes fall in variance; the model does not change by it."""
    X = X - X.mean(axis=0)
    _, axes = np.linalg.eigh(X.T.astype(np.float64) @ X.astype(np.float64))
    axes = axes[:, ::-1]
    largest = np.abs(axes).argmax(axis=0)
    signs = np.sign(axes[largest, np.arange(len(largest))])
    return (X @ (axes * signs)).astype(X.dtype)
