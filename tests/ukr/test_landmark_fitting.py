"""Landmark UKR as a whole: error and bias on known manifolds, and what a landmark model keeps."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest
from scipy.stats import spearmanr

import twofold.ukr.landmark_fitting as landmark_fitting
from twofold import UKR, load
from twofold.contract.uncertain_model import LEAST_SAMPLED
from twofold.datasets import make_fish_bowl, make_random_manifold, make_spiral
from twofold.landmarks import Landmarks
from twofold.losses import EpsilonInsensitive, Huber
from twofold.regularization import Extension, LeaveKOut

# Few iterations leave rows outside of their tubes, which a fit says.
pytestmark = pytest.mark.filterwarnings("ignore:Some rows are still up to")

NOISE = 0.3
BOWL = make_fish_bowl(600, noise=NOISE, random_state=0)
NEW_BOWL = make_fish_bowl(200, noise=NOISE, random_state=1)
SPIRAL = make_spiral(300, noise=0.03, random_state=0)
NEW_SPIRAL = make_spiral(200, noise=0.03, random_state=1)
CHOICES = ("kmeans", "kharmonic", "random")


@cache
def bowl_model(choice="kmeans", adapt=True):
    landmarks = Landmarks(60, choice, adapt)
    return UKR(landmarks=landmarks, max_iter=40, random_state=0).fit(BOWL.Y)


def spiral_model(count=40, **options):
    made = {"max_iter": 40, "random_state": 0} | options
    return UKR(1, landmarks=count, **made)


@cache
def plain_spiral():
    return spiral_model().fit(SPIRAL.Y)


def norms(model):
    return np.linalg.norm(model.inverse_transform(model.embedding_), axis=1)


def off_the_spiral(model):
    """Return the mean distance of new rows' reconstructions from the true curve."""
    return NEW_SPIRAL.distance(model.reconstruct(NEW_SPIRAL.Y)).mean()


class TestFishBowl:
    @pytest.mark.slow
    def test_the_error_is_close_to_the_noise(self):
        model = bowl_model()
        off = np.abs(np.linalg.norm(model.reconstruct(NEW_BOWL.Y), axis=1) - 10)
        assert off.mean() < 0.7 * NOISE
        # A perfect surface would leave the one noisy direction that points away from it.
        apart = np.sqrt(-model.score_samples(NEW_BOWL.Y))
        assert np.median(apart) < 1.5 * NOISE

    @pytest.mark.slow
    @pytest.mark.parametrize("choice", CHOICES)
    def test_adaptation_lowers_the_inward_bias(self, choice):
        before = 10 - norms(bowl_model(choice, False)).mean()
        after = 10 - norms(bowl_model(choice, True)).mean()
        assert before > 0.2
        assert abs(after) < 0.5 * before

    @pytest.mark.slow
    def test_adaptation_lowers_the_error(self):
        for choice in CHOICES:
            before, after = bowl_model(choice, False), bowl_model(choice, True)
            assert after.score(NEW_BOWL.Y) > before.score(NEW_BOWL.Y)

    @pytest.mark.slow
    def test_a_given_smoothness_is_kept(self):
        model = bowl_model("kmeans", 0.1)
        assert model.smoothness_ == 0.1
        assert bowl_model().smoothness_ > 0
        assert not hasattr(bowl_model("kmeans", False), "smoothness_")
        assert abs(10 - norms(model).mean()) < 0.15

    @pytest.mark.slow
    def test_landmarks_that_stay_are_those_chosen(self):
        model = bowl_model("random", False)
        drawn = (BOWL.Y[:, None] == model.data_[None]).all(axis=2)
        assert (drawn.sum(axis=0) == 1).all()
        assert not (BOWL.Y[:, None] == bowl_model("random").data_[None]).all(axis=2).any()


class TestSpiral:
    def test_the_error_is_below_the_noise(self):
        assert off_the_spiral(plain_spiral()) < 0.5 * 0.03
        order = spearmanr(plain_spiral().embedding_[:, 0], SPIRAL.latent[:, 0]).statistic
        assert abs(order) > 0.99

    def test_rows_that_are_not_trained_come_in_part_and_then_all(self, monkeypatch):
        monkeypatch.setattr(landmark_fitting, "MANY_ROWS", 100)
        errors = []
        for first in (3, 10):
            monkeypatch.setattr(landmark_fitting, "ROWS_AT_FIRST", first)
            errors.append(off_the_spiral(spiral_model(init="isomap").fit(SPIRAL.Y)))
        assert max(errors) < 0.5 * 0.03
        assert errors[0] != errors[1]

    def test_adaptation_lowers_the_inward_bias(self):
        fixed = spiral_model(Landmarks(40, adapt=False)).fit(SPIRAL.Y)
        inward = [
            NEW_SPIRAL.signed_distance(model.reconstruct(NEW_SPIRAL.Y)).mean()
            for model in (fixed, plain_spiral())
        ]
        assert inward[0] > 0.01
        assert abs(inward[1]) < 0.3 * inward[0]

    @pytest.mark.slow
    @pytest.mark.parametrize("k", [1, 2, 4])
    def test_several_landmarks_may_be_left_out(self, k):
        model = spiral_model(regularization=LeaveKOut(k)).fit(SPIRAL.Y)
        assert off_the_spiral(model) < 0.5 * 0.03
        if k == 1:
            np.testing.assert_array_equal(model.embedding_, plain_spiral().embedding_)
        else:
            assert np.abs(model.embedding_ - plain_spiral().embedding_).max() > 1e-3

    def test_too_many_left_out_are_explained(self):
        with pytest.raises(ValueError, match="Leaving 19 of 20 landmarks out"):
            spiral_model(20, regularization=LeaveKOut(19)).fit(SPIRAL.Y)

    @pytest.mark.slow
    @pytest.mark.parametrize("degree", [1, 2, "2-axes"])
    def test_local_polynomials(self, degree):
        model = spiral_model(degree=degree).fit(SPIRAL.Y)
        assert off_the_spiral(model) < 0.6 * 0.03

    def test_penalties(self):
        model = spiral_model(regularization=Extension(penalty=1e-5)).fit(SPIRAL.Y)
        assert off_the_spiral(model) < 0.03

    @pytest.mark.slow
    def test_huber_withstands_outliers(self):
        rng = np.random.default_rng(0)
        Y = SPIRAL.Y.copy()
        Y[::15, 0] += rng.choice([-1, 1], 20) * 0.4
        robust = spiral_model(loss=Huber(), init="isomap").fit(Y)
        squared = spiral_model(init="isomap").fit(Y)
        assert robust.loss_.delta > 0
        assert off_the_spiral(robust) < off_the_spiral(squared)

    @pytest.mark.slow
    def test_smoothest(self):
        model = spiral_model(
            loss=EpsilonInsensitive(0.06), regularization="smoothest", max_iter=60
        ).fit(SPIRAL.Y)
        assert off_the_spiral(model) < 0.03
        assert model.violation_ < 0.5 * 0.06


class TestWhatIsKept:
    @pytest.mark.slow
    @pytest.mark.parametrize("choice", CHOICES)
    @pytest.mark.parametrize("adapt", [False, True])
    def test_training_rows_are_projected_like_any_other(self, choice, adapt):
        model = bowl_model(choice, adapt)
        np.testing.assert_array_equal(model.transform(BOWL.Y), model.embedding_)
        np.testing.assert_array_equal(model.transform(BOWL.Y[5:6]), model.embedding_[5:6])

    @pytest.mark.slow
    def test_the_model_is_its_landmarks(self):
        model = bowl_model()
        assert model.data_.shape == (60, 3)
        assert model.latent_.shape == (60, 2)
        assert model.weights_.shape == (60,)
        assert model.embedding_.shape == (600, 2)

    @pytest.mark.slow
    def test_a_saved_file_is_small_and_holds_only_a_sample_of_the_rows(self, tmp_path):
        rng = np.random.default_rng(0)
        wide = np.tile(BOWL.Y, (5, 1)) @ rng.normal(size=(3, 40))
        wide += 0.01 * rng.normal(size=wide.shape)
        whole = UKR(init="pca", max_iter=2, random_state=0).fit(wide)
        model = UKR(landmarks=30, init="pca", max_iter=2, random_state=0).fit(wide)
        whole.save(tmp_path / "whole.twofold")
        model.save(tmp_path / "few.twofold")
        content = (tmp_path / "few.twofold").read_bytes()
        assert len(content) < 0.25 * (tmp_path / "whole.twofold").stat().st_size
        rows = [row.tobytes() for row in wide]
        assert sum(row in content for row in rows) == LEAST_SAMPLED
        assert all(row in (tmp_path / "whole.twofold").read_bytes() for row in rows[:20])
        again = load(tmp_path / "few.twofold")
        np.testing.assert_array_equal(again.transform(wide), model.transform(wide))
        np.testing.assert_array_equal(again.embedding_, model.embedding_)


class TestNumberOfLandmarks:
    def test_auto(self):
        model = spiral_model("auto", max_iter=5).fit(SPIRAL.Y)
        assert len(model.data_) == 150
        assert off_the_spiral(model) < 0.03

    def test_too_many_are_explained(self):
        with pytest.raises(
            ValueError, match="less than the number of different rows, 300; got 300"
        ):
            spiral_model(300).fit(SPIRAL.Y)

    def test_fewer_distinct_rows_than_rows(self):
        Y = np.repeat(SPIRAL.Y[:60], 5, axis=0)
        model = spiral_model(40, max_iter=5).fit(Y)
        assert len(model.data_) == 40
        np.testing.assert_array_equal(model.embedding_[0], model.embedding_[4])


class TestWeightsAndMissingEntries:
    @pytest.mark.slow
    def test_weights_are_repeated_rows(self):
        weights = np.ones(300)
        weights[:100] = 2
        twice = np.concatenate([SPIRAL.Y, SPIRAL.Y[:100]])
        a = spiral_model(max_iter=10).fit(SPIRAL.Y, sample_weight=weights)
        b = spiral_model(max_iter=10).fit(twice)
        np.testing.assert_array_equal(a.embedding_, b.embedding_[:300])
        assert a.objective_ == b.objective_

    def test_heavy_rows_draw_the_curve(self):
        """Of two strands that lie close together the heavier one is followed."""
        t = np.linspace(0, 1, 150)
        strands = [np.column_stack([4 * t, side + 0 * t]) for side in (0.0, 0.1)]
        Y = np.concatenate(strands) + 1e-3 * np.random.default_rng(0).normal(size=(300, 2))
        for heavy, height in ((0, 0.0), (1, 0.1)):
            weights = np.where(np.arange(300) // 150 == heavy, 50.0, 1.0)
            model = spiral_model(10, init="pca").fit(Y, sample_weight=weights)
            found = np.median(model.inverse_transform(model.embedding_)[:, 1])
            assert abs(found - height) < 0.03

    @pytest.mark.slow
    def test_missing_entries(self):
        rng = np.random.default_rng(0)
        turned = SPIRAL.Y @ rng.normal(size=(2, 5))
        new = NEW_SPIRAL.clean @ np.random.default_rng(0).normal(size=(2, 5))
        holes = rng.random(turned.shape) < 0.15
        holes[np.arange(300), np.arange(300) % 5] = False
        model = spiral_model().fit(np.where(holes, np.nan, turned))
        assert np.isfinite(model.embedding_).all()
        assert np.isfinite(model.data_).all()
        whole = spiral_model().fit(turned)
        errors = [
            ((each.reconstruct(new) - new) ** 2).sum(axis=1).mean() for each in (model, whole)
        ]
        assert errors[0] < 0.02 * ((new - new.mean(axis=0)) ** 2).sum(axis=1).mean()
        filled = model.complete(np.where(holes, np.nan, turned))
        np.testing.assert_array_equal(filled[~holes], turned[~holes])
        assert np.abs((filled - turned)[holes]).mean() < 0.25 * turned.std()


class TestStarts:
    def test_a_start_is_for_the_rows_of_the_table(self):
        """Rows have a picture, landmarks have none of their own: it must be led over to them."""
        model = spiral_model(init=SPIRAL.latent).fit(SPIRAL.Y)
        order = spearmanr(model.embedding_[:, 0], SPIRAL.latent[:, 0]).statistic
        assert abs(order) > 0.99
        assert off_the_spiral(model) < 0.5 * 0.03

    def test_a_start_of_the_wrong_shape_is_explained(self):
        with pytest.raises(ValueError, match=r"shape \(300, 1\); got shape \(7, 1\)"):
            spiral_model(init=np.arange(7.0)[:, None]).fit(SPIRAL.Y)

    def test_an_estimator_may_start_the_landmarks(self):
        from sklearn.manifold import Isomap

        how = {"init": Isomap(n_neighbors=3, n_components=1), "max_iter": 80}
        model = spiral_model(**how).fit(SPIRAL.Y)
        assert off_the_spiral(model) < 0.6 * 0.03


class TestReproducible:
    @pytest.mark.slow
    @pytest.mark.parametrize("choice", CHOICES)
    def test_the_seed_decides(self, choice):
        made = [
            spiral_model(Landmarks(30, choice), max_iter=5, random_state=seed).fit(SPIRAL.Y)
            for seed in (0, 0, 1)
        ]
        np.testing.assert_array_equal(made[0].embedding_, made[1].embedding_)
        assert not np.array_equal(made[0].data_, made[2].data_)

    @pytest.mark.slow
    def test_units_do_not_matter(self):
        plain = spiral_model(max_iter=10, init="isomap").fit(SPIRAL.Y)
        scaled = spiral_model(max_iter=10, init="isomap").fit(2.0**40 * SPIRAL.Y)
        np.testing.assert_allclose(
            scaled.reconstruct(2.0**40 * NEW_SPIRAL.Y) / 2.0**40,
            plain.reconstruct(NEW_SPIRAL.Y),
            atol=0.03,
        )

    def test_single_precision(self):
        model = spiral_model(max_iter=10).fit(SPIRAL.Y.astype(np.float32))
        assert model.data_.dtype == model.embedding_.dtype == np.float32
        assert off_the_spiral(model) < 0.03

    def test_an_interrupt_keeps_a_model(self):
        from sklearn.exceptions import ConvergenceWarning

        def stop(event):
            if event.iteration == 4:
                raise KeyboardInterrupt

        with pytest.warns(ConvergenceWarning, match="Interrupted"):
            model = spiral_model(init="isomap", callbacks=[stop]).fit(SPIRAL.Y)
        assert np.isfinite(model.transform(NEW_SPIRAL.Y)).all()


class TestFeatureSpace:
    @pytest.mark.slow
    def test_a_linear_kernel_is_data_space(self):
        options = {"init": "isomap", "max_iter": 10}
        plain = spiral_model(**options).fit(SPIRAL.Y)
        linear = spiral_model(data_kernel="linear", **options).fit(SPIRAL.Y)
        assert linear.objective_ == pytest.approx(plain.objective_, rel=0.05)
        np.testing.assert_allclose(
            linear.reconstruct(NEW_SPIRAL.Y), plain.reconstruct(NEW_SPIRAL.Y), atol=0.03
        )

    @pytest.mark.slow
    @pytest.mark.parametrize("kernel", ["rbf", "l1"])
    def test_other_kernels(self, kernel):
        model = spiral_model(data_kernel=kernel, init="isomap").fit(SPIRAL.Y)
        assert off_the_spiral(model) < 2 * 0.03
        np.testing.assert_array_equal(model.transform(SPIRAL.Y), model.embedding_)

    def test_precomputed_kernels_are_refused(self):
        with pytest.raises(ValueError, match="`landmarks` need kernel values"):
            spiral_model(data_kernel="precomputed").fit(SPIRAL.Y @ SPIRAL.Y.T)


class TestRim:
    Y = make_random_manifold(4000, 2, 9, noise=0.1, random_state=0).Y

    def share_on_border(self):
        model = UKR(landmarks=200, max_iter=20, random_state=0).fit(self.Y)
        assert len(model.data_) == 200
        lowest = model.domain_threshold_
        density = model.density(model.embedding_)
        assert (density >= lowest).all()
        return (density < 1.01 * lowest).mean(), model.score(self.Y)

    @pytest.mark.slow  # tests/ukr/test_stopping.py puts landmarks on the rim of less
    def test_few_rows_end_on_the_border(self, monkeypatch):
        share, score = self.share_on_border()
        monkeypatch.setattr(landmark_fitting, "RIM_ROUNDS", 0)
        share_without, score_without = self.share_on_border()
        assert share < 0.01
        assert share_without > 3 * share
        assert score > 1.01 * score_without  # an error with a minus
