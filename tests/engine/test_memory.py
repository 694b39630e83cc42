from __future__ import annotations

import tracemalloc

import numpy as np
import pytest

from twofold.engine import KernelSums, PreparedReferences
from twofold.kernels import GAUSSIAN, QUARTIC

N = 20_000  # all pairs would be 1600 MB in float32
MEGABYTE = 2**20


def mean_of_squares(numbers, A, shift):
    return (A * A).sum(axis=1), 2 * A


def peak_of(work):
    """Return the most memory that a call held at any one time, in MB."""
    tracemalloc.start()
    try:
        work()
        return tracemalloc.get_traced_memory()[1] / MEGABYTE
    finally:
        tracemalloc.stop()


@pytest.fixture
def data():
    rng = np.random.default_rng(0)
    return rng.uniform(0, 60, size=(N, 2)).astype(np.float32), np.ones((N, 9), dtype=np.float32)


@pytest.mark.parametrize("kernel", [GAUSSIAN, QUARTIC])
@pytest.mark.parametrize("backend", ["cpu_dense", "cpu_cells"])
def test_pairs_are_never_all_in_memory(data, backend, kernel):
    X, V = data
    if backend == "cpu_dense" and kernel is QUARTIC:
        X = X[:8_000]  # half a second of work; all pairs would be 256 MB
        V = V[:8_000]
    engine = KernelSums(kernel, n_jobs=2, backend=backend)
    assert peak_of(lambda: engine.evaluate(X, V, mean_of_squares)) < 40


def test_evaluation_at_other_places_needs_little_memory(data):
    references = PreparedReferences(KernelSums(GAUSSIAN, n_jobs=2), *data)
    queries = data[0] + np.float32(0.3)
    assert peak_of(lambda: references.at(queries, slopes=True)) < 40
