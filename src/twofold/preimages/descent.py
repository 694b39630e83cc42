"""Descent of many small problems at once, each with its own step, its own starts and its own end.

One round evaluates the criterion once for every row that still moves. A row that went down enough
(Armijo) takes its next direction, another shortens its step by a parabola; rows at their end leave
the batch. Directions are the moves of the criterion (with ``memory = 0``; these are the fixed-point
iterations) or limited-memory BFGS directions built on them (:mod:`~twofold.preimages.bfgs`).

A point with a start of its own goes down from there; if it ends farther off than the row whose
feature is nearest, it goes on from that row. Without one it goes down from the weighted mean of the
rows and from the nearest row, and the lower end is kept. So no row is ever nearer than the
pre-image found.

An end may have strayed: coordinates made of Gaussians vanish far away, so a criterion that counts
coordinates alone can have its minimum where there is no data at all (more often the more columns
the rows have). Such an end is none: its status says so. A row strayed if its nearest training row
is farther off than it was at the start, and more than twice as far as training rows are from their
tenth neighbour (the scale of neighbourhoods throughout Arias 2007).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from twofold.array_types import FloatArray, IntArray
from twofold.preimages.bfgs import directions, empty_memory, remember
from twofold.preimages.coordinates import NEIGHBOR, neighbor_distances
from twofold.preimages.criteria import Criterion, Look
from twofold.preimages.points import FeaturePoints, Status

# Share of the fall that the gradient promises; any small one keeps off cycles.
_FALL = 1e-4
_MAX_SHORTENINGS = 20
# A difference of values below this share of them is rounding.
_ROUNDING = 4 * np.finfo(np.float64).eps
# How far a row may stray, in usual distances to the tenth neighbour: those of all training rows
# except the loneliest, estimated from some of them.
_FAR, _USUAL, _SAMPLE = 2.0, 0.95, 500


@dataclass(eq=False)
class Descent:
    """Rows on their way down; ends are in `Z`, `value`, `status` and `n_iter` after `run`."""

    criterion: Criterion
    points: IntArray  # whose criterion each row goes down (n,)
    start: FloatArray  # (n, D)
    memory: int  # pairs of steps and gradient changes kept for each row; 0 for plain moves
    tol: float  # share of the criterion's length; a row with a shorter move has converged
    max_iter: int  # evaluations for each row
    fallback: FloatArray | None = None  # starts where the criterion tells no direction at the first

    def run(self) -> Descent:
        """Move all rows to their ends."""
        self._begin()
        active = np.flatnonzero(self.status == Status.ITERATION_LIMIT)
        while len(active):
            trial = self.Z[active] + self.step[active, None] * self.direction[active]
            look = self.criterion.look(trial, self.points[active])
            self.n_iter[active] += 1
            fall = _FALL * self.step[active] * self.slope[active]
            bound = self.value[active] + fall + _ROUNDING * np.abs(self.value[active])
            accepted = np.isfinite(look.value) & (look.value <= bound)
            there = Look(*(array[accepted] for array in look))
            self._accept(active[accepted], trial[accepted], there)
            self._shorten(active[~accepted], look.value[~accepted])
            going = self.status == Status.ITERATION_LIMIT
            active = np.flatnonzero(going & (self.n_iter < self.max_iter))
        return self

    def _begin(self) -> None:
        n, D = self.start.shape
        self.Z = self.start.copy()
        self.step, self.shortenings = np.ones(n), np.zeros(n, dtype=np.int64)
        self.n_iter = np.ones(n, dtype=np.int64)
        self.status = np.full(n, Status.ITERATION_LIMIT, dtype=np.int64)
        self.pairs = empty_memory(n, self.memory, D)
        self.value, self.gradient, self.rate = self.criterion.look(self.Z, self.points)
        lost = np.flatnonzero(~(np.isfinite(self.value) & (self.rate > 0)))
        if self.fallback is not None and len(lost):
            self.Z[lost] = self.fallback[lost]
            look = self.criterion.look(self.Z[lost], self.points[lost])
            self.value[lost], self.gradient[lost], self.rate[lost] = look
        self.direction, self.slope = np.zeros((n, D)), np.zeros(n)
        self._turn(np.arange(n))

    def _accept(self, rows: IntArray, trial: FloatArray, look: Look) -> None:
        if self.memory:
            changes = look.gradient - self.gradient[rows]
            remember(self.pairs, rows, trial - self.Z[rows], changes)
        self.Z[rows] = trial
        self.value[rows], self.gradient[rows], self.rate[rows] = look
        self._turn(rows)

    def _turn(self, rows: IntArray) -> None:
        """Give rows their next direction, or end them."""
        gradient, rate = self.gradient[rows], self.rate[rows]
        moves = Look(self.value[rows], gradient, rate).moves
        lengths = np.linalg.norm(moves, axis=1)
        self.status[rows[lengths <= self.tol * self.criterion.length]] = Status.CONVERGED
        # After the ends above: without a rate a move is zero and would pass for converged.
        self.status[rows[~(rate > 0)]] = Status.OUT_OF_REACH
        if self.memory:
            longest = self.criterion.longest * np.maximum(self.criterion.length, lengths)
            moves = directions(self.pairs, rows, gradient, rate, moves, longest)
        self.direction[rows] = moves
        self.slope[rows] = np.einsum("nd,nd->n", moves, gradient)
        self.step[rows], self.shortenings[rows] = 1.0, 0

    def _shorten(self, rows: IntArray, value: FloatArray) -> None:
        """Shorten the steps of rows that went too far, to the bottom of a parabola."""
        promised = -self.step[rows] * self.slope[rows]
        with np.errstate(invalid="ignore", over="ignore", divide="ignore"):
            shares = 0.5 * promised / (value - self.value[rows] + promised)
        self.step[rows] *= np.clip(np.nan_to_num(shares, nan=0.1), 0.1, 0.5)
        self.shortenings[rows] += 1
        stuck = self.shortenings[rows] > _MAX_SHORTENINGS
        self.status[rows[stuck]] = Status.STALLED
        if self.memory:  # a direction that failed twice was built on what no longer holds
            knows_any = self.pairs.inverse[rows].any(axis=1)
            failed = rows[(self.shortenings[rows] == 2) & knows_any]
            self.pairs.inverse[failed] = 0
            self._turn(failed)


def mark_strayed(target: FeaturePoints, start: FloatArray, Z: FloatArray, status: IntArray) -> None:
    """Set the status of rows Z (n, D) that strayed from the data; `start` is where they began."""
    rows = target.rows
    some = np.unique(np.linspace(0, len(rows) - 1, min(len(rows), _SAMPLE)).astype(int))
    usual = float(np.quantile(neighbor_distances(rows[some], rows, NEIGHBOR + 1), _USUAL))
    ended = np.flatnonzero(status < Status.OFF_LEVEL)
    distance = neighbor_distances(Z[ended], rows, 1)
    far = distance > _FAR * usual
    far[far] &= distance[far] > neighbor_distances(start[ended[far]], rows, 1)
    status[ended[far]] = Status.OUT_OF_REACH
