"""How the inner loops are compiled: two decorators, each with one set of flags.

The loops release the interpreter lock, so plain threads run them side by side, and they are kept
on disk after the first compilation. ``reassoc`` and ``nnan`` let the compiler vectorise sums and
minima (no NaN ever gets here; infinities do); the order of additions is then fixed by the compiled
code and not by the number of threads. Loops whose additions must keep the order they are written in
do without these flags.

Loops check no index, so none may come from numbers that nobody checked: coordinates are finite
(`table_checks.check_finite_points`), counts are bounded by the arrays they count in, and lists of
rows are filled with rows that exist. With ``NUMBA_BOUNDSCHECK=1`` every index is checked, as
``make test-bounds`` does.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar, cast

import numba

FAST_MATH = {"reassoc", "contract", "nsz", "nnan"}

Function = TypeVar("Function", bound=Callable[..., object])


def compiled(function: Function) -> Function:
    """Compile a function of arrays and numbers; it must not touch Python objects."""
    decorate = numba.njit(cache=True, nogil=True, fastmath=FAST_MATH)
    return cast(Function, decorate(function))


def compiled_in_order(function: Function) -> Function:
    """Compile such a function; additions keep their order."""
    return cast(Function, numba.njit(cache=True, nogil=True)(function))
