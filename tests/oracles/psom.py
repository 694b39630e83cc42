"""Parameterized self-organizing maps, step by step.

Klanke 2007, sections 3.1 and 3.2. Slow, float64, readable.
"""

from __future__ import annotations

import itertools

import numpy as np
from scipy.optimize import least_squares

# ---- the map ------------------------------------------------------------------------------------


def lagrange(nodes, i, x):
    """Return polynomial i through the nodes at x, as the product (3.3)."""
    value = 1.0
    for j, node in enumerate(nodes):
        if j != i:
            value *= (x - node) / (nodes[i] - node)
    return value


def psom(nodes, W, x):
    """Return f (D,) at one place x (q,): the sum (3.2) over all nodes, one after the other."""
    value = np.zeros(W.shape[1])
    for row, node in enumerate(itertools.product(*(range(len(axis)) for axis in nodes))):
        factors = [lagrange(axis, i, x_mu) for axis, i, x_mu in zip(nodes, node, x, strict=True)]
        value += W[row] * np.prod(factors)
    return value


def local_psom(nodes, W, x, n_local):
    """Return f (D,) at one place from n_local nodes an axis around it."""
    windows = []
    for axis, x_mu in zip(nodes, x, strict=True):
        nearest = min(range(len(axis)), key=lambda i: abs(axis[i] - x_mu))
        start = min(max(nearest - n_local // 2, 0), len(axis) - n_local)
        windows.append(slice(start, start + n_local))
    box = W.reshape(*(len(axis) for axis in nodes), -1)[tuple(windows)]
    sub_nodes = [axis[window] for axis, window in zip(nodes, windows, strict=True)]
    return psom(sub_nodes, box.reshape(-1, W.shape[1]), x)


# ---- projection ---------------------------------------------------------------------------------


def best_node(W, y, p):
    """Return the node whose value matches best in the components with weight."""
    return int(np.argmin([sum(p * (w - y) ** 2) for w in W]))


def best_match(nodes, lo, hi, W, y, p, start):
    """Return the place (q,) and error that scipy's bounded least squares find from a start."""
    searched = p > 0

    def residual(x):
        return np.sqrt(p[searched]) * (psom(nodes, W, x) - y)[searched]

    # scipy wants a start strictly inside.
    inside = np.clip(start, lo + 1e-9 * (hi - lo), hi - 1e-9 * (hi - lo))
    found = least_squares(residual, inside, bounds=(lo, hi), xtol=1e-14, ftol=1e-14, gtol=1e-14)
    return found.x, 2 * found.cost


# ---- the arm ------------------------------------------------------------------------------------


def wrist(T, h=0.317, L1=0.45, L2=0.48):
    """Return the wrist (3,) of the seven-joint arm from the angles of its first four joints."""
    (c1, c2, c3, c4), (s1, s2, s3, s4) = np.cos(T[:4]), np.sin(T[:4])
    u = (L2 * c3 * s4, L2 * s3 * s4, L1 + L2 * c4)
    x, z = c2 * u[0] + s2 * u[2], -s2 * u[0] + c2 * u[2]
    return np.array([c1 * x - s1 * u[1], s1 * x + c1 * u[1], z + h])
