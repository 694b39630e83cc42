"""Pictures of what the model generates: items over the whole map, and along a way through it.

An item is a row of data as a small picture: an image where its shape is known, a curve otherwise.
All items of a picture share one scale, from near the lowest to near the highest value of the data.
Rows of a mixed table are no curves: levels and dates have no common unit with anything. Along a way
their columns are drawn one by one.
"""

from dataclasses import dataclass
from numbers import Integral
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection, PolyCollection

from twofold.array_types import FloatArray
from twofold.checks.parameters import check_choice, check_count
from twofold.contract import TwoWayModel
from twofold.plots import drawing
from twofold.plots.columns_along import PANEL, draw_columns, parts_shown
from twofold.plots.drawing import AS_WRITTEN, COLORS, MISSING, QUIET
from twofold.plots.latent_view import LatentView
from twofold.plots.names import FEWEST_LETTERS, shortened
from twofold.plots.row_colors import image_shape as known_shape
from twofold.plots.row_colors import row_name, row_number

# The density below the items of a path, in units of an item's width; of its height for curves.
BAND, BAND_GAP = 0.8, 0.12
CURVE_BAND = 0.5
# Letters of the name of an end for each inch of a path.
LETTERS_PER_INCH = 5
FINE_STEPS = 400
# Inches of a path with a panel for each column.
COLUMNS_WIDTH = 6.4
NO_ITEMS = (
    "Rows of a mixed table cannot be drawn as curves or images: their columns have no common unit. "
    "`sensitivities(model)` draws the columns over the map, `path(model, start, stop)` along a "
    "way, and `inverse_transform` gives the rows at places."
)
# A few far values must not make all items grey: the scale leaves out this share at each end.
CUT = 0.1
# How much of its box an item fills; a curve has a frame of its own, and room within it.
FILLED = 0.92
FRAMED, IN_FRAME = 0.88, 0.84
CURVE_ASPECT = 0.6
CORNERS = np.array([(-1, -1), (1, -1), (1, 1), (-1, 1)])
# Images whose rim lies this close to the lowest value are ink on paper.
PAPER = 0.1


def grid(
    model: TwoWayModel,
    *,
    shape: int | tuple[int, int] = (12, 12),
    dims: tuple[int, int] = (0, 1),
    image_shape: tuple[int, ...] | None = None,
    kind: str = "auto",
    ax: Axes | None = None,
) -> Axes:
    """Draw what the model generates at regular places of its latent space.

    Only places inside the domain have an item. With one latent dimension it is a row of items,
    curves as high as the axes; with more than two, the dimensions not shown are those of the
    nearest row.

    Parameters
    ----------
    model : fitted model
    shape : (int, int) or int, default=(12, 12)
        Maximum number of places along the first and the second axis; one number counts for both.
        Places are spaced so that items lie side by side.
    dims : pair of int, default=(0, 1)
    image_shape : (height, width) or (height, width, 3), default=None
        Shape of an item; None takes what ``annotate`` noted.
    kind : {"auto", "image", "curve"}, default="auto"
        Items as images, or as curves over the number of the feature; "auto" draws images if their
        shape is known.
    ax : matplotlib Axes, default=None

    Examples
    --------
    >>> from twofold import UKR, plots
    >>> from twofold.datasets import load_digits_split
    >>> model = UKR(init="pca", max_iter=5).fit(load_digits_split().Y_train[:200])
    >>> ax = plots.grid(model, shape=6, image_shape=(8, 8))
    """
    _check_numbers(model)
    model = model.as_numbers()
    view, style = LatentView(model, dims), item_style(model, image_shape, kind)
    side = _side(shape, np.ptp(view.limits, axis=1), style.aspect)
    axes = [_centers(low, high, step) for (low, high), step in zip(view.limits, side, strict=False)]
    centers = np.stack([along.ravel() for along in np.meshgrid(*axes)], axis=1)
    places = view.places(centers)
    inside = model.in_domain(places)
    height = 1.8 if style.is_curve else 1.0
    ax = drawing.open_axes(ax, (6.4, height)) if view.is_line else drawing.open_map(ax, view)
    drawing.frame_map(ax, view)
    if view.is_line:
        # One dimension has no other axis: the axes are as high as one item. A curve may be as high
        # as there is room, an image must keep its shape.
        side = (side[0], 1.0) if style.is_curve else side
        ax.set_ylim(-side[1] / 2, side[1] / 2)
        ax.set_aspect("auto" if style.is_curve else "equal")
        ax.set_yticks([])
        ax.spines[["left", "top", "right"]].set_visible(False)
        centers = np.column_stack([centers, np.zeros(len(centers))])
    else:
        lattice = view.lattice()
        drawing.draw_border(ax, lattice, view.support(lattice))
    if inside.any():
        rows = model.inverse_transform(places[inside])
        draw_items(ax, rows, centers[inside], side, style)
    drawing.frame_map(ax, view)
    return ax


def _side(shape: int | tuple[int, int], extent: FloatArray, aspect: float) -> tuple[float, float]:
    """Return width and height of the box of an item, so that no axis has too many."""
    most = np.full(2, shape) if isinstance(shape, Integral) else np.asarray(shape)
    if most.shape != (2,) or most.dtype.kind not in "iu" or (most < 1).any():
        raise ValueError(
            f"`shape` must be a number of places, or one for each of two axes; got {shape!r}."
        )
    # With one latent dimension there is no second extent.
    width = float((extent / (most * (1.0, aspect))[: len(extent)]).max())
    return width, width * aspect


def _centers(low: float, high: float, step: float) -> FloatArray:
    """Return places a step apart, in the middle of an interval."""
    count = max(int((high - low) / step + 1e-9), 1)
    return (low + high) / 2 + step * (np.arange(count) - (count - 1) / 2)


def path(
    model: TwoWayModel,
    start: Any,
    stop: Any,
    *,
    steps: int = 10,
    image_shape: tuple[int, ...] | None = None,
    kind: str = "auto",
    ax: Axes | None = None,
) -> Axes:
    """Draw what the model generates along the straight way between two latent points.

    Of a mixed table the columns are drawn, each in a panel of its own (``ax.child_axes``): numbers
    and dates as lines in their units, categories as the probabilities of their levels, stacked. Of
    more than twelve columns they are those that change most; the one that does is at the top.

    Below the items the latent density along the way is drawn, and the density at the border of the
    domain as a dotted line. Where the way leaves the domain the density is hatched: nothing in the
    data supports the items there.

    Parameters
    ----------
    model : fitted model
    start, stop : int, str or array-like of shape (n_components,)
        The ends: rows passed to ``fit``, by number from 0 as everywhere in Python or by name, or
        latent points. The picture calls a row by its name, or by its number from 1 if it has none:
        ``start=0`` is labelled "row 1".
    steps : int, default=10
        How many items, both ends counted. Columns of a mixed table are drawn throughout.
    image_shape, kind :
        How an item is drawn, as in :func:`grid`. Rows of a mixed table are neither images nor
        curves.
    ax : matplotlib Axes, default=None

    Examples
    --------
    >>> from twofold import UKR, plots
    >>> from twofold.datasets import load_digits_split
    >>> model = UKR(init="pca", max_iter=5).fit(load_digits_split().Y_train[:200])
    >>> ax = plots.path(model, 0, 1, steps=8, image_shape=(8, 8))
    """
    check_count("steps", steps, 2)
    ends = _end(model, start), _end(model, stop)
    (first, _), (last, _) = ends
    if model._mixed_columns():
        if image_shape is not None or kind != "auto":
            raise ValueError(NO_ITEMS)
        return _path_of_columns(model, ends, int(steps), ax)
    model = model.as_numbers()
    style = item_style(model, image_shape, kind)
    height, band = (1.0, CURVE_BAND) if style.is_curve else (style.aspect, BAND)
    ax = drawing.open_axes(ax, (max(0.75 * steps, 4.0), 0.75 * height + 1.1))
    rows = model.inverse_transform(_between(first, last, int(steps)))
    centers = np.column_stack([np.arange(steps), np.full(steps, height / 2)])
    # In a small subplot curves take all the height there is; an image must keep its shape.
    ax.set_aspect("auto" if style.is_curve else "equal")
    draw_items(ax, rows, centers, (1.0, height), style)
    _draw_band(ax, model, _between(first, last, FINE_STEPS), steps - 1, band)
    ax.set_ylim(-BAND_GAP - band, height)
    ax.set_xlim(-0.5, steps - 0.5)
    _name_ends(ax, ends, steps - 1)
    return ax


def _path_of_columns(model: TwoWayModel, ends: Any, steps: int, ax: Axes | None) -> Axes:
    """Draw the columns of a mixed table along the way between two latent points."""
    way = _between(ends[0][0], ends[1][0], FINE_STEPS)
    numbers = model.as_numbers()
    F = numbers.inverse_transform(way)
    parts = parts_shown(model, numbers, F)
    ax = drawing.open_axes(ax, (COLUMNS_WIDTH, PANEL * (len(parts) + CURVE_BAND) + 0.4))
    # The axes have their limits before the panels are put into them.
    ax.set_xlim(0, steps - 1)
    ax.set_ylim(-BAND_GAP - CURVE_BAND, len(parts))
    draw_columns(ax, parts, F, np.asarray(numbers.data_), steps - 1)
    _draw_band(ax, model, way, steps - 1, CURVE_BAND)
    _name_ends(ax, ends, steps - 1)
    return ax


def _name_ends(ax: Axes, ends: Any, length: float) -> None:
    """Name the ends of a path below it, and leave of the frame what it needs."""
    # The ends are named, each in its half of the axis.
    width = ax.get_window_extent().width / ax.figure.dpi
    most = max(int(LETTERS_PER_INCH * width), FEWEST_LETTERS)
    ax.set_xticks([0, length], [shortened(name, most) for _, name in ends], **AS_WRITTEN)
    left, right = ax.get_xticklabels()
    left.set_horizontalalignment("left")
    right.set_horizontalalignment("right")
    ax.spines[["left", "top", "right"]].set_visible(False)
    ax.tick_params(axis="y", length=0)


def _end(model: TwoWayModel, where: Any) -> tuple[FloatArray, str]:
    """Return the latent point (q,) of a row's number or name, or the point given, and its name."""
    n, q = model.embedding_.shape
    if isinstance(where, (str, Integral)):
        row = row_number(model, where) if isinstance(where, str) else int(where)
        if not -n <= row < n:
            raise ValueError(f"Expected a row between 0 and {n - 1}; got {row}.")
        name = where if isinstance(where, str) else row_name(model, row % n)
        return np.asarray(model.embedding_[row], dtype=np.float64), name
    point = np.atleast_1d(np.asarray(where, dtype=np.float64))
    if point.shape != (q,):
        raise ValueError(
            "The ends of a path must be numbers or names of rows, or latent points of shape "
            f"({q},); got an array of shape {point.shape}."
        )
    return point, f"({', '.join(f'{coordinate:.3g}' for coordinate in point)})"


def _between(start: FloatArray, stop: FloatArray, steps: int) -> FloatArray:
    t = np.linspace(0, 1, steps)[:, None]
    return (1 - t) * start + t * stop


def _draw_band(ax: Axes, model: TwoWayModel, way: FloatArray, length: float, band: float) -> None:
    """Draw the density along a way below its items."""
    density = model.density(way).astype(np.float64)
    along = np.linspace(0, length, len(way))
    scale = band / max(float(density.max()), 1.15 * model.domain_threshold_)
    floor = -BAND_GAP - band
    height = floor + scale * density
    border = floor + scale * model.domain_threshold_
    ax.plot(along, height, color=COLORS[0], linewidth=1.2)
    ax.plot([0, length], [border, border], ":", color=QUIET, linewidth=1)
    for low, high in drawing.intervals(along, density < model.domain_threshold_):
        ax.fill_between([max(low, 0), min(high, length)], floor, -BAND_GAP, facecolor="none",
                        edgecolor=QUIET, hatch="////", linewidth=0)  # fmt: skip
    ax.set_yticks([floor + band / 2], ["density"], fontsize="small")
    # Outside the axes, clear of their edge in a small subplot too.
    drawing.write_note(ax, "domain", (1, border), (2, 0), xycoords=ax.get_yaxis_transform(),
                       fontsize="x-small", va="center", annotation_clip=False)  # fmt: skip


# ---- items --------------------------------------------------------------------------------------


@dataclass(frozen=True)
class ItemStyle:
    """How items are drawn."""

    shape: tuple[int, ...] | None  # of an image; None for a curve
    low: float  # ends of the scale
    high: float
    color_map: str = "gray"

    @property
    def is_curve(self) -> bool:
        """Whether items are curves, which may be stretched."""
        return self.shape is None

    @property
    def aspect(self) -> float:
        """Height over width of an item."""
        return CURVE_ASPECT if self.shape is None else self.shape[0] / self.shape[1]


def _check_numbers(model: TwoWayModel) -> None:
    """Raise for a model of a mixed table."""
    if model._mixed_columns():
        raise ValueError(NO_ITEMS)


def item_style(model: TwoWayModel, given: tuple[int, ...] | None, kind: str) -> ItemStyle:
    """Return how the items of a model are drawn; ``given`` is the shape of an image, if told."""
    check_choice("kind", kind, ("auto", "image", "curve"))
    shape = None if kind == "curve" else known_shape(model, given)
    if kind == "image" and shape is None:
        raise ValueError(
            "Images need their shape: pass `image_shape=(height, width)`, or note it once by "
            "model.annotate(image_shape=(height, width))."
        )
    Y = np.asarray(model.data_, dtype=np.float64)
    low, high = (float(end) for end in np.nanpercentile(Y, [CUT, 100 - CUT]))
    if high <= low:
        low, high = float(np.nanmin(Y)) - 0.5, float(np.nanmax(Y)) + 0.5
    if shape is None:
        return ItemStyle(None, low, high)
    # Dark on light for drawings, light on dark for photographs.
    pixels = Y.reshape(len(Y), shape[0], shape[1], -1)
    rim = np.concatenate([pixels[:, 0].ravel(), pixels[:, -1].ravel()])
    is_drawing = np.nanmedian(rim) < low + PAPER * (high - low)
    return ItemStyle(shape, low, high, "gray_r" if is_drawing else "gray")


def draw_items(
    ax: Axes, rows: FloatArray, centers: FloatArray, side: tuple[float, float], style: ItemStyle
) -> None:
    """Draw rows (m, D) at places (m, 2), each in a box of a width and a height."""
    if style.shape is None:
        _draw_curves(ax, rows, centers, side, style)
        return
    height = FILLED * min(side[1], side[0] * style.aspect)
    width = height / style.aspect
    images = rows.reshape(-1, *style.shape).astype(np.float64)
    if len(style.shape) == 3:
        # Colours are not scaled by matplotlib.
        images = np.clip((images - style.low) / (style.high - style.low), 0, 1)
    for image, (x, y) in zip(images, centers, strict=True):
        extent = (x - width / 2, x + width / 2, y - height / 2, y + height / 2)
        ax.imshow(image, extent=extent, aspect=ax.get_aspect(), cmap=style.color_map,
                  vmin=style.low, vmax=style.high, zorder=2)  # fmt: skip


def _draw_curves(
    ax: Axes, rows: FloatArray, centers: FloatArray, side: tuple[float, float], style: ItemStyle
) -> None:
    """Draw rows as curves over the number of the feature, each in a faint frame."""
    frame = FRAMED * np.asarray(side)
    box = IN_FRAME * frame
    along = np.linspace(-0.5, 0.5, max(rows.shape[1], 2)) * box[0]
    if rows.shape[1] == 1:
        rows = np.repeat(rows, 2, axis=1)
    up = (np.clip((rows - style.low) / (style.high - style.low), 0, 1) - 0.5) * box[1]
    curves = np.stack([along + centers[:, :1], up + centers[:, 1:]], axis=2)
    frames = centers[:, None] + CORNERS * frame / 2
    ax.add_collection(PolyCollection(list(frames), facecolors="white", edgecolors=MISSING,
                                     linewidths=0.5, zorder=2))  # fmt: skip
    ax.add_collection(LineCollection(list(curves), colors=COLORS[0], linewidths=0.8, zorder=2.1))
