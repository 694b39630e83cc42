"""The hot operation of every kernel model: weighted sums over latent distances."""

from twofold.engine.plan import Plan, plan
from twofold.engine.sums import KernelSums, PreparedReferences, Respond, Sums, check_tolerance

__all__ = ["KernelSums", "Plan", "PreparedReferences", "Respond", "Sums", "check_tolerance", "plan"]
