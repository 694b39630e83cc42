"""Moving latent points to where a Gaussian process explains the data best (GPLVM).

With whitened latent points X, the process of :mod:`twofold.selection.gaussian_process` and a
standard normal prior on every point, which keeps the points where they are a picture,

    E(X, w, ρ) = nlml(X, w, ρ) + ½ Σ_i ||x_i||²

is minimised over latent points, width and noise share together (Lawrence, "Probabilistic
non-linear principal component analysis with Gaussian process latent variable models", 2005). With
``W = D C⁻¹ - C⁻¹ Y Yᵀ C⁻¹ / s`` and R the correlations,

    ∂nlml/∂x_i = -Σ_j W_ij R_ij (x_i - x_j) / w².
"""

from __future__ import annotations

import math

import numpy as np
from scipy.linalg import cho_factor, cho_solve
from scipy.optimize import minimize
from scipy.spatial.distance import cdist

from twofold.array_types import FloatArray
from twofold.selection.gaussian_process import BOUNDS


def descend(Y: FloatArray, X: FloatArray, start: FloatArray, max_iter: int) -> FloatArray:
    """Return latent points (n, q) that explain whitened data Y (n, D) better.

    Parameters
    ----------
    Y : ndarray of shape (n, D)
    X : ndarray of shape (n, q)
        Whitened latent points to start from.
    start : ndarray of shape (2,)
        Logarithms of width and noise share to start from.
    max_iter : int

    Returns
    -------
    ndarray of shape (n, q)
    """
    n, q = X.shape
    bounds = [(None, None)] * (n * q) + [tuple(bound) for bound in BOUNDS]

    def objective(flat: FloatArray) -> tuple[float, FloatArray]:
        latent = flat[:-2].reshape(n, q)
        value, by_latent, by_place = value_and_grad(Y, latent, flat[-2:])
        # Per entry, so that the optimiser's tolerances mean the same for all data.
        return value / Y.size, np.concatenate([by_latent.ravel(), by_place]) / Y.size

    found = minimize(
        objective,
        np.concatenate([X.ravel(), start]),
        jac=True,
        method="L-BFGS-B",
        bounds=bounds,
        options={"maxiter": max_iter},
    )
    return np.asarray(found.x[:-2].reshape(n, q))


def value_and_grad(
    Y: FloatArray, X: FloatArray, place: FloatArray
) -> tuple[float, FloatArray, FloatArray]:
    """Return E at (X, log w, log ρ) and its derivatives by X (n, q) and by the two logarithms."""
    n, D = Y.shape
    width, noise_share = np.exp(place)
    sq_dists = cdist(X, X, "sqeuclidean") / width**2
    R = np.exp(-0.5 * sq_dists)
    factor = cho_factor(R + noise_share * np.eye(n), lower=True)
    A = cho_solve(factor, Y)
    signal = float(np.vdot(A, Y)) / (n * D)
    log_det = 2.0 * float(np.log(np.diag(factor[0])).sum())
    nlml = 0.5 * n * D * (math.log(2 * math.pi * signal) + 1.0) + 0.5 * D * log_det
    W = D * cho_solve(factor, np.eye(n)) - A @ A.T / signal
    M = W * R
    by_latent = (M @ X - M.sum(axis=1)[:, None] * X) / width**2 + X
    by_place = 0.5 * np.array([float((M * sq_dists).sum()), noise_share * float(np.trace(W))])
    return nlml + 0.5 * float((X**2).sum()), by_latent, by_place
