"""What a map leaves open of a row, and which rows are odd, and why."""

from typing import Any

import numpy as np
from matplotlib.axes import Axes

from twofold.array_types import IntArray
from twofold.checks.parameters import check_count
from twofold.contract import TwoWayModel
from twofold.plots import drawing
from twofold.plots.drawing import COLORS
from twofold.plots.names import shortened
from twofold.plots.row_colors import (
    feature_names,
    has_rows,
    name_in_table,
    named_rows,
    row_name,
)

# Letters of a name below an axis.
MOST_LETTERS = 18
# Deviations beyond which colours get no stronger.
STRONGEST = 5.0


def intervals(model: TwoWayModel, row: Any, level: float = 0.9, *, ax: Axes | None = None) -> Axes:
    """Draw the interval in which each entry of a row is expected, given the others.

    Filled dots are observed entries, hollow ones those that were missing and are filled. Values are
    counted from the mean of each feature, in its standard deviations.

    Parameters
    ----------
    model : fitted model that keeps its rows
    row : array-like of shape (n_features,)
        NaN marks missing entries.
    level : float, default=0.9
    ax : matplotlib Axes, default=None

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from twofold import UKR, plots
    >>> iris = load_iris().data
    >>> model = UKR(init="pca", max_iter=5).fit(iris)
    >>> ax = plots.intervals(model, [5.1, float("nan"), 1.4, 0.2])
    """
    Y = np.asarray(row, dtype=np.float64)
    if Y.size != model.n_features_in_:
        raise ValueError(
            f"`row` must be one row of {model.n_features_in_} entries; got an array of shape "
            f"{Y.shape}."
        )
    Y = Y.reshape(1, -1)
    rows = named_rows(model, Y)
    low, high = model.intervals(rows, level)
    filled = model.complete(rows, use_residuals=True)
    center, unit = model.noise_.center, model.noise_.unit
    low, high, values = ((part[0] - center) / unit for part in (low, high, filled))
    names = [shortened(name, MOST_LETTERS) for name in feature_names(model)]
    # Names stand below the axes, which keep their height.
    below = 0.08 * max(map(len, names))
    ax = drawing.open_axes(ax, (1.5 + 0.3 * len(names), 3.0 + below))
    places, gaps = np.arange(len(names)), np.isnan(Y[0])
    label = f"{100 * level:.3g} % interval"
    ax.vlines(places, low, high, color=COLORS[0], linewidth=5, alpha=0.35, label=label)
    ax.plot(places[~gaps], values[~gaps], "o", color=COLORS[0], label="observed")
    if gaps.any():
        ax.plot(places[gaps], values[gaps], "o", color=COLORS[0], mfc="white", label="filled")
    ax.set_xticks(places, names, rotation=90, **drawing.AS_WRITTEN)
    ax.set_ylabel("deviations from the mean")
    ax.legend(frameon=False, fontsize="small", loc="lower left", bbox_to_anchor=(0, 1), ncols=3)
    drawing.light_frame(ax)
    return ax


def odd_rows(model: TwoWayModel, X: Any = None, n: int = 15, *, ax: Axes | None = None) -> Axes:
    """Draw the least likely of some rows, and which features make them so.

    A cell is how many standard deviations an entry is above or below what the other entries of its
    row suggest. Beside a row are its name, or its number from 1, and its p-value. Of a mixed table
    a cell is an entry of a column; that of a category is its level.

    Parameters
    ----------
    model : fitted model that keeps its rows
    X : array-like of shape (n_samples, n_features), default=None
        Rows; None takes those the model was fitted to, which it knows unless it has landmarks.
    n : int, default=15
        How many rows, the least likely ones.
    ax : matplotlib Axes, default=None

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from twofold import UKR, plots
    >>> iris = load_iris().data
    >>> ax = plots.odd_rows(UKR(init="pca", max_iter=5).fit(iris), iris, 5)
    """
    check_count("n", n)
    asked: Any = model
    model = model.as_numbers() if X is None else model
    own = _known_rows(model) if X is None else None
    if own is not None:
        X = named_rows(model, model.data_[model.member_[own]])
    if not hasattr(X, "iloc"):
        X = named_rows(model, np.asarray(X))  # or each question would be answered with a warning
    p = model.p_values(X)
    shown = np.lexsort((model.log_likelihood(X), p))[:n]
    rows: Any = X.iloc[shown] if hasattr(X, "iloc") else np.asarray(X)[shown]
    called = [
        name_in_table(X, int(row)) if own is None else row_name(model, int(own[row]))
        for row in shown
    ]
    if own is not None and asked._mixed_columns():  # rows of features, but pictures of columns
        deviations = asked._explained(rows.to_numpy(asked.latent_.dtype))[2]
    else:
        deviations = model.explain(rows).deviations
    idle = [not column.features for column in asked._mixed_columns()]
    deviations = np.delete(deviations, np.flatnonzero(idle), axis=1)
    known = np.delete(feature_names(asked), np.flatnonzero(idle))
    names = [shortened(str(name), MOST_LETTERS) for name in known]
    ax = drawing.open_axes(ax, (2.5 + 0.3 * len(names), 1.5 + 0.22 * len(shown)))
    image = ax.imshow(deviations, cmap="RdBu_r", vmin=-STRONGEST, vmax=STRONGEST, aspect="auto")
    ax.set_xticks(np.arange(len(names)), names, rotation=90, **drawing.AS_WRITTEN)
    words = [
        f"{shortened(name, MOST_LETTERS)}, p = {p[row]:.2g}"
        for name, row in zip(called, shown, strict=True)
    ]
    ax.set_yticks(np.arange(len(shown)), words, **drawing.AS_WRITTEN)
    ax.figure.colorbar(image, ax=ax, label="deviations from what is expected", extend="both")
    return ax


def _known_rows(model: TwoWayModel) -> IntArray:
    """Return the numbers of the rows passed to ``fit`` whose values the model keeps."""
    if not has_rows(model):
        raise ValueError(
            "A model with landmarks does not keep the rows it was fitted to. Pass the data: "
            "odd_rows(model, X)."
        )
    return np.flatnonzero(model.member_ >= 0)
