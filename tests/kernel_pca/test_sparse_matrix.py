"""Kernel matrices that are sparse, given or made by a kernel of compact support."""

from __future__ import annotations

import pickle
import tracemalloc

import numpy as np
import pytest
from scipy import sparse
from sklearn.neighbors import kneighbors_graph
from sklearn.utils.estimator_checks import parametrize_with_checks

from twofold import KernelPCA, load
from twofold.kernel_pca import Wendland, memory
from twofold.preimages import Learned

RNG = np.random.default_rng(0)
T = RNG.uniform(0, 2 * np.pi, 260)
ROWS = np.column_stack([np.cos(T), np.sin(2 * T), T / 3]) + 0.02 * RNG.normal(size=(260, 3))
TRAIN, NEW = ROWS[:230], ROWS[230:]
QUICK = Learned(1.0, 1e-3)


def graph(A):
    K = kneighbors_graph(A, 12, mode="distance")
    K = K.maximum(K.T)
    K.data = np.exp(-2 * K.data**2)
    return K + sparse.eye(len(A))


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.SkipTestWarning")
@parametrize_with_checks([KernelPCA(kernel="precomputed")])
def test_scikit_learn_check(estimator, check):
    check(estimator)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.SkipTestWarning")
@parametrize_with_checks([KernelPCA(kernel="wendland")])
def test_scikit_learn_check_of_a_variant(estimator, check):
    check(estimator)


def test_the_kernel_is_the_polynomial_and_positive_definite():
    kernel = Wendland(2.0, dimension=3)
    r = np.array([0.0, 0.25, 0.5, 1.0, 1.5])
    expected = np.where(r < 1, (1 - np.minimum(r, 1)) ** 4 * (4 * r + 1), 0)
    line = np.column_stack([2 * r, 0 * r, 0 * r])
    np.testing.assert_allclose(kernel.gram(line[:1], line)[0], expected, atol=1e-15)
    for D in (1, 2, 3, 6):
        Y = np.random.default_rng(D).normal(size=(150, D))
        fitted = Wendland().fitted(Y)
        assert fitted.dimension == D
        K = fitted.gram(Y, Y)
        assert np.linalg.eigvalsh(K).min() > -1e-12
        np.testing.assert_allclose(fitted.sparse_gram(Y, Y).toarray(), K, atol=1e-13)
        assert fitted.count_near(Y) == pytest.approx((K > 0).sum(), rel=0.02)


def test_a_sparse_matrix_gives_what_a_dense_one_does():
    K = graph(TRAIN)
    dense = KernelPCA(3, kernel="precomputed").fit(K.toarray())
    for given in (K, K.tocoo(), sparse.csr_array(K)):
        model = KernelPCA(3, kernel="precomputed").fit(given)
        assert sparse.issparse(model.data_)
        np.testing.assert_allclose(np.abs(model.embedding_), np.abs(dense.embedding_), atol=1e-8)
        np.testing.assert_allclose(model.eigenvalues_, dense.eigenvalues_, rtol=1e-10)
        assert model.objective_ == pytest.approx(dense.objective_)
    values = sparse.csr_matrix(np.exp(-2 * ((NEW[:, None] - TRAIN) ** 2).sum(axis=2)).round(2))
    X = model.transform(values)
    np.testing.assert_allclose(np.abs(X), np.abs(dense.transform(values)), atol=1e-8)
    np.testing.assert_array_equal(model.transform(values.toarray()), X)
    np.testing.assert_array_equal(np.vstack([model.transform(v) for v in values]), X)
    np.testing.assert_allclose(model.transform(K), model.embedding_, atol=1e-9)
    back = dense.inverse_transform(dense.transform(values))
    np.testing.assert_allclose(model.reconstruct(values), back, atol=1e-8)
    np.testing.assert_allclose(model.score_samples(values), dense.score_samples(values), rtol=1e-6)


def test_weights_and_rows_of_weight_zero():
    weights = np.random.default_rng(1).integers(0, 3, len(TRAIN)).astype(float)
    K = graph(TRAIN)
    dense = KernelPCA(kernel="precomputed").fit(K.toarray(), sample_weight=weights)
    model = KernelPCA(kernel="precomputed").fit(K, sample_weight=weights)
    np.testing.assert_allclose(np.abs(model.embedding_), np.abs(dense.embedding_), atol=1e-8)
    assert model.data_.shape == ((weights > 0).sum(), len(TRAIN))


def test_a_kernel_of_compact_support_gives_what_its_dense_matrix_does():
    kernel = Wendland(1.2)
    model = KernelPCA(3, kernel=kernel, preimage=QUICK).fit(TRAIN)
    fitted = model.kernel_
    assert fitted == Wendland(1.2, 3)
    dense = KernelPCA(3, kernel="precomputed").fit(fitted.gram(TRAIN, TRAIN))
    np.testing.assert_allclose(np.abs(model.embedding_), np.abs(dense.embedding_), atol=1e-8)
    X = model.transform(NEW)
    expected = dense.transform(fitted.gram(NEW, TRAIN))
    np.testing.assert_allclose(np.abs(X), np.abs(expected), atol=1e-8)
    np.testing.assert_array_equal(np.vstack([model.transform(y[None]) for y in NEW]), X)
    assert model.inverse_transform(X).shape == NEW.shape
    assert KernelPCA(kernel="wendland", preimage=QUICK).fit(TRAIN).kernel_.dimension == 3


@pytest.mark.parametrize("kernel", ["precomputed", Wendland(1.2)], ids=repr)
def test_saved_and_pickled_models_are_the_same(kernel, tmp_path):
    given = graph(TRAIN) if kernel == "precomputed" else TRAIN
    new = graph(TRAIN)[:7] if kernel == "precomputed" else NEW
    preimage = "auto" if kernel == "precomputed" else QUICK
    model = KernelPCA(kernel=kernel, preimage=preimage).fit(given)
    model.save(tmp_path / "model")
    for again in (load(tmp_path / "model"), pickle.loads(pickle.dumps(model))):
        X = again.transform(new)
        np.testing.assert_array_equal(X, model.transform(new))
        np.testing.assert_array_equal(again.inverse_transform(X), model.inverse_transform(X))
        assert type(again.data_) is type(model.data_)


@pytest.mark.slow
def test_memory_grows_with_the_entries_not_with_the_square():
    m = 4000
    Y = np.random.default_rng(0).uniform(0, 30, (m, 2))
    given = Wendland(0.8, 2).sparse_gram(Y, Y)
    tracemalloc.start()
    for model, data in (
        (KernelPCA(kernel=Wendland(0.8), preimage=QUICK, tol=1e-3), Y),
        (KernelPCA(kernel="precomputed", tol=1e-3), given),
    ):
        tracemalloc.reset_peak()
        model.fit(data)
        model.transform(data[:500])
        # The full matrix has 128 MB; blocks of the latent density, 32 MB, are the largest part.
        assert tracemalloc.get_traced_memory()[1] < 0.75 * 8 * m * m
    tracemalloc.stop()


def test_what_cannot_be_done_is_explained(monkeypatch):
    K = graph(TRAIN)
    with pytest.raises(ValueError, match="must be square"):
        KernelPCA(kernel="precomputed").fit(K[:20])
    lopsided = K.tolil()
    lopsided[0, 5] = 3.0
    with pytest.raises(ValueError, match=r"must be symmetric.*K\.maximum"):
        KernelPCA(kernel="precomputed").fit(lopsided)
    with pytest.raises(ValueError, match="fills up a sparse kernel matrix"):
        KernelPCA(kernel="precomputed", eigen_solver="dense").fit(K)
    with pytest.raises(ValueError, match="none is missing"):
        KernelPCA(kernel="precomputed").fit(K).complete(K[:3])
    with pytest.raises(ValueError, match="NaN"):
        KernelPCA(kernel="precomputed").fit(K).transform(np.full((2, 3), np.nan))
    with pytest.raises(ValueError, match="`radius`"):
        Wendland(-1.0)
    with pytest.raises(ValueError, match="chooses them from Y"):
        Wendland().gram(TRAIN, TRAIN)
    monkeypatch.setattr(memory, "available", lambda: 1_000)
    with pytest.raises(MemoryError, match="Lower the `radius`"):
        KernelPCA(kernel=Wendland(1.2)).fit(TRAIN)
