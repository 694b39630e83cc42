"""Two iterative solvers that need products with a matrix only, for several columns at once.

Block Golub-Kahan bidiagonalization puts one small problem in place of all the large ones. From
start columns it builds orthonormal bases U and V, block by block, with

    Kᵀ U_i = V_{i-1} B_iᵀ + V_i A_i,        K V_i = U_i A_iᵀ + U_{i+1} B_{i+1},

so that K V = U T with a small block-bidiagonal T. The regularized least squares problem for *every*
λ and every start column is then solved within V by the singular values of T alone. Large singular
values, that is smooth functions, come first, so that stopping early also smooths. All columns
share one basis, which for several columns converges in far fewer passes than one basis each.

Preconditioned conjugate gradients solve for right-hand sides side by side, each with its own steps.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from twofold.array_types import FloatArray

Product = Callable[[FloatArray], FloatArray]

# Directions this much smaller than the largest seen are rounding error.
NEGLIGIBLE = 1e-13


class BlockBidiagonalization:
    """Bases and small matrix of an operator, extended by :meth:`step`.

    Parameters
    ----------
    times, transposed_times : products with K (m, N) and its transpose, for several columns
    start : (m, k) columns of the right-hand side

    Attributes
    ----------
    start_parts : (p, k) the start columns in the first block of U
    exhausted : whether the space cannot grow any more; the problem is then solved exactly
    """

    def __init__(self, times: Product, transposed_times: Product, start: FloatArray) -> None:
        self.times = times
        self.transposed_times = transposed_times
        self.U, self.start_parts = orthonormal_factors(start)
        self.size = 0.0
        self.right: list[FloatArray] = []
        self.diagonal: list[FloatArray] = []
        self.below: list[FloatArray] = []
        self._extend_right(self._to_right())

    @property
    def exhausted(self) -> bool:
        """Whether the last block is empty."""
        return self.right[-1].shape[1] == 0

    def _to_right(self) -> FloatArray:
        width = self.U.shape[1]
        # Products are asked of at least one column, so that operators need not think of none.
        return self.transposed_times(self.U if width else np.zeros((len(self.U), 1)))[:, :width]

    def _extend_right(self, block: FloatArray) -> None:
        # Twice, because one pass leaves rounding errors that grow with the number of blocks.
        for _ in range(2):
            for earlier in self.right:
                block = block - earlier @ (earlier.T @ block)
        V, A = orthonormal_factors(block, self.size)
        self.size = max(self.size, float(np.abs(A).max(initial=0)))
        self.right.append(V)
        self.diagonal.append(A)

    def step(self) -> None:
        """Take the newest block of V into the small matrix and prepare the next one."""
        V, A = self.right[-1], self.diagonal[-1]
        self.U, B = orthonormal_factors(self.times(V) - self.U @ A.T, self.size)
        self.below.append(B)
        self._extend_right(self._to_right() - V @ B.T)

    def matrix(self) -> FloatArray:
        """Return T for the blocks of V that steps were taken with."""
        done = len(self.below)
        heights = [A.shape[1] for A in self.diagonal[: done + 1]]
        widths = [A.shape[0] for A in self.diagonal[:done]]
        down, across = np.cumsum([0, *heights]), np.cumsum([0, *widths])
        T = np.zeros((down[-1], across[-1]))
        for i in range(done):
            columns = slice(across[i], across[i + 1])
            T[down[i] : down[i + 1], columns] = self.diagonal[i].T
            T[down[i + 1] : down[i + 2], columns] = self.below[i]
        return T

    def combine(self, coefficients: FloatArray) -> FloatArray:
        """Return ``V c`` (N, D) for coefficients of the blocks that steps were taken with."""
        out = np.zeros((self.right[0].shape[0], coefficients.shape[1]))
        at = 0
        for V in self.right[: len(self.below)]:
            out += V @ coefficients[at : at + V.shape[1]]
            at += V.shape[1]
        return out

    def slope_left(self, residual: FloatArray) -> float:
        """Return the norm of the slope of the objective, relative to that at zero.

        Parameters
        ----------
        residual : (rows of T, D) residuals of the small problem at its solution
        """
        A = self.diagonal[-1]
        n_columns = residual.shape[1]
        at_zero = np.linalg.norm(self.diagonal[0] @ self.start_parts[:, :n_columns])
        # Within V the small problem has no slope left; what remains points into the next block.
        return float(np.linalg.norm(A @ residual[len(residual) - A.shape[1] :]) / (at_zero or 1.0))


def orthonormal_factors(block: FloatArray, size: float = 0.0) -> tuple[FloatArray, FloatArray]:
    """Return Q (n, r) with orthonormal columns and P (r, k) with ``block = Q P``.

    Directions that are negligible beside the largest, or beside ``size``, are left out.
    """
    Q, P = np.linalg.qr(block)
    u, s, vt = np.linalg.svd(P)
    kept = s > NEGLIGIBLE * max(size, float(s.max(initial=0)), np.finfo(np.float64).tiny)
    if kept.all():
        return Q, P
    return Q @ u[:, kept], s[kept, None] * vt[: kept.sum()]


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
