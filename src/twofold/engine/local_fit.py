"""Local polynomial regression as weights: what a degree above 0 makes of the kernel's weights.

Around a query x a polynomial is fitted to the references by weighted least squares; the prediction
is its value at x, a weighted sum of what the references carry (Klanke 2007, section 5.4):

    ξ_i = (1, δ_i, δ_i², δ_ia δ_ib …),  δ_i = x_i - x,  ŵ_i = ω_i F(s_i) / Σ_k ω_k F(s_k)
    C = Σ_i ŵ_i ξ_i ξ_iᵀ + diag(0, ρ_1, ρ_2, …),   g = C⁻¹ e_0,   b_i = ŵ_i u_i,  u_i = g·ξ_i

The small ridge ``ρ_a = ρ (1 + μ)^deg(a)``, μ = Σ_i ŵ_i ||δ_i||², keeps C invertible where a
neighbourhood has fewer references than the polynomial has terms, or lies far away from x. It leaves
the constant alone, so the b_i always sum to 1, and the fit then falls back towards the kernel's
weighted mean. With G_i = dR/db_i, h = C⁻¹ Σ_i ŵ_i G_i ξ_i, v_i = h·ξ_i and T_i = G_i - v_i the
derivatives of all degrees are one formula (appendix C, simplified, and the ridge added):

    E_i = 2F'(s_i) ω_i/S δ_i (T_i u_i - Σ_a h_a g_a (ρ_a + ρ'_a (||δ_i||² - μ)))
          + ŵ_i (T_i ∇u_i - u_i ∇v_i - 2 δ_i Σ_a h_a g_a ρ'_a)
    dR/dx_i = E_i,   dR/dx = -Σ_i E_i,   S = Σ_k ω_k F(s_k),   ρ'_a = dρ_a/dμ

All of this is done in double precision.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from twofold.array_types import FloatArray, IntArray
from twofold.engine.cells import Pairs, dot_pairs, weighted_rows
from twofold.engine.local_loops import Fits, fit_pairs, fit_steps, plain_steps, pull_fits

Degree = Literal[0, 1, 2, "2-axes"]
DEGREES: tuple[Degree, ...] = (0, 1, 2, "2-axes")


@dataclass(frozen=True)
class FitGroup:
    """Columns that are fitted from the same references."""

    columns: IntArray  # (c,) of what the references carry
    mass: FloatArray  # (n,) weight of each reference, 0 for those that take no part


@dataclass(frozen=True)
class LocalFit:
    """A local polynomial for each group of columns; columns in no group are plain sums."""

    terms: IntArray
    groups: tuple[FitGroup, ...]

    def sorted_by(self, order: IntArray) -> LocalFit:
        """Return the same for references in another order."""
        groups = (replace(group, mass=group.mass[order]) for group in self.groups)
        return replace(self, groups=tuple(groups))


def polynomial_terms(degree: Degree, q: int) -> IntArray:
    """Return the terms of a polynomial in q variables: each a pair of variables, -1 for a 1."""
    terms = [(-1, -1)]
    if degree != 0:
        terms += [(a, -1) for a in range(q)]
    if degree in (2, "2-axes"):
        terms += [(a, a) for a in range(q)]
    if degree == 2:
        terms += [(a, b) for a in range(q) for b in range(a + 1, q)]
    return np.array(terms, dtype=np.int64)


class FittedSums:
    """The sums of some queries by local fits, and the way back; made for one list of pairs.

    ``points`` is (q, n), in the order that ``pairs.reference`` and ``V`` have.
    """

    def __init__(
        self, pairs: Pairs, queries: FloatArray, points: FloatArray, V: FloatArray, local: LocalFit
    ) -> None:
        self.pairs, self.V = pairs, V
        self.columns = [group.columns for group in local.groups]
        self.plain = np.setdiff1d(np.arange(V.shape[1]), np.concatenate(self.columns))
        m, p = len(queries), len(local.terms)
        self.fits = [
            Fits(pairs, queries, points, local.terms, group.mass, np.empty((m, p, p)), np.zeros(m))
            for group in local.groups
        ]

    def values(self) -> FloatArray:
        """Return the sums (m, C)."""
        A = np.zeros((len(self.pairs.shift), self.V.shape[1]), dtype=self.V.dtype)
        A[:, self.plain] = self._sums(self.pairs.weight, self.plain)
        for columns, fits in zip(self.columns, self.fits, strict=True):
            A[:, columns] = self._sums(fit_pairs(fits), columns)
        return A

    def weights(self) -> FloatArray:
        """Return the weights b of all pairs in the first group."""
        return fit_pairs(self.fits[0])

    def _sums(self, weight: FloatArray, columns: IntArray) -> FloatArray:
        return weighted_rows(self.pairs._replace(weight=weight), self._carried(columns))

    def _carried(self, columns: IntArray) -> FloatArray:
        return np.ascontiguousarray(self.V[:, columns])

    def pull(self, U: FloatArray, grad_queries: FloatArray, push: FloatArray) -> None:
        """Carry ``U = dR/dA`` (m, C) back to queries (m, q) and references, ``push`` (q, n).

        Only columns of a group are carried back.
        """
        for columns, fits in zip(self.columns, self.fits, strict=True):
            V, answer = self._carried(columns), np.ascontiguousarray(U[:, columns])
            is_dense = self.pairs.is_dense
            G = (answer @ V.T).ravel() if is_dense else dot_pairs(self.pairs, answer, V)
            pull_fits(fits, G, grad_queries, push)

    def values_and_slopes(self) -> tuple[FloatArray, FloatArray]:
        """Return the sums and their derivative by the queries' coordinates (m, q, C)."""
        values, q = self.values(), self.fits[0].queries.shape[1]  # fits are made on the way
        slopes = np.zeros((len(values), q, values.shape[1]), dtype=self.V.dtype)
        steps = np.empty((q, len(self.pairs.weight)), dtype=self.V.dtype)
        plain_steps(self.fits[0], steps)
        self._sum_each(steps, self.plain, slopes)
        for columns, fits in zip(self.columns, self.fits, strict=True):
            fit_steps(fits, steps)
            self._sum_each(steps, columns, slopes)
        return values, slopes

    def _sum_each(self, steps: FloatArray, columns: IntArray, slopes: FloatArray) -> None:
        for m, weight in enumerate(steps):
            slopes[:, m, columns] = self._sums(weight, columns)
