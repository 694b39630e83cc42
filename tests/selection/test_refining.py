"""Improving an embedding, by reconstruction and by evidence."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import approx_fprime
from sklearn.manifold import Isomap

from twofold.datasets import make_fish_bowl
from twofold.selection import procrustes_distance, refine
from twofold.selection.evidence import GaussianProcess, descend, latent_value_and_grad

BOWL = make_fish_bowl(150, noise=0.1, random_state=0)
START = Isomap(n_neighbors=10).fit_transform(BOWL.Y)


def test_ukr_lowers_the_reconstruction_error():
    found = refine(BOWL.Y, START, max_iter=30)
    assert found.after["reconstruction_error"] < 0.3 * found.before["reconstruction_error"]
    np.testing.assert_array_equal(found.model.embedding_, found.embedding)
    assert list(found.table.index) == ["before", "after"]
    assert "nlml_per_entry" in str(found)


def test_evidence_finds_the_bowl():
    found = refine(BOWL.Y, START, by="evidence", max_iter=30)
    assert found.after["nlml_per_entry"] < found.before["nlml_per_entry"] - 1
    before = procrustes_distance(START, BOWL.latent)
    assert procrustes_distance(found.embedding, BOWL.latent) < 0.6 * before
    # It is still the picture it was, in its units and not turned round.
    assert found.embedding.std(axis=0) == pytest.approx(START.std(axis=0), rel=0.3)
    assert np.corrcoef(found.embedding[:, 0], START[:, 0])[0, 1] > 0.8
    assert found.model.inverse_transform(found.embedding).shape == BOWL.Y.shape


def test_gradient_of_the_latent_process():
    rng = np.random.default_rng(0)
    Y, X = rng.normal(size=(11, 3)), rng.normal(size=(11, 2))
    place = np.log([0.8, 0.2])

    def value(flat: np.ndarray) -> float:
        return latent_value_and_grad(Y, flat[:-2].reshape(11, 2), flat[-2:])[0]

    _, by_latent, by_place = latent_value_and_grad(Y, X, place)
    flat = np.concatenate([X.ravel(), place])
    expected = approx_fprime(flat, value, 1e-6)
    np.testing.assert_allclose(
        np.concatenate([by_latent.ravel(), by_place]), expected, rtol=1e-3, atol=1e-4
    )


def test_value_is_that_of_the_evidence_and_the_prior():
    rng = np.random.default_rng(0)
    Y, X = rng.normal(size=(20, 3)), rng.normal(size=(20, 2))
    place = np.log([0.8, 0.2])
    nlml, _ = GaussianProcess(Y, X).value(place)
    assert latent_value_and_grad(Y, X, place)[0] == pytest.approx(nlml + 0.5 * (X**2).sum())


def test_descent_goes_down():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(30, 2))
    Y = np.column_stack([np.sin(X[:, 0]), X[:, 1], X.sum(axis=1)])
    start, place = X + 0.3 * rng.normal(size=X.shape), np.log([1.0, 0.1])
    found = descend(Y, start, place, 20)
    assert latent_value_and_grad(Y, found, place)[0] < latent_value_and_grad(Y, start, place)[0]


def test_requests_are_checked():
    with pytest.raises(ValueError, match="'ukr', 'evidence'"):
        refine(BOWL.Y, START, by="magic")
    with pytest.raises(ValueError, match="same point"):
        refine(BOWL.Y, START[:-1])
    with pytest.raises(ValueError, match="at least 1"):
        refine(BOWL.Y, START, max_iter=0)
    with pytest.raises(ValueError, match="squares of values below"):
        refine(1e-200 * BOWL.Y, START)
    many = np.random.default_rng(0).normal(size=(1_501, 3))
    with pytest.raises(ValueError, match="1,500 rows"):
        refine(many, many[:, :2], by="evidence")
