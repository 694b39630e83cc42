from __future__ import annotations

import pickle

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.decomposition import PCA
from sklearn.decomposition import KernelPCA as Peer
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.utils import get_tags

from twofold.datasets import make_random_manifold
from twofold.features.data_kernels import RBF, Laplacian, Polynomial, Precomputed
from twofold.kernel_pca import KernelPCA
from twofold.kernel_pca.data_dependent import LLE, Diffusion, Isomap
from twofold.kernel_pca.spectrum import decompose_by_landmarks
from twofold.model_files import read_model_file
from twofold.neighborhoods.nearest import neighbor_scale
from twofold.preimages import FixedPoint, Learned, PreImages, Status

DATA = make_random_manifold(130, 2, 5, noise=0.02, random_state=0)
TRAIN, NEW = DATA.Y[:100], DATA.Y[100:]
QUICK = Learned(1.0, 1e-3)


def wave(A, B):
    return np.exp(-0.1 * ((A[:, None] - B[None]) ** 2).sum(axis=2))


CASES = {
    "rbf": (RBF(0.1), {"kernel": "rbf", "gamma": 0.1}),
    "poly": (Polynomial(3, 0.2, 1.0), {"kernel": "poly", "degree": 3, "gamma": 0.2, "coef0": 1}),
    "laplacian": (
        Laplacian(0.2),
        {"kernel": lambda a, b: np.exp(-0.2 * np.abs(a - b).sum())},
    ),
    "linear": ("linear", {"kernel": "linear"}),
    "callable": (wave, {"kernel": "rbf", "gamma": 0.1}),
}


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("eigen_solver", ["auto", "dense", "arpack", "randomized"])
def test_coordinates_are_those_of_scikit_learn(case, eigen_solver):
    kernel, given = CASES[case]
    peer = Peer(3, eigen_solver="dense", **given).fit(TRAIN)
    model = KernelPCA(3, kernel=kernel, eigen_solver=eigen_solver, preimage=QUICK, random_state=0)
    model.fit(TRAIN)
    unit = np.abs(model.embedding_).max()
    for found, expected in (
        (model.embedding_, peer.transform(TRAIN)),
        (model.transform(NEW), peer.transform(NEW)),
    ):
        np.testing.assert_allclose(np.abs(found), np.abs(expected), atol=1e-7 * unit)
    np.testing.assert_allclose(model.eigenvalues_, peer.eigenvalues_, rtol=1e-7)


def test_the_linear_kernel_is_pca_there_and_back():
    pca = PCA(2).fit(TRAIN)
    model = KernelPCA(2, kernel="linear").fit(TRAIN)
    np.testing.assert_allclose(np.abs(model.transform(NEW)), np.abs(pca.transform(NEW)), atol=1e-12)
    back = pca.inverse_transform(pca.transform(NEW))
    np.testing.assert_allclose(model.reconstruct(NEW), back, atol=1e-10)
    left = (pca.explained_variance_.sum() / pca.explained_variance_ratio_.sum()) * 99 / 100
    assert model.history_[0] == pytest.approx(left)
    assert model.objective_ == pytest.approx(left - pca.explained_variance_.sum() * 99 / 100)
    assert model.preimage_.startswith("exact")


def test_weights_are_copies_for_the_peer():
    counts = np.random.default_rng(1).integers(0, 4, len(TRAIN))
    copies = np.repeat(TRAIN, counts, axis=0)
    peer = Peer(2, kernel="rbf", gamma=0.1).fit(copies)
    model = KernelPCA(kernel=RBF(0.1), preimage=QUICK).fit(TRAIN, sample_weight=counts)
    np.testing.assert_allclose(np.abs(model.transform(NEW)), np.abs(peer.transform(NEW)), atol=1e-9)
    merged = KernelPCA(kernel=RBF(0.1), preimage=QUICK).fit(copies)
    np.testing.assert_array_equal(merged.transform(NEW), model.transform(NEW))
    assert merged.objective_ == model.objective_


def test_default_width_is_that_of_the_tenth_neighbour():
    model = KernelPCA(preimage=QUICK).fit(TRAIN)
    assert model.kernel_.gamma == pytest.approx(0.5 / neighbor_scale(TRAIN) ** 2)
    model = KernelPCA(kernel="laplacian", preimage=QUICK).fit(TRAIN)
    assert model.kernel_.gamma == pytest.approx(1 / neighbor_scale(TRAIN, order=1))
    # A unit of the data that is a thousand times smaller changes no coordinate.
    scaled = KernelPCA(preimage=QUICK).fit(1000 * TRAIN)
    np.testing.assert_allclose(
        scaled.embedding_, KernelPCA(preimage=QUICK).fit(TRAIN).embedding_, atol=1e-10
    )


def test_more_components_than_features_and_than_directions():
    model = KernelPCA(8, kernel=RBF(0.5), preimage="fixed_point").fit(TRAIN)
    assert model.transform(NEW).shape == (30, 8)
    assert model.reconstruct(NEW[:3]).shape == (3, 5)
    with pytest.raises(ValueError, match="is more than the 5 direction"):
        KernelPCA(6, kernel="linear").fit(TRAIN)


@pytest.mark.parametrize("kernel", [LLE(), Isomap(), Diffusion(), Diffusion(time=2)], ids=repr)
def test_kernels_made_from_all_rows_go_there_and_back(kernel):
    model = KernelPCA(kernel=kernel, preimage="learned").fit(TRAIN)
    X = model.transform(NEW)
    np.testing.assert_array_equal(model.transform(TRAIN), model.embedding_)
    np.testing.assert_array_equal(np.concatenate([model.transform(y[None]) for y in NEW]), X)
    error = ((model.inverse_transform(X) - NEW) ** 2).sum()
    assert error < 0.1 * ((NEW - TRAIN.mean(axis=0)) ** 2).sum()


def test_the_differentiable_map_is_the_projection():
    for kernel in (RBF(0.1), Diffusion(), Diffusion(alpha=0.5, time=3)):
        model = KernelPCA(3, kernel=kernel, preimage=QUICK).fit(TRAIN)
        found = model._space.map.values(NEW)
        np.testing.assert_allclose(found, model.transform(NEW), atol=1e-10)


def test_landmarks_that_are_all_rows_but_few_come_near_all_rows():
    full = KernelPCA(kernel=RBF(0.1), preimage=QUICK).fit(TRAIN)
    model = KernelPCA(kernel=RBF(0.1), landmarks=60, preimage=QUICK, random_state=0).fit(TRAIN)
    assert model.data_.shape == (60, 5)
    assert model.weights_.sum() == pytest.approx(100)
    assert model.embedding_.shape == (100, 2)
    np.testing.assert_array_equal(model.transform(TRAIN), model.embedding_)
    np.testing.assert_allclose(np.abs(model.embedding_), np.abs(full.embedding_), atol=2e-3)
    assert model.objective_ == pytest.approx(full.objective_, rel=1e-2)
    alpha, products = model._space.expand(model.transform(NEW))
    np.testing.assert_allclose(alpha.sum(axis=1), 1, atol=1e-9)
    K = RBF(0.1).gram(model.data_, model.data_)
    np.testing.assert_allclose(products, alpha @ K, atol=1e-8)


def test_every_row_a_landmark_is_kernel_pca():
    weights = np.random.default_rng(2).uniform(0.5, 2, len(TRAIN))
    found, base = decompose_by_landmarks(RBF(0.1), TRAIN, TRAIN, weights, 2)
    model = KernelPCA(kernel=RBF(0.1), preimage=QUICK).fit(TRAIN, sample_weight=weights)
    expected = model.transform(TRAIN)
    np.testing.assert_allclose(np.abs(found.latent), np.abs(expected), atol=1e-6)
    np.testing.assert_allclose(found.eigenvalues, model.eigenvalues_, rtol=1e-8)
    assert base.sum() == pytest.approx(1)


def test_landmarks_of_a_kernel_made_from_all_rows():
    model = KernelPCA(kernel="isomap", landmarks=40, preimage=QUICK, random_state=0).fit(TRAIN)
    assert model.latent_.shape == (40, 2)
    assert model.embedding_.shape == (100, 2)
    assert np.isfinite(model.embedding_).all()


def test_a_kernel_matrix_stands_for_its_rows():
    rows = KernelPCA(kernel=RBF(0.1), preimage=QUICK).fit(TRAIN)
    matrix = KernelPCA(kernel="precomputed").fit(rbf_kernel(TRAIN, gamma=0.1))
    np.testing.assert_allclose(np.abs(matrix.embedding_), np.abs(rows.embedding_), atol=1e-10)
    values = rbf_kernel(NEW, TRAIN, gamma=0.1)
    X = matrix.transform(values)
    np.testing.assert_allclose(np.abs(X), np.abs(rows.transform(NEW)), atol=1e-10)
    # What comes back are the kernel values of the projected features, which project to the same.
    np.testing.assert_allclose(matrix.transform(matrix.inverse_transform(X)), X, atol=1e-9)
    assert get_tags(matrix).input_tags.pairwise
    assert get_tags(KernelPCA(kernel=Precomputed())).input_tags.pairwise
    with pytest.raises(ValueError, match=r"must be square.*\(30, 100\)"):
        KernelPCA(kernel="precomputed").fit(values)
    with pytest.raises(ValueError, match="precomputed matrix does not hold"):
        KernelPCA(kernel="precomputed", landmarks=10).fit(rbf_kernel(TRAIN))


def test_missing_entries_are_filled_but_not_learned_from():
    model = KernelPCA(kernel=RBF(0.1), preimage=QUICK).fit(TRAIN)
    partial = NEW.copy()
    partial[np.arange(30), np.arange(30) % 5] = np.nan
    filled = model.complete(partial)
    known = ~np.isnan(partial)
    np.testing.assert_array_equal(filled[known], NEW[known])
    by_mean = ((TRAIN.mean(axis=0) - NEW)[~known] ** 2).mean()
    assert ((filled - NEW)[~known] ** 2).mean() < 0.2 * by_mean
    np.testing.assert_array_equal(model.complete(partial[:1]), filled[:1])
    np.testing.assert_array_equal(model.complete(NEW), NEW)
    with pytest.raises(ValueError, match=r"30 of 30 have missing entries \(NaN\).*`complete`"):
        model.transform(partial)
    with pytest.raises(ValueError, match=r"30 of 30 have missing entries.*UKR"):
        KernelPCA().fit(partial)


def test_gaps_of_rows_on_a_plane_are_filled_by_what_is_expected():
    rng = np.random.default_rng(4)
    X, B = rng.normal(size=(400, 3)) * [3.0, 1.0, 0.5], np.linalg.qr(rng.normal(size=(6, 3)))[0]
    Y = 5 + X @ B.T + 0.1 * rng.normal(size=(400, 6))
    train, new = Y[:300], Y[300:]
    model = KernelPCA(3, kernel="linear").fit(train)
    for observed in (1, 2, 4):
        partial = new.copy()
        for row in partial:
            row[rng.permutation(6)[observed:]] = np.nan
        gaps = np.isnan(partial)
        filled = model.complete(partial)
        # The mean of a normal distribution, given what is observed.
        expected = partial.copy()
        C, mean = np.cov(train.T, bias=True), train.mean(axis=0)
        for row, gap in zip(expected, gaps, strict=True):
            row[gap] = mean[gap] + C[gap][:, ~gap] @ np.linalg.solve(
                C[~gap][:, ~gap], (row - mean)[~gap]
            )
        error, best, plain = (
            ((filled_in - new)[gaps] ** 2).mean()
            for filled_in in (filled, expected, np.broadcast_to(mean, new.shape))
        )
        assert error < 1.2 * best
        assert error < 0.9 * plain
    all_axes = KernelPCA(6, kernel="linear").fit(train)
    np.testing.assert_allclose(all_axes.complete(partial[:5])[~gaps[:5]], new[:5][~gaps[:5]])
    assert ((all_axes.complete(partial) - new)[gaps] ** 2).mean() < plain


def test_density_and_domain():
    model = KernelPCA(kernel=RBF(0.1), preimage=QUICK).fit(TRAIN)
    # Scott: h_j = deviation_j m^(-1/6) for q = 2.
    h = model.embedding_.std(axis=0) * 100 ** (-1 / 6)
    X = model.transform(NEW)
    gaps = (X[:, None] - model.embedding_[None]) / h
    expected = np.exp(-0.5 * (gaps**2).sum(axis=2)).mean(axis=1)
    np.testing.assert_allclose(model.density(X), expected, rtol=1e-10)
    lowest = model.density(model.embedding_).min()
    assert model.domain_threshold_ == pytest.approx(0.5 * lowest)
    assert model.sample(4, random_state=0).shape == (4, 5)


class Lost(Learned):
    def find(self, target):
        found = super().find(target)
        status = np.where(np.arange(len(found.Y)) < 2, Status.ITERATION_LIMIT, found.status)
        return PreImages(found.Y, status, found.n_iter, found.distance)


def test_rows_that_did_not_converge_are_counted():
    model = KernelPCA(kernel=RBF(0.1), preimage=Lost(1.0, 1e-3)).fit(TRAIN)
    with pytest.warns(ConvergenceWarning, match="did not converge for 2 of 30 points"):
        model.inverse_transform(model.transform(NEW))


@pytest.mark.parametrize(
    "model",
    [
        KernelPCA(kernel=RBF(0.1), preimage=QUICK),
        KernelPCA(kernel="diffusion", preimage=QUICK),
        KernelPCA(kernel="linear", landmarks=20, random_state=0),
        KernelPCA(kernel=Laplacian(0.2), preimage=QUICK),
    ],
    ids=repr,
)
def test_saved_and_pickled_models_are_the_same(model, tmp_path):
    model = clone(model).fit(TRAIN)
    model.save(tmp_path / "model")
    stored = KernelPCA.from_file(read_model_file(tmp_path / "model"), {})
    for again in (stored, pickle.loads(pickle.dumps(model))):
        X = again.transform(NEW)
        np.testing.assert_array_equal(X, model.transform(NEW))
        np.testing.assert_array_equal(again.inverse_transform(X), model.inverse_transform(X))
        assert again.preimage_ == model.preimage_


def test_float32_stays_float32():
    model = KernelPCA(kernel=RBF(0.1), preimage=QUICK, n_jobs=1).fit(TRAIN.astype(np.float32))
    X = model.transform(NEW.astype(np.float32))
    assert model.embedding_.dtype == X.dtype == model.inverse_transform(X).dtype == np.float32


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"n_components": 0}, "`n_components` must be an integer of at least 1"),
        ({"kernel": "gauss"}, "`kernel` must be one of"),
        ({"eigen_solver": "lanczos"}, "`eigen_solver` must be one of"),
        ({"tol": -1}, "`tol` must be"),
        ({"landmarks": 2}, "`landmarks` must be an integer of at least 3"),
        ({"preimage": "magic"}, "`preimage` must be"),
        ({"kernel": "isomap", "preimage": FixedPoint()}, "'fixed_point' need"),
        ({"n_jobs": 0}, "`n_jobs`"),
    ],
)
def test_wrong_parameters_are_explained(parameters, message):
    with pytest.raises(ValueError, match=message):
        KernelPCA(**parameters).fit(TRAIN)
