"""Warm-started sequences of problems, from an easy one to the one that is meant.

A non-convex objective is approached through relatives that are simpler: a penalty that falls, a box
that grows, a barrier that recedes (homotopy; UKR thesis, section 4.4.3). Each stage starts from the
best point of the one before, with fresh step sizes, because the scale of the problem has changed.
"""

import time
from collections.abc import Callable, Iterable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace

import numpy as np

from twofold.array_types import FloatArray
from twofold.optimize.constraints import Constraint
from twofold.optimize.loop import (
    DEFAULT_MAX_ITER,
    DEFAULT_TOL,
    Journal,
    enter_all,
    minimize,
    tell,
)
from twofold.optimize.solution import Callback, Event, Objective, Solution, StageRecord, StopReason

# After these the user, or the mathematics, wants no further stage.
_FINAL_REASONS = {StopReason.INTERRUPTED, StopReason.CALLBACK, StopReason.NON_FINITE}


@dataclass(frozen=True)
class Stage:
    """One problem of a sequence.

    `constraint` is the set that its iterates stay in, `label` its name in events and records.

    Examples
    --------
    >>> from twofold.optimize import Ball, Stage
    >>> class Bowl:
    ...     def value_and_grad(self, X):
    ...         return float((X**2).sum()), 2 * X
    >>> Stage(Bowl(), Ball(1.0), "inside").label
    'inside'
    """

    objective: Objective
    constraint: Constraint | None = None
    label: str = ""
    max_iter: int = DEFAULT_MAX_ITER


def continue_through(
    stages: Iterable[Stage],
    X0: FloatArray,
    *,
    method: str = "lbfgs",
    pace: FloatArray | None = None,
    max_iter: int | None = None,
    tol: float = DEFAULT_TOL,
    callbacks: Iterable[Callback] = (),
    stop_when: Callable[[Solution, Stage], bool] | None = None,
    journal: Journal | None = None,
) -> Solution:
    """Minimise a sequence of problems, each from the best point of the one before.

    The solution is that of the last stage that evaluated anything, with iterations, evaluations and
    history of all, and one record a stage. An interrupt, a callback or a start that is not feasible
    ends the sequence early; an interrupt before the first stage began is passed on.

    Parameters
    ----------
    stages : iterable of Stage
        At least one. They are taken one at a time, so a generator may be endless if `stop_when`
        ends it.
    X0 : array of shape (n, q)
        Start of the first stage.
    method, pace, tol
        As in `minimize`, for every stage.
    max_iter : int, optional
        Maximum number of iterations of all stages together. What a stage does not use goes to the
        next ones, each up to its own ``max_iter``.
    callbacks : iterable of callables ``(Event) -> bool | None``
        As in `minimize`; iterations and time are counted through all stages, and a true result ends
        the whole sequence. ``Event.max_iter`` is the maximum for all stages; None if `stages` is
        not a sequence.
    stop_when : callable ``(Solution, Stage) -> bool``, optional
        Asked after each stage; true ends the sequence.
    journal : Journal, optional
        As in `minimize`; each stage is a step of it.

    Examples
    --------
    >>> import numpy as np
    >>> from twofold.optimize import Stage, continue_through
    >>> class Towards:
    ...     def __init__(self, goal):
    ...         self.goal = goal
    ...     def value_and_grad(self, X):
    ...         return float(((X - self.goal) ** 2).sum()), 2 * (X - self.goal)
    >>> found = continue_through([Stage(Towards(g)) for g in (1.0, 2.0)], np.zeros((1, 2)))
    >>> found.X.round(3), len(found.stages)
    (array([[2., 2.]]), 2)
    """
    listeners = tuple(callbacks)
    counted = isinstance(stages, Sequence)
    planned = sum(stage.max_iter for stage in stages) if counted else max_iter
    if planned is not None and max_iter is not None:
        planned = min(planned, max_iter)
    totals, left = _Totals(planned), max_iter
    solution: Solution | None = None
    try:
        with ExitStack() as stack:
            enter_all(stack, listeners)
            for stage in stages:
                start = X0 if solution is None else solution.X
                latest = minimize(
                    stage.objective,
                    start,
                    method=method,
                    pace=pace,
                    max_iter=stage.max_iter if left is None else min(stage.max_iter, left),
                    tol=tol,
                    constraint=stage.constraint,
                    callbacks=totals.count_for(listeners),
                    label=stage.label,
                    journal=journal,
                )
                solution = totals.add(solution, latest, stage.label, stage.max_iter)
                if latest.stop_reason in _FINAL_REASONS:
                    break
                if left is not None:
                    left -= latest.n_iter
                    if left <= 0:
                        break
                if stop_when is not None and stop_when(latest, stage):
                    break
    except KeyboardInterrupt:
        # Between two stages, or in a callback's own opening or closing.
        if solution is None:
            raise
        if journal is not None:
            journal.close()
        solution = replace(solution, stop_reason=StopReason.INTERRUPTED)
    if solution is None:
        raise ValueError("`stages` must hold at least one Stage; got none.")
    return solution


def in_halves(
    descend: Callable[[FloatArray, int, tuple[Callback, ...]], Solution],
    adjust: Callable[[FloatArray], FloatArray],
    X0: FloatArray,
    max_iter: int,
    callbacks: Iterable[Callback],
    journal: Journal,
) -> Solution:
    """Minimise in two halves, each followed by an adjustment that a descent is slow to make.

    ``descend(X, max_iter, callbacks)`` minimises from a point, and ``adjust(X)`` returns a point
    that ought to be better. The result is the best of both halves and of the last adjustment.
    Iterations, callbacks, interrupts and the journal are those of `continue_through`.

    Examples
    --------
    >>> import numpy as np
    >>> from twofold.optimize import Journal, in_halves, minimize
    >>> class Bowl:
    ...     def value_and_grad(self, X):
    ...         return float((X**2).sum()), 2 * X
    >>> def descend(X, max_iter, callbacks):
    ...     return minimize(Bowl(), X, max_iter=max_iter, callbacks=callbacks)
    >>> in_halves(descend, lambda X: X / 2, np.ones((1, 2)), 4, (), Journal()).n_iter <= 4
    True
    """
    listeners, totals = tuple(callbacks), _Totals(max_iter)
    half = max_iter // 2
    with ExitStack() as stack:
        enter_all(stack, listeners)
        first = descend(X0, half, totals.count_for(listeners))
        solution = totals.add(None, first, "", half)
        try:
            if solution.stop_reason in _FINAL_REASONS:
                return solution
            second = descend(adjust(first.X), max_iter - half, totals.count_for(listeners))
            solution = totals.add(solution, second, "", max_iter - half)
            if solution.stop_reason in _FINAL_REASONS:
                return solution
            last = descend(adjust(second.X), 0, ())
        except KeyboardInterrupt:
            journal.close()
            return replace(solution, stop_reason=StopReason.INTERRUPTED)
    best = min(second, last, first, key=lambda found: found.value)
    history = last.history if best is last else ()
    return replace(
        solution,
        X=best.X,
        value=best.value,
        n_evaluations=solution.n_evaluations + last.n_evaluations,
        history=np.concatenate([solution.history, history]),
    )


class _Totals:
    """What the stages so far add up to."""

    def __init__(self, planned: int | None) -> None:
        self.started = time.perf_counter()
        self.n_iter = 0
        # Iterations that this and the later stages may still make.
        self.planned = planned

    def count_for(self, callbacks: tuple[Callback, ...]) -> tuple[Callback, ...]:
        """Return callbacks of the next stage that tell these, counting through all stages."""
        if not callbacks:
            return ()
        before, started = self.n_iter, self.started
        most = None if self.planned is None else before + self.planned

        def forward(event: Event) -> bool:
            shifted = replace(
                event,
                iteration=before + event.iteration,
                max_iter=most,
                elapsed=time.perf_counter() - started,
            )
            return tell(callbacks, shifted)

        return (forward,)

    def add(
        self, earlier: Solution | None, latest: Solution, label: str, max_iter: int
    ) -> Solution:
        """Append a stage to the solution so far."""
        self.n_iter += latest.n_iter
        if self.planned is not None:
            self.planned = max(0, self.planned - max_iter)
        record = StageRecord(label, latest.n_iter, latest.value, latest.stop_reason)
        if earlier is None:
            return replace(latest, stages=(record,))
        if latest.n_evaluations == 0:
            return replace(earlier, stop_reason=latest.stop_reason)
        return replace(
            latest,
            n_iter=self.n_iter,
            n_evaluations=earlier.n_evaluations + latest.n_evaluations,
            history=np.concatenate([earlier.history, latest.history]),
            stages=(*earlier.stages, record),
        )
