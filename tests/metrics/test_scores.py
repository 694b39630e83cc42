from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from sklearn import manifold
from sklearn.datasets import load_digits
from sklearn.decomposition import PCA
from sklearn.manifold import Isomap

from twofold import UKR
from twofold.metrics import (
    continuity,
    coranking,
    dsre,
    e_nx,
    neighborhood_hit,
    quantization_error,
    reconstruction_error,
    topographic_error,
    trustworthiness,
)


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
def test_maps_that_are_refused(prototypes, positions, message):
    with pytest.raises(ValueError, match=message):
        topographic_error(np.zeros((4, 2)), prototypes, positions)


def test_missing_entries_are_refused():
    with pytest.raises(ValueError, match="row 1, column 0 is NaN"):
        quantization_error([[1.0], [np.nan]], [[0.0]])


@pytest.mark.parametrize("reach", [0, -1.0, np.nan])
def test_reach_is_a_positive_distance(reach):
    with pytest.raises(ValueError, match="`reach` must be a positive distance"):
        topographic_error([[0.4], [1.4]], [[0.0], [1.0]], (2,), reach=reach)


def test_share_of_variance_of_principal_components():
    Y = np.random.default_rng(0).normal(size=(100, 5)) * [5, 3, 2, 1, 1] + 10
    model = PCA(2).fit(Y)
    back = model.inverse_transform(model.transform(Y))
    left = 1 - model.explained_variance_ratio_.sum()
    assert reconstruction_error(Y, back) == pytest.approx(left)
    assert reconstruction_error(Y, back, relative=False) == pytest.approx(
        left * Y.var(axis=0).sum()
    )


def test_the_mean_scores_one_and_the_data_zero():
    Y = np.random.default_rng(0).normal(size=(40, 3))
    assert reconstruction_error(Y, np.tile(Y.mean(axis=0), (40, 1))) == pytest.approx(1)
    assert reconstruction_error(Y, Y) == 0


def test_missing_entries_by_hand():
    nan = np.nan
    Y = [[0.0, 1.0], [2.0, nan], [4.0, 3.0]]
    back = [[1.0, 1.0], [2.0, nan], [4.0, 5.0]]
    # Errors 1 and 4; variances 4 + 0 + 4 in the first column, 1 + 1 in the second.
    assert reconstruction_error(Y, back) == pytest.approx(5 / 10)
    assert reconstruction_error(Y, back, relative=False) == pytest.approx(5 / 3)
    masked = np.ma.masked_invalid(Y)
    assert reconstruction_error(masked, np.nan_to_num(back)) == pytest.approx(5 / 10)


def test_absolute_error_is_the_negative_score_of_a_model():
    Y = np.random.default_rng(0).normal(size=(40, 3))
    Y[3, 1] = np.nan
    model = UKR(1, init="pca", max_iter=3).fit(Y)
    found = reconstruction_error(Y, model.reconstruct(Y), relative=False)
    assert found == pytest.approx(-model.score(Y))


@pytest.mark.parametrize(
    ("Y", "back", "message"),
    [
        ([[1.0], [2.0]], [[1.0]], r"shape of `Y`, \(2, 1\); got \(1, 1\)"),
        ([[np.nan], [np.nan]], [[1.0], [1.0]], "no observed entry"),
        ([[1.0], [2.0]], [[1.0], [np.nan]], "missing where `Y` is observed .first: row 1"),
        ([[2.0], [2.0]], [[1.0], [1.0]], "No column of `Y` varies.*relative=False"),
    ],
)
def test_reconstructions_that_are_refused(Y, back, message):
    with pytest.raises(ValueError, match=message):
        reconstruction_error(Y, back)


def neighbors_by_hand(X, i, k):
    """Return the k nearest others; ties by coordinates, then by row."""
    key = [(((X[j] - X[i]) ** 2).sum(), tuple(X[j]), j) for j in range(len(X)) if j != i]
    return [j for *_, j in sorted(key)[:k]]


def residuals_by_hand(Y, X, K, include_self):
    rows = [
        [i, *neighbors_by_hand(X, i, K - 1)] if include_self else neighbors_by_hand(X, i, K)
        for i in range(len(X))
    ]
    return np.array([np.linalg.norm(Y[near].mean(axis=0) - Y[i]) for i, near in enumerate(rows)])


@pytest.mark.cover(2)
@pytest.mark.parametrize("q", [1, 2, 3])
@pytest.mark.parametrize("K", [1, 2, 5, 30])
@pytest.mark.parametrize("include_self", [True, False])
@pytest.mark.parametrize("lattice", [True, False], ids=["ties", "no ties"])
def test_dsre_is_the_definition(q, K, include_self, lattice):
    rng = np.random.default_rng(0)
    Y = rng.normal(size=(40, 3))
    X = rng.integers(0, 5, size=(40, q)).astype(float) if lattice else rng.normal(size=(40, q))
    r = residuals_by_hand(Y, X, K, include_self)
    expected = {
        "sum_norm": r.sum(),
        "mean_norm": r.mean(),
        "squared": (r**2).sum(),
        "fro_norm": np.sqrt((r**2).sum()) / 40,
    }
    for kind, value in expected.items():
        found = dsre(Y, X, K, kind=kind, include_self=include_self)
        assert found == pytest.approx(value, rel=1e-12, abs=1e-12)


def test_left_before_right_on_a_line():
    Y = np.array([[0.0], [10.0], [20.0], [40.0]])
    order = [[1.0], [2.0], [3.0], [4.0]]
    # Two at a time: row 0 with 1 (nobody is on its left), the others with the row on their left.
    assert dsre(Y, order, 2) == pytest.approx(5 + 5 + 5 + 10)


@pytest.fixture(scope="module")
def digits():
    Y = load_digits(n_class=6).data[:300]
    X = {K: Isomap(n_neighbors=K, n_components=2).fit_transform(Y) for K in (5, 10, 30)}
    return Y, X


def test_figures_of_the_book(digits):
    # Kramer 2013, Table 6.3, ISOMAP on Digits; the book cuts figures off after two places.
    Y, X = digits
    expected = {5: (1.00, 0.45), 10: (1.03, 0.54), 30: (1.28, 0.64)}
    for K, (error, kept) in expected.items():
        assert np.floor(100 * dsre(Y, X[K], K, kind="fro_norm")) / 100 == error
        assert e_nx(Y, X[K], K) == pytest.approx(kept, abs=0.011)


def test_e_nx_with_and_without_the_point_itself(digits):
    Y, X = digits[0], digits[1][5]
    without = e_nx(Y, X, 9, include_self=False)
    assert without == coranking(Y, X).q_nx(9)
    assert e_nx(Y, X, 10) == pytest.approx((1 + 9 * without) / 10)
    assert e_nx(Y, Y, 7) == 1.0


def test_sampled_e_nx(digits):
    Y, X = digits[0], digits[1][10]
    sampled = e_nx(Y, X, 10, sample=100, random_state=0)
    assert sampled == pytest.approx(e_nx(Y, X, 10), abs=0.05)
    assert sampled == e_nx(Y, X, 10, sample=100, random_state=0)


def test_wrong_arguments():
    Y = np.arange(8.0).reshape(4, 2)
    with pytest.raises(ValueError, match="'fro_norm', 'mean_norm' or 'squared'; got 'rms'"):
        dsre(Y, Y, 2, kind="rms")
    with pytest.raises(ValueError, match=r"within \[1, 3\]"):
        dsre(Y, Y, 4, include_self=False)
    with pytest.raises(ValueError, match=r"within \[1, 4\]"):
        e_nx(Y, Y, 5)
    with pytest.raises(ValueError, match="got 4 and 3 rows"):
        dsre(Y, Y[:3], 2)
