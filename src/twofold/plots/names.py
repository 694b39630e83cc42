"""Titles that keep to their width, and names beside points, as many as fit.

Titles are broken into lines, and shortened where that is not enough.

A name is tried at eight places around its point, then further and further off with a line to it. It
must stay within the axes and keep off all points, other names and the legend, and near its point
off the border of the domain; its line must keep off names and other lines, and passes over points
only where there is no other way. A row with no such place stays without a name.
"""

import textwrap
from collections.abc import Sequence
from typing import Any, cast

import numpy as np
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.contour import ContourSet
from matplotlib.patheffects import withStroke
from matplotlib.text import Annotation

from twofold.array_types import FloatArray, IntArray
from twofold.contract import TwoWayModel
from twofold.plots.drawing import AS_WRITTEN, BORDER_LEVEL, INK, QUIET
from twofold.plots.row_colors import row_name

# A title takes at most this part of the width from one panel to the next.
FILLED = 0.94
FEWEST_LETTERS = 6
MOST_LINES = 3
LINE_INCHES = 0.17
MOST_NAMES = 40
# Rows that are tried; more only make crowds fuller.
MOST_TRIED = 200
MOST_LETTERS = 30
SIZE = "x-small"
# Points between a name and anything else, and between a name and its own point.
CLEAR, GAPS = 1.5, (2.0, 9.0, 16.0, 26.0, 40.0, 58.0, 80.0)
# From here on a name may stand on the border of the domain, and its line pass over points.
FAR_OFF = 26.0
LINE_PLACES = 24
# To which side of its point a name stands, the best first.
SIDES = ((1, 0), (-1, 0), (0, 1), (0, -1), (1, 1), (-1, 1), (1, -1), (-1, -1))


def shortened(text: str, most: int) -> str:
    """Return a text of limited length, cut in its middle: the ends tell names apart.

    >>> shortened("expression of gene 17", 12)
    'express…e 17'
    """
    if len(text) <= most:
        return text
    tail = most // 3
    return f"{text[: most - 1 - tail]}…{text[len(text) - tail :]}"


def shortened_title(title: str, column: str, most: int) -> str:
    """Return a feature's title of limited length that keeps the level at its end.

    >>> shortened_title("How do you like it here? = not much", "How do you like it here?", 20)
    'How d…re? = not much'
    """
    level = shortened(title.removeprefix(column), 2 * most // 3)
    return f"{shortened(column, most - len(level))}{level}"


def in_lines(text: str, width: int, n_lines: int) -> str:
    r"""Return a text wrapped to a limited number of lines and letters.

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
    """Break and shorten titles so that none reaches the next; return how many lines they add."""
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


def draw_names(ax: Axes, model: TwoWayModel, seen: FloatArray, area: float) -> None:
    """Write names beside rows drawn at `seen` (n, 2), first of rows far from one another."""
    # The axes have their limits and legend by then: names keep off them.
    # Legends and colour bars take their room only when the figure is laid out.
    # The figure of a subfigure is the whole one.
    cast(Any, ax.figure).figure.draw_without_rendering()
    room = _Room(ax, seen, float(np.sqrt(area)) / 2)
    n_named = 0
    for row in _far_apart(room.points, MOST_TRIED):
        name = shortened(row_name(model, int(row)), MOST_LETTERS)
        found = room.find(int(row), _size(ax, name))
        if found is None:
            continue
        _write(ax, name, seen[row], *found)
        n_named += 1
        if n_named == MOST_NAMES:
            break


def _write(
    ax: Axes, name: str, place: FloatArray, shift: FloatArray, has_line: bool = False
) -> Annotation:
    """Write a name whose middle is shifted from a place by some points."""
    # Lines of equal density may pass below a name.
    halo = [withStroke(linewidth=1.6, foreground="white")]
    line = {"arrowstyle": "-", "color": QUIET, "linewidth": 0.5, "shrinkA": 0, "shrinkB": 0}
    return ax.annotate(name, (place[0], place[1]), xytext=(shift[0], shift[1]),
                       textcoords="offset points", ha="center", va="center", fontsize=SIZE,
                       color=INK, zorder=3, path_effects=halo, **AS_WRITTEN,
                       arrowprops=line if has_line else None)  # fmt: skip


def _size(ax: Axes, name: str) -> FloatArray:
    """Return width and height of a name, in points."""
    tag = _write(ax, name, np.zeros(2), np.zeros(2))
    left, bottom, right, top = _extent(ax, tag)
    tag.remove()
    return np.array([right - left, top - bottom])


class _Room:
    """What of a map is taken, in points; names that find a place take it."""

    def __init__(self, ax: Axes, seen: FloatArray, radius: float) -> None:
        self.points, self.border = _in_points(ax, seen), _in_points(ax, _border(ax))
        self.frame, self.radius = _extent(ax, ax.patch), radius
        legend = ax.get_legend()
        self.taken = [] if legend is None else [_extent(ax, legend)]
        self.lines = np.empty((0, 2))

    def find(self, row: int, size: FloatArray) -> tuple[FloatArray, bool] | None:
        """Return where a name's middle may be, seen from its row, and whether it has a line."""
        for gap in GAPS:
            for side in SIDES:
                # At a corner the point is round: the name may come closer.
                off = (self.radius + gap) * (0.75 if all(side) else 1.0)
                shift = np.asarray(side) * (size / 2 + off)
                middle = self.points[row] + shift
                box = np.concatenate([middle - size / 2, middle + size / 2])
                has_line = gap > GAPS[0]
                line = _line(self.points[row], middle, box) if has_line else np.empty((0, 2))
                is_far = gap >= FAR_OFF
                if self._is_free(box, is_far) and self._may_pass(row, line, is_far):
                    self.taken.append(box)
                    self.lines = np.vstack([self.lines, line])
                    return shift, has_line
        return None

    def _is_free(self, box: FloatArray, is_far: bool) -> bool:
        return (
            bool((box[:2] > self.frame[:2] + CLEAR).all())
            and bool((box[2:] < self.frame[2:] - CLEAR).all())
            and not any(_overlap(box, other) for other in self.taken)
            and not _touches(box, self.points, self.radius)
            and (is_far or not _touches(box, self.border, 0))
            and not _touches(box, self.lines, 0)
        )

    def _may_pass(self, row: int, line: FloatArray, is_far: bool) -> bool:
        others = np.delete(self.points, row, axis=0)
        return not any(
            (not is_far and _touches(np.tile(place, 2), others, self.radius))
            or (is_far and _touches(np.tile(place, 2), self.lines, 0))
            or any(_overlap(np.tile(place, 2), box) for box in self.taken)
            for place in line
        )


def _in_points(ax: Axes, places: FloatArray) -> FloatArray:
    """Return data coordinates (m, 2) in points, as the axes stand in their figure."""
    return np.asarray(ax.transData.transform(places) * 72 / ax.figure.dpi)


def _extent(ax: Axes, drawn: Artist) -> FloatArray:
    """Return the box of something drawn, in points: left, bottom, right, top."""
    return np.asarray(np.asarray(drawn.get_window_extent().extents) * 72 / ax.figure.dpi)


def _border(ax: Axes) -> FloatArray:
    """Return places close to one another (m, 2) along the border of the domain, if it is drawn."""
    lines = [item for item in ax.collections if isinstance(item, ContourSet) and not item.filled]
    borders = [item for item in lines if list(item.levels) == [BORDER_LEVEL]]
    paths = [path.vertices for item in borders for path in item.get_paths()]
    return np.vstack([np.empty((0, 2)), *(np.asarray(vertices) for vertices in paths)])


def _far_apart(points: FloatArray, most: int) -> IntArray:
    """Return rows such that each is as far from all before it as possible."""
    chosen = [int(((points - points.mean(axis=0)) ** 2).sum(axis=1).argmax())]
    gaps = np.full(len(points), np.inf)
    for _ in range(min(most, len(points)) - 1):
        gaps = np.minimum(gaps, ((points - points[chosen[-1]]) ** 2).sum(axis=1))
        chosen.append(int(gaps.argmax()))
    return np.asarray(chosen)


def _line(start: FloatArray, middle: FloatArray, box: FloatArray) -> FloatArray:
    """Return places (m, 2) along the line from a start to the middle of a box, outside of it."""
    line = start + np.linspace(0, 1, LINE_PLACES)[:, None] * (middle - start)
    is_inside = ((line > box[:2]) & (line < box[2:])).all(axis=1)
    return np.asarray(line[~is_inside])


def _overlap(a: FloatArray, b: FloatArray) -> bool:
    return bool((a[:2] < b[2:] + CLEAR).all() and (b[:2] < a[2:] + CLEAR).all())


def _touches(box: FloatArray, places: FloatArray, radius: float) -> bool:
    """Say whether a box comes near any disc of a radius around places (m, 2)."""
    off = np.maximum(np.maximum(box[:2] - places, places - box[2:]), 0)
    return bool(((off**2).sum(axis=1) < (radius + CLEAR) ** 2).any())
