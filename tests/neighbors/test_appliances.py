import numpy as np
import pytest
from oracles import neighbors as oracle
from sklearn.neighbors import KNeighborsClassifier
from sklearn.svm import SVC

from twofold.datasets import make_appliance_loads
from twofold.neighbors import active_resistance, appliance_ensemble, appliance_features


def trace_of(resistances):
    """Return readings at 10 volt and phase 0 of something with these resistances."""
    R = np.asarray(resistances, dtype=float)
    U = np.full(len(R), 10.0)
    return np.column_stack([U, U / R, np.zeros(len(R)), U**2 / R])


def test_features_by_hand():
    # Without 99 and 7: mean 3, deviation sqrt(2/3); transform of (2, 3, 4): 9 and, with
    # w = exp(-2 pi i / 3), 2 + 3w + 4w² = -3/2 ± i sqrt(3)/2, whose phases are ± 150°.
    on, off = trace_of([99, 7, 2, 3, 4]), trace_of([99, 7, 2, 3, 4, 5])
    features = appliance_features([on, off], [True, False])
    expected = [[3, np.sqrt(2 / 3), 5 * np.pi / 6, 0], [0, 0, 0, 4.5]]
    np.testing.assert_allclose(features, expected, rtol=1e-12)


def test_both_forms_of_the_resistance_agree():
    traces = make_appliance_loads(60, random_state=0).traces
    U, I, phi, _ = np.moveaxis(traces, 2, 0)  # noqa: E741
    np.testing.assert_allclose(active_resistance(traces), U / (I * np.cos(phi)), rtol=1e-12)


@pytest.mark.parametrize(
    ("traces", "is_on", "message"),
    [
        ([trace_of([1, 2, 3])], [True, False], "a trace for each"),
        ([trace_of([1, 2])], [True], "at least three"),
        ([np.ones((5, 3))], [True], "U, I, phi and P"),
    ],
)
def test_wrong_traces_are_refused(traces, is_on, message):
    with pytest.raises(ValueError, match=message):
        appliance_features(traces, is_on)


@pytest.fixture(scope="module")
def rows():
    rng = np.random.default_rng(0)
    y = rng.integers(0, 4, 300)
    return rng.normal(size=(300, 2)) + np.column_stack([y, y % 2]), y


MEMBERS = {
    "linear": SVC(kernel="linear"),
    "rbf": SVC(),
    **{f"knn{k}": KNeighborsClassifier(k) for k in (1, 5, 7)},
}
KINDS = {
    "svm": ["linear", "rbf"],
    "knn": ["knn1", "knn5", "knn7"],
    "all": ["linear", "rbf", "knn1", "knn5", "knn7"],
}


@pytest.mark.parametrize("kind", KINDS)
def test_ensembles_vote(rows, kind):
    X, y = rows
    votes = [MEMBERS[name].fit(X[:150], y[:150]).predict(X[150:]) for name in KINDS[kind]]
    expected = [oracle.vote(list(column)) for column in np.array(votes).T.tolist()]
    found = appliance_ensemble(kind).fit(X[:150], y[:150]).predict(X[150:])
    np.testing.assert_array_equal(found, expected)


def test_first_member_wins_ties_if_asked(rows):
    X, y = rows
    linear = SVC(kernel="linear").fit(X[:150], y[:150]).predict(X[150:])
    by_first = appliance_ensemble("svm", tie="first").fit(X[:150], y[:150]).predict(X[150:])
    by_label = appliance_ensemble("svm").fit(X[:150], y[:150]).predict(X[150:])
    np.testing.assert_array_equal(by_first, linear)
    assert (by_label != linear).any()


def test_first_member_does_not_win_against_more_votes(rows):
    X, y = rows
    names = KINDS["all"]
    votes = np.array([MEMBERS[n].fit(X[:150], y[:150]).predict(X[150:]) for n in names]).T
    found = appliance_ensemble("all", tie="first").fit(X[:150], y[:150]).predict(X[150:])
    counts = np.array([np.bincount(row, minlength=4) for row in votes])
    np.testing.assert_array_equal(counts[np.arange(150), found], counts.max(axis=1))


@pytest.mark.parametrize("wrong", [{"members": "tree"}, {"tie": "last"}])
def test_wrong_names_are_refused(wrong):
    with pytest.raises(ValueError, match="must be one of"):
        appliance_ensemble(**wrong)


def test_no_power_has_no_resistance():
    traces = np.ones((3, 5, 4))
    traces[1, 4, 3] = 0
    with pytest.raises(ValueError, match="Event 1 has a reading of no active power"):
        appliance_features(traces, [True, True, False])
