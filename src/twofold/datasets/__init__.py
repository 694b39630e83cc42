"""Data with known latent coordinates, and loaders of real data."""

from twofold.datasets.curves import make_half_circle, make_spiral
from twofold.datasets.digits import DigitsSplit, load_digits_split
from twofold.datasets.location import data_file, load_npz
from twofold.datasets.random_manifold import make_random_manifold
from twofold.datasets.rotating_object import make_rotating_object
from twofold.datasets.sample import Sample
from twofold.datasets.surfaces import make_fish_bowl, make_s_triangle, make_swiss_roll

__all__ = [
    "DigitsSplit",
    "Sample",
    "data_file",
    "load_digits_split",
    "load_npz",
    "make_fish_bowl",
    "make_half_circle",
    "make_random_manifold",
    "make_rotating_object",
    "make_s_triangle",
    "make_spiral",
    "make_swiss_roll",
]
