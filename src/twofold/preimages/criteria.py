"""What a pre-image minimises, with gradient and curvature, for many points at once.

For ``ψ = Σ_i α_i φ(y_i)`` and a row y (Arias 2007, eqs. 4.2, 4.3, 4.30 and appendix D):

* distance: ``E(y) = k(y, y) - 2 Σ_i α_i k(y, y_i)``, the squared distance up to a constant.
* collinearity: ``E(y) = -Σ_i α_i k(y, y_i) / √k(y, y)``, the cosine up to a constant factor.
* projection: ``E(y) = ||x(y) - x_ψ||²`` in kernel-PCA coordinates.

Every criterion also gives a *rate*, a guess at its curvature: ``-∇E / rate`` is the step to take.
With these rates the step is the fixed-point iteration of the literature,

* Gaussian, rate = 4 gamma Σ α_i k(y, y_i):    y ← Σ α_i k(y, y_i) y_i / Σ α_i k(y, y_i)   (4.9)
* g(y·y'), distance, rate = 2 g'(y·y):         y ← Σ α_i g'(y·y_i) y_i / g'(y·y)           (D.14)
* g(y·y'), collinearity, with S = Σ α_i g(y·y_i) and rate = S g'(y·y) / g(y·y)^3/2:
  y ← g(y·y) Σ α_i g'(y·y_i) y_i / (g'(y·y) S)                                              (D.6)

so that one descent serves them all. Where a rate would not be positive, one of absolute values
takes its place.

Regression gives a point weights on its neighbours only, a few hundredths of all rows. Loops over
these take less time than products with all rows, which kernel PCA's full weights need.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple, TypeAlias

import numpy as np

from twofold.array_types import BoolArray, FloatArray, IntArray
from twofold.compiled import compiled
from twofold.features import RBF, Linear, Polynomial
from twofold.preimages.coordinates import CoordinateMap, CoordinateSizes
from twofold.preimages.points import FeaturePoints
from twofold.rowwise import GaussianRows, MultipliedRows, in_tiles

# A sum of weighted kernel values below this share of the sum of their sizes is mostly
# cancellation: divided by it, a step would go anywhere.
_CANCELLED = 1e-3
# Sums of kernel values below this have lost their digits.
_UNDERFLOW = 1e-280

# Sums (n,), the sums of the sizes of what is added up (n,), and weighted sums of rows (n, D).
Sums: TypeAlias = tuple[FloatArray, FloatArray, FloatArray]


class Look(NamedTuple):
    """A criterion at n rows."""

    value: FloatArray
    gradient: FloatArray
    rate: FloatArray  # positive, or 0 where the criterion tells no direction

    @property
    def moves(self) -> FloatArray:
        """Steps ``-∇E / rate`` (n, D); zero where the rate is."""
        rate = np.where(self.rate > 0, self.rate, np.inf)
        return -self.gradient / rate[:, None]


class Criterion(ABC):
    """A function of one row for each of n points."""

    length: float  # size of a move that is neither small nor large
    longest: float = 2.0  # no step is longer, in lengths or in moves of its own
    n_threads: int

    def look(self, Z: FloatArray, which: IntArray) -> Look:
        """Return the criterion of points `which` (a,) at rows Z (a, D)."""
        # In tiles of one shape, so that each row gets the same bits alone or among others and on
        # any number of threads.
        return Look(*in_tiles(lambda t: self._look(Z[t], which[t]), len(Z), self.n_threads))

    @abstractmethod
    def _look(self, Z: FloatArray, which: IntArray) -> Look:
        """Return the same for at most ``TILE`` rows."""


@dataclass(frozen=True, eq=False)
class _KernelCriterion(Criterion):
    """A criterion of weighted sums over the training rows."""

    rows: FloatArray
    alpha: FloatArray
    gamma: float
    n_threads: int

    @cached_property
    def _sparse(self) -> _SparseWeights:
        return _sparse_weights(self.rows, self.alpha)

    def _sums(self, Z: FloatArray, which: IntArray) -> Sums:
        """Return the sums of points with few weights in one way and those of others in another."""
        is_few = self._sparse.is_few[which]
        if is_few.all():
            return self._few(np.ascontiguousarray(Z), which)
        if not is_few.any():
            return self._many(Z, which)
        total, size, pull = np.empty(len(Z)), np.empty(len(Z)), np.empty(Z.shape)
        for part, work in ((is_few, self._few), (~is_few, self._many)):
            total[part], size[part], pull[part] = work(Z[part], which[part])
        return total, size, pull

    @abstractmethod
    def _few(self, Z: FloatArray, which: IntArray) -> Sums:
        """Return the sums by loops over the weights."""

    @abstractmethod
    def _many(self, Z: FloatArray, which: IntArray) -> Sums:
        """Return the sums by products with all rows."""


@dataclass(frozen=True, eq=False)
class GaussianDistance(_KernelCriterion):
    """Distance under the kernel ``exp(-gamma ||y - y'||²)``, without ``k(y, y) = 1``."""

    # Without the 1, little values keep their digits; collinearity is the same criterion.

    @cached_property
    def length(self) -> float:  # type: ignore[override]
        """Width of the kernel."""
        return float(np.sqrt(0.5 / self.gamma))

    @cached_property
    def _gaussians(self) -> GaussianRows:
        return GaussianRows(self.rows, self.gamma)

    def _look(self, Z: FloatArray, which: IntArray) -> Look:
        total, size, pull = self._sums(Z, which)
        rate = 4 * self.gamma * np.where(total > _CANCELLED * size, total, size)
        rate[size <= _UNDERFLOW] = 0
        return Look(-2 * total, -4 * self.gamma * pull, rate)

    def _few(self, Z: FloatArray, which: IntArray) -> Sums:
        return _sparse_sums(Z, which, self._sparse, self.gamma, 0.0, 0)

    def _many(self, Z: FloatArray, which: IntArray) -> Sums:
        W = self._gaussians.values(Z)
        W *= self.alpha[which]
        return W.sum(axis=1), np.abs(W).sum(axis=1), self._gaussians.pull(W, Z)


@dataclass(frozen=True, eq=False)
class PolynomialCriterion(_KernelCriterion):
    """Distance or collinearity under ``k = g(y·y') = (gamma y·y' + coef0)^degree``."""

    degree: int
    coef0: float
    is_collinearity: bool

    @cached_property
    def length(self) -> float:  # type: ignore[override]
        """Root mean square length of the rows."""
        return float(np.sqrt((self.rows**2).sum(axis=1).mean())) or 1.0

    @cached_property
    def _training(self) -> MultipliedRows:
        return MultipliedRows(self.rows)

    def _look(self, Z: FloatArray, which: IntArray) -> Look:
        p = self.degree
        with np.errstate(over="ignore", invalid="ignore"):  # the descent turns back from infinity
            S, size, sums = self._sums(Z, which)
            pull = p * self.gamma * sums  # Σ α g'(y·y_i) y_i
            own = self.gamma * np.einsum("nd,nd->n", Z, Z) + self.coef0
            slope = p * self.gamma * own ** (p - 1)
            # At the origin g' vanishes, and the step would be infinite.
            usual = self.gamma * self.length**2 + self.coef0
            steep = p * self.gamma * np.maximum(own, 1e-3 * usual) ** (p - 1)
            if not self.is_collinearity:
                return Look(own**p - 2 * S, 2 * slope[:, None] * Z - 2 * pull, 2 * steep)
            g = np.maximum(own, 1e-150) ** p
            gradient = (S * slope / g**1.5)[:, None] * Z - pull / np.sqrt(g)[:, None]
            rate = np.where(_CANCELLED * size < S, S, size) * steep / g**1.5
            return Look(-S / np.sqrt(g), gradient, rate)

    def _few(self, Z: FloatArray, which: IntArray) -> Sums:
        return _sparse_sums(Z, which, self._sparse, self.gamma, self.coef0, self.degree)

    def _many(self, Z: FloatArray, which: IntArray) -> Sums:
        base = self.gamma * self._training.products(Z) + self.coef0
        W = self.alpha[which] * base ** (self.degree - 1)
        sums = self._training.sums(W)
        W *= base
        return W.sum(axis=1), np.abs(W).sum(axis=1), sums


@dataclass(frozen=True, eq=False)
class ProjectionDistance(Criterion):
    """Squared distance in the coordinates of a map."""

    # It is zero in many places, most of them far from the data where there are more columns than
    # coordinates: short steps end at a near one.
    longest = 0.5

    map: CoordinateMap
    targets: FloatArray
    sizes: CoordinateSizes
    n_threads: int

    @property
    def length(self) -> float:  # type: ignore[override]
        """Distance over which coordinates change."""
        return self.sizes.length

    def _look(self, Z: FloatArray, which: IntArray) -> Look:
        value, gradient = self.map.distance_and_gradient(Z, self.targets[which])
        return Look(value, gradient, self.sizes.rate(value, gradient))


def distance_criterion(target: FeaturePoints, *, collinearity: bool = False) -> Criterion:
    """Return the distance (or collinearity) to points under a Gaussian or polynomial kernel."""
    kernel, rows, alpha, n_threads = target.kernel, target.rows, target.alpha, target.n_threads
    if isinstance(kernel, RBF):
        return GaussianDistance(rows, alpha, kernel.number(), n_threads)
    if isinstance(kernel, Linear):
        kernel = Polynomial(1)
    if isinstance(kernel, Polynomial):
        gamma, coef0, degree = float(kernel.gamma), float(kernel.coef0), int(kernel.degree)
        return PolynomialCriterion(rows, alpha, gamma, n_threads, degree, coef0, collinearity)
    raise ValueError(
        f"The distance to a point of feature space has a gradient here for linear, polynomial and "
        f"Gaussian kernels only; got {kernel!r}. With a `map`, the projection has one for any."
    )


def projection_criterion(target: FeaturePoints) -> ProjectionDistance:
    """Return the distance to points in the coordinates of their map."""
    _, coordinate_map = target.need_map("The projection criterion")
    sizes = CoordinateSizes.of(coordinate_map, target.rows)
    return ProjectionDistance(coordinate_map, target.targets_on_map(), sizes, target.n_threads)


class _SparseWeights(NamedTuple):
    """Rows, and the weights of those points that have few, one point after the other."""

    rows: FloatArray  # (m, D)
    is_few: BoolArray  # (n,)
    first: IntArray  # (n + 1,) where the weights of a point begin
    columns: IntArray  # the row of each weight
    weights: FloatArray


def _sparse_weights(rows: FloatArray, alpha: FloatArray) -> _SparseWeights:
    m, D = rows.shape
    counts = np.count_nonzero(alpha, axis=1)
    # A point's own weights decide, so that others beside it change nothing. The numbers weigh
    # a loop's additions and exponentials against those of matrix products.
    is_few = counts * (D + 10) <= m * (D / 4 + 8)
    few = np.flatnonzero(is_few)
    points, columns = np.nonzero(alpha[few])
    first = np.concatenate([[0], np.cumsum(np.where(is_few, counts, 0))]).astype(np.int64)
    return _SparseWeights(rows, is_few, first, columns, alpha[few[points], columns])


@compiled
def _sparse_sums(
    Z: FloatArray, which: IntArray, sparse: _SparseWeights, gamma: float, coef0: float, degree: int
) -> Sums:
    """Return the sums of a Gaussian (degree 0) or polynomial kernel."""
    # Gaussian: Σ w, Σ |w| and Σ w (y_i - z) of w = α_i exp(-gamma ||z - y_i||²); polynomial: Σ w b,
    # Σ |w b| and Σ w y_i of w = α_i b^(p-1), b the base.
    rows, _, first, columns, weights = sparse
    origin = np.zeros_like(Z) if degree else Z
    n, D = Z.shape
    total, size, pull = np.zeros(n), np.zeros(n), np.zeros((n, D))
    for j in range(n):
        for e in range(first[which[j]], first[which[j] + 1]):
            i, weight, product = columns[e], weights[e], 0.0
            if degree == 0:
                for d in range(D):
                    product += (rows[i, d] - Z[j, d]) * (rows[i, d] - Z[j, d])
                weight *= math.exp(-gamma * product)
                value = weight
            else:
                for d in range(D):
                    product += Z[j, d] * rows[i, d]
                base = gamma * product + coef0
                for _ in range(degree - 1):
                    weight *= base
                value = weight * base
            total[j] += value
            size[j] += abs(value)
            for d in range(D):
                pull[j, d] += weight * (rows[i, d] - origin[j, d])
    return total, size, pull
