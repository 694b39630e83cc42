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

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from twofold.array_types import FloatArray, IntArray
from twofold.checks.numbers import is_number
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
    """Sums of some queries: the true sums are ``values * F(shift)`` for an exponential kernel.

    Attributes
    ----------
    values : (m, C) sums, each row weighed relative to its nearest reference if that is far away
    shift : (m,) the squared distance that the row was shifted by, 0 for most
    slopes : (m, q, C) derivative of ``values`` by the query's coordinates, empty if not asked for
    """

    values: FloatArray
    shift: FloatArray
    slopes: FloatArray


class KernelSums:
    """Kernel-weighted sums with one kernel, cutoff and number of threads.

    Parameters
    ----------
    kernel : Kernel
    cutoff : float
        Weights below this, relative to the largest of the row, are left out (exact for kernels
        with finite support).
    n_jobs : int or None
        Threads: -1 for every core, None for one. The result does not depend on it.
    backend : {"auto", "cpu_dense", "cpu_cells"}
        How :meth:`evaluate` runs.
    """

    def __init__(
        self,
        kernel: Kernel,
        cutoff: float = 1e-6,
        n_jobs: int | None = -1,
        backend: str = "auto",
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
        self.last_plan = self._plan(refs, grid, local is not None)
        losses = np.empty(len(queries), dtype=queries.dtype)
        unseen = _lists(hidden, len(queries))
        if unseen.size and unseen.max() >= len(refs):
            raise ValueError(f"`hidden` must be below {len(refs)}; got {unseen.max()}.")
        run: _DenseRun | _CellsRun
        if self.last_plan.backend == "cpu_dense":
            run = _DenseRun(self, queries, refs, V, respond, unseen, losses, local)
        else:
            grid = grid or cells.grid_for(refs, self.kernel, self.cutoff)
            run = _CellsRun(
                self, grid, queries, V, respond, unseen, losses, references is None, local
            )
        pushes = run_tasks(run.strip, run.strips(), self.n_threads)
        return losses, run.grad_queries, run.collect(pushes)

    def _plan(self, references: FloatArray, grid: CellGrid | None, is_local: bool) -> Plan:
        if self.backend == "auto":
            return plan(references, self.kernel, self.cutoff, grid, is_local=is_local)
        return Plan(self.backend, "asked for")


class PreparedReferences:
    """References sorted into cells once, for many calls with other queries.

    Rows are summed one at a time, so that a row gives the same result alone or among others.

    Parameters
    ----------
    engine : KernelSums
    references : (n, q)
    V : (n, C) rows the references carry
    widths : (n,) bandwidth of each reference, or None for 1 everywhere
    local : LocalFit or None for plain sums
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
            self._fill(queries[rows], unseen[rows], rows, sums, slopes)

        run_tasks(work, _slices(m, QUERIES_PER_CHUNK), self.engine.n_threads)
        return sums

    def basis(self, queries: FloatArray, fit: LocalFit) -> FloatArray:
        """Return the weight of every reference at ``queries`` under a fit of one group, (m, n)."""
        queries = self._in_units(queries)
        B = np.zeros((len(queries), len(self.V)), dtype=self.V.dtype)
        fit, order = fit.sorted_by(self.grid.order), self.grid.order
        kernel, cutoff = self.engine.kernel, self.engine.cutoff

        def work(rows: slice) -> None:
            unseen = np.full((rows.stop - rows.start, 1), -1)
            some = queries[rows]
            pairs = cells.list_pairs(self.grid, some, unseen, kernel, cutoff, self.shrink)
            weight = FittedSums(pairs, some, self.grid.points, self.V, fit).weights()
            owner = np.repeat(np.arange(len(some)), np.diff(pairs.first))
            B[rows][owner, order[pairs.index]] = weight

        run_tasks(work, _slices(len(queries), QUERIES_PER_CHUNK), self.engine.n_threads)
        return B

    def _in_units(self, queries: FloatArray) -> FloatArray:
        """Return queries in the unit of the grid; beyond ``FARTHEST`` all places are alike."""
        dtype = self.V.dtype
        farthest = FARTHEST[dtype.itemsize]
        with np.errstate(over="ignore"):
            scaled = np.clip(queries / self.unit, -farthest, farthest)
        return np.ascontiguousarray(scaled, dtype=dtype)

    def _fill(
        self, queries: FloatArray, hidden: IntArray, rows: slice, sums: Sums, slopes: bool
    ) -> None:
        kernel, cutoff = self.engine.kernel, self.engine.cutoff
        pairs = cells.list_pairs(self.grid, queries, hidden, kernel, cutoff, self.shrink)
        sums.shift[rows] = pairs.shift
        if self.local is not None:
            fitted = FittedSums(pairs, queries, self.grid.points, self.V, self.local)
            sums.values[rows] = fitted.values()
            if slopes:
                fitted.slopes(sums.slopes[rows])
                sums.slopes[rows] /= self.unit
            return
        cells.add_weighted_rows(pairs.first, pairs.index, pairs.weight, self.V, sums.values[rows])
        if slopes:
            derivative = sums.slopes[rows]
            cells.add_slopes(
                pairs.first, pairs.index, pairs.slope, queries, self.grid.points, self.V, derivative
            )
            derivative /= self.unit


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


def _total(pushes: list[FloatArray]) -> FloatArray:
    total = pushes[0]
    for push in pushes[1:]:
        total += push
    return total


class _DenseRun:
    """One evaluation by blocks of rows."""

    def __init__(
        self,
        engine: KernelSums,
        queries: FloatArray,
        references: FloatArray,
        V: FloatArray,
        respond: Respond,
        hidden: IntArray,
        losses: FloatArray,
        local: LocalFit | None,
    ) -> None:
        self.kernel, self.cutoff, self.respond = engine.kernel, engine.cutoff, respond
        self.local = local
        self.queries = np.ascontiguousarray(queries)
        self.points = np.ascontiguousarray(references.T)
        self.V, self.hidden, self.losses = np.ascontiguousarray(V), hidden, losses
        self.grad_queries = np.zeros_like(self.queries)

    def strips(self) -> list[list[slice]]:
        """Cut the rows into blocks that stay in cache, and those into strips."""
        size = dense.block_rows(self.points.shape[1], self.V.itemsize)
        return _strips(_slices(len(self.queries), size))

    def strip(self, blocks: list[slice]) -> FloatArray:
        """Evaluate some blocks; return what they push to the references, (q, n)."""
        n, n_rows = self.points.shape[1], blocks[0].stop - blocks[0].start
        scratch = np.empty((2, n_rows, n), dtype=self.V.dtype)
        push = np.zeros_like(self.points)
        for rows in blocks:
            size = rows.stop - rows.start
            queries, hidden = self.queries[rows], self.hidden[rows]
            weight, slope, shift = dense.weigh_block(
                queries, self.points, hidden, self.kernel, self.cutoff, scratch[0, :size]
            )
            numbers = np.arange(rows.start, rows.stop)
            if self.local is not None:
                pairs = dense.as_pairs(weight, slope, shift)
                fitted = FittedSums(pairs, queries, self.points, self.V, self.local)
                self.losses[rows], U = self.respond(numbers, fitted.values(), shift)
                if U is not None:
                    fitted.pull(U, self.grad_queries[rows], push)
                continue
            self.losses[rows], U = self.respond(numbers, weight @ self.V, shift)
            if U is not None:
                pull = np.matmul(U, self.V.T, out=scratch[1, :size])
                dense.pull_block(queries, self.points, slope, pull, self.grad_queries[rows], push)
        return push

    def collect(self, pushes: list[FloatArray]) -> FloatArray:
        """Add up what the strips pushed, in their order."""
        return np.ascontiguousarray(_total(pushes).T)


class _CellsRun:
    """One evaluation over lists of near pairs."""

    def __init__(
        self,
        engine: KernelSums,
        grid: CellGrid,
        queries: FloatArray,
        V: FloatArray,
        respond: Respond,
        hidden: IntArray,
        losses: FloatArray,
        itself: bool,
        local: LocalFit | None,
    ) -> None:
        self.kernel, self.cutoff, self.respond = engine.kernel, engine.cutoff, respond
        self.grid = grid
        order = self.grid.order
        self.V = np.ascontiguousarray(V[order])
        self.local = None if local is None else local.sorted_by(order)
        # Queries that are the references are visited in cell order, so that what they share
        # stays in cache and what they push to stays close together.
        self.visit = order if itself else np.arange(len(queries))
        self.queries = np.ascontiguousarray(queries[self.visit])
        self.hidden = _places(order)[hidden[self.visit]]
        self.losses, self.grad_queries = losses, np.zeros_like(self.queries)

    def strips(self) -> list[list[slice]]:
        """Cut the rows into chunks of a bounded number of pairs, and those into strips."""
        total = np.cumsum(cells.candidates_of(self.grid, self.queries, self.kernel, self.cutoff))
        # Small problems are cut finer, so that there is something for every thread.
        size = int(np.clip(total[-1] // N_STRIPS, LEAST_PAIRS, MOST_PAIRS))
        cuts = np.searchsorted(total, np.arange(size, total[-1], size))
        bounds = np.unique(np.concatenate([[0], cuts + 1, [len(total)]]))
        return _strips([slice(int(a), int(b)) for a, b in pairwise(bounds)])

    def strip(self, chunks: list[slice]) -> FloatArray:
        """Evaluate some chunks; return what they push to the references, (q, n)."""
        # Zeroed pages that are never touched cost nothing, and a strip touches few.
        points, push = self.grid.points, np.zeros_like(self.grid.points)
        uniform = np.empty(0, dtype=self.V.dtype)
        for rows in chunks:
            queries, numbers = self.queries[rows], self.visit[rows]
            pairs = cells.list_pairs(
                self.grid, queries, self.hidden[rows], self.kernel, self.cutoff, uniform
            )
            if self.local is not None:
                fitted = FittedSums(pairs, queries, points, self.V, self.local)
                self.losses[numbers], U = self.respond(numbers, fitted.values(), pairs.shift)
                if U is not None:
                    grad = np.zeros_like(queries)
                    fitted.pull(U, grad, push)
                    self.grad_queries[numbers] = grad
                continue
            first, index = pairs.first, pairs.index
            A = np.zeros((len(queries), self.V.shape[1]), dtype=self.V.dtype)
            cells.add_weighted_rows(first, index, pairs.weight, self.V, A)
            self.losses[numbers], U = self.respond(numbers, A, pairs.shift)
            if U is not None:
                grad = np.zeros_like(queries)
                cells.pull_pairs(first, index, pairs.slope, queries, points, self.V, U, grad, push)
                self.grad_queries[numbers] = grad
        return push

    def collect(self, pushes: list[FloatArray]) -> FloatArray:
        """Add up what the strips pushed, in their order, and undo the sorting."""
        total = _total(pushes)
        unsorted = np.empty((total.shape[1], total.shape[0]), dtype=total.dtype)
        unsorted[self.grid.order] = total.T
        return unsorted
