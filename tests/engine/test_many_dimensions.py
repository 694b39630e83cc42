"""More than three latent dimensions, where distances are taken in all and cells cut but a few."""

from __future__ import annotations

import numpy as np
import pytest
from engine.regression import Regression
from finite_differences import relative_error
from kernel_cases import name_of
from oracles.kernel_sums import squared_distances

from twofold.engine import KernelSums, PreparedReferences, cells, runs
from twofold.kernels import GAUSSIAN, QUARTIC

BACKENDS = ["cpu_dense", "cpu_cells"]

backends = pytest.mark.parametrize("backend", BACKENDS)
kernels = pytest.mark.parametrize("kernel", [GAUSSIAN, QUARTIC], ids=name_of)
dimensions = pytest.mark.parametrize("q", [4, 5, 8, 16])
shapes = pytest.mark.parametrize("shape", ["thick", "flat"])


def latent_points(kernel, q, shape, n=300, seed=0):
    """Return points as thick in all dimensions, or wide in two of them as t-SNE starts are."""
    rng = np.random.default_rng([seed, q])
    # As after training: the nearest of others is two to four bandwidths away.
    X = rng.normal(size=(n, q)) * (3.0 if kernel is GAUSSIAN else 0.8 / np.sqrt(q))
    if shape == "flat":
        X[:, [1, 3]] *= 10
    return X


def make_problem(kernel, q, shape, hidden=None, **options):
    X = latent_points(kernel, q, shape, **options)
    rng = np.random.default_rng(1)
    Y, targets = rng.normal(size=(len(X), 3)) + 2, rng.normal(size=(len(X), 3))
    own = np.arange(len(X)) if hidden is None else hidden
    return Regression(X, X, Y, targets, own=own, omega=rng.uniform(0.2, 3, size=len(X)))


@backends
@kernels
@dimensions
@shapes
def test_values_and_gradients_equal_the_oracle(backend, kernel, q, shape):
    problem = make_problem(kernel, q, shape)
    expected = problem.expected(kernel)
    for dtype, cutoff, limit in ((np.float64, 1e-14, 1e-9), (np.float32, 1e-10, 1e-3)):
        found = problem.found(kernel, dtype=dtype, cutoff=cutoff, n_jobs=1, backend=backend)
        for a, b in zip(found, expected, strict=True):
            assert relative_error(a, b) < limit


@backends
@kernels
def test_gradient_equals_central_differences(backend, kernel):
    problem = make_problem(kernel, 6, "thick", n=30)
    assert problem.gradient_error(kernel, backend) < 1e-6


@backends
@kernels
@shapes
def test_any_number_of_threads_gives_the_same_bits(backend, kernel, shape, monkeypatch):
    monkeypatch.setattr(runs, "MOST_PAIRS", 2**13)
    problem = make_problem(kernel, 8, shape, n=1_000)
    once = problem.found(kernel, dtype=np.float32, n_jobs=1, backend=backend)
    for n_jobs in (2, 3):
        again = problem.found(kernel, dtype=np.float32, n_jobs=n_jobs, backend=backend)
        for a, b in zip(once, again, strict=True):
            np.testing.assert_array_equal(a, b)


@kernels
@dimensions
@shapes
@pytest.mark.parametrize("k", [1, 4])
def test_every_weight_above_the_cutoff_is_listed(kernel, q, shape, k):
    X, cutoff = latent_points(kernel, q, shape), 1e-5
    grid = cells.grid_for(X, kernel, cutoff)
    s = squared_distances(X, X)
    hidden = np.argsort(s, axis=1)[:, :k]  # the row itself, and its nearest
    np.put_along_axis(s, hidden, np.inf, axis=1)
    place = np.empty(len(X), dtype=np.int64)
    place[grid.order] = np.arange(len(X))
    pairs = cells.list_pairs(grid, X, place[hidden], kernel, cutoff, np.empty(0))
    nearest = s.min(axis=1) if kernel.is_exponential else np.zeros(len(X))
    for j in range(len(X)):
        listed = set(grid.order[pairs.reference[pairs.first[j] : pairs.first[j + 1]]])
        inside = nearest[j] + kernel.reach(cutoff)
        assert set(np.flatnonzero(s[j] < inside * (1 - 1e-12))) <= listed
        far = max(nearest[j], kernel.reach(cells.NEAR)) if kernel.is_exponential else 0.0
        assert listed <= set(np.flatnonzero(s[j] <= (far + kernel.reach(cutoff)) * (1 + 1e-12)))


@shapes
def test_far_more_is_left_out_than_listed(shape):
    X = latent_points(GAUSSIAN, 8, shape, n=2_000)
    grid = cells.grid_for(X, GAUSSIAN, 1e-6)
    pairs = cells.list_pairs(
        grid,
        np.ascontiguousarray(grid.points.T),
        np.arange(2_000)[:, None],
        GAUSSIAN,
        1e-6,
        X[:0, 0],
    )
    assert pairs.reference.size < 0.05 * 2_000**2


@kernels
@shapes
@pytest.mark.parametrize("dtype", [np.float64, np.float32], ids=["float64", "float32"])
def test_a_row_gives_the_same_bits_alone_and_among_others(kernel, shape, dtype):
    X = latent_points(kernel, 8, shape, n=600)
    V = np.random.default_rng(2).normal(size=(600, 5)).astype(dtype)
    prepared = PreparedReferences(KernelSums(kernel, n_jobs=2), X, V)
    queries = np.concatenate([X[:300] + 0.1, X[:5] + 300])
    hidden = np.argsort(squared_distances(queries, X), axis=1)[:, :3]
    together = prepared.at(queries, hidden=hidden, slopes=True)
    for j in (0, 17, 299, 300, 304):
        alone = prepared.at(queries[j : j + 1], hidden=hidden[j : j + 1], slopes=True)
        for a, b in zip(
            (alone.values, alone.shift, alone.slopes),
            (together.values, together.shift, together.slopes),
            strict=True,
        ):
            np.testing.assert_array_equal(a[0], b[j])


@dimensions
@shapes
def test_places_far_away_look_as_far_as_they_must(q, shape):
    X = latent_points(GAUSSIAN, q, shape)
    V = np.random.default_rng(3).normal(size=(len(X), 2))
    far = X[:6] + np.array([50.0, 1e3, -1e4, 1e6, 30.0, 200.0])[:, None]
    found = PreparedReferences(KernelSums(GAUSSIAN, cutoff=1e-12), X, V).at(far)
    s = squared_distances(far, X)
    weight = np.exp(-0.5 * (s - s.min(axis=1, keepdims=True)))
    np.testing.assert_allclose(found.shift, s.min(axis=1), rtol=1e-9)
    np.testing.assert_allclose(found.values, weight @ V, rtol=1e-3)
