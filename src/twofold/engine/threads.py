"""Running independent tasks on threads, the same way for any number of them.

Work is cut into tasks before anybody asks how many threads there are, each task runs with
single-threaded BLAS, and results are put together in task order. So the result does not depend on
the number of threads, to the last bit.

A forked child has none of its parent's threads, and begins without pools.
"""

import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager
from functools import cache
from threading import local
from typing import TypeVar

import joblib
import numpy as np
from scipy import linalg
from threadpoolctl import ThreadpoolController, threadpool_limits

from twofold.checks.parameters import is_integer
from twofold.process_settings import HeldSetting

Task = TypeVar("Task")
Result = TypeVar("Result")


def count_threads(n_jobs: int | None) -> int:
    """Return how many threads ``n_jobs`` means, as in scikit-learn: -1 every core, None one."""
    available = int(joblib.cpu_count())
    if n_jobs is None:
        return 1
    if not is_integer(n_jobs) or n_jobs == 0:
        raise ValueError(
            "`n_jobs` must be a number of threads, None for one, or negative to leave cores out "
            f"(-1 every core, -2 all but one); got {n_jobs!r}."
        )
    return int(n_jobs) if n_jobs > 0 else max(1, available + 1 + int(n_jobs))


@cache
def _controller() -> ThreadpoolController:
    return ThreadpoolController()


_blas_limit = HeldSetting(lambda: _controller().limit(limits=1, user_api="blas"))


def single_threaded_blas() -> AbstractContextManager[None]:
    """Keep BLAS on one thread inside the block."""
    return _blas_limit.held()


@contextmanager
def single_threaded() -> Iterator[None]:
    """Keep BLAS on one thread inside the block, and OpenMP in the thread that calls."""
    with single_threaded_blas(), threadpool_limits(limits=1, user_api="openmp"):
        yield


class _Where(local):
    """Whether this thread is one of a pool's: it does by itself what it is asked for."""

    is_worker = False


_where = _Where()


def _begin_work() -> None:
    _where.is_worker = True


@contextmanager
def on_this_thread() -> Iterator[None]:
    """Do without other threads inside the block: who called has given them out already."""
    before, _where.is_worker = _where.is_worker, True
    try:
        yield
    finally:
        _where.is_worker = before


@cache
def _pool(n_threads: int) -> ThreadPoolExecutor:
    return ThreadPoolExecutor(n_threads, thread_name_prefix="twofold", initializer=_begin_work)


if hasattr(os, "register_at_fork"):  # where processes can fork
    os.register_at_fork(after_in_child=_pool.cache_clear)


def slices(n: int, size: int) -> list[slice]:
    """Cut n rows into blocks of one size, the last of which may be smaller."""
    return [slice(start, min(start + size, n)) for start in range(0, n, size)]


def run_tasks(
    work: Callable[[Task], Result], tasks: Sequence[Task], n_threads: int
) -> list[Result]:
    """Return ``[work(task) for task in tasks]``, computed side by side.

    Tasks inside of tasks run one after the other: their threads have been given out.
    """
    with single_threaded_blas():
        if n_threads == 1 or len(tasks) == 1 or _where.is_worker:
            return list(map(work, tasks))
        return list(_pool(n_threads).map(work, tasks))


def reserve_for_blas() -> None:
    """Let linear algebra take its memory now; raise MemoryError if there is no room for it.

    OpenBLAS, of which numpy and scipy have one each, takes 32 MB at its first use. Where it gets
    none, it ends the process or tries forever, depending on its version.
    """
    np.empty(96 << 20, dtype=np.uint8)  # takes addresses only
    some = np.eye(256)
    linalg.cho_factor(some @ some)
