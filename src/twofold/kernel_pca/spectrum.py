"""Principal axes of weighted features: centring, eigenpairs, rank, signs; places on them.

With kernel values K (m, m), weights w and shares ``p = w / Σ w``, features are centred at their
weighted mean,

    K̄_ij = K_ij - r_i - r_j + c,    r = K p,    c = pᵀ r,

and with ``W^½ K̄ W^½ = U Λ Uᵀ``, W = diag(w), the axes have the coefficients ``A = W^½ U Λ^-½`` and
the rows the coordinates ``X = K̄ A = W^-½ U Λ^½``. A row of weight 2 counts like two equal rows;
with equal weights these are eqs. 2.24-2.33 of Arias 2007 (whose matrix of ones must be one of
1/m). Columns of A sum to zero. A new row with kernel values k has the coordinates

    x = Aᵀ (k - kᵀp - r + c).

The point of feature space with coordinates x is ``Σ_i α_i Φ(y_i)``, ``α = A x + p``: the mean is
added back, and the coefficients sum to one.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.linalg import eigh
from scipy.sparse.linalg import ArpackNoConvergence, eigsh
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.extmath import randomized_svd

from twofold.array_types import FloatArray
from twofold.engine.compiled import compiled
from twofold.features.data_kernels import DataKernel
from twofold.features.feature_map import multiply_rows
from twofold.preimages import FeaturePoints, Learned, PreImageMethod, PreImages
from twofold.preimages.coordinates import CoordinateMap, Parts

if TYPE_CHECKING:
    from twofold.kernel_pca.data_dependent import DiffusionValues

SOLVERS = ("auto", "dense", "arpack", "randomized")
# Below this share of the largest eigenvalue a direction is noise.
KEPT = 1e-10
# scikit-learn's rule: so few components of so large a matrix are found faster one by one.
ROWS_FOR_ARPACK, COMPONENTS_FOR_ARPACK = 200, 10
# Directions that a random range finder looks at beyond those wanted, and its power iterations.
OVERSAMPLES, POWER_ITERATIONS = 10, 7


@dataclass(frozen=True, eq=False)
class Spectrum:
    """The leading principal axes of weighted features.

    Attributes
    ----------
    eigenvalues : (q,) falling; times one over the sum of weights they are variances
    axes : (m, q) coefficients of the axes, columns that sum to zero
    latent : (m, q) coordinates of the rows
    mean_row : (m,) weighted mean of the rows of the kernel matrix
    mean : weighted mean of all kernel values
    total : sum of all eigenvalues
    """

    eigenvalues: FloatArray
    axes: FloatArray
    latent: FloatArray
    mean_row: FloatArray
    mean: float
    total: float


def decompose(
    K: FloatArray,
    weights: FloatArray,
    n_components: int,
    solver: str = "auto",
    tol: float = 0.0,
    rng: np.random.RandomState | None = None,
) -> Spectrum:
    """Find the first principal axes.

    Parameters
    ----------
    K : (m, m) array
        Symmetric kernel values, float64; written over.
    weights : (m,) array
        How much each row counts, above 0.
    n_components : int
        How many axes.
    solver : {"auto", "dense", "arpack", "randomized"}
        As in scikit-learn's KernelPCA.
    tol : float
        Relative accuracy of "arpack"; 0 for that of the numbers.
    rng : RandomState
        For "randomized".

    Returns
    -------
    Spectrum

    Raises
    ------
    ValueError
        If the features do not span as many directions.
    """
    mean_row, mean, noise = centre(K, weights)
    root = np.sqrt(weights)
    K *= root
    K *= root[:, None]
    total = float(np.trace(K))
    values, U = leading_eigenpairs(K, n_components, solver, tol, rng)
    check_rank(values, n_components, noise * float(weights.max()))
    values, U = values[:n_components], fix_signs(U[:, :n_components])
    axes = root[:, None] * U / np.sqrt(values)
    # Small eigenvalues let the direction in which centred features do not extend leak in.
    axes -= axes.sum(axis=0) * (weights / weights.sum())[:, None]
    return Spectrum(values, axes, U * np.sqrt(values) / root[:, None], mean_row, mean, total)


def symmetric(K: FloatArray, tolerance: float) -> FloatArray:
    """Return kernel values K (m, m) without rounding errors in their symmetry; raise for more."""
    largest = float(max(K.max(), -K.min()))
    if not np.isfinite(largest):
        raise ValueError(
            f"Kernel values must be finite; got up to {largest}. Scale the data, e.g. by "
            "StandardScaler, or lower the kernel's numbers."
        )
    gap = 0.0
    for i in range(len(K)):
        gap = max(gap, float(np.abs(K[i] - K[:, i]).max()))
        K[:i, i] = K[i, :i]
    if gap > tolerance * largest:
        raise ValueError(
            "A kernel matrix must be symmetric; entries (i, j) and (j, i) differ by up to "
            f"{gap:.4g}, with values up to {largest:.4g}. If both are estimates of one value, pass "
            "their mean, (K + K.T) / 2."
        )
    return K


def centre(K: FloatArray, weights: FloatArray) -> tuple[FloatArray, float, float]:
    """Centre kernel values (m, m) in place; return their mean row, mean and rounding."""
    shares = weights / weights.sum()
    noise = float(np.finfo(np.float64).eps * len(K) * max(K.max(), -K.min()))
    mean_row = K @ shares
    mean = float(mean_row @ shares)
    K -= mean_row
    K -= mean_row[:, None] - mean
    return mean_row, mean, noise


def leading_eigenpairs(
    S: FloatArray, count: int, solver: str, tol: float, rng: np.random.RandomState | None
) -> tuple[FloatArray, FloatArray]:
    """Return the largest eigenvalues of S (m, m), falling, and their vectors (m, count).

    S may be sparse for "arpack"; a dense one is written over.
    """
    count = min(count, S.shape[0])
    chosen = choose_solver(solver, S.shape[0], count)
    if chosen == "arpack":
        values, U = _by_arpack(S, count, tol)
    elif chosen == "randomized":
        # Of the singular values, those of negative eigenvalues are told by their vectors.
        U, sizes, Vt = randomized_svd(
            S,
            count,
            n_oversamples=OVERSAMPLES,
            n_iter=POWER_ITERATIONS,
            flip_sign=False,
            random_state=np.random.RandomState(0) if rng is None else rng,
        )
        values = np.sign(np.einsum("ij,ji->j", U, Vt)) * sizes
    else:
        m = len(S)
        values, U = eigh(
            S, subset_by_index=[m - count, m - 1], overwrite_a=True, check_finite=False
        )
    order = np.argsort(-values, kind="stable")
    return values[order], U[:, order]


def choose_solver(solver: str, m: int, count: int) -> str:
    """Return the solver that "auto" means for so many rows and components.

    ARPACK finds fewer vectors than there are rows; for all of them it is "dense".
    """
    if solver == "auto":
        solver = "arpack" if m > ROWS_FOR_ARPACK and count < COMPONENTS_FOR_ARPACK else "dense"
    return "dense" if solver == "arpack" and count >= m else solver


def _by_arpack(S: FloatArray, count: int, tol: float) -> tuple[FloatArray, FloatArray]:
    # The start is always the same, for what is found does not depend on it but for rounding.
    start = np.random.RandomState(0).uniform(-1, 1, S.shape[0])
    try:
        values, U = eigsh(S, count, which="LA", tol=tol, v0=start)
    except ArpackNoConvergence as error:
        if len(error.eigenvalues) < count:
            raise ValueError(
                f"ARPACK found {len(error.eigenvalues)} of {count} eigenpairs. Use "
                "eigen_solver='dense', or a larger `tol`."
            ) from error
        warnings.warn("ARPACK stopped early; set a larger `tol`.", ConvergenceWarning, stacklevel=4)
        values, U = error.eigenvalues, error.eigenvectors
    return values, U


def check_rank(values: FloatArray, n_components: int, noise: float) -> None:
    """Raise unless so many of the eigenvalues are above their rounding errors."""
    rank = int((values > max(KEPT * float(values[0]), noise)).sum())
    if rank < n_components:
        raise ValueError(
            f"`n_components` = {n_components} is more than the {rank} direction(s) that the "
            "features of these rows span. Lower `n_components`, pass more distinct rows, or use "
            "another kernel (the linear one spans at most n_features directions)."
        )


def fix_signs(U: FloatArray) -> FloatArray:
    """Return vectors (m, q) turned so that the largest entry of each is positive."""
    largest = U[np.abs(U).argmax(axis=0), np.arange(U.shape[1])]
    return U * np.where(largest < 0, -1.0, 1.0)


def place_rows(
    K: FloatArray, axes: FloatArray, shares: FloatArray, mean_row: FloatArray, mean: float
) -> FloatArray:
    """Return coordinates (n, q) of rows with kernel values K (n, m), none depending on another."""
    return multiply_rows(_centre_rows(K, shares, mean_row, mean), axes)


@compiled
def _centre_rows(
    K: FloatArray, shares: FloatArray, mean_row: FloatArray, mean: float
) -> FloatArray:
    centred = np.empty(K.shape)
    for j in range(K.shape[0]):
        level = -mean
        for i in range(K.shape[1]):
            level += K[j, i] * shares[i]
        for i in range(K.shape[1]):
            centred[j, i] = K[j, i] - mean_row[i] - level
    return centred


def diffusion_matrix(W: FloatArray, alpha: float) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return K (m, m), written over Gaussians W (m, m), with ``q^-α`` and d (m,)."""
    tilt = W.sum(axis=1) ** -alpha
    W *= tilt
    W *= tilt[:, None]
    degrees = W.sum(axis=1)
    root = 1 / np.sqrt(degrees)
    W *= root
    W *= root[:, None]
    return W, tilt, degrees


@dataclass(frozen=True, eq=False)
class FeatureSpace:
    """The fitted axes in feature space, and the points on them.

    Attributes
    ----------
    kernel : DataKernel, or one that is made from all rows at once
    rows : (m, D) that span the space
    axes : (m, q) coefficients of the axes, columns that sum to zero
    base : (m,) coefficients of the mean, of sum one
    mean_row : (m,) kernel values of the rows with the mean
    mean : kernel value of the mean with itself
    latent : (m, q) coordinates of the rows
    map : coordinates of any row, differentiable, where there are such
    matrix : (m, m) kernel values between the rows, where it is costly to make them again
    """

    kernel: Any
    rows: FloatArray
    axes: FloatArray
    base: FloatArray
    mean_row: FloatArray
    mean: float
    latent: FloatArray
    map: CoordinateMap | None = None
    matrix: FloatArray | None = None

    def place(self, K: FloatArray) -> FloatArray:
        """Return coordinates (n, q) of rows with kernel values K (n, m)."""
        return place_rows(K, self.axes, self.base, self.mean_row, self.mean)

    def expand(self, X: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return coefficients α (n, m) of points with coordinates X (n, q), and ``K α`` (n, m).

        For ``K A = X_rows + 1 (mean row)ᵀ A`` no kernel value is needed.
        """
        carried = self.latent + self.mean_row @ self.axes
        alpha = multiply_rows(X, self.axes.T) + self.base
        return alpha, multiply_rows(X, carried.T) + self.mean_row

    def preimages(self, X: FloatArray, method: PreImageMethod, n_jobs: int | None) -> PreImages:
        """Return the rows that a method finds for the points with coordinates X (n, q)."""
        alpha, products = self.expand(X)
        # Kernels of two rows are evaluated where they are needed, and a learned map needs none.
        is_needed = not isinstance(self.kernel, DataKernel) and method.name != Learned.name
        return method.find(
            FeaturePoints(
                self.kernel,
                self.rows,
                alpha,
                coordinates=X,
                map=self.map,
                row_coordinates=self.latent,
                gram=self.gram if is_needed else None,
                products=products,
                n_jobs=n_jobs,
            )
        )

    @cached_property
    def gram(self) -> FloatArray:
        """Kernel values (m, m) between the rows, for a kernel that is made from all of them."""
        return self.kernel.matrix(self.rows) if self.matrix is None else self.matrix


@dataclass(frozen=True, eq=False)
class DiffusionCoordinates:
    """Coordinates of any row, ``x(z) = Cᵀ κ(z) + c0``, with derivatives: a `CoordinateMap`."""

    kernel: DiffusionValues
    coefficients: FloatArray
    offset: FloatArray

    @property
    def n_coordinates(self) -> int:
        """Number r of coordinates."""
        return int(self.coefficients.shape[1])

    def values(self, Z: FloatArray) -> FloatArray:
        """Return the coordinates (n, r) of rows Z (n, D)."""
        return multiply_rows(self.kernel.values(Z), self.coefficients) + self.offset

    def jacobian(self, Z: FloatArray, q: int | None = None) -> FloatArray:
        """Return the derivatives (n, q, D) of the first q coordinates, all if None."""
        q = self.n_coordinates if q is None else q
        return self.parts(Z, np.zeros((len(Z), self.n_coordinates)), q).jacobian

    def distance_and_gradient(
        self, Z: FloatArray, targets: FloatArray
    ) -> tuple[FloatArray, FloatArray]:
        """Return the squared distances (n,) of x(Z) to targets (n, r), and their gradients."""
        X, gradient, _ = self.parts(Z, targets, 0)
        return ((X - targets) ** 2).sum(axis=1), gradient

    def parts(self, Z: FloatArray, targets: FloatArray, q: int) -> Parts:
        """Return coordinates, gradient of the distance and derivatives of q coordinates at once."""
        values, centre = self.kernel.with_centre(Z)
        X = multiply_rows(values, self.coefficients) + self.offset

        def pulled(pull: FloatArray) -> FloatArray:
            W = values * pull
            sums = multiply_rows(W, self.kernel.rows) - W.sum(axis=1, keepdims=True) * centre
            return np.asarray(sums / self.kernel.scale**2)

        pull = 2 * multiply_rows(X - targets, np.ascontiguousarray(self.coefficients.T))
        J = np.empty((len(Z), q, Z.shape[1]))
        for j in range(q):
            J[:, j] = pulled(self.coefficients[:, j])
        return Parts(X, pulled(pull), J)
