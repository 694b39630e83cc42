from __future__ import annotations

import numpy as np
import pytest
from optimize.problems import Quadratic, Rosenbrock
from scipy import optimize as scipy_optimize

from twofold.optimize import Box, minimize
from twofold.optimize.lbfgs import (
    MEMORY,
    Pair,
    Trial,
    _lengthened,
    _newton_like,
    _remembered,
    _shortened,
)


def dense_inverse_hessian(pairs, size):
    """The BFGS formula itself, H <- (I - rho s y') H (I - rho y s') + rho s s'."""
    newest = pairs[-1]
    s, y = newest.s.ravel(), newest.y.ravel()
    H = np.eye(size) * (s @ y) / (y @ y)
    for pair in pairs:
        s, y = pair.s.ravel(), pair.y.ravel()
        V = np.eye(size) - pair.rho * np.outer(y, s)
        H = V.T @ H @ V + pair.rho * np.outer(s, s)
    return H


def test_the_two_loops_multiply_by_the_bfgs_matrix():
    rng = np.random.default_rng(1)
    A = rng.normal(size=(8, 8))
    hessian = A @ A.T + np.eye(8)
    moves = rng.normal(size=(5, 4, 2))
    changes = (moves.reshape(5, 8) @ hessian).reshape(5, 4, 2)
    pairs = tuple(Pair(s, y, 1 / float((s * y).sum())) for s, y in zip(moves, changes, strict=True))
    grad = rng.normal(size=(4, 2))
    expected = -(dense_inverse_hessian(pairs, 8) @ grad.ravel()).reshape(4, 2)
    np.testing.assert_allclose(_newton_like(pairs, grad, None), expected, rtol=1e-10)


def test_the_memory_forgets_the_oldest_and_refuses_negative_curvature():
    pairs: tuple[Pair, ...] = ()
    for k in range(1, MEMORY + 4):
        pairs = _remembered(pairs, np.full((1, 1), float(k)), np.ones((1, 1)))
    assert [pair.s.item() for pair in pairs] == list(range(4, MEMORY + 4))
    assert _remembered(pairs, np.ones((1, 1)), -np.ones((1, 1))) is pairs
    assert _remembered(pairs, np.ones((1, 1)), np.zeros((1, 1))) is pairs


def test_values_never_rise_and_most_iterations_cost_one_evaluation():
    X0 = np.random.default_rng(0).normal(size=(20, 2))
    solution = minimize(Rosenbrock(), X0, max_iter=100)
    assert (np.diff(solution.history) <= 0).all()
    assert solution.n_evaluations < 1.5 * solution.n_iter


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("half_width", [0.7, None])
def test_as_good_as_scipy_for_about_as_many_evaluations(seed, half_width):
    # A chained Rosenbrock function couples all rows, with and without a box that binds.
    X0 = np.random.default_rng(seed).uniform(-0.7, 0.7, size=(10, 2))

    def chained(x):
        return scipy_optimize.rosen(x), scipy_optimize.rosen_der(x)

    class Chained:
        def value_and_grad(self, X):
            value, grad = chained(X.ravel())
            return value, grad.reshape(X.shape)

    bounds = None if half_width is None else [(-half_width, half_width)] * X0.size
    peer = scipy_optimize.minimize(
        chained,
        X0.ravel(),
        jac=True,
        method="L-BFGS-B",
        bounds=bounds,
        options={"ftol": 1e-14, "gtol": 1e-8, "maxiter": 500},
    )
    constraint = None if half_width is None else Box(half_width)
    ours = minimize(Chained(), X0, max_iter=500, tol=1e-12, constraint=constraint)
    assert ours.value == pytest.approx(peer.fun, abs=1e-8, rel=1e-8)
    assert ours.n_evaluations <= 2 * peer.nfev + 20


@pytest.mark.parametrize("distance", [1e-6, 1.0, 1e6])
def test_a_far_or_near_minimum_is_found_in_few_evaluations(distance):
    solution = minimize(Quadratic(distance), np.zeros((2, 2)), tol=1e-9)
    np.testing.assert_allclose(solution.X, distance, rtol=1e-9)
    assert solution.n_evaluations < 25


def test_pace_takes_badly_scaled_unknowns_together():
    # Curvatures of 1 and 400: with the pace told, the problem is as easy as a round one.
    curvature = np.repeat([[1.0], [400.0]], [30, 5], axis=0)
    centre = np.random.default_rng(0).normal(size=(35, 2))

    class Bowl:
        def value_and_grad(self, X):
            gap = curvature * (X - centre)
            return float((gap * (X - centre)).sum() / 2), gap

    start = np.zeros((35, 2))
    plain = minimize(Bowl(), start, tol=0, max_iter=60)
    paced = minimize(Bowl(), start, pace=1 / curvature, tol=0, max_iter=60)
    np.testing.assert_allclose(paced.X, centre, atol=1e-6)
    assert paced.n_evaluations < 0.7 * plain.n_evaluations


def trial(step, value=0.0, slope=-1.0):
    nowhere = np.zeros((1, 1))
    return Trial(step, nowhere, value, nowhere, slope)


@pytest.mark.parametrize(
    ("slope", "expected"),
    [
        (-3.0, 6.5),  # slopes -4 at 1/2 and -3 at 2 meet zero at 6.5
        (-2.0, 4.0),  # at 3.5, which is less than twice as far
        (-3.9, 20.0),  # at 60.5, more than ten times as far
        (-4.0, 20.0),  # nowhere
        (-5.0, 20.0),
    ],
)
def test_steps_are_lengthened_to_where_the_slope_would_vanish(slope, expected):
    longer = _lengthened(trial(0.5, slope=-4.0), trial(2.0, slope=slope))
    assert longer == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (3.0, 2.0),  # the parabola 3 - 2t + t² through 3 at t = 0 and t = 2 is lowest at t = 1
        (1000.0, 1.2),  # too near: a tenth of the way
        (1.0, 2.8),  # too far: nine tenths
        (-2.0, 2.0),  # no parabola has that: half of the way
        (np.inf, 2.0),
        (np.nan, 2.0),
    ],
)
def test_steps_are_shortened_to_where_a_parabola_is_lowest(value, expected):
    shorter = _shortened(trial(1.0, value=3.0, slope=-2.0), 3.0, value)
    assert shorter == pytest.approx(expected, rel=1e-12)
