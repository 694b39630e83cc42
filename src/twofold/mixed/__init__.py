"""Tables of numbers, categories, dates and counts: into a model, and back as the same table."""

from twofold.mixed.estimator import Mixed

__all__ = ["Mixed"]
