from __future__ import annotations

import numpy as np
import pytest
from oracles import psom as oracle

from twofold.datasets import arm_pose, forward_kinematics, make_robot_arm
from twofold.datasets.robot_arm import (
    BASE_HEIGHT,
    FOREARM,
    HAND,
    JOINT_LIMITS,
    UPPER_ARM,
    RobotArm,
)


def angles(n=20, joints=7):
    return np.random.default_rng(0).uniform(
        -JOINT_LIMITS[:joints], JOINT_LIMITS[:joints], (n, joints)
    )


def test_the_wrist_is_where_the_formula_says():
    T = angles()
    expected = [oracle.wrist(row) for row in T]
    np.testing.assert_allclose(forward_kinematics(T), expected, atol=1e-14)
    np.testing.assert_allclose(forward_kinematics(T[:, :4]), expected, atol=1e-14)


def test_known_postures():
    straight = np.zeros((1, 7))
    top = BASE_HEIGHT + UPPER_ARM + FOREARM
    np.testing.assert_allclose(arm_pose(straight).chain[0, :, :2], 0)
    np.testing.assert_allclose(arm_pose(straight).hand, [[0, 0, top + HAND]])
    # The shoulder bent forward by 90 degrees, the elbow up again: an L.
    bent = np.radians([[0.0, 90, 0, -90]])
    np.testing.assert_allclose(
        forward_kinematics(bent), [[UPPER_ARM, 0, BASE_HEIGHT + FOREARM]], atol=1e-15
    )


def test_parts_keep_their_lengths():
    chain = arm_pose(angles()).chain
    lengths = np.linalg.norm(np.diff(chain, axis=1), axis=2)
    np.testing.assert_allclose(lengths, np.tile([BASE_HEIGHT, UPPER_ARM, FOREARM, HAND], (20, 1)))


def test_the_hand_turns_without_the_wrist():
    T = angles()
    turned = T.copy()
    turned[:, 4:] = angles(40)[20:, 4:]
    before, after = arm_pose(T), arm_pose(turned)
    np.testing.assert_array_equal(before.wrist, after.wrist)
    assert np.abs(before.hand - after.hand).max() > 0.05
    R = before.orientation
    np.testing.assert_allclose(R @ R.transpose(0, 2, 1), np.tile(np.eye(3), (20, 1, 1)), atol=1e-14)
    np.testing.assert_allclose(np.linalg.det(R), 1)
    assert arm_pose(T[:, :4]).hand is None
    assert arm_pose(T[:, :4]).chain.shape == (20, 4, 3)


def test_samples_are_postures_within_the_limits():
    sample = make_robot_arm(500, noise=0.01, random_state=3)
    assert sample.Y.shape == (500, 7)
    np.testing.assert_array_equal(sample.clean[:, 3:], sample.latent)
    np.testing.assert_allclose(sample.clean[:, :3], forward_kinematics(sample.latent))
    assert (np.abs(sample.latent) <= JOINT_LIMITS[:4]).all()
    assert (np.abs(sample.latent).max(axis=0) > 0.98 * JOINT_LIMITS[:4]).all()
    assert (sample.Y - sample.clean).std() == pytest.approx(0.01, rel=0.05)
    np.testing.assert_array_equal(sample.Y, make_robot_arm(500, noise=0.01, random_state=3).Y)


def test_without_angles_only_the_wrist_is_left():
    sample = make_robot_arm(50, with_angles=False, random_state=0)
    assert sample.Y.shape == (50, 3)
    np.testing.assert_array_equal(sample.Y, forward_kinematics(sample.latent))


def test_distances():
    arm, wrist_only = RobotArm(), RobotArm(with_angles=False)
    Y = make_robot_arm(50, random_state=0).Y
    np.testing.assert_allclose(arm.distance(Y), 0, atol=1e-15)
    moved = Y + np.array([0.3, 0, 0.4, 0, 0, 0, 0])
    np.testing.assert_allclose(arm.distance(moved), 0.5)
    np.testing.assert_allclose(wrist_only.distance(Y[:, :3]), 0, atol=1e-12)
    reach = UPPER_ARM + FOREARM
    far = np.array([[0.0, reach + 0.2, BASE_HEIGHT], [0, 0, BASE_HEIGHT]])
    found = wrist_only.distance(far)
    assert found[0] == pytest.approx(0.2)
    assert found[1] == pytest.approx(0.342, abs=1e-3)  # too near the shoulder for the elbow to fold


def test_errors_say_what_is_wrong():
    with pytest.raises(ValueError, match=r"joint angles of shape \(n, 4\) or \(n, 7\)"):
        forward_kinematics(np.zeros((3, 5)))
    with pytest.raises(ValueError, match="NaN"):
        forward_kinematics(np.full((3, 4), np.nan))
    with pytest.raises(ValueError, match="at least 1"):
        make_robot_arm(0)
