"""How often the recommended embedding is close to the truth.

Data of nine generators whose latent coordinates are known, of dimensions 1 and 2, several seeds of
each; a case is one data set. Its candidates are the true coordinates, spoilt in known ways (a
little warped, noisy, folded, torn in two and in three, shuffled), and what methods make of the
data, twelve in all. The truth itself is no candidate. How far a candidate is from the truth is its
Procrustes distance, which :func:`twofold.selection.compare` never sees. Curves are measured along
their length: no method could know any other parameter of them.

A choice is *close* if its distance is within 0.1 of the best candidate's, on the scale of the
distance from 0 to 1, and *closest* if it is at most 1.1 times that or within 0.01. The target is
90 % close choices. Beside the recommendation stand what each score alone would choose, and
stability under bootstrap sampling. Stability knows methods only and chooses between these; so the
others are shown choosing between the same methods, too.

    python -m experiments.recommendation [seeds]
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pandas as pd

from experiments.table import show
from twofold.array_types import FloatArray
from twofold.datasets import (
    Sample,
    make_fish_bowl,
    make_half_circle,
    make_random_manifold,
    make_s_triangle,
    make_spiral,
    make_swiss_roll,
)
from twofold.selection import compare, procrustes_distance, stability, whiten
from twofold.selection.embedders import EMBEDDERS, Request
from twofold.selection.recommending import ranking

N_ROWS = 300
N_NEIGHBORS = 10
N_SURROGATES = 4
CLOSE, RELATIVE, TINY = 0.1, 1.1, 0.01
METHODS = ("pca", "lle", "isomap", "tsne")
# Score, and whether more of it is better.
SCORES = {
    "nlml_per_entry": False,
    "reconstruction_error": False,
    "trustworthiness": True,
    "continuity": True,
    "auc": True,
}
DATA: dict[str, Callable[[int], Sample]] = {
    "spiral": lambda seed: make_spiral(N_ROWS, random_state=seed),
    "half circle": lambda seed: make_half_circle(N_ROWS, random_state=seed),
    "curve in 10-D": lambda seed: make_random_manifold(
        N_ROWS, 1, 10, noise=0.03, random_state=seed
    ),
    "swiss roll": lambda seed: make_swiss_roll(N_ROWS, noise=0.2, random_state=seed),
    "S triangle": lambda seed: make_s_triangle(N_ROWS, noise=0.05, random_state=seed),
    "fish bowl": lambda seed: make_fish_bowl(N_ROWS, noise=0.1, random_state=seed),
    "sheet in 6-D": lambda seed: make_random_manifold(N_ROWS, 2, 6, noise=0.03, random_state=seed),
    "sheet in 20-D": lambda seed: make_random_manifold(
        N_ROWS, 2, 20, noise=0.03, random_state=seed
    ),
    "flat sheet in 5-D": lambda seed: make_random_manifold(
        N_ROWS, 2, 5, noise=0.03, curvature=0.0, random_state=seed
    ),
}


@dataclass(frozen=True)
class Case:
    """A data set with its candidates' scores and their distances to the truth."""

    data: str
    recommended: str | None
    table: pd.DataFrame
    distances: pd.Series
    instability: pd.Series


def true_coordinates(sample: Sample) -> FloatArray:
    """Return the latent coordinates; of curves, the way along them."""
    if sample.latent.shape[1] > 1:
        return sample.latent
    fine = np.linspace(sample.latent.min(), sample.latent.max(), 2_000)
    points = sample.manifold.point(fine[:, None])
    way = np.concatenate([[0.0], np.cumsum(np.linalg.norm(np.diff(points, axis=0), axis=1))])
    return np.interp(sample.latent, fine, way)


def spoilt(truth: FloatArray, rng: np.random.Generator) -> dict[str, FloatArray]:
    """Return embeddings made of the true coordinates, from nearly right to useless."""
    X = whiten(truth)
    first, rest = X[:, :1], X[:, 1:]
    middle, spread = np.median(first), np.ptp(first)
    # The cut runs through the middle; what lies right of it is carried beyond the left end.
    torn = np.where(first > middle, first - 1.3 * spread, first)
    # Three pieces in another order.
    low, high = np.quantile(first, [1 / 3, 2 / 3])
    in_three = np.where(first < low, first + 1.3 * spread, first)
    in_three = np.where(first > high, in_three + 2.6 * spread, in_three)
    return {
        "warped": np.hstack([first + 0.15 * np.sin(2 * first), rest]),
        "slightly noisy": X + 0.03 * rng.normal(size=X.shape),
        "noisy": X + 0.3 * rng.normal(size=X.shape),
        "folded": np.hstack([np.abs(first - middle), rest]),
        "torn": np.hstack([torn, rest]),
        "torn in three": np.hstack([in_three, rest]),
        "shuffled": X[rng.permutation(len(X))],
    }


def make_case(data: str, seed: int) -> Case:
    """Draw a data set and score its candidates."""
    sample = DATA[data](seed)
    truth = true_coordinates(sample)
    wanted = Request(N_ROWS, truth.shape[1], N_NEIGHBORS, 0, None)
    methods = {name: EMBEDDERS[name](wanted) for name in METHODS}
    candidates = spoilt(truth, np.random.default_rng(seed)) | methods | {"ukr": "ukr"}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = compare(sample.Y, candidates, n_components=truth.shape[1], n_neighbors=N_NEIGHBORS)
        # Not of UKR, which would take longer than all the rest.
        offsets = {
            name: stability(method, sample.Y, repeats=N_SURROGATES).offset
            for name, method in methods.items()
        }
    distances = {name: procrustes_distance(X, truth) for name, X in found.embeddings.items()}
    return Case(data, found.recommended, found.table, pd.Series(distances), pd.Series(offsets))


def chosen_by(score: str, table: pd.DataFrame) -> str:
    """Return what a score alone would choose."""
    return str(table[score].idxmax() if SCORES[score] else table[score].idxmin())


def is_close(choice: str | None, distances: pd.Series) -> bool:
    """Say whether a choice is about as good as the best."""
    return choice is not None and bool(distances[choice] <= distances.min() + CLOSE)


def is_closest(choice: str | None, distances: pd.Series) -> bool:
    """Say whether a choice is within 10 % of the best."""
    least = distances.min()
    return choice is not None and bool(distances[choice] <= max(RELATIVE * least, least + TINY))


def verdicts(cases: list[Case]) -> list[tuple[str, ...]]:
    """Return a line of the table for each way to choose."""
    of_all = {"recommendation": [case.recommended for case in cases]}
    of_methods = {"recommendation": [ranking(case.table.loc[list(METHODS)])[0] for case in cases]}
    for score in SCORES:
        of_all[score] = [chosen_by(score, case.table) for case in cases]
        of_methods[score] = [chosen_by(score, case.table.loc[list(METHODS)]) for case in cases]
    of_methods["stability"] = [str(case.instability.idxmin()) for case in cases]
    rows = []
    for name, choices in of_methods.items():
        everything = ["", ""]
        if name in of_all:
            pairs = list(zip(of_all[name], cases, strict=True))
            everything = [
                f"{np.mean([is_close(choice, case.distances) for choice, case in pairs]):.0%}",
                f"{np.mean([is_closest(choice, case.distances) for choice, case in pairs]):.0%}",
            ]
        close = [
            is_close(choice, case.distances[list(METHODS)])
            for choice, case in zip(choices, cases, strict=True)
        ]
        rows.append((name, *everything, f"{np.mean(close):.0%}"))
    return rows


def orderings(cases: list[Case]) -> list[tuple[str, ...]]:
    """Return the mean rank correlation of each score with the distance, over the methods."""
    rows = []
    for score, more_is_better in SCORES.items():
        signs = -1 if more_is_better else 1
        values = [
            (signs * case.table.loc[list(METHODS), score]).corr(
                case.distances[list(METHODS)], method="spearman"
            )
            for case in cases
        ]
        rows.append((score, f"{np.mean(values):.2f}"))
    values = [
        case.instability.corr(case.distances[list(METHODS)], method="spearman") for case in cases
    ]
    return [*rows, ("stability", f"{np.mean(values):.2f}")]


def main(seeds: int) -> None:
    """Print what was recommended, and how every way to choose did."""
    cases = [make_case(data, seed) for seed in range(seeds) for data in DATA]
    rows = []
    for case in cases[: len(DATA)]:
        best = str(case.distances.idxmin())
        distance = "" if case.recommended is None else f"{case.distances[case.recommended]:.4f}"
        steadiest = str(case.instability.idxmin())
        rows.append(
            (
                case.data,
                f"{best} {case.distances[best]:.4f}",
                f"{case.recommended} {distance}",
                f"{steadiest} {case.distances[steadiest]:.4f}",
            )
        )
    n = sum(len(case.table) for case in cases)
    show(
        "Procrustes distance to the truth, seed 0",
        ("data", "best candidate", "recommended", "most stable method"),
        rows,
    )
    show(
        f"{len(cases)} cases, {n} embeddings: share of choices",
        ("choice by", "close", "closest", "close, of four methods"),
        verdicts(cases),
    )
    show(
        "Rank correlation with the distance to the truth, over four methods (1 is best)",
        ("score", "mean"),
        orderings(cases),
    )


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 4)
