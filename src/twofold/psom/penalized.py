"""Least squares with a roughness penalty, for any rows of observations of a map on a grid.

    minimise ||Y - B C||² + λ R(C),                                   (Klanke 2007, eq. 3.38)

over Legendre coefficients C. With C = affine part + R'⁻¹ Z (:mod:`twofold.psom.legendre`) and the
affine part projected out it becomes ||P Y - K Z||² + λ ||Z||² with K = P B R'⁻¹, and one
decomposition of K serves every λ:

- `exact_path`: a QR decomposition in blocks of rows, then singular values. Small grids.
- `krylov_path`: a few hundred directions found by block Golub-Kahan steps. Large grids; needs only
  products with B.
- `cholesky_solution`: the normal equations for one given λ. Grids in between.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from scipy.linalg import cho_factor, cho_solve, solve_triangular

from twofold.array_types import FloatArray
from twofold.engine.threads import run_tasks
from twofold.psom.krylov import BlockBidiagonalization
from twofold.psom.legendre import LegendreCoordinates
from twofold.psom.smoothness_choice import Rule, SmoothnessPath, choose_smoothness

N_PROBES = 3
MOST_STEPS = 100
# The basis takes N times this many numbers; wide data get fewer steps, but not too few.
MOST_DIRECTIONS, FEWEST_STEPS = 1500, 15
STEPS_BETWEEN_CHECKS = 10
SLOPE_TOLERANCE = 1e-6
NOTHING_LEFT = 1e-13
ROWS_PER_CHUNK = 2048
PANEL = 512


class Design(Protocol):
    """Products with the matrix B (m, N) of observations, in Legendre coordinates."""

    n_rows: int

    def times(self, C: FloatArray) -> FloatArray:
        """Return ``B C``."""

    def transposed_times(self, r: FloatArray) -> FloatArray:
        """Return ``Bᵀ r``."""

    def rows(self, at: slice) -> FloatArray:
        """Return some rows of B."""


@dataclass(frozen=True, eq=False)
class KrylovPath:
    """A path found by Golub-Kahan steps, what was asked of it, and whether it got there."""

    path: SmoothnessPath
    smoothness: float
    n_steps: int
    converged: bool


def _chunks(n_rows: int, size: int = ROWS_PER_CHUNK) -> list[slice]:
    return [slice(at, min(at + size, n_rows)) for at in range(0, n_rows, size)]


def require_affine(triangle: FloatArray) -> None:
    """Raise an error unless observations determine an affine function.

    Parameters
    ----------
    triangle : (q + 1, q + 1) triangular factor of what the affine functions are at the observations
    """
    values = np.linalg.svd(triangle, compute_uv=False) if triangle.size else np.zeros(1)
    if len(triangle) < triangle.shape[1] or values[-1] <= 1e-10 * values[0]:
        raise ValueError(
            f"the known values must determine an affine function: at least {triangle.shape[1]} "
            "places that do not lie on a common hyperplane; give more of them, or places that "
            "vary along every axis."
        )


def affine_factors(
    coordinates: LegendreCoordinates, design: Design
) -> tuple[FloatArray, FloatArray]:
    """Return orthonormal and triangular factor of what affine functions are at the observations."""
    unit = np.zeros((coordinates.grid.size, len(coordinates.affine)))
    unit[coordinates.affine, np.arange(unit.shape[1])] = 1
    basis, triangle = np.linalg.qr(design.times(unit))
    require_affine(triangle)
    return basis, triangle


def exact_path(coordinates: LegendreCoordinates, design: Design, Y: FloatArray) -> SmoothnessPath:
    """Return the path of all smoothnesses by the singular values of K, for small grids."""
    affine = coordinates.affine
    rough = np.setdiff1d(np.arange(coordinates.grid.size), affine)
    n_affine, n_rough = len(affine), len(rough)
    triangle = np.empty((0, n_affine + n_rough + Y.shape[1]))
    for at in _chunks(design.n_rows):
        B = design.rows(at)
        K = coordinates.from_slopes(np.ascontiguousarray(B.T)).T
        rows = np.concatenate([triangle, np.hstack([B[:, affine], K[:, rough], Y[at]])])
        triangle = np.asarray(np.linalg.qr(rows, mode="r"))
    require_affine(triangle[:n_affine, :n_affine])
    columns = (
        slice(n_affine),
        slice(n_affine, n_affine + n_rough),
        slice(n_affine + n_rough, None),
    )
    # The first rows fit the affine part; the next know of K; the last are out of reach.
    top, middle, bottom = (triangle[rows] for rows in columns)
    u, s, vt = np.linalg.svd(middle[:, columns[1]], full_matrices=False)
    parts = u.T @ middle[:, columns[2]]
    missed = middle[:, columns[2]] - u @ parts

    def restore(coefficients: FloatArray) -> FloatArray:
        z = vt.T @ coefficients
        Z = np.zeros((coordinates.grid.size, z.shape[1]))
        Z[rough] = z
        C = coordinates.to_coefficients(Z)
        left = top[:, columns[2]] - top[:, columns[1]] @ z
        C[affine] = solve_triangular(top[:, columns[0]], left)
        return coordinates.at_nodes(C)

    return SmoothnessPath(
        singular_values=s,
        data_parts=parts,
        outside=float((missed**2).sum() + (bottom[:, columns[2]] ** 2).sum()),
        probe_parts=np.ones((len(s), 1)),
        probe_outside=design.n_rows - n_affine - len(s),
        n_rows=design.n_rows,
        restore=restore,
    )


class _WithoutAffine:
    """K = P B R'⁻¹: what the rough part of a map does once the affine part has fitted its best."""

    def __init__(self, coordinates: LegendreCoordinates, design: Design) -> None:
        self.coordinates, self.design = coordinates, design
        self.basis, self.triangle = affine_factors(coordinates, design)

    def project(self, r: FloatArray) -> FloatArray:
        return r - self.basis @ (self.basis.T @ r)

    def without_rounding(self, columns: FloatArray) -> FloatArray:
        """Return columns projected, and zero where only rounding errors of affine ones are left."""
        left = self.project(columns)
        sizes = np.linalg.norm(left, axis=0), np.linalg.norm(columns, axis=0)
        return np.where(sizes[0] > NOTHING_LEFT * sizes[1], left, 0.0)

    def times(self, Z: FloatArray) -> FloatArray:
        return self.project(self.design.times(self.coordinates.to_coefficients(Z)))

    def transposed_times(self, r: FloatArray) -> FloatArray:
        return self.coordinates.from_slopes(self.design.transposed_times(self.project(r)))

    def node_values(self, Z: FloatArray, Y: FloatArray) -> FloatArray:
        C = self.coordinates.to_coefficients(Z)
        left = self.basis.T @ (Y - self.design.times(C))
        C[self.coordinates.affine] = solve_triangular(self.triangle, left)
        return self.coordinates.at_nodes(C)


def krylov_path(
    coordinates: LegendreCoordinates,
    design: Design,
    Y: FloatArray,
    smoothness: float | Rule,
    seed: int = 0,
) -> KrylovPath:
    """Return the path within a growing space, until the fit asked for no longer changes.

    Parameters
    ----------
    coordinates, design, Y : the problem
    smoothness : a number, or the rule that chooses it
    seed : of the random signs that estimate degrees of freedom
    """
    problem = _WithoutAffine(coordinates, design)
    signs = np.random.default_rng(seed).choice([-1.0, 1.0], size=(design.n_rows, N_PROBES))
    start = problem.without_rounding(np.hstack([Y, signs]))
    space = BlockBidiagonalization(problem.times, problem.transposed_times, start)
    directions = MOST_DIRECTIONS // max(start.shape[1], 1)
    most = min(MOST_STEPS, max(directions, FEWEST_STEPS))
    while True:
        for _ in range(min(STEPS_BETWEEN_CHECKS, most - len(space.below))):
            if not space.exhausted:
                space.step()
        path, slope_left = _small_problem(space, problem, Y)
        number = (
            smoothness if isinstance(smoothness, float) else choose_smoothness([path], smoothness)
        )
        converged = slope_left(number) < SLOPE_TOLERANCE
        if converged or len(space.below) >= most:
            return KrylovPath(path, number, len(space.below), converged)


def _small_problem(
    space: BlockBidiagonalization, problem: _WithoutAffine, Y: FloatArray
) -> tuple[SmoothnessPath, Callable[[float], float]]:
    """Return the path within the space, and how far a solution is from that in all of space."""
    T = space.matrix()
    right = np.zeros((len(T), space.start_parts.shape[1]))
    right[: len(space.start_parts)] = space.start_parts
    u, s, vt = np.linalg.svd(T, full_matrices=False)
    parts = u.T @ right
    missed = ((right - u @ parts) ** 2).sum(axis=0)
    n_columns = Y.shape[1]

    def restore(coefficients: FloatArray) -> FloatArray:
        return problem.node_values(space.combine(vt.T @ coefficients), Y)

    path = SmoothnessPath(
        singular_values=s,
        data_parts=parts[:, :n_columns],
        outside=float(missed[:n_columns].sum()),
        probe_parts=parts[:, n_columns:],
        probe_outside=float(missed[n_columns:].mean()),
        n_rows=len(Y),
        restore=restore,
    )

    def slope_left(smoothness: float) -> float:
        fitted = (1 - path.shares(smoothness))[:, None] * path.data_parts
        return space.slope_left(right[:, :n_columns] - u @ fitted)

    return path, slope_left


def cholesky_solution(
    coordinates: LegendreCoordinates, design: Design, Y: FloatArray, smoothness: float
) -> FloatArray:
    """Return the coefficients for one smoothness by the normal equations (eq. 3.40).

    Raises
    ------
    numpy.linalg.LinAlgError
        If rounding errors leave nothing of the smoothness.
    """
    affine_factors(coordinates, design)  # an error of its own where these are not determined
    n = coordinates.grid.size
    normal = np.zeros((n, n))
    right = np.zeros((n, Y.shape[1]))
    for at in _chunks(design.n_rows):
        B = design.rows(at)
        right += B.T @ Y[at]

        def add(panel: slice, B: FloatArray = B) -> None:
            normal[panel.start :, panel] += B[:, panel.start :].T @ B[:, panel]

        run_tasks(add, _chunks(n, PANEL), coordinates.n_threads)
    for rows, factor in coordinates.blocks:
        normal[np.ix_(rows, rows)] += smoothness * (factor @ factor.T)
    return cho_solve(cho_factor(normal, lower=True, overwrite_a=True), right)
