"""Constrained pre-images through the estimators: further axes hold rows on the manifold."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from preimages.cases import sinusoid
from sklearn.exceptions import ConvergenceWarning

from twofold import DiffusionMap, KernelPCA, load
from twofold.datasets import make_rotating_object
from twofold.features import RBF
from twofold.kernel_pca.data_dependent import LLE, Diffusion
from twofold.neighborhoods.nearest import neighbor_scale
from twofold.preimages import Constrained, Gradient


def distance(A, B):
    return np.sqrt(((A - B) ** 2).sum(axis=1).mean())


def moves_to_level(model, Y):
    """Return how much coordinates of reconstructed rows change, over the spread of these."""
    q = model.n_components
    before, after = (model._space.map.values(Z)[:, :q] for Z in (Y, model.reconstruct(Y)))
    return np.abs(after - before).max() / np.ptp(before)


def test_a_noisy_sinusoid_comes_back_as_in_the_thesis():
    Y, clean = sinusoid(300)
    kernel = Diffusion(scale=neighbor_scale(Y, 20))
    found = KernelPCA(1, kernel=kernel, preimage="constrained").fit(Y).reconstruct(Y)
    free = KernelPCA(1, kernel=kernel, preimage=Gradient("projection", restart=False))
    # Reference computations: 0.538 for the input, 0.418 with the constraint, 0.653 and more
    # without it. If no axes were kept beyond the first, rows would stay where they are.
    assert distance(Y, clean) == pytest.approx(0.538, abs=1e-3)
    assert distance(found, clean) == pytest.approx(0.418, abs=0.02)
    assert distance(free.fit(Y).reconstruct(Y), clean) > 1.4 * distance(found, clean)


@pytest.mark.slow
def test_a_walk_keeps_further_coordinates_too():
    Y, clean = sinusoid(300)
    for extension in ("analytic", "ridge"):
        model = DiffusionMap(
            1, bandwidth=neighbor_scale(Y, 20), extension=extension, preimage="constrained"
        ).fit(Y)
        assert distance(model.reconstruct(Y), clean) < 0.9 * distance(Y, clean)
        assert moves_to_level(model, Y) < 1e-6


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("kernel", [RBF(1.0), LLE(12), "laplacian"], ids=repr)
def test_any_kernel_keeps_coordinates(kernel):
    Y, _ = sinusoid(100, noise=0.2)
    model = KernelPCA(1, kernel=kernel, preimage="constrained").fit(Y)
    new = sinusoid(20, noise=0.2, seed=1)[0]
    assert model._space.map.n_coordinates > 20
    back = model.reconstruct(new)
    assert np.abs(back - new).max() > 0.05
    q = model._space.map.values
    gaps = np.abs(q(back)[:, 0] - q(new)[:, 0])
    assert np.quantile(gaps, 0.9) < 1e-6 * np.ptp(model.embedding_)


def test_rows_are_searched_for_from_themselves():
    Y, _ = sinusoid(80)
    new = sinusoid(12, seed=1)[0]
    model = KernelPCA(1, kernel="diffusion", preimage=Constrained(max_iter=1)).fit(Y)
    with pytest.warns(ConvergenceWarning, match="for 12 of 12 points"):
        np.testing.assert_array_equal(model.reconstruct(new), new)
    X = model.transform(new)
    nearest = Y[np.abs(X - model.embedding_.T).argmin(axis=1)]
    with pytest.warns(ConvergenceWarning, match="for 12 of 12 points"):
        np.testing.assert_array_equal(model.inverse_transform(X), nearest)
    model = KernelPCA(1, kernel="diffusion", preimage="constrained").fit(Y)
    expected = -((model.reconstruct(new) - new) ** 2).sum(axis=1)
    np.testing.assert_allclose(model.score_samples(new), expected)


def test_further_axes_only_where_asked_for():
    Y, _ = sinusoid(60)
    for preimage in ("learned", "linear_combination"):
        model = KernelPCA(2, preimage=preimage).fit(Y)
        assert not hasattr(model, "rest_coef_")
        assert model._space.map.n_coordinates == 2
    same = KernelPCA(2, preimage="constrained").fit(Y)
    np.testing.assert_allclose(same.embedding_, model.embedding_, atol=1e-9)
    np.testing.assert_allclose(same.eigenvalues_, model.eigenvalues_)
    assert same.objective_ == pytest.approx(model.objective_)


@pytest.mark.parametrize(
    "model",
    [
        KernelPCA(1, kernel=RBF(1.0), preimage="constrained"),
        KernelPCA(1, kernel="diffusion", preimage="constrained", landmarks=50, random_state=0),
        KernelPCA(1, kernel="isomap", preimage="constrained"),
        DiffusionMap(1, preimage="constrained"),
        DiffusionMap(1, n_neighbors=8, extension="ridge", preimage="constrained"),
    ],
    ids=repr,
)
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_saved_and_pickled_models_are_the_same(model, tmp_path):
    Y, _ = sinusoid(70, noise=0.1)
    new = sinusoid(10, noise=0.1, seed=1)[0]
    model.fit(Y).save(tmp_path / "model")
    for again in (load(tmp_path / "model"), pickle.loads(pickle.dumps(model))):
        np.testing.assert_array_equal(again.reconstruct(new), model.reconstruct(new))
        X = model.transform(new)
        np.testing.assert_array_equal(again.inverse_transform(X), model.inverse_transform(X))


def test_landmarks_keep_further_axes():
    Y, _ = sinusoid(250)
    kernel = RBF(0.5)
    model = KernelPCA(1, kernel=kernel, landmarks=80, preimage="constrained", random_state=0)
    assert model.fit(Y).rest_coef_.shape[0] == 80
    assert model.rest_coef_.shape[1] > 20


def test_ten_constraints_on_pictures_still_leave_room():
    pot = make_rotating_object(40, noise=0.05, random_state=0)
    for kernel in ("diffusion", "rbf"):
        model = KernelPCA(10, kernel=kernel, preimage="constrained").fit(pot.Y)
        back = model.reconstruct(pot.Y)  # a warning would tell of searches that did not end
        assert moves_to_level(model, pot.Y) < 1e-6
        assert np.sqrt(((back - pot.Y) ** 2).mean()) > 0.02


def test_coordinates_that_nothing_has_are_told():
    Y, _ = sinusoid(60)
    model = KernelPCA(1, kernel="diffusion", preimage="constrained").fit(Y)
    with pytest.warns(ConvergenceWarning, match="'constrained' did not converge for 1 of 1"):
        model.inverse_transform([[1e3]])
