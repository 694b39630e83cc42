"""What a search is given, and what it hands back."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from twofold.array_types import FloatArray
from twofold.unn.point_errors import PointError

# Hears what is being done: words, how many steps of how many, and the error if it is known.
Tell: TypeAlias = Callable[[str, int, int, float], None]


def tell_nobody(words: str, done: int, most: int, value: float) -> None:
    """Be silent."""


@dataclass(frozen=True)
class Task:
    """An embedding to be made.

    Attributes
    ----------
    Y : (n, D) complete rows, float64, in the order in which they are to be embedded
    weights : (n,) how much each row counts in means
    q : latent dimensions
    n_neighbors : K
    error : the error of one row
    rng : what is drawn by lot comes from here
    n_threads : threads; the result does not depend on them
    tell : hears about the progress
    """

    Y: FloatArray
    weights: FloatArray
    q: int
    n_neighbors: int
    error: PointError
    rng: np.random.Generator
    n_threads: int = 1
    tell: Tell = tell_nobody

    def others(self, include_self: bool) -> int:
        """Return how many other rows a neighbourhood has; at least one, or nothing would count."""
        return max(1, self.n_neighbors - 1) if include_self else self.n_neighbors


@dataclass(frozen=True)
class Outcome:
    """An embedding that was found.

    Attributes
    ----------
    X : (n, q) latent points
    history : values of what was minimised, first to last
    n_iter : steps that were made
    stop_reason : why they ended
    """

    X: FloatArray
    history: FloatArray
    n_iter: int
    stop_reason: str
