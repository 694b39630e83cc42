"""Nearest neighbours of rows: scales, graphs, weights that combine a row from those around it."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from scipy import sparse
from scipy.sparse.csgraph import connected_components

from twofold.array_types import FloatArray, IntArray
from twofold.features.data_kernels import check_rows
from twofold.kernel_pca.telling import warn
from twofold.landmark_choice import nearest_landmarks
from twofold.table_checks import LARGEST

# Arias 2007 takes the mean distance to the 10th neighbour for a width throughout.
NEIGHBOR_FOR_SCALE = 10
# Rows whose neighbourhoods are solved at a time: bounds the memory for their differences.
ROWS_AT_A_TIME = 256
# Sizes of parts of a graph that a message lists.
SIZES_TOLD = 5


def brought_near(Z: FloatArray) -> FloatArray:
    """Return rows Z (n, D), those out of all reach where squared distances are still finite."""
    if Z.dtype != np.float64:  # smaller types have no such numbers
        return Z
    return np.clip(Z, -LARGEST, LARGEST)


def neighbor_scale(Y: FloatArray, n: int = NEIGHBOR_FOR_SCALE, *, order: int = 2) -> float:
    """Return the mean distance of rows Y (m, D) to their n-th nearest other (Arias 2007, 2.34).

    With ``order`` 1 it is the city-block distance to that row.
    """
    Y = check_rows(Y)
    n = min(n, len(Y) - 1)
    last = Y[nearest_landmarks(Y, Y, n + 1)[:, n]]
    scale = float(np.linalg.norm(Y - last, order, axis=1).mean())
    if not 0 < scale < math.inf:
        raise ValueError(
            f"The mean distance to the {n}th neighbour is {scale}, which is no width for a kernel. "
            "Scale the data, or give the kernel a width."
        )
    return scale


def other_neighbors(Y: FloatArray, k: int) -> IntArray:
    """Return the k nearest others (m, k) of each row of Y (m, D), fewer if there are fewer."""
    m = len(Y)
    found = nearest_landmarks(Y, Y, min(k, m - 1) + 1)
    others = found != np.arange(m)[:, None]
    others[others.all(axis=1), -1] = False  # as many equal rows, one of which stands for itself
    return found[others].reshape(m, -1)


def neighbor_graph(Y: FloatArray, k: int, *, quiet: bool = False) -> Any:
    """Return the sparse matrix (m, m) of distances to the k nearest others.

    Where it falls into parts these are joined, which a warning tells unless ``quiet``.
    """
    neighbors = other_neighbors(Y, k)
    m, k = neighbors.shape
    lengths = neighbor_distances(Y, Y, neighbors).ravel()
    graph = sparse.csr_matrix(
        (lengths, neighbors.ravel(), np.arange(0, m * k + 1, k)), shape=(m, m)
    )
    parts, part_of = connected_components(graph, directed=False)
    if parts == 1:
        return graph
    if not quiet:
        sizes = np.sort(np.bincount(part_of))[::-1]
        listed = ", ".join(str(size) for size in sizes[:SIZES_TOLD])
        warn(
            f"With n_neighbors={k} the rows fall into {parts} parts without a way from one to the "
            f"other, of {listed}{' ...' if parts > SIZES_TOLD else ''} rows; they were joined "
            "where they are nearest to each other. How parts lie to each other then rests on "
            "single links: raise `n_neighbors`, or fit the parts one by one."
        )
    first, second = joining_pairs(Y, part_of)
    gaps = Y[first] - Y[second]
    joints = sparse.csr_matrix((np.sqrt((gaps * gaps).sum(axis=1)), (first, second)), shape=(m, m))
    return sparse.csr_matrix(graph + joints)


def joining_pairs(Y: FloatArray, part_of: IntArray) -> tuple[IntArray, IntArray]:
    """Return the pairs (first, second) of rows that join parts (m,) by as short links as can be.

    Every part is linked to the row nearest to it outside, until one is left (Borůvka 1926).
    """
    part_of = part_of.copy()
    pairs: list[tuple[int, int]] = []
    while part_of.max() > 0:
        found = []
        for part in range(part_of.max() + 1):
            inside, outside = np.flatnonzero(part_of == part), np.flatnonzero(part_of != part)
            # From the smaller side, for its rows are looked at one by one.
            few, many = sorted((inside, outside), key=len)
            near = nearest_landmarks(Y[few], Y[many], 1)[:, 0]
            lengths = ((Y[few] - Y[many[near]]) ** 2).sum(axis=1)
            i = int(lengths.argmin())
            one, other = int(few[i]), int(many[near[i]])
            found.append((min(one, other), max(one, other)))
        pairs += sorted(set(found))
        first, second = np.array(found).T
        links = sparse.coo_matrix((np.ones(len(found)), (part_of[first], part_of[second])))
        links.resize(part_of.max() + 1, part_of.max() + 1)
        part_of = connected_components(links, directed=False)[1][part_of]
    both = np.array(pairs, dtype=np.int64).reshape(-1, 2)
    return both[:, 0], both[:, 1]


def combining_weights(
    Z: FloatArray, Y: FloatArray, neighbors: IntArray, regularization: float
) -> FloatArray:
    """Return weights (n, k) of sum one that best combine rows Z (n, D) from neighbours in Y."""
    W = np.empty(neighbors.shape)
    k = neighbors.shape[1]
    for start in range(0, len(Z), ROWS_AT_A_TIME):
        place = slice(start, start + ROWS_AT_A_TIME)
        gaps = Y[neighbors[place]] - Z[place, None]
        G = gaps @ gaps.transpose(0, 2, 1)
        trace = np.trace(G, axis1=1, axis2=2)
        ridge = regularization * np.where(trace > 0, trace, 1)
        G[:, np.arange(k), np.arange(k)] += ridge[:, None]
        solved = np.linalg.solve(G, np.ones((len(G), k, 1)))[:, :, 0]
        W[place] = solved / solved.sum(axis=1, keepdims=True)
    return W


def neighbor_distances(Z: FloatArray, Y: FloatArray, neighbors: IntArray) -> FloatArray:
    """Return the distances (n, k) of rows Z (n, D) to their neighbours in Y."""
    found = np.empty(neighbors.shape)
    for j in range(neighbors.shape[1]):
        gaps = Z - Y[neighbors[:, j]]
        found[:, j] = np.sqrt((gaps * gaps).sum(axis=1))
    return found


def rigid_pairs(neighbors: IntArray) -> tuple[IntArray, IntArray]:
    """Return the pairs (first, second) of rows that are neighbours, or neighbours of one row."""
    together = np.column_stack([np.arange(len(neighbors)), neighbors])
    first, second = np.triu_indices(together.shape[1], 1)
    pairs = np.sort(
        np.stack([together[:, first].ravel(), together[:, second].ravel()], axis=1), axis=1
    )
    distinct = np.unique(pairs, axis=0)
    return distinct[:, 0], distinct[:, 1]
