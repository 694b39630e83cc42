from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import least_squares

from twofold.optimize import Residuals, levenberg_marquardt
from twofold.optimize.levenberg_marquardt import (
    NormalEquations,
    _learn,
    _scale,
    _solve_within,
    _update,
)

N, K, Q = 40, 4, 3


def solve(problem, start, **options):
    """Minimise residuals of a ``problem(x, rows) -> r (b, k), J (b, k, q)``."""

    def look(x, rows):
        r, J = problem(x, rows)
        return Residuals(r, J.transpose(0, 2, 1))

    return levenberg_marquardt(look, start, **options)


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
    found = solve(problem, problem.truth + 0.05)
    assert found.converged.all()
    assert found.error.max() < 1e-20
    np.testing.assert_allclose(found.X, problem.truth, atol=1e-6)
    assert found.n_iter.max() <= 15


@pytest.mark.parametrize("noise", [0.1, 1.0])
def test_same_minima_as_scipy(noise):
    problem = Curved(noise=noise)
    start = problem.truth
    found = solve(problem, start)
    assert found.converged.all()
    elsewhere = 0
    for i in range(N):
        x, error = by_scipy(problem, start, i)
        if abs(found.error[i] - error) < 1e-8 * (1 + error):
            np.testing.assert_allclose(found.X[i], x, atol=2e-4)
        else:
            elsewhere += 1  # another valley, which no local search can help
    assert elsewhere <= 0.15 * N


def test_bounds_are_kept_and_minima_on_them_found():
    problem = Curved(noise=0.5)
    lo, hi = np.full(Q, -0.2), np.array([0.1, 0.3, 0.2])
    start = np.zeros((N, Q))
    found = solve(problem, start, lo=lo, hi=hi)
    assert found.converged.all()
    assert ((lo <= found.X) & (hi >= found.X)).all()
    on_bound = ((lo == found.X) | (hi == found.X)).any(axis=1)
    assert on_bound.mean() > 0.5
    errors = np.array([by_scipy(problem, start, i, lo, hi)[1] for i in range(N)])
    assert np.mean(found.error <= errors * (1 + 1e-6)) >= 0.95


def test_a_bounded_linear_problem_is_solved_at_once():
    # The free minimum lies at (2, 0); with x_1 <= 1 the best is x_2 = 0.5, not 0.
    A = [[[1.0, 0.0], [1.0, 2.0]]]
    problem = Linear(A, [[2.0, 2.0]])
    found = solve(problem, [[0.0, 0.0]], lo=[-9, -9], hi=[1, 9])
    np.testing.assert_allclose(found.X, [[1.0, 0.5]], atol=1e-7)
    assert found.X[0, 0] == 1
    assert found.converged[0]


def test_bounds_may_differ_from_row_to_row():
    problem = Linear(np.ones((3, 1, 1)), [[5.0]] * 3)
    found = solve(problem, np.zeros((3, 1)), lo=0, hi=[[1], [2], [9]])
    np.testing.assert_allclose(found.X[:, 0], [1, 2, 5])


def test_a_start_outside_is_moved_in():
    problem = Linear([[[1.0]]], [[0.5]])
    found = solve(problem, [[7.0]], lo=0, hi=1)
    np.testing.assert_allclose(found.X, [[0.5]])


def test_too_few_residuals_leave_the_solution_nearest_to_the_start():
    rng = np.random.default_rng(0)
    A, y, start = rng.normal(size=(20, 2, 5)), rng.normal(size=(20, 2)), rng.normal(size=(20, 5))
    # Columns of equal norm, so that the damping has no favourite among the coordinates.
    A /= np.linalg.norm(A, axis=1, keepdims=True)
    found = solve(Linear(A, y), start)
    assert found.converged.all()
    for i in range(20):
        nearest = start[i] + np.linalg.pinv(A[i]) @ (y[i] - A[i] @ start[i])
        np.testing.assert_allclose(found.X[i], nearest, atol=1e-5)


def test_an_unknown_that_does_nothing_stays():
    problem = Linear([[[1.0, 0.0]], [[0.0, 0.0]]], [[3.0], [1.0]])
    found = solve(problem, [[0.0, 0.7], [0.2, 0.7]])
    np.testing.assert_allclose(found.X, [[3.0, 0.7], [0.2, 0.7]], atol=1e-7)
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

    found = solve(to_circle, np.zeros((10, 1)))
    assert found.converged.all()
    np.testing.assert_allclose(found.X, angle, atol=1e-6)
    assert found.n_iter.max() <= 20


def test_a_row_does_not_depend_on_the_others():
    problem = Curved(noise=0.5)
    whole = solve(problem, problem.truth, lo=-0.4, hi=0.4)
    for i in (0, 7, N - 1):

        def one(x, rows, i=i):
            # einsum may add in another order for one row: ask for the row among all.
            X = np.repeat(x, N, axis=0)
            r, J = problem(X, np.arange(N))
            return r[[i]], J[[i]]

        alone = solve(one, problem.truth[[i]], lo=-0.4, hi=0.4)
        np.testing.assert_allclose(alone.X[0], whole.X[i], rtol=0, atol=1e-10)
        assert alone.n_iter[0] == whole.n_iter[i]


def test_only_rows_still_under_way_are_looked_at():
    asked = []

    def square(x, rows):
        asked.append(list(rows))
        return x**2 - np.array([[0.0], [2.0]])[rows], 2 * x[:, :, None]

    found = solve(square, [[0.0], [1.0]])
    assert asked[0] == [0, 1]
    assert asked[-1] == [1]
    np.testing.assert_allclose(found.X, [[0.0], [np.sqrt(2)]], atol=1e-7)


def test_the_limit_of_steps_is_told():
    problem = Curved(noise=1.0)
    found = solve(problem, problem.truth, max_iter=1)
    assert not found.converged.all()
    assert (found.n_iter <= 1).all()
    start_error = (problem.residual(problem.truth, np.arange(N)) ** 2).sum(axis=1)
    assert (found.error <= start_error + 1e-12).all()


def test_steps_to_where_residuals_are_not_finite_are_refused():
    def root(x, rows):
        with np.errstate(invalid="ignore", divide="ignore"):
            r = np.log(x) - np.log([[1e-3], [1.0]])[rows]
            return r, (1 / x)[:, :, None]

    found = solve(root, [[5.0], [-1.0]])
    assert found.X[0, 0] == pytest.approx(1e-3)
    assert found.converged[0]
    assert not found.converged[1]  # the start itself
    assert found.error[1] == np.inf
    assert found.X[1, 0] == -1


def test_the_result_does_not_depend_on_the_units_of_the_unknowns():
    problem = Curved(noise=0.5)
    unit = np.array([1e-4, 1.0, 1e5])

    def in_units(x, rows):
        r, J = problem(x * unit, rows)
        return r, J * unit

    plain = solve(problem, problem.truth, scale=np.ones(Q))
    scaled = solve(in_units, problem.truth / unit, scale=1 / unit)
    np.testing.assert_allclose(scaled.X * unit, plain.X, atol=1e-6)


def test_no_rows_give_no_rows():
    problem = Curved()
    found = solve(problem, np.empty((0, Q)))
    assert found.X.shape == (0, Q)


def test_errors_say_what_is_wrong():
    problem = Curved()
    with pytest.raises(ValueError, match=r"`start` must be a finite array \(n, q\)"):
        solve(problem, np.zeros(3))
    with pytest.raises(ValueError, match="finite"):
        solve(problem, np.full((N, Q), np.nan))
    with pytest.raises(ValueError, match="`lo` must not lie above"):
        solve(problem, problem.truth, lo=1, hi=0)
    with pytest.raises(ValueError, match="`scale` must be positive"):
        solve(problem, problem.truth, scale=0)


def test_a_start_whose_error_overflows_has_not_converged():
    problem = Linear(np.array([[[1.0]], [[1.0]], [[1.0]]]), [[1e200], [2.0], [np.inf]])
    found = solve(problem, np.zeros((3, 1)))
    np.testing.assert_array_equal(found.converged, [False, True, False])
    np.testing.assert_array_equal(found.X[[0, 2]], 0)
    assert found.X[1] == pytest.approx(2)
    assert np.isinf(found.error[[0, 2]]).all()


def test_errors_near_the_largest_numbers_are_no_arrival():
    problem = Linear(np.array([[[1e10]]]), [[1e150]])
    found = solve(problem, np.zeros((1, 1)), max_iter=3)
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
    bend = new_gradient - np.einsum("bkq,bk->bq", J, new_r)
    along = np.einsum("bq,bqr,br->b", step, S, step)
    without = -np.einsum("bq,bqr,br->b", step, H, step) - 2 * (gradient * step).sum(axis=1)
    decrease = without - [1.0, 0.0] * along  # S foretells the first, none the second
    learned = S.copy()
    trusted = [
        _learn(learned[i], H[i], gradient[i], new_gradient[i], bend[i], step[i], decrease[i])
        for i in range(2)
    ]
    np.testing.assert_allclose(learned[0] @ step[0], bend[0], rtol=1e-12)
    np.testing.assert_allclose(learned[0], learned[0].T, rtol=1e-12)
    np.testing.assert_array_equal(learned[1], S[1])
    np.testing.assert_array_equal(trusted, [True, False])


def test_rough_searches_learn_the_whole_matrix():
    rng = np.random.default_rng(8)
    G = rng.normal(size=(3, 5))
    H, gauss_newton, step = G @ G.T, np.eye(3), rng.normal(size=3)
    change = step + 0.1 * rng.normal(size=3)
    updated = H.copy()
    _update(updated, gauss_newton, np.zeros(3), change, step)
    np.testing.assert_allclose(updated @ step, change, rtol=1e-12)
    np.testing.assert_allclose(updated, updated.T, rtol=1e-12)
    assert np.linalg.eigvalsh(updated).min() > 0
    # It bends downwards: what was learned is dropped.
    _update(updated, gauss_newton, np.zeros(3), -change, step)
    np.testing.assert_array_equal(updated, gauss_newton)


def test_weights_are_those_of_copies():
    # Weight 2 is the residual twice, weight 0 is none.
    problem = Curved(noise=0.5)
    counts = np.random.default_rng(6).integers(0, 3, size=(N, K))
    counts[:, 0] = 1

    def weighted(x, rows):
        r, J = problem(x, rows)
        return Residuals(r, J.transpose(0, 2, 1), counts[rows].astype(float))

    def by_roots(x, rows):
        r, J = problem(x, rows)
        root = np.sqrt(counts[rows])
        return r * root, J * root[:, :, None]

    found, expected = levenberg_marquardt(weighted, problem.truth), solve(by_roots, problem.truth)
    np.testing.assert_allclose(found.X, expected.X, atol=1e-6)
    np.testing.assert_allclose(found.error, expected.error, rtol=1e-9, atol=1e-20)


def test_a_loss_is_minimised_by_reweighting():
    # The least sum of absolute residuals x - y_k is at the median, and far ones do not count.
    y = np.array([[0.0, 1.0, 2.0, 30.0, -1.0]])

    def pseudo_huber(x, rows):
        r = x - y[rows]
        root = np.sqrt(1 + (r / 0.01) ** 2)
        return Residuals(r, np.ones((len(x), 1, 5)), 1 / root, 2 * 0.01**2 * (root - 1).sum(axis=1))

    found = levenberg_marquardt(pseudo_huber, [[5.0]], max_iter=200)
    assert found.X[0, 0] == pytest.approx(1.0, abs=1e-3)
    assert found.error[0] == pytest.approx(2 * 0.01 * (np.abs(y - 1).sum()), rel=1e-2)


def test_steps_out_of_the_domain_are_refused():
    def half_line(x, rows):
        return Residuals(x - 5, np.ones((len(x), 1, 1)), inside=x[:, 0] <= 2)

    found = levenberg_marquardt(half_line, [[0.0], [7.0]])
    assert found.X[0, 0] == pytest.approx(2, abs=1e-3)
    assert found.X[0, 0] <= 2
    # A start outside stays there as long as no step leads in.
    assert found.X[1, 0] == 7


def test_the_best_start_of_a_problem_is_kept_and_hopeless_ones_are_given_up():
    asked = []

    def two_valleys(x, rows):
        asked.append(len(rows))
        r = np.hstack([(x - 1) * (x + 1), 0.3 * (x - 1)])
        return Residuals(r, np.stack([2 * x, np.full_like(x, 0.3)], axis=2))

    start = np.array([[-1.5], [0.8], [1.4], [-1.1]])
    found = levenberg_marquardt(two_valleys, start, n_starts=2).best_of(2)
    np.testing.assert_allclose(found.X, [[1.0], [1.0]], atol=1e-6)
    several = sum(asked)
    asked.clear()
    levenberg_marquardt(two_valleys, start)
    assert several < sum(asked)


def test_what_was_seen_is_not_looked_at_again_and_poor_promises_are_given_up():
    asked = []

    def look(x, rows):
        asked.append(rows)
        r, J = np.hstack([x - 1, 0.1 * x**2]), np.stack([np.ones_like(x), 0.2 * x], axis=2)
        error, gradient = (r**2).sum(axis=1), (J * r[:, None]).sum(axis=2)
        return NormalEquations(error, gradient, np.einsum("bad,bcd->bac", J, J))

    start = np.array([[0.9], [9.0], [1.2], [1.1]])
    seen = look(start, np.arange(4))
    plain = levenberg_marquardt(look, start, n_starts=2, decrease_tolerance=1e-9).best_of(2)
    asked.clear()
    found = levenberg_marquardt(look, start, n_starts=2, decrease_tolerance=1e-9, seen=seen)
    assert 1 not in np.concatenate(asked)
    assert found.n_iter[0] > 0
    assert found.n_iter[1] == 0
    np.testing.assert_allclose(found.best_of(2).X, plain.X, atol=1e-6)


def test_a_small_decrease_is_an_arrival():
    problem = Curved(noise=1.0)
    exact, rough = (solve(problem, problem.truth, decrease_tolerance=t) for t in (0.0, 1e-2))
    assert rough.converged.all()
    assert rough.n_iter.sum() < exact.n_iter.sum()
    assert (rough.error <= exact.error * 1.2).mean() >= 0.9


def test_single_precision_stays_accurate():
    problem = Curved(noise=0.5)

    def single(x, rows):
        r, J = problem(x, rows)
        return r.astype(np.float32), J.astype(np.float32)

    found, expected = solve(single, problem.truth), solve(problem, problem.truth)
    assert found.X.dtype == np.float64
    assert (np.abs(found.X - expected.X).max(axis=1) < 1e-3).mean() > 0.9
