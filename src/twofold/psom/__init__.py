"""Parameterized self-organizing maps: polynomial manifolds on a grid of nodes (PSOM, PSOM+)."""

from twofold.psom.annealing import Annealing
from twofold.psom.best_match import BestMatch
from twofold.psom.estimator import PSOM
from twofold.psom.grid import Grid
from twofold.psom.smoothness_choice import GCV, Discrepancy

__all__ = ["GCV", "PSOM", "Annealing", "BestMatch", "Discrepancy", "Grid"]
