"""What a fitted model knows about its rows and features: names, labels, values, errors.

A model keeps one copy of equal rows (``data_``), and ``member_`` says which copy a row passed to
``fit`` belongs to. Rows of weight 0, trimmed rows and, with landmarks, all rows belong to none:
their values are not in the model, and what needs them is NaN here or asks for them.

What has no name is called by its number in pictures, counting from 1 as the command line and
tables do: "row 1", "x1". Numbers passed in Python count from 0.
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
# The error of pictures is in the units of the data; scores and tables have its square.
DISTANCE = "distance to reconstruction"


def notes_of(model: TwoWayModel) -> RowNotes:
    """Return what was noted about the rows of a model by ``annotate``; empty if nothing was."""
    notes: RowNotes = getattr(model, "notes_", RowNotes())
    return notes.for_rows(len(model.embedding_))


def row_name(model: TwoWayModel, row: int) -> str:
    """Return the name of a row, counted from 0, or its number from 1 where it has none."""
    names = notes_of(model).names
    return nameless_row(row) if names is None or not names[row] else str(names[row])


def nameless_row(row: int) -> str:
    """Return what a row without a name is called, given its number from 0."""
    return f"row {row + 1}"


def row_number(model: TwoWayModel, name: str) -> int:
    """Return which row has a name."""
    names = notes_of(model).names
    known = [] if names is None else [str(known) for known in names]
    if name not in known:
        there = _listed(known) if known else "have no names: pass a number, counting from 0"
        raise ValueError(f"No row is called {name!r}. The rows {there}.")
    return known.index(name)


def image_shape(model: TwoWayModel, given: tuple[int, ...] | None) -> tuple[int, ...] | None:
    """Return the shape of an item as an image, as given or as the model knows it."""
    if given is None:
        return notes_of(model).image_shape
    return RowNotes().with_image_shape(given, model.n_features_in_).image_shape


def feature_names(model: TwoWayModel) -> list[str]:
    """Return the names of all features; x1, x2, ... where they have none."""
    names = getattr(model, "feature_names_in_", None)
    if names is None:
        return [f"x{number + 1}" for number in range(model.n_features_in_)]
    return [str(name) for name in names]


def feature_name(model: TwoWayModel, feature: int) -> str:
    """Return the name of a feature, counted from 0."""
    return feature_names(model)[feature]


def feature_number(model: TwoWayModel, feature: str | int) -> int:
    """Return which column a feature is, given its name or its number from 0."""
    if isinstance(feature, Integral):
        if not -model.n_features_in_ <= feature < model.n_features_in_:
            raise ValueError(
                f"Expected a feature between 0 and {model.n_features_in_ - 1}; got {feature}."
            )
        return int(feature) % model.n_features_in_
    names = feature_names(model)
    if feature not in names:
        raise ValueError(f"No feature is called {feature!r}. The features {_listed(names)}.")
    return names.index(str(feature))


def _listed(names: list[str]) -> str:
    """Say which names there are, for an error message."""
    shown = ", ".join(repr(name) for name in names[:SHOWN_NAMES])
    return f"are {shown}{', …' if len(names) > SHOWN_NAMES else ''}"


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
