from __future__ import annotations

import numpy as np
import pytest
from sklearn.datasets import load_digits
from sklearn.manifold import Isomap

from twofold.metrics import coranking, dsre, e_nx


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
