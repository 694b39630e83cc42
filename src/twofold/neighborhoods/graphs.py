"""Graphs of nearest neighbours: tables they are cut from, and loose parts joined.

A table holds the nearest others of every row, nearest first, so that the graph of K neighbours is
read off its first K columns. Where a graph falls into parts, these are joined by the shortest links
that can do it (Borůvka 1926): every part is linked to the row nearest to it outside, until one is
left. Between the parts this is a minimum spanning tree: clusters far apart are strung together
along their gaps, and nothing else in the graph changes.
"""

from bisect import bisect_left
from dataclasses import dataclass
from typing import Self

import numpy as np
from scipy.sparse import coo_array, csr_array
from scipy.sparse.csgraph import connected_components
from sklearn.neighbors import NearestNeighbors

from twofold.array_types import FloatArray, IntArray
from twofold.neighborhoods.nearest import nearest_rows, neighbor_distances, other_rows


@dataclass(frozen=True)
class NeighborTable:
    """The numbers (n, k) of the nearest other rows of every row, nearest first, and how far."""

    distances: FloatArray
    indices: IntArray

    @classmethod
    def above_zero(cls, distances: FloatArray, indices: IntArray) -> Self:
        """Return the table with distances raised to a tiny positive floor.

        Rounding can make two distinct rows coincide, and a sparse graph takes a zero for "no edge".
        """
        floor = max(1e-12 * float(distances.mean()), np.finfo(np.float64).tiny)
        return cls(np.maximum(distances, floor), indices)

    @property
    def n_neighbors(self) -> int:
        """Number of neighbours stored for each row."""
        return int(self.indices.shape[1])

    def directed_graph(self, n_neighbors: int) -> csr_array:
        """Return the (n, n) graph with an edge from every row to its nearest ones."""
        n = len(self.indices)
        distances, indices = self.distances[:, :n_neighbors], self.indices[:, :n_neighbors]
        return linked_rows(distances, indices, n)

    def symmetric_graph(self, n_neighbors: int) -> csr_array:
        """Return the (n, n) graph where an edge of either direction counts for both."""
        graph = self.directed_graph(n_neighbors)
        return csr_array(graph.maximum(graph.T))


def linked_rows(values: FloatArray, neighbors: IntArray, n: int) -> csr_array:
    """Return the sparse matrix (m, n) of values (m, k) of rows with their neighbours (m, k)."""
    m, k = neighbors.shape
    # Part of scikit-learn, and of scipy before 1.15, takes no sparse graph with 64-bit indices.
    row_starts = np.arange(0, m * k + 1, k, dtype=np.int32)
    return csr_array((values.ravel(), neighbors.ravel().astype(np.int32), row_starts), shape=(m, n))


def find_neighbors(Y: FloatArray, n_neighbors: int) -> NeighborTable:
    """Search the nearest other rows of distinct rows Y (n, D), at most n - 1, by trees."""
    return NeighborTable.above_zero(*NearestNeighbors(n_neighbors=n_neighbors).fit(Y).kneighbors())


def exact_neighbors(Y: FloatArray, n_neighbors: int) -> NeighborTable:
    """Search the nearest other rows of rows Y (n, D), fewer if there are fewer, ties by number."""
    neighbors = other_rows(Y, n_neighbors)
    return NeighborTable(neighbor_distances(Y, Y, neighbors), neighbors)


def smallest_connecting_size(table: NeighborTable) -> int | None:
    """Return the smallest K whose symmetric graph is connected, None if the table is too short.

    Found by bisection, as a connected graph stays so when K grows.
    """

    def is_connected(n_neighbors: int) -> bool:
        graph = table.directed_graph(n_neighbors)
        return bool(connected_components(graph, directed=False, return_labels=False) == 1)

    sizes = range(1, table.n_neighbors + 1)
    position = bisect_left(sizes, True, key=is_connected)
    return sizes[position] if position < len(sizes) else None


def join_parts(graph: csr_array, Y: FloatArray) -> tuple[csr_array, IntArray]:
    """Return a graph (n, n) of rows Y (n, D) with its parts joined, and the sizes these had."""
    n_parts, part_of = connected_components(graph, directed=False)
    if n_parts > 1:
        first, second = joining_pairs(Y, part_of)
        lengths = neighbor_distances(Y[first], Y, second[:, None])[:, 0]
        links = coo_array((lengths, (first, second)), shape=graph.shape).tocsr()
        graph = csr_array(graph.maximum(links).maximum(links.T))
    return graph, np.bincount(part_of)


def joining_pairs(Y: FloatArray, part_of: IntArray) -> tuple[IntArray, IntArray]:
    """Return the pairs (first, second) of rows whose links join parts (n,)."""
    part_of = part_of.copy()
    pairs: list[tuple[int, int]] = []
    while part_of.max() > 0:
        found = []
        for part in range(part_of.max() + 1):
            inside, outside = np.flatnonzero(part_of == part), np.flatnonzero(part_of != part)
            # From the smaller side, for its rows are looked at one by one.
            few, many = sorted((inside, outside), key=len)
            near = nearest_rows(Y[few], Y[many], 1)[:, 0]
            lengths = ((Y[few] - Y[many[near]]) ** 2).sum(axis=1)
            i = int(lengths.argmin())
            one, other = int(few[i]), int(many[near[i]])
            found.append((min(one, other), max(one, other)))
        pairs += sorted(set(found))
        first, second = np.array(found).T
        count = int(part_of.max()) + 1
        ends = part_of[first], part_of[second]
        links = coo_array((np.ones(len(found)), ends), shape=(count, count))
        part_of = connected_components(links, directed=False)[1][part_of]
    both = np.array(pairs, dtype=np.int64).reshape(-1, 2)
    return both[:, 0], both[:, 1]
