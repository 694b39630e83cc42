"""Data that lie on a sheet."""

from __future__ import annotations

import numpy as np


def curved_sheet(n, D=6, seed=0):
    """Return a smooth two-dimensional sheet in D dimensions, with little noise."""
    rng = np.random.default_rng(seed)
    U = rng.uniform(-1, 1, size=(n, 2))
    waves = np.cos(U @ rng.normal(size=(2, 20)) + rng.uniform(0, 6, size=20))
    return waves @ rng.normal(size=(20, D)) + 0.02 * rng.normal(size=(n, D))


def quarter_bowl(x):
    """Return the bent sheet (n, 3) over places (n, 2)."""
    return np.column_stack([x[:, 0], np.sin(2 * x[:, 1]), x[:, 0] * np.cos(x[:, 1])])
