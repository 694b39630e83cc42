"""K-harmonic means one row and one centre at a time, straight from the formulas.

Klanke 2007, eqs. 2.12 and 2.14, with the power p of Zhang 2000 and row weights. No centre may lie
on a row.
"""

from __future__ import annotations

import numpy as np


def distance(y, c):
    return np.sqrt(((y - c) ** 2).sum())


def objective(Y, weights, C, p):
    """Return Σ_i ω_i k / Σ_l d_il^-p."""
    total = 0.0
    for y, weight in zip(Y, weights, strict=True):
        total += weight * len(C) / sum(distance(y, c) ** -p for c in C)
    return total


def update(Y, weights, C, p):
    """Return the centres after one step."""
    moved = []
    for centre in C:
        above, below = np.zeros(Y.shape[1]), 0.0
        for y, weight in zip(Y, weights, strict=True):
            harmonic = sum(distance(y, c) ** -p for c in C)
            w = weight * distance(y, centre) ** -(p + 2) / harmonic**2
            above += w * y
            below += w
        moved.append(above / below)
    return np.array(moved)


def gradient(Y, weights, C, p, step=1e-6):
    """Return dE/dC (k, D) by central differences."""
    slopes = np.zeros(C.shape)
    for place in np.ndindex(C.shape):
        up, down = C.copy(), C.copy()
        up[place] += step
        down[place] -= step
        rise = objective(Y, weights, up, p) - objective(Y, weights, down, p)
        slopes[place] = rise / (2 * step)
    return slopes
