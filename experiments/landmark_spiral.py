"""Landmark UKR of the noisy spiral (Klanke 2007, section 5.3, Figure 5.23).

500 points, Gaussian noise 0.05, q = 1, Gaussian kernel, 30, 50 and 100 landmarks of K-harmonic
means. Isomap embeds data and landmarks together, with six sizes of neighbourhoods from the first
that leaves one piece; the lowest objective once scaled decides. (By the error without the penalty
the start is several times too wide, and points lose their order on the way back.)
Training is iRprop+, 1,000 steps, with the extension penalty 0.001; then landmarks are adapted with
γ = 1, 0.1 and 0, latent points fixed. The thesis shows pictures; measured here are, of the manifold
at 1,000 latent places between the first and the last row, the mean distance to the true curve
inwards (bias), its standard deviation (roughness) and the mean distance. A data set counts as
unrolled when the rank correlation with the true coordinate is above 0.99.

The roughness penalty of the library is a mean over sampled points. That γ = 1 is still biased, as
the thesis shows, is seen only with a sum, where γ is N times as much; both are given.

Then the library's own way with as many landmarks and no parameter, ``UKR(1, landmarks=n)``, and the
time of 100 gradients with 50 landmarks and without any, at the same latent points. Seconds are of
one core.

    python -m experiments.landmark_spiral [trials]
"""

from __future__ import annotations

import sys
import time
from collections.abc import Iterable
from dataclasses import replace
from typing import NamedTuple

import numpy as np
from scipy.sparse.csgraph import connected_components
from sklearn.manifold import Isomap
from sklearn.neighbors import kneighbors_graph

from experiments import ledger
from experiments.fish_bowl import Model, find_landmarks, landmark_problem
from experiments.noisy_spiral import rank_correlation
from experiments.table import show, spread
from twofold import UKR
from twofold.datasets import make_spiral
from twofold.datasets.sample import Sample
from twofold.ukr.objective import Problem
from twofold.ukr.training import Training

PLACE = "Klanke, Figure 5.23"
N, NOISE, PENALTY = 500, 0.05, 0.001
COUNTS = (30, 50, 100)
N_NEIGHBORHOODS = 6
# Extensions (standard deviations) that are tried for the start, in kernel widths.
SCALES = np.geomspace(0.5, 60, 25)
PLACES = 1000
TRAINING = Training("irprop+", 1000, 1e-5, ())
# By name: γ as the library counts it, and what the thesis shows.
ADAPTATIONS: dict[str, tuple[float | None, str]] = {
    "before": (None, "strong bias"),
    "γ = 1, sum": (1.0 * N, "less bias"),
    "γ = 0.1, sum": (0.1 * N, "no bias"),
    "γ = 1, mean": (1.0, ""),
    "γ = 0.1, mean": (0.1, ""),
    "γ = 0": (0.0, "wriggly"),
}
# Seconds of 100 gradients without landmarks and with so many.
TIMED = 50
REPORTED_SECONDS = (20, 2)


class Curve(NamedTuple):
    """Of a curve: mean distance to the true one inwards, its standard deviation, mean distance."""

    bias: float
    roughness: float
    distance: float


def figure(values: Iterable[float]) -> str:
    """Write values as mean ± standard deviation, both with three decimals."""
    numbers = list(values)
    return f"{np.mean(numbers):.3f} ± {np.std(numbers):.3f}"


def measure(F: np.ndarray, data: Sample) -> Curve:
    """Judge points of a manifold (m, 2) by the true curve."""
    inwards = data.signed_distance(F)
    return Curve(float(inwards.mean()), float(inwards.std()), float(np.abs(inwards).mean()))


def connecting_neighbors(Y: np.ndarray) -> int:
    """Return the smallest number of neighbours whose graph is in one piece."""
    return next(
        k
        for k in range(1, len(Y))
        if connected_components(kneighbors_graph(Y, k), directed=False)[0] == 1
    )


def isomap_start(Y: np.ndarray, landmarks: np.ndarray) -> Model:
    """Return the Isomap embedding and scale of lowest objective."""
    problem = landmark_problem(Y, landmarks, "gaussian")
    error, unit = problem.reconstruction(cross_validated=False), problem.error_unit
    both, tried = np.concatenate([Y, landmarks]), []
    least = connecting_neighbors(both)
    for n_neighbors in range(least, least + N_NEIGHBORHOODS):
        X = Isomap(n_neighbors=n_neighbors, n_components=1).fit_transform(both)
        X = (X - X.mean()) / X.std()
        for scale in SCALES:
            value = error.value_on(X * scale, np.arange(len(Y))) * unit + PENALTY * scale**2
            tried.append((value, X * scale))
    best = min(tried, key=lambda pair: pair[0])[1]
    return Model(problem, best[: len(Y)], best[len(Y) :])


def curve_of(model: Model) -> np.ndarray:
    """Return the manifold between the first and the last row (PLACES, 2)."""
    surface = model.problem.surface(model.Z)
    return surface.regress(np.linspace(model.X.min(), model.X.max(), PLACES)[:, None])


def run(count: int, seed: int) -> tuple[dict[str, Curve], float]:
    """Return the curves of one data set by adaptation, and the rank correlation with the truth."""
    data = make_spiral(N, noise=NOISE, random_state=seed)
    model = isomap_start(data.Y, find_landmarks(data.Y, count, seed)).trained(PENALTY, TRAINING)
    curves = {}
    for name, (gamma, _) in ADAPTATIONS.items():
        curves[name] = measure(curve_of(model if gamma is None else model.adapted(gamma)), data)
    return curves, rank_correlation(model.X[:, 0], data.latent[:, 0])


def run_default(count: int, seed: int) -> tuple[Curve, float, float]:
    """Return the curve of ``UKR(1, landmarks=count)``, its seconds and its rank correlation."""
    data = make_spiral(N, noise=NOISE, random_state=seed)
    began = time.process_time()
    model = UKR(1, landmarks=count, random_state=seed).fit(data.Y)
    seconds = time.process_time() - began
    X = model.embedding_
    F = model.inverse_transform(np.linspace(X.min(), X.max(), PLACES)[:, None])
    return measure(F, data), seconds, rank_correlation(X[:, 0], data.latent[:, 0])


def seconds_of_gradients(problem: Problem, points: np.ndarray) -> float:
    """Return the seconds of 100 gradients."""
    error = problem.reconstruction(cross_validated=False)
    error.value_and_grad(points)
    began = time.process_time()
    for _ in range(100):
        error.value_and_grad(points)
    return time.process_time() - began


def show_times() -> None:
    """Print the time of gradients without and with landmarks."""
    Y = make_spiral(N, noise=NOISE, random_state=0).Y
    model = isomap_start(Y, find_landmarks(Y, TIMED, 0)).trained(PENALTY, TRAINING)
    alone = seconds_of_gradients(replace(model.problem, landmarks=None), model.X)
    measured = alone, seconds_of_gradients(model.problem, model.both)
    for name, known, found in zip(("UKR", "landmarks"), REPORTED_SECONDS, measured, strict=True):
        what = f"{name}, seconds of 100 gradients"
        ledger.figure("Klanke, section 5.3, times", what, known, [found], better="lower")
    rows = [
        (name, *(f"{value:.3g} s" for value in seconds), f"{seconds[0] / seconds[1]:.1f}")
        for name, seconds in (("reported", REPORTED_SECONDS), ("measured", measured))
    ]
    show("100 gradients", ("", "UKR", f"{TIMED} landmarks", "ratio"), rows)


def note(count: int, found: tuple[dict[str, Curve], ...]) -> None:
    """Put into the ledger what the thesis's picture shows."""
    claims = {
        "before adaptation: strong inward bias": lambda c: c["before"].bias > 0.05,
        "γ = 1: better, still biased": lambda c: 0.02 < c["γ = 1, sum"].bias < c["before"].bias,
        "γ = 0.1: smooth, unbiased": lambda c: abs(c["γ = 0.1, sum"].bias) < 0.02,
    }
    if count == max(COUNTS):
        claims["γ = 0: wriggly with many landmarks"] = lambda c: (
            c["γ = 0"].roughness > 2 * c["γ = 0.1, sum"].roughness
        )
    for words, holds in claims.items():
        ledger.claim(PLACE, f"{count} landmarks, {words}", sum(map(holds, found)), len(found))


def main(trials: int) -> None:
    """Print the tables."""
    rows, defaults = [], []
    for count in COUNTS:
        curves, ranks = zip(*(run(count, seed) for seed in range(trials)), strict=True)
        note(count, curves)
        unrolled = f"{sum(rank > 0.99 for rank in ranks)} of {trials}"
        for name, (_, reported) in ADAPTATIONS.items():
            cells = map(figure, zip(*(found[name] for found in curves), strict=True))
            rows.append((str(count), name, reported, *cells, unrolled))
        found, seconds, ranks = zip(*(run_default(count, s) for s in range(trials)), strict=True)
        cells = list(map(figure, zip(*found, strict=True)))
        words = f"`UKR(1, landmarks={count})`: bias {cells[0]}, roughness {cells[1]}"
        ledger.default(PLACE, words)
        unrolled = f"{sum(rank > 0.99 for rank in ranks)} of {trials}"
        defaults.append((str(count), *cells, unrolled, spread(list(seconds))))
    names = ("bias inwards", "roughness", "distance", "unrolled")
    title = f"Landmark UKR of the noisy spiral, {trials} trials"
    show(title, ("landmarks", "adapted", "reported", *names), rows)
    show("UKR(1, landmarks=n)", ("landmarks", *names, "seconds"), defaults)
    show_times()


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 3)
