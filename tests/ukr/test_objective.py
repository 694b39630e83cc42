from __future__ import annotations

import itertools

import numpy as np
import pytest
from finite_differences import numerical_gradient, relative_error
from kernel_cases import ALL_KERNELS, BUILT_IN, FINITE, SMOOTH, name_of
from oracles import kernel_sums as oracle
from ukr.problems import make_objective, make_surface, make_table

from twofold.kernels import GAUSSIAN, QUARTIC

leaving = pytest.mark.parametrize("leave_one_out", [True, False], ids=["loo", "all"])


def variance(Y):
    return ((Y - Y.mean(axis=0)) ** 2).sum(axis=1).mean()


def turned(X, angle=0.7):
    c, s = np.cos(angle), np.sin(angle)
    return X @ np.array([[c, -s], [s, c]])


@pytest.mark.cover(2)
@leaving
@pytest.mark.parametrize("backend", ["cpu_dense", "cpu_cells"])
@pytest.mark.parametrize("kernel", ALL_KERNELS, ids=name_of)
def test_value_and_gradient_equal_the_oracle(kernel, backend, leave_one_out):
    for q, weighted, missing in itertools.product((1, 2, 3), (False, True), (False, True)):
        X, Y, weights, observed = make_table(kernel, q, weighted=weighted, missing=missing)
        objective = make_objective(
            kernel, Y, weights, observed, leave_one_out=leave_one_out, backend=backend
        )
        value, grad = objective.value_and_grad(X)
        expected, slope = oracle.reconstruction(kernel, X, Y, leave_one_out, weights, observed)
        assert value == pytest.approx(expected, rel=1e-9)
        assert relative_error(grad, slope) < 1e-9


@pytest.mark.cover(2)
@leaving
@pytest.mark.parametrize("kernel", SMOOTH, ids=name_of)
@pytest.mark.parametrize("missing", [False, True], ids=["complete", "missing"])
def test_gradient_equals_central_differences(kernel, missing, leave_one_out):
    X, Y, weights, observed = make_table(kernel, n=20, weighted=True, missing=missing, seed=1)
    objective = make_objective(kernel, Y, weights, observed, leave_one_out=leave_one_out)
    step = 1e-5 * kernel.half_width()
    expected = numerical_gradient(lambda Z: objective.value_and_grad(Z)[0], X, step)
    assert relative_error(objective.value_and_grad(X)[1], expected) < 1e-6


@leaving
def test_single_precision_is_near_double(leave_one_out):
    X, Y, weights, observed = make_table(weighted=True, missing=True)
    options = {"leave_one_out": leave_one_out, "cutoff": 1e-7}
    exact = make_objective(GAUSSIAN, Y, weights, observed, **options).value_and_grad(X)
    rough = make_objective(GAUSSIAN, Y, weights, observed, dtype=np.float32, **options)
    value, grad = rough.value_and_grad(X)
    assert grad.dtype == np.float32
    assert value == pytest.approx(exact[0], rel=1e-5)
    assert relative_error(grad, exact[1]) < 1e-4


@pytest.mark.parametrize("kernel", BUILT_IN, ids=name_of)
def test_contracted_points_reconstruct_the_mean(kernel):
    # X → 0: R → V and R_cv → V (N / (N - 1))².
    X, Y, _, _ = make_table(kernel)
    n, near = len(X), 1e-6 * X
    value = make_objective(kernel, Y, leave_one_out=False).value_and_grad(near)[0]
    assert value == pytest.approx(variance(Y), rel=1e-9)
    value = make_objective(kernel, Y).value_and_grad(near)[0]
    assert value == pytest.approx(variance(Y) * (n / (n - 1)) ** 2, rel=1e-9)


@leaving
@pytest.mark.parametrize("kernel", BUILT_IN, ids=name_of)
def test_points_in_one_place_feel_no_force(kernel, leave_one_out):
    _, Y, _, _ = make_table(kernel)
    grad = make_objective(kernel, Y, leave_one_out=leave_one_out).value_and_grad(
        np.full((len(Y), 2), 3.0)
    )[1]
    assert not grad.any()


@pytest.mark.parametrize("kernel", BUILT_IN, ids=name_of)
def test_scattered_points_reconstruct_themselves(kernel):
    X, Y, _, _ = make_table(kernel)
    value = make_objective(kernel, Y, leave_one_out=False).value_and_grad(1e3 * X)[0]
    assert value == pytest.approx(0, abs=1e-20)


def test_scattered_points_left_out_are_their_nearest_neighbour():
    X, Y, _, _ = make_table()
    s = oracle.squared_distances(X, X)
    np.fill_diagonal(s, np.inf)
    expected = ((Y - Y[s.argmin(axis=1)]) ** 2).sum(axis=1).mean()
    value, grad = make_objective(GAUSSIAN, Y).value_and_grad(1e3 * X)
    assert value == pytest.approx(expected, rel=1e-9)
    assert np.isfinite(grad).all()


@pytest.mark.parametrize("kernel", FINITE, ids=name_of)
@pytest.mark.parametrize("missing", [False, True], ids=["complete", "missing"])
def test_scattered_points_left_out_are_the_mean_of_the_others(kernel, missing):
    X, Y, weights, observed = make_table(kernel, weighted=True, missing=missing)
    value, grad = make_objective(kernel, Y, weights, observed).value_and_grad(1e4 * X)
    seen = np.ones(Y.shape, dtype=bool) if observed is None else observed
    expected = 0.0
    for j in range(len(Y)):
        share = weights * (np.arange(len(Y)) != j)
        for d in np.flatnonzero(seen[j]):
            known = share * seen[:, d]
            expected += weights[j] * (Y[j, d] - known @ Y[:, d] / known.sum()) ** 2
    assert value == pytest.approx(expected / weights.sum(), rel=1e-12)
    assert not grad.any()


@leaving
@pytest.mark.parametrize("kernel", BUILT_IN, ids=name_of)
def test_moving_and_turning_change_nothing(kernel, leave_one_out):
    X, Y, weights, _ = make_table(kernel, weighted=True)
    objective = make_objective(kernel, Y, weights, leave_one_out=leave_one_out)
    value, grad = objective.value_and_grad(X)
    moved_value, moved_grad = objective.value_and_grad(X + np.array([3.0, -7.0]))
    assert moved_value == pytest.approx(value, rel=1e-12)
    assert relative_error(moved_grad, grad) < 1e-10
    turned_value, turned_grad = objective.value_and_grad(turned(X))
    assert turned_value == pytest.approx(value, rel=1e-12)
    assert relative_error(turned_grad, turned(grad)) < 1e-10
    elsewhere = make_objective(kernel, Y + 100, weights, leave_one_out=leave_one_out)
    assert elsewhere.value_and_grad(X)[0] == pytest.approx(value, rel=1e-11)


@leaving
@pytest.mark.parametrize("kernel", BUILT_IN, ids=name_of)
def test_forces_add_up_to_nothing(kernel, leave_one_out):
    X, Y, weights, observed = make_table(kernel, weighted=True, missing=True)
    objective = make_objective(kernel, Y, weights, observed, leave_one_out=leave_one_out)
    grad = objective.value_and_grad(X)[1]
    np.testing.assert_allclose(grad.sum(axis=0), 0, atol=1e-12 * np.abs(grad).sum())


@pytest.mark.parametrize("kernel", BUILT_IN, ids=name_of)
def test_leave_one_out_is_a_weighted_reconstruction_error(kernel):
    # 4.38, 4.39: y_i - f_{-i}(x_i) = S_i (y_i - f(x_i)) with S_i = p_i / (p_i - 1/N).
    X, Y, _, _ = make_table(kernel)
    X = 0.5 * X  # nobody alone: there the mean of the others stands in
    surface = make_surface(kernel, X, Y)
    p = surface.density(X)
    S = p / (p - 1 / len(X))
    expected = (S**2 * ((Y - surface.regress(X)) ** 2).sum(axis=1)).mean()
    assert make_objective(kernel, Y).value_and_grad(X)[0] == pytest.approx(expected, rel=1e-10)


def test_weights_are_repetitions_of_the_reconstruction_error():
    X, Y, _, _ = make_table(n=15)
    times = np.random.default_rng(2).integers(1, 4, size=15)
    weighted = make_objective(GAUSSIAN, Y, times.astype(float), leave_one_out=False)
    repeated = make_objective(GAUSSIAN, np.repeat(Y, times, axis=0), leave_one_out=False)
    value, grad = weighted.value_and_grad(X)
    repeated_value, repeated_grad = repeated.value_and_grad(np.repeat(X, times, axis=0))
    assert value == pytest.approx(repeated_value, rel=1e-12)
    first = np.concatenate([[0], np.cumsum(times)[:-1]])
    np.testing.assert_allclose(grad, np.add.reduceat(repeated_grad, first, axis=0), atol=1e-12)


@leaving
def test_the_order_of_the_rows_does_not_matter(leave_one_out):
    X, Y, weights, observed = make_table(weighted=True, missing=True)
    order = np.random.default_rng(3).permutation(len(X))
    one = make_objective(GAUSSIAN, Y, weights, observed, leave_one_out=leave_one_out)
    other = make_objective(
        GAUSSIAN, Y[order], weights[order], observed[order], leave_one_out=leave_one_out
    )
    value, grad = one.value_and_grad(X)
    shuffled_value, shuffled_grad = other.value_and_grad(X[order])
    assert shuffled_value == pytest.approx(value, rel=1e-12)
    assert relative_error(shuffled_grad, grad[order]) < 1e-10


def test_values_under_missing_entries_are_never_seen():
    X, Y, weights, observed = make_table(weighted=True, missing=True)
    found = make_objective(GAUSSIAN, np.where(observed, Y, np.nan), weights, observed)
    expected = make_objective(GAUSSIAN, np.where(observed, Y, 1e9), weights, observed)
    value, grad = found.value_and_grad(X)
    assert np.isfinite(value)
    assert value == expected.value_and_grad(X)[0]
    np.testing.assert_array_equal(grad, expected.value_and_grad(X)[1])


@leaving
def test_the_error_of_some_rows(leave_one_out):
    X, Y, weights, observed = make_table(weighted=True, missing=True)
    objective = make_objective(GAUSSIAN, Y, weights, observed, leave_one_out=leave_one_out)
    every = np.arange(len(X))
    assert objective.value_on(X, every) == pytest.approx(objective.value_and_grad(X)[0], rel=1e-12)
    rows = np.array([3, 17, 25])
    own = rows if leave_one_out else None
    losses = oracle.error(
        GAUSSIAN, X[rows], X, Y, Y[rows], own, weights, observed, observed[rows].astype(float)
    )[0]
    expected = np.average(losses, weights=weights[rows])
    assert objective.value_on(X, rows) == pytest.approx(expected, rel=1e-9)


def test_the_error_of_sums_that_are_there_already():
    X, Y, weights, _ = make_table(weighted=True)
    objective = make_objective(GAUSSIAN, Y, weights)
    rows = np.array([3, 17, 25])
    sums = make_surface(GAUSSIAN, X, Y, weights).prepared.at(X[rows], hidden=rows)
    expected = objective.value_on(X, rows)
    assert objective.value_of_sums(sums.values, rows) == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize("kernel", [GAUSSIAN, QUARTIC], ids=name_of)
@pytest.mark.parametrize("rows", [np.arange(40), np.array([1, 5, 30])], ids=["all", "some"])
def test_scale_slope_equals_central_differences(kernel, rows):
    X, Y, weights, observed = make_table(kernel, 3, weighted=True, missing=True)
    X = 0.7 * X
    objective = make_objective(kernel, Y, weights, observed)
    value, slope = objective.value_and_scale_slope(X, rows)
    assert value == pytest.approx(objective.value_on(X, rows), rel=1e-12)
    expected = numerical_gradient(
        lambda log_scales: objective.value_on(X * np.exp(log_scales), rows), np.zeros(3)
    )
    assert relative_error(slope, expected) < 1e-6
