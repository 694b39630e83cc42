"""Diffusion kernels of any row with the rows they were made from, and coordinates with derivatives.

Formulas are in :mod:`~twofold.kernel_pca.data_dependent`, those of weighted rows in
:mod:`~twofold.kernel_pca.diffusion_map`.
"""

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from scipy import sparse

from twofold.array_types import FloatArray
from twofold.features.data_kernels import RBF, check_rows
from twofold.preimages.coordinates import CoordinateMap, Parts
from twofold.rowwise import SQUARED_GAP, multiply_rows, pair_sums


@dataclass(frozen=True, eq=False)
class DiffusionValues:
    """The diffusion kernel of any row with the rows it was made from, and its derivative.

    With ``u_i = w_i q_i^-α`` and S = Σ u_i the symmetric kernel is ``u_i / sqrt(S q(z)^α d_i)`` and
    the chance of a step from z to row i ``u_i / S``. Both have the derivative ``κ_i (l_i - l̄)``,
    ``l_i = (y_i - z) / s²``: for the latter l̄ is the mean of l under u, for the former half of
    that and α/2 times the mean under w. Far away, where every w_i underflows, ratios stay.
    """

    rows: FloatArray  # (m, D)
    scale: float  # s
    alpha: float  # α
    tilt: FloatArray  # q^-α (m,)
    degrees: FloatArray | None  # d (m,), None for chances of a step

    @classmethod
    def of(cls, Y: FloatArray, scale: float, alpha: float, *, symmetric: bool) -> Self:
        """Return the kernel that rows Y (m, D) make."""
        _, tilt, degrees = diffusion_matrix(RBF(0.5 / scale**2).gram(Y, Y), alpha, np.ones(len(Y)))
        return cls(Y, scale, alpha, tilt, degrees if symmetric else None)

    def values(self, Z: FloatArray) -> FloatArray:
        """Return the values (n, m) of rows Z (n, D), none depending on another."""
        return self._look(check_rows(Z))[0]

    def _look(self, Z: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return the values, w and u (n, m), the latter two divided by the largest w."""
        with np.errstate(over="ignore"):  # infinitely far is as far as numbers go
            exponents = pair_sums(Z, self.rows, SQUARED_GAP) / (-2 * self.scale**2)
        exponents = np.maximum(exponents, -np.finfo(np.float64).max)
        top = exponents.max(axis=1, keepdims=True)
        w = np.exp(exponents - top)
        u = w * self.tilt
        S = u.sum(axis=1, keepdims=True)
        if self.degrees is None:
            return u / S, w, u
        crowd = w.sum(axis=1, keepdims=True) ** self.alpha
        # With w, u and S by exp(top) too large, crowd by its power α: what the root leaves of that.
        lost = np.exp(0.5 * (1 - self.alpha) * top)
        return lost * u / np.sqrt(S * crowd * self.degrees), w, u

    def with_centre(self, Z: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return the values (n, m), and the place (n, D) at which l has the mean l̄."""
        values, w, u = self._look(check_rows(Z))
        centre = multiply_rows(u / u.sum(axis=1, keepdims=True), self.rows)
        if self.degrees is None:
            return values, centre
        crowd = multiply_rows(w / w.sum(axis=1, keepdims=True), self.rows)
        return values, Z + 0.5 * (centre - Z + self.alpha * (crowd - Z))


@dataclass(frozen=True, eq=False)
class DiffusionCoordinates(CoordinateMap):
    """Coordinates of any row, ``x(z) = Cᵀ κ(z) + c0``, with derivatives."""

    kernel: DiffusionValues
    coefficients: FloatArray
    offset: FloatArray

    @property
    def n_coordinates(self) -> int:
        """Number r of coordinates."""
        return int(self.coefficients.shape[1])

    def values(self, Z: FloatArray) -> FloatArray:
        """Return the coordinates (n, r) of rows Z (n, D)."""
        return multiply_rows(self.kernel.values(Z), self.coefficients) + self.offset

    def parts(self, Z: FloatArray, targets: FloatArray, q: int) -> Parts:
        """Return coordinates, gradient of the distance and derivatives of q coordinates at once."""
        values, centre = self.kernel.with_centre(Z)
        X = multiply_rows(values, self.coefficients) + self.offset

        def pulled(pull: FloatArray) -> FloatArray:
            W = values * pull
            sums = multiply_rows(W, self.kernel.rows) - W.sum(axis=1, keepdims=True) * centre
            return np.asarray(sums / self.kernel.scale**2)

        pull = 2 * multiply_rows(X - targets, np.ascontiguousarray(self.coefficients.T))
        J = np.empty((len(Z), q, Z.shape[1]))
        for j in range(q):
            J[:, j] = pulled(self.coefficients[:, j])
        return Parts(X, pulled(pull), J)


def diffusion_matrix(W: Any, alpha: float, w: FloatArray) -> tuple[Any, FloatArray, FloatArray]:
    """Return S (m, m) from Gaussians W (m, m) of rows of weights w, with ``q^-α`` and d (m,)."""
    # Dense ones are written over, sparse ones stay sparse.
    tilt = np.asarray(W @ w) ** -alpha
    W = _scaled(W, tilt)
    degrees = np.asarray(W @ w)
    return _scaled(W, np.sqrt(w / degrees)), tilt, degrees


def _scaled(S: Any, factors: FloatArray) -> Any:
    """Return S (m, m) with rows and columns multiplied by factors (m,)."""
    if sparse.issparse(S):
        diagonal = sparse.diags(factors)
        return (diagonal @ S @ diagonal).tocsr()
    S *= factors
    S *= factors[:, None]
    return S
