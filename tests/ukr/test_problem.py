from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import pytest
from finite_differences import relative_error
from oracles import extensions as oracle
from ukr.problems import make_problem, make_table

from twofold.engine import KernelSums
from twofold.engine.local_loops import RIDGE
from twofold.kernels import GAUSSIAN
from twofold.losses import EpsilonInsensitive, Huber, Squared
from twofold.regularization import LeaveKOut
from twofold.ukr.objective import Problem, nearest_rows
from twofold.ukr.surface import CarriedRows

UNIT = 8.0
EPS_OF_ROWS = np.random.default_rng(9).uniform(0.05, 0.5, size=30)


@dataclass(frozen=True)
class LogCosh:
    """A user's loss, with nothing but what a loss must have."""

    def value_and_slope(self, R):
        return np.log(np.cosh(R)).sum(axis=1), np.tanh(R)


LOSSES = {
    "squared": (Squared(), UNIT**2),
    "huber": (Huber(0.7), UNIT),
    "eps": (EpsilonInsensitive(0.3), UNIT**2),
    "eps per vector": (EpsilonInsensitive(0.3, per="vector"), UNIT**2),
    "eps per row": (EpsilonInsensitive(EPS_OF_ROWS), UNIT**2),
    "user's": (LogCosh(), 1.0),
}
losses = pytest.mark.parametrize(("loss", "worth"), LOSSES.values(), ids=LOSSES.keys())


def problem_of(loss, *, n=30, missing=False, k=None, degree=0, landmarks=None, unit=UNIT):
    """Return latent points and a problem of weighted rows in a unit of 8."""
    X, Y, weights, observed = make_table(n=n, weighted=True, missing=missing, seed=4)
    rows = CarriedRows(Y, weights, observed, unit, degree)
    hidden = None if k is None else nearest_rows(Y, k)
    carried = None
    if landmarks is not None:
        carried = CarriedRows(
            Y[:landmarks] + 0.1, np.ones(landmarks), None, unit, degree, rows.mean
        )
        hidden = None if k is None else np.arange(n)[:, None] % landmarks
    engine = KernelSums(GAUSSIAN, cutoff=1e-15, n_jobs=1)
    problem = Problem(rows, loss, LeaveKOut(k or 1), engine, hidden, carried)
    return X, Y, problem


def mean_loss(loss, R, weights):
    return np.average(loss.value_and_slope(R)[0], weights=weights)


class TestNearestRows:
    @pytest.mark.parametrize("k", [1, 2, 5, 28])
    def test_equal_the_oracle(self, k):
        Y = np.random.default_rng(0).normal(size=(30, 3))
        np.testing.assert_array_equal(nearest_rows(Y, k), oracle.leave_k_out_lists(Y, k))

    def test_by_hand(self):
        Y = np.array([[0.0], [1.0], [3.0], [10.0]])
        np.testing.assert_array_equal(nearest_rows(Y, 2), [[0, 1], [1, 0], [2, 1], [3, 2]])

    @pytest.mark.parametrize("dtype", [np.float32, np.float64])
    def test_the_row_itself_comes_first(self, dtype):
        Y = np.random.default_rng(1).normal(size=(50, 2)).astype(dtype)
        lists = nearest_rows(Y, 6)
        np.testing.assert_array_equal(lists[:, 0], np.arange(50))
        assert all(len(set(row)) == 6 for row in lists)

    @pytest.mark.parametrize("k", [9, 10, 50])
    def test_two_rows_must_be_left(self, k):
        Y = np.arange(10.0)[:, None]
        with pytest.raises(ValueError, match=rf"Leaving {k} of 10 .* `k` must be at most 8"):
            nearest_rows(Y, k)
        assert nearest_rows(Y, 8).shape == (10, 8)


class TestReconstruction:
    @losses
    @pytest.mark.parametrize("degree", [0, 1])
    def test_errors_are_told_in_the_unit_of_the_data(self, loss, worth, degree):
        X, Y, problem = problem_of(loss, k=3, degree=degree)
        assert problem.error_unit == worth
        found = problem.reconstruction(cross_validated=True).value_and_grad(X)[0]
        expected = oracle.objective(
            X,
            Y,
            lambda R: loss.value_and_slope(R)[0],
            weights=problem.weights,
            hidden_lists=oracle.leave_k_out_lists(Y, 3),
            degree=degree,
            F=GAUSSIAN.value,
            ridge=RIDGE if degree else 0.0,
        )
        assert found * problem.error_unit == pytest.approx(expected, rel=1e-8)

    def test_a_row_is_hidden_from_itself_unless_lists_say_more(self):
        X, Y, problem = problem_of(Squared())
        _, _, listed = problem_of(Squared(), k=1)
        one = problem.reconstruction(cross_validated=True)
        np.testing.assert_array_equal(one.hidden, np.arange(len(Y))[:, None])
        other = listed.reconstruction(cross_validated=True)
        assert one.value_and_grad(X)[0] == other.value_and_grad(X)[0]

    @pytest.mark.parametrize("landmarks", [None, 10])
    def test_without_cross_validation_nothing_is_hidden(self, landmarks):
        problem = problem_of(Squared(), k=3, landmarks=landmarks)[2]
        assert problem.reconstruction(cross_validated=False).hidden is None
        assert problem.reconstruction(cross_validated=True).hidden is not None

    def test_landmarks_are_hidden_only_by_lists(self):
        problem = problem_of(Squared(), landmarks=10)[2]
        error = problem.reconstruction(cross_validated=True)
        assert error.hidden is None
        assert error.references is problem.landmarks


class TestRestrictedTo:
    NUMBERS = np.array([2, 3, 7, 11, 12, 13, 20, 26, 29])

    def test_lists_are_sought_among_the_rows_that_are_left(self):
        _, Y, problem = problem_of(Squared(), k=4)
        some = problem.restricted_to(self.NUMBERS)
        np.testing.assert_array_equal(some.hidden, oracle.leave_k_out_lists(Y[self.NUMBERS], 4))
        assert (problem.hidden[self.NUMBERS] != some.hidden).any()

    def test_the_rest_comes_along(self):
        _, Y, problem = problem_of(Squared(), missing=True, degree=2)
        some = problem.restricted_to(self.NUMBERS)
        assert some.hidden is None
        np.testing.assert_array_equal(some.weights, problem.weights[self.NUMBERS])
        np.testing.assert_array_equal(some.rows.observed, problem.rows.observed[self.NUMBERS])
        assert some.rows.degree == 2
        assert some.rows.unit == UNIT
        seen = some.rows.observed
        np.testing.assert_allclose(
            some.rows.unscaled(some.rows.Y)[seen], Y[self.NUMBERS][seen], rtol=1e-12
        )

    @pytest.mark.parametrize("landmarks", [None, 10])
    @pytest.mark.parametrize("degree", [0, 1])
    @pytest.mark.parametrize(
        ("loss", "own"),
        [
            (Squared(), Squared()),
            (EpsilonInsensitive(EPS_OF_ROWS), EpsilonInsensitive(EPS_OF_ROWS[NUMBERS])),
        ],
        ids=["squared", "eps per row"],
    )
    def test_it_is_the_problem_of_the_rows_alone(self, loss, own, degree, landmarks):
        X, Y, problem = problem_of(loss, degree=degree, landmarks=landmarks)
        some = problem.restricted_to(self.NUMBERS)
        places, options = X[self.NUMBERS], {"degree": degree, "ridge": RIDGE if degree else 0.0}
        if landmarks is None:
            options["hidden_lists"] = np.arange(len(self.NUMBERS))[:, None]
        else:
            options |= {"references": X[:landmarks], "reference_values": Y[:landmarks] + 0.1}
            places = np.concatenate([places, X[:landmarks]])
        expected = oracle.objective(
            X[self.NUMBERS],
            Y[self.NUMBERS],
            lambda R: own.value_and_slope(R)[0],
            weights=problem.weights[self.NUMBERS],
            F=GAUSSIAN.value,
            **options,
        )
        found = some.reconstruction(cross_validated=True).value_and_grad(places)[0]
        assert found * some.error_unit == pytest.approx(expected, rel=1e-7)

    @pytest.mark.parametrize("per", ["component", "vector"])
    def test_the_eps_of_each_row_comes_along(self, per):
        problem = problem_of(EpsilonInsensitive(EPS_OF_ROWS, per))[2]
        some = problem.restricted_to(self.NUMBERS)
        assert some.loss == EpsilonInsensitive(EPS_OF_ROWS[self.NUMBERS], per)

    def test_landmarks_and_what_they_hide_are_kept(self):
        problem = problem_of(Squared(), k=1, landmarks=10)[2]
        some = problem.restricted_to(self.NUMBERS)
        assert some.landmarks is problem.landmarks
        np.testing.assert_array_equal(some.hidden, problem.hidden[self.NUMBERS])
        # Rows and landmarks must be centred alike.
        np.testing.assert_array_equal(some.rows.mean, problem.rows.mean)


class TestSpread:
    @losses
    def test_is_the_mean_loss_around_the_mean(self, loss, worth):
        _, Y, problem = problem_of(loss)
        mean = np.average(Y, axis=0, weights=problem.weights)
        expected = mean_loss(loss, mean - Y, problem.weights)
        assert problem.spread() * worth == pytest.approx(expected, rel=1e-10)

    def test_missing_entries_have_no_spread(self):
        _, Y, problem = problem_of(Squared(), missing=True)
        seen, weights = problem.rows.observed, problem.weights
        expected = 0.0
        for d in range(Y.shape[1]):
            y, w = Y[seen[:, d], d], weights[seen[:, d]]
            expected += w @ (y - np.average(y, weights=w)) ** 2
        assert problem.spread() * UNIT**2 == pytest.approx(expected / weights.sum(), rel=1e-10)

    def test_does_not_depend_on_the_unit(self):
        one, other = (problem_of(Huber(0.7), unit=unit)[2] for unit in (1.0, 64.0))
        assert one.spread() == pytest.approx(other.spread() * 64, rel=1e-10)


class TestPointWeights:
    def test_are_those_of_the_rows(self):
        problem = problem_of(Squared())[2]
        assert problem.point_weights is problem.weights

    def test_landmarks_weigh_as_much_as_a_row_in_the_mean(self):
        problem = problem_of(Squared(), landmarks=10)[2]
        np.testing.assert_array_equal(problem.point_weights[:30], problem.weights)
        np.testing.assert_allclose(problem.point_weights[30:], np.full(10, problem.weights.mean()))


@losses
def test_the_gradient_does_not_depend_on_the_unit(loss, worth):
    X, _, problem = problem_of(loss, k=2)
    other = problem_of(loss, k=2, unit=0.5)[2]
    found = problem.reconstruction(cross_validated=True).value_and_grad(X)[1]
    again = other.reconstruction(cross_validated=True).value_and_grad(X)[1]
    assert relative_error(found * worth, again * other.error_unit) < 1e-10


def test_a_changed_problem_has_its_own_unit():
    problem = make_problem(np.random.default_rng(0).normal(size=(9, 2)))
    rows = CarriedRows(problem.rows.Y, problem.weights, None, UNIT)
    assert problem.error_unit == 1
    assert replace(problem, rows=rows).error_unit == UNIT**2
    assert replace(problem, rows=rows, loss=Huber(1.0)).error_unit == UNIT
