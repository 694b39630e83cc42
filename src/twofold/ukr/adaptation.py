"""Landmark vectors re-fitted to the data, with smoothness control (Klanke 2007, section 5.3.3).

A manifold through means of cells is biased inwards where it is curved. It is linear in the landmark
vectors Ŷ, so with latent points fixed the best ones solve (eqs. 5.38 to 5.40)

    min Σ_j ω_j ||y_j - Ŷᵀ b(x_j)||² + γ tr(Ŷᵀ M Ŷ),      Ŷ = (Bᵀ Ω B + γ M)⁻¹ Bᵀ Ω Y

where M is the roughness of the basis functions b: the mean, over sampled latent points, of products
of their second derivatives (5.30), here by differences of their exact first derivatives, which
serves every kernel and degree. The sampled points are rows in the dense part of the latent space,
since second derivatives explode where hardly any kernel reaches. Besides, every landmark counts as
a small part of a row at its first place, κ ||Ŷ - Ŷ⁰||²: one that hardly any row is near stays.

Without a given γ it is the one of lowest generalised cross-validation error
``mean ||r||² / (1 - tr H / n)²``: after one joint diagonalisation of BᵀΩB and M it costs nothing to
try many. With Huber's loss entries are reweighed by ``L'(r)/2r`` in a few rounds.
"""

from typing import NamedTuple

import numpy as np
from scipy.linalg import eigh

from twofold.array_types import FloatArray
from twofold.engine import KernelSums
from twofold.losses import Huber
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


class Adapted(NamedTuple):
    """Landmark values (l, D) as rows are scaled, and the γ they were found with."""

    values: FloatArray
    gamma: float


def adapt_landmarks(problem: Problem, Z: FloatArray, X: FloatArray, gamma: float | None) -> Adapted:
    """Re-fit the landmarks of a problem at latent places Z (l, q) to its rows at X (n, q)."""
    rows, landmarks = problem.rows, problem.landmarks
    assert landmarks is not None
    loss = problem.reconstruction(cross_validated=False).loss
    B = problem.surface(Z).basis(X).astype(np.float64)
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


def _roughness(rows: CarriedRows, Z: FloatArray, X: FloatArray, engine: KernelSums) -> FloatArray:
    """Return M (l, l), the mean product of second derivatives of the basis functions."""
    exact = KernelSums(engine.kernel, EXACT, engine.n_threads)
    unit_rows = CarriedRows(np.eye(len(Z)), rows.weights, None, 1.0, rows.degree, np.zeros(len(Z)))
    surface = Surface(Z.astype(np.float64), unit_rows, exact)
    chosen = X[spread_rows(len(X), MOST_SAMPLES)].astype(np.float64)
    density = surface.density(chosen)
    samples = chosen[density >= np.quantile(density, THIN)]
    q, M = Z.shape[1], np.zeros((len(Z), len(Z)))
    for m in range(q):
        step = np.zeros(q)
        step[m] = STEP * surface.kernel_width
        ahead, behind = surface.look(samples + step)[1], surface.look(samples - step)[1]
        second = (ahead - behind) / (2 * step[m])
        M += np.einsum("sqi,sqj->ij", second, second, optimize=True)
    return M / len(samples)


def _solve(
    B: FloatArray,
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
    """One penalised least squares problem, diagonalised once for every γ.

    With ``A = Bᵀ Ω B + κ I`` and ``M v = d A v`` (vᵀ A v = 1): (A + γM)⁻¹ = V diag(1/(1+γd)) Vᵀ.
    """

    def __init__(
        self, B: FloatArray, Y: FloatArray, w: FloatArray, M: FloatArray, first: FloatArray
    ) -> None:
        weighted = B * w[:, None]
        A = B.T @ weighted
        prior = PRIOR * np.trace(A) / len(A)
        A += prior * np.eye(len(A))
        self.d, self.V = eigh(M, A)
        self.d = np.maximum(self.d, 0)
        self.target = self.V.T @ (weighted.T @ Y + prior * first)
        self.square = float((w[:, None] * Y**2).sum() + prior * (first**2).sum())
        self.n = float((w > 0).sum())

    def solve(self, gamma: float) -> FloatArray:
        """Return the landmark values (l, D)."""
        return self.V @ (self.target / (1 + gamma * self.d)[:, None])

    def best_gamma(self) -> float:
        """Return the γ of lowest generalised cross-validation error."""
        unit = 1 / max(float(np.median(self.d)), 1e-300)
        return float(min(GRID * unit, key=self._error))

    def _error(self, gamma: float) -> float:
        shrink = 1 / (1 + gamma * self.d)
        power = (self.target**2).sum(axis=1)
        # In these coordinates the fit shrinks t to s t, so that ||y - Hy||² = ||y||² - Σ t² (2s -
        # s²).
        residual = self.square - float((power * (2 * shrink - shrink**2)).sum())
        free = 1 - shrink.sum() / self.n
        return max(residual, 0.0) / max(free, 1e-12) ** 2
