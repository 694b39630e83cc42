"""Kernel-PCA coordinates of any row, as a sum of Gaussians, with derivatives.

With m rows ``y_i`` of training data, a row z has the r coordinates

    x(z) = Gᵀ h(z) + g0,    h_i(z) = exp(-||z - y_i||² / (2 s²)),

and from it follow the Jacobian and the distance to a point ``x_ψ`` of feature space:

    dx_j / dz = (1/s²) Σ_i G_ij h_i(z) (y_i - z)
    D(z)      = ||x(z) - x_ψ||²,    dD/dz = (2/s²) Σ_i c_i h_i(z) (y_i - z),    c = G (x(z) - x_ψ)

Two ways lead to G and g0:

* Kernel ridge regression of the training coordinates X (m, r), with a bias:

      [ G ; g0ᵀ ] = [ H + ridge I , 1 ; 1ᵀ , 0 ]⁻¹ [ X ; 0ᵀ ],    H_ij = h_j(y_i).

  The regression is a weighted mean of X with weights that sum to one. Therefore extending all
  columns of a kernel matrix by ridge regression, centring them and projecting on the principal
  axes gives exactly this map: the kernel itself need not be extended, and nothing is divided by
  small eigenvalues.
* The Gaussian kernel's own projection, ``Aᵀ (k(z) - mean row)``, which has this form already.

Arias 2007, eqs. 3.27-3.29, 4.30-4.31 and appendix F, with its misprints corrected.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple, Self

import numpy as np
from scipy import linalg

from twofold.array_types import FloatArray
from twofold.checks.parameters import check_positive
from twofold.engine.threads import slices
from twofold.neighborhoods import nearest
from twofold.rowwise import TILE, GaussianRows, aligned

# Coordinates whose derivatives are taken in one product.
_TOGETHER = 16
# The neighbour whose distance is the scale of neighbourhoods throughout Arias 2007.
NEIGHBOR = 10
# Rows that tell sizes well enough.
_ROWS_FOR_SIZES = 500
# A distance that changes by less than this share of itself over one length changes by rounding.
_FLAT = 1e-14


class Parts(NamedTuple):
    """What one step of a search for pre-images needs at n rows."""

    values: FloatArray  # coordinates (n, r)
    gradient: FloatArray  # of the squared distance to the targets, by the row (n, D)
    jacobian: FloatArray  # derivatives of the first q coordinates (n, q, D)


class CoordinateMap(ABC):
    """Coordinates of any row, differentiable: what a search for pre-images works on."""

    @property
    @abstractmethod
    def n_coordinates(self) -> int:
        """Number r of coordinates."""

    @abstractmethod
    def values(self, Z: FloatArray) -> FloatArray:
        """Return the coordinates (n, r) of rows Z (n, D)."""

    @abstractmethod
    def parts(self, Z: FloatArray, targets: FloatArray, q: int) -> Parts:
        """Return coordinates, gradient of the distance and derivatives of q coordinates at once."""

    def jacobian(self, Z: FloatArray, q: int | None = None) -> FloatArray:
        """Return the derivatives (n, q, D) of the first q coordinates, all if None."""
        r = self.n_coordinates
        return self.parts(Z, np.zeros((len(Z), r)), r if q is None else q).jacobian

    def distance_and_gradient(
        self, Z: FloatArray, targets: FloatArray
    ) -> tuple[FloatArray, FloatArray]:
        """Return the squared distances (n,) of x(Z) to targets (n, r), and their gradients."""
        X, gradient, _ = self.parts(Z, targets, 0)
        return ((X - targets) ** 2).sum(axis=1), gradient


@dataclass(frozen=True, eq=False)
class GaussianCoordinates(CoordinateMap):
    """The map ``x(z) = Gᵀ h(z) + g0``.

    >>> Y = np.linspace(0, 3, 7)[:, None]
    >>> x = GaussianCoordinates.by_ridge(Y, Y - 1.5, scale=1.0, ridge=1e-3)
    >>> float(x.values(np.array([[1.25]]))[0, 0].round(1))
    -0.2
    """

    rows: FloatArray  # (m, D) centres of the Gaussians
    scale: float  # their width s, above 0
    coefficients: FloatArray  # G (m, r)
    offset: FloatArray  # g0 (r,), the coordinates of a row far from all others

    def __post_init__(self) -> None:
        m, r = np.shape(self.coefficients)
        if np.ndim(self.rows) != 2 or len(self.rows) != m or np.shape(self.offset) != (r,):
            raise ValueError(
                "Expected rows (m, D), coefficients (m, r) and an offset (r,); got shapes "
                f"{np.shape(self.rows)}, {np.shape(self.coefficients)}, {np.shape(self.offset)}."
            )
        check_positive("scale", self.scale)

    @classmethod
    def by_ridge(cls, rows: FloatArray, X: FloatArray, scale: float, ridge: float) -> Self:
        """Return the kernel ridge regression of coordinates X (m, r) at rows (m, D)."""
        rows = np.asarray(rows, dtype=np.float64)
        # About their mean, where ||a||² + ||b||² - 2 a·b loses fewer digits of small distances.
        centred = rows - rows.mean(axis=0)
        with np.errstate(over="ignore"):  # infinitely far is far enough
            squares = (centred * centred).sum(axis=1)
            sq_dists = squares[:, None] + squares - 2 * centred @ centred.T
        H = np.exp(np.maximum(sq_dists, 0) / (-2 * scale**2))
        solution = solve_ridge(H, np.asarray(X, dtype=np.float64), ridge)
        return cls(rows, float(scale), solution[:-1], solution[-1])

    @classmethod
    def of_kernel(
        cls, rows: FloatArray, axes: FloatArray, mean_row: FloatArray, gamma: float
    ) -> Self:
        """Return the projection of ``exp(-gamma ||y - y'||²)`` on its principal axes (m, r)."""
        # Columns of a centred kernel's axes sum to zero, so of the mean only the mean row is
        # needed.
        rows, axes = (np.asarray(array, dtype=np.float64) for array in (rows, axes))
        return cls(rows, float(np.sqrt(0.5 / gamma)), axes, -mean_row @ axes)

    @property
    def n_coordinates(self) -> int:
        """Number r of coordinates."""
        return int(self.coefficients.shape[1])

    def values(self, Z: FloatArray) -> FloatArray:
        """Return the coordinates (n, r) of rows Z (n, D)."""
        X = np.empty((len(Z), self.n_coordinates))
        for place, _, h in self._tiles(Z, 0):
            X[place] = self._coordinates(h, place)
        return X

    def parts(self, Z: FloatArray, targets: FloatArray, q: int) -> Parts:
        """Return all three, for which the Gaussians are computed once."""
        n, D = np.shape(Z)
        found = Parts(np.empty((n, self.n_coordinates)), np.empty((n, D)), np.empty((n, q, D)))
        for place, centred, h in self._tiles(Z, q):
            X = self._coordinates(h, place)
            gaps = aligned(2 * (X - targets[place]), len(centred))
            pull = gaps @ self._aligned_coefficients.T
            found.values[place] = X
            found.gradient[place] = self._towards_rows(pull[None], centred, h)[0, : len(X)]
            for some in slices(q, _TOGETHER):
                steps = self._towards_rows(self._pulls[some, None], centred, h)
                found.jacobian[place, some] = steps[:, : len(X)].swapaxes(0, 1)
        return found

    def _tiles(self, Z: FloatArray, q: int) -> Iterator[tuple[slice, FloatArray, FloatArray]]:
        """Give tiles of rows: their places, themselves from the mean, and their Gaussians."""
        # With derivatives these are large products with few rows already; in a search that most
        # rows have left, few rows waste less. Sizes must depend on nothing but q, or bits would.
        size = TILE if q == 0 else TILE // 2 if q <= 2 else TILE // 4
        for place in slices(len(Z), size):
            yield place, *self._gaussians.tile(Z[place], size)

    def _coordinates(self, h: FloatArray, place: slice) -> FloatArray:
        X = (h @ self._aligned_coefficients)[: place.stop - place.start, : self.n_coordinates]
        return np.asarray(X + self.offset)

    def _towards_rows(self, pulls: FloatArray, centred: FloatArray, h: FloatArray) -> FloatArray:
        """Return ``Σ_i pull_i h_i(z) (y_i - z) / s²`` (k, rows of a tile, D) for k pulls."""
        # Σ W y_i - z Σ W: one product with the rows in place of all differences y_i - z.
        W = h * pulls
        sums = (W.reshape(-1, W.shape[2]) @ self._gaussians.rows.aligned).reshape(*W.shape[:2], -1)
        sums -= W.sum(axis=2, keepdims=True) * centred
        return np.asarray(sums[:, :, : self.rows.shape[1]] / self.scale**2)

    @cached_property
    def _gaussians(self) -> GaussianRows:
        return GaussianRows(np.asarray(self.rows), 0.5 / self.scale**2)

    @cached_property
    def _aligned_coefficients(self) -> FloatArray:
        # The rows that fill up are zero, and their Gaussians count for nothing.
        return aligned(self.coefficients)

    @cached_property
    def _pulls(self) -> FloatArray:
        return np.ascontiguousarray(self._aligned_coefficients.T)


def solve_ridge(H: FloatArray, X: FloatArray, ridge: float) -> FloatArray:
    """Return coefficients and, in the last row, the bias of the ridge regression of X (m, r)."""
    # The bias is eliminated first: with N = (H + ridge I)⁻¹ it is 1ᵀ N X / 1ᵀ N 1.
    factor = factor_ridge(H, ridge)
    solved = linalg.cho_solve(factor, np.column_stack([X, np.ones(len(H))]))
    bias = solved[:, :-1].sum(axis=0) / solved[:, -1].sum()
    return np.vstack([solved[:, :-1] - np.outer(solved[:, -1], bias), bias])


def factor_ridge(H: FloatArray, ridge: float) -> tuple[FloatArray, bool]:
    """Return the Cholesky factor of H + ridge I; raise where the ridge is too small for that."""
    M = H.copy()
    M.flat[:: len(H) + 1] += ridge
    try:
        L, lower = linalg.cho_factor(M, lower=True, overwrite_a=True)
    except linalg.LinAlgError as error:
        raise ValueError(
            f"A ridge of {ridge:.3g} leaves the {len(H)} x {len(H)} system of the kernel ridge "
            "regression without a solution in double precision. Use a larger ridge, such as 0.01, "
            "or a smaller scale."
        ) from error
    return L, bool(lower)


@dataclass(frozen=True)
class CoordinateSizes:
    """How far coordinates reach: sizes by which steps of a search in them are measured."""

    length: float  # distance in data space over which coordinates change
    size: float  # root mean square length of the rows' coordinates

    @classmethod
    def of(cls, coordinate_map: CoordinateMap, rows: FloatArray) -> CoordinateSizes:
        """Return the sizes of a map with training rows (m, D)."""
        some = some_rows(rows)
        if isinstance(coordinate_map, GaussianCoordinates):
            length = float(coordinate_map.scale)
        else:
            length = float(neighbor_distances(some, rows, NEIGHBOR + 1).mean()) or 1.0
        X = coordinate_map.values(some)
        return cls(length, float(np.sqrt((X**2).sum(axis=1).mean())) or 1.0)

    def rate(self, value: FloatArray, gradient: FloatArray) -> FloatArray:
        """Return a guess at the curvature of a squared distance E, 0 where it is flat."""
        # It is the curvature along the residual, 2 ||Jᵀ u||² = ||∇E||² / (2 E), and that of
        # coordinates of typical size that change over one length.
        squares = np.einsum("nd,nd->n", gradient, gradient)
        at_least = np.maximum(value, 1e-30 * self.size**2)
        # Far from all rows the map is constant, and nothing tells where to go.
        felt = np.sqrt(squares) * self.length > _FLAT * at_least
        rate = squares / (2 * at_least) + 2 * np.sqrt(at_least) * self.size / self.length**2
        return np.where(felt, rate, 0.0)


def some_rows(rows: FloatArray) -> FloatArray:
    """Return a few hundred of the rows, as many as tell sizes."""
    return rows[:: -(-len(rows) // _ROWS_FOR_SIZES)]


def neighbor_distances(Z: FloatArray, rows: FloatArray, number: int) -> FloatArray:
    """Return the distance (n,) of each of Z to the row that is its neighbour of that number."""
    # A training row is its own first neighbour. With fewer rows the last of them counts.
    found = nearest.nearest_rows(Z, rows, min(number, len(rows)))
    return nearest.neighbor_distances(Z, rows, found[:, -1:])[:, 0]
