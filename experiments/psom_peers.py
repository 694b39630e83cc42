"""PSOM beside what one would take in its place, on the same data in one run.

The wrist of the robot arm over its four joints, 4,096 rows, error in millimetres at 1,000 random
postures:

    grid       8 × 8 × 8 × 8 Chebyshev nodes, exact
    noisy      the same with noise of 10 mm a coordinate
    scattered  as many random postures, exact

Peers: SciPy's RegularGridInterpolator (linear, cubic splines) and RBFInterpolator (thin plates, of
all rows or of the nearest ones; of noisy rows with the best of five smoothings for the test
postures, an advantage PSOM does not get), scikit-learn's GaussianProcessRegressor (Gaussian kernel
with one width a joint, learned on 400 rows, then given all). And without known places:

    bowl       1,000 points of the fish bowl with noise 0.1: PSOM+ and UKR, as in psom_manifolds

Seconds are of one core, fit and answers; ratios are to PSOM. Several draws: median (smallest to
largest) of the mean error.

    python -m experiments.psom_peers [grid noisy scattered bowl] [--draws 2]
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from scipy.interpolate import RBFInterpolator, RegularGridInterpolator
from sklearn.exceptions import ConvergenceWarning
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, WhiteKernel

from experiments.psom_kinematics import BOUNDS, POSTURES, SHAPE, SIGMA, make_map
from experiments.table import middle, show
from twofold import PSOM, UKR
from twofold.array_types import FloatArray
from twofold.contract import TwoWayModel
from twofold.datasets import forward_kinematics, make_fish_bowl, make_robot_arm
from twofold.psom import Grid

SMOOTHING = (0.0, 1e-3, 1e-2, 1e-1, 1.0)
NEIGHBOURS = 100
ROWS_OF_WIDTHS = 400
BOWL_ROWS, BOWL_NOISE, BOWL_RADIUS = 1000, 0.1, 10.0


class Rows(NamedTuple):
    """Joint angles and places of the wrist."""

    X: FloatArray
    Y: FloatArray


# Fits to rows and returns answers at other angles.
Peer = Callable[[Rows, FloatArray], FloatArray]


def psom_grid(rows: Rows, X: FloatArray) -> FloatArray:
    return make_map().fit_grid(rows.Y).inverse_transform(X)


def psom_denoised(rows: Rows, X: FloatArray) -> FloatArray:
    return make_map(smoothness="gcv").fit_grid(rows.Y).inverse_transform(X)


def psom_scattered(rows: Rows, X: FloatArray) -> FloatArray:
    return make_map().fit_scattered(rows.X, rows.Y).inverse_transform(X)


def regular_grid(method: str) -> Peer:
    """Return SciPy's interpolation on a grid; beyond the outer nodes it goes on as it is there."""

    def answer(rows: Rows, X: FloatArray) -> FloatArray:
        axes = Grid.make(SHAPE, "chebyshev", BOUNDS).nodes
        values = rows.Y.reshape(*SHAPE, 3)
        return RegularGridInterpolator(axes, values, method, bounds_error=False, fill_value=None)(X)

    return answer


def radial(neighbours: int | None, smoothing: float) -> Peer:
    """Return SciPy's interpolation by thin plates."""

    def answer(rows: Rows, X: FloatArray) -> FloatArray:
        found = RBFInterpolator(rows.X, rows.Y, neighbors=neighbours, smoothing=smoothing)
        return found(X)

    return answer


def gaussian_process(rows: Rows, X: FloatArray) -> FloatArray:
    """Return a Gaussian process whose kernel was learned on some of the rows."""
    few = np.random.default_rng(0).permutation(len(rows.X))[:ROWS_OF_WIDTHS]
    kernel = ConstantKernel(0.1) * RBF(np.ones(4)) + WhiteKernel(1e-4, (1e-10, 1.0))
    with warnings.catch_warnings():
        # The noise of exact data is at its lower bound, as it should be.
        warnings.simplefilter("ignore", ConvergenceWarning)
        learned = GaussianProcessRegressor(kernel).fit(rows.X[few], rows.Y[few]).kernel_
        process = GaussianProcessRegressor(learned, optimizer=None).fit(rows.X, rows.Y)
    return process.predict(X)


def exact_rows(draw: int) -> Rows:
    X = Grid.make(SHAPE, "chebyshev", BOUNDS).places()
    return Rows(X, forward_kinematics(X))


def noisy_rows(draw: int) -> Rows:
    X, Y = exact_rows(draw)
    return Rows(X, Y + np.random.default_rng(draw).normal(0, SIGMA, Y.shape))


def scattered_rows(draw: int) -> Rows:
    sample = make_robot_arm(int(np.prod(SHAPE)), with_angles=False, random_state=draw)
    return Rows(sample.latent, sample.Y)


THIN_PLATES: dict[str, Any] = {
    f"thin plates, {NEIGHBOURS} neighbours": NEIGHBOURS,
    "thin plates, all rows": None,
}
# Of each kind of data: how it is drawn, and who answers beside thin plates; PSOM comes first.
CASES: dict[str, tuple[Callable[[int], Rows], dict[str, Peer]]] = {
    "grid": (
        exact_rows,
        {
            "PSOM": psom_grid,
            "grid, linear": regular_grid("linear"),
            "grid, cubic splines": regular_grid("cubic"),
            "Gaussian process": gaussian_process,
        },
    ),
    "noisy": (
        noisy_rows,
        {
            "PSOM, λ by GCV": psom_denoised,
            "PSOM, not smoothed": psom_grid,
            "grid, linear": regular_grid("linear"),
            "grid, cubic splines": regular_grid("cubic"),
            "Gaussian process": gaussian_process,
        },
    ),
    "scattered": (
        scattered_rows,
        {"PSOM, λ by GCV": psom_scattered, "Gaussian process": gaussian_process},
    ),
}


def measured(peer: Peer, draw_rows: Callable[[int], Rows], draws: int) -> tuple[FloatArray, float]:
    """Return the mean error of each draw in millimetres, and the seconds of one."""
    errors, seconds = [], 0.0
    for draw in range(draws):
        rows = draw_rows(draw)
        test = make_robot_arm(POSTURES, with_angles=False, random_state=1000 + draw)
        began = time.process_time()
        found = peer(rows, test.latent)
        seconds += (time.process_time() - began) / draws
        errors.append(1e3 * np.linalg.norm(found - test.Y, axis=1).mean())
    return np.array(errors), seconds


def best_thin_plates(
    neighbours: int | None, draw_rows: Callable[[int], Rows], draws: int, smoothing: Any
) -> tuple[FloatArray, float, float]:
    """Return error, seconds and smoothing of the best of several."""
    runs = [(*measured(radial(neighbours, s), draw_rows, draws), s) for s in smoothing]
    return min(runs, key=lambda run: run[0].mean())


def show_case(case: str, draws: int) -> None:
    """Print PSOM and its peers on one kind of data."""
    draw_rows, peers = CASES[case]
    draws = 1 if case == "grid" else draws
    # Compiling is not what is to be timed.
    psom_grid(exact_rows(0), np.zeros((1, 4)))
    found = {name: measured(peer, draw_rows, draws) for name, peer in peers.items()}
    smoothing = SMOOTHING if case == "noisy" else SMOOTHING[:1]
    for name, neighbours in THIN_PLATES.items():
        errors, seconds, best = best_thin_plates(neighbours, draw_rows, draws, smoothing)
        found[f"{name}, smoothing {best:g}" if case == "noisy" else name] = errors, seconds
    first_errors, first_seconds = next(iter(found.values()))
    rows: list[tuple[str, ...]] = [
        (
            name,
            middle(list(errors)) if draws > 1 else f"{errors[0]:.3g}",
            f"{errors.mean() / first_errors.mean():.2g}",
            f"{seconds:.2f}",
            f"{seconds / first_seconds:.2g}",
        )
        for name, (errors, seconds) in found.items()
    ]
    show(f"{case}, {draws} draw(s)", ("", "error, mm", "ratio", "seconds", "ratio"), rows)


def show_bowl(draws: int) -> None:
    """Print PSOM+ and UKR on the fish bowl."""
    rows: list[tuple[str, ...]] = []
    makers: dict[str, Callable[[], TwoWayModel]] = {
        "PSOM+, 12 × 12": lambda: PSOM(2, grid=(12, 12), n_jobs=1, random_state=0),
        "UKR": lambda: UKR(2, n_jobs=1, random_state=0),
    }
    first = 0.0
    for name, make in makers.items():
        errors, distances, seconds = [], [], 0.0
        for draw in range(-1, draws):
            train, test = (
                make_fish_bowl(BOWL_ROWS, noise=BOWL_NOISE, random_state=seed)
                for seed in (draw + 1, 1001 + draw)
            )
            began = time.process_time()
            model = make().fit(train.Y)
            taken = time.process_time() - began
            if draw < 0:  # the first run also compiles
                continue
            seconds += taken / draws
            images = model.reconstruct(test.Y)
            errors.append(float(((images - test.Y) ** 2).sum(axis=1).mean()))
            off = np.linalg.norm(images, axis=1) - BOWL_RADIUS
            distances.append(float(np.sqrt(np.mean(off**2))))
        first = first or seconds
        figures = middle(errors), middle(distances), f"{seconds:.2f}", f"{seconds / first:.2g}"
        rows.append((name, *figures))
    header = ("", "squared error of test rows", "from the sphere", "seconds", "ratio")
    show(f"Fish bowl, {draws} draws", header, rows)


def main(parts: list[str], draws: int) -> None:
    """Print the tables."""
    for part in parts:
        if part == "bowl":
            show_bowl(draws)
        else:
            show_case(part, draws)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="PSOM beside what one would take in its place.")
    parser.add_argument("parts", nargs="*", help=f"of {', '.join(CASES)}, bowl; all by default")
    parser.add_argument("--draws", type=int, default=2)
    given = parser.parse_args()
    if not {*CASES, "bowl"}.issuperset(given.parts):
        parser.error(f"parts are {', '.join(CASES)} and bowl; got {' '.join(given.parts)}")
    main(given.parts or [*CASES, "bowl"], given.draws)
