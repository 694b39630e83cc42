"""Work that the workers of a cluster share, over and over: one value kept by all of them.

An optimiser asks for the same sums a hundred times, each time at another point. What stays the same
goes to every worker once; what changes goes there each time; each worker takes on a share of the
tasks, as large as its share of the threads, and results come back in the order of the tasks.

A worker that dies is replaced by another one, or by a new one. If the value was lost with it, it is
sent again: the process that asks has it.
"""

from __future__ import annotations

from asyncio import CancelledError
from collections.abc import Callable, Iterator, Mapping
from concurrent import futures
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

from twofold.tables.dask_tables import ClusterLostError, cluster_lost, current_client

# Times that something is asked for before the workers are given up: each may die once in a while.
TRIES = 5
# Seconds that a cluster may be without any worker.
PATIENCE = 120.0

_sharing: ContextVar[Any] = ContextVar("the client of the workers that share sums", default=None)


@contextmanager
def shared_with_workers() -> Iterator[None]:
    """Let the workers of the current cluster, if there is one, do sums inside the block."""
    before = _sharing.set(current_client())
    try:
        yield
    finally:
        _sharing.reset(before)


def sharing_workers() -> Any:
    """Return the client of the workers that do sums, None if this process does them alone."""
    return _sharing.get()


class KeptByAll:
    """A value that every worker of a cluster keeps."""

    def __init__(self, client: Any, value: Any) -> None:
        self._client, self._value, self._kept = client, value, None

    def ask(self, work: Callable[..., list[Any]], changing: Any, n_tasks: int) -> list[Any]:
        """Return the results of ``n_tasks`` tasks, in their order.

        ``work(value, changing, first, stop)`` returns those of some tasks; it runs once on every
        worker that has a share of them.
        """
        for attempt in range(TRIES):
            try:
                return self._ask(work, changing, n_tasks)
            except (Exception, CancelledError) as error:
                if self._client.status != "running":
                    raise cluster_lost() from error
                if attempt == TRIES - 1 or not _is_of_workers(error):
                    raise
                self._kept = None  # it may have been lost with the last worker that had it
        raise AssertionError("the last try returns or raises")

    def _ask(self, work: Callable[..., list[Any]], changing: Any, n_tasks: int) -> list[Any]:
        client = self._client
        try:
            client.wait_for_workers(1, timeout=PATIENCE)
        except TimeoutError as error:
            raise ClusterLostError(
                f"The cluster has had no worker for {PATIENCE:.0f} seconds. Start workers and "
                "repeat the call; a fit with `checkpoint` goes on from its last checkpoint."
            ) from error
        # To one worker, from which others fetch what they need: a broadcast waits for ever if a
        # worker dies in the middle of it.
        if self._kept is None:
            self._kept = client.scatter(self._value, hash=False)
        given = client.scatter(changing, hash=False)
        asked = []
        for worker, first, stop in _shares(client.nthreads(), n_tasks):
            where = {"workers": [worker], "allow_other_workers": True, "pure": False}
            asked.append(client.submit(work, self._kept, given, first, stop, **where))
        try:
            return [result for results in client.gather(asked) for result in results]
        except BaseException:
            if client.status == "running":
                client.cancel(asked, force=True)
            raise


def _shares(threads: Mapping[str, int], n_tasks: int) -> Iterator[tuple[str, int, int]]:
    """Yield workers with the first of their tasks and the one after the last."""
    total, counted, stop = sum(threads.values()), 0, 0
    for worker, own in sorted(threads.items()):
        counted += own
        first, stop = stop, round(n_tasks * counted / total)
        if first < stop:
            yield worker, first, stop


def _is_of_workers(error: BaseException) -> bool:
    """Say whether workers died, and others may do what they were asked for."""
    from distributed import KilledWorker

    # A connection that is closed is an OSError.
    return isinstance(error, CancelledError | futures.CancelledError | KilledWorker | OSError)
