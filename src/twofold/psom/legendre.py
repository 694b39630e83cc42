"""Two bases in which the roughness matrix of a grid falls into small blocks.

Orthonormal Legendre coordinates. The polynomials that the node values of a grid span are the same
as those of its tensor Legendre basis, whose coefficients c are far better to compute with:
functions of equal roughness sit close together, the affine ones are q + 1 single coefficients, and
even and odd polynomials of an axis never meet in the roughness matrix. So that matrix falls into
2^q blocks of about N / 2^q rows whatever the nodes are (16 blocks of 1,296 rows for 12 × 12 × 12 ×
12 nodes), and its Cholesky factor R R' is at hand where the whole would be hopeless. With z = R' c
the roughness is simply ||z||².

Eigenvectors over the nodes. Where the nodes of an axis lie symmetrically about the middle of its
domain, as regular and Chebyshev nodes do, sums and differences of mirrored nodes never meet in the
roughness matrix. With all axes symmetric it falls into 2^q blocks: 4,096 nodes on 4 axes are 16
problems of 256 rows. An axis with other nodes stays whole. All smoothings of complete grid data
then cost two products:

    (I + λ M)⁻¹ W = Q diag(1 / (1 + λ e)) Qᵀ W.
"""

from __future__ import annotations

import numpy as np
from scipy.linalg import cholesky, solve_triangular

from twofold.array_types import FloatArray, IntArray
from twofold.engine.threads import run_tasks
from twofold.psom.grid import Grid
from twofold.psom.roughness import AxisGrams, Roughness, along_axes, gauss_legendre, split_blocks
from twofold.psom.smoothness_choice import SmoothnessPath

# Bytes of the Cholesky factors: enough for 13 nodes on each of 4 axes, and 5 on each of 7.
MOST_BYTES = 1_000_000_000


def legendre_values(x: FloatArray, n: int, lo: float, hi: float, order: int = 0) -> FloatArray:
    """Return n polynomials orthonormal on [lo, hi], or their derivatives, at places: (m, n)."""
    scaled = (2 * x - lo - hi) / (hi - lo)
    values = np.polynomial.legendre.legvander(scaled, n - 1)
    if order:
        changes = np.zeros((n, n))
        changes[: max(n - order, 1)] = np.polynomial.legendre.legder(np.eye(n), order)
        values = values @ changes * (2 / (hi - lo)) ** order
    return values * np.sqrt((2 * np.arange(n) + 1) / (hi - lo))


def legendre_grams(n: int, lo: float, hi: float) -> AxisGrams:
    """Return the Gram matrices of the orthonormal Legendre polynomials of one axis."""
    places, weights = gauss_legendre(n, lo, hi)
    slopes, curvatures = (legendre_values(places, n, lo, hi, order) for order in (1, 2))
    products = [part.T @ (weights[:, None] * part) for part in (slopes, curvatures)]
    return AxisGrams(np.eye(n), *products)


class LegendreCoordinates:
    """Coefficients of the maps of a grid, and the factors of their roughness.

    Parameters
    ----------
    grid : the grid; at most as large as its factors fit into `MOST_BYTES`
    n_threads : number of threads for the factors

    Attributes
    ----------
    affine : (q + 1,) numbers of the coefficients without roughness
    blocks : rows and lower Cholesky factor of each block of the roughness matrix
    """

    def __init__(self, grid: Grid, n_threads: int = 1) -> None:
        _check_size(grid)
        self.grid = grid
        self.n_threads = n_threads
        ranges = list(zip(grid.shape, grid.lo, grid.hi, strict=True))
        grams = [legendre_grams(n, lo, hi) for n, lo, hi in ranges]
        parts = [[np.arange(0, n, 2), np.arange(1, n, 2)] for n in grid.shape]
        strides = [int(np.prod(grid.shape[axis + 1 :])) for axis in range(grid.n_axes)]
        self.affine: IntArray = np.array([0, *strides])
        self.blocks = run_tasks(self._factor, split_blocks(grams, parts), n_threads)
        self.node_values = [
            legendre_values(nodes, *axis) for nodes, axis in zip(grid.nodes, ranges, strict=True)
        ]

    def _factor(self, block: tuple[IntArray, FloatArray]) -> tuple[IntArray, FloatArray]:
        rows, matrix = block
        rough = ~np.isin(rows, self.affine)
        matrix = matrix[np.ix_(rough, rough)]
        return rows[rough], cholesky(matrix, lower=True) if len(matrix) else matrix

    def axis_values(self, X: FloatArray) -> list[FloatArray]:
        """Return the polynomials (m, n) of each axis at places X (m, q)."""
        ranges = zip(X.T, self.grid.shape, self.grid.lo, self.grid.hi, strict=True)
        return [legendre_values(*axis) for axis in ranges]

    def at_nodes(self, C: FloatArray) -> FloatArray:
        """Return the node values (N, k) of coefficients (N, k)."""
        return along_axes(C, self.node_values)

    def transposed_at_nodes(self, W: FloatArray) -> FloatArray:
        """Return what the transposed of `at_nodes` makes of (N, k)."""
        return along_axes(W, [values.T for values in self.node_values])

    def to_coefficients(self, Z: FloatArray) -> FloatArray:
        """Return ``R⁻ᵀ Z`` (N, k): coefficients of roughness ||Z||², without an affine part."""
        return self._solve(Z, "T")

    def from_slopes(self, C: FloatArray) -> FloatArray:
        """Return ``R⁻¹ C`` (N, k), the transposed map; zero in the affine rows."""
        return self._solve(C, "N")

    def _solve(self, right: FloatArray, transposed: str) -> FloatArray:
        out = np.zeros_like(right)

        def solve(block: tuple[IntArray, FloatArray]) -> None:
            rows, factor = block
            if len(rows):
                out[rows] = solve_triangular(
                    factor, right[rows], lower=True, trans=transposed, check_finite=False
                )

        run_tasks(solve, self.blocks, self.n_threads)
        return out


def _check_size(grid: Grid) -> None:
    halves = [((n + 1) // 2) ** 2 + (n // 2) ** 2 for n in grid.shape]
    needed = 8 * int(np.prod(halves, dtype=np.float64))
    if needed > MOST_BYTES:
        raise ValueError(
            f"smoothing on a grid of {' x '.join(map(str, grid.shape))} = {grid.size} nodes needs "
            f"{needed / 1e9:.3g} GB for the roughness alone, more than {MOST_BYTES / 1e9:g} GB; "
            "take fewer nodes on an axis."
        )


MOST_ROWS = 2500


class NodeModes:
    """Eigenvalues and eigenvectors of a roughness matrix.

    Parameters
    ----------
    roughness : the matrix
    n_threads : number of threads; the result does not depend on it

    Attributes
    ----------
    eigenvalues : (N,) in the order of the blocks; q + 1 of them, the affine ones, are zero
    affine : (q + 1,) where these are
    """

    def __init__(self, roughness: Roughness, n_threads: int = 1) -> None:
        grid = roughness.grid
        self.bases, parts = zip(
            *(_mirrored(grid, axis) for axis in range(grid.n_axes)), strict=True
        )
        grams = [
            gram.changed(basis) for gram, basis in zip(roughness.grams, self.bases, strict=True)
        ]
        blocks = split_blocks(grams, parts)
        self.rows = [rows for rows, _ in blocks]
        found = run_tasks(
            np.linalg.eigh, [(matrix + matrix.T) / 2 for _, matrix in blocks], n_threads
        )
        self.eigenvalues = np.maximum(np.concatenate([values for values, _ in found]), 0)
        self.vectors = [vectors for _, vectors in found]
        self.affine = np.sort(np.argsort(self.eigenvalues, kind="stable")[: grid.n_axes + 1])
        self.eigenvalues[self.affine] = 0

    def from_nodes(self, W: FloatArray) -> FloatArray:
        """Return ``Qᵀ W`` (N, k)."""
        mirrored = along_axes(W, [basis.T for basis in self.bases])
        parts = [Q.T @ mirrored[rows] for rows, Q in zip(self.rows, self.vectors, strict=True)]
        return np.concatenate(parts)

    def to_nodes(self, V: FloatArray) -> FloatArray:
        """Return ``Q V`` (N, k)."""
        mirrored = np.empty_like(V)
        at = 0
        for rows, Q in zip(self.rows, self.vectors, strict=True):
            mirrored[rows] = Q @ V[at : at + len(rows)]
            at += len(rows)
        return along_axes(mirrored, self.bases)

    def path(self, W: FloatArray) -> SmoothnessPath:
        """Return the fits ``(I + λ M)⁻¹ W`` for all λ."""
        parts = self.from_nodes(W)
        rough = np.ones(len(parts), dtype=bool)
        rough[self.affine] = False
        roots = 1 / np.sqrt(self.eigenvalues[rough])

        def restore(coefficients: FloatArray) -> FloatArray:
            fitted = parts.copy()
            fitted[rough] = roots[:, None] * coefficients
            return self.to_nodes(fitted)

        return SmoothnessPath(
            singular_values=roots,
            data_parts=parts[rough],
            outside=0.0,
            probe_parts=np.ones((len(roots), 1)),
            probe_outside=0.0,
            n_rows=len(W),
            restore=restore,
        )


def largest_block(grid: Grid) -> int:
    """Return the number of rows of the largest block."""
    symmetric = [_is_symmetric(grid, axis) for axis in range(grid.n_axes)]
    counts = zip(grid.shape, symmetric, strict=True)
    return int(np.prod([(n + 1) // 2 if halves else n for n, halves in counts]))


def _is_symmetric(grid: Grid, axis: int) -> bool:
    nodes, lo, hi = grid.nodes[axis], grid.lo[axis], grid.hi[axis]
    return bool(np.abs((nodes - lo) - (hi - nodes[::-1])).max() <= 1e-12 * (hi - lo))


def _mirrored(grid: Grid, axis: int) -> tuple[FloatArray, list[IntArray]]:
    """Return an orthonormal basis (n, n) of the nodes of an axis, and the parts it falls into."""
    n = grid.shape[axis]
    if not _is_symmetric(grid, axis):
        return np.eye(n), [np.arange(n)]
    half = n // 2
    even, odd = np.zeros((n, n - half)), np.zeros((n, half))
    for i in range(half):
        even[[i, n - 1 - i], i] = odd[i, i] = np.sqrt(0.5)
        odd[n - 1 - i, i] = -np.sqrt(0.5)
    if n % 2:
        even[half, half] = 1
    return np.hstack([even, odd]), [np.arange(n - half), np.arange(n - half, n)]
