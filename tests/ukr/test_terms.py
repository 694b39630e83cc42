from __future__ import annotations

import numpy as np
import pytest
from finite_differences import numerical_gradient, relative_error
from kernel_cases import SMOOTH, name_of
from oracles import kernel_sums as oracle
from ukr.problems import make_table

from twofold.engine import KernelSums
from twofold.kernels import GAUSSIAN, QUARTIC
from twofold.ukr.terms import DensityTerm, ExtensionPenalty, SumOf, lowest_density


def exact(kernel, backend="auto"):
    return KernelSums(kernel, cutoff=1e-15, n_jobs=1, backend=backend)


class TestExtensionPenalty:
    def test_by_hand(self):
        term = ExtensionPenalty(0.5, np.array([1.0, 3.0]))
        value, grad = term.value_and_grad(np.array([[3.0, 4.0], [0.0, 2.0]]))
        assert value == pytest.approx(0.5 * (1 * 25 + 3 * 4) / 4)
        np.testing.assert_allclose(grad, [[0.75, 1.0], [0.0, 1.5]])  # 2 λ ω x / Σω

    def test_gradient_equals_central_differences(self):
        X, _, weights, _ = make_table(weighted=True)
        term = ExtensionPenalty(0.7, weights)
        expected = numerical_gradient(lambda Z: term.value_and_grad(Z)[0], X)
        assert relative_error(term.value_and_grad(X)[1], expected) < 1e-8

    def test_single_precision_stays_single(self):
        X = np.ones((3, 2), dtype=np.float32)
        assert ExtensionPenalty(0.5, np.ones(3)).value_and_grad(X)[1].dtype == np.float32


class TestDensityTerm:
    @pytest.mark.parametrize("backend", ["cpu_dense", "cpu_cells"])
    @pytest.mark.parametrize("kernel", SMOOTH, ids=name_of)
    def test_the_penalty_equals_the_formula(self, kernel, backend):
        X, _, weights, _ = make_table(kernel, weighted=True)
        value, grad = DensityTerm(0.3, weights, exact(kernel, backend)).value_and_grad(X)
        p = oracle.density(kernel, X, X, weights)
        assert value == pytest.approx(-0.3 * np.average(np.log(p), weights=weights), rel=1e-9)
        # dΦ/dx_n = Σ_i A_ni (c_n ω_i + c_i ω_n)(x_i - x_n) with A = -2F' / Σω
        share = weights / weights.sum()
        c = -0.3 * share / p
        A = -2 * kernel.derivative(oracle.squared_distances(X, X))
        T = A * (c[:, None] * share[None, :] + share[:, None] * c[None, :])
        assert relative_error(grad, T @ X - T.sum(axis=1, keepdims=True) * X) < 1e-9

    @pytest.mark.parametrize("kernel", SMOOTH, ids=name_of)
    @pytest.mark.parametrize("floor", [0.0, 0.05], ids=["penalty", "barrier"])
    def test_gradient_equals_central_differences(self, kernel, floor):
        X, _, weights, _ = make_table(kernel, weighted=True)
        X = 0.3 * X  # close enough for a density of 0.05 everywhere
        term = DensityTerm(0.3, weights, exact(kernel), floor)
        assert np.isfinite(term.value_and_grad(X)[0])
        step = 1e-5 * kernel.half_width()
        expected = numerical_gradient(lambda Z: term.value_and_grad(Z)[0], X, step)
        assert relative_error(term.value_and_grad(X)[1], expected) < 1e-6

    def test_the_barrier_by_hand(self):
        # Two points in one place: p = 1, so -μ log(1 - 0.75).
        term = DensityTerm(2.0, np.ones(2), exact(GAUSSIAN), floor=0.75)
        assert term.value_and_grad(np.zeros((2, 1)))[0] == pytest.approx(-2 * np.log(0.25))

    @pytest.mark.parametrize("kernel", [GAUSSIAN, QUARTIC], ids=name_of)
    def test_the_barrier_is_infinite_outside(self, kernel):
        X = np.array([[0.0], [0.1], [0.2], [40.0]])  # the last alone: p = 1/4
        term = DensityTerm(1e-3, np.ones(4), exact(kernel), floor=0.25)
        assert term.value_and_grad(X)[0] == np.inf
        term = DensityTerm(1e-3, np.ones(4), exact(kernel), floor=0.24)
        assert np.isfinite(term.value_and_grad(X)[0])

    def test_the_barrier_grows_towards_the_bound(self):
        term = DensityTerm(1.0, np.ones(2), exact(GAUSSIAN), floor=0.6)
        bound = np.sqrt(-2 * np.log(0.2))  # (1 + F)/2 = 0.6
        values = [term.value_and_grad(np.array([[0.0], [part * bound]]))[0] for part in (0.5, 0.9)]
        assert values[0] < values[1]
        assert term.value_and_grad(np.array([[0.0], [1.001 * bound]]))[0] == np.inf

    def test_points_drawn_together_by_the_penalty(self):
        X = np.array([[-1.0], [1.0]])
        grad = DensityTerm(1.0, np.ones(2), exact(GAUSSIAN)).value_and_grad(X)[1]
        assert grad[0, 0] < 0 < grad[1, 0]  # descent moves them to each other

    def test_single_precision_stays_single(self):
        X = make_table()[0].astype(np.float32)
        value, grad = DensityTerm(1.0, np.ones(len(X)), exact(GAUSSIAN)).value_and_grad(X)
        expected = DensityTerm(1.0, np.ones(len(X)), exact(GAUSSIAN)).value_and_grad(
            X.astype(float)
        )
        assert grad.dtype == np.float32
        assert value == pytest.approx(expected[0], rel=1e-5)
        assert relative_error(grad, expected[1]) < 1e-4


class TestSumOf:
    def test_values_and_gradients_add_up(self):
        X, _, weights, _ = make_table(weighted=True)
        terms = [ExtensionPenalty(0.7, weights), DensityTerm(0.3, weights, exact(GAUSSIAN))]
        value, grad = SumOf(terms).value_and_grad(X)
        parts = [term.value_and_grad(X) for term in terms]
        assert value == pytest.approx(parts[0][0] + parts[1][0])
        np.testing.assert_allclose(grad, parts[0][1] + parts[1][1])

    def test_nothing_is_evaluated_after_an_infinite_term(self):
        class Infinite:
            def value_and_grad(self, X):
                return np.inf, X

        class Forbidden:
            def value_and_grad(self, X):
                raise AssertionError("evaluated")

        assert SumOf([Infinite(), Forbidden()]).value_and_grad(np.ones((1, 1)))[0] == np.inf


@pytest.mark.parametrize("kernel", SMOOTH, ids=name_of)
def test_lowest_density(kernel):
    X, _, weights, _ = make_table(kernel, weighted=True)
    expected = oracle.density(kernel, X, X, weights).min()
    assert lowest_density(X, weights, exact(kernel)) == pytest.approx(expected, rel=1e-9)


def test_density_counts_in_kernels_at_their_own_centre():
    X = np.array([[0.0], [50.0], [100.0]])
    assert lowest_density(X, np.ones(3), exact(QUARTIC)) == pytest.approx(1 / 3)
    assert lowest_density(np.zeros((3, 1)), np.ones(3), exact(QUARTIC)) == pytest.approx(1)
