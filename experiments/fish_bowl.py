"""Landmark UKR of the fish bowl (Klanke 2007, section 5.3, Tables 5.8 and 5.9).

2,000 points on a sphere of radius 10 without its lowest cap, noise 0.5, q = 2. Landmarks are those
of K-harmonic means (p = 3.5, the thesis does not say). From a PCA of data and landmarks together

    R(X, Z) + λ_k (||X||² + ||Z||²) / (q (N + n)),   λ_k = 0.7^k, k = 1 to 10

is minimised step by step, all n landmarks in sight. The thesis prints the penalty without the
division, which with these λ would leave every point in one place. Divided by q N it is
too strong by (N + n) / N, which shows with 400 landmarks. Its start has no stated scale:
here the standard deviation is 1 (Gaussian) and 0.3 (triweight). After 5 and 10 steps landmarks are
adapted with γ = 0.1, latent points fixed. Reported of the reconstructions f_i of the data: mean
distance from their rows, mean norm (bias; the truth is 10) and standard deviation of the norms
(roughness). Steps are those of iRprop+, up to 1,000 a stage (the thesis: Rprop, as many), with the
triweight kernel 300; ``--lbfgs`` takes the library's default optimiser instead. The last table is
the library's own way with as many landmarks, ``UKR(landmarks=n)``. Seconds are of one core.

    python -m experiments.fish_bowl [trials] [--kernel triweight] [--lbfgs]
"""

from __future__ import annotations

import argparse
import time
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from experiments import ledger
from experiments.table import show, spread
from twofold import UKR
from twofold.datasets import make_fish_bowl
from twofold.engine import KernelSums
from twofold.kernels import get_kernel
from twofold.landmarks.k_harmonic_means import KHarmonicMeans
from twofold.losses import Squared
from twofold.regularization import Extension
from twofold.rowwise import data_unit
from twofold.ukr.adaptation import Adaptation
from twofold.ukr.objective import Problem
from twofold.ukr.surface import CarriedRows
from twofold.ukr.training import Training, train

N, NOISE, Q = 2000, 0.5, 2
COUNTS = (100, 200, 400)
STEPS, DECAY, GAMMA = (5, 10), 0.7, 0.1
POWER = 3.5
TOLERANCE = 1e-6
START = {"gaussian": 1.0, "triweight": 0.3}
# Where the kernel ends, a first step can put points out of reach; the value then recovers slowly,
# which the test of convergence would take for the end. So that kernel takes all of its steps.
TRAINING = {
    "gaussian": Training("irprop+", 1000, 1e-4, ()),
    "triweight": Training("irprop+", 300, 0.0, ()),
}
METRICS = ("distance", "norm", "std of norms")
# By kernel and (number of landmarks, steps): the three metrics before and after adaptation.
REPORTED = {
    "gaussian": {
        (100, 5): ((0.97, 9.15, 0.28), (0.41, 10.02, 0.11)),
        (100, 10): ((0.64, 9.51, 0.16), (0.41, 10.03, 0.12)),
        (200, 5): ((0.92, 9.17, 0.28), (0.38, 10.02, 0.12)),
        (200, 10): ((0.58, 9.55, 0.18), (0.38, 10.02, 0.14)),
        (400, 5): ((0.89, 9.19, 0.27), (0.39, 10.01, 0.12)),
        (400, 10): ((0.55, 9.59, 0.19), (0.37, 10.02, 0.15)),
    },
    "triweight": {
        (100, 5): ((0.60, 9.58, 0.17), (0.48, 9.99, 0.14)),
        (100, 10): ((0.55, 9.66, 0.16), (0.50, 9.99, 0.16)),
        (200, 5): ((0.53, 9.64, 0.20), (0.49, 9.97, 0.18)),
        (200, 10): ((0.47, 9.73, 0.19), (0.50, 9.98, 0.22)),
        (400, 5): ((0.47, 9.76, 0.27), (0.55, 9.95, 0.31)),
        (400, 10): ((0.41, 9.87, 0.25), (0.51, 9.98, 0.33)),
    },
}
REPORTED_SECONDS = {
    "gaussian": {100: 627, 200: 1051, 400: 2119},
    "triweight": {100: 137, 200: 227, 400: 402},
}


class Model(NamedTuple):
    """A problem with landmarks, the latent points X of its rows and Z of the landmarks."""

    problem: Problem
    X: np.ndarray
    Z: np.ndarray

    @property
    def both(self) -> np.ndarray:
        """Latent points of rows and landmarks, as the problem wants them."""
        return np.concatenate([self.X, self.Z])

    def trained(self, strength: float, training: Training) -> Model:
        """Return the minimum with ``strength`` times the mean square of all coordinates."""
        n, q = self.X.shape
        penalty = Extension(penalty=strength / q)
        problem = replace(self.problem, regularization=penalty)
        found = train(problem, self.both, training).X
        return Model(problem, found[:n], found[n:])

    def adapted(self, gamma: float) -> Model:
        """Return the model with landmark vectors re-fitted, latent points as they are."""
        problem, landmarks = self.problem, self.problem.landmarks
        found = Adaptation(problem, self.Z, self.X).adapt(self.X, gamma)
        moved = landmarks.with_values(landmarks.unscaled(found.values))
        return self._replace(problem=replace(problem, landmarks=moved))

    def residuals(self) -> np.ndarray:
        """Return f(x_i) - y_i (n, D) in the unit of the data."""
        error = self.problem.reconstruction(cross_validated=False)
        return error.residuals(self.both) * self.problem.rows.unit


def landmark_problem(Y: np.ndarray, landmarks: np.ndarray, kernel: str) -> Problem:
    """Return the problem of rows Y that see all landmarks."""
    rows = CarriedRows(Y, np.ones(len(Y)), None, data_unit(Y))
    carried = CarriedRows(landmarks, np.ones(len(landmarks)), None, rows.unit, mean=rows.mean)
    engine = KernelSums(get_kernel(kernel, training=True), TOLERANCE)
    return Problem(rows, Squared(), Extension(penalty=1.0), engine, landmarks=carried)


def find_landmarks(Y: np.ndarray, count: int, seed: int) -> np.ndarray:
    """Return the centres of K-harmonic means."""
    return KHarmonicMeans(count, p=POWER, random_state=seed).fit(Y).cluster_centers_


def pca_start(Y: np.ndarray, landmarks: np.ndarray, kernel: str) -> Model:
    """Return rows and landmarks at their common principal components."""
    both = np.concatenate([Y, landmarks])
    both = both - both.mean(axis=0)
    X = both @ np.linalg.svd(both, full_matrices=False)[2][:Q].T
    X *= START[kernel] / X.std()
    return Model(landmark_problem(Y, landmarks, kernel), X[: len(Y)], X[len(Y) :])


def metrics(F: np.ndarray, Y: np.ndarray) -> tuple[float, float, float]:
    """Return the mean distance from the rows, and mean and standard deviation of the norms."""
    norms = np.linalg.norm(F, axis=1)
    return float(np.linalg.norm(F - Y, axis=1).mean()), float(norms.mean()), float(norms.std())


class Trial(NamedTuple):
    """Metrics before and after adaptation by number of steps, and the seconds of all steps."""

    measured: dict[int, tuple[tuple[float, ...], tuple[float, ...]]]
    seconds: float


def run(kernel: str, count: int, seed: int, training: Training) -> Trial:
    """Follow the penalty down on one data set."""
    Y = make_fish_bowl(N, noise=NOISE, random_state=seed).Y
    model = pca_start(Y, find_landmarks(Y, count, seed), kernel)
    measured, seconds = {}, 0.0
    for step in range(1, max(STEPS) + 1):
        began = time.process_time()
        model = model.trained(DECAY**step, training)
        seconds += time.process_time() - began
        if step in STEPS:
            before = metrics(Y + model.residuals(), Y)
            measured[step] = before, metrics(Y + model.adapted(GAMMA).residuals(), Y)
    return Trial(measured, seconds)


def run_default(kernel: str, count: int, seed: int) -> tuple[tuple[float, ...], float, float]:
    """Return the metrics of ``UKR(landmarks=count)``, its γ and the seconds it took."""
    Y = make_fish_bowl(N, noise=NOISE, random_state=seed).Y
    began = time.process_time()
    model = UKR(kernel=kernel, landmarks=count, random_state=seed).fit(Y)
    seconds = time.process_time() - began
    F = model.inverse_transform(model.embedding_)
    return metrics(F, Y), model.smoothness_, seconds


def figure(values: list[float]) -> str:
    """Write values as mean ± standard deviation, both with three decimals."""
    return f"{np.mean(values):.3f} ± {np.std(values):.3f}"


def show_homotopy(kernel: str, trials: int, training: Training) -> None:
    """Print the homotopy with one kernel beside the reported figures."""
    rows, times = [], []
    for count in COUNTS:
        done = [run(kernel, count, seed, training) for seed in range(trials)]
        seconds = [trial.seconds for trial in done]
        reported = REPORTED_SECONDS[kernel][count]
        what = f"{kernel}, {count} landmarks, seconds"
        ledger.figure("Klanke, Table 5.9", what, reported, seconds, better="lower")
        taken = spread(seconds)
        times.append((str(count), str(REPORTED_SECONDS[kernel][count]), taken))
        for step in STEPS:
            for place, state in enumerate(("before", "after")):
                cells = [str(count), str(step), state]
                for metric, reported in enumerate(REPORTED[kernel][count, step][place]):
                    values = [trial.measured[step][place][metric] for trial in done]
                    what = f"{kernel}, {count} landmarks, {step} steps, {state}: {METRICS[metric]}"
                    ledger.figure(
                        "Klanke, Table 5.8",
                        what,
                        reported,
                        values,
                        deviation=0.005,  # half a unit of the last printed digit
                        better=None if METRICS[metric] == "norm" else "lower",
                    )
                    cells.append(f"{reported:.2f} | {figure(values)}")
                rows.append(tuple(cells))
    title = f"Fish bowl, {kernel} kernel, {training.method}, {trials} trials"
    header = ("landmarks", "steps", "adapted", *METRICS)
    show(f"{title}, reported | measured", header, rows)
    show("Seconds of the ten steps", ("landmarks", "reported", "measured"), times)


def show_default(kernel: str, trials: int) -> None:
    """Print what the library does by itself."""
    rows = []
    for count in COUNTS:
        done = [run_default(kernel, count, seed) for seed in range(trials)]
        found, gammas, seconds = zip(*done, strict=True)
        cells = [figure(list(values)) for values in zip(*found, strict=True)]
        words = f"`UKR(landmarks={count}, kernel={kernel!r})`: " + ", ".join(
            f"{name} {cell}" for name, cell in zip(METRICS, cells, strict=True)
        )
        ledger.default("Klanke, Table 5.8", words)
        rows.append((str(count), *cells, spread(list(gammas)), spread(list(seconds))))
    header = ("landmarks", *METRICS, "γ found", "seconds")
    show(f"Fish bowl, UKR(landmarks=n), {kernel} kernel, {trials} trials", header, rows)


def main(trials: int, kernel: str, method: str) -> None:
    """Print the tables."""
    show_homotopy(kernel, trials, replace(TRAINING[kernel], method=method))
    show_default(kernel, trials)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Landmark UKR of the fish bowl.")
    parser.add_argument("trials", nargs="?", type=int, default=3)
    parser.add_argument("--kernel", choices=tuple(START), default="gaussian")
    parser.add_argument("--lbfgs", action="store_true", help="L-BFGS in place of iRprop+")
    given = parser.parse_args()
    main(given.trials, given.kernel, "lbfgs" if given.lbfgs else "irprop+")
