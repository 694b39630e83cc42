"""Projection of data rows onto the manifold: ``g(y) = argmin_x L(f(x) - y)`` within the domain.

Starts are training points whose reconstructions lie nearest to y (Klanke 2007, section 4.4.4), a
few of them in different regions of the latent space, and each is improved by Levenberg-Marquardt
steps with the Jacobian of the regression

    J_f(x) = Σ_i π_i (y_i - f)(x_i - x)ᵀ,   π_i = -2F'(s_i) / Σ_k F(s_k)

(at degree 0). For a loss other than the squared one entries are reweighed by ``L'(r) / 2r`` in each
step.

A step that leaves the domain or does not lower the error is shortened. All rows advance together,
but each row's arithmetic is its own: a row gives the same result alone or among others.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from twofold.array_types import BoolArray, FloatArray, IntArray
from twofold.compiled import compiled
from twofold.engine.threads import run_tasks
from twofold.losses import Loss, Squared, in_unit
from twofold.neighborhoods.nearest import k_smallest
from twofold.ukr.surface import Surface

SQUARED = Squared()
N_STARTS = 7
N_NEAREST = 48
MAX_STEPS = 25
STEP_TOLERANCE = 1e-5
DECREASE_TOLERANCE = 1e-5
# How much worse than the best of its row a start may be to go on: narrower from step to step.
SLACK, SLACK_DECAY, LEAST_SLACK = 0.6, 0.6, 0.02
ROWS_PER_TASK = 256
# Rows that advance together, with all their starts: what they need stays in cache.
ROWS_AT_A_TIME = 1024


@dataclass(frozen=True)
class Projection:
    """Where rows land.

    Attributes
    ----------
    X : (m, q) latent points
    error : (m,) loss, for the squared one the squared distance to the manifold, of observed entries
    converged : (m,) whether the last step was small enough
    """

    X: FloatArray
    error: FloatArray
    converged: BoolArray


def project(
    surface: Surface, Y: FloatArray, observed: BoolArray | None, loss: Loss = SQUARED
) -> Projection:
    """Project rows Y (m, D), of which entries may be unobserved, onto a surface.

    ``loss`` is for residuals in the unit of the data.
    """
    loss, error_unit = in_unit(loss, surface.rows.unit)
    parts = [
        _project_some(surface, Y[rows], None if observed is None else observed[rows], loss)
        for rows in _slices(len(Y), ROWS_AT_A_TIME)
    ]
    with np.errstate(over="ignore"):
        error = np.concatenate([part.error for part in parts]) * error_unit
    return Projection(
        np.concatenate([part.X for part in parts]),
        error,
        np.concatenate([part.converged for part in parts]),
    )


def _slices(n: int, size: int) -> list[slice]:
    return [slice(start, start + size) for start in range(0, max(n, 1), size)]


def _project_some(
    surface: Surface, Y: FloatArray, observed: BoolArray | None, loss: Loss
) -> Projection:
    Y = surface.rows.scaled(Y).astype(surface.rows.Y.dtype)
    known = np.ones_like(Y) if observed is None else observed.astype(Y.dtype)
    Y = np.where(known > 0, Y, 0).astype(Y.dtype)
    starts = _starts(surface, Y, known, getattr(loss, "delta", np.inf))
    owner = np.repeat(np.arange(len(Y)), starts.shape[1])
    # A row so far away that its distance overflows stays at its start; nothing else comes of it.
    with np.errstate(over="ignore", invalid="ignore"):
        descent = _Descent(surface, Y, known, owner, surface.X[starts.ravel()], loss)
        descent.run()
        return descent.best_of(starts.shape)


def _starts(surface: Surface, Y: FloatArray, known: FloatArray, bound: float) -> IntArray:
    """Return, for each row, training points with near reconstructions in separate regions.

    Entries farther off than ``bound`` count linearly, as in Huber's loss.
    """
    n = surface.reconstructions_t.shape[1]
    separation = surface.kernel_width**2
    found = np.empty((len(Y), min(N_STARTS, n)), dtype=np.int64)
    X = np.ascontiguousarray(surface.X)

    def work(rows: slice) -> None:
        _nearest_apart(
            Y[rows],
            known[rows],
            surface.reconstructions_t,
            X,
            separation,
            bound,
            N_NEAREST,
            found[rows],
        )

    run_tasks(work, _slices(len(Y), ROWS_PER_TASK), surface.engine.n_threads)
    return found


@compiled
def _nearest_apart(
    Y: FloatArray,
    known: FloatArray,
    F_t: FloatArray,
    X: FloatArray,
    separation: float,
    bound: float,
    n_nearest: int,
    found: IntArray,
) -> None:
    n = F_t.shape[1]
    k = min(n_nearest, n)
    distance = np.empty(n, dtype=F_t.dtype)
    near, least = np.empty(k, dtype=np.int64), np.empty(k)
    for j in range(Y.shape[0]):
        distance[:] = 0
        for d in range(Y.shape[1]):
            if known[j, d] > 0:
                y = Y[j, d]
                for i in range(n):
                    off = abs(F_t[d, i] - y)
                    inner = min(off, bound)
                    distance[i] += inner * (2 * off - inner)
        k_smallest(distance, near, least)
        n_found = 0
        for i in near:
            apart = True
            for c in range(n_found):
                s = 0.0
                for m in range(X.shape[1]):
                    s += (X[i, m] - X[found[j, c], m]) ** 2
                apart = apart and s > separation
            if apart and n_found < found.shape[1]:
                found[j, n_found] = i
                n_found += 1
        for c in range(n_found, found.shape[1]):
            found[j, c] = near[0]


class _Descent:
    """Levenberg-Marquardt on many rows at once; ``owner[s]`` is the data row of start s."""

    def __init__(
        self,
        surface: Surface,
        Y: FloatArray,
        known: FloatArray,
        owner: IntArray,
        X: FloatArray,
        loss: Loss,
    ) -> None:
        self.surface, self.Y, self.known, self.owner, self.loss = surface, Y, known, owner, loss
        self.X = X.copy()
        self.damping = np.full(len(X), 1e-2, dtype=X.dtype)
        self.converged = np.zeros(len(X), dtype=bool)
        self.error, self.gradient, self.hessian, _ = self._look(X, owner)

    def _look(
        self, X: FloatArray, owner: IntArray
    ) -> tuple[FloatArray, FloatArray, FloatArray, BoolArray]:
        f, J, density = self.surface.look(X)
        residual = (f - self.Y[owner]) * self.known[owner]
        J *= self.known[owner][:, None, :]
        inside = density >= self.surface.threshold
        if isinstance(self.loss, Squared):
            error = np.einsum("md,md->m", residual, residual)
            gradient = np.einsum("mqd,md->mq", J, residual)
            return error, gradient, np.einsum("mqd,mrd->mqr", J, J), inside
        error, slope = self.loss.value_and_slope(residual)
        gradient = np.einsum("mqd,md->mq", J, slope / 2)
        weight = np.where(residual == 0, 0, slope / np.where(residual == 0, 1, 2 * residual))
        weighted = J * np.maximum(weight, 0)[:, None, :].astype(J.dtype)
        return error, gradient, np.einsum("mqd,mrd->mqr", weighted, J), inside

    def run(self) -> None:
        """Step until every start has converged or given up."""
        active = np.arange(len(self.X))
        for count in range(MAX_STEPS):
            if not len(active):
                return
            done = self._advance(active)
            self.converged[active[done]] = True
            active = active[~done]
            slack = max(SLACK * SLACK_DECAY**count, LEAST_SLACK)
            active = active[self._promising(active, slack)]

    def _advance(self, active: IntArray) -> BoolArray:
        """Make one step with every active start; say which of them have arrived."""
        step = self._step(active)
        X = self.X[active] + step
        error, gradient, hessian, inside = self._look(X, self.owner[active])
        before = self.error[active]
        better = inside & (error <= before)
        taken, refused = active[better], active[~better]
        change = gradient[better] - self.gradient[taken]
        self.hessian[taken] = _curvature(self.hessian[taken], hessian[better], step[better], change)
        self.X[taken], self.error[taken] = X[better], error[better]
        self.gradient[taken] = gradient[better]
        self.damping[taken] *= 0.2
        self.damping[refused] *= 5
        length = np.sqrt(np.einsum("mq,mq->m", step, step))
        settled = better & (before - error <= DECREASE_TOLERANCE * before)
        return settled | (length < STEP_TOLERANCE * self.surface.kernel_width)

    def _promising(self, active: IntArray, slack: float) -> BoolArray:
        """Say which active starts are not clearly worse than another start of their row."""
        best = np.full(len(self.Y), np.inf, dtype=self.error.dtype)
        np.minimum.at(best, self.owner, self.error)
        return self.error[active] <= (1 + slack) * best[self.owner[active]]

    def _step(self, active: IntArray) -> FloatArray:
        H, q = self.hessian[active], self.X.shape[1]
        diagonal = np.einsum("mqq->mq", H)
        # The floor keeps the step finite where the manifold does not move at all.
        scale = diagonal + 1e-3 * diagonal.max(axis=1, keepdims=True) + np.finfo(H.dtype).tiny
        damped = H + np.eye(q, dtype=H.dtype) * (self.damping[active, None] * scale)[:, None, :]
        step = -_solve(damped, self.gradient[active])
        # Of a row so far away that its slopes overflow nothing comes: it stays where it is.
        return np.where(np.isfinite(step).all(axis=1, keepdims=True), step, 0)

    def best_of(self, shape: tuple[int, ...]) -> Projection:
        """Return the best start of each data row."""
        error = self.error.reshape(shape)
        pick = np.arange(shape[0]) * shape[1] + error.argmin(axis=1)
        return Projection(self.X[pick], self.error[pick], self.converged[pick])


def _curvature(
    H: FloatArray, gauss_newton: FloatArray, step: FloatArray, change: FloatArray
) -> FloatArray:
    """Return H (m, q, q) with what the change of the gradient along a step says (BFGS).

    Gauss-Newton's matrix leaves out the curvature of the manifold, which counts where rows lie far
    from it; it is taken up afresh where the change shows no positive curvature.
    """
    along = np.einsum("mq,mq->m", step, change)
    moved = np.einsum("mqr,mr->mq", H, step)
    length = np.einsum("mq,mq->m", step, moved)
    good = (along > 0) & (length > 0)
    safe = np.where(good, along, 1)[:, None, None], np.where(good, length, 1)[:, None, None]
    updated = (
        H
        + change[:, :, None] * change[:, None, :] / safe[0]
        - moved[:, :, None] * moved[:, None, :] / safe[1]
    )
    return np.where(good[:, None, None], updated, gauss_newton)


@compiled
def _solve(H: FloatArray, b: FloatArray) -> FloatArray:
    """Solve positive definite systems (m, q, q), one by one, by Cholesky; zero where singular."""
    m, q = b.shape
    x = np.zeros_like(b)
    for j in range(m):
        L = H[j].copy()
        singular = False
        for a in range(q):
            for c in range(a + 1):
                total = L[a, c]
                for k in range(c):
                    total -= L[a, k] * L[c, k]
                if a == c:
                    singular = singular or not total > 0
                    L[a, a] = np.sqrt(max(total, 0.0))
                else:
                    L[a, c] = total / L[c, c] if L[c, c] > 0 else 0.0
        if singular:
            continue
        for a in range(q):
            total = b[j, a]
            for k in range(a):
                total -= L[a, k] * x[j, k]
            x[j, a] = total / L[a, a]
        for a in range(q - 1, -1, -1):
            total = x[j, a]
            for k in range(a + 1, q):
                total -= L[k, a] * x[j, k]
            x[j, a] = total / L[a, a]
    return x
