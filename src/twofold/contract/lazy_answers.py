"""Tables of dask in, tables of dask out: each part is answered where it lies, when it is asked for.

The model is a task of its own in the graph: it travels to a worker once, whatever the number of
parts, and is opened there once; a worker that takes the place of a lost one gets it again. A task
computes on the one thread that it runs on, as other tasks run on the others. Rows are answered as
they would be alone, so that nothing depends on how a table is cut.

An array is answered by an array, a data frame by a data frame with the same index: with its own
columns where rows come back, with those of ``get_feature_names_out`` for latent points.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import wraps
from typing import Any, TypeVar, cast

import numpy as np
from sklearn.utils.validation import check_is_fitted

from twofold.checks.rows import RowError, is_lazy
from twofold.engine.threads import on_this_thread
from twofold.process_settings import keep_freed_memory

Method = TypeVar("Method", bound=Callable[..., Any])

# What needs the noise model, which is then made once and not by every worker.
BY_NOISE = ("complete", "intervals", "log_likelihood", "p_values")
# What is answered in double precision by models of any.
IN_DOUBLE = ("log_likelihood", "p_values")


def answers_lazily(given: str, found: str, *, is_pair: bool = False) -> Callable[[Method], Method]:
    """Let a method of a model answer tables of dask by such tables.

    ``given`` and ``found`` say what the columns of its rows are: "D" stands for features, "q" for
    latent coordinates, "" for one number for each row. With ``is_pair``, or if ``return_std`` is
    asked for, it returns two such tables.
    """

    def decorate(method: Method) -> Method:
        @wraps(method)
        def answering(self: Any, X: Any, *others: Any, **named: Any) -> Any:
            if not is_lazy(X):
                return method(self, X, *others, **named)
            if others:
                named |= dict(zip(("level",), others, strict=True))
            n_parts = 2 if is_pair or named.get("return_std") else 1
            return _answer(self, method.__name__, X, (given, found), named, n_parts)

        return cast(Method, answering)

    return decorate


@contextmanager
def in_a_task() -> Iterator[None]:
    """Compute as one of many tasks of a worker: on this thread, with memory used again."""
    keep_freed_memory()
    with on_this_thread():
        yield


def model_task(model: Any, *, with_noise: bool = False, with_names: bool = True) -> Any:
    """Return a delayed model: one task, whose result goes to each worker once.

    That rows have no names, and those of the fit had, is warned of when a table is looked at. A
    model without names does not repeat it for every part.
    """
    import cloudpickle
    import dask

    sent = without_callbacks(model)
    if not with_names:
        sent.__dict__.pop("feature_names_in_", None)
    content = cloudpickle.dumps(sent)
    key = f"twofold-model-{hashlib.sha256(content).hexdigest()[:16]}-{int(with_noise)}"
    return dask.delayed(_opened)(content, with_noise, dask_key_name=key)


def without_callbacks(model: Any) -> Any:
    """Return the model without what only a fit calls, and what may not travel."""
    from twofold.contract.kept_model import RUN_ONLY

    bare = object.__new__(type(model))
    own = {name: value for name, value in RUN_ONLY.items() if name in vars(model)}
    bare.__dict__ = {**vars(model), **own}
    bare.__dict__.pop("_journal", None)
    return bare


def _opened(content: bytes, with_noise: bool) -> Any:
    import pickle

    with in_a_task():
        model = pickle.loads(content)
        if with_noise and model._has_noise():
            _ = model.noise_
    return model


def _answer(
    model: Any, name: str, X: Any, widths: tuple[str, str], named: Mapping[str, Any], n_parts: int
) -> Any:
    from twofold.tables.dask_tables import in_one_piece_of_columns

    check_is_fitted(model)
    _check_request(model, name, named)
    check_columns(model, X, widths[0])
    X = in_one_piece_of_columns(X)
    asked = named.get("return_std") or named.get("use_residuals")
    with_noise = name in BY_NOISE or bool(asked)
    dtype = np.dtype(np.float64) if name in IN_DOUBLE else model.latent_.dtype
    if hasattr(X, "columns"):
        task, columns = model_task(model, with_noise=with_noise), _names_of(model, X, *widths)
        return _answer_frame(task, name, X, columns, named, n_parts, dtype)
    task = model_task(model, with_noise=with_noise, with_names=False)
    return _answer_array(task, name, X, _width_of(model, widths[1]), named, n_parts, dtype)


def check_columns(model: Any, X: Any, letter: str) -> None:
    """Raise, before anything is computed, if a table has other columns than a model takes."""
    from twofold.tables.dask_tables import check_dimensions, missing_row_like, one_row_like

    check_dimensions(X)
    if letter == "q":
        model._validate_latent(one_row_like(X))
    elif not model._mixed_columns():
        model._validate(one_row_like(X), reset=False)
    elif hasattr(X, "columns"):
        model._validate(missing_row_like(X), reset=False)
    else:
        raise TypeError(
            "A model of a mixed table finds columns by their names, which arrays do not have. Name "
            "them: `dask.dataframe.from_dask_array(X, columns=[...])`."
        )


def _check_request(model: Any, name: str, named: Mapping[str, Any]) -> None:
    """Raise if a request cannot be answered part by part."""
    if named.get("n_draws") is not None:
        raise ValueError(
            "Draws (`n_draws`) are made of tables in memory; of a table of dask, take one part at "
            "a time, e.g. `model.complete(X.partitions[0].compute(), n_draws=5)`."
        )
    output = getattr(model, "_sklearn_output_config", {}).get("transform", "default")
    if name == "transform" and output != "default":
        raise ValueError(
            f"`set_output(transform={output!r})` is for tables in memory. A data frame of dask is "
            "answered by one, an array of dask by an array: call `set_output(transform='default')`."
        )
    if model.__sklearn_tags__().input_tags.pairwise:
        raise ValueError(
            "A model of precomputed kernels or distances takes values with all training rows, "
            "which tables of dask do not carry. Pass them part by part, computed."
        )


def _width_of(model: Any, letter: str) -> int | None:
    return {"D": int(model.n_features_in_), "q": int(model._n_features_out)}.get(letter)


def _answer_array(
    task: Any, name: str, X: Any, width: int | None, named: Any, n_parts: int, dtype: Any
) -> Any:
    import dask.array as da

    # Parts of an answer are stacked, as one array, and taken apart again.
    stacked, tail = (n_parts,) if n_parts > 1 else (), () if width is None else (width,)
    chunks = (*stacked, X.chunks[0], *tail)
    found = da.map_blocks(
        _ask,
        X,
        model=task,
        asked=name,
        named=dict(named),
        dtype=dtype,
        chunks=chunks,
        drop_axis=[1] if width is None else [],
        new_axis=[0] if stacked else [],
        meta=np.empty((0,) * len(chunks), dtype=dtype),
        empty=np.empty((*stacked, 0, *tail), dtype=dtype),
    )
    return tuple(found[part] for part in range(n_parts)) if stacked else found


def _ask(block: Any, model: Any, asked: str, named: Any, empty: Any) -> Any:
    """Answer for the rows of a part; ``empty`` is the answer to none."""
    if len(block) == 0:
        return empty
    try:
        with in_a_task():
            found = getattr(model, asked)(block, **named)
    except RowError as error:
        error.add_note("Rows are counted within their part of the table.")
        raise
    return np.stack(found) if isinstance(found, tuple) else np.asarray(found)


def _names_of(model: Any, X: Any, given: str, found: str) -> list[Any]:
    """Return the columns of an answer to a data frame; none if it is a number a row."""
    if found == "":
        return []
    if found == "q":
        return list(model.get_feature_names_out())
    if given == "D":
        return list(X.columns)
    known = getattr(model, "feature_names_in_", None)
    return [f"x{j}" for j in range(model.n_features_in_)] if known is None else list(known)


def _answer_frame(
    task: Any, name: str, X: Any, columns: list[Any], named: Any, n_parts: int, dtype: Any
) -> Any:
    import pandas as pd

    wide = [(part, column) for part in range(n_parts) for column in columns]
    labels = columns if n_parts == 1 else [f"{part} {column}" for part, column in wide]
    index = X._meta.index[:0]
    if columns:
        empty = np.empty((0, len(labels)), dtype=dtype)
        meta = pd.DataFrame(empty, columns=labels, index=index)
    else:
        meta = pd.Series(np.empty(0, dtype=dtype), name=name, index=index)
    found = X.map_partitions(_ask_frame, task, name, dict(named), meta, meta=meta)
    if n_parts == 1:
        return found
    parts = (labels[: len(columns)], labels[len(columns) :])
    return tuple(
        found[list(part)].rename(columns=dict(zip(part, columns, strict=True))) for part in parts
    )


def _ask_frame(frame: Any, model: Any, name: str, named: Any, empty: Any) -> Any:
    """Answer for the rows of a part of a data frame, several tables side by side."""
    import pandas as pd

    if len(frame) == 0:
        return empty
    if not hasattr(model, "feature_names_in_"):  # which was warned of, too
        frame = frame.set_axis(range(frame.shape[1]), axis=1)
    found = _ask(frame, model, name, named, empty)
    if empty.ndim == 1:
        return pd.Series(found, name=name, index=frame.index)
    values = np.concatenate(found, axis=1) if found.ndim == 3 else found
    return pd.DataFrame(values, columns=empty.columns, index=frame.index)
