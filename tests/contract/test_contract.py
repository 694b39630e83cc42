"""What every two-way model must do; families are listed in `families.py`."""

from __future__ import annotations

import pickle
from functools import cache

import numpy as np
import pandas as pd
import polars as pl
import pytest
from families import FAMILIES, Family
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils import get_tags

import twofold
from twofold.contract import TwoWayModel
from twofold.datasets import make_random_manifold

# By default variants of a family take only those tests that their options are most likely to break.
ALSO_OF_VARIANTS = (
    "test_jacobian_is_the_derivative",
    "test_saved_and_opened_again",
)


def pytest_generate_tests(metafunc):
    of_variants = metafunc.function.__name__ in ALSO_OF_VARIANTS
    marks = {True: () if of_variants else pytest.mark.slow, False: ()}
    families = [pytest.param(f, marks=marks[f.is_variant], id=f.name) for f in FAMILIES]
    metafunc.parametrize("family", families)


DATA = make_random_manifold(160, 2, 6, noise=0.02, random_state=0)
AS_DRAWN = DATA.Y.copy()
DATA.Y.setflags(write=False)
TRAIN, NEW = DATA.Y[:120], DATA.Y[120:]


@cache
def fitted(name: str):
    family = next(family for family in FAMILIES if family.name == name)
    return family.make().fit(TRAIN)


def variance(Y: np.ndarray) -> float:
    return float(((Y - TRAIN.mean(axis=0)) ** 2).sum(axis=1).mean())


def error_of(model, Y: np.ndarray) -> float:
    """Return the mean squared error of reconstructions, whatever the model scores by."""
    return float(((model.reconstruct(Y) - Y) ** 2).sum(axis=1).mean())


def takes_missing(model) -> bool:
    return bool(get_tags(model).input_tags.allow_nan)


def with_holes(Y: np.ndarray, share: float, seed: int = 0) -> np.ndarray:
    holes = np.random.default_rng(seed).random(Y.shape) < share
    holes[np.arange(len(Y)), np.arange(len(Y)) % Y.shape[1]] = False
    return np.where(holes, np.nan, Y)


def test_learns_the_manifold(family: Family):
    model = fitted(family.name)
    assert error_of(model, NEW) < 0.35 * variance(NEW)


def test_fitted_attributes(family: Family):
    model = fitted(family.name)
    q = model.latent_.shape[1]
    assert model.embedding_.shape == (len(TRAIN), q)
    assert np.isfinite(model.embedding_).all()
    assert model.n_features_in_ == TRAIN.shape[1]
    assert np.isfinite(model.objective_)
    assert isinstance(model.stop_reason_, str)
    assert model.n_iter_ >= 0
    assert len(model.history_) >= 1


def test_shapes_and_dtypes(family: Family):
    model = fitted(family.name)
    q = model.latent_.shape[1]
    X = model.transform(NEW)
    assert X.shape == (len(NEW), q)
    assert model.inverse_transform(X).shape == NEW.shape
    assert model.jacobian(X).shape == (len(NEW), NEW.shape[1], q)
    assert model.magnification(X).shape == (len(NEW),)
    assert model.density(X).shape == (len(NEW),)
    assert model.in_domain(X).dtype == bool
    assert model.score_samples(NEW).shape == (len(NEW),)


def test_training_rows_keep_their_place(family: Family):
    model = fitted(family.name)
    np.testing.assert_array_equal(model.transform(TRAIN), model.embedding_)


def test_rows_alone_equal_rows_together(family: Family):
    model = fitted(family.name)
    together = model.transform(NEW)
    alone = np.concatenate([model.transform(row[None]) for row in NEW])
    np.testing.assert_array_equal(alone, together)
    images = np.concatenate([model.inverse_transform(x[None]) for x in together])
    np.testing.assert_array_equal(images, model.inverse_transform(together))


def test_reconstruct_is_the_round_trip(family: Family):
    model = fitted(family.name)
    np.testing.assert_array_equal(
        model.reconstruct(NEW), model.inverse_transform(model.transform(NEW))
    )
    assert model.score(NEW) == pytest.approx(model.score_samples(NEW).mean())
    if family.scores_in_data_space:
        errors = ((model.reconstruct(NEW) - NEW) ** 2).sum(axis=1)
        np.testing.assert_allclose(model.score_samples(NEW), -errors)


def test_projection_is_not_worse_than_the_nearest_training_reconstruction(family: Family):
    if not family.scores_in_data_space:
        pytest.skip("this family projects in another space")
    model = fitted(family.name)
    images = model.inverse_transform(model.embedding_)
    nearest = ((NEW[:, None] - images[None]) ** 2).sum(axis=2).min(axis=1)
    assert (-model.score_samples(NEW) <= nearest * (1 + 1e-9)).all()


def test_projections_lie_in_the_domain(family: Family):
    model = fitted(family.name)
    assert model.in_domain(model.transform(NEW)).all()
    assert model.in_domain(model.embedding_).all()
    far = model.embedding_.max(axis=0) + 100 * np.ptp(model.embedding_, axis=0)
    assert not model.in_domain(far[None])[0]
    assert np.isfinite(model.inverse_transform(far[None])).all()


def test_complete_fills_only_what_is_missing(family: Family):
    model = fitted(family.name)
    np.testing.assert_array_equal(model.complete(NEW), NEW)
    partial = with_holes(NEW, 0.25)
    if not takes_missing(model) and not family.fills_only:
        with pytest.raises(ValueError, match="complete rows"):
            model.complete(partial)
        return
    filled = model.complete(partial)
    known = ~np.isnan(partial)
    np.testing.assert_array_equal(filled[known], NEW[known])
    error = ((filled - NEW)[~known] ** 2).mean()
    by_mean = ((TRAIN.mean(axis=0) - NEW)[~known] ** 2).mean()
    assert error < 0.7 * by_mean


def test_fits_with_missing_entries(family: Family):
    model = family.make()
    if not takes_missing(model):
        with pytest.raises(ValueError, match=r"of 120 have missing entries \(NaN\)"):
            model.fit(with_holes(TRAIN, 0.15))
        return
    model.fit(with_holes(TRAIN, 0.15))
    assert np.isfinite(model.embedding_).all()
    assert error_of(model, NEW) < 0.45 * variance(NEW)


def test_missing_rows_and_columns_are_named(family: Family):
    Y = TRAIN.copy()
    Y[7] = np.nan
    with pytest.raises(ValueError, match=r"1 row\(s\) have no observed entry \(first: row 7\)"):
        family.make().fit(Y)
    with pytest.raises(ValueError, match="row 0"):
        fitted(family.name).transform(np.full((1, 6), np.nan))
    Y = pd.DataFrame(TRAIN, columns=list("abcdef"))
    Y["c"] = np.nan
    with pytest.raises(
        ValueError, match=r"column\(s\) have no observed entry \(first: column 'c'\)"
    ):
        family.make().fit(Y)


def test_jacobian_is_the_derivative(family: Family):
    if not family.smooth:
        pytest.skip("the way back of this family has steps")
    model = fitted(family.name)
    X = model.embedding_[::10]
    J = model.jacobian(X)
    step = 1e-4 * np.ptp(model.embedding_)
    for m in range(X.shape[1]):
        shift = step * np.eye(X.shape[1])[m]
        slope = (model.inverse_transform(X + shift) - model.inverse_transform(X - shift)) / (
            2 * step
        )
        np.testing.assert_allclose(J[:, :, m], slope, atol=1e-3 * np.abs(J).max())
    metric = np.einsum("mdq,mdr->mqr", J, J)
    np.testing.assert_allclose(model.magnification(X) ** 2, np.linalg.det(metric), rtol=1e-8)


@pytest.mark.parametrize("spread", ["density", "uniform"])
def test_samples_lie_near_the_data(family: Family, spread: str):
    model = fitted(family.name)
    if spread == "uniform" and model.latent_.shape[1] > 3:
        pytest.skip("evenly drawn points hardly ever meet a domain of so many dimensions")
    new = model.sample(50, random_state=0, spread=spread)
    assert new.shape == (50, 6)
    assert model.sample(spread=spread).shape == (1, 6)
    np.testing.assert_array_equal(new, model.sample(50, random_state=0, spread=spread))
    distance = ((new[:, None] - TRAIN[None]) ** 2).sum(axis=2).min(axis=1)
    assert np.median(distance) < 0.2 * variance(TRAIN)
    with pytest.raises(ValueError, match="at least 1"):
        model.sample(0)
    with pytest.raises(ValueError, match="'even'"):
        model.sample(3, spread="even")


def test_duplicates_are_weights(family: Family):
    twice = np.concatenate([TRAIN, TRAIN[:40]])
    weights = np.ones(len(TRAIN))
    weights[:40] = 2
    a = family.make().fit(twice)
    b = family.make().fit(TRAIN, sample_weight=weights)
    np.testing.assert_array_equal(a.embedding_[: len(TRAIN)], b.embedding_)
    np.testing.assert_array_equal(a.embedding_[len(TRAIN) :], b.embedding_[:40])
    assert a.objective_ == b.objective_


def test_row_order_does_not_matter(family: Family):
    order = np.random.default_rng(1).permutation(len(TRAIN))
    shuffled = family.make().fit(TRAIN[order])
    np.testing.assert_array_equal(shuffled.embedding_, fitted(family.name).embedding_[order])


def test_rows_of_weight_zero_take_no_part(family: Family):
    weights = np.ones(len(DATA.Y))
    weights[120:] = 0
    model = family.make().fit(DATA.Y, sample_weight=weights)
    np.testing.assert_array_equal(model.embedding_[:120], fitted(family.name).embedding_)
    np.testing.assert_array_equal(model.embedding_[120:], fitted(family.name).transform(NEW))
    with pytest.raises(ValueError, match="at least one non-zero"):
        family.make().fit(TRAIN, sample_weight=np.zeros(len(TRAIN)))


def test_same_seed_same_result_on_any_number_of_threads(family: Family):
    results = []
    for n_jobs in (1, 2):
        model = family.make_with(n_jobs=n_jobs).fit(TRAIN)
        results.append((model.embedding_, model.transform(NEW), model.reconstruct(NEW)))
    for one, other in zip(*results, strict=True):
        np.testing.assert_array_equal(one, other)


def test_float32_stays_float32(family: Family):
    model = family.make().fit(TRAIN.astype(np.float32))
    assert model.embedding_.dtype == np.float32
    X = model.transform(NEW.astype(np.float32))
    assert X.dtype == np.float32
    assert model.inverse_transform(X).dtype == np.float32
    assert error_of(model, NEW.astype(np.float32)) < 0.4 * variance(NEW)


def plain(parameters: dict) -> dict:
    return {k: v for k, v in parameters.items() if not isinstance(v, TwoWayModel)}


def test_saved_and_opened_again(family: Family, tmp_path):
    model = fitted(family.name)
    path = tmp_path / "model.twofold"
    model.save(path)
    again = twofold.load(path)
    assert type(again) is type(model)
    assert plain(again.get_params()) == plain(model.get_params())
    np.testing.assert_array_equal(again.transform(NEW), model.transform(NEW))
    np.testing.assert_array_equal(again.embedding_, model.embedding_)
    np.testing.assert_array_equal(again.score_samples(NEW), model.score_samples(NEW))
    if takes_missing(model):
        partial = with_holes(NEW, 0.2)
        np.testing.assert_array_equal(again.complete(partial), model.complete(partial))
    assert again.domain_threshold_ == model.domain_threshold_
    assert again.objective_ == model.objective_


def test_pickle_and_clone(family: Family):
    model = fitted(family.name)
    again = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(again.transform(NEW), model.transform(NEW))
    fresh = clone(model)
    with pytest.raises(NotFittedError):
        fresh.transform(NEW)
    with pytest.raises(NotFittedError):
        fresh.save("nowhere")


def test_tables_in_tables_out(family: Family):
    names = [f"pixel {k}" for k in range(6)]
    frame = pd.DataFrame(TRAIN, columns=names)
    model = family.make().set_output(transform="pandas")
    out = model.fit_transform(frame)
    assert list(model.feature_names_in_) == names
    q = model.latent_.shape[1]
    stem = type(model).__name__.lower()
    assert list(model.get_feature_names_out()) == [f"{stem}{m}" for m in range(q)]
    assert isinstance(out, pd.DataFrame)
    assert list(out.columns) == [f"{stem}{m}" for m in range(q)]
    np.testing.assert_array_equal(out.to_numpy(), fitted(family.name).embedding_)
    polar = pl.DataFrame(TRAIN, schema=names)
    np.testing.assert_array_equal(model.transform(polar), model.embedding_)
    with pytest.raises(ValueError, match="feature names"):
        model.transform(frame.rename(columns={"pixel 0": "other"}))


def test_works_in_pipelines_and_grid_search(family: Family):
    pipeline = make_pipeline(StandardScaler(), family.make())
    X = pipeline.fit_transform(TRAIN)
    back = pipeline.inverse_transform(X)
    assert ((back - TRAIN) ** 2).sum() < 0.4 * ((TRAIN - TRAIN.mean(axis=0)) ** 2).sum()
    parameter, values = family.tunable
    name = family.prefix + parameter
    search = GridSearchCV(family.make(), {name: values}, cv=2, refit=False).fit(TRAIN[:80])
    assert search.best_params_[name] in values
    assert search.best_score_ < 0


def test_input_is_not_changed(family: Family):
    fitted(family.name).transform(NEW)  # neither can be written to
    np.testing.assert_array_equal(DATA.Y, AS_DRAWN)


BAD_INPUT = {
    "strings": (np.array([["a", "b", "c"]] * 9), "could not convert"),
    "infinity": (np.where(np.eye(9, 6) > 0, np.inf, 1.0), "infinity"),
    "one row": (TRAIN[:1], "minimum of 2 is required|1 sample"),
    "flat": (TRAIN[0], "2D array"),
    "constant": (np.ones((30, 6)), "distinct|constant"),
    "copies": (np.repeat(TRAIN[:2], 20, axis=0), r"2 distinct row\(s\) among 40 samples"),
    "few rows": (TRAIN[:2], "distinct rows"),
    "three axes": (np.ones((4, 3, 2)), "dim 3"),
}


@pytest.mark.cover(1)
@pytest.mark.parametrize("case", BAD_INPUT)
def test_bad_input_is_explained(family: Family, case: str):
    Y, message = BAD_INPUT[case]
    with pytest.raises(ValueError, match=message):
        family.make().fit(Y)


def test_too_many_components_are_explained(family: Family):
    if family.spectral:
        pytest.skip("feature space has more dimensions than the data")
    with pytest.raises(ValueError, match=r"7,? (is )?more than the 6 feature\(s\)"):
        family.make_with(**family.dimensions(7)).fit(TRAIN)


def test_wrong_latent_shape_is_explained(family: Family):
    with pytest.raises(ValueError, match="Expected latent points with"):
        fitted(family.name).inverse_transform(NEW)
    with pytest.raises(ValueError, match="NaN"):
        fitted(family.name).inverse_transform(
            np.full((1, fitted(family.name).latent_.shape[1]), np.nan)
        )


def test_partial_fit_takes_new_rows_in(family: Family):
    model = pickle.loads(pickle.dumps(fitted(family.name)))
    if not hasattr(model, "partial_fit"):
        pytest.skip("this family cannot")
    if not family.can_grow:
        with pytest.raises(ValueError, match="cannot take in new rows"):
            model.partial_fit(NEW[:30])
        np.testing.assert_array_equal(model.transform(NEW), fitted(family.name).transform(NEW))
        return
    before = model.score(NEW[30:])
    model = family.make().partial_fit(TRAIN)
    np.testing.assert_array_equal(model.embedding_, fitted(family.name).embedding_)
    model.partial_fit(NEW[:30])
    assert model.embedding_.shape[0] == len(TRAIN) + 30
    np.testing.assert_array_equal(model.transform(NEW[:30]), model.embedding_[len(TRAIN) :])
    assert model.score(NEW[30:]) > 2 * before
