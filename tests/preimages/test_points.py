from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from scipy.spatial.distance import cdist
from tests.oracles import kernel_pca as oracle
from tests.preimages import cases

from twofold import rowwise
from twofold.features import L1, RBF, Custom, Linear, Polynomial
from twofold.preimages import FeaturePoints, PreImages, Status, points

KERNELS = [RBF(0.3), Linear(), Polynomial(3, 0.5, 1.0), L1()]


@pytest.mark.parametrize("kernel", [*KERNELS, Custom(lambda A, B: np.cos(A) @ np.cos(B).T)])
def test_distances_are_those_of_feature_space(kernel):
    target = cases.points(kernel, cases.rows(9), n=3, negative=True)
    Y = cases.rows(3, seed=5)
    value = cases.value_of(kernel)
    expected = [
        oracle.feature_distance(value, y, target.rows, a)
        for y, a in zip(Y, target.alpha, strict=True)
    ]
    np.testing.assert_allclose(target.distances_to(Y), expected, rtol=1e-10)
    to_rows = [
        [oracle.feature_distance(value, y, target.rows, a) for y in target.rows]
        for a in target.alpha
    ]
    np.testing.assert_allclose(target.distances_to_rows(), to_rows, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("weighted", [False, True])
def test_points_on_axes_have_the_mean_added_back(weighted):
    Y, rng = cases.rows(25), np.random.default_rng(3)
    w = rng.dirichlet(np.ones(25)) if weighted else np.full(25, 1 / 25)
    axes, X = rng.normal(size=(25, 2)), rng.normal(size=(4, 2))
    target = FeaturePoints.on_axes(RBF(0.3), Y, axes, X, weights=w if weighted else None)
    K = RBF(0.3).gram(Y, Y)
    centred = np.eye(25) - w[:, None]  # features less their mean, as columns of coefficients
    expected = w + X @ (centred @ axes).T
    np.testing.assert_allclose(target.alpha, expected, atol=1e-12)
    np.testing.assert_allclose(target.alpha.sum(axis=1), 1)
    np.testing.assert_allclose(target.products, target.alpha @ K, atol=1e-12)


def test_distance_to_the_projection_is_the_variance_left_over():
    Y, _ = cases.sinusoid(40)
    target = cases.gaussian_pca(Y, 0.9, q=4)
    K = oracle.gauss(Y, Y, 0.9)
    left = np.diag(oracle.centred(K)) - (target.coordinates**2).sum(axis=1)
    np.testing.assert_allclose(target.distances_to(Y), left, atol=1e-12)


def test_distance_on_the_map_splits_in_fit_and_rest():
    Y, _ = cases.sinusoid(40)
    target = cases.diffusion(Y, 0.8, 1.0, q=2)
    X = target.map.values(Y)
    np.testing.assert_allclose(target.distances_to(Y), (X[:, 2:] ** 2).sum(axis=1), atol=1e-14)
    assert np.isnan(cases.without(target, "map").distances_to(Y)).all()


def test_blocks_change_nothing(monkeypatch):
    target = cases.points(RBF(0.3), negative=True)
    whole = target.inner_products
    monkeypatch.setattr(rowwise, "VALUES_AT_A_TIME", 100)
    np.testing.assert_allclose(dataclasses.replace(target).inner_products, whole, rtol=1e-12)


def test_kernel_values_keep_their_digits_far_from_the_origin():
    Y = cases.rows(30)
    near = points.kernel_values(RBF(0.3), Y + 1e6, Y + 1e6)
    np.testing.assert_allclose(near, np.exp(-0.3 * cdist(Y, Y, "sqeuclidean")), atol=1e-8)


def test_shapes_are_checked():
    with pytest.raises(ValueError, match=r"`start` must have shape \(6, 3\); got \(5, 3\)"):
        cases.points(RBF(0.3), start=np.zeros((5, 3)))
    with pytest.raises(ValueError, match="`coordinates` must have 6 rows"):
        cases.points(RBF(0.3), coordinates=np.zeros((5, 2)))


def test_rows_that_overflowed_are_told_by_their_status():
    target = cases.points(RBF(0.4), n=2)
    found = PreImages.in_closed_form(target, np.array([[0.0, 1.0, 2.0], [np.nan, 0.0, np.inf]]))
    assert found.status.tolist() == [Status.CONVERGED, Status.STALLED]
    assert np.isfinite(found.distance[0])
    assert np.isnan(found.distance[1])
