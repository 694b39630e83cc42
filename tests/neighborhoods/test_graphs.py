from __future__ import annotations

import numpy as np
import pytest
from scipy.sparse.csgraph import connected_components, minimum_spanning_tree
from scipy.spatial.distance import pdist, squareform

from twofold.neighborhoods.graphs import (
    exact_neighbors,
    find_neighbors,
    join_parts,
    joining_pairs,
    smallest_connecting_size,
)


def test_smallest_connecting_size_by_hand():
    Y = np.array([0.0, 1.0, 2.0, 10.0, 11.0, 12.0])[:, None]
    # Two neighbours stay within each group of three; the third is across the gap.
    assert smallest_connecting_size(find_neighbors(Y, 4)) == 3
    assert smallest_connecting_size(find_neighbors(Y, 2)) is None


def test_bridges_are_the_shortest_gaps():
    Y = np.array([0.0, 1.0, 10.0, 11.0, 100.0, 101.0])[:, None]
    graph = find_neighbors(Y, 1).symmetric_graph(1)
    joined, sizes = join_parts(graph, Y)
    np.testing.assert_array_equal(sizes, [2, 2, 2])
    added = (joined - graph).tocoo()
    edges = {(int(i), int(j)): d for i, j, d in zip(*added.coords, added.data, strict=True) if d}
    assert edges == {(1, 2): 9.0, (2, 1): 9.0, (3, 4): 89.0, (4, 3): 89.0}


def test_rows_that_rounding_makes_equal_keep_their_edges():
    Y = np.repeat(np.random.default_rng(0).normal(size=(30, 20)), 2, axis=0)
    Y[::2] += 1e-13
    graph = find_neighbors(Y, 3).symmetric_graph(3)
    assert graph.nnz >= 3 * len(Y)
    assert graph.data.min() > 0


def test_a_connected_graph_is_left_as_it_is():
    Y = np.arange(5.0)[:, None]
    graph = find_neighbors(Y, 2).symmetric_graph(2)
    joined, sizes = join_parts(graph, Y)
    assert joined is graph
    np.testing.assert_array_equal(sizes, [5])


def test_a_directed_graph_is_joined_both_ways():
    Y = np.array([0.0, 1.0, 10.0, 11.0])[:, None]
    joined, _ = join_parts(exact_neighbors(Y, 1).directed_graph(1), Y)
    assert joined[1, 2] == joined[2, 1] == 9
    assert connected_components(joined, directed=True, connection="strong")[0] == 1


def test_both_searches_find_the_same_neighbours():
    Y = np.random.default_rng(1).normal(size=(80, 4))
    by_trees, exact = find_neighbors(Y, 7), exact_neighbors(Y, 7)
    np.testing.assert_array_equal(by_trees.indices, exact.indices)
    np.testing.assert_allclose(by_trees.distances, exact.distances, rtol=1e-12)
    assert exact_neighbors(Y[:4], 7).n_neighbors == 3


def test_joining_pairs_are_the_links_of_a_shortest_tree():
    Y = np.random.default_rng(3).normal(size=(40, 2))
    part = np.arange(40)  # every row on its own: the tree of all rows
    first, second = joining_pairs(Y, part)
    found = np.linalg.norm(Y[first] - Y[second], axis=1).sum()
    assert len(first) == 39
    assert found == pytest.approx(minimum_spanning_tree(squareform(pdist(Y))).sum())
