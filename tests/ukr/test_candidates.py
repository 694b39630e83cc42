"""Start embeddings: the rules that bind them together."""

from __future__ import annotations

import os
import subprocess
import sys

import numpy as np
import pytest
from oracles.sheets import curved_sheet
from scipy.spatial.distance import pdist
from scipy.stats import spearmanr
from sklearn.datasets import load_digits, make_blobs, make_swiss_roll
from sklearn.exceptions import ConvergenceWarning
from sklearn.manifold import trustworthiness
from sklearn.model_selection import train_test_split
from threadpoolctl import threadpool_info, threadpool_limits

from twofold import UKR
from twofold.neighborhoods import approximate
from twofold.neighborhoods.graphs import find_neighbors, smallest_connecting_size
from twofold.ukr import placing, starts
from twofold.ukr.starts import ALL, Candidates


def spiral(seed, n=300):
    """Return positions along a noisy spiral, evenly covered, and its points in the plane."""
    rng = np.random.default_rng(seed)
    t = -0.2 + np.sqrt(0.04 + 1.4 * (np.arange(n) + rng.uniform(size=n)) / n)
    curve = (t + 0.2)[:, None] * np.column_stack([np.sin(4 * np.pi * t), np.cos(4 * np.pi * t)])
    return t, curve + rng.uniform(-0.1, 0.1, size=(n, 2))


def make_candidates(Y, q, *, methods=ALL, **options):
    return Candidates(Y, q, **options).find(methods)


def one(found, method):
    """Return the embedding of the method's smallest neighbourhood."""
    return next(X for name, X in found.items() if name.split("-")[0] == method)


def leave_one_out(X, Y):
    """Return the lowest leave-one-out error over common scales, as a share of the variance."""
    Y = Y - Y.mean(axis=0)
    sq_dists = ((X**2).sum(1)[:, None] + (X**2).sum(1) - 2 * X @ X.T).astype(np.float32)
    np.fill_diagonal(sq_dists, np.inf)
    sq_dists -= sq_dists.min(axis=1, keepdims=True)
    errors = []
    for scale in np.geomspace(10, 60, 6):
        K = np.exp(-0.5 * scale**2 * sq_dists)
        R = (K / K.sum(axis=1, keepdims=True)) @ Y - Y
        errors.append((R**2).sum() / (Y**2).sum())
    return min(errors)


# The whole set


def test_default_set_follows_the_smallest_connecting_size():
    Y = curved_sheet(300)
    smallest = smallest_connecting_size(find_neighbors(Y, 15))
    assert 3 <= smallest <= 15
    sizes = [smallest, round(1.7 * smallest), 3 * smallest]
    expected = [
        "pca",
        *(f"lle-{size}" for size in sizes[1:]),
        *(f"isomap-{size}" for size in sizes),
        f"laplacian-{smallest}",
        "tsne",
    ]
    assert list(make_candidates(Y, 2)) == expected


def test_embeddings_are_centred_and_scaled():
    for name, X in make_candidates(curved_sheet(300), 2).items():
        assert X.dtype == np.float64
        np.testing.assert_allclose(X.mean(axis=0), 0, atol=1e-12, err_msg=name)
        deviations = X.std(axis=0)
        if name.startswith(("lle", "laplacian")):
            np.testing.assert_allclose(deviations, 1, err_msg=name)
        else:
            assert deviations.max() == pytest.approx(1), name


def test_pca_keeps_the_aspect_ratio():
    Y = np.random.default_rng(0).normal(size=(200, 3)) * [5, 2, 0.1]
    (X,) = make_candidates(Y, 2, methods=["pca"]).values()
    values = np.linalg.svd(Y - Y.mean(axis=0), compute_uv=False)
    np.testing.assert_allclose(X.std(axis=0), values[:2] / values[0])


@pytest.mark.slow
def test_result_does_not_depend_on_the_number_of_threads(monkeypatch):
    Y = curved_sheet(500, D=20)
    first, second = (make_candidates(Y, 2, n_jobs=n_jobs) for n_jobs in (1, 2))
    assert list(first) == list(second)
    for name, X in first.items():
        assert X.tobytes() == second[name].tobytes(), name
    monkeypatch.setattr(starts, "MAX_REPRESENTATIVES", 200)
    monkeypatch.setattr(approximate, "FEW_ROWS", 300)
    how = {"init": "tsne", "max_iter": 2, "random_state": 0}
    models = [UKR(n_jobs=n_jobs, **how).fit(Y) for n_jobs in (1, 2)]
    assert models[0].embedding_.tobytes() == models[1].embedding_.tobytes()


@pytest.mark.slow
def test_result_does_not_depend_on_the_threads_of_the_libraries(tmp_path):
    # Wide enough for BLAS and OpenMP to split the work, were they allowed to.
    Y = curved_sheet(600, D=40)
    np.save(tmp_path / "Y.npy", Y)
    code = (
        "import sys, numpy as np; from twofold.ukr.starts import Candidates; "
        "Y = np.load(sys.argv[1] + '/Y.npy'); found = Candidates(Y, 2, n_jobs=1).find(); "
        "np.savez(sys.argv[1] + '/X.npz', **found)"
    )
    variables = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
    environment = {**os.environ, **dict.fromkeys(variables, "4")}
    subprocess.run([sys.executable, "-c", code, str(tmp_path)], env=environment, check=True)
    with threadpool_limits(1), np.load(tmp_path / "X.npz") as other:
        for name, X in make_candidates(Y, 2, n_jobs=2).items():
            assert X.tobytes() == other[name].tobytes(), name


def test_what_was_found_for_one_method_serves_the_next():
    Y = curved_sheet(150)
    candidates = Candidates(Y, 2)
    candidates.find(["pca", "isomap", "lle"])
    for method in ("tsne", "laplacian"):
        alone = make_candidates(Y, 2, methods=[method])
        after = candidates.find([method])
        assert list(after) == list(alone)
        for name, X in alone.items():
            assert X.tobytes() == after[name].tobytes(), name


def test_thread_limits_are_given_back():
    limits = [library["num_threads"] for library in threadpool_info()]
    make_candidates(curved_sheet(100), 2, n_jobs=2)
    assert [library["num_threads"] for library in threadpool_info()] == limits


def test_seed_matters():
    Y = curved_sheet(600)
    first, second = (
        one(make_candidates(Y, 2, methods=["isomap"], random_state=seed), "isomap")
        for seed in (0, 1)
    )
    assert not np.array_equal(first, second)


@pytest.mark.slow
def test_offset_and_unit_of_the_data_do_not_matter():
    Y = curved_sheet(200)
    expected = make_candidates(Y, 2)
    # A power of two is exact in floating point, so even t-SNE follows the same path.
    for factor in (2.0**-400, 2.0**400):
        scaled = make_candidates(factor * Y, 2)
        assert list(scaled) == list(expected)
        for name, X in expected.items():
            np.testing.assert_array_equal(scaled[name], X, err_msg=name)
    moved = make_candidates(Y + 1e4, 2, methods=["isomap"])
    for name, X in moved.items():
        np.testing.assert_allclose(pdist(X), pdist(expected[name]), atol=1e-6, err_msg=name)


def test_input_is_left_alone():
    Y = curved_sheet(100)
    Y.flags.writeable = False
    before = Y.copy()
    make_candidates(Y, 2)
    np.testing.assert_array_equal(Y, before)


# Quality


@pytest.mark.slow
def test_isomap_unrolls_the_swiss_roll():
    Y, t = make_swiss_roll(1_500, random_state=0)
    arc = 0.5 * (t * np.sqrt(1 + t**2) + np.arcsinh(t))
    truth = np.column_stack([arc, Y[:, 1]])
    found = make_candidates(Y, 2, methods=["isomap"])
    sample = np.random.default_rng(0).choice(len(Y), 400, replace=False)
    for name, X in found.items():
        assert np.corrcoef(pdist(X[sample]), pdist(truth[sample]))[0, 1] > 0.995, name


@pytest.mark.parametrize("seed", range(3))
def test_tsne_does_not_tear_the_spiral(seed):
    t, Y = spiral(seed)
    found = make_candidates(Y, 1, methods=["pca", "tsne"])
    assert abs(spearmanr(found["tsne"][:, 0], t).statistic) > 0.99
    assert abs(spearmanr(found["pca"][:, 0], t).statistic) < 0.9


@pytest.mark.slow
def test_digits_start_reaches_the_leave_one_out_error():
    Y, _ = train_test_split(load_digits().data, test_size=0.1, random_state=0)
    X = one(make_candidates(Y, 2, methods=["tsne"]), "tsne")
    assert leave_one_out(X, Y) < 0.218  # measured: 0.212


# Hard cases: warnings are errors here


@pytest.mark.cover(1)
@pytest.mark.parametrize("n", [3, 4, 7, 8, 9, 12, 20])
@pytest.mark.parametrize("q", [1, 2, 6])
def test_few_rows(n, q):
    Y = np.random.default_rng(n).normal(size=(n, 6))
    found = make_candidates(Y, q)
    assert next(iter(found)) == "pca"
    for X in found.values():
        assert X.shape == (n, q)
        assert np.isfinite(X).all()


def test_in_many_dimensions_tsne_is_made_thick():
    Y = np.random.default_rng(0).normal(size=(120, 20))
    found = make_candidates(Y, 15)
    assert {name.split("-")[0] for name in found} == {"pca", "lle", "isomap", "laplacian", "tsne"}
    thick = found["tsne"]
    assert thick.shape == (120, 15)
    assert (np.ptp(thick, axis=0) > 0).all()
    np.testing.assert_allclose(np.corrcoef(thick[:, 2:].T), np.eye(13), atol=1e-6)


def test_far_clusters_are_bridged_and_lle_is_left_out():
    Y, _ = make_blobs(240, 5, centers=4, cluster_std=1e-3, random_state=0)
    found = make_candidates(Y, 2)
    assert list(found) == ["pca", "isomap-8", "isomap-14", "isomap-24", "laplacian-8", "tsne"]
    assert all(np.isfinite(X).all() for X in found.values())


def test_flat_data_drop_what_cannot_fill_its_dimensions():
    line = np.outer(np.arange(60.0), np.ones(4))
    names = list(make_candidates(line, 2, methods=["pca", "isomap"]))
    assert names == ["pca"]
    assert list(make_candidates(line, 2, methods=["isomap"])) == ["pca"]


@pytest.mark.parametrize(
    "Y",
    [
        np.stack(np.meshgrid(np.arange(12.0), np.arange(12.0)), -1).reshape(-1, 2),
        np.vstack([curved_sheet(100), np.full((1, 6), 1e6)]),
        np.repeat(curved_sheet(40), 4, axis=0)
        + 1e-9 * np.random.default_rng(0).normal(size=(160, 6)),
        curved_sheet(80).astype(np.float32),
    ],
    ids=["grid with ties", "outlier", "almost duplicates", "float32"],
)
def test_awkward_data(Y):
    found = make_candidates(Y, 2)
    assert {name.split("-")[0] for name in found} >= {"pca", "isomap", "laplacian", "tsne"}
    for name, X in found.items():
        assert np.isfinite(X).all(), name
        assert X.dtype == np.float64


def test_wide_rows_are_reduced():
    sheet = curved_sheet(200, D=4)
    rotation = np.linalg.qr(np.random.default_rng(0).normal(size=(500, 4)))[0]
    narrow, wide = (make_candidates(Y, 2) for Y in (sheet, sheet @ rotation.T))
    assert list(narrow) == list(wide)
    for name in narrow:
        if name != "tsne":
            np.testing.assert_allclose(
                pdist(wide[name]), pdist(narrow[name]), rtol=1e-3, atol=1e-3, err_msg=name
            )


# Many rows


@pytest.fixture
def few(monkeypatch):
    monkeypatch.setattr(starts, "MAX_REPRESENTATIVES", 250)


@pytest.mark.usefixtures("few")
def test_many_rows_are_placed_beside_their_representatives():
    Y = curved_sheet(800)
    candidates = Candidates(Y, 2)
    for name, X in candidates.find(["pca", "isomap", "tsne"]).items():
        assert X.shape == (250, 2)
        placed = candidates.place(name)
        assert placed.shape == (800, 2)
        assert trustworthiness(Y, placed) > 0.95, name
        # Up to the common factor and the middle, representatives stay where they were.
        there = placed[candidates.chosen]
        same = np.corrcoef(pdist(there), pdist(X))[0, 1]
        assert same > 1 - 1e-9, name


@pytest.mark.usefixtures("few")
@pytest.mark.parametrize("q", [1, 2, pytest.param(3, marks=pytest.mark.slow), 5])
def test_tsne_goes_on_with_all_rows(q):
    Y = curved_sheet(500, D=12)
    candidates = Candidates(Y, q)
    candidates.find(["tsne", "isomap"])
    placed = candidates.place("tsne")
    told = []
    refined = candidates.refine("tsne", placed, lambda *words: told.append(words))
    assert told[-1] == ("t-SNE of all rows", 99, 100)
    assert refined.shape == (500, q)
    assert np.ptp(refined, axis=0).min() > 0
    if q <= 3:  # the sheet has no more dimensions to tell rows apart by
        assert leave_one_out(refined, Y) < 0.95 * leave_one_out(placed, Y)
    other = next(name for name in candidates.embedded if name.startswith("isomap"))
    assert candidates.refine(other, placed, lambda *_: None) is placed


@pytest.mark.usefixtures("few")
def test_the_start_of_many_rows_is_chosen_by_few(monkeypatch):
    asked = []
    original = Candidates.place
    monkeypatch.setattr(
        Candidates, "place", lambda self, name: asked.append(name) or original(self, name)
    )
    model = UKR(max_iter=0, random_state=0).fit(curved_sheet(800))
    assert asked == [model.start_]
    assert model.embedding_.shape == (800, 2)
    assert model.starts_[model.start_] == min(model.starts_.values())


@pytest.mark.usefixtures("few")
def test_an_interrupt_while_rows_are_placed_keeps_the_start(monkeypatch):
    def interrupted(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(Candidates, "refine", interrupted)
    with pytest.warns(ConvergenceWarning, match="Interrupted after 0 iterations"):
        model = UKR(random_state=0).fit(curved_sheet(800))
    assert model.stop_reason_ == "interrupted"
    assert model.embedding_.shape == (800, 2)


def test_placing_by_hand():
    X = np.array([[0.0], [1.0], [100.0]])
    nearest = np.array([[0, 1, 2], [1, 0, 2], [0, 1, 2]])
    distances = np.array([[1.0, 1.0, 1.0], [0.0, 1.0, 1.0], [1.0, 2.0, 1e9]])
    placed = placing.place(X, distances, nearest, reach=1.0)
    # First row: the weights 1, 1 / (1 + 1), 1 / (1 + 100^2) mean that the far place hardly counts.
    weights = np.array([1, 1 / 2, 1 / 10_001])
    assert placed[0, 0] == pytest.approx((weights @ [0, 1, 100]) / weights.sum())
    # Second row: on top of a representative. Third: weights 1 and 1/4 * 1/2.
    assert placed[1, 0] == 1.0
    assert placed[2, 0] == pytest.approx((1 / 8) / (9 / 8))


# Errors


def test_errors_name_what_came():
    Y = curved_sheet(20)
    with pytest.raises(ValueError, match=r"`methods` must be taken from pca, .*; got umap"):
        make_candidates(Y, 2, methods=["pca", "umap"])
    with pytest.raises(ValueError, match="at least 3 distinct rows; got 2"):
        make_candidates(Y[:2], 2)
    with pytest.raises(ValueError, match=r"number of features = 6\]; got 7"):
        make_candidates(Y, 7)


def test_every_method_can_be_asked_for_alone():
    Y = curved_sheet(60)
    for method in ALL:
        assert {name.split("-")[0] for name in make_candidates(Y, 2, methods=[method])} == {method}
