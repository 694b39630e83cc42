"""Maps of the latent space: its rows, and how much the model stretches it.

The border of the domain is where the latent density falls to ``domain_threshold_``. The
magnification is ``sqrt(det(JᵀJ))``, data volume per latent volume, as the model computes it; its
logarithm is drawn because its differences are factors.
"""

from typing import Any

import numpy as np
from matplotlib.axes import Axes
from scipy.spatial import cKDTree

from twofold.array_types import BoolArray, FloatArray
from twofold.contract import TwoWayModel
from twofold.plots import drawing
from twofold.plots.drawing import COLORS, INK, QUIET
from twofold.plots.latent_view import LatentView, Lattice
from twofold.plots.names import draw_names
from twofold.plots.row_colors import (
    Categories,
    log_magnification,
    row_colors,
)

# The lattice of what needs a Jacobian at every place.
JACOBIAN_SIZE = 110
# Magnifications this far below the highest look alike.
MOST_DECADES = 4.0
N_DENSITY_LINES = 7
# Quartiles of a density this near to each other show nothing.
FLAT_RATIO = 1.1
NEARLY = 1e-6


def latent_map(
    model: TwoWayModel,
    *,
    color: Any = None,
    dims: tuple[int, int] = (0, 1),
    ax: Axes | None = None,
    size: float | None = None,
    domain: bool = True,
    contours: bool = False,
    names: bool = False,
) -> Axes:
    """Draw the rows a model was fitted to in its latent space.

    With more than two latent dimensions two are shown, and the domain is drawn where the others are
    those of the nearest row; rows of a lattice that would hide one another are shifted along a
    slant, in the order of the coordinates that are not shown. With one dimension rows lie at their
    coordinate, one above the other in order.

    Parameters
    ----------
    model : fitted model
    color : str, int or array-like of shape (n_samples,), default=None
        What rows are coloured by: a label column (None takes the first that ``annotate`` noted), a
        feature by name ("x1", "x2", ... if it has none) or number from 0, a column of a mixed
        table in its units, or by its levels, "density",
        "magnification" (its logarithm), "error" (distance to the reconstruction), or a value for
        each row. Text, and integers of at most 20 values, get a legend, other numbers a colour bar.
        If names clash, your own come first.
    dims : pair of int, default=(0, 1)
        Which latent coordinates are shown.
    ax : matplotlib Axes, default=None
    size : float, default=None
        Area of a point, in points squared; by the number of rows if None.
    domain : bool, default=True
        Draw the border of the domain and shade what is outside.
    contours : bool, default=False
        Draw lines of equal latent density; each is at twice the density of the one outside it. With
        one dimension it is a hill at the bottom, and nothing where the density is flat.
    names : bool, default=False
        Write the names of rows beside them, as many as fit without covering anything. They are
        placed for the size the figure has now.

    Examples
    --------
    >>> from twofold import UKR, plots
    >>> from twofold.datasets import load_digits_split
    >>> digits = load_digits_split()
    >>> model = UKR(init="pca", max_iter=5).fit(digits.Y_train[:200])
    >>> ax = plots.latent_map(model, color=digits.labels_train[:200])
    """
    colors, model = row_colors(model, color), model.as_numbers()
    view = LatentView(model, dims)
    ax = drawing.open_map(ax, view)
    drawing.frame_map(ax, view)
    # The rows of a line stand one above the other.
    above = np.arange(1, len(view.rows) + 1)
    seen = np.column_stack([view.rows[:, 0], above]) if view.is_line else view.slanted_rows
    if domain or contours:
        lattice = view.lattice()
        support = view.support(lattice)
        if domain:
            drawing.shade_outside(ax, view, lattice, support)
        if contours:
            _draw_density(ax, view, lattice)
    if view.is_line:
        ax.set_ylabel("row")
        ax.set_ylim(0.5 - 0.02 * len(seen), 0.5 + 1.02 * len(seen))
        drawing.light_frame(ax)
    area = _area(len(seen)) if size is None else size
    points = drawing.draw_rows(ax, seen, colors, area)
    if isinstance(colors, Categories):
        drawing.add_legend(ax, colors, None if view.is_line else seen)
    elif colors is not None:
        drawing.add_color_bar(ax, points, colors.title, colors.ticks)
    if names:
        draw_names(ax, model, seen, area)
    return ax


def magnification(
    model: TwoWayModel, *, dims: tuple[int, int] = (0, 1), ax: Axes | None = None
) -> Axes:
    """Paint the domain by how much the model stretches the latent space there.

    Where the picture is bright, neighbours on the map are far apart in the data: a border between
    clusters, or a fold. With one latent dimension it is a curve; with more than two, the dimensions
    not shown are those of the nearest row. Nothing is painted where no slope is known.

    Parameters
    ----------
    model : fitted model
    dims : pair of int, default=(0, 1)
    ax : matplotlib Axes, default=None

    Examples
    --------
    >>> from twofold import UKR, plots
    >>> from twofold.datasets import load_digits_split
    >>> model = UKR(init="pca", max_iter=5).fit(load_digits_split().Y_train[:200])
    >>> ax = plots.magnification(model)
    """
    model = model.as_numbers()
    view = LatentView(model, dims)
    ax = drawing.open_map(ax, view)
    lattice = view.lattice(JACOBIAN_SIZE)
    support = view.support(lattice)
    wanted = lattice.nearly(support >= 0)
    values = lattice.evaluate(lambda X: log_magnification(model, X), wanted)[:, 0]
    values[np.isneginf(values) & ~_near_rows(model, lattice.places)] = np.nan
    # A place that is flat apart from rounding has a magnification of nearly 0, or of 0.
    values = np.maximum(values, drawing.color_limits(values)[1] - MOST_DECADES)
    title = "log10 magnification"
    rasterized = len(view.rows) > drawing.MOST_VECTOR_POINTS
    if view.is_line:
        drawing.shade_outside(ax, view, lattice, support)
        values = np.where(support >= 0, values, np.nan)
        ax.plot(lattice.axes[0], values, color=COLORS[0])
        low, high = drawing.color_limits(values)
        ax.set_ylim(low - 0.1 * (high - low), high + 0.1 * (high - low))
        ax.plot(view.rows[:, 0], np.full(len(view.rows), 0.015), "|", color=INK, markersize=6,
                alpha=0.5, transform=ax.get_xaxis_transform(), rasterized=rasterized)  # fmt: skip
        ax.set_ylabel(title)
        drawing.light_frame(ax)
    else:
        drawing.add_color_bar(ax, drawing.paint(ax, lattice, values, support), title)
        drawing.draw_border(ax, lattice, support)
        # Faint, so that what is painted below the rows stays in view.
        area = max(_area(len(view.rows)) / 5, 0.4)
        ax.scatter(view.rows[:, 0], view.rows[:, 1], s=area, color="white", alpha=0.6,
                   linewidths=0, zorder=2, rasterized=rasterized)  # fmt: skip
    drawing.frame_map(ax, view)
    return ax


def _near_rows(model: TwoWayModel, X: FloatArray) -> BoolArray:
    """Say which places (m, q) have a row within a bandwidth of the latent density."""
    # Further out all neighbours may lie in one plane. A mean of neighbours then has no slope across
    # it, and a magnification of 0 means that nothing is known.
    unit = model.latent_unit()
    distance, _ = cKDTree(model.embedding_ / unit).query(X / unit)
    return np.asarray(distance <= 1 + NEARLY)


def _area(n: int) -> float:
    """Return the area of a point, so that n of them fill about the same part of a figure."""
    return float(np.clip(9000 / n, 0.8, 28))


def _draw_density(ax: Axes, view: LatentView, lattice: Lattice) -> None:
    """Draw lines of equal density, or the density over a line as a hill at the bottom."""
    density = view.model.density(lattice.places).astype(np.float64)
    if view.is_line:
        inside = density[density >= view.model.domain_threshold_]
        low, high = np.quantile(inside, [0.25, 0.75]) if len(inside) else (0.0, 0.0)
        # Where the density is one plateau, as that of ranks is, a hill would show nothing.
        if high > FLAT_RATIO * low:
            height = 0.25 * density / density.max()
            ax.fill_between(lattice.axes[0], 0, height, transform=ax.get_xaxis_transform(),
                            color=QUIET, alpha=0.4, linewidth=0, zorder=1)  # fmt: skip
        return
    levels = density.max() / 2.0 ** np.arange(N_DENSITY_LINES, 0, -1)
    levels = levels[levels > view.model.domain_threshold_]
    if len(levels):
        field = lattice.shaped(density)
        ax.contour(*lattice.axes, field, levels=levels, colors=[QUIET], linewidths=0.4, zorder=1.4)
