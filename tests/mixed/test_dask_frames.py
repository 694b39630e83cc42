"""Mixed tables as data frames of dask: the table of the same rows in memory."""

from __future__ import annotations

import warnings

import numpy as np
import pandas as pd
import pytest
from mixed.test_mixed import QUICK, make_table

from twofold import UKR, Mixed, load
from twofold.mixed import UnknownLevelWarning
from twofold.ukr import estimator

dask = pytest.importorskip("dask", reason="tables of dask need dask")
dd = pytest.importorskip("dask.dataframe", reason="data frames of dask need pyarrow")
da = pytest.importorskip("dask.array")


@pytest.fixture(autouse=True)
def _no_threads():
    with dask.config.set({"scheduler": "synchronous", "dataframe.convert-string": False}):
        yield


@pytest.fixture(scope="module")
def table() -> pd.DataFrame:
    return make_table()


@pytest.fixture(scope="module")
def gappy(table) -> pd.DataFrame:
    found, rng = table.copy(), np.random.default_rng(1)
    for name in ("length", "size", "colour", "when"):
        found.loc[rng.random(len(found)) < 0.1, name] = None
    return found


@pytest.fixture(scope="module")
def model(table) -> Mixed:
    return Mixed(UKR(**QUICK)).fit(table)


def lazily(frame: pd.DataFrame) -> object:
    return dd.from_pandas(frame, npartitions=4, sort=False)


@pytest.mark.parametrize("name", ["reconstruct", "complete"])
def test_tables_come_back_in_their_types(model, gappy, name):
    found, wanted = getattr(model, name)(lazily(gappy)), getattr(model, name)(gappy)
    assert list(found.columns) == list(gappy.columns)
    assert [str(kind) for kind in found.dtypes] == [str(kind) for kind in wanted.dtypes]
    pd.testing.assert_frame_equal(found.compute(), wanted)


def test_places_and_scores_are_answered(model, gappy):
    with warnings.catch_warnings():
        warnings.simplefilter("error", UnknownLevelWarning)
        places, scores = model.transform(lazily(gappy)), model.score_samples(lazily(gappy))
    np.testing.assert_array_equal(places.compute(), model.transform(gappy))
    np.testing.assert_array_equal(scores.compute(), model.score_samples(gappy))
    for name in ("density", "in_domain"):
        wanted = getattr(model, name)(model.transform(gappy))
        np.testing.assert_array_equal(getattr(model, name)(places).compute(), wanted)
    wanted = model.inverse_transform(model.transform(gappy))
    for given in (places, da.from_array(model.transform(gappy), chunks=(50, 2))):
        found = model.inverse_transform(given)
        assert list(found.columns) == list(wanted.columns)
        computed = found.compute()
        pd.testing.assert_frame_equal(computed.reset_index(drop=True), wanted)


def test_what_needs_tables_in_memory_is_refused(model, gappy):
    frame = lazily(gappy)
    with pytest.raises(ValueError, match=r"return_probabilities.*complete\(X\.partitions"):
        model.complete(frame, return_probabilities=True)
    with pytest.raises(ValueError, match="intervals"):
        model.intervals(frame)
    for name in ("transform", "reconstruct", "complete"):
        with pytest.raises(ValueError, match="lacks 1 of"):
            getattr(model, name)(frame.drop(columns="price"))
        with pytest.raises(TypeError, match="from_dask_array"):
            getattr(model, name)(da.zeros((40, 3), chunks=(10, 3)))
        with pytest.raises(ValueError, match="1 dimension"):
            getattr(model, name)(frame["price"])
    with pytest.raises(ValueError, match="latent points with 2 columns"):
        model.inverse_transform(da.zeros((40, 3), chunks=(10, 3)))
    with pytest.raises(TypeError, match=r"twofold\.Scaled"):
        Mixed(UKR(landmarks=10)).fit(da.zeros((40, 3), chunks=(10, 3)))


def test_a_fit_by_landmarks_is_that_of_a_table_in_memory(gappy, tmp_path):
    make = {**QUICK, "landmarks": 30}
    wanted = Mixed(UKR(**make)).fit(gappy)
    found = Mixed(UKR(**make)).fit(lazily(gappy))
    assert isinstance(found.embedding_, da.Array)
    np.testing.assert_array_equal(found.embedding_.compute(), wanted.embedding_)
    np.testing.assert_array_equal(found.data_, wanted.data_)
    assert found.left_out_ == wanted.left_out_
    found.save(tmp_path / "mixed.twofold")
    again = load(tmp_path / "mixed.twofold")
    pd.testing.assert_frame_equal(again.complete(gappy), wanted.complete(gappy))


def test_a_sample_decides_about_the_columns(table, monkeypatch):
    monkeypatch.setattr(estimator, "MOST_ROWS", 100)
    monkeypatch.setattr("twofold.ukr.landmark_fitting.ROWS_PER_LANDMARK", 3)
    few = [Mixed(UKR(**QUICK, landmarks=20)).fit(dd.from_pandas(table, npartitions=n, sort=False))
           for n in (2, 5)]  # fmt: skip
    assert [str(column) for column in few[0].columns_] == [str(c) for c in few[1].columns_]
    np.testing.assert_array_equal(few[0].center_, few[1].center_)
    np.testing.assert_array_equal(few[0].embedding_.compute(), few[1].embedding_.compute())
    assert len(few[0].embedding_) == len(table)
    whole = Mixed(UKR(**QUICK, landmarks=20)).fit(table)
    assert not np.array_equal(few[0].center_, whole.center_)


def test_a_sample_of_few_different_rows_has_all_of_them(monkeypatch):
    monkeypatch.setattr(estimator, "MOST_ROWS", 100)
    monkeypatch.setattr("twofold.ukr.landmark_fitting.ROWS_PER_LANDMARK", 3)
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({name: rng.choice(["no", "yes", "both"], 2000) for name in "abc"})
    model = Mixed(UKR(**QUICK, landmarks=10)).fit(lazily(frame))
    assert all(sorted(column.levels) == ["both", "no", "yes"] for column in model.columns_)


def test_other_models_load_the_rows(gappy):
    found = Mixed(UKR(**QUICK)).fit(lazily(gappy))
    np.testing.assert_array_equal(found.embedding_, Mixed(UKR(**QUICK)).fit(gappy).embedding_)
