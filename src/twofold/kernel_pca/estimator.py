"""Kernel PCA: the estimator, and what diffusion maps share with it.

Principal axes are found in the feature space of a kernel (Schölkopf, Smola and Müller 1998; Arias
2007, chapter 2). Latent points are coordinates on them; the way back looks for the row whose
feature is nearest to such a point (:mod:`twofold.preimages`). The latent density is

    p(x) = Σ_i w_i exp(-½ Σ_j (x_j - x_ij)² / h_j²) / Σ_i w_i,   h_j = deviation_j m^(-1/(q+4)),

with widths by Scott's rule, and the domain ends where p is half of its lowest value at a training
point.
"""

from __future__ import annotations

import warnings
from abc import abstractmethod
from numbers import Real
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state

from twofold.array_types import BoolArray, FloatArray, IntArray
from twofold.contract import TwoWayModel
from twofold.engine.threads import count_threads, run_tasks
from twofold.features.data_kernels import (
    L1,
    RBF,
    Custom,
    DataKernel,
    Laplacian,
    Linear,
    Polynomial,
    Precomputed,
    rounding_of,
)
from twofold.features.feature_map import multiply_rows
from twofold.kernel_pca import memory
from twofold.kernel_pca.data_dependent import (
    LLE,
    MVU,
    DataDependentKernel,
    Diffusion,
    DiffusionValues,
    Isomap,
    get_kernel,
)
from twofold.kernel_pca.landmark_rows import (
    LandmarkRows,
    extend_by_ridge,
    place_incomplete,
    with_numbers,
)
from twofold.kernel_pca.spectrum import (
    SOLVERS,
    DiffusionCoordinates,
    FeatureSpace,
    Spectrum,
    choose_solver,
    decompose,
    symmetric,
)
from twofold.preimages import get_method
from twofold.preimages.checks import check_count
from twofold.preimages.coordinates import CoordinateMap, GaussianCoordinates
from twofold.tables import register_value_type

for value_type in (
    Linear,
    Polynomial,
    RBF,
    Laplacian,
    L1,
    Precomputed,
    LLE,
    MVU,
    Diffusion,
    Isomap,
):
    register_value_type(value_type)

DOMAIN_SHARE = 0.5
LEAST_LANDMARKS = 3
# Numbers in memory at a time, while rows are compared with training rows: 32 MB.
VALUES_AT_A_TIME = 4_000_000


class SpectralModel(TwoWayModel):
    """A model whose latent points are coordinates on axes in the feature space of a kernel.

    A family sets ``_space`` in ``_restore`` and says in ``_place_complete`` where rows lie.
    """

    @abstractmethod
    def _place_complete(self, Y: FloatArray) -> FloatArray:
        """Return the coordinates (n, q) of rows without missing entries."""

    def _refuse_missing(self, Y: FloatArray, source: IntArray) -> None:
        gaps = np.isnan(Y).any(axis=1)
        if gaps.any():
            raise ValueError(
                f"{type(self).__name__} learns from complete rows; {gaps.sum()} of "
                f"{len(self.member_)} have missing entries (NaN), first row "
                f"{source[gaps].min()}. Use UKR, which takes them as they are, or fill them in."
            )

    def _rows_to_place(self, X: Any) -> FloatArray:
        Y = super()._rows_to_place(X)
        gaps = int(np.isnan(Y).any(axis=1).sum())
        if gaps:
            raise ValueError(
                f"{type(self).__name__} compares complete rows; {gaps} of {len(Y)} have missing "
                "entries (NaN). Fill them in by `complete`."
            )
        return Y

    def complete(self, X: Any) -> FloatArray:
        """Fill the missing entries of rows from the manifold; observed entries stay as they are.

        An incomplete row has no kernel values. Its latent point is the one whose image is nearest
        to its observed entries, searched for from those of the nearest training rows.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Data; NaN marks what is to be filled.

        Returns
        -------
        ndarray of shape (n_samples, n_features)
        """
        filled = super()._rows_to_place(X).copy()
        partial = np.isnan(filled).any(axis=1)
        if partial.any():
            rows = filled[partial]
            found = self._regress(self._project(rows, ~np.isnan(rows)))
            filled[partial] = np.where(np.isnan(rows), found, rows)
        return filled

    def _project(self, Y: FloatArray, observed: BoolArray | None) -> FloatArray:
        if observed is None:
            return self._place_complete(Y).astype(Y.dtype)
        with warnings.catch_warnings():  # about searches on the way
            warnings.simplefilter("ignore", ConvergenceWarning)
            return place_incomplete(
                Y, self.data_, self.latent_, self._regress, self._is_inside
            ).astype(Y.dtype)

    def _regress(self, X: FloatArray) -> FloatArray:
        wide = np.ascontiguousarray(X, dtype=np.float64)
        found = self._space.preimages(wide, self.preimage_method_, self.n_jobs)
        lost = int((~found.converged).sum())
        if lost:
            warnings.warn(
                f"The search for pre-images by {self.preimage_method_.name!r} did not converge "
                f"for {lost} of {len(X)} points; `in_domain` says which lie near the data.",
                ConvergenceWarning,
                stacklevel=3,
            )
        return found.Y.astype(X.dtype)

    def _jacobian(self, X: FloatArray) -> FloatArray:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            return super()._jacobian(X)

    def _density(self, X: FloatArray) -> FloatArray:
        unit = self._latent_unit()
        places, centres = X / unit, self.latent_ / unit
        shares = (self.weights_ / self.weights_.sum())[:, None]
        p = np.empty(len(X))
        size = max(1, VALUES_AT_A_TIME // len(centres))
        for start in range(0, len(X), size):
            part = slice(start, start + size)
            p[part] = multiply_rows(RBF(0.5).gram(places[part], centres), shares)[:, 0]
        return p.astype(X.dtype)

    def _is_inside(self, X: FloatArray) -> BoolArray:
        return self._density(X) >= self.domain_threshold_

    def _bound_domain(self) -> None:
        self.domain_threshold_ = DOMAIN_SHARE * float(self._density(self.latent_).min())

    def _latent_unit(self) -> FloatArray:
        m, q = self.latent_.shape
        shares = self.weights_ / self.weights_.sum()
        gaps = self.latent_.astype(np.float64) - shares @ self.latent_
        deviation: FloatArray = np.sqrt(shares @ gaps**2)
        return deviation * m ** (-1 / (q + 4))

    def _wanted_dimensions(self, Y: FloatArray | None = None) -> int:
        # Features span more directions than rows have columns.
        return int(self.n_components) if Y is None else min(int(self.n_components), Y.shape[1])

    def _choose_preimages(self, kernel: Any, latent: FloatArray) -> None:
        """Set ``preimage_`` and the method itself, its numbers chosen."""
        m, D = self.data_.shape
        method, self.preimage_ = get_method(self.preimage, kernel, D, m)
        self.preimage_method_ = method.fitted(self.data_.astype(np.float64), latent)

    def _report(self, total: float, eigenvalues: FloatArray, weight: float) -> None:
        """Set what tells how the fit went: the variance that the axes leave out, per row."""
        self.objective_ = max(0.0, float(total - eigenvalues.sum()) / weight)
        self.history_ = np.array([max(0.0, total / weight), self.objective_])
        self.n_iter_, self.stop_reason_ = 1, "closed form"

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = False
        return tags


class KernelPCA(SpectralModel):
    """Kernel PCA that can come back.

    Parameters
    ----------
    n_components : int, default=2
        Principal axes q; more than there are features is fine.
    kernel : str, object or callable, default="rbf"
        A kernel of two rows: "rbf", "poly", "laplacian", "linear", "l1", an object of
        :mod:`twofold.features`, a function ``k(A, B)`` of two tables, or "precomputed" (``fit``
        takes the kernel matrix, new rows are their values with the training rows, and so is what
        comes back). Or one made from all rows: "lle", "mvu", "laplacian_eigenmaps", "diffusion",
        "isomap", or an object of :mod:`twofold.kernel_pca.data_dependent`. Where "rbf" and
        "laplacian" have no ``gamma``, it is ``1 / (2 s²)`` and ``1 / s``, s the mean distance to
        the tenth nearest row.
    preimage : str or object, default="auto"
        How rows are found for latent points: a method of :mod:`twofold.preimages` or
        its name; "auto" takes what suits the kernel.
    n_landmarks : int, default=None
        So many landmarks span the feature space in place of all rows (Nyström): for large tables.
        A kernel that is made from all rows is made from the landmarks. Landmarks become the rows
        of the model, and all rows are projected.
    eigen_solver : {"auto", "dense", "arpack", "randomized"}, default="auto"
        "auto" is "arpack" for fewer than 10 components of more than 200 rows, else "dense".
    tol : float, default=0
        Relative accuracy of "arpack"; 0 for that of the numbers.
    random_state : int, RandomState or None, default=None
        Decides about "randomized" and about landmarks.
    n_jobs : int, default=None
        Threads; None means all cores. The result does not depend on it.

    Attributes
    ----------
    embedding_ : ndarray of shape (n_samples, n_components)
        Latent points of the rows passed to ``fit``, in their order.
    latent_, data_, weights_ : ndarrays
        Latent points, rows and weights of the distinct rows, or of the landmarks.
    eigenvalues_ : ndarray of shape (n_components,)
        Of the centred kernel matrix, rows counted by their weights.
    dual_coef_, mean_coef_ : ndarrays of shapes (m, n_components) and (m,)
        Coefficients of the axes and of the mean over the features of ``data_``.
    mean_row_, mean_ : ndarray of shape (m,), float
        Kernel values of the rows with the mean, and of the mean with itself.
    kernel_ : object
        The kernel with all its numbers; not for a function.
    preimage_, preimage_method_ : str, object
        The method for pre-images and why it was taken, and the method with its numbers.
    objective_ : float
        Variance in feature space, per row, that the axes leave out.
    n_iter_, stop_reason_, history_ : int, str, ndarray
        As for other models; the history holds the whole variance and what is left.
    domain_threshold_ : float
        Density that bounds the domain.
    n_features_in_, feature_names_in_ : int, ndarray
        As in scikit-learn.

    References
    ----------
    P. Arias, Constrained pre-image for kernel PCA, application to manifold learning, MSc thesis,
    Universidad de la República, Montevideo, 2007.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from twofold.kernel_pca import KernelPCA
    >>> model = KernelPCA().fit(load_iris().data)
    >>> model.inverse_transform(model.transform([[5.0, 3.5, 1.5, 0.2]])).shape
    (1, 4)
    """

    def __init__(
        self,
        n_components: int = 2,
        *,
        kernel: Any = "rbf",
        preimage: Any = "auto",
        n_landmarks: int | None = None,
        eigen_solver: str = "auto",
        tol: float = 0,
        random_state: Any = None,
        n_jobs: int | None = None,
    ) -> None:
        self.n_components = n_components
        self.kernel = kernel
        self.preimage = preimage
        self.n_landmarks = n_landmarks
        self.eigen_solver = eigen_solver
        self.tol = tol
        self.random_state = random_state
        self.n_jobs = n_jobs

    # ---- what the contract asks for -------------------------------------------------------------

    def _fit_distinct(self, Y: FloatArray, weights: FloatArray, source: IntArray) -> FloatArray:
        self._refuse_missing(Y, source)
        kernel = get_kernel(self.kernel)
        rng = check_random_state(self.random_state)
        if self.n_landmarks is not None and self.n_landmarks < len(Y):
            return self._fit_landmarks(Y, weights, kernel, rng)
        solver = self._announce(kernel, len(Y))
        kernel = with_numbers(kernel, Y)
        if kernel.is_precomputed:
            if Y.shape[1] != len(self.member_):
                raise ValueError(
                    "A precomputed kernel matrix must be square, rows and columns standing for the "
                    f"same samples; got shape {(len(self.member_), Y.shape[1])}."
                )
            self.columns_ = source
            K = symmetric(Y[:, source].astype(np.float64), rounding_of(Y))
        else:
            K = self._kernel_matrix(kernel, Y)
        found = decompose(K, weights, self.n_components, solver, self.tol, rng)
        return self._keep(kernel, found, weights / weights.sum(), float(weights.sum()))

    def _fit_landmarks(
        self, Y: FloatArray, weights: FloatArray, kernel: Any, rng: np.random.RandomState
    ) -> FloatArray:
        count = int(self.n_landmarks or 0)
        solver = self._announce(kernel, count)
        chosen = LandmarkRows.choose(Y, weights, count, int(rng.randint(2**31 - 1)))
        self.data_, self.weights_ = chosen.rows, chosen.weights
        self.member_ = np.full(len(self.member_), -1)
        kernel = with_numbers(kernel, chosen.rows)
        if isinstance(kernel, DataKernel):
            found, base = chosen.decompose(kernel, Y, weights, self.n_components)
        else:
            K = self._kernel_matrix(kernel, chosen.rows)
            found = decompose(K, chosen.weights, self.n_components, solver, self.tol, rng)
            base = chosen.weights / chosen.weights.sum()
        return self._keep(kernel, found, base, float(weights.sum()))

    def _announce(self, kernel: Any, m: int) -> str:
        """Return the solver for m rows; raise if there is not enough memory for them."""
        is_own = isinstance(kernel, DataKernel)
        # Those of LLE lie too close together for ARPACK.
        is_clustered = self.eigen_solver == "auto" and isinstance(kernel, LLE)
        wanted = "dense" if is_clustered else self.eigen_solver
        solver = choose_solver(wanted, m, self.n_components)
        extra = 0 if is_own else kernel.extra_matrices
        hint = "Let fewer rows span the feature space by `n_landmarks`, e.g. n_landmarks=2000."
        memory.check(memory.needed(m, solver, extra), m, hint)
        return solver

    def _kernel_matrix(self, kernel: Any, Y: FloatArray) -> FloatArray:
        if not isinstance(kernel, DataKernel):
            K: FloatArray = kernel.matrix(Y)
            if not kernel.has_recipe():
                self.kernel_matrix_ = K.copy()  # costly to find again
            return K
        K = np.empty((len(Y), len(Y)))

        def fill(place: slice) -> None:
            K[place] = kernel.gram(Y[place], Y)

        size = max(1, VALUES_AT_A_TIME // len(Y))
        places = [slice(start, start + size) for start in range(0, len(Y), size)]
        run_tasks(fill, places, count_threads(self.n_jobs))
        return symmetric(K, rounding_of(Y))

    def _keep(self, kernel: Any, found: Spectrum, base: FloatArray, weight: float) -> FloatArray:
        """Set the fitted attributes; return the latent points."""
        if not isinstance(kernel, Custom):
            self.kernel_ = kernel
        self.eigenvalues_, self.dual_coef_, self.mean_coef_ = found.eigenvalues, found.axes, base
        self.mean_row_, self.mean_ = found.mean_row, found.mean
        self._report(found.total, found.eigenvalues, weight)
        if kernel.is_precomputed:
            self.preimage_ = "none: a point's kernel values are a combination of those of the rows"
        else:
            self._choose_preimages(kernel, found.latent)
            if isinstance(kernel, DataDependentKernel) and not kernel.has_recipe():
                extension = extend_by_ridge(self.data_, found.latent)
                self.extension_coef_, self.extension_offset_ = (
                    extension.coefficients,
                    extension.offset,
                )
                self.extension_scale_ = extension.scale
        return found.latent

    def _restore(self) -> None:
        kernel = getattr(self, "kernel_", None) or get_kernel(self.kernel)
        rows = self.data_.astype(np.float64)
        self._surface = kernel.extended(rows) if isinstance(kernel, DataDependentKernel) else None
        self._space = FeatureSpace(
            kernel,
            rows,
            self.dual_coef_,
            self.mean_coef_,
            self.mean_row_,
            self.mean_,
            self.latent_.astype(np.float64),
            self._map(kernel, rows),
            getattr(self, "kernel_matrix_", None),
        )

    def _map(self, kernel: Any, rows: FloatArray) -> CoordinateMap | None:
        """Return the coordinates of any row with derivatives, where they have a closed form."""
        if isinstance(kernel, RBF):
            return GaussianCoordinates.of_kernel(
                rows, self.dual_coef_, self.mean_row_, kernel.number()
            )
        if isinstance(kernel, Diffusion):
            one_step = DiffusionValues.of(rows, kernel.number(), kernel.alpha, symmetric=True)
            coefficients = self.dual_coef_
            if kernel.time > 1:
                coefficients = kernel.carrier(rows) @ coefficients
            return DiffusionCoordinates(one_step, coefficients, -self.mean_row_ @ self.dual_coef_)
        if hasattr(self, "extension_coef_"):
            return GaussianCoordinates(
                rows, self.extension_scale_, self.extension_coef_, self.extension_offset_
            )
        return None

    def _place_complete(self, Y: FloatArray) -> FloatArray:
        space, extended = self._space, self._surface
        if space.kernel.is_precomputed:
            return space.place(np.ascontiguousarray(Y[:, self.columns_], dtype=np.float64))
        if isinstance(space.kernel, DataDependentKernel) and extended is None:
            assert space.map is not None
            return space.map.values(Y.astype(np.float64))
        X = np.empty((len(Y), self._n_features_out))

        def fill(place: slice) -> None:
            near = (
                extended.values(Y[place]) if extended else space.kernel.gram(Y[place], space.rows)
            )
            X[place] = space.place(near)

        size = max(1, VALUES_AT_A_TIME // len(space.rows))
        places = [slice(start, start + size) for start in range(0, len(Y), size)]
        run_tasks(fill, places, count_threads(self.n_jobs))
        return X

    def _regress(self, X: FloatArray) -> FloatArray:
        if not self._space.kernel.is_precomputed:
            return super()._regress(X)
        alpha, _ = self._space.expand(np.ascontiguousarray(X, dtype=np.float64))
        return multiply_rows(alpha, self.data_).astype(X.dtype)

    def _check_parameters(self) -> None:
        check_common(self)
        kernel = get_kernel(self.kernel)
        if self.eigen_solver not in SOLVERS:
            raise ValueError(f"`eigen_solver` must be one of {SOLVERS}; got {self.eigen_solver!r}.")
        if not isinstance(self.tol, Real) or not self.tol >= 0:
            raise ValueError(f"`tol` must be a number of at least 0; got {self.tol!r}.")
        if self.n_landmarks is not None:
            check_count("n_landmarks", self.n_landmarks, LEAST_LANDMARKS)
        if kernel.is_precomputed and self.n_landmarks is not None:
            raise ValueError(
                "`n_landmarks` need kernel values that a precomputed matrix does not hold. Pass "
                "the kernel as a function of rows, or leave `n_landmarks` out."
            )
        if not kernel.is_precomputed:
            get_method(self.preimage, kernel, 1, 1)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        given = self.kernel
        tags.input_tags.pairwise = (
            given == "precomputed"
            if isinstance(given, str)
            else getattr(given, "is_precomputed", False)
        )
        return tags


def check_common(model: Any) -> None:
    """Raise unless the parameters that both estimators have can be used."""
    check_count("n_components", model.n_components)
    count_threads(model.n_jobs)
