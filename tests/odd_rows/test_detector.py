"""ManifoldOutlierDetector: rows off a known manifold, and what scikit-learn asks."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from sklearn.datasets import load_wine
from sklearn.metrics import roc_auc_score
from sklearn.neighbors import LocalOutlierFactor, NearestNeighbors
from sklearn.utils.estimator_checks import parametrize_with_checks

from twofold import ManifoldOutlierDetector
from twofold.noise import condition
from twofold.odd_rows import detector as odd_rows

may_skip = pytest.mark.filterwarnings("ignore::sklearn.exceptions.SkipTestWarning")


@may_skip
@parametrize_with_checks([ManifoldOutlierDetector()])
def test_scikit_learn_check(estimator, check):
    check(estimator)


def corrupted_sheet(n=400, n_odd=30, D=10, seed=0):
    random = np.random.default_rng(seed)
    X = random.uniform(-1, 1, (n + n_odd, 2))
    waves = np.sin(X @ random.normal(size=(2, 20)) * 2 + random.uniform(0, 6, 20))
    Y = waves @ random.normal(size=(20, D)) / 3 + 0.05 * random.normal(size=(n + n_odd, D))
    Y[n:, :2] += random.choice([-1, 1], (n_odd, 2)) * 0.8
    return Y, np.arange(n + n_odd) >= n


def test_rows_off_a_sheet_are_found_although_they_were_trained_on():
    Y, is_odd = corrupted_sheet()
    detector = ManifoldOutlierDetector().fit(Y)
    found = roc_auc_score(is_odd, -detector.score_samples(Y))
    distances = NearestNeighbors(n_neighbors=6).fit(Y).kneighbors(Y)[0][:, 5]
    assert found > 0.97
    assert found > roc_auc_score(is_odd, distances)
    assert detector.trusted_[is_odd].mean() < 0.2


def test_odd_rows_that_stand_together_teach_nothing():
    Y = load_wine().data
    Y = np.vstack([Y[59:], Y[:8]])
    is_odd = np.arange(len(Y)) >= 119
    assert roc_auc_score(is_odd, -ManifoldOutlierDetector().fit(Y).score_samples(Y)) > 0.85


def test_local_outlier_factors_are_those_of_scikit_learn():
    Y, _ = corrupted_sheet(n=150, n_odd=0)
    detector = ManifoldOutlierDetector().fit(Y)
    Z = (Y - detector.center_) / detector.spread_
    detector._learn(Z)
    whole = condition(Z, detector._gaussian.repeated(len(Z)))
    near = detector._near(Z, np.arange(len(Z)))
    numbers = detector._numbers_of(Z, whole, Z, near)
    for column, k in ((3, 20), (4, 40)):
        wanted = -LocalOutlierFactor(k).fit(Z).negative_outlier_factor_
        # The mean of logs for the log of means: the same where neighbours are alike.
        np.testing.assert_allclose(np.exp(numbers[:, column]), wanted, rtol=0.08)


def test_a_few_rows_close_together_are_lonelier_than_their_neighbours():
    random = np.random.default_rng(0)
    usual = random.normal(size=(300, 4))
    odd = 0.02 * random.normal(size=(6, 4)) + np.array([3.0, 3, 0, 0])
    Y, is_odd = np.vstack([usual, odd]), np.arange(306) >= 300
    assert roc_auc_score(is_odd, -ManifoldOutlierDetector().fit(Y).score_samples(Y)) > 0.98


def test_contamination_is_the_share_of_odd_rows():
    Y, _ = corrupted_sheet()
    odd = ManifoldOutlierDetector(contamination=0.07).fit_predict(Y) < 0
    assert odd.mean() == pytest.approx(0.07, abs=0.005)
    with pytest.raises(ValueError, match="contamination"):
        ManifoldOutlierDetector(contamination=0.7).fit(Y)


def test_few_usual_rows_are_called_odd():
    usual, odd = [], []
    for seed in range(3):
        Y, is_odd = corrupted_sheet(n=800, n_odd=100, seed=seed)
        called = ManifoldOutlierDetector().fit(Y[:400]).predict(Y[400:]) < 0
        usual.append(called[~is_odd[400:]].mean())
        odd.append(called[is_odd[400:]].mean())
    assert np.mean(usual) < 0.08
    assert np.mean(odd) > 0.75


@pytest.mark.filterwarnings("error")
def test_rows_are_odd_however_far_they_are():
    Y, _ = corrupted_sheet(n=200)
    detector = ManifoldOutlierDetector().fit(Y)
    far = Y[:4].copy()
    far[:, 2] = 1e120, -1e160, 1e200, -1e308
    assert np.isfinite(detector.score_samples(far)).all()
    assert (detector.predict(far) < 0).all()


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("unit", [1e-200, 1e200])
def test_squares_of_a_column_may_be_too_small_or_too_large_for_a_number(unit):
    Y, _ = corrupted_sheet(n=200)
    units = np.where(np.arange(10) == 3, unit, 1.0)
    scores = ManifoldOutlierDetector().fit(Y * units).score_samples(Y * units)
    expected = ManifoldOutlierDetector().fit(Y).score_samples(Y)
    np.testing.assert_allclose(scores, expected, rtol=1e-6, atol=1e-6)


def test_a_rounding_error_in_a_constant_column_makes_no_row_odd():
    Y, _ = corrupted_sheet(n=200)
    constant = np.full((len(Y), 1), 0.1)
    detector = ManifoldOutlierDetector().fit(np.hstack([Y, constant]))
    scores = detector.score_samples(np.hstack([Y, constant * (1 + 1e-15)]))
    np.testing.assert_array_less(-1e3, scores)


def test_rows_with_gaps_have_scores_of_their_own():
    Y, is_odd = corrupted_sheet()
    partial = np.where(np.random.default_rng(1).random(Y.shape) < 0.1, np.nan, Y)
    detector = ManifoldOutlierDetector().fit(partial)
    scores = detector.score_samples(partial)
    assert roc_auc_score(is_odd, -scores) > 0.9
    np.testing.assert_array_equal(detector.score_samples(partial[7:8]), scores[7:8])
    again = pickle.loads(pickle.dumps(detector))
    np.testing.assert_array_equal(again.score_samples(partial), scores)


def test_large_tables_learn_from_some_of_their_rows(monkeypatch):
    Y, is_odd = corrupted_sheet(n=600, n_odd=40)
    whole = ManifoldOutlierDetector().fit(Y)
    monkeypatch.setattr(odd_rows, "MOST_ROWS", 300)
    some = ManifoldOutlierDetector().fit(Y)
    assert 200 < some.trusted_.sum() <= 300 < whole.trusted_.sum()
    assert roc_auc_score(is_odd, -some.score_samples(Y)) > 0.9
    assert (some.predict(Y) < 0).mean() == pytest.approx(0.05, abs=0.005)
    np.testing.assert_array_equal(some.score_samples(Y[:9]), some.score_samples(Y)[:9])


@pytest.mark.filterwarnings("error")
def test_a_column_that_only_untrusted_rows_tell_of_is_known():
    rows = np.array([[0.0, 1.0, np.nan]] * 8 + [[0.1, 1.2, np.nan], [9.0, -9.0, 3.0]])
    detector = ManifoldOutlierDetector().fit(rows)
    assert np.isfinite(detector.score_samples(rows)).all()


def clumped(size, where):
    random = np.random.default_rng(0)
    Y = random.normal(size=(500, 3)) @ random.normal(size=(3, 8))
    Y += 0.3 * random.normal(size=(500, 8))
    Y[:size] = where + 0.3 * random.normal(size=(size, 8))
    return Y, np.arange(500) < size


@pytest.mark.parametrize("size", [5, 50, 95])
def test_odd_rows_that_lie_together_are_not_each_others_excuse(size):
    Y, is_odd = clumped(size, 20)
    detector = ManifoldOutlierDetector(contamination=size / 500).fit(Y)
    assert not detector.trusted_[is_odd].any()
    assert detector.trusted_[~is_odd].mean() > 0.9
    np.testing.assert_array_equal(detector.predict(Y) < 0, is_odd)


def test_what_hangs_together_or_is_large_is_no_clump():
    # Without a gap around them, or as a third of the rows, rows are one of two usual kinds.
    for size, where in ((50, 1), (170, 20)):
        Y, is_second = clumped(size, where)
        detector = ManifoldOutlierDetector().fit(Y)
        assert detector.trusted_[is_second].mean() > 0.9
    twice = np.repeat(np.arange(60.0)[:, None] // 12, 2, axis=1)  # five values, twelve rows each
    detector = ManifoldOutlierDetector()
    detector._learn(twice)
    assert not detector._lies_apart().any()
