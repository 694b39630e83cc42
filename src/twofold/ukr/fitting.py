"""From rows to latent points: start, scale of the residuals, training.

The order is that of Klanke 2007, section 4.4.5, for every loss and regularisation. Losses that
cannot choose a start give way there: cross-validation must not use an ε-insensitive loss, and
Huber's δ is not known before there are residuals (a provisional one comes from the spread of the
data, the final one from the cross-validated residuals of the start).
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from twofold.array_types import FloatArray, IntArray
from twofold.losses import EpsilonInsensitive, Huber, Loss, Squared
from twofold.optimize import Callback, Event, Solution, StopReason
from twofold.regularization import Smoothest
from twofold.ukr.problem import Problem
from twofold.ukr.smoothest import smooth
from twofold.ukr.starts import Start, Tell, choose_start
from twofold.ukr.training import Training, train
from twofold.ukr.unfolding import unfold


@dataclass(frozen=True)
class Wishes:
    """What the user asked for besides the problem itself."""

    q: int
    init: Any
    seed: int
    n_jobs: int | None
    training: Training
    tell: Tell


def teller(bars: Sequence[Callback]) -> Tell:
    """Return a function that shows what happens before the first iteration."""
    began = time.perf_counter()

    def tell(words: str, step: int, total: int) -> None:
        nothing = np.empty((0, 0))
        event = Event(step, total, float("nan"), nothing, time.perf_counter() - began, words)
        for bar in bars:
            bar(event)

    return tell


@dataclass(frozen=True)
class Fit:
    """A fitted problem.

    Attributes
    ----------
    X : (n, q) latent points, centred, in kernel units; with landmarks theirs below
    problem : the problem, its loss with all numbers found
    start : Start
    start_unit : what an error of 1 of a start means in units of the loss
    solution : Solution
    violation : largest excess over a tolerance in units of the data, for the smoothest manifold
    """

    X: FloatArray
    problem: Problem
    start: Start
    start_unit: float
    solution: Solution
    violation: float | None = None


def fit_points(problem: Problem, Y: FloatArray, source: IntArray, wishes: Wishes) -> Fit:
    """Fit the latent points of rows Y (n, D), NaN where missing, from a start."""
    choosing = replace(problem, loss=loss_for_starts(problem, Y))
    start = choose_start(
        choosing, Y, wishes.q, wishes.init, source, wishes.seed, wishes.n_jobs, wishes.tell
    )
    problem = with_huber_scale(problem, choosing, start.X)
    training = replace(wishes.training, max_iter=0) if start.interrupted else wishes.training
    violation = None
    if start.linear and training.max_iter > 0 and hasattr(problem.regularization, "homotopy"):
        solution = unfold(problem, start.X, training)
    else:
        solution, violation = settle(problem, start.X, training)
    if start.interrupted:
        solution = replace(solution, stop_reason=StopReason.INTERRUPTED)
    return Fit(solution.X, problem, start, choosing.error_unit, solution, violation)


def loss_for_starts(problem: Problem, Y: FloatArray) -> Loss:
    """Return the loss by which starts are compared; see the module's docstring."""
    if isinstance(problem.loss, EpsilonInsensitive):
        return Squared()
    if isinstance(problem.loss, Huber):
        return problem.loss.fitted(_around_median(Y), ~np.isnan(Y), problem.rows.unit)
    return problem.loss


def _around_median(Y: FloatArray) -> FloatArray:
    return Y - np.nanmedian(Y, axis=0)


def with_huber_scale(problem: Problem, choosing: Problem, X: FloatArray) -> Problem:
    """Return the problem with Huber's δ from cross-validated residuals, where it was not given."""
    if not isinstance(problem.loss, Huber) or problem.loss.delta is not None:
        return problem
    rows, unit = problem.rows, problem.rows.unit
    error = choosing.reconstruction(cross_validated=True)
    R = error.residuals_of(X, np.arange(len(rows.Y))) * unit
    return replace(problem, loss=problem.loss.fitted(R, rows.observed, unit))


def settle(problem: Problem, X: FloatArray, training: Training) -> tuple[Solution, float | None]:
    """Improve latent points that are already good; return what `Fit` calls the violation, too."""
    if isinstance(problem.regularization, Smoothest):
        smoothed = smooth(problem, X, training)
        return smoothed.solution, smoothed.violation * problem.rows.unit
    return train(problem, X, training), None
