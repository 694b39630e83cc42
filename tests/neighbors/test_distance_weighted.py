import numpy as np
import pytest
from oracles import neighbors as oracle
from sklearn.neighbors import KNeighborsRegressor

from twofold.neighbors import (
    DistanceWeightedKNNClassifier,
    DistanceWeightedKNNRegressor,
    inverse_squared_distances,
)

rng = np.random.default_rng(0)
X, y = rng.normal(size=(60, 3)), rng.normal(size=(60, 2))
NEW = rng.normal(size=(20, 3))


@pytest.mark.parametrize("k", [1, 4, None])
@pytest.mark.parametrize("p", [1.0, 2.0])
def test_means_are_those_of_the_formula(k, p):
    model = DistanceWeightedKNNRegressor(k, p=p).fit(X, y)
    expected = [oracle.weighted_mean(X, y, x, k or len(X), p) for x in NEW]
    np.testing.assert_allclose(model.predict(NEW), expected, rtol=1e-9)


def test_weights_differ_from_inverse_distances():
    plain = KNeighborsRegressor(4, weights="distance").fit(X, y).predict(NEW)
    assert np.abs(DistanceWeightedKNNRegressor(4).fit(X, y).predict(NEW) - plain).max() > 0.01


def test_on_rows_their_mean_is_returned():
    twice = np.array([[0.0], [0.0], [1.0]])
    model = DistanceWeightedKNNRegressor(None).fit(twice, [1.0, 2.0, 9.0])
    assert model.predict([[0.0]])[0] == 1.5


def test_tiny_and_huge_distances_keep_their_ratio():
    for unit in (1e-200, 1e200):
        weights = inverse_squared_distances(unit * np.array([[1.0, 2.0, 4.0]]))
        np.testing.assert_allclose(weights, [[1, 1 / 4, 1 / 16]])


def test_classes_are_voted_for():
    model = DistanceWeightedKNNClassifier(3).fit([[0.0], [3.0], [4.0]], ["a", "b", "b"])
    # At 1: 1 against 1/4 + 1/9; at 1.5 a has 4/9 and b 4/9 + 4/25.
    np.testing.assert_allclose(model.predict_proba([[1.0]]), [[36 / 49, 13 / 49]])
    assert model.predict([[1.0], [1.5]]).tolist() == ["a", "b"]


def test_many_rows_at_a_time_change_nothing(monkeypatch):
    model = DistanceWeightedKNNRegressor(None).fit(X, y)
    whole = model.predict(NEW)
    monkeypatch.setattr("twofold.rowwise.VALUES_AT_A_TIME", 100)
    np.testing.assert_allclose(model.predict(NEW), whole, rtol=1e-12)


def test_more_neighbours_than_rows_means_all():
    few = DistanceWeightedKNNRegressor(50).fit(X[:5], y[:5]).predict(NEW)
    np.testing.assert_allclose(
        few, DistanceWeightedKNNRegressor(None).fit(X[:5], y[:5]).predict(NEW)
    )


@pytest.mark.parametrize("k", [0, 2.5, True])
def test_wrong_numbers_of_neighbours_are_refused(k):
    with pytest.raises(ValueError, match="`n_neighbors` must"):
        DistanceWeightedKNNRegressor(k).fit(X, y)


def test_words_have_no_mean():
    with pytest.raises(ValueError, match="targets that are numbers; got strings, such as 'a'"):
        DistanceWeightedKNNRegressor().fit([[0.0], [1.0]], ["a", "b"])


@pytest.mark.parametrize("kind", [DistanceWeightedKNNClassifier, DistanceWeightedKNNRegressor])
@pytest.mark.parametrize("p", [0, 0.5, "2", True])
def test_order_of_the_distance_is_checked(kind, p):
    with pytest.raises(ValueError, match="`p` must be a number of at least 1"):
        kind(p=p).fit([[0.0], [1.0]], [0, 1])
