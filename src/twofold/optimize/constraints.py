"""Convex sets for the rows of an (n, q) array, and what descent may still do on their boundary.

With the bound active and the descent direction pointing outward, a coordinate (box) or the radial
part of a row (ball) is *bound*: a step along it would be undone by the projection. `tangent` takes
those directions out. This is the gradient projection of Bertsekas, "Projected Newton methods for
optimization problems with simple constraints", SIAM J. Control Optim. 20 (1982), which the oil-flow
experiment of the UKR thesis uses with a growing box.
"""

from dataclasses import dataclass

import numpy as np

from twofold.array_types import BoolArray, FloatArray
from twofold.checks.parameters import check_positive


@dataclass(frozen=True)
class Constraint:
    """A closed convex set of (n, q) arrays, here all of them; no method changes its arguments.

    Examples
    --------
    >>> from twofold.optimize import Ball, Box, Constraint
    >>> issubclass(Ball, Constraint) and issubclass(Box, Constraint)
    True
    """

    def project(self, X: FloatArray) -> FloatArray:
        """Return the nearest feasible array."""
        return X

    def tangent(self, X: FloatArray, grad: FloatArray, V: FloatArray) -> FloatArray:
        """Return `V` without the directions that `grad` binds at `X`."""
        return V

    def free_gradient(self, X: FloatArray, grad: FloatArray) -> FloatArray:
        """Return `grad` without the parts along which descent would leave the set."""
        return self.tangent(X, grad, grad)

    def is_binding(self, X: FloatArray) -> int:
        """Return how many rows of `X` lie on the boundary."""
        return 0


@dataclass(frozen=True)
class Unconstrained(Constraint):
    """The whole space, so that no method needs a special case.

    Examples
    --------
    >>> import numpy as np
    >>> from twofold.optimize import Unconstrained
    >>> Unconstrained().project(np.array([[3.0, 0.5]]))
    array([[3. , 0.5]])
    """


@dataclass(frozen=True)
class Box(Constraint):
    """All coordinates in ``[-half_width, half_width]``.

    Examples
    --------
    >>> import numpy as np
    >>> from twofold.optimize import Box
    >>> Box(1.0).project(np.array([[3.0, 0.5]]))
    array([[1. , 0.5]])
    """

    half_width: float

    def __post_init__(self) -> None:
        check_positive("half_width", self.half_width)

    def project(self, X: FloatArray) -> FloatArray:
        """Clip every coordinate."""
        h = _in_dtype(self.half_width, X)
        return np.clip(X, -h, h)

    def tangent(self, X: FloatArray, grad: FloatArray, V: FloatArray) -> FloatArray:
        """Return `V` with 0 in the coordinates that `grad` binds at `X`."""
        h = _in_dtype(self.half_width, X)
        bound = ((h <= X) & (grad < 0)) | ((-h >= X) & (grad > 0))
        return np.where(bound, V.dtype.type(0), V)

    def is_binding(self, X: FloatArray) -> int:
        """Return how many rows have a coordinate on the boundary."""
        on_boundary = np.abs(X) >= _in_dtype(self.half_width, X)
        return int(np.count_nonzero(on_boundary.any(axis=1)))


@dataclass(frozen=True)
class Ball(Constraint):
    """Every row's Euclidean norm at most `radius`; rows outside are pulled in along their ray.

    Examples
    --------
    >>> import numpy as np
    >>> from twofold.optimize import Ball
    >>> Ball(1.0).project(np.array([[3.0, 4.0]]))
    array([[0.6, 0.8]])
    """

    radius: float

    def __post_init__(self) -> None:
        check_positive("radius", self.radius)

    def project(self, X: FloatArray) -> FloatArray:
        """Scale the rows outside the ball back to its boundary."""
        norms = np.linalg.norm(X, axis=1)
        outside = norms > _in_dtype(self.radius, X)
        # Rounding in the scaling may add a few units in the last place; aim that much lower, so
        # that a projected row is never outside again.
        aim = self.radius * (1 - 4 * np.finfo(X.dtype).eps)
        scale = np.where(outside, aim / np.where(outside, norms, 1), 1)
        return np.asarray(X * scale.astype(X.dtype)[:, None])

    def tangent(self, X: FloatArray, grad: FloatArray, V: FloatArray) -> FloatArray:
        """Return `V` without its radial part in the rows that `grad` binds at `X`."""
        bound = self._on_boundary(X) & (_row_products(X, grad) < 0)
        if not bound.any():
            return V
        rays = X[bound] / np.linalg.norm(X[bound], axis=1, keepdims=True)
        result = V.copy()
        result[bound] -= _row_products(rays, V[bound])[:, None] * rays
        return result

    def is_binding(self, X: FloatArray) -> int:
        """Return how many rows lie on the sphere."""
        return int(np.count_nonzero(self._on_boundary(X)))

    def _on_boundary(self, X: FloatArray) -> BoolArray:
        """Tell which rows lie on the sphere as far as the dtype can tell, shape (n,)."""
        rounding = 16 * np.finfo(X.dtype).eps
        return np.asarray(np.linalg.norm(X, axis=1) >= self.radius * (1 - rounding))


def _row_products(A: FloatArray, B: FloatArray) -> FloatArray:
    """Inner products of the rows of two (n, q) arrays, shape (n,)."""
    return np.asarray((A * B).sum(axis=1))


def _in_dtype(bound: float, X: FloatArray) -> float:
    """Round `bound` to the dtype of `X`, so that a coordinate clipped to it compares as equal.

    The result is a Python float even for a NumPy float64, which would turn float32 into float64.
    """
    return float(X.dtype.type(bound))
