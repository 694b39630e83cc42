"""Data with known latent coordinates, and loaders of real data."""

from twofold.datasets.appliance_loads import ApplianceLoads, make_appliance_loads
from twofold.datasets.random_manifold import make_random_manifold
from twofold.datasets.real_data import DigitsSplit, data_file, load_digits_split, load_npz
from twofold.datasets.robot_arm import ArmPose, arm_pose, forward_kinematics, make_robot_arm
from twofold.datasets.rotating_object import make_rotating_object
from twofold.datasets.sample import Sample
from twofold.datasets.shapes import (
    make_fish_bowl,
    make_half_circle,
    make_s_structure,
    make_s_triangle,
    make_spiral,
    make_swiss_roll,
)

__all__ = [
    "ApplianceLoads",
    "ArmPose",
    "DigitsSplit",
    "Sample",
    "arm_pose",
    "data_file",
    "forward_kinematics",
    "load_digits_split",
    "load_npz",
    "make_appliance_loads",
    "make_fish_bowl",
    "make_half_circle",
    "make_random_manifold",
    "make_robot_arm",
    "make_rotating_object",
    "make_s_structure",
    "make_s_triangle",
    "make_spiral",
    "make_swiss_roll",
]
__dir__ = __all__.copy  # without numpy and other imports
