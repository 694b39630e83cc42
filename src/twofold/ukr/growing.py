"""Taking new rows into a fitted model: what ``partial_fit`` does.

New rows begin where they project to, equal rows add to the weight of the row they equal, and then
all latent points settle together.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from twofold.array_types import FloatArray
from twofold.distinct_rows import merge_duplicates
from twofold.sample_weights import checked_weights
from twofold.table_checks import check_missing
from twofold.ukr.fitted_attributes import report
from twofold.ukr.fitting import settle

if TYPE_CHECKING:
    from twofold.ukr.estimator import UKR

# A tenth of a fit is enough to settle rows that arrive where the others already lie.
PARTIAL_SHARE = 10


def is_growing(model: UKR) -> bool:
    """Say whether a model of these parameters takes new rows in, by an error if it does not."""
    for name in ("landmarks", "data_kernel"):
        if getattr(model, name) is not None:
            raise AttributeError(
                f"A model with `{name}` has no partial_fit: what it is made of was chosen from "
                "all rows together. Fit it again with the new ones."
            )
    return True


def check_can_grow(model: UKR) -> None:
    """Raise if what a fitted model was made of has nothing for new rows."""
    if hasattr(model, "widths_"):
        raise ValueError(
            "A model with local bandwidths cannot take new rows in: they belong to the "
            "picture it was made from. Call `upgrade` with a picture of all rows."
        )
    if hasattr(model.loss_, "at") and np.ndim(getattr(model.loss_, "eps", [0])) > 0:
        raise ValueError(
            "A model whose loss has numbers for each row cannot take new rows in: they have "
            "none. Fit it again with all rows."
        )


def grow(model: UKR, Y: FloatArray, sample_weight: Any) -> None:
    """Take rows Y (m, D) into a fitted model."""
    weights = checked_weights(sample_weight, Y)
    check_missing(Y, columns=False)
    places = model._place(Y)
    known = model._index.find(Y)
    fresh = (known < 0) & (weights > 0)
    model.weights_ = model.weights_.copy()
    np.add.at(model.weights_, known[known >= 0], weights[known >= 0])
    member = known.copy()
    if fresh.any():
        added = merge_duplicates(Y[fresh], weights[fresh])
        member[fresh] = len(model.data_) + added.member
        model.data_ = np.concatenate([model.data_, added.Y])
        model.weights_ = np.concatenate([model.weights_, added.weights])
        model.latent_ = np.concatenate([model.latent_, places[fresh][added.first]])
    model.member_ = np.concatenate([model.member_, member])
    model.latent_ = _settle_together(model, model.data_, model.weights_, model.latent_)
    model._wake()
    model._bound_domain()
    placed = np.concatenate([model.embedding_, places])
    model.embedding_ = np.where(
        model.member_[:, None] >= 0, model.latent_[model.member_], placed
    ).astype(Y.dtype)
    if hasattr(model, "notes_"):
        model.notes_ = model.notes_.for_rows(len(placed))


def _settle_together(model: UKR, Y: FloatArray, weights: FloatArray, X: FloatArray) -> FloatArray:
    """Improve latent points (in the user's units) that are already good."""
    problem = model._settings(model.loss_).cross_validated_problem(Y, weights)
    training = model._training(-(-model.max_iter // PARTIAL_SHARE), model._progress_bars())
    scaled = X * model.latent_scale_
    solution, violation = settle(problem, scaled, training)
    if violation is not None:
        model.violation_ = violation
    report(model, solution, problem)
    return ((solution.X + scaled.mean(axis=0)) / model.latent_scale_).astype(Y.dtype)
