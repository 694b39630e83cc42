import warnings

import numpy as np
import pytest
from oracles import neighbors as oracle
from sklearn.datasets import make_moons
from sklearn.neighbors import KNeighborsClassifier

from twofold.neighbors import DistanceWeightedKNNClassifier, PropagatingNearestNeighbor


@pytest.mark.parametrize("seed", range(5))
def test_labels_spread_in_the_order_of_the_definition(seed):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(40, 2))
    y = np.where(rng.random(40) < 0.2, rng.integers(0, 3, 40), -1)
    y[0] = 1
    labels, order = oracle.propagate(X, y)
    model = PropagatingNearestNeighbor().fit(X, y)
    np.testing.assert_array_equal(model.transduction_, labels)
    np.testing.assert_array_equal(model.order_, order)


def test_ties_go_to_the_first_rows():
    # At the end the row at 3 lies between 2 and 4; the one at 4 had its label earlier.
    X = [[0.0], [1.0], [2.0], [3.0], [4.0]]
    y = [0, -1, -1, -1, 1]
    labels, order = oracle.propagate(np.array(X), y)
    model = PropagatingNearestNeighbor().fit(X, y)
    assert model.transduction_.tolist() == labels == [0, 0, 0, 1, 1]
    assert model.order_.tolist() == order == [1, 2, 3]


def test_one_label_a_moon_is_enough():
    X, y = make_moons(400, noise=0.05, random_state=0)
    partial = np.full(400, -1)
    first = [np.flatnonzero(y == label)[0] for label in (0, 1)]
    partial[first] = [0, 1]
    assert (PropagatingNearestNeighbor().fit(X, partial).transduction_ == y).all()
    assert KNeighborsClassifier(1).fit(X[first], [0, 1]).score(X, y) < 0.9


@pytest.mark.parametrize("none", [None, np.nan, -1])
def test_labels_may_be_text(none):
    y = np.array(["a", none, none, "b"], dtype=object)
    model = PropagatingNearestNeighbor().fit([[0.0], [1.0], [4.0], [5.0]], y)
    assert model.transduction_.tolist() == ["a", "a", "b", "b"]
    assert model.predict([[2.0], [9.0]]).tolist() == ["a", "b"]


def test_missing_numbers_keep_the_type_of_the_others():
    model = PropagatingNearestNeighbor().fit([[0.0], [1.0], [9.0]], [3, -1, 7])
    assert model.classes_.tolist() == [3, 7]
    assert model.transduction_.dtype.kind == "i"


def test_with_all_labels_it_is_the_nearest_neighbour():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(50, 2)), rng.integers(0, 4, 50)
    new = rng.normal(size=(30, 2))
    model, plain = PropagatingNearestNeighbor().fit(X, y), KNeighborsClassifier(1).fit(X, y)
    np.testing.assert_array_equal(model.predict(new), plain.predict(new))
    assert len(model.order_) == 0


@pytest.mark.parametrize(
    ("y", "message"), [([-1, -1], "No row has a label"), ([[0, 1], [1, 0]], "one label per row")]
)
def test_wrong_labels_are_refused(y, message):
    with pytest.raises(ValueError, match=message):
        PropagatingNearestNeighbor().fit([[0.0], [1.0]], y)


def test_labels_minus_one_and_one_are_warned_of():
    with pytest.warns(UserWarning, match="only class 1 is left"):
        model = PropagatingNearestNeighbor().fit([[0.0], [1.0], [2.0]], [-1, 1, 1])
    assert model.classes_.tolist() == [1]


@pytest.mark.parametrize("kind", [PropagatingNearestNeighbor, DistanceWeightedKNNClassifier])
def test_threads_of_scikit_learn_leave_the_filters_of_warnings_alone(kind):
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(3000, 3)), rng.integers(0, 2, 3000)
    model = kind(n_jobs=4).fit(X, y)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        before = list(warnings.filters)
        for _ in range(5):
            model.predict(X)
            assert list(warnings.filters) == before
