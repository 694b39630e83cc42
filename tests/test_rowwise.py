"""The promise of twofold.rowwise: a row gives the same bits alone or among others."""

from __future__ import annotations

import numpy as np
import pytest

from twofold import rowwise
from twofold.rowwise import (
    GAP,
    OVERLAP,
    PRODUCT,
    SQUARED_GAP,
    TILE,
    GaussianRows,
    MultipliedRows,
    aligned,
    blocks,
    data_unit,
    exponentials,
    gaussian_values,
    in_tiles,
    multiply_rows,
    own_sums,
    pair_sums,
    power_of_two,
    row_products,
    weighted_sums,
)

SHAPES = [(150, 37, 3), (130, 64, 16), (70, 5, 1), (200, 33, 50)]


def table(seed: int, n: int, D: int):
    return np.random.default_rng(seed).normal(size=(n, D))


# Functions of rows A (n, D), of which no row of the result may depend on another, and others B.
ROWWISE = {
    "products": lambda A, B: pair_sums(A, B, PRODUCT),
    "squared gaps": lambda A, B: pair_sums(A, B, SQUARED_GAP),
    "overlaps": lambda A, B: pair_sums(A, B, OVERLAP),
    "gaps": lambda A, B: pair_sums(A, B, GAP),
    "own products": lambda A, B: own_sums(A, PRODUCT),
    "own overlaps": lambda A, B: own_sums(A, OVERLAP),
    "exponentials": lambda A, B: exponentials(pair_sums(A, B, SQUARED_GAP), 0.3),
    "multiplied": lambda A, B: multiply_rows(A, B.T),
    "tiles of products": row_products,
    "tiles of sums": lambda A, B: weighted_sums(A, B.T),
    "tiles of gaussians": lambda A, B: gaussian_values(A, B, 0.3),
}
rowwise_functions = pytest.mark.parametrize("name", ROWWISE)


@rowwise_functions
@pytest.mark.parametrize(("n", "m", "D"), SHAPES)
def test_a_row_is_the_same_alone_among_others_and_in_another_place(name, n, m, D):
    A, B = table(0, n, D), table(1, m, D)
    together = ROWWISE[name](A, B)
    order = np.random.default_rng(2).permutation(n)
    np.testing.assert_array_equal(ROWWISE[name](A[order], B), together[order])
    for part in (slice(0, 1), slice(n // 2, n // 2 + 7), slice(n - 1, n)):
        np.testing.assert_array_equal(ROWWISE[name](A[part], B), together[part])


@rowwise_functions
def test_it_is_the_sum_it_says(name):
    A, B = table(3, 20, 6), table(4, 9, 6)
    gaps = A[:, None] - B[None]
    squares = (gaps**2).sum(axis=2)
    overlaps = 0.5 * (np.abs(A[:, None]) + np.abs(B) - np.abs(gaps)).sum(axis=2)
    expected = {
        "squared gaps": squares,
        "overlaps": overlaps,
        "gaps": np.abs(gaps).sum(axis=2),
        "own products": (A**2).sum(axis=1),
        "own overlaps": np.abs(A).sum(axis=1),
        "exponentials": np.exp(-0.3 * squares),
        "tiles of gaussians": np.exp(-0.3 * squares),
    }.get(name, A @ B.T)
    np.testing.assert_allclose(ROWWISE[name](A, B), expected, rtol=1e-12, atol=1e-13)


@pytest.mark.parametrize("n_threads", [2, 5])
def test_tiles_are_the_same_on_any_number_of_threads(n_threads):
    A, B, W = table(5, 300, 7), table(6, 41, 7), table(7, 300, 41)
    np.testing.assert_array_equal(row_products(A, B, n_threads), row_products(A, B))
    np.testing.assert_array_equal(weighted_sums(W, B, n_threads), weighted_sums(W, B))
    np.testing.assert_array_equal(gaussian_values(A, B, 0.2, n_threads), gaussian_values(A, B, 0.2))


def test_weights_of_zero_are_skipped_and_infinite_rows_behind_them_with_them():
    W, M = np.array([[1.0, 0.0], [0.0, 2.0]]), np.array([[3.0], [np.inf]])
    assert multiply_rows(W, M)[0, 0] == 3


def test_sums_pull_rows_towards_those_they_are_weighted_by():
    Z, rows, W = table(8, 5, 3), table(9, 11, 3), table(10, 5, 11)
    found = GaussianRows(rows, 0.7).pull(W, Z)
    expected = np.einsum("nm,nmd->nd", W, rows[None] - Z[:, None])
    np.testing.assert_allclose(found, expected, atol=1e-12)


def test_a_large_offset_costs_no_digits_and_far_rows_have_no_gaussian():
    A, B = table(11, 6, 4), table(12, 8, 4)
    near = gaussian_values(A, B, 0.3)
    np.testing.assert_allclose(gaussian_values(A + 1e6, B + 1e6, 0.3), near, rtol=1e-8)
    assert (gaussian_values(np.full((2, 4), 1e200), B, 0.3) == 0).all()


def test_tiles_are_filled_with_zeros():
    A = np.ones((5, 3))
    assert aligned(A).shape == (16, 16)
    assert aligned(A, TILE).shape == (64, 16)
    assert aligned(A).sum() == aligned(A, TILE).sum() == 15


def test_no_rows_give_arrays_of_the_right_shape():
    B = table(13, 9, 4)
    assert row_products(B[:0], B).shape == (0, 9)
    assert MultipliedRows(B).sums(np.empty((0, 9))).shape == (0, 4)
    assert multiply_rows(np.empty((0, 9)), B).shape == (0, 4)


def test_parts_of_tiles_come_back_in_their_order():
    A = table(14, 200, 1)
    doubled, signs = in_tiles(lambda tile: (2.0 * A[tile], A[tile] > 0), len(A), 3)
    np.testing.assert_array_equal(doubled, 2 * A)
    np.testing.assert_array_equal(signs, A > 0)


def test_blocks_hold_all_rows_and_no_more_values_than_they_may(monkeypatch):
    monkeypatch.setattr(rowwise, "VALUES_AT_A_TIME", 100)
    for n, each in ((0, 5), (1, 5), (99, 7), (10, 1000), (10, 0)):
        found = blocks(n, each)
        assert [i for block in found for i in range(n)[block]] == list(range(n))
        assert all((block.stop - block.start) * each <= max(100, each) for block in found)
    assert blocks(10, 1, at_a_time=4) == [slice(0, 4), slice(4, 8), slice(8, 10)]


def test_units_are_powers_of_two_near_the_size():
    sizes = np.array([1e-310, 1e-20, 0.3, 1.0, 1.4, 1.5, 7.0, 1e300, 1.7e308])
    units = power_of_two(sizes)
    np.testing.assert_array_equal(np.frexp(units)[0], 0.5)
    assert np.isfinite(1 / units).all()
    ratio = sizes[1:-1] / units[1:-1]
    assert ((ratio > 0.7) & (ratio < 1.42)).all()


@pytest.mark.parametrize("size", [0.0, np.inf])
def test_sizes_without_a_unit_have_one(size):
    assert power_of_two(size) == 1


def test_the_unit_of_data_is_that_of_their_deviations():
    Y = np.array([[1e6, np.nan], [1e6 + 8, 3.0]])
    assert data_unit(Y) == 4
    assert data_unit(Y * 2**40) == 4 * 2**40
    assert data_unit(np.full((2, 2), np.nan)) == 1
    assert data_unit(np.ones((3, 1), dtype=np.float32)) == 1
