from __future__ import annotations

import importlib.util
import warnings

import numpy as np
import pytest
from finite_differences import numerical_gradient, relative_error
from oracles import kernel_pca as oracle
from scipy.spatial.distance import pdist, squareform
from sklearn.manifold import Isomap as PeerIsomap
from sklearn.manifold import LocallyLinearEmbedding

from twofold.features.data_kernels import Laplacian
from twofold.kernel_pca.data_dependent import (
    KERNELS,
    LLE,
    MVU,
    Diffusion,
    DiffusionValues,
    Isomap,
    get_kernel,
    rigid_pairs,
)
from twofold.kernel_pca.diffusion_kernel import DiffusionCoordinates
from twofold.kernel_pca.spectral_model import FeatureSpace
from twofold.kernel_pca.spectrum import decompose
from twofold.neighborhoods.nearest import neighbor_scale

RNG = np.random.default_rng(0)
TIME = np.sort(RNG.uniform(0, 4, 90))
HELIX = np.c_[np.cos(TIME), np.sin(TIME), TIME] + 0.01 * RNG.normal(size=(90, 3))
NEW = HELIX[::9] + 0.02 * RNG.normal(size=(10, 3))
WITH_VALUES = [LLE(8), Isomap(6), Diffusion(), Diffusion(alpha=0.0), Diffusion(0.4, 0.5, 3)]


def name_of(kernel):
    return type(kernel).__name__


def axes_of(kernel, Y, q=2):
    return decompose(kernel.matrix(Y), np.ones(len(Y)), q)


def places_of(kernel, Y, Z, q=2):
    found = axes_of(kernel, Y, q)
    values = kernel.extended(Y)(Z)
    of_mean = np.full(len(Y), 1 / len(Y)), found.mean_row, found.mean
    return FeatureSpace(kernel, Y, found.axes, *of_mean, found.latent).place(values)


@pytest.mark.parametrize("kernel", WITH_VALUES, ids=name_of)
def test_matrix_is_symmetric_and_finds_the_curve(kernel):
    kernel = kernel.fitted(HELIX)
    K = kernel.matrix(HELIX)
    np.testing.assert_allclose(K, K.T, atol=1e-12)
    X = axes_of(kernel, HELIX).latent
    assert abs(np.corrcoef(X[:, 0], TIME)[0, 1]) > 0.97


@pytest.mark.parametrize("kernel", WITH_VALUES, ids=name_of)
def test_new_rows_lie_near_the_rows_they_are_near_to(kernel):
    kernel = kernel.fitted(HELIX)
    X = axes_of(kernel, HELIX).latent
    gaps = np.abs(places_of(kernel, HELIX, NEW) - X[::9]).max()
    assert gaps < 0.15 * np.abs(X).max()


@pytest.mark.parametrize("kernel", WITH_VALUES, ids=name_of)
def test_rows_alone_equal_rows_together(kernel):
    new = kernel.fitted(HELIX).extended(HELIX)
    alone = np.concatenate([new(z[None]) for z in NEW])
    np.testing.assert_array_equal(alone, new(NEW))


@pytest.mark.parametrize("kernel", [Isomap(6), *WITH_VALUES[2:]], ids=name_of)
def test_values_at_old_rows_are_the_matrix(kernel):
    kernel = kernel.fitted(HELIX)
    K = kernel.matrix(HELIX)
    np.testing.assert_allclose(kernel.extended(HELIX)(HELIX), K, atol=1e-12)


def test_lle_is_that_of_scikit_learn_but_for_the_scale_of_axes():
    peer = LocallyLinearEmbedding(n_neighbors=8, n_components=2, eigen_solver="dense")
    expected = peer.fit_transform(HELIX)
    X = axes_of(LLE(8), HELIX).latent
    for j in range(2):
        assert abs(np.corrcoef(X[:, j], expected[:, j])[0, 1]) > 1 - 1e-9


def test_lle_combines_coordinates_as_it_combines_rows():
    # A row on the segment between two others, which are its nearest, lies between their places.
    Y = np.c_[np.arange(12.0), np.zeros(12)]
    Y += 1e-3 * np.random.default_rng(1).normal(size=Y.shape)
    X = axes_of(LLE(2), Y, 1).latent
    middle = places_of(LLE(2), Y, (Y[4:5] + Y[5:6]) / 2, 1)
    np.testing.assert_allclose(middle[0], (X[4] + X[5]) / 2, atol=1e-6)


def test_isomap_is_that_of_scikit_learn():
    peer = PeerIsomap(n_neighbors=6, n_components=2).fit(HELIX)
    X = axes_of(Isomap(6), HELIX).latent
    np.testing.assert_allclose(np.abs(X), np.abs(peer.embedding_), atol=1e-10)
    found = places_of(Isomap(6), HELIX, NEW)
    np.testing.assert_allclose(np.abs(found), np.abs(peer.transform(NEW)), atol=1e-10)


@pytest.mark.parametrize("alpha", [0.0, 0.5, 1.0])
def test_diffusion_is_the_formula(alpha):
    expected = oracle.diffusion_kernel(HELIX[:30], 0.4, alpha)
    np.testing.assert_allclose(Diffusion(0.4, alpha).matrix(HELIX[:30]), expected, atol=1e-13)
    third = np.linalg.matrix_power(expected, 3)
    np.testing.assert_allclose(Diffusion(0.4, alpha, 3).matrix(HELIX[:30]), third, atol=1e-13)
    assert np.linalg.eigvalsh(expected)[-1] == pytest.approx(1)


@pytest.mark.parametrize("symmetric", [True, False])
@pytest.mark.parametrize("alpha", [0.0, 0.7, 1.0])
def test_diffusion_coordinates_have_the_derivatives_they_say(symmetric, alpha):
    rng = np.random.default_rng(2)
    values = DiffusionValues.of(HELIX, 0.4, alpha, symmetric=symmetric)
    x = DiffusionCoordinates(values, rng.normal(size=(90, 3)), rng.normal(size=3))
    targets = rng.normal(size=(1, 3))
    for z in NEW[:3]:
        J = x.jacobian(z[None])[0]
        for j in range(3):
            slope = numerical_gradient(lambda y, j=j: x.values(y[None])[0, j], z)
            assert relative_error(J[j], slope) < 1e-6
        distance, gradient = x.distance_and_gradient(z[None], targets)
        assert distance[0] == pytest.approx(((x.values(z[None]) - targets) ** 2).sum())
        slope = numerical_gradient(lambda y: x.distance_and_gradient(y[None], targets)[0][0], z)
        assert relative_error(gradient[0], slope) < 1e-6


@pytest.mark.parametrize("symmetric", [True, False])
def test_diffusion_values_stay_finite_far_away(symmetric):
    values = DiffusionValues.of(HELIX, 0.4, 1.0, symmetric=symmetric).values(np.full((1, 3), 1e4))
    assert np.isfinite(values).all()
    assert values.max() > 0.1


def test_diffusion_takes_the_mean_distance_to_the_tenth_other_for_its_scale():
    assert Diffusion().fitted(HELIX).scale == neighbor_scale(HELIX)
    assert Diffusion(2.0).fitted(HELIX).scale == 2.0


def test_parts_without_a_way_are_told_and_joined():
    m = len(HELIX)
    apart = np.concatenate([HELIX, HELIX + 100, HELIX[:20] + 300])
    message = rf"fall into 3 unconnected parts of {m}, {m}, 20 rows.*raise `n_neighbors`"
    with pytest.warns(UserWarning, match=message):
        K = Isomap(5).matrix(apart)
    # Ways from part to part are as short as can be: over the nearest rows of each.
    gaps = squareform(pdist(apart))
    part = np.repeat([0, 1, 2], [m, m, 20])
    i, j = divmod(gaps[part == 0][:, part == 1].argmin(), m)
    assert -2 * K[i, m + j] == pytest.approx(gaps[i, m + j] ** 2)
    inside = Isomap(5).matrix(HELIX)
    np.testing.assert_allclose(K[:m, :m], inside)
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # what was told at the fit is not told again
        np.testing.assert_allclose(Isomap(5).extended(apart)(apart[:3]), K[:3], atol=1e-8)


def test_parts_hang_together_in_mvu():
    pytest.importorskip("cvxpy")
    t = np.linspace(0, 3, 10)
    apart = np.concatenate([np.c_[t, np.sin(t)], np.c_[t + 20, np.sin(t)]])
    with pytest.warns(UserWarning, match="fall into 2 parts"):
        K = MVU(3).matrix(apart)
    # From one end to the other it is not farther than along all links.
    assert K[0, 0] + K[19, 19] - 2 * K[0, 19] < 1.05 * (17 + 2 * 3.5) ** 2


def test_pairs_that_mvu_keeps():
    neighbors = np.array([[1, 2], [0, 2], [1, 3], [2, 1]])
    first, second = rigid_pairs(neighbors)
    pairs = set(zip(first.tolist(), second.tolist(), strict=True))
    assert pairs == {(0, 1), (0, 2), (1, 2), (1, 3), (2, 3)}


@pytest.mark.skipif(importlib.util.find_spec("cvxpy") is not None, reason="cvxpy is there")
def test_mvu_says_what_to_install():
    with pytest.raises(ImportError, match=r"\[sdp\]"):
        MVU().matrix(HELIX)


def test_mvu_unrolls_a_curve():
    pytest.importorskip("cvxpy")
    t = np.linspace(0, 2 * np.pi, 25)
    Y = np.c_[t, np.sin(t)]
    K = MVU(4).matrix(Y)
    values = np.linalg.eigvalsh(K)
    assert values[-1] > 0.99 * values.sum()
    assert abs(K.sum()) < 1e-4 * np.trace(K)
    assert abs(np.corrcoef(axes_of(MVU(4), Y, 1).latent[:, 0], t)[0, 1]) > 0.99
    assert MVU(4).extended(Y) is None


def test_kernels_by_name():
    assert get_kernel("laplacian_eigenmaps") == Diffusion(alpha=0.0)
    assert get_kernel("laplacian") == Laplacian()
    assert {type(get_kernel(name)) for name in KERNELS} == {LLE, MVU, Diffusion, Isomap}
    kernel = Isomap(3)
    assert get_kernel(kernel) is kernel


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: LLE(0), "`n_neighbors` must be an integer of at least 1; got 0"),
        (lambda: Isomap(2.5), "got 2.5"),
        (lambda: Diffusion(-1.0), "`scale` must be a finite number above 0"),
        (lambda: Diffusion(alpha=2.0), "from 0 to 1; got 2.0"),
        (lambda: Diffusion(time=0), "`time`"),
        (lambda: get_kernel("gauss"), "`kernel` must be one of .*'laplacian_eigenmaps'.*'gauss'"),
        (lambda: get_kernel("precomputed_distance"), r"-0\.5 \* D\*\*2"),
    ],
)
def test_wrong_numbers_are_explained(make, message):
    with pytest.raises(ValueError, match=message):
        make()


def test_wrong_kinds_are_explained():
    with pytest.raises(TypeError, match="`kernel` must be"):
        get_kernel(3)
