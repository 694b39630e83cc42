"""How rough the map of a grid is, as a quadratic form of its node values.

    R(W) = Σ_d ∫ Σ_μν (∂² f_d / ∂x_μ ∂x_ν)² dx = tr Wᵀ M W          (Klanke 2007, 3.11 to 3.22)

over the domain of the grid (lo to hi, not from the first node to the last). Mixed derivatives
count twice. M is symmetric and positive semidefinite, and exactly the affine functions have no
roughness. It depends on the units of the axes: a domain stretched by s in all directions has
s^(q-4) times the roughness, so the same smoothing needs s^(4-q) times the factor before it.

The integrals over one axis are exact: products of two polynomials of degree n - 1, by a
Gauss-Legendre rule with n points. (Powers of x in place of the nodes lose all digits from about 16
nodes on.) M itself is a sum of Kronecker products and is written out only for small grids.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from twofold.array_types import FloatArray, IntArray
from twofold.engine.threads import single_threaded_blas
from twofold.psom.basis import AxisBasis
from twofold.psom.grid import Grid
from twofold.psom.kronecker import AxisGrams, along_axis, split_blocks, two_derivatives


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
