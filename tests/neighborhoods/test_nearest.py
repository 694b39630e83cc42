from __future__ import annotations

import numpy as np
import pytest

from twofold.neighborhoods import nearest as module
from twofold.neighborhoods.nearest import (
    LEAST_FOR_TREE,
    RowSearch,
    insert_sorted,
    k_smallest,
    nearest_rows,
    neighbor_scale,
    other_rows,
)


class TestNearest:
    @pytest.mark.parametrize("dtype", [np.float64, np.float32])
    @pytest.mark.parametrize("k", [1, 4, 30])
    def test_equals_a_full_sort(self, dtype, k):
        rng = np.random.default_rng(0)
        Y, C = rng.normal(size=(200, 5)).astype(dtype), rng.normal(size=(30, 5)).astype(dtype)
        sq_dists = ((Y[:, None].astype(float) - C) ** 2).sum(axis=2)
        expected = sq_dists.argsort(axis=1, kind="stable")[:, :k]
        np.testing.assert_array_equal(nearest_rows(Y, C, k), expected)

    def test_ties_go_by_index(self):
        # On a grid of whole numbers most rows have rows at equal distances.
        rng = np.random.default_rng(1)
        Y = rng.integers(0, 6, size=(300, 3)).astype(float)
        C = rng.integers(0, 6, size=(40, 3)).astype(float)
        expected = ((Y[:, None] - C) ** 2).sum(axis=2).argsort(axis=1, kind="stable")[:, :10]
        np.testing.assert_array_equal(nearest_rows(Y, C, 10), expected)

    def test_exact_where_products_lose_their_digits(self):
        # Two far groups of rows: within one, products cannot tell the rows apart.
        rng = np.random.default_rng(2)
        C = rng.normal(size=(20, 3)) * 1e-7 + np.repeat([[0.0], [1.0]], 10, axis=0)
        Y = C[rng.integers(0, 20, size=100)] + rng.normal(size=(100, 3)) * 1e-7
        sq_dists = ((Y[:, None] - C) ** 2).sum(axis=2)
        products = (C * C).sum(axis=1) - 2 * Y @ C.T
        found = nearest_rows(Y, C, 3)
        np.testing.assert_array_equal(found, sq_dists.argsort(axis=1)[:, :3])
        assert not np.array_equal(found, products.argsort(axis=1)[:, :3])

    @pytest.mark.parametrize("scale", [1e-170, 1e170])
    def test_any_unit(self, scale):
        rng = np.random.default_rng(3)
        Y, C = rng.normal(size=(50, 2)), rng.normal(size=(12, 2))
        np.testing.assert_array_equal(nearest_rows(Y * scale, C * scale, 5), nearest_rows(Y, C, 5))

    def test_blocks(self, monkeypatch):
        rng = np.random.default_rng(4)
        Y, C = rng.normal(size=(500, 4)), rng.normal(size=(25, 4))
        whole = nearest_rows(Y, C, 3)
        monkeypatch.setattr(module, "block_slices", lambda n, _: [slice(0, 7), slice(7, n)])
        np.testing.assert_array_equal(nearest_rows(np.asfortranarray(Y), C, 3), whole)

    @pytest.mark.parametrize("k", [0, 6, 2.0, True])
    def test_k_is_checked(self, k):
        with pytest.raises(ValueError, match="`k` must be an integer from 1 to 5"):
            nearest_rows(np.zeros((4, 2)), np.eye(5, 2), k)

    def test_a_row_is_the_same_alone_and_among_others(self):
        rng = np.random.default_rng(5)
        Y, C = rng.normal(size=(90, 40)), rng.normal(size=(70, 40))
        alone = np.concatenate([nearest_rows(y[None], C, 6) for y in Y])
        np.testing.assert_array_equal(alone, nearest_rows(Y, C, 6))

    @pytest.mark.parametrize("dtype", [np.float64, np.float32])
    @pytest.mark.parametrize("shift", [0, 1e6])
    def test_a_tree_finds_the_same_ties_and_distant_places_included(self, dtype, shift):
        rng = np.random.default_rng(6)
        C = rng.normal(size=(LEAST_FOR_TREE + 100, 2))
        C[100:200], C[300:340] = C[:100], C[0]
        C[1000:2000] = C[1000:2000].round(1)
        far = [[1e5, 0.0], [1e30, -1e30]]
        Y = np.concatenate([rng.normal(size=(50, 2)), C[:120], C[1000:1050] + 1e-9, far])
        Y, C = (Y + shift).astype(dtype), (C + shift).astype(dtype)
        for k in (1, 12, 150):
            np.testing.assert_array_equal(RowSearch(C).nearest(Y, k), nearest_rows(Y, C, k))

    def test_rows_without_a_distance_get_one_that_exists(self):
        Y = np.array([[np.nan, 0.0], [0.2, 0.0]])
        found = nearest_rows(Y, np.arange(6.0).reshape(3, 2), 2)
        assert found.min() >= 0
        assert found.max() < 3


def test_others_leave_the_row_itself_out():
    np.testing.assert_array_equal(other_rows(np.array([[0.0], [1.0], [3.0]]), 1).T, [[1, 0, 1]])
    np.testing.assert_array_equal(other_rows(np.array([[0.0], [1.0], [3.0]]), 9)[0], [1, 2])


def test_equal_rows_are_neighbours_of_each_other():
    Y = np.array([[0.0], [0.0], [0.0], [5.0]])
    for i, found in enumerate(other_rows(Y, 2)[:3]):
        assert sorted({*found.tolist(), i}) == [0, 1, 2]


class TestSmallest:
    def places(self, values, k):
        found, least = np.full(k, 99), np.empty(k)
        k_smallest(values, found, least)
        np.testing.assert_array_equal(least, np.sort(values)[:k])
        return found

    @pytest.mark.parametrize("k", [1, 2, 7, 30, 200])
    def test_the_smallest_come_first(self, k):
        values = np.random.default_rng(0).normal(size=200)
        np.testing.assert_array_equal(self.places(values, k), np.argsort(values)[:k])

    def test_ties_go_by_place(self):
        values = np.array([3.0, 1.0, 2.0, 1.0, 1.0, 2.0])
        np.testing.assert_array_equal(self.places(values, 4), [1, 3, 4, 2])

    def test_places_of_infinities_exist(self):
        values = np.array([np.inf, 5.0, np.inf, 4.0])
        np.testing.assert_array_equal(self.places(values, 4), [3, 1, 0, 0])


def test_an_equal_value_goes_behind_those_that_are_there():
    least, found = np.array([1.0, 2.0, np.inf]), np.array([4, 5, 0])
    insert_sorted(least, found, 1.0, 9)
    np.testing.assert_array_equal(least, [1.0, 1.0, 2.0])
    np.testing.assert_array_equal(found, [4, 9, 5])


def test_scale_is_the_mean_distance_to_the_tenth_other():
    Y = np.arange(30.0)[:, None]
    # Inside, the tenth other is 5 away; towards an end one more for each row that is missing:
    # the k-th row from an end (k < 5) has its tenth at 10 - k.
    expected = (2 * (10 + 9 + 8 + 7 + 6) + 20 * 5) / 30
    assert neighbor_scale(Y) == pytest.approx(expected)
    plane = np.c_[Y, Y]
    assert neighbor_scale(plane, order=1) == pytest.approx(2 * expected)


def test_rows_without_extent_have_no_scale():
    with pytest.raises(ValueError, match=r"3th neighbour is 0\.0, which cannot be the width"):
        neighbor_scale(np.ones((4, 2)))
