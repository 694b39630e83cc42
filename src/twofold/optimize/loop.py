"""The one loop that drives every method: init, step, should_stop.

The loop owns what all methods share: counting, the best point seen, callbacks, convergence, target,
interrupts, and the journal by which a run that was broken off goes on. A method only knows how to
get from one state to the next.
"""

import math
import time
from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager, ExitStack
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from twofold.array_types import FloatArray
from twofold.checks.parameters import check_choice, check_count
from twofold.optimize.constraints import Constraint, Unconstrained
from twofold.optimize.lbfgs import Lbfgs
from twofold.optimize.rprop import RPROP_VARIANTS, Rprop
from twofold.optimize.solution import Callback, Event, Objective, Solution, StopReason

DEFAULT_MAX_ITER = 1000
DEFAULT_TOL = 1e-9


Method = Lbfgs | Rprop
# Of nine runs of 1000 iterations on noisy spirals "irprop+" beat "rprop-" in eight; "irprop-" was
# within 0.2 % of it in eight and 3 % behind in one.
METHODS: dict[str, Method] = {
    "lbfgs": Lbfgs(),
    **RPROP_VARIANTS,
    "rprop": RPROP_VARIANTS["irprop+"],
}


@dataclass(frozen=True)
class KeptRun:
    """The books of a run, and where its method stands; None once it has ended."""

    state: Any
    best_value: float
    best: FloatArray  # (n, q) the point of that value
    history: FloatArray
    best_values: FloatArray
    n_evaluations: int
    is_finite: bool
    is_broken: bool
    stop_reason: str = ""  # why it ended


class Journal:
    """A record of runs, from which the same runs can resume; this base class keeps nothing.

    Runs are deterministic: the first, second, … one of a computation is the same one whenever it is
    made. So steps need no names: whoever begins one gets what was kept of it. To keep a file,
    inherit from this class.

    Examples
    --------
    >>> from twofold.optimize import Journal
    >>> class Counting(Journal):
    ...     steps = 0
    ...
    ...     def begin(self):
    ...         self.steps += 1
    >>> journal = Counting()
    >>> journal.begin()
    >>> journal.steps
    1
    """

    def begin(self) -> Any:
        """Begin the next step; return what was kept of it, None if nothing was."""
        return None

    def note(self, reached: Callable[[], Any]) -> None:
        """Keep the state of a step, if it is time to; ``reached()`` returns it."""

    def end(self, result: Any) -> None:
        """Keep the result of a step."""

    def write(self) -> None:
        """Write what was kept: what follows may fail for reasons outside of the computation."""

    def close(self) -> None:
        """Keep nothing from now on: the computation was interrupted and is being wound up."""


def minimize(
    objective: Objective,
    X0: FloatArray,
    *,
    method: str = "lbfgs",
    pace: FloatArray | None = None,
    max_iter: int = DEFAULT_MAX_ITER,
    tol: float = DEFAULT_TOL,
    constraint: Constraint | None = None,
    callbacks: Iterable[Callback] = (),
    target: float | None = None,
    label: str = "",
    journal: Journal | None = None,
) -> Solution:
    """Minimise a smooth function of an (n, q) array.

    The result is the best point seen, also when the run is interrupted from the keyboard, and the
    same whatever the number of threads if the objective's is.

    Parameters
    ----------
    objective : Objective
        Has ``value_and_grad(X) -> (float, (n, q) array)``; infeasible points have the value inf.
    X0 : array of shape (n, q)
        Start, float32 or float64; all iterates have its dtype. It is projected onto `constraint`.
    method : {"lbfgs", "rprop", "rprop-", "irprop-", "irprop+"}
        "rprop" is the best of its family, "irprop+".
    pace : array of shape (n, 1), optional
        Relative step sizes of the rows of X, for unknowns of different kinds. Only L-BFGS uses it.
    max_iter : int
        Maximum number of iterations. With 0 only `X0` is evaluated.
    tol : float
        Converged when the best value fell by less than this fraction of itself over the last 25
        iterations (L-BFGS: 5). 0 turns the test off.
    constraint : Constraint, optional
        Set that all iterates stay in, such as `Box` or `Ball`.
    callbacks : iterable of callables ``(Event) -> bool | None``
        All are called after each iteration; if one returns true the run stops. Those that are
        context managers are entered for the run and left when it ends, however it ends.
    target : float, optional
        Stop as soon as the value is at most this.
    label : str
        Name of the run in its events.
    journal : Journal, optional
        Keeps the run, so that it can resume. A run that was made before continues to the same bits,
        and one that had ended is not repeated.

    Examples
    --------
    >>> import numpy as np
    >>> from twofold.optimize import Box, minimize
    >>> class Valley:
    ...     def value_and_grad(self, X):
    ...         return float(((X - 3) ** 2).sum()), 2 * (X - 3)
    >>> minimize(Valley(), np.zeros((2, 1)), constraint=Box(1.5)).X.tolist()
    [[1.5], [1.5]]
    """
    check_choice("method", method, tuple(METHODS))
    check_count("max_iter", max_iter, 0)
    if not tol >= 0:
        raise ValueError(f"`tol` must be at least 0 (0 turns the test off); got {tol}.")
    chosen = METHODS[method]
    # Rows of X move at their own pace; all but L-BFGS find theirs.
    if pace is not None and isinstance(chosen, Lbfgs):
        chosen = Lbfgs(chosen.window, pace.astype(X0.dtype))
    within = Unconstrained() if constraint is None else constraint
    run = _Run(objective, within.project(_checked_start(X0)), target)
    listeners, journal = tuple(callbacks), journal or Journal()
    kept: KeptRun | None = journal.begin()
    if kept is not None:
        run.restore(kept)
        if kept.state is None:
            return run.solution(StopReason(kept.stop_reason))
    try:
        with ExitStack() as stack:
            enter_all(stack, listeners)
            started = time.perf_counter()

            def announce(iteration: int, value: float, X: FloatArray) -> bool:
                elapsed = time.perf_counter() - started
                event = Event(iteration, max_iter, value, read_only(X), elapsed, label)
                return tell(listeners, event)

            state = _begun(chosen, run, within) if kept is None else kept.state
            reason = _drive(chosen, run, within, max_iter, tol, announce, state, journal)
    except KeyboardInterrupt:
        reason = StopReason.INTERRUPTED
        journal.close()
    journal.end(run.kept(None, reason))
    return run.solution(reason)


def enter_all(stack: ExitStack, callbacks: Iterable[Callback]) -> None:
    """Enter those callbacks that are context managers, such as a progress bar."""
    for callback in callbacks:
        if isinstance(callback, AbstractContextManager):
            stack.enter_context(callback)


def tell(callbacks: Iterable[Callback], event: Event) -> bool:
    """Call all callbacks, also after one asked to stop; return whether one did."""
    requests = [callback(event) for callback in callbacks]
    return any(requests)


def read_only(X: FloatArray) -> FloatArray:
    """Return a view of an iterate that callbacks cannot change."""
    view = X.view()
    view.flags.writeable = False
    return view


class _Run:
    """The books of one run: evaluations, history, best point seen."""

    def __init__(self, objective: Objective, X: FloatArray, target: float | None) -> None:
        self.objective = objective
        self.target = target
        self.n_evaluations = 0
        # Of the last evaluation: whether it may be gone to, and whether it was not even +inf.
        self.is_finite = True
        self.is_broken = False
        self.history: list[float] = []
        self.best_values: list[float] = []
        # Value and point are replaced in one assignment, so that an interrupt finds them matching.
        self.best = (math.inf, X)

    def evaluate(self, X: FloatArray) -> tuple[float, FloatArray]:
        """Evaluate and keep the books; anything but a finite value and gradient becomes ``inf``."""
        if not np.isfinite(X).all():  # a step so long that it left all numbers
            self.n_evaluations += 1
            self.is_finite = self.is_broken = False
            return math.inf, np.zeros_like(X)
        value, raw = self.objective.value_and_grad(X)
        # A copy, because an objective may reuse the memory of its gradient.
        grad = np.array(raw, dtype=X.dtype)
        if grad.shape != X.shape:
            raise ValueError(
                f"The gradient must have the shape of X, {X.shape}; got {grad.shape}. "
                "Let value_and_grad return one derivative for each entry of X."
            )
        value = float(value)
        self.n_evaluations += 1
        self.is_finite = math.isfinite(value) and bool(np.isfinite(grad).all())
        self.is_broken = not self.is_finite and value != math.inf
        if not self.is_finite:
            return math.inf, grad
        if value < self.best[0]:
            self.best = (value, X)
        return value, grad

    def record(self, value: float) -> None:
        """Enter an iterate into the history."""
        self.history.append(value)
        self.best_values.append(self.best[0])

    @property
    def n_iter(self) -> int:
        """Number of iterations; the history begins with the start."""
        return max(len(self.history) - 1, 0)

    def stop_reason(self, window: int, tol: float) -> StopReason | None:
        """Tell whether the values reached so far end the run."""
        best = self.best[0]
        if self.target is not None and best <= self.target:
            return StopReason.TARGET
        # Standing still because the way is barred is not convergence; shorter steps come next.
        if len(self.best_values) > window and self.is_finite:
            decrease = self.best_values[-1 - window] - best
            if decrease < tol * abs(best):
                return StopReason.CONVERGED
        return None

    def kept(self, state: Any, reason: str = "") -> KeptRun:
        """Return a copy of the books, with the state of the method."""
        return KeptRun(
            state,
            *self.best,
            history=np.array(self.history),
            best_values=np.array(self.best_values),
            n_evaluations=self.n_evaluations,
            is_finite=self.is_finite,
            is_broken=self.is_broken,
            stop_reason=str(reason),
        )

    def restore(self, kept: KeptRun) -> None:
        """Open the books where they were copied."""
        X, points = self.best[1], [kept.best, kept.best if kept.state is None else kept.state.X]
        if any(point.shape != X.shape or point.dtype != X.dtype for point in points):
            raise ValueError(f"What the journal kept is of another run, not of {X.shape} points.")
        self.best = kept.best_value, kept.best
        self.history, self.best_values = kept.history.tolist(), kept.best_values.tolist()
        self.n_evaluations = kept.n_evaluations
        self.is_finite, self.is_broken = kept.is_finite, kept.is_broken

    def solution(self, reason: StopReason) -> Solution:
        """Close the books."""
        value, X = self.best
        history = np.array(self.history, dtype=np.float64)
        return Solution(X, value, self.n_iter, self.n_evaluations, reason, history)


def _begun(method: Method, run: _Run, constraint: Constraint) -> Any:
    """Return the state before the first iteration, None if the start has no value."""
    X = run.best[1]
    value, grad = run.evaluate(X)
    run.record(value)
    return method.init(constraint, X, value, grad) if math.isfinite(value) else None


def _drive(
    method: Method,
    run: _Run,
    constraint: Constraint,
    max_iter: int,
    tol: float,
    announce: Callable[[int, float, FloatArray], bool],
    state: Any,
    journal: Journal,
) -> StopReason:
    """Iterate from a state until there is a reason to stop."""
    if state is None:
        return StopReason.NON_FINITE
    reason = run.stop_reason(method.window, tol) or method.should_stop(state)
    while reason is None and run.n_iter < max_iter:
        journal.note(partial(run.kept, state))
        state = method.step(run.evaluate, constraint, state)
        run.record(state.value)
        # Asked first, so that a continuation hears of the request even if its stage has converged.
        if announce(run.n_iter, state.value, state.X):
            return StopReason.CALLBACK
        reason = run.stop_reason(method.window, tol) or method.should_stop(state)
        if reason is StopReason.SMALL_STEP and run.is_broken:
            reason = StopReason.NON_FINITE
    return reason or StopReason.MAX_ITER


def _checked_start(X0: FloatArray) -> FloatArray:
    """Return a float32 or float64 copy of `X0`, of shape (n, q), or say what is wrong with it."""
    X = np.asarray(X0)
    if X.ndim != 2 or X.size == 0:
        raise ValueError(
            f"`X0` must have the shape (n, q) with n, q >= 1; got {X.shape}. "
            "Use X0.reshape(-1, 1) for a single latent coordinate."
        )
    dtype = np.float32 if X.dtype == np.float32 else np.float64
    X = np.array(X, dtype=dtype, order="C")
    if not np.isfinite(X).all():
        row, column = np.argwhere(~np.isfinite(X))[0]
        raise ValueError(
            f"`X0` must be finite; got {X[row, column]} in row {row}, column {column}. "
            "Choose another start."
        )
    return X
