"""The way back of UNN: the mean of the K nearest latent neighbours (Kramer 2013, eq. 5.5).

    f(x) = Σ_{j ∈ N_K(x)} w_j y_j / Σ_{j ∈ N_K(x)} w_j

A latent place that is itself a training point has that point among its K. Ties go to the point
that comes first in the order of its coordinates: on a line, the left one. Where entries are
missing, a column's mean goes over the neighbours that have it, and is that of all rows if none
does.

f has steps. Its derivative is that of a linear fit to the 2K + 1 nearest points, and at least to
q + 2, in which points count less the farther away they are (tricube weights).
"""

from __future__ import annotations

from functools import cached_property

import numpy as np

from twofold.array_types import FloatArray, IntArray
from twofold.compiled import compiled
from twofold.engine.threads import run_tasks
from twofold.rowwise import blocks
from twofold.unn.growing import PointTree, find_nearest, tree_of
from twofold.unn.rows import NOBODY, Rows, is_complete, rows_of, write_mean

# Rows handled by one task; fixed, so that tasks do not depend on the number of threads.
BLOCK = 512
# Directions that the points of a linear fit hardly fill get no slope.
FLAT = 1e-8
# Distances up to this have squares that are numbers.
FARTHEST = 1e100


@compiled
def find_neighbors(
    tree: PointTree, X: FloatArray, hidden: IntArray, found: IntArray, sq_dists: FloatArray
) -> None:
    """Write the k nearest points of each place X (m, q), of at least as many, into ``found``."""
    for j in range(X.shape[0]):
        find_nearest(tree, X[j], hidden[j], found.shape[1], found[j], sq_dists[j])


@compiled
def write_means(rows: Rows, found: IntArray, F: FloatArray) -> None:
    """Write the mean of each list of neighbours (m, k) into F (m, D)."""
    for j in range(F.shape[0]):
        write_mean(rows, found[j], found.shape[1], NOBODY, F[j])


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

        run_tasks(work, blocks(len(X), 1, at_a_time=BLOCK), self.n_threads)
        return found

    def regress(self, X: FloatArray) -> FloatArray:
        """Return f(x) (m, D), float64."""
        return self._means(self.neighbors(X, self.n_neighbors))

    def _means(self, found: IntArray) -> FloatArray:
        F = np.empty((len(found), self.rows.values.shape[1]))

        def work(part: slice) -> None:
            write_means(self.rows, found[part], F[part])

        run_tasks(work, blocks(len(F), 1, at_a_time=BLOCK), self.n_threads)
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
