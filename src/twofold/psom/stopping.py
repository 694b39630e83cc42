"""When to stop softening a map: rows that take no part, and what their errors say.

Held-out rows are spread evenly along the first axis of the start: one is drawn from each run of
neighbouring rows. Which ones depends on nothing but the seed and the shape of the data, neither on
their unit nor on their order, and no region goes unwatched.

Of the steps made, the one with the lowest held-out error is not better than others for certain:
errors of few rows are noisy, and towards the end their curve is flat. So the stiffest map is taken
that does not do worse by more than half a standard error of the difference, row by row. (A whole
one, as is the custom, stops early enough to be seen in errors of new rows.)
"""

from __future__ import annotations

from typing import Generic, TypeVar

import numpy as np

from twofold.array_types import FloatArray, IntArray

# Of few rows at least so many are held out, as long as that leaves two thirds of them.
FEWEST_HELD_OUT = 5
# Coordinates that agree to so many decimals count as equal in the order of the rows.
DECIMALS = 6
# After so many steps that do not lower the held-out error by this share it ends; single steps may
# rise by chance.
PATIENCE, LEAST_GAIN = 8, 0.005
STANDARD_ERRORS = 0.5

State = TypeVar("State")


def choose_held_out(X: FloatArray, share: float, rng: np.random.RandomState) -> IntArray:
    """Return the numbers of the rows to hold out, none where there are too few of them.

    Parameters
    ----------
    X : (n, q) places of the rows at the start, within [-1, 1]
    share : of the rows
    rng : draws one of each run of neighbours
    """
    n = len(X)
    count = min(max(round(share * n), FEWEST_HELD_OUT), n // 3)
    if share == 0 or count == 0:
        return np.empty(0, dtype=np.int64)
    along_first_axis = np.lexsort(np.round(X, DECIMALS).T[::-1])
    runs = np.array_split(along_first_axis, count)
    return np.sort([run[rng.randint(len(run))] for run in runs])


class HeldOutStop(Generic[State]):
    """Watches the errors of held-out rows from step to step.

    Parameters
    ----------
    weights : (k,) of the held-out rows
    cycles : steps at the same smoothness
    """

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
        variance = float(self.shares**2 @ (more - mean) ** 2) * k / max(k - 1, 1)
        return mean <= STANDARD_ERRORS * np.sqrt(variance)
