"""An arm with seven turning joints, built like the Mitsubishi PA-10.

Joints 1, 3, 5 and 7 turn about the arm's own axis, 2, 4 and 6 bend it: shoulder, elbow and wrist.
With the angles T_1…T_7, lengths L_1 from shoulder to elbow and L_2 from elbow to wrist, and the
shoulder at height h,

    wrist = (0, 0, h) + Rz(T_1) Ry(T_2) [(0, 0, L_1) + Rz(T_3) Ry(T_4) (0, 0, L_2)],

so the wrist depends on the first four joints only. The hand sits L_3 beyond the wrist, turned by
Rz(T_5) Ry(T_6) Rz(T_7).

Klanke (2007, section 3.2) uses the arm without its dimensions; those here are public ones of the
PA-10, with which his table 3.1 comes out. Lengths are in metres, angles in radians.
"""

from dataclasses import dataclass

import numpy as np

from twofold.array_types import FloatArray
from twofold.datasets.sample import Manifold, Sample, Seed, as_rows, observe, row_norms

BASE_HEIGHT, UPPER_ARM, FOREARM, HAND = 0.317, 0.450, 0.480, 0.070
# The joints turn as far to the one side as to the other.
JOINT_LIMITS = np.radians([177.0, 91.0, 174.0, 137.0, 255.0, 165.0, 255.0])


@dataclass(frozen=True, eq=False)
class ArmPose:
    """Where the parts of the arm are; the hand only if angles of joints 5 to 7 were given.

    Examples
    --------
    >>> from twofold.datasets import arm_pose
    >>> pose = arm_pose([[0.0, 0.0, 0.0, 0.0]])
    >>> pose.wrist.shape, pose.hand is None
    ((1, 3), True)
    """

    wrist: FloatArray  # (n, 3)
    hand: FloatArray | None  # (n, 3)
    orientation: FloatArray | None  # (n, 3, 3) the hand's axes as columns
    chain: FloatArray  # (n, 4 or 5, 3) base, shoulder, elbow, wrist, hand: what to draw


def arm_pose(angles: FloatArray) -> ArmPose:
    """Return where the arm is for joint angles (n, 4) or (n, 7), in radians.

    Examples
    --------
    >>> from twofold.datasets import arm_pose
    >>> arm_pose([[0.0, 0.5, 0.0, 1.0]]).wrist.shape
    (1, 3)
    """
    n_columns = np.shape(angles)[1] if np.ndim(angles) == 2 else 0
    if n_columns not in (4, 7):
        raise ValueError(
            "expected joint angles of shape (n, 4) or (n, 7); got an array of shape "
            f"{np.shape(angles)}. Pass one row per posture."
        )
    angles = as_rows(angles, n_columns)
    shoulder = np.tile([0.0, 0.0, BASE_HEIGHT], (len(angles), 1))
    upper = _turn_and_bend(angles[:, 0], angles[:, 1])
    elbow = shoulder + UPPER_ARM * upper[:, :, 2]
    lower = upper @ _turn_and_bend(angles[:, 2], angles[:, 3])
    wrist = elbow + FOREARM * lower[:, :, 2]
    parts = [np.zeros_like(shoulder), shoulder, elbow, wrist]
    if angles.shape[1] == 4:
        return ArmPose(wrist, None, None, np.stack(parts, axis=1))
    orientation = lower @ _turn_and_bend(angles[:, 4], angles[:, 5])
    orientation = orientation @ _turn_and_bend(angles[:, 6], np.zeros(len(angles)))
    hand = wrist + HAND * orientation[:, :, 2]
    return ArmPose(wrist, hand, orientation, np.stack([*parts, hand], axis=1))


def forward_kinematics(angles: FloatArray) -> FloatArray:
    """Return the place of the wrist (n, 3) for joint angles (n, 4) or (n, 7), in radians.

    Examples
    --------
    >>> import numpy as np
    >>> from twofold.datasets.robot_arm import forward_kinematics
    >>> forward_kinematics(np.zeros((1, 4))).round(3)
    array([[0.   , 0.   , 1.247]])
    """
    return arm_pose(angles).wrist


@dataclass(frozen=True)
class RobotArm(Manifold):
    """Rows of the wrist's place, with the angles of the first four joints beside it or without.

    With the angles, the rows lie on a four-dimensional manifold in seven dimensions. Without them
    they fill the reach of the arm.
    """

    with_angles: bool = True

    def point(self, latent: FloatArray) -> FloatArray:
        """Carry angles (n, 4) to rows (n, 7): wrist, then angles; or to the wrist (n, 3) alone."""
        latent = as_rows(latent, 4)
        wrist = forward_kinematics(latent)
        return np.hstack([wrist, latent]) if self.with_angles else wrist

    def distance(self, Y: FloatArray) -> FloatArray:
        """Distance (n,) of the wrist from where the angles of the row put it; an upper bound.

        Without angles, the distance to the shell that the wrist can reach at any angles.
        """
        if self.with_angles:
            Y = as_rows(Y, 7)
            return row_norms(Y[:, :3] - forward_kinematics(Y[:, 3:]))
        from_shoulder = row_norms(as_rows(Y, 3) - [0.0, 0.0, BASE_HEIGHT])
        # The least distance from the shoulder, with the elbow bent as far as it goes.
        folded = UPPER_ARM**2 + FOREARM**2 + 2 * UPPER_ARM * FOREARM * np.cos(JOINT_LIMITS[3])
        nearest, farthest = float(np.sqrt(folded)), UPPER_ARM + FOREARM
        return np.maximum(np.maximum(from_shoulder - farthest, nearest - from_shoulder), 0.0)


def make_robot_arm(
    n: int = 1000, *, with_angles: bool = True, noise: float = 0.0, random_state: Seed = None
) -> Sample:
    """Draw postures of the arm, uniform within the limits of its first four joints.

    Latent coordinates are the joint angles (n, 4); D is 7, or 3 without angles.

    Parameters
    ----------
    n : int, default=1000
        Number of postures.
    with_angles : bool, default=True
        Whether rows hold the four joint angles after the place of the wrist.
    noise : float, default=0.0
        Standard deviation of Gaussian noise in every column.
    random_state : int, Generator or None, default=None

    Examples
    --------
    >>> from twofold.datasets.robot_arm import make_robot_arm
    >>> make_robot_arm(5, random_state=0).Y.shape
    (5, 7)
    """

    def draw(rng: np.random.Generator) -> FloatArray:
        return rng.uniform(-JOINT_LIMITS[:4], JOINT_LIMITS[:4], (n, 4))

    return observe(RobotArm(with_angles), draw, n, noise, "gaussian", random_state)


def _turn_and_bend(turn: FloatArray, bend: FloatArray) -> FloatArray:
    """Return Rz(turn) Ry(bend), shape (n, 3, 3)."""
    ct, st, cb, sb = np.cos(turn), np.sin(turn), np.cos(bend), np.sin(bend)
    rows = [[ct * cb, -st, ct * sb], [st * cb, ct, st * sb], [-sb, np.zeros_like(cb), cb]]
    return np.moveaxis(np.array(rows), 2, 0)
