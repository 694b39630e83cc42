from __future__ import annotations

import numpy as np
import pytest

from twofold.metrics import quantization_error, topographic_error


def slow_errors(Y, C, places, reach):
    """Return both quantization errors and the topographic one, row by row."""
    squares, plain, broken = 0.0, 0.0, 0
    for y in Y:
        gaps = [np.linalg.norm(y - c) for c in C]
        first, second = np.argsort(gaps)[:2]
        squares += gaps[first] ** 2
        plain += gaps[first]
        broken += np.linalg.norm(np.subtract(places[first], places[second])) > reach
    return squares / len(Y), plain / len(Y), broken / len(Y)


@pytest.mark.parametrize("reach", [1.0, 1.5])
def test_equal_to_slow_loops(reach):
    rng = np.random.default_rng(0)
    Y, C = rng.normal(size=(80, 4)), rng.normal(size=(12, 4))
    places = list(np.ndindex(3, 4))
    squared, plain, broken = slow_errors(Y, C, places, reach)
    assert 0 < broken < 1
    assert quantization_error(Y, C) == pytest.approx(squared)
    assert quantization_error(Y, C, squared=False) == pytest.approx(plain)
    for positions in ((3, 4), places, np.array(places)):
        assert topographic_error(Y, C, positions, reach=reach) == pytest.approx(broken)


def test_prototypes_that_are_the_data():
    Y = np.random.default_rng(0).normal(size=(30, 3)) + 1e6
    assert quantization_error(Y, Y) == 0


def test_an_ordered_grid_has_no_topographic_error():
    nodes = np.array(list(np.ndindex(5, 6)), dtype=float)
    turn = np.linalg.qr(np.random.default_rng(0).normal(size=(3, 3)))[0][:2]
    rows = np.random.default_rng(1).uniform(0, 4, size=(200, 2))
    assert topographic_error(rows @ turn, nodes @ turn, (5, 6)) == 0
    shuffled = np.random.default_rng(2).permutation(nodes)
    assert topographic_error(rows @ turn, shuffled @ turn, (5, 6)) > 0.5


def test_default_reach_is_the_spacing_of_the_map():
    # 0.3 - 0.2 and 0.2 - 0.1 differ in the last digit, and the map is still in order.
    line = np.arange(8.0)[:, None]
    assert topographic_error(line + 0.4, line, line / 10) == 0


def test_diagonal_neighbors_count_if_wanted():
    square = np.array(list(np.ndindex(2, 2)), dtype=float)
    stretched = square @ [[1.0, 0.0], [0.9, 3.0]]  # 1 0 is next to 0 0, 1 1 to 0 1
    row = [[0.95, 1.5]]  # between 1 0 at (1, 0) and 0 1 at (0.9, 3)
    assert topographic_error(row, stretched, (2, 2)) == 1
    assert topographic_error(row, stretched, (2, 2), reach=1.5) == 0


@pytest.mark.parametrize(
    ("prototypes", "positions", "message"),
    [
        (np.zeros((3, 5)), (3,), "must have the 2 columns of `Y`; got 5"),
        (np.zeros((1, 2)), (1,), "at least 2 prototypes"),
        (np.zeros((3, 2)), (2, 2), "got 3 and 4 rows"),
        (np.zeros((3, 2)), [[0], [1], [1]], "same position.*Give `reach`"),
    ],
)
def test_refusals(prototypes, positions, message):
    with pytest.raises(ValueError, match=message):
        topographic_error(np.zeros((4, 2)), prototypes, positions)


def test_missing_entries_are_refused():
    with pytest.raises(ValueError, match="row 1, column 0 is NaN"):
        quantization_error([[1.0], [np.nan]], [[0.0]])


@pytest.mark.parametrize("reach", [0, -1.0, np.nan])
def test_reach_is_a_positive_distance(reach):
    with pytest.raises(ValueError, match="`reach` must be a positive distance"):
        topographic_error([[0.4], [1.4]], [[0.0], [1.0]], (2,), reach=reach)
