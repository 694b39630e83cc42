"""Neighbours of all rows of a large table: most of them found, and what is found is right."""

from __future__ import annotations

import numpy as np
import pytest

from twofold.neighborhoods import approximate
from twofold.neighborhoods.approximate import most_neighbors
from twofold.neighborhoods.graphs import find_neighbors


@pytest.fixture(autouse=True)
def _large(monkeypatch):
    monkeypatch.setattr(approximate, "FEW_ROWS", 100)


def recall(found, true):
    return np.mean([len(set(a) & set(b)) / len(b) for a, b in zip(found, true, strict=True)])


def test_most_neighbours_are_found():
    rng = np.random.default_rng(0)
    Y = rng.normal(size=(3_000, 3)) @ rng.normal(size=(3, 20)) + 0.1 * rng.normal(size=(3_000, 20))
    found, true = most_neighbors(Y, 15, 0, -1), find_neighbors(Y, 15)
    assert recall(found.indices, true.indices) > 0.97
    assert (found.indices != np.arange(3_000)[:, None]).all()
    assert all(len(set(row)) == 15 for row in found.indices)
    assert (np.diff(found.distances, axis=1) >= 0).all()
    gaps = np.linalg.norm(Y[:, None] - Y[found.indices], axis=2)
    np.testing.assert_allclose(found.distances, gaps, rtol=1e-5)


def test_crowded_rows_have_neighbours_too():
    # Most rows in a small heap: lists around it are large, and those of the others nearly empty.
    rng = np.random.default_rng(1)
    Y = np.concatenate([1e-3 * rng.normal(size=(900, 5)), 10 * rng.normal(size=(100, 5))])
    found = most_neighbors(Y, 40, 0, 1)
    assert (found.indices >= 0).all()
    assert (found.indices != np.arange(1_000)[:, None]).all()
    assert recall(found.indices, find_neighbors(Y, 40).indices) > 0.8


def test_threads_change_nothing():
    Y = np.random.default_rng(2).normal(size=(1_500, 8)).astype(np.float32)
    one, two = (most_neighbors(Y, 10, 0, n_jobs) for n_jobs in (1, 2))
    assert one.indices.tobytes() == two.indices.tobytes()
    assert one.distances.tobytes() == two.distances.tobytes()


def test_a_small_table_is_searched_whole(monkeypatch):
    monkeypatch.setattr(approximate, "FEW_ROWS", 1_000)
    Y = np.random.default_rng(3).normal(size=(500, 8))
    np.testing.assert_array_equal(
        most_neighbors(Y, 10, 0, 1).indices, find_neighbors(Y, 10).indices
    )
