from __future__ import annotations

import numpy as np
import pytest

from twofold import UKR, NadarayaWatson, upgrade
from twofold.sample_weights import checked_weights

ROWS = np.random.default_rng(0).normal(size=(20, 3))


def test_none_means_ones():
    np.testing.assert_array_equal(checked_weights(None, ROWS), np.ones(20))


@pytest.mark.parametrize("size", [1e-300, 1e-61, 1e61, 1e300])
def test_weights_that_leave_the_range_of_numbers_are_refused(size):
    weights = np.full(20, size)
    with pytest.raises(ValueError, match=r"largest entry of `sample_weight` is .*divide all"):
        UKR(max_iter=1, random_state=0).fit(ROWS, sample_weight=weights)
    with pytest.raises(ValueError, match="largest entry"):
        NadarayaWatson().fit(ROWS, ROWS[:, 0], sample_weight=weights)
    with pytest.raises(ValueError, match="largest entry"):
        upgrade(ROWS[:, :2], ROWS, sample_weight=weights)


@pytest.mark.parametrize("odd", [np.nan, np.inf, -1.0])
def test_odd_weights_are_refused(odd):
    weights = np.ones(20)
    weights[3] = odd
    with pytest.raises(ValueError, match=r"[Ss]ample"):
        upgrade(ROWS[:, :2], ROWS, sample_weight=weights)


def test_a_weight_may_be_next_to_nothing():
    weights = np.ones(20)
    weights[3] = 1e-200
    model = UKR(max_iter=3, random_state=0).fit(ROWS, sample_weight=weights)
    assert np.isfinite(model.embedding_).all()
