"""Whitening and Gaussian process likelihood, straight from the definitions (Harmeling 2007)."""

from __future__ import annotations

import numpy as np


def whiten(X):
    """Return X V Λ^(-1/2) with the covariance X'X / n = V Λ V' of the centred rows."""
    X = X - X.mean(axis=0)
    variances, V = np.linalg.eigh(X.T @ X / len(X))
    return X @ V / np.sqrt(variances)


def covariance(X, width, signal_variance, noise_variance):
    """Return K (n, n), one pair at a time."""
    K = np.zeros((len(X), len(X)))
    for i, x in enumerate(X):
        for j, z in enumerate(X):
            sq_dist = sum((a - b) ** 2 for a, b in zip(x, z, strict=True))
            K[i, j] = signal_variance * np.exp(-sq_dist / (2 * width**2))
            K[i, j] += noise_variance * (i == j)
    return K


def nlml(Y, X, width, signal_variance, noise_variance):
    """Return the negative log likelihood, one column of the data at a time."""
    K = covariance(X, width, signal_variance, noise_variance)
    _, log_det = np.linalg.slogdet(K)
    total = 0.0
    for y in Y.T:
        total += 0.5 * len(y) * np.log(2 * np.pi) + 0.5 * log_det + 0.5 * y @ np.linalg.solve(K, y)
    return total


def profiled_nlml(Y, X, width, noise_share):
    """Return nlml at the signal variance that makes it smallest, and that variance."""
    C = covariance(X, width, 1.0, noise_share)
    signal_variance = np.trace(Y.T @ np.linalg.solve(C, Y)) / Y.size
    return nlml(Y, X, width, signal_variance, noise_share * signal_variance), signal_variance
