"""The roughness matrix: its values, its null space, and all the ways to get at it."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose
from oracles import psom_smoothing as oracle

from twofold.psom.grid import Grid
from twofold.psom.roughness import (
    LegendreCoordinates,
    NodeModes,
    Roughness,
    largest_block,
    node_grams,
)

UNEVEN = Grid.through(
    [np.array([-1.0, -0.2, 0.7]), np.array([0.0, 0.4, 1.1, 1.9])], [(-1.0, 1.5), (-0.3, 2.0)]
)
GRIDS = {
    "uneven": UNEVEN,
    "one axis": Grid.make((5,)),
    "two nodes": Grid.make((2, 4), "regular"),
    "three axes": Grid.make((3, 4, 5), bounds=[(0, 1), (-2, 3), (1, 2)]),
    "four axes": Grid.make((3, 2, 4, 3), bounds=[(0, 1), (-2, 3), (1, 2), (-1, 1)]),
}


def test_integrals_of_one_axis():
    values, slopes, curvatures = node_grams(np.array([-1.0, 0.0, 1.0]), -1.0, 1.0)
    assert_allclose(15 * values, [[4, 2, -1], [2, 16, 2], [-1, 2, 4]], atol=1e-13)
    assert_allclose(6 * slopes, [[7, -8, 1], [-8, 16, -8], [1, -8, 7]], atol=1e-13)
    assert_allclose(curvatures / 2, [[1, -2, 1], [-2, 4, -2], [1, -2, 1]], atol=1e-13)


@pytest.mark.parametrize("spacing", ["regular", "chebyshev"])
def test_known_functions(spacing):
    line, square = Grid.make((3,), spacing), Grid.make((3, 4), spacing)
    x, y = square.places().T
    assert Roughness(line).of(line.places() ** 2) == pytest.approx(8)
    assert Roughness(square).of((x * y)[:, None]) == pytest.approx(8)
    assert Roughness(square).of((x * x)[:, None]) == pytest.approx(16)
    # Columns add up.
    assert Roughness(square).of(np.column_stack([x * y, x * x])) == pytest.approx(24)


def test_many_nodes_lose_no_digits():
    grid = Grid.make((20,), bounds=[(1, 20)])
    # f = x⁵: the integral of (20 x³)² from 1 to 20.
    expected = 400 * (20.0**7 - 1) / 7
    assert Roughness(grid).of(grid.places() ** 5) == pytest.approx(expected, rel=1e-9)


@pytest.mark.slow
@pytest.mark.parametrize("grid", [UNEVEN, GRIDS["two nodes"]], ids=["uneven", "two nodes"])
def test_order_of_axes_against_quadrature(grid):
    w = np.random.default_rng(0).normal(size=grid.size)
    expected = oracle.brute_force_roughness(grid.nodes, grid.lo, grid.hi, w)
    assert Roughness(grid).of(w[:, None]) == pytest.approx(expected, rel=1e-10)


@pytest.mark.parametrize("grid", GRIDS.values(), ids=GRIDS.keys())
def test_null_space_is_affine(grid):
    M = Roughness(grid).dense()
    values = np.linalg.eigvalsh(M)
    assert_allclose(M, M.T, rtol=0, atol=0)
    assert (np.abs(values) < 1e-10 * values[-1]).sum() == grid.n_axes + 1
    assert values[0] > -1e-10 * values[-1]
    affine = grid.places() @ np.arange(1.0, grid.n_axes + 1) - 3
    assert_allclose(M @ affine, 0, atol=1e-9 * values[-1])


@pytest.mark.parametrize("grid", GRIDS.values(), ids=GRIDS.keys())
def test_all_ways_agree(grid):
    roughness = Roughness(grid)
    M = roughness.dense()
    rng = np.random.default_rng(1)
    V = rng.normal(size=(grid.size, 3))
    atol = 1e-12 * np.abs(M).max()
    assert_allclose(roughness.times(V), M @ V, atol=10 * atol)
    assert_allclose(roughness.times(V[:, 0]), M @ V[:, 0], atol=10 * atol)
    assert_allclose(roughness.diagonal(), np.diagonal(M), atol=atol)
    rows, columns = rng.permutation(grid.size)[:4], rng.permutation(grid.size)[:3]
    assert_allclose(roughness.entries(rows, columns), M[np.ix_(rows, columns)], atol=atol)
    assert roughness.of(V) == pytest.approx(np.trace(V.T @ M @ V))


@pytest.mark.parametrize("grid", GRIDS.values(), ids=GRIDS.keys())
def test_legendre_coordinates_have_the_same_roughness(grid):
    coordinates = LegendreCoordinates(grid)
    Z = np.random.default_rng(2).normal(size=(grid.size, 2))
    Z[coordinates.affine] = 0
    W = coordinates.at_nodes(coordinates.to_coefficients(Z))
    assert Roughness(grid).of(W) == pytest.approx((Z**2).sum(), rel=1e-9)
    # The transposed maps are transposed: <a, R'⁻¹ b> = <R⁻¹ a, b>, and so for node values.
    a, b = np.random.default_rng(3).normal(size=(2, grid.size, 1))
    left = (a * coordinates.to_coefficients(b)).sum()
    assert left == pytest.approx((coordinates.from_slopes(a) * b).sum())
    left = (a * coordinates.at_nodes(b)).sum()
    assert left == pytest.approx((coordinates.transposed_at_nodes(a) * b).sum())


@pytest.mark.parametrize("grid", GRIDS.values(), ids=GRIDS.keys())
def test_modes_are_eigenvectors(grid):
    roughness = Roughness(grid)
    modes = NodeModes(roughness)
    Q = modes.to_nodes(np.eye(grid.size))
    size = modes.eigenvalues.max()
    assert_allclose(Q.T @ Q, np.eye(grid.size), atol=1e-12)
    assert_allclose(Q.T @ roughness.dense() @ Q, np.diag(modes.eigenvalues), atol=1e-11 * size)
    assert_allclose(modes.from_nodes(Q), np.eye(grid.size), atol=1e-12)
    assert len(modes.affine) == grid.n_axes + 1


def test_symmetric_nodes_fall_into_small_blocks():
    assert largest_block(Grid.make((8, 8, 8, 8))) == 256
    assert largest_block(UNEVEN) == UNEVEN.size


@pytest.mark.parametrize("q", [1, 2, 3])
def test_scaling_law(q):
    small = Grid.make((4,) * q)
    large = Grid.make((4,) * q, bounds=[(-3, 3)] * q)
    w = np.random.default_rng(4).normal(size=(small.size, 1))
    assert Roughness(large).of(w) == pytest.approx(3.0 ** (q - 4) * Roughness(small).of(w))


def test_too_large_a_grid_says_so():
    with pytest.raises(ValueError, match="take fewer nodes"):
        LegendreCoordinates(Grid.make((20, 20, 20, 20)))
