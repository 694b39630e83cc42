"""The kernel ``tanh(alpha y·y' + beta)`` of neural networks (Kramer 2013, section 7.3).

It is not positive definite: squared distances in its "feature space" can be negative. With a small
``alpha`` it is close to linear, ``k(y,y) - 2 k(y,y') + k(y',y') ≈ alpha ||y - y'||²``.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from twofold.array_types import FloatArray
from twofold.compiled import compiled
from twofold.features.data_kernels import KERNELS, DataKernel, check_rows
from twofold.features.pair_sums import PRODUCT, own_sums, pair_sums
from twofold.number_checks import check_positive, is_number


@dataclass(frozen=True)
class Sigmoid(DataKernel):
    """``k(y, y') = tanh(alpha y·y' + beta)``.

    Parameters
    ----------
    alpha : float
        Scale of the inner products, above 0.
    beta : float
        Shift; below 0 in most uses.
    """

    alpha: float = 1e-6
    beta: float = -1e-2

    def __post_init__(self) -> None:
        check_positive("alpha", self.alpha)
        if not is_number(self.beta) or not math.isfinite(self.beta):
            raise ValueError(f"`beta` must be a finite number; got {self.beta!r}.")

    def gram(self, A: FloatArray, B: FloatArray) -> FloatArray:
        """Return ``tanh(alpha a·b + beta)`` of every pair."""
        A, B = check_rows(A), check_rows(B)
        if A.shape[1] != B.shape[1]:
            raise ValueError(f"Expected rows with {B.shape[1]} features; got {A.shape[1]}.")
        return _bend(pair_sums(A, B, PRODUCT), self.alpha, self.beta)

    def diagonal(self, A: FloatArray) -> FloatArray:
        """Return ``tanh(alpha ||a||² + beta)`` of every row."""
        return _bend(own_sums(check_rows(A), PRODUCT)[None], self.alpha, self.beta)[0]


@compiled
def _bend(products: FloatArray, alpha: float, beta: float) -> FloatArray:
    """Return ``tanh(alpha p + beta)`` of products (m, n), written over them."""
    for j in range(products.shape[0]):  # numpy's tanh may round by the place in the whole array
        for i in range(products.shape[1]):
            products[j, i] = math.tanh(alpha * products[j, i] + beta)
    return products


KERNELS.update(tanh=Sigmoid, sigmoid=Sigmoid)
