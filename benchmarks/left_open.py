"""What maps leave open of new rows, and what `left_open` says of it after the fit.

    python -m benchmarks.left_open

A third of each table is kept back. "new rows" is the squared error of `UKR` on these, as a share of
their variance around the mean of the training rows; means of three splits.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator

import numpy as np
from rich.console import Console
from rich.table import Table
from sklearn import datasets as sklearn_datasets
from sklearn.preprocessing import scale

from benchmarks.filling_tables import waves
from twofold import UKR


def cases() -> Iterator[tuple[str, np.ndarray, int]]:
    """Yield names, tables and dimensions."""
    noise = np.random.default_rng(0).normal(size=(525, 20))
    yield "noise, 20 columns", noise[:90], 2
    yield "noise, 20 columns", noise, 2
    yield "noise, 20 columns", noise, 1
    yield "many bends", waves(525, q=2), 2
    for q in (1, 2):
        yield "wine", scale(sklearn_datasets.load_wine().data), q
    yield "breast cancer", scale(sklearn_datasets.load_breast_cancer().data[:525]), 1
    yield "digits", sklearn_datasets.load_digits().data[:630], 1
    yield "digits", sklearn_datasets.load_digits().data[:1500], 2


def shares(Y: np.ndarray, q: int, seed: int) -> tuple[float, float]:
    """Return what a map leaves open of rows that were kept back, and what it says it does."""
    Y = Y[np.random.default_rng(seed).permutation(len(Y))]
    train, new = Y[: 2 * len(Y) // 3], Y[2 * len(Y) // 3 :]
    model = UKR(q, random_state=0).fit(train)
    variance = ((new - train.mean(axis=0)) ** 2).sum(axis=1).mean()
    return -model.score(new) / variance, model.left_open().share


def main() -> None:
    """Fit a map to two thirds of each table and print both shares."""
    warnings.simplefilter("ignore")
    shown = Table()
    for title in ("table", "rows", "dimensions", "new rows", "left_open", "ratio"):
        shown.add_column(title, justify="left" if title == "table" else "right")
    for name, Y, q in cases():
        found = np.mean([shares(Y, q, seed) for seed in range(3)], axis=0)
        numbers = (f"{found[0]:.3f}", f"{found[1]:.3f}", f"{found[0] / found[1]:.2f}")
        shown.add_row(name, str(2 * len(Y) // 3), str(q), *numbers)
    Console(width=100).print(shown)


if __name__ == "__main__":
    main()
