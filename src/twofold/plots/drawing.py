"""Colours, axes, rows, colour bars, legends and domains: what several pictures share.

Colours and markers keep categories apart in colour, for the colour-blind and in grey.
The twelve colours were found by starting from a blue and an orange and exchanging the others on a
grid of sRGB, neither pale nor too dark, until no exchange raised the smallest distance between any
two in CIELAB, as seen by normal eyes and with protanopia, deuteranopia and tritanopia (Machado,
Oliveira & Fernandes 2009). They are ordered so that the first few are far apart in lightness too.
Markers cycle with a period that has no divisor in common with twelve: a category shares its colour
and marker with another one only after sixty.
"""

from dataclasses import dataclass
from typing import Any

import matplotlib
import numpy as np
from matplotlib import rcParams
from matplotlib.axes import Axes
from matplotlib.colors import Colormap, LinearSegmentedColormap, to_hex, to_rgb
from matplotlib.legend import Legend
from matplotlib.lines import Line2D
from matplotlib.path import Path

from twofold.array_types import BoolArray, FloatArray
from twofold.plots.latent_view import LatentView, Lattice
from twofold.plots.row_colors import Categories, RowColors
from twofold.plots.ticks import Ticks

COLORS = (
    "#005ab4",  # blue
    "#f0871e",  # orange
    "#780f5a",  # plum
    "#87d278",  # light green
    "#1e693c",  # dark green
    "#b487ff",  # lilac
    "#96782d",  # ochre
    "#870000",  # dark red
    "#4bd2c3",  # turquoise
    "#0087a5",  # petrol
    "#c37878",  # rose
    "#b4b4f0",  # periwinkle
)
ACCENT = "#870000"
# Each with the factor by which its area has to change to look as large as the disc.
MARKERS = (("o", 1.0), ("^", 1.15), ("s", 0.85), ("D", 0.75), ("v", 1.15))
# How far colours turn when all have been used, light ones towards black and dark ones to white.
SHADES = (0.0, 0.5, 0.25)
LIGHT = 0.5

INK = "#333333"
QUIET = "#8a8a8a"
MISSING = "#c4c4c4"
OUTSIDE = "#f0f0f0"

# For names, which are no formulas: what stands between two dollar signs would be set as one.
AS_WRITTEN: dict[str, Any] = {"parse_math": False}

# Viridis ends in a yellow that is lost on white paper.
SEQUENTIAL_END = 0.94

# From here on points are drawn as pixels within a vector file: as shapes they make it slow.
MOST_VECTOR_POINTS = 20_000
# Inches for what stands beside and below a map: ticks, names, a colour bar or a legend.
BESIDE_MAP = np.array([1.85, 0.6])
# A legend of more categories than this does not fit into a corner of a map.
MOST_IN_CORNER = 5
LEGEND_ROWS = 18
# Of the support, as `LatentView` measures it.
BORDER_LEVEL = 0.0
# If the outermost hundredth of the values at each end makes the range longer by this factor, it is
# left out of the colours: one far value would wash out the rest.
FAR = 1.4
CUT = 1.0


@dataclass(frozen=True)
class CategoryStyle:
    """How the rows of one category are drawn."""

    color: str
    marker: str
    area: float


def category_style(number: int) -> CategoryStyle:
    """Return the colour and marker of a category, counted from 0; no pair of both comes twice soon.

    >>> category_style(0).color, category_style(12).color, category_style(12).marker
    ('#005ab4', '#80acda', 's')
    """
    marker, area = MARKERS[number % len(MARKERS)]
    share = SHADES[number // len(COLORS) % len(SHADES)]
    base = np.array(to_rgb(COLORS[number % len(COLORS)]))
    end = 0.0 if base.mean() > LIGHT else 1.0
    return CategoryStyle(to_hex(base + share * (end - base)), marker, area)


def sequential() -> Colormap:
    """Return the colour map of numbers: viridis, without its last, nearly white yellow."""
    colors = matplotlib.colormaps["viridis"](np.linspace(0, SEQUENTIAL_END, 256))
    return LinearSegmentedColormap.from_list("twofold", colors)


def open_axes(ax: Axes | None, size: tuple[float, float] | None = None) -> Axes:
    """Return the given axes, or those of a new figure."""
    if ax is not None:
        return ax
    import matplotlib.pyplot as plt

    made: Axes = plt.subplots(figsize=size, layout="constrained")[1]
    return made


def open_map(ax: Axes | None, view: LatentView) -> Axes:
    """Return the given axes, or those of a new figure shaped like the map."""
    if ax is not None or view.is_line:
        return open_axes(ax)
    most = np.asarray(rcParams["figure.figsize"]) - BESIDE_MAP
    extent = np.ptp(view.limits, axis=1)
    width, height = extent * (most / extent).min() + BESIDE_MAP
    return open_axes(None, (float(width), float(height)))


def frame_map(ax: Axes, view: LatentView) -> None:
    """Set limits, names and equal units of the axes of a map."""
    ax.set_xlim(*view.limits[0])
    ax.set_xlabel(view.names[0])
    if not view.is_line:
        ax.set_ylim(*view.limits[1])
        ax.set_ylabel(view.names[1])
        ax.set_aspect("equal")


def shade_outside(ax: Axes, view: LatentView, lattice: Lattice, support: FloatArray) -> None:
    """Shade what lies outside the domain and draw its border."""
    if view.is_line:
        for low, high in intervals(lattice.axes[0], support < 0):
            ax.axvspan(low, high, color=OUTSIDE, zorder=0, linewidth=0)
        return
    field = lattice.shaped(support)
    if (support < 0).any():
        ax.contourf(*lattice.axes, field, levels=[-np.inf, 0], colors=[OUTSIDE], zorder=0)
    draw_border(ax, lattice, support)


def draw_border(ax: Axes, lattice: Lattice, support: FloatArray) -> None:
    """Draw the border of a domain in a plane."""
    if (support < 0).any() and (support > 0).any():
        field = lattice.shaped(support)
        ax.contour(*lattice.axes, field, levels=[BORDER_LEVEL], colors=[QUIET], linewidths=0.8,
                   zorder=1.5)  # fmt: skip


def intervals(axis: FloatArray, is_in: BoolArray) -> list[tuple[float, float]]:
    """Return the ends of the runs of places that are in; half a step beyond the outermost ones."""
    step = (axis[1] - axis[0]) / 2
    turns = np.flatnonzero(np.diff(np.concatenate([[False], is_in, [False]]).astype(int)))
    return [
        (float(axis[first] - step), float(axis[last - 1] + step))
        for first, last in zip(turns[::2], turns[1::2], strict=True)
    ]


def paint(ax: Axes, lattice: Lattice, values: FloatArray, within: FloatArray | None = None) -> Any:
    """Paint values (m,) over the domain of a plane; return the image that a colour bar needs."""
    # Nothing is painted at NaN, nor where the support `within` (m,) is not positive: there the
    # image has a clean edge.
    x, y = lattice.axes
    half = (x[1] - x[0]) / 2, (y[1] - y[0]) / 2
    seen = values if within is None else values[within > 0]
    low, high = color_limits(seen)
    if np.isfinite(seen).any():
        # Places just outside the domain only help to colour its edge.
        values = np.clip(values, np.nanmin(seen), np.nanmax(seen))
    image = ax.imshow(
        np.ma.masked_invalid(lattice.shaped(values)),
        extent=(x[0] - half[0], x[-1] + half[0], y[0] - half[1], y[-1] + half[1]),
        origin="lower",
        interpolation="bilinear",
        cmap=sequential(),
        vmin=low,
        vmax=high,
        zorder=0.5,
    )
    if within is not None and (within < 0).any():
        field = lattice.shaped(within)
        shape = ax.contourf(x, y, field, levels=[0, np.inf], colors=["none"], zorder=0)
        paths = [path for path in shape.get_paths() if np.size(path.vertices)]
        if paths:
            image.set_clip_path(Path.make_compound_path(*paths), ax.transData)
    return image


def color_limits(values: FloatArray) -> tuple[float, float]:
    """Return the numbers at the ends of the colour map."""
    known = values[np.isfinite(values)]
    if len(known) == 0:
        return 0.0, 1.0
    low, high = float(known.min()), float(known.max())
    near_low, near_high = (float(end) for end in np.percentile(known, [CUT, 100 - CUT]))
    if near_high > near_low and high - low > FAR * (near_high - near_low):
        return near_low, near_high
    return (low, high) if high > low else (low - 0.5, low + 0.5)


def add_color_bar(ax: Axes, colored: Any, title: str | None, ticks: Ticks | None = None) -> Any:
    """Draw a colour bar as high as the map beside it, with ticks of its own if it is told so."""
    # An inset keeps to the map, which is smaller than the space it was given.
    place = ax.inset_axes((1.03, 0.0, 0.035, 1.0))
    # Values beyond the colours are said by a pointed end.
    values = np.ma.masked_invalid(colored.get_array()).compressed()
    low, high = colored.get_clim()
    below, above = bool((values < low).any()), bool((values > high).any())
    ends = {(True, True): "both", (True, False): "min", (False, True): "max"}
    bar = ax.figure.colorbar(colored, cax=place, extend=ends.get((below, above), "neither"))
    bar.outline.set_visible(False)
    if ticks is not None:
        ticks(bar.ax.yaxis)
    if title:
        bar.set_label(title, **AS_WRITTEN)
    return bar


def add_legend(ax: Axes, categories: Categories, seen: FloatArray | None) -> None:
    """Draw a legend: few categories in the corner of a map with the fewest rows ``seen`` (n, 2)."""
    # Many stand beside the map, and so do those of rows that are nowhere (None).
    handles = []
    for number, name in enumerate(categories.names):
        style = category_style(number)
        size = 6 * float(np.sqrt(style.area))
        handles.append(Line2D([], [], linestyle="", marker=style.marker, color=style.color,
                              label=name, markersize=size))  # fmt: skip
    common: dict[str, Any] = {"handles": handles, "title": categories.title, "fontsize": "small",
              "title_fontsize": "small", "handletextpad": 0.2}  # fmt: skip
    if seen is not None and len(handles) <= MOST_IN_CORNER:
        corner = _emptiest_corner(ax, seen)
        write_as_is(ax.legend(loc=corner, framealpha=0.85, edgecolor="none", **common))
        return
    columns = -(-len(handles) // LEGEND_ROWS)
    write_as_is(ax.legend(loc="upper left", bbox_to_anchor=(1.01, 1.0), borderaxespad=0.0,
                          frameon=False, ncols=columns, columnspacing=1.0, **common))  # fmt: skip


def write_as_is(legend: Legend) -> None:
    """Take no name of a legend for a formula."""
    for text in (*legend.get_texts(), legend.get_title()):
        text.set(**AS_WRITTEN)


def _emptiest_corner(ax: Axes, seen: FloatArray) -> str:
    """Return the corner of the map with the fewest rows."""
    limits = np.array([ax.get_xlim(), ax.get_ylim()])
    part = (seen - limits[:, 0]) / np.ptp(limits, axis=1)
    counts = {}
    for name, corner in (("upper right", (1, 1)), ("upper left", (0, 1)),
                         ("lower right", (1, 0)), ("lower left", (0, 0))):  # fmt: skip
        near = np.abs(part - np.array(corner)) < (0.3, 0.3)
        counts[name] = int(near.all(axis=1).sum())
    return min(counts, key=lambda name: counts[name])


def draw_rows(ax: Axes, seen: FloatArray, colors: RowColors | None, area: float) -> Any:
    """Draw rows at places (n, 2); return what a colour bar needs, None without amounts."""
    rasterized = len(seen) > MOST_VECTOR_POINTS

    def scatter(rows: Any, **look: Any) -> Any:
        usual = {"s": area, "linewidths": 0, "zorder": 2, "rasterized": rasterized}
        return ax.scatter(seen[rows, 0], seen[rows, 1], **{**usual, **look})

    if colors is None:
        scatter(slice(None), color=COLORS[0])
        return None
    known = colors.codes >= 0 if isinstance(colors, Categories) else np.isfinite(colors.values)
    if not known.all():
        scatter(~known, color=MISSING, zorder=1.9)
    if isinstance(colors, Categories):
        counts = np.bincount(colors.codes[known], minlength=len(colors.names))
        # The commonest first, so that it does not hide the others.
        for code in np.argsort(-counts, kind="stable"):
            style = category_style(int(code))
            look = {"color": style.color, "marker": style.marker, "s": area * style.area}
            scatter(colors.codes == code, **look)
        return None
    low, high = color_limits(colors.values)
    return scatter(known, c=colors.values[known], cmap=sequential(), vmin=low, vmax=high)


def write_note(ax: Axes, text: str, place: Any, shift: tuple[float, float], **more: Any) -> None:
    """Write a few small words beside a place, shifted by some points."""
    usual = {"textcoords": "offset points", "fontsize": "small", "color": INK, **AS_WRITTEN}
    ax.annotate(text, place, xytext=shift, **{**usual, **more})


def draw_level(ax: Axes, height: float) -> None:
    """Draw a dotted line to compare with."""
    ax.axhline(height, color=QUIET, linewidth=0.8, linestyle=":")


def light_frame(ax: Axes) -> None:
    """Leave of the frame what carries numbers."""
    ax.spines[["top", "right"]].set_visible(False)
    ax.tick_params(color=INK)
