"""Rows that are walked through in chunks, or spread over the workers of dask."""

from __future__ import annotations

import numpy as np

NAMES = ["a", "b", "c"]


def ribbon(n: int = 700, seed: int = 0) -> np.ndarray:
    rng = np.random.default_rng(seed)
    t = rng.uniform(0, 3, n)
    Y = np.c_[np.cos(t), np.sin(t), rng.uniform(0, 1, n)] + rng.normal(scale=0.02, size=(n, 3))
    Y[: n // 10] = Y[n // 10 : n // 5]  # some rows come twice
    Y[5, 1] = np.nan
    return np.round(Y, 5)
