from __future__ import annotations

import numpy as np
import pytest

from twofold.latent.starts import fill_for_start


def low_rank(rng, n, D, rank, noise=0.0):
    return rng.normal(size=(n, rank)) @ rng.normal(size=(rank, D)) + noise * rng.normal(size=(n, D))


def with_gaps(rng, Y, share=0.1):
    gaps = rng.random(Y.shape) < share
    gaps[gaps.all(axis=1)] = False
    return np.where(gaps, np.nan, Y), gaps


def test_complete_tables_are_returned_as_they_are():
    Y = np.random.default_rng(0).normal(size=(5, 3))
    assert fill_for_start(Y) is Y


@pytest.mark.parametrize(("n", "D"), [(100, 12), (30, 60), (40, 40)])
def test_filled_values_are_better_than_means(n, D):
    rng = np.random.default_rng(1)
    truth = low_rank(rng, n, D, 3, noise=0.1)
    Y, gaps = with_gaps(rng, truth)
    filled = fill_for_start(Y)
    np.testing.assert_array_equal(filled[~gaps], truth[~gaps])
    means = np.broadcast_to(np.nanmean(Y, axis=0), Y.shape)
    error = np.square(filled - truth)[gaps].mean()
    assert error < 0.8 * np.square(means - truth)[gaps].mean()


@pytest.mark.parametrize("shape", [(9, 40), (40, 9), (3, 30), (2, 5)])
@pytest.mark.parametrize("rank", [0, 1, 2])
def test_tables_of_few_dimensions_are_filled_with_sensible_values(shape, rank):
    # Directions without variance must not be blown up by dividing through rounding errors.
    for seed in range(10):
        rng = np.random.default_rng(seed)
        Y = low_rank(rng, *shape, rank) + 1
        bound = 3 * np.abs(Y).max()
        Y[0, 0] = np.nan
        filled = fill_for_start(Y)
        assert np.isfinite(filled).all()
        assert np.abs(filled).max() <= bound


def test_the_table_is_not_changed_and_keeps_its_type():
    rng = np.random.default_rng(2)
    Y, gaps = with_gaps(rng, low_rank(rng, 30, 6, 2).astype(np.float32))
    filled = fill_for_start(Y)
    assert filled.dtype == np.float32
    np.testing.assert_array_equal(np.isnan(Y), gaps)
