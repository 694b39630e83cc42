"""Checks of numbers that many functions and models take, with one wording for all."""

import math
from numbers import Integral, Real


def is_number(value: object) -> bool:
    """Say whether a value is a real number, of Python or of numpy, and not True or False.

    Type checkers take ``isinstance(x, Real)`` of a float for impossible, and look at nothing after
    it; so this is a function.
    """
    return isinstance(value, Real) and not isinstance(value, bool)


def is_integer(value: object) -> bool:
    """Say whether a value is an integer, of Python or of numpy, and not True or False."""
    return isinstance(value, Integral) and not isinstance(value, bool)


def check_count(name: str, value: object, at_least: int = 1) -> None:
    """Raise ValueError unless the value is an integer of at least that size."""
    if not isinstance(value, Integral) or isinstance(value, bool) or value < at_least:
        raise ValueError(f"`{name}` must be an integer of at least {at_least}; got {value!r}.")


def check_positive(name: str, value: object) -> None:
    """Raise ValueError unless the value is a finite number above 0."""
    if not isinstance(value, Real) or not 0 < float(value) < math.inf:
        raise ValueError(f"`{name}` must be a finite number above 0; got {value!r}.")
