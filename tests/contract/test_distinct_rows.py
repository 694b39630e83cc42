from __future__ import annotations

import numpy as np
import pytest

from twofold.contract.distinct_rows import RowIndex, merge_duplicates, row_keys

NAN = np.nan
# The other NaN: its sign bit is set, as in the result of 0 / 0 on many processors.
NEGATIVE_NAN = np.copysign(np.nan, -1)


def as_set(Y):
    return {tuple(row) for row in np.nan_to_num(Y, nan=-99.0)}


def test_equal_rows_are_merged_by_hand():
    Y = np.array([[1.0, 2.0], [3.0, 4.0], [1.0, 2.0], [1.0, 2.0]])
    distinct = merge_duplicates(Y, np.array([1.0, 10.0, 2.0, 3.0]))
    assert len(distinct.Y) == 2
    twice, once = distinct.member[0], distinct.member[1]
    np.testing.assert_array_equal(distinct.member, [twice, once, twice, twice])
    np.testing.assert_array_equal(distinct.Y[twice], [1, 2])
    np.testing.assert_array_equal(distinct.Y[once], [3, 4])
    assert distinct.weights[twice] == 6
    assert distinct.weights[once] == 10
    assert distinct.first[twice] == 0
    assert distinct.first[once] == 1


def test_rows_can_be_put_together_again():
    rng = np.random.default_rng(0)
    Y = rng.integers(0, 4, size=(300, 3)).astype(float)
    weights = rng.uniform(size=300)
    distinct = merge_duplicates(Y, weights)
    np.testing.assert_array_equal(distinct.Y[distinct.member], Y)
    np.testing.assert_array_equal(Y[distinct.first], distinct.Y)
    assert len(distinct.Y) == len(np.unique(Y, axis=0)) == len(as_set(distinct.Y))
    assert distinct.weights.sum() == pytest.approx(weights.sum())


def test_distinct_rows_are_all_kept():
    Y = np.random.default_rng(1).normal(size=(500, 2))
    assert len(merge_duplicates(Y, np.ones(500)).Y) == 500


def test_zeros_of_both_signs_are_equal():
    Y = np.array([[0.0, 1.0], [-0.0, 1.0]])
    assert len(merge_duplicates(Y, np.ones(2)).Y) == 1


def test_missing_entries_are_equal_whatever_their_bits():
    Y = np.array([[NAN, 1.0], [NAN, 1.0], [NEGATIVE_NAN, 1.0], [NAN, 2.0], [1.0, NAN]])
    distinct = merge_duplicates(Y, np.ones(5))
    assert sorted(distinct.weights) == [1, 1, 3]


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_the_order_of_the_rows_does_not_matter(dtype):
    rng = np.random.default_rng(2)
    Y = rng.integers(0, 5, size=(200, 3)).astype(dtype)
    Y[rng.random(Y.shape) < 0.1] = NAN
    weights = rng.integers(1, 4, size=200).astype(float)
    distinct = merge_duplicates(Y, weights)
    order = rng.permutation(200)
    shuffled = merge_duplicates(Y[order], weights[order])
    assert distinct.Y.dtype == dtype
    np.testing.assert_array_equal(shuffled.Y, distinct.Y)
    np.testing.assert_array_equal(shuffled.weights, distinct.weights)
    np.testing.assert_array_equal(shuffled.member, distinct.member[order])


def test_neighbouring_numbers_and_swapped_columns_have_other_keys():
    Y = np.array([[1.0, 2.0], [2.0, 1.0], [1.0, np.nextafter(2.0, 3.0)], [1.0, -2.0]])
    assert len(set(row_keys(Y))) == 4


def test_keys_that_collide_do_not_merge_rows(monkeypatch):
    from twofold.contract import distinct_rows

    monkeypatch.setattr(distinct_rows, "_hash_rows", lambda bits, keys: keys.fill(7))
    Y = np.array([[1.0], [2.0], [1.0], [3.0], [2.0]])
    distinct = merge_duplicates(Y, np.ones(5))
    assert sorted(zip(distinct.Y[:, 0], distinct.weights, strict=True)) == [(1, 2), (2, 2), (3, 1)]
    np.testing.assert_array_equal(RowIndex(Y[[0, 1, 3]]).find(Y), [0, 1, 0, 2, 1])


class TestRowIndex:
    def test_rows_are_found_where_they_are(self):
        rng = np.random.default_rng(3)
        Y = rng.normal(size=(100, 4))
        order = rng.permutation(100)
        np.testing.assert_array_equal(RowIndex(Y).find(Y[order]), order)

    def test_other_rows_are_not_found(self):
        Y = np.random.default_rng(4).normal(size=(50, 2))
        other = Y.copy()
        other[:, 0] = np.nextafter(other[:, 0], 10)
        np.testing.assert_array_equal(RowIndex(Y).find(other), np.full(50, -1))

    def test_missing_entries_and_zeros_are_found(self):
        index = RowIndex(np.array([[NAN, 1.0], [0.0, 2.0]]))
        wanted = np.array([[-0.0, 2.0], [NEGATIVE_NAN, 1.0], [NAN, NAN]])
        np.testing.assert_array_equal(index.find(wanted), [1, 0, -1])

    def test_single_precision(self):
        Y = np.random.default_rng(5).normal(size=(20, 3)).astype(np.float32)
        np.testing.assert_array_equal(RowIndex(Y).find(Y), np.arange(20))

    def test_the_table_is_not_changed(self):
        Y = np.array([[-0.0, NEGATIVE_NAN]])
        before = Y.tobytes()
        RowIndex(Y).find(Y)
        merge_duplicates(Y, np.ones(1))
        assert Y.tobytes() == before
