"""Gaussian embedding, its refinement, and the tree that finds latent neighbours."""

from __future__ import annotations

import numpy as np
import pytest
from oracles import unn_continuous as oracle
from sklearn.datasets import load_digits

from twofold.unn.continuous import ContinuousPoints
from twofold.unn.growing import empty_tree, find_nearest, insert, remove, tree_of
from twofold.unn.point_errors import get_point_error
from twofold.unn.searches import Gaussian


def rows(seed=0, n=45, D=4):
    return np.random.default_rng(seed).normal(size=(n, D))


def with_gaps(Y, share=0.2):
    gaps = np.random.default_rng(1).random(Y.shape) < share
    gaps[:, 0] = False
    return np.where(gaps, np.nan, Y)


def points_of(Y, search=None, *, q=2, K=5, seed=3, weights=None, **options):
    points = ContinuousPoints(
        q,
        search or Gaussian(8),
        n_neighbors=K,
        rng=np.random.default_rng(seed),
        **options,
    )
    points.insert(Y, weights)
    return points


# ---- the tree ---------------------------------------------------------------------------------


def nearest_in(tree, x, k, hidden=-1):
    found, sq_dists = np.full(k, -1), np.zeros(k)
    count = find_nearest(tree, x, hidden, k, found, sq_dists)
    return found[:count]


def nearest_by_sorting(X, there, x, k):
    there = np.asarray(there)
    gaps = ((X[there] - x) ** 2).sum(axis=1)
    return there[np.lexsort((there, gaps))][:k]


@pytest.mark.parametrize("q", [1, 2, 5])
@pytest.mark.parametrize("kind", ["spread", "sorted", "sites", "copies"])
def test_tree_finds_the_nearest_points_however_they_came(q, kind):
    rng = np.random.default_rng(q)
    X = rng.normal(size=(400, q))
    if kind == "sorted":
        X = np.sort(X, axis=0)
    elif kind == "sites":  # whole numbers: many ties
        X = rng.integers(0, 5, size=(400, q)).astype(float)
    elif kind == "copies":
        X[50:200] = X[0]
    tree = empty_tree(400, q)
    tree.X[:] = X
    for i in range(400):
        insert(tree, i)
    for i in range(0, 400, 3):
        remove(tree, i)
    for i in range(0, 400, 6):
        insert(tree, i)
    there = np.flatnonzero(tree.leaf_of >= 0)
    for x in np.concatenate([X[:20], 2 * rng.normal(size=(20, q))]):
        expected = nearest_by_sorting(X, there, x, 7)
        np.testing.assert_array_equal(nearest_in(tree, x, 7), expected)
        shown = nearest_by_sorting(X, there[there != expected[0]], x, 7)
        np.testing.assert_array_equal(nearest_in(tree, x, 7, expected[0]), shown)


def test_tree_stays_shallow_for_points_that_arrive_in_order():
    X = np.linspace(0, 1, 5_000)[:, None]
    tree = empty_tree(len(X), 1)
    tree.X[:] = X
    depth = 0
    for i in range(len(X)):
        insert(tree, i)
    node = 0
    while tree.axis[node] >= 0:  # towards the end at which points arrived
        node, depth = tree.child[node] + 1, depth + 1
    assert depth < 40
    assert tree.used[1] == len(X)


def test_fewer_points_than_asked_for():
    tree = tree_of(np.array([[0.0], [2.0], [1.0]]))
    np.testing.assert_array_equal(nearest_in(tree, np.array([0.1]), 9), [0, 2, 1])
    assert nearest_in(empty_tree(3, 1), np.zeros(1), 2).size == 0


# ---- Algorithm 10 -----------------------------------------------------------------------------


@pytest.mark.parametrize("include_self", [True, False])
@pytest.mark.parametrize("spread", ["squared", "distance"])
@pytest.mark.parametrize("q", [1, 2, 5])
def test_embeds_as_the_algorithm_says(include_self, spread, q):
    Y, weights = rows(D=6), np.random.default_rng(2).integers(1, 4, 45).astype(float)
    search = Gaussian(8, spread=spread, include_self=include_self)
    points = points_of(Y, search, q=q, weights=weights)
    slow = oracle.Points(Y, q, 5, weights, include_self)
    expected = slow.gaussian(8, np.random.default_rng(3), spread=spread)
    np.testing.assert_allclose(points.latent, expected, atol=1e-9)
    assert points.full_error() == pytest.approx(slow.full_error())


def test_embeds_incomplete_rows_by_what_they_have():
    Y = with_gaps(rows())
    expected = oracle.Points(Y, 2, 5).gaussian(8, np.random.default_rng(3))
    np.testing.assert_allclose(points_of(Y).latent, expected, atol=1e-9)


@pytest.mark.parametrize(
    ("kernel", "of_product"),
    [("linear", lambda s: s), ("poly", lambda s: s**3), ("tanh", np.tanh)],
)
def test_largest_kernel_value_is_the_books_nearest_row(kernel, of_product):
    from twofold.features import Sigmoid

    Y = rows() + 0.5
    spec = Sigmoid(1.0, 0.0) if kernel == "tanh" else kernel
    search = Gaussian(8, nearest="argmax")
    error = get_point_error(data_kernel=spec, Y=Y)
    points = points_of(Y, search, error=error, has_kernel=True)

    def error_of(f, y):
        return of_product(f @ f) - 2 * of_product(f @ y) + of_product(y @ y)

    slow = oracle.Points(Y, 2, 5, error_of=error_of)

    def nearest(i, earlier):
        return max(earlier, key=lambda j: (of_product(Y[i] @ Y[j]), -j))

    expected = slow.gaussian(8, np.random.default_rng(3), nearest)
    np.testing.assert_allclose(points.latent, expected, atol=1e-8)


def test_rows_in_two_portions_are_as_good_as_in_one():
    Y = rows(n=300)
    whole = points_of(Y).latent
    parts = points_of(Y[:37])
    parts.insert(Y[37:])
    np.testing.assert_allclose(parts.latent, whole, atol=1e-9)


def test_loaded_points_go_on_as_if_embedded_here():
    Y = rows(n=80)
    first = points_of(Y[:50])
    again = ContinuousPoints(2, Gaussian(8), n_neighbors=5, rng=first.rng)
    again.load(Y[:50], first.latent)
    again.insert(Y[50:])
    np.testing.assert_allclose(again.latent, points_of(Y).latent, atol=1e-9)


def test_fill_takes_the_mean_of_neighbours():
    Y = rows()
    points = points_of(Y[:40])
    new = Y[40].copy()
    new[2] = np.nan
    points.insert(new[None])
    near = oracle.neighbors_of(points.latent[40], points.latent, range(40), 4)
    filled = points.fill(40)
    assert filled[2] == pytest.approx(Y[near, 2].mean())
    np.testing.assert_array_equal(filled[[0, 1, 3]], Y[40, [0, 1, 3]])


# Kramer 2013, table 7.3 (there called KUNN), within the spread over seeds.
@pytest.mark.parametrize(("K", "dsre", "shared"), [(5, 0.866, 0.555), (10, 1.038, 0.542)])
def test_digits_come_out_as_in_the_book(K, dsre, shared):
    Y = load_digits(n_class=6).data[:300]
    found = [points_of(Y, Gaussian(), K=K, seed=seed).latent for seed in range(3)]
    assert np.mean([oracle.normalized_dsre(Y, X, K) for X in found]) == pytest.approx(
        dsre, rel=0.04
    )
    measured = np.mean([oracle.shared_neighbors(Y, X, K) for X in found])
    assert measured == pytest.approx(shared, abs=0.04)


# ---- refinement -------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("has_gaps", [False, True])
def test_refines_as_the_slow_way_does(has_gaps):
    Y = with_gaps(rows()) if has_gaps else rows()
    weights = np.random.default_rng(2).integers(1, 4, 45).astype(float)
    points = points_of(Y, weights=weights)
    slow = oracle.Points(Y, 2, 5, weights)
    slow.X[:] = points.latent
    points.rng = np.random.default_rng(9)
    totals = points.refine(1)
    np.testing.assert_allclose(points.latent, slow.refine(8, np.random.default_rng(9)), atol=1e-9)
    assert totals[1] < totals[0]
    assert totals[1] == pytest.approx(points.full_error())


def test_refinement_beats_the_book_on_digits():
    Y = load_digits(n_class=6).data[:300]
    points = points_of(Y, Gaussian())
    points.refine(2)
    assert oracle.normalized_dsre(Y, points.latent, 5) < 0.8  # Isomap: 1.00, the book's best: 0.85
    assert oracle.shared_neighbors(Y, points.latent, 5) > 0.6


def test_interrupted_refinement_keeps_what_it_has():
    Y = rows(n=600)
    points = points_of(Y)
    before = points.full_error()

    def interrupt(done):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        points.refine(3, interrupt)
    assert points.full_error() < before
    np.testing.assert_array_equal(points.latent, points.tree.X[:600])
    assert (points.tree.leaf_of[:600] >= 0).all()
