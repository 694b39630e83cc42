"""A few of many combinations, chosen so that every value, or every pair of values, still occurs."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence

import numpy as np


def parts_of(combination: Mapping, strength: int) -> set:
    """Return the values of a combination (strength 1) or their pairs (strength 2), with names."""
    return set(itertools.combinations(combination.items(), strength))


def cover(combinations: Sequence[Mapping], strength: int = 2) -> list[int]:
    """Return the numbers of a few combinations that have every part that occurs in any of them.

    Greedily, after a shuffle, so that ties are not all broken in favour of the first values.
    """
    order = np.random.default_rng(0).permutation(len(combinations))
    open_parts = {int(i): parts_of(combinations[i], strength) for i in order}
    left = set().union(*open_parts.values())
    chosen = []
    while left:
        best = max(open_parts, key=lambda i: len(open_parts[i] & left))
        left -= open_parts.pop(best)
        chosen.append(best)
    return chosen
