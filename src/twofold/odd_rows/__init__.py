"""Rows that no manifold explains, found."""

from twofold.odd_rows.detector import ManifoldOutlierDetector

__all__ = ["ManifoldOutlierDetector"]
