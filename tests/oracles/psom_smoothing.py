"""Roughness and smoothing of maps on a grid, as the formulas are written.

Klanke 2007, sections 3.3.1 to 3.3.4, with the corrections of signs and names. Product-form Lagrange
polynomials, dense matrices, general solvers. Slow, float64, readable.
"""

from __future__ import annotations

import itertools

import numpy as np

# ---- basis and roughness ------------------------------------------------------------------------


def polynomial(nodes, i):
    """Return Lagrange polynomial i as a numpy polynomial."""
    others = np.delete(nodes, i)
    return np.polynomial.Polynomial.fromroots(others) / np.prod(nodes[i] - others)


def basis_values(nodes, x, order=0):
    """Return derivatives of all polynomials at places: (m, n)."""
    found = [polynomial(nodes, i).deriv(order)(x) for i in range(len(nodes))]
    return np.stack([np.broadcast_to(values, np.shape(x)) for values in found], axis=-1)


def design(axes, X):
    """Return B (m, N): every basis function of the grid at every place."""
    rows = []
    for x in X:
        row = np.ones(1)
        for nodes, at in zip(axes, x, strict=True):
            row = np.kron(row, basis_values(nodes, at))
        rows.append(row)
    return np.array(rows)


def brute_force_roughness(axes, lo, hi, w, n_points=12):
    """Return the integral of all squared second derivatives, by a quadrature over the whole box."""
    rules = [np.polynomial.legendre.leggauss(n_points) for _ in axes]
    halves = [(b - a) / 2 for a, b in zip(lo, hi, strict=True)]
    total = 0.0
    for at in itertools.product(range(n_points), repeat=len(axes)):
        x = [a + h * (rules[0][0][i] + 1) for a, h, i in zip(lo, halves, at, strict=True)]
        weight = np.prod([h * rules[0][1][i] for h, i in zip(halves, at, strict=True)])
        for mu, nu in itertools.product(range(len(axes)), repeat=2):
            row = np.ones(1)
            for axis, nodes in enumerate(axes):
                row = np.kron(row, basis_values(nodes, x[axis], (axis == mu) + (axis == nu)))
            total += weight * (row @ w) ** 2
    return total


# ---- grid data ----------------------------------------------------------------------------------


def denoise(M, W, lam):
    """Eq. 3.27, or 3.33 with a smoothness for each node: (I + Λ M) w = y."""
    lam = np.broadcast_to(lam, len(M))
    return np.linalg.solve(np.eye(len(M)) + lam[:, None] * M, W)


def fill(M, W, known):
    """Eq. 3.30."""
    out = W.copy()
    out[~known] = -np.linalg.solve(M[np.ix_(~known, ~known)], M[np.ix_(~known, known)] @ W[known])
    return out


def denoise_known(M, W, known, lam):
    """Minimise the squared error at the known nodes plus lam R."""
    S = np.eye(len(M))[known]
    return soft(S, M, W[known], lam)


# ---- scattered data -----------------------------------------------------------------------------


def soft(B, M, Y, lam):
    """Eq. 3.40."""
    return np.linalg.solve(B.T @ B + lam * M, B.T @ Y)


def hat_trace(B, M, lam):
    return np.trace(B @ np.linalg.solve(B.T @ B + lam * M, B.T))


def gcv(B, M, Y, lam):
    r = Y - B @ soft(B, M, Y, lam)
    return (r**2).mean() / (1 - hat_trace(B, M, lam) / len(B)) ** 2


def hard(B, M, Y):
    """Eqs. 3.34 to 3.37 (with the minus sign): w = w_0 - Z (ZᵀMZ)⁻¹ ZᵀM w_0."""
    w0 = np.linalg.pinv(B) @ Y
    _, s, vt = np.linalg.svd(B)
    Z = vt[(s > 1e-12 * s[0]).sum() :].T
    return w0 - Z @ np.linalg.solve(Z.T @ M @ Z, Z.T @ M @ w0)


# ---- robot arm ----------------------------------------------------------------------------------

ARM_RANGES = np.radians([(-177, 177), (-91, 91), (-174, 174), (-137, 137)])


def wrist(joints):
    """Return wrist positions (m, 3) in mm of an arm with links of 450 and 480 mm."""
    s1, s2, s3, s4 = np.sin(joints).T
    c1, c2, c3, c4 = np.cos(joints).T
    u1, u2, u3 = 480 * c3 * s4, 480 * s3 * s4, 450 + 480 * c4
    x, z = c2 * u1 + s2 * u3, -s2 * u1 + c2 * u3
    return np.column_stack([c1 * x - s1 * u2, s1 * x + c1 * u2, z + 317])
