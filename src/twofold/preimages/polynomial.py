"""Closed form for polynomial kernels (Arias 2007, eq. D.10).

Both stationarity conditions become the same formula when the kernel values of the pre-image are
replaced by those of ψ, ``k(y, y_i) = <ψ, φ(y_i)> = k_i`` and ``k(y, y) = ||ψ||²``:

    y = Σ_i α_i k_i^(1 - 1/p) y_i / ||ψ||^(2 - 2/p)

It is exact for ``ψ = φ(y_i)``. The power is that of ``g'``, which is never negative for an odd
degree p, so ``|k_i|`` is meant there. For an even one the sign of the base is lost and taken as
positive; kernel values below zero, which no row has, count as zero.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from twofold.features import Polynomial
from twofold.preimages.points import FeaturePoints, PreImageMethod, PreImages
from twofold.rowwise import weighted_sums


@dataclass(frozen=True)
class PolynomialClosedForm(PreImageMethod):
    """Closed form for polynomial kernels, good where ψ nearly has a pre-image."""

    name: ClassVar[str] = "polynomial_closed_form"
    needs: ClassVar[str] = "a polynomial ('poly') kernel"

    def fits(self, kernel: Any) -> str | None:
        """Return why the method fits that kernel, None if it does not."""
        return "polynomial kernel, one sum of rows" if isinstance(kernel, Polynomial) else None

    def find(self, target: FeaturePoints) -> PreImages:
        """Return the pre-images of the points."""
        self.check(target.kernel)
        target = target.with_products()
        products = target.inner_products()
        degree = int(target.kernel.degree)
        power = 1 - 1 / degree
        sizes = np.abs(products) if degree % 2 else np.maximum(products, 0)
        lengths = np.maximum(target.squared_lengths(), 1e-300)
        Y = weighted_sums(target.alpha * sizes**power, target.rows) / lengths[:, None] ** power
        return PreImages.in_closed_form(target, Y)
