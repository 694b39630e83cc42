from __future__ import annotations

import numba
import numpy as np
import pytest
from oracles import psom as oracle

import twofold.psom.interpolation as interpolation
from twofold.datasets import forward_kinematics
from twofold.datasets.robot_arm import JOINT_LIMITS
from twofold.psom.grid import Grid
from twofold.psom.interpolation import Windows, hessian, interpolate, interpolate_with_jacobian

GRID = Grid.make((4, 5, 3), bounds=[(-2, 1), (0, 3), (5, 9)])
GRIDS = [Grid.make((6,)), Grid.make((2, 7), "regular"), GRID, Grid.make((3, 2, 4, 3))]


def values(grid, D=2, seed=0):
    return np.random.default_rng(seed).normal(size=(grid.size, D))


def places(grid, m=9, seed=1):
    return np.random.default_rng(seed).uniform(grid.lo, grid.hi, size=(m, grid.n_axes))


@pytest.mark.parametrize("grid", GRIDS, ids=lambda grid: str(grid.shape))
def test_the_map_is_the_sum_over_nodes(grid):
    W, X = values(grid), places(grid)
    expected = [oracle.psom(grid.nodes, W, x) for x in X]
    np.testing.assert_allclose(interpolate(grid, W, X), expected, rtol=1e-12, atol=1e-13)


@pytest.mark.parametrize("local", [None, 2, 3])
@pytest.mark.parametrize("grid", GRIDS, ids=lambda grid: str(grid.shape))
def test_node_values_are_met(grid, local):
    W = values(grid, 5)
    np.testing.assert_allclose(interpolate(grid, W, grid.places(), local=local), W, atol=1e-12)


@pytest.mark.parametrize("local", [None, 2])
@pytest.mark.parametrize("grid", GRIDS, ids=lambda grid: str(grid.shape))
def test_jacobian_and_hessian_are_finite_differences(grid, local):
    W, X, step = values(grid, 3), places(grid), 1e-5
    f, J = interpolate_with_jacobian(grid, W, X, local=local)
    H = hessian(grid, W, X, local=local)
    np.testing.assert_array_equal(f, interpolate(grid, W, X, local=local))
    for axis in range(grid.n_axes):
        ahead, behind = X.copy(), X.copy()
        ahead[:, axis] += step
        behind[:, axis] -= step
        (f1, J1), (f0, J0) = (
            interpolate_with_jacobian(grid, W, at, local=local) for at in (ahead, behind)
        )
        np.testing.assert_allclose(J[:, :, axis], (f1 - f0) / (2 * step), atol=1e-7)
        np.testing.assert_allclose(H[:, :, :, axis], (J1 - J0) / (2 * step), atol=1e-7)


def test_polynomials_are_reproduced():
    W = GRID.places() @ np.array([[1.0], [-2.0], [0.5]]) * GRID.places()[:, :1] ** 2
    X = places(GRID)
    expected = X @ np.array([[1.0], [-2.0], [0.5]]) * X[:, :1] ** 2
    np.testing.assert_allclose(interpolate(GRID, W, X), expected, rtol=1e-12)


def test_node_coordinates_as_values_give_the_place_back():
    X = places(GRID)
    np.testing.assert_allclose(interpolate(GRID, GRID.places(), X), X, rtol=1e-13)


@pytest.mark.parametrize("n_local", [2, 3, 4])
def test_local_map(n_local):
    grid = Grid.make((5, 4), "regular")
    W, X = values(grid), places(grid, 40)
    expected = [oracle.local_psom(grid.nodes, W, x, n_local) for x in X]
    np.testing.assert_allclose(
        interpolate(grid, W, X, local=n_local), expected, rtol=1e-12, atol=1e-13
    )


def test_a_window_of_all_nodes_is_the_full_map():
    W, X = values(GRID), places(GRID)
    np.testing.assert_array_equal(interpolate(GRID, W, X, local=5), interpolate(GRID, W, X))
    assert Windows.of(GRID, 5).are_whole


@pytest.mark.skipif(numba.config.BOUNDSCHECK, reason="other machine code, in other orders")
@pytest.mark.parametrize("local", [None, 3])
def test_a_row_does_not_depend_on_the_others_nor_on_threads(local, monkeypatch):
    W, X = values(GRID, 7), places(GRID, 40)
    monkeypatch.setattr(interpolation, "ROWS_PER_TASK", 16)
    f, J = interpolate_with_jacobian(GRID, W, X, local=local, n_jobs=3)
    for i in (0, 5, 39):
        f_i, J_i = interpolate_with_jacobian(GRID, W, X[i : i + 1], local=local, n_jobs=1)
        np.testing.assert_array_equal(f_i[0], f[i])
        np.testing.assert_array_equal(J_i[0], J[i])
        one = interpolate(GRID, np.ascontiguousarray(W[:, 2:3]), X[i : i + 1], local=local)
        assert one[0, 0] == f[i, 2]


@pytest.mark.parametrize(
    ("n", "spacing", "expected"),
    [
        (7, "regular", 0.3192),
        (7, "chebyshev", 0.0925),
        (12, "regular", 0.0845),
        (12, "chebyshev", 0.0096),
    ],
)
def test_error_of_the_gaussian_bell(n, spacing, expected):
    # Klanke 2007, figure 3.2.
    grid, x = Grid.make((n,), spacing), np.linspace(-1, 1, 4001)[:, None]
    found = interpolate(grid, np.exp(-8 * grid.places() ** 2), x)
    assert np.abs(found - np.exp(-8 * x**2)).max() == pytest.approx(expected, abs=6e-5)


@pytest.mark.parametrize(
    ("spacing", "local", "mean", "spread"),
    [
        ("regular", None, 0.80, 0.86),
        ("chebyshev", None, 0.54, 0.27),
        ("regular", 3, 17.92, 9.35),
        ("regular", 5, 3.59, 2.48),
    ],
)
def test_accuracy_of_forward_kinematics(spacing, local, mean, spread):
    # Klanke 2007, table 3.1, in mm.
    limits = JOINT_LIMITS[:4]
    grid = Grid.make((8, 8, 8, 8), spacing, np.stack([-limits, limits], axis=1))
    X = places(grid, 1000)
    found = interpolate(grid, forward_kinematics(grid.places()), X, local=local)
    errors = 1000 * np.linalg.norm(found - forward_kinematics(X), axis=1)
    assert errors.mean() == pytest.approx(mean, rel=0.1)
    assert errors.std() == pytest.approx(spread, rel=0.2)


def test_no_rows_give_no_rows():
    f, J = interpolate_with_jacobian(GRID, values(GRID), np.empty((0, 3)))
    assert f.shape == (0, 2)
    assert J.shape == (0, 2, 3)
    assert hessian(GRID, values(GRID), np.empty((0, 3))).shape == (0, 2, 3, 3)


def test_errors_say_what_is_wrong():
    with pytest.raises(ValueError, match=r"`X` must be an array \(m, 3\)"):
        interpolate(GRID, values(GRID), np.zeros((4, 2)))
    with pytest.raises(ValueError, match="one row for each of the 60 nodes"):
        interpolate(GRID, values(GRID)[1:], places(GRID))
    with pytest.raises(ValueError, match="`local` must be None"):
        interpolate(GRID, values(GRID), places(GRID), local=1)
