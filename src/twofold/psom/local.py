"""Windows of a grid: which nodes a point is interpolated from.

The full map uses all nodes for every point. The local one (Walter and Ritter 1995; Klanke 2007,
section 3.1) uses only n_l nodes an axis: those around the node nearest to the point, moved inwards
at the borders,

    start = clip(c - ⌊n_l / 2⌋, 0, n - n_l),   c the index of the nearest node.

The polynomials have a low degree then and do not swing, but those of neighbouring windows do not
agree: the map jumps where the window changes.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from twofold.array_types import FloatArray, IntArray
from twofold.number_checks import is_integer
from twofold.psom.basis import AxisBasis
from twofold.psom.grid import Grid


@dataclass(frozen=True, eq=False)
class Windows:
    """The polynomials of every window of a grid.

    Attributes
    ----------
    grid : the whole grid
    shape : number of nodes of a window on each axis
    bases : for each axis, the polynomials of its windows from the lowest start on
    """

    grid: Grid
    shape: tuple[int, ...]
    bases: tuple[tuple[AxisBasis, ...], ...]

    @classmethod
    def of(cls, grid: Grid, local: int | None) -> Windows:
        """Return windows of ``local`` nodes an axis; of all nodes if None."""
        if local is not None and (not is_integer(local) or local < 2):
            raise ValueError(
                "`local` must be None (all nodes) or the number of nodes an axis of a window, "
                f">= 2; got {local!r}."
            )
        if local is not None and local > max(grid.shape):
            raise ValueError(
                f"`local` = {local} is more nodes than any axis has ({max(grid.shape)} at most); "
                "take fewer, or None for the full map."
            )
        shape = tuple(n if local is None else min(int(local), n) for n in grid.shape)
        bases = tuple(
            tuple(AxisBasis(nodes[start : start + n]) for start in range(len(nodes) - n + 1))
            for nodes, n in zip(grid.nodes, shape, strict=True)
        )
        return cls(grid, shape, bases)

    @property
    def are_whole(self) -> bool:
        """Whether there is one window only, the whole grid."""
        return self.shape == self.grid.shape

    @property
    def size(self) -> int:
        """Number of nodes of one window."""
        return int(np.prod(self.shape))

    def around(self, X: FloatArray) -> IntArray:
        """Return the first node (m, q) of the window around each place X (m, q)."""
        nearest = [
            np.searchsorted((nodes[1:] + nodes[:-1]) / 2, X[:, axis])
            for axis, nodes in enumerate(self.grid.nodes)
        ]
        return self.around_nodes(np.stack(nearest, axis=1))

    def around_nodes(self, node_indices: IntArray) -> IntArray:
        """Return the first node (m, q) of the window around nodes given by index (m, q)."""
        shape = np.array(self.shape)
        return np.clip(node_indices - shape // 2, 0, np.array(self.grid.shape) - shape)

    def polynomials(self, X: FloatArray, starts: IntArray, order: int) -> FloatArray:
        """Return derivatives 0…order of the polynomials in each row's window.

        The array is (q, order + 1, m, n_l); axes with fewer nodes leave the rest of it empty.
        """
        out = np.zeros((len(self.shape), order + 1, len(X), max(self.shape)))
        for axis, bases in enumerate(self.bases):
            x, first, n = X[:, axis], starts[:, axis], self.shape[axis]
            if len(bases) == 1:
                out[axis, :, :, :n] = bases[0].derivatives(x, order)
                continue
            for start in np.unique(first):
                rows = np.flatnonzero(first == start)
                out[axis][:, rows, :n] = bases[start].derivatives(x[rows], order)
        return out
