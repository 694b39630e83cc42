"""What kernel PCA and diffusion maps have in common: everything after the axes are found.

Latent points are coordinates on axes in feature space; the way back looks for the row whose feature
is nearest to such a point (:mod:`twofold.preimages`). The latent density is

    p(x) = Σ_i w_i exp(-½ Σ_j (x_j - x_ij)² / h_j²) / Σ_i w_i,   h_j = deviation_j m^(-1/(q+4)),

with widths by Scott's rule, and the domain ends where p is half of its lowest value at a training
point.

An incomplete row has no kernel values: its latent point is the one whose image is nearest to its
observed entries, searched for from those of the nearest training rows.

A constrained pre-image keeps the q coordinates and makes those on further axes small, which is what
holds it near the rows (Arias 2007, section 4.3). For it, and only for it, the model keeps further
axes.
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import replace
from typing import Any, ClassVar

import numpy as np
from scipy.spatial.distance import pdist, squareform
from sklearn.exceptions import ConvergenceWarning

from twofold.array_types import BoolArray, FloatArray, IntArray
from twofold.checks.numbers import check_count
from twofold.checks.rows import LARGEST
from twofold.contract import TwoWayModel
from twofold.contract.fitted_state import COMMON, TINY, Array, FittedState, Number, Report, Value
from twofold.engine.threads import count_threads
from twofold.features.data_kernels import RBF, check_rows
from twofold.kernel_pca.incomplete_rows import place_incomplete
from twofold.latent.density import scott_widths
from twofold.neighborhoods.nearest import neighbor_scale
from twofold.preimages import PreImageMethod, PreImages, get_method, press
from twofold.preimages.coordinates import GaussianCoordinates
from twofold.process_settings import warn, without_warnings
from twofold.rowwise import blocks, multiply_rows

# On a noisy sinusoid with a narrow diffusion kernel, 50 axes hold rows as well as all do; with 25
# they leave through directions that nothing holds.
FURTHER_AXES = 100


class SpectralModel(TwoWayModel):
    """A model whose latent points are coordinates on axes in the feature space of a kernel.

    An estimator sets ``_space`` in ``_restore`` and says in ``_place_complete`` where rows lie.
    """

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
        if observed is None:
            return self._place_complete(Y).astype(Y.dtype)
        return self._place_incomplete(Y).astype(Y.dtype)

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
        """Find rows for latent points, and say how the search for each went.

        The rows are those of ``inverse_transform``, without its warning.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_components)
            Latent points. A precomputed kernel has no rows to find for them: ValueError.

        Returns
        -------
        PreImages
            ``Y`` (n_samples, n_features), the rows; ``converged`` (n_samples,), which searches came
            to their end; ``status`` (n_samples,), numbers of :class:`~twofold.preimages.Status`
            that say why not; ``n_iter`` (n_samples,), evaluations, 0 for a closed form; and
            ``distance`` (n_samples,), squared, between the point and the feature of the row.
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

    def _is_inside(self, X: FloatArray) -> BoolArray:
        return self._density(X) >= self.domain_threshold_

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
        """Set a regression of coordinates (m, r) on the rows, the map where there is no recipe.

        Scale and ridge have the smallest leave-one-out error of the coordinates.
        """
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
        return GaussianCoordinates(
            self.data_.astype(np.float64),
            self.extension_scale_,
            self.extension_coef_,
            self.extension_offset_,
        )

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
    """Return rows Z (n, D), those out of all reach where squared distances are still finite."""
    if Z.dtype != np.float64:  # smaller types have no such numbers
        return Z
    return np.clip(Z, -LARGEST, LARGEST)
