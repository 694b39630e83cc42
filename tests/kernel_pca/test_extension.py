"""Data-dependent kernels and embeddings extended to new rows."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from oracles import kernel_pca as oracle
from sklearn.base import clone
from sklearn.manifold import SpectralEmbedding
from sklearn.preprocessing import FunctionTransformer
from sklearn.utils.estimator_checks import parametrize_with_checks

from twofold import load
from twofold.kernel_pca import memory
from twofold.kernel_pca.data_dependent import Diffusion
from twofold.kernel_pca.extension import KernelExtension
from twofold.neighborhoods.nearest import neighbor_scale


def sinusoid(m: int, noise: float = 0.1, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    t = np.sort(rng.uniform(0, 2 * np.pi, m))
    return np.column_stack([t, np.sin(t)]) + noise * rng.normal(size=(m, 2)), t


Y, T = sinusoid(90)
Z, TZ = sinusoid(40, seed=1)


def diffusion(rows: np.ndarray) -> np.ndarray:
    return oracle.diffusion_kernel(rows, 0.5)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.SkipTestWarning")
@parametrize_with_checks([KernelExtension()])
def test_scikit_learn_check(estimator, check):
    check(estimator)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.SkipTestWarning")
@parametrize_with_checks([KernelExtension("lle", choose_by=None)])
def test_scikit_learn_check_of_a_variant(estimator, check):
    check(estimator)


def test_is_kernel_pca_of_the_extended_kernel():
    model = KernelExtension(diffusion, bandwidth=1.1, ridge=0.02, choose_by=None).fit(Y)
    new, old = oracle.extended_projection(Y, diffusion(Y), Z, 1.1, 0.02)
    signs = np.sign((model.embedding_ * old[:, :2]).sum(axis=0))
    np.testing.assert_allclose(model.embedding_, old[:, :2] * signs, atol=1e-10)
    np.testing.assert_allclose(model.transform(Z), new[:, :2] * signs, atol=1e-9)


def test_extended_kernel_values():
    model = KernelExtension(diffusion, bandwidth=1.1, ridge=0.02).fit(Y)
    expected = oracle.ridge_regression(Y, diffusion(Y), 1.1, 0.02)(Z)
    np.testing.assert_allclose(model.kernel_values(Z), expected, atol=1e-10)


def test_named_kernel_is_the_object_with_its_numbers_chosen():
    named = KernelExtension("diffusion").fit(Y)
    given = KernelExtension(Diffusion(scale=neighbor_scale(Y))).fit(Y)
    np.testing.assert_allclose(named.transform(Z), given.transform(Z), atol=1e-12)


@pytest.mark.parametrize("choose_by", ["coordinates", "press", "rk_press", None])
def test_new_rows_find_their_place_on_the_curve(choose_by: str | None):
    model = KernelExtension("diffusion", 1, choose_by=choose_by).fit(Y)
    expected = np.interp(TZ, T, model.embedding_[:, 0])
    found = model.transform(Z)[:, 0]
    assert abs(np.corrcoef(found, expected)[0, 1]) > 0.98


def test_the_wanted_coordinates_ask_for_a_wider_scale_than_the_kernel():
    # Section 4.6: two to three times the kernel's scale against 1.25 times it.
    Y, _ = sinusoid(150, noise=0.4)
    kernel = Diffusion(scale=neighbor_scale(Y, 20))
    wide = KernelExtension(kernel, 1).fit(Y).bandwidth_
    narrow = KernelExtension(kernel, 1, choose_by="press").fit(Y).bandwidth_
    assert 1.5 < wide / kernel.scale < 4
    assert 0.7 < narrow / kernel.scale < 1.7


def test_fixed_numbers_where_nothing_chooses():
    model = KernelExtension(choose_by=None, ridge="auto").fit(Y)
    assert model.bandwidth_ == neighbor_scale(Y, 30)
    assert model.ridge_ == 0.01
    assert np.isnan(model.error_)


def test_a_free_ridge_does_not_raise_the_error():
    fixed = KernelExtension().fit(Y)
    free = KernelExtension(ridge="auto").fit(Y)
    assert fixed.ridge_ == 0.01
    assert free.error_ <= fixed.error_


def test_an_embedding_is_extended_as_it_is():
    source = SpectralEmbedding(n_components=3, n_neighbors=10, random_state=0)
    model = KernelExtension(source, bandwidth=0.2, ridge=1e-6).fit(Y)
    np.testing.assert_array_equal(model.embedding_, clone(source).fit_transform(Y))
    assert model.transform(Z).shape == (40, 3)
    assert list(model.get_feature_names_out()) == [f"kernelextension{j}" for j in range(3)]
    gap = np.abs(model.transform(Y) - model.embedding_).max()
    assert gap < 0.05 * np.abs(model.embedding_).max()
    with pytest.raises(ValueError, match="has the embedding"):
        model.kernel_values(Z)
    with pytest.raises(ValueError, match="'press' needs a kernel"):
        KernelExtension(source, choose_by="press").fit(Y)


def test_an_embedding_without_extent_is_explained():
    everything_at_zero = FunctionTransformer(lambda Y: np.zeros((len(Y), 2)))
    with pytest.raises(ValueError, match="all rows in one place"):
        KernelExtension(everything_at_zero).fit(Y)


def test_another_fit_forgets_the_kernel():
    model = KernelExtension().fit(Y)
    model.set_params(source=SpectralEmbedding(n_neighbors=10, random_state=0)).fit(Y)
    assert not hasattr(model, "kernel_matrix_")
    assert not hasattr(model, "eigenvalues_")


def test_rows_alone_equal_rows_together_and_float32_stays():
    model = KernelExtension().fit(Y)
    alone = np.concatenate([model.transform(row[None]) for row in Z])
    np.testing.assert_array_equal(alone, model.transform(Z))
    assert model.transform(Z.astype(np.float32)).dtype == np.float32
    assert KernelExtension().fit(Y.astype(np.float32)).transform(Z).dtype == np.float64


def test_too_many_rows_are_refused_before_the_memory_is_gone(monkeypatch):
    monkeypatch.setattr(memory, "available", lambda: 1000)
    with pytest.raises(MemoryError, match="Fit a part of the rows"):
        KernelExtension().fit(Y)


def test_pickle():
    model = KernelExtension("diffusion").fit(Y)
    again = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(again.transform(Z), model.transform(Z))


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"source": "tsne"}, r"`source` must be one of \['diffusion', .* got 'tsne'"),
        ({"source": lambda Y: Y}, r"must be \(90, 90\) finite numbers; got shape \(90, 2\)"),
        ({"source": lambda Y: np.full((90, 90), np.nan)}, "with NaN or infinity"),
        ({"source": lambda Y: np.tril(diffusion(Y))}, "symmetric"),
        ({"n_components": 0}, "`n_components` must be an integer of at least 1; got 0"),
        (
            {"bandwidth": -1.0},
            "`bandwidth` must be 'auto' or a number from 1e-150 to .*; got -1.0",
        ),
        ({"ridge": "small"}, "`ridge` must be 'auto' or a number from 1e-150 to"),
        ({"choose_by": "gcv"}, "`choose_by` must be one of .* got 'gcv'"),
    ],
)
def test_bad_parameters_are_explained(parameters: dict, message: str):
    with pytest.raises(ValueError, match=message):
        KernelExtension(**parameters).fit(Y)


@pytest.mark.parametrize(
    "source",
    ["lle", Diffusion(0.5), diffusion, SpectralEmbedding(2)],
    ids=["name", "kernel", "function", "estimator"],
)
def test_saved_extensions_carry_rows_over(source, tmp_path):
    extension = KernelExtension(source, choose_by=None).fit(Y)
    extension.save(tmp_path / "extension")
    again = load(tmp_path / "extension")
    np.testing.assert_array_equal(again.transform(Z), extension.transform(Z))
    np.testing.assert_array_equal(again.embedding_, extension.embedding_)
    assert list(again.get_feature_names_out()) == list(extension.get_feature_names_out())
    if callable(source) or isinstance(source, SpectralEmbedding):
        with pytest.raises(ValueError, match="`source` must be one of"):
            again.fit(Y)
    else:
        np.testing.assert_array_equal(again.kernel_values(Z), extension.kernel_values(Z))
        np.testing.assert_array_equal(again.fit(Y).transform(Z), extension.transform(Z))
