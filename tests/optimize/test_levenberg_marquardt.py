from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import least_squares

from twofold.optimize import levenberg_marquardt
from twofold.optimize.levenberg_marquardt import _learn, _scale, _solve_in_place, _solve_within

N, K, Q = 40, 4, 3


class Curved:
    """Row i: ``sin(A_i x) + B_i x² - y_i``, k residuals of q unknowns."""

    def __init__(self, k=K, q=Q, n=N, seed=0, noise=0.0):
        rng = np.random.default_rng(seed)
        self.A = rng.normal(size=(n, k, q))
        self.B = 0.3 * rng.normal(size=(n, k, q))
        self.truth = rng.uniform(-0.5, 0.5, size=(n, q))
        self.y = np.zeros((n, k))
        self.y = self.residual(self.truth, np.arange(n)) + noise * rng.normal(size=(n, k))
        self.calls = 0

    def residual(self, x, rows):
        inner = np.einsum("bkq,bq->bk", self.A[rows], x)
        return np.sin(inner) + np.einsum("bkq,bq->bk", self.B[rows], x**2) - self.y[rows]

    def __call__(self, x, rows):
        self.calls += 1
        inner = np.einsum("bkq,bq->bk", self.A[rows], x)
        J = np.cos(inner)[:, :, None] * self.A[rows] + 2 * self.B[rows] * x[:, None, :]
        return self.residual(x, rows), J


class Linear:
    """``A_i x - y_i``."""

    def __init__(self, A, y):
        self.A, self.y = np.asarray(A, dtype=float), np.asarray(y, dtype=float)

    def __call__(self, x, rows):
        return np.einsum("bkq,bq->bk", self.A[rows], x) - self.y[rows], self.A[rows]


def by_scipy(problem, start, i, lo=-np.inf, hi=np.inf):
    found = least_squares(
        lambda x: problem.residual(x[None], np.array([i]))[0],
        np.clip(start[i], np.asarray(lo) + 1e-9, np.asarray(hi) - 1e-9),
        lambda x: problem(x[None], np.array([i]))[1][0],
        bounds=(lo, hi),
        xtol=1e-14,
        ftol=1e-14,
        gtol=1e-14,
    )
    return found.x, 2 * found.cost


def test_residuals_that_can_vanish_do():
    problem = Curved()
    found = levenberg_marquardt(problem, problem.truth + 0.05)
    assert found.converged.all()
    assert found.squared_error.max() < 1e-20
    np.testing.assert_allclose(found.x, problem.truth, atol=1e-6)
    assert found.n_iter.max() <= 15


@pytest.mark.parametrize("noise", [0.1, 1.0])
def test_same_minima_as_scipy(noise):
    problem = Curved(noise=noise)
    start = problem.truth
    found = levenberg_marquardt(problem, start)
    assert found.converged.all()
    elsewhere = 0
    for i in range(N):
        x, error = by_scipy(problem, start, i)
        if abs(found.squared_error[i] - error) < 1e-8 * (1 + error):
            np.testing.assert_allclose(found.x[i], x, atol=2e-4)
        else:
            elsewhere += 1  # another valley, which no local search can help
    assert elsewhere <= 0.15 * N


def test_bounds_are_kept_and_minima_on_them_found():
    problem = Curved(noise=0.5)
    lo, hi = np.full(Q, -0.2), np.array([0.1, 0.3, 0.2])
    start = np.zeros((N, Q))
    found = levenberg_marquardt(problem, start, lo=lo, hi=hi)
    assert found.converged.all()
    assert ((lo <= found.x) & (found.x <= hi)).all()
    on_bound = ((found.x == lo) | (found.x == hi)).any(axis=1)
    assert on_bound.mean() > 0.5
    errors = np.array([by_scipy(problem, start, i, lo, hi)[1] for i in range(N)])
    assert np.mean(found.squared_error <= errors * (1 + 1e-6)) >= 0.95


def test_a_bounded_linear_problem_is_solved_at_once():
    # The free minimum lies at (2, 0); with x_1 <= 1 the best is x_2 = 0.5, not 0.
    A = [[[1.0, 0.0], [1.0, 2.0]]]
    problem = Linear(A, [[2.0, 2.0]])
    found = levenberg_marquardt(problem, [[0.0, 0.0]], lo=[-9, -9], hi=[1, 9])
    np.testing.assert_allclose(found.x, [[1.0, 0.5]], atol=1e-7)
    assert found.x[0, 0] == 1
    assert found.converged[0]


def test_bounds_may_differ_from_row_to_row():
    problem = Linear(np.ones((3, 1, 1)), [[5.0]] * 3)
    found = levenberg_marquardt(problem, np.zeros((3, 1)), lo=0, hi=[[1], [2], [9]])
    np.testing.assert_allclose(found.x[:, 0], [1, 2, 5])


def test_a_start_outside_is_moved_in():
    problem = Linear([[[1.0]]], [[0.5]])
    found = levenberg_marquardt(problem, [[7.0]], lo=0, hi=1)
    np.testing.assert_allclose(found.x, [[0.5]])


def test_too_few_residuals_leave_the_solution_nearest_to_the_start():
    rng = np.random.default_rng(0)
    A, y, start = rng.normal(size=(20, 2, 5)), rng.normal(size=(20, 2)), rng.normal(size=(20, 5))
    # Columns of equal norm, so that the damping has no favourite among the coordinates.
    A /= np.linalg.norm(A, axis=1, keepdims=True)
    found = levenberg_marquardt(Linear(A, y), start)
    assert found.converged.all()
    for i in range(20):
        nearest = start[i] + np.linalg.pinv(A[i]) @ (y[i] - A[i] @ start[i])
        np.testing.assert_allclose(found.x[i], nearest, atol=1e-5)


def test_an_unknown_that_does_nothing_stays():
    problem = Linear([[[1.0, 0.0]], [[0.0, 0.0]]], [[3.0], [1.0]])
    found = levenberg_marquardt(problem, [[0.0, 0.7], [0.2, 0.7]])
    np.testing.assert_allclose(found.x, [[3.0, 0.7], [0.2, 0.7]], atol=1e-7)
    assert found.converged.all()


def test_large_residuals_do_not_slow_it_down():
    # Gauss-Newton alone needs 20 to 60 steps: the circle bends as much as the residual is long.
    angle = np.linspace(0.3, 1.2, 10)[:, None]

    def to_circle(x, rows):
        r = (
            np.hstack([np.cos(x), np.sin(x)])
            - 0.2 * np.hstack([np.cos(angle), np.sin(angle)])[rows]
        )
        return r, np.stack([-np.sin(x), np.cos(x)], axis=1)

    found = levenberg_marquardt(to_circle, np.zeros((10, 1)))
    assert found.converged.all()
    np.testing.assert_allclose(found.x, angle, atol=1e-6)
    assert found.n_iter.max() <= 20


def test_a_row_does_not_depend_on_the_others():
    problem = Curved(noise=0.5)
    whole = levenberg_marquardt(problem, problem.truth, lo=-0.4, hi=0.4)
    for i in (0, 7, N - 1):

        def one(x, rows, i=i):
            # einsum may add in another order for one row: ask for the row among all.
            X = np.repeat(x, N, axis=0)
            r, J = problem(X, np.arange(N))
            return r[[i]], J[[i]]

        alone = levenberg_marquardt(one, problem.truth[[i]], lo=-0.4, hi=0.4)
        np.testing.assert_allclose(alone.x[0], whole.x[i], rtol=0, atol=1e-10)
        assert alone.n_iter[0] == whole.n_iter[i]


def test_only_rows_still_under_way_are_looked_at():
    asked = []

    def square(x, rows):
        asked.append(list(rows))
        return x**2 - np.array([[0.0], [2.0]])[rows], 2 * x[:, :, None]

    found = levenberg_marquardt(square, [[0.0], [1.0]])
    assert asked[0] == [0, 1]
    assert asked[-1] == [1]
    np.testing.assert_allclose(found.x, [[0.0], [np.sqrt(2)]], atol=1e-7)


def test_the_limit_of_steps_is_told():
    problem = Curved(noise=1.0)
    found = levenberg_marquardt(problem, problem.truth, max_iter=1)
    assert not found.converged.all()
    assert (found.n_iter <= 1).all()
    start_error = (problem.residual(problem.truth, np.arange(N)) ** 2).sum(axis=1)
    assert (found.squared_error <= start_error + 1e-12).all()


def test_steps_to_where_residuals_are_not_finite_are_refused():
    def root(x, rows):
        with np.errstate(invalid="ignore", divide="ignore"):
            r = np.log(x) - np.log([[1e-3], [1.0]])[rows]
            return r, (1 / x)[:, :, None]

    found = levenberg_marquardt(root, [[5.0], [-1.0]])
    assert found.x[0, 0] == pytest.approx(1e-3)
    assert found.converged[0]
    assert not found.converged[1]  # the start itself
    assert found.squared_error[1] == np.inf
    assert found.x[1, 0] == -1


def test_the_result_does_not_depend_on_the_units_of_the_unknowns():
    problem = Curved(noise=0.5)
    unit = np.array([1e-4, 1.0, 1e5])

    def in_units(x, rows):
        r, J = problem(x * unit, rows)
        return r, J * unit

    plain = levenberg_marquardt(problem, problem.truth, scale=np.ones(Q))
    scaled = levenberg_marquardt(in_units, problem.truth / unit, scale=1 / unit)
    np.testing.assert_allclose(scaled.x * unit, plain.x, atol=1e-6)


def test_no_rows_give_no_rows():
    problem = Curved()
    found = levenberg_marquardt(problem, np.empty((0, Q)))
    assert found.x.shape == (0, Q)


def test_errors_say_what_is_wrong():
    problem = Curved()
    with pytest.raises(ValueError, match=r"`start` must be a finite array \(n, q\)"):
        levenberg_marquardt(problem, np.zeros(3))
    with pytest.raises(ValueError, match="finite"):
        levenberg_marquardt(problem, np.full((N, Q), np.nan))
    with pytest.raises(ValueError, match="`lo` must not lie above"):
        levenberg_marquardt(problem, problem.truth, lo=1, hi=0)
    with pytest.raises(ValueError, match="`scale` must be positive"):
        levenberg_marquardt(problem, problem.truth, scale=0)


def test_cholesky_solves_and_refuses():
    rng = np.random.default_rng(0)
    G = rng.normal(size=(6, 6))
    H, b = G @ G.T, rng.normal(size=6)
    x = b.copy()
    assert _solve_in_place(H.copy(), x)
    np.testing.assert_allclose(H @ x, b, atol=1e-8)
    assert not _solve_in_place(np.diag([1.0, -1.0]), np.ones(2))


def test_a_start_whose_error_overflows_has_not_converged():
    problem = Linear(np.array([[[1.0]], [[1.0]], [[1.0]]]), [[1e200], [2.0], [np.inf]])
    found = levenberg_marquardt(problem, np.zeros((3, 1)))
    np.testing.assert_array_equal(found.converged, [False, True, False])
    np.testing.assert_array_equal(found.x[[0, 2]], 0)
    assert found.x[1] == pytest.approx(2)
    assert np.isinf(found.squared_error[[0, 2]]).all()


def test_errors_near_the_largest_numbers_are_no_arrival():
    problem = Linear(np.array([[[1e10]]]), [[1e150]])
    found = levenberg_marquardt(problem, np.zeros((1, 1)), max_iter=3)
    assert found.n_iter[0] > 0


def test_who_steps_over_a_bound_is_held_and_the_others_are_solved_for_again():
    H, g = np.array([[2.0, 1.0], [1.0, 2.0]]), np.array([-4.0, -4.0])
    low, high = np.array([-9.0, -9.0]), np.array([0.5, 9.0])
    free, step = np.ones(2, dtype=bool), np.empty(2)
    # Freely both would go 1. With the first at 1/2 the second solves 3 x = 4 - 1/2.
    assert _solve_within(H, np.ones(2), g, low, high, free, step)
    np.testing.assert_allclose(step, [0.5, 3.5 / 3], rtol=1e-14)
    np.testing.assert_array_equal(free, [False, True])


def test_who_is_held_from_the_start_stays():
    H, g = np.array([[2.0, 1.0], [1.0, 2.0]]), np.array([-4.0, -4.0])
    free, step = np.array([False, True]), np.empty(2)
    assert _solve_within(H, np.ones(2), g, np.full(2, -9.0), np.full(2, 9.0), free, step)
    np.testing.assert_allclose(step, [0.0, 4 / 3], rtol=1e-14)


def test_no_step_where_the_curvature_is_not_positive():
    free, step = np.ones(2, dtype=bool), np.empty(2)
    bounds = np.full(2, -9.0), np.full(2, 9.0)
    assert not _solve_within(np.diag([1.0, -1.0]), np.zeros(2), np.ones(2), *bounds, free, step)


def test_steps_are_measured_by_the_width_of_the_bounds():
    lo, hi = np.array([[0.0, -np.inf, 2.0, -3.0]]), np.array([[0.5, np.inf, 2.0, 4.0]])
    np.testing.assert_array_equal(_scale(None, lo, hi), [[0.5, 1.0, 1.0, 7.0]])
    np.testing.assert_array_equal(_scale([1, 2, 3, 4], lo, hi), [[1, 2, 3, 4]])


def test_what_is_learned_explains_the_last_step():
    rng = np.random.default_rng(5)
    S, J, new_r = rng.normal(size=(2, 3, 3)), rng.normal(size=(2, 4, 3)), rng.normal(size=(2, 4))
    S, H = S + S.transpose(0, 2, 1), J.transpose(0, 2, 1) @ J
    step, gradient = rng.normal(size=(2, 3)), rng.normal(size=(2, 3))
    # The slope along the step rises in the first row and falls, where nothing is learned, below.
    new_gradient = gradient + [[1.0], [-1.0]] * step
    along = np.einsum("bq,bqr,br->b", step, S, step)
    without = -np.einsum("bq,bqr,br->b", step, H, step) - 2 * (gradient * step).sum(axis=1)
    decrease = without - [1.0, 0.0] * along  # S foretells the first, none the second
    learned, trusted = _learn(S, H, gradient, new_gradient, J, new_r, step, decrease)
    bend = new_gradient[0] - J[0].T @ new_r[0]
    np.testing.assert_allclose(learned[0] @ step[0], bend, rtol=1e-12)
    np.testing.assert_allclose(learned[0], learned[0].T, rtol=1e-12)
    np.testing.assert_array_equal(learned[1], S[1])
    np.testing.assert_array_equal(trusted, [True, False])
