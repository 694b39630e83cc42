"""Fixed-point iterations, with a line search where they would go astray.

Gaussian kernel (Mika and others 1999; Arias 2007, eq. 4.9):

    y ← Σ_i α_i k(y, y_i) y_i / Σ_i α_i k(y, y_i)

It is a step down the gradient of the distance, of size ``1 / (4 gamma Σ_i α_i k(y, y_i))``, and so
fails where the denominator is negative, or tiny by cancellation: a step by absolute values takes
its place. Polynomial kernels, ``k = g(y·y')``, have two such iterations (eqs. D.14 and D.6), for
the distance and for the angle. The former can jump to and fro between two points for ever. Every
step is therefore shortened until the criterion falls.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Literal

from twofold.features import RBF, Polynomial
from twofold.preimages.checks import check_search
from twofold.preimages.criteria import distance_criterion
from twofold.preimages.points import FeaturePoints, PreImageMethod, PreImages
from twofold.preimages.searching import search


@dataclass(frozen=True)
class FixedPoint(PreImageMethod):
    """Guarded fixed-point iteration.

    Parameters
    ----------
    criterion : {"distance", "collinearity"}
        What a fixed point is stationary for; the same for a Gaussian kernel.
    tol : float
        A row has converged once its step is below this share of the kernel's width (Gaussian) or
        of the rows' root mean square length (polynomial).
    max_iter : int
        Most evaluations for each row.
    restart : bool
        Whether a search that ends farther off than the nearest training row goes on from there.
    """

    criterion: Literal["distance", "collinearity"] = "distance"
    tol: float = 1e-6
    max_iter: int = 500
    restart: bool = True

    name: ClassVar[str] = "fixed_point"
    needs: ClassVar[str] = "a Gaussian ('rbf') or polynomial ('poly') kernel"

    def __post_init__(self) -> None:
        check_search(self, ("distance", "collinearity"))

    def fits(self, kernel: Any) -> str | None:
        """Return why the method fits that kernel, None if it does not."""
        if isinstance(kernel, RBF):
            return "Gaussian kernel, where each step is a weighted mean of rows"
        if isinstance(kernel, Polynomial):
            return "polynomial kernel, where each step is a weighted sum of rows"
        return None

    def find(self, target: FeaturePoints) -> PreImages:
        """Return the pre-images of the points."""
        self.check(target.kernel)
        criterion = distance_criterion(target, collinearity=self.criterion == "collinearity")
        return search(
            criterion,
            target,
            memory=0,
            tol=self.tol,
            max_iter=self.max_iter,
            restart=self.restart,
        )
