"""What is noise in residuals, against the formula written out and factors that are known."""

from __future__ import annotations

import numpy as np

from twofold.noise import FactorModel
from twofold.noise.shared_residuals import fit_shared, without_noise


def test_what_is_left_is_the_posterior_mean():
    random = np.random.default_rng(0)
    W, psi, mean = random.normal(size=(5, 2)), random.uniform(0.5, 2, 5), random.normal(size=5)
    R = random.normal(size=(3, 5))
    S = W @ W.T + np.diag(psi)
    wanted = mean + (W @ W.T @ np.linalg.solve(S, (R - mean).T)).T
    model = FactorModel(mean, W, psi)
    np.testing.assert_allclose(without_noise(R, model), wanted)
    R[1, [0, 3]] = np.nan
    o = [1, 2, 4]
    known = np.linalg.solve(S[np.ix_(o, o)], (R[1] - mean)[o])
    np.testing.assert_allclose(without_noise(R, model)[1], mean + (W @ W.T)[:, o] @ known)


def test_factors_are_found_only_where_there_are_any():
    random = np.random.default_rng(1)
    alone = random.normal(size=(600, 8)) * np.arange(1, 9)
    assert fit_shared(alone, np.ones(600), 0).loadings.shape[1] == 0
    W = random.normal(size=(8, 2))
    model = fit_shared(
        random.normal(size=(1500, 2)) @ W.T + 0.5 * random.normal(size=(1500, 8)), np.ones(1500), 0
    )
    assert model.loadings.shape[1] == 2
    np.testing.assert_allclose(model.variances, 0.25, rtol=0.25)
