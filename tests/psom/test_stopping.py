"""The end of the annealing: which rows are held out, and what their errors decide."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from twofold import PSOM
from twofold.datasets import make_fish_bowl, make_random_manifold
from twofold.psom import Annealing
from twofold.psom.annealing import PATIENCE, HeldOutStop, choose_held_out


def hold_out(X, share=0.1, seed=0):
    return choose_held_out(X, share, np.random.RandomState(seed))


def test_number_of_held_out_rows():
    X = np.random.default_rng(0).uniform(-1, 1, size=(1000, 2))
    assert len(hold_out(X)) == len(set(hold_out(X))) == 100
    assert len(hold_out(X[:30])) == 5
    assert len(hold_out(X[:6])) == 2
    assert len(hold_out(X, 0)) == 0


def test_held_out_rows_are_spread_and_follow_the_seed_alone():
    X = np.random.default_rng(0).uniform(-1, 1, size=(300, 2))
    chosen = hold_out(X)
    rank = np.argsort(np.argsort(X[:, 0]))
    assert_array_equal(np.sort(rank[chosen]) // 10, np.arange(30))  # one of each ten neighbours
    order = np.random.default_rng(1).permutation(300)
    assert_array_equal(np.sort(order[hold_out(X[order])]), chosen)
    noise = 1e-12 * np.random.default_rng(2).normal(size=X.shape)
    assert_array_equal(hold_out(X + noise), chosen)
    assert not np.array_equal(hold_out(X, seed=1), chosen)


def test_coordinates_equal_to_rounding_errors_are_ordered_by_the_next_axis():
    X = np.stack(np.meshgrid([-1.0, 0.0, 1.0], np.linspace(-1, 1, 40), indexing="ij"), axis=-1)
    X = X.reshape(-1, 2)
    noise = 1e-12 * np.random.default_rng(0).normal(size=X.shape)
    assert_array_equal(hold_out(X + noise), hold_out(X))


@pytest.mark.parametrize("unit", [1000.0, 0.3])
def test_the_unit_of_the_data_does_not_change_the_map(unit):
    Y = make_random_manifold(120, 2, 3, noise=0.05, random_state=0).Y
    grid = {"grid": (5, 5), "random_state": 3}
    metres, other = PSOM(**grid).fit(Y), PSOM(**grid).fit(unit * Y)
    assert_allclose(other.smoothness_, metres.smoothness_)
    assert_allclose(other.node_values_, unit * metres.node_values_, atol=1e-4 * unit)
    assert_allclose(other.objective_, unit**2 * metres.objective_, rtol=1e-4)
    assert_allclose(other.history_, unit**2 * metres.history_, rtol=1e-4)


@pytest.mark.slow
def test_seeds_agree_about_the_end():
    sample = make_fish_bowl(150, noise=0.1, random_state=0)
    found = [PSOM(2, grid=(6, 6), random_state=seed).fit(sample.Y) for seed in range(5)]
    ends = np.log10([model.smoothness_ for model in found])
    assert np.ptp(ends) < 2.5


def test_a_rise_for_some_steps_does_not_end_it():
    stop = HeldOutStop(np.ones(50), 1)
    noise = np.random.default_rng(0).uniform(0.9, 1.1, size=50)
    levels = [5, 4, 3.2, *[3.3] * (PATIENCE - 1), 2.5, 2.0]
    for number, level in enumerate(levels):
        stop.note(number, level * noise)
        assert not stop.is_over
    for _ in range(PATIENCE):
        assert not stop.is_over
        stop.note(-1, 2.0 * noise)
    assert stop.is_over
    assert stop.chosen == len(levels) - 1


def test_the_stiffest_of_those_that_do_about_as_well_is_chosen():
    rng = np.random.default_rng(0)
    common, own = rng.uniform(1, 3, size=40), rng.normal(size=(4, 40))
    own -= own.mean(axis=1, keepdims=True)
    stop = HeldOutStop(np.ones(40), 1)
    # Standard errors of the differences are about 0.02: 0.2 is visible, 0.005 is not.
    for number, level in enumerate([1.0, 0.105, 0.103, 0.1]):
        stop.note(number, common + level + 0.1 * own[number])
    assert stop.chosen == 1
    lighter = HeldOutStop(np.full(40, 7.0), 1)
    for number, level in enumerate([1.0, 0.105, 0.103, 0.1]):
        lighter.note(number, common + level + 0.1 * own[number])
    assert lighter.chosen == 1


def test_weights_count_in_the_errors():
    weights = np.array([1.0, 1.0, 1.0, 0.0])
    stop = HeldOutStop(weights, 1)
    stop.note("stiff", np.array([1.0, 1.1, 0.9, 1.0]))
    stop.note("soft", np.array([0.5, 0.55, 0.45, 100.0]))
    assert stop.chosen == "soft"


def test_the_end_of_a_schedule_is_an_end_too():
    Y = make_random_manifold(60, 1, 3, noise=0.02, random_state=0).Y
    model = PSOM(1, grid=6, smoothness=Annealing(n_steps=3), random_state=0).fit(Y)
    assert model.stop_reason_ == "end of the schedule"
    assert model.smoothness_ == 10 * 0.8**3
