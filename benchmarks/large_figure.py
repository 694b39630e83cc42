"""The picture of what `benchmarks.large` measured: growth with the rows, and error beside time."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import matplotlib

matplotlib.use("Agg")

import matplotlib.pyplot as plt
from matplotlib.axes import Axes
from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

from benchmarks.large_steps import METHODS
from benchmarks.large_table import Figures, exponent, growing
from twofold.plots.drawing import COLORS, INK, OUTSIDE, QUIET

BLUE, ORANGE, PLUM, LIGHT_GREEN, DARK_GREEN = COLORS[:5]
# Colour, marker and line; what is seeded or has landmarks keeps the colour of its family.
STYLES = {
    "ukr": (BLUE, "o", "-"),
    "ukr-landmarks": (BLUE, "P", ":"),
    "umap": (ORANGE, "s", "-"),
    "umap-seeded": (ORANGE, "D", "--"),
    "pacmap": (PLUM, "^", "-"),
    "opentsne": (LIGHT_GREEN, "v", "-"),
    "kernel-pca": (DARK_GREEN, "X", "-"),
}
NAMES = {"mnist": "MNIST", "glove": "GloVe"}
DOTS_PER_INCH = 100
NO_WAY_BACK = 1.13  # where methods without one are drawn, above every error that counts


def draw(found: dict[Any, Figures], file: Path) -> None:
    """Draw a run."""
    figure, panels = plt.subplots(2, 2, figsize=(9.2, 8.0), layout="constrained")
    draw_growth(panels[0, 0], found, "fit_s", "Fit, seconds")
    draw_growth(panels[0, 1], found, "fit_mb", "Peak memory of the fit, MB")
    for ax, data in zip(panels[1], NAMES, strict=True):
        draw_errors(ax, found, data)
    for ax in panels.flat:
        ax.spines[["top", "right"]].set_visible(False)
        ax.tick_params(colors=INK)
    file.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(file, dpi=DOTS_PER_INCH)
    plt.close(figure)


def draw_growth(ax: Axes, found: dict[Any, Figures], key: str, name: str) -> None:
    """Draw a figure against the number of rows, a line for each method."""
    for method, (color, marker, line) in STYLES.items():
        points = growing(found, method, key)
        if not points:
            continue
        power = exponent(points)
        label = METHODS[method].label + ("" if power is None else f", $n^{{{power:.2f}}}$")
        ax.plot(*zip(*points, strict=True), color=color, marker=marker, linestyle=line, label=label,
                linewidth=2.4 if method == "ukr" else 1.4)  # fmt: skip
    if key == "fit_s":
        mark_unfinished(ax, found)
    ax.set(xscale="log", yscale="log", xlabel="rows of GloVe")
    plain_numbers(ax, sizes={case.n for case in found if case.data == "glove"})
    ax.set_title(name, loc="left", fontsize=11)
    if ax.lines:
        ax.legend(frameon=False, fontsize=8, loc="upper left")
        low, high = ax.get_ylim()
        ax.set_ylim(low, high * (high / low) ** 0.45)  # room for the legend


def mark_unfinished(ax: Axes, found: dict[Any, Figures]) -> None:
    """Mark fits that were stopped with arrows at the limit; they would lie above it."""
    late = [
        (case, figures["limit"])
        for case, figures in found.items()
        if case.data == "glove" and case.method in STYLES and figures.get("stopped") == "fit"
        and figures["why"].startswith("not within")
    ]  # fmt: skip
    for place, (case, limit) in enumerate(late):
        side_by_side = case.n * 1.12 ** (place - (len(late) - 1) / 2)
        label = f"stopped after {limit:g} s" if place == 0 else None
        ax.plot(side_by_side, limit, color=STYLES[case.method][0], marker=r"$\uparrow$",
                markersize=11, linestyle="none", label=label)  # fmt: skip


def draw_errors(ax: Axes, found: dict[Any, Figures], data: str) -> None:
    """Draw the held-out error beside the time of the fit, for the most rows of a data set."""
    here = [case for case in found if case.data == data and case.q == 2 and case.method in STYLES]
    here = [case for case in here if "fit_s" in found[case]]
    n = max((case.n for case in here), default=0)
    for case in here:
        if case.n == n:
            draw_error(ax, case.method, found[case])
    ax.set(xscale="log", xlabel="seconds to fit", yticks=[0, 0.2, 0.4, 0.6, 0.8, 1.0])
    low, high = ax.get_xlim()
    ax.set_xlim(low / 2, high * 2)
    ax.set_ylim(0, 1.26)
    ax.xaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
    ax.axhspan(1.03, 1.26, color=OUTSIDE, zorder=0, linewidth=0)
    ax.text(0.01, 0.985, "no way back", transform=ax.transAxes, color=QUIET, fontsize=8, va="top")
    title = f"Held-out round-trip error, {NAMES[data]}"
    ax.set_title(f"{title}, {n:,} rows" if n else f"{title}: not measured", loc="left", fontsize=11)
    plain_numbers(ax)


def draw_error(ax: Axes, method: str, figures: Figures) -> None:
    """Draw one method: at its error, or above all of them if nothing comes back from it."""
    if "error_few" not in figures and METHODS[method].back:
        return  # stopped on the way back
    color, marker, _ = STYLES[method]
    where = (figures["fit_s"], min(figures.get("error_few", NO_WAY_BACK), NO_WAY_BACK))
    ax.plot(*where, color=color, marker=marker, markersize=9, linestyle="none")
    # UKR and its landmarks lie close to each other: one name below, one above.
    shift, side = (-7, "top") if method == "ukr" else (7, "bottom")
    ax.annotate(METHODS[method].label, where, xytext=(0, shift), textcoords="offset points",
                ha="center", va=side, color=INK, fontsize=8)  # fmt: skip


def plain_numbers(ax: Axes, sizes: set[int] | None = None) -> None:
    """Write the numbers of logarithmic axes out; of rows only the sizes that were measured."""
    plain = FuncFormatter(lambda value, _: f"{value:,g}" if value < 1e6 else f"{value:.0e}")
    for axis in (ax.xaxis, ax.yaxis):
        if axis.get_scale() == "log":
            axis.set_major_formatter(plain)
            axis.set_minor_formatter(NullFormatter())
    if sizes:
        ax.set_xticks(sorted(sizes))
        ax.set_xlim(min(sizes) / 1.6, max(sizes) * 1.6)
