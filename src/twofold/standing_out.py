"""What is special about a place on the map, or about some rows.

With many features that have no order (genes, words, answers) a curve of all of them says nothing.
What stands out is the largest standardised difference: of what the model generates at a place from
the mean of all rows, or from what it generates at another place; of the mean of some rows from that
of all others. The unit of feature j is its standard deviation σ_j over the rows:

    z_j = (here_j - there_j) / σ_j
"""

from typing import Any

import numpy as np
import pandas as pd
from sklearn.utils.validation import check_is_fitted

from twofold.array_types import FloatArray
from twofold.contract import TwoWayModel

# Spreads below this share of the values themselves are those of equal values.
ROUNDING = 1e-12


def what_stands_out(model: TwoWayModel, where: Any, against: Any = None) -> pd.DataFrame:
    """Return features by how far they are from usual at a place or in some rows.

    Parameters
    ----------
    model : fitted model
        Of a :class:`twofold.Mixed` model, levels are features of their own: "colour = red". Seasons
        and times of day, which are places on a circle, are left out.
    where : array-like
        A latent place (n_components,), numbers of rows as integers, or a truth value for each row.
    against : array-like, default=None
        What it is compared with, a place or rows; None means all rows, or all others.

    Returns
    -------
    found : DataFrame
        Largest difference first, features as the index: ``difference`` in standard deviations of
        the feature, ``here``, ``there``, and ``spread``, the deviation of the rows themselves:
        around the place, or among the chosen ones; NaN where the model knows none.

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
    check_is_fitted(model)
    numbers = model.as_numbers()
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
    scale = np.where(unit > 0, unit, 1)
    difference = np.where(unit > 0, (here - there) / scale, 0)
    size = np.nan_to_num(np.maximum(np.abs(here), np.abs(there)))
    spread = np.where(spread <= ROUNDING * size, 0.0, spread)
    names = getattr(numbers, "feature_names_in_", None)
    if names is None:
        names = [f"x{number + 1}" for number in range(len(here))]
    found = pd.DataFrame(
        {"difference": difference, "here": here, "there": there, "spread": spread},
        index=pd.Index([str(name) for name in names], name="feature"),
    )
    order = np.argsort(-np.abs(np.nan_to_num(difference)), kind="stable")
    dates = [column for column in model._mixed_columns() if column.kind == "date"]
    circles = {name for column in dates for name in column.features[1:]}
    return found.iloc[[row for row in order if found.index[row] not in circles]]


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
        f"Expected a latent place of {q} numbers with decimals, whole numbers of rows, or a truth "
        f"value for each row; got {where!r}."
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
