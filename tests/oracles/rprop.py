"""Rprop one coordinate at a time, written to be read beside the papers, not to be fast."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[np.float64]


def rprop_iterates(
    value_and_grad: Callable[[Array], tuple[float, Array]], X0: Array, variant: str, n_iter: int
) -> list[Array]:
    """Return X after each of `n_iter` iterations of "rprop-", "irprop-" or "irprop+"."""
    n, q = X0.shape
    X = X0.copy()
    steps = np.full((n, q), 0.1)
    last_grad = np.zeros((n, q))
    last_move = np.zeros((n, q))
    last_value = np.inf
    iterates = []
    for _ in range(n_iter):
        value, grad = value_and_grad(X)
        moves = np.zeros((n, q))
        for i in range(n):
            for j in range(q):
                g = grad[i, j]
                if g * last_grad[i, j] > 0:
                    steps[i, j] = min(1.2 * steps[i, j], 50.0)
                    moves[i, j] = -np.sign(g) * steps[i, j]
                elif g * last_grad[i, j] < 0:
                    steps[i, j] = max(0.5 * steps[i, j], 1e-6)
                    if variant == "rprop-":
                        moves[i, j] = -np.sign(g) * steps[i, j]
                    elif variant == "irprop+" and value > last_value:
                        moves[i, j] = -last_move[i, j]
                    if variant != "rprop-":
                        g = 0.0
                else:
                    moves[i, j] = -np.sign(g) * steps[i, j]
                last_grad[i, j] = g
        X = X + moves
        last_move, last_value = moves, value
        iterates.append(X.copy())
    return iterates
