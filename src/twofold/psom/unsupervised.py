"""Learning a map without known places: fit the map, project the rows, soften, repeat.

    minimise  (1/m) Σ_i min_x ||y_i - f(x)||² + λ/1000 R(W)             (Klanke 2007, eq. 3.41)

over node values W on the domain [-1, 1]^q. For a given λ, fitting the map to the rows at their
places (:mod:`twofold.psom.adaption`) and moving the places to the best matches of the rows both
lower the objective; λ falls as in :mod:`twofold.psom.annealing`. A row looks for its best match
from its last place and from the best node, and keeps the better.

Where rows are held out, their projection error says when to stop (:mod:`twofold.psom.annealing`).
From there the map is fitted to all rows at that λ.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from twofold.array_types import FloatArray, IntArray
from twofold.engine.threads import count_threads, single_threaded_blas
from twofold.optimize import Callback, Event
from twofold.psom.adaption import Adaption
from twofold.psom.annealing import ROWS_OF_SCHEDULE, HeldOutStop, Schedule, choose_held_out
from twofold.psom.best_match import best_match
from twofold.psom.grid import Grid
from twofold.psom.roughness import Roughness
from twofold.psom.starts import Start

# Its last place, and the best node.
STARTS_OF_A_ROW = 2
# Cycles with all rows, once the held-out ones have done their work.
LAST_CYCLES = 5

DONE, ROSE = "end of the schedule", "held-out error rose"
CALLBACK, INTERRUPTED = "callback", "interrupted"


@dataclass(frozen=True, eq=False)
class ManifoldFit:
    """A learned map.

    Attributes
    ----------
    W : (N, D) node values
    X : (n, q) places of the rows
    smoothness : λ it was fitted with, in units of the schedule
    error, roughness, objective : mean squared error, R(W) and what was minimised, at the end
    steps : of each cycle, in columns: λ, error, roughness, objective, held-out error (or NaN)
    stop_reason : why it ended
    """

    W: FloatArray
    X: FloatArray
    smoothness: float
    error: float
    roughness: float
    objective: float
    steps: FloatArray
    stop_reason: str


@dataclass(frozen=True, eq=False)
class _State:
    """A map with the places of its rows; replaced whole, so that an interrupt finds it whole."""

    C: FloatArray
    W: FloatArray
    X: FloatArray
    smoothness: float = np.inf
    error: float = np.inf
    roughness: float = 0.0
    held_out: float = np.nan

    @property
    def objective(self) -> float:
        return self.error + self.smoothness / ROWS_OF_SCHEDULE * self.roughness


@dataclass(frozen=True, eq=False)
class ManifoldTask:
    """What is to be learned.

    Attributes
    ----------
    grid : the grid, on [-1, 1]^q
    Y : (n, D) rows, NaN where missing
    weights : (n,) of the rows
    start : where to begin
    schedule : how the smoothness falls
    max_iter : most steps of a search for best matches
    n_jobs : number of threads, -1 for every core
    callbacks : called after each cycle; X of their events are the places of all rows
    unit : what Y and start are divided by; errors and roughness are told without it
    """

    grid: Grid
    Y: FloatArray
    weights: FloatArray
    start: Start
    schedule: Schedule
    max_iter: int = 60
    n_jobs: int | None = -1
    callbacks: Sequence[Callback] = field(default=())
    unit: float = 1.0


def fit_manifold(task: ManifoldTask, rng: np.random.RandomState) -> ManifoldFit:
    """Learn a map and the places of its rows; ``rng`` decides which rows are held out."""
    with single_threaded_blas():
        run = _Run(task)
        held_out = choose_held_out(task.start.X, task.schedule.holdout, rng)
        run.anneal(held_out)
        return run.result()


class _Run:
    """One run: the state, the best one by held-out rows, and the books."""

    def __init__(self, task: ManifoldTask) -> None:
        self.task = task
        self.roughness = Roughness(task.grid)
        self.steps: list[tuple[float, ...]] = []
        self.reason = DONE
        self.began = time.perf_counter()
        self.every_row = np.arange(len(task.Y))
        self.n_threads = count_threads(task.n_jobs)
        adaption = self._adaption(self.every_row)
        self.whole = adaption
        self.state = _State(adaption.coefficients(task.start.W), task.start.W, task.start.X)
        self.best = self.state

    def _adaption(self, rows: IntArray) -> Adaption:
        task = self.task
        return Adaption(task.grid, task.Y[rows], task.weights[rows], self.n_threads)

    def anneal(self, held_out: IntArray) -> None:
        """Go through the schedule; an interrupt keeps what is there."""
        values = self.task.schedule.values(self.task.start.most)
        values = [value for value in values for _ in range(self.task.schedule.cycles)]
        try:
            self._anneal(values, held_out)
        except KeyboardInterrupt:
            if not self.steps:
                raise
            self.reason = INTERRUPTED
            if len(held_out):
                self._place_all()

    def _anneal(self, values: list[float], held_out: IntArray) -> None:
        rows = np.setdiff1d(self.every_row, held_out)
        adaption = self._adaption(rows) if len(held_out) else self.whole
        most = len(values) + (LAST_CYCLES if len(held_out) else 0)
        stop: HeldOutStop[_State] | None = None
        if len(held_out):
            stop = HeldOutStop(self.task.weights[held_out], self.task.schedule.cycles)
        for value in values:
            errors = self._cycle(adaption, rows, held_out, value)
            self.best = self.state
            if stop is not None:
                stop.note(self.state, errors)
                self.best = stop.chosen
            if self._announce(most):
                self.reason = CALLBACK
                break
            if stop is not None and stop.is_over:
                self.reason = ROSE
                break
        if not len(held_out):
            return
        self.state = self.best
        for _ in range(LAST_CYCLES if self.reason != CALLBACK else 1):
            self._cycle(self.whole, self.every_row, held_out[:0], self.best.smoothness)
            if self._announce(most):
                self.reason = CALLBACK
                break

    def _cycle(self, adaption: Adaption, rows: IntArray, out: IntArray, value: float) -> FloatArray:
        """Fit the map to some rows at their places, project all; return errors of those out."""
        task, before = self.task, self.state
        factor = value * float(task.weights[rows].sum()) / ROWS_OF_SCHEDULE
        C = adaption.solve(before.X[rows], factor, before.C)
        W = adaption.node_values(C)
        X, errors = self._project(W, before.X)
        weights = task.weights
        held_out = float(weights[out] @ errors[out] / weights[out].sum()) if len(out) else np.nan
        error = float(weights[rows] @ errors[rows] / weights[rows].sum())
        state = _State(C, W, X, value, error, self.roughness.of(W), held_out)
        self.steps.append((value, error, state.roughness, state.objective, held_out))
        self.state = state
        return errors[out]

    def _project(self, W: FloatArray, X: FloatArray) -> tuple[FloatArray, FloatArray]:
        found = best_match(
            self.task.grid,
            W,
            self.task.Y,
            start=X,
            n_starts=STARTS_OF_A_ROW,
            max_iter=self.task.max_iter,
            n_jobs=self.task.n_jobs,
        )
        return found.places, found.squared_errors

    def _place_all(self) -> None:
        """After an interrupt: the best map there is, and its error for all rows."""
        # Without an error of held-out rows it is already fitted to all rows.
        best = self.state if np.isnan(self.state.held_out) else self.best
        X, errors = self._project(best.W, best.X)
        error = float(self.task.weights @ errors / self.task.weights.sum())
        self.state = _State(best.C, best.W, X, best.smoothness, error, best.roughness)

    def _announce(self, most: int) -> bool:
        X = self.state.X.view()
        X.flags.writeable = False
        elapsed = time.perf_counter() - self.began
        event = Event(
            len(self.steps),
            most,
            self.state.objective * self.task.unit**2,
            X,
            elapsed,
            f"λ {self.state.smoothness:.3g}",
        )
        # Every callback hears of every cycle, also after another asked to stop.
        wishes = [callback(event) for callback in self.task.callbacks]
        return any(wishes)

    def result(self) -> ManifoldFit:
        """Close the books, in the unit of the data."""
        state, unit = self.state, self.task.unit
        square = unit**2
        return ManifoldFit(
            W=state.W * unit,
            X=state.X,
            smoothness=state.smoothness,
            error=state.error * square,
            roughness=state.roughness * square,
            objective=state.objective * square,
            # All columns but the first, λ, are squares.
            steps=np.array(self.steps).reshape(-1, 5) * [1.0, *[square] * 4],
            stop_reason=self.reason,
        )
