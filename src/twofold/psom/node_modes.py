"""Eigenvectors of the roughness matrix of a grid, found in small blocks.

Where the nodes of an axis lie symmetrically about the middle of its domain, as regular and
Chebyshev nodes do, sums and differences of mirrored nodes never meet in the roughness matrix. With
all axes symmetric it falls into 2^q blocks: 4,096 nodes on 4 axes are 16 problems of 256 rows. An
axis with other nodes stays whole. All smoothings of complete grid data then cost two products:

    (I + λ M)⁻¹ W = Q diag(1 / (1 + λ e)) Qᵀ W.
"""

from __future__ import annotations

import numpy as np

from twofold.array_types import FloatArray, IntArray
from twofold.engine.threads import run_tasks
from twofold.psom.grid import Grid
from twofold.psom.kronecker import along_axes, split_blocks
from twofold.psom.roughness import Roughness
from twofold.psom.smoothness_choice import SmoothnessPath

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
