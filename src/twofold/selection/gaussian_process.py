"""The likelihood of data under a Gaussian process over latent points, given or moved (GPLVM).

Each of D data columns is a draw from a process of zero mean with the covariance

    k(x, x') = s (exp(-||x - x'||² / (2 w²)) + ρ δ),     K = s C,  C = R + ρ I

with width w, signal variance s and noise variance ρ s. Its negative log likelihood

    nlml = (n D / 2) log 2π + (D / 2) log |K| + ½ tr(K⁻¹ Y Yᵀ)

is smallest over s at ``s = tr(C⁻¹ Y Yᵀ) / (n D)``, which leaves log w and log ρ to search. There,

    ∂ nlml / ∂θ = ½ tr(W ∂C/∂θ),     W = D C⁻¹ - C⁻¹ Y Yᵀ C⁻¹ / s

(Harmeling 2007, section 6; s held, as the derivative by it vanishes). One Cholesky factor of C
gives the determinant, C⁻¹Y and the inverse, whose entries the derivative by w needs one by one.

With whitened latent points X, this process and a
standard normal prior on every point, which keeps the points where they are a picture,

    E(X, w, ρ) = nlml(X, w, ρ) + ½ Σ_i ||x_i||²

is minimised over latent points, width and noise share together (Lawrence, "Probabilistic
non-linear principal component analysis with Gaussian process latent variable models", 2005). With
``W = D C⁻¹ - C⁻¹ Y Yᵀ C⁻¹ / s`` and R the correlations,

    ∂nlml/∂x_i = -Σ_j W_ij R_ij (x_i - x_j) / w².
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from scipy.linalg import blas, cho_factor, cho_solve, lapack
from scipy.optimize import minimize
from scipy.spatial.distance import cdist

from twofold.array_types import FloatArray
from twofold.compiled import compiled

# Whitened points lie a few units wide. Beyond these widths the process is a straight line or a set
# of unrelated points; a noise below the least share of the signal is lost in the rounding of C.
WIDTHS = (1e-3, 1e3)
NOISE_SHARES = (1e-11, 1e6)
BOUNDS = np.log([WIDTHS, NOISE_SHARES])
# In nlml per entry. At noise shares of 1e-9 its rounding is about 5e-7, so less is not to be had;
# a slope of 1e-4 leaves it about 1e-8 above its minimum, whose curvature is about 1.
STOPPING = {"ftol": 1e-9, "gtol": 1e-4, "maxiter": 100}
FLAT = 5e-3
# Rows of the triangle that are filled at once: a block of 2,000 columns stays in the cache.
BLOCK = 64


class Optimum(NamedTuple):
    """Where the likelihood is largest."""

    nlml: float
    log_width: float
    log_noise_share: float
    signal_variance: float
    converged: bool

    @property
    def place(self) -> FloatArray:
        """The logarithms of width and noise share."""
        return np.array([self.log_width, self.log_noise_share])


class GaussianProcess:
    """Negative log likelihood of Y (n, D) over latent points X (n, q), and its derivatives."""

    def __init__(self, Y: FloatArray, X: FloatArray) -> None:
        self.Y = np.asfortranarray(Y)
        self.sq_dists = cdist(X, X, "sqeuclidean")
        # Only the lower triangles are ever filled or read.
        self.correlation = np.empty_like(self.sq_dists)
        self.factor = np.empty_like(self.sq_dists)

    def value(self, place: FloatArray) -> tuple[float, float]:
        """Return nlml at (log w, log ρ) and the signal variance that belongs to it."""
        nlml, signal, _ = self._solve(place)
        return nlml, signal

    def value_and_grad(self, place: FloatArray) -> tuple[float, FloatArray]:
        """Return nlml at (log w, log ρ) and its derivatives by these."""
        nlml, signal, A = self._solve(place)
        width, noise_share = np.exp(place)
        # LAPACK counts columns first, so it sees the lower triangle of a row-major array as upper.
        W, _ = lapack.dpotri(self.factor.T, lower=0, overwrite_c=1)
        D = self.Y.shape[1]
        W = blas.dsyrk(-1.0 / signal, A, beta=float(D), c=W, lower=0, overwrite_c=1)
        trace, moment = _contract(W.T, self.correlation, self.sq_dists)
        # The triangle without its diagonal counts twice, which takes up the half of the formula.
        return nlml, np.array([moment / width**2, 0.5 * noise_share * trace])

    def _solve(self, place: FloatArray) -> tuple[float, float, FloatArray]:
        """Return nlml, the signal variance and C⁻¹Y, and leave the Cholesky factor behind."""
        width, noise_share = np.exp(place)
        _fill_triangle(self.correlation, self.factor, self.sq_dists, -0.5 / width**2)
        diagonal = np.einsum("ii->i", self.factor)
        diagonal[:] = 1.0 + noise_share
        factor, info = lapack.dpotrf(self.factor.T, lower=0, overwrite_a=1, clean=0)
        if info:
            raise np.linalg.LinAlgError(
                f"The covariance of {len(self.Y)} points lost its rank to rounding at width "
                f"{width:.3g} and noise share {noise_share:.3g}. Pass fewer points."
            )
        A, _ = lapack.dpotrs(factor, self.Y, lower=0)
        n, D = self.Y.shape
        signal = float(np.vdot(A, self.Y)) / (n * D)
        log_det = 2.0 * float(np.log(diagonal).sum())
        nlml = 0.5 * n * D * (math.log(2 * math.pi * signal) + 1.0) + 0.5 * D * log_det
        return nlml, signal, A

    def optimum(self, start: FloatArray) -> Optimum:
        """Descend from (log w, log ρ); the bounds are wide enough to stop at on degenerate data."""
        n, D = self.Y.shape

        def per_entry(place: FloatArray) -> tuple[float, FloatArray]:
            nlml, grad = self.value_and_grad(place)
            return nlml / (n * D), grad / (n * D)

        found = minimize(
            per_entry, start, jac=True, method="L-BFGS-B", bounds=BOUNDS, options=STOPPING
        )
        nlml, signal = self.value(found.x)
        # With next to no noise rounding can end the line search; what counts is the slope there.
        converged = bool(found.success) or float(np.abs(found.jac).max()) < FLAT
        return Optimum(nlml, float(found.x[0]), float(found.x[1]), signal, converged)


def _fill_triangle(
    correlation: FloatArray, factor: FloatArray, sq_dists: FloatArray, scale: float
) -> None:
    """Write exp(scale · distance²) into the lower triangles of two arrays (n, n)."""
    n = len(sq_dists)
    for first in range(0, n, BLOCK):
        last = min(first + BLOCK, n)
        block = correlation[first:last, :last]
        np.multiply(sq_dists[first:last, :last], scale, out=block)
        np.exp(block, out=block)
        factor[first:last, :last] = block


@compiled
def _contract(W: FloatArray, correlation: FloatArray, sq_dists: FloatArray) -> tuple[float, float]:
    """Return the trace of W and Σ_{j < i} W_ij R_ij ||x_i - x_j||²."""
    trace, moment = 0.0, 0.0
    for i in range(W.shape[0]):
        trace += W[i, i]
        for j in range(i):
            moment += W[i, j] * correlation[i, j] * sq_dists[i, j]
    return trace, moment


# ---- moving the latent points -------------------------------------------------------------------


def descend(Y: FloatArray, X: FloatArray, start: FloatArray, max_iter: int) -> FloatArray:
    """Return latent points (n, q) that explain whitened data Y (n, D) better.

    The search starts from whitened points X (n, q) and logarithms of width and noise share (2,).
    """
    n, q = X.shape
    bounds = [(None, None)] * (n * q) + [tuple(bound) for bound in BOUNDS]

    def objective(flat: FloatArray) -> tuple[float, FloatArray]:
        latent = flat[:-2].reshape(n, q)
        value, by_latent, by_place = latent_value_and_grad(Y, latent, flat[-2:])
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


def latent_value_and_grad(
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
