"""The contract of the back ends: each equals the dense float64 oracle."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from engine.regression import make_regression
from finite_differences import numerical_gradient, relative_error
from kernel_cases import ALL_KERNELS, FINITE, SMOOTH, name_of

from twofold.engine import KernelSums, runs
from twofold.kernels import GAUSSIAN, QUARTIC, Kernel

BACKENDS = ["cpu_dense", "cpu_cells"]
SITUATIONS = [
    " ".join(parts)
    for count in range(5)
    for parts in itertools.combinations(("own", "weights", "missing", "queries"), count)
]
# Tolerance of the engine and relative error allowed; the largest errors seen are 2e-11 and 3e-5.
EXACT = {np.float64: (1e-14, 1e-9), np.float32: (1e-10, 1e-4)}

backends = pytest.mark.parametrize("backend", BACKENDS)


def assert_close(found, expected, limit):
    for name, a, b in zip(("losses", "by query", "by reference"), found, expected, strict=True):
        assert np.isfinite(a).all(), name
        assert relative_error(a, b) < limit, name


@pytest.mark.cover(2)
@backends
@pytest.mark.parametrize("kernel", ALL_KERNELS, ids=name_of)
@pytest.mark.parametrize("dtype", [np.float64, np.float32], ids=["float64", "float32"])
@pytest.mark.parametrize("q", [1, 2, 3, 5])
def test_values_and_gradients_equal_the_oracle(backend, kernel, dtype, q):
    cutoff, limit = EXACT[dtype]
    for situation in SITUATIONS:
        problem = make_regression(kernel, q, situation)
        found = problem.found(kernel, dtype=dtype, cutoff=cutoff, n_jobs=1, backend=backend)
        assert found[0].dtype == found[1].dtype == found[2].dtype == dtype
        assert_close(found, problem.expected(kernel), limit)


@pytest.mark.cover(2)
@backends
@pytest.mark.parametrize("kernel", ALL_KERNELS, ids=name_of)
@pytest.mark.parametrize("q", [1, 2, 3])
def test_the_default_tolerance_costs_no_accuracy_that_matters(backend, kernel, q):
    problem = make_regression(kernel, q, "own weights", seed=1, n=200)
    assert_close(problem.found(kernel, n_jobs=1, backend=backend), problem.expected(kernel), 1e-5)


@backends
@pytest.mark.parametrize("kernel", SMOOTH, ids=name_of)
@pytest.mark.parametrize("situation", ["own", "weights missing"])
def test_gradient_equals_central_differences(backend, kernel, situation):
    problem = make_regression(kernel, 2, situation, seed=2, n=16)
    assert problem.gradient_error(kernel, backend) < 1e-6


@backends
def test_gradients_by_queries_and_by_references_are_told_apart(backend):
    problem = make_regression(GAUSSIAN, 2, "own queries", seed=3, n=20)
    engine = KernelSums(GAUSSIAN, cutoff=1e-15, n_jobs=1, backend=backend)
    V = problem.carried()

    def error(Q, X):
        return engine.evaluate(Q, V, problem.respond, references=X, hidden=problem.own)[0].sum()

    _, by_query, by_reference = problem.found(GAUSSIAN, cutoff=1e-15, backend=backend)
    expected = numerical_gradient(lambda Q: error(Q, problem.X), problem.Q)
    assert relative_error(by_query, expected) < 1e-6
    expected = numerical_gradient(lambda X: error(problem.Q, X), problem.X)
    assert relative_error(by_reference, expected) < 1e-6


@backends
@pytest.mark.parametrize("kernel", [GAUSSIAN, QUARTIC], ids=name_of)
@pytest.mark.parametrize("dtype", [np.float64, np.float32], ids=["float64", "float32"])
def test_any_number_of_threads_gives_the_same_bits(backend, kernel, dtype, monkeypatch):
    monkeypatch.setattr(runs, "MOST_PAIRS", 2**13)
    problem = make_regression(kernel, 2, "own", seed=4, n=1_000)
    once = problem.found(kernel, dtype=dtype, n_jobs=1, backend=backend)
    for n_jobs in (2, 3):
        again = problem.found(kernel, dtype=dtype, n_jobs=n_jobs, backend=backend)
        for a, b in zip(once, again, strict=True):
            np.testing.assert_array_equal(a, b)


@backends
def test_many_blocks_equal_the_oracle(backend, monkeypatch):
    monkeypatch.setattr(runs, "MOST_PAIRS", 2**13)
    problem = make_regression(GAUSSIAN, 2, "own weights", seed=5, n=700)
    found = problem.found(GAUSSIAN, cutoff=1e-14, n_jobs=2, backend=backend)
    assert_close(found, problem.expected(GAUSSIAN), 1e-9)


@backends
def test_no_gradient_is_made_where_none_is_asked_for(backend):
    problem = make_regression(GAUSSIAN, 2, "own")
    engine = KernelSums(GAUSSIAN, n_jobs=1, backend=backend)

    def respond(numbers, A, shift):
        return problem.respond(numbers, A, shift)[0], None

    losses, by_query, by_reference = engine.evaluate(
        problem.X, problem.carried(), respond, hidden=problem.own
    )
    np.testing.assert_allclose(losses, problem.expected(GAUSSIAN)[0], rtol=1e-5)
    assert not by_query.any()
    assert not by_reference.any()


@backends
def test_inputs_are_left_alone(backend):
    problem = make_regression(GAUSSIAN, 2, "own")
    V = problem.carried()
    before = problem.X.copy(), V.copy()
    problem.X.flags.writeable = V.flags.writeable = False
    KernelSums(GAUSSIAN, n_jobs=1, backend=backend).evaluate(
        problem.X, V, problem.respond, hidden=problem.own
    )
    np.testing.assert_array_equal(problem.X, before[0])
    np.testing.assert_array_equal(V, before[1])


@backends
@pytest.mark.parametrize("kernel", FINITE, ids=name_of)
def test_rows_out_of_reach_have_no_sums_and_no_gradient(backend, kernel):
    problem = make_regression(kernel, 2, "own", n=30)
    problem.X[7] = [1e3, -1e3]
    problem.Q = problem.X
    losses, by_query, by_reference = problem.found(kernel, n_jobs=1, backend=backend)
    mean_of_others = np.delete(problem.Y, 7, axis=0).mean(axis=0)
    expected = ((mean_of_others - problem.targets[7]) ** 2).sum()
    assert losses[7] == pytest.approx(expected, rel=1e-12)
    assert not by_query[7].any()
    assert not by_reference[7].any()
    assert_close((losses, by_query, by_reference), problem.expected(kernel), 1e-9)


@backends
@pytest.mark.parametrize("dtype", [np.float64, np.float32], ids=["float64", "float32"])
@pytest.mark.parametrize("distance", [50.0, 1e4])
def test_isolated_points_see_their_nearest_neighbour(backend, dtype, distance):
    # In units of `distance` the points lie at 0, 1, 2.5 and 4.5: nearest are 1, 0, 1 and 2.
    problem = make_regression(GAUSSIAN, 1, "own", n=4)
    problem.X = problem.Q = distance * np.array([[0.0], [1.0], [2.5], [4.5]])
    found = problem.found(GAUSSIAN, dtype=dtype, n_jobs=1, backend=backend)
    expected = ((problem.Y[[1, 0, 1, 2]] - problem.targets) ** 2).sum(axis=1)
    np.testing.assert_allclose(found[0], expected, rtol=1e-5)
    assert np.isfinite(found[1]).all()
    assert np.isfinite(found[2]).all()


def test_back_ends_agree_on_a_large_problem():
    problem = make_regression(GAUSSIAN, 2, "own weights", seed=6, n=1_500)
    dense = problem.found(GAUSSIAN, backend="cpu_dense")
    in_cells = problem.found(GAUSSIAN, backend="cpu_cells")
    assert_close(in_cells, dense, 1e-5)


@backends
def test_any_exponential_kernel_sees_isolated_points(backend):
    # exp(-1000 · 0.8) is 0 in floating point: only weights relative to the nearest point help.
    sharp = Kernel(
        "sharp", lambda s: np.exp(-1e3 * s), lambda s: -1e3 * np.exp(-1e3 * s), is_exponential=True
    )
    problem = make_regression(GAUSSIAN, 1, "own", n=3)
    problem.X = problem.Q = np.array([[0.0], [0.9], [1.9]])
    found = problem.found(sharp, n_jobs=1, backend=backend)
    expected = ((problem.Y[[1, 0, 1]] - problem.targets) ** 2).sum(axis=1)
    np.testing.assert_allclose(found[0], expected, rtol=1e-12)
