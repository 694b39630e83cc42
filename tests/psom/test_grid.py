from __future__ import annotations

import numpy as np
import pytest

from twofold.psom.grid import Grid


def test_regular_nodes_reach_the_borders():
    grid = Grid.make((3, 5), "regular", [(0, 1), (-2, 2)])
    np.testing.assert_allclose(grid.nodes[0], [0, 0.5, 1])
    np.testing.assert_allclose(grid.nodes[1], [-2, -1, 0, 1, 2])
    assert grid.nodes[1][-1] == grid.hi[1]


@pytest.mark.parametrize("n", [2, 3, 7, 12])
def test_chebyshev_nodes_are_the_zeros_of_the_polynomial(n):
    grid = Grid.make((n,))
    np.testing.assert_allclose(np.cos(n * np.arccos(grid.nodes[0])), 0, atol=1e-13)
    shifted = Grid.make((n,), "chebyshev", [(3, 11)])
    np.testing.assert_allclose(shifted.nodes[0], 7 + 4 * grid.nodes[0])
    assert shifted.lo[0] < shifted.nodes[0][0]


def test_places_follow_the_nodes_in_c_order():
    grid = Grid.through([[0, 1], [5, 6, 7]])
    np.testing.assert_array_equal(grid.places(), [(a, b) for a in (0, 1) for b in (5, 6, 7)])
    assert (grid.shape, grid.size, grid.n_axes) == ((2, 3), 6, 2)
    np.testing.assert_array_equal([grid.lo, grid.hi], [[0, 5], [1, 7]])


def test_a_domain_may_be_wider_than_the_nodes():
    grid = Grid.through([[0, 1]], [(-1, 3)])
    assert (grid.lo[0], grid.hi[0]) == (-1, 3)


def test_the_grid_keeps_its_own_copy_of_the_nodes():
    nodes = np.array([0.0, 1.0])
    grid = Grid.through([nodes])
    nodes[0] = 0.5
    assert grid.nodes[0][0] == 0


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Grid.make((1,)), "whole number of nodes >= 2; got 1"),
        (lambda: Grid.make((2.5,)), "whole number"),
        (lambda: Grid.make(()), "at least one axis"),
        (lambda: Grid.make((3,), "even"), "`spacing` must be one of"),
        (lambda: Grid.make((3, 3), bounds=(0, 1)), "pair for each of the 2 axes"),
        (lambda: Grid.make((3,), bounds=[(1, 0)]), "the lowest below the highest"),
        (lambda: Grid.make((3,), bounds=[(0, np.inf)]), "finite"),
        (lambda: Grid.through([[0, 0, 1]]), "axis 0 must be finite and strictly increasing"),
        (lambda: Grid.through([[0, 1], [3]]), "at least 2 nodes"),
        (lambda: Grid.through([[0, 1]], [(0.5, 1)]), "must be finite and hold its nodes"),
        (lambda: Grid.through([0.0, 1.0]), "one list of coordinates for each axis"),
    ],
)
def test_errors_say_what_is_wrong(make, message):
    with np.errstate(invalid="ignore"), pytest.raises(ValueError, match=message):
        make()
