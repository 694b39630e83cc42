"""Running independent tasks on threads, the same way for any number of them.

Work is cut into tasks before anybody asks how many threads there are, each task runs with
single-threaded BLAS, and results are put together in task order. So the result does not depend on
the number of threads, to the last bit.

How many threads BLAS may start belongs to the process. So those who keep it on one are counted: the
first sets the limit and the last lifts it, whichever threads they run on and in whatever order they
leave. A forked child has none of its parent's threads, and begins without pools and limits.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import cache
from threading import Lock
from typing import Any, TypeVar

import joblib
from threadpoolctl import ThreadpoolController, threadpool_limits

from twofold.number_checks import is_integer

Task = TypeVar("Task")
Result = TypeVar("Result")


def count_threads(n_jobs: int | None) -> int:
    """Return how many threads ``n_jobs`` means; None means every core the process may use."""
    available = int(joblib.cpu_count())
    if n_jobs is None:
        return available
    if not is_integer(n_jobs) or n_jobs == 0:
        raise ValueError(
            "`n_jobs` must be None (every core), a number of threads, or negative to leave cores "
            f"out (-1 every core, -2 all but one); got {n_jobs!r}."
        )
    return int(n_jobs) if n_jobs > 0 else max(1, available + 1 + int(n_jobs))


@cache
def _controller() -> ThreadpoolController:
    return ThreadpoolController()


class _BlasLimit:
    """Keeps BLAS on one thread as long as anybody wants it."""

    def __init__(self) -> None:
        self.lock = Lock()
        self.holders: set[object] = set()
        self.limiter: Any = None

    def hold(self, holder: object) -> None:
        with self.lock:
            if self.limiter is None:
                self.limiter = _controller().limit(limits=1, user_api="blas")
            self.holders.add(holder)

    def release(self, holder: object) -> None:
        with self.lock:
            self.holders.discard(holder)
            if self.limiter is not None and not self.holders:
                self.limiter.restore_original_limits()
                self.limiter = None

    def start_anew(self) -> None:
        """Forget everybody: in a forked child they are gone, and so is who holds the lock."""
        self.lock = Lock()
        self.holders.clear()
        self.release(None)


_blas_limit = _BlasLimit()


@contextmanager
def single_threaded_blas() -> Iterator[None]:
    """Keep BLAS on one thread inside the block."""
    holder = object()
    _blas_limit.hold(holder)
    try:
        yield
    finally:
        _blas_limit.release(holder)


@contextmanager
def single_threaded() -> Iterator[None]:
    """Keep BLAS on one thread inside the block, and OpenMP in the thread that calls."""
    with single_threaded_blas(), threadpool_limits(limits=1, user_api="openmp"):
        yield


@cache
def _pool(n_threads: int) -> ThreadPoolExecutor:
    return ThreadPoolExecutor(n_threads, thread_name_prefix="twofold")


def _start_anew_in_child() -> None:
    _pool.cache_clear()
    _blas_limit.start_anew()


if hasattr(os, "register_at_fork"):  # where processes can fork
    os.register_at_fork(after_in_child=_start_anew_in_child)


def run_tasks(
    work: Callable[[Task], Result], tasks: Sequence[Task], n_threads: int
) -> list[Result]:
    """Return ``[work(task) for task in tasks]``, computed side by side."""
    with single_threaded_blas():
        if n_threads == 1 or len(tasks) == 1:
            return [work(task) for task in tasks]
        return list(_pool(n_threads).map(work, tasks))
