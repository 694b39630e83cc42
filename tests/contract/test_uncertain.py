"""What every model knows about its noise, and whether that is so on rows it has not seen."""

from __future__ import annotations

import pickle
import warnings

import numpy as np
import pytest
from families import FAMILIES, Family

from twofold import PSOM, UKR, UNN, KernelPCA, ManifoldImputer, Scaled, load
from twofold.contract.left_open import MOST_GLANCED_AT, LeftOpenWarning, open_share_warning
from twofold.contract.uncertain_model import GROSS, MOST_FITS
from twofold.noise.judging import told_by_others

EACH = [pytest.param(f, id=f.name, marks=f.marks) for f in FAMILIES]


def noisy_arc(n, seed, noise=0.15, D=6):
    """Return rows around an arc whose noise goes together in pairs of columns."""
    random = np.random.default_rng(seed)
    t = random.uniform(0, np.pi, n)
    directions = np.random.default_rng(99).normal(size=(2, D))
    rows = np.column_stack([np.cos(t), np.sin(t)]) @ directions
    shared = noise * random.normal(size=(n, D // 2))
    return rows + np.repeat(shared, 2, axis=1) + 0.3 * noise * random.normal(size=(n, D))


TRAIN, NEW = noisy_arc(250, 0), noisy_arc(150, 1)
GAPS = np.random.default_rng(2).random(NEW.shape) < 0.2
GAPS[GAPS.all(axis=1), 0] = False
PARTIAL = np.where(GAPS, np.nan, NEW)


@pytest.fixture(scope="module")
def arc():
    return UKR(1, random_state=0, max_iter=30).fit(TRAIN)


def squared(filled):
    return ((filled - NEW)[GAPS] ** 2).mean()


def test_residuals_of_observed_entries_tell_those_of_missing_ones(arc):
    assert squared(arc.complete(PARTIAL)) < 0.7 * squared(
        arc.complete(PARTIAL, use_residuals=False)
    )
    np.testing.assert_array_equal(arc.complete(PARTIAL)[~GAPS], NEW[~GAPS])
    np.testing.assert_array_equal(arc.complete(PARTIAL[5:6]), arc.complete(PARTIAL)[5:6])


def test_intervals_cover_what_they_promise(arc):
    for level in (0.5, 0.9):
        low, high = arc.intervals(PARTIAL, level)
        covered = (low <= NEW) & (high >= NEW)
        assert abs(covered[GAPS].mean() - level) < 0.1
        # An entry that is there has had no say in where it is expected.
        assert abs(covered[~GAPS].mean() - level) < 0.1
    for level in (1.5, None, "0.9"):
        with pytest.raises(ValueError, match="`level` must be a number"):
            arc.intervals(PARTIAL, level)


def test_a_level_that_few_rows_cannot_tell_of_is_said():
    model = UKR(1, init="pca", max_iter=3).fit(TRAIN[:60])
    with pytest.warns(UserWarning, match=r"cannot be sure to hold 99.9 %: .* tell of 9[78].* %"):
        wide = model.intervals(NEW[:5], 0.999)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        low, high = model.intervals(NEW[:5], 0.9)
    assert (high - low < wide[1] - wide[0]).all()
    gaps = TRAIN[:60].copy()
    gaps[::4, 1] = np.nan
    imputer = ManifoldImputer(trees=False, random_state=0).fit(gaps)
    with pytest.warns(UserWarning, match=r"cannot be sure to hold 99 %"):
        imputer.intervals(gaps, 0.99)


def test_deviations_are_those_of_new_rows(arc):
    images, std = arc.reconstruct(NEW, return_std=True)
    ratio = np.sqrt((((images - NEW) / std) ** 2).mean())
    assert 0.8 < ratio < 1.25
    _, of_places = arc.inverse_transform(arc.transform(NEW), return_std=True)
    np.testing.assert_allclose(of_places, std)
    filled, left = arc.complete(PARTIAL, return_std=True)
    assert (left[~GAPS] == 0).all()
    # The errors of entries whose twin is missing, too, are rare and large: 0.7 to 1.2 by the draw.
    assert 0.7 < np.sqrt((((filled - NEW) / np.where(GAPS, left, 1))[GAPS] ** 2).mean()) < 1.3


def test_draws_and_samples_have_the_variance_of_rows(arc):
    draws = arc.complete(PARTIAL, n_draws=4, random_state=0)
    assert draws.shape == (4, *NEW.shape)
    np.testing.assert_array_equal(draws, arc.complete(PARTIAL, n_draws=4, random_state=0))
    # Two draws differ by the noise twice, a draw and the truth as well.
    apart = (draws[0] - draws[1])[GAPS].var()
    assert 0.7 < apart / (draws[0] - NEW)[GAPS].var() < 1.4
    smooth, rows = arc.sample(2000, 0), arc.sample(2000, 0, noise=True)
    assert 0.9 < rows.var(axis=0).sum() / TRAIN.var(axis=0).sum() < 1.1
    # The first column moves little along the arc: most of it is noise, which means lack.
    assert smooth[:, 0].var() < 0.85 * rows[:, 0].var()


def test_samples_of_rows_without_any_structure_vary_as_they_do():
    # The map bends towards each of its rows: counted with their residuals, that was 1.08.
    rows = np.random.default_rng(0).normal(size=(200, 8))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", LeftOpenWarning)
        model = UKR(random_state=0, max_iter=20).fit(rows)
    new = model.sample(3000, random_state=0, noise=True)
    assert new.var(axis=0).sum() / rows.var(axis=0).sum() == pytest.approx(1, abs=0.05)


def test_an_entry_has_no_say_in_where_it_is_expected():
    # Of a plane, to first order is exactly: the row is placed again without each of its entries.
    random = np.random.default_rng(0)
    J = random.normal(size=(5, 2))
    rows = random.normal(size=(4, 5))
    rows[1, 3] = np.nan
    places = [np.linalg.lstsq(J[~np.isnan(y)], y[~np.isnan(y)])[0] for y in rows]
    told = told_by_others(rows, places @ J.T, np.tile(J, (4, 1, 1)))
    for i, y in enumerate(rows):
        for d in range(5):
            others = ~np.isnan(y) & (np.arange(5) != d)
            expected = J[d] @ np.linalg.lstsq(J[others], y[others])[0]
            # One that decides the place by itself keeps a fifth of its residual.
            h = J[d] @ np.linalg.inv(J[~np.isnan(y)].T @ J[~np.isnan(y)]) @ J[d]
            if h < 0.8:
                assert told[i, d] == pytest.approx(expected, rel=1e-6)
    flat = told_by_others(rows, np.zeros_like(rows), np.zeros((4, 5, 2)))
    np.testing.assert_array_equal(flat, 0)


@pytest.mark.parametrize("family", ["UKR", "KernelPCA"])
def test_an_entry_is_expected_where_it_would_be_if_it_were_missing(family, arc):
    model = arc if family == "UKR" else KernelPCA(1).fit(TRAIN)
    for d, far in ((0, 0.5), (2, -4.0), (4, 1e6)):
        moved, missing = NEW[:20].copy(), NEW[:20].copy()
        moved[:, d] += far
        missing[:, d] = np.nan
        for found, other in zip(model.intervals(moved), model.intervals(missing), strict=True):
            np.testing.assert_allclose(found[:, d], other[:, d], rtol=1e-12)
        usual, why = model.explain(NEW[:20]), model.explain(moved)
        is_usual = np.abs(usual.deviations).max(axis=1) < GROSS  # no other entry is left out
        assert is_usual.sum() > 15
        expected = model.complete(missing, use_residuals=True)[:, d]
        np.testing.assert_allclose(why.expected[is_usual, d], expected[is_usual], rtol=1e-12)


def test_entries_of_wide_rows_have_no_say_in_their_places():
    random = np.random.default_rng(0)
    t = random.uniform(0, 3, (140, 1))
    rows = np.sin(t + np.arange(40) / 5) + 0.1 * random.normal(size=(140, 40))
    model = UKR(1, random_state=0, max_iter=10).fit(rows[:100])
    new = rows[100:]
    new[0, 1:] = np.nan  # alone, it is expected where rows are
    moved = new.copy()
    moved[:, 7] += 50
    moved[0, 0] += 50
    for found, other in zip(model.intervals(moved), model.intervals(new), strict=True):
        np.testing.assert_allclose(found[1:, 7], other[1:, 7], rtol=1e-9)
        assert found[0, 0] == pytest.approx(other[0, 0])
    low, high = model.intervals(new)
    assert ((low <= new) & (new <= high))[1:].mean() > 0.85


def test_a_gross_error_makes_no_other_entry_odd(arc):
    spoilt = NEW[:60].copy()
    spoilt[:, 1] += 1000
    spoilt[:30, 4] -= 50
    usual, why = arc.explain(NEW[:60]), arc.explain(spoilt)
    assert (np.abs(why.deviations[:, 1]) > 100).all()
    assert (np.abs(why.deviations[:30, 4]) > 10).all()
    others = [0, 2, 3, 5]
    assert (np.abs(usual.deviations[:, others]) > 4).mean() < 0.02
    assert (np.abs(why.deviations[:, others]) > 4).mean() < 0.02
    np.testing.assert_array_equal(arc.explain(spoilt[7:8]).expected[0], why.expected[7])


def test_a_model_without_noise_explains_nothing_and_says_so():
    by_kernel = UKR(1, data_kernel="l1", init="pca", max_iter=2).fit(TRAIN[:30])
    K = TRAIN[:30] @ TRAIN[:30].T
    for model, rows in ((by_kernel, NEW[:2]), (KernelPCA(2, kernel="precomputed").fit(K), K[:2])):
        for ask in (model.explain, model.p_values, model.intervals):
            with pytest.raises(ValueError, match="How far rows lie from the model is unknown"):
                ask(rows)
        with pytest.raises(ValueError, match="How far rows lie from the model is unknown"):
            model.reconstruct(rows, use_residuals=True, noise_std=0.1)


@pytest.mark.parametrize(
    "model", [UKR(1, init="pca", max_iter=5), UNN(1, random_state=0)], ids=["UKR", "UNN"]
)
def test_a_model_without_some_rows_knows_nothing_of_them(model):
    model = model.fit(TRAIN[:40])
    out = np.array([3, 11])
    other = model._without(out)
    assert other.data_.shape == (38, 6)
    assert model.data_.shape == (40, 6)
    known = model.data_[out]
    model.data_[out] += 5  # what these rows are does not matter
    np.testing.assert_array_equal(model._without(out)._placed(known)[0], other._placed(known)[0])


def test_models_that_cannot_forget_are_fitted_again(monkeypatch):
    fits = []
    plain = PSOM._fit_distinct

    def counted(self, Y, *others):
        fits.append(len(Y))
        return plain(self, Y, *others)

    monkeypatch.setattr(PSOM, "_fit_distinct", counted)
    model = PSOM(1, grid=4, random_state=0, verbose=True).fit(TRAIN[:60])
    _ = model.noise_
    assert fits == [60, *[54] * MOST_FITS]
    assert len(model.noise_.log_likelihoods) == 6 * MOST_FITS
    assert model.left_open().share > 0  # without a fit
    assert len(fits) == 1 + MOST_FITS
    few = PSOM(1, grid=2, init=model.embedding_[:3], random_state=0).fit(TRAIN[:3])
    assert few.noise_.residuals.shape == (6,)  # two rows are too few for a fit
    own = PSOM(1, grid=4, init=model.embedding_, random_state=0).fit(TRAIN[:60])
    assert np.isfinite(own.p_values(NEW[:5])).all()  # places of rows are those of the rest, too


def test_p_values_of_usual_rows_are_spread_evenly(arc):
    p = np.sort(arc.p_values(NEW))
    # 150 draws from an even spread are farther off than 0.13 once in a hundred times.
    assert np.abs(p - (np.arange(len(p)) + 0.5) / len(p)).max() < 0.15


def test_what_is_said_of_noise_is_printed_in_a_line(arc):
    left, why, noise = arc.left_open(), arc.explain(PARTIAL), arc.noise_
    for found in (left, why, noise):
        assert len(str(found)) < 200
        assert "array" not in repr(found)
    assert f"{100 * left.share:.3g} % of the variance; 6 features" in str(left)
    odd = np.nan_to_num(np.abs(why.deviations)).max(axis=1).argmax()
    assert f"feature {why.features(odd)[0]} of row {odd}" in str(why)
    assert f"{len(noise.ratios)} hidden entries" in str(noise)


def test_odd_rows_are_unlikely_and_explained(arc):
    odd = NEW[:50].copy()
    odd[:, 2] += 1.5
    assert (arc.p_values(odd) < 0.05).mean() > 0.9
    assert arc.log_likelihood(odd).max() < np.median(arc.log_likelihood(NEW))
    why = arc.explain(odd)
    # Columns 2 and 3 go together: either one is what the other does not let expect.
    assert np.mean([why.features(i, 1)[0] in (2, 3) for i in range(50)]) > 0.9
    assert np.abs(why.expected[:, 2] - NEW[:50, 2]).mean() < 0.75


def test_gaps_say_neither_that_a_row_is_odd_nor_that_it_is_not(arc):
    p = arc.p_values(PARTIAL)
    assert 0.4 < p.mean() < 0.6  # as that of whole rows, on average
    np.testing.assert_array_equal(arc.p_values(PARTIAL[7:9]), p[7:9])
    alone = [arc.p_values(row[None])[0] for row in PARTIAL[:60]]
    np.testing.assert_array_equal(alone, p[:60])
    odd = PARTIAL[:80].copy()
    odd[~np.isnan(odd[:, 2]), 2] += 1.5
    changed = ~np.isnan(odd[:, 2])
    assert (arc.p_values(odd)[changed] < 0.05).mean() > 0.8


def noisy_rows(n, seed, D=12, noise=0.3):
    """Return rows around an arc that also move along two directions, and these with noise."""
    random, F = np.random.default_rng(seed), np.random.default_rng(99).normal(size=(4, D))
    t = random.uniform(0, np.pi, n)
    clean = np.column_stack([np.cos(t), np.sin(t)]) @ F[:2]
    clean += 0.3 * random.normal(size=(n, 2)) @ F[2:]
    return clean, clean + noise * random.normal(size=(n, D))


@pytest.fixture(scope="module")
def noisy():
    return UKR(1, random_state=0, max_iter=10).fit(noisy_rows(250, 0)[1])


def test_noise_is_taken_away_as_far_as_it_goes(noisy):
    clean, new = noisy_rows(150, 1)
    np.testing.assert_allclose(noisy.noise_std(), 0.3, rtol=0.15)
    between = noisy.reconstruct(new, use_residuals=True)
    error = ((between - clean) ** 2).mean()
    assert error < 0.55 * ((new - clean) ** 2).mean()
    assert error < 0.6 * ((noisy.reconstruct(new) - clean) ** 2).mean()
    np.testing.assert_array_equal(noisy.reconstruct(new[3:4], use_residuals=True), between[3:4])
    known = noisy.reconstruct(new, use_residuals=True, noise_std=0.3)
    assert ((known - clean) ** 2).mean() < 0.5 * ((new - clean) ** 2).mean()
    new[:5, 2] = np.nan
    assert not np.isnan(noisy.reconstruct(new[:5], use_residuals=True)).any()


def test_noise_that_is_known_is_used(noisy):
    new = noisy_rows(20, 1)[1]
    none = noisy.reconstruct(new, use_residuals=True, noise_std=0)
    np.testing.assert_array_equal(none, new)
    level = np.zeros(12)
    level[4] = 0.3
    moved = noisy.reconstruct(new, use_residuals=True, noise_std=level) != new
    assert moved[:, 4].all()
    assert not np.delete(moved, 4, axis=1).any()
    for wrong in (-1, np.nan, [1, 2], "much"):
        with pytest.raises(ValueError, match="noise_std"):
            noisy.reconstruct(new, use_residuals=True, noise_std=wrong)
    with pytest.raises(ValueError, match="use_residuals"):
        noisy.reconstruct(new, noise_std=0.1)


def test_noise_goes_with_the_units_of_columns(noisy):
    scales = np.linspace(1, 20, 12)
    train = noisy_rows(250, 0)[1] * scales
    model = Scaled(UKR(1, random_state=0, max_iter=10)).fit(train)
    found = model.noise_std() / train.std(axis=0)
    np.testing.assert_allclose(found, found[0])


def test_landmarks_know_their_noise(tmp_path):
    clean, rows = noisy_rows(900, 3)
    model = UKR(1, landmarks=40, random_state=0, max_iter=10).fit(rows[:700])
    assert len(model.sample_rows_) == 500
    new, truth = rows[700:], clean[700:]
    cleaned = model.reconstruct(new, use_residuals=True)
    assert ((cleaned - truth) ** 2).mean() < 0.6 * ((new - truth) ** 2).mean()
    gaps = np.random.default_rng(0).random(new.shape) < 0.2
    gaps[gaps.all(axis=1), 0] = False
    partial = np.where(gaps, np.nan, new)
    low, high = model.intervals(partial)
    assert abs(((low <= new) & (new <= high))[gaps].mean() - 0.9) < 0.06
    plain = model.complete(partial, use_residuals=False)
    error = ((model.complete(partial) - new)[gaps] ** 2).mean()
    assert error < 0.85 * ((plain - new)[gaps] ** 2).mean()  # 0.81 with this seed
    assert 0.05 < model.left_open().share < 0.5
    assert 0.3 < model.p_values(new).mean() < 0.7
    path = tmp_path / "landmarks.twofold"
    model.save(path)
    np.testing.assert_array_equal(load(path).complete(partial[:9]), model.complete(partial[:9]))


@pytest.mark.parametrize("landmarks", [40, 400], ids=["a sample", "more than rows"])
def test_landmarks_of_kernel_pca_know_their_noise(tmp_path, landmarks):
    model = KernelPCA(2, landmarks=landmarks, random_state=0).fit(TRAIN)
    assert hasattr(model, "sample_rows_") == (landmarks < len(TRAIN))
    low, high = model.intervals(PARTIAL)
    # Of "more than rows", 123 hidden entries tell the ends: 0.9 within three standard errors.
    assert abs(((low <= NEW) & (high >= NEW))[GAPS].mean() - 0.9) < 0.08
    assert 0.3 < model.p_values(NEW).mean() < 0.7
    assert 0 < model.left_open().share < 1
    path = tmp_path / "landmarks.twofold"
    model.save(path)
    np.testing.assert_array_equal(load(path).p_values(NEW[:9]), model.p_values(NEW[:9]))


def test_landmarks_keep_a_sample_of_all_rows_they_have_seen():
    rows = noisy_rows(900, 4)[1]
    model = UKR(1, landmarks=20, random_state=0, max_iter=3).fit(rows[:600])
    before = model.noise_
    model.partial_fit(rows[600:])
    # The rows of lowest hash of all: the same ones as if they had come at once.
    whole = UKR(1, landmarks=20, random_state=0, max_iter=1).fit(rows)
    np.testing.assert_array_equal(model.sample_rows_, whole.sample_rows_)
    assert model.noise_ is not before


def test_old_files_of_landmarks_have_no_noise():
    model = UKR(1, landmarks=10, random_state=0, max_iter=3).fit(TRAIN)
    del model.sample_rows_, model.sample_weights_
    assert not model.has_noise()
    with pytest.raises(ValueError, match="keeps landmarks and none of the rows"):
        model.left_open()


def test_residuals_fill_unless_rows_have_to_lie_on_the_manifold():
    free = PSOM(1, grid=3).fit(TRAIN[:60])
    known = PSOM(1, grid=3).fit_scattered(free.embedding_, TRAIN[:60])
    for arm, uses_residuals in ((free, True), (known, False)):
        filled = arm.complete(PARTIAL, use_residuals=uses_residuals)
        other = arm.complete(PARTIAL, use_residuals=not uses_residuals)
        np.testing.assert_array_equal(arm.complete(PARTIAL), filled)
        assert (other != filled).any()
    assert squared(free.complete(PARTIAL)) < squared(free.complete(PARTIAL, use_residuals=False))
    with pytest.raises(ValueError, match="residuals"):
        free.complete(PARTIAL, use_residuals=False, return_std=True)


@pytest.mark.parametrize("family", EACH)
def test_every_model_has_noise(family: Family, tmp_path):
    model = family.make().fit(TRAIN[:60])
    if not model._has_noise():
        with pytest.raises(ValueError, match="How far rows lie from the model is unknown"):
            _ = model.noise_
        return
    assert "noise_" not in vars(getattr(model, "model_", model))  # a fit does not pay for it
    _, std = model.inverse_transform(model.embedding_[:3], return_std=True)
    assert (std > 0).all()
    assert np.isfinite(model.log_likelihood(NEW[:5])).all()
    path = tmp_path / "model.twofold"
    model.save(path)
    for again in (load(path), pickle.loads(pickle.dumps(model))):
        assert "noise_" in vars(getattr(again, "model_", again))
        np.testing.assert_array_equal(again.log_likelihood(NEW[:5]), model.log_likelihood(NEW[:5]))
        again_std = again.inverse_transform(model.embedding_[:3], return_std=True)[1]
        np.testing.assert_array_equal(again_std, std)
    model.fit(TRAIN[60:120])
    assert "noise_" not in vars(getattr(model, "model_", model))


@pytest.mark.parametrize("landmarks", [None, 40])
def test_a_fit_looks_at_few_rows_for_its_warning(landmarks, monkeypatch):
    asked = []
    for name in ("_regress_without", "_place"):
        plain = getattr(UKR, name)

        def counted(self, first, *others, plain=plain, name=name):
            asked.append((name, len(first)))
            return plain(self, first, *others)

        monkeypatch.setattr(UKR, name, counted)
    rows = noisy_arc(900, 5)
    UKR(1, landmarks=landmarks, random_state=0, max_iter=2).fit(rows)
    extra = [count for name, count in asked if name == "_regress_without"]
    assert extra == [MOST_GLANCED_AT]  # a quarter of one evaluation of the error of all rows
    if landmarks is not None:  # all rows are placed, and then those that are glanced at
        assert [count for name, count in asked if name == "_place"] == [len(rows), MOST_GLANCED_AT]


def test_new_rows_make_another_noise(arc):
    model = UKR(1, random_state=0, max_iter=5).fit(TRAIN[:80])
    before = model.noise_
    model.partial_fit(TRAIN[80:100])
    assert model.noise_ is not before


def test_what_a_map_leaves_open_is_said(arc):
    left = arc.left_open()
    new = NEW - arc.reconstruct(NEW)
    total = ((TRAIN - TRAIN.mean(axis=0)) ** 2).mean()
    assert left.share == pytest.approx((new**2).mean() / total, rel=0.25)
    np.testing.assert_allclose(left.features, np.sqrt((new**2).mean(axis=0)), rtol=0.25)
    assert left.warning() == ""
    assert "no better than the mean" in open_share_warning(1.22)


def test_a_map_that_follows_noise_leaves_more_open_than_at_trained_places():
    noise = np.random.default_rng(0).normal(size=(200, 20))
    model = UKR(2, random_state=0, max_iter=30).fit(noise[:100])
    new = ((noise[100:] - model.reconstruct(noise[100:])) ** 2).mean()
    trained = ((noise[:100] - model._regress_without(model.embedding_, model.member_)) ** 2).mean()
    found = model.left_open().share * noise[:100].var(axis=0).mean()
    assert trained < found < 1.1 * new
    assert found > 0.8 * new


def test_a_fit_warns_of_a_map_that_leaves_much_open():
    noise = np.random.default_rng(0).normal(size=(60, 20))
    with pytest.warns(LeftOpenWarning, match="of the variance open") as seen:
        model = UKR(1, random_state=0, max_iter=5).fit(noise)
    assert seen[0].filename == __file__
    assert "of the variance open" in model.left_open().warning()
    with pytest.warns(LeftOpenWarning) as seen:
        Scaled(UKR(1, random_state=0, max_iter=5)).fit(noise)
    assert len(seen) == 1
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        UKR(1, random_state=0, max_iter=5).fit(TRAIN)
