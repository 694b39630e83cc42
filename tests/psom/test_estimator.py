"""The front door: three ways to fit, best matches, completion, files."""

from __future__ import annotations

import time

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from oracles.sheets import quarter_bowl
from sklearn.decomposition import PCA
from sklearn.exceptions import ConvergenceWarning

import twofold
from twofold import PSOM
from twofold.datasets import make_fish_bowl, make_random_manifold
from twofold.datasets.robot_arm import JOINT_LIMITS, forward_kinematics, make_robot_arm
from twofold.psom import Annealing, Discrepancy, Grid

LIMITS = np.column_stack([-JOINT_LIMITS[:4], JOINT_LIMITS[:4]])
UNKNOWN = np.nan


@pytest.fixture(scope="module")
def arm():
    angles = Grid.make((8, 8, 8, 8), bounds=LIMITS).places()
    Y = np.hstack([forward_kinematics(angles), angles])
    return PSOM(4, grid=(8, 8, 8, 8), nodes="chebyshev", bounds=LIMITS).fit_grid(Y)


# ---- the robot arm ------------------------------------------------------------------------------


def test_forward_kinematics(arm):
    test = make_robot_arm(1000, random_state=1).Y
    asked = test.copy()
    asked[:, :3] = UNKNOWN
    error = 1000 * np.linalg.norm(arm.complete(asked)[:, :3] - test[:, :3], axis=1)
    assert 0.48 < error.mean() < 0.6  # thesis: 0.54 mm


def test_inverse_kinematics_by_the_same_call(arm):
    test = make_robot_arm(1000, random_state=1).Y
    asked = np.hstack([test[:, :3], np.full((1000, 4), UNKNOWN)])
    arm.transform(test[:1])  # compiles
    began = time.perf_counter()
    with pytest.warns(ConvergenceWarning, match=r"for \d of 1000 rows"):  # arms stretched out
        angles = arm.complete(asked)[:, 3:]
    assert time.perf_counter() - began < 20  # 0.6 s on two cores; the machine may be busy
    assert (np.abs(angles) <= JOINT_LIMITS[:4] + 1e-12).all()
    error = 1000 * np.linalg.norm(forward_kinematics(angles) - test[:, :3], axis=1)
    assert error.mean() < 0.6
    assert error.max() < 3


def test_start_decides_among_many_answers(arm):
    test = make_robot_arm(40, random_state=2).Y
    test = test[np.abs(test[:, 6]) > 0.5]  # a stretched arm turns far to move by a millimetre
    asked = np.hstack([test[:, :3], np.full((len(test), 4), UNKNOWN)])
    near = arm.best_match(asked, start=test[:, 3:])
    assert_allclose(near.places, test[:, 3:], atol=0.05)
    assert_allclose(near.images[:, 3:], near.places, atol=1e-9)
    assert near.converged.all()
    assert (near.squared_errors < 1e-12).all()


def test_component_weights_ask_for_an_angle_as_well(arm):
    test = make_robot_arm(20, random_state=3).Y
    asked = test.copy()
    weights = np.array([1.0, 1, 1, 0, 1, 0, 0])
    found = arm.best_match(asked, component_weights=weights)
    assert np.median(np.abs(found.places[:, 1] - test[:, 4])) < 1e-3
    assert np.median(found.squared_errors) < 1e-6


def test_searches_that_do_not_end_are_counted(arm):
    arm_in_a_hurry = PSOM(**{**arm.get_params(), "max_iter": 1, "n_starts": 1})
    arm_in_a_hurry.fit_grid(arm.node_values_)
    with pytest.warns(ConvergenceWarning, match="did not converge for .* of 20 rows"):
        found = arm_in_a_hurry.best_match(make_robot_arm(20, random_state=3).Y)
    assert not found.converged.all()


# ---- data at the nodes --------------------------------------------------------------------------


def test_grid_data_are_interpolated_and_keep_their_places():
    grid = Grid.make((6, 5))
    Y = quarter_bowl(grid.places())
    model = PSOM(2, grid=(6, 5)).fit_grid(Y)
    assert_array_equal(model.node_values_, Y)
    assert_array_equal(model.embedding_, grid.places())
    assert_array_equal(model.transform(Y), grid.places())
    assert_allclose(model.inverse_transform(grid.places()), Y, atol=1e-12)
    x = np.array([[0.2, -0.4], [0.9, 0.7]])
    assert_allclose(model.transform(model.inverse_transform(x)), x, atol=1e-6)
    assert model.smoothness_ == 0
    assert model.objective_ == 0
    assert_array_equal(model.in_domain([[0, 0], [1, 1], [1.01, 0]]), [True, True, False])


def test_missing_nodes_and_entries_are_filled():
    grid = Grid.make((7, 7))
    Y = quarter_bowl(grid.places())
    holes = Y.copy()
    holes[[3, 17, 30]] = np.nan
    holes[[5, 22], 1] = np.nan
    model = PSOM(2, grid=(7, 7)).fit_grid(holes)
    assert_allclose(model.node_values_, Y, atol=0.05)
    assert_array_equal(model.embedding_, grid.places())
    assert len(model.data_) == 46
    assert_allclose(model.complete(holes[[5, 22]]), Y[[5, 22]], atol=0.05)
    with pytest.raises(ValueError, match="column"):
        PSOM(2, grid=(7, 7)).fit_grid(np.where([True, False, False], np.nan, Y))


def test_noisy_grid_data_are_smoothed():
    grid = Grid.make((9, 9))
    Y = quarter_bowl(grid.places())
    noisy = Y + 0.1 * np.random.default_rng(0).normal(size=Y.shape)
    plain = PSOM(2, grid=(9, 9)).fit_grid(noisy)
    for smoothness in ("gcv", Discrepancy(0.1), 0.01):
        model = PSOM(2, grid=(9, 9), smoothness=smoothness).fit_grid(noisy)
        assert model.smoothness_ > 0
        assert model.roughness_ < plain.roughness_
        assert ((model.node_values_ - Y) ** 2).mean() < 0.6 * ((noisy - Y) ** 2).mean()
    one_is_known = np.full(81, 0.05)
    one_is_known[40] = 0
    model = PSOM(2, grid=(9, 9), smoothness=one_is_known).fit_grid(noisy)
    assert_allclose(model.node_values_[40], noisy[40])
    assert_array_equal(model.smoothness_, one_is_known)


def test_equal_rows_at_several_places():
    angle = np.linspace(0, 2 * np.pi, 9)
    Y = np.column_stack(
        [np.cos(angle).round(12), np.sin(angle).round(12)]
    )  # closed: ends are equal
    model = PSOM(1, nodes=[angle]).fit_grid(Y)
    assert len(model.data_) == 8
    assert_array_equal(model.embedding_[:, 0], angle)
    assert_array_equal(model.transform(Y[[0, 8]])[:, 0], [0, 0])
    assert model.weights_.sum() == 9


def test_local_maps():
    grid = Grid.make((9, 9), "regular")
    Y = quarter_bowl(grid.places())
    model = PSOM(2, grid=(9, 9), nodes="regular", local=3).fit_grid(Y)
    x = np.array([[0.31, -0.44]])
    truth = [0.31, np.sin(-0.88), 0.31 * np.cos(0.44)]
    error = np.abs(model.inverse_transform(x)[0] - truth).max()
    assert 1e-5 < error < 0.02
    assert_allclose(model.transform(model.inverse_transform(x)), x, atol=1e-5)
    with pytest.raises(ValueError, match="full map"):
        PSOM(local=3).fit(Y)
    with pytest.raises(ValueError, match="full map"):
        PSOM(local=3).fit_scattered(grid.places(), Y)


# ---- samples at known places --------------------------------------------------------------------


def test_scattered_samples():
    rng = np.random.default_rng(0)
    X = rng.uniform([0, -2], [3, 2], size=(300, 2))
    truth = np.column_stack([np.sin(X[:, 0]) * X[:, 1], X[:, 0]])
    Y = truth + 0.05 * rng.normal(size=truth.shape)
    model = PSOM(2, grid=(8, 8)).fit_scattered(X, Y)
    assert_array_equal(model.grid_.lo, X.min(axis=0))
    assert_array_equal(model.grid_.hi, X.max(axis=0))
    assert_array_equal(model.embedding_, X)
    assert_array_equal(model.transform(Y), X)
    assert ((model.inverse_transform(X) - truth) ** 2).mean() < 0.3 * 0.05**2
    wide = PSOM(2, grid=(8, 8), bounds=[(0, 3), (-2, 2)], smoothness=1e-3).fit_scattered(X, Y)
    assert_array_equal(wide.grid_.hi, [3, 2])
    assert wide.smoothness_ == 1e-3
    through = PSOM(2, grid=(5, 5), smoothness=0).fit_scattered(X[:10], Y[:10])
    assert_allclose(through.inverse_transform(X[:10]), Y[:10], atol=1e-8)


def test_weights_of_scattered_samples():
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, size=(60, 1))
    Y = np.column_stack([np.sin(3 * X[:, 0]), X[:, 0]]) + 0.1 * rng.normal(size=(60, 2))
    weights = np.where(np.arange(60) < 10, 0.0, 1.0)
    some = PSOM(1, grid=6, bounds=[(-1, 1)], smoothness=0.01).fit_scattered(X[10:], Y[10:])
    model = PSOM(1, grid=6, bounds=[(-1, 1)], smoothness=0.01).fit_scattered(X, Y, weights)
    assert_allclose(model.node_values_, some.node_values_, atol=1e-10)
    assert_array_equal(model.embedding_, X)
    assert len(model.data_) == 50


def test_bad_places_are_explained():
    X, Y = np.random.default_rng(0).uniform(size=(2, 20, 2))
    with pytest.raises(ValueError, match="each of the 3 axes"):
        PSOM(3, grid=(3, 3, 3)).fit_scattered(X, Y)
    with pytest.raises(ValueError, match="outside of `bounds`"):
        PSOM(2, grid=(3, 3), bounds=[(0, 0.5), (0, 1)]).fit_scattered(X, Y)
    with pytest.raises(ValueError, match="same coordinate on axis 1"):
        PSOM(2, grid=(3, 3)).fit_scattered(X * [1, 0], Y)
    with pytest.raises(ValueError, match="finite"):
        PSOM(2, grid=(3, 3)).fit_scattered(X, np.where(Y > 0.9, np.nan, Y))
    with pytest.raises(ValueError, match="each of its 9 nodes"):
        PSOM(2, grid=(3, 3)).fit_grid(Y)


# ---- without places -----------------------------------------------------------------------------


@pytest.mark.slow
def test_nothing_to_choose():
    sample = make_fish_bowl(300, noise=0.1, random_state=0)
    model = PSOM(random_state=0).fit(sample.Y)
    assert model.node_values_.shape == (100, 3)
    off = ((model.reconstruct(sample.Y) - sample.clean) ** 2).sum(axis=1).mean()
    assert off < 0.05  # the noise of the rows is 0.03, their variance 67
    assert set(model.annealing_) == {"smoothness", "error", "roughness", "held_out_error"}
    assert len(model.annealing_["error"]) == len(model.history_) == model.n_iter_
    assert (np.abs(model.embedding_) <= 1).all()


def test_number_is_the_smoothness_at_the_end():
    Y = make_random_manifold(100, 2, 4, noise=0.05, random_state=0).Y
    rough, smooth = (PSOM(2, grid=(6, 6), smoothness=number).fit(Y) for number in (0.01, 1.0))
    assert (rough.smoothness_, smooth.smoothness_) == (0.01, 1.0)
    assert rough.roughness_ > smooth.roughness_
    assert rough.score(Y) > smooth.score(Y)


def test_odd_tables_are_fitted():
    rng = np.random.default_rng(0)
    plane = rng.normal(size=(40, 2)) @ rng.normal(size=(2, 3))
    tables = {
        "fewer rows than nodes": make_random_manifold(12, 2, 4, random_state=0).Y,
        "least rows": rng.normal(size=(4, 2)),
        "constant column": np.column_stack([plane, np.full(40, 7.0)]),
        "a line in the plane": np.outer(rng.normal(size=30), [1.0, 2.0, -1.0]) + 5,
        "far from zero": plane + 1e6,
        "wide": rng.normal(size=(20, 200)),
    }
    for name, Y in tables.items():
        model = PSOM(2, grid=(5, 5), random_state=0).fit(Y)
        variance = ((Y - Y.mean(axis=0)) ** 2).sum(axis=1).mean()
        assert np.isfinite(model.node_values_).all(), name
        assert -model.score(Y) < 0.9 * variance, name
        assert np.isfinite(model.transform(Y + 0.01)).all(), name
        assert model.in_domain(model.transform(Y + 0.01)).all(), name
    one = PSOM(1, grid=6, random_state=0).fit(rng.normal(size=(30, 1)))
    assert -one.score(one.data_) < 1e-3


def test_start_by_an_estimator():
    Y = make_fish_bowl(150, noise=0.1, random_state=0).Y
    schedule = Annealing(n_steps=8, holdout=0)
    by_name = PSOM(2, grid=(6, 6), smoothness=schedule).fit(Y)
    by_object = PSOM(2, grid=(6, 6), init=PCA(2), smoothness=schedule).fit(Y)
    # The same plane, but the smoothness starts where these coordinates ask for it.
    assert by_object.annealing_["smoothness"][0] < by_name.annealing_["smoothness"][0]
    # Of an array, every row finds its own line again.
    given = PSOM(2, grid=(6, 6), init=PCA(2).fit_transform(Y), smoothness=schedule).fit(Y)
    assert_allclose(np.abs(given.embedding_), np.abs(by_object.embedding_), atol=1e-3)


def test_interrupt_keeps_the_best_and_says_so():
    Y = make_fish_bowl(100, noise=0.1, random_state=0).Y

    def interrupt(event):
        if event.iteration == 3:
            raise KeyboardInterrupt

    with pytest.warns(ConvergenceWarning, match="Interrupted after 3 cycles"):
        model = PSOM(2, grid=(5, 5), callbacks=[interrupt], random_state=0).fit(Y)
    assert model.stop_reason_ == "interrupted"
    assert model.n_iter_ == 3
    assert model.transform(Y + 0.01).shape == (100, 2)


@pytest.mark.slow
def test_progress_is_drawn_only_where_wished(capsys, monkeypatch):
    monkeypatch.setattr("twofold.optimize.progress.SECONDS_BEFORE_BAR", 0.0)
    monkeypatch.setattr("twofold.optimize.progress.SECONDS_BETWEEN_LINES", 0.0)
    Y = make_random_manifold(40, 1, 3, random_state=0).Y
    PSOM(1, grid=5, random_state=0, verbose=True).fit(Y)
    assert "λ" in capsys.readouterr().err
    PSOM(1, grid=5, random_state=0).fit(Y)  # by now all is compiled
    assert capsys.readouterr().err == ""


# ---- parameters and files -----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"grid": "large"}, "grid"),
        ({"grid": (1, 5)}, "nodes >= 2"),
        ({"nodes": "even"}, "'even'"),
        ({"n_starts": 0}, "n_starts"),
        ({"max_iter": 2.5}, "max_iter"),
        ({"smoothness": "gcv"}, "fit_grid"),
        ({"smoothness": 0}, "number > 0"),
        ({"init": "umap"}, "'umap'"),
        ({"bounds": [(0, 1), (0, 1)]}, "bounds"),
        ({"local": 1}, "local"),
        ({"verbose": "yes"}, "verbose"),
        ({"n_jobs": 0}, "n_jobs"),
        ({"grid": (70, 70)}, "at most 4500 nodes"),
    ],
)
def test_bad_parameters_are_explained(parameters, message):
    Y = make_random_manifold(30, 2, 4, random_state=0).Y
    with pytest.raises(ValueError, match=message):
        PSOM(**parameters).fit(Y)


def test_failed_fits_leave_the_model_as_it_was():
    Y = quarter_bowl(Grid.make((4, 4)).places())
    model = PSOM(2, grid=(4, 4)).fit_grid(Y)
    with pytest.raises(ValueError, match="16 nodes"):
        model.fit_grid(Y[:5])
    assert_array_equal(model.node_values_, Y)


@pytest.mark.parametrize("smoothness", [None, Discrepancy(0.1), np.full(16, 0.1)])
def test_files_keep_every_kind_of_fit(tmp_path, smoothness):
    grid = Grid.make((4, 4), bounds=[(0, 2), (-1, 1)])
    Y = quarter_bowl(grid.places()) + 0.1 * np.random.default_rng(0).normal(size=(16, 3))
    model = PSOM(2, grid=(4, 4), bounds=[(0, 2), (-1, 1)], smoothness=smoothness).fit_grid(Y)
    model.save(tmp_path / "map.twofold")
    again = twofold.load(tmp_path / "map.twofold")
    asked = np.array([[0.5, np.nan, np.nan], [0.1, 0.2, np.nan]])
    assert_array_equal(again.complete(asked), model.complete(asked))
    assert_array_equal(again.in_domain([[1.9, 0], [2.1, 0]]), [True, False])
    assert_array_equal(again.smoothness_, model.smoothness_)


def test_samples_of_known_places_lie_in_the_box():
    model = PSOM(2, grid=(4, 4)).fit_grid(quarter_bowl(Grid.make((4, 4)).places()))
    for spread in ("density", "uniform"):
        assert model.in_domain(model.sample_latent(50, 0, spread=spread)).all()
