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
from itertools import pairwise

import numpy as np

from twofold.array_types import FloatArray, IntArray
from twofold.checks.parameters import is_number
from twofold.checks.rows import check_finite_points
from twofold.engine import cells, dense
from twofold.engine.cells import GRIDDED, CellGrid
from twofold.engine.local_fit import FittedSums, LocalFit
from twofold.engine.plan import Plan, plan
from twofold.engine.threads import count_threads, run_tasks
from twofold.kernels import Kernel

# Given the numbers of some rows, their sums (rows, C) and their shifts (rows,): return the loss of
# each row and U (rows, C), or None where no gradient is wanted.
Respond = Callable[[IntArray, FloatArray, FloatArray], tuple[FloatArray, FloatArray | None]]

# Strips own the accumulators of what they push to other rows. Their number is fixed, so that the
# order of additions is the same on any number of threads.
N_STRIPS = 16
LEAST_PAIRS, MOST_PAIRS = 2**16, 2**18
QUERIES_PER_CHUNK = 256

# Coordinates beyond these, in bandwidths, by bytes of a number: fourth powers of them, which local
# fits of degree 2 add up in double precision, are still numbers, and long before that all
# references are as far away as each other.
FARTHEST = {4: 2.0**60, 8: 2.0**240}

BACKENDS = ("auto", "cpu_dense", "cpu_cells")


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
    with finite support). ``backend``, one of ``BACKENDS``, says how :meth:`evaluate` runs.
    """

    def __init__(
        self, kernel: Kernel, cutoff: float = 1e-6, n_jobs: int | None = -1, backend: str = "auto"
    ) -> None:
        if backend not in BACKENDS:
            raise ValueError(f"`backend` must be one of {BACKENDS}; got {backend!r}.")
        self.kernel = kernel
        self.cutoff = cutoff
        self.n_threads = count_threads(n_jobs)
        self.backend = backend
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
        grid = None
        if self.backend != "cpu_dense" and refs.shape[1] <= GRIDDED:
            grid = cells.grid_for(refs, self.kernel, self.cutoff)
        self.last_plan = Plan(self.backend, "asked for")
        if self.backend == "auto":
            is_local = local is not None
            self.last_plan = plan(refs, self.kernel, self.cutoff, grid, is_local=is_local)
        unseen = _lists(hidden, len(queries))
        if unseen.size and unseen.max() >= len(refs):
            raise ValueError(f"`hidden` must be below {len(refs)}; got {unseen.max()}.")
        run: _Run
        order: IntArray | slice = slice(None)
        numbers: IntArray = np.arange(len(queries))
        if self.last_plan.backend == "cpu_dense":
            points = np.ascontiguousarray(refs.T)
            run = _DenseRun(self, respond, numbers, queries, unseen, points, V, local)
        else:
            grid = grid or cells.grid_for(refs, self.kernel, self.cutoff)
            order = grid.order
            # Queries that are the references are visited in cell order, so that what they share
            # stays in cache and what they push to stays close together.
            numbers = order if references is None else numbers
            unseen = _places(order)[unseen[numbers]]
            local = None if local is None else local.sorted_by(order)
            own = queries[numbers]
            run = _CellsRun(self, respond, numbers, own, unseen, grid.points, V[order], local, grid)
        pushes = run_tasks(run.strip, run.strips(), self.n_threads)
        # Added in the order of the strips, not in that in which threads were done.
        by_reference = np.empty_like(refs, order="C")
        by_reference[order] = sum(pushes[1:], start=pushes[0]).T
        return run.losses, run.grad_queries, by_reference


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

    def at(
        self, queries: FloatArray, *, hidden: IntArray | None = None, slopes: bool = False
    ) -> Sums:
        """Return the sums at ``queries`` (m, q), with their derivative if asked for.

        ``hidden[j]``, one number or several, are references that query j must not see.
        """
        queries = self._in_units(queries)
        m, q, n_columns = len(queries), self.grid.points.shape[0], self.V.shape[1]
        unseen = self.place[_lists(hidden, m)]
        sums = Sums(
            np.zeros((m, n_columns), dtype=self.V.dtype),
            np.zeros(m, dtype=self.V.dtype),
            np.zeros((m, q, n_columns) if slopes else (0, q, n_columns), dtype=self.V.dtype),
        )

        def work(rows: slice) -> None:
            pairs = self._pairs(queries[rows], unseen[rows])
            found = _sums_of(pairs, queries[rows], self.grid.points, self.V, self.local)
            sums.shift[rows], sums.values[rows] = pairs.shift, found.values()
            if slopes:
                found.slopes(sums.slopes[rows])
                sums.slopes[rows] /= self.unit

        run_tasks(work, _slices(m, QUERIES_PER_CHUNK), self.engine.n_threads)
        return sums

    def basis(self, queries: FloatArray, fit: LocalFit) -> FloatArray:
        """Return the weight of every reference at ``queries`` under a fit of one group, (m, n)."""
        queries = self._in_units(queries)
        B = np.zeros((len(queries), len(self.V)), dtype=self.V.dtype)
        order = self.grid.order
        fit = fit.sorted_by(order)

        def work(rows: slice) -> None:
            some = queries[rows]
            pairs = self._pairs(some, _lists(None, len(some)))
            weight = FittedSums(pairs, some, self.grid.points, self.V, fit).weights()
            owner = np.repeat(np.arange(len(some)), np.diff(pairs.first))
            B[rows][owner, order[pairs.reference]] = weight

        run_tasks(work, _slices(len(queries), QUERIES_PER_CHUNK), self.engine.n_threads)
        return B

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

    @abstractmethod
    def strips(self) -> list[list[slice]]:
        """Cut the rows into blocks, and those into strips."""

    @abstractmethod
    def sums(self, rows: slice, scratch: FloatArray) -> tuple[BlockSums, FloatArray]:
        """Return the sums of a block and its shift; ``scratch`` (2, rows, n) is for dense ones."""

    def scratch(self, n_rows: int) -> FloatArray:
        """Return memory that the blocks of a strip share."""
        return np.empty((2, 0, 0))

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

    def strips(self) -> list[list[slice]]:
        kernel, cutoff = self.engine.kernel, self.engine.cutoff
        total = np.cumsum(cells.candidates_of(self.grid, self.queries, kernel, cutoff))
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
