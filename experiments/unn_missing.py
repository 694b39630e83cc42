"""Rows with missing entries: filled before they are embedded, on the way, or not at all.

Table 5.4 of O. Kramer, "Dimensionality Reduction with Unsupervised Nearest Neighbors" (2013), on
the S of 500 rows and the one with a hole, 350 rows: each entry is missing with probability p.
R-a-E is repair-and-embed (Algorithm 4), E-a-R embed-and-repair (Algorithm 5). "Distances" is not in
the book: nothing is filled, distances and means go over what is there; its gaps are read off the
reconstruction afterwards.

E_imp is the mean distance between filled and complete rows, which is what the reported figures fit;
the printed formula squares it and takes the sum. The reconstruction error (DSRE, sum of norms, each
row among its own neighbours) can compare with the rows as filled, or with the complete ones: the
reported figures fit the first for R-a-E and are nearer to the second for E-a-R. The book does not
say which K it used; 5 fits. Data are our own draws, and the hole is our own guess. Of rows without
any entry one is kept, as nothing could be said about them.

``holes`` asks whether the unknown hole can be why the figures of embed-and-repair differ: five
shapes that leave seven rows of ten are tried, among them the one of MDP's example.

    python -m experiments.unn_missing [draws] [holes]
"""

from __future__ import annotations

import sys

import numpy as np

from experiments import ledger
from experiments.table import show, spread
from twofold import UNN
from twofold.datasets import make_s_structure
from twofold.datasets.shapes import S_LENGTH, SStructure
from twofold.metrics import dsre
from twofold.unn import Exhaustive

PLACE = "Kramer, Table 5.4"
NEIGHBORS = 5
SHARES = (0.01, 0.1, 0.2, 0.3)
SIZES = {"3D-S": 500, "3D-S_h": 350}
METHODS = {
    "R-a-E": "repair_and_embed",
    "E-a-R": "embed_and_repair",
    "distances": "distances",
}
# E_imp, DSRE for each p; then the error of UNN on complete rows.
REPORTED = {
    ("3D-S", "R-a-E"): ((0.0507, 147.2), (0.3129, 143.8), (0.6454, 149.0), (0.9557, 152.7)),
    ("3D-S", "E-a-R"): ((0.0269, 165.39), (0.2884, 265.2), (0.6146, 369.2), (0.9265, 452.3)),
    ("3D-S_h", "R-a-E"): ((0.0235, 104.2), (0.2671, 101.9), (0.5509, 122.2), (0.8226, 129.5)),
    ("3D-S_h", "E-a-R"): ((0.0309, 119.7), (0.2595, 217.6), (0.5007, 296.8), (0.5285, 301.8)),
}
REPORTED_COMPLETE = {"3D-S": 142.8, "3D-S_h": 105.5}
# Rows, and the middle part of length and height that the hole takes.
HOLES = {
    "55 % x 55 %": (350, 0.55, 0.55),
    "40 % x 60 % (MDP)": (380, 0.4, 0.6),
    "40 % x 60 %, fewer rows": (350, 0.4, 0.6),
    "30 % x 100 %": (350, 0.3, 1.0),
    "70 % x 43 %": (350, 0.7, 0.43),
}


def rows_of(name: str, seed: int) -> np.ndarray:
    """Return the complete rows of a draw."""
    return make_s_structure(SIZES[name], hole=name == "3D-S_h", random_state=seed).Y


def rows_around(hole: str, seed: int) -> np.ndarray:
    """Return a draw of the S with one of the holes."""
    n, along, across = HOLES[hole]
    drawn = np.random.default_rng(seed).uniform(-0.5, 0.5, (3 * n, 2))
    outside = (np.abs(drawn) > (along / 2, across / 2)).any(axis=1)
    return SStructure(3, 5.0).point((drawn[outside][:n] + 0.5) * (S_LENGTH, 5.0))


def with_gaps(Y: np.ndarray, share: float, seed: int) -> np.ndarray:
    """Return the rows with entries missing, at least one of each row left."""
    rng = np.random.default_rng([seed, int(1000 * share)])
    hidden = rng.random(Y.shape) < share
    kept = rng.integers(0, Y.shape[1], size=len(Y))
    empty = np.flatnonzero(hidden.all(axis=1))
    hidden[empty, kept[empty]] = False
    return np.where(hidden, np.nan, Y)


def fit(Y: np.ndarray, missing: str = "repair_and_embed") -> UNN:
    """Return latent sorting as in the book: rows as they come, every gap, no second look."""
    search = Exhaustive(criterion="point")
    model = UNN(1, n_neighbors=NEIGHBORS, search=search, missing=missing, shuffle=False, refine=0)
    return model.fit(Y)


def filled_rows(model: UNN, Y: np.ndarray) -> np.ndarray:
    """Return the rows passed to ``fit`` as the model has filled them."""
    if model.missing == "distances":
        return np.where(np.isnan(Y), model.inverse_transform(model.embedding_), Y)
    filled = np.empty_like(Y)
    filled[order_of(Y)] = model.filled_[order_of(model.data_)]
    return filled


def order_of(Y: np.ndarray) -> np.ndarray:
    """Return the order of rows by their entries: that of a model is one of its own."""
    return np.lexsort(np.nan_to_num(Y, nan=-np.inf).T)


def run(complete: np.ndarray, method: str, share: float, seed: int) -> tuple[float, float, float]:
    """Return E_imp, and the reconstruction error of filled and of complete rows."""
    Y = with_gaps(complete, share, seed)
    model = fit(Y, METHODS[method])
    filled = filled_rows(model, Y)
    return (
        float(np.linalg.norm(filled - complete, axis=1).mean()),
        dsre(filled, model.embedding_, NEIGHBORS),
        dsre(complete, model.embedding_, NEIGHBORS),
    )


def note(what: str, reported: tuple[float, float] | None, found: np.ndarray) -> None:
    """Put one cell into the ledger; its error refers to the rows that fit the book's."""
    if reported is None:
        ledger.default(PLACE, f"{what} (nothing filled): {spread(found[:, 2].tolist())}")
        return
    ledger.figure(PLACE, f"{what}: E_imp", reported[0], found[:, 0], better="lower")
    column = 1 if "R-a-E" in what else 2
    ledger.figure(PLACE, f"{what}: DSRE", reported[1], found[:, column], better="lower")


def main(draws: int) -> None:
    """Print the table."""
    rows = []
    for name in SIZES:
        whole = [
            dsre(Y, fit(Y).embedding_, NEIGHBORS)
            for Y in (rows_of(name, seed) for seed in range(draws))
        ]
        ledger.figure(PLACE, f"{name}, complete rows", REPORTED_COMPLETE[name], whole)
        rows.append(
            (name, "0", "complete", "", "", f"{REPORTED_COMPLETE[name]}", spread(whole), "")
        )
        for place, share in enumerate(SHARES):
            for method in METHODS:
                found = np.array(
                    [run(rows_of(name, seed), method, share, seed) for seed in range(draws)]
                )
                reported = REPORTED.get((name, method))
                note(f"{name}, p = {share}, {method}", reported and reported[place], found)
                old = [f"{figure}" for figure in reported[place]] if reported else ["", ""]
                new = [spread(column.tolist()) for column in found.T]
                rows.append((name, f"{share}", method, old[0], new[0], old[1], new[1], new[2]))
    show(
        f"Missing entries, K = {NEIGHBORS}, {draws} draws",
        (
            "data",
            "p",
            "method",
            "E_imp reported",
            "measured",
            "DSRE reported",
            "measured, filled",
            "measured, complete",
        ),
        rows,
    )


def show_holes(draws: int) -> None:
    """Print what other holes give, from the least to the largest draw."""
    rows = []
    for hole in HOLES:
        samples = [rows_around(hole, seed) for seed in range(draws)]
        for method, column in (("R-a-E", 1), ("E-a-R", 2)):
            cells = []
            for place, share in enumerate(SHARES):
                found = [run(Y, method, share, seed) for seed, Y in enumerate(samples)]
                low, high = np.min(found, axis=0), np.max(found, axis=0)
                for part, reported in zip(
                    (0, column), REPORTED["3D-S_h", method][place], strict=True
                ):
                    cells.append(f"{reported} | {low[part]:.3g} to {high[part]:.3g}")
            rows.append((hole, method, *cells))
    titles = [f"{what}, p = {share}" for share in SHARES for what in ("E_imp", "DSRE")]
    show(f"Other holes, {draws} draws, reported | measured", ("hole", "method", *titles), rows)


if __name__ == "__main__":
    (show_holes if "holes" in sys.argv else main)(int(sys.argv[1]) if len(sys.argv) > 1 else 25)
