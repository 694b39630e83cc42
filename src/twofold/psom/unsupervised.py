"""Learning a map without known places: fit the map, project the rows, soften, repeat.

    minimise  (1/m) Σ_i min_x ||y_i - f(x)||² + λ/1000 R(W)             (Klanke 2007, eq. 3.41)

over node values W on the domain [-1, 1]^q. For a given λ, fitting the map to the rows at their
places and moving the places to the best matches of the rows both lower the objective; λ falls as in
:mod:`twofold.psom.annealing`. A row looks for its best match from its last place and from the best
node, and keeps the better.

Where rows are held out, their projection error says when to stop (:mod:`twofold.psom.annealing`).
From there the map is fitted to all rows at that λ.

The map that fits rows at given places comes from

    minimise Σ_i v_i ||y_i - f(x_i)||² + λ R(W) + ε ||C - C₀||²        (Klanke 2007, eq. 3.40)

over Legendre coefficients C (:mod:`twofold.psom.roughness`), the sum over observed entries. The
last part, C₀ the coefficients before, is a hint of inertia: with a tiny ε it decides only what the
rows leave open, such as how the map goes on along an axis on which all have the same coordinate.

With missing entries, columns have equations of their own, those with the same gaps the same ones.
They are solved to the last digits by conjugate gradients: the equations of a complete column are so
near to all of them that some ten iterations do, and one decomposition serves all columns.

By default the start is the principal plane (Klanke 2007, eq. 3.42): places are scores divided by
the largest of each axis, so that the box [-1, 1]^q just holds them. Any other coordinates of the
rows will do as well; each axis is shifted and stretched to the box. The annealing then begins with
the smoothness that generalized cross-validation chooses for them: a stiffer map would leave what
they know about the rows.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.linalg import cho_factor, cho_solve

from twofold.array_types import FloatArray, IntArray
from twofold.engine.threads import count_threads, slices
from twofold.latent.starts import fill_again_and_again, own_start, refuse_class
from twofold.optimize import Callback, Event
from twofold.optimize.loop import read_only, tell
from twofold.psom.annealing import ROWS_OF_SCHEDULE, HeldOutStop, Schedule, choose_held_out
from twofold.psom.basis import SampleBasis, added_up
from twofold.psom.best_match import best_match
from twofold.psom.grid import Grid
from twofold.psom.known_places import MOST_NODES_DENSE, fit_scattered
from twofold.psom.penalized import conjugate_gradients
from twofold.psom.roughness import LegendreCoordinates, Roughness, along_axes
from twofold.rowwise import data_unit, fix_signs, same_gaps

# An axis along which the rows do not differ still gets this share of the longest one.
LEAST_LENGTH = 1e-3
MOST_FILLINGS = 30
# Its last place, and the best node.
STARTS_OF_A_ROW = 2
# Cycles with all rows, once the held-out ones have done their work.
LAST_CYCLES = 5

DONE, ROSE = "end of the schedule", "held-out error rose"
CALLBACK, INTERRUPTED = "callback", "interrupted"


@dataclass(frozen=True, eq=False)
class Start:
    """Places within the domain, and an affine map."""

    X: FloatArray  # (n, q)
    W: FloatArray  # (N, D) node values
    most: float | None  # largest smoothness to begin with, in units of the schedule; None for any


def find_start(
    init: Any, grid: Grid, Y: FloatArray, weights: FloatArray, source: IntArray, n_jobs: int | None
) -> Start:
    """Return the start that a parameter ``init`` asks for, for rows Y (n, D) with gaps.

    ``source`` (n,) says where the rows stand in the user's table, which an array ``init`` follows.
    """
    filled = fill_by_plane(Y, weights, grid.n_axes)
    if isinstance(init, str):
        check_init(init)
        return _principal_plane(grid, filled, weights)
    found = own_start(init, source, grid.n_axes, "'pca'")
    own = found(filled) if callable(found) else found
    low, high = own.min(axis=0), own.max(axis=0)
    if (low == high).any():
        raise ValueError("`init` puts all rows at the same coordinate of an axis; vary each.")
    X = 2 * (own - low) / (high - low) - 1
    roots = np.sqrt(weights)[:, None]
    terms = np.column_stack([np.ones(len(X)), X])
    affine = np.linalg.lstsq(terms * roots, filled * roots, rcond=None)[0]
    W = affine[0] + grid.places() @ affine[1:]
    rows = filled / data_unit(filled)
    chosen = fit_scattered(grid, X, rows, "gcv", weights, n_jobs=n_jobs).smoothness
    return Start(X, W, float(chosen) * ROWS_OF_SCHEDULE / float(weights.sum()))


def check_init(init: Any) -> None:
    """Raise unless a name, or anything else, can be a start."""
    refuse_class(init)
    if isinstance(init, str) and init != "pca":
        raise ValueError(
            "`init` must be 'pca', an (n_samples, n_components) array or an estimator with "
            f"fit_transform; got {init!r}."
        )


def _principal_plane(grid: Grid, Y: FloatArray, weights: FloatArray) -> Start:
    mean, axes = _axes(Y, weights, grid.n_axes)
    scores = (Y - mean) @ axes.T
    lengths = np.abs(scores).max(axis=0)
    lengths = np.maximum(lengths, LEAST_LENGTH * lengths.max())
    return Start(scores / lengths, mean + (grid.places() * lengths) @ axes, None)


def _axes(Y: FloatArray, weights: FloatArray, q: int) -> tuple[FloatArray, FloatArray]:
    """Return the mean (D,) and the q principal directions (q, D), their signs fixed."""
    shares = weights / weights.sum()
    mean = shares @ Y
    axes = np.linalg.svd(np.sqrt(shares)[:, None] * (Y - mean), full_matrices=False)[2][:q]
    return mean, fix_signs(axes.T).T


def fill_by_plane(Y: FloatArray, weights: FloatArray, q: int) -> FloatArray:
    """Return Y (n, D) with NaN filled from its principal plane, found again and again."""

    def plane(filled: FloatArray, some: IntArray) -> FloatArray:
        mean, axes = _axes(filled, weights, q)
        return mean + ((filled[some] - mean) @ axes.T) @ axes

    return fill_again_and_again(Y, plane, MOST_FILLINGS)


@dataclass(frozen=True, eq=False)
class ManifoldFit:
    """A learned map."""

    W: FloatArray  # (N, D) node values
    X: FloatArray  # (n, q) places of the rows
    smoothness: float  # λ it was fitted with, in units of the schedule
    error: float  # mean squared error
    roughness: float
    objective: float
    steps: FloatArray  # columns λ, error, roughness, objective, held-out error (or NaN) of a cycle
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
    """What a fit learns from."""

    grid: Grid  # on [-1, 1]^q
    Y: FloatArray  # (n, D) rows, NaN where missing
    weights: FloatArray  # (n,)
    start: Start
    schedule: Schedule
    max_iter: int = 60  # of a search for best matches
    n_jobs: int | None = -1
    callbacks: Sequence[Callback] = ()  # X of their events are the places of all rows
    unit: float = 1.0  # what Y and start are divided by; errors and roughness are told without it


def fit_manifold(task: ManifoldTask, rng: np.random.RandomState) -> ManifoldFit:
    """Learn a map and the places of its rows; ``rng`` decides which rows are held out."""
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
        # Who was held out is fitted now; one cycle must do for a callback that wants to stop.
        for _ in range(LAST_CYCLES if self.reason != CALLBACK else 1):
            self._cycle(self.whole, self.every_row, held_out[:0], self.best.smoothness)
            if self._announce(most):
                self.reason = CALLBACK
                break

    def _cycle(self, adaption: Adaption, rows: IntArray, out: IntArray, value: float) -> FloatArray:
        """Fit the map to some rows at their places, project all; return errors of those out."""
        task, before = self.task, self.state
        # λ of the schedule goes with the mean error; what is solved has the sum over rows.
        factor = value * float(task.weights[rows].sum()) / ROWS_OF_SCHEDULE
        C = adaption.solve(before.X[rows], factor, before.C)
        W = adaption.coordinates.at_nodes(C)
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
        elapsed = time.perf_counter() - self.began
        value, label = self.state.objective * self.task.unit**2, f"λ {self.state.smoothness:.3g}"
        event = Event(len(self.steps), most, value, read_only(self.state.X), elapsed, label)
        return tell(self.task.callbacks, event)

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


# ε relative to the mean of what the rows put on the diagonal.
INERTIA = 1e-10
ROWS_PER_CHUNK = 1024
TOLERANCE, MOST_ITERATIONS = 1e-8, 200


class Adaption:
    """Fits maps of one grid to rows Y (n, D), NaN where missing, with weights v (n,)."""

    def __init__(self, grid: Grid, Y: FloatArray, weights: FloatArray, n_threads: int) -> None:
        if grid.size > MOST_NODES_DENSE:
            raise ValueError(
                f"`fit` takes grids of at most {MOST_NODES_DENSE} nodes; this one has {grid.size}. "
                "Take fewer nodes on an axis."
            )
        self.coordinates = LegendreCoordinates(grid, n_threads)
        self.n_threads = n_threads
        self.roots = np.sqrt(weights)
        self.observed = ~np.isnan(Y)
        self.is_complete = bool(self.observed.all())
        self.Y = np.where(self.observed, Y, 0.0) * self.roots[:, None]
        self.penalty = np.zeros((grid.size, grid.size))
        for rows, factor in self.coordinates.blocks:
            self.penalty[np.ix_(rows, rows)] = factor @ factor.T

    def coefficients(self, W: FloatArray) -> FloatArray:
        """Return the coefficients (N, D) of node values (N, D)."""
        back = [np.linalg.inv(values) for values in self.coordinates.node_values]
        return along_axes(W, back)

    def solve(self, X: FloatArray, smoothness: float, before: FloatArray) -> FloatArray:
        """Return coefficients (N, D) for rows at places X (n, q); ``before`` are the last ones."""
        design = SampleBasis(self.coordinates.axis_values(X), self.roots, self.n_threads)
        matrix = self._products(design)
        inertia = INERTIA * float(np.trace(matrix)) / len(matrix)
        matrix += smoothness * self.penalty
        matrix[np.diag_indices_from(matrix)] += inertia
        factor = cho_factor(matrix, lower=True, overwrite_a=True, check_finite=False)
        if self.is_complete:
            right = design.transposed_times(self.Y) + inertia * before
            return np.asarray(cho_solve(factor, right))
        out = before.copy()
        for columns in same_gaps(self.observed):
            out[:, columns] += self._step(design, factor, columns, smoothness, inertia, before)
        return out

    def _step(
        self,
        design: SampleBasis,
        factor: Any,
        columns: IntArray,
        smoothness: float,
        inertia: float,
        before: FloatArray,
    ) -> FloatArray:
        """Return how the coefficients of columns with the same gaps change."""
        seen = self.observed[:, columns[:1]]

        def times(C: FloatArray) -> FloatArray:
            fitted = design.transposed_times(seen * design.times(C))
            return fitted + smoothness * (self.penalty @ C) + inertia * C

        old = before[:, columns]
        left = self.Y[:, columns] - seen * design.times(old)
        right = design.transposed_times(left) - smoothness * (self.penalty @ old)
        step, _ = conjugate_gradients(
            times,
            lambda r: np.asarray(cho_solve(factor, r)),
            right,
            tolerance=TOLERANCE,
            max_iter=MOST_ITERATIONS,
        )
        return step

    def _products(self, design: SampleBasis) -> FloatArray:
        """Return ``Bᵀ B`` (N, N), summed chunk by chunk in their order."""

        def part(at: slice) -> FloatArray:
            B = design.rows(at)
            return B.T @ B

        tasks = slices(design.n_rows, ROWS_PER_CHUNK)
        return added_up(part, tasks, self.n_threads, (design.n_columns, design.n_columns))
