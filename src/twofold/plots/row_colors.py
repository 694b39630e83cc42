"""What a fitted model knows about its rows and features, and what rows are coloured by.

A model keeps one copy of equal rows (``data_``), and ``member_`` says which copy a row passed to
``fit`` belongs to. Rows of weight 0, trimmed rows and, with landmarks, all rows belong to none:
their values are not in the model, and what needs them is NaN here or asks for them.

What has no name is called by its number in pictures, counting from 1 as tables do: "row 1", "x1".
Numbers passed in Python count from 0.

Rows are coloured by a label, a feature, something the model says, or an array. Text and booleans
are categories, and so are integers of few values, which are more often the numbers of classes than
amounts. Other numbers get a colour bar, and so do dates and durations, as texts too. Rows without a
value (NaN, None, empty text) are drawn in grey, below the others.
"""

from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from numbers import Integral
from typing import Any

import numpy as np
import numpy.typing as npt

from twofold.array_types import FloatArray, IntArray
from twofold.contract import TwoWayModel
from twofold.contract.label_values import as_days, as_seconds, reading_order
from twofold.contract.row_notes import SHOWN_NAMES, RowNotes, order_of, text_of
from twofold.plots.ticks import Ticks, show_dates, show_durations, ticks_of

# The error of pictures is in the units of the data; scores and tables have its square.
DISTANCE = "distance to reconstruction"
MOST_INTEGER_CATEGORIES = 20
# Sixty pairs of colour and marker exist, but nobody tells that many apart.
MOST_CATEGORIES = 36
OTHERS = "others"


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


def name_in_table(X: Any, row: int) -> str:
    """Return the name a data frame has for a row, or its number from 1."""
    index = getattr(X, "index", None)
    if index is None or callable(index):
        return nameless_row(row)
    # A frame made without names numbers its rows from 0; those of a part of it are names by now.
    is_nameless = all(index[end] == end % len(index) for end in (0, row, -1))
    return nameless_row(row) if is_nameless else str(index[row])


def row_number(model: TwoWayModel, name: str) -> int:
    """Return which row has a name."""
    return notes_of(model).row_called(name)


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


def feature_titles(model: TwoWayModel) -> list[str]:
    """Return what the features of ``model.as_numbers()`` are called in pictures.

    Of a mixed table they are written in its units, so that a logarithm has the column's name.
    """
    columns = model._mixed_columns()
    if not columns:
        return feature_names(model)
    return [str(title) for column in columns for title in column.titles]


def feature_ticks(model: TwoWayModel) -> list[Ticks | None]:
    """Return how the features of ``model.as_numbers()`` are written, None for plain numbers."""
    found: list[Ticks | None] = []
    for column in model._mixed_columns():
        first = [ticks_of(column)] if column.features else []
        found += [*first, *[None] * (len(column.features) - 1)]
    return found or [None] * model.n_features_in_


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


def row_errors(model: TwoWayModel) -> FloatArray:
    """Return the distance of each row passed to ``fit`` to its reconstruction (n,)."""
    if not has_rows(model):
        raise ValueError(
            "The errors of the training rows need these rows, and a model with landmarks does not "
            "keep them. Pass the data: errors(model, X), or latent_map(model, "
            "color=np.sqrt(-model.score_samples(X)))."
        )
    return _of_rows(model, distances(model, named_rows(model, model.data_)))


def named_rows(model: TwoWayModel, Y: FloatArray) -> Any:
    """Return rows with the names of the model's columns: without them it warns, if it has any."""
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


@dataclass(frozen=True)
class Categories:
    """Rows in categories, and what these are."""

    names: list[str]  # in the order of the legend
    codes: IntArray  # which category each row is in; -1 for none
    title: str | None = None


@dataclass(frozen=True)
class Amounts:
    """A number for each row, NaN for none, and what the colour bar says."""

    values: FloatArray
    title: str | None = None
    ticks: Ticks | None = None  # what the colour bar has instead of plain numbers


RowColors = Categories | Amounts


def row_colors(model: TwoWayModel, color: Any) -> RowColors | None:
    """Return what rows are coloured by, or None for one; see :func:`twofold.plots.latent_map`."""
    numbers = model.as_numbers()
    labels = notes_of(numbers).labels
    if color is None:
        return _by_name(model, next(iter(labels))) if labels else None
    if isinstance(color, str):
        return _by_name(model, color)
    if isinstance(color, Integral) and not isinstance(color, bool):
        return _by_feature(model, feature_number(numbers, int(color)))
    values, n = np.asarray(color), len(model.embedding_)
    if values.shape != (n,):
        raise ValueError(
            f"`color` must be a name, a feature or one value for each of the {n} rows; got an "
            f"array of shape {values.shape}."
        )
    return _by_values(getattr(color, "name", None), values, order_of(color))


def _by_name(model: TwoWayModel, name: str) -> RowColors:
    """Look for a name among labels, then features, then what the model itself says."""
    numbers = model.as_numbers()
    notes = notes_of(numbers)
    labels = notes.labels
    if name in labels:
        return _by_values(name, labels[name], notes.orders.get(name))
    features = feature_titles(model)
    for known in (features, feature_names(numbers)):
        if name in known:
            return _by_feature(model, known.index(name))
    if name in FROM_MODEL:
        return FROM_MODEL[name](numbers)
    for column, part in mixed_parts(model):
        if column.name == name and part.stop > part.start:
            return _by_levels(numbers, column, part)
    known = [*labels, *features[:8], *FROM_MODEL]
    raise ValueError(
        f"`color` must be a label, a feature or one of {', '.join(FROM_MODEL)}; got {name!r}. "
        f"There are: {', '.join(known)}{', …' if len(features) > 8 else ''}."
    )


def mixed_parts(model: TwoWayModel) -> list[tuple[Any, slice]]:
    """Return the columns of a mixed table, each with which of the features are its own."""
    ends = np.cumsum([0, *(len(column.features) for column in model._mixed_columns())])
    parts = [slice(int(start), int(stop)) for start, stop in pairwise(ends)]
    return list(zip(model._mixed_columns(), parts, strict=True))


def _by_levels(numbers: TwoWayModel, column: Any, part: slice) -> Categories:
    """Return the likeliest levels of a category, which is all that landmarks tell of the rows."""
    fitted = numbers.inverse_transform(numbers.embedding_)[:, part]
    known = column.shown_levels()
    texts = [known[level] for level in column.probabilities(fitted).argmax(axis=1)]
    order = known if column.kind == "ordered" else None
    return _categories(texts, f"{column.name}, reconstructed", order)


def _by_feature(model: TwoWayModel, feature: int) -> Amounts:
    name, ticks = feature_titles(model)[feature], feature_ticks(model)[feature]
    numbers = model.as_numbers()
    if has_rows(numbers):
        return Amounts(_of_rows(numbers, numbers.data_[:, feature]), name, ticks)
    # Landmarks stand for the rows: what the manifold says of them is all there is.
    fitted = numbers.inverse_transform(numbers.embedding_)[:, feature]
    return Amounts(fitted.astype(np.float64), f"{name}, reconstructed", ticks)


def log_magnification(model: TwoWayModel, X: FloatArray) -> FloatArray:
    """Return the decimal logarithm of the magnification at places (m, q)."""
    with np.errstate(divide="ignore"):
        return np.log10(model.magnification(X).astype(np.float64))


def _by_magnification(model: TwoWayModel) -> Amounts:
    found = log_magnification(model, model.embedding_)
    return Amounts(np.where(np.isfinite(found), found, np.nan), "log10 magnification")


FROM_MODEL: dict[str, Callable[[TwoWayModel], Amounts]] = {
    "density": lambda model: Amounts(
        model.density(model.embedding_).astype(np.float64), "latent density"
    ),
    "magnification": _by_magnification,
    "error": lambda model: Amounts(row_errors(model), DISTANCE),
}


def _by_values(
    title: str | None, values: npt.NDArray[Any], order: list[str] | None = None
) -> RowColors:
    """Return values as categories, which may have an order, or amounts, whichever they are."""
    # "label" is what a column is called that came without a name.
    title = None if title == "label" else title
    kind = "U" if order else values.dtype.kind
    if kind == "M":
        since = values.astype("datetime64[us]").astype(np.float64) / 86_400e6
        return Amounts(np.where(np.isnat(values), np.nan, since), title, show_dates)
    if kind == "m":
        seconds = values.astype("timedelta64[us]").astype(np.float64) / 1e6
        return Amounts(np.where(np.isnat(values), np.nan, seconds), title, show_durations)
    if kind == "f":
        return Amounts(np.where(np.isfinite(values), values, np.nan).astype(np.float64), title)
    if kind in "iu":
        distinct = np.unique(values)
        if len(distinct) > MOST_INTEGER_CATEGORIES:
            return Amounts(values.astype(np.float64), title)
        codes = np.searchsorted(distinct, values)
        return Categories([str(value) for value in distinct], codes, title)
    texts = [text_of(value) for value in values.tolist()]
    if not order:
        column = np.array(texts, dtype=str)
        for read, ticks in ((as_days, show_dates), (as_seconds, show_durations)):
            amounts = read(column)
            if amounts is not None:
                return Amounts(amounts, title, ticks)
    return _categories(texts, title, order)


def _categories(texts: list[str], title: str | None, known: list[str] | None = None) -> Categories:
    """Return texts as categories; the rarest share one if there are too many."""
    present = [text for text in texts if text]
    names, counts = np.unique(np.asarray(present, dtype=str), return_counts=True)
    order = reading_order([str(name) for name in names], known)
    names, counts = names[order], counts[order]
    kept = [str(name) for name in names]
    if len(kept) > MOST_CATEGORIES:
        commonest = np.argsort(-counts, kind="stable")[: MOST_CATEGORIES - 1]
        kept = [*(str(name) for name in names[np.sort(commonest)]), OTHERS]
    place = {name: number for number, name in enumerate(kept)}
    last = place.get(OTHERS, -1) if len(names) > MOST_CATEGORIES else -1
    codes = np.array([place.get(text, last) if text else -1 for text in texts], dtype=np.intp)
    return Categories(kept, codes, title)
