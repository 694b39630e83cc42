"""How the smoothness falls while a map without known places is learned.

    λ_k = start · factor^k,   k = 1…n_steps                             (Klanke 2007, section 3.5)

A stiff map is fitted first and softened step by step, which keeps it from folding. The thesis
writes the sum of squared errors plus λ R(W) for 1,000 rows. Here λ means the same whatever the
number of rows: what is minimised is the mean squared error plus ``λ / 1000 · R(W)``. Both parts
grow with the square of the data's unit, so the schedule does not depend on that unit either.
"""

from __future__ import annotations

from dataclasses import dataclass
from numbers import Real

import numpy as np

from twofold.number_checks import check_count

# The rows of both experiments of the thesis, for which its λ are given.
ROWS_OF_SCHEDULE = 1000
# A goal far away is reached in so many steps all the same, by larger ones.
MOST_STEPS = 120
# So many steps at a smoothness that was asked for: each makes map and places fit better.
STEPS_AT_GOAL = 3


@dataclass(frozen=True)
class Annealing:
    """A schedule of falling smoothness.

    Parameters
    ----------
    start : float, default=10
        Smoothness before the first step.
    factor : float, default=0.8
        What each step multiplies it by; 1 for a fixed smoothness.
    n_steps : int, default=80
        Most steps. The thesis makes 30 for its fish bowl.
    cycles : int, default=1
        How often each step fits the map and projects the rows.
    holdout : float, default=0.1
        Share of the rows that take no part until the step is found at which their projection error
        is lowest; the map is then fitted to all rows. 0 makes all steps with all rows.
    """

    start: float = 10.0
    factor: float = 0.8
    n_steps: int = 80
    cycles: int = 1
    holdout: float = 0.1

    def __post_init__(self) -> None:
        """Check the numbers."""
        if not (_is_number(self.start) and self.start > 0):
            raise ValueError(f"`start` must be a number > 0; got {self.start!r}.")
        if not (_is_number(self.factor) and 0 < self.factor <= 1):
            raise ValueError(f"`factor` must be above 0 and at most 1; got {self.factor!r}.")
        for name in ("n_steps", "cycles"):
            check_count(name, getattr(self, name))
        if not (_is_number(self.holdout) and 0 <= self.holdout <= 0.5):
            raise ValueError(f"`holdout` must lie between 0 and 0.5; got {self.holdout!r}.")

    def values(self, most: float | None = None) -> list[float]:
        """Return the smoothness of each step; it begins with ``most`` where that is lower."""
        return _from(most, [self.start * self.factor**k for k in range(1, self.n_steps + 1)])


@dataclass(frozen=True)
class Goal:
    """A schedule that ends at a given smoothness, with all rows."""

    smoothness: float
    cycles: int = 1
    holdout: float = 0.0

    def values(self, most: float | None = None) -> list[float]:
        """Return the smoothness of each step; it begins with ``most`` where that is lower."""
        factor = max(self.smoothness, np.finfo(np.float64).tiny) / Annealing.start
        factor = min(Annealing.factor, factor ** (1 / MOST_STEPS))
        value, way = Annealing.start * factor, list[float]()
        while value > self.smoothness and len(way) < MOST_STEPS:
            way.append(value)
            value *= factor
        return _from(most, way + [self.smoothness] * STEPS_AT_GOAL)


Schedule = Annealing | Goal


def _from(most: float | None, steps: list[float]) -> list[float]:
    if most is None or most >= steps[0]:
        return steps
    return [most] * STEPS_AT_GOAL + [value for value in steps if value < most]


def get_schedule(smoothness: object) -> Schedule:
    """Return the schedule that a parameter ``smoothness`` stands for."""
    if smoothness is None:
        return Annealing()
    if isinstance(smoothness, Annealing):
        return smoothness
    if _is_number(smoothness) and smoothness > 0:  # type: ignore[operator]
        return Goal(float(smoothness))  # type: ignore[arg-type]
    raise ValueError(
        "`fit` finds the places of rows while the smoothness falls: `smoothness` must be None, an "
        f"Annealing(...) or the number > 0 to end at; got {smoothness!r}. (GCV and Discrepancy are "
        "for `fit_grid` and `fit_scattered`, one number a node is for `fit_grid`.)"
    )


def _is_number(value: object) -> bool:
    is_number = isinstance(value, Real) and not isinstance(value, bool | np.bool_)
    return is_number and abs(float(value)) < float("inf")  # type: ignore[arg-type]
