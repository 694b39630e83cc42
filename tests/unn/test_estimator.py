"""The UNN estimator: what the contract's own tests do not ask for."""

from __future__ import annotations

import numpy as np
import pytest
from oracles import unn_continuous as oracle
from sklearn.datasets import load_wine

import twofold
from twofold import UKR, UNN
from twofold.losses import EpsilonInsensitive, Huber
from twofold.unn import CMAES, Exhaustive, Gaussian, Greedy, Swarm
from twofold.unn.line import Line
from twofold.unn.regression import Surface
from twofold.unn.searches import MOST_EXHAUSTIVE, get_search


def rows(seed=0, n=60, D=4):
    return np.random.default_rng(seed).normal(size=(n, D))


def curve(n=80):
    angle = np.random.default_rng(0).uniform(0, 3, n)
    return np.column_stack([np.cos(angle), np.sin(angle)]), angle


def with_gaps(Y, share=0.15):
    gaps = np.random.default_rng(1).random(Y.shape) < share
    gaps[:, 0] = False
    return np.where(gaps, np.nan, Y)


# ---- fitting ----------------------------------------------------------------------------------


@pytest.mark.parametrize("search", [Exhaustive(), Greedy(), Exhaustive("full"), Greedy("full")])
def test_rows_are_sorted_in_the_order_of_the_table(search):
    Y = rows()
    model = UNN(search=search, shuffle=False, refine=0).fit(Y)
    is_exhaustive = isinstance(search, Exhaustive)
    line = Line(n_neighbors=5, criterion=search.criterion, exhaustive=is_exhaustive)
    line.insert(Y)
    np.testing.assert_array_equal(np.argsort(model.embedding_[:, 0]), line.order)
    np.testing.assert_array_equal(np.sort(model.embedding_[:, 0]), np.arange(1, len(Y) + 1))


def test_the_order_of_a_table_matters_only_if_asked_for():
    Y = rows()
    turned = Y[::-1]
    one, other = (UNN(shuffle=False).fit(table).embedding_ for table in (Y, turned))
    assert not np.array_equal(one, other[::-1])
    one, other = (UNN(random_state=3).fit(table).embedding_ for table in (Y, turned))
    np.testing.assert_array_equal(one, other[::-1])


def test_a_curve_is_sorted_along_itself():
    Y, angle = curve()
    ranks = UNN(random_state=0).fit(Y).embedding_[:, 0]
    assert abs(np.corrcoef(ranks, np.argsort(np.argsort(angle)))[0, 1]) > 0.95


@pytest.mark.parametrize("search", ["exhaustive", "greedy", "gaussian", "swarm"])
@pytest.mark.parametrize("refine", [0, 2])
def test_objective_is_the_leave_one_out_error(search, refine):
    Y = rows()
    weights = np.random.default_rng(1).integers(1, 4, len(Y))
    model = UNN(search=search, refine=refine, n_neighbors=4, random_state=0)
    model.fit(Y, sample_weight=weights)
    X, errors = model.embedding_, []
    for i in range(len(Y)):
        others = [j for j in range(len(Y)) if j != i]
        # Of two as near the left one.
        near = sorted(others, key=lambda j, i=i: (abs(X[j, 0] - X[i, 0]), X[j, 0]))[:4]
        errors.append(((oracle.mean_of(Y, weights, near) - Y[i]) ** 2).sum())
    assert model.objective_ == pytest.approx(np.average(errors, weights=weights))
    assert len(model.history_) == 1 + refine
    assert model.n_iter_ == len(Y) + refine


@pytest.mark.cover(1)
@pytest.mark.parametrize("missing", [None, "embed_and_repair", "distances"])
@pytest.mark.parametrize(
    ("n_components", "search"),
    [(1, "exhaustive"), (1, "greedy"), (2, "exhaustive"), (2, "greedy"), (2, "auto"), (3, "swarm")],
)
def test_every_sweep_lowers_the_error(n_components, search, missing):
    Y, _ = load_wine(return_X_y=True)
    Y = (Y - Y.mean(axis=0)) / Y.std(axis=0)
    if missing:
        Y[np.random.default_rng(1).random(Y.shape) < 0.3] = np.nan
    options = {} if missing is None else {"missing": missing}
    model = UNN(n_components, search=search, refine=4, random_state=0, **options).fit(Y)
    falls = np.diff(model.history_)
    # Missing entries are left out of `objective_`; the sweeps scale distances up by them.
    assert (falls <= (0.02 if missing == "distances" else 1e-9) * model.history_[:-1]).all()
    assert model.history_[-1] < 0.9 * model.history_[0]


def test_auto_goes_by_dimensions_and_rows():
    assert get_search("auto", 1, MOST_EXHAUSTIVE) == Exhaustive()
    assert get_search("auto", 1, MOST_EXHAUSTIVE + 1) == Greedy()
    assert get_search("auto", 2, 10) == Gaussian()
    assert UNN(2, random_state=0).fit(rows()).search_ == Gaussian()


@pytest.mark.parametrize(
    "options",
    [
        {"loss": "absolute"},
        {"loss": "row_huber"},
        {"loss": Huber(0.5, per="vector")},
        {"loss": EpsilonInsensitive(0.1, per="vector", order=1)},
        {"power": 1.0},
        {"power": 3.0},
        {"data_kernel": "rbf"},
        {"data_kernel": "poly"},
        {"data_kernel": "tanh"},
    ],
    ids=str,
)
@pytest.mark.parametrize("n_components", [1, 2])
def test_losses_and_kernels_decide_about_places(options, n_components, tmp_path):
    Y = rows(n=100)
    model = UNN(n_components, random_state=0, **options).fit(Y)
    by_rows = (Y**2).sum(axis=1).mean()
    assert model.objective_ < 0.75 * by_rows
    plain = UNN(n_components, random_state=0).fit(Y)
    if "power" in options or options.get("data_kernel") == "poly":
        assert not np.array_equal(plain.embedding_, model.embedding_)
    elif options.get("data_kernel") == "tanh":
        # The book's tanh kernel is linear for all it ever sees: plain UNN by another name.
        np.testing.assert_array_equal(plain.embedding_, model.embedding_)
    model.save(tmp_path / "model")
    again = twofold.load(tmp_path / "model")
    assert again.get_params() == model.get_params()
    assert again.search_ == model.search_
    np.testing.assert_array_equal(again.transform(Y + 0.1), model.transform(Y + 0.1))


def test_constant_columns_few_rows_and_one_column():
    Y = rows(n=30)
    Y[:, 1] = 3.0
    for n_components in (1, 2):
        model = UNN(n_components, n_neighbors=5, random_state=0).fit(Y[:5])
        # All rows are neighbours, so their mean is what comes back anywhere.
        np.testing.assert_allclose(model.inverse_transform(model.embedding_)[0], Y[:5].mean(axis=0))
        assert np.isfinite(
            UNN(n_components, random_state=0).fit(Y).jacobian([[1.0] * n_components])
        ).all()
    model = UNN(random_state=0, refine=3).fit(Y[:, :1])
    assert model.objective_ < 0.2 * Y[:, 0].var()


def test_verbose_shows_progress_of_fits_that_last(monkeypatch, capsys):
    monkeypatch.setattr("twofold.optimize.progress.SECONDS_BEFORE_BAR", 0.0)
    monkeypatch.setattr("twofold.optimize.progress.SECONDS_BETWEEN_LINES", 0.0)
    UNN(2, verbose=True, random_state=0).fit(rows(n=300))
    assert "embedding rows" in capsys.readouterr().err
    UNN(2, random_state=0).fit(rows(n=300))
    assert capsys.readouterr().err == ""


def test_interrupted_refinement_keeps_the_embedding(monkeypatch):
    from twofold.unn.continuous import ContinuousPoints

    def interrupt(self, n_sweeps=1, watch=None):
        raise KeyboardInterrupt

    monkeypatch.setattr(ContinuousPoints, "refine", interrupt)
    with pytest.warns(UserWarning, match="best embedding so far is kept"):
        model = UNN(2, random_state=0).fit(rows())
    assert model.stop_reason_ == "interrupted"
    np.testing.assert_array_equal(
        model.embedding_, UNN(2, random_state=0, refine=0).fit(rows()).embedding_
    )


# ---- there and back ---------------------------------------------------------------------------


def test_the_way_back_is_a_mean_of_ranks_left_first():
    Y = rows(n=20)
    model = UNN(n_neighbors=4, random_state=0).fit(Y)
    ordered = Y[np.argsort(model.embedding_[:, 0])]
    images = model.inverse_transform([[10.0], [1.0], [20.0], [10.5], [-7.0]])
    # Rank r is row r - 1; of 8 and 12, as near to 10, the left one.
    for image, window in zip(images, [(7, 11), (0, 4), (16, 20), (8, 12), (0, 4)], strict=True):
        np.testing.assert_allclose(image, ordered[window[0] : window[1]].mean(axis=0))


def test_means_count_rows_by_their_weights():
    Y, weights = rows(n=20), np.arange(1.0, 21.0)
    model = UNN(n_neighbors=3, random_state=0).fit(Y, sample_weight=weights)
    order = np.argsort(model.embedding_[:, 0])[4:7]
    expected = np.average(Y[order], axis=0, weights=weights[order])
    np.testing.assert_allclose(model.inverse_transform([[6.0]])[0], expected)


def test_new_rows_go_to_the_mean_of_their_neighbours_or_better():
    train, new = rows(n=80), rows(seed=5, n=30)
    model = UNN(2, random_state=0).fit(train)
    gaps = ((new[:, None] - train[None]) ** 2).sum(axis=2)
    by_book = model.embedding_[np.argsort(gaps, axis=1)[:, :5]].mean(axis=1)
    errors = ((model.inverse_transform(by_book) - new) ** 2).sum(axis=1)
    assert (-model.score_samples(new) <= errors + 1e-12)[model.in_domain(by_book)].all()
    assert (-model.score_samples(new)).mean() < 0.9 * errors.mean()


def test_places_between_rows_are_found():
    # The mean of rows 1 to 4 is the image of 2.5 alone, which no training point has.
    Y = np.arange(12.0)[:, None] ** 1.5 * np.ones((1, 3))
    model = UNN(n_neighbors=4, shuffle=False, refine=3).fit(Y)
    order = np.argsort(model.embedding_[:, 0])
    middle = Y[order[4:8]].mean(axis=0)
    assert model.score(middle[None]) > -1e-20


@pytest.mark.parametrize("q", [1, 2])
def test_slopes_are_those_of_a_flat_manifold(q):
    rng = np.random.default_rng(0)
    X, slope = rng.normal(size=(60, q)), rng.normal(size=(3, q))
    surface = Surface(X, X @ slope.T + 1, np.ones(60), 4, 1)
    J = surface.slopes(np.concatenate([X[:3], X[:3] + 0.1, np.full((1, q), 9.0)]))
    np.testing.assert_allclose(J, np.broadcast_to(slope, J.shape), atol=1e-9)
    # On a line the plane of slopes has no second direction: none is made up.
    flat = Surface(np.column_stack([X[:, 0], np.zeros(60)]), X @ slope.T, np.ones(60), 4, 1)
    assert not flat.slopes(np.zeros((1, 2)))[:, :, 1].any()


# ---- missing entries --------------------------------------------------------------------------


def test_distances_fill_nothing():
    Y = with_gaps(rows(n=100))
    for n_components in (1, 2):
        model = UNN(n_components, missing="distances", random_state=0).fit(Y)
        assert not hasattr(model, "filled_")
        assert np.isfinite(model.inverse_transform(model.embedding_)).all()
        assert np.isnan(model.data_).sum() == np.isnan(Y).sum()


@pytest.mark.parametrize("missing", ["repair_and_embed", "embed_and_repair"])
@pytest.mark.parametrize("search", ["exhaustive", "greedy", "gaussian"])
def test_filled_rows_keep_what_was_observed(missing, search):
    Y = with_gaps(twofold.datasets.make_random_manifold(120, 2, 6, noise=0.02, random_state=0).Y)
    model = UNN(search=search, missing=missing, random_state=0).fit(Y)
    known = ~np.isnan(model.data_)
    np.testing.assert_array_equal(model.filled_[known], model.data_[known])
    assert np.isfinite(model.filled_).all()
    model.partial_fit(Y[:20] + 0.01)
    assert np.isfinite(model.filled_).all()
    assert model.filled_.shape == model.data_.shape == (140, 6)


def test_kernels_and_whole_embeddings_need_complete_rows():
    Y = with_gaps(rows())
    with pytest.raises(ValueError, match="data_kernel"):
        UNN(missing="distances", data_kernel="rbf").fit(Y)
    with pytest.raises(ValueError, match="complete rows"):
        UNN(missing="distances", search=CMAES()).fit(Y)


# ---- growing ----------------------------------------------------------------------------------


@pytest.mark.parametrize("search", ["exhaustive", "greedy"])
def test_sorted_rows_make_room_for_new_ones(search):
    Y = rows()
    model = UNN(search=search, random_state=0).fit(Y[:40])
    before = np.argsort(model.embedding_[:, 0])
    model.partial_fit(Y[40:])
    ranks = model.embedding_[:, 0]
    np.testing.assert_array_equal(np.sort(ranks), np.arange(1, 61))
    np.testing.assert_array_equal(np.argsort(ranks[:40]), before)


def test_without_shuffling_new_rows_go_on_where_the_old_ones_ended():
    Y = rows()
    for search in ("exhaustive", "greedy"):
        make = UNN(search=search, shuffle=False, refine=0)
        parts = make.fit(Y[:40]).partial_fit(Y[40:]).embedding_
        whole = UNN(search=search, shuffle=False, refine=0).fit(Y).embedding_
        np.testing.assert_array_equal(parts, whole)


def test_continuous_points_stay_where_they_are():
    Y = rows()
    model = UNN(2, random_state=0).fit(Y[:40])
    before = model.embedding_.copy()
    model.partial_fit(np.concatenate([Y[40:], Y[:3]]), sample_weight=[2.0] * 20 + [1.0] * 3)
    np.testing.assert_array_equal(model.embedding_[:40], before)
    np.testing.assert_array_equal(model.embedding_[-3:], before[:3])
    assert model.weights_.sum() == 40 + 2 * 20 + 3


def test_rows_of_weight_zero_go_along():
    Y = rows()
    weights = np.ones(40)
    weights[:5] = 0
    model = UNN(random_state=0).fit(Y[:40], sample_weight=weights)
    model.partial_fit(Y[40:])
    # Where they went, their images are still near what they were: ranks moved, and they did, too.
    errors = ((model.inverse_transform(model.embedding_[:5]) - Y[:5]) ** 2).sum(axis=1)
    assert errors.mean() < ((Y[:5] - Y.mean(axis=0)) ** 2).sum(axis=1).mean()
    assert model.in_domain(model.embedding_[:5]).all()


@pytest.mark.parametrize("search", ["exhaustive", "greedy"])
@pytest.mark.parametrize("q", [2, 3])
def test_rows_of_a_lattice_have_sites_of_their_own(search, q):
    Y = rows()
    model = UNN(q, search=search, random_state=0).fit(Y[:40])
    model.partial_fit(Y[40:])
    np.testing.assert_array_equal(model.embedding_, np.round(model.embedding_))
    assert len(np.unique(model.embedding_, axis=0)) == len(Y)
    assert model.objective_ < 0.8 * Y.var(axis=0).sum()


def test_searches_of_whole_embeddings_do_not_grow():
    assert not hasattr(UNN(search="cma"), "partial_fit")
    assert hasattr(UNN(search="greedy"), "partial_fit")


# ---- what goes wrong --------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"n_components": 0}, "`n_components` must be an integer of at least 1"),
        ({"n_neighbors": 2.5}, "`n_neighbors` must be an integer of at least 1; got 2.5"),
        ({"search": "best"}, "`search` must be 'auto', one of"),
        ({"n_components": 4, "search": "greedy"}, "up to 3 dimensions"),
        ({"loss": "cubic"}, "`loss` must be"),
        ({"power": 0.5}, "`power` must be"),
        ({"data_kernel": "laplacian"}, "`data_kernel` must be"),
        ({"missing": "guess"}, "`missing` must be one of"),
        ({"shuffle": "yes"}, "`shuffle` must be one of"),
        ({"refine": -1}, "`refine` must be 'auto' or an integer of at least 0"),
        ({"refine": "x"}, "`refine` must be 'auto' or an integer of at least 0"),
        ({"refine": None}, "`refine` must be 'auto' or an integer of at least 0"),
        ({"refine": 2, "search": "evolution"}, "changes the whole embedding anyway"),
        ({"verbose": "loud"}, "`verbose` must be True, False or"),
        ({"n_jobs": 0}, "`n_jobs` must be"),
    ],
    ids=str,
)
def test_wrong_parameters_are_explained(options, message):
    with pytest.raises(ValueError, match=message):
        UNN(**options).fit(rows())


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Exhaustive("all"), "`criterion` must be one of"),
        (lambda: Gaussian(0), "`n_candidates` must be an integer of at least 1"),
        (lambda: Gaussian(nearest="far"), "`nearest` must be one of"),
        (lambda: Swarm(0), "`n_steps` must be"),
        (lambda: CMAES(sigma=0), "`sigma` must be"),
        (lambda: get_search(Gaussian, 1, 1), "`search` must be"),
    ],
)
def test_wrong_numbers_of_searches_are_explained(make, message):
    with pytest.raises((TypeError, ValueError), match=message):
        make()


# ---- as a start for others --------------------------------------------------------------------


@pytest.mark.parametrize("n_components", [1, 2])
def test_it_starts_a_kernel_regression(n_components):
    Y = rows(n=60)
    model = UKR(n_components, init="unn", random_state=0, max_iter=20).fit(Y)
    assert model.start_ == "unn"
    assert list(model.starts_) == ["unn"]
    assert model.objective_ < model.starts_["unn"]
