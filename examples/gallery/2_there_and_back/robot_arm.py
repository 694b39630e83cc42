"""A robot arm that finds its joint angles.

One PSOM knows wrist and joint angles together. Rows with the wrist given and the angles missing are
completed: inverse kinematics without a formula.
"""

import matplotlib.pyplot as plt
import numpy as np

from twofold import PSOM
from twofold.datasets.robot_arm import JOINT_LIMITS, arm_pose, forward_kinematics
from twofold.psom import Grid

limits = np.column_stack([-JOINT_LIMITS[:4], JOINT_LIMITS[:4]])
grid = Grid.make((6, 6, 6, 6), bounds=limits)
angles = grid.places()
rows = np.hstack([forward_kinematics(angles), angles])
arm = PSOM(4, nodes=list(grid.nodes), bounds=limits).fit_grid(rows)

t = np.linspace(0, 1, 9)[:, None]
wrists = (1 - t) * [0.45, -0.5, 0.1] + t * [0.45, 0.5, 0.5]
place, postures = np.radians([-60.0, 30.0, 0.0, 90.0]), []
for wrist in wrists:  # each search starts from the posture before
    place = arm.best_match([[*wrist, *[np.nan] * 4]], start=place[None]).places[0]
    postures.append(place)

axis = plt.figure(figsize=(6, 5)).add_subplot(projection="3d")
for number, chain in enumerate(arm_pose(np.array(postures)).chain):
    axis.plot(*chain.T, "o-", color=plt.cm.viridis(number / 9), lw=3)
axis.plot(*wrists.T, color="tab:red")
axis.set(xlim=(-0.3, 0.5), ylim=(-0.6, 0.6), zlim=(0, 0.8))
axis.view_init(elev=20, azim=15)
plt.show()
