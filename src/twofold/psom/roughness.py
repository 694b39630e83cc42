"""How rough the map of a grid is, as a quadratic form of its node values.

    R(W) = Σ_d ∫ Σ_μν (∂² f_d / ∂x_μ ∂x_ν)² dx = tr Wᵀ M W          (Klanke 2007, 3.11 to 3.22)

over the domain of the grid (lo to hi, not from the first node to the last). Mixed derivatives
count twice. M is symmetric and positive semidefinite, and exactly the affine functions have no
roughness. It depends on the units of the axes: a domain stretched by s in all directions has
s^(q-4) times the roughness, so the same smoothing needs s^(4-q) times the factor before it.

The integrals over one axis are exact: products of two polynomials of degree n - 1, by a
Gauss-Legendre rule with n points. (Powers of x in place of the nodes lose all digits from about 16
nodes on.) M is written out only for small grids.

M is a sum over all ways to spend two derivatives on the axes (Klanke 2007,
eqs. 3.17 to 3.22),

    M = Σ_μ B_μ ⊗ Π A_α + 2 Σ_{μ<ν} C_μ ⊗ C_ν ⊗ Π A_α,

with the Gram matrices A, C, B of values, slopes and curvatures of one axis. Going through the axes
one by one it is enough to carry three sums: nothing spent, one derivative spent, both spent,

    both ← both·A + 2 one·C + none·B,   one ← one·A + none·C,   none ← none·A.

The same recursion gives the matrix, its diagonal, single entries, and its product with a vector,
depending on what "·" is. It has 6 q terms in place of the q (q + 1)/2 · q of the plain sum.

There are two bases in which the matrix falls into small blocks.

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

from collections.abc import Callable, Sequence
from itertools import product as all_pairs

import numpy as np
from numpy.typing import ArrayLike
from scipy.linalg import cholesky, solve_triangular

from twofold.array_types import FloatArray, IntArray
from twofold.engine.threads import run_tasks
from twofold.psom.basis import AxisBasis
from twofold.psom.grid import Grid
from twofold.psom.smoothness_choice import SmoothnessPath

# Bytes of the Cholesky factors: enough for 13 nodes on each of 4 axes, and 5 on each of 7.
MOST_BYTES = 1_000_000_000
# Of a block whose eigenvectors are found.
MOST_ROWS = 2500


def two_derivatives(
    grams: Sequence[FloatArray],
    start: FloatArray,
    times: Callable[[FloatArray, FloatArray, int], FloatArray],
) -> FloatArray:
    """Return the sum over all ways to spend two derivatives on the axes.

    ``grams`` are, of each axis, the Gram matrices of values, slopes and curvatures, or parts of
    them; ``start`` is the empty product, ``times(term, factor, axis)`` takes a factor into a term.
    """
    none, one, both = start, np.zeros_like(start), np.zeros_like(start)
    for axis, (values, slopes, curvatures) in enumerate(grams):
        both = times(both, values, axis) + 2 * times(one, slopes, axis)
        both = both + times(none, curvatures, axis)
        # Behind the last axis only what has spent both derivatives is of use.
        if axis < len(grams) - 1:
            one = times(one, values, axis) + times(none, slopes, axis)
            none = times(none, values, axis)
    return both


def along_axis(V: FloatArray, factor: FloatArray, axis: int) -> FloatArray:
    """Return the array ``V`` (n_1, …, n_q, k) with a matrix (p, n) applied along one axis."""
    before, n = V.shape[:axis], V.shape[axis]
    # A stack of small matrices for the axis, with all that comes behind it in their columns.
    stack = np.matmul(factor, V.reshape(int(np.prod(before)), n, -1))
    return stack.reshape(*before, factor.shape[0], *V.shape[axis + 1 :])


def along_axes(V: FloatArray, factors: Sequence[FloatArray]) -> FloatArray:
    """Return ``(F_1 ⊗ … ⊗ F_q) V`` for rows of ``V`` (N, k) in C order of the axes."""
    array = V.reshape(*(factor.shape[1] for factor in factors), V.shape[1])
    for axis, factor in enumerate(factors):
        array = along_axis(array, factor, axis)
    return array.reshape(-1, V.shape[1])


def split_blocks(
    grams: Sequence[FloatArray], parts: Sequence[Sequence[IntArray]]
) -> list[tuple[IntArray, FloatArray]]:
    """Return rows (in C order) and matrix of each block of a roughness matrix that falls apart.

    ``parts`` are, of each axis, the numbers of basis functions between which all Gram matrices
    vanish; there is a block for each choice of one part an axis.
    """
    shape = [gram.shape[1] for gram in grams]
    numbers = np.arange(int(np.prod(shape))).reshape(shape)
    blocks: list[tuple[IntArray, FloatArray]] = []
    for chosen in all_pairs(*parts):
        within = [gram[:, part[:, None], part] for gram, part in zip(grams, chosen, strict=True)]
        matrix = two_derivatives(within, np.ones((1, 1)), lambda term, f, _: np.kron(term, f))
        blocks.append((numbers[np.ix_(*chosen)].ravel(), matrix))
    return blocks


def gauss_legendre(n: int, lo: float, hi: float) -> tuple[FloatArray, FloatArray]:
    """Return n places and weights that integrate polynomials up to degree 2 n - 1 exactly."""
    places, weights = np.polynomial.legendre.leggauss(n)
    half = (hi - lo) / 2
    return lo + half * (places + 1), half * weights


def node_grams(nodes: FloatArray, lo: float, hi: float) -> FloatArray:
    """Return the Gram matrices (3, n, n) of the Lagrange polynomials of one axis."""
    places, weights = gauss_legendre(len(nodes), lo, hi)
    parts = AxisBasis(nodes).derivatives(places, 2)
    return np.stack([part.T @ (weights[:, None] * part) for part in parts])


class Roughness:
    """The roughness matrix M (N, N) of a grid, never written out unless asked for."""

    def __init__(self, grid: Grid) -> None:
        self.grid = grid
        self.grams = tuple(
            node_grams(nodes, lo, hi)
            for nodes, lo, hi in zip(grid.nodes, grid.lo, grid.hi, strict=True)
        )

    def times(self, V: ArrayLike) -> FloatArray:
        """Return ``M V`` (N, k) at a cost of O(q N n k)."""
        columns = np.asarray(V, dtype=np.float64)
        array = columns.reshape(*self.grid.shape, -1)
        return two_derivatives(self.grams, array, along_axis).reshape(columns.shape)

    def of(self, W: ArrayLike) -> float:
        """Return the roughness ``tr Wᵀ M W`` of node values (N, D)."""
        values = np.asarray(W, dtype=np.float64)
        # A level shift changes nothing but the rounding error of the sum.
        centred = values - values.mean(axis=0)
        return max(float((centred * self.times(centred)).sum()), 0.0)

    def dense(self) -> FloatArray:
        """Return M (N, N), symmetric to the last bit."""
        everything = [[np.arange(n)] for n in self.grid.shape]
        [(_, matrix)] = split_blocks(self.grams, everything)
        return (matrix + matrix.T) / 2

    def diagonal(self) -> FloatArray:
        """Return the diagonal (N,) of M."""
        diagonals = [np.diagonal(gram, axis1=1, axis2=2) for gram in self.grams]
        return two_derivatives(diagonals, np.ones(1), lambda term, factor, _: np.kron(term, factor))

    def entries(self, rows: IntArray, columns: IntArray) -> FloatArray:
        """Return the part of M in some rows and columns (numbers of nodes)."""
        shape = self.grid.shape
        places = zip(np.unravel_index(rows, shape), np.unravel_index(columns, shape), strict=True)
        parts = [
            gram[:, row[:, None], column]
            for gram, (row, column) in zip(self.grams, places, strict=True)
        ]
        start = np.ones((len(rows), len(columns)))
        return two_derivatives(parts, start, lambda term, factor, _: term * factor)


def legendre_values(x: FloatArray, n: int, lo: float, hi: float, order: int = 0) -> FloatArray:
    """Return n polynomials orthonormal on [lo, hi], or their derivatives, at places: (m, n)."""
    scaled = (2 * x - lo - hi) / (hi - lo)
    values = np.polynomial.legendre.legvander(scaled, n - 1)
    if order:
        changes = np.zeros((n, n))
        changes[: max(n - order, 1)] = np.polynomial.legendre.legder(np.eye(n), order)
        values = values @ changes * (2 / (hi - lo)) ** order
    return values * np.sqrt((2 * np.arange(n) + 1) / (hi - lo))


def legendre_grams(n: int, lo: float, hi: float) -> FloatArray:
    """Return the Gram matrices (3, n, n) of the orthonormal Legendre polynomials of one axis."""
    places, weights = gauss_legendre(n, lo, hi)
    slopes, curvatures = (legendre_values(places, n, lo, hi, order) for order in (1, 2))
    products = [part.T @ (weights[:, None] * part) for part in (slopes, curvatures)]
    return np.stack([np.eye(n), *products])


class LegendreCoordinates:
    """Coefficients of the maps of a grid, and the factors of their roughness.

    ``affine`` (q + 1,) are the numbers of the coefficients without roughness, ``blocks`` rows and
    lower Cholesky factor of each block of the roughness matrix.
    """

    def __init__(self, grid: Grid, n_threads: int = 1) -> None:
        _check_size(grid)
        self.grid = grid
        self.n_threads = n_threads
        ranges = list(zip(grid.shape, grid.lo, grid.hi, strict=True))
        grams = [legendre_grams(n, lo, hi) for n, lo, hi in ranges]
        parts = [[np.arange(0, n, 2), np.arange(1, n, 2)] for n in grid.shape]
        # The constant and the first degree along each axis: number 0, and one stride an axis.
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


class NodeModes:
    """Eigenvalues (N,) of a roughness matrix, in the order of its blocks, and eigenvectors.

    q + 1 eigenvalues, the ``affine`` ones, are zero.
    """

    def __init__(self, roughness: Roughness, n_threads: int = 1) -> None:
        grid = roughness.grid
        self.bases, parts = zip(
            *(_mirrored(grid, axis) for axis in range(grid.n_axes)), strict=True
        )
        pairs = zip(roughness.grams, self.bases, strict=True)
        grams = [basis.T @ gram @ basis for gram, basis in pairs]
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
