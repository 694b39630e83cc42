"""Checks of the numbers that several methods share."""

from __future__ import annotations

import math
from numbers import Integral, Real
from typing import Any


def check_search(method: Any, criteria: tuple[str, ...]) -> None:
    """Raise ValueError unless criterion, tol and max_iter of a method can be used."""
    if method.criterion not in criteria:
        raise ValueError(f"`criterion` must be one of {criteria}; got {method.criterion!r}.")
    check_loop(method.tol, method.max_iter)


def check_loop(tol: float, max_iter: int) -> None:
    """Raise ValueError unless a loop can end."""
    check_positive("tol", tol)
    check_count("max_iter", max_iter)


def check_positive(name: str, value: float) -> None:
    """Raise ValueError unless the value is a finite number above 0."""
    if not isinstance(value, Real) or not 0 < value < math.inf:
        raise ValueError(f"`{name}` must be a finite number above 0; got {value!r}.")


def check_count(name: str, value: int, at_least: int = 1) -> None:
    """Raise ValueError unless the value is an integer of at least that size."""
    if not isinstance(value, Integral) or isinstance(value, bool) or value < at_least:
        raise ValueError(f"`{name}` must be an integer of at least {at_least}; got {value!r}.")
