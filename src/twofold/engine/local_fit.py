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

from dataclasses import dataclass
from typing import Literal

import numpy as np

from twofold.array_types import FloatArray, IntArray
from twofold.engine.cells import Pairs, add_weighted_rows, dot_pairs
from twofold.engine.local_loops import fit_pairs, fit_steps, plain_steps, pull_fits

Degree = Literal[0, 1, 2, "2-axes"]
DEGREES: tuple[Degree, ...] = (0, 1, 2, "2-axes")


@dataclass(frozen=True)
class FitGroup:
    """Columns that are fitted from the same references.

    Attributes
    ----------
    columns : (c,) columns of what the references carry
    mass : (n,) weight of each reference, 0 for those that take no part
    """

    columns: IntArray
    mass: FloatArray

    def sorted_by(self, order: IntArray) -> FitGroup:
        """Return the group of references in another order."""
        return FitGroup(self.columns, np.ascontiguousarray(self.mass[order]))


@dataclass(frozen=True)
class LocalFit:
    """A local polynomial for each group of columns; columns in no group are plain sums."""

    terms: IntArray
    groups: tuple[FitGroup, ...]

    def sorted_by(self, order: IntArray) -> LocalFit:
        """Return the same for references in another order."""
        return LocalFit(self.terms, tuple(group.sorted_by(order) for group in self.groups))


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

    ``points`` is (q, n), in the order that ``pairs.index`` and ``V`` have.
    """

    def __init__(
        self, pairs: Pairs, queries: FloatArray, points: FloatArray, V: FloatArray, local: LocalFit
    ) -> None:
        self.pairs, self.queries, self.points, self.V = pairs, queries, points, V
        self.local = local
        p = len(local.terms)
        self.inverses = [np.empty((len(queries), p, p)) for _ in local.groups]
        self.totals = [np.zeros(len(queries)) for _ in local.groups]

    def values(self) -> FloatArray:
        """Return the sums (m, C)."""
        pairs = self.pairs
        A = np.zeros((len(self.queries), self.V.shape[1]), dtype=self.V.dtype)
        self._sum(pairs.weight, _rest(self.local, self.V.shape[1]), A)
        for number, group in enumerate(self.local.groups):
            self._sum(self.weights(number), group.columns, A)
        return A

    def weights(self, number: int = 0) -> FloatArray:
        """Return the weights b of all pairs in one of the groups."""
        pairs, fitted = self.pairs, np.empty_like(self.pairs.weight)
        fit_pairs(
            pairs.first,
            pairs.index,
            pairs.weight,
            self.local.groups[number].mass,
            self.queries,
            self.points,
            self.local.terms,
            self.inverses[number],
            self.totals[number],
            fitted,
        )
        return fitted

    def _sum(self, weight: FloatArray, columns: IntArray, A: FloatArray) -> None:
        if not len(columns):
            return
        V = self._columns(columns)
        part = np.zeros((len(A), len(columns)), dtype=A.dtype)
        if self.pairs.is_dense:
            np.matmul(weight.reshape(len(A), -1), V, out=part)
        else:
            add_weighted_rows(self.pairs.first, self.pairs.index, weight, V, part)
        A[:, columns] = part

    def _columns(self, columns: IntArray) -> FloatArray:
        return np.ascontiguousarray(self.V[:, columns])

    def pull(self, U: FloatArray, grad_queries: FloatArray, push: FloatArray) -> None:
        """Carry ``U = dR/dA`` (m, C) back to queries (m, q) and references, ``push`` (q, n).

        Only columns of a group are carried back.
        """
        pairs = self.pairs
        for group, inverse, total in zip(
            self.local.groups, self.inverses, self.totals, strict=True
        ):
            V, answer = self._columns(group.columns), np.ascontiguousarray(U[:, group.columns])
            G: FloatArray
            if pairs.is_dense:
                G = (answer @ V.T).ravel()
            else:
                G = dot_pairs(pairs.first, pairs.index, answer, V)
            pull_fits(
                pairs.first,
                pairs.index,
                pairs.weight,
                pairs.slope,
                group.mass,
                self.queries,
                self.points,
                self.local.terms,
                inverse,
                total,
                G,
                grad_queries,
                push,
            )

    def slopes(self, slopes: FloatArray) -> None:
        """Write the derivative of the values by the queries' coordinates, (m, q, C)."""
        pairs, q = self.pairs, self.queries.shape[1]
        plain = _rest(self.local, self.V.shape[1])
        steps = np.empty((q, len(pairs.weight)), dtype=self.V.dtype)
        plain_steps(pairs.first, pairs.index, pairs.slope, self.queries, self.points, steps)
        self._sum_each(steps, plain, slopes)
        for group, inverse, total in zip(
            self.local.groups, self.inverses, self.totals, strict=True
        ):
            fit_steps(
                pairs.first,
                pairs.index,
                pairs.weight,
                pairs.slope,
                group.mass,
                self.queries,
                self.points,
                self.local.terms,
                inverse,
                total,
                steps,
            )
            self._sum_each(steps, group.columns, slopes)

    def _sum_each(self, steps: FloatArray, columns: IntArray, slopes: FloatArray) -> None:
        for m in range(len(steps)):
            part = np.zeros((len(slopes), slopes.shape[2]), dtype=slopes.dtype)
            self._sum(steps[m], columns, part)
            slopes[:, m, columns] = part[:, columns]


def _rest(local: LocalFit, n_columns: int) -> IntArray:
    """Return the columns in no group."""
    fitted = np.concatenate([group.columns for group in local.groups])
    return np.setdiff1d(np.arange(n_columns), fitted)
