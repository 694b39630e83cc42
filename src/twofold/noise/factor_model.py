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

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import NamedTuple, Self

import numpy as np

from twofold.array_types import BoolArray, FloatArray, IntArray
from twofold.noise.conditioning import Conditional, Gaussians
from twofold.rowwise import multiply_rows

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

    def condition(self, Y: FloatArray) -> Conditional:
        """Return what the observed entries of rows Y (m, D) tell of each entry; NaN is missing.

        That is what `condition` says with this Gaussian for each of the rows, but matrices are made
        once for rows with the same gaps. The answer of a row does not depend on the others.
        """
        D, r = self.loadings.shape
        order = _by_gaps(~np.isnan(Y))
        step = max(1, AT_A_TIME // (D * max(r, 1)))
        parts = [order[i : i + step] for i in range(0, max(len(Y), 1), step)]
        found = Conditional.joined([self._condition(Y[part]) for part in parts])
        return found.part(np.argsort(order))

    def _condition(self, Y: FloatArray) -> Conditional:
        W, r = self.loadings, self.loadings.shape[1]
        observed = ~np.isnan(Y)
        first, kind = _kinds(observed)
        o = observed[first]
        known = np.where(o, 1 / self.variances, 0)
        # A product for each kind: one for all of them would round by how many there are.
        M = np.matmul(W.T * known[:, None, :], W)
        M[:, np.arange(r), np.arange(r)] += 1
        inverse = np.linalg.inv(M)
        spread = np.einsum("pdr,dr->pd", np.matmul(W, inverse), W)
        precision = np.where(o, known - known**2 * spread, 1)
        log_det = (o * np.log(self.variances)).sum(axis=1) + np.linalg.slogdet(M)[1]
        variances = np.where(o, 1 / precision, self.variances + spread)

        R = np.where(observed, Y - self.mean, 0)
        weighed = multiply_rows(R / self.variances, W)
        z = np.matmul(inverse[kind], weighed[:, :, None])[:, :, 0]
        explained = multiply_rows(z, W.T)
        a = known[kind] * (R - explained)
        means = np.where(observed, Y - a / precision[kind], self.mean + explained)
        distances = (R * a).sum(axis=1)
        constant = (o.sum(axis=1) * np.log(2 * np.pi) + log_det)[kind]
        return Conditional(means, variances[kind], -(constant + distances) / 2, distances)


def draw_missing(Y: FloatArray, model: FactorModel, random: np.random.RandomState) -> FloatArray:
    """Return errors (m, D) of the missing entries of rows Y, by lot, in their deviations.

    They go together as the Gaussian says, given the known entries; those of known ones are 0.
    """
    gaps, (D, r) = np.isnan(Y), model.loadings.shape
    drawn = random.standard_normal((len(Y), r)) @ model.loadings.T
    drawn += random.standard_normal(Y.shape) * np.sqrt(model.variances)
    # A drawn row less what its known entries explain is drawn given these (Matheron's rule).
    centred = FactorModel(np.zeros(D), model.loadings, model.variances)
    explained = centred.condition(np.where(gaps, np.nan, drawn))
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
    model = _principal_start(R, seen, spread, floor, most_factors)
    r = model.loadings.shape[1]
    if r == 0:
        return replace(model, mean=mean)
    step: Callable[[FactorModel], FactorModel]
    if observed.all():
        step = partial(_step_of_whole, C=_covariance(R, weights), floor=floor)
    else:
        step = partial(_step, parts=_Rows.parts(R, observed, weights, r), floor=floor)
    for _ in range(MOST_STEPS):
        before = model
        model = step(model)
        change = np.abs(model.variances - before.variances).sum()
        if change <= LEAST_CHANGE * model.variances.sum():
            break
    return replace(model, mean=mean + model.mean)


def _principal_start(
    R: FloatArray,
    seen: FloatArray,
    spread: FloatArray,
    floor: FloatArray,
    most_factors: int,
) -> FactorModel:
    """Return a start from the principal axes of rows R, 0 where they have gaps."""
    (n, D), mean = R.shape, np.zeros(R.shape[1])
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


class _Covariance(NamedTuple):
    """What EM needs of the covariance C (D, D) of rows of weight ``total``: products, diagonal."""

    times: Callable[[FloatArray], FloatArray]
    diagonal: FloatArray
    total: float


def _covariance(R: FloatArray, weights: FloatArray) -> _Covariance:
    """Return the covariance of centred rows R (n, D), never as a matrix of more than n columns."""
    total = float(weights.sum())
    if len(R) < R.shape[1]:
        half = R * np.sqrt(weights / total)[:, None]
        return _Covariance(lambda B: half.T @ (half @ B), (half**2).sum(axis=0), total)
    C = (weights[:, None] * R).T @ R / total
    return _Covariance(lambda B: C @ B, C.diagonal(), total)


def _step_of_whole(model: FactorModel, C: _Covariance, floor: FloatArray) -> FactorModel:
    """Return the model after one step of EM on rows without gaps."""
    r, total = model.loadings.shape[1], C.total
    weighed = model.loadings / model.variances[:, None]
    inverse = np.linalg.inv(np.eye(r) + model.loadings.T @ weighed)
    B = inverse @ weighed.T
    products = total * C.times(B.T)
    squares = total * inverse + B @ products
    found = np.linalg.solve(squares + ROWS_OF_DOUBT * r * np.eye(r), products.T).T
    explained = np.einsum("di,ij,dj->d", found, squares, found, optimize=True)
    left = total * C.diagonal - 2 * (found * products).sum(axis=1) + explained
    return FactorModel(model.mean, found, np.maximum(left / total, floor))


@dataclass(frozen=True)
class _Rows:
    """Some rows of a table with gaps, those with the same gaps side by side.

    ``R`` (m, D) are their entries, 0 where missing, and ``squares`` (D,) the sums of their squares,
    rows counting by ``weights`` (m,). ``kinds`` (p, D) are 1 where rows of each kind of gaps are
    observed, ``totals`` (p,) the weights of the kinds, ``kind`` (m,) that of each row. For each
    column ``fewer`` are the rows in which it is missing, or those in which it is not if they are
    fewer, and whether it is missing there.
    """

    R: FloatArray
    weights: FloatArray
    squares: FloatArray
    kinds: FloatArray
    totals: FloatArray
    kind: IntArray
    fewer: Sequence[tuple[IntArray, bool]]

    @classmethod
    def parts(cls, R: FloatArray, observed: BoolArray, weights: FloatArray, r: int) -> list[Self]:
        """Return all rows R (n, D) of a table, few enough at a time for matrices of r columns."""
        order, step = _by_gaps(observed), max(1, AT_A_TIME // (r + 1) ** 2)
        parts = [order[i : i + step] for i in range(0, len(order), step)]
        return [cls._of(R[part], observed[part], weights[part]) for part in parts]

    @classmethod
    def _of(cls, R: FloatArray, observed: BoolArray, weights: FloatArray) -> Self:
        first, kind = _kinds(observed)
        totals = np.asarray(np.bincount(kind, weights=weights), dtype=np.float64)
        fewer = []
        for seen in observed.T:
            is_mostly_seen = 2 * int(seen.sum()) > len(seen)
            fewer.append((np.flatnonzero(seen != is_mostly_seen), is_mostly_seen))
        return cls(R, weights, weights @ R**2, observed[first].astype(float), totals, kind, fewer)


def _by_gaps(observed: BoolArray) -> IntArray:
    """Return an order (n,) of rows in which those with the same gaps are side by side."""
    return np.lexsort(np.packbits(observed, axis=1).T)


def _kinds(observed: BoolArray) -> tuple[IntArray, IntArray]:
    """Return the first rows (p,) of the kinds of gaps in rows in that order, and all rows' kind."""
    is_first = np.ones(len(observed), dtype=bool)
    is_first[1:] = (observed[1:] != observed[:-1]).any(axis=1)
    return np.flatnonzero(is_first), np.cumsum(is_first) - 1


def _step(model: FactorModel, parts: list[_Rows], floor: FloatArray) -> FactorModel:
    """Return the model after one step of EM on all parts of a table."""
    D, r = model.loadings.shape
    squares = np.zeros((D, r + 1, r + 1))
    products, own = np.zeros((D, r + 1)), np.zeros(D)
    for part in parts:
        z, spread = _factors(model, part)
        z1 = np.concatenate([z, np.ones((len(z), 1))], axis=1)
        weighted = part.weights[:, None] * z1
        whole = z1.T @ weighted
        for d, (rows, are_missing) in enumerate(part.fewer):
            some = z1[rows].T @ weighted[rows]
            squares[d] += whole - some if are_missing else some
        of_kind = part.totals[:, None] * part.kinds
        squares[:, :r, :r] += (of_kind.T @ spread.reshape(len(spread), -1)).reshape(D, r, r)
        products += part.R.T @ weighted
        own += part.squares
    total = squares[:, -1, -1]
    ridged = squares + np.diag(np.append(np.full(r, ROWS_OF_DOUBT * r), 0))
    found = np.linalg.solve(ridged, products[:, :, None])[:, :, 0]
    explained = np.einsum("di,dij,dj->d", found, squares, found)
    left = own - 2 * (found * products).sum(axis=1) + explained
    return FactorModel(found[:, -1], found[:, :-1], np.maximum(left / total, floor))


def _factors(model: FactorModel, part: _Rows) -> tuple[FloatArray, FloatArray]:
    """Return means (m, r) of the factors of rows, and their covariance for each kind of gaps."""
    W, r = model.loadings, model.loadings.shape[1]
    products = (W[:, :, None] * W[:, None, :]).reshape(len(W), -1)
    M = ((part.kinds / model.variances) @ products).reshape(-1, r, r)
    M[:, np.arange(r), np.arange(r)] += 1
    spread = np.linalg.inv(M)
    scaled = W / model.variances[:, None]
    off = part.kinds @ (model.mean[:, None] * scaled)
    weighed = part.R @ scaled - off[part.kind]
    return np.matmul(spread[part.kind], weighed[:, :, None])[:, :, 0], spread
