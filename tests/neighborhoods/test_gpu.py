"""Neighbours and t-SNE on a device equal those on the CPU; interpreted where there is no GPU."""

from __future__ import annotations

import numpy as np
import pytest
from on_device import DEVICE, torch

from twofold.neighborhoods import gpu_neighbors, gpu_tsne, tsne
from twofold.neighborhoods.graphs import find_neighbors


@pytest.fixture(scope="module")
def rows():
    rng = np.random.default_rng(0)
    t = rng.uniform(0, 5, size=(600, 2))
    return np.column_stack([np.sin(t), np.cos(2 * t), t]) + 0.01 * rng.normal(size=(600, 6))


def on_device(array):
    return torch.as_tensor(np.asarray(array), dtype=torch.float32, device=DEVICE)


def test_neighbors_are_those_of_the_cpu(rows):
    table = find_neighbors(rows, 7)
    distances, found = gpu_neighbors.most_neighbors(on_device(rows), 7, seed=0)
    np.testing.assert_allclose(distances.cpu(), table.distances, rtol=1e-3, atol=1e-3)
    assert (found.cpu().numpy() == table.indices).mean() > 0.99


def test_lists_find_most_neighbors(rows, monkeypatch):
    monkeypatch.setattr(gpu_neighbors, "ALL_PAIRS", 100)
    table = find_neighbors(rows, 7)
    _, found = gpu_neighbors.most_neighbors(on_device(rows), 7, seed=0)
    found = found.cpu().numpy()
    assert not (found == np.arange(600)[:, None]).any()
    shared = [len(np.intersect1d(a, b)) for a, b in zip(found, table.indices, strict=True)]
    assert np.mean(shared) > 0.95 * 7


def test_equal_rows_are_not_their_own_neighbors():
    rows = on_device(np.repeat(np.eye(4), 3, axis=0))
    _, found = gpu_neighbors.most_neighbors(rows, 2, seed=0)
    own = torch.arange(12, device=DEVICE)[:, None]
    assert bool((found != own).all())
    assert bool((found // 3 == own // 3).all())


def test_affinities_are_those_of_the_cpu(rows):
    table = find_neighbors(rows, 30)
    expected = tsne.affinities(table, 10.0).toarray()
    neighbors = torch.as_tensor(table.indices, device=DEVICE)
    P = gpu_tsne.affinities(on_device(table.distances), neighbors, 10.0)
    found = np.zeros_like(expected)
    first = P.first.cpu().numpy()
    own = np.repeat(np.arange(600), np.diff(first))
    np.add.at(found, (own, P.other.cpu().numpy()), P.p.cpu().numpy())
    np.testing.assert_allclose(found, expected, atol=1e-6 * expected.max() + 2e-7)


def test_affinities_of_two_tables_are_mixed(rows):
    table, few = find_neighbors(rows[:50], 12), find_neighbors(rows[:50], 4)
    near, wide = tsne.affinities(table, 5.0), tsne.affinities(few, 3.0)
    there = [
        gpu_tsne.affinities(
            on_device(found.distances), torch.as_tensor(found.indices, device=DEVICE), perplexity
        )
        for found, perplexity in ((table, 5.0), (few, 3.0))
    ]
    P = gpu_tsne.mixed(*there, 0.2) * 2.0
    found = np.zeros((50, 50))
    own = np.repeat(np.arange(50), np.diff(P.first.cpu().numpy()))
    np.add.at(found, (own, P.other.cpu().numpy()), P.p.cpu().numpy())
    np.testing.assert_allclose(found, 2 * (0.8 * near + 0.2 * wide).toarray(), rtol=3e-4, atol=1e-6)


@pytest.mark.parametrize("q", [1, 2, 3])
def test_steps_are_those_of_the_cpu(rows, q):
    few = rows[:60]
    table = find_neighbors(few, 30)
    X = 3 * few[:, 3 : 3 + q]
    expected = tsne.descend(tsne.affinities(table, 10.0), X, 3, n_jobs=1)
    neighbors = torch.as_tensor(table.indices, device=DEVICE)
    P = gpu_tsne.affinities(on_device(table.distances), neighbors, 10.0)
    found = gpu_tsne.descend(P, on_device(X), 3).cpu().numpy()
    assert np.abs(found - expected).max() < 2e-3 * np.abs(expected).max()
