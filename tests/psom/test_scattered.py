"""Fits to scattered samples: the formulas, their limits, and the robot arm."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from oracles import psom_smoothing as oracle
from oracles.psom_smoothing import ARM_RANGES, wrist
from scipy.linalg import LinAlgWarning
from sklearn.exceptions import ConvergenceWarning

from twofold.psom import known_places, penalized
from twofold.psom.basis import SampleBasis
from twofold.psom.grid import Grid
from twofold.psom.interpolation import interpolate
from twofold.psom.known_places import fit_scattered, smooth_grid
from twofold.psom.penalized import BlockBidiagonalization, orthonormal_factors
from twofold.psom.roughness import LegendreCoordinates, Roughness
from twofold.psom.smoothness_choice import Discrepancy

GRID = Grid.make((5, 4, 3), bounds=[(0, 2), (-1, 1), (1, 2)])
UNEVEN = Grid.through(
    [np.array([0.0, 0.3, 1.0, 1.4]), np.array([-1.0, 0.1, 0.5])], [(-0.2, 1.5), (-1.0, 1.2)]
)


def samples(grid, m, noise=0.05, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.uniform(grid.lo, grid.hi, size=(m, grid.n_axes))
    Y = np.column_stack([np.sin(2 * X.sum(axis=1)), np.cos(X[:, 0] * X[:, 1])])
    return X, Y + noise * rng.normal(size=Y.shape)


@pytest.mark.parametrize("counts", [(4,), (3, 5), (3, 4, 5), (3, 2, 4, 3)])
def test_products_with_the_design_matrix(counts):
    rng = np.random.default_rng(0)
    m, k = 700, 3
    factors = [rng.normal(size=(m, n)) for n in counts]
    roots = rng.random(m)
    B = np.array([roots[i] * oracle_row([f[i] for f in factors]) for i in range(m)])
    basis = SampleBasis(factors, roots, n_threads=2)
    C, r = rng.normal(size=(B.shape[1], k)), rng.normal(size=(m, k))
    assert basis.n_columns == B.shape[1]
    assert_allclose(basis.times(C), B @ C, atol=1e-11)
    assert_allclose(basis.transposed_times(r), B.T @ r, atol=1e-10)
    assert_allclose(basis.rows(slice(10, 20)), B[10:20], atol=1e-13)
    assert_array_equal(basis.times(C), SampleBasis(factors, roots, 1).times(C))


def oracle_row(factors):
    row = np.ones(1)
    for factor in factors:
        row = np.kron(row, factor)
    return row


SOLVERS = {
    "exact": {},
    "cholesky": {"MOST_NODES_EXACTLY": 1},
    "krylov": {"MOST_NODES_EXACTLY": 1, "MOST_NODES_DENSE": 1},
}


@pytest.fixture(params=SOLVERS)
def solver(request, monkeypatch):
    for name, value in SOLVERS[request.param].items():
        monkeypatch.setattr(known_places, name, value)
    return request.param


@pytest.mark.parametrize("grid", [GRID, UNEVEN], ids=["chebyshev", "uneven"])
@pytest.mark.parametrize("m", [15, 40, 300])
def test_soft_fit(solver, grid, m):
    X, Y = samples(grid, m)
    B, M = oracle.design(grid.nodes, X), Roughness(grid).dense()
    found = fit_scattered(grid, X, Y, 0.01)
    expected = oracle.soft(B, M, Y, 0.01)
    assert_allclose(found.W, expected, atol=1e-5 * np.abs(expected).max())
    assert found.squared_error == pytest.approx(((Y - B @ expected) ** 2).sum(), rel=1e-6)
    assert found.roughness == pytest.approx(np.trace(expected.T @ M @ expected), rel=1e-5)
    assert found.converged
    if solver == "exact":
        assert found.degrees_of_freedom == pytest.approx(oracle.hat_trace(B, M, 0.01))


def test_weights_count_samples(solver):
    X, Y = samples(GRID, 100)
    weights = np.random.default_rng(1).integers(0, 4, size=100)
    weighted = fit_scattered(GRID, X, Y, 0.1, weights)
    repeated = fit_scattered(
        GRID, np.repeat(X, weights, axis=0), np.repeat(Y, weights, axis=0), 0.1
    )
    assert_allclose(weighted.W, repeated.W, atol=2e-6)
    assert weighted.squared_error == pytest.approx(repeated.squared_error, rel=1e-6)


def test_samples_on_the_nodes_are_grid_data(solver):
    Y = samples(GRID, GRID.size)[1]
    found = fit_scattered(GRID, GRID.places(), Y, 0.05)
    assert_allclose(found.W, smooth_grid(GRID, Y, 0.05).W, atol=1e-5)


def test_affine_data_are_fitted_exactly(solver):
    X = samples(GRID, 40)[0]
    slopes = np.random.default_rng(2).normal(size=(3, 2))
    for smoothness in (0.1, "gcv"):
        found = fit_scattered(GRID, X, 2 + X @ slopes, smoothness)
        assert_allclose(found.W, 2 + GRID.places() @ slopes, atol=1e-6)
        few = fit_scattered(GRID, X[:4], 2 + X[:4] @ slopes, smoothness)
        assert_allclose(few.W, 2 + GRID.places() @ slopes, atol=1e-6)


@pytest.mark.parametrize("smoothness", ["gcv", 0.1, 0.0])
def test_two_nodes_an_axis_are_a_straight_line(solver, smoothness):
    if solver == "krylov" and smoothness == 0:
        pytest.skip("a hard fit is never iterated")
    line = Grid.make((2,))
    X, Y = np.linspace(-1, 1, 9)[:, None], np.random.default_rng(5).normal(size=(9, 1))
    A = np.column_stack([np.ones(9), X])
    straight = np.column_stack([np.ones(2), line.places()]) @ np.linalg.lstsq(A, Y, rcond=None)[0]
    assert_allclose(fit_scattered(line, X, Y, smoothness).W, straight, atol=1e-9)


def test_spacing_of_nodes_does_not_matter():
    X, Y = samples(GRID, 80)
    other = Grid.make(GRID.shape, "regular", np.stack([GRID.lo, GRID.hi], axis=1))
    first, second = (interpolate(g, fit_scattered(g, X, Y, 0.01).W, X) for g in (GRID, other))
    assert_allclose(first, second, atol=1e-9)


@pytest.mark.parametrize("m", [30, 300])
def test_gcv_finds_the_minimum(m):
    X, Y = samples(UNEVEN, m, noise=0.2)
    B, M = oracle.design(UNEVEN.nodes, X), Roughness(UNEVEN).dense()
    found = fit_scattered(UNEVEN, X, Y, "gcv")
    exponents = np.linspace(-5, 3, 401)
    best = exponents[np.argmin([oracle.gcv(B, M, Y, 10**e) for e in exponents])]
    assert np.log10(found.smoothness) == pytest.approx(best, abs=0.03)
    assert_allclose(found.W, oracle.soft(B, M, Y, found.smoothness), rtol=1e-6, atol=1e-7)


def test_gcv_by_probes_is_close(monkeypatch):
    grid = Grid.make((12, 12))
    X, Y = samples(grid, 400, noise=0.3)
    exact = fit_scattered(grid, X, Y, "gcv")
    monkeypatch.setattr(known_places, "MOST_NODES_EXACTLY", 1)
    probed = fit_scattered(grid, X, Y, "gcv")
    assert probed.converged
    assert np.log10(probed.smoothness) == pytest.approx(np.log10(exact.smoothness), abs=0.4)
    assert probed.degrees_of_freedom == pytest.approx(exact.degrees_of_freedom, rel=0.25)


def test_discrepancy_reaches_the_noise():
    X, Y = samples(GRID, 300, noise=0.2)
    found = fit_scattered(GRID, X, Y, Discrepancy(0.25))
    assert found.squared_error / Y.size == pytest.approx(0.25**2, rel=1e-4)


def test_hard_fit_is_the_smoothest_of_all_that_interpolate():
    X, Y = samples(GRID, 25)
    B, M = oracle.design(GRID.nodes, X), Roughness(GRID).dense()
    found = fit_scattered(GRID, X, Y, 0)
    assert_allclose(B @ found.W, Y, atol=1e-9)
    assert_allclose(found.W, oracle.hard(B, M, Y), atol=1e-7)
    w0 = np.linalg.pinv(B) @ Y
    assert found.roughness < np.trace(w0.T @ M @ w0)
    assert found.rank == 25 - 4
    soft = [fit_scattered(GRID, X, Y, lam).W for lam in (1e-6, 1e-8, 1e-10)]
    gaps = [np.abs(W - found.W).max() for W in soft]
    assert gaps[0] > 10 * gaps[1] > 100 * gaps[2]


def test_hard_fit_of_repeated_samples_is_their_mean():
    X, Y = samples(GRID, 20)
    again = fit_scattered(GRID, np.vstack([X, X]), np.vstack([Y, Y + 1]), 0)
    assert_allclose(again.W, fit_scattered(GRID, X, Y + 0.5, 0).W, atol=1e-7)
    assert again.rank == 20 - 4


def test_bad_conditioning_is_told():
    X, Y = samples(GRID, 24)
    X[1] = X[0] + 1e-5
    with pytest.warns(LinAlgWarning, match="badly conditioned"):
        fit_scattered(GRID, X, Y, 0)


def test_unfinished_iterations_are_told(monkeypatch):
    for name in ("MOST_NODES_EXACTLY", "MOST_NODES_DENSE"):
        monkeypatch.setattr(known_places, name, 1)
    monkeypatch.setattr(penalized, "MOST_STEPS", 2)
    X, Y = samples(GRID, 300)
    with pytest.warns(ConvergenceWarning, match="did not converge in 2 steps"):
        assert not fit_scattered(GRID, X, Y, 1e-8).converged
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        fit_scattered(GRID, X, Y, 1e6)


def test_golub_kahan_relations():
    rng = np.random.default_rng(3)
    K = rng.normal(size=(40, 25))
    start = rng.normal(size=(40, 3))
    start[:, 2] = start[:, 0] - start[:, 1]  # one direction too many
    space = BlockBidiagonalization(lambda z: K @ z, lambda r: K.T @ r, start)
    for _ in range(4):
        space.step()
    V = space.combine(np.eye(8))
    assert_allclose(V.T @ V, np.eye(8), atol=1e-12)
    assert_allclose(np.linalg.norm(K @ V), np.linalg.norm(space.matrix()))
    T = space.matrix()
    assert_allclose(V.T @ K.T @ K @ V, T.T @ T, atol=1e-10)
    assert_allclose(
        V.T @ K.T @ start, T[: len(space.start_parts)].T @ space.start_parts, atol=1e-10
    )
    Q, P = orthonormal_factors(start)
    assert Q.shape[1] == 2
    assert_allclose(Q @ P, start, atol=1e-13)


@pytest.mark.parametrize("smoothness", ["gcv", 0.01])
def test_threads_change_nothing(solver, smoothness):
    X, Y = samples(GRID, 3000)
    one, two = (fit_scattered(GRID, X, Y, smoothness, n_jobs=n).W for n in (1, 2))
    assert_array_equal(one, two)


@pytest.mark.parametrize("smoothness", ["gcv", 0.1])
def test_samples_must_determine_an_affine_function(solver, smoothness):
    X, Y = samples(GRID, 30)
    X[:, 1] = 0.25
    with pytest.raises(ValueError, match="determine an affine function"):
        fit_scattered(GRID, X, Y, smoothness)
    with pytest.raises(ValueError, match="determine an affine function"):
        fit_scattered(GRID, *samples(GRID, 3), smoothness)


def test_wrong_arguments():
    X, Y = samples(GRID, 30)
    with pytest.raises(ValueError, match="one column for each of the 3 axes"):
        fit_scattered(GRID, X[:, :2], Y)
    with pytest.raises(ValueError, match="one row for each of the 30 samples"):
        fit_scattered(GRID, X, Y[:4])
    with pytest.raises(ValueError, match="weights"):
        fit_scattered(GRID, X, Y, weights=-np.ones(30))
    with pytest.raises(ValueError, match="finite"):
        fit_scattered(GRID, X, np.where(Y > 0, np.nan, Y))
    with pytest.raises(ValueError, match="smoothness"):
        fit_scattered(GRID, X, Y, -1.0)
    large = Grid.make((9, 8, 8, 8))
    with pytest.raises(ValueError, match="at most 4500 nodes"):
        fit_scattered(large, np.zeros((3, 4)), np.zeros((3, 1)), 0)


# ---- robot arm: figures of the thesis -----------------------------------------------------------


def arm_samples(m, seed):
    X = np.random.default_rng(seed).uniform(*ARM_RANGES.T, size=(m, 4))
    return X, wrist(X)


def arm_errors(grid, W):
    # Many postures: the errors have heavy tails, twice as wide as their mean.
    X, Y = arm_samples(4000, 99)
    return np.linalg.norm(interpolate(grid, W, X) - Y, axis=1)


# Means of six draws of samples 6.83, 3.38, 2.31, 1.58 mm; the bands are about three standard
# deviations of one draw, and hold the 7.36, 3.89, 2.54, 1.64 mm of the reference run.
@pytest.mark.slow
@pytest.mark.parametrize(
    ("m", "lowest", "highest"),
    [(2048, 5.6, 8.1), (3072, 2.8, 4.0), (4096, 1.9, 2.75), (6144, 1.35, 1.85)],
)
def test_arm_soft_fit(m, lowest, highest):
    grid = Grid.make((8,) * 4, bounds=ARM_RANGES)
    W = fit_scattered(grid, *arm_samples(m, m), 1e-6).W
    assert lowest < arm_errors(grid, W).mean() < highest


@pytest.mark.slow
def test_arm_hard_fit_agrees_while_samples_are_few():
    grid = Grid.make((6,) * 4, bounds=ARM_RANGES)
    X, Y = arm_samples(400, 0)
    hard = fit_scattered(grid, X, Y, 0)
    soft = fit_scattered(grid, X, Y, 1e-6)
    assert_allclose(arm_errors(grid, hard.W).mean(), arm_errors(grid, soft.W).mean(), rtol=0.02)
    assert_allclose(interpolate(grid, hard.W, X), Y, atol=1e-6)


@pytest.mark.slow
def test_arm_with_noise_is_smoothed_by_gcv():
    grid = Grid.make((6,) * 4, bounds=ARM_RANGES)
    X, Y = arm_samples(1500, 1)
    Y += np.random.default_rng(2).normal(scale=10, size=Y.shape)
    coordinates = LegendreCoordinates(grid)
    assert len(coordinates.blocks) == 16
    found = fit_scattered(grid, X, Y, "gcv")
    errors = {
        factor: arm_errors(grid, fit_scattered(grid, X, Y, factor * found.smoothness).W).mean()
        for factor in (0.1, 1, 10)
    }
    assert errors[1] < errors[0.1]
    assert errors[1] < errors[10]
