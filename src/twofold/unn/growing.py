"""Latent points that are added one by one, and the K nearest of them at any time.

A k-d tree with buckets: a leaf holds up to ``LEAF`` points and is cut at the median of its widest
side when it is full. Each node knows the box around its points, so a search leaves out whatever
lies farther away than what it has. Points that arrive in order would make the tree deep; it is
then built anew. Continuous embeddings have dense and empty regions that differ by
orders of magnitude, which is why it is a tree and not a grid of cells.

Cuts are by rank, so points that are equal are halved like any others: a tree of n points that was
built anew is log₂(n / 8) deep at most. A full leaf deeper than 8 + 2 log₂(1 + n) is not cut; the
tree is built anew instead. So no leaf is ever deeper than 9 + 2 log₂(1 + n), which is below
``DEEPEST`` for any n that fits an integer.

Neighbours come nearest first and ties by number, so the result does not depend on the shape of the
tree, nor on how it came about.
"""

import math
from typing import NamedTuple

import numpy as np

from twofold.array_types import FloatArray, IntArray
from twofold.checks.rows import check_finite_points
from twofold.compiled import compiled, square, written_into_callers
from twofold.small_systems import assign

LEAF = 16
# A box lies no nearer than its points but for rounding; ties must not be lost by that.
ROUNDING = 1.0 + 1e-12
NOT_THERE = -1
# Nodes that wait while a tree is walked through: one a level, and one more.
DEEPEST = 9 + 2 * 63 + 1


class PointTree(NamedTuple):
    """A k-d tree over the rows of ``X`` that are in it."""

    X: FloatArray  # (capacity, q)
    leaf_of: IntArray  # (capacity,) the leaf each point is in, or NOT_THERE
    axis: IntArray  # (nodes,) which coordinate a node is cut along, -1 for a leaf
    cut: FloatArray  # (nodes,) points below it are in the first child, those above in the second
    child: IntArray  # (nodes,) the first child; the second one comes after it
    box: FloatArray  # (nodes, 2, q) lowest and highest coordinates of the points below
    held: IntArray  # (nodes,) how many points are in a leaf, or came to a node that was cut
    bucket: IntArray  # (nodes, LEAF) which these are
    used: IntArray  # (2,) nodes in use, points in the tree


def empty_tree(capacity: int, q: int) -> PointTree:
    """Return a tree without points, with room for n points of q coordinates."""
    nodes = capacity // 2 + 64  # leaves are made with LEAF / 2 points: twice what it takes
    tree = PointTree(
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
    rebuild(tree)
    return tree


def tree_of(X: FloatArray, capacity: int | None = None) -> PointTree:
    """Return a tree over the rows of X (n, q), with room for more where asked for."""
    check_finite_points(X)
    n = len(X)
    tree = empty_tree(max(n, capacity or 0), X.shape[1])
    tree.X[:n] = X
    tree.leaf_of[:n] = 0
    rebuild(tree)
    return tree


@compiled
def rebuild(tree: PointTree) -> None:
    """Build the tree anew over the points that are in it, as flat as it can be."""
    members = _points_of(tree)
    tree.used[0], tree.used[1] = 1, members.size
    _build(tree, tree.used[0] - 1, members)


@compiled
def _points_of(tree: PointTree) -> IntArray:
    """Return the numbers of the points in the tree."""
    members, count = np.empty(tree.leaf_of.size, dtype=np.int64), 0
    for i in range(tree.leaf_of.size):
        if tree.leaf_of[i] >= 0:
            members[count] = i
            count += 1
    return members[:count]


@compiled
def _build(tree: PointTree, root: int, members: IntArray) -> None:
    """Make the tree below a node over some points."""
    nodes, ends = np.empty(DEEPEST, dtype=np.int64), np.empty(DEEPEST, dtype=np.int64)
    nodes[0], ends[0], waiting, start = root, members.size, 1, 0
    while waiting:  # first children first, so a node's members begin where the last leaf ended
        node, end = nodes[waiting - 1], ends[waiting - 1]
        tree.axis[node], tree.held[node] = -1, 0
        tree.box[node, 0], tree.box[node, 1] = np.inf, -np.inf
        for i in members[start:end]:
            _take_in(tree, node, tree.X[i])
        if end - start <= LEAF:
            assign(tree.bucket[node], members[start:end])
            for i in members[start:end]:
                tree.leaf_of[i] = node
            waiting, start = waiting - 1, end
            continue
        half = _cut_in_half(tree, node, members[start:end])
        nodes[waiting - 1], nodes[waiting] = tree.child[node] + 1, tree.child[node]
        ends[waiting] = start + half
        waiting += 1


@compiled
def _take_in(tree: PointTree, node: int, x: FloatArray) -> None:
    """Count a point below a node, and widen its box."""
    tree.held[node] += 1
    for m in range(x.size):
        tree.box[node, 0, m] = min(tree.box[node, 0, m], x[m])
        tree.box[node, 1, m] = max(tree.box[node, 1, m], x[m])


@written_into_callers
def _cut_in_half(tree: PointTree, node: int, members: IntArray) -> int:
    """Cut a node whose box is known, give it two children, return how many go to the first."""
    # Afterwards no one of the first half is above the cut, and no one of the second below.
    axis, width = node - node, -1.0
    for m in range(tree.X.shape[1]):
        side = tree.box[node, 1, m] - tree.box[node, 0, m]
        if side > width:
            axis, width = m, side
    half = members.size // 2
    _part(members, tree.X, axis, half - 1)
    tree.axis[node], tree.child[node] = axis, tree.used[0]
    tree.cut[node] = tree.X[members[half - 1], axis]
    tree.used[0] += 2
    return half


@written_into_callers
def _part(members: IntArray, X: FloatArray, axis: int, middle: int) -> None:
    """Order points so that those before `middle` lie below it along an axis, the others above."""
    # Quickselect; equal points are exchanged, too, so that they are halved and not counted off.
    low, high = 0, members.size - 1
    while low < high:
        pivot, i, j = X[members[(low + high) // 2], axis], low, high
        while i <= j:
            while X[members[i], axis] < pivot:
                i += 1
            while X[members[j], axis] > pivot:
                j -= 1
            if i <= j:
                members[i], members[j] = members[j], members[i]
                i, j = i + 1, j - 1
        if middle <= j:
            high = j
        elif middle >= i:
            low = i
        else:  # between the two parts: equal to the pivot
            return


@compiled
def insert(tree: PointTree, i: int) -> None:
    """Take row i of ``tree.X`` in."""
    tree.used[1] += 1
    node, depth, x = i - i, 0, tree.X[i]
    while tree.axis[node] >= 0:
        _take_in(tree, node, x)
        first, cut, value = tree.child[node], tree.cut[node], x[tree.axis[node]]
        if value == cut:  # to the one with fewer, so that equal points do not make the tree deep
            node = first + (1 if tree.held[first] > tree.held[first + 1] else 0)
        else:
            node = first + (1 if value > cut else 0)
        depth += 1
    held = tree.held[node]
    if held < LEAF:
        tree.bucket[node, held] = i
        tree.leaf_of[i] = node
        _take_in(tree, node, x)
        return
    members: IntArray = np.empty(LEAF + 1, dtype=np.int64)
    assign(members, tree.bucket[node])
    members[LEAF] = i
    if depth > 8 + 2 * math.log2(1.0 + tree.used[1]) or tree.used[0] + 2 > tree.axis.size:
        tree.leaf_of[i] = 0  # and all others are built anew with it
        node, members, tree.used[0] = 0, _points_of(tree), 1
    _build(tree, node, members)


@compiled
def remove(tree: PointTree, i: int) -> None:
    """Take row i out; boxes stay as wide as they were."""
    # A box that is too wide costs a look into it, a box that is too narrow a neighbour.
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
    k = min(k, found.size, sq_dists.size)
    if tree.used[1] == 0 or k < 1:
        return 0
    count, waiting = k - k, 1
    stack, bounds = np.empty(DEEPEST, dtype=np.int64), np.empty(DEEPEST)
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
            # The nearer child on top: what it holds soon rules others out.
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
                s += square(tree.X[i, m] - x[m])
            count = keep_nearest(found, sq_dists, count, k, i, s)
    return count


@compiled
def keep_nearest(
    found: IntArray, sq_dists: FloatArray, count: int, k: int, i: int, sq_dist: float
) -> int:
    """Put a point into its place among the k >= 1 nearest, ties by number; return their count."""
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
