"""How the inner loops are compiled: four decorators, each with one set of flags.

The loops release the interpreter lock, so plain threads run them side by side, and they are kept
on disk after the first compilation, which `announced` makes known. ``reassoc`` and ``nnan`` let the
compiler vectorise sums and minima (no NaN ever gets here; infinities do); the order of additions is
then fixed by the compiled code and not by the number of threads. Loops whose additions must keep
the order they are written in do without these flags.

Bits must not depend on what a process has compiled before, nor on whether it compiled at all or
opened what an earlier one left. So

* loops raise nothing to a whole power by ``**``, they call `square`, and add up arrays themselves:
  numba compiles such parts once a process, with the flags of whichever loop came first;
* a loop that writes to arrays adds nothing up: the compiler asks in each call whether they lie so
  close to what is read (some 200 bytes) that it has to go one by one, which is another order of
  additions. Where memory is allocated would decide; a second loop does the sum;
* what loops call and is too long to be compiled into them keeps the order of its additions, or is
  compiled into them all the same: several loops bring a copy of their own, which the compiler may
  have rearranged differently, and the copy that is opened first serves all.

Loops check no index, so none may come from numbers that nobody checked: coordinates are finite
(`checks.rows.check_finite_points`), counts are bounded by the arrays they count in, and lists of
rows are filled with rows that exist. With ``NUMBA_BOUNDSCHECK=1`` every index is checked, as
``make test-bounds`` does.

The first process of a machine waits while all that it calls is compiled, a few tenths of a second
for each function, so

* rows are copied by `assign`, not by ``a[:] = b``: numba compiles a message for shapes that differ
  into such a line, one to three seconds of it in the first function that has one;
* one loop does what two would do by the same functions, and what has one caller is written into it:
  each function that is compiled is optimised together with all that it calls;
* what begins at a constant, changes in a loop and is passed on begins as an expression, such as
  ``k - k``: numba would compile what is called once for the constant and once for any number.
"""

import functools
import gc
import threading
import warnings
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Any, TypeVar, cast

from twofold.process_settings import HeldSetting

FAST_MATH = {"reassoc", "contract", "nsz", "nnan"}
NOTICE = "compiling for this machine, once; this can take ten seconds or more ..."

Function = TypeVar("Function", bound=Callable[..., object])
Number = TypeVar("Number", int, float)


def compiled(function: Function) -> Function:
    """Compile a function of arrays and numbers; it must not touch Python objects."""
    return cast(Function, Loop(function, fastmath=FAST_MATH))


def compiled_into_callers(function: Function) -> Function:
    """Compile such a function into every loop that calls it, with no code of its own."""
    return cast(Function, Loop(function, fastmath=FAST_MATH, forceinline=True))


def written_into_callers(function: Function) -> Function:
    """Write such a function out in every loop that calls it, before that is compiled.

    For parts of one or two long loops: each function of its own is optimised with all that it
    calls, and so is each of its callers. What has many callers is compiled many times that way.
    There additions keep their order if those of the caller do.
    """
    return cast(Function, Loop(function, fastmath=FAST_MATH, inline="always"))


def compiled_in_order(function: Function) -> Function:
    """Compile such a function; additions keep their order."""
    # Without a word on flags it would inherit those of the loop it is compiled for.
    return cast(Function, Loop(function, fastmath=False))


class Loop:
    """A function that is compiled, or opened as an earlier process left it, at its first call.

    Until then it costs nothing: neither is numba imported nor a file looked for. What other loops
    call is compiled for them alone, without the entry for Python and without a file of its own:
    theirs hold all that they call.
    """

    def __init__(self, function: Callable[..., object], **flags: object) -> None:
        functools.update_wrapper(self, function)
        self.py_func = function  # what numba calls it
        self.targetoptions = flags
        self._entry: Callable[..., object] | None = None
        self._part: Any = None

    def __call__(self, *arguments: object) -> object:
        """Run the loop."""
        return (self._entry or self._entry_for_python())(*arguments)

    def _entry_for_python(self) -> Callable[..., object]:
        with _lock:
            if self._entry is None:
                self._entry = _compile_and_keep(self.py_func, **self.targetoptions)
        return self._entry

    @property
    def _numba_type_(self) -> Any:
        """What numba takes the loop for inside of another one."""
        with _lock:
            if self._part is None:
                self._part = _compile(self.py_func, no_cpython_wrapper=True, **self.targetoptions)
        return _numba().typeof(self._part)

    def __reduce__(self) -> str:
        return self.py_func.__qualname__


_lock = threading.RLock()


def _compile(function: Callable[..., object], **flags: object) -> Callable[..., object]:
    # No entry for callers in C, which are none: it would be compiled, too.
    made = _numba().njit(nogil=True, no_cfunc_wrapper=True, **flags)(function)
    return cast(Callable[..., object], made)


def _compile_and_keep(function: Callable[..., object], **flags: object) -> Callable[..., object]:
    try:
        return _opened_alone(_compile(function, cache=True, **flags))
    except RuntimeError:  # no folder for what is kept can be written to
        _warn_once()
        return _compile(function, **flags)


def _opened_alone(loop: Any) -> Callable[..., object]:
    """Have a loop that was kept opened without all that numba can compile, 0.2 s in a process."""
    kept = getattr(loop, "_cache", None)  # none if numba is told to compile nothing
    if kept is not None:

        def load(signature: Any, context: Any) -> Any:
            _numba().core.runtime.rtsys.initialize(context)
            with kept._guard_against_spurious_io_errors():
                return kept._load_overload(signature, context)

        kept.load_overload = load
    return cast(Callable[..., object], loop)


@functools.cache
def _warn_once() -> None:
    warnings.warn(
        "Compiled code cannot be kept: neither twofold's folder nor your cache folder is writable. "
        "Every process compiles again, which takes seconds; set the environment variable "
        "NUMBA_CACHE_DIR to a folder that is writable.",
        stacklevel=2,
    )


@contextmanager
def _without_garbage_collection() -> Iterator[None]:
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()


# To look through all that numba makes, again and again, takes a tenth of the time of compiling.
_uncollected = HeldSetting(_without_garbage_collection)


# ---- what is said while loops are compiled ------------------------------------------------------

_listeners: list[Callable[[str], None]] = []
_announced = threading.Event()


@contextmanager
def announced(say: Callable[[str], None] | None) -> Iterator[None]:
    """Call ``say`` with a notice if anything is compiled inside the block, once per process.

    What an earlier process compiled is opened without a word. None says nothing.
    """
    if say is None:
        yield
        return
    _listeners.append(say)
    try:
        yield
    finally:
        _listeners.remove(say)


@functools.cache
def _numba() -> Any:
    """Import numba, and listen to what it compiles."""
    import numba
    from numba.core import event

    class Listener(event.Listener):
        def __init__(self) -> None:
            # Numba compiles on one thread at a time, and what is called within what calls it.
            self.under_way: list[AbstractContextManager[None]] = []

        def on_start(self, event: Any) -> None:
            self.under_way.append(_uncollected.held())
            self.under_way[-1].__enter__()
            is_ours = event.data["dispatcher"].py_func.__module__.startswith(f"{__package__}.")
            if is_ours and _listeners and not _announced.is_set():
                _announced.set()
                _listeners[0](NOTICE)

        def on_end(self, event: Any) -> None:
            self.under_way.pop().__exit__(None, None, None)

    event.register("numba:compile", Listener())
    return numba


@compiled_into_callers
def square(x: Number) -> Number:
    """Return ``x²``."""
    return x * x
