"""Landmark values re-fitted with smoothness control, against the slow reference."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest
from kernel_cases import name_of
from oracles.extensions import adapt, local_weights, roughness

from twofold.engine import KernelSums
from twofold.engine.local_loops import RIDGE
from twofold.kernels import GAUSSIAN, TRIWEIGHT
from twofold.losses import Huber, Squared
from twofold.regularization import LeaveOneOut
from twofold.ukr import adaptation
from twofold.ukr.adaptation import Adaptation, _roughness
from twofold.ukr.objective import Problem
from twofold.ukr.surface import CarriedRows


@pytest.fixture(autouse=True)
def no_prior(monkeypatch):
    """Compare with the formula of the thesis; what the first places add has tests of its own."""
    monkeypatch.setattr(adaptation, "PRIOR", 1e-10)


@dataclass
class Case:
    """Rows at latent places X, landmarks at Z, of a curve or a sheet."""

    X: np.ndarray
    Z: np.ndarray
    Y: np.ndarray
    clean: np.ndarray
    kernel: object = GAUSSIAN
    degree: int = 0

    @property
    def engine(self):
        return KernelSums(self.kernel, 1e-15, n_jobs=1)

    def landmarks(self):
        start = np.random.default_rng(9).normal(size=(len(self.Z), self.Y.shape[1]))
        zero = np.zeros(self.Y.shape[1])
        return CarriedRows(start, np.ones(len(self.Z)), None, 1.0, self.degree, zero)

    def roughness_root(self, X=None):
        return _roughness(self.landmarks(), self.Z, self.X if X is None else X, self.engine)

    def roughness(self, X=None):
        S = self.roughness_root(X)
        return (S.T @ S).toarray()

    def adapted(self, gamma=None, weights=None, observed=None, loss=None, Y=None):
        Y = self.Y if Y is None else Y
        weights = np.ones(len(Y)) if weights is None else weights
        rows = CarriedRows(Y, weights, observed, 1.0, self.degree, np.zeros(Y.shape[1]))
        problem = Problem(
            rows, loss or Squared(), LeaveOneOut(), self.engine, landmarks=self.landmarks()
        )
        return Adaptation(problem, self.Z, self.X).adapt(self.X, gamma)

    def basis(self, X=None):
        return np.array([self.weights_at(x) for x in (self.X if X is None else X)])

    def weights_at(self, x):
        return local_weights(x, self.Z, degree=self.degree, F=self.kernel.value, ridge=RIDGE)


def curve(n=120, noise=0.1, seed=0, landmarks=24, **options):
    rng = np.random.default_rng(seed)
    X = rng.uniform(-8, 8, size=(n, 1))
    clean = np.column_stack([np.sin(X[:, 0] / 2), np.cos(X[:, 0] / 3), X[:, 0] / 8])
    Y = clean + noise * rng.normal(size=clean.shape)
    return Case(X, np.linspace(-8, 8, landmarks)[:, None], Y, clean, **options)


def patch(n=60, noise=0.05, seed=0, **options):
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1.5, 1.5, size=(n, 2))
    clean = np.column_stack([X, X[:, 0] * X[:, 1]])
    Z = np.stack(np.meshgrid(*[np.linspace(-1.5, 1.5, 4)] * 2), axis=-1).reshape(-1, 2)
    return Case(X, Z, clean + noise * rng.normal(size=clean.shape), clean, **options)


# Kernels of few landmarks are different enough to tell the values apart, so that these compare.
CASES = {
    "curve": curve(40, landmarks=12),
    "curve-1": curve(40, landmarks=12, degree=1),
    "curve-2": curve(40, landmarks=12, degree=2),
    "patch": patch(),
    "patch-2": patch(degree=2),
}
cases = pytest.mark.parametrize("name", CASES)


@cases
def test_roughness_is_that_of_the_reference(name, monkeypatch):
    case = CASES[name]
    monkeypatch.setattr(adaptation, "THIN", 0.0)
    X = case.X[:8]
    M = case.roughness(X)
    expected = roughness(X, case.Z, case.kernel.value, degree=case.degree, ridge=RIDGE)
    np.testing.assert_allclose(M, expected, rtol=1e-4, atol=1e-4 * np.abs(expected).max())
    # A constant has no second derivative.
    assert np.abs(M @ np.ones(len(M))).max() < 1e-6 * np.abs(M).max()


@pytest.mark.parametrize("kernel", [GAUSSIAN, TRIWEIGHT], ids=name_of)
def test_thin_places_do_not_count(kernel):
    case = curve(60, kernel=kernel)
    alone = np.append(case.X, [[8.0 + kernel.half_width()]], axis=0)
    plain, M = case.roughness(np.append(case.X, [[8.0]], axis=0)), case.roughness(alone)
    np.testing.assert_allclose(M, plain, rtol=1e-6, atol=1e-6 * np.abs(plain).max())


@pytest.mark.cover(2)
@cases
@pytest.mark.parametrize("gamma", [0.01, 0.3, 10.0])
@pytest.mark.parametrize("weighted", [False, True])
def test_given_smoothness_against_the_reference(name, gamma, weighted, monkeypatch):
    case = CASES[name]
    weights = np.random.default_rng(1).uniform(0.5, 2, len(case.Y)) if weighted else None
    # What the two have to agree on is the solution; the roughness itself is compared above.
    S = case.roughness_root()
    monkeypatch.setattr(adaptation, "_roughness", lambda *given: S)
    found = case.adapted(gamma, weights)
    # Weights count as shares here: their mean is one, so that γ does not depend on their unit.
    share = None if weights is None else weights / weights.mean()
    expected = adapt(case.Y, case.basis(), case.roughness(), gamma, share)
    assert found.gamma == gamma
    np.testing.assert_allclose(
        case.basis() @ found.values, case.basis() @ expected, atol=1e-5 * np.abs(case.Y).max()
    )
    np.testing.assert_allclose(found.values, expected, atol=1e-3 * np.abs(expected).max())


def test_the_unit_of_weights_does_not_matter():
    case, weights = CASES["curve"], np.random.default_rng(1).uniform(0.5, 2, 40)
    for gamma in (None, 0.3):
        plain, many = case.adapted(gamma, weights), case.adapted(gamma, 1000 * weights)
        assert many.gamma == pytest.approx(plain.gamma)
        np.testing.assert_allclose(many.values, plain.values, atol=1e-9)


def test_the_values_minimise_the_penalised_error():
    case, gamma, rng = CASES["curve"], 0.5, np.random.default_rng(2)
    M = case.roughness()
    B, found = case.basis(), case.adapted(gamma).values

    def cost(values):
        return ((case.Y - B @ values) ** 2).sum() + gamma * np.trace(values.T @ M @ values)

    for _ in range(20):
        assert cost(found + 1e-3 * rng.normal(size=found.shape)) > cost(found)


class TestChosenSmoothness:
    @pytest.mark.parametrize("seed", range(4))
    @pytest.mark.parametrize("noise", [0.05, 0.3])
    def test_it_lies_near_the_best_on_fresh_data(self, seed, noise):
        case, fresh = curve(150, noise, seed), curve(400, 0.0, 100 + seed)
        found = case.adapted()
        B = case.basis(fresh.X)

        def error(values):
            return ((B @ values - fresh.clean) ** 2).sum(axis=1).mean()

        unit = found.gamma if found.gamma > 0 else 1.0
        grid = [error(case.adapted(gamma).values) for gamma in unit * np.geomspace(1e-5, 1e5, 21)]
        assert error(found.values) < 1.5 * min(grid)
        assert error(found.values) < 0.8 * max(grid)

    def test_more_noise_asks_for_more_smoothness(self):
        def typical(noise):
            return np.median([curve(150, noise, seed).adapted().gamma for seed in range(5)])

        assert typical(0.3) > 3 * typical(0.02)

    def test_what_landmarks_can_say_exactly_needs_none(self):
        case = curve(150, 0.0, landmarks=12)
        values = np.random.default_rng(0).normal(size=(12, 3))
        found = case.adapted(Y=case.basis() @ values)
        np.testing.assert_allclose(found.values, values, atol=1e-3)

    def test_those_in_the_middle_decide_for_many(self, monkeypatch):
        case = curve(300, 0.2)
        whole = case.adapted().gamma
        monkeypatch.setattr(adaptation, "FEW_LANDMARKS", 16)
        part = case.adapted().gamma
        assert part != whole
        assert 1 / 30 < part / whole < 30

    def test_the_error_is_generalised_cross_validation(self):
        case = curve(50, 0.2)
        M = case.roughness()
        B, n = case.basis(), 50

        def gcv(gamma):
            H = B @ np.linalg.pinv(B.T @ B + gamma * M, rcond=1e-12) @ B.T
            return ((case.Y - H @ case.Y) ** 2).sum() / (1 - np.trace(H) / n) ** 2

        chosen = case.adapted().gamma
        assert all(
            gcv(chosen) <= gcv(factor * chosen) * (1 + 1e-6) for factor in (0.1, 0.3, 3.0, 10.0)
        )


@cases
@pytest.mark.parametrize("gamma", [0.0, 0.3, 1e4])
def test_constants_are_free(name, gamma):
    case = CASES[name]
    shift = np.array([100.0, -7.0, 3.0])
    plain, moved = case.adapted(gamma), case.adapted(gamma, Y=case.Y + shift)
    # The landmarks' own small ridge is all that holds them to the origin.
    np.testing.assert_allclose(moved.values, plain.values + shift, atol=2e-4)


def test_constants_do_not_choose_the_smoothness():
    case = curve(150, 0.2)
    plain, moved = case.adapted(), case.adapted(Y=case.Y + 5.0)
    np.testing.assert_allclose(np.log(moved.gamma), np.log(plain.gamma), atol=1.6)


def test_weights_are_repeated_rows():
    case = CASES["curve"]
    weights = np.ones(40)
    weights[:15] = 3
    again = np.concatenate([np.repeat(np.arange(15), 3), np.arange(15, 40)])
    many = Case(case.X[again], case.Z, case.Y[again], case.clean[again])
    # The mean weight of the 40 rows is 70/40: shares of γ are per row of the table.
    for gamma in (0.5, 3.0):
        found = _with_same_roughness(case, many, weights, gamma)
        np.testing.assert_allclose(found[0].values, found[1].values, atol=1e-6)


def _with_same_roughness(case, many, weights, gamma):
    with pytest.MonkeyPatch.context() as patch:
        S = case.roughness_root()
        patch.setattr(adaptation, "_roughness", lambda *given: S)
        share = weights.sum() / len(weights)
        return case.adapted(gamma, weights), many.adapted(gamma * share)


class TestMissingEntries:
    def test_unobserved_values_do_not_count(self):
        case, rng = CASES["curve"], np.random.default_rng(3)
        observed = rng.random(case.Y.shape) < 0.7
        plain = case.adapted(0.3, observed=observed)
        other = case.adapted(0.3, observed=observed, Y=np.where(observed, case.Y, 1e6))
        np.testing.assert_array_equal(plain.values, other.values)

    def test_each_column_is_fitted_to_the_rows_that_have_it(self, monkeypatch):
        case, rng = CASES["curve"], np.random.default_rng(3)
        observed = rng.random(case.Y.shape) < 0.7
        S = case.roughness_root()
        monkeypatch.setattr(adaptation, "_roughness", lambda *given: S)
        found, B = case.adapted(0.3, observed=observed).values, case.basis()
        for d in range(3):
            rows = observed[:, d]
            expected = adapt(case.Y[rows][:, [d]], B[rows], case.roughness(), 0.3)
            np.testing.assert_allclose(found[:, [d]], expected, atol=1e-4)

    def test_a_choice_of_smoothness_survives_them(self):
        case, rng = curve(150, 0.1), np.random.default_rng(3)
        found = case.adapted(observed=rng.random(case.Y.shape) < 0.7)
        whole = case.adapted()
        assert np.abs(case.basis() @ (found.values - whole.values)).mean() < 0.1


class TestHuber:
    def test_gross_outliers_hardly_move_landmarks(self):
        case = curve(200, 0.05)
        wild = case.Y.copy()
        wild[::20, 1] += 50
        clean, loss, B = case.adapted(0.1).values, Huber(0.1), case.basis()
        moved = np.abs(B @ (case.adapted(0.1, Y=wild, loss=loss).values - clean)).mean()
        by_squares = np.abs(B @ (case.adapted(0.1, Y=wild).values - clean)).mean()
        assert moved < 0.05 * by_squares
        assert moved < 0.05

    def test_without_outliers_it_is_close_to_least_squares(self):
        case = curve(200, 0.05)
        robust = case.adapted(0.1, loss=Huber(10.0))
        np.testing.assert_allclose(robust.values, case.adapted(0.1).values, atol=1e-9)

    def test_the_smoothness_is_not_chosen_by_outliers(self):
        case = curve(200, 0.05)
        wild = case.Y.copy()
        wild[::20] += 20 * np.random.default_rng(0).normal(size=(10, 3))
        found = case.adapted(Y=wild, loss=Huber(0.1))
        B = case.basis()
        assert np.abs(B @ found.values - case.clean).mean() < 0.05

    def test_rows_met_exactly_keep_their_weight(self):
        case = CASES["curve"]
        zero = np.zeros_like(case.Y)
        assert np.abs(case.adapted(0.1, Y=zero, loss=Huber(0.1)).values).max() < 1e-6


def test_landmarks_out_of_reach_stay_finite():
    case = curve(60, kernel=TRIWEIGHT)
    far = Case(case.X, np.append(case.Z, [[40.0]], axis=0), case.Y, case.clean, TRIWEIGHT)
    for gamma in (None, 0.0, 0.3):
        values = far.adapted(gamma).values
        assert np.isfinite(values).all()
        assert np.abs(values).max() < 100


def test_single_precision_stays():
    case = CASES["curve"]
    single = Case(case.X, case.Z, case.Y.astype(np.float32), case.clean)
    found = single.adapted(0.3).values
    assert found.dtype == np.float32
    np.testing.assert_allclose(found, case.adapted(0.3).values, atol=1e-3)


class TestFirstPlaces:
    def test_each_counts_as_part_of_a_row(self, monkeypatch):
        case, share = CASES["patch"], 0.05
        monkeypatch.setattr(adaptation, "PRIOR", share)
        M = case.roughness()
        found = case.adapted(0.3)
        B, first = case.basis(), case.landmarks().Y
        prior = share * (B**2).sum() / len(first)
        rows = np.concatenate([case.Y, np.sqrt(prior) * first])
        both = np.concatenate([B, np.sqrt(prior) * np.eye(len(first))])
        expected = adapt(rows, both, M, 0.3)
        np.testing.assert_allclose(found.values, expected, atol=1e-6 * np.abs(expected).max())

    def test_a_landmark_without_rows_stays(self, monkeypatch):
        monkeypatch.setattr(adaptation, "PRIOR", 0.01)
        case = curve(60)
        case.Z = np.append(case.Z, [[40.0]], axis=0)
        found = case.adapted(0.3)
        np.testing.assert_allclose(found.values[-1], case.landmarks().Y[-1], atol=1e-6)
        assert np.abs(found.values[:-1]).max() < 3
