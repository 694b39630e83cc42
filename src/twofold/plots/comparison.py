"""Pictures of several embeddings side by side, and of how they were chosen between."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from matplotlib.axes import Axes
from matplotlib.ticker import MaxNLocator

from twofold.array_types import FloatArray
from twofold.plots import drawing
from twofold.plots.drawing import ACCENT, COLORS, INK, MISSING, QUIET, category_style
from twofold.plots.row_colors import Amounts, Categories, RowColors, row_colors

if TYPE_CHECKING:
    from twofold.metrics import CoRanking

# What `selection` returns; it stands above this layer, as it draws itself by these functions.
Comparison: TypeAlias = Any
DimensionChoice: TypeAlias = Any
MAPS_IN_A_ROW = 3
# Of each map, and of what stands to the right of all.
MAP_INCHES, SIDE_INCHES = 2.2, 4.0
# Points on a curve over K, in equal factors: more cannot be seen.
CURVE_POINTS = 200
# A continuity of exactly 1 has no place on a logarithmic axis.
LEAST_LOSS = 1e-5


def comparison(comparison: Comparison, figure: Any = None) -> Any:
    """Draw compared embeddings, best first, and the scores that decided.

    Rows are coloured by the labels of the comparison, or along the first principal component of
    the data, so that folds show as mixed colours and tears as jumps. To the right: evidence against
    the loss of continuity, in which the best are at the lower left, and how well neighbourhoods of
    every size are kept.

    Parameters
    ----------
    comparison : Comparison
        As :func:`twofold.selection.compare` returns it.
    figure : matplotlib Figure or SubFigure, default=None
        Where to draw; a new figure by default.

    Examples
    --------
    >>> from twofold import plots
    >>> from twofold.datasets import make_s_triangle
    >>> from twofold.selection import compare
    >>> found = compare(make_s_triangle(100, random_state=0).Y, ["pca", "isomap"], n_neighbors=8)
    >>> figure = plots.comparison(found)
    """
    names = list(comparison.table.index)
    n_rows = max(2, -(-len(names) // MAPS_IN_A_ROW))
    if figure is None:
        import matplotlib.pyplot as plt

        size = (MAPS_IN_A_ROW * MAP_INCHES + SIDE_INCHES, n_rows * (MAP_INCHES + 0.35))
        figure = plt.figure(figsize=size, layout="constrained")
    widths = (MAPS_IN_A_ROW * MAP_INCHES, SIDE_INCHES)
    left, right = figure.subfigures(1, 2, width_ratios=widths, wspace=0.03)
    axes = left.subplots(n_rows, MAPS_IN_A_ROW, squeeze=False).ravel()
    model = comparison.scored[names[0]].model
    colors = None if comparison.labels is None else row_colors(model, comparison.labels)
    if colors is None:
        rows = model.data_ - model.data_.mean(axis=0)
        colors = Amounts(rows @ np.linalg.svd(rows, full_matrices=False)[2][0])
    for place, (ax, name) in enumerate(zip(axes, names, strict=False)):
        _draw_map(ax, comparison.scored[name].embedding, colors)
        is_chosen = name == comparison.recommended
        ax.set_title(
            f"{place + 1}. {name}" + (" (recommended)" if is_chosen else ""),
            fontsize="medium",
            color=ACCENT if is_chosen else INK,
        )
        if place == len(names) - 1 and isinstance(colors, Categories):
            drawing.add_legend(ax, colors, None)
    for ax in axes[len(names) :]:
        ax.set_axis_off()
    above, below = right.subplots(2, 1)
    _draw_decision(above, comparison)
    coranking({name: comparison.scored[name].ranks for name in names}, ax=below)
    return figure


def coranking(coranking: CoRanking | Mapping[str, CoRanking], ax: Axes | None = None) -> Axes:
    """Draw how well embeddings keep neighbourhoods of every size.

    The curve is R_NX: 1 is perfect, 0 chance; the legend has the mean over the logarithmic axis.

    Parameters
    ----------
    coranking : CoRanking, or mapping of names to these
        As :func:`twofold.metrics.coranking` returns it.
    ax : matplotlib Axes, default=None

    Examples
    --------
    >>> import numpy as np
    >>> from twofold import metrics, plots
    >>> Y = np.random.default_rng(0).normal(size=(60, 3))
    >>> ax = plots.coranking({"shadow": metrics.coranking(Y, Y[:, :2])})
    """
    curves = dict(coranking) if isinstance(coranking, Mapping) else {"": coranking}
    if not curves:
        raise ValueError("`coranking` must hold at least one curve; got none.")
    ax = drawing.open_axes(ax, (4.8, 3.2))
    for number, (name, ranks) in enumerate(curves.items()):
        largest = len(ranks.r_nx())
        sizes = np.unique(np.geomspace(1, largest, CURVE_POINTS).round().astype(int))
        label = f"{name}  {ranks.auc:.2f}" if name else f"mean {ranks.auc:.2f}"
        ax.plot(sizes, ranks.r_nx(sizes), color=category_style(number).color, linewidth=1.4,
                label=label)  # fmt: skip
    ax.set_xscale("log")
    drawing.draw_level(ax, 0)
    ax.set_ylim(top=1.02)
    ax.set_xlabel("neighbours K")
    ax.set_ylabel("kept beyond chance, R_NX")
    ax.xaxis.set_major_formatter("{x:g}")
    ax.legend(loc="center left", bbox_to_anchor=(1.0, 0.5), frameon=False, fontsize="small")
    drawing.light_frame(ax)
    return ax


def dimension_choice(choice: DimensionChoice, *, ax: Axes | None = None) -> Axes:
    """Draw what decided the number of latent dimensions.

    Bars are the gaps behind each local direction, in multiples of what isotropic rows have; the
    dotted line is where a gap is clear. The curve is the leave-one-out error.

    Parameters
    ----------
    choice : DimensionChoice
        As :func:`twofold.selection.choose_dimension` returns it.
    ax : matplotlib Axes, default=None

    Examples
    --------
    >>> from twofold import plots
    >>> from twofold.datasets import make_fish_bowl
    >>> from twofold.selection import choose_dimension
    >>> ax = plots.dimension_choice(choose_dimension(make_fish_bowl(200, random_state=0).Y))
    """
    scores = choice.scores
    if len(scores) == 0:
        raise ValueError(f"There is nothing to draw. {choice.reason}")
    ax = drawing.open_axes(ax, (4.8, 3.2))
    chosen = [ACCENT if q == choice.dimension else MISSING for q in scores.index]
    ax.bar(scores.index, scores["gap"], color=chosen, width=0.6)
    drawing.draw_level(ax, 2)
    ax.axhline(1, color=QUIET, linewidth=0.8)
    ax.set_yscale("log")
    # Bars from below 1: a gap of 1 is none.
    ax.set_ylim(0.7, max(3.0, 1.3 * float(scores["gap"].max())))
    _plain_numbers(ax)
    ax.xaxis.set_major_locator(MaxNLocator(integer=True))
    ax.set_xlabel("latent dimensions")
    ax.set_ylabel("gap (bars)")
    drawing.light_frame(ax)
    beside = ax.twinx()
    beside.errorbar(scores.index, scores["reconstruction_error"], scores["standard_error"],
                    color=COLORS[0], marker="o", markersize=4, capsize=3)  # fmt: skip
    beside.set_ylim(bottom=0)
    beside.set_ylabel("error, share of the variance (curve)", color=COLORS[0])
    beside.spines[["top"]].set_visible(False)
    answer = "no answer" if choice.dimension is None else f"{choice.dimension}"
    ax.set_title(answer + ("" if choice.confident else " (not confident)"), fontsize="medium")
    return ax


def _draw_map(ax: Axes, X: FloatArray, colors: RowColors) -> None:
    """Draw one embedding; of a line, rows are spread upwards, not to hide each other."""
    if X.shape[1] == 1:
        height = np.random.default_rng(0).uniform(size=len(X))
        X = np.column_stack([X[:, 0], height * np.ptp(X) / 4])
    drawing.draw_rows(ax, X[:, :2], colors, float(np.clip(3_000 / len(X), 2, 14)))
    ax.set_xticks([])
    ax.set_yticks([])
    ax.set_aspect("equal", adjustable="datalim")
    for spine in ax.spines.values():
        spine.set_color(MISSING)


def _draw_decision(ax: Axes, comparison: Comparison) -> None:
    """Draw what the recommendation goes by: evidence and continuity."""
    table = comparison.table
    loss = np.maximum(1 - table["continuity"], LEAST_LOSS)
    for number, name in enumerate(table.index):
        style = category_style(number)
        place = (table["nlml_per_entry"][name], loss[name])
        ax.plot(*place, linestyle="", marker=style.marker, color=style.color, markersize=6)
        is_chosen = name == comparison.recommended
        # On either side in turn: neighbours in rank are often neighbours here.
        side = 1 if number % 2 == 0 else -1
        drawing.write_note(ax, str(name), place, (5 * side, 3), ha="left" if side > 0 else "right",
                           color=ACCENT if is_chosen else INK)  # fmt: skip
    ax.set_yscale("log")
    ax.margins(x=0.25, y=0.15)
    _plain_numbers(ax)
    ax.set_xlabel("evidence, nlml per entry (left is better)")
    ax.set_ylabel("1 - continuity (low is better)")
    drawing.light_frame(ax)


def _plain_numbers(ax: Axes) -> None:
    """Write 0.02 instead of powers of ten on a logarithmic axis."""
    low, high = ax.get_ylim()
    ax.yaxis.set_major_formatter("{x:g}")
    # Within a decade there may be no power of ten to read off.
    ax.yaxis.set_minor_formatter("{x:g}" if high < 10 * low else "")
