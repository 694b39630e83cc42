"""Checks of numbers that many functions and models take, with one wording for all."""

from __future__ import annotations

import math
from numbers import Integral, Real


def check_count(name: str, value: object, at_least: int = 1) -> None:
    """Raise ValueError unless the value is an integer of at least that size."""
    if not isinstance(value, Integral) or isinstance(value, bool) or value < at_least:
        raise ValueError(f"`{name}` must be an integer of at least {at_least}; got {value!r}.")


def check_positive(name: str, value: object) -> None:
    """Raise ValueError unless the value is a finite number above 0."""
    if not isinstance(value, Real) or not 0 < float(value) < math.inf:
        raise ValueError(f"`{name}` must be a finite number above 0; got {value!r}.")
