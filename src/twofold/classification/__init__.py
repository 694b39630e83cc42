"""Classification by manifolds: one for each class, the nearest one gives the label."""

from twofold.classification.manifold_classifier import ManifoldClassifier

__all__ = ["ManifoldClassifier"]
