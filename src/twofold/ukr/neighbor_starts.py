"""The shared table of nearest neighbours, the graphs cut from it, and the t-SNE start.

One exact search gives every row its nearest other rows, nearest first, so that the table of K
neighbours is the first K columns of the table of k > K neighbours. Every graph-based start reads
its graph from this one table.

The t-SNE start minimises KL(P || Q) (van der Maaten, "Accelerating t-SNE using tree-based
algorithms", JMLR 2014) from a given embedding *without* early exaggeration. The exaggeration
exists to let clusters form from a random start; a start that brings the coarse order along does
not need it, and its 250 iterations are better spent on descent: on the digits data 250
iterations then reach the leave-one-out error that takes 500 with exaggeration.
"""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import dataclass
from importlib import import_module

import numpy as np
from scipy.sparse import coo_array, csr_array
from scipy.sparse.csgraph import connected_components
from sklearn.manifold import TSNE
from sklearn.metrics import pairwise_distances_argmin_min
from sklearn.neighbors import NearestNeighbors

from twofold.array_types import BoolArray, FloatArray, IntArray

PERPLEXITY = 30.0
TSNE_NEIGHBORS = int(3 * PERPLEXITY) + 1
# scikit-learn's Barnes-Hut tree has no more than three dimensions.
MAX_TSNE_DIMENSIONS = 3
# The smallest number of iterations that scikit-learn accepts.
_TSNE_ITERATIONS = 250
# Barnes-Hut opening angle; 0.8 costs no accuracy that the start could show and saves a third.
_TSNE_ANGLE = 0.8


@dataclass(frozen=True)
class NeighborTable:
    """The k nearest other rows of every row, nearest first.

    Attributes
    ----------
    distances : ndarray of shape (n, k)
        Euclidean distances, all positive.
    indices : ndarray of shape (n, k)
        Row numbers of the neighbours.
    """

    distances: FloatArray
    indices: IntArray

    @property
    def n_neighbors(self) -> int:
        """Number of neighbours stored for each row."""
        return int(self.indices.shape[1])

    def directed_graph(self, n_neighbors: int) -> csr_array:
        """Return the (n, n) graph with an edge from every row to its nearest ones."""
        n = len(self.indices)
        row_starts = np.arange(0, n * n_neighbors + 1, n_neighbors, dtype=np.int32)
        distances = self.distances[:, :n_neighbors].ravel()
        indices = self.indices[:, :n_neighbors].ravel()
        return csr_array((distances, indices, row_starts), shape=(n, n))

    def symmetric_graph(self, n_neighbors: int) -> csr_array:
        """Return the (n, n) graph where an edge of either direction counts for both."""
        graph = self.directed_graph(n_neighbors)
        return csr_array(graph.maximum(graph.T))


def find_neighbors(Y: FloatArray, n_neighbors: int) -> NeighborTable:
    """Search the nearest other rows of every row exactly.

    Parameters
    ----------
    Y : ndarray of shape (n, D)
        Data, rows distinct.
    n_neighbors : int
        Number of neighbours, at most n - 1.

    Returns
    -------
    NeighborTable
        Distances are raised to a tiny positive floor, because rounding can make two distinct
        rows coincide and a sparse graph takes a zero for "no edge".
    """
    distances, indices = NearestNeighbors(n_neighbors=n_neighbors).fit(Y).kneighbors()
    floor = max(1e-12 * float(distances.mean()), np.finfo(np.float64).tiny)
    # Part of scikit-learn takes no sparse graph with 64-bit indices.
    return NeighborTable(np.maximum(distances, floor), indices.astype(np.int32))


def smallest_connecting_size(table: NeighborTable) -> int | None:
    """Return the smallest K whose symmetric graph is connected, None if the table is too short.

    Parameters
    ----------
    table : NeighborTable
        Nearest neighbours of every row.

    Returns
    -------
    int or None
        K_min; found by bisection, as a connected graph stays so when K grows.
    """

    def is_connected(n_neighbors: int) -> bool:
        graph = table.directed_graph(n_neighbors)
        return bool(connected_components(graph, directed=False, return_labels=False) == 1)

    sizes = range(1, table.n_neighbors + 1)
    position = bisect_left(sizes, True, key=is_connected)
    return sizes[position] if position < len(sizes) else None


def bridge_components(graph: csr_array, Y: FloatArray) -> csr_array:
    """Join the components of a symmetric graph by the shortest edges that can do it.

    Borůvka's rounds: each component gets an edge to the row nearest to it outside, until one
    component is left. Between the components this is the minimum spanning tree, so clusters far
    apart are strung together along their gaps and nothing else in the graph changes.

    Parameters
    ----------
    graph : csr_array of shape (n, n)
        Symmetric distance graph.
    Y : ndarray of shape (n, D)
        The rows behind the graph.

    Returns
    -------
    csr_array of shape (n, n)
        Symmetric and connected.
    """
    while True:
        n_components, labels = connected_components(graph, directed=False)
        if n_components == 1:
            return graph
        bridges = np.array([_shortest_way_out(Y, labels == c) for c in range(n_components)])
        heads, tails = bridges[:, :2].astype(np.intp).T
        links = coo_array((bridges[:, 2], (heads, tails)), shape=graph.shape).tocsr()
        graph = csr_array(graph.maximum(links).maximum(links.T))


def _shortest_way_out(Y: FloatArray, is_inside: BoolArray) -> tuple[int, int, float]:
    """Return (row inside, row outside, distance) of the closest such pair."""
    inside, outside = np.flatnonzero(is_inside), np.flatnonzero(~is_inside)
    nearest, distances = pairwise_distances_argmin_min(Y[inside], Y[outside])
    best = int(np.argmin(distances))
    return int(inside[best]), int(outside[nearest[best]]), float(distances[best])


def tsne_start(table: NeighborTable, X_start: FloatArray, random_state: int) -> FloatArray:
    """Embed by t-SNE from a given start.

    Parameters
    ----------
    table : NeighborTable
        Nearest neighbours of every row, at least ``min(n - 1, TSNE_NEIGHBORS)`` of them.
    X_start : ndarray of shape (n, q)
        Start, e.g. principal components, with a standard deviation of about one; q at most 3.
    random_state : int
        Seed of the jitter that separates rows with the same start.

    Returns
    -------
    ndarray of shape (n, q)
        The embedding.
    """
    n, q = X_start.shape
    perplexity = min(PERPLEXITY, (n - 1) / 3)
    jitter = np.random.default_rng(random_state).normal(scale=1e-4, size=(n, q))
    model = TSNE(
        q,
        metric="precomputed",
        perplexity=perplexity,
        early_exaggeration=1.0,
        max_iter=_TSNE_ITERATIONS,
        angle=_TSNE_ANGLE,
        init=(X_start + jitter).astype(np.float32),
        random_state=random_state,
        n_jobs=1,
    )
    # The number of neighbours that scikit-learn reads for this perplexity.
    n_neighbors = min(n - 1, int(3 * perplexity + 1))
    embedding: FloatArray = model.fit_transform(_graph_with_self(table, n_neighbors))
    return embedding.astype(np.float64)


def _graph_with_self(table: NeighborTable, n_neighbors: int) -> csr_array:
    """Return the directed graph with every row as its own first neighbour at distance zero."""
    n = len(table.indices)
    row_starts = np.arange(0, n * (n_neighbors + 1) + 1, n_neighbors + 1, dtype=np.int32)
    # scikit-learn squares the distances in single precision; only their ratios matter.
    distances = table.distances[:, :n_neighbors] / np.median(table.distances)
    distances = np.insert(distances, 0, 0.0, axis=1)
    indices = np.insert(table.indices[:, :n_neighbors], 0, np.arange(n), axis=1)
    return csr_array((distances.ravel(), indices.ravel(), row_starts), shape=(n, n))


def unn_start(Y: FloatArray, q: int, random_state: int) -> FloatArray:
    """Embed by unsupervised nearest neighbours: ranks on a line, or a refined Gaussian embedding.

    That is a family beside this one, so it is asked by name, at run time only.

    Parameters
    ----------
    Y : ndarray of shape (n, D)
        Distinct rows.
    q : int
        Number of latent dimensions.
    random_state : int
        Seed of the order of rows and of the places that are tried.

    Returns
    -------
    ndarray of shape (n, q)
        The embedding.
    """
    family = import_module("twofold.unn")
    embedding: FloatArray = family.UNN(q, random_state=random_state, n_jobs=1).fit_transform(Y)
    return embedding
