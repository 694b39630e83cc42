"""Models of few components of wide or sparse tables."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest
from scipy import sparse

from twofold import PSOM, UKR, UNN, KernelPCA, Mixed, Reduced, Scaled, load
from twofold.checks.rows import MOST_DENSE

RANK = 8


def counts(n=150, D=300, seed=0):
    """Return counts of words after two traits of each text, most of them 0."""
    rng = np.random.default_rng(seed)
    traits = rng.uniform(-1, 1, size=(n, 2))
    rates = np.exp(traits @ rng.normal(size=(2, D)) * 1.2 - 2.5)
    return sparse.csr_matrix(rng.poisson(rates).astype(float))


@pytest.fixture(scope="module")
def table():
    return counts()


@pytest.fixture(scope="module")
def model(table):
    return Reduced(UKR(init="pca", max_iter=20), rank=RANK).fit(table)


def test_rows_go_there_and_back_with_all_their_columns(table, model):
    X = model.transform(table)
    np.testing.assert_array_equal(X, model.embedding_)
    back = model.inverse_transform(X)
    assert isinstance(back, np.ndarray)
    assert back.shape == table.shape
    dense = table.toarray()
    left = ((dense - model.reconstruct(table)) ** 2).sum() / ((dense - dense.mean(0)) ** 2).sum()
    assert left < 0.75  # Poisson noise is most of such a table
    assert model.sample(3, random_state=0).shape == (3, 300)


def test_complete_rows_come_back_as_they_are_and_gaps_are_refused(table, model):
    dense = table[:4].toarray()
    np.testing.assert_array_equal(model.complete(table[:4]), dense)
    np.testing.assert_array_equal(model.complete(dense), dense)
    dense[0, 0] = np.nan
    for ask in (model.complete, model.transform, model.score_samples):
        with pytest.raises(ValueError, match="Reduced needs all entries"):
            ask(dense)
    with pytest.raises(ValueError, match="not of single columns"):
        model.complete(table[:4], return_std=True)


def test_it_is_the_model_of_principal_components(table, model):
    dense = table.toarray()
    Z = (dense - model.center_) @ model.components_.T
    axes = np.linalg.svd(dense - dense.mean(axis=0), full_matrices=False)
    share = (axes[1][:RANK] ** 2).sum() / (axes[1] ** 2).sum()
    np.testing.assert_allclose(model.explained_, share)
    np.testing.assert_allclose(np.abs(np.diag(model.components_ @ axes[2][:RANK].T)), 1)
    alone = UKR(init="pca", max_iter=20).fit(Z)
    np.testing.assert_allclose(
        model.inverse_transform(model.embedding_),
        alone.inverse_transform(model.embedding_) @ model.components_ + model.center_,
        atol=1e-6,
    )


def test_jacobian_is_that_of_the_way_back(model):
    X, h = model.embedding_[:3], 1e-5
    J = model.jacobian(X)
    for k in range(2):
        step = h * np.eye(2)[k]
        ahead, behind = model.inverse_transform(X + step), model.inverse_transform(X - step)
        np.testing.assert_allclose(J[:, :, k], (ahead - behind) / (2 * h), rtol=1e-4, atol=1e-6)


def test_sparse_dense_and_single_rows_have_the_same_bits(table, model):
    new = counts(seed=3)[:6]
    X = model.transform(new)
    np.testing.assert_array_equal(X, model.transform(new.toarray()))
    np.testing.assert_array_equal(X[2:3], model.transform(new[2]))
    back = model.inverse_transform(X)
    np.testing.assert_array_equal(back[2:3], model.inverse_transform(X[2:3]))


def test_large_sparse_tables_are_never_filled_up():
    large = sparse.random(600, 40_000, density=0.002, format="csr", random_state=0)
    assert np.prod(large.shape) > MOST_DENSE
    Reduced(UKR(init="pca", max_iter=0), rank=3).fit(large[:550])  # what is imported and compiled
    tracemalloc.start()
    model = Reduced(UKR(init="pca", max_iter=0), rank=3).fit(large)
    model.transform(large[:10])
    most = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert most < 8 * np.prod(large.shape) / 4  # a quarter of the dense table
    for refusing in (UKR(), UNN(), KernelPCA(), Scaled()):
        with pytest.raises(ValueError, match=r"600 x 40,000 .* Fit twofold\.Reduced\("):
            refusing.fit(large)


@pytest.mark.parametrize(
    "make",
    [
        lambda: UKR(init="pca", max_iter=3),
        lambda: Scaled(UKR(init="pca", max_iter=3)),
        lambda: UNN(2, random_state=0),
        lambda: KernelPCA(2),
        lambda: PSOM(2, grid=(3, 3), random_state=0),
    ],
)
def test_small_sparse_tables_are_made_dense(make):
    few = counts(40, 12)
    model, same = make().fit(few), make().fit(few.toarray())
    np.testing.assert_array_equal(model.embedding_, same.embedding_)
    for form in (few.tocsc(), sparse.csr_array(few)):
        np.testing.assert_array_equal(model.transform(form[:5]), model.embedding_[:5])


def test_files_hold_it(table, model, tmp_path):
    model.save(tmp_path / "words.twofold")
    again = load(tmp_path / "words.twofold")
    assert isinstance(again, Reduced)
    assert again.rank == RANK
    np.testing.assert_array_equal(again.transform(table[:4]), model.transform(table[:4]))
    np.testing.assert_array_equal(
        again.inverse_transform([[0.1, 0.2]]), model.inverse_transform([[0.1, 0.2]])
    )


def test_weights_and_new_rows(table):
    make = Reduced(UKR(init="pca", max_iter=3), rank=RANK)
    weights = np.r_[np.ones(100), np.zeros(50)]
    model, without = make.fit(table, sample_weight=weights), None
    np.testing.assert_array_equal(model.components_, make.fit(table[:100]).components_)
    without = make.fit(table[:100])
    assert without.partial_fit(table[100:110]).embedding_.shape == (110, 2)


def test_noise_is_that_of_the_components(table, model):
    p = model.p_values(table[:5])
    np.testing.assert_array_equal(p, model.model_.p_values(model.model_.data_[model.member_[:5]]))
    assert 0 < model.left_open().share < 1
    with pytest.raises(ValueError, match=r"components, not of single columns: ask `model_`"):
        model.inverse_transform([[0.0, 0.0]], return_std=True)


@pytest.mark.parametrize(
    ("make", "error", "words"),
    [
        (lambda Y: Reduced(rank=0).fit(Y), ValueError, "`rank`"),
        (lambda Y: Reduced(Y).fit(Y), TypeError, "two-way model"),
        (lambda Y: Reduced().fit(np.full((9, 3), np.nan)), ValueError, "needs all entries"),
        (lambda Y: Mixed().fit(Y), TypeError, "named columns"),
    ],
)
def test_what_is_refused(table, make, error, words):
    with pytest.raises(error, match=words):
        make(table)
