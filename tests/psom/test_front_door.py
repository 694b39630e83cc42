"""What users may pass, what they are told, and what they may ask of a fitted map."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from oracles.sheets import quarter_bowl

from twofold import PSOM, load
from twofold.datasets import make_random_manifold
from twofold.model_files import ModelFile
from twofold.psom import Grid
from twofold.psom.annealing import MOST_STEPS, Goal
from twofold.psom.parameters import usual_grid


def scattered(n=300, seed=0):
    X = np.random.default_rng(seed).uniform(-1, 1, size=(n, 2))
    return X, quarter_bowl(X)


# ---- second derivatives -------------------------------------------------------------------------


@pytest.mark.parametrize("local", [None, 3])
def test_hessian(local):
    grid = Grid.make((6, 5), bounds=[(0, 2), (-1, 1)])
    model = PSOM(2, grid=(6, 5), bounds=[(0, 2), (-1, 1)], local=local).fit_grid(
        quarter_bowl(grid.places())
    )
    x, h = np.array([[0.31, 0.22], [1.63, -0.57]]), 1e-5
    H = model.hessian(x)
    assert H.shape == (2, 3, 2, 2)
    for axis in range(2):
        step = h * np.eye(2)[axis]
        slopes = (model.jacobian(x + step) - model.jacobian(x - step)) / (2 * h)
        assert_allclose(H[..., axis], slopes, atol=1e-6)
    assert_allclose(H, H.swapaxes(2, 3), atol=1e-12)
    small = PSOM(2, grid=(6, 5)).fit_grid(quarter_bowl(grid.places()).astype(np.float32))
    assert small.hessian(x / 2).dtype == np.float32
    with pytest.raises(ValueError, match="2 columns"):
        model.hessian([[0.1]])


# ---- lengths of the axes ------------------------------------------------------------------------


@pytest.mark.parametrize("ratio", [100.0, 1e5])
def test_axes_of_very_different_lengths_are_told_of(ratio):
    X, Y = scattered()
    with pytest.warns(UserWarning, match="comparable units") as caught:
        PSOM(2, grid=(8, 8)).fit_scattered(X * [1, ratio], Y)
    assert caught[0].filename == __file__
    grid = {"bounds": [(0, 1), (0, ratio)], "grid": (4, 4)}
    data = quarter_bowl(Grid.make((4, 4)).places())
    with pytest.warns(UserWarning, match="comparable units"):
        PSOM(**grid, smoothness="gcv").fit_grid(data)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        PSOM(**grid).fit_grid(data)  # nothing is smoothed
        PSOM(2, grid=(8, 8)).fit_scattered(X * [1, 20], Y)


@pytest.mark.parametrize("lengths", [[1, 1e7], [1e10, 1e-10], [1e100, 1e100], [1e-100, 1e-100]])
def test_axes_beyond_all_measure_are_refused(lengths):
    X, Y = scattered(60)
    with pytest.raises(ValueError, match="long; their roughness cannot"):
        PSOM(2, grid=(4, 4)).fit_scattered(X * lengths, Y)
    bounds = np.column_stack([np.zeros(2), lengths])
    with pytest.raises(ValueError, match="long; their roughness cannot"):
        PSOM(2, grid=(4, 4), bounds=bounds, smoothness="gcv").fit_grid(
            quarter_bowl(Grid.make((4, 4)).places())
        )


# ---- what may be passed -------------------------------------------------------------------------


def test_data_of_the_nodes_may_have_the_shape_of_the_grid():
    Y = quarter_bowl(Grid.make((5, 4)).places())
    flat, shaped = (
        PSOM(2, grid=(5, 4)).fit_grid(Y),
        PSOM(2, grid=(5, 4)).fit_grid(Y.reshape(5, 4, 3)),
    )
    assert_array_equal(shaped.node_values_, flat.node_values_)
    with pytest.raises(ValueError, match=r"shape \(5, 4\) of the grid"):
        PSOM(2, grid=(5, 4)).fit_grid(Y.reshape(4, 5, 3))


def test_samples_of_no_weight_do_not_stretch_the_box():
    X, Y = scattered(60)
    weights = np.ones(61)
    weights[60] = 0
    far = np.vstack([X, [[50, 50]]])
    model = PSOM(2, grid=(4, 4)).fit_scattered(far, np.vstack([Y, [[9, 9, 9]]]), weights)
    assert_array_equal(model.grid_.hi, X.max(axis=0))
    assert_array_equal(model.embedding_, far)


def test_the_number_of_dimensions_is_said_once():
    Y = np.random.default_rng(0).normal(size=(30, 4))
    assert PSOM(2, grid=3).fit(Y).grid_.shape == (3, 3)
    assert PSOM(1).fit(Y).grid_.shape == (10,)
    assert [usual_grid(q) for q in (1, 2, 3, 4)] == [(10,), (10, 10), (5,) * 3, (3,) * 4]
    for parameters, message in [
        ({"n_components": (6, 6)}, r"`n_components` must be .* are `grid=\(6, 6\)`"),
        ({"grid": (3, 3, 3)}, "`grid` has 3 axes and `n_components` is 2"),
        ({"nodes": [[0, 1, 2]]}, "`nodes` has 1 axes and `n_components` is 2"),
        ({"n_components": 0}, "`n_components` must be"),
    ]:
        with pytest.raises(ValueError, match=message):
            PSOM(**parameters).fit(Y)


def test_files_of_old_say_by_their_grid_how_many_dimensions_there_are():
    for grid, nodes, q in [([3, 3], "regular", 2), (7, "regular", 1), (7, [[0.0, 1.0]] * 3, 3)]:
        stored = ModelFile("PSOM", {"grid": grid, "nodes": nodes}, {}, {})
        assert stored.params["n_components"] == q


def test_one_axis_may_be_a_number():
    assert Grid.make(5).shape == (5,)
    with pytest.raises(ValueError, match="whole number"):
        Grid.make("five")


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"nodes": None}, "`nodes` must be one of"),
        ({"nodes": 3}, "`nodes` must be one of"),
        ({"nodes": [1, 2, 3]}, "coordinates of the nodes of each axis"),
        ({"callbacks": print}, r"`callbacks` must be a list .* such as \[print\]"),
        ({"callbacks": [3]}, "`callbacks` must be a list"),
        ({"smoothness": True}, "got True"),
        ({"local": 9}, "more nodes than any axis has"),
        ({"local": True}, "`local` must be"),
        ({"smoothness": np.where(np.arange(20) < 2, -1.0, 0.1)}, "-1 for node 0 and 1 more"),
        ({"smoothness": np.where(np.arange(20) == 7, np.nan, 0.1)}, "nan for node 7"),
        ({"smoothness": np.ones(7)}, r"shape \(7,\)"),
    ],
)
def test_bad_parameters_are_explained(parameters, message):
    with pytest.raises(ValueError, match=message):
        PSOM(**{"grid": (5, 4), **parameters}).fit_grid(quarter_bowl(Grid.make((5, 4)).places()))


def test_complex_data_are_refused_without_a_warning():
    X = np.random.default_rng(0).normal(size=(20, 2))
    with pytest.raises(ValueError, match="Complex data not supported"):
        PSOM().fit_scattered(X, X + 1j)


def test_a_map_of_equal_rows_is_opened_again(tmp_path):
    model = PSOM(2, grid=(5, 4)).fit_grid(np.zeros((20, 3)))
    model.save(tmp_path / "model.twofold")
    assert (load(tmp_path / "model.twofold").embedding_ == model.embedding_).all()


def test_infinity_is_told_of_by_the_name_of_the_argument():
    Y = quarter_bowl(Grid.make((5, 4)).places())
    Y[3, 1] = np.inf
    with pytest.raises(ValueError, match="`Y` must be finite"):
        PSOM(2, grid=(5, 4)).fit_grid(Y)
    with pytest.raises(ValueError, match="`Y` must be finite"):
        PSOM(2, grid=(4, 4)).fit_scattered(Grid.make((5, 4)).places(), Y)


# ---- fits that would take for ever --------------------------------------------------------------


@pytest.mark.slow
def test_a_goal_far_away_is_reached_in_a_limited_number_of_steps():
    way = Goal(1e-300).values()
    assert len(way) <= MOST_STEPS + 3
    assert way[-1] == 1e-300
    assert (np.diff(way) <= 0).all()
    assert len(Goal(1e-3).values()) == len([k for k in range(1, 200) if 10 * 0.8**k > 1e-3]) + 3
    Y = make_random_manifold(40, 1, 3, noise=0.05, random_state=0).Y
    model = PSOM(1, grid=4, smoothness=1e-300).fit(Y)
    assert model.n_iter_ <= MOST_STEPS + 3
    assert np.isfinite(model.node_values_).all()


def test_a_grid_far_larger_than_the_data_is_told_of():
    Y = make_random_manifold(12, 2, 3, random_state=0).Y
    stop = PSOM(2, grid=(40, 40), callbacks=[lambda event: True], random_state=0)
    with pytest.warns(UserWarning, match="1600 nodes for 12 distinct rows") as caught:
        stop.fit(Y)
    assert caught[0].filename == __file__


def test_a_grid_that_no_memory_holds_is_refused():
    with pytest.raises(ValueError, match="at most 100,000,000 nodes in all"):
        PSOM(2, grid=(10**5, 10**5)).fit(np.eye(5))
