"""A request to stop ends the whole fit, whatever stage it is in."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

import twofold.landmarks.choice as choice
import twofold.ukr.landmark_fitting as landmark_fitting
import twofold.ukr.projection as projection
from twofold import UKR, upgrade
from twofold.datasets import make_half_circle
from twofold.losses import EpsilonInsensitive, Huber
from twofold.ukr import starts
from twofold.ukr.starts import Candidates

SAMPLE = make_half_circle(80, noise=0.2, random_state=0)
WAYS = {
    "linear start": {"init": "pca"},
    "landmarks": {"landmarks": 20},
    "smoothest": {"regularization": "smoothest", "loss": EpsilonInsensitive(0.3)},
    "trimmed": {"loss": Huber(trim=2)},
    "trimmed landmarks": {"loss": Huber(trim=2), "landmarks": 20},
}


@pytest.mark.parametrize("way", WAYS)
def test_a_callback_stops_every_stage(way):
    calls = []

    def stop_at_third(event):
        calls.append(event)
        return len(calls) == 3

    made = {"max_iter": 30, "random_state": 0, "callbacks": [stop_at_third]}
    model = UKR(1, **made, **WAYS[way]).fit(SAMPLE.Y)
    assert model.stop_reason_ == "callback"
    assert len(calls) <= 4


@pytest.mark.parametrize("n", [80, 700])
@pytest.mark.parametrize("max_iter", [1, 3, 20])
def test_max_iter_bounds_all_ways_from_a_linear_start(n, max_iter):
    calls = []
    Y = make_half_circle(n, noise=0.2, random_state=0).Y
    how = {"init": "pca", "max_iter": max_iter, "callbacks": [lambda event: calls.append(event)]}
    model = UKR(1, random_state=0, **how).fit(Y)
    assert max_iter // 2 <= model.n_iter_ <= len(calls) <= max_iter


@pytest.mark.parametrize("max_iter", [1, 3, 20])
@pytest.mark.parametrize("is_large", [False, True])
def test_max_iter_bounds_landmarks_alone_and_with_rows(max_iter, is_large, monkeypatch):
    calls = []
    if is_large:
        monkeypatch.setattr(landmark_fitting, "MANY_ROWS", 0)
    how = {"init": "isomap", "max_iter": max_iter, "callbacks": [lambda event: calls.append(event)]}
    UKR(1, landmarks=20, random_state=0, **how).fit(SAMPLE.Y)
    assert 1 <= len(calls) <= max_iter


INTERRUPTED = {
    "choosing": (choice, "_find_means"),
    "rim": (landmark_fitting, "_outermost"),
    "adapting": (landmark_fitting.Adaptation, "adapt"),
    "placing": (projection, "levenberg_marquardt"),
}


@pytest.mark.parametrize(
    ("stage", "checkpoint"),
    [
        *[(stage, False) for stage in INTERRUPTED],
        ("placing", True),
        *[pytest.param(s, True, marks=pytest.mark.slow) for s in ("choosing", "rim", "adapting")],
    ],
)
def test_an_interrupt_of_a_landmark_fit_keeps_a_model(stage, checkpoint, monkeypatch, tmp_path):
    Y = make_half_circle(600, noise=0.2, random_state=1).Y
    made = {"landmarks": 200, "max_iter": 5, "random_state": 0}
    if checkpoint:
        made["checkpoint"] = tmp_path / "kept"
    where, name = INTERRUPTED[stage]
    original, calls = getattr(where, name), []

    def interrupt(*given, **options):
        # Rows are placed on the way, too: here all of them are, in the end.
        calls.append(0)
        if stage == "placing" and len(given[1]) != projection.N_STARTS * len(Y):
            return original(*given, **options)
        monkeypatch.setattr(where, name, original)
        raise KeyboardInterrupt

    monkeypatch.setattr(where, name, interrupt)
    monkeypatch.setattr(projection, "ROWS_AT_A_TIME", len(Y))
    monkeypatch.setattr(landmark_fitting, "RING", 0.0)
    with pytest.warns(ConvergenceWarning, match="Interrupted"):
        model = UKR(2, **made).fit(Y)
    assert calls
    assert model.stop_reason_ == "interrupted"
    assert len(model.data_) == 200
    assert model.embedding_.shape == (600, 2)
    # Rough places are close to where rows belong, whatever there was to place them on.
    images = model.inverse_transform(model.embedding_)
    rough = ((images - Y) ** 2).sum(axis=1).mean()
    assert -model.score(Y) <= rough < 0.2 * Y.var(axis=0).sum()
    if checkpoint:
        whole = UKR(2, **{**made, "checkpoint": None}).fit(Y)
        np.testing.assert_array_equal(model.fit(Y).embedding_, whole.embedding_)
        assert not made["checkpoint"].exists()


INTERRUPTED_AT = {
    "candidates": (Candidates, "__init__"),
    "embeddings": (Candidates, "_plan"),
    "scaling": (starts, "common_scale"),
    "placing": (Candidates, "place"),
}


@pytest.mark.parametrize("init", ["auto", "isomap"])
@pytest.mark.parametrize("where", INTERRUPTED_AT)
def test_an_interrupt_while_starts_are_sought_leaves_a_model(where, init, monkeypatch):
    owner, name = INTERRUPTED_AT[where]
    whole, is_first = getattr(owner, name), [True]

    def interrupted_once(*args, **kwargs):
        if is_first.pop(0) if is_first else False:
            raise KeyboardInterrupt
        return whole(*args, **kwargs)

    monkeypatch.setattr(owner, name, interrupted_once)
    monkeypatch.setattr(starts, "MAX_REPRESENTATIVES", 60)  # so that rows are placed
    with pytest.warns(ConvergenceWarning, match="Interrupted after 0 iterations"):
        model = UKR(1, init=init, random_state=0).fit(SAMPLE.Y)
    assert not is_first
    assert model.stop_reason_ == "interrupted"
    error = ((model.reconstruct(SAMPLE.Y) - SAMPLE.Y) ** 2).sum()
    assert error < 0.5 * ((SAMPLE.Y - SAMPLE.Y.mean(axis=0)) ** 2).sum()


def test_tolerances_wider_than_the_data_are_told():
    model = UKR(
        1, regularization="smoothest", loss=EpsilonInsensitive(100.0), max_iter=30, random_state=0
    )
    with pytest.warns(UserWarning, match="wider than the data"):
        model.fit(SAMPLE.Y)


def test_pictures_are_neither_smoothed_nor_trimmed():
    with pytest.raises(TypeError, match="refine=True"):
        upgrade(SAMPLE.latent, SAMPLE.Y, regularization="smoothest", loss=EpsilonInsensitive(0.1))
    with pytest.raises(TypeError, match="`trim`"):
        upgrade(SAMPLE.latent, SAMPLE.Y, loss=Huber(trim=4))
    found = upgrade(SAMPLE.latent, SAMPLE.Y, loss="huber").loss_.delta
    assert 0.05 < found < 0.6
