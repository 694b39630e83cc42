from __future__ import annotations

import numpy as np
import pytest
from optimize.problems import DoubleWell, Quadratic, Rosenbrock
from oracles.rprop import rprop_iterates

from twofold.optimize import minimize


def iterates(objective, X0, method, n_iter):
    seen = []
    minimize(
        objective,
        X0,
        method=method,
        max_iter=n_iter,
        tol=0,
        callbacks=[lambda event: seen.append(event.X.copy())],
    )
    return seen


@pytest.mark.parametrize("variant", ["rprop-", "irprop-", "irprop+"])
@pytest.mark.parametrize("objective", [Rosenbrock(), DoubleWell()])
def test_every_iterate_equals_the_oracle(variant, objective):
    X0 = np.random.default_rng(3).normal(size=(7, 2))
    actual = iterates(objective, X0, variant, 80)
    # The double well is left after 60 iterations, when the steps are small.
    assert len(actual) > 55
    expected = rprop_iterates(objective.value_and_grad, X0, variant, len(actual))
    np.testing.assert_array_equal(actual, expected)


def test_the_variants_differ():
    # Otherwise equality with the oracle would say little.
    X0 = np.random.default_rng(3).normal(size=(7, 2))
    ends = [iterates(Rosenbrock(), X0, m, 80)[-1] for m in ("rprop-", "irprop-", "irprop+")]
    assert not np.array_equal(ends[0], ends[1])
    assert not np.array_equal(ends[1], ends[2])


def test_the_first_steps_by_hand():
    # Minimum at 0, start at 0.25; the gradient is x.
    # 1: no comparison yet, step 0.1          -> 0.15
    # 2: same sign, step 0.12                 -> 0.03
    # 3: same sign, step 0.144                -> -0.114  (value rises)
    # 4: sign changed, step 0.072
    #    rprop-:  goes back by the step       -> -0.042
    #    irprop-: rests                       -> -0.114
    #    irprop+: takes the last move back    -> 0.03
    fourth = {"rprop-": -0.042, "irprop-": -0.114, "irprop+": 0.03}
    for variant, x in fourth.items():
        path = np.ravel(iterates(Quadratic(0.0), np.array([[0.25]]), variant, 4))
        np.testing.assert_allclose(path, [0.15, 0.03, -0.114, x], atol=1e-14)


@pytest.mark.parametrize("variant", ["rprop-", "irprop-", "irprop+"])
def test_steps_stay_in_their_range(variant):
    # Down a slope without end: 0.1 * 1.2^k passes 50 at k = 35, and no step may be longer.
    class Slope:
        def value_and_grad(self, X):
            return float(X.sum()), np.ones_like(X)

    path = np.ravel(iterates(Slope(), np.array([[0.0]]), variant, 60))
    assert np.abs(np.diff(path)).max() == pytest.approx(50.0)


def test_an_infeasible_step_is_taken_back_and_halved():
    # Slope 1 towards a wall at -0.25. Steps 0.1, 0.12 -> -0.22; then 0.144 is infeasible,
    # 0.072 too, and 0.036 as well; 0.018 is the first that fits.
    class Wall:
        def value_and_grad(self, X):
            return (np.inf if X[0, 0] < -0.25 else float(X[0, 0])), np.ones_like(X)

    path = np.ravel(iterates(Wall(), np.array([[0.0]]), "irprop+", 6))
    np.testing.assert_allclose(path, [-0.1, -0.22, -0.22, -0.22, -0.22, -0.238], atol=1e-14)


def test_a_coordinate_without_gradient_does_not_hold_up_the_end():
    class HalfFlat:
        def value_and_grad(self, X):
            distance = X[:, :1] - 0.1234567
            return float(np.abs(distance).sum()), np.hstack([np.sign(distance), 0 * distance])

    solution = minimize(HalfFlat(), np.array([[1.0, 5.0]]), method="rprop", tol=0)
    assert solution.stop_reason == "small_step"
    assert solution.X[0, 1] == 5.0
