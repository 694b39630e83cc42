"""Coordinates as sums of Gaussians: against the long way, and their derivatives."""

from __future__ import annotations

import numpy as np
import pytest
from finite_differences import numerical_gradient, relative_error
from oracles import kernel_pca as oracle

from twofold.preimages.coordinates import GaussianCoordinates

SCALE, RIDGE = 0.8, 0.05


def curve(m: int, seed: int = 0) -> np.ndarray:
    rng = np.random.default_rng(seed)
    t = rng.uniform(0, 2 * np.pi, m)
    return np.column_stack([t, np.sin(t), 0.3 * t]) + 0.1 * rng.normal(size=(m, 3))


def diffusion_map(m: int = 30) -> tuple[np.ndarray, np.ndarray, GaussianCoordinates]:
    """Return rows, their diffusion kernel, and all of its coordinates, extended."""
    Y = curve(m)
    K = oracle.diffusion_kernel(Y, 0.7)
    values, U = oracle.eigenpairs(oracle.centred(K))
    return Y, K, GaussianCoordinates.by_ridge(Y, U * np.sqrt(values), SCALE, RIDGE)


def test_is_the_extended_kernel_centred_and_projected():
    Y, K, coordinates = diffusion_map()
    Z = curve(7, seed=1)
    expected, _ = oracle.extended_projection(Y, K, Z, SCALE, RIDGE)
    np.testing.assert_allclose(coordinates.values(Z), expected, atol=1e-9)


def test_is_a_weighted_mean_of_the_coordinates():
    Y, _, coordinates = diffusion_map()
    X = np.random.default_rng(2).normal(size=(len(Y), 2))
    there = GaussianCoordinates.by_ridge(Y, X, SCALE, RIDGE).values(Y[:5] + 0.1)
    shifted = GaussianCoordinates.by_ridge(Y, X + 100, SCALE, RIDGE).values(Y[:5] + 0.1)
    np.testing.assert_allclose(shifted, there + 100, atol=1e-10)  # the weights sum to one
    np.testing.assert_allclose(coordinates.coefficients.sum(axis=0), 0, atol=1e-12)


def test_projection_of_the_gaussian_kernel_has_this_form():
    Y, Z = curve(20), curve(6, seed=1)
    K, k = oracle.gauss(Y, Y, SCALE), oracle.gauss(Z, Y, SCALE)
    values, U = oracle.eigenpairs(oracle.centred(K))
    axes = U / np.sqrt(values)
    centred = k - k.mean(axis=1, keepdims=True) - K.mean(axis=1) + K.mean()
    found = GaussianCoordinates.of_kernel(Y, axes, K.mean(axis=1), gamma=0.5 / SCALE**2)
    np.testing.assert_allclose(found.values(Z), centred @ axes, atol=1e-9)
    np.testing.assert_allclose(found.values(Y), U * np.sqrt(values), atol=1e-9)


def test_jacobian_is_the_derivative():
    _, _, coordinates = diffusion_map()
    z = np.array([[3.0, 0.2, 1.0]])
    J = coordinates.jacobian(z)[0]
    assert J.shape == (coordinates.n_coordinates, 3)
    for j in (0, 1, coordinates.n_coordinates - 1):
        expected = numerical_gradient(lambda Z, j=j: coordinates.values(Z)[0, j], z)[0]
        assert relative_error(J[j], expected) < 1e-7
    np.testing.assert_array_equal(coordinates.jacobian(z, 2)[0], J[:2])


def test_gradient_of_the_distance():
    _, _, coordinates = diffusion_map()
    Z = curve(4, seed=3)
    targets = np.random.default_rng(0).normal(size=(4, coordinates.n_coordinates))
    distances, gradient = coordinates.distance_and_gradient(Z, targets)
    np.testing.assert_allclose(distances, ((coordinates.values(Z) - targets) ** 2).sum(axis=1))
    expected = numerical_gradient(
        lambda A: coordinates.distance_and_gradient(A, targets)[0].sum(), Z
    )
    assert relative_error(gradient, expected) < 1e-8


def test_parts_are_what_the_others_say():
    _, _, coordinates = diffusion_map()
    Z = curve(5, seed=4)
    targets = np.ones((5, coordinates.n_coordinates))
    X, gradient, J = coordinates.parts(Z, targets, 2)
    # Tiles of other shapes round in another way.
    np.testing.assert_allclose(X, coordinates.values(Z), rtol=1e-12, atol=1e-13)
    expected = coordinates.distance_and_gradient(Z, targets)[1]
    np.testing.assert_allclose(gradient, expected, rtol=1e-11, atol=1e-12)
    np.testing.assert_array_equal(J, coordinates.jacobian(Z, 2))


@pytest.mark.parametrize(("m", "D", "r"), [(33, 7, 3), (150, 2, 140), (401, 85, 2), (50, 1, 1)])
def test_rows_alone_equal_rows_together(m: int, D: int, r: int):
    rng = np.random.default_rng(0)
    coordinates = GaussianCoordinates(
        rng.normal(size=(m, D)), D**0.5, rng.normal(size=(m, r)), rng.normal(size=r)
    )
    Z, targets = rng.normal(size=(70, D)), rng.normal(size=(70, r))
    for q in {0, 1, min(r, 2), min(r, 20)}:
        together = coordinates.parts(Z, targets, q)
        for i in (0, 13, 15, 16, 31, 63, 64, 69):
            alone = coordinates.parts(Z[i : i + 1], targets[i : i + 1], q)
            for one, many in zip(alone, together, strict=True):
                np.testing.assert_array_equal(one[0], many[i])


def test_a_large_offset_costs_no_digits():
    Y, Z = curve(20), curve(5, seed=1)
    near = GaussianCoordinates.by_ridge(Y, np.sin(Y), SCALE, RIDGE)
    far = GaussianCoordinates.by_ridge(Y + 2.0**20, np.sin(Y), SCALE, RIDGE)
    np.testing.assert_allclose(far.values(Z + 2.0**20), near.values(Z), atol=1e-7)
    np.testing.assert_allclose(far.jacobian(Z + 2.0**20), near.jacobian(Z), atol=1e-7)


def test_far_away_all_is_finite_and_constant():
    _, _, coordinates = diffusion_map()
    Z = np.array([[1e3, 0, 0], [1e200, 0, 0]])
    X, gradient, J = coordinates.parts(Z, np.zeros((2, coordinates.n_coordinates)), 2)
    np.testing.assert_array_equal(X, np.tile(coordinates.offset, (2, 1)))
    assert not gradient.any()
    assert not J.any()


def test_no_rows_give_no_coordinates():
    _, _, coordinates = diffusion_map()
    assert coordinates.values(np.empty((0, 3))).shape == (0, coordinates.n_coordinates)


def test_a_ridge_too_small_is_explained():
    Y = curve(40)
    with pytest.raises(ValueError, match=r"ridge of 1e-30 .* larger ridge"):
        GaussianCoordinates.by_ridge(Y, Y, 1e3, 1e-30)


def test_shapes_that_do_not_fit_are_named():
    with pytest.raises(ValueError, match=r"got shapes \(3, 2\), \(4, 1\), \(1,\)"):
        GaussianCoordinates(np.zeros((3, 2)), 1.0, np.zeros((4, 1)), np.zeros(1))
    with pytest.raises(ValueError, match="`scale` must be"):
        GaussianCoordinates(np.zeros((3, 2)), 0.0, np.zeros((3, 1)), np.zeros(1))
