"""What a caller wants to see, checked and completed from what the model knows."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from sklearn.utils.validation import check_is_fitted

from twofold.array_types import FloatArray
from twofold.classification import ManifoldClassifier
from twofold.contract import TwoWayModel
from twofold.explorer.payload import Wanted
from twofold.explorer.row_facts import row_facts
from twofold.loading import load
from twofold.row_notes import RowNotes
from twofold.scaled import Scaled
from twofold.table_checks import validate_rows

VIEWS = ("auto", "image", "curve", "bars", "table")
# Features that a list or a row of bars can show at once.
FEW_FEATURES = 30


def open_model(model: Any) -> tuple[TwoWayModel, str | None]:
    """Return a fitted model, and the stem of the file if a path was given."""
    name = None
    if isinstance(model, str | os.PathLike):
        name, model = Path(model).stem, load(model)
    if isinstance(model, ManifoldClassifier):
        raise TypeError(
            "The explorer shows one map, and a ManifoldClassifier has one for each class. Pass one "
            "of them, e.g. `classifier.models_[0]`."
        )
    if not isinstance(model, TwoWayModel):
        raise TypeError(
            "The explorer shows a fitted model, e.g. `UKR().fit(Y)`, or the path of a saved one; "
            f"got {type(model).__name__}. (`upgrade(picture, Y)` makes a model of any picture.)"
        )
    check_is_fitted(model)
    return model, name


def make_wanted(
    model: TwoWayModel,
    title: str | None,
    data: Any,
    image_shape: Any,
    view: str,
    labels: Any,
    names: Any,
) -> Wanted:
    """Return what is to be shown; what the caller leaves out comes from the model's notes."""
    n, D = len(model.embedding_), model.n_features_in_
    notes = getattr(model, "notes_", RowNotes()).for_rows(n)
    if names is not None:
        notes = notes.with_names(names, n)
    if labels is not None:
        notes = notes.with_labels(labels, n)
    if image_shape is not None:
        notes = notes.with_image_shape(image_shape, D)
    given = getattr(model, "feature_names_in_", None)
    family, is_scaled = family_of(model)
    facts = row_facts(model)
    return Wanted(
        title=f"{family} of {n:,} rows" if title is None else str(title),
        family=f"{family}, scaled" if is_scaled else family,
        notes=notes,
        view=_view(view, notes, D, given is not None),
        features=_feature_names(given, D, notes.image_shape is not None),
        facts=facts.values,
        n_measured=facts.n_places,
        data=None if data is None else _table(model, data),
        spread=spread_of(model),
    )


def family_of(model: TwoWayModel) -> tuple[str, bool]:
    """Return the name of a model's family, and whether its columns are scaled."""
    is_scaled = isinstance(model, Scaled)
    while isinstance(model, Scaled):
        model = model.model_
    return type(model).__name__, is_scaled


def spread_of(model: TwoWayModel) -> FloatArray | None:
    """Return what a model divides each feature by before it measures distances, or None."""
    spread = None
    while isinstance(model, Scaled):
        spread = model.spread_ if spread is None else spread * model.spread_
        model = model.model_
    return spread


def _feature_names(given: Any, D: int, is_image: bool) -> list[str]:
    if given is not None:
        return [str(name) for name in given]
    return [f"{'pixel' if is_image else 'feature'} {number + 1}" for number in range(D)]


def _view(view: str, notes: RowNotes, D: int, is_named: bool) -> str:
    if view not in VIEWS:
        raise ValueError(f"`view` must be one of {VIEWS}; got {view!r}.")
    if view == "image" and notes.image_shape is None:
        raise ValueError(
            f"view='image' needs `image_shape`: the (height, width) that {D} features fill."
        )
    if view != "auto":
        return view
    if notes.image_shape is not None:
        return "image"
    if D > FEW_FEATURES:
        return "curve"
    return "table" if is_named else "bars"


def _table(model: TwoWayModel, data: Any) -> FloatArray:
    Y = validate_rows(model, data, reset=False)
    n = len(model.embedding_)
    if len(Y) != n:
        raise ValueError(
            f"`data` must be the table the model was fitted to, with {n} rows; got {len(Y)}."
        )
    return Y
