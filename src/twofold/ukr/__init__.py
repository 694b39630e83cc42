"""Unsupervised Kernel Regression and what belongs to it."""

from twofold.ukr.estimator import UKR
from twofold.ukr.nadaraya_watson import NadarayaWatson
from twofold.ukr.upgrade import upgrade

__all__ = ["UKR", "NadarayaWatson", "upgrade"]
