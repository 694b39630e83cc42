"""What every model knows about its noise, and whether that is so on rows it has not seen."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from families import FAMILIES, Family

from twofold import PSOM, UKR, Scaled, load
from twofold.contract.uncertain_model import open_share_warning
from twofold.noise.left_out_places import nearest_other_images, seek_places

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
        covered = ((low <= NEW) & (high >= NEW))[GAPS].mean()
        assert abs(covered - level) < 0.1
    with pytest.raises(ValueError, match="level"):
        arc.intervals(PARTIAL, 1.5)


def test_deviations_are_those_of_new_rows(arc):
    images, std = arc.reconstruct(NEW, return_std=True)
    ratio = np.sqrt((((images - NEW) / std) ** 2).mean())
    assert 0.8 < ratio < 1.25
    _, of_places = arc.inverse_transform(arc.transform(NEW), return_std=True)
    np.testing.assert_allclose(of_places, std)
    filled, left = arc.complete(PARTIAL, return_std=True)
    assert (left[~GAPS] == 0).all()
    assert 0.8 < np.sqrt((((filled - NEW) / np.where(GAPS, left, 1))[GAPS] ** 2).mean()) < 1.3


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


def test_odd_rows_are_unlikely_and_explained(arc):
    p = arc.p_values(NEW)
    assert (p < 0.1).mean() < 0.2
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
    odd = PARTIAL[:80].copy()
    odd[~np.isnan(odd[:, 2]), 2] += 1.5
    changed = ~np.isnan(odd[:, 2])
    assert (arc.p_values(odd)[changed] < 0.05).mean() > 0.8


def rows_with_shared_residuals(n, seed, D=12):
    """Return places on an arc, rows that also move along two directions, and these with noise."""
    random, F = np.random.default_rng(seed), np.random.default_rng(99).normal(size=(4, D))
    t = random.uniform(0, np.pi, n)
    clean = np.column_stack([np.cos(t), np.sin(t)]) @ F[:2]
    clean += 0.3 * random.normal(size=(n, 2)) @ F[2:]
    return t, clean, clean + 0.3 * random.normal(size=(n, D))


def test_what_residuals_share_is_kept_and_what_one_has_is_noise():
    t, _, train = rows_with_shared_residuals(250, 0)
    _, clean, new = rows_with_shared_residuals(150, 1)
    model = UKR(1, init=t[:, None], random_state=0, max_iter=1).fit(train)
    between = model.reconstruct(new, use_residuals=True)
    error = ((between - clean) ** 2).mean()
    assert error < 0.55 * ((new - clean) ** 2).mean()
    assert error < 0.4 * ((model.reconstruct(new) - clean) ** 2).mean()
    np.testing.assert_array_equal(model.reconstruct(new[3:4], use_residuals=True), between[3:4])
    new[:5, 2] = np.nan
    assert not np.isnan(model.reconstruct(new[:5], use_residuals=True)).any()


def test_models_that_leave_no_row_out_fill_from_the_manifold():
    arm = PSOM(1, grid=3).fit(TRAIN[:60])
    plain = arm.complete(PARTIAL, use_residuals=False)
    np.testing.assert_array_equal(arm.complete(PARTIAL), plain)
    assert (arm.complete(PARTIAL, use_residuals=True) != plain).any()
    with pytest.raises(ValueError, match="residuals"):
        arm.complete(PARTIAL, use_residuals=False, return_std=True)


@pytest.mark.parametrize("family", EACH)
def test_every_model_has_noise(family: Family, tmp_path):
    model = family.make().fit(TRAIN[:60])
    if not model._has_noise():
        with pytest.raises(ValueError, match="landmarks or kernel values"):
            _ = model.noise_
        return
    assert "noise_" not in vars(model)  # a fit does not pay for it
    _, std = model.inverse_transform(model.embedding_[:3], return_std=True)
    assert (std > 0).all()
    assert np.isfinite(model.log_likelihood(NEW[:5])).all()
    path = tmp_path / "model.twofold"
    model.save(path)
    for again in (load(path), pickle.loads(pickle.dumps(model))):
        assert "noise_" in vars(again)
        np.testing.assert_array_equal(again.log_likelihood(NEW[:5]), model.log_likelihood(NEW[:5]))
    model.fit(TRAIN[60:120])
    assert "noise_" not in vars(model)


def test_new_rows_make_another_noise(arc):
    model = UKR(1, random_state=0, max_iter=5).fit(TRAIN[:80])
    before = model.noise_
    model.partial_fit(TRAIN[80:100])
    assert model.noise_ is not before


def test_units_of_columns_go_through():
    scales = np.array([1, 100, 0.01, 1, 1, 10.0])
    plain = Scaled(UKR(1, random_state=0, max_iter=10)).fit(TRAIN)
    other = Scaled(UKR(1, random_state=0, max_iter=10)).fit(TRAIN * scales)
    # Rows are put into another order, and other entries are hidden.
    there, here = other.complete(PARTIAL * scales) / scales, plain.complete(PARTIAL)
    assert 0.7 < squared(there) / squared(here) < 1.4
    shift = other.log_likelihood(NEW * scales) - plain.log_likelihood(NEW)
    assert np.median(np.abs(shift + np.log(scales).sum())) < 0.3


def test_rows_are_sought_without_themselves():
    X = np.linspace(0, 4, 9)[:, None]
    rows = np.column_stack([X[:, 0], X[:, 0] ** 2])
    partial = rows[[4, 6]].copy()
    partial[0, 0] = np.nan
    own = np.array([4, 6])
    start = nearest_other_images(partial, rows, own)
    assert not (start == own).any()

    def image(places, asked):
        return np.column_stack([places[:, 0], places[:, 0] ** 2])

    found = seek_places(partial, X[start], np.ones(1), image)
    np.testing.assert_allclose(found, X[own], atol=1e-3)


def test_what_a_map_leaves_open_is_said(arc):
    left = arc.left_open()
    residuals = TRAIN - arc._regress_without(arc.embedding_, arc.member_)
    total = ((TRAIN - TRAIN.mean(axis=0)) ** 2).sum()
    assert left.share == pytest.approx((residuals**2).sum() / total)
    np.testing.assert_allclose(left.features, np.sqrt((residuals**2).mean(axis=0)))
    assert left.warning() == ""
    noise = np.random.default_rng(0).normal(size=(60, 20))
    model = UKR(1, random_state=0, max_iter=5).fit(noise)
    assert "of the variance open" in model.left_open().warning()
    assert "no better than the mean" in open_share_warning(1.22)
    landmarks = UKR(1, landmarks=10, random_state=0, max_iter=5).fit(TRAIN)
    with pytest.raises(ValueError, match="does not keep the rows"):
        landmarks.left_open()
