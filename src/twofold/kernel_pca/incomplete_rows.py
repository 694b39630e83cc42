"""Latent points of rows some of whose entries are missing.

Such a row has no kernel values. In general its point is the one whose image is nearest to the
observed entries, searched for from those of the nearest training rows. For the linear kernel the
images are a plane, ``f(x) = b + B x``, and with few entries observed many points of it are equally
near. There the point is the mean of what the data suggests: coordinates that are normal with the
variances ``v_j`` of the axes, and left-over noise of variance s² in each column (Tipping and Bishop
1999),

    x = argmin ||(B x + b - y)_observed||² + s² Σ_j x_j² / v_j,

so that a row without a word about an axis lies in its middle.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from twofold.array_types import BoolArray, FloatArray

# Neighbours whose latent points an incomplete row starts from, and damped steps from each.
STARTS, STEPS = 3, 12


def place_on_plane(
    Y: FloatArray, mean: FloatArray, directions: FloatArray, variances: FloatArray, noise: float
) -> FloatArray:
    """Return the expected coordinates (n, q) of rows Y (n, D) with gaps (NaN) on a plane.

    It goes through `mean` (D,) with axes `directions` (D, q) of length one; the data has
    `variances` (q,) along these and `noise` in each direction off the plane.
    """
    deviations = np.sqrt(variances)
    pull = np.diag(np.full(len(deviations), np.sqrt(noise)))
    X = np.empty((len(Y), len(deviations)))
    for i, y in enumerate(Y):
        known = ~np.isnan(y)
        system = np.vstack([directions[known] * deviations, pull])
        right = np.concatenate([(y - mean)[known], np.zeros(len(pull))])
        # Without noise this is the shortest of all solutions.
        X[i] = deviations * np.linalg.lstsq(system, right, rcond=None)[0]
    return X


def place_incomplete(
    Y: FloatArray,
    known: FloatArray,
    latent: FloatArray,
    regress: Callable[[FloatArray], FloatArray],
    inside: Callable[[FloatArray], BoolArray],
) -> FloatArray:
    """Return latent points (n, q) whose images are nearest to the observed entries of rows.

    Damped Gauss-Newton steps from the latent points of the training rows that are nearest in the
    observed entries; a step is taken if it lowers the error and ends inside the domain.

    Rows Y (n, D) have gaps (NaN); `known` (m, D) are training rows, `latent` (m, q) their points.
    `regress` carries latent points to rows, `inside` says which of them the data supports.
    """
    starts = min(STARTS, len(known))
    chosen = [np.argsort(np.nansum((known - y) ** 2, axis=1), kind="stable")[:starts] for y in Y]
    X = latent[np.concatenate(chosen)].astype(np.float64)
    wanted = np.repeat(Y, starts, axis=0)
    step = 1e-3 * latent.std(axis=0, dtype=np.float64)

    def residuals(X: FloatArray) -> FloatArray:
        gaps = regress(X) - wanted
        return np.where(np.isnan(gaps), 0, gaps)

    R = residuals(X)
    error, damping = (R * R).sum(axis=1), np.full(len(X), 1e-3)
    for _ in range(STEPS):
        J = np.stack([(residuals(X + s) - R) / s.sum() for s in np.diag(step)], axis=2)
        trial = X - _damped_step(J, R, damping)
        R_trial = residuals(trial)
        error_trial = (R_trial * R_trial).sum(axis=1)
        better = (error_trial < error) & inside(trial)
        X[better], R[better], error[better] = trial[better], R_trial[better], error_trial[better]
        damping = np.where(better, damping / 3, np.minimum(10 * damping, 1e6))
    best = error.reshape(-1, starts).argmin(axis=1)
    return X.reshape(len(Y), starts, -1)[np.arange(len(Y)), best]


def _damped_step(J: FloatArray, R: FloatArray, damping: FloatArray) -> FloatArray:
    """Return ``(JᵀJ + damping mean(diag JᵀJ) I)⁻¹ Jᵀ r`` (n, q) for J (n, D, q) and R (n, D)."""
    q = J.shape[2]
    A = J.transpose(0, 2, 1) @ J
    level = np.trace(A, axis1=1, axis2=2) / q
    A[:, np.arange(q), np.arange(q)] += (damping * np.where(level > 0, level, 1))[:, None]
    return np.linalg.solve(A, J.transpose(0, 2, 1) @ R[:, :, None])[:, :, 0]
