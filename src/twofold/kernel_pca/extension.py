"""A kernel that only knows its training rows, extended to all others by kernel ridge regression.

Kernels such as those of diffusion maps, LLE or MVU are made from all rows at once, and have no
value for a new one. Every column of the kernel matrix K is a function that is known at the m
training rows; ridge regression with a Gaussian of scale s extends all of them,

    k(z) = K s(z),    s(z) = the first m entries of [ H + ridge I , 1 ; 1ᵀ , 0 ]⁻¹ [ h(z) ; 1 ],

with weights s(z) that sum to one (Arias 2007, eqs. 3.27-3.29). Therefore extending and centring
can be swapped, and the coordinates of z on the principal axes are the same weighted mean of the
training coordinates, ``x(z) = Xᵀ s(z)``: what is fitted and kept is the map of
:mod:`~twofold.preimages.coordinates`, not m extended columns.

How far it reaches: beyond about s from the data all coordinates fall to a constant. How simple it
is: a wider s gives simpler functions. By default s has the smallest leave-one-out error of the
coordinates that are asked for (:mod:`~twofold.preimages.press`), at a ridge of 0.01.
"""

import os
from typing import Any, ClassVar, Self

import numpy as np
from scipy.spatial.distance import pdist, squareform
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin, clone
from sklearn.utils.validation import check_is_fitted

from twofold.array_types import FloatArray
from twofold.checks.parameters import NARROWEST, WIDEST, check_choice, check_count, check_width
from twofold.checks.rows import check_entries
from twofold.contract import fitted_state as kept
from twofold.engine.threads import single_threaded_blas
from twofold.features.feature_map import check_symmetry
from twofold.kernel_pca import memory
from twofold.kernel_pca.data_dependent import KERNELS, DataDependentKernel
from twofold.kernel_pca.sparse_matrix import validate_complete
from twofold.kernel_pca.spectrum import decompose
from twofold.model_files import ModelFile, register_value_type, state_of, write_model_file
from twofold.neighborhoods.nearest import neighbor_scale
from twofold.preimages import press
from twofold.preimages.coordinates import GaussianCoordinates

register_value_type(GaussianCoordinates)

CRITERIA = ("coordinates", "press", "rk_press")
# Where nothing is chosen by a criterion: the thesis' own numbers.
NEIGHBOR_FOR_FIXED_SCALE = 30
FIXED_RIDGE = 0.01


# Parts of the regression that carries rows to their coordinates.
MAP: kept.FittedState = {
    "rows": kept.Array(("N", "D")),
    "coefficients": kept.Array(("N", "q")),
    "offset": kept.Array(("q",)),
}


class KernelExtension(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):
    """Carry a data-dependent kernel, or an embedding, over to new rows.

    Kernel PCA of the kernel gives the training rows their coordinates; kernel ridge regression
    extends these to any row. The map is smooth: at a training row it comes as close to the
    coordinates in ``embedding_`` as the ridge allows.

    Parameters
    ----------
    source : str, DataDependentKernel, callable or estimator, default="diffusion"
        What is extended: "lle", "mvu", "laplacian_eigenmaps", "diffusion", "isomap" or a kernel
        object with parameters of its own; a callable that takes rows (m, D) to their kernel matrix
        (m, m); or an embedding, any estimator with ``fit_transform``, whose coordinates are
        extended as they are.
    n_components : int, default=2
        Number of coordinates; an embedding brings its own.
    bandwidth : "auto" or float, default="auto"
        Width of the Gaussians of the regression.
    ridge : "auto" or float, default=0.01
        Added to the diagonal of their matrix: the larger, the smoother.
    choose_by : {"coordinates", "press", "rk_press"} or None, default="coordinates"
        The leave-one-out error that "auto" minimises: of the coordinates, of the entries of the
        kernel matrix, or of those entries predicted from a kernel that is recomputed without the
        row (slow). None takes the mean distance to the 30th neighbour as scale, and 0.01 as ridge.

    Attributes
    ----------
    embedding_ : ndarray of shape (n_samples, n_components)
        Coordinates of the training rows.
    eigenvalues_ : ndarray of shape (n_components,)
        Of the centred kernel matrix; not set for an embedding.
    map_ : GaussianCoordinates
        The extended coordinates, with derivatives.
    bandwidth_, ridge_ : float
        The parameters of the regression.
    error_ : float
        The criterion with these parameters; NaN if `choose_by` is None.
    kernel_matrix_ : ndarray of shape (n_samples, n_samples)
        Not set for an embedding.
    n_features_in_, feature_names_in_ : int, ndarray

    Examples
    --------
    >>> import numpy as np
    >>> from twofold.kernel_pca.extension import KernelExtension
    >>> t = np.linspace(0, 2 * np.pi, 80)
    >>> Y = np.column_stack([t, np.sin(t)])
    >>> extension = KernelExtension("diffusion", n_components=1).fit(Y)
    >>> between = extension.transform((Y[:-1] + Y[1:]) / 2)[:, 0]
    >>> bool((np.diff(between) > 0).all() or (np.diff(between) < 0).all())
    True
    """

    fitted_state: ClassVar[kept.FittedState] = {
        "n_features_in_": kept.Size("D"),
        "feature_names_in_": kept.Array(("D",), "U", is_optional=True),
        "embedding_": kept.Array(("N", "q")),
        "map_": kept.Value((GaussianCoordinates,)),
        "bandwidth_": kept.Number(NARROWEST, WIDEST),
        "ridge_": kept.Number(low=0),
        "eigenvalues_": kept.Array(("q",), is_optional=True),
        "kernel_matrix_": kept.Array(("N", "N"), is_optional=True),
        "error_": kept.Report(),
    }

    def __init__(
        self,
        source: Any = "diffusion",
        n_components: int = 2,
        *,
        bandwidth: str | float = "auto",
        ridge: str | float = 0.01,
        choose_by: str | None = "coordinates",
    ) -> None:
        self.source = source
        self.n_components = n_components
        self.bandwidth = bandwidth
        self.ridge = ridge
        self.choose_by = choose_by

    def fit(self, X: Any, y: None = None) -> Self:
        """Find the coordinates of rows X (n_samples, n_features) and extend them."""
        self._check_parameters()
        table = self._validate(X, reset=True)
        Y = table.astype(np.float64)
        check_entries(Y)
        hint = "Fit a part of the rows, and extend to the others by `transform`."
        memory.check(memory.needed(len(Y), "dense"), len(Y), hint)
        with single_threaded_blas():  # more threads would change the last bits
            X, matrix_of = self._embed(Y)
            self.bandwidth_, self.ridge_, self.error_ = self._choose(Y, X, matrix_of)
            self.map_ = GaussianCoordinates.by_ridge(Y, X, self.bandwidth_, self.ridge_)
        self.embedding_ = X.astype(table.dtype, copy=False)
        return self

    def transform(self, X: Any) -> FloatArray:
        """Return the coordinates (n_samples, n_components) of rows X (n_samples, n_features)."""
        check_is_fitted(self)
        Y = self._validate(X, reset=False)
        return self.map_.values(Y.astype(np.float64)).astype(Y.dtype, copy=False)

    def kernel_values(self, X: Any) -> FloatArray:
        """Return the kernel (n_samples, n_training_rows) of rows X (n_samples, n_features).

        It is not centred, like ``kernel_matrix_``.
        """
        check_is_fitted(self)
        Y = self._validate(X, reset=False)
        if "kernel_matrix_" not in self.__dict__:
            raise ValueError(
                "`kernel_values` needs a kernel; this extension has the embedding "
                f"{self.source!r} as its source. Use `transform`."
            )
        rows, numbers = self.map_.rows, (self.bandwidth_, self.ridge_)
        columns = GaussianCoordinates.by_ridge(rows, self.kernel_matrix_, *numbers)
        return columns.values(Y.astype(np.float64)).astype(Y.dtype, copy=False)

    def _validate(self, X: Any, *, reset: bool) -> FloatArray:
        message = (
            "KernelExtension compares complete rows; {} entries are missing (NaN). Fill them in, "
            "or leave the rows out."
        )
        least = 3 if reset else 1  # two are left when one is left out
        found = validate_complete(self, X, message, reset=reset, ensure_min_samples=least)
        return np.asarray(found)

    def _check_parameters(self) -> None:
        check_count("n_components", self.n_components)
        check_width("bandwidth", self.bandwidth)
        check_width("ridge", self.ridge)
        check_choice("choose_by", self.choose_by, (*CRITERIA, None))

    def _embed(self, Y: FloatArray) -> tuple[FloatArray, press.MatrixOf | None]:
        """Return the coordinates of rows Y (m, D), and the kernel, None for an embedding."""
        self.__dict__.pop("kernel_matrix_", None)
        self.__dict__.pop("eigenvalues_", None)
        matrix_of = _matrix_of(self.source, Y)
        if matrix_of is None:
            return _check_embedding(clone(self.source).fit_transform(Y), len(Y)), None
        self.kernel_matrix_ = _check_matrix(matrix_of(Y), len(Y))
        found = decompose(self.kernel_matrix_.copy(), np.ones(len(Y)), self.n_components)
        self.eigenvalues_ = found.eigenvalues
        return found.latent, matrix_of

    def _choose(
        self, Y: FloatArray, X: FloatArray, matrix_of: press.MatrixOf | None
    ) -> tuple[float, float, float]:
        scale = None if self.bandwidth == "auto" else float(self.bandwidth)
        ridge = None if self.ridge == "auto" else float(self.ridge)
        if self.choose_by is None:
            scale = neighbor_scale(Y, NEIGHBOR_FOR_FIXED_SCALE) if scale is None else scale
            return scale, FIXED_RIDGE if ridge is None else ridge, float("nan")
        chosen = press.choose(self._criterion(Y, X, matrix_of), neighbor_scale(Y), scale, ridge)
        return chosen.scale, chosen.ridge, chosen.value

    def _criterion(
        self, Y: FloatArray, X: FloatArray, matrix_of: press.MatrixOf | None
    ) -> press.Criterion:
        sq_dists = squareform(pdist(Y, "sqeuclidean"))
        if self.choose_by == "coordinates":
            return press.CoordinatePress(sq_dists, X)
        if matrix_of is None:
            raise ValueError(
                f"`choose_by` = {self.choose_by!r} needs a kernel; the source {self.source!r} is "
                "an embedding. Use 'coordinates'."
            )
        if self.choose_by == "press":
            return press.KernelPress(sq_dists, self.kernel_matrix_)
        return press.RebuiltKernelPress(sq_dists, Y, matrix_of)

    @property
    def _n_features_out(self) -> int:
        return int(self.embedding_.shape[1])

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the fitted extension to a file; :func:`twofold.load` opens it without running code.

        A source that is a function or an estimator is kept as its text only: the opened extension
        carries rows over as before, but cannot be fitted again.
        """
        write_model_file(path, self.to_file())

    def to_file(self) -> ModelFile:
        """Return what a file of the fitted extension holds."""
        check_is_fitted(self)
        stored = state_of(self, {})
        if not isinstance(self.source, (str, DataDependentKernel)):
            stored.params["source"] = repr(self.source)
        return stored

    @classmethod
    def from_file(cls, stored: ModelFile) -> Self:
        """Return the fitted extension of a file that was read."""
        state = {**stored.attributes, **stored.arrays}
        sizes = kept.check_state(state, cls.fitted_state)
        kept.check_state({name: getattr(state["map_"], name) for name in MAP}, MAP, sizes)
        extension = cls(**stored.params)
        extension._check_parameters()
        extension.__dict__.update(state)
        return extension

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags


def _matrix_of(source: Any, Y: FloatArray) -> press.MatrixOf | None:
    """Return the kernel to extend, None if the source is an embedding."""
    if isinstance(source, str) and source in KERNELS:
        source = KERNELS[source]()
    if isinstance(source, DataDependentKernel):
        return source.fitted(Y).matrix
    if hasattr(source, "fit_transform") and not isinstance(source, type):
        return None
    if callable(source) and not isinstance(source, type):
        return source
    raise ValueError(
        f"`source` must be one of {sorted(KERNELS)}, such a kernel with its numbers, a callable "
        "that returns the kernel matrix of rows, or an estimator with `fit_transform`; got "
        f"{source!r}."
    )


def _check_matrix(matrix: Any, m: int) -> FloatArray:
    K: FloatArray = np.array(matrix, dtype=np.float64)
    if K.shape != (m, m) or not np.isfinite(K).all():
        raise ValueError(
            f"The kernel matrix of {m} rows must be ({m}, {m}) finite numbers; got shape {K.shape}"
            f"{'' if np.isfinite(K).all() else ' with NaN or infinity'}."
        )
    check_symmetry(float(np.abs(K - K.T).max()), float(np.abs(K).max()), 1e-8)
    return K


def _check_embedding(embedding: Any, m: int) -> FloatArray:
    X: FloatArray = np.asarray(embedding, dtype=np.float64)
    if X.ndim != 2 or len(X) != m or not np.isfinite(X).all():
        raise ValueError(
            f"An embedding of {m} rows must be finite numbers of shape ({m}, q); got {X.shape}."
        )
    if not np.ptp(X, axis=0).any():
        raise ValueError("The embedding puts all rows in one place; there is nothing to extend.")
    return X
