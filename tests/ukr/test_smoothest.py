"""The smoothest manifold within ε: the scheme on curves with known order, and its parts."""

from __future__ import annotations

import warnings
from dataclasses import replace
from functools import cache

import numpy as np
import pytest
from finite_differences import numerical_gradient, relative_error
from scipy.stats import spearmanr
from sklearn.exceptions import ConvergenceWarning
from ukr.problems import make_problem

from twofold import UKR
from twofold.datasets import make_half_circle, make_spiral
from twofold.losses import EpsilonInsensitive
from twofold.regularization import LeaveOneOut, Smoothest
from twofold.ukr.smoothest import _Tube, _Tubes, smooth
from twofold.ukr.training import Training, train

# Few iterations leave rows outside of their tubes, which a fit says.
pytestmark = pytest.mark.filterwarnings("ignore:Some rows are still up to")

TRAINING = Training("lbfgs", 60, 1e-4, ())
both_kinds = pytest.mark.parametrize("per", ["vector", "component"])

SAMPLES = {
    "spiral": make_spiral(150, random_state=0),
    "half circle": make_half_circle(60, random_state=0),
}
# Around the noise of each curve, 0.05 and 0.25 a coordinate.
TOLERANCES = {"spiral": (0.02, 0.05, 0.1), "half circle": (0.1, 0.3, 0.9)}


@cache
def start_of(name):
    """Return a leave-one-out fit of a curve, in kernel units."""
    model = UKR(1, init="isomap", max_iter=60, random_state=0).fit(SAMPLES[name].Y)
    return model.embedding_


@cache
def smoothed(name, eps, per):
    problem = tube_problem(SAMPLES[name].Y, eps, per)
    return problem, smooth(problem, start_of(name), TRAINING)


@cache
def cross_validated(name):
    """Return where the scheme begins."""
    return train(make_problem(SAMPLES[name].Y), start_of(name), TRAINING).X


def tube_problem(Y, eps, per="component"):
    return replace(make_problem(Y, Smoothest()), loss=EpsilonInsensitive(eps, per))


def extension(X):
    return ((X - X.mean(axis=0)) ** 2).sum(axis=1).mean()


def residuals(problem, X):
    return problem.reconstruction(cross_validated=False).residuals(X)


def sizes(R, per):
    return np.linalg.norm(R, axis=1, keepdims=True) if per == "vector" else np.abs(R)


def order_kept(X, latent):
    return abs(spearmanr(X[:, 0], latent[:, 0]).statistic)


@pytest.mark.slow
@both_kinds
@pytest.mark.parametrize("name", SAMPLES)
def test_the_extension_falls_as_the_tolerance_grows(name, per):
    extensions = [extension(cross_validated(name))]
    for eps in TOLERANCES[name]:
        found = smoothed(name, eps, per)[1]
        extensions.append(extension(found.solution.X))
        assert found.solution.value == pytest.approx(extensions[-1])
    # The last tolerance is well beyond the noise: most of the wiggles are gone.
    assert (np.diff(extensions) < 0).all()
    assert extensions[-1] < 0.5 * extensions[0]


@pytest.mark.slow
@both_kinds
@pytest.mark.parametrize("name", SAMPLES)
def test_tolerances_are_kept(name, per):
    for eps in TOLERANCES[name]:
        problem, found = smoothed(name, eps, per)
        first = sizes(residuals(problem, cross_validated(name)), per)
        allowed = np.maximum(first, eps)
        excess = sizes(residuals(problem, found.solution.X), per) - allowed
        assert (np.maximum(excess, 0) ** 2).mean() < 1e-4 * (allowed**2).mean()
        assert excess.max() < 0.1 * eps
        if per == "component":
            assert found.violation == pytest.approx(max(excess.max(), 0), abs=1e-9)


@pytest.mark.slow
@both_kinds
@pytest.mark.parametrize("name", SAMPLES)
def test_the_order_along_the_curve_is_kept(name, per):
    latent = SAMPLES[name].latent
    assert order_kept(cross_validated(name), latent) > 0.99
    for eps in TOLERANCES[name]:
        assert order_kept(smoothed(name, eps, per)[1].solution.X, latent) > 0.99


@pytest.mark.slow
def test_a_smoother_curve_is_nearer_to_the_truth():
    sample = make_spiral(300, random_state=0)
    loo = UKR(1, init="isomap", max_iter=60, random_state=0).fit(sample.Y)
    model = UKR(
        1,
        init="isomap",
        loss=EpsilonInsensitive(0.08),
        regularization="smoothest",
        random_state=0,
    ).fit(sample.Y)
    along = np.linspace(*np.percentile(model.embedding_, [2, 98]), 400)[:, None]
    before = np.linspace(*np.percentile(loo.embedding_, [2, 98]), 400)[:, None]
    smoother = sample.distance(model.inverse_transform(along)).mean()
    assert smoother < 0.9 * sample.distance(loo.inverse_transform(before)).mean()
    assert 0 <= model.violation_ < 0.1 * 0.08
    assert order_kept(model.embedding_, sample.latent) > 0.99


@pytest.mark.slow
@both_kinds
def test_outliers_do_not_pull(per):
    """A row far off has its own residual for a tolerance, so it stays where it is left."""
    sample, wild = make_half_circle(60, noise=0.1, random_state=1), np.array([7, 23, 41])
    X = 12 * (sample.latent - sample.latent.mean())
    Y = sample.Y.copy()
    Y[wild] *= 1.4
    tame = np.setdiff1d(np.arange(len(Y)), wild)
    tubes = _Tubes(tube_problem(Y, 0.3, per), X)
    before = sizes(residuals(tubes.problem, X), per)
    assert (before[wild].max(axis=1) > 1).all()
    np.testing.assert_allclose(tubes.eps, np.maximum(before, 0.3))
    found = tubes.shrink(X, TRAINING).solution.X
    after = sizes(residuals(tubes.problem, found), per)
    assert (after[wild] <= 1.05 * np.maximum(before[wild], 0.3)).all()
    assert (after[wild] >= 0.8 * before[wild]).all()
    # Not so if rows far off had the tolerance of the others: their residuals would be forced down.
    strict = _Tubes(tube_problem(Y, 0.3, per), X)
    strict.eps = np.full_like(strict.eps, 0.3)
    pulled = sizes(residuals(strict.problem, strict.shrink(X, TRAINING).solution.X), per)
    assert pulled[wild].max() < 0.7 * before[wild].max()
    away = sample.distance(Y[tame] + residuals(tubes.problem, found)[tame]).mean()
    at_start = sample.distance(Y[tame] + residuals(tubes.problem, X)[tame]).mean()
    assert away < at_start + 0.3


@pytest.mark.slow
def test_rows_may_have_tolerances_of_their_own():
    name, sample = "half circle", SAMPLES["half circle"]
    half = np.where(sample.latent[:, 0] < np.pi / 2, 0.1, 1.0)
    problem = tube_problem(sample.Y, half)
    found = smooth(problem, start_of(name), TRAINING)
    allowed = np.maximum(np.abs(residuals(problem, cross_validated(name))), half[:, None])
    R = np.abs(residuals(problem, found.solution.X))
    assert (R - allowed <= 0.1 * half[:, None]).all()
    tight, loose = half == 0.1, half == 1.0
    assert R[loose].mean() > 2 * R[tight].mean()
    between = extension(smoothed(name, 0.1, "component")[1].solution.X)
    assert extension(found.solution.X) < between


@pytest.mark.slow
def test_one_tolerance_a_row_is_one_for_all_its_entries():
    name, Y = "half circle", SAMPLES["half circle"].Y
    rows = np.linspace(0.1, 1.0, len(Y))
    for per, arrays in (
        ("component", (rows, np.repeat(rows[:, None], 2, axis=1))),
        ("component", (0.3, np.full(len(Y), 0.3), np.full((len(Y), 2), 0.3))),
        ("vector", (0.3, np.full(len(Y), 0.3))),
    ):
        found = [smooth(tube_problem(Y, eps, per), start_of(name), TRAINING) for eps in arrays]
        for other in found[1:]:
            np.testing.assert_array_equal(other.solution.X, found[0].solution.X)


def test_entries_may_have_tolerances_of_their_own():
    name, Y = "half circle", SAMPLES["half circle"].Y
    eps = np.column_stack([np.full(len(Y), 0.1), np.full(len(Y), 1.5)])
    problem = tube_problem(Y, eps)
    found = smooth(problem, start_of(name), TRAINING)
    allowed = np.maximum(np.abs(residuals(problem, cross_validated(name))), eps)
    R = np.abs(residuals(problem, found.solution.X))
    assert (R - allowed <= 0.1 * eps).all()
    assert R[:, 1].mean() > 2 * R[:, 0].mean()


@both_kinds
def test_the_estimator_takes_tolerances_of_rows_in_their_order(per):
    sample = SAMPLES["half circle"]
    eps = np.where(sample.latent[:, 0] < np.pi / 2, 0.1, 1.0)
    order = np.random.default_rng(3).permutation(len(eps))
    start = start_of("half circle")
    made = {"regularization": "smoothest", "max_iter": 20, "random_state": 0}
    plain = UKR(1, init=start, loss=EpsilonInsensitive(eps, per), **made).fit(sample.Y)
    mixed = UKR(1, init=start[order], loss=EpsilonInsensitive(eps[order], per), **made)
    mixed.fit(sample.Y[order])
    np.testing.assert_allclose(mixed.embedding_, plain.embedding_[order], rtol=1e-9, atol=1e-9)
    R = np.abs(plain.inverse_transform(plain.embedding_) - sample.Y)
    assert R[eps == 1.0].mean() > 1.5 * R[eps == 0.1].mean()
    with pytest.raises(ValueError, match=r"`eps` of the loss has the shape \(7,\)"):
        UKR(1, loss=EpsilonInsensitive(np.ones(7), per), **made).fit(sample.Y)


@pytest.mark.slow
@pytest.mark.parametrize("factor", [1.0, 2.0**10])
def test_the_objective_is_the_extension_in_any_unit(factor):
    Y = factor * SAMPLES["half circle"].Y
    model = UKR(
        1,
        init="isomap",
        loss=EpsilonInsensitive(0.3 * factor),
        regularization="smoothest",
        max_iter=100,
        random_state=0,
    ).fit(Y)
    assert model.objective_ == pytest.approx(extension(model.embedding_), rel=1e-6)
    assert model.violation_ < 0.1 * 0.3 * factor


def test_new_rows_are_counted_in_the_violation():
    Y = SAMPLES["half circle"].Y
    model = UKR(
        1,
        init="isomap",
        loss=EpsilonInsensitive(0.3),
        regularization="smoothest",
        max_iter=20,
        random_state=0,
    ).fit(Y[:40])
    before = model.violation_
    model.partial_fit(Y[40:])
    assert model.violation_ != before


def test_without_iterations_the_start_is_left():
    problem = tube_problem(SAMPLES["half circle"].Y, 0.5)
    found = smooth(problem, start_of("half circle"), replace(TRAINING, max_iter=0))
    start = start_of("half circle")
    np.testing.assert_allclose(found.solution.X, start - start.mean(axis=0))
    assert found.violation == 0


@pytest.mark.slow
def test_the_first_fit_leaves_one_out_by_squares():
    """A tolerance that every residual keeps from the start leaves nothing to do but to shrink."""
    name, Y = "half circle", SAMPLES["half circle"].Y
    squared = make_problem(Y, LeaveOneOut())
    expected = train(squared, start_of(name), TRAINING).X
    found = smooth(tube_problem(Y, 1e-9), start_of(name), TRAINING)
    # With tubes as wide as the residuals themselves the end lies close to that fit.
    assert order_kept(found.solution.X, expected) > 0.999
    assert extension(found.solution.X) <= extension(expected) * (1 + 1e-6)


class TestTube:
    @staticmethod
    def make(per, n=6, D=3, seed=0):
        rng = np.random.default_rng(seed)
        shape = (n, 1) if per == "vector" else (n, D)
        eps = rng.uniform(0.2, 1.0, shape)
        upper, lower = np.maximum(rng.normal(size=(2, *shape)), 0)
        return _Tube(eps, upper, lower, 1.7, per), rng.normal(size=(n, D))

    @both_kinds
    def test_slope_by_differences(self, per):
        tube, R = self.make(per)
        expected = numerical_gradient(lambda R: tube.value_and_slope(R)[0].sum(), R)
        assert relative_error(tube.value_and_slope(R)[1], expected) < 1e-7

    @both_kinds
    def test_nothing_is_felt_inside(self, per):
        tube, R = self.make(per)
        tube = replace(tube, upper=0 * tube.upper, lower=0 * tube.lower)
        inside = 0.9 * R / np.maximum(1, np.abs(R).sum(axis=1, keepdims=True)) * tube.eps.min()
        values, slope = tube.value_and_slope(inside)
        assert not values.any()
        assert not slope.any()

    @both_kinds
    def test_rows_by_their_numbers(self, per):
        tube, R = self.make(per)
        numbers = np.array([4, 1, 1])
        values, slope = tube.at(numbers).value_and_slope(R[numbers])
        np.testing.assert_array_equal(values, tube.value_and_slope(R)[0][numbers])
        np.testing.assert_array_equal(slope, tube.value_and_slope(R)[1][numbers])

    @both_kinds
    def test_single_precision_stays(self, per):
        tube, R = self.make(per)
        values, slope = tube.value_and_slope(R.astype(np.float32))
        assert values.dtype == slope.dtype == np.float32

    def test_by_hand(self):
        one = np.ones((1, 1))
        component = _Tube(
            np.full((1, 2), 0.5), np.zeros((1, 2)), np.zeros((1, 2)), 3.0, "component"
        )
        values, slope = component.value_and_slope(np.array([[1.5, -0.7]]))
        # 3 (1.0² + 0.2²), 6 (1.0, -0.2)
        np.testing.assert_allclose(values, [3.12])
        np.testing.assert_allclose(slope, [[6.0, -1.2]])
        vector = _Tube(one, 0 * one, 0 * one, 2.0, "vector")
        # c = (25 - 1) / 2 = 12; 2 * 144, 4 * 12 * (3, 4)
        values, slope = vector.value_and_slope(np.array([[3.0, 4.0]]))
        np.testing.assert_allclose(values, [288.0])
        np.testing.assert_allclose(slope, [[144.0, 192.0]])


def test_a_tolerance_beyond_all_data_squares_to_a_number():
    Y = 1e-300 * np.random.default_rng(0).normal(size=(20, 3))
    model = UKR(loss=EpsilonInsensitive(0.05), regularization="smoothest", init="pca", max_iter=2)
    with warnings.catch_warnings():
        warnings.simplefilter("error", RuntimeWarning)
        warnings.simplefilter("ignore", ConvergenceWarning)
        assert np.isfinite(model.fit(Y).embedding_).all()
