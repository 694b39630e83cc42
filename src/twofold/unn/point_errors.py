"""The error of one row: how far the mean of its latent neighbours is from it (Kramer 2013).

With ``f`` the mean of the neighbours, ``r`` is the Minkowski distance of order ``power`` from the
row ``y`` (5.2, 5.8). With a data kernel it is the distance in feature space (7.16-7.18), where
``f`` is still a mean of rows:

    r = (Σ_d |f_d - y_d|^p)^(1/p)        r² = k(f, f) - 2 k(f, y) + k(y, y)

=================== ============================= =======================
loss                e                             parameter
=================== ============================= =======================
"squared"           r²
"absolute"          r
"row_huber", Huber  r²/(2δ) up to δ, r - δ/2      δ, with ``per="vector"``
EpsilonInsensitive  max(0, r - ε) (5.8)           ε, with ``per="vector", order=1``
=================== ============================= =======================

Every loss is one of the whole row, of those that :mod:`twofold.losses` has by the same names: with
r the length of the residual they are the same numbers.

A `PointError` is plain numbers, so that compiled loops can take it.
"""

import math
from typing import NamedTuple

import numpy as np
from scipy.spatial.distance import cdist

from twofold.array_types import FloatArray
from twofold.checks.parameters import is_number
from twofold.compiled import compiled
from twofold.features import RBF, Linear, Polynomial, Sigmoid, get_data_kernel
from twofold.losses import EpsilonInsensitive, Huber, Squared, get_loss

NAMED_LOSSES = ("squared", "absolute", "row_huber")
SQUARED, ABSOLUTE, HUBER, EPSILON = range(4)
NO_KERNEL, POLYNOMIAL_KERNEL, RBF_KERNEL, TANH_KERNEL = range(4)

# The reach of Huber's loss, in medians of the distances between nearest rows: 1.345 standard
# deviations if those were normal.
_HUBER_REACH = 1.345 * 1.4826
KERNEL_NAMES = ("linear", "poly", "rbf", "tanh", "sigmoid")
_ROWS_FOR_SCALE = 500


class PointError(NamedTuple):
    """The error of one row, by code numbers."""

    loss: int = SQUARED
    number: float = 0.0  # δ or ε of the loss
    power: float = 2.0  # order of the Minkowski distance, from 1 to infinity
    kernel: int = NO_KERNEL
    scale: float = 1.0  # the kernel is a function of `scale <a, b> + shift`, or
    shift: float = 0.0  # of `scale ||a - b||²`
    degree: int = 1  # of the polynomial kernel

    @property
    def is_euclidean(self) -> bool:
        """Whether inner products of rows are all that the error depends on."""
        return self.power == 2.0

    @property
    def is_shift_invariant(self) -> bool:
        """Whether adding the same vector to all rows changes nothing."""
        return self.kernel in (NO_KERNEL, RBF_KERNEL)


def get_point_error(
    loss: object = "squared",
    power: float = 2.0,
    data_kernel: object = None,
    Y: FloatArray | None = None,
) -> PointError:
    """Return the error of a loss, a Minkowski order and a kernel, with open numbers from Y."""
    if not is_number(power) or not power >= 1:
        raise ValueError(
            f"`power` must be a number from 1 to infinity (2: Euclidean); got {power!r}."
        )
    kernel, scale, shift, degree = _numbers_of_kernel(data_kernel, Y)
    if data_kernel is not None and power != 2:
        raise ValueError(
            f"`power` must be 2 with a data kernel, which has a distance of its own; got {power!r}."
        )
    code, number = _numbers_of_loss(loss, Y)
    return PointError(code, number, float(power), kernel, scale, shift, degree)


def _numbers_of_loss(loss: object, Y: FloatArray | None) -> tuple[int, float]:
    known = get_loss(loss) if isinstance(loss, str) and loss in NAMED_LOSSES else loss
    if isinstance(known, Squared):
        return SQUARED, 0.0
    if isinstance(known, Huber) and known.per == "vector":
        if known.trim is not None:
            raise ValueError("`trim` of the Huber loss is not for nearest neighbours; leave it.")
        return HUBER, _choose_delta(Y) if known.delta is None else known.delta
    if isinstance(known, EpsilonInsensitive) and (known.per, known.order) == ("vector", 1):
        if not isinstance(known.eps, float):
            raise ValueError(
                "`eps` of the loss must be one number for all rows here; got an array of shape "
                f"{np.shape(known.eps)}."
            )
        return (EPSILON, known.eps) if known.eps > 0 else (ABSOLUTE, 0.0)
    expected = (
        f"`loss` must be one of {', '.join(map(repr, NAMED_LOSSES))}, or a loss of whole rows of "
        "twofold.losses: Squared(), Huber(delta, per='vector') or EpsilonInsensitive(eps, "
        "per='vector', order=1)"
    )
    if isinstance(known, str | Huber | EpsilonInsensitive):
        raise ValueError(f"{expected}; got {loss!r}.")
    raise TypeError(f"{expected}; got {loss!r}.")


def _choose_delta(Y: FloatArray | None) -> float:
    """Return a δ from the distances of some rows to the nearest other ones."""
    if Y is None:
        raise ValueError("Huber's loss needs a `delta`, or rows from which to choose one.")
    rows = np.asarray(Y, dtype=float)
    rows = rows[np.isfinite(rows).all(axis=1)]
    some = rows
    if len(rows) > _ROWS_FOR_SCALE:
        some = rows[np.random.default_rng(0).choice(len(rows), _ROWS_FOR_SCALE, replace=False)]
    gaps = cdist(some, rows)
    gaps[gaps <= 0] = math.inf
    nearest = gaps.min(axis=1, initial=math.inf)
    nearest = nearest[np.isfinite(nearest)]
    # Without two different complete rows no residual tells anything, so any number will do.
    return _HUBER_REACH * float(np.median(nearest)) if len(nearest) else 1.0


def _numbers_of_kernel(spec: object, Y: FloatArray | None) -> tuple[int, float, float, int]:
    if spec is None:
        return NO_KERNEL, 1.0, 0.0, 1
    if isinstance(spec, str) and spec not in KERNEL_NAMES:
        raise ValueError(f"`data_kernel` must be one of {KERNEL_NAMES} or an object; got {spec!r}.")
    kernel = get_data_kernel(spec)  # type: ignore[arg-type]
    if isinstance(kernel, RBF) and kernel.gamma is None:
        if Y is None:
            raise ValueError("The RBF kernel needs a `gamma`, or rows from which to choose one.")
        kernel = kernel.fitted(Y)
    if isinstance(kernel, Linear):
        return NO_KERNEL, 1.0, 0.0, 1  # feature space is data space
    if isinstance(kernel, Polynomial):
        return POLYNOMIAL_KERNEL, float(kernel.gamma), float(kernel.coef0), int(kernel.degree)
    if isinstance(kernel, RBF):
        return RBF_KERNEL, kernel.number(), 0.0, 1
    if isinstance(kernel, Sigmoid):
        return TANH_KERNEL, float(kernel.alpha), float(kernel.beta), 1
    raise ValueError(
        "`data_kernel` must be a function of inner products that has a value between any two "
        "rows, means of rows too: 'linear', 'poly', 'rbf', 'tanh', or Linear, Polynomial, RBF, "
        f"Sigmoid of twofold.features; got {kernel!r}."
    )


@compiled
def loss_of(squared: float, error: PointError) -> float:
    """Return the loss of a squared residual ``r²``, which rounding may have put below zero."""
    if error.loss == SQUARED:
        return squared
    r = math.sqrt(max(squared, 0.0))
    if error.loss == HUBER:
        if r <= error.number:
            return 0.5 * r * r / error.number
        return r - 0.5 * error.number
    if error.loss == EPSILON:
        return max(0.0, r - error.number)
    return r


@compiled
def kernel_of(product: float, error: PointError) -> float:
    """Return a polynomial or tanh kernel from the inner product of two vectors."""
    base = error.scale * product + error.shift
    if error.kernel == TANH_KERNEL:
        return math.tanh(base)
    value = base
    for _ in range(error.degree - 1):
        value *= base
    return value


@compiled
def error_of_products(ff: float, fy: float, yy: float, error: PointError) -> float:
    """Return the error from inner products of f and y (power 2, any kernel)."""
    squared = ff - 2.0 * fy + yy
    if error.kernel == RBF_KERNEL:
        # 2 - 2k would lose everything for a small gamma.
        squared = -2.0 * math.expm1(-error.scale * squared)
    elif error.kernel != NO_KERNEL:
        squared = kernel_of(ff, error) - 2.0 * kernel_of(fy, error) + kernel_of(yy, error)
    return loss_of(squared, error)


@compiled
def row_error(f: FloatArray, y: FloatArray, error: PointError) -> float:
    """Return the error of one row y (D,) for the mean f (D,) of its neighbours."""
    D = len(y)
    total = 0.0
    if error.kernel == POLYNOMIAL_KERNEL or error.kernel == TANH_KERNEL:
        ff, fy, yy = 0.0, 0.0, 0.0
        for d in range(D):
            ff += f[d] * f[d]
            fy += f[d] * y[d]
            yy += y[d] * y[d]
        return error_of_products(ff, fy, yy, error)
    if error.power == 2.0:
        for d in range(D):
            gap = f[d] - y[d]
            total += gap * gap
        return error_of_products(total, 0.0, 0.0, error)
    if error.power == 1.0:
        for d in range(D):
            total += abs(f[d] - y[d])
        return loss_of(total * total, error)
    largest = 0.0
    for d in range(D):
        largest = max(largest, abs(f[d] - y[d]))
    if largest == 0.0 or error.power == math.inf:
        return loss_of(largest * largest, error)
    for d in range(D):  # a share of the largest entry: a high power neither over- nor underflows
        total += (abs(f[d] - y[d]) / largest) ** error.power
    r = largest * total ** (1.0 / error.power)
    return loss_of(r * r, error)
