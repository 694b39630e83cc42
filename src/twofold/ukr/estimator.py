"""Unsupervised Kernel Regression: the estimator.

UKR finds latent points X such that kernel regression from X to the data reconstructs each row from
the others (Meinicke, Klanke, Memisevic & Ritter 2005; Klanke 2007, chapters 4 and 5). The rooms of
this folder, in the order a fit passes through them: `parameters`, `table_fitting`,
`feature_space`, `filling`, `fitting` with `starts`, `scale`, `unfolding`, `training` (`problem`,
`objective`, `terms`) and `smoothest`, or `landmark_fitting` with `adaptation`, and `trimming`; for
the fitted model `fitted_attributes`, `surface` and `projection`.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from contextlib import ExitStack
from typing import Any, ClassVar, Self, cast

import numpy as np
from sklearn.utils import check_random_state
from sklearn.utils.metaestimators import available_if

from twofold.array_types import BoolArray, FloatArray, IntArray
from twofold.contract import TwoWayModel
from twofold.engine import Degree
from twofold.features import (
    L1,
    RBF,
    Laplacian,
    Linear,
    Polynomial,
    Precomputed,
    PrecomputedDistance,
    get_data_kernel,
)
from twofold.fitted_state import (
    COMMON,
    TINY,
    Array,
    FittedState,
    Number,
    Report,
    Size,
    Value,
    check_there,
)
from twofold.kernel_description import KernelDescription
from twofold.kernels import KERNELS, Kernel, get_kernel
from twofold.landmarks import Landmarks, get_landmarks
from twofold.losses import EpsilonInsensitive, Huber, Loss, Squared, get_loss
from twofold.optimize import Callback, ProgressBar
from twofold.regularization import (
    KINDS,
    Density,
    Regularization,
    get_regularization,
)
from twofold.table_checks import check_differences, check_entries
from twofold.tables import register_value_type
from twofold.ukr.fitted_attributes import feature_space_of, keep_table, latent_of, leave_out
from twofold.ukr.fitting import Wishes, teller
from twofold.ukr.growing import check_can_grow, grow, is_growing
from twofold.ukr.own_dimension import UNKNOWN, dimension_of_data
from twofold.ukr.parameters import check_parameters
from twofold.ukr.projection import project
from twofold.ukr.surface import Surface
from twofold.ukr.table_fitting import Settings, loss_of_distinct
from twofold.ukr.training import Training
from twofold.ukr.trimming import fit_trimmed

# The error is measured in a unit of the data's own, in which a penalty grows like the square of one
# over it. Squares of such penalties' slopes are still numbers: in double and in single precision.
SMALLEST_PENALIZED, SMALLEST_PENALIZED_SINGLE = 1e-60, 1e-8
# What rows may hold in double precision, and in single precision.
FARTHEST_ROWS = 1e250, 1e30
DATA_KERNELS = (Linear, Polynomial, RBF, Laplacian, L1, Precomputed, PrecomputedDistance)
for value_type in (*KINDS, *DATA_KERNELS, Squared, Huber, EpsilonInsensitive, Landmarks):
    register_value_type(value_type)


class UKR(TwoWayModel):
    """Unsupervised Kernel Regression: a smooth manifold through the data, with a way back.

    Parameters
    ----------
    n_components : int or "auto", default=2
        Latent dimensions q; "auto" asks :func:`twofold.selection.choose_dimension`, and takes 2
        if the data does not say.
    kernel : str or Kernel, default="gaussian"
        "gaussian", "quartic", "triweight", or a radial kernel of your own
        (:class:`twofold.kernels.Kernel`).
    degree : {0, 1, 2, "2-axes"}, default=0
        Degree of the regression: 0 is UKR, 1 and 2 fit local polynomials (ULPR), which are less
        biased where the manifold is curved; "2-axes" is 2 without products of two latent
        coordinates. A small ridge keeps the fit defined where fewer rows are near than the
        polynomial has terms; it then falls back towards degree 0.
    regularization : "loo", "smoothest" or object, default="loo"
        ``LeaveOneOut()``, ``LeaveKOut(k)``, ``Extension(...)``, ``Density(...)`` or
        ``Smoothest()`` of :mod:`twofold.regularization`.
    loss : "squared", "huber" or object, default="squared"
        ``Huber(delta)`` withstands outliers, ``EpsilonInsensitive(eps)`` goes with "smoothest";
        any object with ``value_and_slope`` will do, see :mod:`twofold.losses`.
    data_kernel : str, object or callable, default=None
        Look at the data through a kernel (feature-space UKR): "linear", "poly", "rbf", "l1", an
        object of :mod:`twofold.features`, a function ``k(A, B)`` of two tables, or "precomputed"
        (``fit`` takes the kernel matrix) and "precomputed_distance" (the matrix of distances);
        new rows are then their values with the training rows. Scores are in feature space.
    landmarks : int, "auto" or Landmarks, default=None
        So many landmarks stand for all rows: for large tables and small models. See
        :class:`twofold.landmarks.Landmarks` for how they are chosen and adapted.
    init : str, array or estimator, default="auto"
        Where latent points start. "auto" tries PCA, LLE, Isomap, Laplacian eigenmaps and, if
        these leave much open, t-SNE, and keeps what has the lowest leave-one-out error once
        scaled; one of "pca", "lle", "isomap", "laplacian", "tsne", "unn" (unsupervised nearest
        neighbours) uses only that; an (n_samples, n_components) array or any estimator with
        ``fit_transform`` is a start of your own.
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
        The model: latent points, rows and weights of the distinct rows, or of the landmarks.
    loss_ : Loss
        The loss with all its numbers, e.g. Huber's ``delta``.
    objective_ : float
        Value of the objective, e.g. the mean squared leave-one-out error.
    n_iter_, stop_reason_, history_ : int, str, ndarray
        How the optimisation went.
    n_components_ : int
        With ``n_components="auto"``, the latent dimensions that were chosen.
    start_, starts_ : str, dict
        Name of the start that won, and the leave-one-out error of every start tried.
    domain_threshold_ : float
        Density that bounds the domain.
    trimmed_ : ndarray of bool of shape (n_samples,)
        With ``Huber(trim=...)``, which rows were left out.
    violation_ : float
        With "smoothest", the largest excess of a residual over its tolerance; 0 at best.
    smoothness_ : float
        With adapted landmarks, the smoothness γ they were adapted with.
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

    fitted_state: ClassVar[FittedState] = {
        **COMMON,
        "n_components_": Size("q", is_optional=True),
        "kernel_": Value((str, Kernel), get_kernel),
        "latent_scale_": Array(("q",), low=TINY),
        "loss_": Value((object,), get_loss, is_optional=True),
        "widths_": Array(("n",), low=TINY, is_optional=True),
        "trimmed_": Array(("N",), "b", is_optional=True),
        "data_kernel_": Value(DATA_KERNELS, is_optional=True),
        "feature_projector_": Array(("n", "r"), is_optional=True),
        "feature_mean_row_": Array(("n",), is_optional=True),
        "feature_mean_": Number(is_optional=True),
        "carried_": Array(("n", "r"), is_optional=True),
        "columns_": Array(("n",), "i", low=0, high="D", is_optional=True),
        **dict.fromkeys(("start_", "starts_", "backend_", "violation_", "smoothness_"), Report()),
    }
    latent_scale_: FloatArray

    def __init__(
        self,
        n_components: int | str = 2,
        *,
        kernel: str | Kernel = "gaussian",
        degree: int | str = 0,
        regularization: str | Regularization = "loo",
        loss: str | Loss = "squared",
        data_kernel: Any = None,
        landmarks: int | str | Landmarks | None = None,
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
        self.degree = degree
        self.regularization = regularization
        self.loss = loss
        self.data_kernel = data_kernel
        self.landmarks = landmarks
        self.init = init
        self.optimizer = optimizer
        self.max_iter = max_iter
        self.tol = tol
        self.tolerance = tolerance
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose
        self.callbacks = callbacks

    @available_if(is_growing)  # type: ignore[untyped-decorator]
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
            return self._begin(X, sample_weight)
        self._check_parameters()
        check_can_grow(self)
        with self._all_or_nothing():
            grow(self, self._rows_to_take_in(X), sample_weight)
        return self

    # ---- what the contract asks for -------------------------------------------------------------

    def _check_range(self, Y: FloatArray, *, reset: bool) -> None:
        is_plain = self.data_kernel is None and self.landmarks is None
        if reset and is_plain and not np.isnan(Y).any():
            # Such a fit measures rows in a unit of their own: only differences must be numbers.
            check_entries(Y, *FARTHEST_ROWS)
        else:
            super()._check_range(Y, reset=reset)
        if reset and getattr(self.regularization, "penalty", None) is not None:
            is_double = Y.dtype == np.float64
            check_differences(Y, SMALLEST_PENALIZED if is_double else SMALLEST_PENALIZED_SINGLE)

    def _fit_distinct(self, Y: FloatArray, weights: FloatArray, source: IntArray) -> FloatArray:
        self.kernel_, q = self.kernel, self._wanted_dimensions()
        loss = get_loss(self.loss, (len(self.member_), Y.shape[1]))
        settings = self._settings(loss_of_distinct(loss, self.member_, source))
        seed = int(check_random_state(self.random_state).randint(2**31 - 1))
        with ExitStack() as stack:
            bars = [stack.enter_context(bar) for bar in self._progress_bars()]
            training = self._training(self.max_iter, bars)
            wishes = Wishes(q, self.init, seed, self.n_jobs, training, teller(bars))
            table, kept = fit_trimmed(settings, Y, weights, source, len(self.member_), wishes)
        if getattr(loss, "trim", None) is not None:
            self.trimmed_ = (self.member_ >= 0) & ~kept[self.member_]
        leave_out(self, ~kept)
        keep_table(self, table)
        return latent_of(self, table.fit)

    def _restore(self) -> None:
        self._space = feature_space_of(self)
        carried = self.data_ if self._space is None else self._space.coordinates
        problem = self._settings(Squared()).problem(carried, self.weights_)
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
        if self._space is not None:
            Y = self._space.place(Y)
        return project(self._surface, Y, observed, self._loss_of_new_rows()).X / self.latent_scale_

    def _loss_of_new_rows(self) -> Loss:
        """Return the loss by which rows are projected.

        Within ε every place would be as good as any other, and a loss with numbers for each
        training row has none for new ones: the squared distance decides then.
        """
        loss: Loss = getattr(self, "loss_", Squared())
        return Squared() if hasattr(loss, "at") else loss

    def _regress(self, X: FloatArray) -> FloatArray:
        places = X * self.latent_scale_
        if self._space is None:
            return self._surface.regress(places)
        size, space = self._space.places_at_a_time(), self._space
        parts = [
            space.images(self._surface.basis(places[start : start + size]))
            for start in range(0, max(len(X), 1), size)
        ]
        return np.concatenate(parts).astype(X.dtype)

    def _squared_errors(self, Y: FloatArray) -> FloatArray:
        if self._space is None:
            return super()._squared_errors(Y)
        F = self._surface.regress(self._place(Y) * self.latent_scale_)
        return ((self._space.place(Y) - F) ** 2).sum(axis=1) + self._space.outside(Y)

    def _density(self, X: FloatArray) -> FloatArray:
        return self._surface.density(X * self.latent_scale_)

    def _jacobian(self, X: FloatArray) -> FloatArray:
        surface = self._surface
        if self._space is not None:
            if not self._space.is_averaging:
                return super()._jacobian(X)
            surface = self._space.averages(surface)
        J = surface.look(X * self.latent_scale_)[1]
        scale = self.latent_scale_ * surface.rows.unit
        return np.ascontiguousarray(J.transpose(0, 2, 1) * scale).astype(X.dtype)

    def _latent_unit(self) -> FloatArray:
        return 1 / self.latent_scale_

    def _wanted_dimensions(self, Y: FloatArray | None = None) -> int:
        if self.n_components != "auto":
            return int(self.n_components)
        if Y is not None:
            self.n_components_ = dimension_of_data(Y, self.init, self.random_state)
        return getattr(self, "n_components_", UNKNOWN)

    def kernel_regression(self) -> KernelDescription | None:
        """Return the way back in plain arrays, or None if it is no kernel regression.

        It is none with ``data_kernel``, where rows are sought behind a kernel's features, and with
        a kernel of your own, which others do not know.
        """
        super().kernel_regression()
        kernel = get_kernel(self.kernel_)
        if self._space is not None or KERNELS.get(kernel.name) is not kernel:
            return None
        return KernelDescription(
            latent=self.latent_,
            data=self.data_,
            weights=self.weights_,
            widths=getattr(self, "widths_", None),
            kernel=kernel.name,
            degree=self.degree,
            tolerance=self.tolerance,
            latent_scale=np.broadcast_to(self.latent_scale_, self.latent_.shape[1:]),
        )

    # ---- inside -----------------------------------------------------------------------------

    def _settings(self, loss: Loss) -> Settings:
        return Settings(
            get_kernel(self.kernel_, training=True),
            cast(Degree, self.degree if isinstance(self.degree, str) else int(self.degree)),
            get_regularization(self.regularization),
            loss,
            None if self.data_kernel is None else get_data_kernel(self.data_kernel),
            get_landmarks(self.landmarks),
            self.tolerance,
            self.n_jobs,
        )

    def _training(self, max_iter: int, bars: list[ProgressBar]) -> Training:
        method = "lbfgs" if self.optimizer == "auto" else self.optimizer
        return Training(method, max_iter, self.tol, [*self.callbacks, *bars])

    def _progress_bars(self) -> list[ProgressBar]:
        wanted = sys.stderr.isatty() if self.verbose == "auto" else self.verbose
        return [ProgressBar()] if wanted else []

    def _check_restored(self) -> None:
        super()._check_restored()
        self.loss_ = getattr(self, "loss_", Squared())  # the first files knew no other
        needed = ("feature_projector_", "feature_mean_row_", "feature_mean_")
        check_there(self, dict.fromkeys(needed, self.data_kernel is not None))
        loss = self._loss_of_new_rows()
        loss.value_and_slope(np.zeros((1, self.data_.shape[1])))  # a number may be missing

    def _check_parameters(self) -> None:
        check_parameters(self.get_params(deep=False))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = self.data_kernel is None
        given = self.data_kernel
        tags.input_tags.pairwise = (
            given in ("precomputed", "precomputed_distance")
            if isinstance(given, str)
            else getattr(given, "is_precomputed", False)
        )
        return tags
