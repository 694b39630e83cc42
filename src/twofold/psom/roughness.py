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
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import product as all_pairs

import numpy as np
from numpy.typing import ArrayLike

from twofold.array_types import FloatArray, IntArray
from twofold.engine.threads import single_threaded_blas
from twofold.psom.basis import AxisBasis
from twofold.psom.grid import Grid


@dataclass(frozen=True, eq=False)
class AxisGrams:
    """Integrals of products of the basis functions of one axis, each (n, n).

    Attributes
    ----------
    values, slopes, curvatures : Gram matrix of the functions, their first and second derivatives
    """

    values: FloatArray
    slopes: FloatArray
    curvatures: FloatArray

    def changed(self, basis: FloatArray) -> AxisGrams:
        """Return the Gram matrices of the combinations in the columns of ``basis`` (n, p)."""
        return AxisGrams(*(basis.T @ gram @ basis for gram in self.all()))

    def part(self, rows: IntArray, columns: IntArray) -> AxisGrams:
        """Return the entries in some rows and columns."""
        return AxisGrams(*(gram[np.ix_(rows, columns)] for gram in self.all()))

    def diagonals(self) -> AxisGrams:
        """Return the diagonals (n,)."""
        return AxisGrams(*(np.diagonal(gram) for gram in self.all()))

    def all(self) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return values, slopes and curvatures."""
        return self.values, self.slopes, self.curvatures


def two_derivatives(
    grams: Sequence[AxisGrams],
    start: FloatArray,
    times: Callable[[FloatArray, FloatArray, int], FloatArray],
) -> FloatArray:
    """Return the sum over all ways to spend two derivatives on the axes.

    Parameters
    ----------
    grams : of each axis, or anything computed from them
    start : the empty product
    times : ``times(term, factor, axis)`` multiplies the factor of an axis into a term
    """
    none, one, both = start, np.zeros_like(start), np.zeros_like(start)
    for axis, gram in enumerate(grams):
        last = axis == len(grams) - 1
        both = (
            times(both, gram.values, axis)
            + 2 * times(one, gram.slopes, axis)
            + times(none, gram.curvatures, axis)
        )
        if not last:
            one = times(one, gram.values, axis) + times(none, gram.slopes, axis)
            none = times(none, gram.values, axis)
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
    grams: Sequence[AxisGrams], parts: Sequence[Sequence[IntArray]]
) -> list[tuple[IntArray, FloatArray]]:
    """Return the blocks of a roughness matrix that falls apart.

    Parameters
    ----------
    grams : of each axis, in a basis that falls into parts between which all three vanish
    parts : of each axis, the numbers of the basis functions of each part

    Returns
    -------
    For each choice of one part an axis: the rows (in C order) and the block of the matrix.
    """
    numbers = np.arange(int(np.prod([len(gram.values) for gram in grams])))
    numbers = numbers.reshape([len(gram.values) for gram in grams])
    blocks: list[tuple[IntArray, FloatArray]] = []
    for chosen in all_pairs(*parts):
        within = [gram.part(part, part) for gram, part in zip(grams, chosen, strict=True)]
        matrix = two_derivatives(
            within, np.ones((1, 1)), lambda term, factor, _: np.kron(term, factor)
        )
        blocks.append((numbers[np.ix_(*chosen)].ravel(), matrix))
    return blocks


def gauss_legendre(n: int, lo: float, hi: float) -> tuple[FloatArray, FloatArray]:
    """Return n places and weights that integrate polynomials up to degree 2 n - 1 exactly."""
    places, weights = np.polynomial.legendre.leggauss(n)
    half = (hi - lo) / 2
    return lo + half * (places + 1), half * weights


def node_grams(nodes: FloatArray, lo: float, hi: float) -> AxisGrams:
    """Return the Gram matrices of the Lagrange polynomials of one axis."""
    places, weights = gauss_legendre(len(nodes), lo, hi)
    basis = AxisBasis(nodes)
    parts = basis.values(places), basis.slopes(places), basis.curvatures(places)
    return AxisGrams(*(part.T @ (weights[:, None] * part) for part in parts))


class Roughness:
    """The roughness matrix M (N, N) of a grid, never written out unless asked for.

    Parameters
    ----------
    grid : the grid

    Attributes
    ----------
    grams : Gram matrices of each axis
    """

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
        with single_threaded_blas():
            return max(float((centred * self.times(centred)).sum()), 0.0)

    def dense(self) -> FloatArray:
        """Return M (N, N), symmetric to the last bit."""
        everything = [[np.arange(n)] for n in self.grid.shape]
        [(_, matrix)] = split_blocks(self.grams, everything)
        return (matrix + matrix.T) / 2

    def diagonal(self) -> FloatArray:
        """Return the diagonal (N,) of M."""
        diagonals = [gram.diagonals() for gram in self.grams]
        return two_derivatives(diagonals, np.ones(1), lambda term, factor, _: np.kron(term, factor))

    def entries(self, rows: IntArray, columns: IntArray) -> FloatArray:
        """Return the part of M in some rows and columns (numbers of nodes)."""
        shape = self.grid.shape
        places = zip(np.unravel_index(rows, shape), np.unravel_index(columns, shape), strict=True)
        parts = [gram.part(*at) for gram, at in zip(self.grams, places, strict=True)]
        start = np.ones((len(rows), len(columns)))
        return two_derivatives(parts, start, lambda term, factor, _: term * factor)
