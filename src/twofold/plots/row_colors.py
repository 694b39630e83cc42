"""What rows are coloured by: a label, a feature, something the model says, or an array.

Text and booleans are categories, and so are integers of few values, which are more often the
numbers of classes than amounts. Other numbers get a colour bar. Rows without a value (NaN, None,
empty text) are drawn in grey, below the others.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from numbers import Integral
from typing import Any

import numpy as np
import numpy.typing as npt

from twofold.array_types import FloatArray, IntArray
from twofold.contract import TwoWayModel
from twofold.plots.row_facts import (
    DISTANCE,
    feature_name,
    feature_names,
    feature_number,
    has_rows,
    notes_of,
    row_errors,
    row_values,
)
from twofold.row_notes import text_of

MOST_INTEGER_CATEGORIES = 20
# Sixty pairs of colour and marker exist, but nobody tells that many apart.
MOST_CATEGORIES = 36
OTHERS = "others"


@dataclass(frozen=True)
class Categories:
    """Rows in categories.

    Attributes
    ----------
    names : list of str
        The categories in the order of the legend.
    codes : array of shape (n,)
        Which category each row is in; -1 for none.
    title : str or None
        What the categories are.
    """

    names: list[str]
    codes: IntArray
    title: str | None = None


@dataclass(frozen=True)
class Amounts:
    """A number for each row, NaN for none, and what the colour bar says."""

    values: FloatArray
    title: str | None = None


RowColors = Categories | Amounts


def row_colors(model: TwoWayModel, color: Any) -> RowColors | None:
    """Return what rows are coloured by, or None for one colour.

    Parameters
    ----------
    model : fitted model
    color : None, str, int or array-like of shape (n,)
        See :func:`twofold.plots.latent_map`.

    Returns
    -------
    Categories, Amounts or None
    """
    labels = notes_of(model).labels
    if color is None:
        return _by_values(*_first(labels)) if labels else None
    if isinstance(color, str):
        return _by_name(model, color)
    if isinstance(color, Integral) and not isinstance(color, bool):
        return _by_feature(model, feature_number(model, int(color)))
    values, n = np.asarray(color), len(model.embedding_)
    if values.shape != (n,):
        raise ValueError(
            f"`color` must be a name, a feature or one value for each of the {n} rows; got an "
            f"array of shape {values.shape}."
        )
    return _by_values(getattr(color, "name", None), values)


def _first(labels: dict[str, npt.NDArray[Any]]) -> tuple[str, npt.NDArray[Any]]:
    return next(iter(labels.items()))


def _by_name(model: TwoWayModel, name: str) -> RowColors:
    """Look for a name among labels, then features, then what the model itself says."""
    labels = notes_of(model).labels
    if name in labels:
        return _by_values(name, labels[name])
    features = feature_names(model)
    if name in features:
        return _by_feature(model, features.index(name))
    if name in FROM_MODEL:
        return FROM_MODEL[name](model)
    known = [*labels, *features[:8], *FROM_MODEL]
    raise ValueError(
        f"`color` must be a label, a feature or one of {', '.join(FROM_MODEL)}; got {name!r}. "
        f"There are: {', '.join(known)}{', …' if len(features) > 8 else ''}."
    )


def _by_feature(model: TwoWayModel, feature: int) -> Amounts:
    name = feature_name(model, feature)
    if has_rows(model):
        return Amounts(row_values(model, feature), name)
    # Landmarks stand for the rows: what the manifold says of them is all there is.
    fitted = model.inverse_transform(model.embedding_)[:, feature]
    return Amounts(fitted.astype(np.float64), f"{name}, reconstructed")


def _by_density(model: TwoWayModel) -> Amounts:
    return Amounts(model.density(model.embedding_).astype(np.float64), "latent density")


def _by_magnification(model: TwoWayModel) -> Amounts:
    with np.errstate(divide="ignore"):
        found = np.log10(model.magnification(model.embedding_).astype(np.float64))
    return Amounts(np.where(np.isfinite(found), found, np.nan), "log10 magnification")


def _by_error(model: TwoWayModel) -> Amounts:
    return Amounts(row_errors(model), DISTANCE)


FROM_MODEL: dict[str, Callable[[TwoWayModel], Amounts]] = {
    "density": _by_density,
    "magnification": _by_magnification,
    "error": _by_error,
}


def _by_values(title: str | None, values: npt.NDArray[Any]) -> RowColors:
    """Return values as categories or amounts, whichever they are."""
    # "label" is what a column is called that came without a name.
    title = None if title == "label" else title
    kind = values.dtype.kind
    if kind == "f":
        return Amounts(np.where(np.isfinite(values), values, np.nan).astype(np.float64), title)
    if kind in "iu":
        distinct = np.unique(values)
        if len(distinct) > MOST_INTEGER_CATEGORIES:
            return Amounts(values.astype(np.float64), title)
        codes = np.searchsorted(distinct, values)
        return Categories([str(value) for value in distinct], codes, title)
    return _categories([text_of(value) for value in values.tolist()], title)


def _categories(texts: list[str], title: str | None) -> Categories:
    """Return texts as categories; the rarest share one if there are too many."""
    present = [text for text in texts if text]
    names, counts = np.unique(np.asarray(present, dtype=str), return_counts=True)
    kept = [str(name) for name in names]
    if len(kept) > MOST_CATEGORIES:
        commonest = np.argsort(-counts, kind="stable")[: MOST_CATEGORIES - 1]
        kept = [*(str(name) for name in names[np.sort(commonest)]), OTHERS]
    place = {name: number for number, name in enumerate(kept)}
    last = place.get(OTHERS, -1) if len(names) > MOST_CATEGORIES else -1
    codes = np.array([place.get(text, last) if text else -1 for text in texts], dtype=np.intp)
    return Categories(kept, codes, title)
