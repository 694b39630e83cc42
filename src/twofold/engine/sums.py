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

from copy import copy
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.sparse import csr_array, vstack

from twofold.array_types import FloatArray, IntArray
from twofold.checks.parameters import check_choice, is_number
from twofold.checks.rows import check_finite_points
from twofold.engine import cells
from twofold.engine.grid import (
    NodeField,
    check_node_grid,
)
from twofold.engine.local_fit import FittedSums, LocalFit
from twofold.engine.plan import SMALL_PROBLEM, Plan, is_crowded, plan
from twofold.engine.runs import (
    NodesRun,
    Respond,
    StripRun,
    over_all_pairs,
    over_cells,
    places_in,
    sums_of,
)
from twofold.engine.threads import count_threads, run_tasks, slices
from twofold.kernels import KERNELS, Kernel

if TYPE_CHECKING:
    from twofold.engine.gpu.references import DeviceReferences

QUERIES_PER_CHUNK = 256
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
        check_choice("backend", backend, BACKENDS)
        self.kernel = kernel
        self.cutoff = cutoff
        self.n_threads = count_threads(n_jobs)
        self.backend, self.device, self.precision = backend, device, precision
        self.last_plan: Plan | None = None

    def with_cutoff(self, cutoff: float) -> "KernelSums":
        """Return the same with another cutoff."""
        other = copy(self)
        other.cutoff, other.last_plan = cutoff, None
        return other

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
        is_large = len(queries) * len(refs) >= MANY_PAIRS
        if self.device != "cpu" and is_large and is_for_device(self.kernel, refs.shape[1], local):
            from twofold.engine.gpu.references import evaluate_on_device

            unseen = _checked_lists(hidden, queries, refs)
            return evaluate_on_device(self, queries, V, respond, references, unseen, local)
        run = self.begin(queries, V, respond, references=references, hidden=hidden, local=local)
        return run.finished(run_tasks(run.strip, run.strips(), self.n_threads))

    def begin(
        self,
        queries: FloatArray,
        V: FloatArray,
        respond: Respond,
        *,
        references: FloatArray | None = None,
        hidden: IntArray | None = None,
        local: LocalFit | None = None,
    ) -> "StripRun | NodesRun":
        """Return what :meth:`evaluate` does on the CPU: strips of rows, and how to add them up."""
        refs = queries if references is None else references
        unseen = _checked_lists(hidden, queries, refs)
        grid = None
        if self.backend in ("auto", "cpu_cells") and len(refs) >= SMALL_PROBLEM:
            grid = cells.grid_for(refs, self.kernel, self.cutoff)
        self.last_plan = Plan(self.backend, "asked for")
        if self.backend == "auto":
            self.last_plan = plan(
                refs, self.kernel, self.cutoff, grid, is_local=local is not None, queries=queries
            )
        if self.last_plan.backend == "cpu_dense":
            return over_all_pairs(self, respond, queries, unseen, V, local, refs)
        if self.last_plan.backend == "cpu_grid":
            check_node_grid(refs, self.kernel, is_local=local is not None)
            return NodesRun(self, respond, queries, V, references, unseen)
        grid = grid or cells.grid_for(refs, self.kernel, self.cutoff)
        # Queries that are the references are visited in cell order, so that what they share stays
        # in cache and what they push to stays close together.
        numbers = grid.order if references is None else np.arange(len(queries))
        return over_cells(self, respond, numbers, queries, unseen, V, local, grid)


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
        self.place = places_in(self.grid.order)
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

        run_tasks(work, slices(m, QUERIES_PER_CHUNK), self.engine.n_threads)
        return sums

    def at_tensor(self, queries: Any, *, slopes: bool = False, is_sorted: bool = False) -> Any:
        """Return sums, shifts and slopes at queries that are a tensor on the device of the sums."""
        assert self.on_device is not None
        return self.on_device.at_tensor(queries, slopes=slopes, is_sorted=is_sorted)

    def _over_pairs(
        self, places: IntArray, queries: FloatArray, hidden: IntArray, sums: Sums
    ) -> None:
        """Write the sums of some queries, with their derivative if there is room for it."""
        pairs = self._pairs(queries, hidden)
        found = sums_of(pairs, queries, self.grid.points, self.V, self.local)
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

        tasks = slices(len(queries), QUERIES_PER_CHUNK) or [slice(0, 0)]
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


def _checked_lists(hidden: IntArray | None, queries: FloatArray, refs: FloatArray) -> IntArray:
    """Return the same; raise if a point is no number, or a reference that is hidden is not one."""
    check_finite_points(refs)
    check_finite_points(queries)
    unseen = _lists(hidden, len(queries))
    if unseen.size and unseen.max() >= len(refs):
        raise ValueError(f"`hidden` must be below {len(refs)}; got {unseen.max()}.")
    return unseen
