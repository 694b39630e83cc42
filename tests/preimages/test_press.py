"""Leave-one-out errors in closed form against fitting m times, and their gradients."""

from __future__ import annotations

import numpy as np
import pytest
from finite_differences import numerical_gradient, relative_error
from oracles import kernel_pca as oracle
from scipy.spatial.distance import pdist, squareform

from twofold.preimages.press import (
    CoordinatePress,
    KernelPress,
    RebuiltKernelPress,
    choose,
    left_out_residuals,
    ridge_inverse,
)

M = 24
KERNEL_SCALE = 0.6
PLACES = [(0.5, 0.01), (1.3, 0.2), (0.2, 1e-4)]


def kernel(Y: np.ndarray) -> np.ndarray:
    return oracle.diffusion_kernel(Y, KERNEL_SCALE)


def rows() -> np.ndarray:
    rng = np.random.default_rng(0)
    t = rng.uniform(0, 5, M)
    return np.column_stack([t, np.sin(t)]) + 0.1 * rng.normal(size=(M, 2))


Y = rows()
SQ_DISTS = squareform(pdist(Y, "sqeuclidean"))
K = kernel(Y)
X = np.column_stack([np.cos(Y[:, 0]), Y[:, 1] ** 2])
CRITERIA = {
    "coordinates": CoordinatePress(SQ_DISTS, X),
    "press": KernelPress(SQ_DISTS, K),
    "press with diagonal": KernelPress(SQ_DISTS, K, include_diagonal=True),
    "rk_press": RebuiltKernelPress(SQ_DISTS, Y, kernel),
}


@pytest.mark.parametrize(("scale", "ridge"), PLACES)
def test_residuals_are_those_of_m_fits(scale: float, ridge: float):
    D = ridge_inverse(oracle.gauss(Y, Y, scale), ridge)
    expected = oracle.left_out_residuals(Y, X, scale, ridge)
    np.testing.assert_allclose(left_out_residuals(D, X), expected, rtol=1e-8, atol=1e-11)


def test_inverse_is_that_of_the_bordered_system():
    H = oracle.gauss(Y, Y, 0.5)
    expected = np.linalg.inv(oracle.bordered(H, 0.01))[:M, :M]
    np.testing.assert_allclose(ridge_inverse(H, 0.01), expected, atol=1e-10)


@pytest.mark.parametrize(("scale", "ridge"), PLACES)
def test_values_against_m_fits(scale: float, ridge: float):
    found = {name: c.value_and_gradient(scale, ridge)[0] for name, c in CRITERIA.items()}
    R = oracle.left_out_residuals(Y, X, scale, ridge)
    spread = ((X - X.mean(axis=0)) ** 2).sum()
    assert found["coordinates"] == pytest.approx((R**2).sum() / spread, rel=1e-8)
    R = oracle.left_out_residuals(Y, K, scale, ridge)
    diagonal = (np.diag(R) ** 2).sum()
    assert found["press with diagonal"] == pytest.approx((R**2).sum() / (M * (M - 1)), rel=1e-8)
    assert found["press"] == pytest.approx(((R**2).sum() - diagonal) / (M * (M - 1)), rel=1e-8)
    assert found["rk_press"] == pytest.approx(
        oracle.rebuilt_press(Y, kernel, scale, ridge), rel=1e-8
    )


@pytest.mark.parametrize("name", CRITERIA)
@pytest.mark.parametrize(("scale", "ridge"), PLACES)
def test_gradients(name: str, scale: float, ridge: float):
    criterion = CRITERIA[name]
    gradient = criterion.value_and_gradient(scale, ridge)[1]

    def value(logs: np.ndarray) -> float:
        return criterion.value_and_gradient(*np.exp(logs))[0]

    logs = np.log([scale, ridge])
    expected = numerical_gradient(value, logs, step=1e-4) / np.exp(logs)
    assert relative_error(gradient * np.exp(logs), expected * np.exp(logs)) < 1e-5


def test_a_kernel_matrix_is_computed_once_for_each_row():
    calls = []

    def counted(rows: np.ndarray) -> np.ndarray:
        calls.append(len(rows))
        return kernel(rows)

    criterion = RebuiltKernelPress(SQ_DISTS, Y, counted)
    first = criterion.value_and_gradient(0.5, 0.01)[0]
    assert criterion.value_and_gradient(0.5, 0.01)[0] == first
    assert calls.count(M - 1) == M


@pytest.mark.parametrize("name", ["coordinates", "press", "rk_press"])
def test_the_choice_is_no_worse_than_a_grid(name: str):
    criterion = CRITERIA[name]
    chosen = choose(criterion, unit=0.8)
    grid = min(
        criterion.value_and_gradient(scale, ridge)[0]
        for scale in np.geomspace(0.1, 10, 9)
        for ridge in np.geomspace(1e-6, 1, 7)
    )
    assert chosen.value <= grid
    found = criterion.value_and_gradient(chosen.scale, chosen.ridge)[0]
    assert chosen.value == pytest.approx(found, rel=1e-6)


def test_a_number_that_is_given_stays():
    criterion = CRITERIA["coordinates"]
    by_scale = choose(criterion, unit=0.8, ridge=0.03)
    assert by_scale.ridge == 0.03
    slope = criterion.value_and_gradient(by_scale.scale, 0.03)[1][0] * by_scale.scale
    assert abs(slope) < 1e-3 * by_scale.value  # at the bottom, along the scale
    assert choose(criterion, unit=0.8, scale=0.7).scale == 0.7
    both = choose(criterion, unit=0.8, scale=0.7, ridge=0.03)
    assert both == (0.7, 0.03, criterion.value_and_gradient(0.7, 0.03)[0])


def test_scales_without_a_solution_are_passed_by():
    criterion = CRITERIA["coordinates"]
    with pytest.raises(ValueError, match="larger ridge"):
        criterion.value_and_gradient(60.0, 1e-16)
    chosen = choose(criterion, unit=0.8, ridge=1e-16)
    assert chosen.scale < 10
    assert 0 < chosen.value < 1
    with pytest.raises(ValueError, match="larger ridge"):
        choose(criterion, unit=1e4, ridge=1e-30)
