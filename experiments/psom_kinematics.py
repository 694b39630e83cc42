"""PSOM and PSOM+ of a robot arm (Klanke 2007, sections 3.1, 3.2 and 3.4).

The wrist of an arm like the PA-10 as a function of its first four joints, over their whole range,
on 8 × 8 × 8 × 8 nodes. Errors are distances in millimetres at 1,000 random postures: mean ±
standard deviation over the postures as in the thesis, with the smallest and the largest mean of
several draws (of postures, and of noise, gaps or samples). Dimensions and ranges of the arm are not
in the thesis: see twofold.datasets.robot_arm. Seconds are of one core.

    bell       Figures 3.2 and 3.3: a bell in one dimension, the curves as largest errors
    forward    Table 3.1: full and local maps, cubic splines
    local      ways to read the local column of Table 3.1 for Chebyshev nodes
    noise      Figure 3.9: all nodes with noise of 10 mm a coordinate, λ by several rules
    missing    Table 3.2: nodes left out, filled by least roughness or by averages
    scattered  Table 3.3: samples anywhere in place of the grid
    inverse    joint angles for 1,000 places of the wrist (not in the thesis)

    python -m experiments.psom_kinematics [bell forward …] [--draws 3]
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from scipy.interpolate import RegularGridInterpolator
from scipy.ndimage import uniform_filter
from sklearn.exceptions import ConvergenceWarning

from experiments import ledger
from experiments.table import middle, show
from twofold import PSOM
from twofold.array_types import FloatArray, IntArray
from twofold.datasets import forward_kinematics, make_robot_arm
from twofold.datasets.robot_arm import JOINT_LIMITS
from twofold.psom import Discrepancy, Grid
from twofold.psom.interpolation import Windows, jets

SHAPE = (8, 8, 8, 8)
LIMITS = JOINT_LIMITS[:4]
BOUNDS = np.column_stack([-LIMITS, LIMITS])
POSTURES = 1000
SPACINGS = ("regular", "chebyshev")
SIGMA = 0.010
Predict = Callable[[FloatArray], FloatArray]
SMOOTHNESS = (0.0, 1e-4, 5e-4, 1e-3, 2e-3, 5e-3, 1e-2, 0.1)

REPORTED_FORWARD = {
    "full": ("0.80 ± 0.86", "0.54 ± 0.27"),
    "local, 3 nodes": ("17.92 ± 9.35", "34.95 ± 16.67"),
    "local, 5 nodes": ("3.59 ± 2.48", "18.01 ± 7.47"),
    "cubic splines": ("3.59 ± 3.25", "2.56 ± 1.47"),
}
# By number of missing nodes: optimised, mean of the neighbours, mean of all.
REPORTED_MISSING = {
    40: ("0.64 ± 0.45", "7.53 ± 15.38", "15.65 ± 30.53"),
    100: ("1.03 ± 1.18", "25.86 ± 40.21", "56.29 ± 85.41"),
    400: ("2.12 ± 2.21", "62.90 ± 60.67", "140.32 ± 136.02"),
}
REPORTED_SCATTERED = {
    2048: "7.45 ± 15.44",
    3072: "4.80 ± 13.21",
    4096: "2.85 ± 7.96",
    6144: "1.55 ± 4.75",
}


def make_map(**parameters: Any) -> PSOM:
    """Return an unfitted PSOM over the joint ranges, on one core."""
    return PSOM(SHAPE, bounds=BOUNDS, n_jobs=1, **parameters)


def wrist_at_nodes(spacing: str = "chebyshev") -> FloatArray:
    """Return the true places (4096, 3) of the wrist at the nodes."""
    return forward_kinematics(Grid.make(SHAPE, spacing, BOUNDS).places())


class Errors:
    """Distances in millimetres at random postures, gathered over draws."""

    def __init__(self) -> None:
        self.draws: list[FloatArray] = []

    def add(self, predict: Predict, draw: int, limits: FloatArray = LIMITS) -> Errors:
        """Test a map at the postures of a draw."""
        X = np.random.default_rng(1000 + draw).uniform(-limits, limits, (POSTURES, 4))
        self.draws.append(1e3 * np.linalg.norm(predict(X) - forward_kinematics(X), axis=1))
        return self

    def short(self) -> str:
        """Write mean ± standard deviation over postures."""
        mean, deviation = (np.mean([of(d) for d in self.draws]) for of in (np.mean, np.std))
        return f"{mean:.2f} ± {deviation:.2f}"

    def __str__(self) -> str:
        """Write the same, and how far the mean of a draw goes."""
        means = [distance.mean() for distance in self.draws]
        return self.short() + (f" ({min(means):.2f} to {max(means):.2f})" if means[1:] else "")

    def median(self) -> str:
        """Write the median over postures."""
        return f"{np.mean([np.median(distance) for distance in self.draws]):.2f}"


def note(table: str, what: str, reported: str, errors: Errors) -> None:
    """Put the mean error of each draw into the ledger."""
    means = [distance.mean() for distance in errors.draws]
    known = float(reported.partition(" ")[0])
    ledger.figure(f"Klanke, {table}", what, known, means, better="lower")


def tested(model_of_draw: Callable[[int], PSOM], draws: int) -> Errors:
    """Return the errors of one model a draw."""
    errors = Errors()
    for draw in range(draws):
        errors.add(model_of_draw(draw).inverse_transform, draw)
    return errors


def show_bell(draws: int) -> None:
    """Print the largest errors of maps through a bell exp(-8x²)."""
    x = np.linspace(-1, 1, 2001)[:, None]

    def bell(places: FloatArray) -> FloatArray:
        return np.exp(-8 * places**2)

    def curve(nodes: FloatArray) -> PSOM:
        return PSOM(nodes=[nodes], bounds=[(-1, 1)], n_jobs=1).fit_grid(bell(nodes[:, None]))

    def largest(model: PSOM, at: FloatArray) -> float:
        return float(np.abs(model.inverse_transform(at) - bell(at)).max())

    rows = []
    for count in (7, 12):
        curves = [curve(Grid.make([count], spacing).nodes[0]) for spacing in SPACINGS]
        worst = [largest(each, x) for each in curves]
        words = f"{count} nodes: Chebyshev nodes err far less than regular ones"
        ledger.claim("Klanke, Figures 3.2 and 3.3", words, worst[1] < 0.5 * worst[0], 1)
        rows.append((f"{count} nodes", *(f"{value:.4f}" for value in worst)))
    show("Bell (Figure 3.2): largest error", ("", *SPACINGS), rows)
    nodes, rows = np.linspace(-1, 1, 7), []
    parts = [curve(nodes[first : first + 3]) for first in range(3)]
    for first, part in enumerate(parts):
        inside = x[(x[:, 0] >= nodes[first]) & (x[:, 0] <= nodes[first + 2])]
        rows.append((f"nodes {first + 1} to {first + 3}", f"{largest(part, inside):.4f}"))
    overlap = x[(x[:, 0] >= nodes[1]) & (x[:, 0] <= nodes[2])]
    one, other = (part.inverse_transform(overlap) for part in parts[:2])
    gap = np.abs(one - other).max()
    words = "local maps disagree visibly where they overlap"
    ledger.claim("Klanke, Figures 3.2 and 3.3", words, gap > 0.01, 1)
    rows.append(("1 to 3 against 2 to 4, where they overlap", f"{gap:.4f}"))
    show("Bell (Figure 3.3): parts of three of 7 regular nodes", ("", "largest error"), rows)


def show_forward(draws: int) -> None:
    """Print Table 3.1."""
    settings: dict[str, dict[str, Any]] = {
        "full": {},
        "local, 3 nodes": {"local": 3},
        "local, 5 nodes": {"local": 5},
    }
    rows = []
    for name, reported in REPORTED_FORWARD.items():
        cells = [name]
        for spacing, figure in zip(SPACINGS, reported, strict=True):
            W = wrist_at_nodes(spacing)
            errors = Errors()
            if name in settings:
                predict = make_map(nodes=spacing, **settings[name]).fit_grid(W).inverse_transform
            else:
                axes = Grid.make(SHAPE, spacing, BOUNDS).nodes
                predict = RegularGridInterpolator(
                    axes, W.reshape(*SHAPE, 3), "cubic", bounds_error=False, fill_value=None
                )
            for draw in range(draws):
                errors.add(predict, draw)
            note("Table 3.1", f"{spacing}, {name}", figure, errors)
            cells += [figure, str(errors)]
        rows.append(tuple(cells))
    header = ("", "regular, reported", "measured", "Chebyshev, reported", "measured")
    show(f"Forward kinematics (Table 3.1), mm, {draws} draws", header, rows)


# Where the window of n_l nodes begins on one axis, by its nodes a and the coordinate x.
AxisRule = Callable[[FloatArray, FloatArray, int], IntArray]


def nearest(a: FloatArray, x: FloatArray) -> IntArray:
    """Return the index of the nearest of the places a."""
    return np.abs(x[:, None] - a).argmin(axis=1)


def as_if_regular(a: FloatArray, x: FloatArray, n_l: int) -> IntArray:
    """Count nodes as if they were equidistant from the first to the last."""
    return np.rint((x - a[0]) / (a[-1] - a[0]) * (len(a) - 1)).astype(int) - n_l // 2


def side_by_side(a: FloatArray, x: FloatArray, n_l: int) -> IntArray:
    """Take windows that share their outer nodes only."""
    cell = np.clip(np.searchsorted(a, x) - 1, 0, len(a) - 2)
    return cell // (n_l - 1) * (n_l - 1)


AXIS_RULES: dict[str, AxisRule] = {
    "around the nearest node": lambda a, x, n_l: nearest(a, x) - n_l // 2,
    "as if nodes were equidistant": as_if_regular,
    "leftmost window around x": lambda a, x, n_l: np.searchsorted(a, x) - n_l + 1,
    "windows side by side": side_by_side,
}


def windows_by_axis(rule: AxisRule, grid: Grid, X: FloatArray, n_l: int) -> IntArray:
    """Return the first nodes (m, 4) of windows chosen axis by axis."""
    axes = zip(grid.nodes, X.T, strict=True)
    return np.stack([np.clip(rule(a, x, n_l), 0, len(a) - n_l) for a, x in axes], axis=1)


def windows_by_wrist(grid: Grid, X: FloatArray, n_l: int) -> IntArray:
    """Return windows around the node whose wrist is nearest: the best match in data space."""
    W, Y = forward_kinematics(grid.places()), forward_kinematics(X)
    squares = (W**2).sum(axis=1) - 2 * Y @ W.T
    node = np.stack(np.unravel_index(squares.argmin(axis=1), grid.shape), axis=1)
    return np.clip(node - n_l // 2, 0, np.array(grid.shape) - n_l)


def local_cells(choose: Any, limits: FloatArray, draws: int) -> list[str]:
    """Return errors for regular and Chebyshev nodes, three and five to a window."""
    cells = []
    for spacing in SPACINGS:
        grid = Grid.make(SHAPE, spacing, np.column_stack([-limits, limits]))
        W = forward_kinematics(grid.places())
        for n_l in (3, 5):
            errors = Errors()

            def predict(X: FloatArray, grid: Grid = grid, W: Any = W, n_l: int = n_l) -> FloatArray:
                return jets(Windows.of(grid, n_l), W, X, choose(grid, X, n_l), 0, 1)[:, 0]

            for draw in range(draws):
                errors.add(predict, draw, limits)
            cells.append(errors.short())
    return cells


def warped_cells(clipped: bool, draws: int) -> list[str]:
    """Return errors of local polynomials in the index of Chebyshev nodes in place of x."""
    count = SHAPE[0]

    def index(X: FloatArray) -> FloatArray:
        found = np.arccos(-X / LIMITS) / np.pi * count - 0.5
        return np.clip(found, 0, count - 1) if clipped else found

    cells = ["as above", "as above"]
    for n_l in (3, 5):
        axes, errors = [np.arange(count, dtype=float)] * 4, Errors()
        model = PSOM(nodes=axes, local=n_l, n_jobs=1).fit_grid(wrist_at_nodes())
        for draw in range(draws):
            errors.add(lambda X, f=model.inverse_transform: f(index(X)), draw)  # type: ignore[misc]
        cells.append(errors.short())
    return cells


def show_local(draws: int) -> None:
    """Print the local maps of Table 3.1 by several readings."""
    figures = [REPORTED_FORWARD[f"local, {n_l} nodes"] for n_l in (3, 5)]
    rows = [("reported", *(figure[place] for place in (0, 1) for figure in figures))]
    for name, rule in AXIS_RULES.items():
        rows.append((name, *local_cells(partial(windows_by_axis, rule), LIMITS, draws)))
    around_nearest = partial(windows_by_axis, AXIS_RULES["around the nearest node"])
    rows.append(("joints ±180°", *local_cells(around_nearest, np.full(4, np.pi), draws)))
    rows.append(("around the nearest wrist", *local_cells(windows_by_wrist, LIMITS, draws)))
    for clipped, name in ((False, "polynomials in the index"), (True, "the same, clipped")):
        rows.append((name, *warped_cells(clipped, draws)))
    header = ("window", "regular, 3", "regular, 5", "Chebyshev, 3", "Chebyshev, 5")
    show(f"Local maps (Table 3.1), mm, {draws} draws", header, rows)


def show_noise(draws: int) -> None:
    """Print what smoothing makes of noisy nodes."""
    W = wrist_at_nodes()

    def noisy(draw: int) -> FloatArray:
        return W + np.random.default_rng(draw).normal(0, SIGMA, W.shape)

    rows: list[tuple[str, ...]] = []
    means: dict[Any, list[float]] = {}
    rules: list[Any] = [*SMOOTHNESS, "gcv", Discrepancy(SIGMA)]
    for rule in rules:
        models = [make_map(smoothness=rule).fit_grid(noisy(draw)) for draw in range(draws)]
        errors = tested(models.__getitem__, draws)
        change = [
            1e3 * np.linalg.norm(model.node_values_ - noisy(draw), axis=1).mean()
            for draw, model in enumerate(models)
        ]
        found = middle([float(model.smoothness_) for model in models])
        means[rule if isinstance(rule, float) else str(rule)] = [
            distance.mean() for distance in errors.draws
        ]
        name = f"{rule:g}" if isinstance(rule, float) else f"{rule}: {found}"
        rows.append((name, str(errors), f"{np.mean(change):.1f}"))
    held = np.less(means[2e-3], means[0.0]).sum()
    words = "λ = 0.002 lowers the mean error of nodes with noise"
    ledger.claim("Klanke, Figure 3.9", words, held, draws)
    ledger.default(
        "Klanke, Figure 3.9",
        f"λ by GCV: {np.mean(means['gcv']):.1f} mm, without smoothing {np.mean(means[0.0]):.1f} mm",
    )
    title = f"Noise of 10 mm on all nodes (Figure 3.9), mm, {draws} draws"
    show(title, ("λ", "error", "mean change of a node"), rows)


def neighbour_means(W: FloatArray, missing: IntArray) -> FloatArray:
    """Fill missing nodes with the mean of the known ones among the 80 around each."""
    known = np.ones(len(W))
    known[missing] = 0

    def box_sum(values: FloatArray) -> FloatArray:
        return uniform_filter(values.reshape(SHAPE), 3, mode="constant").ravel()

    sums = np.column_stack([box_sum(column * known) for column in W.T])
    filled = W.copy()
    filled[missing] = (sums / box_sum(known)[:, None])[missing]
    return filled


def overall_means(W: FloatArray, missing: IntArray) -> FloatArray:
    """Fill missing nodes with the mean of all known ones."""
    filled = W.copy()
    filled[missing] = np.delete(W, missing, axis=0).mean(axis=0)
    return filled


def show_missing(draws: int) -> None:
    """Print Table 3.2."""
    W = wrist_at_nodes()
    rows = []
    for count, reported in REPORTED_MISSING.items():
        cells = [str(count)]
        for fill, figure in zip((None, neighbour_means, overall_means), reported, strict=True):

            def model(draw: int, fill: Any = fill, count: int = count) -> PSOM:
                chosen = np.random.default_rng(draw).permutation(len(W))[:count]
                if fill is not None:
                    return make_map().fit_grid(fill(W, chosen))
                gaps = W.copy()
                gaps[chosen] = np.nan
                return make_map().fit_grid(gaps)

            errors = tested(model, draws)
            name = "least roughness" if fill is None else fill.__name__
            note("Table 3.2", f"{count} missing, {name}", figure, errors)
            cells.append(f"{figure} | {errors}")
        rows.append(tuple(cells))
    header = ("missing", "least roughness", "mean of neighbours", "mean of all")
    show(f"Missing nodes (Table 3.2), mm, {draws} draws, reported | measured", header, rows)


def show_scattered(draws: int) -> None:
    """Print Table 3.3."""
    rows: list[tuple[str, ...]] = []
    for m, reported in REPORTED_SCATTERED.items():
        for rule in (1e-6, "gcv"):
            began = time.process_time()
            samples = [make_robot_arm(m, with_angles=False, random_state=n) for n in range(draws)]
            models = [make_map(smoothness=rule).fit_scattered(s.latent, s.Y) for s in samples]
            seconds = (time.process_time() - began) / draws
            errors = tested(models.__getitem__, draws)
            found = middle([float(model.smoothness_) for model in models], 2)
            if rule == 1e-6:
                note("Table 3.3", f"{m} samples", reported, errors)
            else:
                ledger.default("Klanke, Table 3.3", f"{m} samples, λ by GCV: {errors.short()} mm")
            name = f"{rule:g}" if isinstance(rule, float) else f"{rule}: {found}"
            figures = (str(errors), errors.median(), f"{seconds:.1f}")
            rows.append((str(m), name, reported, *figures))
    header = ("samples", "λ", "reported", "measured", "median", "seconds")
    show(f"Scattered samples (Table 3.3), mm, {draws} draws", header, rows)


def show_inverse(draws: int) -> None:
    """Print how well places of the wrist are reached, from nodes or from the present posture."""
    angles = Grid.make(SHAPE, "chebyshev", BOUNDS).places()
    model = make_map().fit_grid(np.hstack([forward_kinematics(angles), angles]))
    rows: list[tuple[str, ...]] = []
    for name in ("best nodes, 3", "0.2 rad away, 1"):
        errors, missed, slow, seconds = [], 0, 0, 0.0
        for draw in range(draws):
            test = make_robot_arm(POSTURES, random_state=1000 + draw)
            wanted = np.where(np.arange(7) < 3, test.Y, np.nan)
            off = np.random.default_rng(draw).normal(size=(POSTURES, 4))
            present = test.latent + 0.2 * off / np.linalg.norm(off, axis=1, keepdims=True)
            start = np.clip(present, *BOUNDS.T) if "away" in name else None
            began = time.process_time()
            with warnings.catch_warnings(action="ignore", category=ConvergenceWarning):
                found = model.best_match(wanted, start=start)
            seconds += (time.process_time() - began) / draws
            off_target = forward_kinematics(found.places) - test.Y[:, :3]
            errors.append(1e3 * np.linalg.norm(off_target, axis=1))
            missed += int((found.squared_errors > 1e-6).sum())
            slow += int((~found.converged).sum())
        every = np.concatenate(errors)
        figures = (f"{every.mean():.2f} ± {every.std():.2f}", f"{np.median(every):.2f}")
        counts = (f"{missed / draws:.1f}", f"{slow / draws:.1f}", f"{seconds:.2f}")
        rows.append((name, *figures, *counts))
    header = ("start", "true error", "median", "> 1 mm on the map", "not converged", "seconds")
    show(f"Joint angles for {POSTURES} places of the wrist, mm, {draws} draws", header, rows)


PARTS: dict[str, Callable[[int], None]] = {
    "bell": show_bell,
    "forward": show_forward,
    "local": show_local,
    "noise": show_noise,
    "missing": show_missing,
    "scattered": show_scattered,
    "inverse": show_inverse,
}


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="PSOM and PSOM+ of a robot arm.")
    parser.add_argument("parts", nargs="*", help=f"of {', '.join(PARTS)}; all by default")
    parser.add_argument("--draws", type=int, default=3)
    given = parser.parse_args()
    unknown = set(given.parts) - set(PARTS)
    if unknown:
        parser.error(f"no part called {', '.join(sorted(unknown))}; there are {', '.join(PARTS)}")
    for part in given.parts or PARTS:
        PARTS[part](given.draws)
