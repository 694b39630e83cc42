"""Arrays and data frames of dask: tables in parts that may lie on other machines.

A part is computed where its scheduler puts it. What is made of parts is asked for by `compute_all`,
which shows progress where the scheduler is one of ``dask.distributed``, cancels what it has asked
for if it is interrupted, and says so if the scheduler is lost.
"""

from __future__ import annotations

import sys
from asyncio import CancelledError
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from twofold.checks.rows import check_numeric
from twofold.tables.chunks import ChunkedTable

# Results that one task merges: a tree whose shape depends on the number of results alone.
BRANCHES = 8


class ClusterLostError(RuntimeError):
    """The scheduler cannot be reached any more, or has forgotten what it was asked for."""


class DaskTable(ChunkedTable):
    """An array or a data frame of dask, with the number of rows of each of its parts."""

    def __init__(self, table: Any) -> None:
        check_dimensions(table)
        self.table = in_one_piece_of_columns(table)
        self.columns = getattr(table, "columns", None)
        self.name = f"the {'array' if self.columns is None else 'data frame'} of dask"
        self.parts: list[Any] = np.ravel(self.table.to_delayed()).tolist()
        self.lengths = self._count_rows()
        self.n_rows = sum(self.lengths)

    @property
    def width(self) -> int:
        """How many columns there are."""
        return int(self.table.shape[1])

    @property
    def dtype(self) -> np.dtype[Any]:
        """The type of the rows: float32 if there is nothing else in them, float64 otherwise."""
        kinds = [self.table.dtype] if self.columns is None else list(self.table.dtypes)
        is_single = all(kind == np.float32 for kind in kinds)
        return np.dtype(np.float32 if is_single else np.float64)

    @property
    def starts(self) -> list[int]:
        """The number of the first row of each part."""
        return [0, *np.cumsum(self.lengths)[:-1].tolist()]

    def __iter__(self) -> Iterator[Any]:
        for part in self.parts:
            yield part.compute()

    def _all(self) -> list[Any]:
        return compute_all(self.parts)  # side by side

    def _count_rows(self) -> list[int]:
        if self.columns is None and not np.isnan(self.table.chunks[0]).any():
            return list(map(int, self.table.chunks[0]))
        import dask

        # Of files in columns only the first one is read.
        narrow = self.table if self.columns is None else self.table[list(self.columns[:1])]
        parts = np.ravel(narrow.to_delayed())
        return [int(n) for n in compute_all([dask.delayed(len)(part) for part in parts])]

    def _size(self) -> tuple[int, int, int]:
        return sum(self.lengths), self.width, self.dtype.itemsize

    def _joined(self, chunks: list[Any]) -> Any:
        return super()._joined([chunk for chunk in chunks if len(chunk)] or chunks)


def check_dimensions(table: Any) -> None:
    """Raise if something of dask is no table."""
    if table.ndim != 2:
        raise ValueError(
            f"Expected a table (rows, columns) of dask; got {table.ndim} dimension(s). Reshape an "
            "array by `X.reshape(-1, 1)`, take columns of a data frame by `frame[[...]]`."
        )


def in_one_piece_of_columns(table: Any) -> Any:
    """Return a table of dask whose parts have all columns."""
    is_cut = not hasattr(table, "columns") and len(table.chunks[1]) > 1
    return table.rechunk({1: -1}) if is_cut else table


def one_row_like(table: Any) -> Any:
    """Return a row of zeros with the columns of a table of dask: to check those at once."""
    if not hasattr(table, "columns"):
        return np.zeros((1, table.shape[1]), dtype=table.dtype)
    import pandas as pd

    check_numeric(table._meta)
    return pd.DataFrame(np.zeros((1, table.shape[1])), columns=table.columns)


def missing_row_like(frame: Any) -> Any:
    """Return a row without entries, in the columns and about the types of a data frame of dask."""
    return frame._meta.reset_index(drop=True).reindex([0])


def array_of_parts(parts: Sequence[Any], lengths: Sequence[int], width: int, dtype: Any) -> Any:
    """Return delayed arrays (n, width) as one array of dask."""
    import dask.array as da

    pieces = zip(parts, lengths, strict=True)
    return da.concatenate([da.from_delayed(part, (n, width), dtype) for part, n in pieces])


def weights_in_parts(weights: Any, lengths: Sequence[int]) -> list[Any]:
    """Return numbers for rows, of numpy or dask, cut as the rows are; one number is for all."""
    if np.ndim(weights) == 0:
        return [weights] * len(lengths)
    if hasattr(weights, "to_dask_array"):
        weights = weights.to_dask_array(lengths=True)
    if len(weights) != sum(lengths):
        raise ValueError(
            f"`sample_weight` must be one number for each of the {sum(lengths)} rows; got "
            f"{len(weights)}."
        )
    if hasattr(weights, "rechunk"):
        return np.ravel(weights.rechunk((tuple(lengths),)).to_delayed()).tolist()
    return np.split(np.asarray(weights), np.cumsum(lengths)[:-1])


def merged(parts: Sequence[Any], merge: Callable[[list[Any]], Any]) -> Any:
    """Return the result of delayed parts, merged a few at a time and always in the same order."""
    import dask

    level, together = list(parts), dask.delayed(merge)
    while len(level) > 1:
        level = [
            together(level[first : first + BRANCHES]) for first in range(0, len(level), BRANCHES)
        ]
    return level[0]


def current_client() -> Any:
    """Return the client of the scheduler that computes by default, None for threads of our own."""
    from dask.base import get_scheduler

    found = getattr(get_scheduler(), "__self__", None)
    return found if type(found).__module__.startswith("distributed") else None


def compute_all(parts: Sequence[Any], tell: Callable[[int], None] = lambda done: None) -> list[Any]:
    """Return the results of delayed parts; ``tell`` hears how many of them are done."""
    import dask

    client, kept = current_client(), keep_all(parts, tell)
    with losses_told(client):
        return list(dask.compute(*kept))


def keep_all(parts: Sequence[Any], tell: Callable[[int], None] = lambda done: None) -> list[Any]:
    """Compute delayed parts and return them as such, done and kept where they were computed."""
    import dask

    client = current_client()
    _check_owner(parts, client)
    if client is None:
        return list(dask.persist(*parts))
    with losses_told(client):
        kept = list(dask.persist(*parts))
        _wait(client, kept, tell)
        return kept


def _check_owner(parts: Sequence[Any], client: Any) -> None:
    """Raise if parts were computed by a scheduler that is no longer the one to ask."""
    if "distributed" not in sys.modules:
        return
    from distributed import futures_of

    owners = {future.client for future in futures_of(list(parts))}
    if owners - {client}:
        raise cluster_lost()


def _wait(client: Any, kept: list[Any], tell: Callable[[int], None]) -> None:
    """Wait for what was asked for; cancel it if that is interrupted, or if a part of it fails."""
    from distributed import as_completed, futures_of, wait

    futures = futures_of(kept)
    try:
        for done, future in enumerate(as_completed(futures), 1):
            _check_future(future)
            tell(done)
        wait(futures)  # what was lost with a worker is computed again
        for future in futures:
            _check_future(future)
    except BaseException:
        if client.status == "running":
            client.cancel(futures, force=True)
        raise


def _check_future(future: Any) -> None:
    """Raise if a result will never come."""
    if future.status == "error":
        raise future.exception()
    if future.status == "cancelled":
        raise cluster_lost()


@contextmanager
def losses_told(client: Any) -> Iterator[None]:
    """Turn what dask raises when a scheduler is gone into an error that says so."""
    try:
        yield
    except (Exception, CancelledError) as error:
        if client is None or not _is_loss(error, client):
            raise
        raise cluster_lost() from error


def _is_loss(error: BaseException, client: Any) -> bool:
    from concurrent import futures

    from distributed.comm import CommClosedError

    if isinstance(error, CancelledError | futures.CancelledError | CommClosedError):
        return True
    return isinstance(error, OSError) and client.status != "running"


def cluster_lost() -> ClusterLostError:
    """Return the error that says what to do about a scheduler that is gone."""
    return ClusterLostError(
        "The scheduler of dask was lost, or has cancelled what it was asked for. Start it again, "
        "connect to it by `dask.distributed.Client(...)`, and repeat the call; a fit with "
        "`checkpoint` goes on from its last checkpoint."
    )
