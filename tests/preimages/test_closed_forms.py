from __future__ import annotations

import dataclasses
import warnings

import numpy as np
import pytest
from scipy.spatial.distance import pdist, squareform
from sklearn.datasets import load_digits, load_iris, load_wine
from sklearn.preprocessing import StandardScaler
from tests.oracles import kernel_pca as oracle
from tests.preimages import cases

from twofold.features import L1, RBF, Custom, Linear, Polynomial
from twofold.kernel_pca import DiffusionMap, KernelPCA
from twofold.preimages import (
    Direct,
    Exact,
    FeaturePoints,
    FixedPoint,
    Learned,
    LinearCombination,
    Localise,
    PolynomialClosedForm,
)
from twofold.preimages.coordinates import GaussianCoordinates
from twofold.preimages.press import CoordinatePress, choose


def at_rows(kernel, Y, number=5):
    return FeaturePoints(kernel, Y, np.eye(len(Y))[:number])


def test_direct_formulas():
    Y, _ = cases.sinusoid(40)
    target = cases.gaussian_pca(Y, 0.7, q=4)
    K = oracle.gauss(Y, Y, 0.7)
    by_products, by_distances = Direct().find(target), Direct("distances").find(target)
    for i in range(40):
        np.testing.assert_allclose(
            by_products.Y[i], oracle.direct_by_products(Y, target.alpha[i], K), atol=1e-9
        )
        np.testing.assert_allclose(
            by_distances.Y[i], oracle.direct_by_distances(Y, target.alpha[i], K), atol=1e-9
        )
    assert by_products.converged.all()


def test_distances_to_a_point_of_length_one_are_products():
    Y = cases.rows()
    target = cases.points(RBF(0.4), Y)
    lengths = np.sqrt(target.squared_lengths())[:, None]
    scaled = target.inner_products / lengths
    W = target.alpha / lengths * (0.5 * (1 - 1) + scaled)
    expected = W @ Y / W.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(Direct().find(target).Y, expected, atol=1e-12)


@pytest.mark.slow
def test_searches_are_never_worse_than_closed_forms_in_the_same_basin():
    Y, _ = cases.sinusoid(150)
    for q in (1, 10):
        target = cases.gaussian_pca(Y, 0.54, q=q)
        for method in (Direct(), Direct("distances"), Localise(), LinearCombination()):
            closed = method.find(target)
            after = FixedPoint(restart=False).find(dataclasses.replace(target, start=closed.Y))
            assert (after.distance <= closed.distance + 1e-12).all()


def test_more_components_bring_rows_nearer():
    Y, _ = cases.sinusoid(150)
    few, many = (FixedPoint().find(cases.gaussian_pca(Y, 0.54, q=q)) for q in (1, 10))
    assert np.median(many.distance) < 0.6 * np.median(few.distance)


def test_localised_as_by_singular_values():
    Y, _ = cases.sinusoid(60)
    target = cases.gaussian_pca(Y, 0.7, q=6)
    K = oracle.gauss(Y, Y, 0.7)
    found = Localise(10).find(target)
    for i in range(60):
        expected = oracle.localised(Y, target.alpha[i], K, 0.7, 10)
        np.testing.assert_allclose(found.Y[i], expected, atol=1e-6)


@pytest.mark.parametrize(
    "kernel", [RBF(0.3), Linear(), Polynomial(3, 0.5, 1.0), Polynomial(2, 0.1, 5.0)], ids=repr
)
def test_localised_exactly_where_distances_are_exact(kernel):
    Y = cases.rows(30)
    np.testing.assert_allclose(Localise(8).find(at_rows(kernel, Y)).Y, Y[:5], atol=1e-7)


def test_too_few_neighbours_go_the_shortest_way():
    Y = cases.rows(30, D=20)
    found = Localise(4).find(cases.points(RBF(0.02), Y))
    assert np.isfinite(found.Y).all()
    assert np.abs(found.Y).max() < 10 * np.abs(Y).max()


@pytest.mark.parametrize("degree", [1, 2, 3, 4])
def test_polynomial_closed_form_is_exact_at_rows(degree):
    Y = np.abs(cases.rows(20))  # even degrees lose the sign of inner products
    found = PolynomialClosedForm().find(at_rows(Polynomial(degree, 0.7, 0.5), Y))
    np.testing.assert_allclose(found.Y, Y[:5], atol=1e-10)
    np.testing.assert_allclose(found.distance, 0, atol=1e-8)


def test_polynomial_closed_form_of_odd_degree_takes_sizes():
    Y = cases.rows(20)
    target = cases.points(Polynomial(3, 1.0, 0.0), Y, negative=True)
    lengths = target.squared_lengths() ** (2 / 3)
    expected = (target.alpha * np.abs(target.inner_products) ** (2 / 3)) @ Y / lengths[:, None]
    np.testing.assert_allclose(PolynomialClosedForm().find(target).Y, expected)


def test_linear_combination_solves_the_constrained_least_squares():
    Y, _ = cases.sinusoid(50)
    target = cases.diffusion(Y, 0.8, 1.0, q=4)
    found = LinearCombination(6).find(target)
    distances, products = target.distances_to_rows(), target.inner_products
    for i in range(50):
        near = np.argsort(distances[i])[:6]
        weights = oracle.affine_weights(target.gram[np.ix_(near, near)], products[i, near])
        np.testing.assert_allclose(found.Y[i], weights @ Y[near], atol=1e-6)


@pytest.mark.parametrize(
    "kernel", [RBF(0.3), L1(), Custom(lambda A, B: (A @ B.T + 1) ** 2)], ids=["rbf", "l1", "own"]
)
def test_linear_combination_takes_any_kernel_and_returns_rows(kernel):
    Y = cases.rows(30)
    np.testing.assert_allclose(LinearCombination().find(at_rows(kernel, Y)).Y, Y[:5], atol=1e-4)


def test_linear_combination_of_equal_rows():
    Y = np.repeat(cases.rows(4), 10, axis=0)
    target = cases.points(RBF(0.3), Y)
    assert np.isfinite(LinearCombination().find(target).Y).all()


@pytest.mark.parametrize("kernel", ["isomap", "lle", "diffusion"])
def test_linear_combination_stays_near_the_data(kernel):
    # Geodesic kernels have negative eigenvalues, which led up to 1e14 away.
    for Y in (load_digits().data[:250] / 16, load_iris().data):
        model = KernelPCA(kernel=kernel, preimage="linear_combination")
        with warnings.catch_warnings():  # about parts of the data that were joined
            warnings.simplefilter("ignore", UserWarning)
            model.fit(Y)
        X = model.latent_
        between = 0.5 * (X[:-1] + X[1:])
        between = between[model.in_domain(between)]
        for points in (X, between):
            found = model.inverse_transform(points)
            beyond = np.maximum(found - Y.max(axis=0), Y.min(axis=0) - found)
            assert beyond.max() < 2 * np.ptp(Y)
        assert np.sqrt(((model.inverse_transform(X) - model.data_) ** 2).mean()) < Y.std()


def test_exact_minima():
    Y = cases.rows()
    target = cases.points(Linear(), Y)
    np.testing.assert_allclose(Exact().find(target).Y, target.alpha @ Y)
    target = cases.points(L1(), Y)
    found = Exact().find(target)
    rng = np.random.default_rng(2)
    for size in (1e-3, 0.1, 1.0):
        around = found.Y + size * rng.normal(size=found.Y.shape)
        assert (found.distance <= target.distances_to(around) + 1e-12).all()


def test_learned_map_is_ridge_regression():
    Y, _ = cases.sinusoid(40)
    target = cases.diffusion(Y, 0.8, 1.0, q=2)
    X = target.row_coordinates[:, :2]
    expected = oracle.ridge_regression(X, Y, 0.3, 0.1)(target.coordinates)
    np.testing.assert_allclose(Learned(0.3, 0.1).find(target).Y, expected, atol=1e-8)


@pytest.mark.slow
def test_learned_map_denoises():
    Y, clean = cases.sinusoid(200)
    target = cases.diffusion(Y, 0.67, 0.85, q=1)
    method = Learned().fitted(Y, target.row_coordinates[:, :1])
    assert method.scale > 0
    assert method.ridge > 0
    found = method.find(target)

    def error(A):
        return np.sqrt(((A - clean) ** 2).sum(axis=1).mean())

    assert error(found.Y) < 0.85 * error(Y)  # .44 against .55
    assert method.fitted(Y, target.row_coordinates) is method


@pytest.mark.parametrize("model", [DiffusionMap(), KernelPCA()], ids=["diffusion", "rbf"])
def test_learned_map_stays_near_the_data_inside_its_domain(model):
    # By the leave-one-out error alone 94 % and 39 % of the samples leave by half a range.
    Y = load_iris().data
    samples = model.fit(Y).sample(500, random_state=0)
    beyond = np.maximum(samples - Y.max(axis=0), Y.min(axis=0) - samples) / np.ptp(Y, axis=0)
    assert (beyond > 0.5).any(axis=1).mean() <= 0.01
    assert beyond.max() < 1
    # And the way back is hardly worse: .225 and .212 by the leave-one-out error alone.
    assert np.sqrt(((model.inverse_transform(model.embedding_) - Y) ** 2).mean()) < 0.25


def test_learned_map_takes_the_largest_ridge_of_nearly_the_best_error():
    Y = StandardScaler().fit_transform(load_wine().data)
    X = KernelPCA(5, preimage=Learned(1.0, 1.0)).fit(Y).latent_
    found = Learned().fitted(Y, X)
    error = CoordinatePress(squareform(pdist(X, "sqeuclidean")), Y)
    best = choose(error, unit=0.3)
    assert found.ridge > 2 * best.ridge
    assert error.value_and_gradient(found.scale, found.ridge)[0] < 1.02 * best.value
    assert Learned(ridge=best.ridge).fitted(Y, X).ridge == best.ridge


def test_learned_map_is_solved_once_for_the_same_rows(monkeypatch):
    Y, _ = cases.sinusoid(40)
    target = cases.diffusion(Y, 0.8, 1.0, q=2)
    method, solved = Learned(0.3, 0.1), []
    by_ridge = GaussianCoordinates.by_ridge
    monkeypatch.setattr(
        GaussianCoordinates,
        "by_ridge",
        lambda *arguments: solved.append(1) or by_ridge(*arguments),
    )
    first = method.find(target)
    np.testing.assert_array_equal(method.find(target).Y, first.Y)
    assert len(solved) == 1
    moved = method.find(dataclasses.replace(target, rows=Y + 1))
    np.testing.assert_allclose(moved.Y, first.Y + 1)
    fewer = dataclasses.replace(target, coordinates=target.coordinates[:, :1])
    assert not np.allclose(method.find(fewer).Y, first.Y)
    assert len(solved) == 3


def test_learned_map_says_what_it_needs():
    with pytest.raises(ValueError, match="pass `coordinates=`"):
        Learned().find(cases.points(RBF(0.4)))


def test_numbers_are_checked():
    with pytest.raises(ValueError, match="`n_neighbors` must be an integer of at least 2; got 1"):
        Localise(1)
    with pytest.raises(ValueError, match=r"'products', 'distances'.*got 'both'"):
        Direct("both")
    with pytest.raises(ValueError, match="need a Gaussian"):
        Direct().find(cases.points(Linear()))
    with pytest.raises(ValueError, match="`ridge` must be a finite number above 0; got -1"):
        Learned(ridge=-1)
