"""Rows whose feature lies nearest to a weighted mean of features.

For weights b that sum to one, the pre-image of ``Σ b_i Φ(y_i)`` minimises

    E(y) = k(y, y) - 2 Σ_i b_i k(y, y_i),

the squared distance but for a constant. Kernel by kernel:

* linear: the weighted mean, ``y = Σ b_i y_i``.
* l1: E is ``Σ b_i ||y - y_i||₁`` but for a constant, so every column has the weighted median of
  its values. With negative weights (of local polynomials) the sum is still piecewise linear and
  grows to both sides: its lowest corner is found by passing all of them in order.
* rbf: fixed point ``y ← Σ b_i k(y, y_i) y_i / Σ b_i k(y, y_i)`` (Arias 2007, eq. 4.9, after Mika).
* polynomial, ``k = g(y·y')``: fixed point ``y ← Σ b_i g'(y·y_i) y_i / g'(y·y)`` (eq. D.14).
* any other: the weighted mean of the rows, which the regression itself would give in data space.

Both fixed points lie straight down the gradient of E, and both can go too far: the first with
negative weights, the second in cycles of two. So a step is halved until E falls enough. It starts
from the weighted mean and from the reference of lowest E, and the lower end is kept: no reference
and no weighted mean is ever nearer.
"""

from __future__ import annotations

import math

import numpy as np

from twofold.array_types import FloatArray, IntArray
from twofold.engine.compiled import compiled
from twofold.features.data_kernels import L1, RBF, DataKernel, Polynomial, check_rows
from twofold.features.feature_map import multiply_rows

# Weights sum to one but for the rounding of float32 over many of them.
_SUM_TOLERANCE = 1e-3
# Moves below this share of the length scale end the descent; E is flat to rounding from there.
_MOVE_TOLERANCE = 1e-7
_MAX_ITER = 500
_MAX_HALVINGS = 20
# Share of the fall that the gradient promises; any small one keeps off cycles.
_FALL = 1e-4
# A sum of weighted kernel values that is all cancellation, or underflow, leads nowhere.
_CANCELLED = 1e-12
_UNDERFLOW = 1e-280
# Kernel values between references in memory at a time: 32 MB.
_VALUES_AT_A_TIME = 4_000_000


def preimages(kernel: DataKernel, references: FloatArray, B: FloatArray) -> FloatArray:
    """Return rows whose features lie nearest to weighted means of the references' features.

    A row gets the same numbers, to the last bit, alone or among others.

    Parameters
    ----------
    kernel : DataKernel
        The kernel, its numbers chosen.
    references : ndarray of shape (n, D)
        Rows that are averaged.
    B : ndarray of shape (m, n)
        Weights; every row sums to one, single ones may be negative.

    Returns
    -------
    ndarray of shape (m, D)
        Pre-images, in the number type of the references. Those of the RBF and polynomial kernels
        are local minima; those of a kernel of the user's are weighted means of the rows.

    Raises
    ------
    ValueError
        For a precomputed kernel, which knows no rows, and for weights that do not fit.

    Examples
    --------
    >>> import numpy as np
    >>> from twofold.features import L1, preimages
    >>> Y = np.array([[0.0], [1.0], [10.0]])
    >>> float(preimages(L1(), Y, np.array([[0.3, 0.4, 0.3]]))[0, 0])
    1.0
    """
    if kernel.is_precomputed:
        raise ValueError(
            "A precomputed kernel has no pre-images: there are no data rows to go back to, only "
            "kernel values. Use a kernel of the rows, or apply the weights to rows of your own."
        )
    Y, weights = check_rows(references), check_rows(B)
    _check_weights(weights, len(Y))
    if isinstance(kernel, L1):
        order = np.ascontiguousarray(np.argsort(Y, axis=0, kind="stable").T)
        found = _weighted_medians(weights, np.ascontiguousarray(np.sort(Y, axis=0).T), order)
    elif isinstance(kernel, (RBF, Polynomial)):
        means, nearest = multiply_rows(weights, Y), Y[_nearest_references(kernel, Y, weights)]
        found = _descend_all(weights, Y, means, nearest, *_numbers(kernel, Y))
    else:
        found = multiply_rows(weights, Y)
    return found.astype(np.float32) if np.asarray(references).dtype == np.float32 else found


def _check_weights(B: FloatArray, n: int) -> None:
    if B.shape[1] != n:
        raise ValueError(
            f"`B` must have a weight for each of the {n} references in every row; got shape "
            f"{B.shape}."
        )
    off = np.abs(B.sum(axis=1) - 1)
    if len(off) and off.max() > _SUM_TOLERANCE:
        worst = int(off.argmax())
        raise ValueError(
            f"Every row of `B` must sum to one; row {worst} sums to {B[worst].sum():.6g}. Divide "
            "each row by its sum."
        )


def _numbers(kernel: RBF | Polynomial, Y: FloatArray) -> tuple[int, float, float, float]:
    """Return degree (0 for RBF), gamma, coef0 and the squared length at which moves end."""
    if isinstance(kernel, RBF):
        gamma = kernel.number()
        return 0, gamma, 0.0, _MOVE_TOLERANCE**2 / gamma
    squared_length = float((Y * Y).sum(axis=1).max())
    numbers = int(kernel.degree), float(kernel.gamma), float(kernel.coef0)
    return *numbers, _MOVE_TOLERANCE**2 * squared_length


def _nearest_references(kernel: DataKernel, Y: FloatArray, B: FloatArray) -> IntArray:
    """Return for each row of weights (m, n) the reference of lowest E."""
    lowest, nearest = np.full(len(B), np.inf), np.zeros(len(B), dtype=np.int64)
    step = max(1, _VALUES_AT_A_TIME // len(Y))
    for first in range(0, len(Y), step):
        rows = Y[first : first + step]
        E = kernel.diagonal(rows) - 2 * multiply_rows(B, kernel.gram(rows, Y).T)
        best = E.argmin(axis=1)
        values = E[np.arange(len(B)), best]
        nearest[values < lowest] = first + best[values < lowest]
        lowest = np.minimum(lowest, values)
    return nearest


@compiled
def _weighted_medians(B: FloatArray, values: FloatArray, order: IntArray) -> FloatArray:
    """Return argmin over t of ``Σ_i b_i |t - y_i|`` for weights (m, n) and columns (D, n).

    ``values`` are ascending and ``order`` says whose they are. Of several minima the lowest.
    """
    medians = np.empty((B.shape[0], values.shape[0]))
    for j in range(B.shape[0]):
        total = B[j].sum()
        for d in range(values.shape[0]):
            slope, height, lowest = -total, 0.0, 0.0
            medians[j, d] = values[d, 0]
            for i in range(values.shape[1]):
                if i > 0:
                    height += slope * (values[d, i] - values[d, i - 1])
                if height < lowest:
                    lowest = height
                    medians[j, d] = values[d, i]
                slope += 2 * B[j, order[d, i]]
    return medians


@compiled
def _descend_all(
    B: FloatArray,
    Y: FloatArray,
    means: FloatArray,
    nearest: FloatArray,
    degree: int,
    gamma: float,
    coef0: float,
    smallest: float,
) -> FloatArray:
    """Return the lower end of two descents for each row of B (m, n)."""
    found = np.empty(means.shape)
    other = np.empty(means.shape[1])
    for j in range(B.shape[0]):
        found[j] = means[j]
        other[:] = nearest[j]
        value = _descend(found[j], B[j], Y, degree, gamma, coef0, smallest)
        if _descend(other, B[j], Y, degree, gamma, coef0, smallest) < value:
            found[j] = other
    return found


@compiled
def _descend(
    y: FloatArray,
    b: FloatArray,
    Y: FloatArray,
    degree: int,
    gamma: float,
    coef0: float,
    smallest: float,
) -> float:
    """Move y (D,) down to a minimum of E, in place; return E there."""
    target, trial, next_target = np.empty_like(y), np.empty_like(y), np.empty_like(y)
    value, rate = _look(y, b, Y, degree, gamma, coef0, target)
    for _ in range(_MAX_ITER):
        squared_move = 0.0
        for d in range(y.shape[0]):
            squared_move += (target[d] - y[d]) ** 2
        if rate <= 0 or squared_move <= smallest:
            break
        step, accepted = 1.0, False
        for _ in range(_MAX_HALVINGS):
            for d in range(y.shape[0]):
                trial[d] = y[d] + step * (target[d] - y[d])
            next_value, next_rate = _look(trial, b, Y, degree, gamma, coef0, next_target)
            accepted = next_value < value - _FALL * step * rate * squared_move
            if accepted:
                break
            step *= 0.5
        if not accepted:
            break
        y[:] = trial
        target[:] = next_target
        value, rate = next_value, next_rate
    return value


@compiled
def _look(
    y: FloatArray,
    b: FloatArray,
    Y: FloatArray,
    degree: int,
    gamma: float,
    coef0: float,
    target: FloatArray,
) -> tuple[float, float]:
    """Return E(y) and the rate for which ``∇E = -rate (target - y)``; 0 where nothing leads on."""
    if degree == 0:
        return _look_rbf(y, b, Y, gamma, target)
    return _look_polynomial(y, b, Y, degree, gamma, coef0, target)


@compiled
def _look_rbf(
    y: FloatArray, b: FloatArray, Y: FloatArray, gamma: float, target: FloatArray
) -> tuple[float, float]:
    total, size = 0.0, 0.0
    target[:] = 0
    for i in range(Y.shape[0]):
        if b[i] != 0:
            sq_dist = 0.0
            for d in range(y.shape[0]):
                sq_dist += (Y[i, d] - y[d]) * (Y[i, d] - y[d])
            weight = b[i] * math.exp(-gamma * sq_dist)
            total += weight
            size += abs(weight)
            for d in range(y.shape[0]):
                target[d] += weight * Y[i, d]
    if total <= max(_CANCELLED * size, _UNDERFLOW):
        return -2 * total, 0.0
    for d in range(y.shape[0]):
        target[d] /= total
    return -2 * total, 4 * gamma * total  # without k(y, y) = 1, beside which little ones vanish


@compiled
def _look_polynomial(
    y: FloatArray,
    b: FloatArray,
    Y: FloatArray,
    degree: int,
    gamma: float,
    coef0: float,
    target: FloatArray,
) -> tuple[float, float]:
    target[:] = 0
    own = coef0
    for d in range(y.shape[0]):
        own += gamma * y[d] * y[d]
    slope = degree * gamma * own ** (degree - 1)
    value = own**degree
    for i in range(Y.shape[0]):
        if b[i] != 0:
            base = coef0
            for d in range(y.shape[0]):
                base += gamma * y[d] * Y[i, d]
            power = base ** (degree - 1)
            value -= 2 * b[i] * power * base
            for d in range(y.shape[0]):
                target[d] += b[i] * degree * gamma * power * Y[i, d]
    if slope <= _UNDERFLOW:
        return value, 0.0
    for d in range(y.shape[0]):
        target[d] /= slope
    return value, 2 * slope
