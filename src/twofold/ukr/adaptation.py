"""Landmark vectors re-fitted to the data, with smoothness control (Klanke 2007, section 5.3.3).

A manifold through means of cells is biased inwards where it is curved. It is linear in the landmark
vectors Ŷ, so with latent points fixed the best ones solve (eqs. 5.38 to 5.40)

    min Σ_j ω_j ||y_j - Ŷᵀ b(x_j)||² + γ tr(Ŷᵀ M Ŷ),      Ŷ = (Bᵀ Ω B + γ M)⁻¹ Bᵀ Ω Y

where M is the roughness of the basis functions b: the mean, over sampled latent points, of products
of their second derivatives (5.30), here by differences, which serve every kernel and degree. Few
landmarks are within reach of a place, so B and what goes into M are sparse. The sampled points are
rows in the dense part of the latent space, since second derivatives explode where hardly any kernel
reaches. M is kept as a sparse S with ``M = Sᵀ S``, and of symmetric products one half is made.
Besides, every landmark counts as a small part of a row at its first place, κ ||Ŷ - Ŷ⁰||²:
one that hardly any row is near stays.

Without a given γ it is the one of lowest generalised cross-validation error
``mean ||r||² / (1 - tr H / n)²``: after one joint diagonalisation of BᵀΩB and M it costs nothing to
try many. Of many landmarks those around the middle of the map, and the rows that rest on them,
decide: to diagonalise the rest would take as long as all else. With Huber's loss entries are
reweighed by ``L'(r)/2r`` in a few rounds.

Rows that come later need not know the earlier ones. Where (5.40) holds, that is with
``A = Bᵀ Ω B + γ M`` and ``A Ŷ = Bᵀ Ω Y``, adding rows with the basis B' and the residuals
``R = Y' - B' Ŷ`` gives (recursive least squares)

    Ŷ ← Ŷ + (A + B'ᵀ Ω' B')⁻¹ B'ᵀ Ω' R ,

in which of the earlier rows only their latent points are left.
"""

from typing import NamedTuple

import numpy as np
from scipy.linalg import cho_factor, cho_solve, eigh, solve
from scipy.sparse import csr_array, vstack

from twofold.array_types import FloatArray, IntArray
from twofold.compiled import compiled_in_order
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
# Of more landmarks so many are asked for γ, with the rows of which less than a share rests on
# others.
FEW_LANDMARKS, OUTSIDE = 500, 0.01
# Rows are placed, and landmarks fitted to them, so many times in turns.
ADAPTATIONS = 2
# Of the earlier rows so many for each landmark say what the landmark vectors rest on.
ROWS_A_LANDMARK = 20
TINY = float(np.finfo(np.float64).tiny)


class Adapted(NamedTuple):
    """Landmark values (l, D) as rows are scaled, and the γ they were found with."""

    values: FloatArray
    gamma: float


class Adaptation:
    """Landmarks of a problem at latent places Z (l, q), fitted to its rows wherever these lie.

    The roughness is that of the basis at the first places X (n, q) of the rows; each time landmarks
    begin where they ended the last time.
    """

    def __init__(self, problem: Problem, Z: FloatArray, X: FloatArray) -> None:
        assert problem.landmarks is not None
        self.problem, self.Z = problem, Z
        self.first: FloatArray = problem.landmarks.Y.astype(np.float64)
        self.S = _roughness(problem.landmarks, Z, X, problem.engine)

    def adapt(self, X: FloatArray, gamma: float | None) -> Adapted:
        """Return landmark values for rows at X (n, q)."""
        rows = self.problem.rows
        loss = self.problem.reconstruction(cross_validated=False).loss
        B, Y = self.problem.surface(self.Z).sparse_basis(X), rows.Y
        share = (rows.weights / rows.weights.sum() * len(rows.weights))[:, None]
        W = np.broadcast_to(share, rows.Y.shape)
        if rows.observed is not None:
            W = W * rows.observed
        found = self._solve(B, Y, W, X, gamma)
        for _ in range(ROUNDS if isinstance(loss, Huber) else 0):
            R = B @ found.values - Y
            slope = loss.value_and_slope(R)[1]
            # Huber's L'(r)/r in units of that at zero, 1/δ: 1 within δ, and δ/|r| beyond.
            factor = slope / np.where(R == 0, 1, R) * getattr(loss, "delta", 1.0)
            found = self._solve(B, Y, W * np.where(R == 0, 1, factor), X, gamma)
        self.first = found.values
        return Adapted(found.values.astype(rows.Y.dtype), found.gamma)

    def _solve(
        self, B: csr_array, Y: FloatArray, W: FloatArray, X: FloatArray, gamma: float | None
    ) -> Adapted:
        """Solve the penalised least squares of all columns; one system where weights are equal."""
        is_shared = np.array_equal(W, np.broadcast_to(W[:, :1], W.shape))
        w = W[:, 0] if is_shared else W.mean(axis=1)
        if gamma is None:
            gamma = self._best_gamma(B, Y, w, X)
        if is_shared:
            return Adapted(_System(B, Y, w, self.first).solve(gamma, self.S), gamma)
        columns = [
            _System(B, Y[:, [d]], W[:, d], self.first[:, [d]]).solve(gamma, self.S)
            for d in range(Y.shape[1])
        ]
        return Adapted(np.concatenate(columns, axis=1), gamma)

    def _best_gamma(self, B: csr_array, Y: FloatArray, w: FloatArray, X: FloatArray) -> float:
        """Return the γ of lowest generalised cross-validation error."""
        if len(self.Z) <= FEW_LANDMARKS:
            return _System(B, Y, w, self.first).best_gamma(self.S)
        part, rows = _middle(self.Z, B)
        landmarks, engine = self.problem.landmarks, self.problem.engine
        assert landmarks is not None
        S = _roughness(landmarks, self.Z[part], X[rows], engine)
        system = _System(B[rows][:, part], Y[rows], w[rows], self.first[part])
        # M is a mean over rows: in that of all of them each landmark has a smaller part.
        return system.best_gamma(S) * len(X) / len(rows)


def _middle(Z: FloatArray, B: csr_array) -> tuple[IntArray, IntArray]:
    """Return the landmarks around the one in the middle, and the rows that rest on them alone."""
    centre = Z[np.square(Z - Z.mean(axis=0)).sum(axis=1).argmin()]
    near = np.argsort(np.square(Z - centre).sum(axis=1), kind="stable")
    part = np.sort(near[:FEW_LANDMARKS])
    return part, np.flatnonzero(B[:, part].sum(axis=1) > 1 - OUTSIDE)


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
    A = np.zeros((len(surface.X), len(surface.X)))
    _add_squares(surface.sparse_basis(X[some]), share, A)
    A[np.diag_indices_from(A)] += PRIOR * np.trace(A) / len(A)
    # γ was found for as many rows as stood for all then.
    S = _roughness(surface.rows, surface.X, X, surface.engine)
    _add_squares(S, np.full(S.shape[0], gamma * weights.sum() / len(some)), A)
    B, R = surface.sparse_basis(new[0]), new[1].astype(np.float64)
    W = new[2][:, None] * ~np.isnan(R)
    R = np.where(np.isnan(R), 0.0, R)
    if isinstance(loss, Huber):
        slope = loss.value_and_slope(R)[1]
        W = W * np.where(R == 0, 1, slope / np.where(R == 0, 1, R) * (loss.delta or 1.0))
    is_shared = np.array_equal(W, np.broadcast_to(W[:, :1], W.shape))
    change = np.empty((len(A), R.shape[1]))
    for d in [slice(None)] if is_shared else [slice(d, d + 1) for d in range(R.shape[1])]:
        w, both = W[:, d][:, 0], A.copy()
        _add_squares(B, w, both)
        right = B.T @ (w[:, None] * R[:, d])
        change[:, d] = solve(both, right, lower=True, assume_a="pos")
    return change


def _add_squares(B: csr_array, w: FloatArray, A: FloatArray) -> None:
    """Add Bᵀ Ω B to the lower half of A (l, l), with weights w (n,) on the diagonal of Ω."""
    # A copy, as numba would compile the loop anew for columns of tables and for what is broadcast.
    _add_row_squares(B.indptr, B.indices, B.data, np.array(w), A)


# A product of sparse matrices, which finds out first where it has entries, takes eight times as
# long.
@compiled_in_order
def _add_row_squares(
    first: IntArray, column: IntArray, value: FloatArray, w: FloatArray, A: FloatArray
) -> None:
    """Add the products of each two entries of each row to the lower half of A."""
    for j in range(first.size - 1):
        for p in range(first[j], first[j + 1]):
            weighted = w[j] * value[p]
            for r in range(first[j], p + 1):
                low, high = min(column[p], column[r]), max(column[p], column[r])
                A[high, low] += weighted * value[r]


def _roughness(rows: CarriedRows, Z: FloatArray, X: FloatArray, engine: KernelSums) -> csr_array:
    """Return S (k, l) with ``Sᵀ S = M``, the mean product of second derivatives of the basis."""
    exact = KernelSums(engine.kernel, EXACT, engine.n_threads)
    n_landmarks, q = Z.shape
    nothing = np.zeros((n_landmarks, 1))  # only weights are asked for
    carried = CarriedRows(nothing, np.ones(n_landmarks), None, 1.0, rows.degree, nothing[0])
    surface = Surface(Z.astype(np.float64), carried, exact)
    chosen = X[spread_rows(len(X), MOST_SAMPLES)].astype(np.float64)
    density = surface.density(chosen)
    samples = chosen[density >= np.quantile(density, THIN)]
    steps = STEP * surface.kernel_width * np.eye(q)
    here, parts = surface.sparse_basis(samples), []
    for a in range(q):
        for b in range(a + 1):
            second = _second_difference(surface, samples, steps[a], steps[b], here)
            # Both orders of two different derivatives count.
            share = (1 if a == b else 2) / len(samples)
            parts.append((second * np.sqrt(share)).astype(rows.Y.dtype))
    return vstack(parts, format="csr")


def _second_difference(
    surface: Surface, X: FloatArray, a: FloatArray, b: FloatArray, here: csr_array
) -> csr_array:
    """Return second derivatives (m, l) of the basis at X (m, q), along steps of one length."""
    basis, square = surface.sparse_basis, float(a @ a)
    if a is b or np.array_equal(a, b):
        return (basis(X + a) + basis(X - a) - 2 * here) / square
    along, across = basis(X + a + b) + basis(X - a - b), basis(X + a - b) + basis(X - a + b)
    return (along - across) / (4 * square)


class _System:
    """One penalised least squares problem, for every γ and roughness ``M = Sᵀ S``, S (k, l)."""

    def __init__(self, B: csr_array, Y: FloatArray, w: FloatArray, first: FloatArray) -> None:
        # Before there is A, which for 2,000 landmarks has 32 MB.
        self.right = B.T @ (w[:, None] * Y)
        self.A = np.zeros((B.shape[1], B.shape[1]))
        _add_squares(B, w, self.A)
        prior = PRIOR * np.trace(self.A) / len(self.A)
        self.A[np.diag_indices_from(self.A)] += prior
        self.right += prior * first
        self.square = float(np.einsum("n,nd,nd->", w, Y, Y) + prior * (first**2).sum())
        self.n = float((w > 0).sum())

    def solve(self, gamma: float, S: csr_array) -> FloatArray:
        """Return the landmark values (l, D), once: the matrix is overwritten."""
        _add_squares(S, np.full(S.shape[0], gamma), self.A)
        # In the order that LAPACK likes, so that nothing is copied.
        return cho_solve(cho_factor(self.A.T, overwrite_a=True), self.right)

    def best_gamma(self, S: csr_array) -> float:
        """Return the γ of lowest generalised cross-validation error.

        With ``M v = d A v`` and vᵀ A v = 1 it is ``(A + γM)⁻¹ = V diag(1/(1 + γd)) Vᵀ``.
        """
        M = np.zeros_like(self.A)
        _add_squares(S, np.ones(S.shape[0]), M)
        d, V = eigh(M, self.A)
        d = np.maximum(d, 0)
        power = np.square(V.T @ self.right).sum(axis=1)

        def error(gamma: float) -> float:
            shrink = 1 / (1 + gamma * d)
            # In these coordinates the fit shrinks t to s t, so that ||y - Hy||² = ||y||² - Σ t²
            # (2s - s²).
            residual = self.square - float((power * (2 * shrink - shrink**2)).sum())
            free = 1 - shrink.sum() / self.n
            return max(residual, 0.0) / max(free, 1e-12) ** 2

        return float(min(GRID / max(float(np.median(d)), 1e-300), key=error))
