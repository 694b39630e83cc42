"""A wish to stop ends the whole fit, whatever stage it is in."""

from __future__ import annotations

import pytest

from twofold import UKR, upgrade
from twofold.datasets import make_half_circle
from twofold.losses import EpsilonInsensitive, Huber

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
