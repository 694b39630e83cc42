"""Data frames of dask with columns of any kind: answered part by part, fitted where rows lie.

A fit by landmarks looks at a sample of the rows, which decides about the columns: their kinds,
levels and scales. Their numbers are drawn, not their values: of a table with few different rows a
sample has copies of all of them. Rows then become features where they lie, and the model inside is
fitted to those as to any table of dask. Levels that no row of the sample has count as missing. A
table that is no longer than the sample gives the model of a table in memory.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import TYPE_CHECKING, Any, TypeVar, cast

import numpy as np
import pandas as pd
from sklearn.utils.validation import check_is_fitted

from twofold.array_types import FloatArray
from twofold.checks.rows import is_lazy
from twofold.contract.distinct_rows import bound_of_lowest
from twofold.contract.lazy_answers import check_columns, in_a_task, model_task
from twofold.tables.dask_tables import DaskTable, array_of_parts, compute_all, weights_in_parts

if TYPE_CHECKING:
    from twofold.mixed.estimator import Mixed

Method = TypeVar("Method", bound=Callable[..., Any])

IN_MEMORY = ("return_std", "return_probabilities", "n_draws")


def answers_frames(method: Method) -> Method:
    """Let a method of Mixed that returns a table answer tables of dask by data frames of dask."""

    @wraps(method)
    def answering(self: Mixed, X: Any, *others: Any, **named: Any) -> Any:
        if not is_lazy(X):
            return method(self, X, *others, **named)
        return _answer(self, method.__name__, X, named)

    return cast(Method, answering)


def _answer(model: Mixed, name: str, X: Any, named: dict[str, Any]) -> Any:
    check_is_fitted(model)
    asked = [option for option in IN_MEMORY if named.get(option)]
    if asked or name == "intervals":
        option = f", {asked[0]}=..." if asked else ""
        raise ValueError(
            f"`{(*asked, name)[0]}` of a mixed table is for tables in memory; of a data frame of "
            f"dask take a part at a time, e.g. `model.{name}(X.partitions[0].compute(){option})`."
        )
    check_columns(model, X, "q" if name == "inverse_transform" else "D")
    task = model_task(model, with_noise=name == "complete")
    if name == "inverse_transform":
        import dask.dataframe as dd

        places = X if hasattr(X, "columns") else dd.from_dask_array(X)
        meta = model._table.decode(model.center_[None])[:0].set_axis(places._meta.index)
        return places.map_partitions(_ask, task, name, named, meta, meta=meta)
    meta = _reconstructed_like(model, X._meta) if name == "reconstruct" else X._meta
    return X.map_partitions(_ask, task, name, named, meta, meta=meta)


def _reconstructed_like(model: Mixed, empty: pd.DataFrame) -> pd.DataFrame:
    """Return an empty table with the columns of another, in the types of reconstructions."""
    made = model._table.decode(model.center_[None])[:0].set_axis(empty.index)
    columns = {name: made[name] if name in made else empty[name] for name in empty.columns}
    return pd.DataFrame(columns, index=empty.index)


def _ask(
    part: pd.DataFrame, model: Mixed, name: str, named: dict[str, Any], empty: pd.DataFrame
) -> pd.DataFrame:
    if len(part) == 0:
        return empty
    with in_a_task():
        if name == "inverse_transform":
            return cast(pd.DataFrame, model.inverse_transform(part.to_numpy())).set_axis(part.index)
        return cast(pd.DataFrame, getattr(model, name)(part, **named))


def sample_of(table: DaskTable, sample_weight: Any, most: int) -> tuple[pd.DataFrame, FloatArray]:
    """Return a sample of the rows of a data frame of dask, in their order, and their weights."""
    import dask

    if table.columns is None:
        raise TypeError("Mixed takes data frames of dask; arrays of numbers go to twofold.Scaled.")
    weights = weights_in_parts(1.0 if sample_weight is None else sample_weight, table.lengths)
    bound, low = bound_of_lowest(most, sum(table.lengths)), dask.delayed(_lowest)
    pieces = zip(table.parts, weights, table.starts, strict=True)
    found = compute_all([low(part, share, first, bound) for part, share, first in pieces])
    rows = pd.concat([part[0] for part in found])
    own, keys = (np.concatenate([part[k] for part in found]) for k in (1, 2))
    kept = np.sort(np.argsort(keys, kind="stable")[:most])
    return rows.iloc[kept], own[kept]


def _lowest(
    part: pd.DataFrame, weights: Any, first: int, bound: int
) -> tuple[pd.DataFrame, Any, Any]:
    """Return the rows whose numbers have hashes up to a bound, their weights, and the hashes."""
    keys = pd.util.hash_array(np.arange(first, first + len(part)))
    own = np.broadcast_to(weights, len(part)).astype(np.float64)
    low = (keys <= np.uint64(bound)) & (own > 0)
    return part[low], own[low], keys[low]


def scaled_features_of(model: Mixed, table: DaskTable) -> Any:
    """Return the features of all rows as the model inside sees them, an array of dask."""
    import dask

    task, carry = model_task(model), dask.delayed(_features)
    parts = [carry(task, part) for part in table.parts]
    return array_of_parts(parts, table.lengths, len(model.center_), np.float64)


def _features(model: Mixed, part: pd.DataFrame) -> FloatArray:
    if len(part) == 0:
        return np.empty((0, len(model.center_)))
    return model._scale(model._table.encode(part))
