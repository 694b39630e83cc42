"""Nearest neighbours of Kramer's book that scikit-learn does not have.

What it has is built on: ``KNeighborsClassifier`` and ``KNeighborsRegressor`` are the plain
neighbours, ``GridSearchCV`` chooses K, ``BaggingClassifier`` votes over subsets.
"""

from twofold.neighbors.appliances import active_resistance, appliance_ensemble, appliance_features
from twofold.neighbors.distance_weighted import (
    DistanceWeightedKNNClassifier,
    DistanceWeightedKNNRegressor,
    inverse_squared_distances,
)
from twofold.neighbors.model_based import ModelBasedKNN
from twofold.neighbors.propagating import PropagatingNearestNeighbor

__all__ = [
    "DistanceWeightedKNNClassifier",
    "DistanceWeightedKNNRegressor",
    "ModelBasedKNN",
    "PropagatingNearestNeighbor",
    "active_resistance",
    "appliance_ensemble",
    "appliance_features",
    "inverse_squared_distances",
]
__dir__ = __all__.copy  # without numpy and other imports
