"""A fifth of the rows is wrong: what each loss leaves of the manifold.

Half circle (300 rows, noise 0.25), spiral (300, 0.03) and Swiss roll (800, 0.25), where a fifth of
the rows gets further noise of 20, 10 and 20 times that size; digits of scikit-learn (800 rows), to
which 200 rows of uniform noise over 1.5 times the range of every pixel are added. Models get no
other parameter than the loss. The figure is the error on clean rows relative to the model (squared
loss) that was trained on the clean rows alone: for the curves and the roll the mean distance of the
clean training rows' reconstructions from the true manifold, for digits the mean squared
reconstruction error of 597 further, clean rows.

    python -m experiments.outliers [seeds]
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from sklearn.datasets import load_digits

from experiments.table import show
from twofold import UKR
from twofold.datasets import make_half_circle, make_spiral, make_swiss_roll
from twofold.losses import Huber

SHARE = 5
LOSSES = {"squared": "squared", "Huber": "huber", "Huber, trim=4": Huber(trim=4)}


@dataclass(frozen=True)
class Case:
    """Clean rows, the same with outliers among them, and the error of a model on clean rows."""

    q: int
    clean: np.ndarray
    dirty: np.ndarray
    error: Callable[[UKR], float]


def curve(name: str, seed: int) -> Case:
    """Return one of the data sets with a known manifold."""
    q, size, sample = {
        "half circle": (1, 5.0, make_half_circle(300, noise=0.25, random_state=seed)),
        "spiral": (1, 0.3, make_spiral(300, noise=0.03, random_state=seed)),
        "Swiss roll": (2, 5.0, make_swiss_roll(800, noise=0.25, random_state=seed)),
    }[name]
    rng = np.random.default_rng(seed)
    n = len(sample.Y)
    wrong = rng.permutation(n)[: n // SHARE]
    clean = np.delete(sample.Y, wrong, axis=0)
    dirty = sample.Y.copy()
    dirty[wrong] += size * rng.normal(size=(len(wrong), dirty.shape[1]))

    def error(model: UKR) -> float:
        return float(sample.distance(model.reconstruct(clean)).mean())

    return Case(q, clean, dirty, error)


def digits(seed: int) -> Case:
    """Return the digits with rows of noise among them."""
    rng = np.random.default_rng(seed)
    Y = load_digits().data
    Y = Y[rng.permutation(len(Y))]
    clean, unseen = Y[:800], Y[1200:]
    middle, half = (clean.min(axis=0) + clean.max(axis=0)) / 2, np.ptp(clean, axis=0) / 2
    noise = middle + 1.5 * half * rng.uniform(-1, 1, size=(200, clean.shape[1]))
    return Case(2, clean, np.concatenate([clean, noise]), lambda model: -model.score(unseen))


def run(name: str, seed: int) -> list[float]:
    """Return the relative error on clean rows with each loss."""
    case = digits(seed) if name == "digits" else curve(name, seed)
    best = case.error(UKR(case.q, random_state=0).fit(case.clean))
    return [
        case.error(UKR(case.q, loss=loss, random_state=0).fit(case.dirty)) / best
        for loss in LOSSES.values()
    ]


def main(seeds: int) -> None:
    """Print the table."""
    rows = []
    for name in ("half circle", "spiral", "Swiss roll", "digits"):
        ratios = np.array([run(name, seed) for seed in range(seeds)])
        cells = [
            f"{np.median(column):.2f} ({column.min():.2f} to {column.max():.2f})"
            for column in ratios.T
        ]
        rows.append((name, *cells))
    show("Error on clean rows, relative to training without outliers", ("data", *LOSSES), rows)


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 5)
