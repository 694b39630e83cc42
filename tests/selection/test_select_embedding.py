"""The estimator that becomes the candidate to trust."""

from __future__ import annotations

import pickle

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.decomposition import PCA
from sklearn.manifold import Isomap
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

import twofold
from twofold.datasets import make_s_triangle
from twofold.selection import SelectEmbedding, compare

BENT = make_s_triangle(180, noise=0.03, random_state=0)
TRAIN, NEW = BENT.Y[:150], BENT.Y[150:]


@pytest.fixture(scope="module")
def model():
    return SelectEmbedding(["pca", "isomap"], n_neighbors=8, random_state=0).fit(TRAIN)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.SkipTestWarning")
@parametrize_with_checks([SelectEmbedding(["pca"])])
def test_scikit_learn_check(estimator, check):
    check(estimator)


@pytest.mark.slow
def test_becomes_the_best_candidate(model):
    assert model.chosen_ == model.recommended_ == "isomap"
    assert list(model.table_.index) == ["isomap", "pca"]
    assert "isomap" in model.reason_
    expected = Isomap(n_neighbors=8).fit_transform(TRAIN)
    np.testing.assert_allclose(np.abs(model.embedding_), np.abs(expected), atol=1e-8)


def test_goes_both_ways(model):
    variance = ((NEW - NEW.mean(axis=0)) ** 2).sum(axis=1).mean()
    assert -model.score(NEW) < 0.05 * variance
    np.testing.assert_array_equal(model.transform(TRAIN), model.embedding_)
    partial = NEW.copy()
    partial[:, 1] = np.nan
    assert np.isfinite(model.complete(partial)).all()
    assert model.in_domain(model.embedding_).mean() > 0.9
    assert model.jacobian(model.embedding_[:4]).shape == (4, 3, 2)
    assert model.sample(5, random_state=0).shape == (5, 3)
    assert model.kernel_regression() is not None
    assert np.isfinite(model.objective_)


def test_chooses_as_compare_does(model):
    again = compare(TRAIN, ["pca", "isomap"], n_neighbors=8)
    assert again.recommended == model.chosen_


def test_a_cloud_is_fitted_but_not_recommended():
    cloud = np.random.default_rng(0).normal(size=(80, 3))
    model = SelectEmbedding(["pca"], n_neighbors=8).fit(cloud)
    assert model.chosen_ == "pca"
    assert model.recommended_ is None
    assert "not a manifold" in model.reason_


def test_missing_entries_and_weights():
    holes = np.random.default_rng(0).random(TRAIN.shape) < 0.05
    holes[:, 0] = False
    weights = np.ones(len(TRAIN))
    weights[:5] = 0
    model = SelectEmbedding(["pca", "isomap"], n_neighbors=8)
    model.fit(np.where(holes, np.nan, TRAIN), sample_weight=weights)
    assert model.chosen_ == "isomap"
    assert np.isfinite(model.embedding_).all()
    assert len(model.latent_) == len(TRAIN) - 5


def test_a_saved_file_holds_the_chosen_model(model, tmp_path):
    named = SelectEmbedding({"flat": PCA(2), "graph": Isomap(n_neighbors=8)})
    named.fit(pd.DataFrame(TRAIN, columns=["a", "b", "c"])).annotate(names=np.arange(150))
    named.save(tmp_path / "m.twofold")
    opened = twofold.load(tmp_path / "m.twofold")
    np.testing.assert_array_equal(opened.embedding_, named.embedding_)
    frame = pd.DataFrame(NEW, columns=["a", "b", "c"])
    np.testing.assert_array_equal(opened.transform(frame), named.transform(frame))
    assert list(opened.feature_names_in_) == ["a", "b", "c"]
    assert opened.notes_.names[7] == "7"


def test_pickles_clones_and_works_in_a_pipeline(model):
    copy = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(copy.transform(NEW), model.transform(NEW))
    assert not hasattr(clone(model), "model_")
    line = make_pipeline(StandardScaler(), clone(model))
    assert line.fit_transform(TRAIN).shape == (150, 2)


def test_candidates_are_checked():
    with pytest.raises(TypeError, match="Compare pictures"):
        SelectEmbedding({"own": BENT.latent[:150]}).fit(TRAIN)
    with pytest.raises(ValueError, match="Known methods"):
        SelectEmbedding(["pka"]).fit(TRAIN)
    with pytest.raises(ValueError, match="make them agree"):
        SelectEmbedding({"line": PCA(1)}).fit(TRAIN)
    with pytest.raises(AttributeError, match="no attribute 'chosen_'"):
        _ = SelectEmbedding().chosen_


def test_a_file_of_another_model_holds_the_chosen_one(model, tmp_path):
    scaled = twofold.Scaled(SelectEmbedding(["pca", "isomap"], n_neighbors=8, random_state=0))
    scaled.fit(TRAIN).save(tmp_path / "m.twofold")
    opened = twofold.load(tmp_path / "m.twofold")
    np.testing.assert_array_equal(opened.embedding_, scaled.embedding_)
    np.testing.assert_array_equal(opened.transform(NEW), scaled.transform(NEW))
    assert type(opened.model_) is type(opened.model) is twofold.UKR


def test_dimensions_and_rows_are_checked():
    with pytest.raises(ValueError, match=r"got 'auto'.*choose_dimension"):
        SelectEmbedding(["pca"], "auto").fit(TRAIN)
    with pytest.raises(ValueError, match="n_neighbors"):
        SelectEmbedding(["pca"], n_neighbors=0).fit(TRAIN)
    with pytest.raises(ValueError, match="distinct row"):
        SelectEmbedding(["tsne"]).fit(np.ones((50, 3)))
