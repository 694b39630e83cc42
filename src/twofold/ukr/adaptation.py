"""Landmark vectors re-fitted to the data, with smoothness control (Klanke 2007, section 5.3.3).

A manifold through means of cells is biased inwards where it is curved. It is linear in the landmark
vectors Ŷ, so with latent points fixed the best ones solve (eqs. 5.38 to 5.40)

    min Σ_j ω_j ||y_j - Ŷᵀ b(x_j)||² + γ tr(Ŷᵀ M Ŷ),      Ŷ = (Bᵀ Ω B + γ M)⁻¹ Bᵀ Ω Y

where M is the roughness of the basis functions b: the mean, over sampled latent points, of products
of their second derivatives (5.30), here by differences, which serve every kernel and degree. Few
landmarks are within reach of a place, so B and what goes into M are sparse. The sampled points are
rows in the dense part of the latent space, since second derivatives explode where hardly any kernel
reaches. Besides, every landmark counts as a small part of a row at its first place, κ ||Ŷ - Ŷ⁰||²:
one that hardly any row is near stays.

Without a given γ it is the one of lowest generalised cross-validation error
``mean ||r||² / (1 - tr H / n)²``: after one joint diagonalisation of BᵀΩB and M it costs nothing to
try many. With Huber's loss entries are reweighed by ``L'(r)/2r`` in a few rounds.

Rows that come later need not know the earlier ones. Where (5.40) holds, that is with
``A = Bᵀ Ω B + γ M`` and ``A Ŷ = Bᵀ Ω Y``, adding rows with the basis B' and the residuals
``R = Y' - B' Ŷ`` gives (recursive least squares)

    Ŷ ← Ŷ + (A + B'ᵀ Ω' B')⁻¹ B'ᵀ Ω' R ,

in which of the earlier rows only their latent points are left.
"""

from typing import NamedTuple

import numpy as np
from scipy.linalg import eigh, solve
from scipy.sparse import csr_array, diags_array

from twofold.array_types import FloatArray
from twofold.engine import KernelSums
from twofold.losses import Huber, Loss
from twofold.ukr.objective import Problem, spread_rows
from twofold.ukr.surface import CarriedRows, Surface

MOST_SAMPLES = 2_000
# Rows below this quantile of the latent density are not sampled for the roughness.
THIN = 0.1
STEP = 1e-3
# κ, as a share of the mean of the diagonal of BᵀΩB.
PRIOR = 1e-2
EXACT = 1e-12
# Smoothness tried: from none to where the penalty outweighs the data, in units of their ratio.
GRID = np.concatenate([[0.0], np.geomspace(1e-8, 1e2, 31)])
ROUNDS = 3
# Of more landmarks γ is chosen in single precision.
FEW_LANDMARKS = 500
# Rows are placed, and landmarks fitted to them, so many times in turns.
ADAPTATIONS = 2
# Of the earlier rows so many for each landmark say what the landmark vectors rest on.
ROWS_A_LANDMARK = 20
TINY = float(np.finfo(np.float64).tiny)


class Adapted(NamedTuple):
    """Landmark values (l, D) as rows are scaled, and the γ they were found with."""

    values: FloatArray
    gamma: float


def adapt_landmarks(problem: Problem, Z: FloatArray, X: FloatArray, gamma: float | None) -> Adapted:
    """Re-fit the landmarks of a problem at latent places Z (l, q) to its rows at X (n, q)."""
    rows, landmarks = problem.rows, problem.landmarks
    assert landmarks is not None
    loss = problem.reconstruction(cross_validated=False).loss
    B = problem.surface(Z).sparse_basis(X).astype(np.float64)
    M = _roughness(landmarks, Z, X, problem.engine)
    share = (rows.weights / rows.weights.sum() * len(rows.weights))[:, None]
    W = np.broadcast_to(share, rows.Y.shape)
    if rows.observed is not None:
        W = W * rows.observed
    Y = rows.Y.astype(np.float64)
    robust = isinstance(loss, Huber)
    first = landmarks.Y.astype(np.float64)
    found = _solve(B, Y, W, M, first, gamma)
    for _ in range(ROUNDS if robust else 0):
        R = B @ found.values - Y
        slope = loss.value_and_slope(R)[1]
        # Huber's L'(r)/r in units of that at zero, 1/δ: 1 within δ, and δ/|r| beyond.
        factor = slope / np.where(R == 0, 1, R) * getattr(loss, "delta", 1.0)
        found = _solve(B, Y, W * np.where(R == 0, 1, factor), M, first, gamma)
    return Adapted(found.values.astype(rows.Y.dtype), found.gamma)


def take_in(
    surface: Surface,
    X: FloatArray,
    weights: FloatArray,
    new: tuple[FloatArray, FloatArray, FloatArray],
    gamma: float,
    loss: Loss,
) -> FloatArray:
    """Return by how much landmark vectors change, (l, D), when rows come to those that made them.

    The earlier ones are at latent points X (n, q) and have weights (n,); ``new`` are the latent
    points (m, q) of the others, their residuals (m, D), NaN where entries are missing, and weights
    (m,). A few of the earlier ones stand for all.
    """
    some = spread_rows(len(X), ROWS_A_LANDMARK * len(surface.X))
    share = weights[some] * (weights.sum() / max(weights[some].sum(), TINY))
    A = _weighed(surface.sparse_basis(X[some]).astype(np.float64), share)[1]
    A += PRIOR * np.trace(A) / len(A) * np.eye(len(A))
    # γ was found for as many rows as stood for all then.
    rows = surface.rows
    A += gamma * weights.sum() / len(some) * _roughness(rows, surface.X, X, surface.engine)
    B, R = surface.sparse_basis(new[0]).astype(np.float64), new[1].astype(np.float64)
    W = new[2][:, None] * ~np.isnan(R)
    R = np.where(np.isnan(R), 0.0, R)
    if isinstance(loss, Huber):
        slope = loss.value_and_slope(R)[1]
        W = W * np.where(R == 0, 1, slope / np.where(R == 0, 1, R) * (loss.delta or 1.0))
    is_shared = np.array_equal(W, np.broadcast_to(W[:, :1], W.shape))
    change = np.empty((len(A), R.shape[1]))
    for d in [slice(None)] if is_shared else [slice(d, d + 1) for d in range(R.shape[1])]:
        weighted, added = _weighed(B, W[:, d][:, 0])
        change[:, d] = solve(A + added, weighted.T @ R[:, d], assume_a="pos")
    return change


def _weighed(B: csr_array, w: FloatArray) -> tuple[csr_array, FloatArray]:
    """Return Ω B (n, l) and Bᵀ Ω B (l, l) with weights w (n,) on the diagonal of Ω."""
    weighted = csr_array(diags_array(w) @ B)
    return weighted, (B.T @ weighted).toarray()


def _roughness(rows: CarriedRows, Z: FloatArray, X: FloatArray, engine: KernelSums) -> FloatArray:
    """Return M (l, l), the mean product of second derivatives of the basis functions."""
    exact = KernelSums(engine.kernel, EXACT, engine.n_threads)
    n_landmarks, q = Z.shape
    nothing = np.zeros((n_landmarks, 1))  # only weights are asked for
    carried = CarriedRows(nothing, rows.weights, None, 1.0, rows.degree, nothing[0])
    surface = Surface(Z.astype(np.float64), carried, exact)
    chosen = X[spread_rows(len(X), MOST_SAMPLES)].astype(np.float64)
    density = surface.density(chosen)
    samples = chosen[density >= np.quantile(density, THIN)]
    steps = STEP * surface.kernel_width * np.eye(q)
    here = surface.sparse_basis(samples)
    M = np.zeros((n_landmarks, n_landmarks))
    for a in range(q):
        for b in range(a + 1):
            second = _second_difference(surface, samples, steps[a], steps[b], here)
            # Both orders of two different derivatives count.
            M += (1 if a == b else 2) * (second.T @ second).toarray()
    return M / len(samples)


def _second_difference(
    surface: Surface, X: FloatArray, a: FloatArray, b: FloatArray, here: csr_array
) -> csr_array:
    """Return second derivatives (m, l) of the basis at X (m, q), along steps of one length."""
    basis, square = surface.sparse_basis, float(a @ a)
    if a is b or np.array_equal(a, b):
        return (basis(X + a) + basis(X - a) - 2 * here) / square
    along, across = basis(X + a + b) + basis(X - a - b), basis(X + a - b) + basis(X - a + b)
    return (along - across) / (4 * square)


def _solve(
    B: csr_array,
    Y: FloatArray,
    W: FloatArray,
    M: FloatArray,
    first: FloatArray,
    gamma: float | None,
) -> Adapted:
    """Solve the penalised least squares of all columns; one system where weights are equal."""
    if np.array_equal(W, np.broadcast_to(W[:, :1], W.shape)):
        system = _System(B, Y, W[:, 0], M, first)
        gamma = system.best_gamma() if gamma is None else gamma
        return Adapted(system.solve(gamma), gamma)
    if gamma is None:
        gamma = _System(B, Y, W.mean(axis=1), M, first).best_gamma()
    columns = [
        _System(B, Y[:, [d]], W[:, d], M, first[:, [d]]).solve(gamma) for d in range(Y.shape[1])
    ]
    return Adapted(np.concatenate(columns, axis=1), gamma)


class _System:
    """One penalised least squares problem, for every γ."""

    def __init__(
        self, B: csr_array, Y: FloatArray, w: FloatArray, M: FloatArray, first: FloatArray
    ) -> None:
        weighted, self.A = _weighed(B, w)
        self.M = M
        prior = PRIOR * np.trace(self.A) / len(self.A)
        self.A += prior * np.eye(len(self.A))
        self.right = weighted.T @ Y + prior * first
        self.square = float((w[:, None] * Y**2).sum() + prior * (first**2).sum())
        self.n = float((w > 0).sum())

    def solve(self, gamma: float) -> FloatArray:
        """Return the landmark values (l, D)."""
        both = gamma * self.M
        both += self.A
        return solve(both, self.right, assume_a="pos", overwrite_a=True)

    def best_gamma(self) -> float:
        """Return the γ of lowest generalised cross-validation error.

        With ``M v = d A v`` and vᵀ A v = 1 it is ``(A + γM)⁻¹ = V diag(1/(1 + γd)) Vᵀ``.
        """
        # Single precision tells one γ from the next, too, and takes half of the time.
        precision = np.float64 if len(self.A) <= FEW_LANDMARKS else np.float32
        # Copies that may be overwritten: of 2,000 landmarks each further matrix has 16 or 32 MB.
        both = self.M.astype(precision), self.A.astype(precision)
        d, V = eigh(*both, overwrite_a=True, overwrite_b=True)
        d = np.maximum(d, 0).astype(np.float64)
        power = np.square(V.T @ self.right.astype(precision), dtype=np.float64).sum(axis=1)

        def error(gamma: float) -> float:
            shrink = 1 / (1 + gamma * d)
            # In these coordinates the fit shrinks t to s t, so that ||y - Hy||² = ||y||² - Σ t²
            # (2s - s²).
            residual = self.square - float((power * (2 * shrink - shrink**2)).sum())
            free = 1 - shrink.sum() / self.n
            return max(residual, 0.0) / max(free, 1e-12) ** 2

        return float(min(GRID / max(float(np.median(d)), 1e-300), key=error))
