import numpy as np
import pytest
from oracles import neighbors as oracle
from sklearn.datasets import load_iris, make_moons
from sklearn.neighbors import KNeighborsClassifier

from twofold.neighbors import ModelBasedKNN


def blobs(seed, n=40):
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 3, n)
    return rng.normal(size=(n, 2)) + 1.5 * np.column_stack([y, y % 2]), y


@pytest.mark.parametrize("seed", range(5))
def test_balls_are_those_of_the_definition(seed):
    X, y = blobs(seed)
    model = ModelBasedKNN().fit(X, y)
    rows, radii, counts = zip(*oracle.balls(X, y), strict=True)
    np.testing.assert_array_equal(model.representatives_, X[list(rows)])
    np.testing.assert_array_equal(model.representative_labels_, y[list(rows)])
    np.testing.assert_allclose(model.radii_, radii, rtol=1e-12)
    np.testing.assert_array_equal(model.counts_, counts)


@pytest.mark.parametrize("seed", range(3))
def test_labels_are_those_of_the_definition(seed):
    X, y = blobs(seed)
    new = np.random.default_rng(seed + 50).uniform(-3, 6, size=(60, 2))
    found = oracle.balls(X, y)
    expected = [oracle.ball_label(X, y, found, x) for x in new]
    np.testing.assert_array_equal(ModelBasedKNN().fit(X, y).predict(new), expected)


def test_training_rows_are_recognised_and_far_fewer_are_kept():
    X, y = make_moons(500, noise=0.15, random_state=0)
    model = ModelBasedKNN().fit(X, y)
    np.testing.assert_array_equal(model.predict(X), y)
    assert len(model.representatives_) < 60
    assert model.counts_.sum() == len(X)


def test_new_rows_are_recognised_as_by_nearest_neighbours():
    X, y = make_moons(1000, noise=0.2, random_state=0)
    model = ModelBasedKNN().fit(X[:500], y[:500])
    plain = KNeighborsClassifier(1).fit(X[:500], y[:500])
    assert model.score(X[500:], y[500:]) > plain.score(X[500:], y[500:]) - 0.02


def test_representatives_are_asked_by_plain_neighbours():
    X, y = load_iris(return_X_y=True)
    model = ModelBasedKNN("representatives", n_neighbors=3).fit(X, y)
    plain = KNeighborsClassifier(3).fit(model.representatives_, model.representative_labels_)
    np.testing.assert_array_equal(model.predict(X), plain.predict(X))


def test_rows_of_two_classes_on_one_place_are_balls_of_one_row():
    model = ModelBasedKNN().fit([[0.0], [0.0], [5.0], [6.0]], ["a", "b", "b", "b"])
    assert sorted(model.counts_.tolist()) == [1, 1, 2]
    assert model.predict([[5.5]]).tolist() == ["b"]


def test_few_distances_at_a_time_change_nothing(monkeypatch):
    X, y = blobs(1)
    whole = ModelBasedKNN().fit(X, y)
    monkeypatch.setattr("twofold.rowwise.VALUES_AT_A_TIME", 100)
    parts = ModelBasedKNN().fit(X, y)
    np.testing.assert_array_equal(parts.radii_, whole.radii_)
    np.testing.assert_array_equal(parts.predict(X + 0.1), whole.predict(X + 0.1))


def test_wrong_mode_is_refused():
    with pytest.raises(ValueError, match="`mode` must"):
        ModelBasedKNN("nearest").fit([[0.0], [1.0]], [0, 1])
