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

A sparse K stays sparse: ARPACK asks only for products ``W^½ K̄ W^½ v``, in which centring is two
sums.

K of n rows costs n² numbers of memory. With l landmarks y_l (centres of k-means, which serve the
Nyström method best: Zhang, Tsang and Kwok 2008) all features are first projected onto the affine
span of the landmarks' features, where they have at most l - 1 coordinates ζ
(:class:`~twofold.features.FeatureMap`, with projector P); then follows ordinary weighted PCA of ζ,
with mean μ and axes V. The axes are ``A = P V`` over the landmarks, and the point with coordinates
x is ``Σ_l α_l Φ(y_l)``, ``α = A x + b``, ``b = 1/l + P μ``, of sum one. With every row a landmark
this is kernel PCA as it is.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse
from scipy.linalg import eigh
from scipy.sparse.linalg import ArpackNoConvergence, LinearOperator, eigsh
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.extmath import randomized_svd

from twofold.array_types import FloatArray
from twofold.features.data_kernels import DataKernel
from twofold.features.feature_map import FeatureMap, check_symmetry
from twofold.process_settings import warn
from twofold.rowwise import blocks, fix_signs

SOLVERS = ("auto", "dense", "arpack", "randomized")
# Below this share of the largest eigenvalue a direction is noise.
KEPT = 1e-10
# Of axes beyond those asked for, which only hold pre-images near the rows (Arias 2007).
FURTHER_KEPT = 1e-6
# scikit-learn's rule: so few components of so large a matrix are found faster one by one.
ROWS_FOR_ARPACK, COMPONENTS_FOR_ARPACK = 200, 10
# Directions that a random range finder looks at beyond those wanted, and its power iterations.
OVERSAMPLES, POWER_ITERATIONS = 10, 7
# Less than this share of a row's own kernel value is no likeness to others.
ALIKE = 1e-8
# What to do where features span too few directions.
ADVICE = (
    "Pass more distinct rows, or use another kernel (the linear one spans at most n_features "
    "directions)."
)
ADVICE_FOR_MATRIX = (
    "Are these distances? Then pass the kernel np.exp(-distances**2 / (2 * width**2)), or "
    "-0.5 * distances**2; large values must mean that rows are similar."
)


@dataclass(frozen=True, eq=False)
class Spectrum:
    """The leading principal axes of weighted features."""

    eigenvalues: FloatArray  # (q,) falling; over the sum of weights they are variances
    axes: FloatArray  # (m, q) coefficients, columns that sum to zero
    latent: FloatArray  # (m, q) coordinates of the rows
    mean_row: FloatArray  # (m,) weighted mean of the rows of the kernel matrix
    mean: float  # weighted mean of all kernel values
    total: float  # sum of all eigenvalues


def decompose(
    K: Any,
    weights: FloatArray,
    n_components: int,
    solver: str = "auto",
    tol: float = 0.0,
    rng: np.random.RandomState | None = None,
    n_further: int = 0,
    advice: str = ADVICE,
    device: str = "cpu",
) -> Spectrum:
    """Find the first principal axes; raise if the features do not span as many directions."""
    # Dense K (m, m) is written over; for a sparse one the solver is always "arpack". `n_further` is
    # the most axes beyond those asked for, as far as they exceed rounding errors.
    root = np.sqrt(weights)
    count = n_components + n_further
    shares = weights / weights.sum()
    noise = float(np.finfo(np.float64).eps * K.shape[0] * max(K.max(), -K.min()))  # of rounding
    mean_row = np.asarray(K @ shares)
    mean = float(mean_row @ shares)
    if sparse.issparse(K):
        total = float(weights @ (K.diagonal() - 2 * mean_row + mean))
        centred = _centred_product(K, root, mean_row, mean)
        values, U = leading_eigenpairs(centred, min(count, len(root) - 1), "arpack", tol, rng)
    else:
        K -= mean_row  # in place, for another matrix may not fit into memory
        K -= mean_row[:, None] - mean
        K *= root
        K *= root[:, None]
        total = float(np.trace(K))
        values, U = leading_eigenpairs(K, count, solver, tol, rng, device)
    kept = count_kept(values, n_components, noise * float(weights.max()), advice)
    values, U = values[:kept], fix_signs(U[:, :kept])
    axes = root[:, None] * U / np.sqrt(values)
    # Small eigenvalues let the direction in which centred features do not extend leak in.
    axes -= axes.sum(axis=0) * shares[:, None]
    return Spectrum(values, axes, U * np.sqrt(values) / root[:, None], mean_row, mean, total)


def _centred_product(K: Any, root: FloatArray, mean_row: FloatArray, mean: float) -> LinearOperator:
    """Return ``v -> W^½ K̄ W^½ v`` for sparse K (m, m), root = w^½."""

    def multiply(v: FloatArray) -> FloatArray:
        u = root * v.ravel()
        level = mean * u.sum() - mean_row @ u
        return np.asarray(root * (K @ u - mean_row * u.sum() + level))

    return LinearOperator(K.shape, matvec=multiply, dtype=np.float64)


def decompose_by_landmarks(
    kernel: DataKernel,
    landmarks: FloatArray,
    Y: FloatArray,
    weights: FloatArray,
    n_components: int,
    n_further: int = 0,
) -> tuple[Spectrum, FloatArray]:
    """Return the axes of all rows Y (n, D) over landmarks (l, D), and b (l,)."""
    found = FeatureMap.fit(kernel, landmarks)
    r = found.projector.shape[1]
    shares = weights / weights.sum()
    total, mean = 0.0, np.zeros(r)
    products = np.zeros((r, r))
    for place in blocks(len(Y), r):
        Z = found.transform(Y[place]).astype(np.float64)
        weighted = Z * shares[place, None]
        mean += weighted.sum(axis=0)
        products += weighted.T @ Z
        total += float(shares[place] @ found.outside(Y[place]))
    products -= np.outer(mean, mean)  # so that one pass over the rows is enough
    total += float(np.trace(products))
    values, V = eigh(products, driver="evd")
    order = np.argsort(-values, kind="stable")[: n_components + n_further]
    noise = np.finfo(float).eps * r * float(values[-1])
    order = order[: count_kept(values[order], n_components, noise)]
    axes = fix_signs(found.projector @ V[:, order])
    base = 1 / len(landmarks) + found.projector @ mean
    K = kernel.gram(landmarks, landmarks)
    mean_row = K @ base
    latent, scale = (K - mean_row) @ axes, float(weights.sum())
    return Spectrum(
        values[order] * scale, axes, latent, mean_row, float(mean_row @ base), total * scale
    ), base


def symmetric(K: FloatArray, tolerance: float) -> FloatArray:
    """Return kernel values K (m, m) without rounding errors in their symmetry; raise for more."""
    largest = float(max(K.max(), -K.min()))
    if not np.isfinite(largest):
        raise ValueError(
            f"Kernel values must be finite; got up to {largest}. Scale the data, e.g. by "
            "StandardScaler, or lower the kernel's numbers."
        )
    gap = 0.0
    for i in range(len(K)):  # row by row: K - K.T would take as much memory again
        gap = max(gap, float(np.abs(K[i] - K[:, i]).max()))
        K[:i, i] = K[i, :i]
    check_symmetry(gap, largest, tolerance)
    return K


def count_strangers(K: Any) -> int:
    """Return how many rows of kernel values K (m, m) are zero, all but, off the diagonal."""
    own = np.abs(K.diagonal())
    if sparse.issparse(K):
        return int((np.asarray(abs(K).sum(axis=1)).ravel() <= (1 + ALIKE) * own).sum())
    return sum(float(np.abs(row).sum()) <= (1 + ALIKE) * own[i] for i, row in enumerate(K))


def leading_eigenpairs(
    S: Any,
    count: int,
    solver: str,
    tol: float,
    rng: np.random.RandomState | None,
    device: str = "cpu",
) -> tuple[FloatArray, FloatArray]:
    """Return the largest eigenvalues of S (m, m), overwritten if dense, and vectors (m, count).

    ``device`` is where ARPACK's products with a dense matrix are done.
    """
    count = min(count, S.shape[0])
    chosen = choose_solver(solver, S.shape[0], count)
    if chosen == "arpack":
        if device != "cpu" and isinstance(S, np.ndarray):
            from twofold.kernel_pca.gpu_products import on_device

            S = on_device(S, device)
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
        values, U = _by_lapack(S, count)
    order = np.argsort(-values, kind="stable")
    return values[order], U[:, order]


def _by_lapack(S: FloatArray, count: int) -> tuple[FloatArray, FloatArray]:
    """Return the largest eigenpairs of dense S (m, m), which is written over."""
    m, diagonal = len(S), np.diag(S).copy()
    values, U = eigh(S, subset_by_index=[m - count, m - 1], overwrite_a=True, check_finite=False)
    if len(values) == count:
        return values, U
    # Where eigenvalues coincide, some of those asked for by number are not found. All are found
    # then, from the diagonal and the upper triangle, which nothing was written over.
    rest = np.triu(S, 1)
    rest += rest.T
    np.fill_diagonal(rest, diagonal)
    values, U = eigh(rest, overwrite_a=True, check_finite=False)
    return values[m - count :], U[:, m - count :]


def choose_solver(solver: str, m: int, count: int) -> str:
    """Return the solver that "auto" means for a number of rows and components."""
    # ARPACK finds fewer vectors than there are rows; for all of them it is "dense".
    if solver == "auto":
        solver = "arpack" if m > ROWS_FOR_ARPACK and count < COMPONENTS_FOR_ARPACK else "dense"
    return "dense" if solver == "arpack" and count >= m else solver


def _by_arpack(S: Any, count: int, tol: float) -> tuple[FloatArray, FloatArray]:
    # The start is always the same, for what is found does not depend on it apart from rounding.
    start = np.random.RandomState(0).uniform(-1, 1, S.shape[0])
    try:
        values, U = eigsh(S, count, which="LA", tol=tol, v0=start)
    except ArpackNoConvergence as error:
        if len(error.eigenvalues) < count:
            raise ValueError(
                f"ARPACK found {len(error.eigenvalues)} of {count} eigenpairs. Use "
                "eigen_solver='dense', or a larger `tol`."
            ) from error
        warn("ARPACK stopped early; set a larger `tol`.", ConvergenceWarning)
        values, U = error.eigenvalues, error.eigenvectors
    return values, U


def count_kept(values: FloatArray, n_components: int, noise: float, advice: str = ADVICE) -> int:
    """Return how many of falling eigenvalues are of use; raise if fewer than n_components."""
    rank = int((values[:n_components] > max(KEPT * float(values[0]), noise)).sum())
    if rank == 0:
        raise ValueError(
            f"`n_components` = {n_components} direction(s) were asked for, but the centred kernel "
            f"matrix has no positive eigenvalue. {advice}"
        )
    if rank < n_components:
        raise ValueError(
            f"`n_components` = {n_components} is more than the {rank} direction(s) that the "
            f"features of these rows span. Lower `n_components`. {advice}"
        )
    further = int((values > max(FURTHER_KEPT * float(values[0]), noise)).sum())
    return max(n_components, further)
