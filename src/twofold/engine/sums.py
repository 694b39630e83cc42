"""The one hot operation: kernel-weighted sums of data rows, and their derivative.

Everything a kernel model needs is

    A_j = Σ_i F(s_ji) V_i,   s_ji = ||x_j - x_i||²,

for latent queries ``x_j`` and references ``x_i`` that carry rows ``V_i``: numerators and
denominators of regressions, masked or weighted, and densities are columns of ``V``. An objective
that depends on row j only through ``A_j`` answers with ``U_j = dR/dA_j``, and the engine carries
that back to the latent points:

    dR/dx_j = Σ_i a_ji (U_j·V_i)(x_i - x_j),   dR/dx_i = -Σ_j a_ji (U_j·V_i)(x_i - x_j)

with ``a = -2F'`` (Klanke 2007, eqs. 4.48-4.50 and B.10, with q_ij = p_ij d_jᵀ(y_i - f_j)). Sums are
done and carried back block by block, so each pair is weighed once and no n × n array exists. Local
polynomials change the weights and their derivative, nothing else (see `local_fit`).
"""

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np
from scipy.sparse import csr_array, vstack

from twofold.array_types import FloatArray, IntArray
from twofold.checks.parameters import is_number
from twofold.checks.rows import check_finite_points
from twofold.engine import cells, dense
from twofold.engine.cells import CellGrid
from twofold.engine.grid import (
    LEAST_WEIGHT,
    NodeField,
    SpreadRows,
    build_node_grid,
    check_node_grid,
    hidden_pairs,
    pull_at,
    read,
    take_off,
    take_off_pull,
)
from twofold.engine.local_fit import FittedSums, LocalFit
from twofold.engine.plan import SMALL_PROBLEM, Plan, is_crowded, plan
from twofold.engine.threads import count_threads, run_tasks
from twofold.kernels import KERNELS, Kernel

if TYPE_CHECKING:
    from twofold.engine.gpu.references import DeviceReferences

# Given the numbers of some rows, their sums (rows, C) and their shifts (rows,): return the loss of
# each row and U (rows, C), or None where no gradient is wanted.
Answer = tuple[FloatArray, FloatArray | None]
Respond = Callable[[IntArray, FloatArray, FloatArray], Answer]

# Strips own the accumulators of what they push to other rows. Their number is fixed, so that the
# order of additions is the same on any number of threads.
N_STRIPS = 16
LEAST_PAIRS, MOST_PAIRS = 2**16, 2**18
QUERIES_PER_CHUNK = 256
NODE_ROWS = 512  # whose sums over nodes stay in cache
# From which on a GPU is worth the way there: queries of prepared references, pairs of any.
MANY_QUERIES, MANY_PAIRS = 1_000, 2**24
# Dimensions that local polynomials may have on a GPU: moments are many above.
MOST_FITTED_AXES = 3

# Coordinates beyond these, in bandwidths, by bytes of a number: fourth powers of them, which local
# fits of degree 2 add up in double precision, are still numbers, and long before that all
# references are as far away as each other.
FARTHEST = {4: 2.0**60, 8: 2.0**240}

BACKENDS = ("auto", "cpu_dense", "cpu_cells", "cpu_grid")
# How exact sums on a GPU are; see `twofold.engine.gpu.sums`.
PRECISIONS = ("fp32", "tf32", "bf16")


def check_cutoff(cutoff: float) -> None:
    """Raise unless the cutoff is a small positive number."""
    if not is_number(cutoff) or not 0 < cutoff < 0.1:
        raise ValueError(f"`cutoff` must be a number between 0 and 0.1; got {cutoff!r}.")


@dataclass(frozen=True)
class Sums:
    """Sums of some queries: the true sums are ``values * F(shift)`` for an exponential kernel."""

    values: FloatArray  # (m, C), each row relative to its nearest reference if that is far away
    shift: FloatArray  # (m,) the squared distance that the row was shifted by, 0 for most
    slopes: FloatArray  # (m, q, C) derivative by the query's coordinates, empty if not asked for


class KernelSums:
    """Kernel-weighted sums with one kernel, cutoff and number of threads.

    Weights below the cutoff, relative to the largest of the row, are left out (exact for kernels
    with finite support). ``backend``, one of ``BACKENDS``, says how :meth:`evaluate` runs;
    ``device`` is "cpu", or "cuda" where :mod:`twofold.engine.gpu` sums over many pairs, in one of
    the ``PRECISIONS``; kernels of users, and local polynomials over more than three dimensions,
    stay on the CPU.
    """

    def __init__(
        self,
        kernel: Kernel,
        cutoff: float = 1e-6,
        n_jobs: int | None = -1,
        backend: str = "auto",
        device: str = "cpu",
        precision: str = "fp32",
    ) -> None:
        if backend not in BACKENDS:
            raise ValueError(f"`backend` must be one of {BACKENDS}; got {backend!r}.")
        self.kernel = kernel
        self.cutoff = cutoff
        self.n_threads = count_threads(n_jobs)
        self.backend, self.device, self.precision = backend, device, precision
        self.last_plan: Plan | None = None

    def evaluate(
        self,
        queries: FloatArray,
        V: FloatArray,
        respond: Respond,
        *,
        references: FloatArray | None = None,
        hidden: IntArray | None = None,
        local: LocalFit | None = None,
    ) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return the loss of each row and the gradient by queries and by references.

        Without ``references`` the queries are their own references, and the full gradient is the
        sum of the two. ``hidden[j]``, one number or several, are references that query j must not
        see (leave-one-out, leave-K-out), -1 for none. ``local`` fits polynomials.
        """
        refs = queries if references is None else references
        check_finite_points(refs)
        check_finite_points(queries)
        unseen = _lists(hidden, len(queries))
        if unseen.size and unseen.max() >= len(refs):
            raise ValueError(f"`hidden` must be below {len(refs)}; got {unseen.max()}.")
        is_large = len(queries) * len(refs) >= MANY_PAIRS
        if self.device != "cpu" and is_large and is_for_device(self.kernel, refs.shape[1], local):
            from twofold.engine.gpu.references import evaluate_on_device

            return evaluate_on_device(self, queries, V, respond, references, unseen, local)
        grid = None
        if self.backend in ("auto", "cpu_cells") and len(refs) >= SMALL_PROBLEM:
            grid = cells.grid_for(refs, self.kernel, self.cutoff)
        self.last_plan = Plan(self.backend, "asked for")
        if self.backend == "auto":
            self.last_plan = plan(
                refs, self.kernel, self.cutoff, grid, is_local=local is not None, queries=queries
            )
        run: _Run | _NodesRun
        numbers: IntArray = np.arange(len(queries))
        if self.last_plan.backend == "cpu_dense":
            points = np.ascontiguousarray(refs.T)
            run = _DenseRun(self, respond, numbers, queries, unseen, points, V, local)
        elif self.last_plan.backend == "cpu_grid":
            check_node_grid(refs, self.kernel, is_local=local is not None)
            run = _NodesRun(self, respond, queries, V, references, unseen)
        else:
            grid = grid or cells.grid_for(refs, self.kernel, self.cutoff)
            # Queries that are the references are visited in cell order, so that what they share
            # stays in cache and what they push to stays close together.
            numbers = grid.order if references is None else numbers
            run = _over_cells(self, respond, numbers, queries, unseen, V, local, grid)
        return run.finished(run_tasks(run.strip, run.strips(), self.n_threads))


class PreparedReferences:
    """References sorted into cells once, for many calls with other queries.

    Rows are summed one at a time, so that a row gives the same result alone or among others. The
    references (n, q) carry rows ``V`` (n, C); ``widths`` (n,) are their bandwidths, None for 1.
    """

    def __init__(
        self,
        engine: KernelSums,
        references: FloatArray,
        V: FloatArray,
        widths: FloatArray | None = None,
        local: LocalFit | None = None,
    ) -> None:
        self.engine = engine
        # The grid works in units of the widest kernel, in which every reach is at most that one's.
        self.unit = 1.0 if widths is None else float(widths.max())
        references = (references / self.unit).astype(V.dtype)
        self.grid = cells.grid_for(references, engine.kernel, engine.cutoff)
        self.V = np.ascontiguousarray(V[self.grid.order])
        self.local = None if local is None else local.sorted_by(self.grid.order)
        self.place = _places(self.grid.order)
        self.shrink = np.empty(0, dtype=V.dtype)
        if widths is not None:
            self.shrink = ((self.unit / widths[self.grid.order]) ** 2).astype(V.dtype)
        self.is_crowded = (
            local is None and widths is None and is_crowded(self.grid, engine.kernel, engine.cutoff)
        )

    @cached_property
    def on_device(self) -> "DeviceReferences | None":
        """The same references on a GPU, where one is wanted and knows how to sum over them."""
        engine, points = self.engine, self.grid.points
        is_known = is_for_device(engine.kernel, len(points), self.local)
        if engine.device == "cpu" or self.shrink.size or not is_known:
            return None
        from twofold.engine.gpu.references import DeviceReferences

        return DeviceReferences(engine, points.T, self.V, self.local)

    @cached_property
    def _nodes(self) -> NodeField:
        points, engine = np.ascontiguousarray(self.grid.points.T), self.engine
        return NodeField(points, self.V, engine.kernel, engine.cutoff, engine.n_threads)

    def at(
        self, queries: FloatArray, *, hidden: IntArray | None = None, slopes: bool = False
    ) -> Sums:
        """Return the sums at ``queries`` (m, q), with their derivative if asked for.

        ``hidden[j]``, one number or several, are references that query j must not see.
        """
        queries = self._in_units(queries)
        m, q, n_columns = len(queries), self.grid.points.shape[0], self.V.shape[1]
        unseen = self.place[_lists(hidden, m)]
        if self.on_device is not None and m >= MANY_QUERIES:
            return Sums(*self.on_device.at(queries, unseen, slopes=slopes))
        sums = Sums(
            np.zeros((m, n_columns), dtype=self.V.dtype),
            np.zeros(m, dtype=self.V.dtype),
            np.zeros((m, q, n_columns) if slopes else (0, q, n_columns), dtype=self.V.dtype),
        )

        nodes = self._nodes if self.is_crowded else None  # before there are threads

        def work(rows: slice) -> None:
            places: IntArray = np.arange(rows.start, rows.stop)
            if nodes is not None:
                answered = nodes.read(queries[rows], unseen[rows], sums.values[rows])
                if slopes:
                    some = places[answered]
                    sums.slopes[some] = nodes.slopes(queries[some], unseen[some])
                places = places[~answered]
            if len(places):
                self._over_pairs(places, queries[places], unseen[places], sums)

        run_tasks(work, _slices(m, QUERIES_PER_CHUNK), self.engine.n_threads)
        return sums

    def _over_pairs(
        self, places: IntArray, queries: FloatArray, hidden: IntArray, sums: Sums
    ) -> None:
        """Write the sums of some queries, with their derivative if there is room for it."""
        pairs = self._pairs(queries, hidden)
        found = _sums_of(pairs, queries, self.grid.points, self.V, self.local)
        sums.shift[places] = pairs.shift
        if len(sums.slopes):
            sums.values[places], slopes = found.values_and_slopes()
            sums.slopes[places] = slopes if self.unit == 1 else slopes / self.unit
        else:
            sums.values[places] = found.values()

    def basis(self, queries: FloatArray, fit: LocalFit) -> csr_array:
        """Return the weight of every reference at ``queries`` under a fit of one group, (m, n)."""
        queries = self._in_units(queries)
        order = self.grid.order
        fit = fit.sorted_by(order)

        def work(rows: slice) -> csr_array:
            some = queries[rows]
            pairs = self._pairs(some, _lists(None, len(some)))
            weight = FittedSums(pairs, some, self.grid.points, self.V, fit).weights()
            shape = len(some), len(order)
            return csr_array((weight, order[pairs.reference], pairs.first), shape=shape)

        tasks = _slices(len(queries), QUERIES_PER_CHUNK) or [slice(0, 0)]
        return vstack(run_tasks(work, tasks, self.engine.n_threads), format="csr")

    def _in_units(self, queries: FloatArray) -> FloatArray:
        """Return queries in the unit of the grid; beyond ``FARTHEST`` all places are alike."""
        dtype = self.V.dtype
        farthest = FARTHEST[dtype.itemsize]
        with np.errstate(over="ignore"):
            scaled = np.clip(queries / self.unit, -farthest, farthest)
        return np.ascontiguousarray(scaled, dtype=dtype)

    def _pairs(self, queries: FloatArray, hidden: IntArray) -> cells.Pairs:
        kernel, cutoff = self.engine.kernel, self.engine.cutoff
        return cells.list_pairs(self.grid, queries, hidden, kernel, cutoff, self.shrink)


def is_for_device(kernel: Kernel, q: int, local: LocalFit | None) -> bool:
    """Say whether a GPU knows these sums over q dimensions."""
    is_known = KERNELS.get(kernel.name) is kernel
    return is_known and (local is None or q <= MOST_FITTED_AXES)


def _lists(hidden: IntArray | None, n: int) -> IntArray:
    """Return what is hidden from each of n queries as a table (n, K)."""
    return np.full((n, 1), -1) if hidden is None else hidden.reshape(n, -1)


def _places(order: IntArray) -> IntArray:
    """Return where each reference is in an order; the last entry answers for -1, none."""
    place = np.empty(len(order) + 1, dtype=np.int64)
    place[order], place[-1] = np.arange(len(order)), -1
    return place


def _slices(n: int, size: int) -> list[slice]:
    return [slice(start, min(start + size, n)) for start in range(0, n, size)]


def _strips(blocks: list[slice]) -> list[list[slice]]:
    """Deal blocks of rows out to a fixed number of strips of neighbouring blocks."""
    bounds = np.linspace(0, len(blocks), min(N_STRIPS, len(blocks)) + 1).astype(int)
    return [blocks[a:b] for a, b in pairwise(bounds)]


BlockSums = cells.PlainSums | FittedSums | dense.DenseSums


def _sums_of(
    pairs: cells.Pairs,
    queries: FloatArray,
    points: FloatArray,
    V: FloatArray,
    local: LocalFit | None,
) -> cells.PlainSums | FittedSums:
    if local is None:
        return cells.PlainSums(pairs, queries, points, V)
    return FittedSums(pairs, queries, points, V, local)


@dataclass(eq=False)
class _Run(ABC):
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


class _DenseRun(_Run):
    """One evaluation of all pairs."""

    def strips(self) -> list[list[slice]]:
        size = dense.block_rows(self.points.shape[1], self.V.itemsize)  # stays in cache
        return _strips(_slices(len(self.queries), size))

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
class _CellsRun(_Run):
    """One evaluation over lists of near pairs, with references in the order of a grid."""

    grid: CellGrid

    @property
    def order(self) -> IntArray:
        """The order of the grid."""
        return self.grid.order

    def strips(self) -> list[list[slice]]:
        total = np.cumsum(self.grid.kept * cells.candidates_of(self.grid, self.queries))
        # Small problems are cut finer, so that there is something for every thread.
        size = int(np.clip(total[-1] // N_STRIPS, LEAST_PAIRS, MOST_PAIRS))
        cuts = np.searchsorted(total, np.arange(size, total[-1], size))
        bounds = np.unique(np.concatenate([[0], cuts + 1, [len(total)]]))
        return _strips([slice(int(a), int(b)) for a, b in pairwise(bounds)])

    def sums(self, rows: slice, scratch: FloatArray) -> tuple[BlockSums, FloatArray]:
        queries, one_width = self.queries[rows], np.empty(0, dtype=self.V.dtype)
        kernel, cutoff = self.engine.kernel, self.engine.cutoff
        hidden = self.hidden[rows]
        pairs = cells.list_pairs(self.grid, queries, hidden, kernel, cutoff, one_width)
        return _sums_of(pairs, queries, self.points, self.V, self.local), pairs.shift


def _over_cells(
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
    unseen = _places(order)[hidden[numbers]]
    local = None if local is None else local.sorted_by(order)
    own = queries[numbers]
    sorted_V = np.take(V, order, axis=0)  # a third of the time of V[order]
    return _CellsRun(engine, respond, numbers, own, unseen, grid.points, sorted_V, local, grid)


class _NodesRun:
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
        (low, high), (own_low, own_high) = cells.corners(refs), cells.corners(queries)
        low = np.minimum(low, own_low).astype(np.float64)
        high = np.maximum(high, own_high).astype(np.float64)
        self.grid = build_node_grid(low, high, engine.kernel, engine.cutoff)
        self.sources = SpreadRows(refs, self.grid, engine.n_threads)
        self.targets = self.sources
        if references is not None:
            self.targets = SpreadRows(queries, self.grid, engine.n_threads)
        self.unseen = _places(self.sources.order)[hidden[self.targets.order]]
        # One more column counts what lies around each query.
        ones = np.ones_like(V[:, :1])
        self.V = np.concatenate([V, ones], axis=1)[self.sources.order]
        self.field = self.sources.field(self.V)
        self.losses = np.zeros(len(queries), dtype=queries.dtype)
        self.grad_queries = np.zeros_like(queries)  # in the order of the nodes, until the end
        self.U = np.zeros((len(queries), V.shape[1] + 1), dtype=V.dtype)
        self.is_sparse = np.zeros(len(queries), dtype=bool)
        self.wants_gradient = False

    def strips(self) -> list[list[slice]]:
        """Cut the queries into blocks, and those into strips."""
        return _strips(_slices(len(self.queries), NODE_ROWS))

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
        run = _over_cells(self.engine, respond, numbers, queries, hidden, V, None, grid)
        found = run.finished(run_tasks(run.strip, run.strips(), self.engine.n_threads))
        self.losses[sparse], by_query[sparse], by_reference = found
        return by_reference
