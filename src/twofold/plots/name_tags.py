"""Names beside points, as many as fit without covering one another."""

from __future__ import annotations

from typing import Any, cast

import numpy as np
from matplotlib import rcParams
from matplotlib.axes import Axes
from matplotlib.font_manager import FontProperties
from matplotlib.patheffects import withStroke

from twofold.array_types import FloatArray, IntArray
from twofold.contract import TwoWayModel
from twofold.plots.palette import INK
from twofold.plots.row_facts import row_name

MOST_NAMES = 40
SIZE = "x-small"
# Width of a letter and height of a line, in units of the font size.
LETTER, LINE = 0.62, 1.2
GAP = 2.0


def draw_names(ax: Axes, model: TwoWayModel, seen: FloatArray) -> None:
    """Write names beside rows, beginning with rows far from one another.

    Parameters
    ----------
    ax : Axes
        With its limits set.
    model : fitted model
    seen : array of shape (n, 2)
        Where rows are drawn.
    """
    points = _in_points(ax, seen)
    font = FontProperties(size=SIZE).get_size_in_points() or rcParams["font.size"]
    halo = [withStroke(linewidth=1.6, foreground="white")]
    taken: list[tuple[float, float, float, float]] = []
    for row in _far_apart(points, 4 * MOST_NAMES):
        name = row_name(model, int(row))
        x, y = points[row, 0] + GAP, points[row, 1]
        box = (x, y - LINE * font / 2, x + LETTER * font * len(name), y + LINE * font / 2)
        if any(_overlap(box, other) for other in taken):
            continue
        taken.append(box)
        ax.annotate(name, seen[row], xytext=(GAP, 0), textcoords="offset points",
                    va="center", fontsize=SIZE, color=INK, zorder=3, path_effects=halo)  # fmt: skip
        if len(taken) == MOST_NAMES:
            break


def _in_points(ax: Axes, seen: FloatArray) -> FloatArray:
    """Return data coordinates in points, as the axes will stand in their figure."""
    # Legends and colour bars take their room only when the figure is laid out.
    # The figure of a subfigure is the whole one.
    cast(Any, ax.figure).figure.draw_without_rendering()
    pixels = ax.transData.transform(seen)
    return np.asarray(pixels * 72 / ax.figure.dpi)


def _far_apart(points: FloatArray, most: int) -> IntArray:
    """Return rows such that each is as far from all before it as possible."""
    chosen = [int(((points - points.mean(axis=0)) ** 2).sum(axis=1).argmax())]
    gaps = np.full(len(points), np.inf)
    for _ in range(min(most, len(points)) - 1):
        gaps = np.minimum(gaps, ((points - points[chosen[-1]]) ** 2).sum(axis=1))
        chosen.append(int(gaps.argmax()))
    return np.asarray(chosen)


def _overlap(a: tuple[float, float, float, float], b: tuple[float, float, float, float]) -> bool:
    return a[0] < b[2] and b[0] < a[2] and a[1] < b[3] and b[1] < a[3]
