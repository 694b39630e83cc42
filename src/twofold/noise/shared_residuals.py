"""Rows between what was measured and what the manifold says: how much of a residual is noise.

The residual of a row is what its neighbours on the map do not tell. What several columns share of
it is most likely so, and belongs to the row; what a column has alone is most likely noise:

    y = f(x) + μ + W z + e,   z ~ N(0, I_r),   e ~ N(0, diag ψ)

fitted to leave-one-out residuals of training rows (:mod:`twofold.noise.factor_model`). The row
without noise is, on average,

    E[f(x) + μ + W z | y] = y - ψ ∘ a,   a = (W Wᵀ + diag ψ)⁻¹ (y - f(x) - μ)

With r = 0 that is f(x) + μ, and with ψ = 0 the row itself. The number of factors r is that under
which the other half of the residuals is most likely, of at most so many as columns can tell from
noise (Ledermann 1937): r <= (2 D + 1 - sqrt(8 D + 1)) / 2.
"""

import numpy as np

from twofold.array_types import FloatArray
from twofold.noise.conditioning import condition
from twofold.noise.factor_model import FactorModel, fit_factors

NUMBERS_OF_FACTORS = (0, 1, 2, 3, 4, 6, 8, 12, 16, 24)
# Rows of which the residuals are looked at.
MOST_ROWS = 4_000


def fit_shared(residuals: FloatArray, weights: FloatArray, seed: int) -> FactorModel:
    """Return the Gaussian of residuals (n, D) of rows of weights (n,); NaN is missing."""
    order = np.random.RandomState(seed).permutation(len(residuals))[:MOST_ROWS]
    R, w = residuals[order], weights[order]
    bound = (2 * R.shape[1] + 1 - np.sqrt(8 * R.shape[1] + 1)) / 2
    halves = [np.arange(len(R)) % 2 == side for side in (0, 1)]
    if not all((~np.isnan(R[half])).any(axis=0).all() for half in halves):
        return fit_factors(R, w, 0)

    def likelihood(r: int) -> float:
        found = 0.0
        for half in halves:
            model = fit_factors(R[half], w[half], r)
            seen = condition(R[~half], model.repeated(int((~half).sum())))
            found += float(w[~half] @ seen.log_density)
        return found

    return fit_factors(R, w, max((r for r in NUMBERS_OF_FACTORS if r <= bound), key=likelihood))


def without_noise(residuals: FloatArray, shared: FactorModel) -> FloatArray:
    """Return what is left of residuals (m, D) without noise; of missing ones, what is expected."""
    found = condition(residuals, shared.repeated(len(residuals)))
    # The entry less its mean given the others is a_d times its variance given these.
    a = (residuals - found.means) / found.variances
    return np.where(np.isnan(residuals), found.means, residuals - shared.variances * a)
