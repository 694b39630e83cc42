"""Noisy, missing and partly trusted data on the nodes of a grid.

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

from __future__ import annotations

import warnings
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike
from scipy.linalg import cho_factor, cho_solve
from sklearn.exceptions import ConvergenceWarning

from twofold.array_types import BoolArray, FloatArray, IntArray
from twofold.engine.threads import count_threads, single_threaded_blas
from twofold.psom.basis import row_products
from twofold.psom.grid import Grid
from twofold.psom.krylov import conjugate_gradients
from twofold.psom.legendre import MOST_ROWS, LegendreCoordinates, NodeModes, largest_block
from twofold.psom.penalized import exact_path, krylov_path, require_affine
from twofold.psom.roughness import Roughness
from twofold.psom.scattered import MOST_NODES_EXACTLY
from twofold.psom.smoothness_choice import (
    Rule,
    Smoothness,
    SmoothnessPath,
    checked_smoothness,
    choose_smoothness,
)

# Up to this many free nodes the equations are solved densely.
MOST_FREE_DENSE = 1500
MOST_ITERATIONS, TOLERANCE = 3000, 1e-11


@dataclass(frozen=True, eq=False)
class SmoothGrid:
    """Smoothed and completed data of the nodes.

    Attributes
    ----------
    W : (N, D) node values
    smoothness : λ, or λ_i (N,) of each node
    roughness : R(W)
    squared_error : sum of squared differences to the known data
    degrees_of_freedom : what the data used up in each column on average; None if not computed
    converged : whether W is the minimum up to rounding errors
    """

    W: FloatArray
    smoothness: float | FloatArray
    roughness: float
    squared_error: float
    degrees_of_freedom: float | None
    converged: bool


def smooth_grid(
    grid: Grid,
    W: ArrayLike,
    smoothness: Smoothness | list[float] | tuple[float, ...] | FloatArray = 0.0,
    *,
    n_jobs: int | None = -1,
) -> SmoothGrid:
    """Return smooth node values for noisy or incomplete data of the nodes.

    Parameters
    ----------
    grid : the grid
    W : (N, D) data of the nodes in C order; NaN is missing
    smoothness : λ, or one λ_i a node (N,) from 0 (kept as it is) to inf (ignored), or "gcv",
        `GCV()` or `Discrepancy(sigma)` to have λ chosen. Missing entries are filled in any case.
    n_jobs : number of threads, -1 for every core; the result does not depend on it
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
    with single_threaded_blas():
        smoother = _Smoother(grid, count_threads(n_jobs))
        if isinstance(asked, float | np.ndarray):
            out, number, used = smoother.given(data, known, asked), asked, None
        else:
            out, number, used = smoother.chosen(data, known, asked)
        error = float(((out - data)[known] ** 2).sum())
        return SmoothGrid(out, number, smoother.roughness.of(out), error, used, smoother.converged)


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


class _NodeRows:
    """The known nodes as rows of a design matrix in Legendre coordinates."""

    def __init__(self, coordinates: LegendreCoordinates, known: BoolArray) -> None:
        self.coordinates = coordinates
        self.nodes: IntArray = np.flatnonzero(known)
        self.n_rows = len(self.nodes)

    def times(self, C: FloatArray) -> FloatArray:
        return self.coordinates.at_nodes(C)[self.nodes]

    def transposed_times(self, r: FloatArray) -> FloatArray:
        spread = np.zeros((self.coordinates.grid.size, r.shape[1]))
        spread[self.nodes] = r
        return self.coordinates.transposed_at_nodes(spread)

    def rows(self, at: slice) -> FloatArray:
        places = np.unravel_index(self.nodes[at], self.coordinates.grid.shape)
        values = zip(self.coordinates.node_values, places, strict=True)
        return row_products([axis[place] for axis, place in values])


class _Smoother:
    """What the groups of columns with the same gaps share."""

    def __init__(self, grid: Grid, n_threads: int) -> None:
        self.grid = grid
        self.n_threads = n_threads
        self.roughness = Roughness(grid)
        self.converged = True
        self._modes: NodeModes | None = None
        self._coordinates: LegendreCoordinates | None = None

    def modes(self) -> NodeModes | None:
        """Return the eigenvectors of the roughness, if its blocks are small enough."""
        if self._modes is None and largest_block(self.grid) <= MOST_ROWS:
            self._modes = NodeModes(self.roughness, self.n_threads)
        return self._modes

    def coordinates(self) -> LegendreCoordinates:
        if self._coordinates is None:
            self._coordinates = LegendreCoordinates(self.grid, self.n_threads)
        return self._coordinates

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
        modes = self.modes() if known.all() else None
        if modes is not None:
            return modes.path(data)
        design = _NodeRows(self.coordinates(), known)
        if self.grid.size <= MOST_NODES_EXACTLY:
            return exact_path(self.coordinates(), design, data[known])
        krylov = krylov_path(self.coordinates(), design, data[known], rule)
        self.converged &= krylov.converged
        return krylov.path

    def given(
        self, data: FloatArray, known: BoolArray, smoothness: float | FloatArray
    ) -> FloatArray:
        """Return node values for one smoothness, or one a node."""
        if isinstance(smoothness, float) and smoothness > 0 and known.all():
            modes = self.modes()
            if modes is not None:
                return modes.path(data).solution(smoothness)
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
        require_affine(np.asarray(np.linalg.qr(affine, mode="r")))

    def _iterate(self, free: IntArray, pull: FloatArray, right: FloatArray) -> FloatArray:
        """Solve by conjugate gradients, every column with its own steps."""

        def times(v: FloatArray) -> FloatArray:
            whole = np.zeros((self.grid.size, v.shape[1]))
            whole[free] = v
            return pull[:, None] * v + self.roughness.times(whole)[free]

        # On Chebyshev nodes the diagonal does well: some hundred iterations at most.
        scale = (pull + self.roughness.diagonal()[free])[:, None]
        found, converged = conjugate_gradients(
            times, lambda r: r / scale, right, tolerance=TOLERANCE, max_iter=MOST_ITERATIONS
        )
        if not converged:
            self.converged = False
            warnings.warn(
                f"smoothing did not converge in {MOST_ITERATIONS} iterations; take fewer nodes, "
                "or more regular data.",
                ConvergenceWarning,
                stacklevel=5,
            )
        return found


def same_gaps(known: BoolArray) -> list[IntArray]:
    """Return groups of columns that miss the same nodes."""
    _, group = np.unique(known, axis=1, return_inverse=True)
    group = group.ravel()
    return [np.flatnonzero(group == number) for number in range(group.max(initial=-1) + 1)]
