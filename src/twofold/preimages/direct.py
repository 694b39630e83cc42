"""One step of the fixed point, with kernel values of ψ for those of its pre-image.

At an exact pre-image y of a Gaussian kernel's ψ, ``k(y, y_i)`` is known without y:

    "products" (Arias, Randall and Sapiro 2007, eq. 4.14):   k_i = <ψ, φ(y_i)>
    "distances" (Dambreville and others 2006, eq. 4.12):     k_i = ½ (2 - ||ψ - φ(y_i)||²)
                                                                 = ½ (1 - ||ψ||²) + <ψ, φ(y_i)>

and ``y = Σ_i α_i k_i y_i / Σ_i α_i k_i``. As ``Σ α_i = 1`` the denominators are ``||ψ||²`` and
``½ (1 + ||ψ||²)``, never zero. If ψ is scaled to length one first, as features of a Gaussian kernel
have, "distances" becomes "products", which does not depend on the length of ψ.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import numpy as np

from twofold.features import RBF
from twofold.preimages.points import FeaturePoints, PreImageMethod, PreImages
from twofold.rowwise import weighted_sums


@dataclass(frozen=True)
class Direct(PreImageMethod):
    """Closed form for the Gaussian kernel, good where ψ nearly has a pre-image.

    Parameters
    ----------
    values : {"products", "distances"}
        How kernel values of the pre-image are guessed.
    """

    values: Literal["products", "distances"] = "products"

    name: ClassVar[str] = "direct"
    needs: ClassVar[str] = "a Gaussian ('rbf') kernel"

    def __post_init__(self) -> None:
        if self.values not in ("products", "distances"):
            raise ValueError(f"`values` must be 'products' or 'distances'; got {self.values!r}.")

    def fits(self, kernel: Any) -> str | None:
        """Return why the method fits that kernel, None if it does not."""
        return "Gaussian kernel, one weighted mean of rows" if isinstance(kernel, RBF) else None

    def find(self, target: FeaturePoints) -> PreImages:
        """Return the pre-images of the points."""
        self.check(target.kernel)
        target = target.with_products()
        products = target.inner_products()
        W = target.alpha * products
        if self.values == "distances":
            W += 0.5 * (1 - target.squared_lengths()[:, None]) * target.alpha
        Y = weighted_sums(W, target.rows) / np.maximum(W.sum(axis=1, keepdims=True), 1e-300)
        return PreImages.in_closed_form(target, Y)
