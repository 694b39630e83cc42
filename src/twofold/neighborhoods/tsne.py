r"""t-SNE of large tables from a given start: forces in time linear in the number of rows.

t-SNE minimises KL(P || Q) for :math:`q_{ij} \propto 1 / (1 + ||x_i - x_j||^2)` (van der Maaten and
Hinton, JMLR 2008). A quarter of its gradient,

.. math::

    g_i = \sum_j p_{ij} \frac{x_i - x_j}{1 + ||x_i - x_j||^2}
        + \frac{1}{2 Z} \nabla\varphi(x_i), \qquad
    \varphi(x) = \sum_j \frac{1}{1 + ||x - x_j||^2}, \quad Z = \sum_i \varphi(x_i) - n ,

is an attraction over the neighbours, the only pairs with p > 0, and the slope of one potential,
which the nodes of a grid hold: rows spread onto them, convolved by Fourier transforms, and its
slope read off by derivatives of the interpolation (:mod:`twofold.engine.grid`; Linderman et al.,
Nature Methods 2019, interpolate four such fields). Steps are those of van der Maaten: momentum, and
a gain for each coordinate.

Own code, because it is quicker, and made of what the engine has anyway: a step of 60,000 rows takes
0.06 seconds of computing, one of openTSNE's 0.13 seconds on two cores; scikit-learn's trees take
one core, and half as long again already for 1,617 rows.
"""

from collections.abc import Callable
from functools import partial

import numpy as np
from scipy.fft import fft, ifft, irfft, next_fast_len, rfft, rfftn
from scipy.sparse import csr_array

from twofold.array_types import FloatArray, IntArray
from twofold.compiled import compiled, compiled_in_order, square
from twofold.engine.cells import corners
from twofold.engine.grid import SpreadRows, nodes_over
from twofold.engine.threads import count_threads, run_tasks, single_threaded_blas, slices
from twofold.neighborhoods.graphs import NeighborTable, linked_rows

PERPLEXITY = 30.0
TSNE_NEIGHBORS = int(3 * PERPLEXITY) + 1
# Neighbours pull harder in the first steps: clusters move as a whole while the map is small.
ITERATIONS, EXAGGERATED, EXAGGERATION = 250, 50, 2.0
# Nodes of more axes than that are too many.
MAX_TSNE_DIMENSIONS = 3
# Distance between nodes, in widths of the kernel, and the most of them along an axis, by the number
# of axes.
SPACING, MOST_NODES = 0.8, (8_192, 1_024, 96)
# Share of the map by which the grid reaches beyond it: it serves until a point leaves it.
MARGIN = 0.1
MOMENTUM, GAIN_UP, GAIN_DOWN, LEAST_GAIN = 0.8, 0.2, 0.8, 0.01
# No row goes farther in a step, in widths of the kernel; openTSNE has such a bound, too. Without it
# a dozen of 336,000 word vectors went ten times as far as all others, which left these a tenth of
# the nodes along each axis: new rows came back with an error of 0.638, now 0.580. MNIST, 60,000
# rows: 0.1813; with a bound of 5 0.1807, of 2 0.1812.
LONGEST_STEP = 5.0
# Cells along the map, by which rows are ordered.
CELLS_ALONG = 64
# Up to this many rows one thread is quicker than several.
FEW_ROWS = 8_000
# Rows, and lines of nodes, that one task takes on.
TASK_ROWS, TASK_LINES = 4_096, 256
PERPLEXITY_TOLERANCE, MOST_BISECTIONS = 1e-4, 50


def tsne(
    table: NeighborTable, X: FloatArray, random_state: int, *, n_jobs: int | None = -1
) -> FloatArray:
    """Return the embedding (n, q) by t-SNE from a given start X, q at most 3.

    The table has at least ``min(n - 1, TSNE_NEIGHBORS)`` neighbours of every row; the start, e.g.
    principal components, has a standard deviation of about one. Jitter separates rows that start in
    one place.
    """
    n = len(X)
    perplexity = min(PERPLEXITY, (n - 1) / 3)
    k = min(n - 1, int(3 * perplexity + 1))
    near = NeighborTable(table.distances[:, :k], table.indices[:, :k])
    jitter = np.random.default_rng(random_state).normal(scale=1e-4, size=X.shape)
    P = affinities(near, perplexity, n_jobs=n_jobs)
    X = descend(P * EXAGGERATION, X + jitter, EXAGGERATED, n_jobs=n_jobs)
    return descend(P, X, ITERATIONS - EXAGGERATED, n_jobs=n_jobs)


def affinities(table: NeighborTable, perplexity: float, *, n_jobs: int | None = -1) -> csr_array:
    """Return P (n, n) of sum 1: as near as a Gaussian of that perplexity makes neighbours."""
    n, entropy = len(table.indices), np.log(perplexity)

    def work(rows: slice) -> FloatArray:
        return _conditional(table.distances[rows] ** 2, entropy)

    parts = run_tasks(work, slices(n, TASK_ROWS), count_threads(n_jobs))
    P = linked_rows(np.concatenate(parts), table.indices, n)
    return csr_array((P + P.T) / (2 * n))


def descend(
    P: csr_array,
    X: FloatArray,
    n_iter: int,
    *,
    n_jobs: int | None = -1,
    tell: Callable[[str, int, int], None] = lambda words, step, total: None,
) -> FloatArray:
    """Return latent points (n, q) after some steps of t-SNE from X, for affinities P (n, n).

    ``tell`` hears of every step: what it is, its number, and how many there are.
    """
    n, n_threads = len(X), count_threads(n_jobs if len(X) > FEW_ROWS else None)
    # Neighbours lie beside each other in memory, too: of a million rows most would not be in cache.
    order = _along_cells(X)
    place = np.empty(n, dtype=P.indices.dtype)
    place[order] = np.arange(n)
    P = csr_array(P[order])
    P = csr_array((P.data, place[P.indices], P.indptr), shape=P.shape)
    X = X[order].astype(np.float64)
    speed, gains = np.zeros_like(X), np.ones_like(X)
    field = None
    with single_threaded_blas():  # once, not for every part of a step
        for step in range(n_iter):
            tell("t-SNE of all rows", step, n_iter)
            if field is None or not field.covers(X):
                field = _Field(X, n_threads)
            slope, Z = field.slope(X)
            gradient = _attraction(P, X, n_threads) + slope / (2 * Z)
            _move(X, speed, gains, gradient, float(n))
            X -= [column.mean() for column in X.T]  # along narrow rows it takes ten times as long
    return X[place]


def _along_cells(X: FloatArray) -> IntArray:
    """Return an order of points X (n, q) in which those of a small cell follow each other."""
    low, high = corners(X)
    width = max(float((high - low).max()), np.finfo(float).tiny) / CELLS_ALONG
    cells = ((X - low) / width).astype(np.int64)
    return np.lexsort(cells.T[::-1])


class _Field:
    """The potential of points over a grid that reaches a little beyond them."""

    def __init__(self, X: FloatArray, n_threads: int) -> None:
        low, high = corners(X)
        margin = MARGIN * (high - low).max()
        self.low, self.high, self.n_threads = low - margin, high + margin, n_threads
        q = X.shape[1]
        spacing = max(SPACING, float((self.high - self.low).max()) / MOST_NODES[q - 1])
        self.grid = nodes_over(self.low, self.high, spacing, lambda distance: distance)
        self.shape = tuple(int(length) for length in self.grid.shape[-q:])
        self.padded = tuple(next_fast_len(2 * length - 1, real=True) for length in self.shape)
        axes = [np.minimum(np.arange(n), n - np.arange(n)) * spacing for n in self.padded]
        sq_dists = sum(axis**2 for axis in np.ix_(*axes))
        self.kernel = rfftn(1 / (1 + sq_dists))

    def covers(self, X: FloatArray) -> bool:
        """Say whether all points lie on the grid."""
        low, high = corners(X)
        return bool((self.low <= low).all() and (self.high >= high).all())

    def slope(self, X: FloatArray) -> tuple[FloatArray, float]:
        """Return the slope of the potential at its points X (n, q), and Z."""
        points = SpreadRows(X, self.grid, self.n_threads)
        ones = np.ones((len(X), 1))
        G = points.spread(ones)[:, 0].reshape(self.shape)
        H = self._convolved(G)
        slope = np.empty_like(X)
        slope[points.order] = points.pull(H.reshape(-1, 1), ones)
        # What the nodes hold times the potential there is the sum of it over all points.
        return slope, float(np.sum(G * H)) - len(X)

    def _convolved(self, G: FloatArray) -> FloatArray:
        """Return the kernel's product with what nodes G hold, axis by axis, without wrapping."""
        q, last = G.ndim, self.padded[-1]
        rows, columns = (0, q - 1) if q > 1 else (None, None)
        H = self._along(partial(rfft, n=last), G, rows)
        for axis in range(q - 1):
            H = self._along(partial(fft, n=self.padded[axis], axis=axis), H, columns)
        H *= self.kernel
        for axis in range(q - 1):
            H = self._along(partial(_cut_inverse, axis=axis, length=self.shape[axis]), H, columns)
        H = self._along(partial(irfft, n=last), H, rows)
        return np.ascontiguousarray(H[..., : self.shape[-1]])

    def _along(
        self, transform: Callable[[FloatArray], FloatArray], A: FloatArray, across: int | None
    ) -> FloatArray:
        """Transform an array in parts along the axis ``across``, whole if None."""
        if across is None:
            return transform(A)
        parts = np.array_split(A, max(1, A.shape[across] // TASK_LINES), axis=across)
        return np.concatenate(run_tasks(transform, parts, self.n_threads), axis=across)


def _cut_inverse(A: FloatArray, axis: int, length: int) -> FloatArray:
    """Transform an axis back, and keep its first part."""
    return np.take(ifft(A, axis=axis), np.arange(length), axis=axis)


def _attraction(P: csr_array, X: FloatArray, n_threads: int) -> FloatArray:
    """Return Σ_j p_ij (x_i - x_j) / (1 + ||x_i - x_j||²), (n, q)."""
    n, q = X.shape
    axes, pull = np.zeros((MAX_TSNE_DIMENSIONS, n)), np.zeros((MAX_TSNE_DIMENSIONS, n))
    axes[:q] = X.T
    other = P.indices.view(f"u{P.indices.itemsize}")  # an index that cannot be negative is quicker

    def work(rows: slice) -> None:
        _pull_together(P.indptr, other, P.data, axes, rows.start, rows.stop, pull)

    run_tasks(work, slices(n, TASK_ROWS), n_threads)
    return np.ascontiguousarray(pull[:q].T)


@compiled
def _pull_together(
    first: IntArray,
    other: IntArray,
    p: FloatArray,
    axes: FloatArray,
    start: int,
    stop: int,
    pull: FloatArray,
) -> None:
    """Write the attraction of some rows to pull (3, n); three axes written out, unused ones 0."""
    A, B, C = axes[0], axes[1], axes[2]
    for i in range(start, stop):
        near, weights = other[first[i] : first[i + 1]], p[first[i] : first[i + 1]]
        a, b, c = A[i], B[i], C[i]
        along_a = along_b = along_c = 0.0
        for e in range(near.size):
            gap_a, gap_b, gap_c = a - A[near[e]], b - B[near[e]], c - C[near[e]]
            weight = weights[e] / (1.0 + square(gap_a) + square(gap_b) + square(gap_c))
            along_a += weight * gap_a
            along_b += weight * gap_b
            along_c += weight * gap_c
        pull[0, i], pull[1, i], pull[2, i] = along_a, along_b, along_c


@compiled_in_order
def _move(
    X: FloatArray, speed: FloatArray, gains: FloatArray, gradient: FloatArray, rate: float
) -> None:
    """Make a step; a coordinate that goes on as before gains speed, one that turns loses it.

    No row gets faster than ``LONGEST_STEP``.
    """
    for i in range(X.shape[0]):
        for m in range(X.shape[1]):
            goes_on = (gradient[i, m] > 0) != (speed[i, m] > 0)
            gain = gains[i, m] + GAIN_UP if goes_on else gains[i, m] * GAIN_DOWN
            gains[i, m] = max(gain, LEAST_GAIN)
            speed[i, m] = MOMENTUM * speed[i, m] - rate * gains[i, m] * gradient[i, m]
        length = 0.0
        for m in range(X.shape[1]):
            length += square(speed[i, m])
        shorter = LONGEST_STEP / max(np.sqrt(length), LONGEST_STEP)
        for m in range(X.shape[1]):
            speed[i, m] *= shorter
            X[i, m] += speed[i, m]


@compiled_in_order
def _conditional(sq_dists: FloatArray, entropy: float) -> FloatArray:
    """Return, for squared distances (n, k), weights of sum 1 and that entropy, by bisection."""
    n, k = sq_dists.shape
    weights = np.empty((n, k))
    for i in range(n):
        low, high, steepness = 0.0, np.inf, 1.0 / max(sq_dists[i, k - 1], 1e-300)
        for _ in range(MOST_BISECTIONS):
            total, mean = 0.0, 0.0
            for j in range(k):
                # The nearest one has weight 1: none of the sums vanishes.
                weights[i, j] = np.exp(steepness * (sq_dists[i, 0] - sq_dists[i, j]))
                total += weights[i, j]
                mean += weights[i, j] * (sq_dists[i, j] - sq_dists[i, 0])
            excess = np.log(total) + steepness * mean / total - entropy
            if abs(excess) < PERPLEXITY_TOLERANCE:
                break
            if excess > 0:
                low = steepness
                steepness = 2 * steepness if high == np.inf else (low + high) / 2
            else:
                high = steepness
                steepness = (low + high) / 2
        for j in range(k):
            weights[i, j] /= total
    return weights
