"""Models with landmarks take new rows in: landmark vectors that fit old and new rows together."""

from __future__ import annotations

from copy import deepcopy

import numpy as np
import pytest

import twofold
from twofold import UKR, Scaled
from twofold.landmarks import Landmarks
from twofold.losses import Huber, Squared
from twofold.ukr.adaptation import take_in


def sheet(n: int, seed: int, noise: float = 0.2) -> tuple[np.ndarray, np.ndarray]:
    """Return noisy rows of a curved sheet, and where they would lie without noise."""
    rng = np.random.default_rng(seed)
    t, s = rng.uniform(0, 3, n), rng.uniform(0, 2, n)
    F = np.c_[2 * np.cos(t), 2 * np.sin(t), s, np.sin(t + s), np.cos(2 * s)]
    return F + rng.normal(scale=noise, size=F.shape), F


def model_of(Y: np.ndarray, **given: object) -> UKR:
    settings = {"landmarks": 30, "random_state": 0, "max_iter": 30, "init": "pca", **given}
    return UKR(**settings).fit(Y)


def distance(model: UKR, F: np.ndarray) -> float:
    """Return how far true points lie from the manifold, squared."""
    return -model.score(F)


@pytest.mark.parametrize("given", [{}, {"loss": Huber()}, {"degree": 1}], ids=str)
def test_new_rows_bring_the_manifold_closer_to_the_truth(given):
    model = model_of(sheet(200, 0)[0], **given)
    _, truth = sheet(500, 9)
    before = distance(model, truth)
    for seed in (1, 2, 3):
        model.partial_fit(sheet(500, seed)[0])
    assert distance(model, truth) < 0.7 * before
    assert model.embedding_.shape == (1700, 2)


def test_it_follows_a_shift_of_the_data():
    Y, truth = sheet(300, 0, 0.05)
    model = model_of(Y)
    shift = np.array([0.0, 0, 0, 0, 0.5])
    before = distance(model, truth + shift)
    model.partial_fit(sheet(3000, 1, 0.05)[0] + shift)
    assert distance(model, truth + shift) < 0.2 * before


def test_it_is_least_squares_of_all_rows_where_these_are_known():
    """Fitted to rows at given places, landmarks are what all rows together would make of them."""
    model = model_of(sheet(300, 0)[0])
    rng = np.random.default_rng(3)
    surface = model._surface
    X = model.embedding_[rng.permutation(300)] * model.latent_scale_
    old, new = X[:200], X[200:]
    B, added = surface.basis(old), surface.basis(new)
    ridge = 1e-2 * np.trace(B.T @ B) / len(B.T) * np.eye(B.shape[1])
    Y, rows = rng.normal(size=(200, 5)), rng.normal(size=(100, 5))
    first = np.linalg.solve(B.T @ B + ridge, B.T @ Y)
    both = np.linalg.solve(B.T @ B + ridge + added.T @ added, B.T @ Y + added.T @ rows)
    R = rows - added @ first
    change = take_in(surface, old, np.ones(200), (new, R, np.ones(100)), 0.0, Squared())
    assert np.allclose(first + change, both)


def test_gaps_and_weights_are_heeded():
    model = model_of(sheet(200, 0)[0])
    Y = sheet(400, 1)[0]
    gaps = Y.copy()
    gaps[::3, 2] = np.nan
    one, other, none, twin = (deepcopy(model) for _ in range(4))
    one.partial_fit(gaps)
    assert np.isfinite(one.data_).all()
    assert not np.array_equal(one.data_, model.data_)
    other.partial_fit(Y, sample_weight=np.full(400, 2.0))
    twin.partial_fit(np.concatenate([Y, Y]))
    assert np.allclose(other.data_, twin.data_)
    assert len(other.row_weights_) == 600
    before = none.data_
    none.partial_fit(Y, sample_weight=np.r_[1e-9, np.zeros(399)])
    assert np.allclose(none.data_, before, atol=1e-6)


def test_rows_of_the_fit_count_by_their_weights():
    Y, more = sheet(200, 0)[0], sheet(100, 1)[0]
    light = model_of(Y).fit(Y, sample_weight=np.full(200, 0.5)).partial_fit(more)
    plain = model_of(Y).partial_fit(more, sample_weight=np.full(100, 2.0))
    assert np.allclose(light.data_, plain.data_)


def test_saved_models_go_on(tmp_path):
    Y, more = sheet(200, 0)[0], sheet(100, 1)[0]
    model = model_of(Y).fit(Y, sample_weight=np.arange(200) % 3 + 1.0)
    model.save(tmp_path / "model")
    loaded = twofold.load(tmp_path / "model").partial_fit(more)
    assert np.array_equal(loaded.data_, model.partial_fit(more).data_)
    loaded.save(tmp_path / "model")
    assert np.array_equal(twofold.load(tmp_path / "model").transform(more), loaded.transform(more))


def test_it_begins_with_a_first_chunk_and_scaled_models_do_it_too():
    Y = sheet(400, 0)[0] * [1, 10, 1, 1, 100]
    model = Scaled(UKR(landmarks=30, random_state=0, max_iter=10, init="pca"))
    for part in np.split(Y, 4):
        model.partial_fit(part)
    assert len(model.embedding_) == 400


def test_landmarks_that_stay_where_they_are_take_nothing_in():
    model = model_of(sheet(200, 0)[0], landmarks=Landmarks(30, adapt=False))
    with pytest.raises(AttributeError) as raised:
        model.partial_fit(sheet(10, 1)[0])
    assert "new rows would change nothing" in str(raised.value.__cause__)


def test_a_bad_chunk_leaves_the_model_as_it_was():
    model = model_of(sheet(200, 0)[0])
    before = dict(model.__dict__)
    with pytest.raises(ValueError, match="row 3"):
        model.partial_fit(np.where(np.arange(50)[:, None] == 3, np.nan, sheet(50, 1)[0]))
    assert model.__dict__ == before
