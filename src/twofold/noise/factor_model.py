"""One Gaussian for a whole table with gaps: factor analysis by EM, time linear in rows and columns.

    y = μ + W z + e,   z ~ N(0, I_r),   e ~ N(0, diag ψ)

so that the covariance of the columns is ``W Wᵀ + diag(ψ)`` (Rubin & Thayer 1982); with r = D - 1
factors it is any covariance. Only observed entries enter. In each step, for every row,

    M = I + W_oᵀ ψ_o⁻¹ W_o,   E[z] = M⁻¹ W_oᵀ ψ_o⁻¹ (y_o - μ_o),   V[z] = M⁻¹

and for every column d the regression of its observed entries on (z, 1), with a ridge as if a few
more rows had shown a column that goes with no other.
"""

from dataclasses import dataclass

import numpy as np

from twofold.array_types import BoolArray, FloatArray
from twofold.noise.conditioning import Gaussians

MOST_FACTORS = 24
# What is left to a column by itself is at least this share of its variance.
LEAST_SHARE = 1e-3
# How many rows without any correlation the ridge stands for, for each factor.
ROWS_OF_DOUBT = 0.2
MOST_STEPS, LEAST_CHANGE = 40, 1e-3
# Numbers in the matrices of the rows that are worked on at a time.
AT_A_TIME = 4_000_000


@dataclass(frozen=True)
class FactorModel:
    """Mean (D,), loadings W (D, r) and variances ψ (D,) of the columns."""

    mean: FloatArray
    loadings: FloatArray
    variances: FloatArray

    def repeated(self, m: int) -> Gaussians:
        """Return the same Gaussian for each of m rows."""
        D, r = self.loadings.shape
        return Gaussians(
            np.broadcast_to(self.mean, (m, D)),
            np.broadcast_to(self.loadings, (m, D, r)),
            np.broadcast_to(self.variances, (m, D)),
        )

    def total_variance(self) -> float:
        """Return the variance of all columns together."""
        return float(self.variances.sum() + (self.loadings**2).sum())


def fit_factors(
    Y: FloatArray, weights: FloatArray | None = None, most_factors: int = MOST_FACTORS
) -> FactorModel:
    """Return the Gaussian of rows Y (n, D) of weights (n,); NaN is missing, no column all of it."""
    weights = np.ones(len(Y)) if weights is None else weights
    observed = ~np.isnan(Y)
    seen = weights[:, None] * observed
    total = seen.sum(axis=0)
    mean = np.where(observed, seen * np.where(observed, Y, 0), 0).sum(axis=0) / total
    R = np.where(observed, Y - mean, 0)
    spread = (seen * R**2).sum(axis=0) / total
    # A constant column has a variance, too, or nothing could be divided by it.
    usual = float(spread.mean()) or 1.0
    floor = np.maximum(LEAST_SHARE * spread, LEAST_SHARE**2 * usual)
    model = _principal_start(R, seen, spread, floor, mean, most_factors)
    if model.loadings.shape[1] == 0:
        return model
    for _ in range(MOST_STEPS):
        before = model
        model = _step(model, Y, observed, weights, floor)
        change = np.abs(model.variances - before.variances).sum()
        if change <= LEAST_CHANGE * model.variances.sum():
            break
    return model


def _principal_start(
    R: FloatArray,
    seen: FloatArray,
    spread: FloatArray,
    floor: FloatArray,
    mean: FloatArray,
    most_factors: int,
) -> FactorModel:
    """Return a start from the principal axes of the table with gaps at the mean."""
    n, D = R.shape
    r = min(most_factors, D - 1, n - 2)
    if r < 1:
        return FactorModel(mean, np.zeros((D, 0)), np.maximum(spread, floor))
    weighted = R * np.sqrt(seen / seen.sum(axis=0).max())
    if n < D:
        _, s, Vt = np.linalg.svd(weighted, full_matrices=False)
        values, vectors = s[:r] ** 2, Vt[:r].T
    else:
        rising, axes = np.linalg.eigh(weighted.T @ weighted)
        values, vectors = np.maximum(rising[::-1][:r], 0), axes[:, ::-1][:, :r]
    loadings = vectors * np.sqrt(0.9 * values)
    own = np.maximum(spread - (loadings**2).sum(axis=1), np.maximum(0.05 * spread, floor))
    return FactorModel(mean, loadings, own)


def _step(
    model: FactorModel, Y: FloatArray, observed: BoolArray, weights: FloatArray, floor: FloatArray
) -> FactorModel:
    """Return the model after one step of EM."""
    D, r = model.loadings.shape
    squares = np.zeros((D, (r + 1) ** 2))
    products, own = np.zeros((D, r + 1)), np.zeros(D)
    step = max(1, AT_A_TIME // (r + 1) ** 2)
    for i in range(0, len(Y), step):
        part = slice(i, i + step)
        o = observed[part]
        known = np.where(o, Y[part], 0)
        z, spread = _factors(model, known, o)
        z1 = np.concatenate([z, np.ones((len(z), 1))], axis=1)
        both = z1[:, :, None] * z1[:, None, :]
        both[:, :r, :r] += spread
        seen = weights[part, None] * o
        squares += seen.T @ both.reshape(len(z), -1)
        products += (seen * known).T @ z1
        own += (seen * known**2).sum(axis=0)
    total = squares[:, -1]
    A = squares.reshape(D, r + 1, r + 1)
    ridged = A + np.diag(np.append(np.full(r, ROWS_OF_DOUBT * r), 0))
    found = np.linalg.solve(ridged, products[:, :, None])[:, :, 0]
    left = own - 2 * (found * products).sum(axis=1) + np.einsum("di,dij,dj->d", found, A, found)
    return FactorModel(found[:, -1], found[:, :-1], np.maximum(left / total, floor))


def _factors(
    model: FactorModel, known: FloatArray, observed: BoolArray
) -> tuple[FloatArray, FloatArray]:
    """Return mean (m, r) and covariance (m, r, r) of the factors of rows."""
    W, r = model.loadings, model.loadings.shape[1]
    precise = observed / model.variances
    M = (precise @ (W[:, :, None] * W[:, None, :]).reshape(len(W), -1)).reshape(-1, r, r)
    M[:, np.arange(r), np.arange(r)] += 1
    spread = np.linalg.inv(M)
    z = np.einsum("mrs,ms->mr", spread, (precise * (known - model.mean)) @ W)
    return z, spread
