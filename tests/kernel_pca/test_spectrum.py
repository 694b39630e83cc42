from __future__ import annotations

import numpy as np
import pytest
from oracles import kernel_pca as oracle
from sklearn.decomposition import KernelPCA

from twofold.features.data_kernels import RBF, Linear
from twofold.kernel_pca.spectral_model import FeatureSpace
from twofold.kernel_pca.spectrum import (
    SOLVERS,
    choose_solver,
    decompose,
    leading_eigenpairs,
    symmetric,
)


def rows(seed, m=60, D=4):
    return np.random.default_rng(seed).normal(size=(m, D))


def space_of(kernel, Y, weights, q):
    found = decompose(kernel.gram(Y, Y), weights, q)
    base = weights / weights.sum()
    return found, FeatureSpace(
        kernel, Y, found.axes, base, found.mean_row, found.mean, found.latent
    )


@pytest.mark.parametrize("solver", SOLVERS)
def test_every_solver_finds_the_axes_of_scikit_learn(solver):
    Y = rows(0, 230)
    peer = KernelPCA(3, kernel="rbf", gamma=0.1, eigen_solver="dense").fit(Y)
    found = decompose(RBF(0.1).gram(Y, Y), np.ones(len(Y)), 3, solver)
    np.testing.assert_allclose(found.eigenvalues, peer.eigenvalues_, rtol=1e-9)
    np.testing.assert_allclose(found.latent, peer.transform(Y), atol=1e-9)


def test_weights_are_copies():
    Y, Z = rows(1, 25), rows(2, 7)
    counts = np.random.default_rng(3).integers(1, 4, len(Y))
    kernel = RBF(0.2)
    found = decompose(kernel.gram(Y, Y), counts.astype(float), 3)
    of_mean = counts / counts.sum(), found.mean_row, found.mean
    space = FeatureSpace(kernel, Y, found.axes, *of_mean, found.latent)
    X = space.place(kernel.gram(Z, Y))
    expected = oracle.kernel_pca_of_copies(kernel.gram, Y, counts, Z, 3)
    np.testing.assert_allclose(np.abs(X), np.abs(expected), atol=1e-12)
    tripled = decompose(kernel.gram(Y, Y), 3.0 * counts, 3)
    np.testing.assert_allclose(tripled.latent, found.latent, atol=1e-12)
    np.testing.assert_allclose(tripled.eigenvalues, 3 * found.eigenvalues)


def test_coordinates_are_centred_uncorrelated_and_as_wide_as_their_eigenvalues():
    Y = rows(4)
    weights = np.random.default_rng(5).uniform(0.5, 2, len(Y))
    found = decompose(RBF(0.2).gram(Y, Y), weights, 4)
    np.testing.assert_allclose(weights @ found.latent, 0, atol=1e-10)
    spread = found.latent.T @ (weights[:, None] * found.latent)
    np.testing.assert_allclose(spread, np.diag(found.eigenvalues), atol=1e-10)
    np.testing.assert_allclose(found.axes.sum(axis=0), 0, atol=1e-12)


def test_training_rows_are_placed_where_they_lie():
    Y = rows(6)
    found, space = space_of(RBF(0.2), Y, np.ones(len(Y)), 4)
    np.testing.assert_allclose(space.place(RBF(0.2).gram(Y, Y)), found.latent, atol=1e-12)


def test_expansion_sums_to_one_and_knows_its_kernel_values():
    Y = rows(7)
    weights = np.random.default_rng(8).uniform(0.5, 2, len(Y))
    K = RBF(0.2).gram(Y, Y)
    _, space = space_of(RBF(0.2), Y, weights, 4)
    X = rows(9, 5, 4)
    alpha, products = space.expand(X)
    np.testing.assert_allclose(alpha.sum(axis=1), 1, atol=1e-12)
    np.testing.assert_allclose(products, alpha @ K, atol=1e-12)
    np.testing.assert_allclose(space.place(products), X, atol=1e-10)  # ψ has the coordinates x


def test_distance_to_the_principal_subspace_is_what_the_coordinates_lack():
    # ||φ(y) - P φ(y)||² = k̄(y, y) - ||x||², here from α and kernel values alone.
    Y = rows(10)
    K = RBF(0.2).gram(Y, Y)
    found, space = space_of(RBF(0.2), Y, np.ones(len(Y)), 3)
    alpha, products = space.expand(found.latent)
    direct = 1 - 2 * np.einsum("nm,nm->n", alpha, K) + np.einsum("nm,nm->n", alpha, products)
    own = np.diag(oracle.centred(K))
    np.testing.assert_allclose(direct, own - (found.latent**2).sum(axis=1), atol=1e-12)
    left = found.total - found.eigenvalues.sum()
    assert direct.sum() == pytest.approx(left, rel=1e-10)


def test_rows_alone_equal_rows_together():
    Y, Z = rows(11), rows(12, 9)
    _, space = space_of(RBF(0.2), Y, np.ones(len(Y)), 3)
    K = RBF(0.2).gram(Z, Y)
    alone = np.concatenate([space.place(k[None]) for k in K])
    np.testing.assert_array_equal(alone, space.place(K))


def test_signs_are_fixed():
    Y = rows(13)
    found = decompose(RBF(0.2).gram(Y, Y), np.ones(len(Y)), 4)
    largest = found.latent[np.abs(found.latent).argmax(axis=0), np.arange(4)]
    assert (largest > 0).all()


def test_too_many_components_are_explained():
    Y = rows(14, 30, 3)
    with pytest.raises(ValueError, match=r"`n_components` = 4 is more than the 3 direction"):
        decompose(Linear().gram(Y, Y), np.ones(30), 4)


def test_which_solver_auto_means():
    assert choose_solver("auto", 201, 9) == "arpack"
    assert choose_solver("auto", 200, 9) == "dense"
    assert choose_solver("auto", 201, 10) == "dense"
    assert choose_solver("arpack", 5, 5) == "dense"


def test_random_range_finder_knows_negative_eigenvalues():
    values, _ = leading_eigenpairs(np.diag([5.0, -4.0, 3.0, 1.0]), 3, "randomized", 0.0, None)
    np.testing.assert_allclose(values, [5, 3, -4], atol=1e-9)


def test_asymmetry_is_explained():
    K = np.eye(4)
    K[0, 1] = 0.5
    with pytest.raises(ValueError, match=r"differ by up to 0\.5"):
        symmetric(K, 1e-8)
    with pytest.raises(ValueError, match="finite"):
        symmetric(np.full((2, 2), np.inf), 1e-8)
