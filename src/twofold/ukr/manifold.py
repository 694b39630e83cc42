"""A fitted manifold of kernel regression: there, back, and taking new rows in.

What a fit leaves is all that a saved file holds: plain arrays and values in the user's units, from
which `_restore` builds what regression and projection need.
"""

import logging
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, ClassVar, Self, cast

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from twofold.array_types import BoolArray, FloatArray, IntArray
from twofold.checks.rows import check_missing
from twofold.contract.distinct_rows import DistinctRows, merge_duplicates
from twofold.contract.fitted_state import (
    COMMON,
    SAMPLE,
    TINY,
    Array,
    FittedState,
    Number,
    Report,
    Size,
    Value,
    check_there,
)
from twofold.contract.growing import GrowingModel
from twofold.contract.kernel_description import KernelDescription
from twofold.engine import Degree, KernelSums
from twofold.engine.cells import GRIDDED
from twofold.engine.gpu.library import load_torch, why_no_gpu
from twofold.features import (
    L1,
    RBF,
    FeatureMap,
    Laplacian,
    Linear,
    Polynomial,
    Precomputed,
    PrecomputedDistance,
    get_data_kernel,
)
from twofold.kernels import KERNELS, Kernel, get_kernel
from twofold.landmarks import get_landmarks
from twofold.losses import Loss, Squared, get_loss
from twofold.optimize import Callback, Solution, StopReason
from twofold.process_settings import warn
from twofold.regularization import Density, Smoothest, get_regularization
from twofold.rowwise import blocks
from twofold.ukr.feature_space import FeatureSpace
from twofold.ukr.objective import Problem, common_scale, scale_each_dimension, stretch
from twofold.ukr.projection import places_of, rough_places_of
from twofold.ukr.surface import Surface
from twofold.ukr.training import Training, loss_for_starts, settle, with_huber_scale

logger = logging.getLogger(__name__)

DATA_KERNELS = (Linear, Polynomial, RBF, Laplacian, L1, Precomputed, PrecomputedDistance)
# What "auto" iterations are: fewer for many rows, each of which has more of the others around it.
ITERATIONS, MANY_ROWS = 200, 10_000
MOST_OF_MANY, LEAST_OF_MANY, ROWS_TIMES_ITERATIONS = 60, 15, 2_400_000
# In more than three dimensions each of some thousand rows has room to follow its own noise.
SOME_ROWS, ITERATIONS_OF_SOME = 1_000, 100
FEW_ROWS, ITERATIONS_OF_FEW = 3_000, 400
# What is left out while more rows than that are trained: fits are quicker, and no worse.
ROUGH_ROWS, ROUGH_CUTOFF = 2_000, 1e-4
# A tenth of a fit is enough to settle rows that arrive where the others already lie.
PARTIAL_SHARE = 10


class KernelManifold(GrowingModel):
    """Latent points, the rows they carry, and the regression between them."""

    fitted_state: ClassVar[FittedState] = {
        **SAMPLE,
        **COMMON,
        "n_components_": Size("q", is_optional=True),
        "kernel_": Value((str, Kernel), get_kernel),
        "latent_scale_": Array(("q",), low=TINY),
        "loss_": Value((object,), get_loss, is_optional=True),
        "widths_": Array(("n",), low=TINY, is_optional=True),
        "row_weights_": Array(("N",), low=0, is_optional=True),
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
    data_: FloatArray
    weights_: FloatArray
    member_: IntArray
    stop_reason_: str

    # ---- there and back -------------------------------------------------------------------------

    def _restore(self) -> None:
        self._space = self._feature_space()
        carried = self.data_ if self._space is None else self._space.coordinates
        problem = self._pose(carried, self.weights_, Squared())
        X = self.latent_ * self.latent_scale_
        self._surface = Surface(X, problem.rows, problem.engine, getattr(self, "widths_", None))
        if hasattr(self, "domain_threshold_"):
            self._surface.threshold = self.domain_threshold_

    def _feature_space(self) -> FeatureSpace | None:
        """Return the feature space of a fitted model; None without a data kernel."""
        if self.data_kernel is None:
            return None
        kernel = getattr(self, "data_kernel_", None) or get_data_kernel(self.data_kernel)
        data = self.data_[:, :0] if kernel.is_precomputed else self.data_
        found = FeatureMap(
            kernel, data, self.feature_projector_, self.feature_mean_row_, self.feature_mean_
        )
        carried = getattr(self, "carried_", found.coordinates)
        columns = self.columns_ if kernel.is_precomputed else None
        return FeatureSpace(found, self.data_, carried, columns, self.n_jobs)

    def _bound_domain(self) -> None:
        self.domain_threshold_ = self._surface.domain_bound()
        regularization = get_regularization(self.regularization)
        if isinstance(regularization, Density) and regularization.threshold is not None:
            # The constraint is the domain; a point on its border may lie a rounding error below.
            lowest = self._surface.lowest_density()
            self.domain_threshold_ = min(lowest, regularization.threshold)
        self._surface.threshold = self.domain_threshold_

    def _project(self, Y: FloatArray, observed: BoolArray | None) -> FloatArray:
        if self._space is not None:
            Y = self._space.place(Y)
        places = places_of(self._surface, Y, observed, self._loss_of_new_rows())
        return places / self.latent_scale_

    def _place_fitted(self, Y: FloatArray) -> FloatArray:
        if self.stop_reason_ != StopReason.INTERRUPTED:
            try:
                return super()._place_fitted(Y)
            except KeyboardInterrupt:
                self.stop_reason_ = str(StopReason.INTERRUPTED)
                self._kept_steps().close()
                self._warn_of_interrupt("while rows were placed")
        # Who interrupts a fit does not want to wait until all rows are where they belong.
        carried = Y if self._space is None else self._space.place(Y)
        observed = ~np.isnan(Y)
        places = rough_places_of(self._surface, carried, None if observed.all() else observed)
        return places / self.latent_scale_

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
        parts = [
            self._space.images(self._surface.basis(places[rows]))
            for rows in blocks(len(X), len(self.data_)) or [slice(0)]
        ]
        return np.concatenate(parts).astype(X.dtype)

    def _fills_by_noise(self) -> bool:
        # Robust losses are for rows with entries that are wrong, and so are their residuals.
        return self._space is None and isinstance(self.loss_, Squared)

    def _regress_without(self, X: FloatArray, own: IntArray) -> FloatArray:
        # Each of the rows behind landmarks moves them little: none has to be left out.
        if self._space is not None or self.landmarks is not None:
            return self._regress(X)
        return self._surface.regress_without(X * self.latent_scale_, own)

    def _without(self, rows: IntArray) -> Self | None:
        # The places of the others tell little of a row: trained again, they leave as much open.
        return self._copy_without(rows, ("data_", "weights_", "latent_", "widths_"))

    def _takes_rows(self) -> bool:
        return super()._takes_rows() and self._space is None

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

    def _answer_on_device(self, name: str, X: Any) -> Any:
        is_known = name in ("inverse_transform", "density", "in_domain")
        if not is_known or "_surface" not in self.__dict__ or self._space is not None:
            return None
        is_right = X.ndim == 2 and X.shape[1] == self.latent_.shape[1] and X.is_floating_point()
        # What is wrong with a tensor is said by the way through arrays.
        if not is_right or not self._surface.can_answer(X) or not bool(X.isfinite().all()):
            return None
        places = X.detach().float() * X.new_tensor(self.latent_scale_, dtype=load_torch().float32)
        if name == "inverse_transform":
            return self._surface.regress_tensor(places).to(X.dtype)
        density = self._surface.density_tensor(places)
        return density.to(X.dtype) if name == "density" else density >= self.domain_threshold_

    def _latent_unit(self) -> FloatArray:
        return 1 / self.latent_scale_

    def kernel_regression(self) -> KernelDescription | None:
        """Return the way back in plain arrays, or None if it is not a kernel regression.

        It is not one with ``data_kernel``, where rows are found behind a kernel's features, or with
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
            cutoff=self.cutoff,
            latent_scale=np.broadcast_to(self.latent_scale_, self.latent_.shape[1:]),
        )

    def to_torch(self) -> Any:
        """Return the way back as a ``torch.nn.Module``; latent points may carry gradients.

        It takes latent points (m, n_components) and returns data (m, n_features), a batch of m
        against all rows at once. Only for ``degree=0`` without ``data_kernel``.
        """
        description = self.kernel_regression()
        if description is None or self.degree != 0:
            raise ValueError(
                "to_torch() needs a kernel of the library, degree=0 and no `data_kernel`; got "
                f"kernel={self.kernel_!r}, degree={self.degree!r}, "
                f"data_kernel={self.data_kernel!r}."
            )
        load_torch()
        from twofold.ukr.torch_module import KernelRegression

        return KernelRegression(description)

    def _check_restored(self) -> None:
        super()._check_restored()
        self.loss_ = getattr(self, "loss_", Squared())  # the first files knew no other
        needed = ("feature_projector_", "feature_mean_row_", "feature_mean_")
        check_there(self, dict.fromkeys(needed, self.data_kernel is not None))
        loss = self._loss_of_new_rows()
        loss.value_and_slope(np.zeros((1, self.data_.shape[1])))  # a number may be missing

    # ---- new rows, or a picture of them ---------------------------------------------------------

    def _is_growing(self) -> bool:
        if self.data_kernel is not None:
            raise AttributeError(
                "A model with `data_kernel` has no partial_fit: its features were chosen from all "
                "rows together. Fit it again with the new ones."
            )
        chosen = get_landmarks(self.landmarks)
        if chosen is not None and chosen.adapt is False:
            raise AttributeError(
                "A model whose `landmarks` stay where they are (adapt=False) has no partial_fit: "
                "new rows would change nothing. Let them adapt, or fit it again with the new rows."
            )
        return True

    def _take_in(self, Y: FloatArray, weights: FloatArray) -> None:
        # What the fitted model was made of may have nothing for new rows.
        if hasattr(self, "widths_"):
            raise ValueError(
                "A model with local bandwidths cannot take in new rows: the bandwidths belong to "
                "the picture it was made from. Call `upgrade` with a picture of all rows."
            )
        if hasattr(self.loss_, "at") and np.ndim(getattr(self.loss_, "eps", [0])) > 0:
            raise ValueError(
                "A model whose loss has numbers for each row cannot take in new rows, which have "
                "none. Fit it again with all rows."
            )
        if self.landmarks is None:
            super()._take_in(Y, weights)
        else:
            self._adapt_to(Y, weights)

    def _adapt_to(self, Y: FloatArray, weights: FloatArray) -> None:
        """Fit the landmark vectors to rows Y (m, D) and to those that made them."""
        from twofold.ukr.adaptation import ADAPTATIONS, take_in

        check_missing(Y, columns=False)
        if hasattr(self, "sample_rows_"):
            rows = np.concatenate([self.sample_rows_, Y])
            counts = np.concatenate([self.sample_weights_, weights])
            self._keep_sample(merge_duplicates(rows, counts))
        first, surface = self.data_, self._surface
        earlier = getattr(self, "row_weights_", np.ones(len(self.embedding_)))
        gamma = float(getattr(self, "smoothness_", 0.0))
        for _ in range(ADAPTATIONS):
            X = self._place(Y)
            R = Y - surface.regress(X * self.latent_scale_)
            new = X * self.latent_scale_, R, weights
            places = self.embedding_ * self.latent_scale_
            change = take_in(surface, places, earlier, new, gamma, self.loss_)
            self.data_ = (first + change).astype(Y.dtype)
            self._wake()
        self.embedding_ = np.concatenate([self.embedding_, self._place(Y)])
        self.member_ = np.concatenate([self.member_, np.full(len(Y), -1)])
        self._keep_weights(np.concatenate([earlier, weights]))

    def _insert(self, added: DistinctRows, arrival: IntArray) -> None:
        places = self._place(added.Y)
        self.data_ = np.concatenate([self.data_, added.Y])
        self.weights_ = np.concatenate([self.weights_, added.weights])
        self.latent_ = np.concatenate([self.latent_, places])

    def _settle(self) -> None:
        Y = self.data_
        problem = self._pose(Y, self.weights_, self.loss_).cross_validated(Y)
        # Rounded up: at least one iteration, unless none is wanted at all.
        training = self._training(-(-self._most_iterations() // PARTIAL_SHARE), self._bars())
        scaled = self.latent_ * self.latent_scale_
        solution, violation = settle(problem, scaled, training)
        if violation is not None:
            self.violation_ = violation
        self._report(solution, problem)
        # Training centres its points; the mean puts the map back where people know it.
        moved = (solution.X + scaled.mean(axis=0)) / self.latent_scale_
        self.latent_ = moved.astype(Y.dtype)

    def _adopt(self, Y: FloatArray, weights: FloatArray, X: FloatArray, bandwidth: str) -> None:
        """Become the model of rows at given places, where equal rows may lie apart."""
        self.kernel_ = self.kernel
        self.data_, self.weights_, self.member_ = Y, weights, np.arange(len(Y))
        self.latent_ = X.astype(Y.dtype)
        original = self._pose(Y, weights, get_loss(self.loss, Y.shape)).cross_validated(Y)
        problem = replace(original, loss=loss_for_starts(original, Y))
        error = problem.reconstruction(cross_validated=True)
        # Scaling the latent points is choosing the bandwidths: the factors go into `latent_scale_`,
        # and the picture stays as it was drawn.
        scaled, lowest = scale_each_dimension(*common_scale(X, error), error)
        self.latent_scale_ = stretch(X, scaled)
        self.loss_ = with_huber_scale(original, problem, scaled).loss
        self.start_, self.starts_ = "own", {"own": float(lowest * problem.error_unit)}
        if bandwidth == "local":
            from twofold.ukr.upgrade import fit_local_widths

            places = self.latent_ * self.latent_scale_
            self.widths_, lowest = fit_local_widths(problem, places)
        self.objective_ = float(lowest * problem.error_unit)
        self.history_ = np.array([self.objective_])
        self.n_iter_, self.stop_reason_, self.backend_ = 0, "max_iter", ""
        self._wake()
        self._bound_domain()
        self.embedding_ = self.latent_.copy()

    def _keep_weights(self, weights: FloatArray) -> None:
        # Of those a model with landmarks has no other trace.
        if self.landmarks is not None and not (weights == 1).all():
            self.row_weights_ = weights

    # ---- inside ---------------------------------------------------------------------------------

    def _pose(
        self, Y: FloatArray, weights: FloatArray, loss: Loss, *, training: bool = False
    ) -> Problem:
        """Return the problem of rows Y (n, D), NaN where missing, as the parameters shape it."""
        kernel, device = get_kernel(self.kernel_, training=True), self._device(len(Y), training)
        # Tiles of a GPU come and go as a whole: with a rough cutoff the error would jump.
        is_rough = training and len(Y) > ROUGH_ROWS and device == "cpu"
        cutoff = max(self.cutoff, ROUGH_CUTOFF) if is_rough else self.cutoff
        precision = getattr(self, "precision", "fp32")
        engine = KernelSums(kernel, cutoff, self.n_jobs, device=device, precision=precision)
        degree = cast(Degree, self.degree if isinstance(self.degree, str) else int(self.degree))
        regularization = get_regularization(self.regularization)
        return Problem.of_rows(Y, weights, loss, regularization, engine, degree)

    def _device(self, n: int, training: bool) -> str:
        """Return where sums over n rows are done, "cpu" or "cuda"."""
        wanted = getattr(self, "device", "cpu")
        if wanted == "cpu" or (wanted == "auto" and n <= MANY_ROWS):
            return "cpu"
        missing, beyond = why_no_gpu(), self._beyond_gpu() if training else ""
        if wanted == "cuda" and training and missing:
            raise RuntimeError(f"device='cuda' needs a GPU: {missing} Use device='auto' or 'cpu'.")
        if wanted == "cuda" and training and beyond:
            raise ValueError(f"device='cuda' cannot do {beyond}. Use device='auto' or 'cpu'.")
        if (missing or beyond) and training:  # once a fit: what a model does later is said nowhere
            logger.info("on the CPU: %s", missing or f"a GPU cannot do {beyond}")
        return "cpu" if missing or beyond else "cuda"

    def _lacks_device(self) -> bool:
        return getattr(self, "device", "cpu") == "cuda" and bool(why_no_gpu())

    def _beyond_gpu(self) -> str:
        """Name a parameter by which a fit is beyond a GPU; empty if there is none."""
        return ""

    def _most_iterations(self) -> int:
        if not isinstance(self.max_iter, str):
            return int(self.max_iter)
        n = len(self.data_)
        if n <= MANY_ROWS and self._wanted_dimensions() > GRIDDED:
            return ITERATIONS_OF_SOME if n > SOME_ROWS else ITERATIONS
        if n <= MANY_ROWS:
            return ITERATIONS_OF_FEW if n <= FEW_ROWS else ITERATIONS
        return min(MOST_OF_MANY, max(LEAST_OF_MANY, ROWS_TIMES_ITERATIONS // n))

    def _training(self, max_iter: int, bars: Sequence[Callback], seed: int = 0) -> Training:
        method = "lbfgs" if self.optimizer == "auto" else self.optimizer
        is_bound = not isinstance(self.max_iter, str)
        callbacks = [*self.callbacks, *bars]
        return Training(method, max_iter, self.tol, callbacks, seed, self.n_jobs, is_bound=is_bound)

    def _report(self, solution: Solution, problem: Problem) -> None:
        """Set the attributes that tell how the optimisation went."""
        plan = problem.engine.last_plan
        self.backend_ = f"{plan.backend}: {plan.reason}" if plan else ""
        # The extension that "smoothest" minimises has no unit of the data.
        unit = 1.0 if isinstance(problem.regularization, Smoothest) else problem.error_unit
        self.objective_, self.history_ = float(solution.value * unit), solution.history * unit
        self.n_iter_, self.stop_reason_ = solution.n_iter, str(solution.stop_reason)
        if solution.stop_reason is StopReason.INTERRUPTED:
            self._warn_of_interrupt(f"after {solution.n_iter} iterations")

    def _warn_of_interrupt(self, when: str) -> None:
        kept = "the best model so far is kept"
        if self.landmarks is not None:
            kept += ", and `embedding_` is rough (`transform` is not)"
        if "_journal" in self.__dict__:
            kept += ", and the same call goes on with the fit if its `checkpoint` was written"
        warn(f"Interrupted {when}; {kept}.", ConvergenceWarning)
