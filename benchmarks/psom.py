"""Parameterized self-organizing maps: inverse kinematics of 1,000 targets on an 8^4 grid.

Node values are the place of the wrist and the four joint angles (D = 7); the search is on the place
alone. Targets are reachable: they belong to random postures. "Reached" means that the arm itself,
not only the map, ends within 1 mm of the target at the angles found.

    python -m benchmarks.psom
"""

from __future__ import annotations

import numpy as np

from benchmarks.report import Row, best_time, show
from twofold.datasets import forward_kinematics, make_robot_arm
from twofold.datasets.robot_arm import JOINT_LIMITS
from twofold.psom.best_match import best_match
from twofold.psom.grid import Grid

TARGETS = 1_000
MOST_SECONDS = 2.0


def inverse_kinematics() -> list[Row]:
    """Measure the search, the discrete start included, for one start and for three."""
    limits = JOINT_LIMITS[:4]
    grid = Grid.make((8, 8, 8, 8), bounds=np.stack([-limits, limits], axis=1))
    W = np.hstack([forward_kinematics(grid.places()), grid.places()])
    targets = make_robot_arm(TARGETS, with_angles=False, random_state=0).Y
    Y = np.hstack([targets, np.full((TARGETS, 4), np.nan)])
    rows = []
    for n_starts, share in ((1, 0.93), (3, 0.97)):
        name = f"inverse kinematics, starts {n_starts}"
        seconds = best_time(lambda n=n_starts: best_match(grid, W, Y, n_starts=n), repeats=3)
        found = best_match(grid, W, Y, n_starts=n_starts)
        off = np.linalg.norm(forward_kinematics(found.places) - targets, axis=1)
        rows += [
            Row(f"{name}, seconds", seconds, MOST_SECONDS),
            Row(f"{name}, share reached", float(np.mean(off < 1e-3)), share, at_most=False),
            Row(f"{name}, share converged", found.converged.mean(), 0.99, at_most=False),
            Row(f"{name}, steps a target", found.n_iter.mean()),
        ]
    return rows


def run() -> list[Row]:
    """Measure."""
    return inverse_kinematics()


if __name__ == "__main__":
    show("Parameterized self-organizing maps", run())
