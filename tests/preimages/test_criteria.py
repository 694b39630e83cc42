from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from tests.finite_differences import numerical_gradient, relative_error
from tests.preimages import cases

from twofold.features import RBF, Polynomial
from twofold.preimages import FixedPoint, Gradient
from twofold.preimages.criteria import distance_criterion, projection_criterion

all_smooth = pytest.mark.parametrize("name", cases.SMOOTH)
EVERYONE = np.arange(6)


def values(criterion, Z):
    return criterion.look(Z, EVERYONE).value


def gradient_error(criterion, Z):
    found = criterion.look(Z, EVERYONE).gradient
    expected = numerical_gradient(lambda V: values(criterion, V).sum(), Z)
    return relative_error(found, expected)


@all_smooth
@pytest.mark.parametrize("collinearity", [False, True], ids=["distance", "collinearity"])
def test_gradients(name, collinearity):
    target = cases.points(cases.SMOOTH[name], negative=True)
    criterion = distance_criterion(target, collinearity=collinearity)
    assert gradient_error(criterion, cases.rows(6, seed=7)) < 1e-7


def test_gradient_of_the_projection():
    Y, _ = cases.sinusoid(40)
    target = cases.diffusion(Y, 0.8, 1.0, q=2)
    criterion = projection_criterion(target)
    assert gradient_error(criterion, Y[:6] + 0.1) < 1e-6


@all_smooth
def test_distance_is_the_distance_but_for_a_constant(name):
    target = cases.points(cases.SMOOTH[name], negative=True)
    Z = cases.rows(6, seed=7)
    criterion = distance_criterion(target)
    gaps = target.distances_to(Z) - values(criterion, Z)
    other = target.distances_to(0.5 * Z) - values(criterion, 0.5 * Z)
    np.testing.assert_allclose(gaps, other, rtol=1e-9)


def test_gaussian_move_is_the_fixed_point():
    target, Z = cases.points(RBF(0.4)), cases.rows(6, seed=7)
    W = target.alpha * RBF(0.4).gram(Z, target.rows)
    expected = W @ target.rows / W.sum(axis=1, keepdims=True)
    look = distance_criterion(target).look(Z, EVERYONE)
    np.testing.assert_allclose(Z + look.moves, expected, atol=1e-12)


@pytest.mark.parametrize("degree", [1, 2, 3])
def test_polynomial_moves_are_the_fixed_points(degree):
    target, Z = cases.points(Polynomial(degree, 0.7, 4.0)), cases.rows(6, seed=7)
    base, own = 0.7 * Z @ target.rows.T + 4, 0.7 * (Z**2).sum(axis=1)[:, None] + 4
    slopes = (target.alpha * base ** (degree - 1)) @ target.rows / own ** (degree - 1)
    S = (target.alpha * base**degree).sum(axis=1, keepdims=True)
    assert (S > 0).all()
    by_distance = distance_criterion(target).look(Z, EVERYONE)
    np.testing.assert_allclose(Z + by_distance.moves, slopes, atol=1e-12)
    by_angle = distance_criterion(target, collinearity=True).look(Z, EVERYONE)
    np.testing.assert_allclose(Z + by_angle.moves, slopes * own**degree / S, atol=1e-12)


def test_moves_stay_bounded_where_weights_cancel():
    Y = cases.rows(40)
    target = cases.points(RBF(0.4), Y, negative=True)
    alpha = target.alpha - target.alpha.mean(axis=1, keepdims=True)  # sums of nothing
    criterion = distance_criterion(cases.without(target))
    object.__setattr__(criterion, "alpha", alpha)
    look = criterion.look(cases.rows(6, seed=7), EVERYONE)
    assert (look.rate > 0).all()
    assert (np.linalg.norm(look.moves, axis=1) < 1e3 * np.ptp(Y)).all()


def test_nothing_is_felt_far_away():
    far = np.full((6, 3), 1e200)
    look = distance_criterion(cases.points(RBF(0.4))).look(far, EVERYONE)
    assert (look.rate == 0).all()
    assert (look.moves == 0).all()


SPARSE_KERNELS = ["rbf", "poly2", "poly3c"]


def sparse_points(kernel, n=9, share=0.15):
    """Return points of which every second has weights on few rows, some of them negative."""
    Y, rng = cases.rows(40, D=5), np.random.default_rng(3)
    alpha = cases.coefficients(n, 40, negative=True)
    alpha[::2] *= rng.random(size=alpha[::2].shape) < share
    alpha[::2, 0] += 1 - alpha[::2].sum(axis=1)
    return dataclasses.replace(cases.points(kernel, Y, n=n, n_jobs=1), alpha=alpha)


@pytest.mark.parametrize("collinearity", [False, True])
@pytest.mark.parametrize("name", SPARSE_KERNELS)
def test_few_weights_give_what_matrix_products_give(name, collinearity):
    target = sparse_points(cases.SMOOTH[name])
    Z, everyone = cases.rows(9, D=5, seed=8), np.arange(9)
    criterion = distance_criterion(target, collinearity=collinearity)
    np.testing.assert_array_equal(criterion._sparse.is_few, everyone % 2 == 0)
    found = criterion.look(Z, everyone)
    other = distance_criterion(target, collinearity=collinearity)
    other._sparse.is_few[:] = False
    for mine, theirs in zip(found, other.look(Z, everyone), strict=True):
        np.testing.assert_allclose(mine, theirs, rtol=1e-11, atol=1e-13)


@pytest.mark.parametrize("method", [FixedPoint(), Gradient()], ids=repr)
@pytest.mark.parametrize("name", SPARSE_KERNELS)
def test_a_point_is_the_same_alone_and_among_others(method, name):
    target = sparse_points(cases.SMOOTH[name], n=81)
    together = method.find(target)
    threads = method.find(dataclasses.replace(target, n_jobs=3))
    np.testing.assert_array_equal(threads.Y, together.Y)
    for i in (0, 1, 70):
        alone = method.find(dataclasses.replace(target, alpha=target.alpha[i : i + 1]))
        np.testing.assert_array_equal(alone.Y[0], together.Y[i])


def test_products_of_few_and_of_many_weights():
    target = sparse_points(cases.SMOOTH["rbf"], share=0.05)
    K = target.kernel.gram(target.rows, target.rows)
    np.testing.assert_allclose(target.inner_products, target.alpha @ K, atol=1e-13)
    known = dataclasses.replace(target, gram=K)
    np.testing.assert_allclose(known.inner_products, target.alpha @ K, atol=1e-13)
