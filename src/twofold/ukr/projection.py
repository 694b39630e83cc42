"""Projection of data rows onto the manifold: ``g(y) = argmin_x L(f(x) - y)`` within the domain.

Starts are training points whose reconstructions lie nearest to y (Klanke 2007, section 4.4.4), a
few of them in different regions of the latent space, and each is improved by Levenberg-Marquardt
steps with the Jacobian of the regression

    J_f(x) = Σ_i π_i (y_i - f)(x_i - x)ᵀ,   π_i = -2F'(s_i) / Σ_k F(s_k)

(at degree 0). For a loss other than the squared one entries are reweighed by ``L'(r) / 2r`` in each
step. A step that leaves the domain or does not lower the error is shortened.
"""

from dataclasses import replace

import numpy as np

from twofold.array_types import BoolArray, FloatArray, IntArray
from twofold.compiled import compiled, square
from twofold.engine.threads import run_tasks
from twofold.losses import Loss, Squared, in_unit
from twofold.neighborhoods.nearest import k_smallest
from twofold.optimize.levenberg_marquardt import LeastSquares, Residuals, levenberg_marquardt
from twofold.rowwise import blocks
from twofold.ukr.surface import Surface

SQUARED = Squared()
N_STARTS = 7
N_NEAREST = 48
MAX_STEPS = 25
STEP_TOLERANCE = 1e-5
DECREASE_TOLERANCE = 1e-5
ROWS_PER_TASK = 256
# Rows that advance together, with all their starts: what they need stays in cache.
ROWS_AT_A_TIME = 1024


def project(
    surface: Surface, Y: FloatArray, observed: BoolArray | None, loss: Loss = SQUARED
) -> LeastSquares:
    """Project rows Y (m, D), of which entries may be unobserved, onto a surface.

    ``loss`` is for residuals in the unit of the data, and so is the error (m,).
    """
    loss, error_unit = in_unit(loss, surface.rows.unit)
    parts = [
        _project_some(surface, Y[rows], None if observed is None else observed[rows], loss)
        for rows in blocks(len(Y), 1, at_a_time=ROWS_AT_A_TIME) or [slice(0)]
    ]
    found = LeastSquares.joined(parts)
    dtype = surface.rows.Y.dtype
    with np.errstate(over="ignore"):
        error = found.error.astype(dtype) * error_unit
    return replace(found, X=found.X.astype(dtype), error=error)


def _project_some(
    surface: Surface, Y: FloatArray, observed: BoolArray | None, loss: Loss
) -> LeastSquares:
    Y = surface.rows.scaled(Y).astype(surface.rows.Y.dtype)
    known = np.ones_like(Y) if observed is None else observed.astype(Y.dtype)
    Y = np.where(known > 0, Y, 0).astype(Y.dtype)
    starts = _starts(surface, Y, known, getattr(loss, "delta", np.inf))
    n_starts = starts.shape[1]

    def look(X: FloatArray, rows: IntArray) -> Residuals:
        f, J, density = surface.look(X.astype(Y.dtype))
        owner, inside = rows // n_starts, density >= surface.threshold
        residual = f - Y[owner]
        if isinstance(loss, Squared):
            weights = None if observed is None else known[owner]
            return Residuals(residual, J, weights, inside=inside)
        residual *= known[owner]
        error, slope = loss.value_and_slope(residual)
        weights = np.where(residual == 0, 0, slope / np.where(residual == 0, 1, 2 * residual))
        return Residuals(residual, J, weights.astype(Y.dtype), error, inside)

    # A row so far away that its distance overflows stays at its start; nothing else comes of it.
    with np.errstate(over="ignore", invalid="ignore"):
        return levenberg_marquardt(
            look,
            surface.X[starts.ravel()],
            scale=surface.kernel_width,
            n_starts=n_starts,
            max_iter=MAX_STEPS,
            step_tolerance=STEP_TOLERANCE,
            gradient_tolerance=0.0,
            decrease_tolerance=DECREASE_TOLERANCE,
        ).best_of(n_starts)


def _starts(surface: Surface, Y: FloatArray, known: FloatArray, bound: float) -> IntArray:
    """Return, for each row, training points with near reconstructions in separate regions.

    Entries farther off than ``bound`` count linearly, as in Huber's loss.
    """
    F_t, separation = surface.reconstructions_t, surface.kernel_width**2
    found = np.empty((len(Y), min(N_STARTS, F_t.shape[1])), dtype=np.int64)
    X = np.ascontiguousarray(surface.X)

    def work(rows: slice) -> None:
        _nearest_apart(Y[rows], known[rows], F_t, X, separation, bound, found[rows])

    run_tasks(work, blocks(len(Y), 1, at_a_time=ROWS_PER_TASK), surface.engine.n_threads)
    return found


@compiled
def _nearest_apart(
    Y: FloatArray,
    known: FloatArray,
    F_t: FloatArray,
    X: FloatArray,
    separation: float,
    bound: float,
    found: IntArray,
) -> None:
    n = F_t.shape[1]
    k = min(N_NEAREST, n)
    distance = np.empty(n, dtype=F_t.dtype)
    near, least = np.empty(k, dtype=np.int64), np.empty(k)
    for j in range(Y.shape[0]):
        distance[:] = 0
        for d in range(Y.shape[1]):
            if known[j, d] > 0:
                y = Y[j, d]
                for i in range(n):
                    # Huber's loss times 2δ: off² within the bound, and with its slope beyond.
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
                    s += square(X[i, m] - X[found[j, c], m])
                apart = apart and s > separation
            if apart and n_found < found.shape[1]:
                found[j, n_found] = i
                n_found += 1
        # Too few regions: a start again is cheaper than another number of starts for some rows.
        for c in range(n_found, found.shape[1]):
            found[j, c] = near[0]
