"""Slopes of local linear regressions, against the formula written out and known slopes."""

from __future__ import annotations

import numpy as np
import pytest

from twofold import UKR
from twofold.noise.slopes import MOST_TRIED, LocalSlopes, Trial, half_hidden


def noisy_plane(n, noise, seed=0):
    random = np.random.default_rng(seed)
    X = random.uniform(-6, 6, (n, 2))
    J = np.array([[1.0, -0.5], [0.2, 2.0], [0.0, 0.0]])
    return X, J, X @ J.T + 3 + noise * random.normal(size=(n, 3))


def slopes_of(Y, X):
    """Return slopes of rows whose places are known, so that half of the entries finds them."""
    own = np.arange(0, len(Y), -(-len(Y) // MOST_TRIED))
    return LocalSlopes(Y, X, Trial(own, X[own], half_hidden(len(own), Y.shape[1])))


def test_slopes_are_those_of_a_weighted_least_squares_fit():
    X, _, Y = noisy_plane(40, 0.5)
    found = slopes_of(Y, X)
    x = np.array([0.3, -0.2])
    squares = ((X - x) ** 2).sum(axis=1)
    near = np.argsort(squares)[: found.k + 1]
    w = np.maximum(1 - squares[near] / squares[near].max(), 1e-6)
    Z = np.column_stack([np.ones(len(near)), X[near] - x])
    inverse = np.linalg.inv(Z.T @ np.diag(w) @ Z)
    best = inverse @ Z.T @ np.diag(w) @ Y[near]
    left = Y[near] - Z @ best
    free = 1 - 3 / (w.sum() ** 2 / (w**2).sum())
    variance = w @ left**2 / w.sum() / free
    spread = np.diag(inverse @ Z.T @ np.diag(w**2) @ Z @ inverse)[1:]
    at = found.at(x[None])
    np.testing.assert_allclose(at.slopes[0], best[1:].T, rtol=1e-5)
    np.testing.assert_allclose(at.errors[0] ** 2, np.outer(variance, spread), rtol=1e-5)


def test_standard_errors_are_those_of_repeated_noise():
    ratios = []
    for seed in range(10):
        X, J, Y = noisy_plane(150, 0.5, seed)
        found = slopes_of(Y, X)
        at = found.at(np.array([[0.0, 0.0], [2.0, 1.0]]))
        ratios.append((at.slopes - J) / at.errors)
    assert 0.8 < np.sqrt(np.mean(np.square(ratios))) < 1.25


def test_bends_take_narrow_neighbourhoods_and_planes_wide_ones():
    random = np.random.default_rng(0)
    x = random.uniform(0, 30, (750, 1))
    bent = np.column_stack([np.sin(x[:, 0] / 2.5), np.cos(x[:, 0] / 2.5)])
    noise = 0.05 * random.normal(size=(750, 2))
    flat = np.column_stack([x[:, 0], -x[:, 0]]) / 10
    assert slopes_of(flat + noise, x).k > 2 * slopes_of(bent + noise, x).k


def test_slopes_of_a_noisy_map_are_steadier_than_its_derivative():
    """A Gaussian of two dimensions with noise: no column can change more than across the map."""
    random = np.random.default_rng(0)
    Y = random.normal(size=(400, 2)) @ random.normal(size=(2, 8)) + 0.7 * random.normal(
        size=(400, 8)
    )
    model = UKR(2, random_state=0, max_iter=20).fit(Y)
    X = model.embedding_[:200]
    slopes, std = model.slopes(X, return_std=True)
    assert slopes.shape == std.shape == (200, 8, 2)

    def change(J):
        across = J * model.embedding_.std(axis=0)
        return np.sqrt((across**2).mean(axis=0).sum(axis=1)) / Y.std(axis=0)

    assert change(slopes).mean() < 0.75 * change(model.jacobian(X)).mean()
    assert change(slopes).mean() < 1.5
    landmarks = UKR(1, landmarks=10, random_state=0, max_iter=5).fit(Y)
    assert landmarks.slopes(X[:, :1]).shape == (len(X), Y.shape[1], 1)
    del landmarks.sample_rows_
    with pytest.raises(ValueError, match="jacobian"):
        landmarks.slopes(X[:, :1])
