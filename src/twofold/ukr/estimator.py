"""Unsupervised Kernel Regression: the estimator.

UKR finds latent points X such that kernel regression from X to the data reconstructs each row from
the others (Meinicke, Klanke, Memisevic & Ritter 2005; Klanke 2007, chapters 4 and 5). A fit poses a
problem (`objective`), chooses a start (`starts`) and goes down to the minimum (`training`); what it
leaves is a `manifold`. Only those who ask for it go through `trimming`, `landmark_fitting` with
`adaptation`, or `smoothest`.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.utils import check_random_state

from twofold.array_types import FloatArray, IntArray
from twofold.checks.parameters import (
    check_at_least,
    check_choice,
    check_count,
    check_progress,
)
from twofold.checks.rows import check_differences, check_entries
from twofold.contract.distinct_rows import merge_duplicates, row_keys
from twofold.engine import DEGREES, check_cutoff
from twofold.engine.gpu.library import DEVICES
from twofold.engine.sums import PRECISIONS
from twofold.engine.threads import count_threads
from twofold.features import Custom, DataKernel, FeatureMap, get_data_kernel
from twofold.kernels import Kernel, get_kernel
from twofold.landmarks import Landmarks, get_landmarks
from twofold.latent.starts import own_start
from twofold.losses import (
    EpsilonInsensitive,
    Huber,
    Loss,
    Squared,
    get_loss,
    is_rotation_invariant,
    rows_of,
)
from twofold.model_files import register_value_type
from twofold.optimize import Callback, Journal
from twofold.regularization import (
    KINDS,
    Extension,
    LeaveKOut,
    LeaveOneOut,
    Regularization,
    Smoothest,
    get_regularization,
)
from twofold.ukr.devices import beyond_gpu
from twofold.ukr.feature_space import check_complete, check_square
from twofold.ukr.manifold import DATA_KERNELS, KernelManifold
from twofold.ukr.objective import principal_axes, spread_rows, stretch
from twofold.ukr.surface import in_fewer_coordinates
from twofold.ukr.training import Fit, Training, fit_points, loss_of_distinct

if TYPE_CHECKING:
    from twofold.ukr.checkpoint import Checkpoint
    from twofold.ukr.starts import Init

OPTIMIZERS = ("auto", "lbfgs", "rprop", "rprop-", "irprop-", "irprop+")
# What a model has before it has seen data: a map to look at.
UNKNOWN_DIMENSION = 2
# The error is measured in a unit of the data's own, in which a penalty grows like the square of one
# over it. Squares of such penalties' slopes are still numbers: in double and in single precision.
SMALLEST_PENALIZED, SMALLEST_PENALIZED_SINGLE = 1e-60, 1e-8
# Of more distinct rows, or numbers in them, a fit with landmarks looks at only this many.
MOST_ROWS, MOST_CELLS, LEAST_ROWS = 65_536, 100_000_000, 1_000
# Parameters that do not change the result of a fit.
WITHOUT_EFFECT = ("n_jobs", "verbose", "callbacks", "checkpoint", "random_state")
# What rows may hold in double precision, and in single precision.
FARTHEST_ROWS = 1e250, 1e30
for value_type in (*KINDS, *DATA_KERNELS, Squared, Huber, EpsilonInsensitive, Landmarks):
    register_value_type(value_type)


class UKR(KernelManifold):
    """Unsupervised Kernel Regression: a smooth manifold through the data, with a way back.

    Parameters
    ----------
    n_components : int or "auto", default=2
        Latent dimensions q. "auto" asks :func:`twofold.selection.choose_dimension`, and takes 2
        if the data gives no answer.
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
        ``Huber(delta)`` withstands outliers, ``EpsilonInsensitive(eps)`` goes with "smoothest"; any
        object with ``value_and_slope`` works, see :mod:`twofold.losses`.
    data_kernel : str, object or callable, default=None
        See the data through a kernel (feature-space UKR): "linear", "poly", "rbf", "l1", an
        object of :mod:`twofold.features`, or a function ``k(A, B)`` of two tables. With
        "precomputed" ``fit`` takes the kernel matrix, with "precomputed_distance" the matrix of
        distances; new rows are then their values with the training rows. Scores are in feature
        space.
    landmarks : int, "auto" or Landmarks, default=None
        Number of landmarks that stand for all rows: for large tables and small models. See
        :class:`twofold.landmarks.Landmarks` for how they are chosen and adapted.
    init : str, array or estimator, default="auto"
        Where latent points start. "auto" tries PCA, LLE, Isomap, Laplacian eigenmaps and, if
        these leave much open, t-SNE. It keeps the one with the lowest leave-one-out error once
        scaled. Above three dimensions it takes PCA, from which training ends lowest. "pca", "lle",
        "isomap", "laplacian", "tsne" or "unn" (unsupervised nearest neighbours) use only that. An
        (n_samples, n_components) array or any estimator with ``fit_transform`` is a start of your
        own.
    optimizer : str, default="auto"
        "lbfgs" (what "auto" takes), or one of "rprop", "rprop-", "irprop-", "irprop+".
    max_iter : int or "auto", default="auto"
        Maximum number of iterations, over all stages of a fit together (rounds of the
        smoothest manifold count separately). With 0 the start is only scaled. "auto" is 400 up to
        3,000 rows and 200 up to 10,000; in more than three dimensions 200 up to 1,000 rows and 100
        up to 10,000. For more rows it is 60, and falls to 15 between 40,000 and 160,000: more
        iterations hardly lower the error of new rows and take most of the time.
    tol : float, default=1e-4
        Stop when the objective falls by less than this fraction over some iterations.
    cutoff : float, default=1e-6
        Kernel weights below this, relative to the largest of a row, are left out; while more than
        2,000 rows are trained on the CPU, weights below 1e-4.
    n_jobs : int or None, default=-1
        Threads: -1 for every core, None for one. The result does not depend on it.
    device : {"auto", "cpu", "cuda"}, default="auto"
        Where sums are computed. "auto" takes a CUDA device for more than 10,000 rows if there is
        one (``pip install twofold[gpu]``) and it can do what the other parameters ask for; "cuda"
        raises if not. A GPU computes in single precision; a model that was fitted on one opens and
        runs without.
    precision : {"fp32", "tf32", "bf16"}, default="fp32"
        How exact products on a GPU are: gradients to 1e-5, 3e-3 or 1e-2 of their length. "tf32" is
        also slower than "fp32". It has no effect on the CPU, or for degrees above 0.
    random_state : int, RandomState or None, default=None
        Seed of t-SNE, and of the sample of rows on which starts are compared if the data is large.
    verbose : bool or "auto", default="auto"
        Whether to show progress on standard error; "auto" does so for fits of over two seconds if
        that is a terminal. Unless False, a process that has to compile says so in a line.
    callbacks : sequence of callables, default=()
        Each is called with a :class:`twofold.optimize.Event` after every iteration; returning True
        stops the fit.
    checkpoint : str or path, default=None
        A file to which ``fit`` writes its state every few seconds. If the process is killed, the
        same call resumes from there and ends with the same model; then the file is removed. A file
        of other rows or parameters is refused. With ``random_state=None`` the seed is made from
        the rows.

    Attributes
    ----------
    embedding_ : ndarray of shape (n_samples, n_components)
        Latent points of the rows passed to ``fit``, in their order.
    latent_, data_, weights_ : ndarrays
        The model: latent points, rows and weights of the distinct rows, or of the landmarks.
    loss_ : Loss
        The loss with all its parameters, e.g. Huber's ``delta``.
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
        max_iter: int | str = "auto",
        tol: float = 1e-4,
        cutoff: float = 1e-6,
        n_jobs: int | None = -1,
        device: str = "auto",
        precision: str = "fp32",
        random_state: Any = None,
        verbose: bool | str = "auto",
        callbacks: Sequence[Callback] = (),
        checkpoint: str | os.PathLike[str] | None = None,
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
        self.cutoff = cutoff
        self.n_jobs = n_jobs
        self.device = device
        self.precision = precision
        self.random_state = random_state
        self.verbose = verbose
        self.callbacks = callbacks
        self.checkpoint = checkpoint

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

    def _wanted_dimensions(self, Y: FloatArray | None = None) -> int:
        if self.n_components != "auto":
            return int(self.n_components)
        if Y is not None:
            self.n_components_ = self._dimension_of(Y)
        return getattr(self, "n_components_", UNKNOWN_DIMENSION)

    def _dimension_of(self, Y: FloatArray) -> int:
        """Return the columns of a start of the user's, else what the data shows."""
        if not isinstance(self.init, str) and not hasattr(self.init, "fit_transform"):
            return int(np.shape(self.init)[1])
        # Few fits ask, and it takes a while to import.
        from twofold.metrics.local_dimension import dimension_of

        return dimension_of(Y, self._seed(Y))

    def _seed(self, Y: FloatArray) -> int:
        """Draw the seed of a fit to distinct rows Y; one that goes on needs the same again."""
        given = self.random_state
        if given is None and self.checkpoint is not None:
            given = int(row_keys(Y[:1])[0] % 2**32)
        return int(check_random_state(given).randint(2**31 - 1))

    def _fit_distinct(self, Y: FloatArray, weights: FloatArray, source: IntArray) -> FloatArray:
        self.kernel_ = self.kernel
        loss = get_loss(self.loss, (len(self.member_), Y.shape[1]))
        loss = loss_of_distinct(loss, self.member_, source)
        kernel = None if self.data_kernel is None else get_data_kernel(self.data_kernel)
        if kernel is not None:
            check_complete(Y, is_precomputed=kernel.is_precomputed)
        if kernel is not None and kernel.is_precomputed:
            check_square(Y, len(self.member_))
            self.columns_ = source
        init: Init = self.init
        if not isinstance(init, str):
            names = "'auto', the name of a method"
            init = own_start(init, source, self._wanted_dimensions(), names)
        seed = self._seed(Y)
        if self.checkpoint is not None:
            self._journal = self._open_checkpoint(Y, weights, seed)
        with ExitStack() as stack:
            bars = [stack.enter_context(bar) for bar in self._bars()]
            training = self._training(self._most_iterations(), bars, seed)
            training = replace(training, journal=self._kept_steps())
            if getattr(loss, "trim", None) is None:
                fit = self._fit_rows(Y, weights, loss, init, training)
            else:
                fit = self._fit_trimmed(Y, weights, loss, init, training)
        self._keep(fit)
        # If the fit had ended before, nothing was evaluated, so there is no back end to name.
        self.backend_ = training.journal.begin() or self.backend_
        training.journal.end(self.backend_)
        return self._latent_of(fit)

    def _beyond_gpu(self) -> str:
        return beyond_gpu(self.degree, self._wanted_dimensions(), get_kernel(self.kernel))

    def _most_rows(self, D: int) -> int | None:
        loss = get_loss(self.loss)
        # Rows that are left out, and numbers for each row, are looked for among all rows.
        has_own_numbers = np.ndim(getattr(loss, "eps", 0)) > 0
        if self.landmarks is None or has_own_numbers or getattr(loss, "trim", None) is not None:
            return None
        from twofold.ukr.landmark_fitting import ROWS_PER_LANDMARK

        chosen = get_landmarks(self.landmarks)
        assert chosen is not None
        count = 0 if chosen.count == "auto" else int(chosen.count)
        return max(ROWS_PER_LANDMARK * count, min(MOST_ROWS, max(MOST_CELLS // D, LEAST_ROWS)))

    def _kept_steps(self) -> Journal:
        journal: Journal = self.__dict__.get("_journal", Journal())
        return journal

    def _end_fit(self) -> None:
        journal: Checkpoint | None = self.__dict__.pop("_journal", None)
        if journal is not None:
            journal.remove()

    def _open_checkpoint(self, Y: FloatArray, weights: FloatArray, seed: int) -> Checkpoint:
        """Return the journal of a fit to distinct rows Y, in which it may have got somewhere."""
        # Imported at first use: most fits are not kept.
        from twofold.ukr.checkpoint import Checkpoint, hash_of_arrays, hash_of_parameter

        assert self.checkpoint is not None
        made_of = {
            f"`{name}`": hash_of_parameter(name, value)
            for name, value in self.get_params(deep=False).items()
            if name not in WITHOUT_EFFECT
        }
        # Of a random state the seed counts that was drawn from it.
        made_of |= {"the rows": hash_of_arrays(Y, weights), "`random_state`": str(seed)}
        return Checkpoint(self.checkpoint, made_of)

    def _fit_rows(
        self,
        Y: FloatArray,
        weights: FloatArray,
        loss: Loss,
        init: Init,
        training: Training,
        *,
        landmarks: bool = True,
    ) -> Fit:
        """Fit distinct rows Y (n, D), their features, or landmarks if these are wanted."""
        kernel = None if self.data_kernel is None else get_data_kernel(self.data_kernel)
        q = self._wanted_dimensions()
        if landmarks and self.landmarks is not None:
            # Imported at first use: a model without landmarks, or one that is only opened, needs
            # none of it.
            from twofold.ukr.landmark_fitting import ROWS_PER_LANDMARK, LandmarkFitting

            chosen = get_landmarks(self.landmarks)
            assert chosen is not None
            count = chosen.number(len(Y))
            chosen = replace(chosen, count=count)
            part = spread_rows(len(Y), ROWS_PER_LANDMARK * count)
            if len(part) < len(Y):
                Y, weights, loss = Y[part], weights[part], rows_of(loss, part)
                init = init[part] if isinstance(init, np.ndarray) else init
            pose = partial(self._pose, weights=weights, loss=loss, training=True)
            return LandmarkFitting(pose, chosen, kernel, q, training).fit(Y, weights, init)
        features, carried = None, Y
        if kernel is not None:
            rows = np.ascontiguousarray(Y[:, self.columns_]) if kernel.is_precomputed else Y
            features = FeatureMap.fit(kernel, rows)
            carried = features.coordinates
        is_trimmed = getattr(loss, "trim", None) is not None  # and projects rows as they are
        turned = carried if is_trimmed else in_fewer_coordinates(carried, loss)
        problem = self._pose(turned, weights, loss, training=True).cross_validated(turned)
        fit = fit_points(problem, carried, q, init, training)
        return replace(fit, features=features)

    def _fit_trimmed(
        self, Y: FloatArray, weights: FloatArray, loss: Loss, init: Init, training: Training
    ) -> Fit:
        """Fit rows without those that no manifold explains, which are projected later."""
        from twofold.ukr.trimming import fit_trimmed

        def fit_rows(
            rows: IntArray, *, landmarks: bool = True, max_iter: int = training.max_iter
        ) -> Fit:
            own = init[rows] if isinstance(init, np.ndarray) else init
            how = replace(training, max_iter=max_iter)
            return self._fit_rows(
                Y[rows], weights[rows], rows_of(loss, rows), own, how, landmarks=landmarks
            )

        trim: float = loss.trim  # type: ignore[attr-defined]
        has_landmarks = self.landmarks is not None
        fit, kept = fit_trimmed(fit_rows, Y, trim, has_landmarks=has_landmarks)
        self.trimmed_ = (self.member_ >= 0) & ~kept[self.member_]
        # Distinct rows that are left close ranks; who was one of the others becomes -1, like a row
        # of weight 0.
        place = np.where(kept, np.cumsum(kept) - 1, -1)
        self.member_ = np.where(self.member_ >= 0, place[self.member_], -1)
        self.data_, self.weights_ = self.data_[kept], self.weights_[kept]
        return fit

    def _keep(self, fit: Fit) -> None:
        """Set the fitted attributes that a fit comes to."""
        if fit.landmarks is not None:
            # Landmarks become the rows of the model; the rows passed to fit are projected.
            rows, weights = self.data_, self.weights_
            self.data_, self.weights_ = fit.landmarks, np.ones(len(fit.landmarks))
            self.member_ = np.full(len(self.member_), -1)
            if fit.features is None:
                self._keep_sample(merge_duplicates(rows, weights))
        if fit.features is not None:
            if not isinstance(fit.features.kernel, Custom):
                self.data_kernel_ = fit.features.kernel
            self.feature_projector_ = fit.features.projector
            self.feature_mean_row_ = fit.features.mean_row
            self.feature_mean_ = fit.features.mean
        for name in ("carried", "smoothness", "violation"):
            if getattr(fit, name) is not None:
                setattr(self, f"{name}_", getattr(fit, name))
        self.start_, self.starts_ = fit.start.name, fit.errors
        self.loss_ = fit.problem.loss
        self._report(fit.solution, fit.problem)

    def _latent_of(self, fit: Fit) -> FloatArray:
        """Return the latent points of a fit in the user's units, turned to principal axes."""
        regularization, own = fit.problem.regularization, fit.start.own
        self.latent_scale_ = np.ones(fit.X.shape[1])
        if own is not None and fit.problem.landmarks is None:
            # The user's picture keeps its own units, however far training stretched it; the
            # kernel's are behind a factor.
            self.latent_scale_ = stretch(own, fit.X)
            return fit.X / self.latent_scale_ + own.mean(axis=0)
        is_bounded = isinstance(regularization, Extension) and regularization.penalty is None
        # A box, and polynomials without mixed terms, would be others after a turn.
        if is_bounded or (self.degree == "2-axes" and not isinstance(regularization, Extension)):
            return fit.X
        return principal_axes(fit.X)

    def _check_parameters(self) -> None:
        given = self.get_params(deep=False)
        check_count("n_components", self.n_components, may_be_auto=True)
        check_count("max_iter", self.max_iter, 0, may_be_auto=True)
        check_at_least("tol", self.tol)
        check_cutoff(self.cutoff)
        count_threads(self.n_jobs)
        get_kernel(self.kernel, training=True)
        choices = {"optimizer": OPTIMIZERS, "degree": DEGREES, "device": DEVICES}
        for name, allowed in {**choices, "precision": PRECISIONS}.items():
            check_choice(name, given[name], allowed)
        check_progress(self.verbose, self.callbacks)
        if not isinstance(self.checkpoint, str | os.PathLike | None):
            raise TypeError(f"`checkpoint` must be a path or None; got {self.checkpoint!r}.")
        kernel = None if self.data_kernel is None else get_data_kernel(self.data_kernel)
        if self.n_components == "auto" and kernel is not None:
            raise ValueError(
                "`n_components` = 'auto' looks at the rows themselves and cannot see them through "
                "a `data_kernel`; give a number."
            )
        loss, regularization = get_loss(self.loss), get_regularization(self.regularization)
        has_landmarks = self.landmarks is not None and get_landmarks(self.landmarks) is not None
        check_combination(loss, regularization, kernel, has_landmarks=has_landmarks)

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


def check_combination(
    loss: Loss,
    regularization: Regularization,
    data_kernel: DataKernel | None,
    *,
    has_landmarks: bool,
) -> None:
    """Raise if the parameters of a model make no sense together.

    Everything combines with everything, except:

    - an ε-insensitive loss with cross-validation: inside the tube a wiggly and a smooth manifold
      cost the same, so nothing smooths (Klanke 2007, section 5.1.2);
    - the smoothest manifold without an ε;
    - a loss of single components in feature space, which has no components that mean anything;
    - rows trimmed in feature space: how far they lie from the manifold is known in the data;
    - landmarks for a precomputed kernel: their kernel values are not in the matrix.
    """
    is_tube = isinstance(loss, EpsilonInsensitive)
    if is_tube and isinstance(regularization, LeaveOneOut | LeaveKOut):
        raise ValueError(
            "An ε-insensitive loss does not go with cross-validation (regularization="
            f"{regularization!r}): within ε a wiggly manifold costs no more than a smooth one. Use "
            "regularization='smoothest', Extension(...) or Density(...)."
        )
    if isinstance(regularization, Smoothest) and not is_tube:
        raise ValueError(
            "regularization='smoothest' looks for the smoothest manifold within ε of every row and "
            f"needs loss=EpsilonInsensitive(eps) of twofold.losses; got loss={loss!r}."
        )
    if data_kernel is not None and not is_rotation_invariant(loss):
        raise ValueError(
            f"The loss {loss!r} looks at single components, and in the feature space of a "
            "`data_kernel` these mean nothing. Use loss='squared' or EpsilonInsensitive(eps, "
            "per='vector'), or leave `data_kernel` out."
        )
    if data_kernel is not None and getattr(loss, "trim", None) is not None:
        raise ValueError(
            f"The loss {loss!r} leaves rows out that lie far from the manifold in the data, not in "
            "the feature space of a `data_kernel`. Leave `trim` or `data_kernel` out."
        )
    if data_kernel is not None and data_kernel.is_precomputed and has_landmarks:
        raise ValueError(
            "`landmarks` need kernel values that a precomputed matrix does not hold. Pass the "
            "kernel as a function of rows, or leave `landmarks` out."
        )
