import numpy as np
import pytest
from sklearn.base import BaseEstimator
from sklearn.decomposition import PCA
from sklearn.manifold import Isomap, LocallyLinearEmbedding

from twofold.datasets import make_swiss_roll
from twofold.selection import procrustes_distance, stability

CIGAR = np.random.default_rng(0).normal(size=(120, 3)) * [5.0, 2.0, 0.1]


class Recorder(BaseEstimator):
    """Returns the first columns and keeps what it was given in a list shared by its clones."""

    def __init__(self, calls, n_columns=2, fails=(), error=ValueError):
        self.calls = calls
        self.n_columns = n_columns
        self.fails = fails
        self.error = error

    def __sklearn_clone__(self):
        return self

    def fit_transform(self, Y):
        self.calls.append(Y)
        if len(self.calls) - 1 in self.fails:
            raise self.error("no luck")
        return Y[:, : self.n_columns]


def test_rows_are_matched_by_identity():
    # Every embedding is a part of the data itself, so matched rows are equal.
    found = stability(Recorder([]), CIGAR)
    assert found.offset < 1e-12
    assert found.scatter < 1e-12
    assert found.failures == ()


def test_scores_by_hand():
    class Turning(Recorder):
        """Distances from the first fit: 0 for even and d for odd fits."""

        def fit_transform(self, Y):
            X = super().fit_transform(Y)
            return X if len(self.calls) % 2 else X + 2 * Y[:, [2, 0]]

    calls = []
    found = stability(Turning(calls), CIGAR, by="noise", noise=1e-12, repeats=3)
    Y = calls[0]
    d = procrustes_distance(Y[:, :2], Y[:, :2] + 2 * Y[:, [2, 0]])
    assert 0.05 < d < 1
    np.testing.assert_allclose(found.offsets, [d, 0, d], atol=1e-5)
    assert found.offset == pytest.approx(2 * d / 3, abs=1e-5)
    # Of nine pairs, (0, 1), (1, 2) and their mirrors differ.
    assert found.scatter == pytest.approx(4 * d / 9, abs=1e-5)
    np.testing.assert_array_equal(found.distances, found.distances.T)


def test_bootstrap_fits_distinct_rows():
    calls = []
    stability(Recorder(calls), CIGAR, repeats=20)
    np.testing.assert_array_equal(calls[0], CIGAR)
    for surrogate in calls[1:]:
        assert len(np.unique(surrogate, axis=0)) == len(surrogate)
    # 1 - (1 - 1/n)^n of the rows are drawn, 63.4 % for n = 120.
    assert np.mean([len(Y) for Y in calls[1:]]) == pytest.approx(0.634 * 120, rel=0.05)


def test_noise_is_mixed_into_standardised_rows():
    calls = []
    Y = np.column_stack([CIGAR, np.full(120, 7.0)])
    stability(Recorder(calls), Y, by="noise", noise=0.6, repeats=20)
    np.testing.assert_allclose(calls[0].std(axis=0), [1, 1, 1, 0], atol=1e-12)
    noise = np.stack(calls[1:]) - np.sqrt(0.4) * calls[0]
    assert noise.std() == pytest.approx(np.sqrt(0.6), rel=0.02)
    assert abs(noise.mean()) < 0.02


def test_failures_are_reported():
    found = stability(Recorder([], fails=(2, 5)), CIGAR, repeats=6)
    assert found.failures == ("repeat 1: no luck", "repeat 4: no luck")
    assert found.offsets.shape == (4,)
    assert found.distances.shape == (4, 4)


def test_an_embedding_that_lost_a_direction_is_a_failure():
    class Collapsing(Recorder):
        def fit_transform(self, Y):
            X = super().fit_transform(Y)
            return X[:, [0, 0]] if len(self.calls) == 3 else X

    found = stability(Collapsing([]), CIGAR, repeats=3)
    assert len(found.failures) == 1
    assert "rank 1" in found.failures[0]


def test_one_success_has_no_scatter():
    found = stability(Recorder([], fails=(1,)), CIGAR, repeats=2)
    assert np.isnan(found.scatter)
    assert found.offset < 1e-12


def test_when_nothing_works_the_first_reason_is_told():
    with pytest.raises(ValueError, match="None of 3 surrogates could be embedded; repeat 0: no"):
        stability(Recorder([], fails=(1, 2, 3)), CIGAR, repeats=3)
    with pytest.raises(ValueError, match="no luck"):
        stability(Recorder([], fails=(0,)), CIGAR)
    with pytest.raises(TypeError, match="no luck"):  # a mistake, not data it cannot use
        stability(Recorder([], fails=(2,), error=TypeError), CIGAR)


@pytest.mark.parametrize("by", ["bootstrap", "noise"])
def test_same_seed_same_result(by):
    one, two = (stability(PCA(2), CIGAR, by=by, repeats=3, random_state=4) for _ in range(2))
    np.testing.assert_array_equal(one.distances, two.distances)
    other = stability(PCA(2), CIGAR, by=by, repeats=3, random_state=5)
    assert other.offset != one.offset


def test_stable_and_unstable_directions():
    # Two axes of clearly different length come out the same; of three equal ones PCA takes any.
    blob = np.random.default_rng(0).normal(size=(120, 3))
    assert stability(PCA(2), CIGAR).offset < 0.01
    assert stability(PCA(2), blob).offset > 0.05


@pytest.mark.parametrize(
    "method",
    [
        LocallyLinearEmbedding(n_neighbors=8, n_components=2, eigen_solver="dense"),
        Isomap(n_neighbors=8, n_components=2),
    ],
)
def test_neighbour_graphs_work_on_bootstrap_samples(method):
    roll = make_swiss_roll(200, noise=0, random_state=0)
    found = stability(method, roll.Y, repeats=3)
    assert found.failures == ()
    assert 1e-6 < found.offset <= 1


def test_errors_say_what_came():
    with pytest.raises(ValueError, match=r"'bootstrap', 'noise'.*got 'jackknife'"):
        stability(PCA(1), CIGAR, by="jackknife")
    with pytest.raises(ValueError, match=r"within \(0, 1\); got 1.5"):
        stability(PCA(1), CIGAR, by="noise", noise=1.5)
    with pytest.raises(ValueError, match="`repeats` must be an integer of at least 2; got 1"):
        stability(PCA(1), CIGAR, repeats=1)
    with pytest.raises(ValueError, match="returned 2 points for 120 rows"):
        stability(Halver(), CIGAR)


class Halver(BaseEstimator):
    def fit_transform(self, Y):
        return Y[:2]


def test_arguments_the_wrong_way_round():
    rows = np.random.default_rng(0).normal(size=(20, 3))
    with pytest.raises(TypeError, match="estimator comes first"):
        stability(rows, PCA(1))
    with pytest.raises(ValueError, match="at least 4 different rows"):
        stability(PCA(1), np.ones((20, 3)))
