"""Tables of numbers, categories, dates and counts: into a model, and back as the same table."""

from twofold.mixed.estimator import Mixed, scaled_features
from twofold.mixed.frames import has_other_columns
from twofold.mixed.table_columns import UnknownLevelWarning

__all__ = ["Mixed", "UnknownLevelWarning", "has_other_columns", "scaled_features"]
