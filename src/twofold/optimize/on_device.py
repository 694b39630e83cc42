"""The loop of `minimize` for tensors that stay on their device; only numbers leave it."""

from __future__ import annotations

import time
from collections.abc import Iterable
from contextlib import ExitStack
from typing import Any, cast

import numpy as np

from twofold.optimize.constraints import Unconstrained
from twofold.optimize.lbfgs import Lbfgs
from twofold.optimize.loop import Journal, _begun, _drive, _Run, enter_all, read_only, tell
from twofold.optimize.solution import Callback, Event, Solution, StopReason


class _DeviceRun(_Run):
    """The books of a run whose points are tensors."""

    def evaluate(self, X: Any) -> tuple[float, Any]:
        """Evaluate and keep the books; anything but a finite value and gradient becomes ``inf``."""
        value, grad = cast(Any, self.objective).value_and_grad(X)
        self.n_evaluations += 1
        self.is_finite = bool(np.isfinite(value)) and bool(grad.isfinite().all())
        self.is_broken = not self.is_finite and value != np.inf
        if not self.is_finite:
            return np.inf, grad
        if value < self.best[0]:
            self.best = (value, X)
        return value, grad


def minimize_on_device(
    objective: Any,
    X: Any,
    *,
    max_iter: int,
    tol: float,
    pace: Any = None,
    callbacks: Iterable[Callback] = (),
    label: str = "",
) -> Solution:
    """Minimise by L-BFGS from a tensor X (n, q); the solution is an array of numpy.

    ``objective.value_and_grad`` takes a tensor and returns a number and a tensor; ``pace`` is that
    of `minimize`, a tensor. Callbacks get each iterate as an array, which is a transfer; without
    callbacks there is none.
    """
    run, listeners = _DeviceRun(objective, X, None), tuple(callbacks)
    within = Unconstrained()
    try:
        with ExitStack() as stack:
            enter_all(stack, listeners)
            started = time.perf_counter()

            def announce(iteration: int, value: float, X: Any) -> bool:
                if not listeners:
                    return False
                elapsed, points = time.perf_counter() - started, read_only(X.cpu().numpy())
                return tell(listeners, Event(iteration, max_iter, value, points, elapsed, label))

            method = Lbfgs(pace=pace)
            state = _begun(method, run, within)
            reason = _drive(method, run, within, max_iter, tol, announce, state, Journal())
    except KeyboardInterrupt:
        reason = StopReason.INTERRUPTED
    value, best = run.best
    history = np.array(run.history, dtype=np.float64)
    points = best.cpu().numpy()  # type: ignore[attr-defined]
    return Solution(points, value, run.n_iter, run.n_evaluations, reason, history)
