"""One row of data as a small picture: an image where its shape is known, a curve otherwise.

All items of a picture share one scale, from near the lowest to near the highest value of the data.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection, PolyCollection

from twofold.array_types import FloatArray
from twofold.contract import TwoWayModel
from twofold.plots.palette import COLORS, MISSING
from twofold.plots.row_facts import image_shape

# A few far values must not make all items grey: the scale leaves out this share at each end.
CUT = 0.1
# How much of its box an item fills; a curve has a frame of its own, and room within it.
FILLED = 0.92
FRAMED, IN_FRAME = 0.88, 0.84
CURVE_ASPECT = 0.6
CORNERS = np.array([(-1, -1), (1, -1), (1, 1), (-1, 1)])
# Images whose rim lies this close to the lowest value are ink on paper.
PAPER = 0.1


@dataclass(frozen=True)
class ItemStyle:
    """How items are drawn.

    Attributes
    ----------
    shape : tuple of int or None
        Shape of an image; None for a curve.
    low, high : float
        Ends of the scale.
    color_map : str
        Of images.
    """

    shape: tuple[int, ...] | None
    low: float
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


def item_style(model: TwoWayModel, given: tuple[int, ...] | None, kind: str) -> ItemStyle:
    """Return how the items of a model are drawn.

    Parameters
    ----------
    model : fitted model
    given : tuple of int or None
        Shape of an image, if the model is not to be asked.
    kind : {"auto", "image", "curve"}

    Returns
    -------
    ItemStyle
    """
    if kind not in ("auto", "image", "curve"):
        raise ValueError(f"`kind` must be 'auto', 'image' or 'curve'; got {kind!r}.")
    shape = None if kind == "curve" else image_shape(model, given)
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
    return ItemStyle(shape, low, high, _color_map(Y, shape, low, high))


def _color_map(Y: FloatArray, shape: tuple[int, ...], low: float, high: float) -> str:
    """Return dark on light for drawings, light on dark for photographs."""
    pixels = Y.reshape(len(Y), shape[0], shape[1], -1)
    rim = np.concatenate([pixels[:, 0].ravel(), pixels[:, -1].ravel()])
    return "gray_r" if np.nanmedian(rim) < low + PAPER * (high - low) else "gray"


def draw_items(
    ax: Axes, rows: FloatArray, centers: FloatArray, side: tuple[float, float], style: ItemStyle
) -> None:
    """Draw items at places of a picture.

    Parameters
    ----------
    ax : Axes
    rows : array of shape (m, D)
    centers : array of shape (m, 2)
    side : pair of float
        Width and height of the box of an item.
    style : ItemStyle
    """
    if style.shape is None:
        _draw_curves(ax, rows, centers, side, style)
        return
    height = FILLED * min(side[1], side[0] * style.aspect)
    width = height / style.aspect
    for row, (x, y) in zip(rows, centers, strict=True):
        ax.imshow(
            _pixels(row, style),
            extent=(x - width / 2, x + width / 2, y - height / 2, y + height / 2),
            aspect=ax.get_aspect(),
            cmap=style.color_map,
            vmin=style.low,
            vmax=style.high,
            zorder=2,
        )


def _pixels(row: FloatArray, style: ItemStyle) -> FloatArray:
    assert style.shape is not None
    pixels = row.reshape(style.shape).astype(np.float64)
    if len(style.shape) == 2:
        return pixels
    return np.clip((pixels - style.low) / (style.high - style.low), 0, 1)


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
    ax.add_collection(
        PolyCollection(list(frames), facecolors="white", edgecolors=MISSING, linewidths=0.5,
                       zorder=2)
    )  # fmt: skip
    ax.add_collection(LineCollection(list(curves), colors=COLORS[0], linewidths=0.8, zorder=2.1))
