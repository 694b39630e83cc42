from __future__ import annotations

import warnings

import numpy as np
import pytest
from oracles.k_harmonic_means import gradient, objective, update
from sklearn.cluster import KMeans
from sklearn.datasets import load_digits, load_iris, load_wine
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.metrics import adjusted_rand_score
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

from twofold.landmarks import k_harmonic_means
from twofold.landmarks.k_harmonic_means import KHarmonicMeans, Problem, powers_to_try
from twofold.neighborhoods import distances


def draw(n=60, D=3, k=4, seed=0):
    rng = np.random.default_rng(seed)
    Y = rng.normal(size=(n, D)) + 5
    return Y, rng.uniform(0.5, 2, size=n), Y[:k] + 0.3 * rng.normal(size=(k, D))


def draw_blobs(per_blob=60, sigma=0.15, seed=0):
    rng = np.random.default_rng(seed)
    middles = np.array([(a, b) for a in range(4) for b in range(3)], dtype=float) * 3
    Y = np.repeat(middles, per_blob, axis=0)
    return Y + sigma * rng.normal(size=Y.shape), middles


# Where few updates are made on purpose, or clusters are more than there can be.
may_not_converge = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")


@may_not_converge
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.SkipTestWarning")
@parametrize_with_checks([KHarmonicMeans()])
def test_scikit_learn_check(estimator, check):
    check(estimator)


@pytest.mark.slow
@may_not_converge
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.SkipTestWarning")
@parametrize_with_checks([KHarmonicMeans(p=2.0, max_iter=5)])
def test_scikit_learn_check_of_a_variant(estimator, check):
    check(estimator)


@may_not_converge
class TestAgainstTheOracle:
    @pytest.mark.parametrize("p", [2.0, 2.5, 3.0, 3.5, 3.3, 7.5, 9.1])
    def test_objective_and_update(self, p):
        Y, weights, C = draw()
        value, moved = Problem(Y, weights, p).evaluate(C)
        assert value == pytest.approx(np.log(objective(Y, weights, C, p)), rel=1e-12)
        np.testing.assert_allclose(moved, update(Y, weights, C, p), rtol=1e-11)

    @pytest.mark.parametrize("p", [2.0, 3.0, 3.5])
    def test_one_step(self, p):
        Y, weights, C = draw()
        model = KHarmonicMeans(4, p=p, init=C, max_iter=1).fit(Y, sample_weight=weights)
        np.testing.assert_allclose(model.cluster_centers_, update(Y, weights, C, p), rtol=1e-9)
        expected = objective(Y, weights, model.cluster_centers_, p)
        assert model.objective_ == pytest.approx(expected, rel=1e-9)
        assert model.n_iter_ == 1

    def test_many_steps(self):
        Y, weights, C = draw()
        model = KHarmonicMeans(4, p=3.5, init=C, max_iter=15, tol=0).fit(Y, sample_weight=weights)
        for _ in range(15):
            C = update(Y, weights, C, 3.5)
        np.testing.assert_allclose(model.cluster_centers_, C, rtol=1e-8)

    def test_the_gradient_vanishes_at_the_end(self):
        Y, weights, C = draw()
        model = KHarmonicMeans(4, p=3.5, init=C, max_iter=2000, tol=1e-22).fit(
            Y, sample_weight=weights
        )
        before = np.abs(gradient(Y, weights, C, 3.5)).max()
        after = np.abs(gradient(Y, weights, model.cluster_centers_, 3.5)).max()
        assert after < 1e-6 * before

    def test_many_blocks_add_up(self, monkeypatch):
        Y, weights, C = draw(n=500)
        model = KHarmonicMeans(4, init=C, max_iter=3)
        whole = model.fit(Y, sample_weight=weights).cluster_centers_
        monkeypatch.setattr(distances, "MOST_ROWS", 16)
        cut = model.fit(Y, sample_weight=weights).cluster_centers_
        np.testing.assert_allclose(cut, whole, rtol=1e-12)
        np.testing.assert_array_equal(model.predict(Y), model.transform(Y).argmin(axis=1))


@may_not_converge
def test_two_centres_by_hand():
    # Rows 0 and 4, centres 1 and 2, p = 2. Row 0: d² = 1, 4, Σ d^-2 = 5/4, so w = 16/25 and 1/25.
    # Row 4: d² = 9, 4, Σ d^-2 = 13/36, so w = 16/169 and 81/169.
    model = KHarmonicMeans(2, p=2.0, init=[[1.0], [2.0]], max_iter=1).fit([[0.0], [4.0]])
    first = 4 * (16 / 169) / (16 / 25 + 16 / 169)
    second = 4 * (81 / 169) / (1 / 25 + 81 / 169)
    np.testing.assert_allclose(model.cluster_centers_, [[first], [second]])


def test_one_centre_and_p_two_is_the_mean():
    Y, weights, _ = draw()
    model = KHarmonicMeans(1, p=2.0, random_state=0).fit(Y, sample_weight=weights)
    np.testing.assert_allclose(model.cluster_centers_[0], np.average(Y, axis=0, weights=weights))


@may_not_converge
class TestDescent:
    @pytest.mark.parametrize("p", [2.0, 3.5, 12.0])
    @pytest.mark.parametrize(("D", "k"), [(1, 1), (1, 6), (2, 12)])
    def test_the_objective_never_rises(self, p, D, k):
        Y = np.random.default_rng(1).normal(size=(80, D))
        start = Y[:k] + 0.1
        values = [objective(Y, np.ones(80), start, p)]
        for m in range(1, 25):
            values.append(KHarmonicMeans(k, p=p, init=start, max_iter=m, tol=0).fit(Y).objective_)
        assert (np.diff(values[1:]) <= 0).all()
        assert values[-1] < 0.99 * values[0]

    def test_steps_that_overshoot_are_halved(self):
        # In one dimension the plain update of one centre runs away from the minimum for p > 3.
        Y = np.random.default_rng(2).normal(size=(50, 1)) ** 3
        weights = np.ones(50)
        model = KHarmonicMeans(1, p=5.0, init=[[1.0]], tol=1e-20, max_iter=500).fit(Y)
        before, after = (
            abs(gradient(Y, weights, C, 5.0).item())
            for C in (np.ones((1, 1)), model.cluster_centers_)
        )
        assert after < 1e-8 * before
        C = np.array([[1.0]])
        for _ in range(20):
            C = update(Y, weights, C, 5.0)
        assert objective(Y, weights, C, 5.0) > 1.2 * model.objective_

    def test_tol_ends_it(self):
        Y, _ = draw_blobs()
        quick = KHarmonicMeans(12, tol=1e-2, random_state=0).fit(Y)
        slow = KHarmonicMeans(12, tol=1e-8, random_state=0).fit(Y)
        assert quick.n_iter_ < slow.n_iter_ < 100
        assert slow.objective_ < quick.objective_


class TestStart:
    def test_bad_starts_are_forgiven(self):
        # All centres start in one corner; k-means from random rows misses clusters.
        Y, middles = draw_blobs()
        rng = np.random.default_rng(0)
        start = Y[:60][rng.choice(60, 12, replace=False)]
        harmonic = KHarmonicMeans(12, init=start, max_iter=300).fit(Y)
        gaps = np.linalg.norm(middles[:, None] - harmonic.cluster_centers_, axis=2)
        assert gaps.min(axis=1).max() < 0.2
        lost = 0
        for seed in range(5):
            means = KMeans(12, init="random", n_init=1, random_state=seed).fit(Y).cluster_centers_
            lost += np.linalg.norm(middles[:, None] - means, axis=2).min(axis=1).max() > 1
        assert lost >= 3

    @may_not_converge
    def test_seeds(self):
        Y = draw(n=300)[0]

        def fit(seed):
            return KHarmonicMeans(5, random_state=seed, max_iter=2).fit(Y).cluster_centers_

        np.testing.assert_array_equal(fit(3), fit(3))
        assert not np.array_equal(fit(3), fit(4))

    @may_not_converge
    def test_threads_do_not_matter(self, monkeypatch):
        Y = draw(n=20000, D=8)[0]
        found = []
        for n_threads in (1, 2, 5):
            monkeypatch.setattr(k_harmonic_means, "count_threads", lambda _, n=n_threads: n)
            found.append(KHarmonicMeans(40, random_state=0, max_iter=3).fit(Y))
        for model in found[1:]:
            np.testing.assert_array_equal(model.cluster_centers_, found[0].cluster_centers_)
            np.testing.assert_array_equal(model.labels_, found[0].labels_)
            assert model.objective_ == found[0].objective_


class TestWeights:
    def test_a_weight_is_a_number_of_copies(self):
        Y = draw()[0]
        rng = np.random.default_rng(5)
        copies = rng.integers(0, 4, size=len(Y))
        repeated = rng.permutation(np.repeat(Y, copies, axis=0))
        weighted = KHarmonicMeans(4, random_state=0).fit(Y, sample_weight=copies)
        plain = KHarmonicMeans(4, random_state=0).fit(repeated)
        np.testing.assert_array_equal(weighted.cluster_centers_, plain.cluster_centers_)
        assert weighted.objective_ == plain.objective_
        other = KHarmonicMeans(4, random_state=0).fit(Y)
        assert not np.allclose(other.cluster_centers_, plain.cluster_centers_)

    def test_the_scale_of_the_weights_does_not_matter(self):
        Y, weights, C = draw()
        one = KHarmonicMeans(4, init=C).fit(Y, sample_weight=weights)
        other = KHarmonicMeans(4, init=C).fit(Y, sample_weight=1e6 * weights)
        np.testing.assert_allclose(other.cluster_centers_, one.cluster_centers_, rtol=1e-12)
        assert other.objective_ == pytest.approx(1e6 * one.objective_)


class TestNumbers:
    def test_centres_on_rows(self):
        Y = draw(n=10)[0]
        model = KHarmonicMeans(10, random_state=0).fit(Y)
        np.testing.assert_allclose(np.sort(model.cluster_centers_, axis=0), np.sort(Y, axis=0))
        assert model.objective_ == 0
        assert sorted(model.labels_) == list(range(10))

    @may_not_converge
    @pytest.mark.parametrize("p", [2.0, 3.5])
    def test_a_centre_on_a_row_moves_as_one_beside_it(self, p):
        Y, weights, C = draw()
        C[0] = Y[0]
        on = KHarmonicMeans(4, p=p, init=C, max_iter=1).fit(Y, sample_weight=weights)
        C[0] += 1e-9
        beside = update(Y, weights, C, p)
        np.testing.assert_allclose(on.cluster_centers_, beside, rtol=1e-6)

    def test_fewer_distinct_rows_than_clusters(self):
        Y = np.repeat([[1.0, 2.0], [3.0, 4.0]], 4, axis=0)
        with pytest.warns(ConvergenceWarning, match="3 lie on another .* only 2 distinct rows"):
            model = KHarmonicMeans(5, random_state=0).fit(Y)
        assert {tuple(c) for c in model.cluster_centers_} == {(1, 2), (3, 4)}
        assert len(set(model.labels_)) == 2

    @pytest.mark.parametrize("scale", [1e-200, 1e-20, 1e20, 1e200])
    @pytest.mark.parametrize("p", [2.0, 9.0, 1000.0])
    def test_any_unit(self, scale, p):
        Y, _, C = draw()
        plain = KHarmonicMeans(4, p=p, init=C).fit(Y)
        scaled = KHarmonicMeans(4, p=p, init=C * scale).fit(Y * scale)
        np.testing.assert_allclose(scaled.cluster_centers_ / scale, plain.cluster_centers_)
        np.testing.assert_allclose(scaled.transform(Y * scale) / scale, plain.transform(Y))
        np.testing.assert_array_equal(scaled.labels_, plain.labels_)

    @pytest.mark.parametrize("scale", [1e-200, 1e200])
    def test_any_unit_of_drawn_starts(self, scale):
        Y = draw()[0]
        plain, scaled = (KHarmonicMeans(4, random_state=0).fit(Y * s) for s in (1.0, scale))
        np.testing.assert_allclose(scaled.cluster_centers_ / scale, plain.cluster_centers_)
        assert scaled.objective_ == (0 if scale < 1 else np.inf)

    def test_large_powers_look_for_the_farthest_row(self):
        # With one centre E^(1/p) tends to the largest distance: the middle of the ends is best.
        model = KHarmonicMeans(1, p=1000.0, init=[[0.3]], tol=1e-12).fit([[0.0], [0.2], [1.0]])
        np.testing.assert_allclose(model.cluster_centers_, [[0.5]], atol=2e-3)
        assert model.objective_ == pytest.approx(0.0, abs=1e-290)

    def test_far_from_the_origin(self):
        Y, _, C = draw()
        Y, C = np.round(Y, 3), np.round(C, 3)
        plain = KHarmonicMeans(4, init=C).fit(Y)
        moved = KHarmonicMeans(4, init=C + 2.0**20).fit(Y + 2.0**20)
        np.testing.assert_allclose(
            moved.cluster_centers_ - 2.0**20, plain.cluster_centers_, atol=1e-7
        )
        assert moved.objective_ == pytest.approx(plain.objective_, rel=1e-6)

    def test_single_precision(self):
        Y, _, C = draw()
        double = KHarmonicMeans(4, init=C).fit(Y)
        single = KHarmonicMeans(4, init=C).fit(Y.astype(np.float32))
        assert single.cluster_centers_.dtype == np.float32
        assert single.transform(Y.astype(np.float32)).dtype == np.float32
        assert double.transform(Y).dtype == np.float64
        np.testing.assert_allclose(single.cluster_centers_, double.cluster_centers_, rtol=1e-5)

    @may_not_converge
    def test_memory_does_not_grow_with_rows_times_clusters(self, monkeypatch):
        seen = []
        original = distances.squared_distances

        def watch(Z, C):
            sq_dists = original(Z, C)
            seen.append(sq_dists.nbytes)
            return sq_dists

        monkeypatch.setattr(k_harmonic_means, "squared_distances", watch)
        KHarmonicMeans(300, random_state=0, max_iter=1).fit(draw(n=3000, D=2)[0])
        assert max(seen) <= 8 * distances.BLOCK_VALUES < sum(seen)


class TestPower:
    @pytest.mark.parametrize(
        ("load", "k", "power"), [(load_iris, 3, 3.5), (load_wine, 3, 3.5), (load_digits, 10, 7.0)]
    )
    def test_it_follows_the_data(self, load, k, power):
        Y, classes = load(return_X_y=True)
        Y = StandardScaler().fit_transform(Y) if load is load_wine else Y
        found = KHarmonicMeans(k, random_state=0).fit(Y)
        same = KHarmonicMeans(k, p=power, random_state=0).fit(Y)
        assert found.p_ == power
        np.testing.assert_array_equal(found.cluster_centers_, same.cluster_centers_)
        rivals = [KMeans(k, n_init=1, random_state=seed).fit(Y).labels_ for seed in range(3)]
        best = max(adjusted_rand_score(classes, labels) for labels in rivals)
        assert adjusted_rand_score(classes, found.labels_) > best - 0.1

    @pytest.mark.parametrize("D", [2, 5, 12, 50])
    def test_centres_stay_apart(self, D):
        rng = np.random.default_rng(D)
        middles = rng.uniform(-3, 3, size=(8, D))
        Y = np.repeat(middles, 40, axis=0) + 2 * rng.normal(size=(320, D))
        model = KHarmonicMeans(8, random_state=0).fit(Y)
        assert len(np.unique(model.labels_)) == 8
        gaps = np.linalg.norm(model.cluster_centers_[:, None] - model.cluster_centers_, axis=2)
        assert gaps[~np.eye(8, dtype=bool)].min() > 0.05 * model.transform(Y).min(axis=1).mean()
        if D == 50:
            with pytest.warns(ConvergenceWarning, match="lie on another .* p = 3.5"):
                KHarmonicMeans(8, p=3.5, random_state=0).fit(Y)

    def test_powers_end_above_the_number_of_dimensions(self):
        Y = np.random.default_rng(0).normal(size=(4000, 20))
        assert powers_to_try(Y, np.ones(4000)) == [3.5, 5, 7, 10, 14, 20, 28]
        # Wide tables are summed the other way round.
        wide = powers_to_try(Y[:12], np.arange(12.0))
        tall = powers_to_try(np.repeat(Y[:12], np.arange(12), axis=0), np.ones(66))
        assert wide == tall


class TestWarnings:
    def test_an_early_end(self):
        with pytest.warns(ConvergenceWarning, match="max_iter = 2 with centres on the move"):
            KHarmonicMeans(4, max_iter=2, random_state=0).fit(draw()[0])

    def test_a_centre_without_rows(self):
        Y = np.array([[0.0], [0.1], [1.0], [1.1]])
        start = [[0.05], [1.05], [1e6]]
        with pytest.warns(ConvergenceWarning, match="0 lie on another and 1 are nearest to no row"):
            KHarmonicMeans(3, p=50.0, init=start, max_iter=1, tol=1e30).fit(Y)

    def test_none_without_a_reason(self):
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            KHarmonicMeans(12, random_state=0).fit(draw_blobs()[0])

    def test_equal_centres_to_start_from(self):
        Y = draw()[0]
        with pytest.raises(ValueError, match="`init` must hold distinct centres"):
            KHarmonicMeans(3, init=Y[[0, 1, 0]]).fit(Y)


def test_distances_and_labels():
    Y, _, C = draw()
    model = KHarmonicMeans(4, init=C).fit(Y)
    expected = np.linalg.norm(Y[:, None] - model.cluster_centers_, axis=2)
    np.testing.assert_allclose(model.transform(Y), expected, rtol=1e-9)
    np.testing.assert_array_equal(model.predict(Y), expected.argmin(axis=1))
    np.testing.assert_array_equal(model.labels_, model.predict(Y))
    np.testing.assert_array_equal(model.fit_predict(Y), model.labels_)
    np.testing.assert_allclose(model.transform(model.cluster_centers_).diagonal(), 0)
    assert list(model.get_feature_names_out())[:2] == ["kharmonicmeans0", "kharmonicmeans1"]


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"n_clusters": 0}, "`n_clusters` must be an integer of at least 1; got 0"),
        ({"n_clusters": 2.0}, "`n_clusters` must be an integer"),
        ({"max_iter": True}, "`max_iter` must be an integer"),
        ({"p": 1.9}, "`p` must be 'auto' or a finite number of at least 2; got 1.9"),
        ({"p": np.inf}, "`p` must be 'auto' or a finite number"),
        ({"p": "best"}, "`p` must be 'auto' or a finite number of at least 2; got 'best'"),
        ({"tol": -1}, "`tol` must be a finite number of at least 0; got -1"),
        ({"tol": np.nan}, "`tol` must be a finite number"),
        ({"init": "pca"}, "`init` must be 'k-means\\+\\+' or an array"),
        ({"init": np.zeros((3, 2))}, r"shape \(8, 3\); got \(3, 2\)"),
        ({"n_clusters": 61}, "n_samples = 60. Lower `n_clusters`"),
    ],
)
def test_errors(parameters, message):
    with pytest.raises(ValueError, match=message):
        KHarmonicMeans(**parameters).fit(draw()[0])


def test_weights_must_not_all_be_zero():
    with pytest.raises(ValueError, match="weight"):
        KHarmonicMeans(2).fit(draw()[0], sample_weight=np.zeros(60))


def test_not_fitted():
    with pytest.raises(NotFittedError):
        KHarmonicMeans().predict([[1.0]])
