"""What is special about a place on the map, or about some rows, as bars."""

from typing import Any

import numpy as np
from matplotlib.axes import Axes

from twofold import standing_out
from twofold.checks.parameters import check_count
from twofold.contract import TwoWayModel
from twofold.plots import drawing
from twofold.plots.drawing import COLORS
from twofold.plots.names import shortened_title

MOST_LETTERS = 40


def what_stands_out(
    model: TwoWayModel, where: Any, against: Any = None, *, n: int = 20, ax: Axes | None = None
) -> Axes:
    """Draw the features, or columns of a mixed table, that are farthest from usual.

    A bar is the difference in standard deviations of the feature, to the right above what is usual;
    a line is the deviation of the rows there. The figures, as a frame, come from
    :func:`twofold.standing_out.what_stands_out`.

    Parameters
    ----------
    model : fitted model
    where, against : array-like or str
        A latent place, the name of a row, numbers or names of rows, or a truth value for each row;
        by default against all (other) rows.
    n : int, default=20
        How many features.
    ax : matplotlib Axes, default=None

    Examples
    --------
    >>> from sklearn.datasets import load_wine
    >>> from twofold import UKR, Scaled, plots
    >>> model = Scaled(UKR(init="pca", max_iter=5)).fit(load_wine(as_frame=True).data)
    >>> ax = plots.what_stands_out(model, [0.5, 0.5])
    """
    check_count("n", n)
    found = standing_out.differences(model, where, against).head(n)
    owners = [column.name for column in model._mixed_columns() for _ in column.features]
    columns = [str(owners[number]) for number in found["number"]] if owners else found.index
    names = [
        shortened_title(title, column, MOST_LETTERS)
        for title, column in zip(found.index, columns, strict=True)
    ]
    ax = drawing.open_axes(ax, (4.0 + 0.08 * max(map(len, names)), 0.8 + 0.22 * len(found)))
    places = np.arange(len(found))
    difference = found["difference"].to_numpy()
    reach = np.nan_to_num(found["reach"].to_numpy())
    colors = [COLORS[0] if value >= 0 else COLORS[1] for value in difference]
    ax.barh(places, difference, height=0.75, color=colors, xerr=reach, ecolor="0.35")
    ax.axvline(0, color="0.35", linewidth=0.8)
    ax.set_yticks(places, names, **drawing.AS_WRITTEN)
    ax.set_ylim(len(found) - 0.4, -0.6)
    ax.set_xlabel("difference, in standard deviations")
    drawing.light_frame(ax)
    return ax
