"""Kernel PCA: principal axes in the feature space of a kernel.

Schölkopf, Smola and Müller 1998; Arias 2007, chapter 2. What follows from the axes is in
:mod:`~twofold.kernel_pca.spectral_model`.
"""

from typing import Any, ClassVar

import numpy as np
from sklearn.utils import check_random_state

from twofold.array_types import FloatArray, IntArray
from twofold.checks.parameters import check_at_least, check_choice, check_count
from twofold.contract.distinct_rows import merge_duplicates
from twofold.contract.fitted_state import SAMPLE, Array, FittedState, Number, Value, check_there
from twofold.engine.gpu.library import DEVICES
from twofold.engine.threads import count_threads, run_tasks
from twofold.features.data_kernels import RBF, Custom, DataKernel, Linear, rounding_of
from twofold.kernel_pca import memory, spectrum
from twofold.kernel_pca.compact_kernels import Wendland
from twofold.kernel_pca.data_dependent import (
    LLE,
    DataDependentKernel,
    Diffusion,
    get_kernel,
    with_numbers,
)
from twofold.kernel_pca.diffusion_kernel import DiffusionCoordinates, DiffusionValues
from twofold.kernel_pca.gpu_products import device_for
from twofold.kernel_pca.sparse_matrix import SparseMatrixModel, check_square
from twofold.kernel_pca.spectral_model import FeatureSpace, brought_near, place_on_plane
from twofold.kernel_pca.spectrum import SOLVERS, Spectrum, decompose
from twofold.landmarks import Landmarks
from twofold.landmarks.choice import choose_landmarks
from twofold.neighborhoods.nearest import nearest_rows
from twofold.preimages import get_method
from twofold.preimages.coordinates import CoordinateMap, GaussianCoordinates
from twofold.process_settings import warn
from twofold.rowwise import blocks, multiply_rows

LEAST_LANDMARKS = 3


class KernelPCA(SparseMatrixModel):
    """Kernel PCA with a way back.

    Parameters
    ----------
    n_components : int, default=2
        Principal axes q; more than there are features is fine.
    kernel : str, object or callable, default="rbf"
        A kernel of two rows: "rbf", "poly", "laplacian", "linear", "l1", an object of
        :mod:`twofold.features`, a function ``k(A, B)`` of two tables, or "precomputed" (``fit``
        takes the kernel matrix, dense or scipy.sparse, new rows are their values with the training
        rows, and so is what comes back). "wendland", or ``Wendland(radius)``, is zero beyond a
        radius; its matrix is sparse. Or a kernel made from all rows: "lle", "mvu",
        "laplacian_eigenmaps", "diffusion", "isomap", or an object of
        :mod:`twofold.kernel_pca.data_dependent`. Where "rbf" and "laplacian" have no ``gamma``, it
        is ``1 / (2 s²)`` and ``1 / s``, s the mean distance to the tenth nearest row.
    preimage : str or object, default="auto"
        How rows are found for latent points: a method of :mod:`twofold.preimages` or
        its name; "auto" takes what suits the kernel. A precomputed kernel has none: "auto" only.
    landmarks : int, default=None
        Number of landmarks that span the feature space instead of all rows (Nyström): for large
        tables. A kernel that is made from all rows is made from the landmarks. These become the
        rows of the model, and all rows are projected. With no more rows than that, all are taken.
    eigen_solver : {"auto", "dense", "arpack", "randomized"}, default="auto"
        "auto" is "arpack" for fewer than 10 components of more than 200 rows, else "dense". A
        sparse kernel matrix takes "arpack" only.
    tol : float, default=0
        Relative accuracy of "arpack"; 0 means machine precision.
    random_state : int, RandomState or None, default=None
        Seed for "randomized" and for landmarks.
    n_jobs : int or None, default=-1
        Threads: -1 for every core, None for one. The result does not depend on it.
    device : {"auto", "cpu", "cuda"}, default="auto"
        Where "arpack" multiplies with a dense kernel matrix, in double precision. "auto" takes a
        CUDA device for 5,000 rows and more if there is one (``pip install twofold[gpu]``); "cuda"
        raises if there is none.

    Attributes
    ----------
    embedding_ : ndarray of shape (n_samples, n_components)
        Latent points of the rows passed to ``fit``, in their order.
    latent_, data_, weights_ : ndarrays
        Latent points, rows and weights of the distinct rows, or of the landmarks. Of a sparse
        matrix ``data_`` is sparse.
    eigenvalues_ : ndarray of shape (n_components,)
        Of the centred kernel matrix, rows counted by their weights.
    dual_coef_, mean_coef_ : ndarrays of shapes (m, n_components) and (m,)
        Coefficients of the axes and of the mean over the features of ``data_``.
    rest_coef_ : ndarray of shape (m, r)
        Coefficients of further axes, for pre-images that need them ("constrained").
    mean_row_, mean_ : ndarray of shape (m,), float
        Kernel values of the rows with the mean, and of the mean with itself.
    kernel_ : object
        The kernel with all its parameters; not set if the kernel is a function.
    preimage_, preimage_method_ : str, object
        The method for pre-images and why it was chosen, and the method with its parameters (not set
        for a precomputed kernel).
    objective_ : float
        Variance in feature space, per row, that the axes leave out.
    n_iter_, stop_reason_, history_ : int, str, ndarray
        As for other models; the history holds the whole variance and what is left.
    domain_threshold_ : float
        Density that bounds the domain.
    n_features_in_, feature_names_in_ : int, ndarray

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

    fitted_state: ClassVar[FittedState] = {
        **SAMPLE,
        **SparseMatrixModel.fitted_state,
        "kernel_": Value((DataKernel, DataDependentKernel), is_optional=True),
        "mean_coef_": Array(("n",)),
        "mean_row_": Array(("n",)),
        "mean_": Number(),
        "columns_": Array(("n",), "i", low=0, high="D", is_optional=True),
        "rest_coef_": Array(("n", "further"), is_optional=True),
        "kernel_matrix_": Array(("n", "n"), is_optional=True),
    }

    def __init__(
        self,
        n_components: int = 2,
        *,
        kernel: Any = "rbf",
        preimage: Any = "auto",
        landmarks: int | None = None,
        eigen_solver: str = "auto",
        tol: float = 0,
        random_state: Any = None,
        n_jobs: int | None = -1,
        device: str = "auto",
    ) -> None:
        self.n_components = n_components
        self.kernel = kernel
        self.preimage = preimage
        self.landmarks = landmarks
        self.eigen_solver = eigen_solver
        self.tol = tol
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.device = device

    # ---- what the contract asks for -------------------------------------------------------------

    def _fit_distinct(self, Y: FloatArray, weights: FloatArray, source: IntArray) -> FloatArray:
        self._check_training_rows(Y, source)
        kernel = get_kernel(self.kernel)
        rng = check_random_state(self.random_state)
        if self.landmarks is not None and self.landmarks < len(Y):
            return self._fit_landmarks(Y, weights, kernel, rng)
        solver = self._announce(kernel, len(Y), is_sparse=isinstance(kernel, Wendland))
        kernel = with_numbers(kernel, Y)
        if kernel.is_precomputed:
            check_square((len(self.member_), Y.shape[1]))
            self.columns_ = source
            K: Any = spectrum.symmetric(Y[:, source].astype(np.float64), rounding_of(Y))
        elif isinstance(kernel, Wendland):
            pairs = kernel.count_near(Y)
            need = memory.needed_by_pairs(pairs, len(Y), self.n_components)
            memory.check(need, len(Y), "Lower the `radius` of the kernel.")
            K = kernel.sparse_gram(Y, Y)
        else:
            K = self._kernel_matrix(kernel, Y)
        found = self._axes(K, weights, kernel, solver, rng)
        return self._keep(kernel, found, weights / weights.sum(), float(weights.sum()))

    def _keeps_rows(self) -> bool:
        # Fewer rows than landmarks are kept all.
        return self._takes_rows() and bool((self.member_ >= 0).any())

    def _fit_sparse(self, K: Any, weights: FloatArray) -> FloatArray:
        kernel = get_kernel(self.kernel)
        solver = self._announce(kernel, K.shape[0], is_sparse=True)
        found = self._axes(K, weights, kernel, solver, None)
        return self._keep(kernel, found, weights / weights.sum(), float(weights.sum()))

    def _axes(self, K: Any, weights: FloatArray, kernel: Any, solver: str, rng: Any) -> Spectrum:
        further = self._n_further(kernel)
        if spectrum.count_strangers(K) == K.shape[0]:
            warn(
                "No two rows are similar: the kernel matrix is diagonal, all directions are "
                "equally long, and the choice among them is arbitrary. Use a wider kernel, e.g. a "
                "smaller `gamma` or a larger `radius`."
            )
        advice = spectrum.ADVICE_FOR_MATRIX if kernel.is_precomputed else spectrum.ADVICE
        # Asked first: without a GPU, "cuda" is refused whatever the solver.
        device = device_for(self.device, K.shape[0])
        device = device if solver == "arpack" else "cpu"
        q, tol = self.n_components, self.tol
        return decompose(K, weights, q, solver, tol, rng, further, advice, device)

    def _fit_landmarks(
        self, Y: FloatArray, weights: FloatArray, kernel: Any, rng: np.random.RandomState
    ) -> FloatArray:
        count = int(self.landmarks or 0)
        solver = self._announce(kernel, count)
        rows = choose_landmarks(Y, weights, Landmarks(count), int(rng.randint(2**31 - 1)))
        # A landmark counts as much as the rows it is nearest to; without any it is left out.
        owner = nearest_rows(Y, rows, 1)[:, 0]
        summed = np.bincount(owner, weights, minlength=len(rows)).astype(np.float64)
        rows, summed = rows[summed > 0], summed[summed > 0]
        self.data_, self.weights_ = rows, summed
        self._keep_sample(merge_duplicates(Y, weights))
        self.member_ = np.full(len(self.member_), -1)
        kernel = with_numbers(kernel, rows)
        if isinstance(kernel, DataKernel):
            found, base = spectrum.decompose_by_landmarks(
                kernel, rows, Y, weights, self.n_components, self._n_further(kernel)
            )
        else:
            K = self._kernel_matrix(kernel, rows)
            found = self._axes(K, summed, kernel, solver, rng)
            base = summed / summed.sum()
        return self._keep(kernel, found, base, float(weights.sum()))

    def _announce(self, kernel: Any, m: int, *, is_sparse: bool = False) -> str:
        """Return the solver for m rows; raise if there is not enough memory for them."""
        if is_sparse:
            if self.eigen_solver not in ("auto", "arpack"):
                raise ValueError(
                    f"eigen_solver={self.eigen_solver!r} fills up a sparse kernel matrix; use "
                    "'arpack', or pass a dense one."
                )
            return "arpack"
        # Those of LLE lie too close together for ARPACK.
        is_clustered = self.eigen_solver == "auto" and isinstance(kernel, LLE)
        wanted = "dense" if is_clustered else self.eigen_solver
        solver = spectrum.choose_solver(wanted, m, self.n_components + self._n_further(kernel))
        extra = 0 if isinstance(kernel, DataKernel) else kernel.extra_matrices
        hint = "Let fewer rows span the feature space by `landmarks`, e.g. landmarks=2000."
        memory.check(memory.needed(m, solver, extra), m, hint)
        return solver

    def _kernel_matrix(self, kernel: Any, Y: FloatArray) -> FloatArray:
        if not isinstance(kernel, DataKernel):
            K: FloatArray = kernel.matrix(Y)
            if not kernel.has_recipe:
                self.kernel_matrix_ = K.copy()  # costly to find again
            return K
        K = np.empty((len(Y), len(Y)))

        def fill(place: slice) -> None:
            K[place] = kernel.gram(Y[place], Y)

        run_tasks(fill, blocks(len(Y), len(Y)), count_threads(self.n_jobs))
        return spectrum.symmetric(K, rounding_of(Y))

    def _keep(self, kernel: Any, found: Spectrum, base: FloatArray, weight: float) -> FloatArray:
        """Set the fitted attributes; return the latent points."""
        q = int(self.n_components)
        if not isinstance(kernel, Custom):
            self.kernel_ = kernel
        latent, rest = found.latent[:, :q], found.axes[:, q:]
        self.eigenvalues_, self.dual_coef_ = found.eigenvalues[:q], found.axes[:, :q]
        self.mean_coef_, self.mean_row_, self.mean_ = base, found.mean_row, found.mean
        self._report(found.total, self.eigenvalues_, weight)
        if kernel.is_precomputed:
            self.preimage_ = "none: a point's kernel values are a combination of those of the rows"
        else:
            self._choose_preimages(kernel, latent)
            is_unknown = isinstance(kernel, DataDependentKernel) and not kernel.has_recipe
            has_map = isinstance(kernel, (RBF, Diffusion))
            if is_unknown or (self._n_further(kernel) and not has_map):
                self._extend(found.latent)
            elif rest.shape[1]:
                self.rest_coef_ = rest
        return latent

    def _restore(self) -> None:
        kernel = self._fitted_kernel()
        rows = self.data_ if self._holds_sparse() else self.data_.astype(np.float64)
        self._surface = kernel.extended(rows) if isinstance(kernel, DataDependentKernel) else None
        of_mean = self.mean_coef_, self.mean_row_, self.mean_
        known = self.latent_.astype(np.float64), self._map(kernel, rows)
        K = getattr(self, "kernel_matrix_", None)
        self._space = FeatureSpace(kernel, rows, self.dual_coef_, *of_mean, *known, K)

    def _map(self, kernel: Any, rows: FloatArray) -> CoordinateMap | None:
        """Return the coordinates of any row with derivatives, where they have a closed form."""
        axes = np.hstack([self.dual_coef_, getattr(self, "rest_coef_", self.dual_coef_[:, :0])])
        if isinstance(kernel, RBF):
            return GaussianCoordinates.of_kernel(rows, axes, self.mean_row_, kernel.number())
        if isinstance(kernel, Diffusion):
            one_step = DiffusionValues.of(rows, kernel.number(), kernel.alpha, symmetric=True)
            carried = axes if kernel.time == 1 else kernel.carrier(rows) @ axes
            return DiffusionCoordinates(one_step, carried, -self.mean_row_ @ axes)
        return self._extension()

    def _place_complete(self, Y: FloatArray) -> FloatArray:
        space, extended = self._space, self._surface
        if space.kernel.is_precomputed:
            return space.place(np.ascontiguousarray(Y[:, self.columns_], dtype=np.float64))
        if isinstance(space.kernel, DataDependentKernel) and extended is None:
            assert space.map is not None
            return space.map.values(Y.astype(np.float64))[:, : self._n_features_out]
        if isinstance(space.kernel, Wendland):
            return space.place(space.kernel.sparse_gram(Y, space.rows))
        if extended is not None:
            Y = brought_near(Y)
        X = np.empty((len(Y), self._n_features_out))

        def fill(place: slice) -> None:
            K = extended(Y[place]) if extended else space.kernel.gram(Y[place], space.rows)
            X[place] = space.place(K)

        run_tasks(fill, blocks(len(Y), len(space.rows)), count_threads(self.n_jobs))
        return X

    def _place_incomplete(self, Y: FloatArray) -> FloatArray:
        if not isinstance(self._space.kernel, Linear):
            return super()._place_incomplete(Y)
        rows, weight = self._space.rows, float(self.weights_.sum())
        left_over = max(1, rows.shape[1] - self._n_features_out)
        return place_on_plane(
            Y.astype(np.float64),
            self.mean_coef_ @ rows,
            rows.T @ self.dual_coef_,
            self.eigenvalues_ / weight,
            self.objective_ / left_over,
        )

    def _regress(self, X: FloatArray) -> FloatArray:
        if not self._space.kernel.is_precomputed:
            return super()._regress(X)
        alpha, _ = self._space.expand(np.ascontiguousarray(X, dtype=np.float64))
        if self._holds_sparse():
            return np.asarray((self.data_.T @ alpha.T).T).astype(X.dtype)
        return multiply_rows(alpha, self.data_).astype(X.dtype)

    def _check_restored(self) -> None:
        super()._check_restored()
        kernel = self._fitted_kernel()
        if not isinstance(kernel, type(get_kernel(self.kernel))):
            raise ValueError(f"`kernel_` is {kernel!r}, which is not the kernel asked for")
        is_matrix = kernel.is_precomputed
        is_extended = isinstance(kernel, DataDependentKernel) and not kernel.has_recipe
        needed = {
            "columns_": is_matrix,
            "preimage_method_": not is_matrix,
            "kernel_matrix_": is_extended,
            "extension_coef_": is_extended,
        }
        check_there(self, needed)

    def _fitted_kernel(self) -> Any:
        # A function is not kept, only taken from the parameters.
        return getattr(self, "kernel_", None) or get_kernel(self.kernel)

    def _check_parameters(self) -> None:
        super()._check_parameters()
        kernel = get_kernel(self.kernel)
        check_choice("eigen_solver", self.eigen_solver, SOLVERS)
        check_choice("device", self.device, DEVICES)
        check_at_least("tol", self.tol)
        if self.landmarks is not None:
            check_count("landmarks", self.landmarks, LEAST_LANDMARKS)
        if kernel.is_precomputed and self.landmarks is not None:
            raise ValueError(
                "`landmarks` need kernel values that a precomputed matrix does not hold. Pass "
                "the kernel as a function of rows, or leave `landmarks` out."
            )
        if not kernel.is_precomputed:
            get_method(self.preimage, kernel)
        elif not (isinstance(self.preimage, str) and self.preimage == "auto"):
            raise ValueError(
                "A precomputed kernel has no pre-images: there are no rows to go back to, only "
                f"kernel values. Leave `preimage` at 'auto'; got {self.preimage!r}."
            )

    def _advice_for_missing(self) -> str:
        if not self._is_pairwise():
            return super()._advice_for_missing()
        return "Leave out the rows and columns of samples whose kernel values are not known."

    def _is_pairwise(self) -> bool:
        if isinstance(self.kernel, str):
            return self.kernel == "precomputed"
        return bool(getattr(self.kernel, "is_precomputed", False))
