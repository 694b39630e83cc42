"""Particle swarm embedding (PSEA)."""

from __future__ import annotations

import numpy as np
import pytest
from oracles import unn_continuous as oracle
from sklearn.datasets import load_digits

from twofold.unn.continuous import ContinuousPoints
from twofold.unn.searches import Swarm


def embed(Y, search, K=5, q=2, seed=3):
    points = ContinuousPoints(q, search, n_neighbors=K, rng=np.random.default_rng(seed))
    points.insert(Y)
    return points.latent


@pytest.mark.parametrize("include_self", [True, False])
@pytest.mark.parametrize("pull", [(0.5, 0.5), (1.2, 0.1)])
def test_embeds_as_the_algorithm_says(include_self, pull):
    Y = np.random.default_rng(0).normal(size=(40, 4))
    X = embed(Y, Swarm(12, pull, include_self=include_self))
    slow = oracle.Points(Y, 2, 5, include_self=include_self)
    np.testing.assert_allclose(X, slow.swarm(12, pull, np.random.default_rng(3)), atol=1e-9)


def test_the_start_is_no_place_to_stay():
    # A row next to its nearest one is reconstructed so well from there that none would ever leave.
    Y = load_digits(n_class=6).data[:150]
    X = embed(Y, Swarm())
    assert len(np.unique(X, axis=0)) == len(Y)
    assert oracle.normalized_dsre(Y, X, 5) < 1.67 * np.sqrt(300 / 150) * 0.8


# Kramer 2013, table 6.3: 0.94 / 0.49 and 1.20 / 0.42 over 25 runs.
@pytest.mark.parametrize(("K", "dsre", "shared"), [(5, 0.94, 0.49), (10, 1.2, 0.42)])
def test_digits_come_out_as_in_the_book(K, dsre, shared):
    Y = load_digits(n_class=6).data[:300]
    found = [embed(Y, Swarm(), K, seed=seed) for seed in range(3)]
    assert np.mean([oracle.normalized_dsre(Y, X, K) for X in found]) == pytest.approx(
        dsre, rel=0.06
    )
    measured = np.mean([oracle.shared_neighbors(Y, X, K) for X in found])
    assert measured == pytest.approx(shared, abs=0.05)


@pytest.mark.parametrize("pull", [(1.0,), 0.5, (-1.0, 0.5), (0.5, float("nan")), "ab"])
def test_pull_must_be_two_numbers(pull):
    with pytest.raises(ValueError, match="two numbers"):
        Swarm(pull=pull)
