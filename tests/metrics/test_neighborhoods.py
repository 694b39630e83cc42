from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from sklearn import manifold
from sklearn.datasets import load_digits
from sklearn.decomposition import PCA

from twofold.metrics import continuity, coranking, neighborhood_hit, trustworthiness


@pytest.fixture(scope="module")
def pair():
    rng = np.random.default_rng(0)
    Y = rng.normal(size=(150, 6)) * [4, 3, 1, 1, 0.5, 0.5]
    return Y, PCA(2).fit_transform(Y)


@pytest.mark.parametrize("k", [1, 5, 20, 74])
def test_equal_to_scikit_learn(pair, k):
    Y, X = pair
    expected = manifold.trustworthiness(Y, X, n_neighbors=k)
    assert trustworthiness(Y, X, k) == pytest.approx(expected, abs=1e-12)
    expected = manifold.trustworthiness(X, Y, n_neighbors=k)
    assert continuity(Y, X, k) == pytest.approx(expected, abs=1e-12)
    assert coranking(Y, X).continuity(k) == pytest.approx(expected, abs=1e-12)


def test_equal_to_scikit_learn_on_digits():
    Y = load_digits().data[:600]
    X = PCA(2).fit_transform(Y)
    expected = manifold.trustworthiness(Y, X, n_neighbors=5)
    # Whole-number data has ties, which are broken by index here and by chance there.
    assert trustworthiness(Y, X) == pytest.approx(expected, abs=1e-4)


def test_default_is_five(pair):
    assert trustworthiness(*pair) == trustworthiness(*pair, 5)


def test_samples(pair):
    exact = trustworthiness(*pair, 5)
    sampled = trustworthiness(*pair, 5, sample=60, random_state=0)
    assert sampled != exact
    assert sampled == pytest.approx(exact, abs=0.05)


def test_flattening_costs_trust_and_tearing_costs_continuity():
    angle = np.random.default_rng(0).uniform(0, 2 * np.pi, 200)
    circle = np.column_stack([np.cos(angle), np.sin(angle)])
    flat, torn = circle[:, :1], angle[:, None]
    assert trustworthiness(circle, flat, 10) < continuity(circle, flat, 10) - 0.1
    assert continuity(circle, torn, 10) < trustworthiness(circle, torn, 10) - 0.01


@pytest.mark.parametrize("k", [0, 75, 5.0])
def test_too_many_neighbors(pair, k):
    with pytest.raises(ValueError, match=r"within \[1, 74\] .*less than n_samples / 2"):
        trustworthiness(*pair, k)


def test_data_frames(pair):
    Y, X = pair
    assert trustworthiness(pd.DataFrame(Y), X.tolist()) == trustworthiness(Y, X)
    with pytest.raises(ValueError, match="could not convert 'b'"):
        trustworthiness(Y, pd.DataFrame({"a": X[:, 0], "b": pd.Timestamp("2020-01-01")}))


def test_hit_by_hand():
    # Neighbours (one each): 0-1, 1-0, 2-1, 3-2; hits: yes, yes, no (b, a), yes.
    X = [[0.0], [1.0], [2.5], [5.0]]
    assert neighborhood_hit(X, ["a", "a", "b", "b"], 1) == 0.75
    # Two each: {1, 2}, {0, 2}, {1, 0}, {2, 1}; of the same label 1, 1, 0, 1 of 2.
    assert neighborhood_hit(X, [7, 7, 8, 8], 2) == 3 / 8


def test_hit_of_shuffled_labels_is_chance():
    rng = np.random.default_rng(0)
    labels = rng.choice(3, size=2000, p=[0.5, 0.3, 0.2])
    found = neighborhood_hit(rng.normal(size=(2000, 2)), labels, 10)
    assert found == pytest.approx(0.25 + 0.09 + 0.04, abs=0.02)


@pytest.mark.parametrize(
    ("labels", "k", "message"),
    [
        ([1, 2, 3], 1, "one label for each of 4 rows"),
        ([1, 2, 3, np.nan], 1, "missing labels"),
        (np.array(["a", None, "b", "b"], dtype=object), 1, "missing labels"),
        ([1, 1, 2, 2], 4, r"within \[1, 3\]"),
    ],
)
def test_hit_refusals(labels, k, message):
    with pytest.raises(ValueError, match=message):
        neighborhood_hit(np.arange(4.0)[:, None], labels, k)


def test_too_few_points_and_single_values():
    with pytest.raises(ValueError, match="Trustworthiness needs at least 3 points; got 2"):
        trustworthiness(np.eye(2), np.eye(2), 1)
    with pytest.raises(ValueError, match=r"`X` must be a table.*reshape\(X, \(-1, 1\)\)\.$"):
        trustworthiness(np.eye(9), np.arange(9.0), 1)
