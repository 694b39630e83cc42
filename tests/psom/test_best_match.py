from __future__ import annotations

import tracemalloc

import numba
import numpy as np
import pytest
from oracles import psom as oracle

import twofold.psom.best_match as module
from twofold.datasets import forward_kinematics
from twofold.datasets.robot_arm import JOINT_LIMITS
from twofold.psom.best_match import best_match
from twofold.psom.grid import Grid
from twofold.psom.interpolation import interpolate

SHEET = Grid.make((6, 7), bounds=[(-1, 1), (0, 3)])
FIELDS = ("places", "images", "squared_errors", "converged", "n_iter")


def bent(X):
    """Carry places (m, 2) to a bent sheet in four dimensions."""
    u, v = X.T
    return np.stack([u, v, np.sin(2 * u) + 0.3 * v**2, np.cos(v + u)], axis=1)


W = bent(SHEET.places())


def places(m=50, seed=0, margin=0.0):
    inset = margin * (SHEET.hi - SHEET.lo)
    rng = np.random.default_rng(seed)
    return rng.uniform(SHEET.lo + inset, SHEET.hi - inset, size=(m, 2))


@pytest.fixture(scope="module")
def arm():
    limits = JOINT_LIMITS[:4]
    grid = Grid.make((8, 8, 8, 8), bounds=np.stack([-limits, limits], axis=1))
    values = np.hstack([forward_kinematics(grid.places()), grid.places()])
    T = np.random.default_rng(5).uniform(-limits, limits, size=(400, 4))
    return grid, values, T


@pytest.mark.parametrize("local", [None, 3])
def test_images_of_places_are_carried_back(local):
    X = places()
    Y = interpolate(SHEET, W, X, local=local)
    found = best_match(SHEET, W, Y, local=local)
    reached = found.squared_errors < 1e-12
    assert reached.mean() >= (1 if local is None else 0.95)
    assert found.converged[reached].all()
    np.testing.assert_allclose(found.images[reached], Y[reached], atol=1e-6)
    if local is None:
        np.testing.assert_allclose(found.places, X, atol=1e-7)


@pytest.mark.slow
def test_same_places_as_scipy():
    Y = bent(places()) + 0.3 * np.random.default_rng(1).normal(size=(50, 4))
    p = np.array([1.0, 0.5, 2.0, 1.0])
    found = best_match(SHEET, W, Y, component_weights=p)
    assert found.converged.all()
    same = as_good = 0
    for i in range(0, 50, 2):
        start = SHEET.places()[oracle.best_node(W, Y[i], p)]
        x, error = oracle.best_match(SHEET.nodes, SHEET.lo, SHEET.hi, W, Y[i], p, start)
        same += np.allclose(found.places[i], x, atol=1e-4)
        as_good += found.squared_errors[i] <= error * (1 + 1e-6)
    assert same >= 24
    assert as_good >= 24


def test_errors_and_images_belong_to_the_places():
    Y = bent(places()) + 0.1
    p = np.random.default_rng(2).uniform(0, 2, size=Y.shape)
    found = best_match(SHEET, W, Y, component_weights=p, n_starts=2)
    images = interpolate(SHEET, W, found.places)
    np.testing.assert_allclose(found.images, images, atol=1e-14)
    np.testing.assert_allclose(found.squared_errors, (p * (images - Y) ** 2).sum(axis=1))


def test_places_stay_in_the_domain():
    X = SHEET.lo + (SHEET.hi - SHEET.lo) * np.array([[1.05, 0.5], [0.5, -0.05]])
    Y = interpolate(SHEET, W, X)
    found = best_match(SHEET, W, Y)
    assert ((SHEET.lo <= found.places) & (found.places <= SHEET.hi)).all()
    assert found.places[0, 0] == SHEET.hi[0]
    assert found.places[1, 1] == SHEET.lo[1]
    assert found.converged.all()


def test_components_that_are_nan_are_read_off_the_map():
    X = places(margin=0.05)
    Y = interpolate(SHEET, W, X)
    asked = Y.copy()
    asked[:, 2:] = np.nan
    found = best_match(SHEET, W, asked)
    np.testing.assert_allclose(found.images, Y, atol=1e-7)
    # A weight of zero says the same, whatever stands there.
    wild = np.where(np.isnan(asked), 1e6, asked)
    weighted = best_match(SHEET, W, wild, component_weights=[1, 1, 0, 0])
    np.testing.assert_array_equal(weighted.places, found.places)


def test_a_row_that_asks_for_nothing_gets_the_middle_or_its_start():
    Y = np.full((2, 4), np.nan)
    found = best_match(SHEET, W, Y)
    np.testing.assert_allclose(found.places, [[0, 1.5], [0, 1.5]])
    assert found.converged.all()
    started = best_match(SHEET, W, Y, start=[[0.3, 1], [-1, 2]])
    np.testing.assert_array_equal(started.places, [[0.3, 1], [-1, 2]])
    mixed = best_match(SHEET, W, np.vstack([Y[:1], W[10:11]]))
    np.testing.assert_allclose(mixed.places, [[0, 1.5], SHEET.places()[10]], atol=1e-7)


@pytest.mark.skipif(numba.config.BOUNDSCHECK, reason="other machine code, in other orders")
@pytest.mark.parametrize("local", [None, 4])
def test_a_row_does_not_depend_on_the_others_nor_on_threads(arm, local, monkeypatch):
    grid, values, T = arm
    rng = np.random.default_rng(0)
    Y = np.hstack([forward_kinematics(T), T])[:90]
    Y[rng.random(Y.shape) < 0.4] = np.nan  # every row asks for other components
    p = rng.uniform(0.5, 2, size=Y.shape)
    monkeypatch.setattr(module, "ROWS_PER_TASK", 32)
    whole = best_match(grid, values, Y, component_weights=p, n_starts=2, local=local, n_jobs=3)
    for i in (0, 31, 50, 89):
        rows = slice(i, i + 1)
        alone = best_match(
            grid, values, Y[rows], component_weights=p[rows], n_starts=2, local=local, n_jobs=1
        )
        for field in FIELDS:
            np.testing.assert_array_equal(getattr(alone, field)[0], getattr(whole, field)[i])


def test_more_starts_find_the_far_side():
    # A curve that crosses itself: a node of the wrong branch may be the nearest.
    grid = Grid.make((20,))
    values = np.hstack([np.cos(5 * grid.places()), np.sin(7 * grid.places())])
    Y = interpolate(grid, values, np.linspace(-0.97, 0.97, 41)[:, None])
    errors = [best_match(grid, values, Y, n_starts=n).squared_errors for n in (1, 2, 4)]
    missed = [np.count_nonzero(found > 1e-12) for found in errors]
    assert missed[0] > missed[1] > missed[2] == 0
    assert (errors[1] <= errors[0] + 1e-15).all()


def test_starts_are_the_best_nodes_that_are_not_neighbours():
    search = module._Search(SHEET, W, module.Windows.of(SHEET, None), 10)
    Y = bent(places(20))
    starts = search._starts(Y, np.ones_like(Y), None, 3)
    for y, start in zip(Y, starts, strict=True):
        order = np.argsort(((W - y) ** 2).sum(axis=1))
        chosen = []
        for node in order:
            index = np.array(np.unravel_index(node, SHEET.shape))
            if all(np.abs(index - other).max() > 1 for other in chosen):
                chosen.append(index)
            if len(chosen) == 3:
                break
        expected = [[SHEET.nodes[0][i], SHEET.nodes[1][j]] for i, j in chosen]
        np.testing.assert_array_equal(start, expected)


def test_more_starts_than_there_are_nodes_apart():
    grid = Grid.make((2, 2))
    found = best_match(grid, grid.places(), [[0.1, 0.2]], n_starts=5)
    np.testing.assert_allclose(found.places, [[0.1, 0.2]], atol=1e-8)


def test_inverse_kinematics_reaches_the_targets(arm):
    grid, values, T = arm
    targets = forward_kinematics(T)
    Y = np.hstack([targets, np.full_like(T, np.nan)])
    for n_starts, share in ((1, 0.93), (3, 0.97)):
        found = best_match(grid, values, Y, n_starts=n_starts)
        np.testing.assert_allclose(found.images[:, 3:], found.places, atol=1e-10)
        assert np.mean(np.sqrt(found.squared_errors) < 1e-6) >= share
        off = np.linalg.norm(forward_kinematics(found.places) - targets, axis=1)
        assert np.mean(off < 1e-3) >= share
        assert found.converged.mean() >= 0.985
        assert ((grid.lo <= found.places) & (found.places <= grid.hi)).all()


def test_an_arm_moves_little_from_where_it_is(arm):
    grid, values, T = arm
    now = 0.8 * T[:100]
    targets = forward_kinematics(now) + 0.01 * np.random.default_rng(0).normal(size=(100, 3))
    Y = np.hstack([targets, np.full((100, 4), np.nan)])
    for n_starts in (1, 3):
        found = best_match(grid, values, Y, start=now, n_starts=n_starts)
        reached = found.squared_errors < 1e-14
        assert reached.mean() > 0.9
        moved = np.abs(found.places - now).max(axis=1)
        assert np.median(moved[reached]) < 0.05
        assert np.percentile(moved[reached], 90) < 0.3


def test_a_wish_for_a_joint_is_weighed_against_the_target(arm):
    grid, values, T = arm
    Y = np.full((50, 7), np.nan)
    Y[:, :3] = forward_kinematics(T[:50])
    Y[:, 4] = 0.0  # shoulder upright, which most targets do not allow
    soft, hard = (
        best_match(grid, values, Y, component_weights=[1, 1, 1, 0, p, 0, 0], n_starts=3)
        for p in (1e-4, 1.0)
    )
    miss = [np.linalg.norm(found.images[:, :3] - Y[:, :3], axis=1).mean() for found in (soft, hard)]
    bend = [np.abs(found.places[:, 1]).mean() for found in (soft, hard)]
    assert miss[0] < 0.1 * miss[1]
    assert bend[1] < bend[0]


def test_memory_does_not_grow_with_rows_times_nodes():
    grid = Grid.make((30, 30))
    rng = np.random.default_rng(0)
    values = grid.places() @ rng.normal(size=(2, 6))
    Y = rng.uniform(-1, 1, size=(20_000, 6))
    best_match(grid, values, Y[:10], max_iter=2)
    tracemalloc.start()
    best_match(grid, values, Y, max_iter=2, n_jobs=1)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 20e6  # a (rows, nodes) array alone would take 144 MB


def test_no_rows_give_no_rows():
    found = best_match(SHEET, W, np.empty((0, 4)))
    assert found.places.shape == (0, 2)
    assert found.images.shape == (0, 4)


def test_the_limit_of_steps_is_told():
    Y = bent(places()) + 0.3
    assert not best_match(SHEET, W, Y, max_iter=1).converged.all()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"Y": np.zeros((2, 3))}, r"`Y` must be an array \(m, 4\)"),
        ({"Y": np.full((2, 4), np.inf)}, "finite, or NaN"),
        ({"component_weights": [1, 1, -1, 0]}, "not negative"),
        ({"component_weights": [1, 1]}, "must have the shape"),
        ({"start": np.zeros((3, 2))}, r"array \(2, 2\).* shape \(3, 2\)"),
        ({"start": np.full((2, 2), np.nan)}, "must be finite; it holds"),
        ({"n_starts": 0}, "`n_starts` must be an integer of at least 1"),
        ({"n_starts": "a"}, "`n_starts` must be an integer"),
        ({"local": 9}, "more nodes than any axis"),
        ({"local": 1}, "`local` must be"),
    ],
)
def test_errors_say_what_is_wrong(arguments, message):
    with pytest.raises(ValueError, match=message):
        best_match(SHEET, W, **{"Y": np.zeros((2, 4)), **arguments})
