from __future__ import annotations

import numpy as np
import pytest
from finite_differences import numerical_gradient
from kernel_cases import SMOOTH, name_of
from oracles import extensions as oracle
from ukr.problems import make_table

from twofold.engine import KernelSums
from twofold.kernels import GAUSSIAN, QUARTIC
from twofold.ukr.terms import DensityVariance

kernels = pytest.mark.parametrize("kernel", SMOOTH, ids=name_of)
backends = pytest.mark.parametrize("backend", ["cpu_dense", "cpu_cells"])


def variance(kernel, weights, strength=1.0, backend="auto"):
    engine = KernelSums(kernel, cutoff=1e-15, n_jobs=1, backend=backend)
    return DensityVariance(strength, weights, engine)


def weighted_variance(kernel, X, weights):
    """Return ``Σ ω (p - p̄)² / Σω`` with ``p_i = n Σ_k ω_k F(s_ik) / Σω``, from the formula."""
    share = weights / weights.sum()
    s = ((X[:, None] - X[None]) ** 2).sum(axis=2)
    p = len(X) * kernel.value(s) @ share
    return share @ (p - share @ p) ** 2


@pytest.mark.cover(2)
@backends
@kernels
@pytest.mark.parametrize("q", [1, 2, 3])
def test_equal_weights_equal_the_oracle(kernel, q, backend):
    X = make_table(kernel, q)[0]
    value = variance(kernel, np.full(len(X), 2.5), 0.3, backend).value_and_grad(X)[0]
    assert value == pytest.approx(0.3 * oracle.density_variance(X, kernel.value), rel=1e-9)


@backends
@kernels
def test_weights_equal_the_formula(kernel, backend):
    X, _, weights, _ = make_table(kernel, weighted=True)
    value = variance(kernel, weights, 0.3, backend).value_and_grad(X)[0]
    assert value == pytest.approx(0.3 * weighted_variance(kernel, X, weights), rel=1e-9)


@pytest.mark.cover(2)
@backends
@kernels
@pytest.mark.parametrize("weighted", [False, True], ids=["equal", "weights"])
def test_gradient_equals_central_differences(kernel, weighted, backend):
    X, _, weights, _ = make_table(kernel, n=25, weighted=weighted)
    weights = np.ones(25) if weights is None else weights
    term = variance(kernel, weights, 0.3, backend)
    step = 1e-5 * kernel.half_width()
    expected = numerical_gradient(lambda Z: term.value_and_grad(Z)[0], X, step)
    found = term.value_and_grad(X)[1]
    assert np.abs(found - expected).max() < 1e-6 * np.abs(expected).max()


def test_by_hand():
    # Two points in one place and one alone: p = 2, 2, 1.
    X = np.array([[0.0], [0.0], [90.0]])
    value, grad = variance(QUARTIC, np.ones(3), 9.0).value_and_grad(X)
    assert value == pytest.approx(9 * (2 / 9))
    assert not grad.any()


def test_integer_weights_are_repetitions():
    X = make_table(n=15)[0]
    times = np.random.default_rng(2).integers(1, 4, size=15)
    value = variance(GAUSSIAN, times.astype(float)).value_and_grad(X)[0]
    again = oracle.density_variance(np.repeat(X, times, axis=0), GAUSSIAN.value)
    # As a sum over rows: 15 of weights or all repetitions.
    assert value == pytest.approx(again * (15 / times.sum()) ** 2, rel=1e-9)


def test_equally_dense_points_feel_no_force():
    angles = np.linspace(0, 2 * np.pi, 12, endpoint=False)
    ring = 1.5 * np.column_stack([np.cos(angles), np.sin(angles)])
    value, grad = variance(GAUSSIAN, np.ones(12)).value_and_grad(ring)
    assert value == pytest.approx(0, abs=1e-20)
    np.testing.assert_allclose(grad, 0, atol=1e-14)


def test_descent_draws_a_stray_point_back():
    # The others are dense, the stray one is not: its density must rise.
    X = np.array([[-0.2], [0.0], [0.2], [1.5]])
    grad = variance(GAUSSIAN, np.ones(4)).value_and_grad(X)[1]
    assert grad[3, 0] > 0


def test_moving_all_points_changes_nothing():
    X, _, weights, _ = make_table(weighted=True)
    term = variance(GAUSSIAN, weights)
    value, grad = term.value_and_grad(X)
    assert term.value_and_grad(X + 3.0)[0] == pytest.approx(value, rel=1e-12)
    np.testing.assert_allclose(grad.sum(axis=0), 0, atol=1e-12 * np.abs(grad).sum())


def test_single_precision_stays_single():
    X, _, weights, _ = make_table(weighted=True)
    exact = variance(GAUSSIAN, weights).value_and_grad(X)
    value, grad = variance(GAUSSIAN, weights).value_and_grad(X.astype(np.float32))
    assert grad.dtype == np.float32
    assert value == pytest.approx(exact[0], rel=1e-4)
    assert np.abs(grad - exact[1]).max() < 1e-4 * np.abs(exact[1]).max()
