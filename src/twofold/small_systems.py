"""Copies, dot products and small positive definite systems (Cholesky) inside compiled loops.

Calls of BLAS and LAPACK would cost more than the arithmetic.
"""

from typing import TypeVar

import numpy as np

from twofold.array_types import FloatArray, IntArray
from twofold.compiled import compiled_in_order, compiled_into_callers

Array = TypeVar("Array", FloatArray, IntArray)


@compiled_into_callers
def assign(out: Array, values: Array) -> None:
    """Write values (n,) over the first n numbers of `out`."""
    for k in range(values.size):
        out[k] = values[k]


@compiled_into_callers
def dot(a: FloatArray, b: FloatArray) -> float:
    """Return ``a·b``."""
    total = 0.0
    for k in range(a.size):
        total += a[k] * b[k]
    return total


@compiled_in_order
def factor(A: FloatArray, least: float) -> bool:
    """Overwrite the lower half of A (p, p), which alone is read, with its Cholesky factor.

    Squares of pivots are raised to ``least``: rounding must not make the last of nearly dependent
    columns negative. False at the first one that is not above 0 then.
    """
    for a in range(A.shape[0]):
        for b in range(a + 1):
            total = A[a, b]
            for k in range(b):
                total -= A[a, k] * A[b, k]
            if a > b:
                A[a, b] = total / A[b, b]
            else:
                total = max(total, least)
                if not total > 0:
                    return False
                A[a, a] = np.sqrt(total)
    return True


@compiled_in_order
def solve_factored(L: FloatArray, B: FloatArray) -> None:
    """Overwrite B (p, m) with the solutions of ``L Lᵀ X = B``."""
    p, m = B.shape
    for column in range(m):
        for a in range(p):
            total = B[a, column]
            for k in range(a):
                total -= L[a, k] * B[k, column]
            B[a, column] = total / L[a, a]
        for a in range(p - 1, -1, -1):
            total = B[a, column]
            for k in range(a + 1, p):
                total -= L[k, a] * B[k, column]
            B[a, column] = total / L[a, a]
