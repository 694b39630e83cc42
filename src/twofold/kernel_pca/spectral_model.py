"""What kernel PCA and diffusion maps have in common: everything after the axes are found.

Latent points are coordinates on axes in feature space; the way back looks for the row whose feature
is nearest to such a point (:mod:`twofold.preimages`). The latent density is

    p(x) = Σ_i w_i exp(-½ Σ_j (x_j - x_ij)² / h_j²) / Σ_i w_i,   h_j = deviation_j m^(-1/(q+4)),

with widths by Scott's rule, and the domain ends where p is half of its lowest value at a training
point.

An incomplete row has no kernel values. In general its latent point is the one whose image is
nearest to its observed entries, searched for from those of the nearest training rows. For the
linear kernel the images are a plane, ``f(x) = b + B x``, and with few entries observed many points
of it are equally near. There the point is the mean of what the data suggests: coordinates that are
normal with the variances ``v_j`` of the axes, and left-over noise of variance s² in each column
(Tipping and Bishop 1999),

    x = argmin ||(B x + b - y)_observed||² + s² Σ_j x_j² / v_j,

so that a row without a word about an axis lies in its middle.

A constrained pre-image keeps the q coordinates and makes those on further axes small, which is what
holds it near the rows (Arias 2007, section 4.3). For it, and only for it, the model keeps further
axes.
"""

from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from scipy import sparse
from scipy.spatial.distance import pdist, squareform
from sklearn.exceptions import ConvergenceWarning

from twofold import preimages
from twofold.array_types import BoolArray, FloatArray, IntArray
from twofold.checks.parameters import check_count
from twofold.checks.rows import LARGEST
from twofold.contract import TwoWayModel
from twofold.contract.fitted_state import COMMON, TINY, Array, FittedState, Number, Report, Value
from twofold.engine.threads import count_threads
from twofold.features.data_kernels import RBF, DataKernel, check_rows
from twofold.features.feature_map import centre_rows
from twofold.latent.density import scott_widths
from twofold.neighborhoods.nearest import neighbor_scale
from twofold.preimages import PreImageMethod, PreImages, get_method, press
from twofold.preimages.coordinates import CoordinateMap, GaussianCoordinates
from twofold.process_settings import warn, without_warnings
from twofold.rowwise import blocks, multiply_rows

# How far from the training points a search starts, in their sizes: farther off nothing changes.
FARTHEST_POINT = 1e30
# But for methods whose rows go as far as the point does, and one that takes any point.
GROWING = (preimages.Exact.name, preimages.LinearCombination.name, preimages.Learned.name)
# On a noisy sinusoid with a narrow diffusion kernel, 50 axes hold rows as well as all do; with 25
# they leave through directions that nothing holds.
FURTHER_AXES = 100
# Neighbours whose latent points an incomplete row starts from, and damped steps from each.
STARTS, STEPS = 3, 12


@dataclass(frozen=True, eq=False)
class FeatureSpace:
    """The fitted axes in feature space, and the points on them."""

    kernel: Any  # a DataKernel, or one that is made from all rows at once
    rows: FloatArray  # (m, D) that span the space
    axes: FloatArray  # (m, q) coefficients of the axes, columns that sum to zero
    base: FloatArray  # (m,) coefficients of the mean, of sum one
    mean_row: FloatArray  # (m,) kernel values of the rows with the mean
    mean: float  # kernel value of the mean with itself
    latent: FloatArray  # (m, q) coordinates of the rows
    map: CoordinateMap | None = None  # at least q coordinates of any row, where it has a form
    matrix: FloatArray | None = None  # (m, m) kernel values where it is costly to make them again

    def place(self, K: Any) -> FloatArray:
        """Return coordinates (n, q) of rows with kernel values K (n, m), dense or sparse."""
        if sparse.issparse(K):  # columns of the axes sum to zero, so that levels of K drop out
            return np.asarray(K @ self.axes) - self.mean_row @ self.axes
        if not np.isfinite(K).all():
            raise ValueError(
                f"{int((~np.isfinite(K)).any(axis=1).sum())} of {len(K)} rows are so far from the "
                "training rows that their kernel values are not finite. Scale the data, "
                "e.g. by StandardScaler, or leave these rows out."
            )
        # A level drops out. Far away it is all there is, and its rounding would be taken for more.
        centred, _ = centre_rows(K - K[:, :1], self.base, self.mean_row, self.mean)
        return multiply_rows(centred, self.axes)

    def expand(self, X: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return coefficients α (n, m) of points with coordinates X (n, q), and ``K α`` (n, m)."""
        # For K A = X_rows + 1 (mean row)ᵀ A no kernel value is needed.
        carried = self.latent + self.mean_row @ self.axes
        alpha = multiply_rows(X, self.axes.T) + self.base
        return alpha, multiply_rows(X, carried.T) + self.mean_row

    def preimages(
        self,
        X: FloatArray,
        method: PreImageMethod,
        n_jobs: int | None,
        start: FloatArray | None = None,
    ) -> PreImages:
        """Return the rows that a method finds for coordinates X (n, q), from `start` if given."""
        if method.name not in GROWING:  # squares of squares of far points stay finite
            sizes = np.abs(X).max(axis=1, keepdims=True)
            reach = FARTHEST_POINT * float(np.abs(self.latent).max())
            X = X * np.minimum(1, reach / np.maximum(sizes, reach))
        alpha, products = self.expand(X)
        # Kernels of two rows are evaluated where they are needed, and a learned map needs none.
        needed = not isinstance(self.kernel, DataKernel) and method.name != preimages.Learned.name
        return method.find(
            preimages.FeaturePoints(
                self.kernel,
                self.rows,
                alpha,
                start=start,
                coordinates=X,
                map=self.map,
                row_coordinates=self.latent,
                gram=self.gram if needed else None,
                products=products,
                n_jobs=n_jobs,
            )
        )

    @cached_property
    def gram(self) -> FloatArray:
        """Kernel values (m, m) between the rows, for a kernel that is made from all of them."""
        if self.matrix is not None:
            return self.matrix
        with without_warnings(UserWarning):  # the fit has warned already
            return np.asarray(self.kernel.matrix(self.rows))


class SpectralModel(TwoWayModel):
    """A model whose latent points are coordinates on axes in the feature space of a kernel."""

    _regresses_quickly: ClassVar[bool] = False  # pre-images may be searched for

    # An estimator sets `_space` in `_restore` and says in `_place_complete` where rows lie.

    fitted_state: ClassVar[FittedState] = {
        **COMMON,
        "data_": Array(("n", "D")),
        "eigenvalues_": Array(("q",), low=TINY),
        "dual_coef_": Array(("n", "q")),
        "extension_coef_": Array(("n", "extended"), is_optional=True),
        "extension_offset_": Array(("extended",), is_optional=True),
        "extension_scale_": Number(low=TINY, is_optional=True),
        "objective_": Number(low=0),
        "preimage_": Report(),
        "preimage_method_": Value((PreImageMethod,), is_optional=True),
    }

    n_jobs: int | None

    @abstractmethod
    def _place_complete(self, Y: FloatArray) -> FloatArray:
        """Return the coordinates (n, q) of rows without missing entries."""

    def _place_incomplete(self, Y: FloatArray) -> FloatArray:
        """Return the coordinates (n, q) of rows with missing entries (NaN)."""
        with without_warnings(ConvergenceWarning):  # about searches on the way
            return place_incomplete(Y, self.data_, self.latent_, self._regress, self._is_inside)

    def _check_training_rows(self, Y: FloatArray, source: IntArray) -> None:
        """Raise unless rows Y (m, D) are complete and of a size that can be squared."""
        gaps = np.isnan(Y).any(axis=1)
        if gaps.any():
            raise ValueError(
                f"{type(self).__name__} learns from complete rows; {gaps.sum()} of "
                f"{len(self.member_)} have missing entries (NaN), first row "
                f"{source[gaps].min()}. {self._advice_for_missing()}"
            )

    def _advice_for_missing(self) -> str:
        return "Use UKR, which takes them as they are, or fill them in."

    def _check_gaps(self, Y: FloatArray) -> None:
        gaps = int(np.isnan(Y).any(axis=1).sum())
        if gaps:
            raise ValueError(
                f"{type(self).__name__} compares complete rows; {gaps} of {len(Y)} have missing "
                "entries (NaN). Fill them in by `complete`."
            )

    def _project(self, Y: FloatArray, observed: BoolArray | None) -> FloatArray:
        place = self._place_complete if observed is None else self._place_incomplete
        return place(Y).astype(Y.dtype)

    def _return_trip(self, Y: FloatArray) -> FloatArray:
        # A sparse precomputed matrix has no way back, and so no method.
        method = getattr(self, "preimage_method_", None)
        if method is None or not method.needs_rest:
            return super()._return_trip(Y)
        # The search starts at the row and keeps the coordinates it has. They come from the map:
        # what a recipe says of a training row may differ, and a row starts on its own level set.
        start = np.ascontiguousarray(Y, dtype=np.float64)
        level = self._space.map.values(start)[:, : self._n_features_out]
        return self._look_back(level, start).astype(Y.dtype)

    def _regress(self, X: FloatArray) -> FloatArray:
        return self._look_back(np.ascontiguousarray(X, dtype=np.float64)).astype(X.dtype)

    def _look_back(self, X: FloatArray, start: FloatArray | None = None) -> FloatArray:
        found = self._space.preimages(X, self.preimage_method_, self.n_jobs, start)
        lost = int((~found.converged).sum())
        if lost:
            warn(
                f"The search for pre-images by {self.preimage_method_.name!r} did not converge "
                f"for {lost} of {len(X)} points; `find_preimages` says which, `in_domain` which "
                "lie near the data.",
                ConvergenceWarning,
            )
        return found.Y

    def find_preimages(self, X: Any) -> PreImages:
        """Find rows for latent points X (n_samples, n_components); say how each search went.

        The rows are those of ``inverse_transform``, without its warning. The result has ``Y``
        (n_samples, n_features), the rows; ``converged`` (n_samples,), which searches came to their
        end; ``status`` (n_samples,), numbers of :class:`~twofold.preimages.Status` that say why
        not; ``n_iter`` (n_samples,), evaluations, 0 for a closed form; and ``distance``
        (n_samples,), squared, between the point and the feature of the row. A precomputed kernel
        has no rows to find: ValueError.
        """
        latent = self._validate_latent(X)
        if self._space.kernel.is_precomputed:
            raise ValueError(
                "A precomputed kernel has no rows to find, and nothing is searched for. "
                "`inverse_transform` returns the kernel values of the points."
            )
        places = np.ascontiguousarray(latent, dtype=np.float64)
        found = self._space.preimages(places, self.preimage_method_, self.n_jobs)
        return replace(found, Y=found.Y.astype(latent.dtype))

    def _jacobian(self, X: FloatArray) -> FloatArray:
        with without_warnings(ConvergenceWarning):
            return super()._jacobian(X)

    def _density(self, X: FloatArray) -> FloatArray:
        unit = self._latent_unit()
        places, centres = brought_near(X / unit), self.latent_ / unit
        shares = (self.weights_ / self.weights_.sum())[:, None]
        p = np.empty(len(X))
        for part in blocks(len(X), len(centres)):
            p[part] = multiply_rows(RBF(0.5).gram(places[part], centres), shares)[:, 0]
        return p.astype(X.dtype)

    def _check_restored(self) -> None:
        super()._check_restored()
        is_whole = [hasattr(self, f"extension_{part}_") for part in ("coef", "offset", "scale")]
        if any(is_whole) and not all(is_whole):
            raise ValueError("only a part of the `extension_` of coordinates is there")

    def _latent_unit(self) -> FloatArray:
        return scott_widths(self.latent_, self.weights_)

    def _wanted_dimensions(self, Y: FloatArray | None = None) -> int:
        # Features span more directions than rows have columns.
        return int(self.n_components) if Y is None else min(int(self.n_components), Y.shape[1])

    def _check_parameters(self) -> None:
        check_count("n_components", self.n_components)
        count_threads(self.n_jobs)

    def _n_further(self, kernel: Any) -> int:
        """Return how many axes beyond those asked for the way back can use."""
        if kernel.is_precomputed:
            return 0
        method, _ = get_method(self.preimage, kernel)
        return FURTHER_AXES if method.needs_rest else 0

    def _choose_preimages(self, kernel: Any, latent: FloatArray) -> None:
        """Set ``preimage_`` and the method itself, its numbers chosen."""
        method, self.preimage_ = get_method(self.preimage, kernel)
        self.preimage_method_ = method.fitted(self.data_.astype(np.float64), latent)

    def _extend(self, latent: FloatArray) -> None:
        """Set a regression of coordinates (m, r) on the rows, the map where there is no recipe."""
        # Scale and ridge have the smallest leave-one-out error of the coordinates.
        Y = check_rows(self.data_)
        error = press.CoordinatePress(squareform(pdist(Y, "sqeuclidean")), latent)
        chosen = press.choose(error, neighbor_scale(Y))
        found = GaussianCoordinates.by_ridge(Y, latent, chosen.scale, chosen.ridge)
        self.extension_coef_, self.extension_offset_ = found.coefficients, found.offset
        self.extension_scale_ = found.scale

    def _extension(self) -> GaussianCoordinates | None:
        """Return that regression, None where there is none."""
        if not hasattr(self, "extension_coef_"):
            return None
        rows, G, g0 = self.data_.astype(np.float64), self.extension_coef_, self.extension_offset_
        return GaussianCoordinates(rows, self.extension_scale_, G, g0)

    def _report(self, total: float, eigenvalues: FloatArray, weight: float) -> None:
        """Set what tells how the fit went: the variance that the axes leave out, per row."""
        self.objective_ = max(0.0, float(total - eigenvalues.sum()) / weight)
        self.history_ = np.array([max(0.0, total / weight), self.objective_])
        self.n_iter_, self.stop_reason_ = 1, "closed form"

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = False
        return tags


def brought_near(Z: FloatArray) -> FloatArray:
    """Return rows Z (n, D), far ones moved to where squared distances are still finite."""
    if Z.dtype != np.float64:  # smaller types have no such numbers
        return Z
    return np.clip(Z, -LARGEST, LARGEST)


def place_on_plane(
    Y: FloatArray, mean: FloatArray, directions: FloatArray, variances: FloatArray, noise: float
) -> FloatArray:
    """Return the expected coordinates (n, q) of rows Y (n, D) with gaps on a plane by `mean`."""
    # The axes `directions` (D, q) have length one; the data has `variances` (q,) along them and
    # `noise` in each direction off the plane.
    deviations = np.sqrt(variances)
    pull = np.diag(np.full(len(deviations), np.sqrt(noise)))
    X = np.empty((len(Y), len(deviations)))
    for i, y in enumerate(Y):
        known = ~np.isnan(y)
        system = np.vstack([directions[known] * deviations, pull])
        right = np.concatenate([(y - mean)[known], np.zeros(len(pull))])
        # Without noise this is the shortest of all solutions.
        X[i] = deviations * np.linalg.lstsq(system, right, rcond=None)[0]
    return X


def place_incomplete(
    Y: FloatArray,
    known: FloatArray,
    latent: FloatArray,
    regress: Callable[[FloatArray], FloatArray],
    inside: Callable[[FloatArray], BoolArray],
) -> FloatArray:
    """Return latent points (n, q) whose images are nearest to the observed entries of rows."""
    # Damped Gauss-Newton steps from the latent points (m, q) of the training rows (m, D) that are
    # nearest in the observed entries; a step is taken if it lowers the error and ends inside the
    # domain.
    starts = min(STARTS, len(known))
    chosen = [np.argsort(np.nansum((known - y) ** 2, axis=1), kind="stable")[:starts] for y in Y]
    X = latent[np.concatenate(chosen)].astype(np.float64)
    wanted = np.repeat(Y, starts, axis=0)
    step = 1e-3 * latent.std(axis=0, dtype=np.float64)

    def residuals(X: FloatArray) -> FloatArray:
        gaps = regress(X) - wanted
        return np.where(np.isnan(gaps), 0, gaps)

    R = residuals(X)
    error, damping = (R * R).sum(axis=1), np.full(len(X), 1e-3)
    for _ in range(STEPS):
        J = np.stack([(residuals(X + s) - R) / s.sum() for s in np.diag(step)], axis=2)
        trial = X - _damped_step(J, R, damping)
        R_trial = residuals(trial)
        error_trial = (R_trial * R_trial).sum(axis=1)
        better = (error_trial < error) & inside(trial)
        X[better], R[better], error[better] = trial[better], R_trial[better], error_trial[better]
        damping = np.where(better, damping / 3, np.minimum(10 * damping, 1e6))
    best = error.reshape(-1, starts).argmin(axis=1)
    return X.reshape(len(Y), starts, -1)[np.arange(len(Y)), best]


def _damped_step(J: FloatArray, R: FloatArray, damping: FloatArray) -> FloatArray:
    """Return ``(JᵀJ + damping mean(diag JᵀJ) I)⁻¹ Jᵀ r`` (n, q) for J (n, D, q) and R (n, D)."""
    q = J.shape[2]
    A = J.transpose(0, 2, 1) @ J
    level = np.trace(A, axis1=1, axis2=2) / q
    A[:, np.arange(q), np.arange(q)] += (damping * np.where(level > 0, level, 1))[:, None]
    return np.linalg.solve(A, J.transpose(0, 2, 1) @ R[:, :, None])[:, :, 0]
