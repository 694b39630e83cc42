"""L-BFGS against Rprop: same start, same number of iterations.

Leave-one-out error and held-out round-trip error, both as fractions of the variance, and the time
relative to L-BFGS's, after 50, 200 and 800 iterations from the start that ``init="auto"`` picks.

    python -m experiments.optimizers
"""

from __future__ import annotations

import time

import numpy as np
from sklearn.model_selection import train_test_split

from experiments.table import show
from twofold import UKR
from twofold.datasets import load_digits_split, make_spiral, make_swiss_roll

METHODS = ("lbfgs", "irprop+", "irprop-", "rprop-")
STEPS = (50, 200, 800)


def data_sets() -> dict[str, tuple[np.ndarray, np.ndarray, int]]:
    """Return training rows, held-out rows and latent dimension."""
    digits = load_digits_split()
    spiral = train_test_split(make_spiral(600, noise=0.05, random_state=0).Y, random_state=0)
    roll = train_test_split(make_swiss_roll(1500, noise=0.2, random_state=0).Y, random_state=0)
    return {
        "digits": (digits.Y_train, digits.Y_test, 2),
        "noisy spiral": (spiral[0], spiral[1], 1),
        "noisy Swiss roll": (roll[0], roll[1], 2),
    }


def measure(train: np.ndarray, test: np.ndarray, q: int) -> list[tuple[str, ...]]:
    """Return a row for each method."""
    start = UKR(q, max_iter=0, random_state=0).fit(train)
    variance = ((train - train.mean(axis=0)) ** 2).sum(axis=1).mean()
    rows = []
    reference = 1.0
    for method in METHODS:
        cells = []
        for steps in STEPS:
            began = time.perf_counter()
            model = UKR(
                q, init=start.embedding_, optimizer=method, max_iter=steps, tol=0, random_state=0
            ).fit(train)
            seconds = time.perf_counter() - began
            error = -model.score(test) / ((test - train.mean(axis=0)) ** 2).sum(axis=1).mean()
            cells.append(f"{model.objective_ / variance:.4f} / {error:.4f}")
        if method == "lbfgs":
            reference = seconds
        rows.append((method, *cells, f"{seconds / reference:.2f}"))
    return rows


def main() -> None:
    """Print a table for each data set."""
    for name, (train, test, q) in data_sets().items():
        header = ("method", *(f"{steps} steps" for steps in STEPS), "time")
        show(f"{name}: leave-one-out / held-out error", header, measure(train, test, q))


if __name__ == "__main__":
    main()
