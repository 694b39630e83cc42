from __future__ import annotations

import numpy as np
import pytest
from optimize.problems import Quadratic

from twofold.optimize import Ball, Box, StopReason, Unconstrained, minimize

METHODS = ["lbfgs", "rprop-", "irprop-", "irprop+"]
CONSTRAINTS = [Box(0.7), Ball(0.7)]


@pytest.fixture
def rng():
    return np.random.default_rng(0)


def test_projection_by_hand():
    X = np.array([[3.0, 4.0], [0.3, -0.4], [-3.0, 0.0]])
    np.testing.assert_array_equal(Box(2.0).project(X), [[2, 2], [0.3, -0.4], [-2, 0]])
    # Norms 5, 0.5, 3: the first row shrinks by 2/5, the last by 2/3.
    np.testing.assert_allclose(Ball(2.0).project(X), [[1.2, 1.6], [0.3, -0.4], [-2, 0]])
    np.testing.assert_array_equal(Unconstrained().project(X), X)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("constraint", CONSTRAINTS)
def test_projection_is_feasible_idempotent_and_keeps_the_dtype(constraint, dtype, rng):
    X = rng.normal(size=(500, 3)).astype(dtype)
    projected = constraint.project(X)
    sizes = np.abs(projected) if isinstance(constraint, Box) else np.linalg.norm(projected, axis=1)
    assert (sizes <= dtype(0.7)).all()
    assert projected.dtype == dtype
    np.testing.assert_array_equal(constraint.project(projected), projected)
    inside = 0.3 * np.tanh(X)
    np.testing.assert_array_equal(constraint.project(inside), inside)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("constraint", CONSTRAINTS)
def test_projected_rows_count_as_binding(constraint, dtype, rng):
    X = 0.1 * np.tanh(rng.normal(size=(50, 3))).astype(dtype)
    assert constraint.is_binding(X) == 0
    X[:20] *= 100
    X[:20] += np.sign(X[:20])
    assert constraint.is_binding(constraint.project(X)) == 20


@pytest.mark.parametrize("constraint", [Box(np.float64(0.7)), Ball(np.float64(0.7))])
def test_a_numpy_bound_does_not_widen_float32(constraint):
    X = constraint.project(np.array([[3.0, 0.1]], dtype=np.float32))
    grad = np.array([[-1.0, 0.0]], dtype=np.float32)
    assert X.dtype == np.float32
    assert constraint.is_binding(X) == 1
    assert constraint.free_gradient(X, grad).dtype == np.float32
    assert abs(constraint.free_gradient(X, grad)[0, 0]) < 0.01


def test_free_gradient_of_a_box_by_hand():
    X = np.array([[1.0, 1.0, -1.0, -1.0, 0.5]])
    grad = np.array([[-2.0, 2.0, -2.0, 2.0, -2.0]])
    # Descent goes against the gradient: outward at the first and the fourth.
    np.testing.assert_array_equal(Box(1.0).free_gradient(X, grad), [[0, 2, -2, 0, -2]])


def test_free_gradient_of_a_ball_by_hand():
    X = np.array([[1.0, 0.0], [1.0, 0.0], [0.5, 0.0], [0.0, 0.0]])
    grad = np.array([[-2.0, 3.0], [2.0, 3.0], [-2.0, 3.0], [-2.0, 3.0]])
    # Only in the first row is descent outward from the sphere: its radial part goes.
    expected = [[0, 3], [2, 3], [-2, 3], [-2, 3]]
    np.testing.assert_array_equal(Ball(1.0).free_gradient(X, grad), expected)


@pytest.mark.parametrize("constraint", CONSTRAINTS)
def test_the_free_gradient_is_where_projected_descent_goes(constraint, rng):
    # (X - P(X - t grad)) / t tends to the free gradient.
    X = constraint.project(rng.normal(size=(40, 2)))
    grad = rng.normal(size=(40, 2))
    t = 1e-7
    quotient = (X - constraint.project(X - t * grad)) / t
    np.testing.assert_allclose(constraint.free_gradient(X, grad), quotient, atol=1e-5)


@pytest.mark.parametrize("constraint", CONSTRAINTS)
def test_arguments_are_left_alone(constraint, rng):
    X = constraint.project(rng.normal(size=(40, 2)))
    X.flags.writeable = False
    grad = rng.normal(size=(40, 2))
    grad.flags.writeable = False
    constraint.project(X)
    constraint.free_gradient(X, grad)
    constraint.tangent(X, grad, grad)


@pytest.mark.parametrize("method", METHODS)
def test_a_box_cuts_a_separable_minimum_off_coordinate_by_coordinate(method):
    centre = np.array([[3.0, 0.2], [-0.4, -5.0]])
    weights = np.array([[1.0, 10.0], [3.0, 0.1]])
    objective = Quadratic(centre, weights)
    solution = minimize(objective, np.zeros((2, 2)), method=method, constraint=Box(1.0), tol=0)
    np.testing.assert_allclose(solution.X, [[1, 0.2], [-0.4, -1]], atol=5e-6)
    assert Box(1.0).is_binding(solution.X) == 2


@pytest.mark.parametrize("method", METHODS)
def test_a_ball_cuts_a_minimum_off_along_the_ray(method):
    centre = np.array([[3.0, 4.0], [0.3, -0.4]])
    solution = minimize(
        Quadratic(centre), np.array([[0.5, -0.5], [0.0, 0.1]]), method=method, constraint=Ball(1.0)
    )
    np.testing.assert_allclose(solution.X, [[0.6, 0.8], [0.3, -0.4]], atol=2e-4)
    assert Ball(1.0).is_binding(solution.X) == 1


@pytest.mark.parametrize("method", METHODS)
def test_an_oblique_minimum_on_the_circle(method):
    # min (x - 2)^2 / 2 + 10 (y - 2)^2 / 2 on the unit disc; the circle is scanned for the minimum.
    angles = np.linspace(0, np.pi / 2, 1_000_001)
    ring = np.stack([np.cos(angles), np.sin(angles)], axis=1)
    values = 0.5 * (ring[:, 0] - 2) ** 2 + 5 * (ring[:, 1] - 2) ** 2
    objective = Quadratic(np.array([[2.0, 2.0]]), np.array([[1.0, 10.0]]))
    solution = minimize(objective, np.array([[0.1, 0.0]]), method=method, constraint=Ball(1.0))
    assert solution.value == pytest.approx(values.min(), rel=1e-4)
    np.testing.assert_allclose(solution.X[0], ring[values.argmin()], atol=5e-3)


def test_lbfgs_follows_the_sphere_fast_and_precisely(rng):
    # A coupled quadratic in 60 unknowns whose minimum lies far outside all 20 balls.
    A = rng.normal(size=(60, 60))
    hessian = A @ A.T / 60 + np.eye(60)
    centre = 5 * rng.normal(size=60)

    class Coupled:
        def value_and_grad(self, X):
            grad = hessian @ (X.ravel() - centre)
            return float(0.5 * (X.ravel() - centre) @ grad), grad.reshape(X.shape)

    ball = Ball(1.0)
    solution = minimize(Coupled(), np.zeros((20, 3)), constraint=ball, max_iter=200, tol=1e-13)
    grad = Coupled().value_and_grad(solution.X)[1]
    assert np.abs(ball.free_gradient(solution.X, grad)).max() < 1e-4
    assert ball.is_binding(solution.X) > 10
    assert solution.n_iter < 100


@pytest.mark.parametrize(("constraint", "most"), [(Box(0.9), 50), (Ball(0.9), 60)])
def test_lbfgs_keeps_its_speed_on_the_boundary(constraint, most, rng):
    # Ill-conditioned, coupled, most rows bound. Without taking the bound directions out of the
    # quasi-Newton step, or with plain gradients in the memory, this takes 170 to 400 evaluations.
    Q = np.linalg.qr(rng.normal(size=(40, 40)))[0]
    hessian = (Q * np.logspace(0, 4, 40)) @ Q.T
    centre = 3 * rng.normal(size=40)

    class Coupled:
        def value_and_grad(self, X):
            grad = hessian @ (X.ravel() - centre)
            return float(0.5 * (X.ravel() - centre) @ grad), grad.reshape(X.shape)

    solution = minimize(Coupled(), np.zeros((20, 2)), constraint=constraint, tol=1e-12)
    grad = Coupled().value_and_grad(solution.X)[1]
    assert np.abs(constraint.free_gradient(solution.X, grad)).max() < 1e-6 * np.abs(grad).max()
    assert solution.n_evaluations < most


@pytest.mark.parametrize("half_width", [0.01, 50.0])
def test_lbfgs_does_not_search_beyond_a_corner(half_width):
    class Slope:
        def value_and_grad(self, X):
            return float(X.sum()), np.ones_like(X)

    solution = minimize(Slope(), np.zeros((2, 2)), constraint=Box(half_width))
    np.testing.assert_array_equal(solution.X, -half_width)
    assert solution.n_evaluations < 8


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("constraint", CONSTRAINTS)
def test_no_evaluation_is_outside(method, constraint):
    class Watched:
        def value_and_grad(self, X):
            np.testing.assert_array_equal(constraint.project(X), X)
            return objective.value_and_grad(X)

    objective = Quadratic(np.array([3.0, 1.5]), np.array([1.0, 20.0]))
    starts = np.array([[-1.2, 1.0], [0.0, 0.0], [2.0, -1.0]])
    solution = minimize(Watched(), starts, method=method, constraint=constraint)
    assert solution.n_evaluations > 2
    assert constraint.is_binding(solution.X) == 3


@pytest.mark.parametrize("method", METHODS)
def test_a_corner_where_descent_points_outward_is_stationary(method):
    solution = minimize(Quadratic(5.0), np.ones((2, 2)), method=method, constraint=Box(1.0))
    assert (solution.stop_reason, solution.n_iter) == (StopReason.STATIONARY, 0)


@pytest.mark.parametrize("method", METHODS)
def test_a_bound_start_can_leave_the_boundary(method):
    solution = minimize(Quadratic(0.3), np.ones((2, 2)), method=method, constraint=Box(1.0), tol=0)
    np.testing.assert_allclose(solution.X, 0.3, atol=5e-6)


@pytest.mark.parametrize("kind", [Box, Ball])
@pytest.mark.parametrize("bound", [0.0, -1.0, np.inf, np.nan])
def test_bounds_must_be_positive(kind, bound):
    with pytest.raises(ValueError, match="must be a finite number above 0; got "):
        kind(bound)
