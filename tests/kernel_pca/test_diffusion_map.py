from __future__ import annotations

import pickle

import numpy as np
import pytest
from oracles import kernel_pca as oracle

from twofold.datasets import make_random_manifold
from twofold.kernel_pca import DiffusionMap
from twofold.kernel_pca.diffusion_map import WalkKernel
from twofold.model_files import read_model_file
from twofold.neighborhoods.nearest import neighbor_scale
from twofold.preimages import Learned

DATA = make_random_manifold(130, 2, 5, noise=0.02, random_state=0)
TRAIN, NEW = DATA.Y[:100], DATA.Y[100:]
QUICK = Learned(1.0, 1e-3)
ALL_AXES = 20


def squared_distances(X):
    return ((X[:, None] - X[None]) ** 2).sum(axis=2)


@pytest.mark.parametrize(("alpha", "time"), [(0.0, 2), (0.5, 2), (1.0, 3)])
def test_distances_are_those_between_walks(alpha, time):
    Y = TRAIN[:ALL_AXES]
    model = DiffusionMap(ALL_AXES - 1, alpha=alpha, time=time, bandwidth=1.0, preimage=QUICK).fit(Y)
    P = oracle.step_chances(Y, 1.0, alpha)
    expected = oracle.diffusion_distances(P, time)
    np.testing.assert_allclose(squared_distances(model.embedding_), expected, atol=1e-8)
    values = np.sort(np.linalg.eigvals(P).real)[::-1]
    np.testing.assert_allclose(model.eigenvalues_, values[1:], atol=1e-10)


def test_coordinates_have_the_length_of_their_eigenvalues():
    model = DiffusionMap(3, time=2, preimage=QUICK).fit(TRAIN)
    assert model.stationary_.sum() == pytest.approx(1)
    np.testing.assert_allclose(model.stationary_ @ model.latent_, 0, atol=1e-10)
    squares = model.latent_.T @ (model.stationary_[:, None] * model.latent_)
    np.testing.assert_allclose(squares, np.diag(model.eigenvalues_**4), atol=1e-10)


def test_it_is_kernel_pca_of_the_kernel_of_walks():
    model = DiffusionMap(2, time=2, preimage=QUICK).fit(TRAIN)
    kernel = WalkKernel(model.bandwidth_, 1.0, 2, None, model.weights_)
    K = kernel.matrix(model.data_)
    X = np.random.default_rng(0).normal(size=(4, 2))
    alpha, products = model._space.expand(X)
    np.testing.assert_allclose(products, alpha @ K, atol=1e-8)
    np.testing.assert_allclose(K @ model.stationary_, 1, atol=1e-10)
    np.testing.assert_allclose(model._space.place(K), model.latent_, atol=1e-9)


@pytest.mark.parametrize("n_neighbors", [None, 12])
def test_a_step_from_a_training_row_ends_where_it_lies(n_neighbors):
    model = DiffusionMap(n_neighbors=n_neighbors, preimage=QUICK).fit(TRAIN)
    np.testing.assert_allclose(model._place_complete(TRAIN), model.embedding_, atol=1e-10)


@pytest.mark.parametrize("n_neighbors", [None, 12])
@pytest.mark.parametrize("extension", ["analytic", "nystrom", "ridge"])
def test_there_and_back(n_neighbors, extension):
    model = DiffusionMap(n_neighbors=n_neighbors, extension=extension, preimage="learned")
    model.fit(TRAIN)
    X = model.transform(NEW)
    np.testing.assert_array_equal(np.concatenate([model.transform(y[None]) for y in NEW]), X)
    np.testing.assert_array_equal(model.transform(TRAIN), model.embedding_)
    error = ((model.inverse_transform(X) - NEW) ** 2).sum()
    assert error < 0.1 * ((NEW - TRAIN.mean(axis=0)) ** 2).sum()


def test_links_to_every_row_are_no_links_at_all():
    dense = DiffusionMap(preimage=QUICK).fit(TRAIN)
    sparse = DiffusionMap(n_neighbors=99, preimage=QUICK).fit(TRAIN)
    np.testing.assert_allclose(sparse.embedding_, dense.embedding_, atol=1e-9)
    np.testing.assert_allclose(sparse.transform(NEW), dense.transform(NEW), atol=1e-9)


def test_weights_are_copies():
    twice = np.concatenate([TRAIN, TRAIN[:30]])
    weights = np.ones(100)
    weights[:30] = 2
    model = DiffusionMap(bandwidth=0.8, preimage=QUICK).fit(TRAIN, sample_weight=weights)
    merged = DiffusionMap(bandwidth=0.8, preimage=QUICK).fit(twice)
    np.testing.assert_array_equal(merged.embedding_[:100], model.embedding_)
    P = oracle.step_chances(twice, 0.8, 1.0)
    values = np.sort(np.linalg.eigvals(P).real)[::-1]
    np.testing.assert_allclose(model.eigenvalues_, values[1:3], atol=1e-10)


def test_scale_and_what_is_left():
    model = DiffusionMap(preimage=QUICK).fit(TRAIN)
    assert model.bandwidth_ == pytest.approx(neighbor_scale(TRAIN))
    P = oracle.step_chances(TRAIN, model.bandwidth_, 1.0)
    left = (np.linalg.eigvals(P).real ** 2).sum() - 1 - (model.eigenvalues_**2).sum()
    assert model.objective_ == pytest.approx(left)


def test_a_map_of_two_clusters_keeps_them_apart():
    rng = np.random.default_rng(3)
    Y = np.concatenate([rng.normal(size=(40, 3)), rng.normal(size=(40, 3)) + 6])
    X = DiffusionMap(1, preimage=QUICK).fit_transform(Y)[:, 0]
    assert (np.sign(X[:40]) == np.sign(X[0])).all()
    assert (np.sign(X[40:]) == -np.sign(X[0])).all()


def test_far_away_rows_have_a_place():
    model = DiffusionMap(preimage=QUICK).fit(TRAIN)
    assert np.isfinite(model.transform(np.full((1, 5), 1e6))).all()


def test_missing_entries_are_filled():
    model = DiffusionMap(preimage="learned").fit(TRAIN)
    partial = NEW.copy()
    partial[np.arange(30), np.arange(30) % 5] = np.nan
    gaps = np.isnan(partial)
    error = ((model.complete(partial) - NEW)[gaps] ** 2).mean()
    assert error < 0.2 * ((TRAIN.mean(axis=0) - NEW)[gaps] ** 2).mean()


@pytest.mark.parametrize("given", [{}, {"n_neighbors": 12}, {"extension": "ridge"}], ids=repr)
def test_saved_and_pickled_models_are_the_same(given, tmp_path):
    model = DiffusionMap(preimage=QUICK, **given).fit(TRAIN)
    model.save(tmp_path / "model")
    stored = DiffusionMap.from_file(read_model_file(tmp_path / "model"), {})
    for again in (stored, pickle.loads(pickle.dumps(model))):
        X = again.transform(NEW)
        np.testing.assert_array_equal(X, model.transform(NEW))
        np.testing.assert_array_equal(again.inverse_transform(X), model.inverse_transform(X))


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"alpha": 2}, "`alpha` must be a number from 0 to 1; got 2"),
        ({"time": -1}, "`time` must be"),
        ({"time": 10_000}, "Lower `time`"),
        ({"bandwidth": 0}, "`bandwidth` must be"),
        ({"n_neighbors": 0}, "`n_neighbors` must be"),
        ({"extension": "magic"}, "`extension` must be one of"),
        ({"preimage": "constrained", "n_neighbors": 9}, "extension='ridge'"),
        ({"preimage": "fixed_point"}, "'fixed_point' need"),
    ],
)
def test_wrong_parameters_are_explained(parameters, message):
    with pytest.raises(ValueError, match=message):
        DiffusionMap(**parameters).fit(TRAIN)


def test_parts_of_a_walk_are_told_and_stay_apart():
    apart = np.concatenate([TRAIN[:50], TRAIN[50:] + 100])
    with pytest.warns(UserWarning, match=r"fall into 2 unconnected parts of 50, 50 rows"):
        model = DiffusionMap(1, n_neighbors=10, preimage=QUICK).fit(apart)
    first, second = model.embedding_[:50, 0], model.embedding_[50:, 0]
    # The slowest coordinate says which part a row belongs to.
    assert np.ptp(first) + np.ptp(second) < 1e-6 * abs(first.mean() - second.mean())
