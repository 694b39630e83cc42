"""The back end ``cpu_cells``: only pairs within reach are visited.

For every query ``j`` the references ``i`` with ``F(s_ji) >= cutoff`` are listed from the cell
grid, and the sums run over that list:

    A_j = Σ_i k_ji V_i,   k_ji = F(s_ji)
    dA_j/dx_j = Σ_i a_ji V_i (x_i - x_j)ᵀ,   a_ji = -2 F'(s_ji)

For an exponential kernel a row is weighed relative to its nearest reference (``shift``), and the
reach grows with the distance to that one: no row is ever without weight, however isolated.

The grid: up to three latent dimensions are cut into cells of one width. Points are kept in the
order of their cells, so the cells beside each other along the last of these dimensions are one
contiguous *run* of points, and a ball around any place is covered by a few runs. Distances are
taken in all dimensions.

Of more than three dimensions only those are cut in which the points go much farther than the ball:
two of a map that began as t-SNE. Of a map that is as thick in all dimensions, where 1 % of the
pairs are within reach at q = 8, cells of three dimensions still hold 55 to 80 % of the points, and
leaves of 16 points of a tree 35 to 60 %; taking all distances in one long run is as quick as either
(1.2 ns each, a fifth of what a pair of the dense back end costs). There the nearest reference is
three to four bandwidths away, so how far the first look goes is found out at some of the points;
what is listed in the end does not depend on it.
"""

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from twofold.array_types import FloatArray, IntArray
from twofold.checks.rows import check_finite_points
from twofold.compiled import compiled, compiled_into_callers, square
from twofold.kernels import Kernel

# Rows whose nearest reference weighs at least this are not shifted, and the first look around a
# row goes far enough for them; only rows farther off take a second look. Leave-one-out leaves
# points about a bandwidth apart, so the common row must not be a special case.
NEAR = math.exp(-2.0)
# Dimensions that are cut into cells.
GRIDDED = 3
# References whose distances are taken at a time; most chunks of a long run hold none within reach.
CHUNK = 128
# In more dimensions, points whose neighbours say how far to look at first, far enough for this
# share of them.
SAMPLED, MOST = 64, 0.9
# Room is made for this many times the expected number of pairs.
SLACK = 1.5


class CellGrid(NamedTuple):
    """Points in cell order: ``points[:, i]`` is row ``order[i]`` of the array it was built from."""

    points: FloatArray  # (q, n), transposed so that loops over points are contiguous
    order: IntArray  # (n,)
    starts: IntArray  # (cells + 1,) first point of each cell
    axes: IntArray  # (3,) dimensions that are cut, -1 for none
    shape: IntArray  # (3,) cells along each of them, 1 where there is none
    origin: FloatArray  # (3,) lower corner
    width: float  # side of a cell
    radius: float  # that is looked for at first
    kept: float = 1.0  # share of the points in the cells around a place that are listed, at most


def build_grid(X: FloatArray, radius: float) -> CellGrid:
    """Sort points into cells of half the ``radius`` that will be looked for around them.

    A grid never has more than about two cells a point: stray points far away make the cells wider,
    not the grid larger.
    """
    n, q = X.shape
    check_finite_points(X)
    axes, shape = np.full(GRIDDED, -1), np.ones(GRIDDED, dtype=np.int64)
    origin, width = np.zeros(GRIDDED), 1.0
    if np.isfinite(radius):
        low, high = (corner.astype(float) for corner in corners(X))
        _check_extent(low, high)
        cut = np.arange(q) if q <= GRIDDED else _long_axes(X, high - low, radius)
        low, high = low[cut], high[cut]
        width = _cell_width(high - low, 0.5 * radius, limit=2 * n + 64)
        # The last axis is the contiguous one, so dimensions fill the axes from the back.
        first = GRIDDED - len(cut)
        shape[first:] = np.floor((high - low) / width).astype(np.int64) + 1
        axes[first:], origin[first:] = cut, low
    cells = _cell_of_points(np.ascontiguousarray(X), axes, shape, origin, width)
    order, starts = _sort_by_cell(cells, int(shape.prod()))
    points = np.ascontiguousarray(X[order].T)
    return CellGrid(points, order, starts, axes, shape, origin, width, radius)


def corners(X: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return the lowest and the highest corner (q,) of the box around points X (n, q)."""
    # Column by column: along the rows of a narrow array numpy takes thirty times as long.
    low = np.array([column.min() for column in X.T], dtype=X.dtype)
    return low, np.array([column.max() for column in X.T], dtype=X.dtype)


def _long_axes(X: FloatArray, extent: FloatArray, radius: float) -> IntArray:
    """Return the dimensions in which points spread farther than a ball, at most three."""
    # By deviation, which a stray point hardly changes, in units whose squares are numbers.
    unit = max(float(extent.max()), np.finfo(float).tiny)
    spread = unit * ((X - X[:1]) / unit).std(axis=0, dtype=np.float64)
    widest = np.argsort(-spread, kind="stable")[:GRIDDED]
    return np.sort(widest[spread[widest] > radius])


def _check_extent(low: FloatArray, high: FloatArray) -> None:
    with np.errstate(over="ignore"):
        if not np.isfinite(high - low).all():
            raise ValueError(
                f"Latent points range from {low} to {high}, and their difference overflows; divide "
                "the data by a number of their size."
            )


def _cell_width(extent: FloatArray, width: float, limit: int) -> float:
    # A radius of nothing would ask for endlessly many cells.
    width = max(width, np.finfo(float).tiny)
    with np.errstate(over="ignore"):  # too many to count is more than the limit
        while np.prod(np.floor(extent / width) + 1.0) > limit:
            width *= 1.25
    return float(width)


@compiled
def _cell_of_points(
    X: FloatArray, axes: IntArray, shape: IntArray, origin: FloatArray, width: float
) -> IntArray:
    n = X.shape[0]
    cells = np.zeros(n, dtype=np.int64)
    for i in range(n):
        cell = 0
        for axis in range(3):
            if axes[axis] >= 0:
                step = (X[i, axes[axis]] - origin[axis]) / width
                cell = cell * shape[axis] + int(min(max(step, 0.0), float(shape[axis] - 1)))
        cells[i] = cell
    return cells


@compiled
def _sort_by_cell(cells: IntArray, n_cells: int) -> tuple[IntArray, IntArray]:
    starts = np.zeros(n_cells + 1, dtype=np.int64)
    for cell in cells:
        starts[cell + 1] += 1
    for c in range(n_cells):
        starts[c + 1] += starts[c]
    # A counting sort: it is stable, so that points of a cell keep the order of their rows.
    place = starts[:-1].copy()
    order = np.empty(cells.size, dtype=np.int64)
    for i in range(cells.size):
        order[place[cells[i]]] = i
        place[cells[i]] += 1
    return order, starts


@compiled
def find_cell_span(x: FloatArray, radius: float, grid: CellGrid, span: IntArray) -> None:
    """Write the first and the last cell that a ball touches, axis by axis, into ``span`` (6,).

    Coordinates of x must be finite: there is no cell for NaN.
    """
    for axis in range(3):
        last, m = grid.shape[axis] - 1, grid.axes[axis]
        low, high = 0.0, float(last)
        if last > 0 and m >= 0:
            # Clamped as floats: a place far outside has no cell number that fits an integer.
            low = min(max((x[m] - radius - grid.origin[axis]) / grid.width, 0.0), high)
            high = min(max((x[m] + radius - grid.origin[axis]) / grid.width, 0.0), high)
        span[2 * axis] = int(low)
        span[2 * axis + 1] = int(high)


class Pairs(NamedTuple):
    """The pairs of some queries: ``reference[first[j]:first[j + 1]]`` belong to query j.

    ``weight`` is ``F(s - shift_j)`` and ``slope`` is ``-2 F'(s - shift_j)``. With ``is_dense``
    every query has every reference, in order.
    """

    first: IntArray
    reference: IntArray
    weight: FloatArray
    slope: FloatArray
    shift: FloatArray
    is_dense: bool = False


def grid_for(references: FloatArray, kernel: Kernel, cutoff: float) -> CellGrid:
    """Return the grid that lists the neighbours of any place within the kernel's reach."""
    near = kernel.reach(NEAR) if kernel.is_exponential else 0.0
    look = kernel.reach(cutoff) + near
    grid = build_grid(references, math.sqrt(look))
    if references.shape[1] <= GRIDDED or not math.isfinite(look):
        return grid
    n = len(references)
    places = np.linspace(0, n - 1, min(n, SAMPLED)).astype(np.int64)
    some, no_widths = np.ascontiguousarray(grid.points[:, places].T), np.empty(0, references.dtype)
    pairs = list_pairs(grid, some, places[:, None], kernel, cutoff, no_widths)
    farther = float(np.quantile(pairs.shift, MOST)) - near
    if farther > 0:
        grid = build_grid(references, math.sqrt(look + farther))
    return grid._replace(kept=pairs.reference.size / float(candidates_of(grid, some).sum()))


def candidates_of(grid: CellGrid, queries: FloatArray) -> IntArray:
    """Return how many references the first look around each query goes through, at most."""
    _check_queries(grid, queries)
    return _count_candidates(queries, grid, grid.radius)


def _check_queries(grid: CellGrid, queries: FloatArray) -> None:
    """Raise unless each query has a place in the grid: loops index with its coordinates."""
    if queries.shape[1] != len(grid.points):
        raise ValueError(
            f"Queries must have {len(grid.points)} coordinates, as the references have; got an "
            f"array of shape {queries.shape}."
        )
    check_finite_points(queries)


def list_pairs(
    grid: CellGrid,
    queries: FloatArray,
    hidden: IntArray,
    kernel: Kernel,
    cutoff: float,
    shrink: FloatArray,
) -> Pairs:
    """List and weigh the pairs of ``queries`` (m, q) with the references of the grid.

    ``hidden[j]`` are the places (in grid order) of references that query j must not see, or -1;
    ``shrink[i]`` is the squared inverse width of reference i, at least 1, empty for all ones.
    """
    reach = kernel.reach(cutoff)
    near = kernel.reach(NEAR) if kernel.is_exponential else math.inf
    m, n, dtype = len(queries), grid.points.shape[1], queries.dtype
    room = min(1.0, SLACK * grid.kept)
    capacity = int(room * candidates_of(grid, queries).sum()) + n + CHUNK
    first, shift = np.zeros(m + 1, dtype=np.int64), np.zeros(m, dtype=dtype)
    while True:
        index, s = np.empty(capacity, dtype=np.int32), np.empty(capacity, dtype=dtype)
        count = _collect(queries, hidden, grid, shrink, reach, near, first, index, s, shift)
        if count >= 0:
            break
        capacity *= 2
    weight, slope = kernel.weigh(s[:count])
    if shrink.size:
        slope = slope * shrink[index[:count]]
    return Pairs(first, index[:count], weight, slope, shift)


@compiled
def _count_candidates(queries: FloatArray, grid: CellGrid, radius: float) -> IntArray:
    m = queries.shape[0]
    counts = np.zeros(m, dtype=np.int64)
    span = np.empty(6, dtype=np.int64)
    for j in range(m):
        find_cell_span(queries[j], radius, grid, span)
        for c0 in range(span[0], span[1] + 1):
            for c1 in range(span[2], span[3] + 1):
                start, stop = _run(grid, c0, c1, span)
                counts[j] += stop - start
    return counts


@compiled
def _run(grid: CellGrid, c0: int, c1: int, span: IntArray) -> tuple[int, int]:
    """Return where the points begin and end that lie in a row of cells along the last axis."""
    line = (c0 * grid.shape[1] + c1) * grid.shape[2]
    return grid.starts[line + span[4]], grid.starts[line + span[5] + 1]


@compiled
def _collect(
    queries: FloatArray,
    hidden: IntArray,
    grid: CellGrid,
    shrink: FloatArray,
    reach: float,
    near: float,
    first: IntArray,
    index: IntArray,
    s: FloatArray,
    shift: FloatArray,
) -> int:
    """List the pairs of all queries, with shifted s; return their number, or -1 for no room."""
    n = grid.points.shape[1]
    count = n - n  # no constant: `_collect_row` would be compiled for it, too
    span = np.empty(6, dtype=np.int64)
    row = np.empty(CHUNK, dtype=s.dtype)
    # The last query that each reference was hidden from.
    hidden_from = np.full(n, -1, dtype=np.int32)
    for j in range(queries.shape[0]):
        n_seen = n
        for i in hidden[j]:
            # A list may name a reference twice, which then counts once.
            if i >= 0 and hidden_from[i] != j:
                hidden_from[i] = j
                n_seen -= 1
        limit = reach if near == np.inf else max(reach + near, square(grid.radius))
        while True:
            end = _collect_row(
                queries[j], j, hidden_from, grid, shrink, limit, span, row, index, s, count
            )
            if end < 0:
                return -1
            # Kernels with finite support are never shifted: out of reach is out of reach.
            if near == np.inf:
                break
            nearest = np.inf
            for p in range(count, end):
                nearest = min(nearest, s[p])
            # Everything that counts beside the nearest is listed, or everything there is.
            if limit >= nearest + reach or end - count == n_seen:
                end = _within(max(nearest, near) + reach, index, s, count, end)
                if near < nearest < np.inf:
                    shift[j] = nearest
                    for p in range(count, end):
                        s[p] -= shift[j]
                break
            # Nothing seen yet: look twice as far, four times in squared distance.
            limit = nearest + reach if nearest < np.inf else 4 * limit
        count = end
        first[j + 1] = count
    return count


@compiled_into_callers
def _within(limit: float, index: IntArray, s: FloatArray, start: int, stop: int) -> int:
    """Keep the pairs of a row that are within a limit; return where they end."""
    end = start
    for p in range(start, stop):
        index[end], s[end] = index[p], s[p]
        end += s[end] <= limit
    return end


@compiled_into_callers
def _squared_gaps(
    x: FloatArray, points: FloatArray, shrink: FloatArray, begin: int, end: int, row: FloatArray
) -> None:
    """Write squared distances of some references from x to ``row``."""
    # Over slices: an index that is a sum might be negative, for all the compiler knows, and then
    # it takes four times as long.
    for i in range(row.size):
        row[i] = 0
    for m in range(x.shape[0]):
        here, some = x[m], points[m, begin:end]
        for i in range(row.size):
            row[i] += square(some[i] - here)
    if shrink.size:
        factors = shrink[begin:end]
        for i in range(row.size):
            row[i] *= factors[i]


@compiled
def _collect_row(
    x: FloatArray,
    number: int,
    hidden_from: IntArray,
    grid: CellGrid,
    shrink: FloatArray,
    limit: float,
    span: IntArray,
    row: FloatArray,
    index: IntArray,
    s: FloatArray,
    count: int,
) -> int:
    """Append the references within ``limit`` of x; return the new count, or -1 for no room."""
    find_cell_span(x, math.sqrt(limit), grid, span)
    bound = s.dtype.type(limit)  # numbers of one kind are compared twice as fast
    for c0 in range(span[0], span[1] + 1):
        for c1 in range(span[2], span[3] + 1):
            start, stop = _run(grid, c0, c1, span)
            for begin in range(start, stop, CHUNK):
                end = min(begin + CHUNK, stop)
                if count + CHUNK > index.size:
                    return -1
                gaps = row[: end - begin]
                _squared_gaps(x, grid.points, shrink, begin, end, gaps)
                n_within = 0
                for i in range(gaps.size):
                    n_within += gaps[i] <= bound
                if 8 * n_within > gaps.size:
                    for i in range(gaps.size):
                        # Written always, kept if near: no branch to mispredict.
                        index[count], s[count] = begin + i, gaps[i]
                        count += (gaps[i] <= bound) & (hidden_from[begin + i] != number)
                elif n_within > 0:
                    for i in range(gaps.size):
                        if gaps[i] <= bound and hidden_from[begin + i] != number:
                            index[count], s[count] = begin + i, gaps[i]
                            count += 1
    return count


@compiled
def _add_weighted_rows(pairs: Pairs, V: FloatArray, A: FloatArray) -> None:
    """Add ``Σ_i k_ji V_i`` to ``A`` (m, C)."""
    first, index, weight, n_columns = pairs.first, pairs.reference, pairs.weight, V.shape[1]
    for j in range(A.shape[0]):
        p, stop = first[j], first[j + 1]
        while p + 4 <= stop:  # four rows at a time: A is loaded and stored a quarter as often
            k0, k1, k2, k3 = weight[p], weight[p + 1], weight[p + 2], weight[p + 3]
            i0, i1, i2, i3 = index[p], index[p + 1], index[p + 2], index[p + 3]
            for c in range(n_columns):
                A[j, c] += (k0 * V[i0, c] + k1 * V[i1, c]) + (k2 * V[i2, c] + k3 * V[i3, c])
            p += 4
        for rest in range(p, stop):
            for c in range(n_columns):
                A[j, c] += weight[rest] * V[index[rest], c]


def weighted_rows(pairs: Pairs, V: FloatArray) -> FloatArray:
    """Return ``Σ_i k_ji V_i`` (m, C)."""
    if pairs.is_dense:
        return pairs.weight.reshape(len(pairs.shift), -1) @ V
    A = np.zeros((len(pairs.shift), V.shape[1]), dtype=V.dtype)
    _add_weighted_rows(pairs, V, A)
    return A


@compiled
def dot_pairs(pairs: Pairs, U: FloatArray, V: FloatArray) -> FloatArray:
    """Return ``U_j·V_i`` of every pair."""
    dots = np.empty(pairs.reference.size, dtype=V.dtype)
    for j in range(U.shape[0]):
        for p in range(pairs.first[j], pairs.first[j + 1]):
            dot = V.dtype.type(0)
            for c in range(V.shape[1]):
                dot += U[j, c] * V[pairs.reference[p], c]
            dots[p] = dot
    return dots


@compiled
def _add_sums_and_slopes(
    pairs: Pairs,
    queries: FloatArray,
    points: FloatArray,
    V: FloatArray,
    A: FloatArray,
    dA: FloatArray,
) -> None:
    """Add ``Σ_i k_ji V_i`` to ``A`` (m, C) and ``Σ_i a_ji (x_i - x_j) V_iᵀ`` to ``dA`` (m, q, C).

    That is the derivative of the sums by the places of the queries.
    """
    first, index, n_columns = pairs.first, pairs.reference, V.shape[1]
    weight, slope = pairs.weight, pairs.slope
    for j in range(A.shape[0]):
        p, stop = first[j], first[j + 1]
        while p + 4 <= stop:  # four rows at a time, which stay in cache for all dimensions
            k0, k1, k2, k3 = weight[p], weight[p + 1], weight[p + 2], weight[p + 3]
            i0, i1, i2, i3 = index[p], index[p + 1], index[p + 2], index[p + 3]
            for c in range(n_columns):
                A[j, c] += (k0 * V[i0, c] + k1 * V[i1, c]) + (k2 * V[i2, c] + k3 * V[i3, c])
            for m in range(queries.shape[1]):
                x = queries[j, m]
                a0, a1 = slope[p] * (points[m, i0] - x), slope[p + 1] * (points[m, i1] - x)
                a2, a3 = slope[p + 2] * (points[m, i2] - x), slope[p + 3] * (points[m, i3] - x)
                for c in range(n_columns):
                    dA[j, m, c] += (a0 * V[i0, c] + a1 * V[i1, c]) + (a2 * V[i2, c] + a3 * V[i3, c])
            p += 4
        for rest in range(p, stop):
            i = index[rest]
            for c in range(n_columns):
                A[j, c] += weight[rest] * V[i, c]
            for m in range(queries.shape[1]):
                step = slope[rest] * (points[m, i] - queries[j, m])
                for c in range(n_columns):
                    dA[j, m, c] += step * V[i, c]


@compiled
def _pull_pairs(
    pairs: Pairs,
    queries: FloatArray,
    points: FloatArray,
    dots: FloatArray,
    grad_queries: FloatArray,
    push: FloatArray,
) -> None:
    """Carry ``dots = U_j·V_i`` of every pair back to queries and references."""
    pull = dots * pairs.slope
    for m in range(queries.shape[1]):
        for j in range(queries.shape[0]):
            x, total = queries[j, m], points.dtype.type(0)
            for p in range(pairs.first[j], pairs.first[j + 1]):
                step = pull[p] * (points[m, pairs.reference[p]] - x)
                total += step
                push[m, pairs.reference[p]] -= step
            grad_queries[j, m] += total


@dataclass(frozen=True)
class PlainSums:
    """The plain sums of some queries, and the way back; ``points`` is (q, n), as ``V`` ordered."""

    pairs: Pairs
    queries: FloatArray
    points: FloatArray
    V: FloatArray

    def values(self) -> FloatArray:
        """Return the sums (m, C)."""
        return weighted_rows(self.pairs, self.V)

    def pull(self, U: FloatArray, grad_queries: FloatArray, push: FloatArray) -> None:
        """Carry ``U = dR/dA`` (m, C) back to queries (m, q) and references, ``push`` (q, n)."""
        dots = dot_pairs(self.pairs, U, self.V)
        _pull_pairs(self.pairs, self.queries, self.points, dots, grad_queries, push)

    def values_and_slopes(self) -> tuple[FloatArray, FloatArray]:
        """Return the sums and their derivative by the queries' coordinates (m, q, C)."""
        (m, q), C = self.queries.shape, self.V.shape[1]
        A, dA = np.zeros((m, C), dtype=self.V.dtype), np.zeros((m, q, C), dtype=self.V.dtype)
        _add_sums_and_slopes(self.pairs, self.queries, self.points, self.V, A, dA)
        return A, dA
