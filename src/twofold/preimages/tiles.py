"""Products of many rows with the training rows, in tiles of one shape.

In such tiles (see :func:`~twofold.preimages.coordinates.aligned`) a row gets the same bits alone
or among others, and on any number of threads, at the speed of matrix products. In a search rows
leave the batch one by one, so that without this each would end elsewhere in other company.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

import numpy as np

from twofold.array_types import BoolArray, FloatArray
from twofold.engine.threads import run_tasks
from twofold.preimages.coordinates import TILE, aligned, fill_tile

Arrays = TypeVar("Arrays", bound=tuple[FloatArray | BoolArray, ...])


def in_tiles(work: Callable[[slice], Arrays], n: int, n_threads: int) -> list[FloatArray]:
    """Return the arrays that `work` gives for slices of n rows, each put together again.

    There is always one tile, so that no rows give arrays of the right shapes.
    """
    tiles = [slice(first, min(n, first + TILE)) for first in range(0, max(n, 1), TILE)]
    parts = run_tasks(work, tiles, n_threads)
    return [np.concatenate(arrays) for arrays in zip(*parts, strict=True)]


class TrainingRows:
    """Training rows (m, D) that at most ``TILE`` rows at a time are multiplied with."""

    def __init__(self, rows: FloatArray) -> None:
        self.m, self.D = rows.shape
        self._rows = aligned(np.asarray(rows, dtype=np.float64))

    def products(self, Z: FloatArray) -> FloatArray:
        """Return ``z·y_i`` (n, m) of rows Z (n, D)."""
        filled = fill_tile(aligned(Z, rows=False))
        return (filled @ self._rows.T)[: len(Z), : self.m]

    def sums(self, W: FloatArray) -> FloatArray:
        """Return ``Σ_i W_i y_i`` (n, D) for weights W (n, m)."""
        filled = np.zeros((TILE, len(self._rows)))
        filled[: len(W), : self.m] = W
        return (filled @ self._rows)[: len(W), : self.D]


class GaussianRows:
    """Gaussians ``exp(-gamma ||z - y_i||²)`` at training rows (m, D).

    All is taken from the mean of these rows, so that a large common offset costs no digits.
    """

    def __init__(self, rows: FloatArray, gamma: float) -> None:
        self.mean, self.gamma = rows.mean(axis=0), gamma
        centred = rows - self.mean
        self._rows = TrainingRows(centred)
        self._half_squares = 0.5 * np.einsum("md,md->m", centred, centred)

    def values(self, Z: FloatArray) -> FloatArray:
        """Return the Gaussians (n, m) of at most ``TILE`` rows Z (n, D)."""
        Z = Z - self.mean
        with np.errstate(over="ignore", invalid="ignore"):
            halves = 0.5 * np.einsum("nd,nd->n", Z, Z)
            W = self._rows.products(Z)
            W -= self._half_squares
            W -= halves[:, None]
        W[~np.isfinite(halves)] = -np.inf  # rows so far away that their squares overflow
        W *= 2 * self.gamma
        np.minimum(W, 0, out=W)
        return np.asarray(np.exp(W, out=W))

    def pull(self, W: FloatArray, Z: FloatArray) -> FloatArray:
        """Return ``Σ_i W_i (y_i - z)`` (n, D) for weights W (n, m)."""
        return np.asarray(self._rows.sums(W) - W.sum(axis=1)[:, None] * (Z - self.mean))


def gaussian_values(A: FloatArray, B: FloatArray, gamma: float, n_threads: int = 1) -> FloatArray:
    """Return ``exp(-gamma ||a - b||²)`` (a, b) of rows."""
    gaussians = GaussianRows(B, gamma)
    return in_tiles(lambda tile: (gaussians.values(A[tile]),), len(A), n_threads)[0]


def row_products(A: FloatArray, B: FloatArray, n_threads: int = 1) -> FloatArray:
    """Return ``a·b`` (a, b) of rows."""
    rows = TrainingRows(B)
    return in_tiles(lambda tile: (rows.products(A[tile]),), len(A), n_threads)[0]


def weighted_sums(W: FloatArray, rows: FloatArray, n_threads: int = 1) -> FloatArray:
    """Return ``Σ_i W_i y_i`` (n, D) for weights W (n, m) of rows (m, D)."""
    training = TrainingRows(rows)
    return in_tiles(lambda tile: (training.sums(W[tile]),), len(W), n_threads)[0]
