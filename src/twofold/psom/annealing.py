"""How the smoothness falls while a map without known places is learned, and when that ends.

    λ_k = start · factor^k,   k = 1…n_steps                             (Klanke 2007, section 3.5)

A stiff map is fitted first and softened step by step, which keeps it from folding. The thesis
writes the sum of squared errors plus λ R(W) for 1,000 rows. Here λ means the same whatever the
number of rows: what is minimised is the mean squared error plus ``λ / 1000 · R(W)``. Both parts
grow with the square of the data's unit, so the schedule does not depend on that unit either.

It ends by what the errors of rows say that take no part. Held-out rows are spread evenly along the
first axis of the start: one is drawn from each run of neighbouring rows. Which ones depends on
nothing but the seed and the shape of the data, neither on their unit nor on their order, and no
region goes unwatched.

Of the steps made, the one with the lowest held-out error is not better than others for certain:
errors of few rows are noisy, and towards the end their curve is flat. So the stiffest map is taken
that does not do worse by more than half a standard error of the difference, row by row. (A whole
one, as is the custom, stops early enough to be seen in errors of new rows.)
"""

from dataclasses import dataclass
from typing import Any, Generic, TypeVar

import numpy as np

from twofold.array_types import FloatArray, IntArray
from twofold.checks.parameters import WIDEST, check_count, check_positive, is_number

# The rows of both experiments of the thesis, for which its λ are given.
ROWS_OF_SCHEDULE = 1000
# Most steps: a goal far away is reached by larger ones.
MOST_STEPS = 120
# Steps at a smoothness that was asked for: each makes map and places fit better.
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
        Maximum number of steps. The thesis takes 30 for its fish bowl.
    cycles : int, default=1
        How often each step fits the map and projects the rows.
    holdout : float, default=0.1
        Share of the rows that take no part until the step is found at which their projection error
        is lowest; the map is then fitted to all rows. 0 makes all steps with all rows.

    Examples
    --------
    >>> from twofold import PSOM
    >>> from twofold.datasets import make_s_triangle
    >>> from twofold.psom import Annealing
    >>> Y, thesis = make_s_triangle(60, random_state=0).Y, Annealing(n_steps=5, holdout=0)
    >>> PSOM(grid=(4, 4), smoothness=thesis).fit(Y).n_iter_
    5
    """

    start: float = 10.0
    factor: float = 0.8
    n_steps: int = 80
    cycles: int = 1
    holdout: float = 0.1

    def __post_init__(self) -> None:
        """Check the numbers."""
        check_positive("start", self.start)
        if not (is_number(self.factor) and 0 < self.factor <= 1):
            raise ValueError(f"`factor` must be above 0 and at most 1; got {self.factor!r}.")
        for name in ("n_steps", "cycles"):
            check_count(name, getattr(self, name))
        if not (is_number(self.holdout) and 0 <= self.holdout <= 0.5):
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
        # As fast as the usual schedule, or as fast as it takes to arrive in this many steps.
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


def get_schedule(smoothness: Any) -> Schedule:
    """Return the schedule that a parameter ``smoothness`` stands for."""
    if smoothness is None:
        return Annealing()
    if isinstance(smoothness, Annealing):
        return smoothness
    if is_number(smoothness) and 0 < float(smoothness) <= WIDEST:
        return Goal(float(smoothness))
    raise ValueError(
        "`fit` finds the places of rows while the smoothness falls: `smoothness` must be None, an "
        f"Annealing(...) or the number > 0 to end at, at most {WIDEST:g}; got {smoothness!r}. (GCV "
        "and Discrepancy are for `fit_grid` and `fit_scattered`, one number per node for "
        "`fit_grid`.)"
    )


# Of few rows at least this many are held out, as long as that leaves two thirds of them.
FEWEST_HELD_OUT = 5
# Coordinates that agree to this many decimals count as equal in the order of the rows.
DECIMALS = 6
# It ends after this many steps that do not lower the held-out error by this share; single steps may
# rise by chance.
PATIENCE, LEAST_GAIN = 8, 0.005
STANDARD_ERRORS = 0.5

State = TypeVar("State")


def choose_held_out(X: FloatArray, share: float, rng: np.random.RandomState) -> IntArray:
    """Return the numbers of the rows to hold out, none where there are too few of them.

    X (n, q) are places at the start, within [-1, 1]; one row of each run of neighbours is drawn.
    """
    n = len(X)
    count = min(max(round(share * n), FEWEST_HELD_OUT), n // 3)
    if share == 0 or count == 0:
        return np.empty(0, dtype=np.int64)
    along_first_axis = np.lexsort(np.round(X, DECIMALS).T[::-1])
    runs = np.array_split(along_first_axis, count)
    return np.sort([run[rng.randint(len(run))] for run in runs])


class HeldOutStop(Generic[State]):
    """Watches the errors of held-out rows, of weights (k,), through cycles at each smoothness."""

    def __init__(self, weights: FloatArray, cycles: int) -> None:
        self.shares = weights / weights.sum()
        self.patience = PATIENCE * cycles
        self.since_lowest = 0
        self.lowest = np.inf
        self.lowest_errors: FloatArray = np.empty(0)
        # From the stiffest state that may be chosen on; what is stiffer is not kept.
        self._kept: list[tuple[State, FloatArray]] = []

    def note(self, state: State, errors: FloatArray) -> None:
        """Take notice of a state and the squared errors (k,) of the held-out rows."""
        self._kept.append((state, errors))
        self.since_lowest += 1
        mean = float(self.shares @ errors)
        if mean < (1 - LEAST_GAIN) * self.lowest:
            self.lowest, self.lowest_errors, self.since_lowest = mean, errors, 0
            # The stiffest state is the first; those that do worse than the new best are no choice.
            while not self._is_as_good(self._kept[0][1]):
                del self._kept[0]

    @property
    def is_over(self) -> bool:
        """Whether the error has not become lower for long enough."""
        return self.since_lowest >= self.patience

    @property
    def chosen(self) -> State:
        """The stiffest state that does about as well as the best."""
        return self._kept[0][0]

    def _is_as_good(self, errors: FloatArray) -> bool:
        more = errors - self.lowest_errors
        mean = float(self.shares @ more)
        k = len(more)
        # Of a weighted mean, with k / (k - 1) for the mean that the rows themselves decide.
        variance = float(self.shares**2 @ (more - mean) ** 2) * k / max(k - 1, 1)
        return mean <= STANDARD_ERRORS * np.sqrt(variance)
