"""Localisation: the row at given distances from the nearest rows (Kwok and Tsang 2004).

Kernel values say how far the pre-image y should lie from a training row:

    Gaussian:    ||y - y_i||² = -log(k_i) / gamma,          k_i = <ψ, φ(y_i)>
    g(y·y'):     y·y_i = g⁻¹(k_i)

With the n nearest rows of feature space, from their mean ȳ the rows of Yc (n, D), ``G = Yc Ycᵀ``
and ``d0² = diag(G)``, the place is

    y = ȳ - ½ Ycᵀ G⁺ (d² - d0²),

exact where the distances are those of a row in the span (Arias 2007, section 4.1.3, with the sign
of eq. 4.21 corrected). Constants in d² drop out, as G⁺ 1 = 0, so inner products serve in their
place: ``-½ (d² - d0²)`` becomes ``y·y_i - y_i·ȳ``. It needs more rows than columns to be
determined; with fewer it goes the shortest way from ȳ, and has long tails of errors.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from twofold.array_types import FloatArray
from twofold.checks.numbers import check_count
from twofold.features import RBF, Linear, Polynomial
from twofold.preimages.points import FeaturePoints, PreImageMethod, PreImages
from twofold.rowwise import blocks

# With few components the kernel values of ψ can be negative or above one: no distance has these.
_SMALLEST_VALUE = 1e-12
# Eigenvalues of G below this share of the largest are rounding.
_KEPT = 1e-12


@dataclass(frozen=True)
class Localise(PreImageMethod):
    """Place among the nearest rows, by distances or inner products to them.

    Parameters
    ----------
    n_neighbors : int
        Number of nearest rows in feature space, at least 2.
    """

    n_neighbors: int = 10

    name: ClassVar[str] = "localise"
    needs: ClassVar[str] = "a linear, Gaussian ('rbf') or polynomial ('poly') kernel"

    def __post_init__(self) -> None:
        check_count("n_neighbors", self.n_neighbors, 2)

    def fits(self, kernel: Any) -> str | None:
        """Return why the method fits that kernel, None if it does not."""
        if isinstance(kernel, RBF):
            return "Gaussian kernel, whose values tell distances"
        if isinstance(kernel, (Linear, Polynomial)):
            return "kernel of inner products, whose values tell these"
        return None

    def find(self, target: FeaturePoints) -> PreImages:
        """Return the pre-images of the points."""
        self.check(target.kernel)
        target = target.with_products()
        products = target.inner_products()
        chosen = target.nearest_rows(self.n_neighbors)
        values = np.take_along_axis(products, chosen, axis=1)
        Y = np.empty((len(chosen), target.rows.shape[1]))
        for block in blocks(len(Y), chosen.shape[1] * Y.shape[1]):
            near = target.rows[chosen[block]]
            Y[block] = _place(target.kernel, near, values[block])
        return PreImages.in_closed_form(target, Y)


def _place(kernel: Any, near: FloatArray, values: FloatArray) -> FloatArray:
    """Return rows (n, D) from kernel values (n, k) with near rows (n, k, D)."""
    mean = near.mean(axis=1)
    centred = near - mean[:, None]
    G = centred @ centred.swapaxes(1, 2)
    if isinstance(kernel, RBF):
        sq_dists = -np.log(np.clip(values, _SMALLEST_VALUE, 1)) / kernel.number()
        right = -0.5 * (sq_dists - np.einsum("nkk->nk", G))
    else:
        right = _inner_products(kernel, values) - np.einsum("nkd,nd->nk", near, mean)
    shares = np.linalg.pinv(G, rcond=_KEPT, hermitian=True) @ right[:, :, None]
    return np.asarray(mean + np.einsum("nkd,nk->nd", centred, shares[:, :, 0]))


def _inner_products(kernel: Linear | Polynomial, values: FloatArray) -> FloatArray:
    """Return ``y·y_i`` from kernel values; of an even power the root is taken as positive."""
    if isinstance(kernel, Linear):
        return values
    degree = int(kernel.degree)
    if degree % 2 == 0:
        values = np.maximum(values, 0)
    roots = np.sign(values) * np.abs(values) ** (1 / degree)
    return np.asarray((roots - kernel.coef0) / kernel.gamma)
