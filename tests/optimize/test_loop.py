from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from optimize.problems import DoubleWell, LogBarrier, Quadratic, Rosenbrock, Spoilt, interrupt
from threadpoolctl import threadpool_limits

from twofold.optimize import Ball, Box, Event, StopReason, loop, minimize

METHODS = ["lbfgs", "rprop-", "irprop-", "irprop+"]
RPROP = METHODS[1:]


@pytest.fixture
def rng():
    return np.random.default_rng(0)


@pytest.mark.parametrize("method", METHODS)
def test_finds_the_minimum_of_an_ill_scaled_quadratic(method, rng):
    centre = rng.normal(size=(6, 3))
    weights = 10.0 ** rng.uniform(-2, 2, size=(6, 3))
    solution = minimize(Quadratic(centre, weights), np.zeros((6, 3)), method=method, tol=0)
    # Rprop ends with steps of 1e-6 in every coordinate.
    np.testing.assert_allclose(solution.X, centre, atol=5e-6)


@pytest.mark.parametrize("method", METHODS)
def test_finds_the_minimum_of_rosenbrock_in_pairs(method):
    starts = np.array([[-1.2, 1.0], [0.0, 0.0], [2.0, -1.0]])
    max_iter = 100 if method == "lbfgs" else 5000
    solution = minimize(Rosenbrock(), starts, method=method, max_iter=max_iter, tol=1e-12)
    # Signs alone follow a bent valley slowly: "rprop-" is 0.03 away after 5000 iterations.
    np.testing.assert_allclose(solution.X, 1.0, atol=1e-6 if method == "lbfgs" else 0.05)


@pytest.mark.parametrize("method", METHODS)
def test_goes_round_an_infinite_region(method):
    objective = LogBarrier()
    solution = minimize(objective, np.full((4, 2), -0.4), method=method)
    # -x + 0.1 cos 5x - 0.01 log(1 - x) has its minimum in [0.8, 1) here: scan for it.
    grid = np.linspace(0.8, 1, 200_001)[:-1]
    values = -grid + 0.1 * np.cos(5 * grid) - 0.01 * np.log(1 - grid)
    assert solution.value == pytest.approx(8 * values.min(), rel=1e-6)
    np.testing.assert_allclose(solution.X, grid[values.argmin()], atol=1e-3)
    assert np.isfinite(solution.history).all()


@pytest.mark.parametrize("method", METHODS)
def test_reaches_a_sudden_wall(method):
    class Wall:
        def value_and_grad(self, X):
            return (np.inf if X[0, 0] < 1 else float(X.sum())), np.ones_like(X)

    solution = minimize(Wall(), np.array([[30.0]]), method=method)
    assert 1 <= solution.X[0, 0] < 1 + 1e-4
    assert solution.stop_reason in (StopReason.SMALL_STEP, StopReason.CONVERGED)


@pytest.mark.parametrize("method", METHODS)
def test_returns_the_best_point_and_the_books_are_right(method, rng):
    seen = []

    class Watched:
        def value_and_grad(self, X):
            value, grad = DoubleWell().value_and_grad(X)
            seen.append((value, X.copy()))
            return value, grad

    X0 = rng.normal(size=(5, 2))
    # An odd number of iterations leaves Rprop in the middle of its swinging.
    solution = minimize(Watched(), X0, method=method, max_iter=17, tol=0)
    best_value, best_X = min(seen, key=lambda pair: pair[0])
    assert solution.value == best_value
    np.testing.assert_array_equal(solution.X, best_X)
    assert solution.n_evaluations == len(seen)
    assert solution.n_iter == 17
    assert solution.history.shape == (18,)
    assert solution.history[0] == seen[0][0]
    assert solution.history.min() >= solution.value


def test_every_rprop_variant_swings_past_its_best_point(rng):
    # Otherwise the test above could not tell the best from the last.
    solution = minimize(DoubleWell(), rng.normal(size=(5, 2)), method="rprop-", max_iter=17, tol=0)
    assert solution.history[-1] > solution.value


@pytest.mark.parametrize("method", METHODS)
def test_converges_when_the_decrease_is_small(method):
    class Raised:
        def value_and_grad(self, X):
            value, grad = DoubleWell().value_and_grad(X)
            return value + 2, grad

    X0 = np.array([[-0.5, -3.0]])
    solution = minimize(Raised(), X0, method=method, tol=1e-3)
    exact = minimize(Raised(), X0, method=method, tol=0)
    assert solution.stop_reason is StopReason.CONVERGED
    assert solution.value == pytest.approx(exact.value, rel=1e-3)
    assert solution.n_iter < exact.n_iter


@pytest.mark.parametrize("method", METHODS)
def test_stops_at_a_stationary_start(method):
    solution = minimize(Quadratic(np.zeros((3, 2))), np.zeros((3, 2)), method=method)
    assert solution.stop_reason is StopReason.STATIONARY
    assert solution.n_iter == 0
    assert solution.n_evaluations == 1


@pytest.mark.parametrize("method", METHODS)
def test_stops_when_the_steps_are_small(method):
    # A kink: the gradient is nowhere small.
    class Distance:
        def value_and_grad(self, X):
            offset = X - 0.123456789
            return float(np.abs(offset).sum()), np.where(offset > 0, 1.0, -1.0)

    solution = minimize(Distance(), np.array([[5.0]]), method=method, tol=0)
    assert solution.stop_reason is StopReason.SMALL_STEP
    np.testing.assert_allclose(solution.X, 0.123456789, atol=1e-5)


@pytest.mark.parametrize("method", METHODS)
def test_stops_at_the_target(method):
    solution = minimize(Quadratic(0.0), np.full((2, 2), 5.0), method=method, target=10.0)
    assert solution.stop_reason is StopReason.TARGET
    assert solution.value <= 10.0 < solution.history[-2]


def test_a_start_below_the_target_is_left_alone():
    solution = minimize(Quadratic(0.0), np.ones((1, 1)), target=0.5)
    assert (solution.stop_reason, solution.n_iter) == (StopReason.TARGET, 0)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("max_iter", [0, 3])
def test_stops_after_max_iter(method, max_iter):
    solution = minimize(Rosenbrock(), np.array([[-1.2, 1.0]]), method=method, max_iter=max_iter)
    assert solution.stop_reason is StopReason.MAX_ITER
    assert solution.n_iter == max_iter
    assert len(solution.history) == max_iter + 1


@pytest.mark.parametrize("value", [np.inf, np.nan, -np.inf])
def test_stops_at_a_start_that_is_not_finite(value):
    spoilt = Spoilt(Quadratic(0.0), 1, lambda X: (value, np.zeros_like(X)))
    X0 = np.ones((2, 1))
    solution = minimize(spoilt, X0)
    assert solution.stop_reason is StopReason.NON_FINITE
    assert solution.value == np.inf
    np.testing.assert_array_equal(solution.X, X0)


@pytest.mark.parametrize("method", METHODS)
def test_says_so_when_there_is_only_nan_ahead(method):
    class Broken:
        def value_and_grad(self, X):
            return (1.0 if X[0, 0] == 1 else np.nan), np.ones_like(X)

    solution = minimize(Broken(), np.ones((1, 1)), method=method)
    assert solution.stop_reason is StopReason.NON_FINITE
    assert (solution.value, solution.X[0, 0]) == (1.0, 1.0)


@pytest.mark.parametrize("method", RPROP)
def test_standing_still_before_nan_is_not_convergence(method):
    # 45 iterations downhill lengthen the steps to 50; to halve them to 1e-6 takes 26 iterations,
    # one more than convergence is judged over.
    class BreaksLate:
        n_calls = 0

        def value_and_grad(self, X):
            self.n_calls += 1
            return (float(X.sum()) if self.n_calls < 45 else np.nan), np.ones_like(X)

    solution = minimize(BreaksLate(), np.zeros((1, 1)), method=method)
    assert solution.stop_reason is StopReason.NON_FINITE


@pytest.mark.parametrize("method", METHODS)
def test_a_single_nan_does_no_harm(method):
    spoilt = Spoilt(Quadratic(0.7), 4, lambda X: (np.nan, np.full_like(X, np.nan)))
    solution = minimize(spoilt, np.full((3, 2), 5.0), method=method, tol=0)
    np.testing.assert_allclose(solution.X, 0.7, atol=5e-6)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("call", [2, 5, 9])
def test_an_interrupt_returns_the_best_point_so_far(method, call):
    undisturbed = Spoilt(Rosenbrock(), -1, interrupt)
    values = []

    class Watched:
        def value_and_grad(self, X):
            if len(values) == call - 1:
                raise KeyboardInterrupt
            value, grad = undisturbed.value_and_grad(X)
            values.append(value)
            return value, grad

    solution = minimize(Watched(), np.array([[-1.2, 1.0], [0.5, 2.0]]), method=method)
    assert solution.stop_reason is StopReason.INTERRUPTED
    assert solution.n_evaluations == call - 1
    assert solution.value == min(values)
    assert Rosenbrock().value_and_grad(solution.X)[0] == solution.value


def test_an_interrupt_before_the_first_value_returns_the_start():
    X0 = np.array([[1.0, 2.0]])
    solution = minimize(Spoilt(Rosenbrock(), 1, interrupt), X0)
    assert solution.stop_reason is StopReason.INTERRUPTED
    assert (solution.value, solution.n_iter, solution.n_evaluations) == (np.inf, 0, 0)
    assert solution.history.size == 0
    np.testing.assert_array_equal(solution.X, X0)


def test_an_interrupt_in_a_callback_is_caught_too():
    solution = minimize(Rosenbrock(), np.zeros((1, 2)), callbacks=[interrupt])
    assert (solution.stop_reason, solution.n_iter) == (StopReason.INTERRUPTED, 1)


@pytest.mark.parametrize("method", METHODS)
def test_a_callback_sees_every_iteration_and_can_stop(method):
    events: list[Event] = []
    late: list[int] = []

    def stop_at_four(event):
        events.append(event)
        return event.iteration == 4

    solution = minimize(
        Rosenbrock(),
        np.array([[-1.2, 1.0]]),
        method=method,
        max_iter=50,
        callbacks=[stop_at_four, lambda event: late.append(event.iteration)],
        label="valley",
    )
    assert solution.stop_reason is StopReason.CALLBACK
    assert [event.iteration for event in events] == late == [1, 2, 3, 4]
    assert [event.value for event in events] == list(solution.history[1:])
    assert {(event.max_iter, event.label) for event in events} == {(50, "valley")}
    assert all(b.elapsed >= a.elapsed >= 0 for a, b in itertools.pairwise(events))
    with pytest.raises(ValueError, match="read-only"):
        events[0].X[0, 0] = 7
    assert Rosenbrock().value_and_grad(events[-1].X)[0] == events[-1].value


def test_context_managers_among_the_callbacks_are_closed_even_after_an_error():
    log = []

    class Managed:
        def __enter__(self):
            log.append("open")

        def __exit__(self, *error):
            log.append("closed")

        def __call__(self, event):
            log.append("called")

    def fail(X):
        raise RuntimeError("no value")

    with pytest.raises(RuntimeError, match="no value"):
        minimize(
            Spoilt(Rosenbrock(), 3, fail), np.zeros((1, 2)), method="rprop", callbacks=[Managed()]
        )
    assert log == ["open", "called", "closed"]


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("constraint", [None, Box(1.5), Ball(2.0)])
def test_float32_stays_float32(method, constraint):
    dtypes = set()

    class Watched:
        def value_and_grad(self, X):
            dtypes.add(X.dtype)
            value, grad = DoubleWell().value_and_grad(X)
            return value, grad.astype(np.float64)

    X0 = np.array([[-1.2, -0.3], [-3.0, -0.5]], dtype=np.float32)
    solution = minimize(Watched(), X0, method=method, constraint=constraint)
    assert dtypes == {np.dtype(np.float32)}
    assert solution.X.dtype == np.float32
    np.testing.assert_allclose(solution.X, min(np.roots([4, 0, -4, 0.3]).real), atol=2e-3)


def test_integers_become_float64_and_the_start_is_not_changed():
    X0 = np.array([[4, 2]])
    solution = minimize(Quadratic(0.0), X0)
    assert solution.X.dtype == np.float64
    np.testing.assert_array_equal(X0, [[4, 2]])


@pytest.mark.parametrize("method", METHODS)
def test_the_objective_may_reuse_its_gradient_array(method):
    class Thrifty:
        def __init__(self):
            self.buffer = np.empty((2, 2))

        def value_and_grad(self, X):
            value, grad = Rosenbrock().value_and_grad(X)
            self.buffer[:] = grad
            return value, self.buffer

    X0 = np.array([[-1.2, 1.0], [0.0, 0.5]])
    thrifty = minimize(Thrifty(), X0, method=method, max_iter=30)
    plain = minimize(Rosenbrock(), X0, method=method, max_iter=30)
    np.testing.assert_array_equal(thrifty.history, plain.history)


@pytest.mark.parametrize("method", METHODS)
def test_the_number_of_threads_does_not_matter(method, rng):
    # Long enough for BLAS to share a dot product among its threads.
    X0 = rng.normal(size=(50_000, 2))
    solutions = []
    for threads in (1, 2):
        with threadpool_limits(threads):
            solutions.append(minimize(Rosenbrock(), X0, method=method, max_iter=8))
    np.testing.assert_array_equal(solutions[0].X, solutions[1].X)


@pytest.mark.parametrize("factor", [1e-8, 1e8])
@pytest.mark.parametrize("method", METHODS)
def test_the_scale_of_the_values_does_not_matter(method, factor):
    class Scaled:
        def value_and_grad(self, X):
            value, grad = Rosenbrock().value_and_grad(X)
            return factor * value, factor * grad

    X0 = np.array([[-1.2, 1.0]])
    scaled = minimize(Scaled(), X0, method=method, max_iter=20)
    plain = minimize(Rosenbrock(), X0, method=method, max_iter=20)
    np.testing.assert_allclose(scaled.X, plain.X, rtol=1e-6)


def test_rprop_is_the_name_of_the_best_variant():
    X0 = np.array([[-1.2, 1.0]])
    by_alias = minimize(Rosenbrock(), X0, method="rprop", max_iter=60)
    by_name = minimize(Rosenbrock(), X0, method="irprop+", max_iter=60)
    np.testing.assert_array_equal(by_alias.history, by_name.history)


def test_every_reason_has_a_sentence():
    for reason in StopReason:
        assert reason.message.endswith(".")
        assert len(reason.message) > 20


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"method": "adam"}, r"`method` must be one of .'lbfgs'.*got 'adam'"),
        ({"X0": np.zeros(3)}, r"shape \(n, q\).*got \(3,\).*reshape"),
        ({"X0": np.zeros((0, 2))}, r"n, q >= 1; got \(0, 2\)"),
        ({"X0": np.array([[0.0, 1.0], [math.nan, 2.0]])}, "got nan in row 1, column 0"),
        ({"max_iter": -1}, "`max_iter` must be an integer of at least 0; got -1"),
        ({"tol": -0.1}, "`tol` must be at least 0"),
        ({"tol": math.nan}, "`tol` must be at least 0"),
    ],
)
def test_errors_say_what_came(changes, message):
    arguments = {"X0": np.zeros((1, 2))} | changes
    with pytest.raises(ValueError, match=message):
        minimize(Rosenbrock(), arguments.pop("X0"), **arguments)


def test_a_gradient_of_the_wrong_shape_is_refused():
    spoilt = Spoilt(Rosenbrock(), 1, lambda X: (0.0, np.zeros(2)))
    with pytest.raises(ValueError, match=r"shape of X, \(1, 2\); got \(2,\)"):
        minimize(spoilt, np.zeros((1, 2)))


@pytest.mark.parametrize("odd", [np.nan, np.inf])
def test_points_that_left_all_numbers_are_not_evaluated(odd):
    class OnlyNumbers:
        def value_and_grad(self, X):
            assert np.isfinite(X).all()
            return float((X**2).sum()), 2 * X

    run = loop._Run(OnlyNumbers(), np.ones((2, 1)), None)
    value, grad = run.evaluate(np.array([[odd], [1.0]]))
    assert value == math.inf
    assert not grad.any()
    assert run.n_evaluations == 1
    assert not run.is_finite
    assert not run.is_broken
    assert run.evaluate(np.ones((2, 1)))[0] == 2.0
    assert run.is_finite
