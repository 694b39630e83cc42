"""Settings that belong to the whole process, changed for a while by many threads.

How many threads BLAS may start, and which warnings are shown, is not a thread's own business. If
each thread saved such a setting and put it back, the first to leave would undo what others still
need, and the last would put back what the first had changed. So those who want a change are
counted: the first one makes it and the last one takes it back, in whatever order they leave.

A forked child has none of its parent's threads: there nobody wants anything any more.
"""

import os
import sys
import warnings
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from functools import cache
from threading import Lock


class HeldSetting:
    """A setting that stays changed, by the context manager ``change()``, while anybody wants it."""

    def __init__(self, change: Callable[[], AbstractContextManager[object]]) -> None:
        self._change = change
        self._lock = Lock()
        self._holders: set[object] = set()
        self._changed: AbstractContextManager[object] | None = None
        if hasattr(os, "register_at_fork"):  # where processes can fork
            os.register_at_fork(after_in_child=self._start_anew)

    @contextmanager
    def held(self, begin: Callable[[], None] = lambda: None) -> Iterator[None]:
        """Keep the setting changed inside the block; ``begin`` changes more of it."""
        holder = object()
        with self._lock:
            if self._changed is None:
                changed = self._change()
                changed.__enter__()
                self._changed = changed
            self._holders.add(holder)
            begin()
        try:
            yield
        finally:
            with self._lock:
                self._holders.discard(holder)
                self._end_if_unwanted()

    def _end_if_unwanted(self) -> None:
        if self._changed is not None and not self._holders:
            self._changed.__exit__(None, None, None)
            self._changed = None

    def _start_anew(self) -> None:
        self._lock = Lock()  # its holder may be a thread that is gone
        self._holders.clear()
        self._end_if_unwanted()


_filters = HeldSetting(warnings.catch_warnings)


def without_warnings(category: type[Warning]) -> AbstractContextManager[None]:
    """Show no warnings of a category inside the block.

    Other threads do not see them either, until the last of such blocks ends.
    """
    return _filters.held(lambda: warnings.simplefilter("ignore", category))


# scikit-learn wraps the methods of estimators.
_INNER = ("twofold", "sklearn", "joblib")


def same_warnings_after() -> AbstractContextManager[None]:
    """Bring the filters of warnings back: threads of scikit-learn swap those of the process."""
    return _filters.held(lambda: None)


def warn(message: str, category: type[Warning] = UserWarning) -> None:
    """Issue a warning in the name of the first caller outside this package and scikit-learn."""
    level, frame = 1, sys._getframe().f_back
    while frame is not None and frame.f_globals.get("__name__", "").partition(".")[0] in _INNER:
        level, frame = level + 1, frame.f_back
    warnings.warn(message, category, stacklevel=level + 1)


# Parameters of mallopt in glibc, and bytes: blocks up to the first are taken from memory that was
# freed before, of which as much as the second is kept.
_MMAP_THRESHOLD, _TRIM_THRESHOLD = (-3, 32 << 20), (-1, 64 << 20)


@cache
def keep_freed_memory() -> None:
    """Let a worker of dask use memory again that it has freed.

    Dask starts its workers with ``MALLOC_TRIM_THRESHOLD_``, by which the C library hands large
    blocks back at once. Arrays of some hundred kB, made over and over, are then new pages each
    time, which took half as long again as projecting rows.
    """
    if "MALLOC_TRIM_THRESHOLD_" not in os.environ or not sys.platform.startswith("linux"):
        return
    import ctypes

    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is not None:
        for threshold in (_MMAP_THRESHOLD, _TRIM_THRESHOLD):
            mallopt(*threshold)
