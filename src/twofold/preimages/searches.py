"""Searches for pre-images: fixed-point iterations, and descent by limited-memory BFGS.

**FixedPoint**, with a line search where the iterations would go astray. Gaussian kernel (Mika and
others 1999; Arias 2007, eq. 4.9):

    y ← Σ_i α_i k(y, y_i) y_i / Σ_i α_i k(y, y_i)

It is a step down the gradient of the distance, of size ``1 / (4 gamma Σ_i α_i k(y, y_i))``, and so
fails where the denominator is negative, or tiny by cancellation: a step by absolute values takes
its place. Polynomial kernels, ``k = g(y·y')``, have two such iterations (eqs. D.14 and D.6), for
the distance and for the angle. The former can jump back and forth between two points forever. Every
step is therefore shortened until the criterion falls.

**Gradient**, for the distance, the angle, or kernel-PCA coordinates. The projection criterion
``||x(y) - x_ψ||²`` (Arias 2007, eqs. 4.28-4.31) needs no kernel values at new rows, only their
coordinates. It therefore serves data-dependent kernels too, whose coordinates are extended by
regression. Where coordinates beyond those of ψ are zero in ψ, they count: they keep the pre-image
near the training rows.
"""

from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import numpy as np

from twofold.array_types import FloatArray, IntArray
from twofold.checks.parameters import check_choice
from twofold.features import RBF, Linear, Polynomial
from twofold.preimages.criteria import Criterion, distance_criterion, projection_criterion
from twofold.preimages.descent import Descent, mark_strayed
from twofold.preimages.points import FeaturePoints, Iterative, PreImages
from twofold.rowwise import weighted_sums


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
        check_choice("criterion", self.criterion, self._criteria)
        super().__post_init__()

    def find(self, target: FeaturePoints) -> PreImages:
        """Return the pre-images of the points."""
        self.check(target.kernel)
        if self.criterion != "projection":
            is_collinearity = self.criterion == "collinearity"
            return self._search(distance_criterion(target, collinearity=is_collinearity), target)
        found = self._search(projection_criterion(target), target)
        start = target.rows[:1] if target.start is None else target.start
        mark_strayed(target, np.broadcast_to(start, found.Y.shape), found.Y, found.status)
        return found

    def _search(self, criterion: Criterion, target: FeaturePoints) -> PreImages:
        """Return the ends of descents of a criterion from the start of each point."""
        # With `restart` the nearest row is a second start: for points without a start, and for
        # those that end farther off than it.
        limits = self._memory, self.tol, self.max_iter

        def descend(points: IntArray, start: FloatArray, fallback: FloatArray | None) -> Descent:
            return Descent(criterion, points, start, *limits, fallback).run()

        n = len(target.alpha)
        everyone = np.arange(n)
        nearest = target.rows[target.distances_to_rows().argmin(axis=1)]
        start = weighted_sums(target.alpha, target.rows) if target.start is None else target.start
        if target.start is None and self.restart:  # side by side
            starts, fallback = np.concatenate([start, nearest]), np.concatenate([nearest, nearest])
            both = descend(np.tile(everyone, 2), starts, fallback)
            place = everyone + n * ~(both.value[:n] <= both.value[n:])
            n_iter = both.n_iter[:n] + both.n_iter[n:]
            Z, status = both.Z[place], both.status[place]
        else:
            found = descend(everyone, start, nearest)
            Z, status, n_iter = found.Z, found.status, found.n_iter
            if self.restart:
                above = ~(found.value <= criterion.look(nearest, everyone).value)
                again = np.flatnonzero(above)
                other = descend(again, nearest[again], None)
                better = ~(found.value[again] <= other.value)
                Z[again[better]], status[again[better]] = other.Z[better], other.status[better]
                n_iter[again] += other.n_iter
        return PreImages(Z, status, n_iter, target.distances_to(Z))


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
        Maximum number of evaluations for each row.
    restart : bool
        Whether a search that ends farther away than the nearest training row starts again from that
        row.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from twofold import KernelPCA
    >>> from twofold.preimages import FixedPoint
    >>> model = KernelPCA(2, kernel="rbf", preimage=FixedPoint()).fit(load_iris().data)
    >>> model.inverse_transform(model.embedding_[:2]).shape
    (2, 4)
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
    max_iter, restart : int, bool
        As for :class:`FixedPoint`.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from twofold import KernelPCA
    >>> from twofold.preimages import Gradient
    >>> model = KernelPCA(2, kernel="rbf", preimage=Gradient("collinearity")).fit(load_iris().data)
    >>> model.inverse_transform(model.embedding_[:2]).shape
    (2, 4)
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
