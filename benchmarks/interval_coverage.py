"""What 90 % intervals of `ManifoldImputer` hold, with gaps made several times.

    python -m benchmarks.interval_coverage [--draws 3] [table ...]

A table with gaps made once tells little: a few hundred entries calibrate its intervals, and those
that are off in one way are off together. Every pattern of gaps (`benchmarks/filling_tables.py`) is
made ``--draws`` times. Two standard errors are printed beside the share of hidden entries that lie
within: that of counting as many entries as if each were by itself, and that of the mean over the
times, which has all other chance in it.
"""

from __future__ import annotations

import argparse
import warnings

import numpy as np
from rich.console import Console
from rich.table import Table

from benchmarks.filling_tables import PATTERNS, TABLES, gaps_of, table
from twofold import ManifoldImputer


def held(name: str, pattern: str, seed: int) -> tuple[int, int]:
    """Return how many entries are hidden, and how many of them lie within their intervals."""
    Y = table(name)
    gaps = gaps_of(Y, pattern, seed)
    partial = np.where(gaps, np.nan, Y)
    low, high = ManifoldImputer(n_jobs=None, random_state=0).fit(partial).intervals(partial)
    return int(gaps.sum()), int(((low <= Y) & (high >= Y))[gaps].sum())


def main() -> None:
    """Measure the tables asked for, all by default, and print what was found."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("tables", nargs="*", metavar="table", default=TABLES)
    parser.add_argument("--draws", type=int, default=3, help="times that gaps are made")
    asked = parser.parse_args()
    warnings.simplefilter("ignore")
    shown = Table(title="90 % intervals: share of hidden entries within")
    for title in ("table", "hidden", "hold", "error of counting", "error of the mean", *PATTERNS):
        shown.add_column(title, justify="left" if title == "table" else "right")
    for name in asked.tables:
        counts = np.array(
            [[held(name, pattern, seed) for pattern in PATTERNS] for seed in range(asked.draws)]
        )
        hidden, within = counts[..., 0], counts[..., 1]
        share = within.sum() / hidden.sum()
        times = within.sum(axis=1) / hidden.sum(axis=1)
        spread = times.std(ddof=1) / np.sqrt(len(times)) if len(times) > 1 else np.nan
        figures = (share, np.sqrt(share * (1 - share) / hidden.sum()), spread)
        patterns = within.sum(axis=0) / hidden.sum(axis=0)
        cells = [f"{figure:.3f}" for figure in (*figures, *patterns)]
        shown.add_row(name, str(hidden.sum()), *cells)
        print(name, hidden.sum(), *cells, flush=True)
    Console(width=140).print(shown)


if __name__ == "__main__":
    main()
