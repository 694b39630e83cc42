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

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple, Protocol, Self

import numpy as np
from scipy import linalg

from twofold.array_types import FloatArray

# Rows computed at a time: enough to keep matrix products busy, few enough to waste on one row.
TILE = 64
# Sizes of matrices are filled up to multiples of this; the blocks of matrix libraries divide it.
_ALIGNED = 16
# Coordinates whose derivatives are taken in one product.
_TOGETHER = 16


class Parts(NamedTuple):
    """What one step of a search for pre-images needs at n rows."""

    values: FloatArray
    """Coordinates (n, r)."""
    gradient: FloatArray
    """Gradient (n, D) of the squared distance to the targets, by the row."""
    jacobian: FloatArray
    """Derivatives (n, q, D) of the first q coordinates."""


class CoordinateMap(Protocol):
    """Coordinates of any row, differentiable: what a search for pre-images works on."""

    @property
    def n_coordinates(self) -> int:
        """Number r of coordinates."""
        ...

    def values(self, Z: FloatArray) -> FloatArray:
        """Return the coordinates (n, r) of rows Z (n, D)."""
        ...

    def jacobian(self, Z: FloatArray, q: int | None = None) -> FloatArray:
        """Return the derivatives (n, q, D) of the first q coordinates, all if None."""
        ...

    def distance_and_gradient(
        self, Z: FloatArray, targets: FloatArray
    ) -> tuple[FloatArray, FloatArray]:
        """Return the squared distances (n,) of x(Z) to targets (n, r), and their gradients."""
        ...

    def parts(self, Z: FloatArray, targets: FloatArray, q: int) -> Parts:
        """Return coordinates, gradient of the distance and derivatives of q coordinates at once."""
        ...


@dataclass(frozen=True, eq=False)
class GaussianCoordinates:
    """The map ``x(z) = Gᵀ h(z) + g0``.

    Parameters
    ----------
    rows : ndarray of shape (m, D)
        Centres of the Gaussians.
    scale : float
        Width s, above 0.
    coefficients : ndarray of shape (m, r)
        G.
    offset : ndarray of shape (r,)
        g0, the coordinates of a row far from all others.

    Examples
    --------
    >>> import numpy as np
    >>> from twofold.preimages.coordinates import GaussianCoordinates
    >>> Y = np.linspace(0, 3, 7)[:, None]
    >>> x = GaussianCoordinates.by_ridge(Y, Y - 1.5, scale=1.0, ridge=1e-3)
    >>> float(x.values(np.array([[1.25]]))[0, 0].round(1))
    -0.2
    """

    rows: FloatArray
    scale: float
    coefficients: FloatArray
    offset: FloatArray

    def __post_init__(self) -> None:
        m, r = np.shape(self.coefficients)
        if np.ndim(self.rows) != 2 or len(self.rows) != m or np.shape(self.offset) != (r,):
            raise ValueError(
                "Expected rows (m, D), coefficients (m, r) and an offset (r,); got shapes "
                f"{np.shape(self.rows)}, {np.shape(self.coefficients)}, {np.shape(self.offset)}."
            )
        if not 0 < self.scale < np.inf:
            raise ValueError(f"`scale` must be a finite number above 0; got {self.scale!r}.")

    @classmethod
    def by_ridge(
        cls,
        rows: FloatArray,
        X: FloatArray,
        scale: float,
        ridge: float,
        weights: FloatArray | None = None,
    ) -> Self:
        """Return the kernel ridge regression of coordinates X (m, r) at rows (m, D).

        A row of weight 2 counts like two equal rows.
        """
        rows = np.asarray(rows, dtype=np.float64)
        H = gaussians(rows, rows, scale)
        solution = solve_ridge(H, np.asarray(X, dtype=np.float64), ridge, weights)
        return cls(rows, float(scale), solution[:-1], solution[-1])

    @classmethod
    def of_kernel(
        cls, rows: FloatArray, axes: FloatArray, mean_row: FloatArray, gamma: float
    ) -> Self:
        """Return the projection of the kernel ``exp(-gamma ||y - y'||²)`` on its principal axes.

        Parameters
        ----------
        rows : ndarray of shape (m, D)
            Training rows.
        axes : ndarray of shape (m, r)
            Coefficients of the axes, columns that sum to zero (those of a centred kernel).
        mean_row : ndarray of shape (m,)
            Weighted mean of the rows of the kernel matrix.
        gamma : float
            Inverse squared width.
        """
        rows, axes = (np.asarray(array, dtype=np.float64) for array in (rows, axes))
        return cls(rows, float(np.sqrt(0.5 / gamma)), axes, -mean_row @ axes)

    @property
    def n_coordinates(self) -> int:
        """Number r of coordinates."""
        return int(self.coefficients.shape[1])

    def first(self, r: int) -> GaussianCoordinates:
        """Return the map to the first r coordinates."""
        return GaussianCoordinates(self.rows, self.scale, self.coefficients[:, :r], self.offset[:r])

    def values(self, Z: FloatArray) -> FloatArray:
        """Return the coordinates (n, r) of rows Z (n, D)."""
        X = np.empty((len(Z), self.n_coordinates))
        for tile in self._tiles(Z):
            X[tile.place] = self._coordinates(tile)
        return X

    def jacobian(self, Z: FloatArray, q: int | None = None) -> FloatArray:
        """Return the derivatives (n, q, D) of the first q coordinates, all if None."""
        q = self.n_coordinates if q is None else q
        J = np.empty((len(Z), q, self.rows.shape[1]))
        for tile in self._tiles(Z, _rows_at_a_time(q)):
            self._fill_jacobian(J[tile.place], tile)
        return J

    def distance_and_gradient(
        self, Z: FloatArray, targets: FloatArray
    ) -> tuple[FloatArray, FloatArray]:
        """Return the squared distances (n,) of x(Z) to targets (n, r), and their gradients."""
        X, gradient, _ = self.parts(Z, targets, 0)
        return ((X - targets) ** 2).sum(axis=1), gradient

    def parts(self, Z: FloatArray, targets: FloatArray, q: int) -> Parts:
        """Return coordinates, gradient of the distance and derivatives of q coordinates at once.

        The Gaussians are computed once for all three.
        """
        n, D = np.shape(Z)
        found = Parts(np.empty((n, self.n_coordinates)), np.empty((n, D)), np.empty((n, q, D)))
        for tile in self._tiles(Z, _rows_at_a_time(q)):
            X = self._coordinates(tile)
            gaps = fill_tile(aligned(2 * (X - targets[tile.place]), rows=False), len(tile.centred))
            pull = gaps @ self._aligned_coefficients.T
            found.values[tile.place] = X
            found.gradient[tile.place] = self._towards_rows(pull[None], tile)[0]
            self._fill_jacobian(found.jacobian[tile.place], tile)
        return found

    def _coordinates(self, tile: _Tile) -> FloatArray:
        X = (tile.gaussians @ self._aligned_coefficients)[: tile.size, : self.n_coordinates]
        return np.asarray(X + self.offset)

    def _fill_jacobian(self, J: FloatArray, tile: _Tile) -> None:
        for first in range(0, J.shape[1], _TOGETHER):
            some = slice(first, min(first + _TOGETHER, J.shape[1]))
            J[:, some] = self._towards_rows(self._pulls[some, None], tile).swapaxes(0, 1)

    def _towards_rows(self, pulls: FloatArray, tile: _Tile) -> FloatArray:
        """Return ``Σ_i pull_i h_i(z) (y_i - z) / s²`` (k, n, D) of rows z, for k pulls."""
        W = tile.gaussians * pulls
        sums = (W.reshape(-1, W.shape[2]) @ self._centred).reshape(*W.shape[:2], -1)
        sums -= W.sum(axis=2, keepdims=True) * tile.centred
        return np.asarray(sums[:, : tile.size, : self.rows.shape[1]] / self.scale**2)

    @cached_property
    def _mean(self) -> FloatArray:
        return np.asarray(self.rows.mean(axis=0))

    @cached_property
    def _centred(self) -> FloatArray:
        """Rows from their mean, so that a large common offset costs no digits."""
        return aligned(self.rows - self._mean)

    @cached_property
    def _half_squares(self) -> FloatArray:
        return np.asarray(0.5 * np.einsum("md,md->m", self._centred, self._centred))

    @cached_property
    def _aligned_coefficients(self) -> FloatArray:
        """Coefficients; the rows that fill up are zero, and their Gaussians count for nothing."""
        return aligned(self.coefficients)

    @cached_property
    def _pulls(self) -> FloatArray:
        """The same the other way round, a coordinate a row."""
        return np.ascontiguousarray(self._aligned_coefficients.T)

    def _tiles(self, Z: FloatArray, rows: int = TILE) -> Iterator[_Tile]:
        for start in range(0, len(Z), rows):
            place = slice(start, min(start + rows, len(Z)))
            centred = fill_tile(aligned(Z[place] - self._mean, rows=False), rows)
            yield _Tile(place, place.stop - start, centred, self._gaussians(centred))

    def _gaussians(self, centred: FloatArray) -> FloatArray:
        """Return the Gaussians (n, m) of rows from the mean; made in place."""
        with np.errstate(over="ignore", invalid="ignore"):
            h = centred @ self._centred.T
            h -= self._half_squares
            halves = 0.5 * np.einsum("nd,nd->n", centred, centred)
            h -= halves[:, None]
        h[~np.isfinite(halves)] = -np.inf  # infinitely far is far enough
        np.minimum(h, 0, out=h)
        h *= 1 / self.scale**2
        return np.asarray(np.exp(h, out=h))


class _Tile(NamedTuple):
    """Rows that are computed at a time, with what all derivatives need."""

    place: slice
    size: int
    centred: FloatArray
    gaussians: FloatArray


def aligned(M: FloatArray, *, rows: bool = True) -> FloatArray:
    """Return M (m, c), filled with zeros until its sizes are multiples of 16.

    Matrix libraries round an entry of a product by the shapes of the factors, and those at a ragged
    edge in another way than the rest. Products of ``TILE`` rows (:func:`fill_tile`) with aligned
    matrices have one shape and no ragged edge, so that a row gets the same bits alone or among
    others, at the full speed of the library. Products of other shapes do not promise that.
    """
    m, c = M.shape
    filled = np.zeros((m + -m % _ALIGNED if rows else m, c + -c % _ALIGNED))
    filled[:m, :c] = M
    return filled


def fill_tile(A: FloatArray, rows: int = TILE) -> FloatArray:
    """Return A, of at most so many rows, with zeros below, so that there are so many."""
    if len(A) == rows:
        return A
    filled = np.zeros((rows, *A.shape[1:]))
    filled[: len(A)] = A
    return filled


def _rows_at_a_time(q: int) -> int:
    """Return the rows of a tile with derivatives of q coordinates.

    These are large products with few rows already; in a search that most rows have left, few rows
    waste less. It must depend on nothing else, or bits would.
    """
    if q == 0:
        return TILE
    return TILE // 2 if q <= 2 else TILE // 4


def gaussians(Z: FloatArray, rows: FloatArray, scale: float) -> FloatArray:
    """Return ``exp(-||z - y||² / (2 scale²))`` of rows Z (n, D) with rows (m, D), shape (n, m)."""
    mean = rows.mean(axis=0)
    return np.asarray(np.exp(_squared_distances(Z - mean, rows - mean) / (-2 * scale**2)))


def _squared_distances(A: FloatArray, B: FloatArray) -> FloatArray:
    with np.errstate(over="ignore"):  # infinitely far is far enough
        sq_dists = (A * A).sum(axis=1)[:, None] + (B * B).sum(axis=1) - 2 * A @ B.T
    return np.asarray(np.maximum(sq_dists, 0))


def solve_ridge(
    H: FloatArray, X: FloatArray, ridge: float, weights: FloatArray | None = None
) -> FloatArray:
    """Return coefficients and, in the last row, the bias of the ridge regression of X (m, r).

    The bias is eliminated first: with ``N = (H + ridge I)⁻¹`` it is ``1ᵀ N X / 1ᵀ N 1``.
    """
    factor = factor_ridge(H, ridge, weights)
    solved = linalg.cho_solve(factor, np.column_stack([X, np.ones(len(H))]))
    bias = solved[:, :-1].sum(axis=0) / solved[:, -1].sum()
    return np.vstack([solved[:, :-1] - np.outer(solved[:, -1], bias), bias])


def factor_ridge(
    H: FloatArray, ridge: float, weights: FloatArray | None = None
) -> tuple[FloatArray, bool]:
    """Return the Cholesky factor of H with the ridge on its diagonal, divided by the weights.

    Raises ValueError where the ridge is too small for that matrix.
    """
    M = H.copy()
    M.flat[:: len(H) + 1] += ridge if weights is None else ridge / weights
    try:
        L, lower = linalg.cho_factor(M, lower=True, overwrite_a=True)
    except linalg.LinAlgError as error:
        raise ValueError(
            f"A ridge of {ridge:.3g} leaves the {len(H)} x {len(H)} system of the kernel ridge "
            "regression without a solution in double precision. Use a larger ridge, such as 0.01, "
            "or a smaller scale."
        ) from error
    return L, bool(lower)
