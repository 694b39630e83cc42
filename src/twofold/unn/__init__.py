"""Unsupervised nearest neighbours: `estimator` is the door, `searches` are the ways to embed."""

from twofold.unn.constructive_k_means import ConstructiveKMeans
from twofold.unn.estimator import UNN
from twofold.unn.searches import (
    CMAES,
    Evolution,
    EvolutionStrategy,
    Exhaustive,
    Gaussian,
    Greedy,
    Swarm,
)
from twofold.unn.submanifold import SubmanifoldUNN

__all__ = [
    "CMAES",
    "UNN",
    "ConstructiveKMeans",
    "Evolution",
    "EvolutionStrategy",
    "Exhaustive",
    "Gaussian",
    "Greedy",
    "SubmanifoldUNN",
    "Swarm",
]
