"""A few points that stand for many rows: how many, which ones, and clusters to choose them by."""

from twofold.landmarks.landmarks import Landmarks, get_landmarks

__all__ = ["Landmarks", "get_landmarks"]
__dir__ = __all__.copy  # numpy and the like are not ours to show
