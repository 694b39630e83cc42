"""Gaussians of few factors, seen through the entries of a row that are known.

A row y has mean μ and covariance ``S = L Lᵀ + diag(ψ)`` with L (D, r). With o the observed entries,
P the inverse of ``S_oo`` and ``a = P (y_o - μ_o)``:

    E[y_m | y_o] = μ_m + S_mo a                 what is missing
    V[y_m | y_o] = diag(S_mm - S_mo P S_om)
    E[y_d | y_o without d] = y_d - a_d / P_dd   what an observed entry should have been
    V[y_d | y_o without d] = 1 / P_dd
    log p(y_o) = -(|o| log 2π + log det S_oo + (y_o - μ_o)ᵀ a) / 2

With fewer factors than columns, P comes from Woodbury's identity in time linear in D. Each row has
a mean and factors of its own, and its answer does not depend on the others.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple, TypeAlias

import numpy as np

from twofold.array_types import BoolArray, FloatArray, IntArray
from twofold.compiled import compiled_in_order

# From residuals (m, D), 0 where an entry is missing, and which are observed: a, diag P, the
# variance of missing entries, log det S_oo.
Solved: TypeAlias = tuple[FloatArray, FloatArray, FloatArray, FloatArray]
Solver: TypeAlias = Callable[[FloatArray, BoolArray, "Gaussians"], Solved]
# Numbers in the matrices of the rows that are worked on at a time.
AT_A_TIME = 4_000_000


@dataclass(frozen=True)
class Gaussians:
    """A Gaussian for each of m rows: means (m, D), factors (m, D, r) and variances (m, D)."""

    means: FloatArray
    factors: FloatArray
    variances: FloatArray

    def part(self, rows: slice) -> "Gaussians":
        """Return those of some rows."""
        return Gaussians(self.means[rows], self.factors[rows], self.variances[rows])

    def stretched(self, factor: FloatArray) -> "Gaussians":
        """Return those of rows whose columns are multiplied by a factor (D,)."""
        return Gaussians(
            self.means * factor, self.factors * factor[:, None], self.variances * factor**2
        )


@dataclass(frozen=True)
class Conditional:
    """What is known of rows from their observed entries, see the module.

    ``means`` and ``variances`` (m, D) are those of each entry given the other observed ones: of a
    missing one, what it is likely to be; of an observed one, what it should have been.
    ``log_density`` and ``distances`` (m,) belong to the observed entries together, the distances
    being squared Mahalanobis ones.
    """

    means: FloatArray
    variances: FloatArray
    log_density: FloatArray
    distances: FloatArray

    @classmethod
    def joined(cls, parts: list["Conditional"]) -> "Conditional":
        """Return the parts one after the other."""
        names = ("means", "variances", "log_density", "distances")
        return cls(*(np.concatenate([getattr(part, name) for part in parts]) for name in names))

    def part(self, rows: IntArray) -> "Conditional":
        """Return what is known of some rows, in their order."""
        return Conditional(
            self.means[rows], self.variances[rows], self.log_density[rows], self.distances[rows]
        )


def condition(Y: FloatArray, gaussians: Gaussians) -> Conditional:
    """Return what the observed entries of rows Y (m, D) tell of each entry; NaN is missing."""
    m, D, r = gaussians.factors.shape
    step = max(1, AT_A_TIME // (D * max(r, 1)))
    solve = _by_columns if r >= D else _by_factors
    parts = [slice(i, min(i + step, m)) for i in range(0, max(m, 1), step)]
    return Conditional.joined([_condition(Y[part], gaussians.part(part), solve) for part in parts])


def _condition(Y: FloatArray, g: Gaussians, solve: Solver) -> Conditional:
    observed = ~np.isnan(Y)
    R = np.where(observed, Y - g.means, 0)
    a, precision, missing_variance, log_det = solve(R, observed, g)
    # The diagonal of S does not reach from an observed entry to a missing one.
    reached = np.einsum("mdr,mr->md", g.factors, np.einsum("mdr,md->mr", g.factors, a))
    safe = np.where(observed, precision, 1)
    means = np.where(observed, Y - a / safe, g.means + reached)
    variances = np.where(observed, 1 / safe, missing_variance)
    distances = (R * a).sum(axis=1)
    known = observed.sum(axis=1)
    log_density = -(known * np.log(2 * np.pi) + log_det + distances) / 2
    return Conditional(means, variances, log_density, distances)


def _by_columns(R: FloatArray, observed: BoolArray, g: Gaussians) -> Solved:
    S = np.matmul(g.factors, g.factors.transpose(0, 2, 1))
    diagonal = np.arange(S.shape[1])
    S[:, diagonal, diagonal] += g.variances
    order = np.argsort(~observed, axis=1, kind="stable")  # what is missing comes last
    a, precision, variance = np.zeros((3, *R.shape))
    log_det, least = np.empty(len(R)), np.ascontiguousarray(g.variances)
    _solve_rows(S, order, observed.sum(axis=1), R, least, a, precision, variance, log_det)
    return a, precision, np.maximum(variance, g.variances), log_det


@compiled_in_order
def _solve_rows(
    S: FloatArray,
    order: IntArray,
    n_observed: IntArray,
    R: FloatArray,
    least: FloatArray,
    a: FloatArray,
    precision: FloatArray,
    variance: FloatArray,
    log_det: FloatArray,
) -> None:
    """Write a, diag P, the variance of missing entries (m, D) and log det S_oo (m,), row by row.

    With S = UᵀU, U upper triangular, and the missing entries last, P is the product of the inverse
    of U_oo with its transpose, and what is left of a missing entry is told by U_mm. Squares of
    pivots are at least the variances ``least``, of which rounding must not take anything.
    """
    m, D = R.shape
    U, W, v = np.empty((D, D)), np.empty((D, D)), np.empty(D)
    for row in range(m):
        place, p = order[row], n_observed[row]
        for i in range(D):
            for j in range(i, D):
                U[i, j] = S[row, place[i], place[j]]
        for k in range(D):
            pivot = np.sqrt(max(U[k, k], least[row, place[k]]))
            U[k, k] = pivot
            tail = U[k, k + 1 :]
            for j in range(tail.size):
                tail[j] /= pivot
            for i in range(k + 1, D):
                here, above, factor = U[i, i:], U[k, i:], U[k, i]
                for j in range(here.size):
                    here[j] -= factor * above[j]
        # W is the inverse of U_oo, from its last row upwards.
        for k in range(p - 1, -1, -1):
            own = W[k, k:p]
            for j in range(own.size):
                own[j] = 0
            own[0] = 1
            for i in range(k + 1, p):
                part, below, factor = W[k, i:p], W[i, i:p], U[k, i]
                for j in range(part.size):
                    part[j] -= factor * below[j]
            for j in range(own.size):
                own[j] /= U[k, k]
        for j in range(p):
            v[j] = 0
        for k in range(p):
            own, out, factor = W[k, k:p], v[k:p], R[row, place[k]]
            for j in range(own.size):
                out[j] += factor * own[j]
        total = 0.0
        for k in range(p):
            total += np.log(U[k, k])
            for j in range(k, p):
                a[row, place[k]] += W[k, j] * v[j]
                precision[row, place[k]] += W[k, j] * W[k, j]
        log_det[row] = 2 * total
        for k in range(p, D):
            for i in range(p, k + 1):
                variance[row, place[k]] += U[i, k] * U[i, k]


class Woodbury(NamedTuple):
    """Residuals divided by covariances of few factors: a = C⁻¹ r (m, D), and what that took."""

    a: FloatArray
    known: FloatArray
    B: FloatArray
    M: FloatArray
    inverse: FloatArray


def by_woodbury(R: FloatArray, observed: BoolArray, g: Gaussians) -> Woodbury:
    """Divide the observed residuals R (m, D) by their covariances, linear in D."""
    known = np.where(observed, 1 / g.variances, 0)
    B = g.factors * known[:, :, None]
    M = np.matmul(g.factors.transpose(0, 2, 1), B)
    M[:, np.arange(M.shape[1]), np.arange(M.shape[1])] += 1
    inverse = np.linalg.inv(M)
    z = np.einsum("mrs,ms->mr", inverse, np.einsum("mdr,md->mr", B, R))
    a = known * R - np.einsum("mdr,mr->md", B, z)
    return Woodbury(a, known, B, M, inverse)


def _by_factors(R: FloatArray, observed: BoolArray, g: Gaussians) -> Solved:
    a, known, _, M, inverse = by_woodbury(R, observed, g)
    spread = (np.matmul(g.factors, inverse) * g.factors).sum(axis=2)
    precision = known - known**2 * spread
    log_det = -np.where(observed, np.log(np.where(observed, known, 1)), 0).sum(axis=1)
    return a, precision, g.variances + spread, log_det + np.linalg.slogdet(M)[1]
