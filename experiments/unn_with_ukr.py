"""UNN as a start of UKR, and UKR as what refines UNN (Kramer 2013, outlook of section 5.5).

The book proposes to refine embeddings of nearest neighbours with a differentiable regression; it
has no figures. Here: UKR from UNN's embedding (``init="unn"``), from PCA, from ISOMAP and from the
best of all usual starts (``init="auto"``, which does not try UNN); UNN alone, with one sweep of
refinement and with 20; and UNN's picture made a UKR by its bandwidths only or by moving its points
as well (``upgrade`` without and with ``refine``).

Mean squared distances, for training rows with each left out of its own regression, for as many new
rows by ``reconstruct``; seconds of one core; mean ± standard deviation over draws of rows. The last
columns count draws in which a method has less error on new rows than UKR from "auto" or "pca".

    python -m experiments.unn_with_ukr [draws]
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from sklearn.datasets import load_digits

from experiments.table import show, spread
from twofold import UKR, UNN, upgrade
from twofold.datasets import make_s_structure

STARTS = ("unn", "pca", "isomap", "auto")
N_NEW_SEEDS = 10_000  # new rows of an S come from seeds beyond those of training rows


class Split(NamedTuple):
    """Training rows, new rows and latent dimensions."""

    Y: np.ndarray
    Y_new: np.ndarray
    q: int


class Outcome(NamedTuple):
    """Errors and seconds of one fit."""

    left_out: float
    new: float
    seconds: float


def digits(seed: int) -> Split:
    Y = load_digits().data
    order = np.random.default_rng(seed).permutation(len(Y))
    return Split(Y[order[:300]], Y[order[300:600]], 2)


def s_split(n: int, q: int, **numbers: Any) -> Callable[[int], Split]:
    """Return a function that draws training and new rows of an S."""

    def draw(seed: int) -> Split:
        Y, Y_new = (
            make_s_structure(n, random_state=number, **numbers).Y
            for number in (seed, N_NEW_SEEDS + seed)
        )
        return Split(Y, Y_new, q)

    return draw


DATA = {
    "digits, q = 2": digits,
    "3D-S, q = 2": s_split(300, 2),
    "3D-S_h, q = 2": s_split(300, 2, hole=True),
    "2D-S, q = 1": s_split(200, 1, dim=2),
}


def run(split: Split, seed: int) -> dict[str, Outcome]:
    """Return what every method makes of one draw."""
    Y, Y_new, q = split
    found = {}

    def measure(name: str, fit: Callable[[], Any], before: float = 0.0) -> Any:
        began = time.process_time()
        model = fit()
        seconds = before + time.process_time() - began
        error = ((model.reconstruct(Y_new) - Y_new) ** 2).sum(axis=1).mean()
        found[name] = Outcome(model.objective_, float(error), seconds)
        return model

    common = {"random_state": seed, "n_jobs": 1}
    unn = measure("UNN", lambda: UNN(q, **common).fit(Y))
    measure("UNN, 20 sweeps", lambda: UNN(q, refine=20, **common).fit(Y))
    spent = found["UNN"].seconds
    for name, moves in (("UNN, bandwidths by UKR", False), ("UNN, points moved by UKR", True)):
        measure(
            name,
            lambda moves=moves: upgrade(unn.embedding_, Y, refine=moves, **common),
            before=spent,
        )
    for start in STARTS:
        measure(f'UKR, init="{start}"', lambda start=start: UKR(q, init=start, **common).fit(Y))
    return found


def main(draws: int) -> None:
    """Print a table for each kind of data."""
    for name, draw in DATA.items():
        run(draw(0), 0)  # compiles what is compiled
        found = [run(draw(seed), seed) for seed in range(draws)]
        rows = []
        for method in found[0]:
            outcomes = [one[method] for one in found]
            cells = [spread([getattr(o, field) for o in outcomes]) for field in Outcome._fields]
            wins = [
                sum(one[method].new < one[f'UKR, init="{rival}"'].new for one in found)
                for rival in ("auto", "pca")
            ]
            rows.append((method, *cells, *map(str, wins)))
        header = ("method", "left out", "new rows", "seconds", "better than auto", "than pca")
        show(f"{name}, {draws} draws: mean squared distance", header, rows)


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 25)
