from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from tests.preimages import cases

from twofold.preimages import FixedPoint, Gradient, criteria

KERNELS = ["rbf", "poly2", "poly3c"]


def sparse_points(kernel, n=9, share=0.15):
    """Return points of which every second has weights on few rows, some of them negative."""
    Y, rng = cases.rows(40, D=5), np.random.default_rng(3)
    alpha = cases.coefficients(n, 40, negative=True)
    alpha[::2] *= rng.random(size=alpha[::2].shape) < share
    alpha[::2, 0] += 1 - alpha[::2].sum(axis=1)
    return dataclasses.replace(cases.points(kernel, Y, n=n, n_jobs=1), alpha=alpha)


@pytest.mark.parametrize("collinearity", [False, True])
@pytest.mark.parametrize("name", KERNELS)
def test_few_weights_give_what_matrix_products_give(name, collinearity):
    target = sparse_points(cases.SMOOTH[name])
    Z, everyone = cases.rows(9, D=5, seed=8), np.arange(9)
    criterion = criteria.distance_criterion(target, collinearity=collinearity)
    np.testing.assert_array_equal(criterion._sparse.is_few, everyone % 2 == 0)
    found = criterion.look(Z, everyone)
    other = criteria.distance_criterion(target, collinearity=collinearity)
    other._sparse.is_few[:] = False
    for mine, theirs in zip(found, other.look(Z, everyone), strict=True):
        np.testing.assert_allclose(mine, theirs, rtol=1e-11, atol=1e-13)


@pytest.mark.parametrize("method", [FixedPoint(), Gradient()], ids=repr)
@pytest.mark.parametrize("name", KERNELS)
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
    np.testing.assert_allclose(target.inner_products(), target.alpha @ K, atol=1e-13)
    known = dataclasses.replace(target, gram=K)
    np.testing.assert_allclose(known.inner_products(), target.alpha @ K, atol=1e-13)
