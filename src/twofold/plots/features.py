"""How features move over the map.

The slope df_j/dx_m says how feature j moves with latent coordinate m: over a neighbourhood
(``model.slopes``) where the model keeps its rows, else at the place itself (``model.jacobian``).
What matters to a feature is that slope times how far the rows are spread along the coordinate, s_m,
in units of the feature's own standard deviation σ_j, over the rows i:

    importance_j² = Σ_m c_jm²,    c_jm = (s_m / σ_j) sqrt(mean_i (df_j/dx_m)(x_i)²)

Squares add up, so a bar of length importance_j is split into parts as long as c_jm² are large.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from twofold.array_types import FloatArray, IntArray
from twofold.checks.parameters import check_count
from twofold.contract import TwoWayModel
from twofold.engine.threads import slices
from twofold.plots import drawing
from twofold.plots.drawing import AS_WRITTEN, COLORS, category_style
from twofold.plots.latent_view import BLOCK, LatentView, latent_name
from twofold.plots.names import LINE_INCHES, fit_titles, shortened
from twofold.plots.row_colors import (
    feature_names,
    feature_number,
    feature_ticks,
    feature_titles,
    mixed_parts,
)
from twofold.plots.ticks import Ticks
from twofold.rowwise import mean_and_deviation

PAINTED = 110
# Arrows along the longer side: of one map, and of each of many.
ARROWS, FEWER_ARROWS = 20, 12
# An arrow is the mean gradient over this many places squared: that at one place tells little of a
# map with bumps between its rows. Arrows shorter than a part of the longest are left out.
PLACES_EACH = 3
SHORTEST = 0.2
MOST_PANELS = 12
PANEL_COLUMNS = 4
# Letters of a name beside a bar, and beside a map.
MOST_LETTERS, LETTERS_BESIDE_MAP = 40, 26
# Entries of a legend side by side.
MOST_IN_LINE = 4
# Told apart without colour.
HATCHES = ("", "////", "....", "xxxx")
# Rows at which the Jacobian is looked at; more change its mean very little.
MOST_ROWS = 2000


def sensitivity(
    model: TwoWayModel,
    feature: str | int,
    *,
    dims: tuple[int, int] = (0, 1),
    ax: Axes | None = None,
) -> Axes:
    """Draw how one feature moves over the map.

    The colour is the feature's value as the model generates it. Arrows point to where it grows and
    are longer where it grows faster: slopes over a neighbourhood, not the derivative. With one
    latent dimension it is a curve; with more than two, the dimensions not shown are those of the
    nearest row.

    Parameters
    ----------
    model : fitted model
    feature : str or int
        Name ("x1", "x2", ... if it has none) or number, from 0, of a column of the data. A column
        of a mixed table is drawn in its units; of a category it is the level that changes most,
        unless one is named, "colour = red".
    dims : pair of int, default=(0, 1)
    ax : matplotlib Axes, default=None

    Examples
    --------
    >>> from twofold import UKR, plots
    >>> from twofold.datasets import load_digits_split
    >>> model = UKR(init="pca", max_iter=5).fit(load_digits_split().Y_train[:200])
    >>> ax = plots.sensitivity(model, 36)
    """
    number = _numbers_of(model, [feature])[0]
    view = LatentView(model.as_numbers(), dims)
    ax = drawing.open_map(ax, view)
    name = shortened(feature_titles(model)[number], LETTERS_BESIDE_MAP)
    _Fields(view, [number], ARROWS, feature_ticks(model)).draw(ax, 0, name)
    return ax


def sensitivities(
    model: TwoWayModel,
    features: Sequence[str | int] | None = None,
    *,
    dims: tuple[int, int] = (0, 1),
    figure: Figure | None = None,
) -> Figure:
    """Draw how several features move over the map, one :func:`sensitivity` each.

    Parameters
    ----------
    model : fitted model
    features : sequence of str or int, default=None
        Names or numbers, from 0, of columns; None takes the twelve that change most over the map,
        in the units in which the model measures distances. Long names are broken and shortened. Of
        a column of a mixed table it is the level that changes most, or the time that has passed.
    dims : pair of int, default=(0, 1)
    figure : matplotlib Figure, default=None
        Where to draw; a new one by default. One that is empty and has no layout gets a constrained
        one, so that nothing overlaps.

    Examples
    --------
    >>> from twofold import UKR, plots
    >>> from twofold.datasets import load_digits_split
    >>> model = UKR(init="pca", max_iter=5).fit(load_digits_split().Y_train[:200])
    >>> figure = plots.sensitivities(model, [20, 36, 42])
    """
    numbers = _numbers_of(model, features)
    names, ticks, model = feature_titles(model), feature_ticks(model), model.as_numbers()
    if not numbers:
        raise ValueError("`features` must name at least one feature; got none.")
    columns = min(PANEL_COLUMNS, len(numbers))
    rows = -(-len(numbers) // columns)
    view = LatentView(model, dims)
    fields = _Fields(view, numbers, FEWER_ARROWS, ticks)
    extent = np.ptp(view.limits, axis=1)
    height = 2.0 if view.is_line else float(np.clip(2.1 * extent[1] / extent[0], 1.0, 4.0))
    found: Any = figure
    if figure is None:
        import matplotlib.pyplot as plt

        size = (2.7 * columns, (height + 0.3) * rows + 0.3)
        found = plt.figure(figsize=size, layout="constrained")
    elif isinstance(figure, Figure) and figure.get_layout_engine() is None and not figure.axes:
        # A part of a figure is laid out with the whole.
        figure.set_layout_engine("constrained")
    shared = {"sharex": True, "sharey": not view.is_line}
    panels = found.subplots(rows, columns, squeeze=False, **shared).ravel()
    for k, (panel, number) in enumerate(zip(panels, numbers, strict=False)):
        fields.draw(panel, k, None)
        panel.set_title(names[number], fontsize="medium", **AS_WRITTEN)
        panel.label_outer()
        # Curves have each their own unit.
        panel.tick_params(labelleft=view.is_line or k % columns == 0)
    for panel in panels[len(numbers) :]:
        panel.remove()
    n_more = fit_titles(list(panels[: len(numbers)]), columns)
    if figure is None:
        # Long titles must not take the room of the maps.
        found.set_figheight(found.get_figheight() + LINE_INCHES * n_more)
    return found


def important_features(model: TwoWayModel, n: int = 20, *, ax: Axes | None = None) -> Axes:
    """Draw which features change most over the map, and along which latent coordinate.

    A bar is the root mean square slope of the feature times the spread of the rows, in units of
    the feature's standard deviation: 0 for a feature that the map leaves alone, about 1 for one
    that runs evenly across it, more for one that goes up and down. Its parts are the shares of the
    latent coordinates in the square.

    Parameters
    ----------
    model : fitted model
    n : int, default=20
        How many features, the most important ones; those of one value in every row are left out.
    ax : matplotlib Axes, default=None

    Examples
    --------
    >>> from twofold import UKR, plots
    >>> from twofold.datasets import load_digits_split
    >>> model = UKR(init="pca", max_iter=5).fit(load_digits_split().Y_train[:200])
    >>> ax = plots.important_features(model, 10)
    """
    check_count("n", n)
    numbers = model.as_numbers()
    deviation = mean_and_deviation(numbers.data_, model.weights_)[1][:, None]
    # c_jm (D, q) of the module's formula; 0 for features that are constant.
    parts = np.where(deviation > 0, _changes(numbers) / np.where(deviation > 0, deviation, 1), 0)
    columns, varies = model._mixed_columns(), deviation[:, 0] > 0
    if columns:
        parts = _by_column(parts * deviation, columns, deviation[:, 0])
        varies = np.array([bool(column.features) for column in columns])
    ranked = _ranked(parts)
    shown = ranked[varies[ranked]][:n]
    total = np.sqrt((parts[shown] ** 2).sum(axis=1))
    shares = parts[shown] ** 2 / np.maximum(total, np.finfo(float).tiny)[:, None]
    known = feature_names(model)
    names = [shortened(known[number], MOST_LETTERS) for number in shown]
    ax = drawing.open_axes(ax, (4.0 + 0.08 * max(map(len, names)), 0.8 + 0.22 * len(shown)))
    places, left = np.arange(len(shown)), np.zeros(len(shown))
    for m in range(parts.shape[1]):
        style = category_style(m)
        ax.barh(places, shares[:, m], left=left, height=0.75, color=style.color,
                label=latent_name(m), edgecolor="white", linewidth=0.5,
                hatch=HATCHES[m % len(HATCHES)])  # fmt: skip
        left += shares[:, m]
    ax.set_yticks(places, names, **AS_WRITTEN)
    ax.set_ylim(len(shown) - 0.4, -0.6)
    ax.set_xlabel("change, in standard deviations")
    if parts.shape[1] > 1:
        # Above the bars, which may all be as long as the axes.
        ax.legend(frameon=False, loc="lower left", bbox_to_anchor=(0, 1), ncols=MOST_IN_LINE,
                  borderaxespad=0.2, fontsize="small")  # fmt: skip
    drawing.light_frame(ax)
    return ax


# Places (m, 2) of arrows, and their directions for each feature (m, k, 2).
Arrows = tuple[FloatArray, FloatArray]


class _Fields:
    """The values of some features over a lattice, and their gradients at fewer places."""

    def __init__(
        self, view: LatentView, features: list[int], n_arrows: int, ticks: list[Ticks | None]
    ) -> None:
        self.view, self.features = view, features
        self.ticks = [ticks[number] for number in features]
        self.lattice = view.lattice(PAINTED)
        self.support = view.support(self.lattice)
        self.values = self.lattice.evaluate(
            lambda X: view.model.inverse_transform(X)[:, features],
            self.lattice.nearly(self.support >= 0),
            len(features),
        )
        self.arrows = None if view.is_line else self._gradients(n_arrows)

    def _slopes(self, X: FloatArray) -> FloatArray:
        J = _slopes(self.view.model, X)[:, self.features]
        return J[:, :, list(self.view.dims)].reshape(len(X), -1)

    def _gradients(self, n_arrows: int) -> Arrows:
        lattice = self.view.lattice(PLACES_EACH * n_arrows)
        inside = self.view.support(lattice) > 0
        slopes = lattice.evaluate(self._slopes, inside, 2 * len(self.features))
        shape = [len(axis) for axis in lattice.axes[::-1]]
        middle, means = _block_means(lattice.axes, slopes.reshape(*shape, -1))
        return middle, means.reshape(-1, len(self.features), 2)

    def draw(self, ax: Axes, k: int, title: str | None) -> None:
        """Draw the k-th feature."""
        values, lattice, ticks = self.values[:, k], self.lattice, self.ticks[k]
        if self.arrows is None:
            drawing.shade_outside(ax, self.view, lattice, self.support)
            ax.plot(lattice.axes[0], np.where(self.support >= 0, values, np.nan), color=COLORS[0])
            ax.set_ylabel(title or "", **AS_WRITTEN)
            if ticks is not None:
                ticks(ax.yaxis)
            drawing.light_frame(ax)
        else:
            painted = drawing.paint(ax, lattice, values, self.support)
            bar = drawing.add_color_bar(ax, painted, title, ticks)
            if title is None:
                bar.ax.tick_params(labelsize="x-small")
            drawing.draw_border(ax, lattice, self.support)
            _draw_arrows(ax, self.arrows[0], self.arrows[1][:, k])
        drawing.frame_map(ax, self.view)


def _block_means(axes: list[FloatArray], values: FloatArray) -> Arrows:
    """Return middles (b, 2) and means (b, c) of blocks of a lattice of values (m2, m1, c)."""
    # Blocks with less than half of their places known are left out.
    side = PLACES_EACH
    counts = [len(axis) // side for axis in axes]
    middles = [
        axis[: count * side].reshape(count, side).mean(axis=1)
        for axis, count in zip(axes, counts, strict=True)
    ]
    blocks = values[: counts[1] * side, : counts[0] * side]
    blocks = blocks.reshape(counts[1], side, counts[0], side, -1).swapaxes(1, 2)
    blocks = blocks.reshape(counts[0] * counts[1], side * side, -1)
    places = np.stack([along.ravel() for along in np.meshgrid(*middles)], axis=1)
    kept = 2 * np.isfinite(blocks[:, :, 0]).sum(axis=1) > side * side
    return places[kept], np.nanmean(blocks[kept], axis=1)


def _draw_arrows(ax: Axes, places: FloatArray, slopes: FloatArray) -> None:
    """Draw gradients, the longest about as long as the places are apart."""
    length = np.hypot(slopes[:, 0], slopes[:, 1])
    if not length.any():
        return
    longest = float(np.percentile(length, 95)) or float(length.max())
    shown = length > SHORTEST * longest
    scaled = slopes[shown] / np.maximum(length[shown], longest)[:, None]
    gaps = np.diff(np.unique(places[:, 0]))
    step = float(gaps.min()) if len(gaps) else 1.0
    x, y, u, v = *places[shown].T, *(step * scaled).T
    ax.quiver(x, y, u, v, angles="xy", scale_units="xy", scale=1, pivot="mid",
              units="xy", width=0.11 * step, color="white", edgecolor="black", linewidth=0.5,
              headwidth=3, headlength=3, headaxislength=2.8, zorder=2)  # fmt: skip


def _changes(model: TwoWayModel) -> FloatArray:
    """Return c_jm σ_j (D, q) of the module's formula: changes in the units of the features."""
    X = np.asarray(model.embedding_, dtype=np.float64)
    chosen = X[:: -(-len(X) // MOST_ROWS)]
    squares = np.zeros((model.n_features_in_, X.shape[1]))
    for part in slices(len(chosen), BLOCK):
        J = _slopes(model, chosen[part]).astype(np.float64)
        squares += (J**2).sum(axis=0)
    return np.sqrt(squares / len(chosen)) * X.std(axis=0)


def _numbers_of(model: TwoWayModel, features: Sequence[str | int] | None) -> list[int]:
    """Return the features that are named; None takes those that change most over the map.

    Of a column of a mixed table that is named it is the one that changes most.
    """
    columns, numbers = model._mixed_columns(), model.as_numbers()
    if features is not None:
        shown = [_shown_of(model, feature) for feature in features]
        if not any(len(own) > 1 for own in shown):
            named = zip(features, shown, strict=True)
            return [own[0] if own else feature_number(numbers, name) for name, own in named]
    # A model of scaled columns measures each in units of its spread.
    changes = _changes(numbers) / np.reshape(getattr(numbers, "spread_", 1.0), (-1, 1))
    if features is None:
        ranked = _of_each_column(changes, columns) if columns else _ranked(changes).tolist()
        return ranked[:MOST_PANELS]
    size = (changes**2).sum(axis=1)
    return [
        max(own, key=lambda k: size[k]) if own else feature_number(numbers, name)
        for name, own in zip(features, shown, strict=True)
    ]


def _shown_of(model: TwoWayModel, name: str | int) -> list[int]:
    """Return the features of a column of a mixed table worth a picture, [] if none is called so."""
    for column, part in mixed_parts(model):
        if isinstance(name, str) and column.name == name:
            return [part.start + k for k in column.shown]
    return []


def _by_column(changes: FloatArray, columns: Sequence[Any], deviation: FloatArray) -> FloatArray:
    """Return the changes (C, q) of whole columns, given those of their features (D, q).

    In units of the column's deviation, the root of the sum of the variances of its features.
    """
    found, start = [], 0
    for column in columns:
        part = slice(start, start + len(column.features))
        start = part.stop
        whole = np.sqrt((deviation[part] ** 2).sum()) or 1.0
        found.append(np.sqrt((changes[part] ** 2).sum(axis=0)) / whole)
    return np.stack(found)


def _of_each_column(changes: FloatArray, columns: Sequence[Any]) -> list[int]:
    """Return the feature of each column that changes most, given changes (D, q).

    Columns are in the order of falling changes of all of their features.
    """
    squares, start, found = (changes**2).sum(axis=1), 0, []
    for column in columns:
        own = squares[start : start + len(column.features)]
        if len(own):
            best = max(column.shown, key=lambda k, own=own: own[k])  # type: ignore[misc]
            found.append((float(own.sum()), start + best))
        start += len(own)
    return [number for _, number in sorted(found, key=lambda pair: -pair[0])]


def _slopes(model: TwoWayModel, X: FloatArray) -> FloatArray:
    """Return slopes (m, D, q) at latent points that neighbouring places agree about, if known."""
    return model.slopes(X) if model.has_noise() else model.jacobian(X)


def _ranked(parts: FloatArray) -> IntArray:
    """Return features by falling importance, given their parts (D, q)."""
    return np.argsort(-(parts**2).sum(axis=1), kind="stable")
