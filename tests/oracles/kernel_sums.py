"""Kernel regression in float64 with every pair in memory, straight from the formulas.

Klanke 2007, eqs. 4.18, 4.19, 4.25 (compact form), 4.26, 4.34, B.10-B.13, in the row convention:
``W[j, i, d]`` is the weight of reference i for query j in column d, ``P`` its companion with -2F'.
"""

from __future__ import annotations

import numpy as np


def squared_distances(Q, X):
    return ((Q[:, None, :] - X[None, :, :]) ** 2).sum(axis=2)


def weigh(kernel, Q, X, own=None):
    """Return F(s) and -2F'(s), both (m, n), up to a factor a row; ``own[j]`` is not seen by j."""
    s = squared_distances(Q, X)
    hidden = np.zeros(s.shape, dtype=bool)
    if own is not None:
        hidden[np.flatnonzero(own >= 0), own[own >= 0]] = True
    if kernel.is_exponential:
        s -= np.where(hidden, np.inf, s).min(axis=1, keepdims=True)
        s[hidden] = 0
    return np.where(hidden, 0, kernel.value(s)), np.where(hidden, 0, -2 * kernel.derivative(s))


def regress(kernel, Q, X, Y, own=None, omega=None, observed=None):
    """Return f (m, D) and P (m, n, D); the mean of what may be seen where nothing is in reach."""
    K, A = weigh(kernel, Q, X, own)
    omega = np.ones(len(X)) if omega is None else omega
    known = omega[:, None] * (np.ones(Y.shape) if observed is None else observed)
    S = (K[:, :, None] * known).sum(axis=1)
    seen = np.broadcast_to(known, (len(Q), *Y.shape)).copy()
    if own is not None:
        seen[np.flatnonzero(own >= 0), own[own >= 0]] = 0
    W = np.where(S[:, None] > 0, K[:, :, None] * known, seen)
    total = W.sum(axis=1, keepdims=True)
    W = W / np.where(total > 0, total, 1)
    P = np.where(S[:, None] > 0, A[:, :, None] * known, 0) / np.where(S > 0, S, 1)[:, None]
    return (W * Y).sum(axis=1), P


def error(kernel, Q, X, Y, targets, own=None, omega=None, observed=None, entries=None):
    """Return ``||f - target||²`` of each query, and its sum's gradient by Q (m, q) and X (n, q).

    ``entries`` (m, D) weighs the entries of the residual.
    """
    f, P = regress(kernel, Q, X, Y, own, omega, observed)
    entries = np.ones(f.shape) if entries is None else entries
    D = 2 * entries * (f - targets)
    pull = (D[:, None] * P * (Y[None] - f[:, None])).sum(axis=2)[:, :, None]
    steps = pull * (X[None] - Q[:, None])
    return (entries * (f - targets) ** 2).sum(axis=1), steps.sum(axis=1), -steps.sum(axis=0)


def reconstruction(kernel, X, Y, leave_one_out, omega=None, observed=None):
    """Return R(X) and dR/dX of 4.26 or 4.34, with weights and missing entries."""
    omega = np.ones(len(X)) if omega is None else omega
    own = np.arange(len(X)) if leave_one_out else None
    share = np.broadcast_to((omega / omega.sum())[:, None], Y.shape)
    entries = share if observed is None else share * observed
    losses, by_query, by_reference = error(kernel, X, X, Y, Y, own, omega, observed, entries)
    return losses.sum(), by_query + by_reference


def density(kernel, Q, X, omega=None):
    """Return p(x) (m,) of 4.19 with weights."""
    omega = np.ones(len(X)) if omega is None else omega
    return kernel.value(squared_distances(Q, X)) @ omega / omega.sum()


def jacobian(kernel, Q, X, Y, omega=None, observed=None):
    """Return df/dx (m, D, q): the sum over i of P_i (y_i - f)(x_i - x)ᵀ."""
    f, P = regress(kernel, Q, X, Y, None, omega, observed)
    return np.einsum("jid,jim->jdm", P * (Y[None] - f[:, None]), X[None] - Q[:, None])
