from __future__ import annotations

import numpy as np
import pytest
from sklearn.base import clone

from twofold import UKR, load
from twofold.datasets import make_half_circle
from twofold.losses import Huber

N, N_WRONG = 150, 30


@pytest.fixture(scope="module")
def rows():
    sample = make_half_circle(N, noise=0.2, random_state=2)
    rng = np.random.default_rng(2)
    wrong = rng.permutation(N)[:N_WRONG]
    Y = sample.Y.copy()
    Y[wrong] += 6 * rng.normal(size=(N_WRONG, 2))
    return sample, Y, wrong


@pytest.fixture(scope="module")
def model(rows):
    return UKR(1, loss=Huber(trim=4), max_iter=60, random_state=0).fit(rows[1])


@pytest.mark.slow
def test_wrong_rows_take_no_part(rows, model):
    _, Y, wrong = rows
    left_out = model.member_ < 0
    right = np.setdiff1d(np.arange(N), wrong)
    assert left_out[wrong].mean() > 0.5
    assert left_out[right].mean() < 0.05
    assert len(model.data_) == len(model.weights_) == len(model.latent_) == (~left_out).sum()
    np.testing.assert_array_equal(model.data_[model.member_[~left_out]], Y[~left_out])
    np.testing.assert_array_equal(model.embedding_, model.transform(Y))


@pytest.mark.slow
def test_the_manifold_is_that_of_the_right_rows(rows, model):
    sample, Y, wrong = rows
    right = np.delete(sample.Y, wrong, axis=0)
    plain = UKR(1, max_iter=60, random_state=0).fit(Y)
    clean = UKR(1, max_iter=60, random_state=0).fit(right)
    trimmed, dirty, best = (
        sample.distance(found.reconstruct(right)).mean() for found in (model, plain, clean)
    )
    assert trimmed < 1.15 * best
    assert trimmed < 0.8 * dirty


def test_the_model_is_saved_with_the_loss(model, tmp_path):
    model.save(tmp_path / "model")
    again = load(tmp_path / "model")
    assert again.loss.trim == 4
    np.testing.assert_array_equal(again.embedding_, model.embedding_)
    assert clone(model).loss == Huber(trim=4)


def test_with_landmarks_and_missing_entries(rows):
    sample, Y, wrong = rows
    Y = Y.copy()
    Y[np.random.default_rng(1).random(N) < 0.1, 0] = np.nan
    model = UKR(
        1, loss=Huber(trim=4), landmarks=25, max_iter=30, random_state=0, init="isomap"
    ).fit(Y)
    assert np.isfinite(model.embedding_).all()
    assert (model.member_ < 0).all()
    plain = UKR(1, landmarks=25, max_iter=30, random_state=0, init="isomap").fit(Y)
    right = np.delete(sample.Y, wrong, axis=0)
    trimmed, dirty = (sample.distance(found.reconstruct(right)).mean() for found in (model, plain))
    assert trimmed < 0.7 * dirty


def test_rows_as_a_whole_with_more_columns_than_rows(rows):
    _, Y, wrong = rows
    wide = Y @ np.random.default_rng(0).normal(size=(2, N + 10))
    loss = Huber(trim=4, per="vector")
    model = UKR(1, loss=loss, max_iter=20, random_state=0, init="isomap").fit(wide)
    assert model.trimmed_[wrong].mean() > 0.5
    assert np.delete(model.trimmed_, wrong).mean() < 0.1
    with pytest.raises(ValueError, match="Leave `trim` or `data_kernel` out"):
        UKR(1, loss=loss, data_kernel="rbf").fit(Y)


def test_nothing_to_trim_is_an_ordinary_fit():
    Y = make_half_circle(80, noise=0.1, random_state=0).Y
    made = {"max_iter": 20, "random_state": 0, "init": "lle"}
    trimmed = UKR(1, loss=Huber(trim=50), **made).fit(Y)
    plain = UKR(1, loss="huber", **made).fit(Y)
    np.testing.assert_array_equal(trimmed.embedding_, plain.embedding_)


@pytest.mark.parametrize("trim", [1, 0.5, -2, np.inf, "4"])
def test_senseless_bounds_are_refused(trim):
    with pytest.raises(ValueError, match="`trim` must be a number above 1"):
        Huber(trim=trim)


@pytest.mark.slow
def test_which_rows_were_left_out_is_said(rows, model):
    _, Y, wrong = rows
    np.testing.assert_array_equal(model.trimmed_, model.member_ < 0)
    twice = UKR(1, loss=Huber(trim=4), max_iter=60, random_state=0).fit(np.repeat(Y, 2, axis=0))
    np.testing.assert_array_equal(twice.trimmed_[::2], twice.trimmed_[1::2])
    with_landmarks = UKR(1, loss=Huber(trim=4), landmarks=25, max_iter=30, random_state=0).fit(Y)
    assert with_landmarks.trimmed_[wrong].mean() > 0.5
    assert np.delete(with_landmarks.trimmed_, wrong).mean() < 0.1
