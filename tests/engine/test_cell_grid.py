from __future__ import annotations

import numpy as np
import pytest
from oracles.kernel_sums import squared_distances

from twofold.engine.cells import _count_candidates, build_grid, find_cell_span


def points_in_cells(grid, x, radius):
    """Return the rows that lie in the cells that a ball touches."""
    span = np.empty(6, dtype=np.int64)
    find_cell_span(x, radius, grid, span)
    a0, b0, a1, b1, a2, b2 = span
    found = []
    for c0 in range(a0, b0 + 1):
        for c1 in range(a1, b1 + 1):
            line = (c0 * grid.shape[1] + c1) * grid.shape[2]
            found.extend(grid.order[grid.starts[line + a2] : grid.starts[line + b2 + 1]])
    return found


@pytest.mark.parametrize("q", [1, 2, 3, 4])
@pytest.mark.parametrize("dtype", [np.float64, np.float32], ids=["float64", "float32"])
def test_every_point_is_in_one_cell(q, dtype):
    X = np.random.default_rng(0).normal(size=(200, q)).astype(dtype)
    grid = build_grid(X, 0.4)
    assert sorted(grid.order) == list(range(200))
    np.testing.assert_array_equal(grid.points, X[grid.order].T)
    assert grid.points.dtype == dtype
    assert grid.starts[0] == 0
    assert grid.starts[-1] == 200
    assert (np.diff(grid.starts) >= 0).all()
    assert len(grid.starts) == grid.shape.prod() + 1


@pytest.mark.parametrize("q", [1, 2, 3, 4, 7])
@pytest.mark.parametrize("dtype", [np.float64, np.float32], ids=["float64", "float32"])
@pytest.mark.parametrize("radius", [0.2, 1.0, 50.0])
def test_a_ball_is_covered_by_the_cells_it_touches(q, dtype, radius):
    rng = np.random.default_rng(1)
    X = np.round(rng.normal(size=(150, q)), 1).astype(dtype)  # many on the edges of cells
    grid = build_grid(X, radius)
    queries = np.concatenate([X[:20], 3 * rng.normal(size=(20, q))]).astype(dtype)
    s = squared_distances(queries.astype(float), X.astype(float))
    counts = _count_candidates(queries, grid, radius)
    for j, x in enumerate(queries):
        found = points_in_cells(grid, x, radius)
        assert len(found) == len(set(found)) == counts[j]
        # Rounding decides only about points on the sphere itself.
        assert set(np.flatnonzero(s[j] < radius**2 * (1 - 1e-6))) <= set(found)


def test_cells_do_leave_points_out():
    X = np.random.default_rng(2).uniform(size=(2_000, 2))
    grid = build_grid(X, 0.05)
    assert _count_candidates(X, grid, 0.05).mean() < 50  # of 2000; the ball holds 16


def test_stray_points_make_cells_wider_not_more():
    X = np.random.default_rng(3).normal(size=(100, 3))
    X[0], X[1] = 1e9, -1e12
    grid = build_grid(X, 1.0)
    assert len(grid.starts) <= 2 * 100 + 65


@pytest.mark.parametrize("X", [np.zeros((5, 2)), np.ones((1, 3))], ids=["one place", "one point"])
def test_points_without_extent_share_a_cell(X):
    grid = build_grid(X, 1.0)
    np.testing.assert_array_equal(grid.shape, [1, 1, 1])
    np.testing.assert_array_equal(grid.starts, [0, len(X)])


@pytest.mark.parametrize(("q", "radius"), [(4, 2.0), (2, np.inf)])
def test_one_cell_where_cells_do_not_help(q, radius):
    grid = build_grid(np.random.default_rng(4).normal(size=(50, q)), radius)
    np.testing.assert_array_equal(grid.shape, [1, 1, 1])
    np.testing.assert_array_equal(grid.order, np.arange(50))


def test_of_many_dimensions_the_long_ones_are_cut():
    X = np.random.default_rng(5).normal(size=(400, 6)) * [1, 30, 0.1, 20, 1, 1]
    X[0, 4] = 60  # one stray point does not make a dimension long
    grid = build_grid(X, 5.0)
    np.testing.assert_array_equal(grid.axes, [-1, 1, 3])
    assert grid.shape[0] == 1
    assert _count_candidates(X, grid, 5.0).mean() < 60
    assert (build_grid(X, 0.01).axes >= 0).all()  # three at most
