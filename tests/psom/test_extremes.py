"""Numbers of extreme size, and samples that are there more than once."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from oracles.sheets import quarter_bowl

from twofold import PSOM
from twofold.datasets import make_random_manifold
from twofold.psom import Discrepancy, Grid
from twofold.psom.best_match import best_match
from twofold.psom.known_places import fit_scattered

GRID = Grid.make((5, 5))


def scattered(n, noise=0.05, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1, 1, size=(n, 2))
    return X, quarter_bowl(X) + noise * rng.normal(size=(n, 3))


@pytest.fixture(scope="module")
def model():
    return PSOM(2, grid=(5, 5)).fit_grid(quarter_bowl(GRID.places()))


# ---- units of the data --------------------------------------------------------------------------


@pytest.mark.parametrize("unit", [1e-150, 1e-100, 1e100, 1e135])
def test_tiny_and_huge_data_give_the_same_map(unit):
    x = np.random.default_rng(1).uniform(-0.9, 0.9, size=(20, 2))
    plain = PSOM(2, grid=(5, 5)).fit_grid(quarter_bowl(GRID.places()))
    scaled = PSOM(2, grid=(5, 5)).fit_grid(unit * quarter_bowl(GRID.places()))
    asked = plain.inverse_transform(x)
    found = scaled.best_match(unit * asked)
    assert found.converged.all()
    assert_allclose(found.places, plain.best_match(asked).places, atol=1e-7)
    X, Y = scattered(60)
    for rule in (None, Discrepancy(0.05), 0.01):
        by = rule if not isinstance(rule, Discrepancy) else Discrepancy(0.05 * unit)
        one = PSOM(2, grid=(5, 5), smoothness=rule).fit_scattered(X, Y)
        other = PSOM(2, grid=(5, 5), smoothness=by).fit_scattered(X, unit * Y)
        assert_allclose(other.smoothness_, one.smoothness_, rtol=1e-2)
        assert_allclose(other.node_values_ / unit, one.node_values_, atol=1e-4)


@pytest.mark.slow
@pytest.mark.parametrize("unit", [1e-150, 1e130])
def test_learning_without_places_does_not_mind_the_unit(unit):
    Y = make_random_manifold(50, 1, 3, noise=0.05, random_state=0).Y
    start = np.argsort(np.argsort(Y[:, 0]))[:, None]
    for init in ("pca", start):
        one = PSOM(1, grid=5, init=init, random_state=0).fit(Y)
        other = PSOM(1, grid=5, init=init, random_state=0).fit(unit * Y)
        assert_allclose(other.smoothness_, one.smoothness_, rtol=1e-2)
        assert_allclose(other.embedding_, one.embedding_, atol=1e-2)


def test_numbers_whose_squares_overflow_are_refused(model):
    for call in (model.best_match, model.transform, model.complete, PSOM(2, grid=(2, 2)).fit):
        with pytest.raises(ValueError, match=r"row\(s\) have entries beyond 1e\+140"):
            call(np.array([[1.0, 2, 3], [0, 0, 1e154], [3, 2, 1], [0, 0, 2]]))
    X, Y = scattered(30)
    with pytest.raises(ValueError, match="scale the data"):
        PSOM(2, grid=(3, 3)).fit_scattered(X, 1e200 * Y)
    with pytest.raises(ValueError, match="scale the data"):
        PSOM(2, grid=(5, 5)).fit_grid(1e200 * quarter_bowl(GRID.places()))


# ---- searches -----------------------------------------------------------------------------------


def test_rows_far_away_match_in_their_direction(model):
    direction = np.array([[1.0, 0.5, 0.2]])
    places = [model.best_match(far * direction).places for far in (1e7, 1e60, 1e139)]
    assert_allclose(places[1], places[0], atol=1e-4)
    assert_allclose(places[2], places[0], atol=1e-4)
    found = model.best_match(1e60 * direction)
    assert found.converged.all()
    assert_allclose(found.squared_errors, 1e120 * (direction**2).sum(), rtol=1e-9)
    grid = np.stack(np.meshgrid(*[np.linspace(-1, 1, 60)] * 2), axis=-1).reshape(-1, 2)
    along = model.inverse_transform(grid) @ direction[0]
    assert model.inverse_transform(places[1]) @ direction[0] >= along.max() - 1e-3


@pytest.mark.parametrize("factor", [1e-160, 1e-300, 1e300])
def test_the_size_of_weights_does_not_matter(model, factor):
    x = np.array([[0.3, -0.4], [0.8, 0.1]])
    Y = model.inverse_transform(x)
    found = model.best_match(Y, component_weights=[factor] * 3)
    assert_allclose(found.places, x, atol=1e-6)
    assert found.converged.all()
    # One weight far above the others: its component is matched.
    off = Y + np.array([0.01, 0.2, -0.1])
    one = model.best_match(off, component_weights=[1e300, 1, 1])
    assert (one.n_iter > 0).all()
    assert_allclose(one.images[:, 0], off[:, 0], atol=1e-7)


def test_a_component_of_another_size_is_searched_in_its_own_unit():
    W = quarter_bowl(GRID.places()) * [1.0, 1e-120, 1.0]
    x = np.array([[0.3, -0.4]])
    asked = PSOM(2, grid=(5, 5)).fit_grid(W).inverse_transform(x)
    found = best_match(GRID, W, asked, component_weights=[0, 1, 0], start=[[0.3, 0.1]])
    assert_allclose(found.places[:, 1], x[:, 1], atol=1e-6)


def test_constant_components_count_in_the_error_only(model):
    W = np.column_stack([quarter_bowl(GRID.places()), np.full(25, 5.0)])
    Y = np.column_stack([model.inverse_transform([[0.3, -0.4]]), [1e9]])
    found = best_match(GRID, W, Y, n_starts=3)
    assert_allclose(found.places, [[0.3, -0.4]], atol=1e-6)
    assert_allclose(found.squared_errors, (1e9 - 5) ** 2)


@pytest.mark.parametrize("name", ["inverse_transform", "jacobian", "hessian"])
def test_places_where_the_map_overflows_are_refused(model, name):
    assert np.isfinite(getattr(model, name)([[1e6, 0.0]])).all()
    with pytest.raises(ValueError, match=r"1 place\(s\) lie so far .* row 1"):
        getattr(model, name)([[0.0, 0.0], [1e200, 0.0]])


@pytest.mark.parametrize(
    ("Y", "weights"),
    [
        ([[np.nan] * 3, [1, 2, 3]], None),
        ([[0, 0, 0]], [0, 0, 0]),
        ([[np.nan, 0, 0]], [1, 0, 0]),
        ([[0, 0, 0], [np.nan, 0, 0]], [[1, 1, 1], [1, 0, 0]]),
    ],
)
def test_there_must_be_something_to_search_for(model, Y, weights):
    with pytest.raises(ValueError, match=r"no observed entry|nothing to search for"):
        model.best_match(Y, component_weights=weights)


# ---- repeated samples and weights ---------------------------------------------------------------


def test_copies_of_samples_do_not_change_the_map():
    X, Y = scattered(80)
    once = PSOM(2, grid=(8, 8)).fit_scattered(X, Y)
    twice = PSOM(2, grid=(8, 8)).fit_scattered(np.tile(X, (2, 1)), np.tile(Y, (2, 1)))
    assert_allclose(twice.node_values_, once.node_values_, atol=1e-7)
    # The sum of squared errors is twice as large, and so is what belongs before the roughness.
    assert_allclose(twice.smoothness_, 2 * once.smoothness_)
    assert_allclose(twice.objective_, once.objective_)
    assert_array_equal(twice.embedding_, np.tile(X, (2, 1)))
    # Other data at the same place are other samples.
    other = PSOM(2, grid=(8, 8)).fit_scattered(np.tile(X, (2, 1)), np.vstack([Y, Y[::-1]]))
    assert other.smoothness_ > 10 * once.smoothness_


@pytest.mark.parametrize("rule", ["gcv", Discrepancy(0.05)])
@pytest.mark.parametrize("factor", [2.0, 1e-200, 1e150])
def test_only_proportions_of_weights_count_in_the_choice(rule, factor):
    X, Y = scattered(80)
    weights = np.random.default_rng(3).uniform(0.5, 2, size=80)
    one = fit_scattered(GRID, X, Y, rule, weights)
    other = fit_scattered(GRID, X, Y, rule, factor * weights)
    assert_allclose(other.W, one.W, atol=1e-4)
    assert_allclose(other.smoothness / factor, one.smoothness, rtol=2e-3)
    assert_allclose(other.squared_error / factor, one.squared_error, rtol=1e-3)


def test_given_smoothness_goes_before_the_sum_over_copies():
    X, Y = scattered(40)
    twice = fit_scattered(GRID, np.tile(X, (2, 1)), np.tile(Y, (2, 1)), 0.02)
    assert twice.smoothness == 0.02
    assert_allclose(twice.W, fit_scattered(GRID, X, Y, 0.01).W, atol=1e-10)
    assert_allclose(twice.W, fit_scattered(GRID, X, Y, 0.02, np.full(40, 2.0)).W, atol=1e-10)


def test_equal_rows_at_several_nodes_are_placed_at_the_first():
    W = quarter_bowl(GRID.places())
    W[17] = W[4]
    W[9] = np.nan
    fitted = PSOM(2, grid=(5, 5)).fit_grid(W)
    there = np.delete(np.arange(25), [9, 17])
    assert_allclose(fitted.embedding_, GRID.places())
    assert_allclose(fitted.transform(W[there]), GRID.places()[there])
    assert_allclose(fitted.transform(W[17:18]), GRID.places()[4:5])
