"""What `benchmarks.large` measured: the table, the growth with the rows, and the targets."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable
from typing import Any

from rich.console import Console
from rich.table import Table

from benchmarks.large_steps import FEW, JUDGED, METHODS, NEIGHBORS
from benchmarks.report import Row, show

Figures = dict[str, Any]
# Heading, figure, format, and the step it comes from.
COLUMNS = (
    ("fit s", "fit_s", ".1f", "fit"),
    ("CPU s", "cpu_s", ".1f", ""),
    ("/ UMAP", "of_umap", ".2f", ""),
    ("MB fit", "fit_mb", ",.0f", ""),
    ("MB peak", "peak_mb", ",.0f", ""),
    ("there s", "transform_s", ".2f", "transform"),
    (f"{FEW} back s", "inverse_s", ".4g", "inverse"),
    (f"error, {FEW}", "error_few", ".3f", ""),
    ("error, all", "error", ".3f", ""),
    ("trust", "trust", ".4f", "trustworthiness"),
)
CAPTION = f"""\
fit, CPU: wall and computing seconds, warm. / UMAP: wall, of UMAP with its defaults in this run.
MB: peak memory of the process (interpreter, packages and warm-up included) after the fit, and after
the transform, too. there: transform of all held-out rows, second call. {FEW} back: inverse of {FEW}
points, the shorter of two. error: of held-out rows that went there and back, as a share of their
variance, of {FEW} rows and of all. trust: trustworthiness, {NEIGHBORS} neighbours, {JUDGED:,}
training rows. "not within": stopped after the seconds that a step is given.
UKR gives the same result every time, on any number of threads. UMAP with its defaults runs on all
cores and gives another result each time; with random_state=0 it insists on one thread.
PaCMAP and openTSNE have no way back (–)."""
WITHIN = re.compile(r"not within .*")
BUSY = 0.3  # cores; the system itself takes less
GROWS_FROM = 20_000  # below, what does not grow with the rows counts too much


def show_run(name: str, found: dict[Any, Figures]) -> None:
    """Print the table of a run, and its targets where the figures for them are there."""
    about = next(iter(found.values()))
    names = ", ".join(f"{name} {number}" for name, number in about["versions"].items())
    title = f"Large tables, run of {name}, {about['cores']} cores; {names}"
    table = Table(title=title, title_justify="left", caption=CAPTION, caption_justify="left")
    table.add_column("method", no_wrap=True)
    for heading, *_ in COLUMNS:
        table.add_column(heading, justify="right")
    groups = sorted(
        {(case.data, case.n) for case in found}, key=lambda one: (one[0] != "mnist", *one)
    )
    for data, n in groups:
        table.add_row(f"[bold]{data}, {n:,} rows[/bold]")
        for case, figures in found.items():
            if (case.data, case.n) == (data, n):
                reference = found.get(case._replace(method="umap"), {})
                table.add_row(*cells_of(case, figures, reference))
        table.add_section()
    Console(width=140).print(table)
    busy = max(figures["busy"] for figures in found.values())
    if busy > BUSY:
        print(f"Others kept up to {busy:.1f} cores busy before some fits: times may be too long.")
    rows = targets(found)
    if rows:
        show("Large tables: targets", rows)


def cells_of(case: Any, figures: Figures, reference: Figures) -> list[str]:
    """Return a line of the table; a step that was stopped says why."""
    method = METHODS[case.method]
    label = f"  {method.label}" + (f", q = {case.q}" if case.q != 2 else "")
    if "fit_s" in figures and "fit_s" in reference:
        figures = figures | {"of_umap": figures["fit_s"] / reference["fit_s"]}
    cells = [label]
    for _, key, form, step in COLUMNS:
        if key in figures:
            cells.append(format(figures[key], form))
        elif key in ("inverse_s", "error_few", "error") and not method.back:
            cells.append("–")
        else:
            first = step == "fit" and figures.get("stopped") in ("start", "warm-up")
            stopped = first or (step and figures.get("stopped") == step)
            cells.append(WITHIN.sub("not within", figures["why"]) if stopped else "")
    return cells


def growing(found: dict[Any, Figures], method: str, key: str) -> list[tuple[int, float]]:
    """Return the sizes of GloVe and a figure of a method at each."""
    return sorted(
        (case.n, figures[key])
        for case, figures in found.items()
        if case.data == "glove" and case.method == method and key in figures
    )


def exponent(points: Iterable[tuple[int, float]]) -> float | None:
    """Return the power of n by which a figure grows from 20,000 rows to the most."""
    points = [point for point in points if point[0] >= GROWS_FROM]
    if len(points) < 2:
        return None
    (few, low), (many, high) = points[0], points[-1]
    return math.log(high / low) / math.log(many / few)


def ratio(name: str, key: str, one: Figures, other: Figures, target: float) -> list[Row]:
    """Return a row with the ratio of two figures, none where one of them is not known."""
    if key not in one or key not in other:
        return []
    return [Row(name, one[key] / other[key], target)]


def targets(found: dict[Any, Figures]) -> list[Row]:
    """Return what was aimed at, as far as it was measured."""

    def of(data: str, n: int, method: str, q: int = 2) -> Figures:
        return next((f for c, f in found.items() if c == (data, n, q, method)), {})

    ukr, umap = of("mnist", 60_000, "ukr"), of("mnist", 60_000, "umap")
    few = of("mnist", 60_000, "ukr-landmarks")
    words, peer = of("glove", 336_000, "ukr"), of("glove", 336_000, "umap")
    rows = [
        *ratio("MNIST: fit / UMAP's", "fit_s", ukr, umap, 0.4),
        *ratio("MNIST: error / UMAP's, the same 200 rows", "error_few", ukr, umap, 0.45),
        *ratio("MNIST: transform / UMAP's", "transform_s", ukr, umap, 0.5),
        *ratio("MNIST: memory of the fit / UMAP's", "fit_mb", ukr, umap, 1.0),
    ]
    if "trust" in ukr and "trust" in umap:
        gap = umap["trust"] - ukr["trust"]
        rows.append(Row("MNIST: trustworthiness, UMAP's less UKR's", gap, 0.003))
    rows += ratio("GloVe, 336,000: fit / UMAP's", "fit_s", words, peer, 0.7)
    if "fit_mb" in words:
        rows.append(Row("GloVe, 336,000: MB of the fit", words["fit_mb"], 6_000))
    growth = exponent(growing(found, "ukr", "fit_s")) if words else None
    if growth is not None:
        rows.append(Row("GloVe, 20,000 to 336,000: growth of the fit, power of n", growth, 1.15))
    return [
        *rows,
        *ratio("GloVe, 336,000: error / UMAP's, 200 rows", "error_few", words, peer, 0.75),
        *ratio("MNIST, 10,000: fit in 8 dimensions / in 2", "fit_s",
               of("mnist", 10_000, "ukr", 8), of("mnist", 10_000, "ukr"), 5.0),
        *ratio("2,000 landmarks: fit / that of all rows", "fit_s", few, ukr, 0.3),
        *ratio("2,000 landmarks: memory / that of all rows", "fit_mb", few, ukr, 0.5),
        *ratio("2,000 landmarks: error / that of all rows", "error", few, ukr, 1.15),
    ]  # fmt: skip
