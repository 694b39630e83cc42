"""Feature space written out: explicit features, and geometry by least squares on them.

Klanke 2007, eqs. 4.62-4.65 and 4.72, in the row convention. Slow, float64, readable.
"""

from __future__ import annotations

import itertools

import numpy as np


def linear_features(Y):
    return Y


def quadratic_features(Y, gamma, coef0):
    """Monomials whose inner products are ``(gamma y·y' + coef0)²``."""
    n, D = Y.shape
    squares = gamma * (Y[:, :, None] * Y[:, None, :]).reshape(n, D * D)
    return np.hstack([squares, np.sqrt(2 * gamma * coef0) * Y, np.full((n, 1), coef0)])


def l1_features(Y, corners):
    """Signed indicators of the intervals between 0 and y, as wide as their squares.

    ``corners`` (k, D) holds the rows whose values cut the axes into intervals.
    """
    columns = []
    for d in range(Y.shape[1]):
        cuts = np.unique(np.append(corners[:, d], 0.0))
        for low, high in itertools.pairwise(cuts):
            inside = np.where(Y[:, d] >= high, low >= 0, 0) - np.where(Y[:, d] <= low, high <= 0, 0)
            columns.append(np.sqrt(high - low) * inside)
    return np.array(columns).T


def gram_features(K):
    """Features of points that have the inner products K (n, n)."""
    values, U = np.linalg.eigh(K)
    return U * np.sqrt(np.maximum(values, 0))


def squared_distances(P, Q):
    return ((P[:, None, :] - Q[None, :, :]) ** 2).sum(axis=2)


def split(phi, references):
    """Return the foot of each feature in the references' affine span, and the squared height."""
    mean = references.mean(axis=0)
    directions = (references - mean).T
    shares = np.linalg.lstsq(directions, (phi - mean).T, rcond=1e-10)[0]
    foot = mean + (directions @ shares).T
    return foot, ((phi - foot) ** 2).sum(axis=1)


def rbf(a, b, gamma):
    return np.exp(-gamma * sum((s - t) ** 2 for s, t in zip(a, b, strict=True)))


def polynomial(a, b, degree, gamma, coef0):
    return (gamma * sum(s * t for s, t in zip(a, b, strict=True)) + coef0) ** degree


def l1(a, b):
    return 0.5 * sum(abs(s) + abs(t) - abs(s - t) for s, t in zip(a, b, strict=True))


def pairs(function, A, B, *numbers):
    return np.array([[function(a, b, *numbers) for b in B] for a in A])


def error(value, y, references, b):
    """``E(y) = k(y, y) - 2 Σ b_i k(y, y_i)`` for a kernel ``value(a, b)`` of two rows."""
    return value(y, y) - 2 * sum(w * value(y, r) for w, r in zip(b, references, strict=True))
