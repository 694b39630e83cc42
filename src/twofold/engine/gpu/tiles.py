"""Points in tiles of neighbours, and which tiles are within reach of which.

Points are ordered along a Hilbert curve (Skilling, "Programming the Hilbert curve", AIP 2004), so
that those that follow each other lie close together, and so do tiles of them. Boxes around tiles
tell how far two tiles are apart at least; all that is farther than the kernel's reach is skipped.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from twofold.engine.gpu.library import load_torch

if TYPE_CHECKING:
    from torch import Tensor

# Points of a tile. Of 64 to 128 queries and 32 to 128 references on an H200 this was the quickest,
# and small tiles leave little around the reach of a kernel.
TILE = 64
# Boxes that are compared at a time, and the most gaps between boxes that are held at once.
BOXES, MOST_GAPS = 1024, 2**26
# Bits of a place along the curve: what a float32 coordinate tells apart, as far as 63 bits go.
MOST_BITS = 21
# Where nothing has a weight, and squares are still numbers.
FAR_AWAY = 1e17


def along_a_curve(X: Tensor) -> Tensor:
    """Return the order (n,) of points X (n, q) along a Hilbert curve."""
    torch = load_torch()
    q = X.shape[1]
    bits = min(MOST_BITS, 63 // q)
    low, extent = X.amin(dim=0), (X.amax(dim=0) - X.amin(dim=0)).amax()
    unit = (2**bits - 1) / torch.where(extent > 0, extent, 1).double()
    axes = list(((X - low).double() * unit).long().unbind(dim=1))
    bit = 1 << (bits - 1)
    while bit > 1:  # undo the turns of smaller and smaller squares
        mask = bit - 1
        for m in range(q):
            is_set = (axes[m] & bit) != 0
            swapped = torch.where(is_set, 0, (axes[0] ^ axes[m]) & mask)
            axes[0] = torch.where(is_set, axes[0] ^ mask, axes[0] ^ swapped)
            axes[m] = axes[m] ^ swapped if m else axes[0]
        bit >>= 1
    for m in range(1, q):
        axes[m] = axes[m] ^ axes[m - 1]
    turn, bit = torch.zeros_like(axes[0]), 1 << (bits - 1)
    while bit > 1:
        turn = torch.where((axes[-1] & bit) != 0, turn ^ (bit - 1), turn)
        bit >>= 1
    key = torch.zeros_like(turn)
    for b in reversed(range(bits)):
        for m in range(q):
            key = (key << 1) | (((axes[m] ^ turn) >> b) & 1)
    return torch.argsort(key, stable=True)


class TiledPoints:
    """Points (n, q) in a given order, as (q, padded) with points far away in the last tile."""

    def __init__(self, X: Tensor, order: Tensor) -> None:
        from twofold.engine.gpu.kernels import lay_out

        (self.n, self.q), self.order = X.shape, order
        X, n_tiles = X.float().contiguous(), -(-self.n // TILE)
        self.X = X.new_empty((self.q, n_tiles * TILE))
        self.low, self.high = X.new_empty((2, self.q, n_tiles)).unbind()  # corners of tiles
        lay_out[(n_tiles,)](
            *(X, order, self.X, self.low, self.high, self.n, self.padded, n_tiles),
            Q=self.q,
            AWAY=FAR_AWAY,
            B=TILE,
        )

    @property
    def padded(self) -> int:
        """Points in whole tiles."""
        return int(self.X.shape[1])

    @property
    def n_tiles(self) -> int:
        """Number of tiles."""
        return int(self.low.shape[1])

    def padded_rows(self, rows: Tensor) -> Tensor:
        """Return rows (n, ...) of the points in the order of the tiles, zeros in the rest."""
        out = rows.new_zeros((self.padded, *rows.shape[1:]))
        out[: self.n] = rows[self.order]
        return out


@dataclass(frozen=True)
class TileList:
    """Tiles of references that each tile of queries visits, and the order of the work."""

    first: Tensor  # (query tiles + 1,)
    tiles: Tensor
    order: Tensor  # (query tiles,) those with the longest lists first


class CountedTiles:
    """The tiles of references within squared reach of tiles of queries, counted but not listed.

    The reach of a pair of tiles is the longer one of the two. ``but_own`` leaves each tile out of
    its own list, where queries are references. Nothing here waits for the device.
    """

    def __init__(
        self,
        queries: TiledPoints,
        references: TiledPoints,
        reach_a: Tensor,
        reach_b: Tensor,
        *,
        but_own: bool = False,
    ) -> None:
        torch = load_torch()
        self.sizes, self.but_own = (queries.n_tiles, references.n_tiles), but_own
        self.boxes = queries.low, queries.high, reach_a, references.low, references.high, reach_b
        self.how = {"Q": queries.q, "SKIP_OWN": but_own, "BLOCK": BOXES}
        counts = torch.empty(queries.n_tiles, dtype=torch.int64, device=reach_a.device)
        self._run(counts, counts, fill=False)
        self.first = counts.new_zeros(len(counts) + 1)
        torch.cumsum(counts, dim=0, out=self.first[1:])
        self.order = torch.argsort(counts, descending=True, stable=True)

    def _run(self, first: Tensor, tiles: Tensor, *, fill: bool) -> None:
        from twofold.engine.gpu.kernels import list_tiles

        list_tiles[self.sizes[:1]](*self.boxes, first, tiles, *self.sizes, FILL=fill, **self.how)

    @cached_property
    def total(self) -> int:
        """The tiles in all lists, once the device has said so."""
        return int(self.first[-1])

    @property
    def n_pairs(self) -> int:
        """Pairs of points in all tiles that are visited."""
        return (self.total + self.sizes[0] * self.but_own) * TILE**2

    def listed(self) -> TileList:
        """Return the lists."""
        torch = load_torch()
        tiles = torch.empty(self.total, dtype=torch.int32, device=self.first.device)
        self._run(self.first, tiles, fill=True)
        return TileList(self.first, tiles, self.order)


def list_near(
    queries: TiledPoints, references: TiledPoints, reach_a: Tensor, reach_b: Tensor
) -> TileList:
    """List the tiles of references within squared reach of tiles of queries."""
    return CountedTiles(queries, references, reach_a, reach_b).listed()


def list_nearest(queries: TiledPoints, references: TiledPoints) -> TileList:
    """List the tile of references that is nearest to each tile of queries, by their middles."""
    torch = load_torch()
    n_a, n_b = queries.n_tiles, references.n_tiles
    first = torch.arange(n_a + 1, device=queries.low.device)
    if queries is references:
        return TileList(first, first, first)
    middle = (references.low + references.high) / 2
    rows, found = max(1, MOST_GAPS // n_b), []
    for start in range(0, n_a, rows):
        here = ((queries.low + queries.high) / 2)[:, start : start + rows]
        found.append(((here[:, :, None] - middle[:, None]) ** 2).sum(dim=0).argmin(dim=1))
    return TileList(first, torch.cat(found).int(), first[:-1])
