"""What a fitted model knows about its rows and features: names, labels, values, errors.

A model keeps one copy of equal rows (``data_``), and ``member_`` says which copy a row passed to
``fit`` belongs to. Rows of weight 0, trimmed rows and, with landmarks, all rows belong to none:
their values are not in the model, and what needs them is NaN here or asks for them.
"""

from __future__ import annotations

from numbers import Integral
from typing import Any

import numpy as np

from twofold.array_types import FloatArray
from twofold.contract import TwoWayModel
from twofold.row_notes import RowNotes

# What is listed when a name is not found.
SHOWN_NAMES = 8


def notes_of(model: TwoWayModel) -> RowNotes:
    """Return what was noted about the rows of a model by ``annotate``; empty if nothing was."""
    notes: RowNotes = getattr(model, "notes_", RowNotes())
    return notes.for_rows(len(model.embedding_))


def row_name(model: TwoWayModel, row: int) -> str:
    """Return the name of a row, or its number where it has none."""
    names = notes_of(model).names
    return f"row {row}" if names is None or not names[row] else str(names[row])


def row_number(model: TwoWayModel, name: str) -> int:
    """Return which row has a name."""
    names = notes_of(model).names
    known = [] if names is None else [str(known) for known in names]
    if name not in known:
        raise ValueError(f"No row is called {name!r}. {known_names(known, 'rows')}")
    return known.index(name)


def image_shape(model: TwoWayModel, given: tuple[int, ...] | None) -> tuple[int, ...] | None:
    """Return the shape of an item as an image, as given or as the model knows it."""
    if given is None:
        return notes_of(model).image_shape
    return RowNotes().with_image_shape(given, model.n_features_in_).image_shape


def feature_name(model: TwoWayModel, feature: int) -> str:
    """Return the name of a feature, or its number."""
    names = getattr(model, "feature_names_in_", None)
    return f"feature {feature}" if names is None else str(names[feature])


def feature_number(model: TwoWayModel, feature: str | int) -> int:
    """Return which column a feature is, given its name or number."""
    if isinstance(feature, Integral):
        if not -model.n_features_in_ <= feature < model.n_features_in_:
            raise ValueError(
                f"Expected a feature between 0 and {model.n_features_in_ - 1}; got {feature}."
            )
        return int(feature) % model.n_features_in_
    names = [str(name) for name in getattr(model, "feature_names_in_", [])]
    if feature not in names:
        raise ValueError(f"No feature is called {feature!r}. {known_names(names, 'features')}")
    return names.index(str(feature))


def known_names(names: list[str], what: str) -> str:
    """Say which names there are, for an error message."""
    if not names:
        return f"The model has no names of {what}: pass a number."
    shown = ", ".join(repr(name) for name in names[:SHOWN_NAMES])
    return f"The {what} are {shown}{', …' if len(names) > SHOWN_NAMES else ''}."


def has_rows(model: TwoWayModel) -> bool:
    """Say whether the model holds the rows it was fitted to, not only landmarks."""
    return bool((model.member_ >= 0).any())


def row_values(model: TwoWayModel, feature: int) -> FloatArray:
    """Return a feature of the rows passed to ``fit`` (n,); NaN where it is not known."""
    return _of_rows(model, model.data_[:, feature])


def row_errors(model: TwoWayModel) -> FloatArray:
    """Return the distance of each row passed to ``fit`` to its reconstruction (n,)."""
    if not has_rows(model):
        raise ValueError(
            "The errors of the training rows need these rows, and a model with landmarks does not "
            "keep them. Pass the data: errors(model, X), or latent_map(model, "
            "color=np.sqrt(-model.score_samples(X)))."
        )
    return _of_rows(model, distances(model, _named(model, model.data_)))


def _named(model: TwoWayModel, Y: FloatArray) -> Any:
    """Return rows as a table with the names the model was fitted with, if there were any."""
    if not hasattr(model, "feature_names_in_"):
        return Y
    import pandas as pd

    return pd.DataFrame(Y, columns=model.feature_names_in_)


def distances(model: TwoWayModel, Y: Any) -> FloatArray:
    """Return the distance (m,) of rows to their reconstructions."""
    return np.sqrt(np.maximum(-model.score_samples(Y), 0))


def _of_rows(model: TwoWayModel, values: FloatArray) -> FloatArray:
    """Return values of distinct rows as those of the rows passed to ``fit``."""
    found = values[model.member_].astype(np.float64)
    found[model.member_ < 0] = np.nan
    return found
