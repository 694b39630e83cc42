"""Descent of many small problems at once, each with its own step and its own end.

One round evaluates the criterion once for every row that still moves. A row that went down enough
(Armijo) takes its next direction, another shortens its step by a parabola; rows at their end leave
the batch. Directions are the moves of the criterion (with ``memory = 0``; these are the fixed-point
iterations) or limited-memory BFGS directions built on them.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from twofold.array_types import BoolArray, FloatArray, IntArray
from twofold.preimages.criteria import Criterion, Look
from twofold.preimages.points import Status

# Share of the fall that the gradient promises; any small one keeps off cycles.
_FALL = 1e-4
_MAX_SHORTENINGS = 20
# A difference of values below this share of them is rounding.
_ROUNDING = 4 * np.finfo(np.float64).eps
# No step is longer than this many lengths of the criterion, or than its own move.
_LONGEST = 2.0


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
        self.steps = np.zeros((n, self.memory, D))
        self.changes = np.zeros((n, self.memory, D))
        self.inverse = np.zeros((n, self.memory))  # one over step·change; 0 for an empty place
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
            self._remember(rows, trial - self.Z[rows], look.gradient - self.gradient[rows])
        self.Z[rows] = trial
        self.value[rows], self.gradient[rows], self.rate[rows] = look
        self._turn(rows)

    def _turn(self, rows: IntArray) -> None:
        """Give rows their next direction, or end them."""
        moves = Look(self.value[rows], self.gradient[rows], self.rate[rows]).moves
        lengths = np.linalg.norm(moves, axis=1)
        self.status[rows[lengths <= self.tol * self.criterion.length]] = Status.CONVERGED
        self.status[rows[~(self.rate[rows] > 0)]] = Status.OUT_OF_REACH
        direction = moves if not self.memory else self._bfgs(rows, moves, lengths)
        self.direction[rows] = direction
        self.slope[rows] = np.einsum("nd,nd->n", direction, self.gradient[rows])
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
            failed = rows[(self.shortenings[rows] == 2) & self.inverse[rows].any(axis=1)]
            self.inverse[failed] = 0
            self._turn(failed)

    def _remember(self, rows: IntArray, step: FloatArray, change: FloatArray) -> None:
        for kept, new in ((self.steps, step), (self.changes, change)):
            kept[rows, :-1] = kept[rows, 1:]
            kept[rows, -1] = new
        self.inverse[rows, :-1] = self.inverse[rows, 1:]
        products = np.einsum("nd,nd->n", step, change)
        sizes = np.linalg.norm(step, axis=1) * np.linalg.norm(change, axis=1)
        bends_up = products > 1e-8 * sizes
        self.inverse[rows, -1] = np.where(bends_up, 1 / np.where(bends_up, products, 1.0), 0.0)
        self.inverse[rows[~bends_up]] = 0  # what was learned elsewhere does not hold here

    def _bfgs(self, rows: IntArray, moves: FloatArray, lengths: FloatArray) -> FloatArray:
        """Return quasi-Newton directions (a, D), the moves themselves where nothing is known."""
        S, C, inverse = self.steps[rows], self.changes[rows], self.inverse[rows]
        g = self.gradient[rows].copy()
        shares = np.zeros(inverse.shape)
        for k in range(self.memory - 1, -1, -1):
            shares[:, k] = inverse[:, k] * np.einsum("nd,nd->n", S[:, k], g)
            g -= shares[:, k, None] * C[:, k]
        g *= self._scale(C[:, -1], inverse[:, -1], self.rate[rows])[:, None]
        for k in range(self.memory):
            back = inverse[:, k] * np.einsum("nd,nd->n", C[:, k], g)
            g += (shares[:, k] - back)[:, None] * S[:, k]
        leads_down = np.einsum("nd,nd->n", g, self.gradient[rows]) > 0
        direction = np.where((leads_down & inverse.any(axis=1))[:, None], -g, moves)
        longest = _LONGEST * np.maximum(self.criterion.length, lengths)
        sizes = np.maximum(np.linalg.norm(direction, axis=1), 1e-300)
        return np.asarray(direction * np.minimum(1, longest / sizes)[:, None])

    @staticmethod
    def _scale(change: FloatArray, inverse: FloatArray, rate: FloatArray) -> FloatArray:
        squares = np.einsum("nd,nd->n", change, change)
        known = (inverse > 0) & (squares > 0)
        by_rate = np.where(rate > 0, 1 / np.where(rate > 0, rate, 1.0), 0.0)
        product = 1 / np.where(inverse > 0, inverse, 1.0)
        return np.where(known, product / np.where(known, squares, 1.0), by_rate)


def _part(look: Look, chosen: BoolArray) -> Look:
    return Look(*(array[chosen] for array in look))
