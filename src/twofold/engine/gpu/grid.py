"""Sums over the nodes of a grid on a device, where very many pairs lie within reach.

The steps of `twofold.engine.grid`, with the same grid, weights and limits: rows are spread onto
nodes, the kernel acts between nodes axis by axis, and sums are read off. Points are sorted by
bricks of ``BRICK`` nodes along each axis, and cut into chunks of one brick; the nodes around such a
chunk are the window of its brick, ``WINDOW`` lines along each axis. With the weights B (chunk,
window) of its points spreading is one product Bᵀ V a chunk, and reading is B H. Windows overlap
and are added up in a fixed order, so that results are the same bits in every run.

All of this is in float32; the spacing of the grid bounds the error (see there).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import product
from typing import TYPE_CHECKING

import numpy as np

from twofold.engine.gpu.library import load_torch
from twofold.engine.grid import LEAST_WEIGHT, NODES, NodeGrid, build_node_grid, spacing_for
from twofold.kernels import Kernel

if TYPE_CHECKING:
    from torch import Tensor

    from twofold.engine.gpu.sums import CarriedTiles, DeviceSums, Respond

# Lines of nodes of a brick along each axis, and of those around its points, by dimensions.
# A window ends within the next brick.
BRICK = {1: 32, 2: 8, 3: 5}
WINDOW = {q: brick + NODES - 1 for q, brick in BRICK.items()}
CHUNK = 128
# Numbers of weights that are in memory at once.
MOST_WEIGHTS = 2**27
# Seconds of a pair in tiles, a point and a node for each column, and before the first of them;
# measured on an H200. Sums over nodes are only good to a few times the cutoff, so they have to be
# faster by this factor.
PAIR_COST = {"bf16": 3.5e-14, "fp32": 6.5e-14}
POINT_COST, NODE_COST, FIRST_COST, GRID_GAIN = 3.5e-10, 1e-10, 8e-3, 2
MOST_LINES = 4_096
# Hidden pairs that are looked at together.
MOST_PAIRS = 2**19


class DeviceGrid:
    """A grid over a box, on the device of the points."""

    def __init__(self, low: Tensor, high: Tensor, kernel: Kernel, cutoff: float) -> None:
        torch = load_torch()
        box = low.double().cpu().numpy(), high.double().cpu().numpy()
        grid: NodeGrid = build_node_grid(box[0], box[1], kernel, cutoff)
        self.q = q = len(low)
        self.spacing = grid.spacing
        self.origin = torch.as_tensor(grid.origin[-q:], device=low.device)
        # Whole bricks, and the window of the last one.
        self.bricks = [-(-int(n) // BRICK[q]) for n in grid.shape[-q:]]
        self.lines = [(n + 1) * BRICK[q] for n in self.bricks]
        on_device = {"dtype": torch.float32, "device": low.device}
        self.weights = torch.as_tensor(grid.weights.T.copy(), **on_device)
        self.slopes = torch.as_tensor(grid.slopes.T.copy(), **on_device)
        self.falloff = torch.as_tensor(grid.falloff, **on_device)

    @property
    def n_nodes(self) -> int:
        """The number of nodes, windows included."""
        return int(np.prod(self.lines))

    @cached_property
    def between_lines(self) -> list[Tensor]:
        """The kernel between the lines of each axis, (lines, lines)."""
        torch, found = load_torch(), []
        for lines in self.lines:
            at = torch.arange(lines, device=self.origin.device)
            apart = (at[:, None] - at).abs().clamp_max(len(self.falloff) - 1)
            # Lines beyond the last node of the grid carry nothing.
            found.append(self.falloff[apart])
        return found

    def convolved(self, G: Tensor) -> Tensor:
        """Return K ⊗ … ⊗ K times what nodes G (lines, …, C) carry."""
        torch = load_torch()
        for axis, K in enumerate(self.between_lines):
            G = torch.tensordot(K, G, dims=([1], [axis])).movedim(0, axis)
        return G.contiguous()

    def around(self, X: Tensor) -> Around:
        """Return the first node around points X (n, q) and the weights of all, by axis."""
        return Around.of(X, self.origin, self.spacing, self.weights, self.slopes)


@dataclass(frozen=True)
class Around:
    """The nodes around some points: the first of each axis (n, q), weights and slopes (n, q, 6)."""

    first: Tensor
    weights: Tensor
    slopes: Tensor

    @classmethod
    def of(
        cls, X: Tensor, origin: Tensor, spacing: float, weights: Tensor, slopes: Tensor
    ) -> Around:
        """Return the nodes around points X (n, q) of a grid whose weights are such polynomials."""
        t = (X.double() - origin) / spacing
        below = t.floor()
        v = (t - below - 0.5).float()
        powers = load_torch().stack([v**e for e in range(NODES)], dim=2)
        return cls(below.long() - (NODES // 2 - 1), powers @ weights, powers @ slopes)

    def __getitem__(self, rows: Tensor) -> Around:
        return Around(self.first[rows], self.weights[rows], self.slopes[rows])


class SpreadPoints:
    """Points (n, q) in chunks of one brick each; the last chunk of a brick is filled up."""

    def __init__(self, X: Tensor, grid: DeviceGrid) -> None:
        torch = load_torch()
        self.n, self.grid, q = len(X), grid, grid.q
        self.around = grid.around(X)
        brick = torch.div(self.around.first, BRICK[q], rounding_mode="floor")
        number = torch.zeros(self.n, dtype=torch.int64, device=X.device)
        for axis, n_bricks in enumerate(grid.bricks):
            number = number * n_bricks + brick[:, axis]
        order = torch.argsort(number, stable=True)
        bricks, counts = torch.unique_consecutive(number[order], return_counts=True)
        self.bricks, self.chunks = bricks, (counts + CHUNK - 1) // CHUNK  # of each brick
        first = torch.cumsum(counts, 0) - counts
        begin = CHUNK * (torch.cumsum(self.chunks, 0) - self.chunks)
        place = torch.arange(self.n, device=X.device) - (first - begin).repeat_interleave(counts)
        # Points of every chunk, and n where there is none.
        self.rows = torch.full((CHUNK * int(self.chunks.sum()),), self.n, device=X.device)
        self.rows[place] = order
        self.rows = self.rows.view(-1, CHUNK)
        self.of_chunk = bricks.repeat_interleave(self.chunks)
        rows = self.rows.clamp_max(self.n - 1)
        lines = (self.around.first - brick * BRICK[q])[rows][..., None]
        lines = lines + torch.arange(NODES, device=X.device)
        is_there = (self.rows < self.n)[:, :, None, None]
        # Along each axis, over the lines of the window: (chunks, CHUNK, q, window).
        self.weights, self.slopes = (
            table.new_zeros((*lines.shape[:3], WINDOW[q])).scatter_(
                3, lines, table[rows] * is_there
            )
            for table in (self.around.weights, self.around.slopes)
        )

    def _parts(self, width: int) -> list[slice]:
        """Cut the chunks into parts whose weights and windows fit the memory."""
        window = WINDOW[self.grid.q] ** self.grid.q
        size = max(1, MOST_WEIGHTS // (window * max(CHUNK, width)))
        return [slice(k, k + size) for k in range(0, len(self.rows), size)]

    def _matrix(self, part: slice, sloping: int | None = None) -> Tensor:
        """Return the weights B (chunks, CHUNK, window) of some chunks, sloped along one axis."""
        axes = [
            (self.slopes if axis == sloping else self.weights)[part, :, axis]
            for axis in range(self.grid.q)
        ]
        B = axes[0]
        for along in axes[1:]:
            B = (B[:, :, :, None] * along[:, :, None]).flatten(2)
        return B

    def spread(self, V: Tensor) -> Tensor:
        """Return what nodes (lines, …, C) hold of rows V (n, C)."""
        torch, grid, C = load_torch(), self.grid, V.shape[1]
        window = WINDOW[grid.q]
        rows = torch.cat([V, V.new_zeros((1, C))])
        T = V.new_zeros((int(np.prod(grid.bricks)), window**grid.q, C))
        for part in self._parts(C):
            found = torch.bmm(self._matrix(part).transpose(1, 2), rows[self.rows[part]])
            of_chunk = self.of_chunk[part]
            bricks, counts = torch.unique_consecutive(of_chunk, return_counts=True)
            T[bricks] += torch.segment_reduce(found.flatten(1), "sum", lengths=counts, axis=0).view(
                -1, *T.shape[1:]
            )
        return self._overlapped(T)

    def _overlapped(self, T: Tensor) -> Tensor:
        """Add up the windows T (bricks, window, C) of all bricks."""
        grid, q, brick = self.grid, self.grid.q, BRICK[self.grid.q]
        T = T.view(*grid.bricks, *([WINDOW[q]] * q), -1)
        G = T.new_zeros((*grid.lines, T.shape[-1]))
        cut = [n for lines in grid.lines for n in (lines // brick, brick)]
        blocks = G.view(*cut, -1)  # brick and line of each axis in turn
        for later in product((0, 1), repeat=q):
            lines = [slice(brick, None) if k else slice(brick) for k in later]
            part = T[(*[slice(None)] * q, *lines)]
            part = part.permute(*[m for axis in range(q) for m in (axis, q + axis)], 2 * q)
            where = [
                index
                for axis, k in enumerate(later)
                for index in (slice(k, k + grid.bricks[axis]), slice(part.shape[2 * axis + 1]))
            ]
            blocks[tuple(where)] += part
        return G

    def _windows(self, H: Tensor) -> Tensor:
        """Return the windows (bricks, …, window, …, C) of a field H (lines, …, C), a view of it."""
        q = self.grid.q
        for axis in range(q):
            H = H.unfold(axis, WINDOW[q], BRICK[q])
        H = H[tuple(slice(n) for n in self.grid.bricks)]
        return H.movedim(q, -1)

    def read(self, H: Tensor) -> Tensor:
        """Return what a field H (lines, …, C) is at the points, (n, C)."""
        out = H.new_empty((self.n + 1, H.shape[-1]))
        for part, windows in self._each(H):
            out[self.rows[part]] = load_torch().bmm(self._matrix(part), windows)
        return out[:-1]

    def pull(self, H: Tensor, U: Tensor) -> Tensor:
        """Return ``U_j · dH(x_j)/dx_j`` (n, q) of a field H."""
        torch, q = load_torch(), self.grid.q
        rows = torch.cat([U, U.new_zeros((1, U.shape[1]))])
        out = H.new_empty((self.n + 1, q))
        for part, windows in self._each(H):
            at = self.rows[part]
            aligned = torch.bmm(rows[at], windows.transpose(1, 2))  # (chunks, CHUNK, window)
            out[at] = torch.stack(
                [(aligned * self._matrix(part, axis)).sum(dim=2) for axis in range(q)], dim=2
            )
        return out[:-1]

    def _each(self, H: Tensor) -> Iterator[tuple[slice, Tensor]]:
        """Yield parts of the chunks with the windows (chunks, window, C) of a field H."""
        windows, q = self._windows(H), self.grid.q
        for part in self._parts(H.shape[-1]):
            at, places = self.of_chunk[part], []
            for n_bricks in reversed(self.grid.bricks):
                places.append(at % n_bricks)
                at = at // n_bricks
            yield part, windows[tuple(reversed(places))].flatten(1, q)


def pairs_on_grid(grid: DeviceGrid, own: Around, other: Around) -> tuple[Tensor, Tensor, Tensor]:
    """Return the weights (m,) that the grid gives pairs, and their slopes by both places (m, q)."""
    torch = load_torch()
    steps = torch.arange(NODES, device=own.first.device)
    apart = own.first[:, :, None] + steps  # (m, q, 6)
    apart = (apart[..., None] - (other.first[:, :, None] + steps)[:, :, None]).abs()
    K = grid.falloff[apart]  # (m, q, 6, 6)
    reached = (K * other.weights[:, :, None]).sum(dim=3)
    along, by_own = (own.weights * reached).sum(dim=2), (own.slopes * reached).sum(dim=2)
    reached = (K * other.slopes[:, :, None]).sum(dim=3)
    by_other = (own.weights * reached).sum(dim=2)
    for axis in range(grid.q):
        for rest in range(grid.q):
            if rest != axis:
                by_own[:, axis] *= along[:, rest]
                by_other[:, axis] *= along[:, rest]
    return along.prod(dim=1), by_own, by_other


class GridRun:
    """One evaluation over nodes: points in the order of the rows, V with a column that counts."""

    def __init__(
        self, kernel: Kernel, cutoff: float, X: Tensor, V: Tensor, queries: Tensor | None
    ) -> None:
        torch = load_torch()
        self.grid = DeviceGrid(*box_around(X, queries), kernel, cutoff)
        self.sources = SpreadPoints(X, self.grid)
        self.targets = self.sources if queries is None else SpreadPoints(queries, self.grid)
        self.V = torch.cat([V, torch.ones_like(V[:, :1])], dim=1)
        self.field = self.grid.convolved(self.sources.spread(self.V))

    def sums(self, hidden: Tensor | None) -> Tensor:
        """Return sums (m, C + 1) at the queries without what is hidden from them, (m, K)."""
        A = self.targets.read(self.field)
        for rows, i, weight, _, _ in self._hidden(hidden):
            A[rows] -= weight[:, None] * self.V[i]
        return A

    def pulls(self, U: Tensor, hidden: Tensor | None) -> tuple[Tensor, Tensor]:
        """Carry U (m, C + 1) back to queries and references."""
        by_query = self.targets.pull(self.field, U)
        field = self.grid.convolved(self.targets.spread(U))
        by_reference = self.sources.pull(field, self.V)
        for rows, i, _, by_own, by_other in self._hidden(hidden):
            dot = (U[rows] * self.V[i]).sum(dim=1, keepdim=True)
            by_query[rows] -= dot * by_own
            # Sorted where it adds up, so that the order is always the same.
            by_reference.index_put_((i,), -dot * by_other, accumulate=True)
        return by_query, by_reference

    def _hidden(self, hidden: Tensor | None) -> Iterator[tuple[Tensor, ...]]:
        """Yield some queries, one reference hidden from each, and what the grid gives the pair."""
        torch = load_torch()
        lists = [] if hidden is None else list(hidden.long().unbind(dim=1))
        for k, i in enumerate(lists):
            is_new = i >= 0
            for earlier in lists[:k]:  # a list may name a reference twice
                is_new = is_new & (i != earlier)
            for rows in torch.nonzero(is_new)[:, 0].split(MOST_PAIRS):
                some = i[rows]
                own, other = self.targets.around[rows], self.sources.around[some]
                yield rows, some, *pairs_on_grid(self.grid, own, other)


def is_crowded(engine: DeviceSums, references: CarriedTiles, queries: Tensor | None) -> bool:
    """Say whether nodes are clearly quicker than the pairs in tiles within reach."""
    X, width = references.X, references.V.shape[1]
    n_points = len(X) + (len(X) if queries is None else len(queries))
    cost = PAIR_COST.get(references.precision, PAIR_COST["fp32"])
    room = cost * engine.n_pairs * width / GRID_GAIN - FIRST_COST - POINT_COST * n_points * width
    if room <= 0:
        return False  # before the device is asked where points are
    low, high = box_around(X, queries)
    spacing = spacing_for(engine.kernel, engine.cutoff)
    lines = (high - low).double().cpu().numpy() / spacing
    nodes = float(np.prod(lines + NODES + 1))
    return bool(lines.max() < MOST_LINES and room > NODE_COST * nodes * width)


def box_around(X: Tensor, queries: Tensor | None) -> tuple[Tensor, Tensor]:
    """Return the lowest and the highest corner (q,) of the box around all points."""
    torch, low, high = load_torch(), X.amin(dim=0), X.amax(dim=0)
    if queries is None:
        return low, high
    return torch.minimum(low, queries.amin(dim=0)), torch.maximum(high, queries.amax(dim=0))


def evaluate_over_nodes(
    engine: DeviceSums,
    references: CarriedTiles,
    respond: Respond,
    queries: Tensor | None,
    hidden: Tensor | None,
) -> tuple[Tensor, Tensor, Tensor]:
    """Do what `DeviceSums.evaluate` does; queries with little around them go by pairs."""
    torch, X = load_torch(), references.X
    places = X if queries is None else queries
    run = GridRun(engine.kernel, engine.cutoff, X.float(), references.V.float(), queries)
    A = run.sums(hidden)
    is_dense = A[:, -1] >= LEAST_WEIGHT
    dense, sparse = torch.nonzero(is_dense)[:, 0], torch.nonzero(~is_dense)[:, 0]
    found, U = respond(dense, A[dense, :-1], A.new_zeros(len(dense)))
    losses = A.new_zeros(len(places))
    losses[dense] = found
    by_query, by_reference = A.new_zeros(places.shape), A.new_zeros(X.shape)
    if U is not None:
        answers = torch.zeros_like(A)
        answers[dense, :-1] = U.float()
        by_query, by_reference = run.pulls(answers, hidden)
    if len(sparse):
        unseen = None if hidden is None else hidden[sparse]
        losses[sparse], by_query[sparse], push = engine.over_pairs().evaluate(
            references,
            lambda order, A, shift: respond(sparse[order], A, shift),
            queries=places[sparse],
            hidden=unseen,
        )
        by_reference += push
    return losses, by_query, by_reference
