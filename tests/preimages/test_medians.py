from __future__ import annotations

import numpy as np
import pytest

from twofold.preimages.medians import SortedColumns


def lowest_corner(column, weights):
    """Return the lowest of the values that minimise ``Σ w |t - y|``, by trying all of them."""
    places = np.sort(column)
    heights = np.abs(places[:, None] - column) @ weights
    return places[np.flatnonzero(heights <= heights.min() + 1e-12)[0]]


def weights(n, m, share_negative, seed=0):
    rng = np.random.default_rng(seed)
    W = rng.exponential(size=(n, m))
    W[rng.random(size=W.shape) < share_negative] *= -1
    return W * np.sign(W.sum(axis=1, keepdims=True))


@pytest.mark.parametrize("share_negative", [0.0, 0.1, 0.3, 0.45])
@pytest.mark.parametrize("m", [1, 31, 32, 33, 150])
def test_the_lowest_of_all_corners(share_negative, m):
    rows = np.random.default_rng(1).normal(size=(m, 3))
    rows[:, 2] = np.round(rows[:, 2])  # with ties
    W = weights(7, m, share_negative)
    found = SortedColumns(rows).medians(W)
    expected = [[lowest_corner(column, w) for column in rows.T] for w in W]
    np.testing.assert_array_equal(found, expected)


def test_flat_parts_give_their_lower_end_whoever_goes_along():
    # Half of the weight on each side: after the middle nothing changes but by rounding.
    rows = np.arange(120.0)[:, None]
    even = np.full((1, 120), 1 / 120)
    columns = SortedColumns(rows)
    alone = columns.medians(even)
    np.testing.assert_allclose(alone, 59.0, atol=1.0)
    among = columns.medians(np.concatenate([weights(40, 120, 0.4), even, weights(40, 120, 0.4, 1)]))
    np.testing.assert_array_equal(among[40], alone[0])


@pytest.mark.parametrize("n", [1, 33, 70])
def test_a_point_is_the_same_alone_and_on_any_number_of_threads(n):
    rows = np.random.default_rng(2).normal(size=(90, 4))
    W = weights(n, 90, 0.2)
    columns = SortedColumns(rows)
    together = columns.medians(W)
    np.testing.assert_array_equal(columns.medians(W, n_threads=3), together)
    np.testing.assert_array_equal(columns.medians(W[n // 2 : n // 2 + 1])[0], together[n // 2])
    assert columns.medians(W[:0]).shape == (0, 4)
