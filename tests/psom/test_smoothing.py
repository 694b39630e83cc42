"""Smoothing and completing data on the nodes: limits, gaps, and the choice of the smoothness."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from oracles import psom_smoothing as oracle
from oracles.psom_smoothing import ARM_RANGES, wrist
from sklearn.exceptions import ConvergenceWarning

from twofold.psom import known_places
from twofold.psom.grid import Grid
from twofold.psom.interpolation import interpolate
from twofold.psom.known_places import smooth_grid
from twofold.psom.penalized import conjugate_gradients
from twofold.psom.roughness import Roughness
from twofold.psom.smoothness_choice import GCV, Discrepancy

GRID = Grid.make((6, 5), bounds=[(0, 3), (-1, 1)])
UNEVEN = Grid.through([np.array([0.0, 0.3, 1.0, 1.4, 2.0]), np.array([-1.0, 0.1, 0.5, 1.0])])
INF = np.inf


def noisy(grid, seed=0, size=0.1):
    x = grid.places()
    clean = np.column_stack([np.sin(x[:, 0] + x[:, 1]), np.cos(x[:, 0] * x[:, 1])])
    return clean + size * np.random.default_rng(seed).normal(size=clean.shape)


def affine(grid):
    x = grid.places()
    return np.column_stack([1 + x.sum(axis=1), 3 - 2 * x[:, 0]])


@pytest.mark.parametrize("grid", [GRID, UNEVEN], ids=["symmetric", "uneven"])
@pytest.mark.parametrize("lam", [1e-3, 0.1, 5.0])
def test_denoising(grid, lam):
    Y, M = noisy(grid), Roughness(grid).dense()
    found = smooth_grid(grid, Y, lam)
    assert_allclose(found.W, oracle.denoise(M, Y, lam), rtol=1e-8, atol=1e-9)
    assert found.roughness == pytest.approx(np.trace(found.W.T @ M @ found.W))
    assert found.squared_error == pytest.approx(((found.W - Y) ** 2).sum())
    assert found.converged


def test_limits_of_denoising():
    Y = noisy(GRID)
    assert_array_equal(smooth_grid(GRID, Y).W, Y)
    A = np.column_stack([np.ones(GRID.size), GRID.places()])
    straight = A @ np.linalg.lstsq(A, Y, rcond=None)[0]
    assert_allclose(smooth_grid(GRID, Y, 1e9).W, straight, atol=1e-6)


def test_missing_nodes_take_the_least_roughness():
    Y = noisy(GRID)
    known = np.random.default_rng(1).random(GRID.size) < 0.7
    gaps = np.where(known[:, None], Y, np.nan)
    found = smooth_grid(GRID, gaps)
    assert_allclose(found.W, oracle.fill(Roughness(GRID).dense(), Y, known), atol=1e-9)
    assert_array_equal(found.W[known], Y[known])


@pytest.mark.parametrize("smoothness", [0.0, 0.5, "gcv"])
def test_affine_data_are_completed_exactly(smoothness):
    Y = affine(GRID)
    gaps = Y.copy()
    gaps[np.random.default_rng(2).permutation(GRID.size)[:20]] = np.nan
    assert_allclose(smooth_grid(GRID, gaps, smoothness).W, Y, atol=1e-8)


def test_missing_entries_are_filled_column_by_column():
    Y = noisy(GRID)
    known = np.random.default_rng(3).random(Y.shape) < 0.7
    gaps = np.where(known, Y, np.nan)
    M = Roughness(GRID).dense()
    filled, smoothed = smooth_grid(GRID, gaps), smooth_grid(GRID, gaps, 0.2)
    for d in range(2):
        column = slice(d, d + 1)
        one = oracle.fill(M, Y[:, column], known[:, d])
        assert_allclose(filled.W[:, column], one, atol=1e-9)
        one = oracle.denoise_known(M, Y[:, column], known[:, d], 0.2)
        assert_allclose(smoothed.W[:, column], one, atol=1e-9)


def test_smoothness_of_single_nodes():
    Y, M = noisy(GRID), Roughness(GRID).dense()
    lam = 10.0 ** np.random.default_rng(4).uniform(-3, 2, size=GRID.size)
    lam[:4] = 0
    found = smooth_grid(GRID, Y, lam)
    assert_allclose(found.W, oracle.denoise(M, Y, lam), rtol=1e-6, atol=1e-8)
    assert_array_equal(found.W[:4], Y[:4])


def test_limits_of_single_smoothness():
    Y = noisy(GRID)
    known = np.random.default_rng(5).random(GRID.size) < 0.6
    gaps = np.where(known[:, None], Y, np.nan)
    filled = smooth_grid(GRID, gaps).W
    assert_allclose(smooth_grid(GRID, Y, np.where(known, 0, INF)).W, filled, atol=1e-10)
    assert_allclose(smooth_grid(GRID, gaps, np.where(known, 0, INF)).W, filled, atol=1e-10)
    assert_allclose(smooth_grid(GRID, Y, np.where(known, 0, 1e9)).W, filled, atol=1e-5)
    even = smooth_grid(GRID, Y, np.full(GRID.size, 0.3)).W
    assert_allclose(even, smooth_grid(GRID, Y, 0.3).W, atol=1e-9)


@pytest.mark.parametrize("smoothness", [0.0, 0.1, "gcv"])
def test_too_few_known_nodes(smoothness):
    gaps = np.full((GRID.size, 1), np.nan)
    gaps[:5] = 1.0  # the first nodes of the first axis: a line
    with pytest.raises(ValueError, match="determine an affine function"):
        smooth_grid(GRID, gaps, smoothness)


def minimum(scores, exponents):
    return 10 ** exponents[int(np.argmin(scores))]


@pytest.mark.parametrize("gaps", [False, True])
@pytest.mark.parametrize("grid", [GRID, UNEVEN], ids=["symmetric", "uneven"])
def test_gcv_finds_the_minimum(grid, gaps):
    Y, M = noisy(grid, seed=1, size=0.4), Roughness(grid).dense()
    known = np.random.default_rng(6).random(grid.size) < (0.7 if gaps else 1.1)
    S = np.eye(grid.size)[known]
    found = smooth_grid(grid, np.where(known[:, None], Y, np.nan), "gcv")
    exponents = np.linspace(-6, 3, 451)
    scores = [oracle.gcv(S, M, Y[known], 10**e) for e in exponents]
    assert np.log10(found.smoothness) == pytest.approx(
        np.log10(minimum(scores, exponents)), abs=0.03
    )
    expected = oracle.denoise_known(M, Y, known, found.smoothness)
    assert_allclose(found.W, expected, rtol=1e-7, atol=1e-8)
    trace = oracle.hat_trace(S, M, found.smoothness)
    assert found.degrees_of_freedom == pytest.approx(trace)
    assert smooth_grid(grid, Y, GCV()).smoothness == smooth_grid(grid, Y, "gcv").smoothness


def test_discrepancy_reaches_the_noise():
    Y = noisy(GRID)
    found = smooth_grid(GRID, Y, Discrepancy(0.1))
    assert found.squared_error / Y.size == pytest.approx(0.01, rel=1e-4)
    with pytest.raises(ValueError, match="sigma"):
        Discrepancy(0.0)


def test_conjugate_gradients_with_a_matrix_for_each_column():
    rng = np.random.default_rng(9)
    roots = rng.normal(size=(3, 12, 12))
    matrices = roots @ roots.transpose(0, 2, 1) + np.eye(12) * [[[1]], [[10]], [[100]]]
    right = rng.normal(size=(12, 3))
    right[:, 1] = 0

    def times(V):
        return np.stack([A @ v for A, v in zip(matrices, V.T, strict=True)], axis=1)

    found, done = conjugate_gradients(times, lambda r: r, right, tolerance=1e-12, max_iter=100)
    assert done
    assert_allclose(times(found), right, atol=1e-10)
    assert_array_equal(found[:, 1], 0)
    _, done = conjugate_gradients(times, lambda r: r, right, tolerance=1e-12, max_iter=3)
    assert not done


def test_large_systems_are_iterated_and_agree(monkeypatch):
    Y = noisy(GRID)
    gaps = Y.copy()
    gaps[::4] = np.nan
    lam = 10.0 ** np.random.default_rng(7).uniform(-3, 1, size=GRID.size)
    expected = smooth_grid(GRID, gaps, lam).W
    monkeypatch.setattr(known_places, "MOST_FREE_DENSE", 5)
    assert_allclose(smooth_grid(GRID, gaps, lam).W, expected, atol=1e-7)
    monkeypatch.setattr(known_places, "MOST_ITERATIONS", 2)
    with pytest.warns(ConvergenceWarning, match="did not converge"):
        found = smooth_grid(GRID, gaps, lam)
    assert not found.converged


def test_large_gapped_grids_choose_by_probes(monkeypatch):
    grid = Grid.make((14, 14))
    Y = noisy(grid)
    Y[np.random.default_rng(8).permutation(grid.size)[:40]] = np.nan
    exact = smooth_grid(grid, Y, "gcv")
    monkeypatch.setattr(known_places, "MOST_NODES_EXACTLY", 50)
    probed = smooth_grid(grid, Y, "gcv")
    assert probed.converged
    assert np.log10(probed.smoothness) == pytest.approx(np.log10(exact.smoothness), abs=0.5)
    at_that = smooth_grid(grid, Y, probed.smoothness)
    assert_allclose(probed.W, at_that.W, atol=1e-5)


@pytest.mark.parametrize("gaps", [False, True])
def test_threads_change_nothing(monkeypatch, gaps):
    monkeypatch.setattr(known_places, "MOST_NODES_EXACTLY", 50)
    grid = Grid.make((14, 14))
    Y = noisy(grid)
    if gaps:
        Y[::7] = np.nan
    one, two = (smooth_grid(grid, Y, "gcv", n_jobs=n) for n in (1, 2))
    assert_array_equal(one.W, two.W)
    assert one.smoothness == two.smoothness


def test_wrong_arguments():
    Y = noisy(GRID)
    with pytest.raises(ValueError, match="one row for each of its 30 nodes"):
        smooth_grid(GRID, Y[:5])
    with pytest.raises(ValueError, match="from 0 to inf"):
        smooth_grid(GRID, Y, np.array([1.0, 2.0]))
    with pytest.raises(ValueError, match="from 0 to inf"):
        smooth_grid(GRID, Y, np.full(30, -1.0))
    with pytest.raises(ValueError, match="smoothness"):
        smooth_grid(GRID, Y, "often")
    with pytest.raises(ValueError, match="NaN where it is missing"):
        smooth_grid(GRID, np.where(Y > 0, INF, Y))


# ---- robot arm: figures of the thesis -----------------------------------------------------------

ARM = Grid.make((8,) * 4, bounds=ARM_RANGES)


def arm_error(W, seed):
    """Return the mean error in mm at 1,000 random postures."""
    X = np.random.default_rng(seed).uniform(*ARM_RANGES.T, size=(1000, 4))
    return float(np.linalg.norm(interpolate(ARM, W, X) - wrist(X), axis=1).mean())


@pytest.mark.slow
def test_arm_gcv_finds_the_best_smoothness():
    Y = wrist(ARM.places())
    Y += np.random.default_rng(0).normal(scale=10, size=Y.shape)
    chosen, discrepancy = smooth_grid(ARM, Y, "gcv"), smooth_grid(ARM, Y, Discrepancy(10.0))
    errors = {lam: arm_error(smooth_grid(ARM, Y, lam).W, 1) for lam in (0.0, 1e-3, 2e-3, 4e-3)}
    assert 1.7e-3 < chosen.smoothness < 2.4e-3
    assert 10.0 < arm_error(chosen.W, 1) < 11.3
    assert arm_error(chosen.W, 1) < 1.01 * min(errors.values())
    assert errors[0.0] > 13
    assert 0.008 < discrepancy.smoothness < 0.012
    assert arm_error(discrepancy.W, 1) > 18


@pytest.mark.slow
@pytest.mark.parametrize(
    ("missing", "lowest", "highest"), [(40, 0.58, 0.72), (100, 0.72, 0.98), (400, 1.55, 2.1)]
)
def test_arm_missing_nodes(missing, lowest, highest):
    errors = []
    for seed in range(4):
        Y = wrist(ARM.places())
        Y[np.random.default_rng(seed).permutation(ARM.size)[:missing]] = np.nan
        errors.append(arm_error(smooth_grid(ARM, Y).W, 100 + seed))
    assert lowest < np.mean(errors) < highest
