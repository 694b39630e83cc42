"""Sums over the nodes of a grid, against the dense float64 oracle."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from engine.regression import make_regression
from finite_differences import relative_error
from kernel_cases import name_of

from twofold.engine import FitGroup, KernelSums, LocalFit, polynomial_terms
from twofold.engine.grid import LEAST_WEIGHT, NODES, _interpolation
from twofold.kernels import GAUSSIAN, QUARTIC, Kernel

NARROW = Kernel(
    "narrow", lambda s: np.exp(-5 * s), lambda s: -5 * np.exp(-5 * s), is_exponential=True
)
SITUATIONS = [
    " ".join(parts)
    for count in range(5)
    for parts in itertools.combinations(("own", "weights", "missing", "queries"), count)
]
exponential = pytest.mark.parametrize("kernel", [GAUSSIAN, NARROW], ids=name_of)


def errors(problem, kernel, **options):
    found = problem.found(kernel, backend="cpu_grid", n_jobs=1, **options)
    expected = problem.expected(kernel)
    return [relative_error(a, b) for a, b in zip(found, expected, strict=True)]


def crowd(n=1_500, q=2, extent=6.0, seed=0):
    """Return many latent points within reach of each other, and what they carry."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(-extent / 2, extent / 2, size=(n, q))
    Y = np.sin(X @ rng.normal(size=(q, 5))) + 0.1 * rng.normal(size=(n, 5))
    return X, np.column_stack([Y, np.ones(n)])


def leave_out(Y):
    def respond(numbers, A, shift):
        S = A[:, -1:]
        f = A[:, :-1] / S
        R = f - Y[numbers, :-1]
        E = 2 * R / S
        return (R**2).sum(axis=1), np.column_stack([E, -(E * f).sum(axis=1)])

    return respond


@exponential
@pytest.mark.parametrize("q", [1, 2, 3])
@pytest.mark.parametrize("dtype", [np.float64, np.float32], ids=["float64", "float32"])
def test_values_and_gradients_are_close_to_the_oracle(kernel, q, dtype):
    for situation in SITUATIONS:
        problem = make_regression(kernel, q, situation, n=120)
        losses, by_query, by_reference = errors(problem, kernel, dtype=dtype)
        assert losses < 1e-4, situation
        assert max(by_query, by_reference) < 3e-3, situation


@pytest.mark.parametrize("q", [1, 2])
def test_the_error_falls_with_the_cutoff(q):
    problem = make_regression(GAUSSIAN, q, "own weights", n=150)
    for cutoff in (1e-5, 1e-7, 1e-9):
        losses, by_query, by_reference = errors(problem, GAUSSIAN, cutoff=cutoff)
        assert losses < 100 * cutoff
        # The derivative of interpolated values is of one order less.
        assert max(by_query, by_reference) < 2 * cutoff ** (1 - 1 / NODES) * 50


@pytest.mark.parametrize("q", [1, 2, 3])
def test_the_gradient_is_that_of_the_sums_as_they_are(q):
    X, V = crowd(300, q, extent=3.0)
    engine = KernelSums(GAUSSIAN, backend="cpu_grid", n_jobs=1)
    hidden = np.arange(len(X))

    def error(X):
        return engine.evaluate(X, V, leave_out(V), hidden=hidden)[0].sum()

    _, by_query, by_reference = engine.evaluate(X, V, leave_out(V), hidden=hidden)
    gradient = by_query + by_reference
    rng = np.random.default_rng(1)
    for _ in range(5):
        # Points at the border of the box stay, so that the grid does.
        way = (
            rng.normal(size=X.shape)
            * (np.abs(X) < 0.9 * np.abs(X).max(axis=0)).all(axis=1)[:, None]
        )
        step = 1e-7
        slope = (error(X + step * way) - error(X - step * way)) / (2 * step)
        assert slope == pytest.approx((gradient * way).sum(), rel=1e-5)


def test_interpolation_is_exact_for_polynomials():
    powers = np.arange(NODES)
    nodes = np.arange(NODES) - (NODES - 1) / 2
    for v in (-0.5, -0.2, 0.0, 0.5):
        weights = _interpolation() @ v**powers
        np.testing.assert_allclose(weights @ nodes[:, None] ** powers, v**powers, atol=1e-12)


def test_nothing_is_left_of_what_is_hidden():
    X, V = crowd(400)
    hidden = np.column_stack([np.arange(400), np.full(400, 7), np.full(400, 7), np.full(400, -1)])
    engine = KernelSums(GAUSSIAN, backend="cpu_grid", n_jobs=1)
    plain = engine.evaluate(X, V, leave_out(V), hidden=hidden)
    V[7, :-1] = 1e6  # the row that nobody sees
    seen = [number for number in range(400) if number != 7]
    loud = engine.evaluate(X, V, leave_out(V), hidden=hidden)
    np.testing.assert_allclose(loud[0][seen], plain[0][seen], rtol=1e-6)
    np.testing.assert_allclose(loud[1][seen], plain[1][seen], rtol=1e-5, atol=1e-6)


def test_queries_with_little_around_them_are_summed_over_pairs():
    X, V = crowd(500)
    X[:3] = [[9.0, 9.0], [9.0, -9.0], [-12.0, 0.0]]
    hidden = np.arange(500)
    found = KernelSums(GAUSSIAN, backend="cpu_grid").evaluate(X, V, leave_out(V), hidden=hidden)
    exact = KernelSums(GAUSSIAN, backend="cpu_cells").evaluate(X, V, leave_out(V), hidden=hidden)
    np.testing.assert_allclose(found[0][:3], exact[0][:3], rtol=1e-12)
    np.testing.assert_allclose(found[1][:3], exact[1][:3], rtol=1e-9)
    assert relative_error(found[2], exact[2]) < 3e-3
    assert np.exp(-0.5 * 9**2) < LEAST_WEIGHT


@pytest.mark.parametrize("dtype", [np.float64, np.float32], ids=["float64", "float32"])
@pytest.mark.parametrize("q", [1, 2, 3])
def test_any_number_of_threads_gives_the_same_bits(dtype, q):
    X, V = (part.astype(dtype) for part in crowd(2_000, q))
    once, *others = [
        KernelSums(GAUSSIAN, n_jobs=n_jobs, backend="cpu_grid").evaluate(
            X, V, leave_out(V), hidden=np.arange(2_000)
        )
        for n_jobs in (1, 2, 3)
    ]
    for other in others:
        for a, b in zip(once, other, strict=True):
            assert a.dtype == dtype
            np.testing.assert_array_equal(a, b)


def test_no_gradient_is_made_where_none_is_asked_for():
    X, V = crowd(300)
    engine = KernelSums(GAUSSIAN, backend="cpu_grid")
    losses, by_query, by_reference = engine.evaluate(
        X, V, lambda numbers, A, shift: (A[:, -1], None), hidden=np.arange(300)
    )
    expected = np.exp(-0.5 * ((X[:, None] - X) ** 2).sum(axis=2)).sum(axis=1) - 1
    np.testing.assert_allclose(losses, expected, rtol=1e-4)
    assert not by_query.any()
    assert not by_reference.any()


def test_what_it_cannot_do_is_refused():
    X, V = crowd(50, 2)
    with pytest.raises(ValueError, match=r"got the kernel 'quartic' in 2\. Use 'auto'"):
        KernelSums(QUARTIC, backend="cpu_grid").evaluate(X, V, leave_out(V))
    local = LocalFit(polynomial_terms(1, 2), (FitGroup(np.arange(5), np.ones(50)),))
    with pytest.raises(ValueError, match="in 2 with local polynomials"):
        KernelSums(GAUSSIAN, backend="cpu_grid").evaluate(X, V, leave_out(V), local=local)
    with pytest.raises(ValueError, match="in 4"):
        KernelSums(GAUSSIAN, backend="cpu_grid").evaluate(crowd(50, 4)[0], V, leave_out(V))
