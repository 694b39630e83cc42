"""Descent of many small problems at once, each with its own step and its own end.

One round evaluates the criterion once for every row that still moves. A row that went down enough
(Armijo) takes its next direction, another shortens its step by a parabola; rows at their end leave
the batch. Directions are the moves of the criterion (with ``memory = 0``; these are the fixed-point
iterations) or limited-memory BFGS directions built on them (:mod:`~twofold.preimages.bfgs`).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from twofold.array_types import BoolArray, FloatArray, IntArray
from twofold.preimages.bfgs import Memory
from twofold.preimages.criteria import Criterion, Look
from twofold.preimages.points import Status

# Share of the fall that the gradient promises; any small one keeps off cycles.
_FALL = 1e-4
_MAX_SHORTENINGS = 20
# A difference of values below this share of them is rounding.
_ROUNDING = 4 * np.finfo(np.float64).eps


@dataclass(eq=False)
class Descent:
    """Rows on their way down.

    Parameters
    ----------
    criterion : Criterion
        What to minimise.
    start : ndarray of shape (n, D)
        Where to start.
    memory : int
        Pairs of steps and gradient changes kept for each row; 0 for plain moves.
    tol : float
        A row has converged once its move is below this share of the criterion's length.
    max_iter : int
        Most evaluations for each row.
    fallback : ndarray of shape (n, D), optional
        Start of rows from whose own start the criterion tells no direction.
    """

    criterion: Criterion
    start: FloatArray
    memory: int
    tol: float
    max_iter: int
    fallback: FloatArray | None = None

    def run(self) -> Descent:
        """Move all rows to their ends; they are in `Z`, `value`, `status` and `n_iter`."""
        self._begin()
        active = np.flatnonzero(self.status == Status.ITERATION_LIMIT)
        while len(active):
            trial = self.Z[active] + self.step[active, None] * self.direction[active]
            look = self.criterion.look(trial, active)
            self.n_iter[active] += 1
            fall = _FALL * self.step[active] * self.slope[active]
            bound = self.value[active] + fall + _ROUNDING * np.abs(self.value[active])
            accepted = np.isfinite(look.value) & (look.value <= bound)
            self._accept(active[accepted], trial[accepted], _part(look, accepted))
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
        self.pairs = Memory.empty(n, self.memory, D)
        self.value, self.gradient, self.rate = self.criterion.look(self.Z, np.arange(n))
        lost = np.flatnonzero(~(np.isfinite(self.value) & (self.rate > 0)))
        if self.fallback is not None and len(lost):
            self.Z[lost] = self.fallback[lost]
            look = self.criterion.look(self.Z[lost], lost)
            self.value[lost], self.gradient[lost], self.rate[lost] = look
        self.direction, self.slope = np.zeros((n, D)), np.zeros(n)
        self._turn(np.arange(n))

    def _accept(self, rows: IntArray, trial: FloatArray, look: Look) -> None:
        if self.memory:
            changes = look.gradient - self.gradient[rows]
            self.pairs.remember(rows, trial - self.Z[rows], changes)
        self.Z[rows] = trial
        self.value[rows], self.gradient[rows], self.rate[rows] = look
        self._turn(rows)

    def _turn(self, rows: IntArray) -> None:
        """Give rows their next direction, or end them."""
        gradient, rate = self.gradient[rows], self.rate[rows]
        moves = Look(self.value[rows], gradient, rate).moves
        lengths = np.linalg.norm(moves, axis=1)
        self.status[rows[lengths <= self.tol * self.criterion.length]] = Status.CONVERGED
        self.status[rows[~(rate > 0)]] = Status.OUT_OF_REACH
        if self.memory:
            longest = self.criterion.longest * np.maximum(self.criterion.length, lengths)
            moves = self.pairs.directions(rows, gradient, rate, moves, longest)
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
            failed = rows[(self.shortenings[rows] == 2) & self.pairs.knows(rows)]
            self.pairs.forget(failed)
            self._turn(failed)


def _part(look: Look, chosen: BoolArray) -> Look:
    return Look(*(array[chosen] for array in look))
