from __future__ import annotations

import numpy as np
import pytest
from ukr.problems import make_objective

from twofold.kernels import GAUSSIAN, QUARTIC
from twofold.ukr.objective import (
    MOST_SCALED_ROWS,
    common_scale,
    scale_each_dimension,
    spread_rows,
    typical_spacing,
)


def noisy_sheet():
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, size=(150, 2))
    Y = np.column_stack([X, X[:, 0] ** 2 - 0.5 * X[:, 1] ** 2])
    return X, Y + 0.05 * rng.normal(size=Y.shape)


def test_the_subset_is_everything_or_an_even_choice():
    np.testing.assert_array_equal(spread_rows(7, MOST_SCALED_ROWS), np.arange(7))
    rows = spread_rows(50_000, MOST_SCALED_ROWS)
    assert len(rows) == MOST_SCALED_ROWS
    assert rows[0] == 0
    assert rows[-1] == 49_999
    assert np.diff(rows).max() <= 2 * np.diff(rows).min()


def test_typical_spacing_by_hand():
    X = np.array([[0.0], [1.0], [3.0], [6.0], [10.0]])  # nearest: 1, 1, 2, 3, 4
    assert typical_spacing(X) == 2


def test_points_on_top_of_each_other_do_not_count_as_spacing():
    X = np.repeat(np.array([[0.0], [2.0], [4.0]]), 2, axis=0)
    assert typical_spacing(X) == 2
    assert typical_spacing(np.zeros((5, 2))) > 0


@pytest.mark.parametrize("unit", [1e-6, 1.0, 1e6])
@pytest.mark.parametrize("kernel", [GAUSSIAN, QUARTIC])
def test_the_common_factor_is_near_the_best(kernel, unit):
    X, Y = noisy_sheet()
    objective = make_objective(kernel, Y, cutoff=1e-7)
    scaled, error = common_scale(unit * X + 7 * unit, objective)
    best = min(objective.value_and_grad(X * factor)[0] for factor in np.geomspace(0.3, 100, 60))
    assert error == pytest.approx(objective.value_and_grad(scaled)[0])
    assert error < 1.15 * best  # the grid's step is a factor of 1.5
    np.testing.assert_allclose(scaled.mean(axis=0), 0, atol=1e-9 * np.abs(scaled).max())
    centred = X - X.mean(axis=0)
    factor = scaled.std() / centred.std()
    np.testing.assert_allclose(scaled, factor * centred, atol=1e-6 * factor)


def test_a_factor_for_each_dimension_undoes_a_stretch():
    X, Y = noisy_sheet()
    objective = make_objective(GAUSSIAN, Y, cutoff=1e-7)
    even, best = scale_each_dimension(*common_scale(X, objective), objective)
    common, before = common_scale(X * np.array([3.0, 1.0]), objective)
    each, after = scale_each_dimension(common, before, objective)
    assert after < before
    assert after == pytest.approx(objective.value_and_grad(each)[0], rel=1e-9)
    assert after < 1.02 * best
    np.testing.assert_allclose(each.std(axis=0), even.std(axis=0), rtol=0.15)


def test_a_dimension_that_says_nothing_is_made_small():
    X, Y = noisy_sheet()
    noise = np.random.default_rng(1).normal(size=(len(X), 1))
    objective = make_objective(GAUSSIAN, Y, cutoff=1e-7)
    common, before = common_scale(np.column_stack([X, X.std() * noise]), objective)
    each, after = scale_each_dimension(common, before, objective)
    assert after < 0.8 * before
    assert each.std(axis=0)[2] < 0.4 * each.std(axis=0)[:2].min()


def test_the_units_of_the_data_do_not_matter():
    X, Y = noisy_sheet()
    scales = []
    for unit in (1e-4, 1.0, 1e4):
        objective = make_objective(GAUSSIAN, unit * Y, cutoff=1e-7)
        start = common_scale(X * np.array([3.0, 1.0]), objective)
        scales.append(scale_each_dimension(*start, objective)[0].std(axis=0))
    np.testing.assert_allclose(scales[0], scales[1], rtol=1e-6)
    np.testing.assert_allclose(scales[2], scales[1], rtol=1e-6)


def test_scales_never_make_it_worse():
    X, Y = noisy_sheet()
    objective = make_objective(GAUSSIAN, Y, cutoff=1e-7)
    once = scale_each_dimension(*common_scale(X, objective), objective)
    for _ in range(4):
        again = scale_each_dimension(*once, objective)
        assert again[1] <= once[1]
        once = again
