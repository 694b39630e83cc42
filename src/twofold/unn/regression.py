"""The way back of UNN, the mean of the K nearest latent neighbours, and the way there.

    f(x) = Σ_{j ∈ N_K(x)} w_j y_j / Σ_{j ∈ N_K(x)} w_j                          (Kramer 2013, 5.5)

A latent place that is itself a training point has that point among its K. Ties go to the point
that comes first in the order of its coordinates: on a line, the left one. Where entries are
missing, a column's mean goes over the neighbours that have it, and is that of all rows if none
does.

f has steps. Its derivative is that of a linear fit to the 2K + 1 nearest points, and at least to
q + 2, in which points count less the farther away they are (tricube weights).

The book carries a new row to the mean of the latent points of its K nearest rows,

    F(y) = Σ_{j ∈ N_K(y)} w_j x_j / Σ_{j ∈ N_K(y)} w_j                          (Kramer 2013, 5.6)

which may fall between parts of the map that lie far apart. So other places compete with it: the
latent points of these K rows, the mid-points between them and their latent neighbours, and the
training point whose image is nearest. The smallest distance from f(x) to the row's observed
entries wins, F(y) first. Where the winner lies outside of the domain, a training point is taken.
Distances of incomplete rows go over the entries that both have, times D over their number.
"""

from collections.abc import Callable
from functools import cached_property
from typing import TypeAlias

import numpy as np

from twofold.array_types import BoolArray, FloatArray, IntArray
from twofold.compiled import compiled
from twofold.engine.threads import run_tasks, slices
from twofold.rowwise import SQUARED_GAP, blocks, pair_sums
from twofold.small_systems import assign
from twofold.unn.growing import PointTree, find_nearest, keep_nearest, tree_of
from twofold.unn.rows import Rows, is_complete, rows_of, squared_gap, write_mean

# Rows handled by one task; fixed, so that tasks do not depend on the number of threads.
BLOCK = 512
# Directions that the points of a linear fit hardly fill get no slope.
FLAT = 1e-8
# Distances up to this have squares that are numbers.
FARTHEST = 1e100
# Distances of new rows in memory at a time, for each thread: 16 MB, and few rows a task.
DISTANCES_AT_A_TIME, MOST_NEW_ROWS = 2_000_000, 64

IsInside: TypeAlias = Callable[[FloatArray], BoolArray]


@compiled
def find_neighbors(
    tree: PointTree, X: FloatArray, hidden: IntArray, found: IntArray, sq_dists: FloatArray
) -> None:
    """Write the k nearest points of each place X (m, q), of at least as many, into ``found``."""
    for j in range(X.shape[0]):
        find_nearest(tree, X[j], hidden[j], found.shape[1], found[j], sq_dists[j])


@compiled
def _write_means(rows: Rows, found: IntArray, F: FloatArray) -> None:
    for j in range(F.shape[0]):
        write_mean(rows, found[j], found.shape[1], F[j])


class Surface:
    """Latent points X (n, q) with rows Y (n, D) they carry, in the order of their coordinates."""

    def __init__(
        self, X: FloatArray, Y: FloatArray, weights: FloatArray, n_neighbors: int, n_threads: int
    ) -> None:
        wide = np.asarray(X, dtype=np.float64)
        self.order = np.lexsort((*reversed(wide.T),))
        self.X = np.ascontiguousarray(wide[self.order])
        self.rows = rows_of(np.asarray(Y, dtype=np.float64)[self.order], weights[self.order])
        self.n_neighbors = min(n_neighbors, len(X))
        self.n_threads = n_threads
        self.tree = tree_of(self.X)
        self.parts: list[Surface] = []  # one for each cluster, where there are clusters

    def neighbors(self, X: FloatArray, k: int, hidden: IntArray | None = None) -> IntArray:
        """Return the k nearest points of each place (m, k), by their numbers in this surface."""
        places = np.ascontiguousarray(X, dtype=np.float64)
        unseen = np.full(len(X), -1) if hidden is None else hidden
        found = np.empty((len(X), k), dtype=np.int64)
        sq_dists = np.empty((len(X), k))

        def work(part: slice) -> None:
            find_neighbors(self.tree, places[part], unseen[part], found[part], sq_dists[part])

        run_tasks(work, slices(len(X), BLOCK), self.n_threads)
        return found

    def regress(self, X: FloatArray) -> FloatArray:
        """Return f(x) (m, D), float64."""
        return self._means(self.neighbors(X, self.n_neighbors))

    def _means(self, found: IntArray) -> FloatArray:
        """Return the mean (m, D) of each list of neighbours (m, k)."""
        F = np.empty((len(found), self.rows.values.shape[1]))

        def work(part: slice) -> None:
            _write_means(self.rows, found[part], F[part])

        run_tasks(work, slices(len(F), BLOCK), self.n_threads)
        return F

    @cached_property
    def images(self) -> FloatArray:
        """The means f at the latent points themselves, (n, D)."""
        return self.regress(self.X)

    @cached_property
    def links(self) -> IntArray:
        """The 2q nearest other points of each point, (n, 2q)."""
        n, q = self.X.shape
        return self.neighbors(self.X, min(2 * q, n - 1), np.arange(n))

    def mean_squared_error(self) -> float:
        """Return the mean of ``||f_{-i}(x_i) - y_i||²``, each row left out of its own K."""
        n, w = len(self.X), self.rows.weights
        found = self.neighbors(self.X, min(self.n_neighbors, n - 1), np.arange(n))
        gaps = self._means(found) - self.rows.values
        if not is_complete(self.rows):
            gaps[self.rows.mass == 0] = 0
        return float(w @ (gaps**2).sum(axis=1) / w.sum())

    def slopes(self, X: FloatArray) -> FloatArray:
        """Return the slopes (m, D, q) of a linear fit around each place."""
        n, q = self.X.shape
        found = self.neighbors(X, min(n, max(2 * self.n_neighbors + 1, q + 2)))
        J = np.empty((len(X), self.rows.values.shape[1], q))
        for j in range(len(X)):
            J[j] = self._slope(np.asarray(X[j], dtype=np.float64), found[j])
        return J

    def _slope(self, x: FloatArray, found: IntArray) -> FloatArray:
        near = self.X[found] - x
        # From far away all points lie in the same place: squares must be numbers all the same.
        unit = max(1.0, float(np.abs(near).max()) / FARTHEST)
        near /= unit
        sq_dists = (near**2).sum(axis=1)
        # The farthest one counts a little: with q + 2 points none can be spared.
        reach = 1.1 * np.sqrt(max(float(sq_dists.max()), np.finfo(float).tiny))
        w = self.rows.weights[found] * (1 - (np.sqrt(sq_dists) / reach) ** 3) ** 3
        Y = self.rows.values[found]
        if not is_complete(self.rows):
            Y = np.where(self.rows.mass[found] > 0, Y, self.rows.usual)
        near = near - w @ near / w.sum()
        root = np.sqrt(w)[:, None]
        fit: FloatArray = np.linalg.pinv(root * near, rcond=FLAT) @ (root * (Y - w @ Y / w.sum()))
        return fit.T / unit


def project(
    surface: Surface, Y: FloatArray, observed: BoolArray | None, inside: IsInside
) -> FloatArray:
    """Return the latent points (m, q) of rows Y (m, D); ``inside`` says which places will do."""
    values = np.ascontiguousarray(Y if observed is None else np.where(observed, Y, 0), dtype=float)
    seen = np.ones((len(Y), 1)) if observed is None else observed.astype(np.float64)
    X = _project(surface, values, seen, anywhere=True)
    outside = ~inside(X)
    if outside.any():
        X[outside] = _project(surface, values[outside], seen[outside], anywhere=False)
    return X


def _project(surface: Surface, Y: FloatArray, seen: FloatArray, *, anywhere: bool) -> FloatArray:
    X = np.empty((len(Y), surface.X.shape[1]))
    links = surface.links if anywhere else np.empty((0, 0), dtype=np.int64)
    tree, rows, k, images = surface.tree, surface.rows, surface.n_neighbors, surface.images
    whole = np.ones((len(images), 1))

    def work(part: slice) -> None:
        some, known = Y[part], seen[part]
        to_images = _gaps(some, known, images, whole, False)
        to_rows = _gaps(some, known, rows.values, rows.mass, True) if anywhere else to_images
        _project_rows(tree, rows, to_images, to_rows, links, k, some, known, X[part])

    each = max(len(images), DISTANCES_AT_A_TIME // MOST_NEW_ROWS)
    run_tasks(work, blocks(len(Y), each, at_a_time=DISTANCES_AT_A_TIME), surface.n_threads)
    return X


def _gaps(
    Y: FloatArray, seen: FloatArray, Z: FloatArray, there: FloatArray, is_scaled: bool
) -> FloatArray:
    """Return the squared distances (m, n) over common entries, scaled up to all if asked for."""
    if seen.shape[1] == there.shape[1] == 1:
        return pair_sums(Y, Z, SQUARED_GAP)
    masks = [np.ascontiguousarray(np.broadcast_to(m, A.shape)) for m, A in ((seen, Y), (there, Z))]
    return _masked_gaps(Y, masks[0], Z, masks[1], is_scaled)


@compiled
def _masked_gaps(
    Y: FloatArray, seen: FloatArray, Z: FloatArray, there: FloatArray, is_scaled: bool
) -> FloatArray:
    gaps = np.empty((Y.shape[0], Z.shape[0]))
    for j in range(Y.shape[0]):
        for i in range(Z.shape[0]):
            total, common = squared_gap(Y[j], seen[j], Z[i], there[i])
            if is_scaled:
                total = total * Y.shape[1] / common if common > 0.0 else np.inf
            gaps[j, i] = total
    return gaps


@compiled
def _project_rows(
    tree: PointTree,
    rows: Rows,
    to_images: FloatArray,
    to_rows: FloatArray,
    links: IntArray,
    k: int,
    Y: FloatArray,
    seen: FloatArray,
    X: FloatArray,
) -> None:
    """Write the latent points of rows Y (m, D) into X (m, q); training points without links."""
    n, q = rows.values.shape[0], X.shape[1]
    places = Rows(tree.X, rows.weights.reshape(-1, 1), rows.weights, np.zeros(q))
    near, gaps = np.empty(k, dtype=np.int64), np.empty(k)
    found, sq_dists = np.empty(k, dtype=np.int64), np.empty(k)
    x, f, whole = np.empty(q), np.empty(Y.shape[1]), np.ones(seen.shape[1])
    for j in range(Y.shape[0]):
        at = np.argmin(to_images[j])
        lowest = to_images[j, at]
        assign(X[j], tree.X[at])
        if links.size == 0:
            continue
        count = 0
        for i in range(n):
            count = keep_nearest(near, gaps, count, k, i, to_rows[j, i])
        write_mean(places, near, count, x)
        for place in range(-1, count * links.shape[1]):
            if place >= 0:  # -1 is F(y)
                i = near[place // links.shape[1]]
                other = links[i, place % links.shape[1]]
                for m in range(q):
                    x[m] = 0.5 * (tree.X[i, m] + tree.X[other, m])
            write_mean(rows, found, find_nearest(tree, x, -1, k, found, sq_dists), f)
            gap, _ = squared_gap(f, whole, Y[j], seen[j])
            if gap < lowest or (place < 0 and gap <= lowest):
                lowest = gap
                assign(X[j], x)
