"""What is special about a place on the map, or about some rows.

With many features that have no order (genes, words, answers) a curve of all of them says nothing.
What stands out is the largest standardised difference: of what the model generates at a place from
the mean of all rows, or from what it generates at another place; of the mean of some rows from that
of all others. The unit of feature j is its standard deviation σ_j over the rows:

    z_j = (here_j - there_j) / σ_j

Of a mixed table each column is listed once: of a category the level, or of an ordered one the step,
that stands out most, of a date the time that has passed. Differences are those of features, such as
logarithms; values are written as in the table.
"""

from typing import Any

import numpy as np
import pandas as pd
from sklearn.utils.validation import check_is_fitted

from twofold.array_types import FloatArray, IntArray
from twofold.contract import TwoWayModel
from twofold.contract.row_notes import RowNotes

# Spreads below this share of the values themselves are those of equal values.
ROUNDING = 1e-12


def what_stands_out(model: TwoWayModel, where: Any, against: Any = None) -> pd.DataFrame:
    """Return features by how far they are from usual at a place or in some rows.

    Parameters
    ----------
    model : fitted model
        Of a :class:`twofold.Mixed` model, columns are listed, one line each: of a category the
        level that stands out most, "colour = red", and its share; of ordered levels "size > small",
        the share above a level.
    where : array-like or str
        A latent place (n_components,), the name of a row for its place, numbers or names of rows,
        or a truth value for each row.
    against : array-like or str, default=None
        What it is compared with, a place or rows; None means all rows, or all others.

    Returns
    -------
    found : DataFrame
        Largest difference first, features as the index: ``difference`` in standard deviations of
        the feature, ``here``, ``there``, and ``spread``, the deviation of the rows themselves:
        around the place, or among the chosen ones; NaN where the model knows none. Values of a
        mixed table are in its units: amounts, not their logarithms; dates as dates.

    Examples
    --------
    >>> from sklearn.datasets import load_wine
    >>> from twofold import UKR, Scaled
    >>> from twofold.standing_out import what_stands_out
    >>> wine = load_wine(as_frame=True).data
    >>> model = Scaled(UKR(init="pca", max_iter=5)).fit(wine)
    >>> list(what_stands_out(model, range(20)).columns)
    ['difference', 'here', 'there', 'spread']
    """
    found = differences(model, where, against)
    columns = model._mixed_columns()
    values = found[["difference", "here", "there", "spread"]]
    if not columns:
        return values
    owners = [column for column in columns for _ in column.features]
    lines = []
    for number, line in zip(found["number"], values.to_numpy(), strict=True):
        column, here, spread = owners[number], line[1:2], line[3:]
        lines.append((line[0], *column.amounts(line[1:3]), *column.spreads(here, spread)))
    return pd.DataFrame(lines, index=found.index, columns=values.columns)


def differences(model: TwoWayModel, where: Any, against: Any = None) -> pd.DataFrame:
    """Return the lines of :func:`what_stands_out` in the units of features.

    ``number`` is that of the feature, from 0; ``reach`` is the spread in standard deviations of the
    feature, as ``difference`` is.
    """
    check_is_fitted(model)
    numbers = model.as_numbers()
    where, against = _named(model, where), _named(model, against)
    rows = _rows(numbers, where)
    here, spread = _at(numbers, where) if rows is None else _among(numbers, rows)
    mean, unit = _among(numbers, np.ones(len(numbers.embedding_), dtype=bool))
    if against is not None:
        other = _rows(numbers, against)
        there = _at(numbers, against)[0] if other is None else _among(numbers, other)[0]
    elif rows is None or rows.all():
        there = mean
    else:
        there = _among(numbers, ~rows)[0]
    size = np.nan_to_num(np.maximum(np.abs(here), np.abs(there)))
    varies = unit > ROUNDING * size
    scale = np.where(varies, unit, 1)
    difference = np.where(varies, (here - there) / scale, 0)
    spread = np.where(spread <= ROUNDING * size, 0.0, spread)
    titles, listed = _listed(model, difference)
    found = pd.DataFrame(
        {"difference": difference, "here": here, "there": there, "spread": spread},
        index=pd.Index(titles, name="feature"),
    )
    found["number"], found["reach"] = np.arange(len(found)), spread / scale
    order = np.argsort(-np.abs(np.nan_to_num(difference[listed])), kind="stable")
    return found.iloc[listed[order]]


def _listed(model: TwoWayModel, difference: FloatArray) -> tuple[list[str], IntArray]:
    """Return what features (D,) are called, and which of them are listed: one of each column."""
    columns = model._mixed_columns()
    if not columns:
        names = getattr(model, "feature_names_in_", None)
        if names is None:
            names = [f"x{number + 1}" for number in range(len(difference))]
        return [str(name) for name in names], np.arange(len(difference))
    titles = [str(title) for column in columns for title in column.titles]
    listed, start = [], 0
    for column in columns:
        width = len(column.features)
        if width:
            listed.append(start + column.most_unusual(difference[start : start + width]))
        start += width
    return titles, np.array(listed)


def _named(model: TwoWayModel, where: Any) -> Any:
    """Return the place of a row that is named, or the numbers of several; others as they are."""
    notes = getattr(model, "notes_", RowNotes())
    if isinstance(where, str):
        return model.embedding_[notes.row_called(where)].astype(np.float64)
    names = np.asarray(where)
    if names.ndim == 1 and len(names) and all(isinstance(name, str) for name in names.tolist()):
        return np.array([notes.row_called(name) for name in names.tolist()])
    return where


def _rows(model: TwoWayModel, where: Any) -> Any:
    """Return a truth value for each row if rows are meant, None for a place."""
    given = np.asarray(where)
    n, q = model.embedding_.shape
    if given.dtype == bool:
        if given.shape != (n,) or not given.any():
            raise ValueError(
                f"A choice of rows has a truth value for each of the {n} rows, one of them True; "
                f"got an array of shape {given.shape} with {int(given.sum())}."
            )
        return given
    if given.dtype.kind in "iu" and given.ndim == 1 and len(given):
        if given.min() < 0 or given.max() >= n:
            raise ValueError(
                f"Rows have numbers from 0 to {n - 1}; got {given.min()} to {given.max()}."
            )
        chosen = np.zeros(n, dtype=bool)
        chosen[given] = True
        return chosen
    if given.dtype.kind == "f" and given.shape in ((q,), (1, q)):
        return None
    raise ValueError(
        f"Expected a latent place of {q} numbers with decimals, whole numbers or names of rows, or "
        f"a truth value for each row; got {where!r}."
    )


def _at(model: TwoWayModel, place: Any) -> tuple[FloatArray, FloatArray]:
    X = np.asarray(place, dtype=np.float64).reshape(1, -1)
    if model._has_noise():
        image, std = model.inverse_transform(X, return_std=True)
        return image[0], std[0]
    image = model.inverse_transform(X)[0]
    return image, np.full(len(image), np.nan)


def _among(model: TwoWayModel, chosen: Any) -> tuple[FloatArray, FloatArray]:
    """Return mean and standard deviation of the features of chosen rows, over known entries."""
    member = model.member_[chosen]
    if (member < 0).any():
        raise ValueError(
            "A model of landmarks does not keep its rows, so what is usual for them is not "
            "known. Fit without landmarks."
        )
    Y = model.data_[member].astype(np.float64)
    known = ~np.isnan(Y)
    count = np.maximum(known.sum(axis=0), 1)
    mean = np.nansum(Y, axis=0) / count
    deviation = np.sqrt(np.nansum((Y - mean) ** 2, axis=0) / count)
    has_some = known.any(axis=0)
    return np.where(has_some, mean, np.nan), np.where(has_some, deviation, np.nan)
