r"""Limited-memory BFGS on (n, q) arrays, with a projection for boxes and balls.

The direction is :math:`d = -H g`, :math:`H` the inverse Hessian that the last pairs
:math:`s = x_{k+1} - x_k`, :math:`y = g_{k+1} - g_k` describe (two-loop recursion: Nocedal and
Wright, "Numerical Optimization", 2nd ed., algorithm 7.4). The step satisfies the weak Wolfe
conditions along :math:`x(t) = P(x + t d)`

.. math::

    f(x(t)) \le f(x) + c_1\, g^T (x(t) - x), \qquad
    g(x(t))^T (x(t) - x) \ge c_2\, g^T (x(t) - x) ,

found by bracketing; the second makes :math:`s^T y > 0`. An infinite value fails the first condition
and so only shortens the step. With a constraint, the directions bound at :math:`x` are taken out
of :math:`g` before and out of :math:`d` after :math:`H` is applied (Bertsekas 1982, see
`constraints`), and the second condition is waived where the projection cut the step.

Why not SciPy's L-BFGS-B: its inner products are BLAS calls that split long vectors among threads,
so that its result depends on the number of threads (seen with SciPy 1.17 and 400 000 unknowns). It
is also float64 only and knows boxes but not balls.

Arrays may be tensors of torch as well, on any device (`on_device`).
"""

import math
from dataclasses import dataclass, replace

import numpy as np

from twofold.array_types import FloatArray
from twofold.optimize.constraints import Constraint
from twofold.optimize.solution import Evaluate, StopReason

MEMORY = 10
SUFFICIENT_DECREASE = 1e-4
CURVATURE = 0.9
MAX_TRIALS = 20
# Without any knowledge of curvature the largest coordinate moves this far: the first step of Rprop.
FIRST_MOVE = 0.1


@dataclass(frozen=True)
class Pair:
    """One move `s`, the change `y` of the gradient along it, and ``1 / (s y)``."""

    s: FloatArray
    y: FloatArray
    rho: float


@dataclass(frozen=True)
class LbfgsState:
    """Where a run stands: `free` is `grad` without the bound parts, `pairs` the oldest first."""

    X: FloatArray
    value: float
    grad: FloatArray
    free: FloatArray
    pairs: tuple[Pair, ...] = ()
    is_stuck: bool = False


@dataclass(frozen=True)
class Trial:
    """A point of the line search; `slope` is the derivative along the search direction."""

    step: float
    X: FloatArray
    value: float
    grad: FloatArray
    slope: float


@dataclass(frozen=True)
class Lbfgs:
    """The method.

    ``pace`` (n, 1) says how far rows of the unknowns move in the same time: the curvature that no
    pair has told yet is taken to be 1 / pace, up to a common factor.
    """

    window: int = 5
    pace: FloatArray | None = None

    def init(
        self, constraint: Constraint, X: FloatArray, value: float, grad: FloatArray
    ) -> LbfgsState:
        """Return the state before the first iteration."""
        return LbfgsState(X, value, grad, constraint.free_gradient(X, grad))

    def step(self, evaluate: Evaluate, constraint: Constraint, state: LbfgsState) -> LbfgsState:
        """Make one iteration; usually it costs one evaluation."""
        direction = constraint.tangent(
            state.X, state.grad, _newton_like(state.pairs, state.free, self.pace)
        )
        slope = inner(state.free, direction)
        if not (math.isfinite(slope) and slope < 0):
            return _forgotten(state)
        trial = _search(evaluate, constraint, state, direction)
        if trial is None:
            return _forgotten(state)
        free = constraint.free_gradient(trial.X, trial.grad)
        # The free gradients, not the plain ones, see how the boundary itself bends: on coupled
        # quadratics in balls that takes a sixth to a twelfth of the evaluations.
        pairs = _remembered(state.pairs, trial.X - state.X, free - state.free)
        return LbfgsState(trial.X, trial.value, trial.grad, free, pairs)

    def should_stop(self, state: LbfgsState) -> StopReason | None:
        """Tell whether the state leaves nothing to do."""
        if not state.free.any():
            return StopReason.STATIONARY
        return StopReason.SMALL_STEP if state.is_stuck else None


def inner(A: FloatArray, B: FloatArray) -> float:
    """Sum of the products of two arrays, the same for any number of threads.

    NumPy's own sum is single-threaded and pairwise; BLAS dot products split long vectors among
    threads and round accordingly.
    """
    if isinstance(A, np.ndarray):
        return float(np.sum(A * B, dtype=np.float64))
    return float((A.double() * B).sum())


def _resolution(A: FloatArray) -> float:
    """Return the relative distance between numbers of an array's type."""
    return float(np.finfo(np.float64 if A.itemsize == 8 else np.float32).eps)


def _newton_like(pairs: tuple[Pair, ...], grad: FloatArray, pace: FloatArray | None) -> FloatArray:
    """Return ``-H grad`` by the two-loop recursion."""
    if not pairs:
        paced = grad if pace is None else grad * pace
        largest = float(abs(paced).max())
        return paced / largest * -FIRST_MOVE if largest > 0 else grad
    direction = -grad
    weights = []
    for pair in reversed(pairs):
        weight = pair.rho * inner(pair.s, direction)
        direction = direction - weight * pair.y
        weights.append(weight)
    newest = pairs[-1]
    if pace is None:
        direction = direction / (newest.rho * inner(newest.y, newest.y))
    else:
        direction = direction * pace / (newest.rho * inner(newest.y, newest.y * pace))
    for pair, weight in zip(pairs, reversed(weights), strict=True):
        direction = direction + (weight - pair.rho * inner(pair.y, direction)) * pair.s
    return direction


def _remembered(pairs: tuple[Pair, ...], s: FloatArray, y: FloatArray) -> tuple[Pair, ...]:
    """Append a pair of positive curvature, dropping the oldest when the memory is full."""
    curvature = inner(s, y)
    rounding = _resolution(s) * math.sqrt(inner(s, s) * inner(y, y))
    if not curvature > max(rounding, float(np.finfo(np.float64).tiny)):
        return pairs
    return (*pairs, Pair(s, y, 1 / curvature))[-MEMORY:]


def _forgotten(state: LbfgsState) -> LbfgsState:
    """Go on by steepest descent; if that was what failed, there is nowhere left to go."""
    return replace(state, pairs=(), is_stuck=not state.pairs)


def _search(
    evaluate: Evaluate, constraint: Constraint, state: LbfgsState, direction: FloatArray
) -> Trial | None:
    """Find a weak Wolfe point along the projected path; None if no step lowers the objective."""
    low = Trial(0.0, state.X, state.value, state.grad, inner(state.grad, direction))
    resolution = _resolution(state.X) * abs(state.value)
    high = math.inf
    step = 1.0
    for _ in range(MAX_TRIALS):
        unbounded = state.X + step * direction
        X = constraint.project(unbounded)
        move = X - state.X
        change = inner(state.grad, move)
        # A fall that rounding hides cannot be told from a rise. On a bent path the sum may be
        # positive; a shorter step then mends it.
        if -resolution <= change < 0 or not move.any():
            break
        value, grad = evaluate(X)
        promised = min(0.0, change)
        if not value <= state.value + SUFFICIENT_DECREASE * promised:
            high = step
            step = _shortened(low, high, value)
            continue
        trial = Trial(step, X, value, grad, inner(grad, direction))
        was_cut = X is not unbounded and not bool((unbounded == X).all())
        if was_cut or inner(grad, move) >= CURVATURE * promised:
            return trial
        step = (step + high) / 2 if math.isfinite(high) else _lengthened(low, trial)
        low = trial
    return low if low.step > 0 else None


def _shortened(low: Trial, high: float, value: float) -> float:
    """Minimise the parabola through `low`, its slope and the value at `high`, with safeguards."""
    width = high - low.step
    excess = value - low.value - low.slope * width
    if not (math.isfinite(value) and excess > 0):
        return low.step + 0.5 * width
    part = -0.5 * low.slope * width / excess
    return low.step + width * min(max(part, 0.1), 0.9)


def _lengthened(low: Trial, trial: Trial) -> float:
    """Go where the slope would vanish if it went on changing as it did, with safeguards."""
    gain = trial.slope - low.slope
    secant = trial.step - trial.slope * (trial.step - low.step) / gain if gain > 0 else math.inf
    return min(max(secant, 2 * trial.step), 10 * trial.step)
