"""What a manifold leaves open: Gaussians of a whole table and of the rows around a place."""

from twofold.noise.conditioning import Conditional, Gaussians, condition
from twofold.noise.factor_model import FactorModel, fit_factors
from twofold.noise.local_gaussians import LocalGaussians

__all__ = [
    "Conditional",
    "FactorModel",
    "Gaussians",
    "LocalGaussians",
    "condition",
    "fit_factors",
]
