"""One Gaussian for a whole table with gaps: factor analysis by EM, time linear in rows and columns.

    y = μ + W z + e,   z ~ N(0, I_r),   e ~ N(0, diag ψ)

so that the covariance of the columns is ``W Wᵀ + diag(ψ)`` (Rubin & Thayer 1982); with r = D - 1
factors it is any covariance. Only observed entries enter. In each step, for every row,

    M = I + W_oᵀ ψ_o⁻¹ W_o,   E[z] = M⁻¹ W_oᵀ ψ_o⁻¹ (y_o - μ_o),   V[z] = M⁻¹

and for every column d the regression of its observed entries on (z, 1), with a ridge as if a few
more rows had shown a column that goes with no other. M is the same for all rows with the same gaps;
of a table without gaps all that enters is its covariance C, and a step costs nothing for the rows:

    Σ z zᵀ = n (M⁻¹ + B C Bᵀ),   Σ (y - μ) zᵀ = n C Bᵀ,   B = M⁻¹ Wᵀ ψ⁻¹
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np

from twofold.array_types import BoolArray, FloatArray, IntArray
from twofold.noise.conditioning import Gaussians, condition

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


def draw_missing(Y: FloatArray, model: FactorModel, random: np.random.RandomState) -> FloatArray:
    """Return errors (m, D) of the missing entries of rows Y, by lot, in their deviations.

    They go together as the Gaussian says, given the known entries; those of known ones are 0.
    """
    gaps, (D, r) = np.isnan(Y), model.loadings.shape
    drawn = random.standard_normal((len(Y), r)) @ model.loadings.T
    drawn += random.standard_normal(Y.shape) * np.sqrt(model.variances)
    # A drawn row less what its known entries explain is drawn given these (Matheron's rule).
    centred = FactorModel(np.zeros(D), model.loadings, model.variances)
    explained = condition(np.where(gaps, np.nan, drawn), centred.repeated(len(Y)))
    expected = np.sqrt(np.where(gaps, explained.variances, 1))
    return np.where(gaps, (drawn - explained.means) / expected, 0)


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
    step: Callable[[FactorModel], FactorModel]
    if observed.all():
        covariance = (seen * R).T @ R / weights.sum()
        step = partial(_step_of_whole, C=covariance, total=float(weights.sum()), floor=floor)
    else:
        packed = np.packbits(observed, axis=1)
        pattern = np.unique(packed, axis=0, return_inverse=True)[1].ravel()  # numbers of rows' gaps
        gaps = (observed, pattern)
        step = partial(_step, Y=Y, gaps=gaps, weights=weights, floor=floor)
    for _ in range(MOST_STEPS):
        before = model
        model = step(model)
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


def _step_of_whole(
    model: FactorModel, C: FloatArray, total: float, floor: FloatArray
) -> FactorModel:
    """Return the model after one step of EM on rows of weight ``total`` without gaps."""
    r = model.loadings.shape[1]
    weighed = model.loadings / model.variances[:, None]
    inverse = np.linalg.inv(np.eye(r) + model.loadings.T @ weighed)
    B = inverse @ weighed.T
    products = total * C @ B.T
    squares = total * inverse + B @ products
    found = np.linalg.solve(squares + ROWS_OF_DOUBT * r * np.eye(r), products.T).T
    explained = np.einsum("di,ij,dj->d", found, squares, found, optimize=True)
    left = total * C.diagonal() - 2 * (found * products).sum(axis=1) + explained
    return FactorModel(model.mean, found, np.maximum(left / total, floor))


def _step(
    model: FactorModel,
    Y: FloatArray,
    gaps: tuple[BoolArray, IntArray],
    weights: FloatArray,
    floor: FloatArray,
) -> FactorModel:
    """Return the model after one step of EM; ``gaps``: what is observed, and its pattern (n,)."""
    observed, pattern = gaps
    D, r = model.loadings.shape
    squares = np.zeros((D, r + 1, r + 1))
    products, own = np.zeros((D, r + 1)), np.zeros(D)
    step = max(1, AT_A_TIME // (r + 1) ** 2)
    for i in range(0, len(Y), step):
        part = slice(i, i + step)
        o = observed[part]
        known = np.where(o, Y[part], 0)
        _, first, kind = np.unique(pattern[part], return_index=True, return_inverse=True)
        z, spread = _factors(model, known, o, first, kind)
        z1 = np.concatenate([z, np.ones((len(z), 1))], axis=1)
        seen = weights[part, None] * o
        both = (z1[:, :, None] * z1[:, None, :]).reshape(len(z), -1)
        squares += (seen.T @ both).reshape(squares.shape)
        of_kind = np.bincount(kind, weights=weights[part])[:, None] * o[first]
        squares[:, :r, :r] += (of_kind.T @ spread.reshape(len(first), -1)).reshape(D, r, r)
        products += (seen * known).T @ z1
        own += (seen * known**2).sum(axis=0)
    total = squares[:, -1, -1]
    ridged = squares + np.diag(np.append(np.full(r, ROWS_OF_DOUBT * r), 0))
    found = np.linalg.solve(ridged, products[:, :, None])[:, :, 0]
    explained = np.einsum("di,dij,dj->d", found, squares, found)
    left = own - 2 * (found * products).sum(axis=1) + explained
    return FactorModel(found[:, -1], found[:, :-1], np.maximum(left / total, floor))


def _factors(
    model: FactorModel, known: FloatArray, observed: BoolArray, first: IntArray, kind: IntArray
) -> tuple[FloatArray, FloatArray]:
    """Return means (m, r) of the factors of rows, and their covariance for each kind of gaps.

    ``first`` (p,) are rows of the kinds, ``kind`` (m,) is that of each row.
    """
    W, r = model.loadings, model.loadings.shape[1]
    products = (W[:, :, None] * W[:, None, :]).reshape(len(W), -1)
    M = ((observed[first] / model.variances) @ products).reshape(-1, r, r)
    M[:, np.arange(r), np.arange(r)] += 1
    spread = np.linalg.inv(M)
    weighed = (observed / model.variances * (known - model.mean)) @ W
    return np.matmul(spread[kind], weighed[:, :, None])[:, :, 0], spread
