"""Noisy half circle: robust loss, outliers, curvature bias (Klanke 2007, sections 5.1.4, 5.4).

100 points on half a circle of radius 10, q = 1, leave-one-out, 2,000 Rprop steps from the first
principal component at variance 1.

1. Squared loss and Huber's with δ = 0.01 under Gaussian and Laplacian noise of standard deviation
   σ, quartic kernel: mean distance from the circle of the reconstructions and of the manifold at
   500 places.
2. Outliers: 10 points multiplied by a factor from 0.5 to 1.5, Gaussian noise 0.25.
3. What the optimiser has to do with it: the same from L-BFGS, and Huber's loss started from the
   result of the squared one, with the error that Huber's loss minimises.
4. Local polynomials (figures 5.27 to 5.30), Gaussian kernel, σ = 0.5: bias of the radius under an
   extension penalty λ mean ||x||² on top of the leave-one-out error, and without leaving out, which
   is what `Extension(penalty=λ)` means. The thesis shows pictures; `CALIBRATED` is a prototype's
   bias on two data sets.

`UKR` scales every start to the lowest leave-one-out error; this experiment must not, so it trains
with the parts that `UKR` is made of.

    python -m experiments.half_circle [seeds]
"""

from __future__ import annotations

import sys
from dataclasses import replace

import numpy as np

from experiments import ledger
from experiments.table import show, spread
from twofold.datasets import Sample, make_half_circle
from twofold.engine import KernelSums
from twofold.kernels import get_kernel
from twofold.losses import Huber, Loss, Squared
from twofold.optimize import Solution, minimize
from twofold.regularization import LeaveOneOut
from twofold.ukr.objective import Problem
from twofold.ukr.terms import ExtensionPenalty, SumOf
from twofold.ukr.training import Training, train

STEPS = 2000
PLACES = 500
# Local polynomials take most of the time.
MOST_POLYNOMIAL_SEEDS = 3
LOSSES = {"squared": Squared(), "Huber": Huber(0.01)}
# Noise, σ: distance of the data; reconstructions, squared and Huber; manifold, squared and Huber.
REPORTED = {
    ("gaussian", 0.25): (0.201, 0.081, 0.192, 0.088, 0.194),
    ("gaussian", 0.50): (0.401, 0.171, 0.222, 0.202, 0.220),
    ("gaussian", 0.75): (0.592, 0.314, 0.256, 0.386, 0.263),
    ("gaussian", 1.00): (0.803, 0.520, 0.294, 0.618, 0.319),
    ("laplacian", 0.25): (0.184, 0.079, 0.187, 0.085, 0.190),
    ("laplacian", 0.50): (0.370, 0.159, 0.211, 0.197, 0.209),
    ("laplacian", 0.75): (0.547, 0.288, 0.251, 0.378, 0.254),
    ("laplacian", 1.00): (0.734, 0.459, 0.289, 0.587, 0.304),
}
PLACE = "Klanke, section 5.1.4, half circle"
COLUMNS = ("data", "points, squared", "points, Huber", "manifold, squared", "manifold, Huber")
REPORTED_OUTLIERS = {"squared": (0.445, 0.132), "Huber": (0.251, 0.074)}
PENALTIES = (0.0, 0.01, 0.1, 1.0)
CALIBRATED = {
    0: (-0.07, -0.17, -0.37, -0.81),
    1: (-0.15, -0.23, -0.46, -0.84),
    2: (-0.08, -0.08, -0.07, -0.03),
}


def pca_start(Y: np.ndarray) -> np.ndarray:
    """Return the first principal component at variance 1."""
    centred = Y - Y.mean(axis=0)
    X = centred @ np.linalg.svd(centred, full_matrices=False)[2][:1].T
    return X / X.std()


def pose(Y: np.ndarray, loss: Loss, kernel: str = "quartic", degree: int = 0) -> Problem:
    """Return the leave-one-out problem of a table."""
    engine = KernelSums(get_kernel(kernel), 1e-6, n_jobs=1)
    return Problem.of_rows(Y, np.ones(len(Y)), loss, LeaveOneOut("none"), engine, degree)


def solve(problem: Problem, X: np.ndarray, method: str = "rprop-") -> Solution:
    """Minimise the leave-one-out error from X, by L-BFGS until it converges."""
    steps, tol = (5000, 1e-6) if method == "lbfgs" else (STEPS, 0)
    return train(problem, X, Training(method, steps, tol, ()))


def measure(data: Sample, problem: Problem, X: np.ndarray) -> tuple[float, float, float]:
    """Return the distance of reconstructions and of the manifold, and the bias of the radius."""
    surface = problem.surface(X)
    points = surface.regress(X)
    curve = surface.regress(np.linspace(X.min(), X.max(), PLACES)[:, None])
    bias = -data.signed_distance(points).mean()
    return float(data.distance(points).mean()), float(data.distance(curve).mean()), float(bias)


def huber_error(problem: Problem, X: np.ndarray) -> float:
    """Return the leave-one-out error by Huber's loss."""
    problem = replace(problem, loss=LOSSES["Huber"])
    error = problem.reconstruction(cross_validated=True)
    return float(error.value_and_grad(X)[0] * problem.error_unit)


def columns(found: list[tuple[float, ...]]) -> list[list[float]]:
    """Turn one tuple a data set into one list a figure."""
    return [list(column) for column in zip(*found, strict=True)]


def show_losses(seeds: int) -> None:
    """Print the tables of both noises."""
    rows = []
    for (kind, noise), reported in REPORTED.items():
        found = []
        for seed in range(seeds):
            data = make_half_circle(100, noise=noise, noise_kind=kind, random_state=seed)
            figures = [float(data.distance(data.Y).mean())]
            for loss in LOSSES.values():
                problem = pose(data.Y, loss)
                figures += measure(data, problem, solve(problem, pca_start(data.Y)).X)[:2]
            found.append(tuple(figures))
        own, *measured = columns(found)
        order = (measured[0], measured[2], measured[1], measured[3])
        for name, value, values in zip(COLUMNS, reported, (own, *order), strict=True):
            better = None if name == "data" else "lower"
            ledger.figure(PLACE, f"{kind} {noise:g}, {name}", value, values, better=better)
        cells = [
            f"{value:.3f} / {spread(values)}"
            for value, values in zip(reported, (own, *order), strict=True)
        ]
        rows.append((kind, f"{noise:g}", *cells))
    header = ("noise", "σ", "data", "points, squared", "Huber", "manifold, squared", "Huber")
    show(f"Half circle, reported / measured, {seeds} seeds", header, rows)


def show_outliers(seeds: int) -> None:
    """Print the variant with outliers."""
    rows = []
    for name, loss in LOSSES.items():
        distances = []
        for seed in range(seeds):
            data = make_half_circle(100, noise=0.25, n_outliers=10, random_state=seed)
            problem = pose(data.Y, loss)
            distances.append(measure(data, problem, solve(problem, pca_start(data.Y)).X)[1])
        mean, deviation = REPORTED_OUTLIERS[name]
        ledger.figure(
            f"{PLACE} with outliers", name, mean, distances, deviation=deviation, better="lower"
        )
        rows.append((name, f"{mean} ± {deviation}", spread(distances)))
    show(f"Outliers, {seeds} seeds", ("loss", "manifold reported", "measured"), rows)


def show_optimizers(seeds: int) -> None:
    """Print that Huber's advantage goes as its error falls."""
    rows = []
    for noise, n_outliers in ((0.25, 0), (1.0, 0), (0.25, 10)):
        for method in ("rprop-", "lbfgs"):
            found: dict[str, list[tuple[float, ...]]] = {}
            for seed in range(seeds):
                data = make_half_circle(100, noise=noise, n_outliers=n_outliers, random_state=seed)
                squared, huber = (pose(data.Y, loss) for loss in LOSSES.values())
                start = pca_start(data.Y)
                first = solve(squared, start, method).X
                results = {
                    "squared": first,
                    "Huber": solve(huber, start, method).X,
                    "Huber from squared": solve(huber, first, method).X,
                }
                for name, X in results.items():
                    figures = (*measure(data, huber, X)[:2], huber_error(huber, X), float(X.std()))
                    found.setdefault(name, []).append(figures)
            for name, figures in found.items():
                cells = [spread(values) for values in columns(figures)]
                rows.append((f"{noise:g}, {n_outliers} outliers", method, name, *cells))
    header = ("σ", "method", "loss", "points", "manifold", "Huber's error", "latent std")
    show(f"Optimisers, {seeds} seeds", header, rows)


def radius_bias(data: Sample, degree: int, penalty: float, *, cross_validated: bool) -> float:
    """Return the bias of the radius under an extension penalty."""
    problem = pose(data.Y, Squared(), "gaussian", degree)
    error = problem.reconstruction(cross_validated=cross_validated)
    pull = ExtensionPenalty(penalty / problem.error_unit, problem.weights)
    start = pca_start(data.Y)
    X = minimize(SumOf([error, pull]), start, method="rprop-", max_iter=STEPS, tol=0).X
    return measure(data, problem, X)[2]


def note_biases(found: dict[int, list[list[float]]], seeds: int) -> None:
    """Put into the ledger what the pictures show, by degree, penalty and data set."""
    place = "Klanke, Figures 5.27 to 5.30"
    for degree in (0, 1):
        held = sum(all(np.diff(biases) < 0) for biases in zip(*found[degree], strict=True))
        ledger.claim(place, f"degree {degree} is pulled inwards as the penalty grows", held, seeds)
    ends = zip(found[2][-1], found[0][-1], strict=True)
    held = sum(abs(quadratic) < 0.25 * abs(constant) for quadratic, constant in ends)
    ledger.claim(place, "degree 2 stays centred at the largest penalty", held, seeds)


def show_polynomials(seeds: int) -> None:
    """Print the bias of the radius for each degree and penalty."""
    sets = [make_half_circle(100, noise=0.5, random_state=seed) for seed in range(seeds)]
    rows, found = [], {}
    for degree, known in CALIBRATED.items():
        for penalty, value in zip(PENALTIES, known, strict=True):
            biases = [
                [radius_bias(data, degree, penalty, cross_validated=chosen) for data in sets]
                for chosen in ((True, False) if penalty else (True,))
            ]
            found.setdefault(degree, []).append(biases[0])
            cells = [*map(spread, biases), ""][:2]
            rows.append((str(degree), f"{penalty:g}", f"{value:+.2f}", *cells))
    note_biases(found, seeds)
    header = ("degree", "penalty", "calibrated", "leave-one-out", "nothing left out")
    show(f"Bias of the radius, {seeds} seeds", header, rows)


def main(seeds: int) -> None:
    """Print all four tables."""
    show_losses(seeds)
    show_outliers(seeds)
    show_optimizers(seeds)
    show_polynomials(min(seeds, MOST_POLYNOMIAL_SEEDS))


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 6)
