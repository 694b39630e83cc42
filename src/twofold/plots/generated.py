"""Pictures of what the model generates: items over the whole map, and along a way through it."""

from __future__ import annotations

from numbers import Integral, Real
from typing import Any

import numpy as np
from matplotlib.axes import Axes

from twofold.array_types import FloatArray
from twofold.contract import TwoWayModel
from twofold.plots.drawing import draw_border, frame_map, intervals, open_axes, open_map
from twofold.plots.items import ItemStyle, draw_items, item_style
from twofold.plots.latent_view import LatentView
from twofold.plots.palette import COLORS, INK, QUIET
from twofold.plots.row_facts import row_name, row_number

# The density below the items of a path, in units of an item's width.
BAND, BAND_GAP = 0.8, 0.12
FINE_STEPS = 400


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

    Only places inside the domain have an item. With one latent dimension it is a row of items; of
    more than two, a cut through the median of those that are not shown.

    Parameters
    ----------
    model : fitted model
    shape : (int, int) or int, default=(12, 12)
        At most how many places along the first and the second axis; one number counts for both.
        Places are as far apart as lets items lie side by side.
    dims : pair of int, default=(0, 1)
        Which latent coordinates are shown.
    image_shape : (height, width) or (height, width, 3), default=None
        Shape of an item; None takes what ``annotate`` noted.
    kind : {"auto", "image", "curve"}, default="auto"
        Items as images, or as curves over the number of the feature; "auto" draws images if their
        shape is known.
    ax : matplotlib Axes, default=None
        Where to draw; a new figure by default.

    Returns
    -------
    matplotlib Axes

    Examples
    --------
    >>> from twofold import UKR, plots
    >>> from twofold.datasets import load_digits_split
    >>> model = UKR(init="pca", max_iter=5).fit(load_digits_split().Y_train[:200])
    >>> ax = plots.grid(model, shape=6, image_shape=(8, 8))
    """
    view, style = LatentView(model, dims), item_style(model, image_shape, kind)
    side = _side(shape, np.ptp(view.limits, axis=1), style.aspect)
    axes = [_centers(low, high, step) for (low, high), step in zip(view.limits, side, strict=False)]
    centers = np.stack([along.ravel() for along in np.meshgrid(*axes)], axis=1)
    places = view.places(centers)
    inside = model.in_domain(places)
    ax = open_axes(ax, (6.4, 1.0)) if view.is_line else open_map(ax, view)
    frame_map(ax, view)
    if view.is_line:
        _make_strip(ax, side[1])
        centers = np.column_stack([centers, np.zeros(len(centers))])
    else:
        lattice = view.lattice()
        draw_border(ax, lattice, view.support(lattice))
    if inside.any():
        rows = model.inverse_transform(places[inside])
        draw_items(ax, rows, centers[inside], side, style)
    frame_map(ax, view)
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


def _make_strip(ax: Axes, height: float) -> None:
    """Make axes as high as one item: a latent space of one dimension has no other axis."""
    ax.set_ylim(-height / 2, height / 2)
    ax.set_aspect("equal")
    ax.set_yticks([])
    ax.spines[["left", "top", "right"]].set_visible(False)


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

    Below the items the latent density along the way is drawn, and the density at the border of the
    domain as a dotted line. Where the way leaves the domain the density is hatched: nothing in the
    data supports the items there.

    Parameters
    ----------
    model : fitted model
    start, stop : int, str or array-like of shape (n_components,)
        The ends: numbers or names of rows passed to ``fit``, or latent points.
    steps : int, default=10
        How many items, both ends counted.
    image_shape, kind :
        How an item is drawn, as in :func:`grid`.
    ax : matplotlib Axes, default=None
        Where to draw; a new figure by default.

    Returns
    -------
    matplotlib Axes

    Examples
    --------
    >>> from twofold import UKR, plots
    >>> from twofold.datasets import load_digits_split
    >>> model = UKR(init="pca", max_iter=5).fit(load_digits_split().Y_train[:200])
    >>> ax = plots.path(model, 0, 1, steps=8, image_shape=(8, 8))
    """
    if not isinstance(steps, Integral) or steps < 2:
        raise ValueError(f"`steps` must be an integer of at least 2; got {steps!r}.")
    style = item_style(model, image_shape, kind)
    ends = [_latent_point(model, end) for end in (start, stop)]
    ax = open_axes(ax, (max(0.75 * steps, 4.0), 0.75 * style.aspect + 1.1))
    rows = model.inverse_transform(_between(*ends, int(steps)))
    centers = np.column_stack([np.arange(steps), np.full(steps, style.aspect / 2)])
    ax.set_aspect("equal")
    draw_items(ax, rows, centers, (1.0, style.aspect), style)
    _draw_band(ax, model, _between(*ends, FINE_STEPS), steps - 1)
    _frame_path(ax, [_end_name(model, end) for end in (start, stop)], int(steps), style)
    return ax


def _latent_point(model: TwoWayModel, where: Any) -> FloatArray:
    """Return the latent point (q,) of a row's number or name, or the point given."""
    if isinstance(where, str):
        where = row_number(model, where)
    n, q = model.embedding_.shape
    if isinstance(where, Integral):
        if not -n <= where < n:
            raise ValueError(f"Expected a row between 0 and {n - 1}; got {where}.")
        return np.asarray(model.embedding_[where], dtype=np.float64)
    point = np.atleast_1d(np.asarray(where, dtype=np.float64))
    if point.shape != (q,):
        raise ValueError(
            "The ends of a path must be numbers or names of rows, or latent points of shape "
            f"({q},); got an array of shape {point.shape}."
        )
    return point


def _between(start: FloatArray, stop: FloatArray, steps: int) -> FloatArray:
    t = np.linspace(0, 1, steps)[:, None]
    return (1 - t) * start + t * stop


def _end_name(model: TwoWayModel, where: Any) -> str:
    if isinstance(where, str):
        return where
    if isinstance(where, Integral):
        return row_name(model, int(where) % len(model.embedding_))
    point = [where] if isinstance(where, Real) else list(where)
    return f"({', '.join(f'{coordinate:.3g}' for coordinate in point)})"


def _draw_band(ax: Axes, model: TwoWayModel, way: FloatArray, length: float) -> None:
    """Draw the density along a way below its items."""
    density = model.density(way).astype(np.float64)
    along = np.linspace(0, length, len(way))
    scale = BAND / max(float(density.max()), 1.15 * model.domain_threshold_)
    floor = -BAND_GAP - BAND
    height = floor + scale * density
    border = floor + scale * model.domain_threshold_
    ax.plot(along, height, color=COLORS[0], linewidth=1.2)
    ax.plot([0, length], [border, border], ":", color=QUIET, linewidth=1)
    for low, high in intervals(along, density < model.domain_threshold_):
        ax.fill_between(
            [max(low, 0), min(high, length)], floor, -BAND_GAP, facecolor="none", edgecolor=QUIET,
            hatch="////", linewidth=0,
        )  # fmt: skip
    ax.set_yticks([floor + BAND / 2], ["density"], fontsize="small")
    ax.text(length + 0.04, border, "domain", fontsize="x-small", va="center", color=INK)


def _frame_path(ax: Axes, ends: list[str], steps: int, style: ItemStyle) -> None:
    ax.set_xlim(-0.5, steps - 0.5)
    ax.set_ylim(-BAND_GAP - BAND, style.aspect)
    ax.set_xticks([0, steps - 1], ends)
    ax.spines[["left", "top", "right"]].set_visible(False)
    ax.tick_params(axis="y", length=0)
