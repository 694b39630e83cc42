"""Taking new rows into a fitted model: what ``partial_fit`` does.

Equal rows add to the weight of the row they equal; the others are embedded one by one by the search
that made the model. On a line or a lattice rows make room for them, and rows of weight 0, which
have a latent point but are no part of the model, go along with their nearest latent neighbour.
"""

from __future__ import annotations

from contextlib import ExitStack
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from twofold.array_types import FloatArray, IntArray
from twofold.checks.rows import check_missing, checked_weights
from twofold.contract.distinct_rows import merge_duplicates
from twofold.unn.embedding import is_constructive, make_embedder
from twofold.unn.searches import Constructive, get_search

if TYPE_CHECKING:
    from twofold.unn.estimator import UNN


def is_growing(model: UNN) -> bool:
    """Say whether a model of these parameters takes new rows in, by an error if it does not."""
    try:
        search = get_search(model.search, int(model.n_components), 1)
    except (TypeError, ValueError):
        return True  # the call itself says what is wrong with it
    if not is_constructive(search):
        raise AttributeError(
            f"A model with search={search!r} has no partial_fit: it moves all latent points "
            "together. Fit it again with the new rows."
        )
    return True


def grow(model: UNN, Y: FloatArray, sample_weight: Any) -> None:
    """Take rows Y (m, D) into a fitted model."""
    weights = checked_weights(sample_weight, Y)
    check_missing(Y, columns=False)
    known = model._index.find(Y)
    fresh = (known < 0) & (weights > 0)
    old, before = model.latent_, len(model.data_)
    model.weights_ = model.weights_.copy()
    np.add.at(model.weights_, known[known >= 0], weights[known >= 0])
    member = known.copy()
    if fresh.any():
        added = merge_duplicates(Y[fresh], weights[fresh])
        member[fresh] = before + added.member
        arrival = np.flatnonzero(fresh)[added.first]
        _insert(model, added.Y, added.weights, arrival)
    placed = model.embedding_.copy()
    outside = model.member_ < 0
    placed[outside] = _carried(placed[outside], old, model.latent_[:before])
    model.member_ = np.concatenate([model.member_, member])
    model.objective_ = model._surface_of(model.latent_).mean_squared_error()
    model.history_ = np.append(model.history_, model.objective_)
    model._wake()
    model._bound_domain()
    model.embedding_ = np.concatenate([placed, model._place(Y)])
    there = model.member_ >= 0
    model.embedding_[there] = model.latent_[model.member_[there]]
    if hasattr(model, "notes_"):
        model.notes_ = model.notes_.for_rows(len(model.embedding_))


def _insert(model: UNN, Y: FloatArray, weights: FloatArray, arrival: IntArray) -> None:
    """Embed distinct new rows and set the arrays of the model."""
    rng, n = model._generator(), len(model.data_)
    order = rng.permutation(len(Y)) if model.shuffle else np.argsort(arrival, kind="stable")
    old = getattr(model, "filled_", model.data_)
    new: FloatArray = Y.astype(np.float64)
    gaps = np.isnan(new)
    if gaps.any() and model.missing == "repair_and_embed":
        from twofold.unn.filling import repair

        table = np.concatenate([old.astype(np.float64), new])
        masses = np.concatenate([model.weights_, weights])
        new = repair(table, int(model.n_neighbors), masses)[n:]
    is_repairing = bool(gaps.any()) and model.missing == "embed_and_repair"
    if is_repairing:
        order = order[np.argsort(gaps[order].sum(axis=1), kind="stable")]
    with ExitStack() as stack:
        tell = model._tell(stack)
        task = model._task(model.data_, model.weights_, rng, tell, n + len(Y))
        search = cast(Constructive, model.search_)
        embedder = make_embedder(task, search, model.data_kernel is not None, n + len(Y))
        embedder.load(old.astype(np.float64), model.latent_.astype(np.float64), model.weights_)
        if is_repairing:
            for place, j in enumerate(order):
                embedder.insert(new[j : j + 1], weights[j : j + 1])
                new[j, gaps[j]] = embedder.fill(n + place)[gaps[j]]
        else:
            embedder.insert(
                new[order],
                weights[order],
                lambda done: task.tell("embedding rows", done - n, len(Y), np.nan),
            )
    if hasattr(model, "filled_") or (gaps.any() and model.missing != "distances"):
        model.filled_ = np.concatenate([old, new.astype(Y.dtype)])
    X = embedder.latent.copy()
    X[n + order] = embedder.latent[n:]
    model.latent_ = X.astype(Y.dtype)
    model.data_ = np.concatenate([model.data_, Y])
    model.weights_ = np.concatenate([model.weights_, weights])
    model.n_iter_ += len(Y)


def _carried(X: FloatArray, before: FloatArray, after: FloatArray) -> FloatArray:
    """Return places (m, q) that go along with the nearest of the latent points."""
    moved = X.copy()
    for j, x in enumerate(X):
        nearest = int(((before - x) ** 2).sum(axis=1).argmin())
        moved[j] += after[nearest] - before[nearest]
    return moved
