"""One evaluation of sums and their derivative: cut into strips of rows, summed, and added up.

Strips are independent of each other. Who sums them, threads of this process or workers elsewhere,
and in which order they are done, changes nothing: what they return is added in their own order.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from twofold.array_types import FloatArray, IntArray
from twofold.engine import cells, dense
from twofold.engine.cells import CellGrid
from twofold.engine.grid import (
    LEAST_WEIGHT,
    SpreadRows,
    build_node_grid,
    hidden_pairs,
    pull_at,
    read,
    take_off,
    take_off_pull,
)
from twofold.engine.local_fit import FittedSums, LocalFit
from twofold.engine.plan import PAIR_COST_RATIO
from twofold.engine.threads import run_tasks, slices

if TYPE_CHECKING:
    from twofold.engine.sums import KernelSums

# Given the numbers of some rows, their sums (rows, C) and their shifts (rows,): return the loss of
# each row and U (rows, C), or None where no gradient is wanted.
Answer = tuple[FloatArray, FloatArray | None]
Respond = Callable[[IntArray, FloatArray, FloatArray], Answer]

# Strips own the accumulators of what they push to other rows. Their number is fixed, so that the
# order of additions is the same on any number of threads.
N_STRIPS = 16
LEAST_PAIRS, MOST_PAIRS = 2**16, 2**18
NODE_ROWS = 512  # whose sums over nodes stay in cache


def places_in(order: IntArray) -> IntArray:
    """Return where each reference is in an order; the last entry answers for -1, none."""
    place = np.empty(len(order) + 1, dtype=np.int64)
    place[order], place[-1] = np.arange(len(order)), -1
    return place


def strips_of(blocks: list[slice]) -> list[list[slice]]:
    """Deal blocks of rows out to a fixed number of strips of neighbouring blocks."""
    bounds = np.linspace(0, len(blocks), min(N_STRIPS, len(blocks)) + 1).astype(int)
    return [blocks[a:b] for a, b in pairwise(bounds)]


BlockSums = cells.PlainSums | FittedSums | dense.DenseSums


def sums_of(
    pairs: cells.Pairs,
    queries: FloatArray,
    points: FloatArray,
    V: FloatArray,
    local: LocalFit | None,
) -> cells.PlainSums | FittedSums:
    """Return the sums over pairs, of rows as they are or of polynomials fitted to them."""
    if local is None:
        return cells.PlainSums(pairs, queries, points, V)
    return FittedSums(pairs, queries, points, V, local)


@dataclass(eq=False)
class StripRun(ABC):
    """One evaluation, block by block of rows."""

    engine: KernelSums
    respond: Respond
    numbers: IntArray  # (m,) of the queries, in the order of the blocks
    queries: FloatArray  # (m, q) in that order, and so is what is hidden from them
    hidden: IntArray
    points: FloatArray  # (q, n) of the references; V and local have their order
    V: FloatArray
    local: LocalFit | None

    def __post_init__(self) -> None:
        # Compiled loops are made for one memory layout.
        self.queries, self.V = np.ascontiguousarray(self.queries), np.ascontiguousarray(self.V)
        self.losses = np.empty(len(self.queries), dtype=self.queries.dtype)
        self.grad_queries = np.zeros_like(self.queries)

    @property
    def order(self) -> IntArray | slice:
        """Which reference is the first, the second, and so on."""
        return slice(None)

    @abstractmethod
    def strips(self) -> list[list[slice]]:
        """Cut the rows into blocks, and those into strips."""

    @abstractmethod
    def n_pairs(self) -> float:
        """Return about how many pairs are weighed, each as if it came from a list."""

    @abstractmethod
    def sums(self, rows: slice, scratch: FloatArray) -> tuple[BlockSums, FloatArray]:
        """Return the sums of a block and its shift; ``scratch`` (2, rows, n) is for dense ones."""

    def scratch(self, n_rows: int) -> FloatArray:
        """Return memory that the blocks of a strip share."""
        return np.empty((2, 0, 0))

    def finished(self, pushes: list[FloatArray]) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return losses and gradients by queries and references, given what strips returned."""
        # Added in the order of the strips, not in that in which threads were done.
        by_reference = np.empty_like(self.points.T, order="C")
        by_reference[self.order] = sum(pushes[1:], start=pushes[0]).T
        return self.losses, self.grad_queries, by_reference

    def strip(self, blocks: list[slice]) -> FloatArray:
        """Evaluate some blocks; return what they push to the references, (q, n)."""
        # Zeroed pages that are never touched cost nothing, and a strip touches few.
        push = np.zeros_like(self.points)
        scratch = self.scratch(blocks[0].stop - blocks[0].start)
        for rows in blocks:
            numbers = self.numbers[rows]
            sums, shift = self.sums(rows, scratch)
            self.losses[numbers], U = self.respond(numbers, sums.values(), shift)
            if U is not None:
                grad = np.zeros_like(self.queries[rows])
                sums.pull(U, grad, push)
                self.grad_queries[numbers] = grad
        return push


class _DenseRun(StripRun):
    """One evaluation of all pairs."""

    def strips(self) -> list[list[slice]]:
        size = dense.block_rows(self.points.shape[1], self.V.itemsize)  # stays in cache
        return strips_of(slices(len(self.queries), size))

    def n_pairs(self) -> float:
        return len(self.queries) * self.points.shape[1] / PAIR_COST_RATIO

    def scratch(self, n_rows: int) -> FloatArray:
        return np.empty((2, n_rows, self.points.shape[1]), dtype=self.V.dtype)

    def sums(self, rows: slice, scratch: FloatArray) -> tuple[BlockSums, FloatArray]:
        queries = self.queries[rows]
        own, free = scratch[:, : len(queries)]
        kernel, cutoff = self.engine.kernel, self.engine.cutoff
        weight, slope, shift = dense.weigh_block(
            queries, self.points, self.hidden[rows], kernel, cutoff, own
        )
        if self.local is None:
            return dense.DenseSums(weight, slope, queries, self.points, self.V, free), shift
        pairs = dense.as_pairs(weight, slope, shift)
        return FittedSums(pairs, queries, self.points, self.V, self.local), shift


@dataclass(eq=False)
class _CellsRun(StripRun):
    """One evaluation over lists of near pairs, with references in the order of a grid."""

    grid: CellGrid

    @property
    def order(self) -> IntArray:
        """The order of the grid."""
        return self.grid.order

    @cached_property
    def _total(self) -> FloatArray:
        """How many pairs queries have, added up to each of them."""
        return np.cumsum(self.grid.kept * cells.candidates_of(self.grid, self.queries))

    def n_pairs(self) -> float:
        return float(self._total[-1])

    def strips(self) -> list[list[slice]]:
        total = self._total
        # Small problems are cut finer, so that there is something for every thread.
        size = int(np.clip(total[-1] // N_STRIPS, LEAST_PAIRS, MOST_PAIRS))
        cuts = np.searchsorted(total, np.arange(size, total[-1], size))
        bounds = np.unique(np.concatenate([[0], cuts + 1, [len(total)]]))
        return strips_of([slice(int(a), int(b)) for a, b in pairwise(bounds)])

    def sums(self, rows: slice, scratch: FloatArray) -> tuple[BlockSums, FloatArray]:
        queries, one_width = self.queries[rows], np.empty(0, dtype=self.V.dtype)
        kernel, cutoff = self.engine.kernel, self.engine.cutoff
        hidden = self.hidden[rows]
        pairs = cells.list_pairs(self.grid, queries, hidden, kernel, cutoff, one_width)
        return sums_of(pairs, queries, self.points, self.V, self.local), pairs.shift


def over_all_pairs(
    engine: KernelSums,
    respond: Respond,
    queries: FloatArray,
    hidden: IntArray,
    V: FloatArray,
    local: LocalFit | None,
    references: FloatArray,
) -> StripRun:
    """Return a run over all pairs of queries and references."""
    points = np.ascontiguousarray(references.T)
    numbers: IntArray = np.arange(len(queries))
    return _DenseRun(engine, respond, numbers, queries, hidden, points, V, local)


def over_cells(
    engine: KernelSums,
    respond: Respond,
    numbers: IntArray,
    queries: FloatArray,
    hidden: IntArray,
    V: FloatArray,
    local: LocalFit | None,
    grid: CellGrid,
) -> _CellsRun:
    """Return a run over near pairs that visits the queries in the order of their ``numbers``."""
    order = grid.order
    unseen = places_in(order)[hidden[numbers]]
    local = None if local is None else local.sorted_by(order)
    own = queries[numbers]
    sorted_V = np.take(V, order, axis=0)  # a third of the time of V[order]
    return _CellsRun(engine, respond, numbers, own, unseen, grid.points, sorted_V, local, grid)


class NodesRun:
    """One evaluation over the nodes of a grid; queries with little around them go by pairs."""

    def __init__(
        self,
        engine: KernelSums,
        respond: Respond,
        queries: FloatArray,
        V: FloatArray,
        references: FloatArray | None,
        hidden: IntArray,
    ) -> None:
        refs = queries if references is None else references
        self.engine, self.respond, self.hidden = engine, respond, hidden
        self.queries, self.refs, self.plain_V = queries, refs, V
        self.is_one = references is None
        self.losses = np.zeros(len(queries), dtype=queries.dtype)
        self.grad_queries = np.zeros_like(queries)  # in the order of the nodes, until the end
        self.U = np.zeros((len(queries), V.shape[1] + 1), dtype=V.dtype)
        self.is_sparse = np.zeros(len(queries), dtype=bool)
        self.wants_gradient = False

    def _spread(self) -> None:
        """Spread the references over the nodes."""
        engine, refs, queries, V = self.engine, self.refs, self.queries, self.plain_V
        (low, high), (own_low, own_high) = cells.corners(refs), cells.corners(queries)
        low = np.minimum(low, own_low).astype(np.float64)
        high = np.maximum(high, own_high).astype(np.float64)
        self.grid = build_node_grid(low, high, engine.kernel, engine.cutoff)
        self.sources = SpreadRows(refs, self.grid, engine.n_threads)
        self.targets = self.sources
        if not self.is_one:
            self.targets = SpreadRows(queries, self.grid, engine.n_threads)
        self.unseen = places_in(self.sources.order)[self.hidden[self.targets.order]]
        # One more column counts what lies around each query.
        ones = np.ones_like(V[:, :1])
        self.V = np.concatenate([V, ones], axis=1)[self.sources.order]
        self.field = self.sources.field(self.V)

    def strips(self) -> list[list[slice]]:
        """Spread the references, cut the queries into blocks, and those into strips."""
        self._spread()
        return strips_of(slices(len(self.queries), NODE_ROWS))

    def finished(self, pushes: list[FloatArray]) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return losses and gradients by queries and references, given what strips returned."""
        by_query = np.empty_like(self.grad_queries)
        by_query[self.targets.order] = self.grad_queries
        by_reference = np.zeros_like(self.refs, order="C")
        if self.wants_gradient:
            pull = self.sources.pull(self.targets.field(self.U), self.V)
            by_reference[self.sources.order] = sum(pushes, start=pull)
        if self.is_sparse.any():
            by_reference += self._by_pairs(np.flatnonzero(self.is_sparse), by_query)
        return self.losses, by_query, by_reference

    def strip(self, blocks: list[slice]) -> FloatArray:
        """Evaluate some queries; return what is hidden from them has to give back, (n, q)."""
        push = np.zeros_like(self.sources.points)
        for rows in blocks:
            self._block(rows, push)
        return push

    def _block(self, rows: slice, push: FloatArray) -> None:
        queries = self.targets.points[rows]
        A = np.zeros((len(queries), self.V.shape[1]), dtype=self.V.dtype)
        read(queries, self.grid, self.field, A)
        pairs = hidden_pairs(queries, self.unseen[rows], self.sources.points, self.grid)
        take_off(pairs, self.V, A)
        dense = A[:, -1] >= LEAST_WEIGHT
        numbers = self.targets.order[rows]
        self.is_sparse[numbers[~dense]] = True
        shift = np.zeros(np.count_nonzero(dense), dtype=A.dtype)
        found = self.respond(numbers[dense], np.ascontiguousarray(A[dense, :-1]), shift)
        self.losses[numbers[dense]], U = found
        if U is None:
            return
        self.wants_gradient = True
        self.U[rows][dense, :-1] = U
        pull_at(queries, self.grid, self.field, self.U[rows], self.grad_queries[rows])
        take_off_pull(pairs, self.V, self.U[rows], self.grad_queries[rows], push)

    def _by_pairs(self, sparse: IntArray, by_query: FloatArray) -> FloatArray:
        """Evaluate some queries over pairs; return what they push to the references."""

        def respond(rows: IntArray, A: FloatArray, shift: FloatArray) -> Answer:
            return self.respond(sparse[rows], A, shift)

        grid = cells.grid_for(self.refs, self.engine.kernel, self.engine.cutoff)
        numbers, hidden = np.arange(len(sparse)), self.hidden[sparse]
        queries, V = self.queries[sparse], self.plain_V
        run = over_cells(self.engine, respond, numbers, queries, hidden, V, None, grid)
        found = run.finished(run_tasks(run.strip, run.strips(), self.engine.n_threads))
        self.losses[sparse], by_query[sparse], by_reference = found
        return by_reference
