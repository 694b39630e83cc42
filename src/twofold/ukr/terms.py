"""What is added to the reconstruction error, each with its gradient.

Extension (Klanke 2007, eq. 4.31, as a mean):  λ Σ_i ω_i ||x_i||² / Σω
Density, for any Φ of p_i = Σ_k ω_k F(s_ik) / Σω:  the engine carries dΦ/dp back to the points
  penalty (4.33):   -λ Σ_i ω_i log p_i / Σω
  barrier (for 4.32):  -μ Σ_i ω_i log(p_i - η) / Σω, infinite where some p_i <= η
Density variance (5.20, with p as a sum, as the reported values of λ need it):
  λ Σ_i ω_i (p_i - p̄)² / Σω,  p_i = Σ_k ω_k F(s_ik) n / Σω; the change of p̄ cancels
"""

from collections.abc import Sequence

import numpy as np

from twofold.array_types import FloatArray, IntArray
from twofold.engine import KernelSums
from twofold.optimize import Objective
from twofold.ukr.objective import Response


class SumOf:
    """The sum of several objectives."""

    def __init__(self, terms: Sequence[Objective]) -> None:
        self.terms = terms

    def value_and_grad(self, X: FloatArray) -> tuple[float, FloatArray]:
        """Return the sum of the values and of the gradients; infinite as soon as a term is."""
        value, grad = self.terms[0].value_and_grad(X)
        for term in self.terms[1:]:
            if not np.isfinite(value):
                break
            more, change = term.value_and_grad(X)
            value, grad = value + more, grad + change
        return value, grad


class ExtensionPenalty:
    """``λ`` times the weighted mean of ``||x_i||²``."""

    def __init__(self, strength: float, weights: FloatArray) -> None:
        self.strength, self.share = strength, weights / weights.sum()

    def value_and_grad(self, X: FloatArray) -> tuple[float, FloatArray]:
        """Return the penalty and its gradient."""
        pulled = (self.strength * self.share[:, None] * X).astype(X.dtype)
        return float((pulled * X).sum(dtype=np.float64)), 2 * pulled


class DensityTerm:
    """``-strength`` times the weighted mean of ``log(p_i - floor)``.

    With ``floor`` 0 it is the density penalty, with a positive one the barrier of the density
    constraint.
    """

    def __init__(
        self, strength: float, weights: FloatArray, engine: KernelSums, floor: float = 0.0
    ) -> None:
        self.strength, self.engine, self.floor = strength, engine, floor
        self.share = weights / weights.sum()

    def value_and_grad(self, X: FloatArray) -> tuple[float, FloatArray]:
        """Return the term and its gradient."""
        V = self.share.astype(X.dtype)[:, None]
        losses, by_query, by_reference = self.engine.evaluate(X, V, self._respond)
        return float(losses.sum(dtype=np.float64)), by_query + by_reference

    def _respond(self, numbers: IntArray, A: FloatArray, shift: FloatArray) -> Response:
        # Each point sees itself at distance 0, so no row is shifted, and A is the density.
        room = A[:, 0].astype(np.float64) - self.floor
        weight = self.strength * self.share[numbers]
        inside = room > 0
        safe = np.where(inside, room, 1)
        losses = np.where(inside, -weight * np.log(safe), np.inf)
        return losses.astype(A.dtype), np.where(inside, -weight / safe, 0)[:, None].astype(A.dtype)


class DensityVariance:
    """``strength`` times the weighted variance of the density at the latent points."""

    def __init__(self, strength: float, weights: FloatArray, engine: KernelSums) -> None:
        self.strength, self.engine = strength, engine
        self.share = weights / weights.sum()

    def value_and_grad(self, X: FloatArray) -> tuple[float, FloatArray]:
        """Return the term and its gradient."""
        V = (len(X) * self.share).astype(X.dtype)[:, None]
        density = densities(X, V, self.engine).astype(np.float64)
        mean = float(self.share @ density)
        pull = 2 * self.strength * self.share * (density - mean)

        def respond(numbers: IntArray, A: FloatArray, shift: FloatArray) -> Response:
            return A[:, 0], pull[numbers, None].astype(A.dtype)

        _, by_query, by_reference = self.engine.evaluate(X, V, respond)
        value = float(self.strength * (self.share @ (density - mean) ** 2))
        return value, by_query + by_reference


def densities(X: FloatArray, V: FloatArray, engine: KernelSums) -> FloatArray:
    """Return ``Σ_k V_k F(s_ik)`` at each latent point (n,), for V (n, 1)."""
    return engine.evaluate(X, V, lambda numbers, A, shift: (A[:, 0], None))[0]


def lowest_density(X: FloatArray, weights: FloatArray, engine: KernelSums) -> float:
    """Return the smallest density of the latent points, in kernels at their own centre."""
    share = (weights / weights.sum()).astype(X.dtype)
    return float(densities(X, share[:, None], engine).min())
