"""The smoothest manifold within ε of every row (Klanke 2007, section 5.1.3, eqs. 5.8 to 5.12).

    min mean_i ||x_i||²   such that   |r_jm| <= ε_jm  (or ||r_j|| <= ε_j)   for r = f(x_j; X) - y_j

Small latent extension means wide kernels, that is a smooth manifold. The scheme starts from a
cross-validated fit with residuals r⁰ and takes ``ε_j = max(ε, |r⁰_j|)``: that fit is then feasible,
and rows it leaves far away (outliers) do not pull.

The thesis minimises ``||X||² + λ R_ε`` with λ rising from 100 to 1e16. Started so low, the penalty
collapses the latent points before the constraints are felt, and the unrolling is lost. Here an
augmented Lagrangian is minimised: constraint by constraint, with multipliers μ >= 0,

    mean_i ||x_i||² + ρ/2 mean_j Σ_m ([c_jm + μ_jm]₊)²,    μ ← [c + μ]₊ after each round,

``c = ±r - ε`` component by component, ``c = (||r||² - ε²) / 2ε`` per vector; ρ starts where leaving
the tubes by ε would cost ten times the present extension, and grows where violations do not shrink.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from twofold.array_types import FloatArray, IntArray
from twofold.losses import EpsilonInsensitive, Squared
from twofold.optimize import Solution, Stage, continue_through
from twofold.process_settings import warn
from twofold.regularization import LeaveOneOut
from twofold.ukr.objective import Problem, Reconstruction
from twofold.ukr.terms import ExtensionPenalty, SumOf
from twofold.ukr.training import Training, train

FIRST_COST = 10.0
MOST_ROUNDS = 12
# The widest tolerance, in sizes of the data.
WIDEST = 1e60
# Less than this share of the first extension is no manifold any more.
COLLAPSED = 1e-6
# Violations of this share of the tolerances, as root mean squares, count as none; residuals far
# beyond even that are worth a word.
ENOUGH, MUCH = 1e-3, 0.1
# Violations that do not fall to this share of the round before make the penalty steeper.
WANTED_FALL, STEEPER = 0.25, 4.0


class Smoothed(NamedTuple):
    """The end of the scheme: a solution, and the largest excess of a residual over its tolerance.

    The excess is in the rows' unit; the solution's value is the extension, ``mean_i ||x_i||²``.
    """

    solution: Solution
    violation: float


def smooth(problem: Problem, X: FloatArray, training: Training) -> Smoothed:
    """Run the whole scheme from latent points X: cross-validated fit, tubes, smoothest manifold."""
    first = replace(problem, regularization=LeaveOneOut(), loss=Squared())
    solution = train(first, X, training)
    tubes = _Tubes(problem, solution.X)
    if training.max_iter == 0 or solution.stop_reason.was_requested:
        return Smoothed(replace(solution, value=_extension(solution.X)), 0.0)
    return tubes.shrink(solution.X, training)


class _Tubes:
    """The tolerances of all residuals, and the multipliers of the constraints."""

    def __init__(self, problem: Problem, X: FloatArray) -> None:
        assert isinstance(problem.loss, EpsilonInsensitive)
        self.problem, self.per = problem, problem.loss.per
        self.error = problem.reconstruction(cross_validated=False)
        with np.errstate(over="ignore"):
            asked = np.asarray(problem.loss.eps, dtype=np.float64) / problem.rows.unit
        # Tubes far wider than the data hold all of it: no wider, so that squares are numbers.
        asked = np.minimum(asked, WIDEST)
        R = self._residuals(X)
        if self.per == "vector":
            size = np.sqrt((R**2).sum(axis=1, keepdims=True))
            asked = asked.reshape(-1, 1)
        else:
            size = np.abs(R)
            asked = asked[:, None] if asked.ndim == 1 else asked
        # Constraints are divided by their tolerance: a row that is met exactly gets a small one.
        smallest = 1e-6 * np.sqrt((problem.rows.Y**2).sum(axis=1).mean())
        self.eps = np.maximum(np.maximum(size, asked), smallest)
        self.upper, self.lower = np.zeros_like(self.eps), np.zeros_like(self.eps)

    def _residuals(self, X: FloatArray) -> FloatArray:
        return self.error.residuals(X).astype(np.float64)

    def shrink(self, X: FloatArray, training: Training) -> Smoothed:
        """Minimise the extension within the tubes, from a feasible X."""
        # From ρ/2 mean ε² = FIRST_COST times the extension.
        self.steepness = 2 * FIRST_COST * _extension(X) / float((self.eps**2).mean())
        self.before, self.violation, self.is_far_off = np.inf, 0.0, False
        solution = continue_through(
            self._rounds(training),
            X,
            method=training.method,
            pace=self.problem.pace(),
            tol=training.tol,
            callbacks=training.callbacks,
            stop_when=self._update,
            journal=training.journal,
        )
        if self.is_far_off and not solution.stop_reason.was_requested:
            warn(
                f"Some rows are still up to {self.violation * self.problem.rows.unit:.3g} outside "
                "of their tolerances; raise `max_iter`, or `eps`.",
                ConvergenceWarning,
            )
        value = _extension(solution.X)
        if value < COLLAPSED * _extension(X):
            warn(
                "The tolerances are wider than the data, and all latent points collapsed into one "
                "place; lower `eps`.",
                ConvergenceWarning,
            )
        return Smoothed(replace(solution, value=value), self.violation)

    def _rounds(self, training: Training) -> Iterator[Stage]:
        extension = ExtensionPenalty(1.0, self.problem.point_weights)
        for number in range(MOST_ROUNDS):
            loss = _Tube(self.eps, self.upper, self.lower, self.steepness / 2, self.per)
            problem = self.problem
            error = Reconstruction(problem.rows, loss, problem.engine, None, problem.landmarks)
            label = f"smoothest, round {number + 1}"
            yield Stage(SumOf([error, extension]), label=label, max_iter=training.max_iter)

    def _update(self, solution: Solution, stage: Stage) -> bool:
        """Update multipliers after a round; say whether it was the last."""
        R = self._residuals(solution.X)
        above, below = _excess(R, self.eps, self.per)
        self.upper = np.maximum(above + self.upper, 0)
        self.lower = np.maximum(below + self.lower, 0)
        size = np.sqrt((R**2).sum(axis=1, keepdims=True)) if self.per == "vector" else np.abs(R)
        outside = np.maximum(size - self.eps, 0)
        self.violation = float(outside.max())
        self.is_far_off = bool((outside > MUCH * self.eps).any())
        typical = float(np.sqrt((outside**2).mean() / (self.eps**2).mean()))
        if typical < ENOUGH:
            return True
        if typical > WANTED_FALL * self.before:
            self.steepness *= STEEPER
            # Multipliers are in units of 1/ρ: the force ρ μ stays as it is.
            self.upper, self.lower = self.upper / STEEPER, self.lower / STEEPER
        self.before = typical
        return False


@dataclass(frozen=True)
class _Tube:
    """The augmented term of every row, as a loss of its residual."""

    eps: FloatArray
    upper: FloatArray
    lower: FloatArray
    strength: float
    per: str

    def at(self, numbers: IntArray) -> _Tube:
        """Return the loss of some rows."""
        return replace(
            self, eps=self.eps[numbers], upper=self.upper[numbers], lower=self.lower[numbers]
        )

    def value_and_slope(self, R: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return the term and its derivative by the residual."""
        above, below = _excess(R, self.eps, self.per)
        above, below = np.maximum(above + self.upper, 0), np.maximum(below + self.lower, 0)
        values = self.strength * (above**2 + below**2).sum(axis=1)
        pull = above * R / self.eps if self.per == "vector" else above - below
        slope = 2 * self.strength * pull
        return values.astype(R.dtype), slope.astype(R.dtype)


def _excess(R: FloatArray, eps: FloatArray, per: str) -> tuple[FloatArray, FloatArray]:
    """Return the constraints, positive where violated: upper and lower, or one for a vector."""
    if per == "vector":
        excess = ((R**2).sum(axis=1, keepdims=True) - eps**2) / (2 * eps)
        return excess, np.full_like(excess, -np.inf)
    return R - eps, -R - eps


def _extension(X: FloatArray) -> float:
    centred = X - X.mean(axis=0)
    return float((centred.astype(np.float64) ** 2).sum(axis=1).mean())
