"""Pictures of how a fit went and how far to trust it."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.ticker import MaxNLocator

from twofold.array_types import FloatArray
from twofold.contract import TwoWayModel
from twofold.plots import drawing
from twofold.plots.drawing import ACCENT, COLORS, INK, QUIET
from twofold.plots.row_colors import DISTANCE, distances, name_in_table, row_errors, row_name

# An objective that falls by more than this factor is seen better on a logarithmic scale.
MUCH = 10.0
# More names than this run into each other on a logarithmic axis.
NAMED_ROWS = 5
# Slanted names closer than this many points touch.
LEAST_APART = 9.5


def history(model: TwoWayModel, *, ax: Axes | None = None) -> Axes:
    """Draw the objective over the iterations of the last fit.

    The stages of a homotopy minimise different things: they are drawn one after the other, with a
    line between them, where the history says where they meet.

    Parameters
    ----------
    model : fitted model
    ax : matplotlib Axes, default=None

    Examples
    --------
    >>> from twofold import UKR, plots
    >>> from twofold.datasets import load_digits_split
    >>> model = UKR(init="pca", max_iter=5).fit(load_digits_split().Y_train[:200])
    >>> ax = plots.history(model)
    """
    values = np.asarray(model.history_, dtype=np.float64)
    if len(values) == 0:
        raise ValueError("The model has no history: its fit ended before the first evaluation.")
    n_stages = max(len(values) - model.n_iter_, 1)
    joins = stage_joins(values, n_stages)
    ax = drawing.open_axes(ax, (5.5, 3.2))
    iterations = np.arange(len(values))
    for first, last in zip([0, *joins], [*joins, len(values)], strict=True):
        # Each stage begins with the value at which the one before it ended.
        iterations[first:] -= int(first > 0)
        ax.plot(iterations[first:last], values[first:last], color=COLORS[0],
                marker="o" if last - first < 3 else None, markersize=3)  # fmt: skip
        if first:
            ax.axvline(iterations[first], color=QUIET, linewidth=0.8, linestyle=":")
    known = values[np.isfinite(values)]
    if len(known) and known.min() > 0 and known.max() > MUCH * known.min():
        ax.set_yscale("log")
    ax.xaxis.set_major_locator(MaxNLocator(integer=True))
    # A history of fewer entries has one for each stretch of iterations: a sweep over all rows, say.
    counted = "iteration" if len(values) > model.n_iter_ else "step"
    ax.set_xlabel(f"iteration ({n_stages} stages)" if n_stages > 1 else counted)
    ax.set_ylabel("objective")
    if len(values) == 1:
        # There is no course to see, so the axis starts at zero.
        ax.set_xlabel("end of the fit (the only value that was kept)")
        ax.set_xticks([])
        ax.lines[0].set_markersize(7)
        if np.isfinite(values[0]) and values[0] != 0:
            ax.set_ylim(*sorted((0.0, 1.3 * float(values[0]))))
    # Above the axes: inside, the stages of a homotopy may pass anywhere.
    end = f"{values[-1]:.4g}  ({model.stop_reason_})"
    drawing.write_note(ax, end, (1, 1), (0, 3), xycoords="axes fraction", ha="right")
    drawing.light_frame(ax)
    return ax


def stage_joins(values: FloatArray, n_stages: int) -> list[int]:
    """Return where stages begin in a history of stages end to end; [] if that cannot be told.

    A history has one entry more than iterations for each stage. Where a stage begins the value
    does not fall; if that happens as often as there are joins, these are the joins.

    >>> stage_joins(np.array([5.0, 4.0, 4.5, 3.0, 2.0]), 2)
    [2]
    """
    rises = np.flatnonzero(np.diff(values) >= 0) + 1
    return [int(place) for place in rises] if len(rises) == n_stages - 1 else []


def errors(model: TwoWayModel, X: Any = None, *, ax: Axes | None = None) -> Axes:
    """Draw the reconstruction error of rows, the worst first and named.

    The error is the distance of a row to its reconstruction (of observed entries; in feature space
    if the model has a data kernel): the root of the squared error that ``score_samples`` negates.
    The axis of ranks is logarithmic, so that the few worst rows take as much room as the many good
    ones.

    Parameters
    ----------
    model : fitted model
    X : array-like of shape (n_samples, n_features), default=None
        Data. None takes the rows the model was fitted to, which it knows unless it has landmarks;
        they take part in their own reconstruction, so new rows do a little worse.
    ax : matplotlib Axes, default=None

    Examples
    --------
    >>> from twofold import UKR, plots
    >>> from twofold.datasets import load_digits_split
    >>> digits = load_digits_split()
    >>> model = UKR(init="pca", max_iter=5).fit(digits.Y_train[:200])
    >>> ax = plots.errors(model, digits.Y_test)
    """
    model = model.as_numbers() if X is None else model
    found = row_errors(model) if X is None else distances(model, X).astype(np.float64)
    known = np.flatnonzero(np.isfinite(found))
    order = known[np.argsort(-found[known], kind="stable")]
    ranks = np.arange(1, len(order) + 1)
    ax = drawing.open_axes(ax, (5.5, 3.4))
    ax.plot(ranks, found[order], color=COLORS[0])
    ax.set_xscale("log")
    ax.set_xlim(0.85, 1.1 * len(order))
    ax.set_ylim(0, 1.3 * found[order[0]] or 1.0)
    worst = order[:NAMED_ROWS]
    ax.plot(ranks[: len(worst)], found[worst], "o", color=ACCENT, markersize=4)
    for rank, row in enumerate(worst, 1):
        if rank > 1 and _points_apart(ax, rank) < LEAST_APART:
            break  # ranks only come closer
        name = row_name(model, int(row)) if X is None else name_in_table(X, int(row))
        slanted = {"rotation": 45, "rotation_mode": "anchor"}
        drawing.write_note(ax, name, (rank, found[row]), (2, 4), **slanted)
    middle = float(np.median(found[order]))
    drawing.draw_level(ax, middle)
    drawing.write_note(ax, f"median {middle:.3g}", (1, middle), (0, 3))
    ax.set_xlabel("rows, the worst first")
    ax.set_ylabel(f"{DISTANCE}\n(root of the squared error)")
    ax.xaxis.set_major_formatter("{x:g}")
    ax.xaxis.set_minor_formatter("")
    if len(order) < 10:
        # There would be one power of ten to read off.
        ax.set_xticks(ranks)
    drawing.light_frame(ax)
    return ax


def _points_apart(ax: Axes, rank: int) -> float:
    """Return how far a rank stands from the one before it, in points."""
    pixels = ax.transData.transform([(rank - 1, 1), (rank, 1)])[:, 0]
    return float(np.diff(pixels)[0] * 72 / ax.figure.dpi)


def dimension_curve(
    scores: Mapping[int, float | Sequence[float]], *, ax: Axes | None = None
) -> Axes:
    """Draw the error for each number of latent dimensions, and mark the choice.

    The dimension of the least mean error is marked. With several errors for each dimension, e.g.
    of the folds of a cross-validation, the spread is drawn as bars of one standard error, and a
    second mark shows the one-standard-error rule: the fewest dimensions whose mean error lies
    within one standard error of the least.

    Parameters
    ----------
    scores : mapping of int to float or sequence of float
        The error, or several errors, for each number of latent dimensions; lower is better.
    ax : matplotlib Axes, default=None

    Examples
    --------
    >>> from twofold import plots
    >>> ax = plots.dimension_curve({1: [5.1, 5.3], 2: [3.0, 3.4], 3: [2.9, 3.3], 4: [3.1, 3.3]})
    """
    if not scores:
        raise ValueError("`scores` must hold an error for at least one dimension; got none.")
    dims = sorted(scores)
    means, spreads = np.zeros(len(dims)), np.zeros(len(dims))
    for place, q in enumerate(dims):
        found = np.atleast_1d(np.asarray(scores[q], dtype=np.float64))
        if found.ndim != 1 or len(found) == 0 or not np.isfinite(found).all():
            raise ValueError(
                f"`scores[{q!r}]` must be a finite error or a sequence of them; got {scores[q]!r}."
            )
        means[place] = found.mean()
        if len(found) > 1:
            spreads[place] = found.std(ddof=1) / np.sqrt(len(found))
    ax = drawing.open_axes(ax, (4.8, 3.2))
    if spreads.any():
        ax.errorbar(dims, means, spreads, color=COLORS[0], capsize=3, linewidth=1.4, zorder=2)
    else:
        ax.plot(dims, means, color=COLORS[0], linewidth=1.4, zorder=2)
    ax.plot(dims, means, "o", color=COLORS[0], markersize=4, zorder=2)
    least = int(np.argmin(means))
    ax.plot(dims[least], means[least], "o", color=ACCENT, markersize=8, zorder=3,
            label=f"least error: {dims[least]}")  # fmt: skip
    if spreads.any():
        limit = means[least] + spreads[least]
        fewest = int(np.flatnonzero(means <= limit)[0])
        drawing.draw_level(ax, limit)
        ax.plot(dims[fewest], means[fewest], "o", markersize=12, markerfacecolor="none",
                markeredgecolor=INK, zorder=3,
                label=f"fewest within one standard error: {dims[fewest]}")  # fmt: skip
    ax.legend(frameon=False, fontsize="small")
    ax.xaxis.set_major_locator(MaxNLocator(integer=True))
    ax.set_xlabel("latent dimensions")
    ax.set_ylabel("error")
    drawing.light_frame(ax)
    return ax
