"""Gaussians of tables and places against whole covariances, row by row."""

from __future__ import annotations

import numpy as np
import pytest
from oracles.gaussians import condition_row, factor_log_likelihood, local_gaussian

from twofold.noise import (
    FactorModel,
    Gaussians,
    LocalGaussians,
    condition,
    factor_model,
    fit_factors,
)
from twofold.noise.local_gaussians import ROWS_OF_PRIOR


def rows_with_gaps(n, D, q=2, share=0.25, seed=0):
    random = np.random.default_rng(seed)
    Y = random.normal(size=(n, q)) @ random.normal(size=(q, D)) + 0.4 * random.normal(size=(n, D))
    gaps = random.random((n, D)) < share
    gaps[gaps.all(axis=1)] = False
    return Y, np.where(gaps, np.nan, Y)


@pytest.mark.parametrize("r", [2, 9], ids=["by factors", "by columns"])
def test_conditionals_are_those_of_whole_covariances(r):
    random = np.random.default_rng(1)
    _, Y = rows_with_gaps(20, 6)
    gaussians = Gaussians(
        random.normal(size=(20, 6)),
        random.normal(size=(20, 6, r)),
        random.uniform(0.1, 1, (20, 6)),
    )
    found = condition(Y, gaussians)
    for i, y in enumerate(Y):
        S = gaussians.factors[i] @ gaussians.factors[i].T + np.diag(gaussians.variances[i])
        means, variances, log_density, distance = condition_row(y, gaussians.means[i], S)
        np.testing.assert_allclose(found.means[i], means, rtol=1e-9)
        np.testing.assert_allclose(found.variances[i], variances, rtol=1e-9)
        np.testing.assert_allclose(found.log_density[i], log_density, rtol=1e-9)
        np.testing.assert_allclose(found.distances[i], distance, rtol=1e-9)
    alone = condition(Y[3:4], gaussians.part(slice(3, 4)))
    np.testing.assert_array_equal(alone.means[0], found.means[3])


def test_em_ends_at_a_maximum_of_the_likelihood():
    _, Y = rows_with_gaps(400, 5)
    model = fit_factors(Y)
    highest = factor_log_likelihood(Y, model.mean, model.loadings, model.variances)
    random = np.random.default_rng(0)
    for _ in range(10):
        W = model.loadings + 0.2 * random.normal(size=model.loadings.shape)
        own = model.variances * np.exp(0.4 * random.normal(size=5))
        assert factor_log_likelihood(Y, model.mean, W, own) < highest
        mean = model.mean + 0.2 * random.normal(size=5)
        assert factor_log_likelihood(Y, mean, model.loadings, model.variances) < highest


def test_the_gaussian_of_a_table_is_found_in_spite_of_gaps():
    random = np.random.default_rng(3)
    W, own = random.normal(size=(8, 3)), random.uniform(0.2, 1, 8)
    Y = 5 + random.normal(size=(4000, 3)) @ W.T + random.normal(size=(4000, 8)) * np.sqrt(own)
    Y[random.random(Y.shape) < 0.3] = np.nan
    model = fit_factors(Y)
    truth = W @ W.T + np.diag(own)
    found = model.loadings @ model.loadings.T + np.diag(model.variances)
    assert np.abs(found - truth).max() < 0.12 * np.abs(truth).max()
    np.testing.assert_allclose(model.mean, 5, atol=0.15)


def test_weights_stand_for_copies():
    _, Y = rows_with_gaps(60, 4)
    weights = np.random.default_rng(0).integers(1, 4, 60).astype(float)
    one, other = fit_factors(Y, weights), fit_factors(np.repeat(Y, weights.astype(int), axis=0))
    for name in ("mean", "variances"):
        np.testing.assert_allclose(getattr(one, name), getattr(other, name), rtol=1e-6)


@pytest.mark.parametrize("k", [5, 12])
def test_local_gaussians_are_what_the_formula_says(k):
    random = np.random.default_rng(2)
    rows, _ = rows_with_gaps(40, 4)
    doubt = np.where(random.random(rows.shape) < 0.2, random.random(rows.shape), 0)
    places, farther = random.normal(size=(40, 2)), random.random(40)
    prior = FactorModel(np.zeros(4), random.normal(size=(4, 1)), random.uniform(0.5, 1, 4))
    prior_covariance = prior.loadings @ prior.loadings.T + np.diag(prior.variances)
    local = LocalGaussians(rows, doubt, places, prior, farther)
    asked = random.normal(size=(6, 2))
    neighbors = local.neighbors(asked, k)
    found = local.around(neighbors, local.weights(asked, neighbors))
    for i, place in enumerate(asked):
        mean, covariance = local_gaussian(
            place, places, rows, doubt, prior_covariance, k, 4 * ROWS_OF_PRIOR, farther
        )
        np.testing.assert_allclose(found.means[i], mean, rtol=1e-9)
        S = found.factors[i] @ found.factors[i].T + np.diag(found.variances[i])
        np.testing.assert_allclose(S, covariance, rtol=1e-9, atol=1e-12)


def test_no_row_is_its_own_neighbor():
    rows, _ = rows_with_gaps(30, 3)
    rows[7] = rows[11]  # equal rows stand for each other
    local = LocalGaussians(rows, np.zeros_like(rows), rows, fit_factors(rows))
    found = local.neighbors(rows, 6, np.arange(30))
    assert found.shape == (30, 7)
    assert not (found == np.arange(30)[:, None]).any()
    assert 11 in found[7]
    assert 7 in found[11]


def test_rows_that_are_all_equal_have_a_gaussian():
    rows = np.ones((9, 3))
    local = LocalGaussians(rows, np.zeros_like(rows), rows, fit_factors(rows))
    neighbors = local.neighbors(rows[:1], 4)
    found = condition(
        np.array([[1.0, np.nan, 1.0]]), local.around(neighbors, local.weights(rows[:1], neighbors))
    )
    np.testing.assert_allclose(found.means, 1)
    assert np.isfinite(found.log_density).all()


def test_neighbors_that_are_equally_far_do_not_count_less_than_nothing():
    # The last of the neighbours may seem nearer than another one by a rounding error.
    random = np.random.default_rng(0)
    circle = random.normal(size=(300, 3))
    circle /= np.linalg.norm(circle, axis=1, keepdims=True)
    places = np.concatenate([np.zeros((1, 3)), circle, 0.5 * circle[:20]])
    local = LocalGaussians(places, np.zeros_like(places), places, fit_factors(places))
    for k in range(25, 200, 7):
        neighbors = local.neighbors(places[:1], k)
        shuffled = np.concatenate([neighbors[:, :1], neighbors[:, :0:-1]], axis=1)
        for order in (neighbors, shuffled):
            assert (local.weights(places[:1], order) >= 0).all()


@pytest.mark.parametrize("n", [80, 6])
def test_a_step_on_a_whole_table_is_that_on_one_with_gaps(n):
    random = np.random.default_rng(3)
    Y = random.normal(size=(n, 3)) @ random.normal(size=(3, 7)) + random.normal(size=(n, 7))
    weights = random.uniform(0.5, 2, n)
    R = Y - weights @ Y / weights.sum()
    loadings, variances = random.normal(size=(7, 4)), random.uniform(0.5, 1, 7)
    model = factor_model.FactorModel(np.zeros(7), loadings, variances)
    observed, floor = np.ones(Y.shape, bool), np.full(7, 1e-6)
    wanted = factor_model._step(model, factor_model._Rows.parts(R, observed, weights, 4), floor)
    found = factor_model._step_of_whole(model, factor_model._covariance(R, weights), floor)
    np.testing.assert_allclose(found.mean, wanted.mean, rtol=1e-10, atol=1e-12)
    np.testing.assert_allclose(found.loadings, wanted.loadings, rtol=1e-8)
    np.testing.assert_allclose(found.variances, wanted.variances, rtol=1e-9)


@pytest.mark.parametrize("share", [0, 0.03, 0.4])
@pytest.mark.parametrize("r", [0, 1, 4])
def test_one_gaussian_of_all_rows_is_the_same_gaussian_for_each(r, share, monkeypatch):
    random = np.random.default_rng(4)
    _, Y = rows_with_gaps(300, 7, share=share)
    model = FactorModel(
        random.normal(size=7), random.normal(size=(7, r)), random.uniform(0.1, 1, 7)
    )
    wanted, found = condition(Y, model.repeated(len(Y))), model.condition(Y)
    monkeypatch.setattr(factor_model, "AT_A_TIME", 500)
    for few in (model.condition(Y), model.condition(Y[::-1]).part(np.arange(300)[::-1])):
        for name in ("means", "variances", "log_density", "distances"):
            np.testing.assert_allclose(getattr(found, name), getattr(wanted, name), rtol=1e-11)
            np.testing.assert_array_equal(getattr(few, name), getattr(found, name))
    for i in range(0, 300, 30):
        alone = model.condition(Y[i : i + 1])
        np.testing.assert_array_equal(alone.means[0], found.means[i])
        np.testing.assert_array_equal(alone.variances[0], found.variances[i])
        assert alone.log_density[0] == found.log_density[i]


@pytest.mark.parametrize("share", [0.05, 0.7], ids=["few gaps", "many gaps"])
def test_a_step_on_a_table_with_gaps_is_what_the_formulas_say(share, monkeypatch):
    random = np.random.default_rng(5)
    _, partial = rows_with_gaps(60, 5, share=share)
    weights, floor = random.uniform(0.5, 2, 60), np.full(5, 1e-6)
    W, own = random.normal(size=(5, 2)), random.uniform(0.5, 1, 5)
    model = FactorModel(random.normal(size=5), W, own)
    squares, products, total = np.zeros((5, 3, 3)), np.zeros((5, 3)), np.zeros(5)
    for y, weight in zip(partial, weights, strict=True):
        o = ~np.isnan(y)
        spread = np.linalg.inv(np.eye(2) + (W[o].T / own[o]) @ W[o])
        z1 = np.append(spread @ (W[o].T / own[o]) @ (y - model.mean)[o], 1)
        second = np.outer(z1, z1)
        second[:2, :2] += spread
        squares[o] += weight * second
        products[o] += weight * y[o, None] * z1
        total[o] += weight * y[o] ** 2
    ridge = np.diag([2 * factor_model.ROWS_OF_DOUBT] * 2 + [0])
    monkeypatch.setattr(factor_model, "AT_A_TIME", 300)
    R, observed = np.where(np.isnan(partial), 0, partial), ~np.isnan(partial)
    found = factor_model._step(model, factor_model._Rows.parts(R, observed, weights, 2), floor)
    for d in range(5):
        b = np.linalg.solve(squares[d] + ridge, products[d])
        left = total[d] - 2 * b @ products[d] + b @ squares[d] @ b
        np.testing.assert_allclose(np.append(found.loadings[d], found.mean[d]), b, rtol=1e-9)
        np.testing.assert_allclose(found.variances[d], left / squares[d, 2, 2], rtol=1e-9)
