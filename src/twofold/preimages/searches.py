"""Searches for pre-images: fixed-point iterations, and descent by limited-memory BFGS.

**FixedPoint**, with a line search where the iterations would go astray. Gaussian kernel (Mika and
others 1999; Arias 2007, eq. 4.9):

    y ← Σ_i α_i k(y, y_i) y_i / Σ_i α_i k(y, y_i)

It is a step down the gradient of the distance, of size ``1 / (4 gamma Σ_i α_i k(y, y_i))``, and so
fails where the denominator is negative, or tiny by cancellation: a step by absolute values takes
its place. Polynomial kernels, ``k = g(y·y')``, have two such iterations (eqs. D.14 and D.6), for
the distance and for the angle. The former can jump to and fro between two points for ever. Every
step is therefore shortened until the criterion falls.

**Gradient**, for the distance, the angle, or kernel-PCA coordinates. The projection criterion
``||x(y) - x_ψ||²`` (Arias 2007, eqs. 4.28-4.31) needs no kernel values at new rows, only their
coordinates. It therefore serves data-dependent kernels too, whose coordinates are extended by
regression. Where coordinates beyond those of ψ are zero in ψ, they count: they keep the pre-image
near the training rows.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import numpy as np

from twofold.features import RBF, Linear, Polynomial
from twofold.preimages.criteria import distance_criterion, projection_criterion
from twofold.preimages.descent import mark_strayed, search
from twofold.preimages.points import FeaturePoints, Iterative, PreImages


@dataclass(frozen=True)
class _Search(Iterative):
    """Descent of a criterion that is told by its name."""

    criterion: str = "distance"
    tol: float = 1e-6
    max_iter: int = 500
    restart: bool = True

    _criteria: ClassVar[tuple[str, ...]] = ("distance", "collinearity")
    _memory: ClassVar[int] = 0

    def __post_init__(self) -> None:
        if self.criterion not in self._criteria:
            raise ValueError(
                f"`criterion` must be one of {self._criteria}; got {self.criterion!r}."
            )
        super().__post_init__()

    def find(self, target: FeaturePoints) -> PreImages:
        """Return the pre-images of the points."""
        self.check(target.kernel)
        is_projection = self.criterion == "projection"
        found = search(
            projection_criterion(target)
            if is_projection
            else distance_criterion(target, collinearity=self.criterion == "collinearity"),
            target,
            memory=self._memory,
            tol=self.tol,
            max_iter=self.max_iter,
            restart=self.restart,
        )
        if is_projection:
            start = target.rows[:1] if target.start is None else target.start
            mark_strayed(target, np.broadcast_to(start, found.Y.shape), found.Y, found.status)
        return found


@dataclass(frozen=True)
class FixedPoint(_Search):
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

    name = "fixed_point"
    needs = "a Gaussian ('rbf') or polynomial ('poly') kernel"
    suits: ClassVar = {
        RBF: "Gaussian kernel, where each step is a weighted mean of rows",
        Polynomial: "polynomial kernel, where each step is a weighted sum of rows",
    }


@dataclass(frozen=True)
class Gradient(_Search):
    """Descent of a criterion by limited-memory BFGS with a line search.

    Parameters
    ----------
    criterion : {"distance", "collinearity", "projection"}
        What to minimise. The projection takes any kernel; it needs `coordinates` and a `map`.
    tol : float
        A row has converged once the step that the criterion itself proposes is below this share
        of its length scale.
    max_iter : int
        Most evaluations for each row.
    restart : bool
        Whether a search that ends farther off than the nearest training row goes on from there.
    """

    criterion: Literal["distance", "collinearity", "projection"] = "distance"
    tol: float = 1e-5

    name = "gradient"
    needs = "a linear, Gaussian ('rbf') or polynomial ('poly') kernel, or criterion='projection'"
    suits: ClassVar = {
        RBF: "Gaussian kernel, the minima of its fixed-point iteration in fewer steps",
        Polynomial: "kernel of inner products, whose gradient is known",
        Linear: "kernel of inner products, whose gradient is known",
    }
    _criteria: ClassVar[tuple[str, ...]] = ("distance", "collinearity", "projection")
    _memory: ClassVar[int] = 6

    @property
    def needs_rest(self) -> bool:
        """The projection criterion asks for zero beyond the points' coordinates."""
        return self.criterion == "projection"

    def fits(self, kernel: Any) -> str | None:
        """Return why the method fits that kernel, None if it does not."""
        if self.criterion == "projection":
            return "coordinates of new rows are known, whatever the kernel"
        return super().fits(kernel)
