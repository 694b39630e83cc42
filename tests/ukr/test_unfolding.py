from __future__ import annotations

import numpy as np
import pytest
from ukr.problems import make_problem

from twofold.datasets import make_half_circle, make_s_triangle
from twofold.regularization import Extension, LeaveOneOut
from twofold.ukr import training
from twofold.ukr.training import Training, train, unfold

SETTINGS = Training("lbfgs", 40, 1e-5, ())


def first_components(Y, q):
    centred = Y - Y.mean(axis=0)
    X = centred @ np.linalg.svd(centred, full_matrices=False)[2][:q].T
    return 2 * X / X.std()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("Y", "q"),
    [
        (make_half_circle(60, noise=0.05, random_state=0).Y, 1),
        (make_s_triangle(70, noise=0.05, random_state=0).Y, 2),
    ],
    ids=["half circle", "triangle"],
)
def test_the_better_of_both_ways_is_kept(Y, q):
    X = first_components(Y, q)
    found = unfold(make_problem(Y), X, SETTINGS)
    ways = [
        train(make_problem(Y, LeaveOneOut(homotopy)), X, SETTINGS).value
        for homotopy in ("none", "density")
    ]
    assert ways[0] != ways[1]
    assert found.value == min(ways)


@pytest.mark.slow
def test_a_way_that_was_asked_for_is_gone():
    Y = make_half_circle(60, noise=0.05, random_state=0).Y
    X = first_components(Y, 1)
    for regularization in (LeaveOneOut("none"), LeaveOneOut("density"), Extension(penalty=0.01)):
        problem = make_problem(Y, regularization)
        np.testing.assert_array_equal(unfold(problem, X, SETTINGS).X, train(problem, X, SETTINGS).X)


def test_many_rows_are_unfolded_by_some_of_them(monkeypatch):
    monkeypatch.setattr(training, "MOST_UNFOLDED_ROWS", 60)
    Y = make_half_circle(150, noise=0.05, random_state=0).Y
    X = first_components(Y, 1)
    found = unfold(make_problem(Y), X, SETTINGS)
    assert found.X.shape == (150, 1)
    objective = make_problem(Y).reconstruction(cross_validated=True)
    assert found.value == pytest.approx(objective.value_and_grad(found.X)[0], rel=1e-6)
    # Still folded, the halves of the circle would share places: a third of the variance.
    assert found.value < 1e-3 * make_problem(Y).spread()


def test_an_end_that_was_asked_for_is_kept(monkeypatch):
    monkeypatch.setattr(training, "MOST_UNFOLDED_ROWS", 60)
    Y = make_half_circle(100, noise=0.05, random_state=0).Y
    settings = Training("lbfgs", 40, 1e-5, [lambda event: event.iteration >= 3])
    found = unfold(make_problem(Y), first_components(Y, 1), settings)
    assert found.stop_reason == "callback"
    assert found.X.shape == (100, 1)
