"""Missing entries filled for their own sake."""

from twofold.filling.imputer import ManifoldImputer

__all__ = ["ManifoldImputer"]
