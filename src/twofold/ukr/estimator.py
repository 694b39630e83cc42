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
from collections.abc import Callable, Sequence
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
from twofold.engine import KernelSums
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
from twofold.ukr.rows import CarriedRows
from twofold.ukr.starts import choose_start
from twofold.ukr.surface import Surface
from twofold.ukr.training import Problem, Training, train
from twofold.ukr.unfolding import unfold

OPTIMIZERS = ("auto", "lbfgs", "rprop", "rprop-", "irprop-", "irprop+")
for value_type in (LeaveOneOut, Extension, Density):
    register_value_type(value_type)

# The domain ends where the density is half of the lowest at a training point; see `surface`.
DOMAIN_SHARE = 0.5
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
        Where latent points start. "auto" tries PCA, LLE, Isomap, Laplacian eigenmaps and t-SNE and
        keeps what has the lowest leave-one-out error once scaled; one of "pca", "lle", "isomap",
        "laplacian", "tsne" uses only that; an (n_samples, n_components) array or any estimator
        with ``fit_transform`` is a start of your own.
    optimizer : str, default="auto"
        "lbfgs" (what "auto" takes), or one of "rprop", "rprop-", "irprop-", "irprop+".
    max_iter : int, default=200
        Most iterations of the optimiser, each stage of a homotopy counted by itself. With 0 the
        start is only scaled.
    tol : float, default=1e-4
        Stop when the objective falls by less than this fraction over some iterations.
    tolerance : float, default=1e-7
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
        tolerance: float = 1e-7,
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
        Y = self._validate(X, reset=False)
        weights = _check_sample_weight(sample_weight, Y, dtype=np.float64, ensure_non_negative=True)
        check_missing(Y, columns=False)
        places = self._place(Y)
        known = self._index.find(Y)
        fresh = (known < 0) & (weights > 0)
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
        return self

    # ---- what the contract asks for -------------------------------------------------------------

    def _fit_distinct(self, Y: FloatArray, weights: FloatArray, source: IntArray) -> FloatArray:
        self._check_parameters(source)
        problem = self._problem(Y, weights)
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
        self.start_, self.starts_ = start.name, start.errors
        self.latent_scale_: FloatArray = np.ones(self.n_components)
        self._report(solution, problem)
        X = solution.X
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
        lowest = float(self._surface.density(self._surface.X).min())
        regularization = get_regularization(self.regularization)
        if isinstance(regularization, Density) and regularization.threshold is not None:
            # The constraint is the domain; a point on its border may lie a rounding error below.
            self.domain_threshold_ = min(lowest, regularization.threshold)
        else:
            self.domain_threshold_ = DOMAIN_SHARE * lowest
        self._surface.threshold = self.domain_threshold_

    def _project(self, Y: FloatArray, observed: BoolArray | None) -> FloatArray:
        return project(self._surface, Y, observed).X / self.latent_scale_

    def _regress(self, X: FloatArray) -> FloatArray:
        return self._surface.regress(X * self.latent_scale_)

    def _density(self, X: FloatArray) -> FloatArray:
        return self._surface.density(X * self.latent_scale_)

    def _jacobian(self, X: FloatArray) -> FloatArray:
        J = self._surface.look(X * self.latent_scale_)[1]
        return np.ascontiguousarray(J.transpose(0, 2, 1) * self.latent_scale_)

    def _latent_unit(self) -> FloatArray:
        return 1 / self.latent_scale_

    # ---- inside -----------------------------------------------------------------------------

    def _problem(self, Y: FloatArray, weights: FloatArray) -> Problem:
        observed = ~np.isnan(Y)
        rows = CarriedRows(Y, weights, None if observed.all() else observed)
        engine = KernelSums(get_kernel(self.kernel, training=True), self.tolerance, self.n_jobs)
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
        self.objective_, self.history_ = float(solution.value), solution.history
        self.n_iter_, self.stop_reason_ = solution.n_iter, str(solution.stop_reason)
        if solution.stop_reason is StopReason.INTERRUPTED:
            warnings.warn(
                f"Interrupted after {solution.n_iter} iterations; the best model so far is kept.",
                ConvergenceWarning,
                stacklevel=4,
            )

    def _check_parameters(self, source: IntArray) -> None:
        _check_number("n_components", self.n_components, numbers.Integral, 1)
        _check_number("max_iter", self.max_iter, numbers.Integral, 0)
        _check_number("tol", self.tol, numbers.Real, 0)
        if not 0 < self.tolerance < 0.1:
            raise ValueError(f"`tolerance` must lie between 0 and 0.1; got {self.tolerance!r}.")
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


def _principal_axes(X: FloatArray) -> FloatArray:
    """Turn latent points so that their axes fall in variance; the model does not change by it."""
    X = X - X.mean(axis=0)
    _, axes = np.linalg.eigh(X.T.astype(np.float64) @ X.astype(np.float64))
    axes = axes[:, ::-1]
    largest = np.abs(axes).argmax(axis=0)
    signs = np.sign(axes[largest, np.arange(len(largest))])
    return (X @ (axes * signs)).astype(X.dtype)
