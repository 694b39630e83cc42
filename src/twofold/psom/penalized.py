"""Least squares with a roughness penalty, for any rows of observations of a map on a grid.

    minimise ||Y - B C||² + λ R(C),                                   (Klanke 2007, eq. 3.38)

over Legendre coefficients C. With C = affine part + R'⁻¹ Z (:mod:`twofold.psom.roughness`) and the
affine part projected out it becomes ||P Y - K Z||² + λ ||Z||² with K = P B R'⁻¹, and one
decomposition of K serves every λ:

- `exact_path`: a QR decomposition in blocks of rows, then singular values. Small grids.
- `krylov_path`: a few hundred directions found by block Golub-Kahan steps. Large grids; needs only
  products with B.
- `cholesky_solution`: the normal equations for one given λ. Grids in between.

Block Golub-Kahan bidiagonalization puts one small problem in place of all the large ones. From
start columns it builds orthonormal bases U and V, block by block, with

    Kᵀ U_i = V_{i-1} B_iᵀ + V_i A_i,        K V_i = U_i A_iᵀ + U_{i+1} B_{i+1},

so that K V = U T with a small block-bidiagonal T. The regularized least squares problem for *every*
λ and every start column is then solved within V by the singular values of T alone. Large singular
values, that is smooth functions, come first, so that stopping early also smooths. All columns
share one basis, which for several columns converges in far fewer passes than one basis each.

Preconditioned conjugate gradients solve for right-hand sides side by side, each with its own steps.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy.linalg import cho_factor, cho_solve, solve_triangular

from twofold.array_types import BoolArray, FloatArray, IntArray
from twofold.engine.threads import run_tasks, slices
from twofold.psom.basis import SampleBasis, row_products
from twofold.psom.roughness import LegendreCoordinates
from twofold.psom.smoothness_choice import Rule, SmoothnessPath, choose_smoothness

Product = Callable[[FloatArray], FloatArray]

N_PROBES = 3
MOST_STEPS = 100
# The basis takes N times this many numbers; wide data get fewer steps, but not too few.
MOST_DIRECTIONS, FEWEST_STEPS = 1500, 15
STEPS_BETWEEN_CHECKS = 10
SLOPE_TOLERANCE = 1e-6
NOTHING_LEFT = 1e-13
# Directions this much smaller than the largest seen are rounding error.
NEGLIGIBLE = 1e-13
ROWS_PER_CHUNK = 2048
PANEL = 512


class NodeRows:
    """The known nodes as rows of a design matrix B (m, N) in Legendre coordinates."""

    def __init__(self, coordinates: LegendreCoordinates, known: BoolArray) -> None:
        self.coordinates = coordinates
        self.nodes: IntArray = np.flatnonzero(known)
        self.n_rows = len(self.nodes)

    def times(self, C: FloatArray) -> FloatArray:
        """Return ``B C`` (m, k)."""
        return self.coordinates.at_nodes(C)[self.nodes]

    def transposed_times(self, r: FloatArray) -> FloatArray:
        """Return ``Bᵀ r`` (N, k)."""
        spread = np.zeros((self.coordinates.grid.size, r.shape[1]))
        spread[self.nodes] = r
        return self.coordinates.transposed_at_nodes(spread)

    def rows(self, at: slice) -> FloatArray:
        """Return some rows of B, written out."""
        places = np.unravel_index(self.nodes[at], self.coordinates.grid.shape)
        values = zip(self.coordinates.node_values, places, strict=True)
        return row_products([axis[place] for axis, place in values])


Design = SampleBasis | NodeRows


@dataclass(frozen=True, eq=False)
class KrylovPath:
    """A path found by Golub-Kahan steps, what was asked of it, and whether it got there."""

    path: SmoothnessPath
    smoothness: float
    n_steps: int
    converged: bool


def require_affine(triangle: FloatArray) -> None:
    """Raise unless observations determine an affine function.

    ``triangle`` (q + 1, q + 1) is the triangular factor of what affine functions are there.
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
    for at in slices(design.n_rows, ROWS_PER_CHUNK):
        B = design.rows(at)
        K = coordinates.from_slopes(np.ascontiguousarray(B.T)).T
        # A triangle stands for all rows above it: the QR of both together is that of the whole.
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

    ``seed`` is that of the random signs that estimate degrees of freedom.
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

    LinAlgError if rounding errors leave nothing of the smoothness.
    """
    affine_factors(coordinates, design)  # an error of its own where these are not determined
    n = coordinates.grid.size
    normal = np.zeros((n, n))
    right = np.zeros((n, Y.shape[1]))
    for at in slices(design.n_rows, ROWS_PER_CHUNK):
        B = design.rows(at)
        right += B.T @ Y[at]

        def add(panel: slice, B: FloatArray = B) -> None:
            normal[panel.start :, panel] += B[:, panel.start :].T @ B[:, panel]

        run_tasks(add, slices(n, PANEL), coordinates.n_threads)
    for rows, factor in coordinates.blocks:
        normal[np.ix_(rows, rows)] += smoothness * (factor @ factor.T)
    return cho_solve(cho_factor(normal, lower=True, overwrite_a=True), right)


class BlockBidiagonalization:
    """Bases and small matrix of K (m, N), extended by :meth:`step` from start columns (m, k)."""

    def __init__(self, times: Product, transposed_times: Product, start: FloatArray) -> None:
        self.times = times
        self.transposed_times = transposed_times
        self.U, self.start_parts = orthonormal_factors(start)
        self.size = 0.0
        self.right: list[FloatArray] = []
        self.diagonal: list[FloatArray] = []
        self.below: list[FloatArray] = []
        self._extend_right(self._to_right())

    @property
    def exhausted(self) -> bool:
        """Whether the space cannot grow any more; the problem is then solved exactly."""
        return self.right[-1].shape[1] == 0

    def _to_right(self) -> FloatArray:
        width = self.U.shape[1]
        # Products are asked of at least one column, so that operators need not think of none.
        return self.transposed_times(self.U if width else np.zeros((len(self.U), 1)))[:, :width]

    def _extend_right(self, block: FloatArray) -> None:
        # Twice, because one pass leaves rounding errors that grow with the number of blocks.
        for _ in range(2):
            for earlier in self.right:
                block = block - earlier @ (earlier.T @ block)
        V, A = orthonormal_factors(block, self.size)
        self.size = max(self.size, float(np.abs(A).max(initial=0)))
        self.right.append(V)
        self.diagonal.append(A)

    def step(self) -> None:
        """Take the newest block of V into the small matrix and prepare the next one."""
        V, A = self.right[-1], self.diagonal[-1]
        self.U, B = orthonormal_factors(self.times(V) - self.U @ A.T, self.size)
        self.below.append(B)
        self._extend_right(self._to_right() - V @ B.T)

    def matrix(self) -> FloatArray:
        """Return T for the blocks of V that steps were taken with."""
        done = len(self.below)
        # Blocks are narrower where directions were negligible, so that their sizes are looked up.
        heights = [A.shape[1] for A in self.diagonal[: done + 1]]
        widths = [A.shape[0] for A in self.diagonal[:done]]
        down, across = np.cumsum([0, *heights]), np.cumsum([0, *widths])
        T = np.zeros((down[-1], across[-1]))
        for i in range(done):
            columns = slice(across[i], across[i + 1])
            T[down[i] : down[i + 1], columns] = self.diagonal[i].T
            T[down[i + 1] : down[i + 2], columns] = self.below[i]
        return T

    def combine(self, coefficients: FloatArray) -> FloatArray:
        """Return ``V c`` (N, D) for coefficients of the blocks that steps were taken with."""
        out = np.zeros((self.right[0].shape[0], coefficients.shape[1]))
        at = 0
        for V in self.right[: len(self.below)]:
            out += V @ coefficients[at : at + V.shape[1]]
            at += V.shape[1]
        return out

    def slope_left(self, residual: FloatArray) -> float:
        """Return the norm of the slope of the objective, relative to that at zero.

        ``residual`` (rows of T, D) is that of the small problem at its solution.
        """
        A = self.diagonal[-1]
        n_columns = residual.shape[1]
        at_zero = np.linalg.norm(self.diagonal[0] @ self.start_parts[:, :n_columns])
        # Within V the small problem has no slope left; what remains points into the next block.
        return float(np.linalg.norm(A @ residual[len(residual) - A.shape[1] :]) / (at_zero or 1.0))


def orthonormal_factors(block: FloatArray, size: float = 0.0) -> tuple[FloatArray, FloatArray]:
    """Return Q (n, r) with orthonormal columns and P (r, k) with ``block = Q P``.

    Directions that are negligible beside the largest, or beside ``size``, are left out.
    """
    Q, P = np.linalg.qr(block)
    u, s, vt = np.linalg.svd(P)
    kept = s > NEGLIGIBLE * max(size, float(s.max(initial=0)), np.finfo(np.float64).tiny)
    if kept.all():
        return Q, P
    return Q @ u[:, kept], s[kept, None] * vt[: kept.sum()]


def conjugate_gradients(
    times: Product, precondition: Product, right: FloatArray, *, tolerance: float, max_iter: int
) -> tuple[FloatArray, bool]:
    """Return the solution (n, k), and whether every column reached the tolerance.

    ``times`` may be another matrix for each of the columns, each of which has its own steps. The
    tolerance is the norm of the residual relative to that of the right-hand side.
    """
    solution = np.zeros_like(right)
    residual = right.copy()
    goal = tolerance * np.linalg.norm(right, axis=0)
    direction = np.zeros_like(right)
    before = np.ones(right.shape[1])
    for _ in range(max_iter):
        unfinished = np.linalg.norm(residual, axis=0) > goal
        if not unfinished.any():
            return solution, True
        stepped = precondition(residual)
        now = (residual * stepped).sum(axis=0)
        # Finished columns stay where they are: no direction, and so no division by nothing.
        direction = np.where(unfinished, stepped + now / before * direction, 0.0)
        before = np.where(unfinished, now, 1.0)
        image = times(direction)
        slope = (direction * image).sum(axis=0)
        length = np.where(unfinished, now / np.where(unfinished, slope, 1.0), 0.0)
        solution += length * direction
        residual -= length * image
    return solution, bool((np.linalg.norm(residual, axis=0) <= goal).all())
