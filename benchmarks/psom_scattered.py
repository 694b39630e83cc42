"""A 12 × 12 × 12 × 12 grid from 20,000 scattered samples of a robot arm: time, memory, error.

The samples are joint angles of a four-joint arm and its wrist positions in mm, once as they are and
once with noise of 10 mm. The smoothness is chosen by generalized cross-validation with probes. The
fit runs in a process of its own; memory is the peak of that process. Wall time depends on who else
uses the machine, so half the core seconds stand beside it: what two free cores would need at best.

    python -m benchmarks.psom_scattered
"""

from __future__ import annotations

import json
import resource
import subprocess
import sys
import time

import numpy as np

from benchmarks.report import Row, show
from twofold.datasets.robot_arm import JOINT_LIMITS, forward_kinematics
from twofold.psom.grid import Grid
from twofold.psom.interpolation import interpolate
from twofold.psom.known_places import fit_scattered

NODES, SAMPLES, NOISE = 12, 20_000, 10.0
MOST_SECONDS, MOST_MEGABYTES = 60.0, 2000.0


def make_data(n: int, noise: float, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Return joint angles and wrist positions in mm."""
    rng = np.random.default_rng(seed)
    limits = JOINT_LIMITS[:4]
    X = rng.uniform(-limits, limits, size=(n, 4))
    Y = 1000 * forward_kinematics(X)
    return X, Y + noise * rng.normal(size=Y.shape)


def measure(noise: float) -> dict[str, float]:
    """Return the figures of one fit."""
    limits = JOINT_LIMITS[:4]
    grid = Grid.make((NODES,) * 4, bounds=np.stack([-limits, limits], axis=1))
    X, Y = make_data(SAMPLES, noise, seed=0)
    wall, cores = time.perf_counter(), time.process_time()
    fit = fit_scattered(grid, X, Y, "gcv", n_jobs=2)
    wall, cores = time.perf_counter() - wall, time.process_time() - cores
    X, Y = make_data(1000, 0.0, seed=1)
    errors = np.linalg.norm(interpolate(grid, fit.W, X) - Y, axis=1)
    return {
        "seconds": wall,
        "half the core seconds": cores / 2,
        "megabytes": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
        "mean error in mm": float(errors.mean()),
        "median error in mm": float(np.median(errors)),
        "smoothness": fit.smoothness,
        "degrees of freedom": float(fit.degrees_of_freedom or 0),
        "steps": fit.n_iter,
    }


def run() -> list[Row]:
    """Return the figures without and with noise."""
    targets = {"seconds": MOST_SECONDS, "megabytes": MOST_MEGABYTES}
    rows = []
    for noise in (0.0, NOISE):
        command = [sys.executable, "-m", "benchmarks.psom_scattered", str(noise)]
        answer = subprocess.run(command, capture_output=True, text=True, check=True).stdout
        for name, value in json.loads(answer).items():
            rows.append(Row(f"noise {noise:g} mm: {name}", value, targets.get(name)))
    return rows


if __name__ == "__main__":
    if len(sys.argv) > 1:
        print(json.dumps(measure(float(sys.argv[1]))))
    else:
        show("PSOM+ from scattered samples", run())
