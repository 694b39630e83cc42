"""What 90 % intervals and draws are worth for new rows that lack much, where the fitted lack none.

    python -m benchmarks.larger_gaps [--draws 3]

A map and `ManifoldImputer` (without trees) are fitted to half of each table. Of the other half a
tenth of the entries is missing, half of them at random, or the first half of the columns. Printed
are the share of missing entries within their intervals, and the mean variance of draws as a share
of the squared error, both means over splits.
"""

from __future__ import annotations

import argparse
import warnings

import numpy as np
from rich.console import Console
from rich.table import Table
from sklearn import datasets

from twofold import UKR, ManifoldImputer, Scaled
from twofold.datasets import load_npz

PATTERNS = ("a tenth", "half", "first half")


def tables() -> dict[str, np.ndarray]:
    """Return the tables, by name."""
    return {
        "wine": datasets.load_wine().data,
        "breast cancer": datasets.load_breast_cancer().data[:, :14],
        "oil flow": load_npz("oil_flow")["X"][:600].astype(np.float64),
        "iris": datasets.load_iris().data,
    }


def gaps_of(shape: tuple[int, int], pattern: str, random: np.random.Generator) -> np.ndarray:
    """Return which entries of new rows are missing."""
    gaps = random.random(shape) < (0.1 if pattern == "a tenth" else 0.5)
    if pattern == "first half":
        gaps[:] = np.arange(shape[1]) < shape[1] // 2
    gaps[gaps.all(axis=1), 0] = False
    return gaps


def measured(Y: np.ndarray, seed: int) -> np.ndarray:
    """Return both figures (2,) of both models for each pattern, (patterns, 2, 2)."""
    random = np.random.default_rng(seed)
    order = random.permutation(len(Y))
    train, new = Y[order[: len(Y) // 2]], Y[order[len(Y) // 2 :]]
    unit = train.std(axis=0)
    model = Scaled(UKR(random_state=seed, max_iter=10)).fit(train)
    imputer = ManifoldImputer(trees=False, random_state=seed).fit(train)
    found = np.empty((len(PATTERNS), 2, 2))
    for figures, pattern in zip(found, PATTERNS, strict=True):
        gaps = gaps_of(new.shape, pattern, random)
        rows = np.where(gaps, np.nan, new)
        for k, (ends, filled, draws) in enumerate(
            (
                (
                    model.intervals(rows),
                    model.complete(rows),
                    model.complete(rows, n_draws=20, random_state=0),
                ),
                (imputer.intervals(rows), imputer.transform(rows), imputer.draws(rows, 20, 0)),
            )
        ):
            error = (((filled - new) / unit)[gaps] ** 2).mean()
            drawn = (draws.var(axis=0, ddof=1) / unit**2)[gaps].mean()
            figures[k] = ((ends[0] <= new) & (new <= ends[1]))[gaps].mean(), drawn / error
    return found


def main() -> None:
    """Measure all tables and print what was found."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--draws", type=int, default=3, help="splits of each table")
    asked = parser.parse_args()
    warnings.simplefilter("ignore")
    shown = Table(title="rows that lack much: 90 % intervals hold, and variance of draws / error")
    for title in ("table", "missing", "map", "draws", "imputer", "draws"):
        shown.add_column(title, justify="left" if title in ("table", "missing") else "right")
    for name, Y in tables().items():
        splits = [measured(Y, seed) for seed in range(asked.draws)]
        for pattern, figures in zip(PATTERNS, np.mean(splits, axis=0), strict=True):
            cells = [f"{figure:.3f}" for figure in figures.ravel()]
            shown.add_row(name, pattern, *cells)
            print(name, pattern, *cells, flush=True)
    Console(width=100).print(shown)


if __name__ == "__main__":
    main()
