from __future__ import annotations

import time

import numpy as np
import pytest
from oracles import unn_search as oracle

from twofold.unn.continuous import ContinuousPoints
from twofold.unn.embedding import embed_and_repair, repair
from twofold.unn.lattice import Lattice
from twofold.unn.line import Line
from twofold.unn.searches import Gaussian


def make_gaps(n=40, D=4, share=0.25, seed=0):
    """Return rows on a curve, the same with gaps but no empty row, and weights."""
    rng = np.random.default_rng(seed)
    t = rng.uniform(0, 3, size=n)
    complete = np.column_stack([t, t**2, np.sin(t), np.cos(2 * t), t])[:, :D]
    Y = complete + rng.normal(scale=0.01, size=complete.shape)
    hidden = rng.random(Y.shape) < share
    hidden[hidden.all(axis=1), 0] = False
    return Y, np.where(hidden, np.nan, Y), rng.uniform(0.5, 2, size=n)


@pytest.mark.parametrize("K", [1, 5, 100])
@pytest.mark.parametrize("weighted", [False, True])
def test_repair_is_the_oracles(K, weighted):
    _, Y, weights = make_gaps()
    given = weights if weighted else None
    filled = repair(Y, K, given)
    np.testing.assert_allclose(filled, oracle.repair(Y, K, given), rtol=1e-12)


def test_repair_by_hand():
    Y = np.array([[0.0, 1.0, 5.0], [1.0, 2.0, 7.0], [9.0, 9.0, 9.0], [0.4, 1.0, np.nan]])
    assert repair(Y, 2)[3, 2] == pytest.approx(6.0)
    assert repair(Y, 2, np.array([3.0, 1.0, 1.0, 1.0]))[3, 2] == pytest.approx(5.5)


def test_a_repaired_row_serves_later_ones():
    # The last row is nearest to the one before it, which has a gap of its own.
    Y = np.array([[0.0, 0.0, 0.0], [9.0, 9.0, 9.0], [4.0, 4.0, np.nan], [4.1, np.nan, np.nan]])
    filled = repair(Y, 1)
    assert filled[2, 2] == 0.0
    np.testing.assert_array_equal(filled[3], [4.1, 4.0, 0.0])


def test_observed_entries_stay_and_the_input_too():
    _, Y, _ = make_gaps()
    before = Y.copy()
    filled = repair(Y, 5)
    np.testing.assert_array_equal(Y, before)
    np.testing.assert_array_equal(filled[~np.isnan(Y)], Y[~np.isnan(Y)])
    assert np.isfinite(filled).all()


def test_order_of_rows_does_not_matter():
    _, Y, weights = make_gaps()
    shuffled = np.random.default_rng(1).permutation(len(Y))
    expected = repair(Y, 5, weights)[shuffled]
    np.testing.assert_array_equal(repair(Y[shuffled], 5, weights[shuffled]), expected)


def test_without_complete_rows_the_first_gets_column_means():
    Y = np.array([[1.0, np.nan, 3.0, 1.0], [np.nan, 4.0, 5.0, np.nan], [3.0, 8.0, np.nan, np.nan]])
    filled = repair(Y, 1)
    np.testing.assert_array_equal(filled[0], [1.0, 6.0, 3.0, 1.0])
    np.testing.assert_array_equal(filled, oracle.repair(Y, 1))


def test_repair_beats_column_means():
    complete, Y, _ = make_gaps(n=200, share=0.1)
    means = np.where(np.isnan(Y), np.nanmean(Y, axis=0), Y)
    gap = np.linalg.norm(repair(Y, 3) - complete)
    assert gap < 0.5 * np.linalg.norm(means - complete)


def test_repair_of_2000_rows_takes_seconds():
    rng = np.random.default_rng(0)
    Y = rng.normal(size=(2_000, 50))
    Y[rng.random(Y.shape) < 0.1] = np.nan
    repair(Y[:30], 5)  # compiles
    began = time.perf_counter()
    assert np.isfinite(repair(Y, 5)).all()
    assert time.perf_counter() - began < 10


def embedders():
    return {
        "line": lambda n: Line(n_neighbors=4),
        "greedy": lambda n: Line(n_neighbors=4, exhaustive=False),
        "lattice": lambda n: Lattice(2, n_neighbors=4, n_rows=n),
        "continuous": lambda n: ContinuousPoints(
            2, Gaussian(), n_neighbors=4, rng=np.random.default_rng(0)
        ),
    }


@pytest.mark.parametrize("name", embedders())
def test_embed_and_repair(name):
    _, Y, weights = make_gaps()
    embedder = embedders()[name](len(Y))
    filled, X = embed_and_repair(Y, weights, embedder)
    assert X.shape == (len(Y), 2 if name in ("lattice", "continuous") else 1)
    assert np.isfinite(filled).all()
    np.testing.assert_allclose(filled[~np.isnan(Y)], Y[~np.isnan(Y)], rtol=1e-12)
    # Complete rows alone are embedded first, so the first of them are where they would be anyway.
    order = np.argsort(np.isnan(Y).sum(axis=1), kind="stable")
    np.testing.assert_array_equal(embedder.latent, X[order])


def test_a_gap_gets_the_mean_of_latent_neighbours():
    t = np.arange(6.0)
    Y = np.column_stack([t, 10 * t])
    last = np.array([[2.4, np.nan]])
    filled, X = embed_and_repair(
        np.concatenate([last, Y]), np.ones(7), Line(n_neighbors=2, include_self=False)
    )
    ranks = X[:, 0]
    near = np.argsort(np.abs(ranks - ranks[0]) + 0.1 * (ranks > ranks[0]), kind="stable")[1:3]
    assert filled[0, 1] == pytest.approx(10 * t[near - 1].mean())
    assert set(near - 1) == {2, 3}  # between those that are as near in what it has


def test_embed_and_repair_without_complete_rows():
    Y = np.array([[np.nan, 4.0, np.nan], [1.0, np.nan, 3.0], [3.0, 8.0, np.nan]])
    filled, X = embed_and_repair(Y, np.ones(3), Line(n_neighbors=2))
    assert filled[1, 1] == 6.0
    assert np.isfinite(filled).all()
    np.testing.assert_array_equal(np.sort(X[:, 0]), [1, 2, 3])
