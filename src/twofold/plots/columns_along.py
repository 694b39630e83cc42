"""Columns of a mixed table along a way over the map, each in a panel of its own.

Numbers and dates are lines, in their own units; categories are the probabilities of their levels,
stacked. The axis of a line reaches over the middle nine tenths of the table's values at least, so
that a column which the way leaves alone is flat.
"""

from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.dates import AutoDateFormatter, AutoDateLocator

from twofold.array_types import FloatArray
from twofold.contract import TwoWayModel
from twofold.plots import drawing
from twofold.plots.drawing import AS_WRITTEN, COLORS, MISSING, category_style, sequential
from twofold.plots.names import shortened
from twofold.plots.row_colors import mixed_parts

MOST_PANELS = 12
# How much of its height a panel has for the picture; its name stands in the rest.
PICTURE = 0.66
# Inches from one panel to the next.
PANEL = 0.9
LEVELS = ("category", "boolean", "ordered")
# Levels of a panel with colours of their own, if there are more; the others share one.
MOST_LEVELS = 5
# Of the table's values, at each end, that an axis may leave out.
CUT = 5.0
LETTERS, LETTERS_OF_LEVEL = 60, 22
# Beyond the ends of a line, as a share of its axis.
ROOM = 0.06

# The columns of a table, each with which of the features are its own.
Parts = list[tuple[Any, slice]]


def parts_shown(model: TwoWayModel, numbers: Any, F: FloatArray) -> Parts:
    """Return the columns whose features (m, D) change most, the most changed one first."""
    # Scaled features: a column's variances add up to its weight, whatever its kind.
    changes = np.ptp(F, axis=0) / numbers.spread_
    found = [(column, part) for column, part in mixed_parts(model) if column.features]
    found.sort(key=lambda pair: -float((changes[pair[1]] ** 2).sum()))
    return found[:MOST_PANELS]


def draw_columns(ax: Axes, parts: Parts, F: FloatArray, seen: FloatArray, length: float) -> None:
    """Draw columns above zero and one above the other, the first at the top.

    Their features are F (m, D) along the way, and those of the table's rows (n, D) are ``seen``.
    """
    along = np.linspace(0, length, len(F))
    for k, (column, part) in enumerate(parts):
        bottom = len(parts) - 1 - k
        panel = ax.inset_axes((0, bottom, length, PICTURE), transform=ax.transData)
        if column.kind in LEVELS:
            _draw_levels(panel, column, along, column.probabilities(F[:, part]))
        else:
            # Missing values of the table say nothing of its range.
            known = seen[:, part][np.isfinite(seen[:, part]).all(axis=1)]
            _draw_line(panel, column, along, F[:, part], known)
        panel.set_xlim(0, length)
        panel.set_xticks([])
        panel.tick_params(labelsize="x-small")
        name = shortened(column.name, LETTERS)
        panel.set_title(name, loc="left", fontsize="small", pad=2, **AS_WRITTEN)
        drawing.light_frame(panel)


def _draw_line(
    panel: Axes, column: Any, along: FloatArray, F: FloatArray, known: FloatArray
) -> None:
    # Ticks are written in full: what an axis leaves out of them would stand in the panel's name.
    values_of = column.days if column.kind == "date" else column.numbers
    values = values_of(F)
    panel.plot(along, values, color=COLORS[0], linewidth=1.2)
    usual = np.percentile(values_of(known), [CUT, 100 - CUT]) if len(known) else values
    low, high = min(values.min(), usual.min()), max(values.max(), usual.max())
    room = ROOM * (high - low) or 0.5
    panel.set_ylim(low - room, high + room)
    if column.kind == "date":
        locator = AutoDateLocator(minticks=2, maxticks=4)
        formatter = AutoDateFormatter(locator)
        formatter.scaled[1 / 24] = "%m-%d %H:%M"  # hours alone read as days
        panel.yaxis.set_major_locator(locator)
        panel.yaxis.set_major_formatter(formatter)
    else:
        panel.locator_params(axis="y", nbins=3)
        panel.yaxis.set_major_formatter("{x:.10g}")


def _draw_levels(panel: Axes, column: Any, along: FloatArray, P: FloatArray) -> None:
    names, shares = _joined(column.shown_levels(), P)
    colors: list[Any] = [category_style(number).color for number in range(len(names))]
    if column.kind == "ordered":
        colors = list(sequential()(np.linspace(0, 1, len(names))))
    likely = np.argsort(-shares.sum(axis=0), kind="stable")
    most = len(names) if len(names) <= MOST_LEVELS + 1 else MOST_LEVELS
    kept, others = np.sort(likely[:most]), likely[most:]
    heights = [*shares[:, kept].T]
    fills = [colors[k] for k in kept]
    labels = [shortened(names[k], LETTERS_OF_LEVEL) for k in kept]
    if len(others):
        heights.append(shares[:, others].sum(axis=1))
        fills.append(MISSING)
        labels.append(f"{len(others)} others")
    drawn = panel.stackplot(along, heights, colors=fills, labels=labels, linewidth=0)
    panel.set_ylim(0, 1)
    panel.set_yticks([0, 0.5, 1], ["0", "", "1"])
    # In the order of the stack, from its top.
    legend = panel.legend(drawn[::-1], labels[::-1], loc="center left", bbox_to_anchor=(1.0, 0.5),
                          frameon=False, fontsize="x-small", labelspacing=0.15, handlelength=1,
                          handletextpad=0.5, borderaxespad=0.6)  # fmt: skip
    drawing.write_as_is(legend)


def _joined(texts: list[str], P: FloatArray) -> tuple[list[str], FloatArray]:
    """Return names and probabilities (m, k): rare levels that have one name are one."""
    names = list(dict.fromkeys(texts))
    which = np.array([names.index(text) for text in texts])
    return names, np.stack([P[:, which == k].sum(axis=1) for k in range(len(names))], axis=1)
