"""The back end ``cpu_grid``: sums over a regular grid, where very many points lie within reach.

Rows are spread onto the nodes of a grid by local interpolation weights W, the kernel acts between
nodes, axis by axis, and sums are read off with the same weights:

    A ≈ W_x (K ⊗ … ⊗ K) W_zᵀ V        (x the queries, z the references that carry V)

and with ``U = dR/dA`` the way back is

    dR/dx_j = Σ_nodes (∂W_j/∂x) · [K W_zᵀ V] · U_j
    dR/dz_i = Σ_nodes (∂W_i/∂z) · [K W_xᵀ U] · V_i.

Every step is linear in the number of points, whatever the share of pairs within reach. What is
hidden from a query is taken off as the grid has put it on, ``w_ji = (W_x K W_zᵀ)_ji``, so that
nothing of it is left, and the gradient is that of the sums as they are.

W is Lagrange's interpolation through the six nearest nodes of an axis; its error falls with the
sixth power of the spacing. Interpolation is good compared with what a kernel weighs nearby, not
with its farthest tail: queries with hardly any weight around them are summed over pairs instead.
Only exponential kernels are products over the axes.

Related: the particle-mesh sums of physics, FIt-SNE's interpolation on a grid (Linderman et al.
2019) and the fast Gauss transform (Greengard and Strain 1991).
"""

import math
from collections.abc import Callable
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from twofold.array_types import BoolArray, FloatArray, IntArray
from twofold.compiled import compiled, compiled_into_callers
from twofold.engine.cells import corners
from twofold.engine.threads import run_tasks
from twofold.kernels import Kernel

# Nodes of an axis that a point is spread to; the loops below are written out for six.
NODES = 6
AXES = 3
# With this spacing, in half widths of the kernel, the relative error of a regression is about
# ``ERROR`` (root mean square); it falls with the sixth power.
SPACING, ERROR = 0.28, 5e-6
# References, as many as weigh one, that must lie around a query.
LEAST_WEIGHT = 1.0
# Lines of nodes that one product brings forth, columns that one task takes on, strips of rows.
BLOCK_LINES, BLOCK_COLUMNS, N_STRIPS, LEAST_ROWS = 64, 2_048, 16, 512


class NodeGrid(NamedTuple):
    """Where nodes are, and what the kernel weighs between them; axes fill from the back."""

    origin: FloatArray  # (3,) the first node of each axis
    spacing: float
    shape: IntArray  # (3,) nodes along each axis, 1 where there is none
    n_axes: int
    weights: FloatArray  # (6, 6) polynomials of the interpolation weights, lowest power first
    slopes: FloatArray  # (6, 6) their derivatives, by coordinates
    falloff: FloatArray  # (lines,) kernel between nodes, by lines apart; zero beyond its reach

    @property
    def n_nodes(self) -> int:
        """The number of nodes."""
        return int(self.shape.prod())


def spacing_for(kernel: Kernel, cutoff: float) -> float:
    """Return the spacing at which the error of a regression is about five times the cutoff."""
    finer = (5 * cutoff / ERROR) ** (1 / NODES)
    return SPACING * kernel.half_width() * min(finer, 1.5)


def count_nodes(low: FloatArray, high: FloatArray, spacing: float) -> float:
    """Return how many nodes, as a float, a grid over that box has."""
    return float(np.prod(np.floor((high - low) / spacing) + NODES + 1.0))


def build_node_grid(low: FloatArray, high: FloatArray, kernel: Kernel, cutoff: float) -> NodeGrid:
    """Return a grid that any point of the box from ``low`` to ``high`` (q,) can be spread to."""
    reach = kernel.reach(cutoff)

    def falloff(distance: FloatArray) -> FloatArray:
        return np.where(distance**2 > reach, 0, kernel.value(distance**2))

    return nodes_over(low, high, spacing_for(kernel, cutoff), falloff)


def nodes_over(
    low: FloatArray, high: FloatArray, spacing: float, falloff: Callable[[FloatArray], FloatArray]
) -> NodeGrid:
    """Return a grid of that spacing, and what ``falloff`` weighs at distances (lines,)."""
    q = len(low)
    shape, origin = np.ones(AXES, dtype=np.int64), np.zeros(AXES)
    shape[-q:] = np.floor((high - low) / spacing).astype(np.int64) + NODES + 1
    origin[-q:] = low - (NODES // 2) * spacing
    weights = _interpolation()
    powers = np.arange(1, NODES)
    slopes = np.zeros_like(weights)
    slopes[:, :-1] = weights[:, 1:] * powers / spacing
    lines = falloff(spacing * np.arange(shape.max() + NODES))
    return NodeGrid(origin, spacing, shape, q, weights, slopes, lines)


def check_node_grid(references: FloatArray, kernel: Kernel, *, is_local: bool) -> None:
    """Raise where sums over nodes are not possible."""
    if references.shape[1] > AXES or not kernel.is_exponential or is_local:
        raise ValueError(
            f"The back end 'cpu_grid' sums with exponential kernels, of degree 0, in up to {AXES} "
            f"dimensions; got the kernel {kernel.name!r} in {references.shape[1]}"
            f"{' with local polynomials' if is_local else ''}. Use 'auto'."
        )


def _interpolation() -> FloatArray:
    """Return Lagrange's polynomials (6, 6) through the nodes around an interval, from its middle.

    The interval lies between the third node and the fourth.
    """
    nodes = np.arange(NODES) - (NODES - 1) / 2
    polynomials = np.empty((NODES, NODES))
    for k in range(NODES):
        others = np.delete(nodes, k)
        polynomials[k] = np.poly(others)[::-1] / np.prod(nodes[k] - others)
    return polynomials


@compiled_into_callers
def _weigh(x: FloatArray, grid: NodeGrid, w: FloatArray, dw: FloatArray, base: IntArray) -> int:
    """Write weights and slopes (3, 6) of a point, the first node of each axis; return its number.

    An axis that there is not has one node, of weight 1.
    """
    node = 0
    for axis in range(3):
        m = x.shape[0] - 3 + axis
        if m < 0:
            w[axis, 0], dw[axis, 0], base[axis] = 1.0, 0.0, 0
            continue
        t = (x[m] - grid.origin[axis]) / grid.spacing
        below = math.floor(t)
        v = t - below - 0.5
        for k in range(6):
            value, slope = 0.0, 0.0
            for e in range(5, -1, -1):
                value = value * v + grid.weights[k, e]
                slope = slope * v + grid.slopes[k, e]
            w[axis, k], dw[axis, k] = value, slope
        base[axis] = int(below) - 2
        node = node * grid.shape[axis] + base[axis]
    return node


@compiled
def _first_nodes(points: FloatArray, grid: NodeGrid) -> IntArray:
    """Return the number that `_weigh` returns for each point."""
    nodes = np.zeros(points.shape[0], dtype=np.int64)
    for i in range(points.shape[0]):
        for m in range(points.shape[1]):
            axis = m + 3 - points.shape[1]
            below = math.floor((points[i, m] - grid.origin[axis]) / grid.spacing)
            nodes[i] = nodes[i] * grid.shape[axis] + below - 2
    return nodes


@compiled
def _spread(
    points: FloatArray, rows: FloatArray, grid: NodeGrid, first: int, G: FloatArray
) -> None:
    """Add rows to nodes ``G``, of which the first is node ``first`` of the grid."""
    w, dw, base = np.empty((3, 6)), np.empty((3, 6)), np.empty(3, dtype=np.int64)
    counts = _counts(grid)
    for i in range(points.shape[0]):
        node = _weigh(points[i], grid, w, dw, base) - first
        for a in range(counts[0]):
            for b in range(counts[1]):
                line = node + (a * grid.shape[1] + b) * grid.shape[2]
                share = w[0, a] * w[1, b]
                for k in range(6):
                    weight = G.dtype.type(share * w[2, k])
                    for c in range(rows.shape[1]):
                        G[line + k, c] += weight * rows[i, c]


@compiled_into_callers
def _counts(grid: NodeGrid) -> tuple[int, int]:
    """Return how many nodes of the first two axes a point is spread to."""
    return 6 if grid.n_axes > 2 else 1, 6 if grid.n_axes > 1 else 1


@compiled
def read(points: FloatArray, grid: NodeGrid, H: FloatArray, A: FloatArray) -> None:
    """Add what nodes H carry to A (m, C), interpolated at points."""
    w, dw, base = np.empty((3, 6)), np.empty((3, 6)), np.empty(3, dtype=np.int64)
    counts = _counts(grid)
    for j in range(points.shape[0]):
        node = _weigh(points[j], grid, w, dw, base)
        for a in range(counts[0]):
            for b in range(counts[1]):
                line = node + (a * grid.shape[1] + b) * grid.shape[2]
                _add_six(w[2], w[0, a] * w[1, b], line, H, A[j])


@compiled_into_callers
def _add_six(w: FloatArray, share: float, line: int, H: FloatArray, A: FloatArray) -> None:
    """Add six nodes beside each other, each times its weight and the share, to a row."""
    w0, w1 = A.dtype.type(share * w[0]), A.dtype.type(share * w[1])
    w2, w3 = A.dtype.type(share * w[2]), A.dtype.type(share * w[3])
    w4, w5 = A.dtype.type(share * w[4]), A.dtype.type(share * w[5])
    # All six at a time: the row is loaded and stored a sixth as often.
    for c in range(A.shape[0]):
        A[c] += (
            (w0 * H[line, c] + w1 * H[line + 1, c])
            + (w2 * H[line + 2, c] + w3 * H[line + 3, c])
            + (w4 * H[line + 4, c] + w5 * H[line + 5, c])
        )


@compiled
def _read_slopes(points: FloatArray, grid: NodeGrid, H: FloatArray, dA: FloatArray) -> None:
    """Add the derivative of what `read` reads, by the points' coordinates, to dA (m, q, C)."""
    w, dw, base = np.empty((3, 6)), np.empty((3, 6)), np.empty(3, dtype=np.int64)
    counts = _counts(grid)
    q = points.shape[1]
    for j in range(points.shape[0]):
        node = _weigh(points[j], grid, w, dw, base)
        for a in range(counts[0]):
            for b in range(counts[1]):
                line = node + (a * grid.shape[1] + b) * grid.shape[2]
                _add_six(dw[2], w[0, a] * w[1, b], line, H, dA[j, q - 1])
                if q > 1:
                    _add_six(w[2], w[0, a] * dw[1, b], line, H, dA[j, q - 2])
                if q > 2:
                    _add_six(w[2], dw[0, a] * w[1, b], line, H, dA[j, 0])


@compiled
def pull_at(
    points: FloatArray, grid: NodeGrid, H: FloatArray, U: FloatArray, grad: FloatArray
) -> None:
    """Add ``U_j · dA_j/dx_j`` to grad (m, q), A being what `read` reads at the points."""
    w, dw, base = np.empty((3, 6)), np.empty((3, 6)), np.empty(3, dtype=np.int64)
    counts = _counts(grid)
    q = points.shape[1]
    for j in range(points.shape[0]):
        node = _weigh(points[j], grid, w, dw, base)
        by_first, by_second, by_last = 0.0, 0.0, 0.0
        for a in range(counts[0]):
            for b in range(counts[1]):
                line = node + (a * grid.shape[1] + b) * grid.shape[2]
                along, across = 0.0, 0.0
                for k in range(6):
                    dot = H.dtype.type(0)
                    for c in range(U.shape[1]):
                        dot += U[j, c] * H[line + k, c]
                    along += dw[2, k] * dot
                    across += w[2, k] * dot
                by_last += w[0, a] * w[1, b] * along
                by_second += w[0, a] * dw[1, b] * across
                by_first += dw[0, a] * w[1, b] * across
        grad[j, q - 1] += by_last
        if q > 1:
            grad[j, q - 2] += by_second
        if q > 2:
            grad[j, 0] += by_first


@compiled_into_callers
def _pair_on_grid(
    grid: NodeGrid,
    own: tuple[FloatArray, FloatArray, IntArray],
    other: tuple[FloatArray, FloatArray, IntArray],
    by_own: FloatArray,
    by_other: FloatArray,
) -> float:
    """Return the weight that the grid gives a pair; write its derivatives by both places (3,)."""
    w, dw, base = own
    z, dz, other_base = other
    value = np.ones(3)
    by_own[:], by_other[:] = 1.0, 1.0
    for axis in range(3 - grid.n_axes, 3):
        weight, left, right = 0.0, 0.0, 0.0
        for a in range(6):
            for b in range(6):
                lines = abs(base[axis] + a - other_base[axis] - b)
                k = grid.falloff[lines]
                weight += k * w[axis, a] * z[axis, b]
                left += k * dw[axis, a] * z[axis, b]
                right += k * w[axis, a] * dz[axis, b]
        value[axis] = weight
        for other_axis in range(3):
            by_own[other_axis] *= left if other_axis == axis else weight
            by_other[other_axis] *= right if other_axis == axis else weight
    return value[0] * value[1] * value[2]


class HiddenPairs(NamedTuple):
    """What the grid has put on of references that queries must not see, list by list (m, K)."""

    reference: IntArray  # -1 for none
    weight: FloatArray
    by_query: FloatArray  # (m, K, q) its derivative by the query's place
    by_reference: FloatArray  # (m, K, q) and by the reference's


@compiled
def hidden_pairs(
    queries: FloatArray, hidden: IntArray, points: FloatArray, grid: NodeGrid
) -> HiddenPairs:
    """Return the pairs of queries (m, q) with the references at points (n, q) hidden from them."""
    own = np.empty((3, 6)), np.empty((3, 6)), np.empty(3, dtype=np.int64)
    other = np.empty((3, 6)), np.empty((3, 6)), np.empty(3, dtype=np.int64)
    by_own, by_other = np.empty(3), np.empty(3)
    (m, n_hidden), q = hidden.shape, queries.shape[1]
    reference, weight = np.full((m, n_hidden), -1), np.zeros((m, n_hidden), dtype=queries.dtype)
    by_query = np.zeros((m, n_hidden, q), dtype=queries.dtype)
    by_reference = np.zeros((m, n_hidden, q), dtype=queries.dtype)
    for j in range(m):
        _weigh(queries[j], grid, own[0], own[1], own[2])
        for place in range(n_hidden):
            i = hidden[j, place]
            for earlier in range(place):  # a list may name a reference twice
                i = -1 if hidden[j, earlier] == i else i
            if i < 0:
                continue
            _weigh(points[i], grid, other[0], other[1], other[2])
            reference[j, place] = i
            weight[j, place] = _pair_on_grid(grid, own, other, by_own, by_other)
            for axis in range(q):
                by_query[j, place, axis] = by_own[3 - q + axis]
                by_reference[j, place, axis] = by_other[3 - q + axis]
    return HiddenPairs(reference, weight, by_query, by_reference)


@compiled
def take_off(pairs: HiddenPairs, V: FloatArray, A: FloatArray) -> None:
    """Subtract hidden pairs from sums A (m, C)."""
    for j in range(A.shape[0]):
        for place in range(pairs.reference.shape[1]):
            i, weight = pairs.reference[j, place], pairs.weight[j, place]
            if i >= 0:
                for c in range(V.shape[1]):
                    A[j, c] -= weight * V[i, c]


@compiled
def _take_off_slopes(pairs: HiddenPairs, V: FloatArray, dA: FloatArray) -> None:
    """Subtract hidden pairs from the derivative dA (m, q, C) of sums."""
    for j in range(dA.shape[0]):
        for place in range(pairs.reference.shape[1]):
            i = pairs.reference[j, place]
            if i >= 0:
                for m in range(dA.shape[1]):
                    for c in range(V.shape[1]):
                        dA[j, m, c] -= pairs.by_query[j, place, m] * V[i, c]


@compiled
def take_off_pull(
    pairs: HiddenPairs, V: FloatArray, U: FloatArray, grad: FloatArray, push: FloatArray
) -> None:
    """Subtract hidden pairs from the gradients of queries (m, q) and of references (n, q)."""
    for j in range(U.shape[0]):
        for place in range(pairs.reference.shape[1]):
            i, dot = pairs.reference[j, place], V.dtype.type(0)
            if i >= 0:
                for c in range(V.shape[1]):
                    dot += U[j, c] * V[i, c]
                for m in range(grad.shape[1]):
                    grad[j, m] -= dot * pairs.by_query[j, place, m]
                    push[i, m] -= dot * pairs.by_reference[j, place, m]


class SpreadRows:
    """Points in the order of the nodes around them, with the work on them cut into strips.

    The strips are the same for any number of threads, and so is the order of all additions.
    """

    def __init__(self, points: FloatArray, grid: NodeGrid, n_threads: int) -> None:
        self.grid, self.n_threads = grid, n_threads
        nodes = _first_nodes(np.ascontiguousarray(points), grid)
        self.order: IntArray = np.argsort(nodes, kind="stable")
        self.points = np.ascontiguousarray(points[self.order])
        n_strips = min(N_STRIPS, max(1, len(points) // LEAST_ROWS))
        bounds = np.linspace(0, len(points), n_strips + 1).astype(int)
        self.strips = [slice(a, b) for a, b in pairwise(bounds) if a < b]
        self._first = nodes[self.order]
        # From the first node around a point to the last one.
        across = (NODES - 1) * (np.arange(AXES) >= AXES - grid.n_axes)
        self._reach = int(across @ np.array([grid.shape[1] * grid.shape[2], grid.shape[2], 1]))

    def field(self, rows: FloatArray) -> FloatArray:
        """Return what the kernel makes of rows (n, C), in the points' order, at all nodes."""
        return _convolve(self.spread(rows), self.grid, self.n_threads)

    def spread(self, rows: FloatArray) -> FloatArray:
        """Return what nodes (nodes, C) hold of rows (n, C), in the points' order."""

        def work(strip: slice) -> FloatArray:
            first = self._first[strip]
            nodes = np.zeros((first[-1] - first[0] + self._reach + 1, rows.shape[1]), rows.dtype)
            _spread(self.points[strip], rows[strip], self.grid, first[0], nodes)
            return nodes

        G = np.zeros((self.grid.n_nodes, rows.shape[1]), dtype=rows.dtype)
        for strip, nodes in zip(
            self.strips, run_tasks(work, self.strips, self.n_threads), strict=True
        ):
            start = self._first[strip][0]
            G[start : start + len(nodes)] += nodes
        return G

    def pull(self, H: FloatArray, rows: FloatArray) -> FloatArray:
        """Return ``rows_i · dH(x_i)/dx_i`` (n, q) of a field H, in the points' order."""
        grad = np.zeros_like(self.points)

        def work(strip: slice) -> None:
            pull_at(self.points[strip], self.grid, H, rows[strip], grad[strip])

        run_tasks(work, self.strips, self.n_threads)
        return grad


def _convolve(G: FloatArray, grid: NodeGrid, n_threads: int) -> FloatArray:
    """Return K ⊗ … ⊗ K times what nodes G (nodes, C) carry."""
    shape, n_columns = [int(n) for n in grid.shape], G.shape[1]
    for axis in range(AXES - grid.n_axes, AXES):
        before = math.prod(shape[:axis])
        G = _along(G.reshape(before, shape[axis], -1), grid.falloff.astype(G.dtype), n_threads)
    return G.reshape(-1, n_columns)


def _along(G: FloatArray, falloff: FloatArray, n_threads: int) -> FloatArray:
    """Return the product of the kernel with the middle axis of G (B, L, C).

    Done as products of full matrices around the diagonal, of which the kernel's reach is the width.
    """
    n_blocks, L, n_columns = G.shape
    lines = np.arange(L)
    K = falloff[np.abs(lines[:, None] - lines)]
    reach = int(np.flatnonzero(falloff)[-1])
    H = np.empty_like(G)

    def work(task: tuple[slice, slice]) -> None:
        some, columns = task
        for start in range(0, L, BLOCK_LINES):
            rows = slice(start, min(start + BLOCK_LINES, L))
            near = slice(max(0, start - reach), min(L, rows.stop + reach))
            np.matmul(K[rows, near], G[some, near, columns], out=H[some, rows, columns])

    tall = max(1, BLOCK_COLUMNS // n_columns)
    tasks = [
        (slice(b, b + tall), slice(c, c + BLOCK_COLUMNS))
        for b in range(0, n_blocks, tall)
        for c in range(0, n_columns, BLOCK_COLUMNS)
    ]
    run_tasks(work, tasks, n_threads)
    return H


class NodeField:
    """The sums over references (n, q) that carry rows (n, C), held at the nodes of a grid.

    They are read off query by query, so that a query gives the same result alone or among others.
    Those outside of the references' box, or with little around them, are not answered.
    """

    def __init__(
        self, references: FloatArray, V: FloatArray, kernel: Kernel, cutoff: float, n_threads: int
    ) -> None:
        self.low, self.high = corners(references)
        low, high = self.low.astype(np.float64), self.high.astype(np.float64)
        self.grid = build_node_grid(low, high, kernel, cutoff)
        sources = SpreadRows(references, self.grid, n_threads)
        # One more column counts what lies around a query.
        self.V = np.concatenate([V, np.ones_like(V[:, :1])], axis=1)
        self.points = np.ascontiguousarray(references)
        self.field = sources.field(self.V[sources.order])

    def read(self, queries: FloatArray, hidden: IntArray, A: FloatArray) -> BoolArray:
        """Write the sums of queries (m, q) to A (m, C); say which of them are answered."""
        answered: BoolArray = np.all((queries >= self.low) & (queries <= self.high), axis=1)
        some = np.ascontiguousarray(queries[answered])
        sums = np.zeros((len(some), self.V.shape[1]), dtype=self.V.dtype)
        read(some, self.grid, self.field, sums)
        take_off(hidden_pairs(some, hidden[answered], self.points, self.grid), self.V, sums)
        enough = sums[:, -1] >= LEAST_WEIGHT
        answered[answered] = enough
        A[answered] = sums[enough, :-1]
        return answered

    def slopes(self, queries: FloatArray, hidden: IntArray) -> FloatArray:
        """Return the derivative of the sums by the coordinates of answered queries, (m, q, C)."""
        shape = (*queries.shape, self.V.shape[1])
        dA = np.zeros(shape, dtype=self.V.dtype)
        _read_slopes(queries, self.grid, self.field, dA)
        _take_off_slopes(hidden_pairs(queries, hidden, self.points, self.grid), self.V, dA)
        return dA[:, :, :-1]
