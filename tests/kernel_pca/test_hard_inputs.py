"""Kernels too narrow, rows out of all reach, matrices that are no kernels: what is said then."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from scipy import sparse
from scipy.spatial.distance import pdist, squareform
from sklearn.datasets import load_iris
from sklearn.exceptions import ConvergenceWarning

from twofold.features.data_kernels import RBF
from twofold.kernel_pca import DiffusionMap, KernelPCA
from twofold.kernel_pca.compact_kernels import Wendland
from twofold.kernel_pca.data_dependent import Diffusion
from twofold.kernel_pca.extension import KernelExtension
from twofold.kernel_pca.spectrum import decompose, leading_eigenpairs
from twofold.neighborhoods.nearest import nearest_rows
from twofold.preimages import Constrained, Gradient, Learned, Status

IRIS = np.unique(load_iris().data, axis=0)
DISTANCES = squareform(pdist(IRIS))
QUICK = Learned(0.5, 1e-2)


# ---- eigenvalues that coincide ------------------------------------------------------------------


@pytest.mark.parametrize("order", ["C", "F"])
def test_all_eigenpairs_are_found_where_they_coincide(order):
    m = 150
    S = np.array(np.eye(m) - 1 / m, order=order)
    given = S.copy()
    values, U = leading_eigenpairs(S, 10, "dense", 0.0, None)
    assert U.shape == (m, 10)
    np.testing.assert_allclose(values, 1)
    np.testing.assert_allclose(given @ U, U, atol=1e-12)
    np.testing.assert_allclose(U.T @ U, np.eye(10), atol=1e-12)


@pytest.mark.parametrize(
    "kernel", [RBF(1e4), Diffusion(scale=1e-5), Wendland(1e-9), "precomputed"], ids=repr
)
def test_a_kernel_too_narrow_is_told(kernel):
    rows = np.eye(149) if kernel == "precomputed" else IRIS
    with pytest.warns(UserWarning, match="No two rows are similar") as told:
        model = KernelPCA(kernel=kernel).fit(rows)
    np.testing.assert_allclose(model.eigenvalues_, 1)
    assert told[0].filename == __file__


def test_as_many_directions_as_rows_are_there():
    Y = np.random.default_rng(0).normal(size=(120, 3))
    found = decompose(RBF(1e6).gram(Y, Y), np.ones(120), 20)
    np.testing.assert_allclose(found.eigenvalues, 1)


@pytest.mark.parametrize("scale", [1e-6, 0.05])
def test_a_walk_that_stays_in_parts_is_told(scale):
    with pytest.warns(
        UserWarning, match=r"2 of 2 eigenvalue\(s\) are 1.*Raise `bandwidth`"
    ) as told:
        DiffusionMap(bandwidth=scale, preimage=QUICK).fit(IRIS)
    assert told[0].filename == __file__


# ---- pre-images with flags ----------------------------------------------------------------------


def test_preimages_come_with_flags():
    model = KernelPCA(preimage=Gradient(max_iter=4)).fit(IRIS)
    found = model.find_preimages(model.embedding_)
    with pytest.warns(ConvergenceWarning, match="`find_preimages` says which") as told:
        Y = model.inverse_transform(model.embedding_)
    assert told[0].filename == __file__
    np.testing.assert_array_equal(found.Y, Y)
    lost = int((~found.converged).sum())
    assert lost > 0
    assert f"for {lost} of {len(IRIS)} points" in str(told[0].message)
    assert set(found.status[~found.converged]) == {Status.ITERATION_LIMIT}
    assert found.distance.shape == found.n_iter.shape == (len(IRIS),)
    single = KernelPCA(preimage=QUICK).fit(IRIS.astype(np.float32))
    assert single.find_preimages(single.embedding_).Y.dtype == np.float32
    with pytest.raises(ValueError, match="latent points with 2 columns"):
        model.find_preimages(np.zeros((1, 3)))


def test_a_precomputed_kernel_has_no_preimages():
    K = np.exp(-DISTANCES)
    for given in (K, sparse.csr_matrix(K)):
        with pytest.raises(ValueError, match=r"Leave `preimage` at 'auto'; got 'learned'"):
            KernelPCA(kernel="precomputed", preimage="learned").fit(given)
    model = KernelPCA(kernel="precomputed").fit(K)
    with pytest.raises(ValueError, match="no rows to find"):
        model.find_preimages(model.embedding_)


# ---- messages -----------------------------------------------------------------------------------


@pytest.mark.parametrize("form", [np.asarray, sparse.csr_matrix], ids=["dense", "sparse"])
@pytest.mark.parametrize("matrix", [DISTANCES, -np.exp(-DISTANCES)], ids=["distances", "-K"])
def test_distances_are_no_kernel(matrix, form):
    with pytest.raises(ValueError, match=r"no positive eigenvalue\. Are these distances\?"):
        KernelPCA(kernel="precomputed").fit(form(matrix))


def test_unknown_kernel_values_are_told():
    K = np.exp(-DISTANCES)
    K[3, 4] = np.nan
    for given in (K, sparse.csr_matrix(K)):
        with pytest.raises(ValueError, match=r"NaN.*Leave out the rows and columns") as told:
            KernelPCA(kernel="precomputed").fit(given)
        assert "UKR" not in str(told.value)
    gaps = IRIS.copy()
    gaps[3, 1] = np.nan
    with pytest.raises(ValueError, match=r"1 entries are missing \(NaN\)\. Fill them in"):
        KernelExtension().fit(gaps)
    with pytest.raises(ValueError, match="Use UKR"):
        KernelPCA().fit(gaps)


def test_a_walk_too_wide_is_told_by_its_own_parameter():
    with pytest.raises(ValueError, match=r"Lower `bandwidth`, which is 1e\+12") as told:
        DiffusionMap(bandwidth=1e12).fit(IRIS)
    assert "kernel (the linear" not in str(told.value)
    with pytest.raises(ValueError, match="got the kernel of a diffusion map"):
        DiffusionMap(preimage="gradient").fit(IRIS)


# ---- out of all reach ---------------------------------------------------------------------------


@pytest.mark.parametrize("kernel", ["diffusion", "laplacian_eigenmaps", "lle", "isomap", "walk"])
def test_rows_out_of_reach_lie_where_rows_far_away_do(kernel):
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="With n_neighbors")
        if kernel == "walk":
            models = [DiffusionMap(preimage=QUICK), DiffusionMap(n_neighbors=8, preimage=QUICK)]
        else:
            models = [KernelPCA(kernel=kernel, preimage=QUICK)]
        for model in models:
            model.fit(IRIS)
    for model in models:
        far, farther = (model.transform(IRIS[:3] + gap) for gap in (1e100, 1e200))
        np.testing.assert_allclose(farther, far)
        assert np.abs(far).max() < 10 * np.abs(model.embedding_).max()
        assert np.abs(far).max() > 0  # not the zero that NaN became


def test_nearest_rows_of_rows_out_of_reach():
    C = np.array([[0.0, 0.0], [1.0, 0.0], [0.0, 1.0]])
    found = nearest_rows(np.array([[1e300, 0.0], [0.0, 1e160]]), C, 3)
    assert (np.sort(found, axis=1) == np.arange(3)).all()


def test_kernel_values_that_overflow_are_told():
    model = KernelPCA(kernel="poly", preimage=QUICK).fit(IRIS)
    with pytest.raises(ValueError, match="2 of 2 rows are so far from the training rows"):
        model.transform(IRIS[:2] + 1e130)


@pytest.mark.parametrize("preimage", ["direct", "gradient", Constrained(max_iter=5)], ids=repr)
def test_points_out_of_reach_come_back_without_overflow(preimage):
    model = KernelPCA(preimage=preimage).fit(IRIS[::3])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        found = model.inverse_transform([[1e200, 1e200], [1e40, 1e40]])
    assert np.isfinite(found).all()
    np.testing.assert_allclose(found[0], found[1])


@pytest.mark.parametrize("model", [KernelPCA(), DiffusionMap(), KernelExtension()], ids=repr)
def test_sizes_of_rows(model):
    with pytest.raises(ValueError, match=r"entries beyond 1e\+140.*scale the data"):
        model.fit(IRIS * 1e160)
    usual = model.fit(IRIS[::2]).embedding_
    for size in (1e-150, 1e130):
        np.testing.assert_allclose(model.fit(IRIS[::2] * size).embedding_, usual, atol=1e-6)


def test_an_extension_keeps_the_number_type_and_counts():
    model = KernelExtension().fit(IRIS.astype(np.float32))
    assert model.embedding_.dtype == np.float32
    with pytest.raises(ValueError, match="`n_components` must be an integer of at least 1"):
        KernelExtension(n_components=True).fit(IRIS)
