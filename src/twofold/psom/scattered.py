"""Node values from samples with known latent places.

    soft:  minimise Σ_i v_i ||y_i - f(x_i)||² + λ R(W)                (Klanke 2007, 3.38 to 3.40)
    hard:  minimise R(W) among the maps that fit the samples best     (3.34 to 3.37)

The sum runs over the samples, it is no mean: λ of (3.41) is this one divided by their number. Soft
is the default, because the hard fit turns noise, and even rounding errors, into wild swings between
the samples as their number approaches that of the nodes. λ is chosen by generalized
cross-validation unless it is given. R depends on the units of X: see :mod:`twofold.psom.roughness`.

A sample that is there twice, place and data the same, is one sample of twice the weight: to rules
that choose λ two would look like proof that there is no noise. What is chosen depends on the
proportions of the weights only.

Grids of more than `MOST_NODES_EXACTLY` nodes use an iterative solver. With λ given and up to
`MOST_NODES_DENSE` nodes they do not have to. On very large grids, data without noise ask for so
little smoothing that the solver reaches its last step first; stopping there smooths as well, and
`ScatteredFit.converged` says so.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike
from scipy.linalg import LinAlgWarning
from sklearn.exceptions import ConvergenceWarning

from twofold.array_types import FloatArray
from twofold.contract.distinct_rows import merge_duplicates
from twofold.engine.threads import count_threads, single_threaded_blas
from twofold.psom.basis import SampleBasis
from twofold.psom.grid import Grid
from twofold.psom.legendre import LegendreCoordinates
from twofold.psom.penalized import cholesky_solution, exact_path, krylov_path
from twofold.psom.roughness import Roughness
from twofold.psom.smoothness_choice import (
    Rule,
    Smoothness,
    SmoothnessPath,
    checked_smoothness,
    choose_smoothness,
)

MOST_NODES_EXACTLY = 1024
MOST_NODES_DENSE = 4500
# Operations of the exact decomposition, about samples × nodes², beyond which it takes too long.
MOST_WORK_EXACTLY = 5e10
# Singular values below this share of the largest count as zero in a hard fit, and the ratio from
# which on it is likely to swing between the samples.
RANK_TOLERANCE, BAD_CONDITION = 1e-10, 1e4


@dataclass(frozen=True, eq=False)
class ScatteredFit:
    """Node values fitted to samples.

    Attributes
    ----------
    W : (N, D) node values
    smoothness : λ, 0 for a hard fit
    roughness : R(W)
    squared_error : weighted sum of squared residuals
    degrees_of_freedom : what the samples used up in each column; None if not computed
    rank : of a hard fit, the number of directions the samples determine; None otherwise
    n_iter : steps of the iterative solver, 0 where there was none
    converged : whether W is the minimum for `smoothness` up to rounding errors
    """

    W: FloatArray
    smoothness: float
    roughness: float
    squared_error: float
    degrees_of_freedom: float | None
    rank: int | None
    n_iter: int
    converged: bool


@dataclass(frozen=True, eq=False)
class _Problem:
    """Checked arguments: distinct samples, multiplied by the roots of their weights.

    Weights are divided by their mean.
    """

    coordinates: LegendreCoordinates
    design: SampleBasis
    Y: FloatArray
    mean_weight: float


def fit_scattered(
    grid: Grid,
    X: ArrayLike,
    Y: ArrayLike,
    smoothness: Smoothness = "gcv",
    weights: ArrayLike | None = None,
    *,
    exact: bool = False,
    n_jobs: int | None = -1,
) -> ScatteredFit:
    """Return node values fitted to samples.

    Parameters
    ----------
    grid : the grid
    X : (m, q) latent places of the samples
    Y : (m, D) data of the samples
    smoothness : λ > 0, or "gcv", `GCV()` or `Discrepancy(sigma)` to have it chosen; 0 is a hard fit
    weights : (m,) of the samples, ≥ 0; 1 if None
    exact : whether to fit hard; `smoothness` is then not used
    n_jobs : number of threads, -1 for every core; the result does not depend on it
    """
    rule = checked_smoothness(smoothness)
    with single_threaded_blas():
        problem = _prepare(grid, X, Y, weights, count_threads(n_jobs))
        unit = problem.mean_weight
        if exact or rule == 0.0:
            found = _fit_hard(grid, problem)
        elif isinstance(rule, float):
            found = replace(_fit_soft(grid, problem, rule / unit), smoothness=rule)
        else:
            found = _fit_soft(grid, problem, rule)
            found = replace(found, smoothness=found.smoothness * unit)
        return replace(found, squared_error=found.squared_error * unit)


def _prepare(
    grid: Grid, X: ArrayLike, Y: ArrayLike, weights: ArrayLike | None, n_threads: int
) -> _Problem:
    places: FloatArray = np.asarray(X, dtype=np.float64)
    data: FloatArray = np.asarray(Y, dtype=np.float64)
    if places.ndim != 2 or places.shape[1] != grid.n_axes:
        raise ValueError(
            f"`X` must have one column for each of the {grid.n_axes} axes of the grid; "
            f"got shape {places.shape}."
        )
    if data.ndim != 2 or len(data) != len(places):
        raise ValueError(
            f"`Y` must have one row for each of the {len(places)} samples; got shape {data.shape}."
        )
    v: FloatArray = np.ones(len(data)) if weights is None else np.asarray(weights, np.float64)
    if v.shape != (len(data),) or not (np.isfinite(v).all() and (v >= 0).all()):
        raise ValueError("`weights` must be one finite number >= 0 for each sample.")
    used = v > 0
    places, data, v = places[used], data[used], v[used]
    if not (np.isfinite(places).all() and np.isfinite(data).all()):
        raise ValueError("`X` and `Y` must be finite; leave samples with gaps out.")
    places, data, v = _distinct(places, data, v)
    unit = float(v.mean()) if len(v) else 1.0
    roots = np.sqrt(v / unit)
    coordinates = LegendreCoordinates(grid, n_threads)
    design = SampleBasis(coordinates.axis_values(places), roots, n_threads)
    return _Problem(coordinates, design, data * roots[:, None], unit)


def _distinct(
    X: FloatArray, Y: FloatArray, weights: FloatArray
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return samples with copies merged into weights, in the order of their first appearance."""
    merged = merge_duplicates(np.hstack([X, Y]), weights)
    if len(merged.first) == len(X):
        return X, Y, weights
    order = np.argsort(merged.first)
    first = merged.first[order]
    return X[first], Y[first], merged.weights[order]


def _fit_soft(grid: Grid, problem: _Problem, rule: float | Rule) -> ScatteredFit:
    parts = problem.coordinates, problem.design, problem.Y
    small = grid.size <= MOST_NODES_EXACTLY
    if small and problem.design.n_rows * grid.size**2 <= MOST_WORK_EXACTLY:
        path = exact_path(*parts)
        number = rule if isinstance(rule, float) else choose_smoothness([path], rule)
        return _soft_result(grid, path, number, n_iter=0, converged=True)
    if isinstance(rule, float) and grid.size <= MOST_NODES_DENSE:
        try:
            return _dense_result(grid, problem, rule)
        except np.linalg.LinAlgError:
            pass  # too little smoothness for normal equations; the iteration can do with less
    found = krylov_path(*parts, rule)
    if isinstance(rule, float) and not found.converged:
        asked = rule * problem.mean_weight
        warnings.warn(
            f"the fit with smoothness {asked:g} did not converge in {found.n_steps} steps; it is "
            "smoother than asked for. Take fewer nodes or more smoothness.",
            ConvergenceWarning,
            stacklevel=3,
        )
    return _soft_result(grid, found.path, found.smoothness, found.n_steps, found.converged)


def _soft_result(
    grid: Grid, path: SmoothnessPath, number: float, n_iter: int, converged: bool
) -> ScatteredFit:
    W = path.solution(number)
    return ScatteredFit(
        W=W,
        smoothness=number,
        roughness=Roughness(grid).of(W),
        squared_error=path.squared_residual(number),
        degrees_of_freedom=path.n_rows - path.free(number),
        rank=None,
        n_iter=n_iter,
        converged=converged,
    )


def _dense_result(grid: Grid, problem: _Problem, number: float) -> ScatteredFit:
    C = cholesky_solution(problem.coordinates, problem.design, problem.Y, number)
    W = problem.coordinates.at_nodes(C)
    residual = problem.Y - problem.design.times(C)
    return ScatteredFit(
        W=W,
        smoothness=number,
        roughness=Roughness(grid).of(W),
        squared_error=float((residual**2).sum()),
        degrees_of_freedom=None,
        rank=None,
        n_iter=0,
        converged=True,
    )


def _fit_hard(grid: Grid, problem: _Problem) -> ScatteredFit:
    """Return the smoothest of the best fits: the least ||z|| among the solutions of K z = y.

    The null-space method with the null space of K found by singular values, in coordinates where
    the roughness is ||z||²: the part of z in the null space is then zero.
    """
    if grid.size > MOST_NODES_DENSE:
        raise ValueError(
            f"a hard fit needs a grid of at most {MOST_NODES_DENSE} nodes; this one has "
            f"{grid.size}. Take fewer nodes, or a small `smoothness` in its place."
        )
    path = exact_path(problem.coordinates, problem.design, problem.Y)
    s = path.singular_values
    kept = s > RANK_TOLERANCE * s.max(initial=0)
    rank = int(kept.sum())
    if rank and s[0] / s[rank - 1] > BAD_CONDITION:
        warnings.warn(
            f"the hard fit is badly conditioned (ratio of singular values "
            f"{s[0] / s[rank - 1]:.2g}): it may swing between the samples; take `smoothness` > 0.",
            LinAlgWarning,
            stacklevel=3,
        )
    inverses = np.divide(1, s, out=np.zeros_like(s), where=kept)
    W = path.restore(inverses[:, None] * path.data_parts)
    return ScatteredFit(
        W=W,
        smoothness=0.0,
        roughness=Roughness(grid).of(W),
        squared_error=path.outside + float((path.data_parts[~kept] ** 2).sum()),
        degrees_of_freedom=float(rank + grid.n_axes + 1),
        rank=rank,
        n_iter=0,
        converged=True,
    )
