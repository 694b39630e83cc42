from __future__ import annotations

import numpy as np
import pytest
from oracles import kernel_sums as oracle

from twofold import UKR, upgrade
from twofold.kernels import GAUSSIAN
from twofold.losses import Squared
from twofold.ukr.objective import common_scale, scale_each_dimension
from twofold.ukr.upgrade import _neighbor_spread, fit_local_widths

OPTIONS = {"n_jobs": 1, "verbose": False}


def drawn_sheet(n=120, *, noise=0.03, seed=0):
    """Return a picture with its own units and origin, and data that belong to it."""
    rng = np.random.default_rng(seed)
    T = rng.uniform(-1, 1, size=(n, 2))
    Y = np.column_stack([T, T[:, 0] ** 2, np.sin(2 * T[:, 1])])
    return T * np.array([300.0, 20.0]) + np.array([1000.0, -50.0]), Y + noise * rng.normal(
        size=Y.shape
    )


def uneven_picture(n=200, seed=0):
    """Return places that are crowded at one end and sparse at the other."""
    rng = np.random.default_rng(seed)
    t = np.sort(rng.normal(size=n))
    X = np.column_stack([np.exp(2.5 * t), 0.1 * np.exp(2.5 * t) * rng.normal(size=n)])
    Y = np.column_stack([t, np.sin(3 * t), np.cos(3 * t)])
    return X, Y + 0.02 * rng.normal(size=Y.shape)


def loo_error(model):
    """The leave-one-out error of a model at its own bandwidths, from the formula."""
    X = model.latent_ * model.latent_scale_
    widths = getattr(model, "widths_", np.ones(len(X)))
    s = oracle.squared_distances(X, X) / widths**2
    np.fill_diagonal(s, np.inf)
    K = np.exp(-0.5 * (s - s.min(axis=1, keepdims=True)))
    f = K @ model.data_ / K.sum(axis=1, keepdims=True)
    return ((f - model.data_) ** 2).sum(axis=1).mean()


@pytest.mark.parametrize("bandwidth", ["per_dimension", "local"])
def test_the_picture_is_kept_to_the_last_bit(bandwidth):
    X, Y = drawn_sheet()
    model = upgrade(X, Y, bandwidth=bandwidth, **OPTIONS)
    assert isinstance(model, UKR)
    np.testing.assert_array_equal(model.embedding_, X)
    np.testing.assert_array_equal(model.transform(Y), X)


@pytest.mark.parametrize("bandwidth", ["per_dimension", "local"])
def test_the_objective_is_the_leave_one_out_error(bandwidth):
    X, Y = drawn_sheet()
    model = upgrade(X, Y, bandwidth=bandwidth, cutoff=1e-12, **OPTIONS)
    assert model.objective_ == pytest.approx(loo_error(model), rel=1e-6)


@pytest.mark.parametrize("bandwidth", ["per_dimension", "local"])
def test_both_ways_work_on_new_rows(bandwidth):
    X, Y = drawn_sheet(300)
    model = upgrade(X[:200], Y[:200], bandwidth=bandwidth, **OPTIONS)
    places = model.transform(Y[200:])
    unit = X.std(axis=0)
    assert np.abs((places - X[200:]) / unit).mean() < 0.15
    assert model.in_domain(places).all()
    spread = np.square(Y[200:] - Y[:200].mean(axis=0)).sum(axis=1).mean()
    assert np.square(model.inverse_transform(X[200:]) - Y[200:]).sum(axis=1).mean() < 0.05 * spread


def test_bandwidths_do_not_depend_on_the_units_of_the_picture():
    X, Y = drawn_sheet()
    model = upgrade(X, Y, **OPTIONS)
    other = upgrade(1e-3 * X - 5, Y, **OPTIONS)
    np.testing.assert_allclose(other.latent_scale_, 1e3 * model.latent_scale_, rtol=1e-2)
    assert other.objective_ == pytest.approx(model.objective_, rel=1e-3)


@pytest.mark.slow
def test_the_bandwidths_are_near_the_best():
    X, Y = drawn_sheet()
    model = upgrade(X, Y, **OPTIONS)
    factors = np.geomspace(0.5, 2, 9)
    best = min(
        oracle.reconstruction(GAUSSIAN, X * model.latent_scale_ * (a, b), Y, True)[0]
        for a in factors
        for b in factors
    )
    assert model.objective_ < 1.05 * best


def test_local_bandwidths_serve_uneven_pictures():
    X, Y = uneven_picture()
    even = upgrade(X, Y, **OPTIONS)
    local = upgrade(X, Y, bandwidth="local", **OPTIONS)
    assert local.objective_ < 0.5 * even.objective_
    assert loo_error(local) < 0.5 * loo_error(even)
    crowded = X[:, 0] < np.median(X[:, 0])
    assert local.widths_[crowded].max() < np.median(local.widths_[~crowded])


@pytest.mark.parametrize("seed", range(5))
def test_local_bandwidths_are_never_worse(seed):
    for X, Y in (drawn_sheet(80, noise=0.2, seed=seed), uneven_picture(80, seed=seed)):
        even = upgrade(X, Y, **OPTIONS)
        assert upgrade(X, Y, bandwidth="local", **OPTIONS).objective_ <= even.objective_ * (
            1 + 1e-9
        )


def test_local_bandwidths_find_the_best_common_one():
    # From a picture in kernel units that are far too wide or too narrow, the width is recovered.
    X, Y = drawn_sheet()
    problem = upgrade(X, Y, **OPTIONS)._pose(Y, np.ones(len(Y)), Squared())
    objective = problem.reconstruction(cross_validated=True)
    scaled, best = scale_each_dimension(*common_scale(X, objective), objective)
    for factor in (0.5, 2.0):
        _, error = fit_local_widths(problem, scaled * factor)
        assert error < 1.05 * best


def test_neighbour_spread_is_relative_and_bounded():
    X = np.concatenate([np.linspace(0, 1, 50), np.linspace(100, 1e6, 20)])[:, None]
    spread = _neighbor_spread(X)
    assert np.median(spread) == pytest.approx(1)
    assert spread.min() >= 0.05
    assert spread.max() == 20
    np.testing.assert_array_equal(_neighbor_spread(np.zeros((30, 2))), 0.05)


def test_refining_lowers_the_error():
    X, Y = drawn_sheet()
    kept = upgrade(X, Y, **OPTIONS)
    refined = upgrade(X, Y, refine=True, max_iter=30, **OPTIONS)
    assert refined.objective_ < 0.9 * kept.objective_
    assert loo_error(refined) == pytest.approx(refined.objective_, rel=1e-3)
    # The picture is still the user's: same units, same origin, points near their places.
    unit = X.std(axis=0)
    assert np.abs((refined.embedding_ - X) / unit).mean() < 0.5


def test_single_precision():
    X, Y = drawn_sheet()
    model = upgrade(X.astype(np.float32), Y.astype(np.float32), **OPTIONS)
    assert model.embedding_.dtype == np.float32
    np.testing.assert_array_equal(model.embedding_, X.astype(np.float32))
    assert model.inverse_transform(X[:3]).dtype == np.float32
    assert model.objective_ == pytest.approx(upgrade(X, Y, **OPTIONS).objective_, rel=0.02)


def test_pictures_in_single_precision_are_kept():
    X, Y = drawn_sheet()
    model = upgrade(X.astype(np.float32), Y, **OPTIONS)
    np.testing.assert_array_equal(model.embedding_, X.astype(np.float32))


@pytest.mark.parametrize("bandwidth", ["per_dimension", "local"])
def test_missing_values(bandwidth):
    X, Y = drawn_sheet()
    rng = np.random.default_rng(1)
    gaps = rng.random(Y.shape) < 0.15
    gaps[gaps.all(axis=1)] = False
    model = upgrade(X, np.where(gaps, np.nan, Y), bandwidth=bandwidth, **OPTIONS)
    np.testing.assert_array_equal(model.embedding_, X)
    found = model.inverse_transform(X)
    error = np.square(found - Y)[gaps].mean()
    assert error < 0.1 * np.square(Y - Y.mean(axis=0))[gaps].mean()


def test_equal_rows_may_lie_in_different_places():
    X, Y = drawn_sheet(40)
    Y[1] = Y[0]
    model = upgrade(X, Y, **OPTIONS)
    np.testing.assert_array_equal(model.embedding_, X)


def test_lists_will_do():
    X, Y = drawn_sheet(40)
    model = upgrade(X.tolist(), Y.tolist(), **OPTIONS)
    np.testing.assert_array_equal(model.embedding_, X)


@pytest.mark.parametrize("refine", [False, True])
@pytest.mark.parametrize("n_places", [39, 41])
def test_every_row_needs_its_place(refine, n_places):
    X, Y = drawn_sheet(41)
    with pytest.raises(ValueError, match=f"embedding has {n_places} rows and Y has 40"):
        upgrade(X[:n_places], Y[:40], refine=refine, **OPTIONS)


def test_bad_arguments_are_refused():
    X, Y = drawn_sheet(40)
    with pytest.raises(ValueError, match=r"'per_dimension', 'local'.*got 'global'"):
        upgrade(X, Y, bandwidth="global")
    with pytest.raises(ValueError, match="refine=True"):
        upgrade(X, Y, bandwidth="local", refine=True)
    with pytest.raises(ValueError, match="embedding contains NaN"):
        upgrade(np.full_like(X, np.nan), Y)
    with pytest.raises(ValueError, match=r"1 row\(s\) have no observed entry"):
        upgrade(X, np.where(np.arange(40)[:, None] == 5, np.nan, Y))
    with pytest.raises(ValueError, match="kink"):
        upgrade(X, Y, kernel="epanechnikov")


def test_equal_rows_in_different_places_are_placed_at_the_first():
    rng = np.random.default_rng(0)
    Y, picture = rng.normal(size=(40, 3)), rng.normal(size=(40, 2))
    Y[30] = Y[10]
    model = upgrade(picture, Y)
    np.testing.assert_array_equal(model.embedding_, picture)
    placed = model.transform(Y)
    np.testing.assert_array_equal(np.delete(placed, 30, axis=0), np.delete(picture, 30, axis=0))
    np.testing.assert_array_equal(placed[30], picture[10])


@pytest.mark.parametrize("size", [1e160, 1e300])
def test_pictures_whose_squares_overflow_are_refused(size):
    rng = np.random.default_rng(0)
    picture = rng.normal(size=(40, 2))
    picture[3, 1] = size
    with pytest.raises(ValueError, match=r"1 row\(s\) have entries beyond 1e\+140 \(first: row 3"):
        upgrade(picture, rng.normal(size=(40, 3)))


@pytest.mark.parametrize(
    ("given", "words"), [("tsne", "'tsne'"), (UKR(), "type UKR"), (UKR, "type ABCMeta"), (3, "int")]
)
def test_what_is_no_picture_is_to_be_drawn_first(given, words):
    with pytest.raises(TypeError, match=f"array of places.*{words}.*fit_transform"):
        upgrade(given, np.ones((40, 3)))
