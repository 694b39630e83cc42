from __future__ import annotations

import numpy as np
import pytest

from twofold import UNN
from twofold.array_types import FloatArray
from twofold.unn.growing import (
    DEEPEST,
    LEAF,
    NOT_THERE,
    PointTree,
    empty_tree,
    find_nearest,
    insert,
    rebuild,
    remove,
    tree_of,
)


def depth_of(tree: PointTree) -> int:
    """Return the depth of the deepest leaf, and look at every node on the way."""
    deepest, waiting, seen = 0, [(0, 0)], 0
    while waiting:
        node, depth = waiting.pop()
        seen += 1
        deepest = max(deepest, depth)
        if tree.axis[node] >= 0:
            waiting += [(int(tree.child[node]) + k, depth + 1) for k in (0, 1)]
        else:
            assert 0 <= tree.held[node] <= LEAF
            for i in tree.bucket[node, : tree.held[node]]:
                assert tree.leaf_of[i] == node
                assert (tree.box[node, 0] <= tree.X[i]).all()
                assert (tree.box[node, 1] >= tree.X[i]).all()
    assert seen == tree.used[0] <= tree.axis.size
    return deepest


def search(tree: PointTree, x: FloatArray, k: int, hidden: int = -1) -> list[int]:
    found, sq_dists = np.full(k, -7), np.empty(k)
    count = find_nearest(tree, x, hidden, k, found, sq_dists)
    return found[:count].tolist()


def expected(tree: PointTree, x: FloatArray, k: int, hidden: int = -1) -> list[int]:
    """Return the k nearest of the points that are there, ties by number."""
    there = [i for i in np.flatnonzero(tree.leaf_of != NOT_THERE) if i != hidden]
    sq_dists = ((tree.X[there] - x) ** 2).sum(axis=1)
    return [int(there[i]) for i in np.argsort(sq_dists, kind="stable")[:k]]


POINTS = {
    "all equal": lambda rng, n: np.zeros((n, 2)),
    "two places": lambda rng, n: np.repeat([[0.0, 0.0], [1.0, 1.0]], n // 2, axis=0),
    "mostly equal": lambda rng, n: rng.normal(size=(n, 2)) * (rng.random((n, 1)) < 0.1),
    "on a line": lambda rng, n: np.column_stack([np.zeros(n), np.arange(n, dtype=float)]),
    "few places": lambda rng, n: rng.integers(0, 4, (n, 2)).astype(float),
    "apart by orders": lambda rng, n: (
        rng.normal(size=(n, 2)) * 10.0 ** rng.integers(-90, 60, (n, 1))
    ),
    "anywhere": lambda rng, n: rng.normal(size=(n, 3)),
}


@pytest.mark.parametrize("name", POINTS)
def test_trees_of_points_that_coincide_are_flat_and_find_the_nearest(name: str) -> None:
    rng = np.random.default_rng(0)
    X = POINTS[name](rng, 4000)
    tree = tree_of(X)
    assert depth_of(tree) <= np.log2(len(X) / 8)
    for i in rng.integers(0, len(X), 20):
        assert search(tree, X[i], 7, hidden=i) == expected(tree, X[i], 7, hidden=i)


@pytest.mark.parametrize("name", POINTS)
def test_points_that_come_and_go_leave_the_tree_flat(name: str) -> None:
    rng = np.random.default_rng(1)
    n = 3000
    X = POINTS[name](rng, n)
    tree = empty_tree(n, X.shape[1])
    tree.X[:] = X
    for i in range(n):
        insert(tree, i)
        if i % 3 == 0:
            j = int(rng.integers(0, i + 1))
            if tree.leaf_of[j] != NOT_THERE:
                remove(tree, j)
        if i % 100 == 0:
            assert depth_of(tree) < DEEPEST - 1
            assert search(tree, X[i], 5) == expected(tree, X[i], 5)
    for j in np.flatnonzero(tree.leaf_of != NOT_THERE):
        remove(tree, j)
    assert search(tree, X[0], 5) == []
    rebuild(tree)
    assert search(tree, X[0], 5) == []


def test_more_neighbors_than_there_is_room_for_are_not_written() -> None:
    tree = tree_of(np.arange(40.0)[:, None])
    found, sq_dists = np.full(4, -7), np.full(4, np.nan)
    assert find_nearest(tree, np.array([0.0]), -1, 4, found[:2], sq_dists[:2]) == 2
    assert found.tolist() == [0, 1, -7, -7]
    for k in (0, -3):
        assert find_nearest(tree, np.array([0.0]), -1, k, found, sq_dists) == 0
    assert search(tree, np.array([0.0]), 100) == list(range(40))


def test_points_that_are_no_numbers_are_refused() -> None:
    X = np.zeros((30, 2))
    X[4, 1] = np.nan
    with pytest.raises(ValueError, match=r"1 of 30 latent points .*first: point 4"):
        tree_of(X)


def test_two_tight_clusters_are_embedded() -> None:
    rng = np.random.default_rng(0)
    centers = np.repeat([[0.0, 0.0, 0.0], [1.0, 1.0, 1.0]], 3000, axis=0)
    Y = centers + 1e-9 * rng.normal(size=centers.shape)
    model = UNN(2, random_state=0, refine=0).fit(Y)
    assert np.isfinite(model.embedding_).all()
    np.testing.assert_allclose(model.reconstruct(Y[::100]), centers[::100], atol=1e-7)
