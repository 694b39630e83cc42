r"""Resilient propagation: descent by the signs of the gradient, one step size a coordinate.

With :math:`g` the gradient and :math:`g'` that of the iteration before, every coordinate does

.. math::

    \Delta \leftarrow \begin{cases}
        \min(\eta^+ \Delta, \Delta_{\max}) & g g' > 0 \\
        \max(\eta^- \Delta, \Delta_{\min}) & g g' < 0 \\
        \Delta & \text{otherwise}
    \end{cases}
    \qquad x \leftarrow x - \operatorname{sign}(g)\, \Delta .

The variants differ in what else a change of sign does:

========== =========================================================================
"rprop-"   nothing
"irprop-"  the coordinate rests for this iteration (:math:`g := 0`)
"irprop+"  as "irprop-", and its last move is undone if the objective has risen
========== =========================================================================

Sources: Riedmiller and Braun, "A direct adaptive method for faster backpropagation learning: the
RPROP algorithm", ICNN 1993 (constants); Igel and Hüsken, "Improving the Rprop learning algorithm",
NC 2000 (variants). Going back from infeasible points is our own: all of the move is undone and all
steps are halved, because an infinite value does not tell which coordinate went too far.

All arithmetic is elementwise in the dtype of X, so a run does not depend on the number of threads.
"""

import math
from dataclasses import dataclass, replace

import numpy as np

from twofold.array_types import FloatArray
from twofold.optimize.constraints import Constraint
from twofold.optimize.solution import Evaluate, StopReason

ETA_PLUS = 1.2
ETA_MINUS = 0.5
# Absolute, as published: latent kernels have the bandwidth 1. On half circles a step relative
# to the spread of the start was never better, and worse where a contracted start had to unfold.
FIRST_STEP = 0.1
MIN_STEP = 1e-6
MAX_STEP = 50.0


@dataclass(frozen=True)
class RpropState:
    """Where a run stands; arrays are (n, q)."""

    X: FloatArray
    value: float
    grad: FloatArray  # without the bound parts
    steps: FloatArray  # sizes
    last_grad: FloatArray  # what the next one is compared with; 0 where it says nothing
    last_move: FloatArray  # what the last iteration added to X
    has_risen: bool = False  # whether it raised the objective


@dataclass(frozen=True)
class Rprop:
    """One member of the family: what else a coordinate does whose gradient changed sign."""

    rest_after_flip: bool  # for one iteration
    undo_rise: bool  # it takes its last move back if the objective rose
    # Progress is uneven from one iteration to the next, so convergence is judged over many.
    window: int = 25

    def init(
        self, constraint: Constraint, X: FloatArray, value: float, grad: FloatArray
    ) -> RpropState:
        """Return the state before the first iteration."""
        nothing = np.zeros_like(X)
        free = constraint.free_gradient(X, grad)
        return RpropState(X, value, free, np.full_like(X, FIRST_STEP), nothing, nothing)

    def step(self, evaluate: Evaluate, constraint: Constraint, state: RpropState) -> RpropState:
        """Make one iteration, which costs one evaluation."""
        agreement = np.sign(state.grad) * np.sign(state.last_grad)
        steps = _adapted(state.steps, agreement)
        flipped = agreement < 0
        grad = np.where(flipped, 0, state.grad) if self.rest_after_flip else state.grad
        move = -np.sign(grad) * steps
        if self.undo_rise and state.has_risen:
            move = np.where(flipped, -state.last_move, move)
        X = constraint.project(state.X + move)
        value, new_grad = evaluate(X)
        if not math.isfinite(value):
            return _stepped_back(state, steps)
        return RpropState(
            X=X,
            value=value,
            grad=constraint.free_gradient(X, new_grad),
            steps=steps,
            last_grad=grad,
            last_move=X - state.X,
            has_risen=value > state.value,
        )

    def should_stop(self, state: RpropState) -> StopReason | None:
        """Tell whether the state leaves nothing to do."""
        moving = state.grad != 0
        if not moving.any():
            return StopReason.STATIONARY
        # A coordinate without gradient (isolated or bound) keeps its step and must not count.
        # The comparison is made in the dtype of the steps, which MIN_STEP was rounded to.
        smallest = state.steps.dtype.type(MIN_STEP)
        return StopReason.SMALL_STEP if state.steps[moving].max() <= smallest else None


def _adapted(steps: FloatArray, agreement: FloatArray) -> FloatArray:
    """Lengthen the steps where the signs agree, shorten them where they differ."""
    factors = np.where(agreement > 0, ETA_PLUS, np.where(agreement < 0, ETA_MINUS, 1.0))
    return np.clip(steps * factors.astype(steps.dtype), MIN_STEP, MAX_STEP)


def _stepped_back(state: RpropState, steps: FloatArray) -> RpropState:
    """Stay where we are and try again half as far, without comparing signs a second time."""
    nothing = np.zeros_like(state.X)
    return replace(
        state,
        steps=np.maximum(ETA_MINUS * steps, MIN_STEP),
        last_grad=nothing,
        last_move=nothing,
        has_risen=False,
    )


RPROP_VARIANTS = {
    "rprop-": Rprop(rest_after_flip=False, undo_rise=False),
    "irprop-": Rprop(rest_after_flip=True, undo_rise=False),
    "irprop+": Rprop(rest_after_flip=True, undo_rise=True),
}
