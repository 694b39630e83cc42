"""How far intervals reach, against counting by hand."""

from __future__ import annotations

import numpy as np
import pytest

from twofold.noise.conformal import Ratios, conformal_reach, quantile


def test_a_quantile_leaves_room_for_a_new_value():
    values = np.arange(1.0, 20.0)  # of 19 and a new one, 18 are 90 %
    assert quantile(values, np.ones(19), 0.9) == 18
    assert quantile(values, np.ones(19), 0.99) == 19
    # A value that counts twice is there twice, but is worth less than two values.
    counts = np.where(values == 10, 2.0, 1.0)
    worth = 20**2 / 22
    position = 0.5 * (1 + 1 / worth) * 20
    assert quantile(values, counts, 0.5) == np.sort(np.append(values, 10))[int(position)]


def test_columns_have_their_own_reach_as_far_as_they_can_tell():
    random = np.random.default_rng(0)
    columns = np.repeat([0, 1, 2], [2000, 2000, 3])
    sizes = np.abs(random.normal(size=4003)) * np.array([1, 2, 9])[columns]
    reach = conformal_reach(Ratios(sizes, columns, np.ones(4003)), 4, 0.9)
    assert reach[:2] == pytest.approx([1.645, 3.29], rel=0.06)
    assert reach[3] == pytest.approx(quantile(sizes, np.ones(4003), 0.9))
    assert reach[2] < 1.5 * reach[3]  # three entries do not say much


def test_the_share_that_is_asked_for_is_held_on_average():
    random = np.random.default_rng(1)
    held = []
    for _ in range(300):
        sizes = np.abs(random.standard_t(3, 60))
        reach = conformal_reach(Ratios(sizes, np.zeros(60, int), np.ones(60)), 1, 0.9)
        held.append((np.abs(random.standard_t(3, 200)) < reach).mean())
    assert np.mean(held) == pytest.approx(0.9, abs=0.012)


def test_columns_of_few_entries_share_what_all_of_them_tell():
    random = np.random.default_rng(2)
    held = []
    for _ in range(100):
        sizes = np.abs(random.standard_t(3, 400))
        reach = conformal_reach(Ratios(sizes, np.arange(400) % 20, np.ones(400)), 20, 0.9)
        held.append((np.abs(random.standard_t(3, (500, 20))) < reach).mean())
    # If the other columns were worth 30 entries, it would be 0.913.
    assert np.mean(held) == pytest.approx(0.9, abs=0.005)
