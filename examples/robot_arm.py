"""A robot arm that reaches along a line: one PSOM as forward and inverse kinematics.

The map is built from 8 × 8 × 8 × 8 postures of a four-joint arm, each with the place of its wrist.
Rows with the wrist known and the angles left out (NaN) are then completed. A wrist can be put in
one place by many postures: asked for each target alone the arm may jump between them, started from
the present posture it moves on smoothly.

    python examples/robot_arm.py [picture.png]
"""

from __future__ import annotations

import sys
import time
from typing import Any

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np
from matplotlib.transforms import Bbox

from twofold import PSOM
from twofold.array_types import FloatArray
from twofold.datasets.robot_arm import JOINT_LIMITS, arm_pose, forward_kinematics
from twofold.psom import Grid

SHAPE = (8, 8, 8, 8)
BOUNDS = np.column_stack([-JOINT_LIMITS[:4], JOINT_LIMITS[:4]])
N_TARGETS = 49
FIRST, LAST = np.array([0.45, -0.55, 0.1]), np.array([0.45, 0.55, 0.5])
# An elbow that is bent and held up.
PRESENT = np.radians([-60.0, 30.0, 0.0, 90.0])
DRAWN_EVERY = 6
GREY, RED = "#999999", "#d62728"


def learn_arm() -> PSOM:
    """Return a map of postures at the nodes: rows are the wrist (3) and the angles (4)."""
    angles = Grid.make(SHAPE, "chebyshev", BOUNDS).places()
    return PSOM(len(SHAPE), grid=SHAPE, bounds=BOUNDS).fit_grid(
        np.hstack([forward_kinematics(angles), angles])
    )


def follow(arm: PSOM, wanted: FloatArray, present: FloatArray) -> FloatArray:
    """Return the angles for one target after the other, each from the posture before."""
    postures = []
    for row in wanted:
        present = arm.best_match(row[None], start=present[None]).places[0]
        postures.append(present)
    return np.array(postures)


def report(name: str, angles: FloatArray, targets: FloatArray) -> None:
    """Print how near the true arm comes to the targets, and how far its joints turn at a time."""
    error = 1e3 * np.linalg.norm(forward_kinematics(angles) - targets, axis=1)
    turn = np.degrees(np.abs(np.diff(angles, axis=0)).max())
    print(
        f"{name:34s} misses by {error.mean():.2f} mm on average, {error.max():.2f} mm at most; "
        f"largest turn of a joint between targets {turn:.0f}°"
    )


def draw_arm(axis: Any, title: str, angles: FloatArray, targets: FloatArray) -> None:
    """Draw some of the postures, from the first (dark) to the last (bright)."""
    colours = matplotlib.colormaps["viridis"]
    chains = arm_pose(angles).chain
    around = np.linspace(0, 2 * np.pi, 40)
    base = np.column_stack([0.15 * np.cos(around), 0.15 * np.sin(around), 0 * around])
    axis.plot(*base.T, color=GREY, lw=1.5)
    axis.plot(*chains[0, :2].T, color=GREY, lw=7, solid_capstyle="round")
    for number in range(0, len(chains), DRAWN_EVERY):
        colour = colours(0.92 * number / len(chains))
        axis.plot(*chains[number, 1:].T, "-", color=colour, lw=3.5, solid_capstyle="round")
        axis.plot(*chains[number, 2:3].T, "o", color=colour, ms=6)
    axis.plot(*targets.T, color=RED, lw=1.2)
    axis.plot(*targets[::DRAWN_EVERY].T, "o", color=RED, ms=4)
    axis.set(xlim=(-0.3, 0.5), ylim=(-0.6, 0.6), zlim=(0, 0.8))
    axis.set_title(title, y=0.85)
    axis.set_box_aspect((0.8, 1.2, 0.8), zoom=1.22)
    axis.view_init(elev=20, azim=15)
    axis.set_axis_off()


def main(path: str) -> None:
    """Learn, reach, print, draw."""
    began = time.perf_counter()
    arm = learn_arm()
    print(f"{arm.grid_.size} postures learned in {time.perf_counter() - began:.1f} s")
    targets = FIRST + np.linspace(0, 1, N_TARGETS)[:, None] * (LAST - FIRST)
    wanted = np.hstack([targets, np.full((N_TARGETS, 4), np.nan)])
    each_alone = arm.complete(wanted)[:, 3:]
    in_turn = follow(arm, wanted, PRESENT)
    report("each target alone (complete):", each_alone, targets)
    report("from the present posture (start):", in_turn, targets)
    figure, axes = plt.subplots(1, 2, figsize=(10, 4.4), subplot_kw={"projection": "3d"})
    draw_arm(axes[0], "each target alone", each_alone, targets)
    draw_arm(axes[1], "started from the present posture", in_turn, targets)
    figure.subplots_adjust(left=0, right=1, bottom=0, top=1, wspace=0)
    figure.savefig(path, dpi=120, bbox_inches=Bbox([[0.1, 0.85], [9.5, 3.85]]))  # less margin
    print(f"picture: {path}")


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else "robot_arm.png")
