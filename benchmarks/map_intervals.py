"""What 90 % intervals and p-values of maps are worth for rows that the map has not seen.

    python -m benchmarks.map_intervals [--rows 300] [--draws 3] [family ...]

A map is fitted to part of each table; of the others, at most 400, a fifth of the entries is hidden.
Printed are the shares of missing and of observed entries that lie within their intervals, and of
all entries of whole rows; the error of `complete` as a share of the variance; how large errors are
in the deviations that `complete` tells; and the shares of these rows, none of them odd, whose
p-values lie below 0.05 and 0.2. Figures are means over splits; one of them tells little.
"""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Callable, Iterator

import numpy as np
from rich.console import Console
from rich.table import Table

from benchmarks.filling_tables import linear, table, waves
from twofold import PSOM, UKR, UNN, KernelPCA

FAMILIES: dict[str, Callable[[], object]] = {
    "UKR": lambda: UKR(random_state=0),
    "PSOM": lambda: PSOM(random_state=0),
    "UNN": lambda: UNN(random_state=0),
    "KernelPCA": lambda: KernelPCA(2),
}
MADE_UP = {
    "8 columns": lambda n: waves(n, D=8, q=2),
    "many bends": lambda n: waves(n, q=2),
    "linear": linear,
}
REAL = ("wine", "breast cancer", "digits", "diabetes", "oil flow", "mocap", "usps", "silhouettes")
MOST_NEW, HIDDEN = 400, 0.2
TITLES = ("missing", "observed", "whole rows", "error", "deviations", "p < 0.05", "p < 0.2")


def splits(name: str, rows: int, draws: int) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Yield training rows and others, in standard deviations of the training rows."""
    made_up = MADE_UP.get(name)
    Y = table(name, 10**6) if made_up is None else made_up(draws * (rows + MOST_NEW))
    rows = min(rows, 7 * len(Y) // 10)
    for draw in range(draws):
        order = np.random.default_rng(draw).permutation(len(Y))
        train, new = Y[order[:rows]], Y[order[rows : rows + MOST_NEW]]
        used = train.std(axis=0) > 1e-6
        center, spread = train[:, used].mean(axis=0), train[:, used].std(axis=0)
        yield (train[:, used] - center) / spread, (new[:, used] - center) / spread


def measured(model: object, new: np.ndarray) -> tuple[float, ...]:
    """Return the figures of `TITLES` for rows a fitted model has not seen."""
    gaps = np.random.default_rng(0).random(new.shape) < HIDDEN
    gaps[gaps.all(axis=1), 0] = False
    partial = np.where(gaps, np.nan, new)

    def inside(rows: np.ndarray) -> np.ndarray:
        low, high = model.intervals(rows)
        return (low <= new) & (new <= high)

    held = inside(partial)
    filled, std = model.complete(partial, use_residuals=True, return_std=True)
    errors, p = (filled - new)[gaps], model.p_values(new)
    return (
        held[gaps].mean(),
        held[~gaps].mean(),
        inside(new).mean(),
        (errors**2).mean() / new.var(),
        np.sqrt(((errors / std[gaps]) ** 2).mean()),
        (p < 0.05).mean(),
        (p < 0.2).mean(),
    )


def main() -> None:
    """Measure the families asked for, UKR by default, and print what was found."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("families", nargs="*", metavar="family", default=["UKR"])
    parser.add_argument("--rows", type=int, default=300, help="training rows at most")
    parser.add_argument("--draws", type=int, default=3, help="splits of each table")
    asked = parser.parse_args()
    warnings.simplefilter("ignore")
    shown = Table(title=f"rows that maps of at most {asked.rows} rows have not seen")
    for title in ("map", "table", *TITLES):
        shown.add_column(title, justify="left" if title in ("map", "table") else "right")
    for family in asked.families:
        for name in (*MADE_UP, *REAL):
            figures = [
                measured(FAMILIES[family]().fit(train), new)
                for train, new in splits(name, asked.rows, asked.draws)
            ]
            cells = [f"{figure:.3f}" for figure in np.mean(figures, axis=0)]
            shown.add_row(family, name, *cells)
            print(family, name, *cells, flush=True)
    Console(width=120).print(shown)


if __name__ == "__main__":
    main()
