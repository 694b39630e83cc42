"""Sums of Kronecker products: what the roughness of a map on a grid is made of.

The roughness matrix is a sum over all ways to spend two derivatives on the axes (Klanke 2007,
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

from twofold.array_types import FloatArray, IntArray


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
