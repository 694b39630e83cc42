"""The hot operation of every kernel model: weighted sums over latent distances."""

from twofold.engine.local_fit import DEGREES, Degree, FitGroup, LocalFit, polynomial_terms
from twofold.engine.plan import Plan, plan
from twofold.engine.runs import Respond
from twofold.engine.sums import KernelSums, PreparedReferences, Sums, check_cutoff

__all__ = [
    "DEGREES",
    "Degree",
    "FitGroup",
    "KernelSums",
    "LocalFit",
    "Plan",
    "PreparedReferences",
    "Respond",
    "Sums",
    "check_cutoff",
    "plan",
    "polynomial_terms",
]
