import numpy as np
import pandas as pd
import pytest
from oracles import gp_evidence as oracle
from scipy.spatial import procrustes
from scipy.stats import ortho_group

from twofold.selection import procrustes_distance, whiten


@pytest.fixture
def rng():
    return np.random.default_rng(0)


def test_whitened_rows_have_unit_covariance(rng):
    X = rng.normal(size=(60, 3)) @ rng.normal(size=(3, 3)) + 100
    X_w = whiten(X)
    np.testing.assert_allclose(X_w.mean(axis=0), 0, atol=1e-12)
    np.testing.assert_allclose(X_w.T @ X_w / 60, np.eye(3), atol=1e-12)


def test_whitening_is_that_of_the_definition(rng):
    X = rng.normal(size=(40, 3)) * [1.0, 5.0, 25.0]
    expected = oracle.whiten(X)[:, ::-1]  # the oracle has the smallest variance first
    signs = np.sign((whiten(X) * expected).sum(axis=0))
    np.testing.assert_allclose(whiten(X) * signs, expected, atol=1e-10)


def test_whitening_by_hand():
    # Centred -1, 0, 1: variance 2/3.
    found = whiten([[1.0], [2.0], [3.0]])[:, 0]
    np.testing.assert_allclose(np.abs(found), [np.sqrt(1.5), 0, np.sqrt(1.5)], atol=1e-15)


def test_distance_by_hand():
    # Both are white; X'Z / 4 is the zero matrix but for one entry: overlap 1/2, 1 - 1/4.
    X = np.array([[1.0, 1.0], [1.0, -1.0], [-1.0, 1.0], [-1.0, -1.0]])
    Z = np.column_stack([X[:, 0], X[:, 0] * X[:, 1]])
    assert procrustes_distance(X, Z) == pytest.approx(0.75)


@pytest.mark.parametrize("q", [1, 2, 4])
def test_distance_is_scipys_of_whitened_embeddings(rng, q):
    X = rng.normal(size=(50, q)) * np.arange(1, q + 1)
    Z = X + rng.normal(size=(50, q))
    _, _, expected = procrustes(oracle.whiten(Z), oracle.whiten(X))
    assert procrustes_distance(X, Z) == pytest.approx(expected, rel=1e-10)
    assert procrustes_distance(Z, X) == pytest.approx(expected, rel=1e-10)
    assert 0 < expected < 1


def test_what_does_not_count(rng):
    X = rng.normal(size=(50, 3))
    turned = (X * [1.0, 20.0, 0.1]) @ ortho_group.rvs(3, random_state=1) + [3.0, -7.0, 100.0]
    assert 0 <= procrustes_distance(X, turned) < 1e-10
    assert 0 <= procrustes_distance(X, X * [1.0, 1.0, -1.0]) < 1e-10


def test_unrelated_embeddings_are_far_apart(rng):
    assert 0.95 < procrustes_distance(rng.normal(size=(2000, 2)), rng.normal(size=(2000, 2))) <= 1


@pytest.mark.parametrize(
    ("X", "rank"),
    [
        (np.ones((10, 2)), 0),
        (np.column_stack([np.arange(10.0), np.full(10, 0.1)]), 1),
        (np.arange(10.0)[:, None] * [0.1, 0.3, -0.7], 1),
        (np.arange(10.0)[:, None] * [0.1, 0.3, -0.7] + 1e6, 1),
        (np.eye(3), 2),
    ],
)
def test_degenerate_rows_are_refused_with_their_rank(X, rank):
    with pytest.raises(ValueError, match=rf"rank {rank}\)"):
        whiten(X)
    if rank:
        assert whiten(X, rank="numerical").shape == (len(X), rank)
    else:
        with pytest.raises(ValueError, match="rank 0"):
            whiten(X, rank="numerical")


def test_too_few_rows_are_named():
    with pytest.raises(ValueError, match="3 columns need at least 4 rows"):
        whiten(np.eye(3))


def test_numerical_rank_of_wide_rows(rng):
    Y = rng.normal(size=(80, 3)) @ rng.normal(size=(3, 200)) + 5
    assert whiten(Y, rank="numerical").shape == (80, 3)
    # In single precision the rounding of the product is far larger.
    assert whiten(Y.astype(np.float32), rank="numerical").shape == (80, 3)
    assert whiten(Y.astype(np.float32).astype(np.float64), rank="numerical").shape == (80, 79)


def test_a_small_direction_is_no_degenerate_one(rng):
    X = rng.normal(size=(5000, 2)) * [1.0, 1e-3] + 10
    assert whiten(X.astype(np.float32)).shape == (5000, 2)
    assert procrustes_distance(pd.DataFrame(X), X) < 1e-10


def test_errors_say_what_came(rng):
    X = rng.normal(size=(10, 2))
    with pytest.raises(ValueError, match="10 and 9 rows"):
        procrustes_distance(X, X[:9])
    with pytest.raises(ValueError, match="got 2 and 1"):
        procrustes_distance(X, X[:, :1])
    with pytest.raises(ValueError, match="`Z` cannot be whitened"):
        procrustes_distance(X, np.ones((10, 2)))
    with pytest.raises(ValueError, match="row 3, column 1 is NaN"):
        whiten(np.where(np.arange(20).reshape(10, 2) == 7, np.nan, X))
    with pytest.raises(ValueError, match=r"'full', 'numerical'.*got 'some'"):
        whiten(X, rank="some")
