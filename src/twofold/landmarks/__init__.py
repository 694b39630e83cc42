"""Landmarks: a few vectors that stand for all rows.

In landmark UKR (Klanke 2007, section 5.3) rows are reconstructed from l landmark vectors with
latent points of their own, not from each other, so a step of training costs n l and not n².
Landmarks are found by vector quantisation: k-means, K-harmonic means (what the thesis uses), or
rows drawn at random, which are rougher but there at once. :class:`Landmarks` says which and how
many, :mod:`twofold.landmarks.choice` finds them.

>>> from twofold.landmarks import Landmarks
>>> Landmarks(200, choice="kharmonic", adapt=False)
Landmarks(count=200, choice='kharmonic', adapt=False)
>>> Landmarks().number(10_000)
1000
"""

import math
from dataclasses import dataclass
from numbers import Integral
from typing import Literal

import numpy as np

from twofold.checks.parameters import check_choice, is_integer, is_number

__all__ = ["Landmarks", "get_landmarks"]
__dir__ = __all__.copy  # without numpy and other imports

LEAST = 3


@dataclass(frozen=True)
class Landmarks:
    """How many landmarks stand for the rows, how they are chosen, and whether they move.

    Parameters
    ----------
    count : int or "auto"
        How many, at least 3 and fewer than there are rows. "auto" is ``10 sqrt(n)`` within 100 and
        2000, and never more than half of the rows.
    choice : {"kmeans", "kharmonic", "random"}
        Centres of k-means, centres of K-harmonic means, or rows drawn with a chance in proportion
        to their weight.
    adapt : bool or float
        Whether the landmark vectors are fitted again to the data after training: True with a
        smoothness ``γ`` chosen by cross-validation (5.38 to 5.40), a number for ``γ`` itself,
        False to leave them where the choice put them.

    Examples
    --------
    >>> from twofold import UKR
    >>> from twofold.datasets import make_s_structure
    >>> from twofold.landmarks import Landmarks
    >>> Y = make_s_structure(400, random_state=0).Y
    >>> model = UKR(landmarks=Landmarks(30, choice="random"), random_state=0, max_iter=5).fit(Y)
    >>> model.data_.shape, model.embedding_.shape
    ((30, 3), (400, 2))
    """

    count: int | Literal["auto"] = "auto"
    choice: Literal["kmeans", "kharmonic", "random"] = "kmeans"
    adapt: bool | float = True

    def __post_init__(self) -> None:
        if self.count != "auto" and not (is_integer(self.count) and self.count >= LEAST):
            raise ValueError(
                f"`count` must be 'auto' or an integer of at least {LEAST}; got {self.count!r}."
            )
        check_choice("choice", self.choice, ("kmeans", "kharmonic", "random"))
        is_smoothness = is_number(self.adapt) and 0 <= self.adapt < math.inf
        if not (is_smoothness or isinstance(self.adapt, bool)):
            raise ValueError(
                "`adapt` must be True, False or the smoothness, a finite number of at least 0; "
                f"got {self.adapt!r}."
            )

    def number(self, n: int) -> int:
        """Return how many landmarks n rows get; raise ValueError if these are too few."""
        if self.count == "auto":
            count = min(n // 2, round(float(np.clip(10 * math.sqrt(n), 100, 2000))))
            count = max(count, LEAST)
        else:
            count = int(self.count)
        if not LEAST <= count < n:
            raise ValueError(
                f"The number of landmarks must be at least {LEAST} and less than the number of "
                f"different rows, {n}; got {count}. Ask for fewer landmarks or leave them out."
            )
        return count


def get_landmarks(landmarks: object) -> Landmarks | None:
    """Return landmarks for None (none), a number, "auto" or an object.

    Examples
    --------
    >>> from twofold.landmarks import get_landmarks
    >>> get_landmarks(200)
    Landmarks(count=200, choice='kmeans', adapt=True)
    """
    if landmarks is None or isinstance(landmarks, Landmarks):
        return landmarks
    if isinstance(landmarks, Integral) and is_integer(landmarks):
        if landmarks < LEAST:
            raise ValueError(
                f"`landmarks` must be at least {LEAST}, or None for none; got {landmarks!r}."
            )
        return Landmarks(int(landmarks))
    if isinstance(landmarks, str) and landmarks == "auto":
        return Landmarks()
    raise ValueError(
        "`landmarks` must be None, 'auto', a number of landmarks, or a Landmarks object of "
        f"twofold.landmarks; got {landmarks!r}."
    )
