"""t-SNE: forces against sums over all pairs, affinities against their definition."""

from __future__ import annotations

import numpy as np
import pytest
from oracles.sheets import curved_sheet
from sklearn.manifold import trustworthiness

from twofold.neighborhoods import tsne as module
from twofold.neighborhoods.graphs import NeighborTable, find_neighbors
from twofold.neighborhoods.tsne import TSNE_NEIGHBORS, affinities, descend, tsne


def divergence(P, X):
    """Return KL(P || Q) up to the entropy of P, over all pairs."""
    kernel = 1 / (1 + ((X[:, None] - X) ** 2).sum(axis=2))
    np.fill_diagonal(kernel, 0)
    return -float((P * np.log(np.where(kernel > 0, kernel / kernel.sum(), 1))).sum())


@pytest.mark.parametrize("q", [1, 2, 3])
def test_the_slope_of_the_potential_is_that_over_all_pairs(q, monkeypatch):
    monkeypatch.setattr(module, "SPACING", 0.3)
    X = np.random.default_rng(q).normal(size=(300, q)) * (6 if q < 3 else 3)
    gaps = X[:, None] - X
    kernel = 1 / (1 + (gaps**2).sum(axis=2))
    slope, Z = module._Field(X, n_threads=2).slope(X)
    expected = -2 * (gaps * kernel[:, :, None] ** 2).sum(axis=1)
    # What is left is the interpolation's slope where a point feels itself.
    np.testing.assert_allclose(slope, expected, atol=0.02 * np.abs(expected).max())
    assert pytest.approx(kernel.sum() - 300, rel=2e-3) == Z


@pytest.mark.parametrize("q", [1, 2, 3])
def test_forces_are_the_slope_of_the_divergence(q, monkeypatch):
    monkeypatch.setattr(module, "SPACING", 0.2)
    table = find_neighbors(curved_sheet(60), 12)
    P = affinities(table, 4.0)
    X = np.random.default_rng(q).normal(size=(60, q)) * 3
    slope, Z = module._Field(X, n_threads=1).slope(X)
    force = module._attraction(P, X, n_threads=1) + slope / (2 * Z)
    dense, step = P.toarray(), 1e-5
    for i, m in ((0, 0), (17, q - 1), (59, 0)):
        ahead, behind = X.copy(), X.copy()
        ahead[i, m] += step
        behind[i, m] -= step
        by_difference = (divergence(dense, ahead) - divergence(dense, behind)) / (2 * step)
        assert 4 * force[i, m] == pytest.approx(by_difference, abs=0.02 * np.abs(4 * force).max())


def test_affinities_have_the_perplexity_and_are_shared():
    table = find_neighbors(curved_sheet(80), 30)
    P = affinities(table, 7.0)
    assert P.sum() == pytest.approx(1)
    assert abs(P - P.T).max() < 1e-15
    weights = module._conditional(table.distances**2, np.log(7.0))
    np.testing.assert_allclose(weights.sum(axis=1), 1)
    entropy = -(weights * np.log(weights)).sum(axis=1)
    np.testing.assert_allclose(np.exp(entropy), 7.0, rtol=2e-4)
    assert (np.diff(weights, axis=1) <= 0).all()


def test_neighbours_all_as_far_away_count_alike():
    table = NeighborTable(np.ones((3, 2)), np.array([[1, 2], [0, 2], [0, 1]]))
    P = affinities(table, 1.5).toarray()
    np.testing.assert_allclose(P, (1 - np.eye(3)) / 6)


def test_steps_go_down_the_same_way_on_any_number_of_threads():
    P = affinities(find_neighbors(curved_sheet(400), 30), 10.0)
    X = np.random.default_rng(0).normal(size=(400, 2))
    one, two = (descend(P, X, 40, n_jobs=n_jobs) for n_jobs in (1, 2))
    assert one.tobytes() == two.tobytes()
    dense = P.toarray()
    assert divergence(dense, one) < 0.8 * divergence(dense, X)


def test_no_row_is_thrown_far_away():
    # Two rows that belong together start far apart, and all pull very hard.
    P = affinities(find_neighbors(curved_sheet(400), 30), 10.0) * 1e4
    X = np.random.default_rng(0).normal(size=(400, 2))
    X[0] += 1000
    before, after = (descend(P, X, steps, n_jobs=1) for steps in (6, 7))
    steps = np.linalg.norm((after - before) - (after - before).mean(axis=0), axis=1)
    assert steps.max() < 2 * module.LONGEST_STEP
    assert steps.max() > 0.5 * module.LONGEST_STEP


@pytest.mark.parametrize("q", [1, 2, 3])
def test_tsne_keeps_neighbors(q):
    Y = curved_sheet(300)
    start = np.random.default_rng(0).normal(size=(300, q))
    X = tsne(find_neighbors(Y, TSNE_NEIGHBORS), start, random_state=0)
    # A random start in one dimension cannot sort the sheet out; it still keeps most neighbours.
    bound = {1: 0.85, 2: 0.97, 3: 0.97}[q]
    assert trustworthiness(Y, X) > bound > trustworthiness(Y, start)
