from __future__ import annotations

import numpy as np
from finite_differences import numerical_gradient

from twofold.losses import Squared


def test_squared_by_hand():
    losses, slopes = Squared().value_and_slope(np.array([[3.0, 4.0], [0.0, -1.0]]))
    np.testing.assert_array_equal(losses, [25, 1])
    np.testing.assert_array_equal(slopes, [[6, 8], [0, -2]])


def test_the_slope_is_the_derivative():
    R = np.random.default_rng(0).normal(size=(4, 3))
    expected = numerical_gradient(lambda Z: Squared().value_and_slope(Z)[0].sum(), R)
    np.testing.assert_allclose(Squared().value_and_slope(R)[1], expected, rtol=1e-8)


def test_what_is_missing_costs_nothing():
    losses, slopes = Squared().value_and_slope(np.zeros((2, 3)))
    assert not losses.any()
    assert not slopes.any()


def test_single_precision_stays_single():
    losses, slopes = Squared().value_and_slope(np.ones((2, 3), dtype=np.float32))
    assert losses.dtype == slopes.dtype == np.float32
