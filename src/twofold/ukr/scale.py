"""How far a start embedding is stretched: the bandwidth, found by leave-one-out error.

UKR's bandwidth is one, so scaling the latent points is choosing it (Klanke 2007, eqs. 4.51, 4.52):

    s* = argmin_s R_cv(X diag(s)),   dR/dlog s_m = Σ_n x_nm dR/dx_nm

First one common factor from a grid around the typical distance of neighbours, then one factor a
dimension by gradient. On large data the error of a fixed subset of rows decides.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.optimize import minimize
from scipy.spatial import cKDTree

from twofold.array_types import FloatArray, IntArray
from twofold.ukr.objective import Reconstruction

# Kernel widths, in distances to the nearest neighbour, that the grid runs through.
WIDEST, NARROWEST, GRID = 30.0, 0.35, 10
MOST_ROWS = 500
MOST_STEPS = 8
MOST_STRETCH = np.log(5.0)


@dataclass(frozen=True)
class Scaled:
    """A start with its best scales: name, latent points (n, q) and leave-one-out error."""

    name: str
    X: FloatArray
    error: float


def subset_of(n: int) -> IntArray:
    """Return the rows whose error decides; an even choice, the same for every candidate."""
    return np.unique(np.linspace(0, n - 1, min(n, MOST_ROWS)).astype(np.int64))


def common_scale(name: str, X: FloatArray, objective: Reconstruction) -> Scaled:
    """Find the best common factor for a start."""
    rows = subset_of(len(objective.share))
    X = X - X.mean(axis=0)
    factors = np.geomspace(1 / WIDEST, 1 / NARROWEST, GRID) / typical_spacing(X)
    errors = [objective.value_on(X * factor, rows) for factor in factors]
    best = int(np.argmin(errors))
    return Scaled(name, X * factors[best], errors[best])


def scale_each_dimension(start: Scaled, objective: Reconstruction) -> Scaled:
    """Improve the factors of a start, one a dimension, by gradient."""
    rows, q = subset_of(len(objective.share)), start.X.shape[1]
    # The optimiser's tolerances are absolute, so errors are measured in that of the start.
    unit = start.error if start.error > 0 else 1.0

    def error_and_slope(log_scales: FloatArray) -> tuple[float, FloatArray]:
        X = start.X * np.exp(log_scales)
        error, slope = objective.value_and_scale_slope(X, rows)
        return error / unit, slope / unit

    found = minimize(
        error_and_slope,
        np.zeros(q),
        jac=True,
        method="L-BFGS-B",
        bounds=[(-MOST_STRETCH, MOST_STRETCH)] * q,
        options={"maxiter": MOST_STEPS},
    )
    if not found.fun * unit < start.error:
        return start
    return Scaled(start.name, start.X * np.exp(found.x), float(found.fun * unit))


def typical_spacing(X: FloatArray) -> float:
    """Return the median distance to the nearest other latent point, away from zero."""
    rows = subset_of(len(X))
    k = min(len(X), 4)
    distance = cKDTree(X).query(X[rows], k=k)[0]
    nearest = np.where(distance[:, 1:] > 0, distance[:, 1:], np.inf).min(axis=1)
    nearest = nearest[np.isfinite(nearest)]
    return float(np.median(nearest)) if len(nearest) else max(float(X.std()), 1e-12)
