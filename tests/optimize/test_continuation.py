from __future__ import annotations

import itertools

import numpy as np
import pytest
from optimize.problems import DoubleWell, Quadratic, Rosenbrock, Spoilt, interrupt

from twofold.optimize import (
    Box,
    Event,
    Journal,
    Stage,
    StopReason,
    continue_through,
    in_halves,
    minimize,
)

METHODS = ["lbfgs", "rprop-", "irprop-", "irprop+"]
START = np.array([[0.9], [1.2]])


def wells(*penalties):
    return [Stage(DoubleWell(p), label=f"penalty {p}", max_iter=200) for p in penalties]


@pytest.mark.parametrize("method", METHODS)
def test_finds_the_lower_well_where_the_direct_way_does_not(method):
    direct = minimize(DoubleWell(), START, method=method)
    assert (direct.X > 0.5).all()
    guided = continue_through(wells(3.0, 1.0, 0.3, 0.1, 0.0), START, method=method)
    # Minimum of (x^2 - 1)^2 + 0.3 x: the root of 4 x^3 - 4 x + 0.3 near -1.
    lower = min(np.roots([4, 0, -4, 0.3]).real)
    np.testing.assert_allclose(guided.X, lower, atol=1e-4)
    assert guided.value < direct.value


def test_the_books_add_up_over_the_stages():
    stages = wells(1.0, 0.1, 0.0)
    whole = continue_through(stages, START, method="rprop")
    X, parts = START, []
    for stage in stages:
        parts.append(minimize(stage.objective, X, method="rprop", max_iter=stage.max_iter))
        X = parts[-1].X
    np.testing.assert_array_equal(whole.X, X)
    assert whole.value == parts[-1].value
    assert whole.stop_reason == parts[-1].stop_reason
    assert whole.n_iter == sum(part.n_iter for part in parts)
    assert whole.n_evaluations == sum(part.n_evaluations for part in parts)
    np.testing.assert_array_equal(whole.history, np.concatenate([part.history for part in parts]))
    assert [record.label for record in whole.stages] == [
        "penalty 1.0",
        "penalty 0.1",
        "penalty 0.0",
    ]
    assert [record.n_iter for record in whole.stages] == [part.n_iter for part in parts]
    assert [record.value for record in whole.stages] == [part.value for part in parts]


def test_a_growing_box_ends_with_the_first_stage_that_binds_nothing():
    def boxes():
        for half_width in itertools.count(0.5, 1.0):
            yield Stage(Quadratic(2.2), Box(half_width), label=f"box {half_width}")

    solution = continue_through(
        boxes(),
        np.zeros((3, 2)),
        method="rprop",
        stop_when=lambda solution, stage: stage.constraint.is_binding(solution.X) == 0,
    )
    assert [record.label for record in solution.stages] == ["box 0.5", "box 1.5", "box 2.5"]
    np.testing.assert_allclose(solution.X, 2.2, atol=1e-4)


def test_events_count_through_all_stages():
    events: list[Event] = []
    stages = [
        Stage(Rosenbrock(), label="a", max_iter=5),
        Stage(Quadratic(0.0), label="b", max_iter=100),
        Stage(Rosenbrock(), label="c", max_iter=7),
    ]
    solution = continue_through(stages, np.array([[-1.2, 1.0]]), callbacks=[events.append])
    used = [record.n_iter for record in solution.stages]
    assert used[0] == 5
    assert used[1] < 100
    assert [event.iteration for event in events] == list(range(1, sum(used) + 1))
    assert "".join(event.label for event in events) == "a" * 5 + "b" * used[1] + "c" * used[2]
    # What remains at most shrinks when a stage ends early.
    most = {event.label: event.max_iter for event in events}
    assert most == {"a": 112, "b": 112, "c": 5 + used[1] + 7}
    assert all(b.elapsed >= a.elapsed for a, b in itertools.pairwise(events))


def test_the_end_of_a_generator_is_not_known():
    events: list[Event] = []
    continue_through((stage for stage in wells(0.0)), START, callbacks=[events.append])
    assert {event.max_iter for event in events} == {None}


def test_a_callback_ends_the_whole_sequence():
    solution = continue_through(
        wells(1.0, 0.1, 0.0), START, callbacks=[lambda event: event.label == "penalty 0.1"]
    )
    assert solution.stop_reason is StopReason.CALLBACK
    assert [record.label for record in solution.stages] == ["penalty 1.0", "penalty 0.1"]
    assert solution.stages[-1].n_iter == 1


def test_a_callback_is_heard_in_the_iteration_in_which_its_stage_converges():
    free = continue_through(wells(1.0, 0.0), START)
    last = free.stages[0].n_iter
    stopped = continue_through(
        wells(1.0, 0.0), START, callbacks=[lambda event: event.iteration == last]
    )
    assert (stopped.stop_reason, len(stopped.stages)) == (StopReason.CALLBACK, 1)


def test_an_interrupt_returns_what_there_is():
    stages = wells(1.0, 0.1, 0.0)
    first = minimize(stages[0].objective, START, max_iter=200)
    for call, label in ((1, "penalty 1.0"), (3, "penalty 0.1")):
        spoilt = Stage(Spoilt(stages[1].objective, call, interrupt), label="penalty 0.1")
        solution = continue_through([stages[0], spoilt, stages[2]], START)
        assert solution.stop_reason is StopReason.INTERRUPTED
        assert np.isfinite(solution.value)
        # A stage interrupted before its first value leaves no trace.
        assert solution.stages[-1].label == label
        assert solution.n_evaluations == first.n_evaluations + call - 1
    assert solution.X.shape == START.shape


def test_an_interrupt_between_stages_returns_what_there_is():
    def stages():
        yield from wells(1.0)
        raise KeyboardInterrupt

    solution = continue_through(stages(), START)
    assert solution.stop_reason is StopReason.INTERRUPTED
    np.testing.assert_array_equal(solution.X, minimize(DoubleWell(1.0), START, max_iter=200).X)


def test_an_interrupt_before_anything_is_passed_on():
    def stages():
        raise KeyboardInterrupt
        yield

    with pytest.raises(KeyboardInterrupt):
        continue_through(stages(), START)


def test_an_infeasible_stage_ends_the_sequence():
    spoilt = Stage(Spoilt(DoubleWell(), 1, lambda X: (np.inf, X)), label="barred")
    solution = continue_through([*wells(1.0), spoilt, *wells(0.0)], START)
    assert solution.stop_reason is StopReason.NON_FINITE
    assert [record.label for record in solution.stages] == ["penalty 1.0", "barred"]


def test_no_stages_are_an_error():
    with pytest.raises(ValueError, match="at least one Stage"):
        continue_through([], START)


def test_callbacks_are_opened_once_for_all_stages():
    log = []

    class Managed:
        def __enter__(self):
            log.append("open")

        def __exit__(self, *error):
            log.append("closed")

        def __call__(self, event):
            return None

    continue_through(wells(1.0, 0.0), START, callbacks=[Managed()])
    assert log == ["open", "closed"]


def halved(adjust, objective, *, max_iter=20, callbacks=(), start=((-1.2, 1.0),)):
    def descend(X, most, callbacks):
        return minimize(objective, X, max_iter=most, callbacks=callbacks)

    return in_halves(descend, adjust, np.array(start), max_iter, callbacks, Journal())


def test_halves_are_one_run_and_each_is_adjusted():
    events: list[Event] = []
    adjusted = []

    def adjust(X):
        adjusted.append(X)
        return 0.9 * X + 0.1  # towards the minimum, at (1, 1)

    solution = halved(adjust, Rosenbrock(), max_iter=9, callbacks=[events.append])
    first = minimize(Rosenbrock(), np.array([[-1.2, 1.0]]), max_iter=4)
    second = minimize(Rosenbrock(), adjust(first.X), max_iter=5)
    np.testing.assert_array_equal(adjusted[0], first.X)
    np.testing.assert_array_equal(adjusted[1], second.X)
    assert [event.iteration for event in events] == list(range(1, 10))
    assert {event.max_iter for event in events} == {9}
    assert solution.n_iter == 9
    assert solution.n_evaluations == first.n_evaluations + second.n_evaluations + 1
    found = minimize(Rosenbrock(), adjust(second.X), max_iter=0)
    best = found if found.value < second.value else second
    assert solution.value == best.value
    np.testing.assert_array_equal(solution.X, best.X)


@pytest.mark.parametrize(("factor", "best"), [(0.5, 0.25), (3.0, 1.0), (-1.0, 1.0)])
def test_the_best_of_both_halves_and_of_the_last_adjustment_counts(factor, best):
    start = np.full((1, 2), 4.0)
    solution = halved(lambda X: factor * X, Quadratic(0.0), max_iter=0, start=start)
    assert solution.value == Quadratic(0.0).value_and_grad(solution.X)[0]
    np.testing.assert_array_equal(np.abs(solution.X), best * start)


def test_a_callback_or_an_interrupt_ends_both_halves():
    stopped = halved(lambda X: X, Rosenbrock(), callbacks=[lambda event: event.iteration == 3])
    assert (stopped.stop_reason, stopped.n_iter) == (StopReason.CALLBACK, 3)
    broken = halved(interrupt, Rosenbrock())
    assert (broken.stop_reason, broken.n_iter) == (StopReason.INTERRUPTED, 10)
