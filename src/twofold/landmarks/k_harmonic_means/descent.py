"""The objective of K-harmonic means, and the way down to centres of which each has its rows.

Centres ``c_l`` minimise the sum over rows of the harmonic average of powers of their distances to
all k centres,

    E = Σ_i ω_i k / Σ_l d_il^-p,        d_il = ||y_i - c_l||,

so a row that no centre is near pulls on all of them, and a centre among many others is set free
(Zhang, Hsu and Dayal, "K-harmonic means: a data clustering algorithm", 1999; with a power p, Zhang,
"Generalized K-harmonic means", 2000; Klanke 2007, eqs. 2.12 to 2.14, where p = 2). Setting dE/dc_l
to zero gives the update

    c_l = Σ_i w_il y_i / Σ_i w_il,      w_il = ω_i d_il^-(p+2) / (Σ_m d_im^-p)².

With ``m_i`` the smallest ``d_il``, ``t_il = m_i / d_il`` and s the largest ``m_i`` (or 1, where
that will do) nothing overflows:

    E = s^p Σ_i ω_i k (m_i / s)^p / Σ_l t_il^p,
    w_il ∝ ω_i t_il^(p+2) (m_i / s)^(p-2) / (Σ_m t_im^p)².

The update is a step down the gradient, and for p = 2 never too long a one: E is concave in the
squared distances there. For larger p it can overshoot (one centre in one dimension diverges from
p = 3 on), so a step that would raise E is halved until it does not.

In δ dimensions p must not be too small. With e a direction and u_i that of row i from its centres,
centres in one place stay together if ``(p + 2) Σ_i ω_i d_i^(p-2) (u_i·e)² < Σ_i ω_i d_i^(p-2)`` for
all e (the second derivative of E): for rows spread alike in all directions, if p < δ - 2.
"""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from twofold.array_types import FloatArray
from twofold.compiled import compiled
from twofold.engine.threads import count_threads, run_tasks
from twofold.neighborhoods.distances import block_slices, power_of_two, squared_distances

# Sums are taken over this many runs of rows, however many threads there are.
N_TASKS = 16
# Centres so near to another, as a share of the distance of rows to theirs, are one centre.
COINCIDE = 0.05
# Sums of powers within SAFE and its inverse keep their digits; sums of weights do above the other.
SAFE, LEAST_WEIGHT = 1e-200, 1e-290
# Up to this power, products are quicker than a logarithm.
MOST_PRODUCTS = 32


def powers_to_try(Z: FloatArray, weights: FloatArray) -> list[float]:
    """Return 3.5 and more, in steps of √2, up to the first from which on near centres rule.

    A sum of ``d^-p`` over centres spread in δ dimensions is ruled by the near ones if p > δ; for δ
    stands the participation ratio of the variances, (Σ λ)² / Σ λ².
    """
    scaled = Z * np.sqrt(weights / weights.max())[:, None]
    moments = scaled.T @ scaled if Z.shape[1] <= len(Z) else scaled @ scaled.T
    dimensions = np.trace(moments) ** 2 / (np.square(moments).sum() or 1.0)
    powers = [3.5]
    while powers[-1] < dimensions + 1.5:
        # Multiples of 1/2 are quick.
        powers.append(round(7 * 2 ** (len(powers) / 2)) / 2)
    return powers


class Problem:
    """The objective of scaled rows Z (n, D), and where the update would take the centres."""

    def __init__(self, Z: FloatArray, weights: FloatArray, p: float) -> None:
        self.Z = Z
        self.unit = power_of_two(weights)
        self.weights = weights * self.unit
        self.exponent = p / 2
        # Powers in steps of a quarter are a few roots and products: half the time of a pass.
        self.quarters = int(2 * p) if 2 * p == int(2 * p) and p <= MOST_PRODUCTS else 0

    def evaluate(self, C: FloatArray) -> tuple[float, FloatArray]:
        """Return log E and the updated centres (k, D)."""
        size = 1.0
        value, total, pulled, largest = self._sum(C, size)
        if largest > 0 and not SAFE < value < 1 / SAFE:
            size = largest
            value, total, pulled, _ = self._sum(C, size)
        # A centre on which nothing pulls, say one on each row, stays where it is.
        still = ~(total > LEAST_WEIGHT)
        log_value = np.log(value / self.unit) + self.exponent * np.log(size) if value else -np.inf
        return float(log_value), np.where(still, C, pulled / np.where(still, 1, total))

    def _sum(self, C: FloatArray, size: float) -> tuple[float, FloatArray, FloatArray, float]:
        """Return E / s^p, Σ_i w_il (k, 1), Σ_i w_il y_i (k, D) with s² = ``size``, and max m_i²."""
        blocks = block_slices(len(self.Z), max(C.shape))
        bounds = np.linspace(0, len(blocks), N_TASKS + 1).astype(int)
        tasks = [blocks[a:b] for a, b in pairwise(bounds) if a < b]
        parts = run_tasks(lambda task: self._sum_blocks(C, task, size), tasks, count_threads(None))
        values, totals, pulled, largest = zip(*parts, strict=True)
        return sum(values), sum(totals), sum(pulled), max(largest)

    def _sum_blocks(
        self, C: FloatArray, blocks: list[slice], size: float
    ) -> tuple[float, FloatArray, FloatArray, float]:
        """Return the same of some rows."""
        value, largest, total, pulled = 0.0, 0.0, np.zeros((len(C), 1)), np.zeros(C.shape)
        for rows in blocks:
            W = squared_distances(self.Z[rows], C)
            part, far = _weigh(W, self.weights[rows], self.exponent, self.quarters, size)
            value, largest = value + part, max(largest, far)
            # Where powers were too large for floating-point numbers, the sums are taken again.
            with np.errstate(invalid="ignore", over="ignore"):
                total += W.sum(axis=0)[:, None]
                pulled += W.T @ self.Z[rows]
        return value, total, pulled, largest


def descend(
    problem: Problem, C: FloatArray, max_iter: int, tol: float
) -> tuple[FloatArray, float, int, bool]:
    """Return centres, log E, how many updates were tried, and whether the last was small enough."""
    enough = tol * np.average((problem.Z**2).mean(axis=1), weights=problem.weights)
    value, target = problem.evaluate(C)
    step, n_iter, shift = 1.0, 0, np.inf
    while n_iter < max_iter and shift > enough:
        n_iter += 1
        moved = C + step * (target - C)
        shift = ((moved - C) ** 2).sum()
        new_value, new_target = problem.evaluate(moved)
        # None that raises E is taken.
        if new_value <= value:
            C, value, target = moved, new_value, new_target
        else:
            step /= 2
    return C, value, n_iter, bool(shift <= enough)


def count_lost(problem: Problem, C: FloatArray) -> tuple[int, int]:
    """Return how many centres lie on an earlier one, and how many are nearest to no row.

    How near is too near is measured by the distances of rows to their centres.
    """
    nearest, has_rows = np.empty(len(problem.Z)), np.zeros(len(C), dtype=bool)
    for rows in block_slices(len(problem.Z), max(C.shape)):
        sq_dists = squared_distances(problem.Z[rows], C)
        nearest[rows] = sq_dists.min(axis=1)
        has_rows[sq_dists.argmin(axis=1)] = True
    limit = COINCIDE**2 * np.average(nearest, weights=problem.weights)
    n_doubled = 0
    for some in block_slices(len(C), max(C.shape)):
        is_near = squared_distances(C[some], C) <= limit
        n_doubled += int(np.tril(is_near, some.start - 1).any(axis=1).sum())
    return n_doubled, int((~has_rows).sum())


@compiled
def _weigh(
    W: FloatArray, weights: FloatArray, exponent: float, quarters: int, size: float
) -> tuple[float, float]:
    """Turn squared distances W (rows, k) into the w_il; return E / s^p and the largest m_i²."""
    value, largest = 0.0, 0.0
    k = W.shape[1]
    power = np.empty(k)
    for i in range(W.shape[0]):
        ratio = W[i]
        nearest = ratio.min()
        largest = max(largest, nearest)
        for j in range(k):
            # Where a centre lies on the row, t is 1 for that centre and 0 for the others.
            ratio[j] = nearest / ratio[j] if ratio[j] > 0 else 1.0
        _raise(ratio, exponent, quarters, power)
        total = power.sum()
        value += weights[i] * k * (nearest / size) ** exponent / total
        share = weights[i] * (nearest / size) ** (exponent - 1) / (total * total)
        for j in range(k):
            ratio[j] *= power[j] * share
    return value, largest


@compiled
def _raise(ratio: FloatArray, exponent: float, quarters: int, power: FloatArray) -> None:
    """Set ``power`` to ``ratio`` to the exponent; ``quarters`` is four times it, or 0."""
    if quarters == 0:
        power[:] = ratio**exponent
        return
    power[:] = 1.0
    if quarters % 2:
        power *= np.sqrt(np.sqrt(ratio))
    if quarters // 2 % 2:
        power *= np.sqrt(ratio)
    for _ in range(quarters // 4):
        power *= ratio
