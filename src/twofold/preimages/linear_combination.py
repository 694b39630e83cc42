"""Affine combination of rows whose combined features are nearest to ψ (Arias 2007, eqs. 4.32-4.34).

Among the n rows η of nearest features, with weights that sum to one,

    min_β ||ψ - Σ_i β_i φ(y_η(i))||²:    β = P (k + μ 1),    μ = (1 - 1ᵀ P k) / (1ᵀ P 1),
    P = K_ηη⁺,  k_i = <ψ, φ(y_η(i))>,    y = Σ_i β_i y_η(i)

(appendix E with α for the β on its right-hand sides). Only kernel values between training rows
are needed, so it takes any kernel. Weights may be negative.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from twofold.preimages.checks import check_count
from twofold.preimages.points import FeaturePoints, PreImageMethod, PreImages, blocks

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
            P = np.linalg.pinv(target.gram_among(chosen[block]), rcond=_KEPT, hermitian=True)
            weights = np.einsum("nij,nj->ni", P, values[block])
            ones = P.sum(axis=2)
            lacking = (1 - weights.sum(axis=1)) / _away_from_zero(ones.sum(axis=1))
            weights += lacking[:, None] * ones
            # Features without weight of their own (all zero) leave the sum short of one.
            weights += (1 - weights.sum(axis=1, keepdims=True)) / number
            Y[block] = np.einsum("nk,nkd->nd", weights, target.rows[chosen[block]])
        return PreImages.in_closed_form(target, Y)


def _away_from_zero(values: np.ndarray) -> np.ndarray:
    return np.where(np.abs(values) > 1e-300, values, np.inf)
