"""Checks of parameters that many functions and models take, with one wording for all."""

import math
from collections.abc import Sequence
from numbers import Integral, Real
from typing import Any

import numpy as np

# Squares of such widths, and what is divided by these, are still numbers.
NARROWEST, WIDEST = 1e-150, 1e150


def is_number(value: object) -> bool:
    """Say whether a value is a real number, of Python or of numpy, and not True or False.

    An integer that no float can hold is none. Type checkers take ``isinstance(x, Real)`` of a float
    for impossible, and look at nothing after it; so this is a function.
    """
    if not isinstance(value, Real) or isinstance(value, bool):
        return False
    try:
        float(value)
    except OverflowError:
        return False
    return True


def is_integer(value: object) -> bool:
    """Say whether a value is an integer, of Python or of numpy, and not True or False."""
    return isinstance(value, Integral) and not isinstance(value, bool)


def check_count(name: str, value: Any, at_least: int = 1, *, may_be_auto: bool = False) -> None:
    """Raise ValueError unless the value is an integer of at least that size, or else "auto"."""
    if not (may_be_auto and _is_auto(value)) and (not is_integer(value) or value < at_least):
        other = "'auto' or " if may_be_auto else ""
        raise ValueError(
            f"`{name}` must be {other}an integer of at least {at_least}; got {value!r}."
        )


def check_positive(name: str, value: Any) -> None:
    """Raise ValueError unless the value is a finite number above 0."""
    if not is_number(value) or not 0 < float(value) < math.inf:
        raise ValueError(f"`{name}` must be a finite number above 0; got {value!r}.")


def check_at_least(
    name: str, value: Any, at_least: float = 0, *, may_be_auto: bool = False
) -> None:
    """Raise ValueError unless the value is a finite number of at least that size, or "auto"."""
    if may_be_auto and _is_auto(value):
        return
    if not is_number(value) or not at_least <= float(value) < math.inf:
        other = "'auto' or " if may_be_auto else ""
        raise ValueError(
            f"`{name}` must be {other}a finite number of at least {at_least}; got {value!r}."
        )


def check_width(name: str, value: Any) -> None:
    """Raise ValueError unless the value is "auto" or can be the width of a kernel."""
    if _is_auto(value):
        return
    if not is_number(value) or not NARROWEST <= float(value) <= WIDEST:
        raise ValueError(
            f"`{name}` must be 'auto' or a number from {NARROWEST:g} to {WIDEST:g}; got {value!r}."
        )


def check_choice(name: str, value: object, allowed: tuple[object, ...]) -> None:
    """Raise ValueError unless the value is one of those allowed."""
    if not _is_one_of(value, allowed):
        raise ValueError(f"`{name}` must be one of {allowed}; got {value!r}.")


def check_progress(verbose: object, callbacks: object = ()) -> None:
    """Raise ValueError unless these say how a fit tells of its progress."""
    if not _is_one_of(verbose, (True, False, 1, 0, "auto")):
        raise ValueError(f"`verbose` must be True, False or 'auto'; got {verbose!r}.")
    if not isinstance(callbacks, Sequence) or not all(callable(call) for call in callbacks):
        raise ValueError(
            "`callbacks` must be a list of functions that take an event, such as [print]; got "
            f"{callbacks!r}."
        )


def _is_auto(value: object) -> bool:
    return isinstance(value, str) and value == "auto"  # what an array answers is an array


def _is_one_of(value: object, allowed: tuple[object, ...]) -> bool:
    # An array is none of them, and what it answers when compared is an array; True is not 1.
    plain = value.item() if isinstance(value, np.generic) else value
    return any(type(plain) is type(option) and plain == option for option in allowed)
