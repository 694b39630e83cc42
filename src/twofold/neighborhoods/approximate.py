"""Nearest neighbours of all rows of a large table, most of them found, in far less than n² steps.

Rows are sorted into lists around centres (an inverted file, Sivic and Zisserman 2003; Jégou, Douze
and Schmid 2011), and the rows of a list are compared with those of the lists whose centres lie
nearest to its own, all at once by one matrix product. So a list costs what it holds times what is
around it, and the whole n^1.5.
"""

import numpy as np

from twofold.array_types import FloatArray, IntArray
from twofold.compiled import compiled
from twofold.engine.threads import count_threads, run_tasks, single_threaded
from twofold.neighborhoods.distances import squared_distance, squared_distances
from twofold.neighborhoods.graphs import NeighborTable, find_neighbors
from twofold.neighborhoods.nearest import insert_sorted, k_smallest, nearest_rows

# Up to here all rows are compared.
FEW_ROWS = 10_000
# Lists and rows that a row is compared with, both in square roots of n; rows by which the centre of
# a list is found, and in how many rounds.
LISTS, COMPARED = 2, 16
ROWS_A_LIST, N_ROUNDS = 40, 5


def most_neighbors(Y: FloatArray, n_neighbors: int, seed: int, n_jobs: int | None) -> NeighborTable:
    """Search the nearest other rows of distinct rows Y (n, D); of a large table most are found.

    The result does not depend on the number of threads.
    """
    if len(Y) <= FEW_ROWS:
        return find_neighbors(Y, n_neighbors)
    lists = _Lists(Y, seed)
    found = np.empty((len(Y), n_neighbors), dtype=np.int64)
    distances = np.empty((len(Y), n_neighbors))

    def work(number: int) -> None:
        own = lists.rows_of(number)
        if not len(own):
            return
        others = lists.rows_around(number, n_neighbors)
        C = lists.Y[others]
        sq_dists = lists.lengths[others] - 2 * (lists.Y[own] @ C.T)
        _pick(sq_dists, own, others, lists.Y, found, distances)

    run_tasks(work, range(lists.n_lists), count_threads(n_jobs))
    return NeighborTable.above_zero(distances, found)


class _Lists:
    """Rows sorted by the nearest of some centres."""

    def __init__(self, Y: FloatArray, seed: int) -> None:
        # Imported at first use: only large tables are sorted into lists.
        from sklearn.cluster import KMeans

        n = len(Y)
        self.n_lists = round(LISTS * np.sqrt(n))
        self.Y = np.ascontiguousarray(Y, dtype=np.float32)
        self.lengths = np.square(self.Y).sum(axis=1)
        rng = np.random.default_rng(seed)
        some = np.sort(rng.choice(n, min(n, ROWS_A_LIST * self.n_lists), replace=False))
        with single_threaded():
            means = KMeans(
                self.n_lists, init="random", n_init=1, max_iter=N_ROUNDS, tol=0, random_state=seed
            ).fit(self.Y[some])
        self.centres = means.cluster_centers_
        owner = nearest_rows(self.Y, self.centres, 1)[:, 0]
        self.order = np.argsort(owner, kind="stable")
        self.starts = np.searchsorted(owner[self.order], np.arange(self.n_lists + 1))
        self.near = squared_distances(self.centres, self.centres).argsort(axis=1, kind="stable")

    def rows_of(self, number: int) -> IntArray:
        return self.order[self.starts[number] : self.starts[number + 1]]

    def rows_around(self, number: int, least: int) -> IntArray:
        """Return the rows of the lists nearest to a list, more of them than ``least``."""
        near = self.near[number]
        sizes = np.cumsum(self.starts[near + 1] - self.starts[near])
        wanted = max(least, COMPARED * np.sqrt(len(self.Y)))
        n_lists = int(np.searchsorted(sizes, wanted, side="right")) + 1
        return np.concatenate([self.rows_of(other) for other in near[:n_lists]])


@compiled
def _pick(
    sq_dists: FloatArray,
    own: IntArray,
    others: IntArray,
    Y: FloatArray,
    found: IntArray,
    distances: FloatArray,
) -> None:
    """Write the nearest others of some rows, by distances that have lost no digits, and these."""
    k = found.shape[1]
    near, rough = np.empty(k + 1, dtype=np.int64), np.empty(k + 1)
    least, nearest = np.empty(k), np.empty(k, dtype=np.int64)
    for i in range(own.size):
        k_smallest(sq_dists[i], near, rough)
        least[:] = np.inf
        for place in near:
            j = others[place]
            if j != own[i]:
                exact = squared_distance(Y[own[i]], Y[j], 1.0)
                if exact < least[k - 1]:
                    insert_sorted(least, nearest, exact, j)
        found[own[i]] = nearest
        distances[own[i]] = np.sqrt(least)
