"""Descent by limited-memory BFGS, for the distance, the angle, or kernel-PCA coordinates.

The projection criterion ``||x(y) - x_ψ||²`` (Arias 2007, eqs. 4.28-4.31) needs no kernel values at
new rows, only their coordinates. It therefore serves data-dependent kernels too, whose coordinates
are extended by regression. Where coordinates beyond those of ψ are zero in ψ, they count: they
keep the pre-image near the training rows.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import numpy as np

from twofold.features import RBF, Linear, Polynomial
from twofold.preimages.checks import check_search
from twofold.preimages.criteria import distance_criterion, projection_criterion
from twofold.preimages.points import FeaturePoints, PreImageMethod, PreImages
from twofold.preimages.searching import search
from twofold.preimages.straying import mark_strayed

_MEMORY = 6


@dataclass(frozen=True)
class Gradient(PreImageMethod):
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
    max_iter: int = 500
    restart: bool = True

    name: ClassVar[str] = "gradient"
    needs: ClassVar[str] = (
        "a linear, Gaussian ('rbf') or polynomial ('poly') kernel, or criterion='projection'"
    )

    def __post_init__(self) -> None:
        check_search(self, ("distance", "collinearity", "projection"))

    @property
    def needs_rest(self) -> bool:
        """The projection criterion asks for zero beyond the points' coordinates."""
        return self.criterion == "projection"

    def fits(self, kernel: Any) -> str | None:
        """Return why the method fits that kernel, None if it does not."""
        if self.criterion == "projection":
            return "coordinates of new rows are known, whatever the kernel"
        if isinstance(kernel, RBF):
            return "Gaussian kernel, the minima of its fixed-point iteration in fewer steps"
        if isinstance(kernel, (Polynomial, Linear)):
            return "kernel of inner products, whose gradient is known"
        return None

    def find(self, target: FeaturePoints) -> PreImages:
        """Return the pre-images of the points."""
        self.check(target.kernel)
        if self.criterion == "projection":
            found = search(
                projection_criterion(target),
                target,
                memory=_MEMORY,
                tol=self.tol,
                max_iter=self.max_iter,
                restart=self.restart,
            )
            start = target.rows[:1] if target.start is None else target.start
            start = np.broadcast_to(start, found.Y.shape)
            mark_strayed(target, start, found.Y, found.status)
            return found
        return search(
            distance_criterion(target, collinearity=self.criterion == "collinearity"),
            target,
            memory=_MEMORY,
            tol=self.tol,
            max_iter=self.max_iter,
            restart=self.restart,
        )
