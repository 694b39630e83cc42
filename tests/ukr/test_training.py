from __future__ import annotations

import numpy as np
import pytest
from finite_differences import relative_error
from kernel_cases import name_of
from oracles import kernel_sums as oracle
from ukr.problems import make_objective, make_problem

from twofold.datasets import make_half_circle, make_s_triangle
from twofold.kernels import GAUSSIAN, QUARTIC
from twofold.optimize import StopReason
from twofold.regularization import Density, Extension, LeaveKOut, LeaveOneOut
from twofold.ukr import UKR, training
from twofold.ukr.terms import DensityTerm, ExtensionPenalty
from twofold.ukr.training import Training, _falling, train

TRIANGLE = make_s_triangle(90, noise=0.05, random_state=0).Y
CURVE = make_half_circle(60, noise=0.05, random_state=0).Y


def principal_components(Y, q, spread):
    centred = Y - Y.mean(axis=0)
    X = centred @ np.linalg.svd(centred, full_matrices=False)[2][:q].T
    return spread * X / X.std()


def run(regularization, Y=TRIANGLE, q=2, *, spread=1.5, **options):
    kernel = options.pop("kernel", GAUSSIAN)
    dtype = options.pop("dtype", np.float64)
    events = []
    settings = {"method": "lbfgs", "max_iter": 30, "tol": 1e-6, "callbacks": [events.append]}
    problem = make_problem(Y, regularization, kernel, dtype=dtype)
    start = principal_components(Y, q, spread)
    return train(problem, start, Training(**settings | options)), events


def error_of(X, Y, *, leave_one_out, kernel=GAUSSIAN):
    return oracle.reconstruction(kernel, X, Y, leave_one_out)[0]


class TestLeaveOneOut:
    @pytest.mark.parametrize("kernel", [GAUSSIAN, QUARTIC], ids=name_of)
    @pytest.mark.parametrize("method", ["lbfgs", "rprop-", "irprop+"])
    def test_the_error_falls_and_is_the_value(self, kernel, method):
        solution, _ = run(LeaveOneOut("none"), kernel=kernel, spread=0.7, method=method)
        before = error_of(principal_components(TRIANGLE, 2, 0.7), TRIANGLE, leave_one_out=True)
        after = error_of(solution.X, TRIANGLE, leave_one_out=True, kernel=kernel)
        assert solution.value == pytest.approx(after, rel=1e-5)
        assert after < 0.6 * before

    def test_the_minimum_is_stationary(self):
        solution, _ = run(LeaveOneOut("none"), CURVE, 1, max_iter=500, tol=0)
        grad = make_objective(GAUSSIAN, CURVE).value_and_grad(solution.X)[1]
        start = principal_components(CURVE, 1, 1.5)
        before = make_objective(GAUSSIAN, CURVE).value_and_grad(start)[1]
        assert np.linalg.norm(grad) < 1e-3 * np.linalg.norm(before)

    @pytest.mark.slow
    def test_the_density_falls_in_stages(self):
        solution, events = run(LeaveOneOut("density"), max_iter=20)
        n = len(TRIANGLE)
        floors = {f"density ≥ {count / n:.2g}": count / n for count in (40, 32, 24, 16, 8, 4, 2)}
        assert [stage.label for stage in solution.stages] == [*floors, "leave-one-out"]
        for event in events:
            if event.label in floors:
                density = oracle.density(GAUSSIAN, event.X, event.X).min()
                assert density > floors[event.label] * (1 - 1e-6)
        after = error_of(solution.X, TRIANGLE, leave_one_out=True)
        assert solution.value == pytest.approx(after, rel=1e-5)

    def test_bounds_of_half_the_rows_and_more_are_left_out(self):
        solution, _ = run(LeaveOneOut("density"), CURVE[:30], 1)
        labels = [stage.label for stage in solution.stages]
        assert labels == [f"density ≥ {count / 30:.2g}" for count in (8, 4, 2)] + ["leave-one-out"]

    @pytest.mark.parametrize("homotopy", ["auto", "none"])
    def test_without_a_homotopy_there_is_one_stage(self, homotopy):
        solution, events = run(LeaveOneOut(homotopy))
        assert {event.label for event in events} == {"leave-one-out"}
        assert [event.iteration for event in events] == list(range(1, solution.n_iter + 1))

    @pytest.mark.slow
    def test_boxes_grow_until_nothing_is_bound(self):
        solution, events = run(LeaveOneOut("box"), CURVE, 1, max_iter=40)
        labels = [stage.label for stage in solution.stages]
        assert labels[:3] == ["box ±0.5", "box ±1.5", "box ±2.5"]
        for event in events:
            assert np.abs(event.X).max() <= float(event.label.removeprefix("box ±"))
        assert np.abs(solution.X).max() < float(labels[-1].removeprefix("box ±"))
        for stage, later in zip(solution.stages, solution.stages[1:], strict=False):
            assert later.value <= stage.value

    @pytest.mark.slow
    @pytest.mark.parametrize("homotopy", ["density", "box"])
    def test_the_way_leads_to_a_model_as_good_as_the_data(self, homotopy):
        # Noise of 0.05 in two dimensions is 0.005; leaving out and a kernel's width add to it.
        solution, _ = run(LeaveOneOut(homotopy), CURVE, 1, max_iter=50)
        start = error_of(principal_components(CURVE, 1, 0.1), CURVE, leave_one_out=True)
        assert solution.value < 0.025
        assert solution.value < 0.05 * start


class TestExtension:
    def test_the_penalty_is_part_of_the_value(self):
        solution, _ = run(Extension(penalty=0.01))
        penalty = ExtensionPenalty(0.01, np.ones(len(TRIANGLE))).value_and_grad(solution.X)[0]
        error = error_of(solution.X, TRIANGLE, leave_one_out=False)
        assert solution.value == pytest.approx(error + penalty, rel=1e-5)

    def test_a_larger_penalty_is_smoother(self):
        loose, _ = run(Extension(penalty=1e-4))
        tight, _ = run(Extension(penalty=1e-2))
        assert np.square(tight.X).sum() < np.square(loose.X).sum()
        assert error_of(tight.X, TRIANGLE, leave_one_out=False) > error_of(
            loose.X, TRIANGLE, leave_one_out=False
        )

    @pytest.mark.parametrize("method", ["lbfgs", "rprop-"])
    def test_the_ball_holds(self, method):
        solution, events = run(Extension(radius=2.0), method=method)
        norms = np.linalg.norm(solution.X, axis=1)
        assert norms.max() <= 2.0
        assert (norms > 1.999).any()  # without the bound the points would go on
        assert all(np.linalg.norm(event.X, axis=1).max() <= 2.0 for event in events)

    @pytest.mark.parametrize("method", ["lbfgs", "rprop-"])
    def test_the_box_holds(self, method):
        solution, events = run(Extension(box=1.5), method=method)
        assert np.abs(solution.X).max() == 1.5
        assert all(np.abs(event.X).max() <= 1.5 for event in events)

    def test_the_homotopy_runs_through_falling_penalties(self):
        solution, _ = run(Extension(penalty=0.01, start=0.02, decay=0.7), max_iter=10)
        labels = [stage.label for stage in solution.stages]
        assert labels == ["extension λ = 0.0143", "extension λ = 0.01"]

    def test_the_homotopy_begins_contracted(self):
        # All in one place would be the mean of the data, R = V; from there it can only unfold.
        solution, _ = run(Extension(penalty=1e-6, start=1e-6), max_iter=0, spread=20.0)
        assert solution.value > 0.8 * make_problem(TRIANGLE).spread()
        straight, _ = run(Extension(penalty=1e-6), max_iter=0, spread=20.0)
        assert straight.value < 0.1 * make_problem(TRIANGLE).spread()

    def test_the_target_ends_the_homotopy(self):
        schedule = {"penalty": 1e-4, "start": 0.05, "decay": 0.5}
        whole, _ = run(Extension(**schedule), max_iter=600)
        early, _ = run(Extension(**schedule, target=0.03), max_iter=600)
        assert len(early.stages) < len(whole.stages)
        assert error_of(early.X, TRIANGLE, leave_one_out=False) < 0.03
        assert early.stages == whole.stages[: len(early.stages)]


class TestDensity:
    def test_the_penalty_is_part_of_the_value(self):
        regularization = Density(penalty=0.02)
        solution, _ = run(regularization)
        engine = make_problem(TRIANGLE).engine
        penalty = DensityTerm(0.02, np.ones(len(TRIANGLE)), engine).value_and_grad(solution.X)[0]
        error = error_of(solution.X, TRIANGLE, leave_one_out=False)
        assert solution.value == pytest.approx(error + penalty, rel=1e-5)

    @pytest.mark.slow
    @pytest.mark.parametrize("kernel", [GAUSSIAN, QUARTIC], ids=name_of)
    @pytest.mark.parametrize("threshold", [0.03, 0.3])
    def test_the_threshold_holds(self, kernel, threshold):
        solution, events = run(Density(threshold=threshold), kernel=kernel, spread=5.0)
        density = oracle.density(kernel, solution.X, solution.X)
        assert density.min() > threshold
        assert density.min() < 1.5 * threshold  # the bound is reached
        assert all(oracle.density(kernel, event.X, event.X).min() > threshold for event in events)

    @pytest.mark.slow
    def test_a_higher_threshold_is_smoother(self):
        errors = [
            error_of(run(Density(threshold=threshold))[0].X, TRIANGLE, leave_one_out=False)
            for threshold in (0.05, 0.2, 0.8)
        ]
        assert errors[0] < errors[1] < errors[2]

    @pytest.mark.parametrize("threshold", [1 / 90, 0.001, 1.0, 3.0])
    def test_impossible_thresholds_are_refused(self, threshold):
        with pytest.raises(ValueError, match=r"between 1/n = 0\.0111 .* and 1"):
            run(Density(threshold=threshold))

    def test_the_homotopy_on_the_triangle(self):
        # Klanke 2007, section 4.6.2: λ falls by 0.7 from the principal components until R < d σ².
        schedule = {"penalty": 1e-4, "start": 0.2, "target": 3 * 0.05**2}
        solution, _ = run(Density(**schedule), max_iter=600)
        assert error_of(solution.X, TRIANGLE, leave_one_out=False) < 3 * 0.05**2
        assert 2 < len(solution.stages) < 15


@pytest.mark.parametrize("max_iter", [1, 7, 40])
@pytest.mark.parametrize(
    "regularization",
    [
        LeaveOneOut("density"),
        LeaveOneOut("box"),
        Extension(penalty=0.001, start=0.1),
        Density(penalty=0.001, start=0.1),
        Density(threshold=0.2),
    ],
    ids=str,
)
def test_iterations_are_bounded_for_all_stages_together(regularization, max_iter):
    solution, _ = run(regularization, max_iter=max_iter)
    assert 0 < solution.n_iter <= max_iter
    assert sum(stage.n_iter for stage in solution.stages) == solution.n_iter


def test_falling_penalties_end_where_they_should():
    assert _falling(None, 0.1, 0.5) == [0.1]
    assert _falling(0.1, 0.1, 0.5) == [0.1]
    assert _falling(0.8, 0.1, 0.5) == [0.8, 0.4, 0.2, 0.1]
    assert _falling(0.79, 0.1, 0.5) == [0.4, 0.2, 0.1]


@pytest.mark.parametrize(
    "regularization",
    [
        LeaveOneOut("none"),
        LeaveOneOut("density"),
        LeaveOneOut("box"),
        Extension(penalty=0.01),
        Extension(radius=2.0),
        Density(penalty=0.02),
        Density(threshold=0.1),
    ],
    ids=str,
)
def test_single_precision_stays_single_and_improves(regularization):
    solution, _ = run(regularization, dtype=np.float32, max_iter=10)
    assert solution.X.dtype == np.float32
    assert np.isfinite(solution.X).all()
    of_last_stage = solution.stages[-1].n_iter if solution.stages else solution.n_iter
    assert solution.value <= solution.history[-1 - of_last_stage]


def test_the_start_is_centred_and_left_alone():
    start = principal_components(CURVE, 1, 1.5) + 100
    before = start.copy()
    solution = train(make_problem(CURVE), start, Training("lbfgs", 0, 1e-6, ()))
    np.testing.assert_array_equal(start, before)
    np.testing.assert_allclose(solution.X, start - start.mean(axis=0))
    assert solution.stop_reason is StopReason.MAX_ITER


def test_weights_count_in_the_value():
    weights = np.random.default_rng(0).uniform(0.1, 3, size=len(CURVE))
    problem = make_problem(CURVE, LeaveOneOut("none"), weights=weights)
    start = principal_components(CURVE, 1, 1.5)
    found = train(problem, start, Training("lbfgs", 30, 1e-6, ()))
    expected = oracle.reconstruction(GAUSSIAN, found.X, CURVE, True, weights)[0]
    assert found.value == pytest.approx(expected, rel=1e-5)
    assert found.value < 0.9 * oracle.reconstruction(GAUSSIAN, start, CURVE, True, weights)[0]


def test_the_variance_of_the_rows():
    Y = np.array([[0.0, 0.0], [2.0, 4.0]])
    # Means are 1.5 and 3, so the squares are 2.25 + 9 once and 0.25 + 1 three times.
    assert make_problem(Y, weights=np.array([1.0, 3.0])).spread() == pytest.approx(15 / 4)


def test_the_gradient_of_the_whole_is_that_of_its_parts():
    problem = make_problem(CURVE)
    X = principal_components(CURVE, 1, 1.5)
    found = problem.reconstruction(cross_validated=True).value_and_grad(X)
    expected = oracle.reconstruction(GAUSSIAN, X, CURVE, True)
    assert found[0] == pytest.approx(expected[0], rel=1e-6)
    assert relative_error(found[1], expected[1]) < 1e-5


@pytest.mark.parametrize("q", [3, 4])
def test_above_three_dimensions_only_the_linear_start_is_tried(q):
    Y = np.random.default_rng(0).normal(size=(60, 6))
    model = UKR(q, max_iter=2, random_state=0).fit(Y)
    assert (set(model.starts_) == {"pca"}) == (q > 3)
    assert UKR(q, init="isomap", max_iter=2).fit(Y).start_.startswith("isomap")


class TestRescaling:
    @pytest.fixture(autouse=True)
    def _every_fit(self, monkeypatch):
        monkeypatch.setattr(training, "FEWEST_RESCALED", 50)

    def test_the_width_is_sought_halfway_and_at_the_end(self, monkeypatch):
        found, events = run(LeaveOneOut(), max_iter=6, spread=6)
        assert found.n_iter == len(events) == 6
        problem = make_problem(TRIANGLE, LeaveOneOut())
        how = Training("lbfgs", 6, 1e-6, [])
        error = problem.reconstruction(cross_validated=True)
        # Too narrow by far at first: a few iterations do not mend that, a factor does.
        monkeypatch.setattr(training, "FEWEST_RESCALED", len(TRIANGLE))
        plain = run(LeaveOneOut(), max_iter=6, spread=6)[0]
        assert found.value < 0.95 * plain.value
        X, value = found.X, error.value_and_grad(found.X)[0]
        assert value == pytest.approx(found.value)
        for factor in (0.97, 1.03):
            assert error.value_and_grad(X * factor)[0] > value
        again = training._rescaled(problem, how, X)
        assert error.value_and_grad(again)[0] == pytest.approx(value, rel=1e-3)

    @pytest.mark.parametrize(
        ("regularization", "expected"),
        [
            (LeaveOneOut(), True),
            (LeaveKOut(3), True),
            (LeaveKOut(3, border=0.1), False),
            (LeaveOneOut(homotopy="density"), False),
            (Extension(penalty=0.1), False),
        ],
    )
    def test_only_free_fits_to_the_error_are_rescaled(self, regularization, expected):
        problem = make_problem(TRIANGLE, regularization)
        assert training._is_rescaled(problem, TRIANGLE[:, :2]) is expected
        assert not training._is_rescaled(problem, TRIANGLE[:50, :2])
        assert not training._is_rescaled(problem, TRIANGLE)  # three dimensions

    def test_a_picture_of_the_user_keeps_its_units(self):
        own = principal_components(TRIANGLE, 2, 1.0) * [100, 10] + [500, -3]
        model = UKR(init=own, max_iter=10, random_state=0).fit(TRIANGLE)
        np.testing.assert_allclose(model.embedding_.std(axis=0), own.std(axis=0), rtol=1e-5)
        np.testing.assert_allclose(model.embedding_.mean(axis=0), own.mean(axis=0), rtol=1e-5)
        assert not np.allclose(model.embedding_, own, rtol=1e-3)
        np.testing.assert_array_equal(model.transform(TRIANGLE), model.embedding_)
