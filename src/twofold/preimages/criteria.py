"""What a pre-image minimises, with gradient and curvature, for many points at once.

For ``ψ = Σ_i α_i φ(y_i)`` and a row y (Arias 2007, eqs. 4.2, 4.3, 4.30 and appendix D):

* distance: ``E(y) = k(y, y) - 2 Σ_i α_i k(y, y_i)``, the squared distance but for a constant.
* collinearity: ``E(y) = -Σ_i α_i k(y, y_i) / √k(y, y)``, the cosine but for a constant factor.
* projection: ``E(y) = ||x(y) - x_ψ||²`` in kernel-PCA coordinates.

Every criterion also gives a *rate*, a guess at its curvature: ``-∇E / rate`` is the step to take.
With these rates the step is the fixed-point iteration of the literature,

* Gaussian, rate = 4 gamma Σ α_i k(y, y_i):    y ← Σ α_i k(y, y_i) y_i / Σ α_i k(y, y_i)   (4.9)
* g(y·y'), distance, rate = 2 g'(y·y):         y ← Σ α_i g'(y·y_i) y_i / g'(y·y)           (D.14)
* g(y·y'), collinearity, with S = Σ α_i g(y·y_i) and rate = S g'(y·y) / g(y·y)^3/2:
  y ← g(y·y) Σ α_i g'(y·y_i) y_i / (g'(y·y) S)                                              (D.6)

so that one descent serves them all. Where a rate would not be positive, one of absolute values
takes its place.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from twofold.array_types import FloatArray, IntArray
from twofold.engine.threads import count_threads
from twofold.features import RBF, Linear, Polynomial
from twofold.preimages.coordinate_sizes import CoordinateSizes
from twofold.preimages.coordinates import CoordinateMap
from twofold.preimages.points import FeaturePoints
from twofold.preimages.sparse_weights import SparseWeights, Sums
from twofold.rowwise import GaussianRows, MultipliedRows, in_tiles

# A sum of weighted kernel values below this share of the sum of their sizes is mostly
# cancellation: divided by it, a step would go anywhere.
_CANCELLED = 1e-3
# Sums of kernel values below this have lost their digits.
_UNDERFLOW = 1e-280


class Look(NamedTuple):
    """A criterion at n rows."""

    value: FloatArray
    gradient: FloatArray
    rate: FloatArray
    """Positive, or 0 where the criterion tells no direction."""

    @property
    def moves(self) -> FloatArray:
        """Steps ``-∇E / rate`` (n, D); zero where the rate is."""
        rate = np.where(self.rate > 0, self.rate, np.inf)
        return -self.gradient / rate[:, None]


class Criterion(ABC):
    """A function of one row for each of n points."""

    length: float
    """Size of a move that is neither small nor large."""
    longest: float = 2.0
    """No step is longer than this many lengths, or than this many of its own moves."""
    n_threads: int

    def look(self, Z: FloatArray, which: IntArray) -> Look:
        """Return the criterion of points `which` (a,) at rows Z (a, D).

        Rows are computed in tiles of one shape, so that each gets the same bits alone or among
        others and on any number of threads.
        """
        return Look(
            *in_tiles(lambda tile: self.look_at_tile(Z[tile], which[tile]), len(Z), self.n_threads)
        )

    @abstractmethod
    def look_at_tile(self, Z: FloatArray, which: IntArray) -> Look:
        """Return the same for at most ``TILE`` rows."""


@dataclass(frozen=True, eq=False)
class GaussianDistance(Criterion):
    """Distance under the kernel ``exp(-gamma ||y - y'||²)``, without ``k(y, y) = 1``.

    Without the 1, little values keep their digits; collinearity is the same criterion.
    """

    rows: FloatArray
    alpha: FloatArray
    gamma: float
    n_threads: int = 1

    @cached_property
    def length(self) -> float:  # type: ignore[override]
        """Width of the kernel."""
        return float(np.sqrt(0.5 / self.gamma))

    @cached_property
    def _sparse(self) -> SparseWeights:
        return SparseWeights(self.rows, self.alpha)

    @cached_property
    def _gaussians(self) -> GaussianRows:
        return GaussianRows(self.rows, self.gamma)

    def look_at_tile(self, Z: FloatArray, which: IntArray) -> Look:
        """Return the criterion of at most ``TILE`` rows."""
        total, size, pull = _by_weights(self._sparse, Z, which, self._few, self._many)
        rate = 4 * self.gamma * np.where(total > _CANCELLED * size, total, size)
        rate[size <= _UNDERFLOW] = 0
        return Look(-2 * total, -4 * self.gamma * pull, rate)

    def _few(self, Z: FloatArray, which: IntArray) -> Sums:
        return self._sparse.gaussian(Z, which, self.gamma)

    def _many(self, Z: FloatArray, which: IntArray) -> Sums:
        W = self._gaussians.values(Z)
        W *= self.alpha[which]
        return W.sum(axis=1), np.abs(W).sum(axis=1), self._gaussians.pull(W, Z)


@dataclass(frozen=True, eq=False)
class PolynomialCriterion(Criterion):
    """Distance or collinearity under ``k = g(y·y') = (gamma y·y' + coef0)^degree``."""

    rows: FloatArray
    alpha: FloatArray
    degree: int
    gamma: float
    coef0: float
    is_collinearity: bool = False
    n_threads: int = 1

    @cached_property
    def length(self) -> float:  # type: ignore[override]
        """Root mean square length of the rows."""
        return float(np.sqrt((self.rows**2).sum(axis=1).mean())) or 1.0

    def look_at_tile(self, Z: FloatArray, which: IntArray) -> Look:
        """Return the criterion of at most ``TILE`` rows."""
        p = self.degree
        with np.errstate(over="ignore", invalid="ignore"):  # the descent turns back from infinity
            S, size, sums = _by_weights(self._sparse, Z, which, self._few, self._many)
            pull = p * self.gamma * sums  # Σ α g'(y·y_i) y_i
            own = self.gamma * np.einsum("nd,nd->n", Z, Z) + self.coef0
            # At the origin g' vanishes, and the step would be infinite.
            slope = p * self.gamma * np.maximum(own, 1e-3 * self._mean_own) ** (p - 1)
            if self.is_collinearity:
                return self._collinearity(Z, own, S, pull, slope, size)
            value = own**p - 2 * S
            gradient = 2 * (p * self.gamma * own ** (p - 1))[:, None] * Z - 2 * pull
            return Look(value, gradient, 2 * slope)

    def _collinearity(
        self,
        Z: FloatArray,
        own: FloatArray,
        S: FloatArray,
        pull: FloatArray,
        slope: FloatArray,
        size: FloatArray,
    ) -> Look:
        g = np.maximum(own, 1e-150) ** self.degree
        value = -S / np.sqrt(g)
        exact_slope = self.degree * self.gamma * own ** (self.degree - 1)
        gradient = (S * exact_slope / g**1.5)[:, None] * Z - pull / np.sqrt(g)[:, None]
        rate = np.where(_CANCELLED * size < S, S, size) * slope / g**1.5
        return Look(value, gradient, rate)

    def _few(self, Z: FloatArray, which: IntArray) -> Sums:
        return self._sparse.polynomial(Z, which, self.degree, self.gamma, self.coef0)

    def _many(self, Z: FloatArray, which: IntArray) -> Sums:
        base = self.gamma * self._training.products(Z) + self.coef0
        W = self.alpha[which] * base ** (self.degree - 1)
        sums = self._training.sums(W)
        W *= base
        return W.sum(axis=1), np.abs(W).sum(axis=1), sums

    @cached_property
    def _sparse(self) -> SparseWeights:
        return SparseWeights(self.rows, self.alpha)

    @cached_property
    def _training(self) -> MultipliedRows:
        return MultipliedRows(self.rows)

    @cached_property
    def _mean_own(self) -> float:
        return self.gamma * self.length**2 + self.coef0


@dataclass(frozen=True, eq=False)
class ProjectionDistance(Criterion):
    """Squared distance in the coordinates of a map.

    It is zero in many places, most of them far from the data where there are more columns than
    coordinates: short steps end at a near one.
    """

    longest = 0.5

    map: CoordinateMap
    targets: FloatArray
    sizes: CoordinateSizes
    n_threads: int = 1

    @cached_property
    def length(self) -> float:  # type: ignore[override]
        """Distance over which coordinates change."""
        return self.sizes.length

    def look_at_tile(self, Z: FloatArray, which: IntArray) -> Look:
        """Return the criterion of at most ``TILE`` rows."""
        value, gradient = self.map.distance_and_gradient(Z, self.targets[which])
        return Look(value, gradient, self.sizes.rate(value, gradient))


def _by_weights(
    weights: SparseWeights,
    Z: FloatArray,
    which: IntArray,
    few: Callable[[FloatArray, IntArray], Sums],
    many: Callable[[FloatArray, IntArray], Sums],
) -> Sums:
    """Return the sums of points with few weights in one way and those of others in another."""
    is_few = weights.is_few[which]
    if is_few.all():
        return few(np.ascontiguousarray(Z), which)
    if not is_few.any():
        return many(Z, which)
    total, size, pull = np.empty(len(Z)), np.empty(len(Z)), np.empty(Z.shape)
    for part, work in ((is_few, few), (~is_few, many)):
        total[part], size[part], pull[part] = work(Z[part], which[part])
    return total, size, pull


def distance_criterion(target: FeaturePoints, *, collinearity: bool = False) -> Criterion:
    """Return the distance (or collinearity) to points under a Gaussian or polynomial kernel."""
    kernel, n_threads = target.kernel, count_threads(target.n_jobs)
    if isinstance(kernel, RBF):
        return GaussianDistance(target.rows, target.alpha, kernel.number(), n_threads)
    if isinstance(kernel, Linear):
        kernel = Polynomial(1)
    if isinstance(kernel, Polynomial):
        numbers = int(kernel.degree), float(kernel.gamma), float(kernel.coef0)
        return PolynomialCriterion(target.rows, target.alpha, *numbers, collinearity, n_threads)
    raise ValueError(
        f"The distance to a point of feature space has a gradient here for linear, polynomial and "
        f"Gaussian kernels only; got {kernel!r}. With a `map`, the projection has one for any."
    )


def projection_criterion(target: FeaturePoints) -> ProjectionDistance:
    """Return the distance to points in the coordinates of their map."""
    _, coordinate_map = target.need_map("The projection criterion")
    sizes = CoordinateSizes.of(coordinate_map, target.rows)
    n_threads = count_threads(target.n_jobs)
    return ProjectionDistance(coordinate_map, target.targets_on_map(), sizes, n_threads)
