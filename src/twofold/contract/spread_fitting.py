"""Fits to tables of dask: what is done to every row is done where the row lies.

A fit by a sample of the rows (:mod:`.chunked_model`) asks two things of all of them, and both are
sums over parts of the table:

1. which rows have the lowest hashes. Of n rows the m wanted ones have hashes below about m/n of the
   largest possible, so that a part sends hardly more than its own share of them: all parts together
   about m rows of D numbers. Samples are merged in a tree whose shape the number of parts decides,
   not the number of workers, and in the order of the rows.
2. where each row lies on the manifold. The model, trained where ``fit`` was called, goes to each
   worker once; places stay where they were computed, as an array of dask.

So the model has the bits of a fit to the same rows on one machine. (Copies of one row with weights
that are no whole numbers are added up in another order: their sum may differ in its last digit.)
What a caller holds does not grow with the rows: the sample, the model, and the places of the
sample, which stand for all in files and for `partial_fit`.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from twofold.array_types import BoolArray, FloatArray, IntArray
from twofold.checks.rows import check_missing, checked_weights, validate_rows
from twofold.contract.chunked_model import ChunkedModel, Overview
from twofold.contract.distinct_rows import (
    LARGEST_KEY,
    DistinctRows,
    LowestRows,
    bound_of_lowest,
    row_keys,
)
from twofold.contract.lazy_answers import in_a_task, model_task, without_callbacks
from twofold.engine.gpu.library import why_no_gpu
from twofold.engine.threads import single_threaded_blas
from twofold.tables.dask_tables import (
    DaskTable,
    array_of_parts,
    compute_all,
    current_client,
    keep_all,
    losses_told,
    merged,
    one_row_like,
    weights_in_parts,
)

Tell = Callable[[int, int | None], None]


@dataclass(frozen=True)
class SpreadOverview(Overview):
    """What is known of all parts of a table together, and the weight of all rows."""

    digests: tuple[str, ...]  # of each part
    total: float

    @property
    def n_kept(self) -> int:
        """How many places of rows a model keeps: those of the sample."""
        return len(self.sample.Y)

    def weights_kept(self, weights: Any) -> FloatArray:
        """Return the weights of rows whose places are kept; they stand for all others, too."""
        own = self.sample.weights
        return np.asarray(own * (self.total / own.sum()))


@dataclass(frozen=True)
class _Seen:
    """What is known of parts of a table, one or several that follow each other."""

    observed: BoolArray  # (D,) which columns have entries
    digests: tuple[str, ...] = ()
    sample: DistinctRows | None = None
    total: float = 0.0
    heaviest: float = 0.0
    error: ValueError | None = None  # the first one


def look_through_parts(
    model: ChunkedModel, table: DaskTable, sample_weight: Any, tell: Tell | None
) -> SpreadOverview:
    """Check the rows of a table where they lie, and return a sample of them."""
    if table.n_rows == 0:
        raise ValueError("The table of dask has no rows; a filter may have left none.")
    validate_rows(model, one_row_like(table.table), reset=True, least=1)
    assert table.n_rows is not None
    most = model._most_rows(table.width) or table.n_rows
    bound = bound_of_lowest(most, table.n_rows)
    seen = _see(model, table, sample_weight, most, bound, tell)
    if seen.sample is not None and len(seen.sample.Y) < most and bound < LARGEST_KEY:
        # So many rows have copies that too few distinct ones were below the bound.
        seen = _see(model, table, sample_weight, most, LARGEST_KEY, tell)
    if seen.error is not None:
        raise seen.error
    checked_weights(seen.heaviest, np.zeros(1))
    names = getattr(model, "feature_names_in_", None)
    # As one row, of which entries are missing where a column has none at all.
    check_missing(np.where(seen.observed, 1.0, np.nan)[None], names)
    assert seen.sample is not None
    whole = hashlib.sha256("".join(seen.digests).encode()).hexdigest()
    return SpreadOverview(table.n_rows, seen.sample, whole, seen.digests, seen.total)


def _see(
    model: ChunkedModel,
    table: DaskTable,
    sample_weight: Any,
    most: int,
    bound: int,
    tell: Tell | None,
) -> _Seen:
    import dask

    weights = weights_in_parts(1.0 if sample_weight is None else sample_weight, table.lengths)
    task, look = model_task(model), dask.delayed(_look)
    parts = [
        look(task, part, share, number, first, table.dtype, most, bound)
        for number, (part, share, first) in enumerate(
            zip(table.parts, weights, table.starts, strict=True)
        )
    ]
    kept = keep_all(parts, partial(_tell_rows, table, tell))
    return compute_all([merged(kept, partial(_together, most=most))])[0]


def _tell_rows(table: DaskTable, tell: Tell | None, done: int) -> None:
    if tell is not None and table.n_rows is not None:
        tell(table.n_rows * done // len(table.parts), table.n_rows)


def _look(
    model: ChunkedModel,
    chunk: Any,
    weights: Any,
    number: int,
    first: int,
    dtype: Any,
    most: int,
    bound: int,
) -> _Seen:
    """Look at one part; errors are passed on, so that the first one in the table is raised."""
    nothing = np.zeros(np.shape(chunk)[1], dtype=bool)
    if len(chunk) == 0:
        return _Seen(nothing, (_digest(np.empty(0)),))
    try:
        Y = model._checked(chunk, number, first, dtype)
        share = np.broadcast_to(weights, len(Y)).astype(np.float64)
        _check_shares(share, first)
        counted = model._counted(Y, share, first)
    except ValueError as error:
        return _Seen(nothing, error=error)
    observed = np.asarray((~np.isnan(Y[counted])).any(axis=0))
    keys = row_keys(Y)
    total, heaviest = float(share.sum()), float(share.max(initial=0.0))
    seen = _Seen(observed, (_digest(keys),), None, total, heaviest)
    low = counted[keys[counted] <= np.uint64(bound)]
    if len(low) == 0:
        return seen
    sample = LowestRows(most)
    sample.add(Y[low], share[low], first + low)
    return replace(seen, sample=sample.found())


def _check_shares(share: FloatArray, first: int) -> None:
    wrong = np.flatnonzero(~(np.isfinite(share) & (share >= 0)))
    if len(wrong):
        raise ValueError(
            "`sample_weight` must hold finite numbers that are not negative; got "
            f"{share[wrong[0]]} for row {first + wrong[0]}."
        )


def _digest(keys: Any) -> str:
    return hashlib.sha256(np.ascontiguousarray(keys).data).hexdigest()


def _together(parts: list[_Seen], most: int) -> _Seen:
    """Return what is known of parts that follow each other."""
    errors = [part.error for part in parts if part.error is not None]
    lowest = LowestRows(most)
    samples = [part.sample for part in parts if part.sample is not None]
    for sample in samples:
        lowest.add(sample.Y, sample.weights, sample.first)
    return _Seen(
        observed=np.logical_or.reduce([part.observed for part in parts]),
        digests=tuple(digest for part in parts for digest in part.digests),
        sample=lowest.found() if samples else None,
        total=sum(part.total for part in parts),
        heaviest=max(part.heaviest for part in parts),
        error=errors[0] if errors else None,
    )


def fit_on_worker(model: ChunkedModel, source: IntArray) -> FloatArray:
    """Fit the rows of a model on a worker that has a GPU, as this process has none.

    What only this process can do is left out: callbacks, progress and checkpoints.
    """
    client = current_client()
    missing = {} if client is None else client.run(why_no_gpu)
    able = [worker for worker, reason in missing.items() if not reason]
    if not able:
        raise RuntimeError(
            f"device='cuda' needs a GPU: {why_no_gpu()} None of the {len(missing)} workers has one "
            "either. Use device='auto' or 'cpu'."
        )
    with losses_told(client):
        # Sent as parameters and arrays; what the device is becomes known there.
        sent = client.scatter(without_callbacks(model), workers=able[:1], hash=False)
        latent, found = client.submit(_fit_there, sent, source, workers=able).result()
    model.__dict__.update(found)
    return np.asarray(latent)


def _fit_there(model: ChunkedModel, source: IntArray) -> tuple[FloatArray, dict[str, Any]]:
    with single_threaded_blas():
        latent = model._fit_distinct(model.data_, model.weights_, source)
    return latent, {name: value for name, value in vars(model).items() if name.endswith("_")}


def place_parts(model: ChunkedModel, table: DaskTable, seen: SpreadOverview, tell: Tell) -> None:
    """Set ``embedding_``, an array of dask; its parts are placed where their rows lie."""
    import dask

    task, place = model_task(model), dask.delayed(_place)
    numbered = zip(table.parts, table.starts, seen.digests, strict=True)
    parts = [
        place(task, part, number, first, table.dtype, digest)
        for number, (part, first, digest) in enumerate(numbered)
    ]
    kept = keep_all(parts, partial(_tell_rows, table, tell))
    q, dtype = model.latent_.shape[1], model.latent_.dtype
    model.embedding_ = array_of_parts(kept, table.lengths, q, dtype)
    model._sample_places = _places_of(seen.sample.first, kept, table, q).astype(dtype)


def _place(
    model: ChunkedModel, chunk: Any, number: int, first: int, dtype: Any, digest: str
) -> FloatArray:
    if len(chunk) == 0:
        return np.empty((0, model.latent_.shape[1]), dtype=model.latent_.dtype)
    Y = model._checked(chunk, number, first, dtype)
    if _digest(row_keys(Y)) != digest:
        raise ValueError(
            f"Rows {first} to {first + len(Y) - 1} of the table of dask changed while it was "
            "fitted to: a part must be the same each time it is computed. Give random numbers a "
            "seed, or write the table to files first."
        )
    with in_a_task(), single_threaded_blas():
        return model._place(Y)


def _places_of(rows: Any, kept: list[Any], table: DaskTable, q: int) -> FloatArray:
    """Return the places (m, q) of rows with the given numbers."""
    import dask

    starts = np.array(table.starts)
    # Parts without rows begin where the next one does: the last of them has the row.
    part = np.searchsorted(starts, rows, side="right") - 1
    take, found = dask.delayed(_take), np.empty((len(rows), q))
    wanted = [np.flatnonzero(part == number) for number in np.unique(part)]
    numbers = [int(part[some[0]]) for some in wanted]
    taken = compute_all(
        [
            take(kept[number], rows[some] - starts[number])
            for number, some in zip(numbers, wanted, strict=True)
        ]
    )
    for some, places in zip(wanted, taken, strict=True):
        found[some] = places
    return found


def _take(places: FloatArray, rows: Any) -> FloatArray:
    return places[rows]


def rows_through(model: Any, table: DaskTable, name: str) -> Any:
    """Return a table of dask with rows as a method of the model makes them, of the same width."""
    import dask

    task, carry = model_task(model), dask.delayed(_carry)
    numbered = enumerate(zip(table.parts, table.starts, strict=True))
    parts = [
        carry(task, part, number, first, table.dtype, name) for number, (part, first) in numbered
    ]
    return array_of_parts(parts, table.lengths, table.width, table.dtype)


def _carry(model: Any, chunk: Any, number: int, first: int, dtype: Any, name: str) -> FloatArray:
    if len(chunk) == 0:
        return np.empty((0, np.shape(chunk)[1]), dtype=dtype)
    Y: FloatArray = getattr(model, name)(model._checked(chunk, number, first, dtype))
    return Y
