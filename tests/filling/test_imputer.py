"""ManifoldImputer: hidden entries of tables with known structure, and what scikit-learn asks."""

from __future__ import annotations

import pickle

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_wine
from sklearn.exceptions import ConvergenceWarning
from sklearn.impute import KNNImputer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

from twofold import ManifoldImputer
from twofold.filling import rounds
from twofold.filling.experts import N_TREES, ColumnForest
from twofold.filling.imputer import bounds_of
from twofold.filling.leaf_quantiles import leaf_values
from twofold.noise.hidden_entries import entries_to_hide, errors_apart, likeness, stacking_weights


def bent_table(n=400, D=8, noise=0.1, seed=0):
    random = np.random.default_rng(seed)
    X = random.uniform(-1, 1, (n, 2))
    waves = np.sin(X @ random.normal(size=(2, 20)) * 2 + random.uniform(0, 6, 20))
    return waves @ random.normal(size=(20, D)) / 3 + noise * random.normal(size=(n, D))


def linear_table(n=400, D=8, seed=0):
    random = np.random.default_rng(seed)
    return random.normal(size=(n, 3)) @ random.normal(size=(3, D)) + random.normal(size=(n, D))


def with_gaps(Y, share=0.2, seed=1):
    gaps = np.random.default_rng(seed).random(Y.shape) < share
    gaps[gaps.all(axis=1), 0] = False
    return np.where(gaps, np.nan, Y), gaps


def error_of(filled, Y, gaps):
    return ((filled - Y)[gaps] ** 2).mean() / Y[gaps].var()


may_skip = pytest.mark.filterwarnings("ignore::sklearn.exceptions.SkipTestWarning")


@may_skip
@parametrize_with_checks([ManifoldImputer(trees=False, max_iter=1)])
def test_scikit_learn_check(estimator, check):
    check(estimator)


@pytest.mark.slow
@may_skip
@parametrize_with_checks([ManifoldImputer()])
def test_scikit_learn_check_of_trees(estimator, check):
    check(estimator)


def test_a_bent_manifold_is_followed():
    Y = bent_table()
    partial, gaps = with_gaps(Y)
    found = error_of(ManifoldImputer(trees=False, random_state=0).fit_transform(partial), Y, gaps)
    assert found < 0.8 * error_of(KNNImputer(n_neighbors=5).fit_transform(partial), Y, gaps)


def test_a_gaussian_is_left_as_one():
    Y = linear_table()
    partial, gaps = with_gaps(Y)
    imputer = ManifoldImputer(trees=False, random_state=0).fit(partial)
    # The best there is: the conditional mean under the covariance of all entries, hidden ones too.
    mean, S = Y.mean(axis=0), np.cov(Y.T)
    best = partial.copy()
    for i, y in enumerate(partial):
        o, m = ~gaps[i], gaps[i]
        best[i, m] = mean[m] + S[np.ix_(m, o)] @ np.linalg.solve(S[np.ix_(o, o)], (y - mean)[o])
    assert error_of(imputer.transform(partial), Y, gaps) < 1.05 * error_of(best, Y, gaps)


def test_trees_take_columns_that_jump():
    random = np.random.default_rng(0)
    Y = random.uniform(-1, 1, (400, 5))
    Y[:, 4] = np.sign(Y[:, 0]) * np.sign(Y[:, 1])
    partial, gaps = Y.copy(), np.zeros(Y.shape, bool)
    gaps[::4, 4] = True
    partial[gaps] = np.nan
    smooth = ManifoldImputer(trees=False, random_state=0).fit(partial)
    jumping = ManifoldImputer(max_iter=1, random_state=0).fit(partial)
    assert jumping.weights_[4, jumping.ways_.index("trees")] > 0.8
    assert error_of(jumping.transform(partial), Y, gaps) < 0.65 * error_of(
        smooth.transform(partial), Y, gaps
    )


def test_columns_that_nothing_tells_get_their_means():
    Y = np.random.default_rng(1).standard_t(3, size=(150, 6))
    partial, gaps = with_gaps(Y, 0.3)
    imputer = ManifoldImputer(max_iter=1, n_jobs=1, random_state=0).fit(partial)
    means = np.where(gaps, np.nanmean(partial, axis=0), partial)
    # Without the mean among the ways to fill, 1.07 times its error.
    assert error_of(imputer.transform(partial), Y, gaps) < 1.02 * error_of(means, Y, gaps)


def test_new_rows_are_filled_each_by_itself():
    Y = bent_table(500)
    partial, gaps = with_gaps(Y)
    imputer = ManifoldImputer(trees=False, random_state=0).fit(partial[:300])
    filled = imputer.transform(partial[300:])
    np.testing.assert_array_equal(filled[~gaps[300:]], Y[300:][~gaps[300:]])
    np.testing.assert_array_equal(imputer.transform(partial[310:311]), filled[10:11])
    assert error_of(filled, Y[300:], gaps[300:]) < 0.25
    np.testing.assert_array_equal(
        imputer.transform(partial[:300]),
        ManifoldImputer(trees=False, random_state=0).fit_transform(partial[:300]),
    )


@pytest.mark.parametrize("make", [bent_table, linear_table])
def test_intervals_hold_what_they_say(make):
    Y = make(800)  # 1,300 hidden entries: a standard error of 0.008
    partial, gaps = with_gaps(Y)
    low, high = ManifoldImputer(trees=False, random_state=0).fit(partial).intervals(partial)
    assert 0.88 < ((low <= Y) & (high >= Y))[gaps].mean() < 0.94
    np.testing.assert_array_equal(low[~gaps], Y[~gaps])


def test_intervals_of_values_that_pile_up_are_short_and_stay_within_bounds():
    Y = np.maximum(bent_table(400), 0)  # half of the entries are 0
    partial, gaps = with_gaps(Y)
    imputer = ManifoldImputer(max_iter=1, n_jobs=1, random_state=0).fit(partial)
    low, high = imputer.intervals(partial)
    smooth = ManifoldImputer(trees=False, max_iter=1, random_state=0).fit(partial)
    ends = smooth.intervals(partial)
    assert 0.86 < ((low <= Y) & (high >= Y))[gaps].mean() < 0.95
    filled, drawn = imputer.transform(partial), imputer.draws(partial, 3, random_state=0)
    assert (drawn >= 0).all()
    assert (low >= 0).all()
    assert (low <= filled).all()
    assert (filled <= high).all()
    assert (high - low)[gaps].mean() < (ends[1] - ends[0])[gaps].mean()


def test_a_bound_is_an_end_that_rows_share():
    Y = np.column_stack([np.arange(20.0), np.minimum(np.arange(20.0), 9)])
    low, high = bounds_of(Y)
    np.testing.assert_array_equal(low, [-np.inf, -np.inf])
    np.testing.assert_array_equal(high, [np.inf, 9])


def test_draws_have_the_variance_that_means_lack():
    Y = linear_table(600)
    partial, gaps = with_gaps(Y, 0.3)
    imputer = ManifoldImputer(trees=False, random_state=0).fit(partial)
    drawn = imputer.draws(partial, 3, random_state=0)
    assert drawn.shape == (3, *Y.shape)
    assert imputer.transform(partial)[gaps].var() < 0.85 * Y[gaps].var()
    assert 0.9 < drawn[:, gaps].var() / Y[gaps].var() < 1.1
    np.testing.assert_array_equal(drawn, imputer.draws(partial, 3, random_state=0))
    np.testing.assert_array_equal(drawn[:, ~gaps], np.stack([Y[~gaps]] * 3))


def test_units_do_not_matter_and_pandas_comes_out():
    wine = load_wine(as_frame=True).data
    partial = wine.mask(np.random.default_rng(0).random(wine.shape) < 0.1)
    imputer = ManifoldImputer(trees=False, random_state=0, add_indicator=True)
    filled = imputer.set_output(transform="pandas").fit_transform(partial)
    assert list(filled.columns[:13]) == list(wine.columns)
    assert filled.columns[13] == "missingindicator_alcohol"
    assert not filled.isna().any(axis=None)
    scaled = make_pipeline(StandardScaler(), ManifoldImputer(trees=False, random_state=0))
    again = (
        scaled.fit(partial)
        .named_steps["standardscaler"]
        .inverse_transform(scaled.transform(partial))
    )
    np.testing.assert_allclose(again, filled.iloc[:, :13].to_numpy(), rtol=1e-6)


def test_a_pickle_fills_alike_on_any_number_of_threads():
    partial, _ = with_gaps(bent_table(120))
    one = ManifoldImputer(random_state=0, n_jobs=1, max_iter=1).fit(partial[:100])
    two = ManifoldImputer(random_state=0, n_jobs=2, max_iter=1).fit(partial[:100])
    filled = one.transform(partial)
    np.testing.assert_array_equal(two.transform(partial), filled)
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(one)).transform(partial), filled)


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("unit", [1e-300, 1e-200, 1e200, 1e300])
def test_squares_of_a_column_may_be_too_small_or_too_large_for_a_number(unit):
    Y = linear_table(60)
    partial, _ = with_gaps(Y)
    units = np.where(np.arange(8) == 3, unit, 1.0)
    filled = ManifoldImputer(trees=False, random_state=0).fit_transform(partial * units)
    expected = ManifoldImputer(trees=False, random_state=0).fit_transform(partial)
    np.testing.assert_allclose(filled / units, expected, rtol=1e-6, atol=1e-6)


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize(("trees", "close"), [(False, 1e-6), (True, 0.05)])  # trees jump
def test_columns_of_numbers_next_to_zero_are_filled(trees, close):
    partial, gaps = with_gaps(linear_table(60))
    units = np.where(np.arange(8) == 3, 1e-310, 1.0)
    imputer = ManifoldImputer(trees=trees, max_iter=1, n_jobs=1, random_state=0)
    filled = imputer.fit_transform(partial * units)
    np.testing.assert_allclose(filled / units, imputer.fit_transform(partial), atol=close)
    low, high = imputer.fit(partial * units).intervals(partial * units)
    assert (low[gaps] < high[gaps]).all()


@pytest.mark.filterwarnings("error")
def test_new_rows_may_lie_as_far_out_as_numbers_go():
    partial, _ = with_gaps(linear_table(60))
    imputer = ManifoldImputer(max_iter=1, n_jobs=1, random_state=0).fit(partial)
    far = np.array([[1e300, np.nan, *np.zeros(6)]])
    assert np.isfinite(imputer.transform(far)).all()


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_nothing_is_filled_beyond_the_numbers_of_a_type(dtype):
    partial, _ = with_gaps(np.sign(linear_table(30, D=3)) * 0.99)
    partial[:2] = [[1, 1, 1], [-1, -1, -1]]  # no row shares the ends of a column
    partial = partial.astype(dtype) * np.finfo(dtype).max
    imputer = ManifoldImputer(trees=False, random_state=0).fit(partial)
    for filled in (
        imputer.transform(partial),
        *imputer.draws(partial),
        *imputer.intervals(partial),
    ):
        assert np.isfinite(filled).all()


def test_rows_without_any_entry_get_the_means_of_the_columns():
    Y = linear_table(200)
    partial, _ = with_gaps(Y)
    empty = np.full((2, 8), np.nan)
    table = np.vstack([partial[:50], empty, partial[50:]])
    imputer = ManifoldImputer(trees=False, random_state=0).fit(table)
    means = np.nanmean(table, axis=0)
    np.testing.assert_allclose(imputer.transform(empty), [means, means])
    np.testing.assert_array_equal(imputer.fit_transform(table), imputer.transform(table))
    # They tell nothing, and change nothing about the others.
    without = ManifoldImputer(trees=False, random_state=0).fit_transform(partial)
    np.testing.assert_array_equal(np.delete(imputer.transform(table), [50, 51], axis=0), without)
    classes = np.arange(202) % 2
    pipeline = make_pipeline(ManifoldImputer(trees=False), LogisticRegression())
    assert pipeline.fit(table, classes).predict(table).shape == (202,)


def test_intervals_and_draws_of_rows_without_any_entry_are_those_of_the_columns():
    Y = linear_table(400)
    partial, _ = with_gaps(Y)
    imputer = ManifoldImputer(trees=False, random_state=0).fit(partial)
    low, high = imputer.intervals(np.full((1, 8), np.nan), level=0.8)
    share = ((low <= Y) & (high >= Y)).mean(axis=0)
    np.testing.assert_allclose(share, 0.8, atol=0.05)
    drawn = imputer.draws(np.full((2000, 8), np.nan), n_draws=1, random_state=0)[0]
    np.testing.assert_allclose(np.cov(drawn.T), np.cov(Y.T), atol=0.12 * Y.var())


@pytest.mark.parametrize("gap", [False, True])
def test_a_single_column_has_nothing_to_be_told_from(gap):
    Y = np.random.default_rng(0).exponential(size=(100, 1))
    partial = np.where(gap & (np.arange(100) % 7 == 0)[:, None], np.nan, Y)
    imputer = ManifoldImputer(random_state=0).fit(partial)
    assert np.isnan(imputer.error_)
    assert imputer.transform([[np.nan]]) == pytest.approx(np.nanmean(partial))
    low, high = imputer.intervals([[np.nan]])
    assert 0.85 < ((low <= Y) & (high >= Y)).mean() < 0.97


def test_what_cannot_be_filled_is_said():
    Y = linear_table(30)
    with pytest.raises(ValueError, match="minimum of 2"):
        ManifoldImputer().fit(Y[:1])
    with pytest.raises(ValueError, match="column"):
        ManifoldImputer().fit(np.where(np.arange(8) == 2, np.nan, Y))
    with pytest.raises(ValueError, match="column"):
        ManifoldImputer().fit(np.full((3, 2), np.nan))
    for name, value in {"n_neighbors": 5, "trees": "no", "add_indicator": None}.items():
        with pytest.raises(ValueError, match=f"`{name}` must be"):
            ManifoldImputer(**{name: value}).fit(Y)
    imputer = ManifoldImputer(trees=False, random_state=0).fit(Y)
    for level in (90, 0, 1, None, "0.9", [0.9]):
        with pytest.raises(ValueError, match="`level` must be a number"):
            imputer.intervals(Y, level=level)
    np.testing.assert_array_equal(imputer.transform(Y), Y)
    assert isinstance(imputer.set_output(transform="pandas").transform(Y), pd.DataFrame)


def test_a_row_is_hidden_in_the_pattern_of_another():
    observed = np.ones((500, 6), bool)
    observed[::2, :3] = False  # blocks of three
    hidden = entries_to_hide(observed, np.random.RandomState(0))
    assert hidden.any()
    assert not (hidden & ~observed).any()
    assert set(map(tuple, hidden[1::2])) == {(False,) * 6, (True,) * 3 + (False,) * 3}


def test_hidden_entries_are_asked_for_as_missing_ones_are():
    observed = np.random.default_rng(0).random((2000, 12)) > 0.3
    observed[:, 0] = True
    hidden = entries_to_hide(observed, np.random.RandomState(0))
    counts = likeness(observed, hidden)
    sizes = (~observed).sum(axis=1)
    wanted = np.average(sizes, weights=sizes)
    tried = np.repeat((~observed | hidden).sum(axis=1), hidden.sum(axis=1))
    assert abs(np.average(tried, weights=counts) - wanted) < 0.1 < abs(tried.mean() - wanted)
    assert counts.mean() == pytest.approx(1)
    np.testing.assert_array_equal(likeness(observed | True, hidden), 1)


def test_trial_tables_hide_each_entry_once_and_no_more_than_are_needed():
    hidden = np.random.default_rng(0).random((90, 6)) < 0.3
    parts = rounds.parts_of(hidden, np.random.RandomState(0))
    assert len(parts) == rounds.TRIALS
    np.testing.assert_array_equal(np.sum(parts, axis=0), hidden)
    # A row is hidden as a whole: its pattern is that of another one.
    rows = np.array([part.any(axis=1) for part in parts])
    assert (rows.sum(axis=0) <= 1).all()
    assert rows.sum(axis=1).min() > 20
    many = np.ones((3000, 4), bool)
    assert len(rounds.parts_of(many, np.random.RandomState(0))) == 1


def test_trees_tell_a_column_by_the_rows_in_their_leaves():
    rows = bent_table(120)
    observed = np.arange(120) % 3 > 0
    forest = ColumnForest(rows, 2, observed, np.corrcoef(rows.T), 0)
    known, leaves = forest.leaves(rows[observed]), forest.leaves(rows[~observed])
    values = rows[observed, 2]
    expected = [
        [values[there == leaf].mean() for leaf in here]
        for there, here in zip(known, leaves, strict=True)
    ]
    np.testing.assert_allclose(forest.predict(rows[~observed]), np.mean(expected, axis=0))
    told = leaf_values(forest, rows[observed], 2)
    assert len(told) == len(forest.trees) == N_TREES
    in_leaf = values[known[0] == leaves[0, 0]]
    assert set(told[0][leaves[0, 0]]) <= set(in_leaf)
    assert told[0][leaves[0, 0]].min() == in_leaf.min()


def test_errors_are_told_by_weights_that_others_chose():
    # Ways without any use: their best mixture of 30 entries promises more than it holds.
    errors = np.random.default_rng(0).normal(size=(30, 12))
    columns, counts = np.zeros(30, int), np.ones(30)
    chosen = errors @ stacking_weights(errors, columns, 1, counts)[0]
    apart = errors_apart(errors, columns, 1, counts)
    assert (apart**2).mean() > 1.2 * (chosen**2).mean()


def test_stacking_weights_find_the_best_mixture():
    random = np.random.default_rng(0)
    columns = np.repeat([0, 1], 400)
    sizes = np.where(columns[:, None] == 0, [1, 2, 9], [9, 2, 1])
    weights = stacking_weights(random.normal(size=(800, 3)) * sizes, columns, 3, np.ones(800))
    # Errors that do not go together are best weighed by one over their variance.
    best = 1 / np.array([1, 2, 9]) ** 2
    np.testing.assert_allclose(weights[0], best / best.sum(), atol=0.08)
    np.testing.assert_allclose(weights[1], weights[0][::-1], atol=0.08)
    np.testing.assert_allclose(weights.sum(axis=1), 1)


def test_all_columns_share_the_weight_of_their_means():
    random = np.random.default_rng(0)
    columns, truth, counts = np.repeat([0, 1], 300), random.normal(size=600), np.ones(600)
    # Of three ways, the first knows half of the variance but says twice as much, the last nothing.
    guesses = np.column_stack([truth + random.normal(size=600), random.normal(size=600)])
    errors = np.column_stack([guesses - truth[:, None], -truth])
    weights = stacking_weights(errors, columns, 3, counts, mean_way=2)
    np.testing.assert_allclose(weights.sum(axis=1), 1)
    assert np.ptp(weights[:, 2]) == 0
    np.testing.assert_allclose(weights[:, 0], 0.5, atol=0.07)
    useless = np.column_stack([50 * random.normal(size=(600, 2)), -truth])
    np.testing.assert_allclose(
        stacking_weights(useless, columns, 2, counts, mean_way=2)[:, 2], 1, atol=0.02
    )


# Forests of three trial tables and of the table itself: four in each round.
@pytest.mark.parametrize("calls_before", [0, 3, 4, 7])
def test_an_interrupt_keeps_the_rounds_before(calls_before, monkeypatch):
    Y = bent_table(150)
    partial, gaps = with_gaps(Y)
    plant, calls = rounds.plant_forests, []

    def interrupted(*args):
        calls.append(args)
        if len(calls) > calls_before:
            raise KeyboardInterrupt
        return plant(*args)

    monkeypatch.setattr(rounds, "plant_forests", interrupted)
    monkeypatch.setattr(rounds, "LEAST_GAIN", -1.0)  # another round in any case
    made = ManifoldImputer(random_state=0)
    with pytest.warns(ConvergenceWarning, match="Interrupted; it fills"):
        filled = made.fit_transform(partial)
    assert made.n_iter_ == 1
    assert error_of(filled, Y, gaps) < 0.7
    low, high = made.intervals(partial)
    assert (low[gaps] < high[gaps]).all()


def test_ways_are_those_that_were_asked_for():
    rows = np.random.default_rng(0).normal(size=(60, 4))
    rows[::7, 1] = np.nan
    for trees in (True, False):
        imputer = ManifoldImputer(trees=trees, n_jobs=None, random_state=0).fit(rows)
        assert ("trees" in imputer.ways_) == trees
        assert imputer.weights_.shape == (4, len(imputer.ways_))
        np.testing.assert_allclose(imputer.weights_.sum(axis=1), 1)
