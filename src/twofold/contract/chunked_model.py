"""Fits to tables that are walked in chunks and never held whole.

A model that is made from a sample of the rows needs two walks: one that checks the rows and draws
the sample, and one that places every row. The sample are the rows of lowest hash, which one walk
finds whatever the order of the rows, and which a fit to the same table in memory takes as well:
both come to the same model. Of the first walk a hash of all rows is kept; if the second finds
another, the table was changed in between.
"""

import hashlib
import time
from collections.abc import Iterator
from contextlib import ExitStack, nullcontext
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from twofold.array_types import FloatArray, IntArray
from twofold.checks.rows import (
    RowError,
    check_entries,
    check_missing,
    check_size,
    checked_weights,
    validate_rows,
)
from twofold.contract.distinct_rows import DistinctRows, LowestRows, row_keys
from twofold.contract.kept_model import KeptModel
from twofold.optimize import Event, Journal, ProgressBar
from twofold.tables.chunks import NO_ROWS, ChunkedTable, check_chunk, check_precision
from twofold.tables.dask_tables import DaskTable
from twofold.tables.dask_workers import shared_with_workers

# Rows that are placed before progress is shown.
ROWS_AT_A_TIME = 4096


@dataclass(frozen=True)
class Overview:
    """What a walk through a table finds."""

    n_rows: int
    sample: DistinctRows
    fingerprint: str  # of all rows in their order

    @property
    def n_kept(self) -> int:
        """How many places of rows a model keeps."""
        return self.n_rows

    def weights_kept(self, weights: Any) -> FloatArray:
        """Return the weights of rows whose places are kept, given those of all rows."""
        return np.broadcast_to(weights, self.n_rows)


class ChunkedModel(KeptModel):
    """A model that is fitted to a table in chunks if it is made from a sample of its rows."""

    _sample_places: FloatArray  # of a fit to a table of dask, whose `embedding_` lies elsewhere

    def _fit_table(self, X: Any, sample_weight: Any) -> None:
        """Fit to a table in memory."""
        raise NotImplementedError

    def _place(self, Y: FloatArray) -> FloatArray:
        """Return latent points of any rows."""
        raise NotImplementedError

    def _place_fitted(self, Y: FloatArray) -> FloatArray:
        """Return latent points of rows passed to ``fit`` for which others stood in it."""
        return self._place(Y)

    def _fit_chunks(self, table: ChunkedTable, sample_weight: Any) -> None:
        """Fit to a table in chunks; one that needs all rows at once loads them, if they fit."""
        if self._most_rows(1) is None:
            with shared_with_workers() if isinstance(table, DaskTable) else nullcontext():
                self._fit_table(table.whole(), sample_weight)
            return
        with ExitStack() as stack:
            bars = [stack.enter_context(bar) for bar in self._bars()]
            seen = self._look_through(table, sample_weight, _Teller(bars, "reading rows"))
        Y = seen.sample.Y
        check_sample(Y, getattr(self, "feature_names_in_", None))
        self._check_range(Y, reset=True)
        check_size(Y, self._wanted_dimensions(Y), seen.n_rows)
        self.data_, self.weights_ = Y, seen.sample.weights
        self.member_ = np.full(seen.n_kept, -1)
        latent = self._fit_kept(seen.sample.first, is_spread=isinstance(table, DaskTable))
        self.latent_ = latent.astype(Y.dtype)
        self._wake()
        self._bound_domain()
        with ExitStack() as stack:
            bars = [stack.enter_context(bar) for bar in self._bars()]
            self._embed_chunks(table, seen, _Teller(bars, "placing rows"))
        is_spread = isinstance(table, DaskTable)
        self._keep_weights(seen.weights_kept(None if is_spread else _weights_of_all(sample_weight)))

    def _fit_kept(self, source: IntArray, *, is_spread: bool) -> FloatArray:
        """Return latent points of ``data_``; a worker finds them if only workers have a device."""
        if is_spread and self._lacks_device():
            # Imported at first use: few tables are of dask.
            from twofold.contract.spread_fitting import fit_on_worker

            return fit_on_worker(self, source)
        return self._fit_distinct(self.data_, self.weights_, source)

    def _lacks_device(self) -> bool:
        """Say whether a device is asked for that this process does not have."""
        return False

    def _bars(self) -> list[ProgressBar]:
        """Return what shows progress, if that is wanted."""
        return []

    def _kept_steps(self) -> Journal:
        """Return where the steps of a fit are kept."""
        return Journal()

    def _look_through(
        self, table: ChunkedTable, sample_weight: Any, tell: "_Teller | None" = None
    ) -> Overview:
        """Check the rows of a table, and return a sample of them."""
        if isinstance(table, DaskTable):
            from twofold.contract.spread_fitting import look_through_parts

            return look_through_parts(self, table, sample_weight, tell)
        weights = _weights_of_all(sample_weight)
        digest, n_rows = hashlib.sha256(), 0
        sample, observed = None, np.zeros(1, dtype=bool)
        for start, Y in self._walk(table, reset=True):
            stop = n_rows = start + len(Y)
            share = np.full(len(Y), weights) if np.ndim(weights) == 0 else weights[start:stop]
            _check_number(weights, stop)
            counted = self._counted(Y, share, start)
            digest.update(row_keys(Y).data)
            if sample is None:
                sample = LowestRows(self._most_rows(Y.shape[1]) or len(Y))
            sample.add(Y[counted], share[counted], start + counted)
            observed = observed | ~np.isnan(Y[counted]).all(axis=0)
            if tell is not None:
                tell(stop, table.n_rows)
        if sample is None:
            raise ValueError(NO_ROWS)
        _check_number(weights, n_rows, is_all=True)
        # As one row, of which entries are missing where a column has none at all.
        known = np.where(observed, 1.0, np.nan)[None]
        check_missing(known, getattr(self, "feature_names_in_", None))
        return Overview(n_rows, sample.found(), digest.hexdigest())

    def _counted(self, Y: FloatArray, share: FloatArray, start: int) -> IntArray:
        """Return which rows Y, from number ``start`` on, have a weight; these need an entry."""
        counted = np.flatnonzero(share > 0)
        try:
            check_missing(Y[counted], columns=False)
        except RowError as error:
            raise error.at(start + int(counted[error.row])) from None
        return counted

    def _embed_chunks(self, table: ChunkedTable, seen: Overview, tell: "_Teller") -> None:
        """Set ``embedding_``, walking through the table once more."""
        journal = self._kept_steps()
        if isinstance(table, DaskTable):
            from twofold.contract.spread_fitting import SpreadOverview, place_parts

            assert isinstance(seen, SpreadOverview)
            journal.write()  # a cluster may be lost
            place_parts(self, table, seen, tell)
            return
        kept = journal.begin()
        done = kept[1] if kept is not None and kept[0] == seen.fingerprint else self.latent_[:0]
        X = np.empty((seen.n_rows, self.latent_.shape[1]), dtype=self.latent_.dtype)
        X[: len(done)] = done
        digest, stop = hashlib.sha256(), 0
        for first, Y in self._walk(table, reset=False):
            digest.update(row_keys(Y).data)
            if first + len(Y) > seen.n_rows:
                raise _changed(table, seen, f"more than {seen.n_rows:,}")
            for start in range(0, len(Y), ROWS_AT_A_TIME):
                stop = first + min(start + ROWS_AT_A_TIME, len(Y))
                if stop > len(done):
                    X[first + start : stop] = self._place_fitted(Y[start : stop - first])
                    journal.note(partial(tuple, (seen.fingerprint, X[:stop])))
                tell(stop, seen.n_rows)
        if digest.hexdigest() != seen.fingerprint:
            raise _changed(table, seen, f"{stop:,}")
        self.embedding_ = X

    def _walk(self, table: ChunkedTable, *, reset: bool) -> Iterator[tuple[int, FloatArray]]:
        """Yield the number of the first row of each chunk, and its rows, checked."""
        done = width = 0
        dtype: np.dtype[Any] | None = None
        for number, chunk in enumerate(table):
            n_rows, width = check_chunk(chunk, number, width)
            if n_rows == 0:
                continue
            Y = self._checked(chunk, number, done, dtype, reset=reset and done == 0)
            dtype = dtype or Y.dtype
            yield done, Y
            done += n_rows

    def _checked(
        self,
        chunk: Any,
        number: int,
        start: int,
        dtype: np.dtype[Any] | None,
        *,
        reset: bool = False,
    ) -> FloatArray:
        """Return the rows of a chunk in a type, None for their own; ``start`` is the first one."""
        try:
            Y = validate_rows(self, chunk, reset=reset, least=1)
            dtype = dtype or Y.dtype
            check_precision(Y, dtype, number)
            check_entries(Y)
        except RowError as error:
            raise error.at(start + error.row) from None
        except ValueError as error:
            place = f"rows {start} to {start + len(chunk) - 1}"
            raise ValueError(f"{error} (in chunk {number}, {place})") from error
        return Y.astype(dtype, copy=False)


class _Teller:
    """Shows how many rows are done."""

    def __init__(self, bars: list[ProgressBar], words: str) -> None:
        self._bars, self._words, self._began = bars, words, time.perf_counter()

    def __call__(self, done: int, n_rows: int | None) -> None:
        elapsed = time.perf_counter() - self._began
        event = Event(done, n_rows, float("nan"), np.empty((0, 0)), elapsed, self._words, "row")
        for bar in self._bars:
            bar(event)


def check_sample(Y: FloatArray, names: Any) -> None:
    """Raise if a column has no entry in any of the rows Y that stand for all."""
    empty = np.flatnonzero(np.isnan(Y).all(axis=0))
    if len(empty):
        label = f"'{names[empty[0]]}'" if names is not None else str(empty[0])
        raise ValueError(
            f"Column {label} has so few entries that none of the {len(Y):,} sampled rows has one; "
            "leave it out."
        )


def _weights_of_all(sample_weight: Any) -> Any:
    """Return the weights of all rows, or a number for every row."""
    if sample_weight is None:
        return 1.0
    if np.ndim(sample_weight) == 0:
        return float(checked_weights(sample_weight, np.zeros(1))[0])
    return checked_weights(sample_weight, np.asarray(sample_weight))


def _check_number(weights: Any, n_rows: int, *, is_all: bool = False) -> None:
    """Raise if there are fewer weights than rows so far, or another number than there are rows."""
    if np.ndim(weights) and (len(weights) < n_rows or (is_all and len(weights) != n_rows)):
        more = "" if is_all else " or more"
        raise ValueError(
            f"`sample_weight` must be one number for each of the {n_rows}{more} rows; got "
            f"{len(weights)}."
        )


def _changed(table: ChunkedTable, seen: Overview, found: str) -> ValueError:
    is_shorter = found != f"{seen.n_rows:,}"
    words = f"it has {found} rows now" if is_shorter else "its rows are others now"
    return ValueError(
        f"{table.name} changed while it was fitted to: it had {seen.n_rows:,} rows at first, and "
        f"{words}. Every walk through it must give the same rows; fit again when it stays as it is."
    )
