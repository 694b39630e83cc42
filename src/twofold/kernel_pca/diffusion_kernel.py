"""Diffusion kernels of any row with the rows they were made from, and coordinates with derivatives.

See :mod:`~twofold.kernel_pca.data_dependent` for the formulas.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import numpy as np

from twofold.array_types import FloatArray
from twofold.features.data_kernels import RBF, check_rows
from twofold.preimages.coordinates import Parts
from twofold.rowwise import SQUARED_GAP, multiply_rows, pair_sums


@dataclass(frozen=True, eq=False)
class DiffusionValues:
    """The diffusion kernel of any row with the rows it was made from, and its derivative.

    With ``u_i = w_i q_i^-α`` and S = Σ u_i the symmetric kernel is ``u_i / sqrt(S q(z)^α d_i)`` and
    the chance of a step from z to row i ``u_i / S``. Both have the derivative ``κ_i (l_i - l̄)``,
    ``l_i = (y_i - z) / s²``: for the latter l̄ is the mean of l under u, for the former half of
    that and α/2 times the mean under w. Far away, where every w_i underflows, ratios stay.

    Attributes
    ----------
    rows : (m, D), scale : s, alpha : α
    tilt : (m,) ``q^-α``
    degrees : (m,) d, None for chances of a step
    """

    rows: FloatArray
    scale: float
    alpha: float
    tilt: FloatArray
    degrees: FloatArray | None

    @classmethod
    def of(cls, Y: FloatArray, scale: float, alpha: float, *, symmetric: bool) -> Self:
        """Return the kernel that rows Y (m, D) make."""
        _, tilt, degrees = diffusion_matrix(RBF(0.5 / scale**2).gram(Y, Y), alpha)
        return cls(Y, scale, alpha, tilt, degrees if symmetric else None)

    def values(self, Z: FloatArray) -> FloatArray:
        """Return the values (n, m) of rows Z (n, D), none depending on another."""
        return self._look(check_rows(Z))[0]

    def _look(self, Z: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return the values, w and u (n, m), the latter two divided by the largest w."""
        exponents = pair_sums(Z, self.rows, SQUARED_GAP) / (-2 * self.scale**2)
        top = exponents.max(axis=1, keepdims=True)
        w = np.exp(exponents - top)
        u = w * self.tilt
        S = u.sum(axis=1, keepdims=True)
        if self.degrees is None:
            return u / S, w, u
        crowd = w.sum(axis=1, keepdims=True) ** self.alpha
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
class DiffusionCoordinates:
    """Coordinates of any row, ``x(z) = Cᵀ κ(z) + c0``, with derivatives: a `CoordinateMap`."""

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

    def jacobian(self, Z: FloatArray, q: int | None = None) -> FloatArray:
        """Return the derivatives (n, q, D) of the first q coordinates, all if None."""
        q = self.n_coordinates if q is None else q
        return self.parts(Z, np.zeros((len(Z), self.n_coordinates)), q).jacobian

    def distance_and_gradient(
        self, Z: FloatArray, targets: FloatArray
    ) -> tuple[FloatArray, FloatArray]:
        """Return the squared distances (n,) of x(Z) to targets (n, r), and their gradients."""
        X, gradient, _ = self.parts(Z, targets, 0)
        return ((X - targets) ** 2).sum(axis=1), gradient

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


def diffusion_matrix(W: FloatArray, alpha: float) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return K (m, m), written over Gaussians W (m, m), with ``q^-α`` and d (m,)."""
    tilt = W.sum(axis=1) ** -alpha
    W *= tilt
    W *= tilt[:, None]
    degrees = W.sum(axis=1)
    root = 1 / np.sqrt(degrees)
    W *= root
    W *= root[:, None]
    return W, tilt, degrees
