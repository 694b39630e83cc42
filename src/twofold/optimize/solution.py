"""What goes into a minimisation and what comes out of it.

An objective is anything with ``value_and_grad``; a run reports each iteration as an `Event` and
ends with a `Solution` whose `StopReason` is a sentence a user can act on.
"""

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol

from twofold.array_types import FloatArray

Evaluate = Callable[[FloatArray], tuple[float, FloatArray]]


class Objective(Protocol):
    """A smooth function of an (n, q) array.

    Examples
    --------
    >>> import numpy as np
    >>> from twofold.optimize import minimize
    >>> class Bowl:
    ...     def value_and_grad(self, X):
    ...         return float((X**2).sum()), 2 * X
    >>> minimize(Bowl(), np.array([[1.0, 2.0]])).value < 1e-6
    True
    """

    def value_and_grad(self, X: FloatArray) -> tuple[float, FloatArray]:
        """Return the value and the (n, q) gradient at `X`, which must not be changed.

        The value may be ``+inf`` where `X` is infeasible; the gradient is then not looked at. Let
        the value grow before it does (a logarithmic barrier): at a sudden wall every method only
        learns that it must not go on, not which way to turn.
        """
        ...


class StopReason(StrEnum):
    """Why a run ended; `message` says it in a sentence.

    Examples
    --------
    >>> from twofold.optimize import StopReason
    >>> StopReason.MAX_ITER.message
    'max_iter iterations were made before the run converged; raise max_iter or tol.'
    """

    CONVERGED = "converged"
    STATIONARY = "stationary"
    SMALL_STEP = "small_step"
    TARGET = "target"
    MAX_ITER = "max_iter"
    CALLBACK = "callback"
    INTERRUPTED = "interrupted"
    NON_FINITE = "non_finite"

    @property
    def message(self) -> str:
        """The reason as a sentence, with what to do about it where something can be done."""
        return _MESSAGES[self]

    @property
    def was_requested(self) -> bool:
        """Whether somebody asked the run to stop, so that nothing should follow it."""
        return self in (StopReason.CALLBACK, StopReason.INTERRUPTED)


_MESSAGES = {
    StopReason.CONVERGED: "The relative decrease of the objective fell below tol.",
    StopReason.STATIONARY: (
        "The gradient is zero in every direction the constraint leaves free: a stationary point. "
        "If this is the start, move it (points that all coincide feel no force)."
    ),
    StopReason.SMALL_STEP: "The steps became too small to lower the objective any further.",
    StopReason.TARGET: "The objective reached the target value.",
    StopReason.MAX_ITER: (
        "max_iter iterations were made before the run converged; raise max_iter or tol."
    ),
    StopReason.CALLBACK: "A callback asked to stop.",
    StopReason.INTERRUPTED: "The run was interrupted; this is the best point seen until then.",
    StopReason.NON_FINITE: (
        "The objective is not finite at the start, or gave NaN wherever the run tried to go; "
        "start from a feasible point and check the data for extreme values."
    ),
}


@dataclass(frozen=True)
class Event:
    """The state of a run after one iteration, as callbacks see it.

    Attributes
    ----------
    iteration : iterations made so far, counted from 1
    max_iter : the maximum; None if it is not known
    value : objective at `X`
    X : (n, q) the current iterate, read-only
    elapsed : seconds since the run began
    label : name of the run or of the stage
    unit : what is counted

    Examples
    --------
    >>> from twofold import UKR
    >>> from twofold.datasets import make_half_circle
    >>> Y, seen = make_half_circle(50, random_state=0).Y, []
    >>> watch = lambda event: seen.append(event.iteration)
    >>> model = UKR(1, init="isomap", max_iter=3, callbacks=[watch]).fit(Y)
    >>> seen[:3]
    [1, 2, 3]
    """

    iteration: int
    max_iter: int | None
    value: float
    X: FloatArray
    elapsed: float
    label: str = ""
    unit: str = "iteration"


Callback = Callable[[Event], bool | None]
"""Called after every iteration; a true result stops the run."""


@dataclass(frozen=True)
class StageRecord:
    """How one stage of a continuation went; its history has ``n_iter + 1`` entries.

    Examples
    --------
    >>> import numpy as np
    >>> from twofold.optimize import Stage, continue_through
    >>> class Bowl:
    ...     def value_and_grad(self, X):
    ...         return float((X**2).sum()), 2 * X
    >>> continue_through([Stage(Bowl(), label="only")], np.ones((1, 2))).stages[0].label
    'only'
    """

    label: str
    n_iter: int
    value: float
    stop_reason: StopReason


@dataclass(frozen=True)
class Solution:
    """The result of a run.

    Attributes
    ----------
    X : (n, q) the evaluated point with the lowest value
    value : objective at `X`; ``inf`` if no evaluation gave a finite value
    n_iter, n_evaluations : iterations made and objective evaluations used
    stop_reason : why the run ended
    history : (n_iter + 1,) the objective after each iteration, the start first. It is empty if the
        run was interrupted before the first evaluation, and the stages' histories end to end after
        a continuation
    stages : one record a stage after a continuation, otherwise empty

    Examples
    --------
    >>> import numpy as np
    >>> from twofold.optimize import minimize
    >>> class Bowl:
    ...     def value_and_grad(self, X):
    ...         return float((X**2).sum()), 2 * X
    >>> found = minimize(Bowl(), np.ones((1, 2)))
    >>> len(found.history) == found.n_iter + 1, round(found.value, 6)
    (True, 0.0)
    """

    X: FloatArray
    value: float
    n_iter: int
    n_evaluations: int
    stop_reason: StopReason
    history: FloatArray
    stages: tuple[StageRecord, ...] = ()
