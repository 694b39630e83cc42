"""Node values from data at known places: samples anywhere in the domain, or data at the nodes.

Scattered samples:

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
`FittedNodes.converged` says so.

Noisy, missing and partly trusted data on the nodes of a grid:

    complete data       minimise ||W - Y||² + λ R(W)                    (Klanke 2007, 3.23 to 3.27)
    missing nodes       minimise R(W) over the unknown ones             (3.28 to 3.30)
    single smoothness   minimise Σ_i (w_i - y_i)² / λ_i + R(W)          (3.31 to 3.33)

The last contains the others: λ_i = 0 keeps a node as it is, λ_i = ∞ ignores what is there. It is
solved in its symmetric form, with Ω = diag(1/λ_i) over the nodes U whose λ_i is not 0 and F the
rest,

    (Ω + M_UU) w_U = Ω y_U - M_UF y_F.

Columns of W do not interact; NaN is missing, and each column may miss other nodes. λ that is to be
chosen is one for all columns.
"""

import contextlib
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike
from scipy.linalg import LinAlgWarning, cho_factor, cho_solve
from sklearn.exceptions import ConvergenceWarning

from twofold.array_types import BoolArray, FloatArray, IntArray
from twofold.contract.distinct_rows import merge_duplicates
from twofold.engine.threads import count_threads
from twofold.process_settings import warn
from twofold.psom import penalized
from twofold.psom.basis import SampleBasis
from twofold.psom.grid import Grid
from twofold.psom.penalized import exact_path, krylov_path
from twofold.psom.roughness import (
    MOST_ROWS,
    LegendreCoordinates,
    NodeModes,
    Roughness,
    largest_block,
)
from twofold.psom.smoothness_choice import (
    Rule,
    Smoothness,
    SmoothnessPath,
    checked_smoothness,
    choose_smoothness,
)
from twofold.rowwise import same_gaps

MOST_NODES_EXACTLY = 1024
MOST_NODES_DENSE = 4500
# Operations of the exact decomposition, about samples × nodes², beyond which it takes too long.
MOST_WORK_EXACTLY = 5e10
# Singular values below this share of the largest count as zero in a hard fit, and the ratio from
# which on it is likely to swing between the samples.
RANK_TOLERANCE, BAD_CONDITION = 1e-10, 1e4
# Up to this many free nodes the equations are solved densely.
MOST_FREE_DENSE = 1500
MOST_ITERATIONS, TOLERANCE = 3000, 1e-11


@dataclass(frozen=True, eq=False)
class FittedNodes:
    """Node values fitted to data at known places."""

    W: FloatArray  # (N, D)
    smoothness: float | FloatArray  # λ, 0 for a hard fit, or λ_i (N,) of each node
    roughness: float
    squared_error: float  # weighted
    degrees_of_freedom: float | None = None  # used up in each column on average, if known
    rank: int | None = None  # of a hard fit, the number of directions the samples determine
    n_iter: int = 0  # steps of the iterative solver
    converged: bool = True  # whether W is the minimum for λ up to rounding errors


@dataclass(frozen=True, eq=False)
class _Problem:
    """Distinct samples, multiplied by the roots of their weights, whose mean is divided out."""

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
    n_jobs: int | None = -1,
) -> FittedNodes:
    """Return node values fitted to samples Y (m, D) at places X (m, q).

    ``smoothness`` is λ > 0, or "gcv", `GCV()` or `Discrepancy(sigma)` to have it chosen; 0 is a
    hard fit.
    """
    rule = checked_smoothness(smoothness)
    problem = _prepare(grid, X, Y, weights, count_threads(n_jobs))
    unit = problem.mean_weight
    if rule == 0.0:
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
        raise ValueError("`X` and `Y` must be finite; leave out samples with gaps.")
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


def _fit_soft(grid: Grid, problem: _Problem, rule: float | Rule) -> FittedNodes:
    parts = problem.coordinates, problem.design, problem.Y
    small = grid.size <= MOST_NODES_EXACTLY
    if small and problem.design.n_rows * grid.size**2 <= MOST_WORK_EXACTLY:
        path = exact_path(*parts)
        number = rule if isinstance(rule, float) else choose_smoothness([path], rule)
        return _soft_result(grid, path, number)
    if isinstance(rule, float) and grid.size <= MOST_NODES_DENSE:
        # Too little smoothness for normal equations is an error; the iteration can do with less.
        with contextlib.suppress(np.linalg.LinAlgError):
            C = penalized.cholesky_solution(*parts, rule)
            W, residual = problem.coordinates.at_nodes(C), problem.Y - problem.design.times(C)
            return FittedNodes(W, rule, Roughness(grid).of(W), float((residual**2).sum()))
    found = krylov_path(*parts, rule)
    if isinstance(rule, float) and not found.converged:
        asked = rule * problem.mean_weight
        warn(
            f"the fit with smoothness {asked:g} did not converge in {found.n_steps} steps; it is "
            "smoother than asked for. Take fewer nodes or more smoothness.",
            ConvergenceWarning,
        )
    return _soft_result(grid, found.path, found.smoothness, found.n_steps, found.converged)


def _soft_result(
    grid: Grid, path: SmoothnessPath, number: float, n_iter: int = 0, converged: bool = True
) -> FittedNodes:
    W = path.solution(number)
    error, used = path.squared_residual(number), path.n_rows - path.free(number)
    return FittedNodes(
        W, number, Roughness(grid).of(W), error, used, n_iter=n_iter, converged=converged
    )


def _fit_hard(grid: Grid, problem: _Problem) -> FittedNodes:
    """Return the smoothest of the best fits: the least ||z|| among the solutions of K z = y.

    The null-space method with the null space of K found by singular values, in coordinates where
    the roughness is ||z||²: the part of z in the null space is then zero.
    """
    if grid.size > MOST_NODES_DENSE:
        raise ValueError(
            f"a hard fit needs a grid of at most {MOST_NODES_DENSE} nodes; this one has "
            f"{grid.size}. Take fewer nodes, or use a small `smoothness` instead."
        )
    path = exact_path(problem.coordinates, problem.design, problem.Y)
    s = path.singular_values
    kept = s > RANK_TOLERANCE * s.max(initial=0)
    rank = int(kept.sum())
    if rank and s[0] / s[rank - 1] > BAD_CONDITION:
        warn(
            f"the hard fit is badly conditioned (ratio of singular values "
            f"{s[0] / s[rank - 1]:.2g}): it may swing between the samples; take `smoothness` > 0.",
            LinAlgWarning,
        )
    # The pseudoinverse: the least ||z||, which is the least roughness.
    inverses = np.divide(1, s, out=np.zeros_like(s), where=kept)
    W = path.restore(inverses[:, None] * path.data_parts)
    error = path.outside + float((path.data_parts[~kept] ** 2).sum())
    return FittedNodes(W, 0.0, Roughness(grid).of(W), error, float(rank + grid.n_axes + 1), rank)


def smooth_grid(
    grid: Grid,
    W: ArrayLike,
    smoothness: Smoothness | list[float] | tuple[float, ...] | FloatArray = 0.0,
    *,
    n_jobs: int | None = -1,
) -> FittedNodes:
    """Return smooth node values for noisy or incomplete data W (N, D) of the nodes in C order.

    ``smoothness`` is λ, or one λ_i a node (N,) from 0 (kept as it is) to inf (ignored), or "gcv",
    `GCV()` or `Discrepancy(sigma)` to have λ chosen. Missing entries are filled in any case.
    """
    data = np.array(W, dtype=np.float64)
    if data.ndim != 2 or len(data) != grid.size:
        raise ValueError(
            f"The data of a grid must have one row for each of its {grid.size} nodes, in the order "
            f"of nested loops with the last axis innermost; got shape {data.shape}."
        )
    if np.isinf(data).any():
        raise ValueError("The data of a grid must be finite, or NaN where it is missing.")
    known = ~np.isnan(data)
    if isinstance(smoothness, np.ndarray | list | tuple):
        asked: float | Rule | FloatArray = _checked_per_node(np.asarray(smoothness), grid)
    else:
        asked = checked_smoothness(smoothness)
    smoother = _Smoother(grid, count_threads(n_jobs))
    if isinstance(asked, float | np.ndarray):
        out, number, used = smoother.given(data, known, asked), asked, None
    else:
        out, number, used = smoother.chosen(data, known, asked)
    error = float(((out - data)[known] ** 2).sum())
    rough = smoother.roughness.of(out)
    return FittedNodes(out, number, rough, error, used, converged=smoother.converged)


def _checked_per_node(smoothness: FloatArray, grid: Grid) -> FloatArray:
    values = smoothness.astype(np.float64)
    expected = f"`smoothness` must be a number or one for each of the {grid.size} nodes, from 0 to"
    if values.shape != (grid.size,):
        raise ValueError(f"{expected} inf; got an array of shape {values.shape}.")
    wrong = np.flatnonzero(~(values >= 0))
    if len(wrong):
        raise ValueError(
            f"{expected} inf; got {values[wrong[0]]:g} for node {wrong[0]}"
            + (f" and {len(wrong) - 1} more like it." if len(wrong) > 1 else ".")
        )
    return values


class _Smoother:
    """What the groups of columns with the same gaps share."""

    def __init__(self, grid: Grid, n_threads: int) -> None:
        self.grid = grid
        self.n_threads = n_threads
        self.roughness = Roughness(grid)
        self.converged = True

    @cached_property
    def modes(self) -> NodeModes | None:
        """The eigenvectors of the roughness, if its blocks are small enough."""
        if largest_block(self.grid) > MOST_ROWS:
            return None
        return NodeModes(self.roughness, self.n_threads)

    @cached_property
    def coordinates(self) -> LegendreCoordinates:
        """Legendre coordinates of the grid."""
        return LegendreCoordinates(self.grid, self.n_threads)

    def chosen(
        self, data: FloatArray, known: BoolArray, rule: Rule
    ) -> tuple[FloatArray, float | FloatArray, float | None]:
        """Return node values, smoothness and degrees of freedom."""
        groups = same_gaps(known)
        paths = [self._path(data[:, columns], known[:, columns[0]], rule) for columns in groups]
        number = choose_smoothness(paths, rule)
        out = np.empty_like(data)
        for columns, path in zip(groups, paths, strict=True):
            out[:, columns] = path.solution(number)
        used = [(path.n_rows - path.free(number)) * path.n_columns for path in paths]
        return out, number, sum(used) / data.shape[1]

    def _path(self, data: FloatArray, known: BoolArray, rule: Rule) -> SmoothnessPath:
        if known.all() and self.modes is not None:
            return self.modes.path(data)
        design = penalized.NodeRows(self.coordinates, known)
        if self.grid.size <= MOST_NODES_EXACTLY:
            return exact_path(self.coordinates, design, data[known])
        krylov = krylov_path(self.coordinates, design, data[known], rule)
        self.converged &= krylov.converged
        return krylov.path

    def given(
        self, data: FloatArray, known: BoolArray, smoothness: float | FloatArray
    ) -> FloatArray:
        """Return node values for one smoothness, or one per node."""
        is_plain = isinstance(smoothness, float) and smoothness > 0 and known.all()
        if is_plain and self.modes is not None:
            return self.modes.path(data).solution(float(smoothness))
        per_node = np.broadcast_to(np.asarray(smoothness, dtype=np.float64), self.grid.size)
        out = np.empty_like(data)
        for columns in same_gaps(known):
            out[:, columns] = self._solve(data[:, columns], known[:, columns[0]], per_node)
        return out

    def _solve(self, data: FloatArray, known: BoolArray, per_node: FloatArray) -> FloatArray:
        trusted = known & (per_node < np.inf)
        fixed = known & (per_node == 0)
        free = np.flatnonzero(~fixed)
        self._require_affine(trusted)
        pull = np.zeros(len(data))
        # Ω of the module's docstring; 0 for nodes that nobody measured or trusts.
        pull[trusted & ~fixed] = 1 / per_node[trusted & ~fixed]
        out = np.where(fixed[:, None], data, 0.0)
        if len(free) == 0:
            return out
        right = np.where(trusted[:, None], pull[:, None] * data, 0.0) - self.roughness.times(out)
        if len(free) <= MOST_FREE_DENSE:
            matrix = self.roughness.entries(free, free)
            matrix[np.diag_indices_from(matrix)] += pull[free]
            out[free] = cho_solve(cho_factor(matrix, lower=True, overwrite_a=True), right[free])
        else:
            out[free] = self._iterate(free, pull[free], right[free])
        return out

    def _require_affine(self, trusted: BoolArray) -> None:
        middle, half = (self.grid.lo + self.grid.hi) / 2, (self.grid.hi - self.grid.lo) / 2
        places = (self.grid.places()[trusted] - middle) / half
        affine = np.column_stack([np.ones(len(places)), places])
        penalized.require_affine(np.asarray(np.linalg.qr(affine, mode="r")))

    def _iterate(self, free: IntArray, pull: FloatArray, right: FloatArray) -> FloatArray:
        """Solve by conjugate gradients, every column with its own steps."""

        def times(v: FloatArray) -> FloatArray:
            whole = np.zeros((self.grid.size, v.shape[1]))
            whole[free] = v
            return pull[:, None] * v + self.roughness.times(whole)[free]

        # On Chebyshev nodes the diagonal does well: some hundred iterations at most.
        scale = (pull + self.roughness.diagonal()[free])[:, None]
        found, converged = penalized.conjugate_gradients(
            times, lambda r: r / scale, right, tolerance=TOLERANCE, max_iter=MOST_ITERATIONS
        )
        if not converged:
            self.converged = False
            warn(
                f"smoothing did not converge in {MOST_ITERATIONS} iterations; take fewer nodes, "
                "or more regular data.",
                ConvergenceWarning,
            )
        return found
