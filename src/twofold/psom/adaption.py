"""The map that fits rows at given places: one half of learning a map without known places.

    minimise Σ_i v_i ||y_i - f(x_i)||² + λ R(W) + ε ||C - C₀||²        (Klanke 2007, eq. 3.40)

over Legendre coefficients C (:mod:`twofold.psom.legendre`), the sum over observed entries. The last
part, C₀ the coefficients before, is a hint of inertia: with a tiny ε it decides only what the rows
leave open, such as how the map goes on along an axis on which all of them have the same coordinate.

With missing entries, columns have equations of their own, those with the same gaps the same ones.
They are solved to the last digits by conjugate gradients: the equations of a complete column are so
near to all of them that some ten iterations do, and one decomposition serves all columns.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.linalg import cho_factor, cho_solve

from twofold.array_types import FloatArray, IntArray
from twofold.engine.threads import run_tasks
from twofold.psom.basis import SampleBasis
from twofold.psom.grid import Grid
from twofold.psom.krylov import conjugate_gradients
from twofold.psom.legendre import LegendreCoordinates
from twofold.psom.roughness import along_axes
from twofold.psom.scattered import MOST_NODES_DENSE
from twofold.psom.smoothing import same_gaps

# ε relative to the mean of what the rows put on the diagonal.
INERTIA = 1e-10
ROWS_PER_CHUNK = 1024
TOLERANCE, MOST_ITERATIONS = 1e-8, 200


class Adaption:
    """Fits maps of one grid to rows Y (n, D), NaN where missing, with weights v (n,).

    Parameters
    ----------
    grid, Y, weights : as above
    n_threads : number of threads; the result does not depend on it
    """

    def __init__(self, grid: Grid, Y: FloatArray, weights: FloatArray, n_threads: int) -> None:
        if grid.size > MOST_NODES_DENSE:
            raise ValueError(
                f"`fit` takes grids of at most {MOST_NODES_DENSE} nodes; this one has {grid.size}. "
                "Take fewer nodes on an axis."
            )
        self.coordinates = LegendreCoordinates(grid, n_threads)
        self.n_threads = n_threads
        self.roots = np.sqrt(weights)
        self.observed = ~np.isnan(Y)
        self.is_complete = bool(self.observed.all())
        self.Y = np.where(self.observed, Y, 0.0) * self.roots[:, None]
        self.penalty = np.zeros((grid.size, grid.size))
        for rows, factor in self.coordinates.blocks:
            self.penalty[np.ix_(rows, rows)] = factor @ factor.T

    def coefficients(self, W: FloatArray) -> FloatArray:
        """Return the coefficients (N, D) of node values (N, D)."""
        back = [np.linalg.inv(values) for values in self.coordinates.node_values]
        return along_axes(W, back)

    def node_values(self, C: FloatArray) -> FloatArray:
        """Return the node values (N, D) of coefficients (N, D)."""
        return self.coordinates.at_nodes(C)

    def solve(self, X: FloatArray, smoothness: float, before: FloatArray) -> FloatArray:
        """Return coefficients (N, D) for rows at places X (n, q); ``before`` are the last ones."""
        design = SampleBasis(self.coordinates.axis_values(X), self.roots, self.n_threads)
        matrix = self._products(design)
        inertia = INERTIA * float(np.trace(matrix)) / len(matrix)
        matrix += smoothness * self.penalty
        matrix[np.diag_indices_from(matrix)] += inertia
        factor = cho_factor(matrix, lower=True, overwrite_a=True, check_finite=False)
        if self.is_complete:
            right = design.transposed_times(self.Y) + inertia * before
            return np.asarray(cho_solve(factor, right))

        out = before.copy()
        for columns in same_gaps(self.observed):
            out[:, columns] += self._step(design, factor, columns, smoothness, inertia, before)
        return out

    def _step(
        self,
        design: SampleBasis,
        factor: Any,
        columns: IntArray,
        smoothness: float,
        inertia: float,
        before: FloatArray,
    ) -> FloatArray:
        """Return how the coefficients of columns with the same gaps change."""
        seen = self.observed[:, columns[:1]]

        def times(C: FloatArray) -> FloatArray:
            fitted = design.transposed_times(seen * design.times(C))
            return fitted + smoothness * (self.penalty @ C) + inertia * C

        old = before[:, columns]
        left = self.Y[:, columns] - seen * design.times(old)
        right = design.transposed_times(left) - smoothness * (self.penalty @ old)
        step, _ = conjugate_gradients(
            times,
            lambda r: np.asarray(cho_solve(factor, r)),
            right,
            tolerance=TOLERANCE,
            max_iter=MOST_ITERATIONS,
        )
        return step

    def _products(self, design: SampleBasis) -> FloatArray:
        """Return ``Bᵀ B`` (N, N), summed chunk by chunk in their order."""

        def part(at: slice) -> FloatArray:
            B = design.rows(at)
            return B.T @ B

        chunks = [
            slice(at, min(at + ROWS_PER_CHUNK, design.n_rows))
            for at in range(0, design.n_rows, ROWS_PER_CHUNK)
        ]
        total = np.zeros((design.n_columns, design.n_columns))
        # Few chunks are held at a time.
        for first in range(0, len(chunks), 8):
            for some in run_tasks(part, chunks[first : first + 8], self.n_threads):
                total += some
        return total
