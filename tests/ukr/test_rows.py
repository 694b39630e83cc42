from __future__ import annotations

import numpy as np
import pytest
from ukr.problems import make_table

from twofold.kernels import GAUSSIAN
from twofold.ukr.rows import CarriedRows


def test_columns_by_hand():
    Y, weights = np.array([[1.0, 8.0], [4.0, 2.0]]), np.array([1.0, 2.0])
    rows = CarriedRows(Y, weights, None)
    # Means are (1 + 2·4)/3 = 3 and (8 + 2·2)/3 = 4.
    np.testing.assert_allclose(rows.mean, [3, 4])
    np.testing.assert_allclose(rows.V, [[-2, 4, 1], [2, -4, 2]])


def test_columns_with_missing_entries_by_hand():
    Y, weights = np.array([[1.0, np.nan], [4.0, 2.0]]), np.array([1.0, 2.0])
    rows = CarriedRows(Y, weights, np.array([[True, False], [True, True]]))
    np.testing.assert_allclose(rows.mean, [3, 2])
    np.testing.assert_allclose(rows.Y, [[-2, 0], [1, 0]])
    np.testing.assert_allclose(rows.V, [[-2, 0, 1, 0, 1], [2, 0, 2, 2, 2]])


@pytest.mark.parametrize("missing", [False, True], ids=["complete", "missing"])
def test_the_regression_of_equal_weights_is_the_mean(missing):
    _, Y, weights, observed = make_table(weighted=True, missing=missing)
    rows = CarriedRows(Y, weights, observed)
    f, denominator = rows.regress(rows.V.sum(axis=0, keepdims=True))
    np.testing.assert_allclose(f, 0, atol=1e-13)
    assert (denominator > 0).all()


@pytest.mark.parametrize("missing", [False, True], ids=["complete", "missing"])
def test_one_row_alone_is_reproduced(missing):
    _, Y, weights, observed = make_table(weighted=True, missing=missing)
    rows = CarriedRows(Y, weights, observed)
    f, _ = rows.regress(rows.V)
    seen = np.ones(Y.shape, dtype=bool) if observed is None else observed
    np.testing.assert_allclose((f + rows.mean)[seen], Y[seen])
    np.testing.assert_array_equal(f[~seen], 0)


def test_no_weight_no_answer():
    rows = CarriedRows(np.array([[1.0], [2.0]]), np.ones(2), None)
    f, denominator = rows.regress(np.zeros((1, 2)))
    np.testing.assert_array_equal(f, 0)
    np.testing.assert_array_equal(rows.answer(f, denominator, np.ones((1, 1))), 0)


@pytest.mark.parametrize("missing", [False, True], ids=["complete", "missing"])
def test_the_answer_is_the_derivative_by_the_sums(missing):
    _, Y, weights, observed = make_table(weighted=True, missing=missing)
    rows = CarriedRows(Y, weights, observed)
    rng = np.random.default_rng(1)
    A = rng.uniform(0.1, 1, size=(5, len(Y))) @ rows.V
    slope = rng.normal(size=(5, 3))
    f, denominator = rows.regress(A)
    U = rows.answer(f, denominator, slope)
    for c in range(A.shape[1]):
        move = 1e-6 * np.eye(A.shape[1])[c]
        change = (rows.regress(A + move)[0] - rows.regress(A - move)[0]) / 2e-6
        np.testing.assert_allclose(U[:, c], (slope * change).sum(axis=1), rtol=1e-6, atol=1e-8)


@pytest.mark.parametrize("missing", [False, True], ids=["complete", "missing"])
def test_the_mean_of_the_others(missing):
    _, Y, weights, observed = make_table(weighted=True, missing=missing, n=6)
    rows = CarriedRows(Y, weights, observed)
    seen = np.ones(Y.shape, dtype=bool) if observed is None else observed
    found = rows.mean_without((np.array([4, 1]))[:, None]) + rows.mean
    for place, j in enumerate((4, 1)):
        for d in np.flatnonzero(seen[j]):
            others = [i for i in range(6) if i != j and seen[i, d]]
            expected = np.average(Y[others, d], weights=weights[others])
            assert found[place, d] == pytest.approx(expected)


def test_a_column_seen_once_has_no_others():
    Y, observed = np.array([[1.0, 5.0], [2.0, 0.0]]), np.array([[True, True], [True, False]])
    rows = CarriedRows(Y, np.ones(2), observed)
    np.testing.assert_allclose(
        rows.mean_without((np.array([0, 1]))[:, None]) + rows.mean, [[2, 5], [1, 5]]
    )


def test_single_precision_stays_single():
    _, Y, weights, observed = make_table(GAUSSIAN, weighted=True, missing=True)
    for mask in (None, observed):
        rows = CarriedRows(Y.astype(np.float32), weights, mask)
        assert rows.V.dtype == rows.Y.dtype == rows.mean.dtype == np.float32
        assert rows.regress(rows.V)[0].dtype == np.float32
        assert rows.mean_without((np.arange(3))[:, None]).dtype == np.float32
