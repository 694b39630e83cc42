"""Preconditioned conjugate gradients for several right-hand sides side by side."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from twofold.array_types import FloatArray

Product = Callable[[FloatArray], FloatArray]


def conjugate_gradients(
    times: Product,
    precondition: Product,
    right: FloatArray,
    *,
    tolerance: float,
    max_iter: int,
) -> tuple[FloatArray, bool]:
    """Return the solution (n, k), and whether every column reached the tolerance.

    Parameters
    ----------
    times : product of a symmetric positive definite matrix with all k columns; it may be another
        matrix for each of them
    precondition : product with an approximate inverse, symmetric and positive definite as well
    right : (n, k) right-hand sides; every column has its own steps
    tolerance : norm of the residual relative to that of the right-hand side
    max_iter : most products
    """
    solution = np.zeros_like(right)
    residual = right.copy()
    goal = tolerance * np.linalg.norm(right, axis=0)
    direction = np.zeros_like(right)
    before = np.ones(right.shape[1])
    for _ in range(max_iter):
        unfinished = np.linalg.norm(residual, axis=0) > goal
        if not unfinished.any():
            return solution, True
        stepped = precondition(residual)
        now = (residual * stepped).sum(axis=0)
        # Finished columns stay where they are: no direction, and so no division by nothing.
        direction = np.where(unfinished, stepped + now / before * direction, 0.0)
        before = np.where(unfinished, now, 1.0)
        image = times(direction)
        slope = (direction * image).sum(axis=0)
        length = np.where(unfinished, now / np.where(unfinished, slope, 1.0), 0.0)
        solution += length * direction
        residual -= length * image
    return solution, bool((np.linalg.norm(residual, axis=0) <= goal).all())
