"""What is noise in rows, against the posterior mean written out and noise that is known."""

from __future__ import annotations

import numpy as np
import pytest

from twofold.noise import FactorModel, Gaussians, condition
from twofold.noise.denoising import noise_variance, squares_along, without_noise


def gaussians(n, D, r, seed):
    random = np.random.default_rng(seed)
    return Gaussians(
        random.normal(size=(n, D)), random.normal(size=(n, D, r)), random.uniform(0.5, 2, (n, D))
    )


def test_what_is_left_is_the_posterior_mean():
    random = np.random.default_rng(0)
    W, noise, mean = random.normal(size=(5, 2)), random.uniform(0.5, 2, 5), random.normal(size=5)
    Y = random.normal(size=(3, 5))
    Y[1, [0, 3]] = np.nan
    model = FactorModel(mean, W, noise)
    found = condition(Y, model.repeated(3))
    cleaned = without_noise(Y, found.means, found.variances, noise)
    for y, z in zip(Y, cleaned, strict=True):
        o = ~np.isnan(y)
        S = (W @ W.T)[np.ix_(o, o)] + np.diag(noise[o])
        np.testing.assert_allclose(z, mean + (W @ W.T)[:, o] @ np.linalg.solve(S, (y - mean)[o]))


def test_more_noise_than_entries_vary_leaves_what_is_expected():
    Y, means = np.array([[1.0, 2.0]]), np.array([[0.0, 5.0]])
    np.testing.assert_array_equal(
        without_noise(Y, means, np.ones((1, 2)), np.array([9, 0])), [[0, 2]]
    )


@pytest.mark.parametrize("r", [2, 9])  # by factors, and by columns
def test_squares_are_those_along_the_columns_of_the_precision(r):
    g = gaussians(4, 6, r, 1)
    Y = np.random.default_rng(2).normal(size=(4, 6))
    Y[2, 1] = np.nan
    found = squares_along(Y, g)
    for i in range(4):
        o = np.flatnonzero(~np.isnan(Y[i]))
        S = g.factors[i] @ g.factors[i].T + np.diag(g.variances[i])
        P = np.linalg.inv(S[np.ix_(o, o)])
        directions = P / np.linalg.norm(P, axis=0)
        np.testing.assert_allclose(found[i, o], ((Y[i] - g.means[i])[o] @ directions) ** 2)
    assert np.isnan(found[2, 1])


@pytest.mark.parametrize("sigma", [0.1, 1.0])
def test_the_noise_is_found_and_the_right_neighbourhood(sigma):
    random = np.random.default_rng(3)
    W = random.normal(size=(20, 3))
    Y = random.normal(size=(800, 3)) @ W.T + sigma * random.normal(size=(800, 20))
    right = FactorModel(np.zeros(20), W, np.full(20, sigma**2))
    wrong = FactorModel(np.zeros(20), W[:, :1], np.full(20, 2.0))
    asked = []

    def around(rows, k):
        asked.append(k)
        return (right if k == 15 else wrong).repeated(len(rows))

    assert noise_variance(Y, [15, 60], around) == pytest.approx(sigma**2, rel=0.15)
    assert set(asked) == {15, 60}


def test_columns_that_are_missing_and_single_rows_say_nothing():
    model = FactorModel(np.zeros(3), np.zeros((3, 0)), np.ones(3))

    def around(rows, k):
        return model.repeated(len(rows))

    Y = np.random.default_rng(4).normal(size=(300, 3))
    Y[:, 1] *= 0.1
    Y[:, 2] = np.nan
    assert noise_variance(Y, [0], around) == pytest.approx(0.01, rel=0.25)
    assert noise_variance(Y[:1], [0], around) == 0
