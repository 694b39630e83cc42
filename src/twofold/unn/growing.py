"""Latent points that are added one by one, and the K nearest of them at any time.

A k-d tree with buckets: a leaf holds up to ``LEAF`` points and is cut at the median of its widest
side when it is full. Each node knows the box around its points, so a search leaves out whatever
lies farther away than what it has. Points that arrive in order would make the tree deep; it is
then built anew. Continuous embeddings have dense and empty regions that differ by
orders of magnitude, which is why it is a tree and not a grid of cells.

Neighbours come nearest first and ties by number, so the result does not depend on the shape of the
tree, nor on how it came about.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from twofold.array_types import FloatArray, IntArray
from twofold.compiled import compiled

LEAF = 16
# A box lies no nearer than its points but for rounding; ties must not be lost by that.
ROUNDING = 1.0 + 1e-12
NOT_THERE = -1


class PointTree(NamedTuple):
    """A k-d tree over the rows of ``X`` that are in it.

    Attributes
    ----------
    X : (capacity, q) coordinates
    leaf_of : (capacity,) the leaf each point is in, or NOT_THERE
    axis : (nodes,) which coordinate a node is cut along, -1 for a leaf
    cut : (nodes,) up to this value points are in the first child
    child : (nodes,) the first child; the second one comes after it
    box : (nodes, 2, q) lowest and highest coordinates of the points below
    held : (nodes,) how many points are in a leaf
    bucket : (nodes, LEAF) which these are
    used : (2,) nodes in use, points in the tree
    """

    X: FloatArray
    leaf_of: IntArray
    axis: IntArray
    cut: FloatArray
    child: IntArray
    box: FloatArray
    held: IntArray
    bucket: IntArray
    used: IntArray


def empty_tree(capacity: int, q: int) -> PointTree:
    """Return a tree without points, with room for so many of q coordinates."""
    nodes = capacity // 2 + 64  # a leaf of a cut has at least LEAF / 2 points: twice what it takes
    return PointTree(
        np.zeros((capacity, q)),
        np.full(capacity, NOT_THERE),
        np.full(nodes, -1),
        np.zeros(nodes),
        np.zeros(nodes, dtype=np.int64),
        np.zeros((nodes, 2, q)),
        np.zeros(nodes, dtype=np.int64),
        np.zeros((nodes, LEAF), dtype=np.int64),
        np.zeros(2, dtype=np.int64),
    )


def tree_of(X: FloatArray, capacity: int | None = None) -> PointTree:
    """Return a tree over the rows of X (n, q), with room for more where asked for."""
    n, q = X.shape
    tree = empty_tree(max(n, capacity or 0), q)
    tree.X[:n] = X
    tree.leaf_of[:n] = 0
    rebuild(tree)
    return tree


@compiled
def rebuild(tree: PointTree) -> None:
    """Build the tree anew over the points that are in it.

    They come in steps of the golden ratio, not in the order that made the tree deep.
    """
    members = np.empty(tree.leaf_of.size, dtype=np.int64)
    there = 0
    for i in range(tree.leaf_of.size):
        members[there] = i
        there += tree.leaf_of[i] >= 0
    tree.used[1] = there
    tree.used[0] = 1
    _clear_leaf(tree, 0)
    step = max(1, int(0.6180339887498949 * there))
    while there and math.gcd(step, there) > 1:
        step += 1
    place = 0
    for _ in range(there):
        node, _ = _descend(tree, tree.X[members[place]])
        _put(tree, node, members[place])
        place = (place + step) % there


@compiled
def insert(tree: PointTree, i: int) -> None:
    """Take row i of ``tree.X`` in."""
    if tree.used[1] == 0:
        tree.used[0] = 1
        _clear_leaf(tree, 0)
    tree.used[1] += 1
    node, depth = _descend(tree, tree.X[i])
    is_deep = depth > 8 + 2 * math.log2(1.0 + tree.used[1])
    if tree.held[node] == LEAF and (is_deep or tree.used[0] + 2 > tree.axis.size):
        tree.leaf_of[i] = 0
        rebuild(tree)
    else:
        _put(tree, node, i)


@compiled
def remove(tree: PointTree, i: int) -> None:
    """Take row i out; boxes stay as wide as they were."""
    node = tree.leaf_of[i]
    last = tree.held[node] - 1
    for place in range(last):
        if tree.bucket[node, place] == i:
            tree.bucket[node, place] = tree.bucket[node, last]
    tree.held[node] = last
    tree.leaf_of[i] = NOT_THERE
    tree.used[1] -= 1


@compiled
def find_nearest(
    tree: PointTree, x: FloatArray, hidden: int, k: int, found: IntArray, sq_dists: FloatArray
) -> int:
    """Write the k nearest points to x, nearest first, without ``hidden``; return how many."""
    if tree.used[1] == 0:
        return 0
    count, waiting = 0, 1
    stack, bounds = np.empty(256, dtype=np.int64), np.empty(256)
    stack[0], bounds[0] = 0, 0.0
    while waiting:
        waiting -= 1
        node = stack[waiting]
        if count == k and bounds[waiting] > sq_dists[k - 1] * ROUNDING:
            continue
        if tree.axis[node] >= 0:
            one, other = tree.child[node], tree.child[node] + 1
            near, far = _distance_to_box(tree, one, x), _distance_to_box(tree, other, x)
            if near > far:
                one, other, near, far = other, one, far, near
            stack[waiting], bounds[waiting] = other, far
            stack[waiting + 1], bounds[waiting + 1] = one, near
            waiting += 2
            continue
        for place in range(tree.held[node]):
            i = tree.bucket[node, place]
            if i == hidden:
                continue
            s = 0.0
            for m in range(x.size):
                s += (tree.X[i, m] - x[m]) ** 2
            count = keep_nearest(found, sq_dists, count, k, i, s)
    return count


@compiled
def keep_nearest(
    found: IntArray, sq_dists: FloatArray, count: int, k: int, i: int, sq_dist: float
) -> int:
    """Put a point into its place among the nearest, ties by number; return how many there are."""
    if count == k:
        last = sq_dists[k - 1]
        if sq_dist > last or (sq_dist == last and i > found[k - 1]):
            return count
    place = count if count < k else k - 1
    while place > 0 and (
        sq_dists[place - 1] > sq_dist or (sq_dists[place - 1] == sq_dist and found[place - 1] > i)
    ):
        found[place], sq_dists[place] = found[place - 1], sq_dists[place - 1]
        place -= 1
    found[place], sq_dists[place] = i, sq_dist
    return min(count + 1, k)


@compiled
def _distance_to_box(tree: PointTree, node: int, x: FloatArray) -> float:
    s = 0.0
    for m in range(x.size):
        gap = max(tree.box[node, 0, m] - x[m], x[m] - tree.box[node, 1, m], 0.0)
        s += gap * gap
    return s


@compiled
def _descend(tree: PointTree, x: FloatArray) -> tuple[int, int]:
    """Return the leaf for a point, and its depth; boxes on the way widen."""
    node, depth = 0, 0
    while tree.axis[node] >= 0:
        _widen(tree, node, x)
        node = _side(tree, node, x)
        depth += 1
    return node, depth


@compiled
def _side(tree: PointTree, node: int, x: FloatArray) -> int:
    return tree.child[node] + (1 if x[tree.axis[node]] > tree.cut[node] else 0)


@compiled
def _put(tree: PointTree, node: int, i: int) -> None:
    """Put a point into a leaf, which is split if it is full."""
    if tree.held[node] == LEAF:
        _split(tree, node)
        _widen(tree, node, tree.X[i])
        node = _side(tree, node, tree.X[i])
    tree.bucket[node, tree.held[node]] = i
    tree.held[node] += 1
    tree.leaf_of[i] = node
    _widen(tree, node, tree.X[i])


@compiled
def _clear_leaf(tree: PointTree, node: int) -> None:
    tree.axis[node], tree.held[node] = -1, 0
    for m in range(tree.X.shape[1]):
        tree.box[node, 0, m], tree.box[node, 1, m] = np.inf, -np.inf


@compiled
def _widen(tree: PointTree, node: int, x: FloatArray) -> None:
    for m in range(x.size):
        tree.box[node, 0, m] = min(tree.box[node, 0, m], x[m])
        tree.box[node, 1, m] = max(tree.box[node, 1, m], x[m])


@compiled
def _split(tree: PointTree, node: int) -> None:
    """Cut a full leaf at the median of its widest side."""
    axis, width = 0, -1.0
    for m in range(tree.X.shape[1]):
        side = tree.box[node, 1, m] - tree.box[node, 0, m]
        if side > width:
            axis, width = m, side
    members = tree.bucket[node]
    for place in range(1, LEAF):
        i, at = members[place], place
        while at > 0 and tree.X[members[at - 1], axis] > tree.X[i, axis]:
            members[at] = members[at - 1]
            at -= 1
        members[at] = i
    first, half = tree.used[0], LEAF // 2
    tree.used[0] += 2
    tree.axis[node], tree.child[node] = axis, first
    tree.cut[node] = tree.X[members[half - 1], axis]
    for place in range(LEAF):
        leaf, i = first + place // half, members[place]
        if place % half == 0:
            _clear_leaf(tree, leaf)
        tree.bucket[leaf, place % half] = i
        tree.held[leaf] = place % half + 1
        tree.leaf_of[i] = leaf
        _widen(tree, leaf, tree.X[i])
