"""Affine combination of rows whose combined features are nearest to ψ (Arias 2007, eqs. 4.32-4.34).

Among the n rows η of nearest features, with weights that sum to one,

    min_β ||ψ - Σ_i β_i φ(y_η(i))||²,    y = Σ_i β_i y_η(i).

From the mean of the neighbours, ``β = 1/n + γ`` with ``Σ γ = 0``, it is

    γ = (H K_ηη H)⁺ H (k - K_ηη 1/n),    H = I - 1 1ᵀ/n,    k_i = <ψ, φ(y_η(i))>.

Only kernel values between training rows are needed, so it takes any kernel, and none depends on a
level added to it. Weights may be negative: a point far from its neighbours is led far away.

A kernel of distances along a graph is not positive: lengths in feature space below the size of its
most negative eigenvalue mean nothing. Directions shorter than that are left out, and as much is
added to the others. Where the kernel is positive it is zero, and nothing changes.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from twofold.array_types import FloatArray
from twofold.checks.numbers import check_count
from twofold.preimages.points import FeaturePoints, PreImageMethod, PreImages
from twofold.rowwise import blocks

# Directions of the neighbours' features below this share of the largest eigenvalue are noise.
_KEPT = 1e-10


@dataclass(frozen=True)
class LinearCombination(PreImageMethod):
    """Best affine combination of the nearest features, applied to their rows.

    Parameters
    ----------
    n_neighbors : int
        Number of nearest rows in feature space.
    """

    n_neighbors: int = 10

    name: ClassVar[str] = "linear_combination"
    needs: ClassVar[str] = "kernel values between training rows"

    def __post_init__(self) -> None:
        check_count("n_neighbors", self.n_neighbors)

    def fits(self, kernel: Any) -> str | None:
        """Return why the method fits that kernel, None if it does not."""
        return "only kernel values between training rows are needed, which every kernel has"

    def find(self, target: FeaturePoints) -> PreImages:
        """Return the pre-images of the points."""
        target = target.with_products()
        products = target.inner_products()
        chosen = target.nearest_rows(self.n_neighbors)
        values = np.take_along_axis(products, chosen, axis=1)
        number = chosen.shape[1]
        Y = np.empty((len(chosen), target.rows.shape[1]))
        for block in blocks(len(Y), number * (number + Y.shape[1])):
            weights = _affine_weights(target.gram_among(chosen[block]), values[block])
            Y[block] = np.einsum("nk,nkd->nd", weights, target.rows[chosen[block]])
        return PreImages.in_closed_form(target, Y)


def _affine_weights(K: FloatArray, k: FloatArray) -> FloatArray:
    """Return weights (n, k) of sum one from values K (n, k, k) of neighbours, k (n, k) of ψ."""
    row_means = K.mean(axis=2)
    right = k - row_means
    right -= right.mean(axis=1, keepdims=True)
    centred = K - row_means[:, :, None] - row_means[:, None] + row_means.mean(axis=1)[:, None, None]
    values, U = np.linalg.eigh(centred)
    missing = np.maximum(-values[:, :1], 0)
    kept = values > np.maximum(missing, _KEPT * values[:, -1:])
    along = np.einsum("nij,ni->nj", U, right)
    along = np.where(kept, along / np.where(kept, values + missing, 1), 0)
    return 1 / K.shape[1] + np.einsum("nij,nj->ni", U, along)
