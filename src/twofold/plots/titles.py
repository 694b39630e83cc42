"""Titles that keep to their width: broken into lines, and shortened where that is not enough."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from typing import Any, cast

import numpy as np
from matplotlib.axes import Axes

# A title takes at most this part of the width from one panel to the next.
FILLED = 0.94
FEWEST_LETTERS = 6
MOST_LINES = 3
LINE_INCHES = 0.17


def shortened(text: str, most: int) -> str:
    """Return a text of at most so many letters, cut in its middle: the ends tell names apart.

    Parameters
    ----------
    text : str
    most : int

    Returns
    -------
    str

    Examples
    --------
    >>> shortened("expression of gene 17", 12)
    'express…e 17'
    """
    if len(text) <= most:
        return text
    tail = most // 3
    return f"{text[: most - 1 - tail]}…{text[len(text) - tail :]}"


def in_lines(text: str, width: int, n_lines: int) -> str:
    r"""Return a text in at most so many lines of at most so many letters.

    Parameters
    ----------
    text : str
    width, n_lines : int

    Returns
    -------
    str

    Examples
    --------
    >>> in_lines("mean radius of the cell", 12, 2)
    'mean radius\nof the cell'
    """
    for most in range(min(len(text), width * n_lines), 0, -1):
        lines = _wrapped(shortened(text, most), width)
        if len(lines) <= n_lines:
            return "\n".join(lines)
    return text


def _wrapped(text: str, width: int) -> list[str]:
    """Return lines, broken at spaces, hyphens and underscores where possible."""
    hyphened, lines, end = text.replace("_", "-"), [], 0
    for line in textwrap.wrap(hyphened, width, expand_tabs=False, replace_whitespace=False):
        start = hyphened.index(line, end)
        end = start + len(line)
        lines.append(text[start:end])
    return lines


def fit_titles(panels: Sequence[Axes], columns: int) -> int:
    """Break and shorten the titles of a table of panels, so that none reaches the next one.

    Parameters
    ----------
    panels : sequence of Axes
        Row by row, with their titles set.
    columns : int
        How many panels are in a row.

    Returns
    -------
    int
        How many lines the rows of panels are higher than with titles of one line.
    """
    figure = cast(Any, panels[0].figure)
    figure.figure.draw_without_rendering()
    # Nothing makes room for a second line in a figure that is not laid out.
    n_lines = 1 if figure.figure.get_layout_engine() is None else MOST_LINES
    middles = np.array([np.mean(panel.get_window_extent().intervalx) for panel in panels[:columns]])
    to_edges = 2 * (middles[0] - figure.bbox.x0), 2 * (figure.bbox.x1 - middles[-1])
    room = FILLED * float(min(*to_edges, *np.diff(middles)))
    for panel in panels:
        name, letters = panel.get_title(), len(panel.get_title())
        while panel.title.get_window_extent().width > room and letters > FEWEST_LETTERS:
            letters -= 1
            panel.set_title(in_lines(name, letters, n_lines), fontsize=panel.title.get_fontsize())
    breaks = [panel.get_title().count("\n") for panel in panels]
    return sum(max(breaks[start : start + columns]) for start in range(0, len(breaks), columns))
