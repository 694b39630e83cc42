"""Fits to tables of dask: the model of one machine, rows that stay where they lie."""

from __future__ import annotations

import pickle

import numpy as np
import pandas as pd
import pytest
from same_models import assert_same
from ukr.ribbons import NAMES, ribbon

import twofold.ukr.estimator as estimator
from twofold import UKR, UNN, KernelPCA, Scaled, load
from twofold.contract import spread_fitting
from twofold.losses import Huber
from twofold.tables import dask_tables

dask = pytest.importorskip("dask", reason="tables of dask need dask")
da = pytest.importorskip("dask.array")
dd = pytest.importorskip("dask.dataframe", reason="data frames of dask need pyarrow")

# What a model of a table of dask keeps for the rows of its sample only.
OF_ROWS = ("embedding_", "member_", "row_weights_")


def settings(**given: object) -> dict[str, object]:
    return {"landmarks": 40, "random_state": 0, "max_iter": 6, "init": "pca", **given}


@pytest.fixture(autouse=True)
def _no_threads():
    with dask.config.set(scheduler="synchronous"):
        yield


@pytest.mark.usefixtures("most")
@pytest.mark.parametrize("cut", [(97, 3), (700, 1), (40, 2)])
def test_an_array_gives_the_bits_of_a_table_in_memory(cut):
    Y = ribbon()
    wanted = UKR(**settings()).fit(Y)
    model = UKR(**settings()).fit(da.from_array(Y, chunks=cut))
    assert isinstance(model.embedding_, da.Array)
    np.testing.assert_array_equal(model.embedding_.compute(), wanted.embedding_)
    assert_same(model, wanted, apart_from=OF_ROWS)


@pytest.mark.usefixtures("most")
def test_a_data_frame_keeps_names_and_types():
    frame = pd.DataFrame(ribbon().astype(np.float32), columns=NAMES)
    wanted = UKR(**settings()).fit(frame)
    model = UKR(**settings()).fit(dd.from_pandas(frame, npartitions=5))
    np.testing.assert_array_equal(model.embedding_.compute(), wanted.embedding_)
    assert model.embedding_.dtype == np.float32
    assert list(model.feature_names_in_) == NAMES
    assert_same(model, wanted, apart_from=OF_ROWS)


@pytest.mark.usefixtures("most")
@pytest.mark.parametrize("kind", ["numpy", "dask"])
def test_weights_count_as_they_do_in_memory(kind):
    Y = ribbon()
    weights = np.random.default_rng(1).integers(0, 4, len(Y)).astype(float)
    wanted = UKR(**settings()).fit(Y, sample_weight=weights)
    given = weights if kind == "numpy" else da.from_array(weights, chunks=50)
    model = UKR(**settings()).fit(da.from_array(Y, chunks=(97, 3)), sample_weight=given)
    np.testing.assert_array_equal(model.embedding_.compute(), wanted.embedding_)
    assert_same(model, wanted, apart_from=OF_ROWS)
    assert model.to_file().arrays["row_weights_"].sum() == pytest.approx(weights.sum())


@pytest.mark.usefixtures("most")
def test_scaled_columns_are_scaled_where_they_lie():
    Y = ribbon() * [1, 100, 0.01]
    wanted = Scaled(UKR(**settings())).fit(Y)
    model = Scaled(UKR(**settings())).fit(da.from_array(Y, chunks=(97, 3)))
    np.testing.assert_array_equal(model.embedding_.compute(), wanted.embedding_)
    np.testing.assert_array_equal(model.center_, wanted.center_)
    assert_same(model.model_, wanted.model_, apart_from=OF_ROWS)


def test_parts_send_their_share_of_the_sample_and_no_more(monkeypatch):
    monkeypatch.setattr(estimator, "MOST_ROWS", 300)
    sent = []
    whole = spread_fitting._look

    def look(*given):
        seen = whole(*given)
        sent.append(0 if seen.sample is None else len(seen.sample.Y))
        return seen

    monkeypatch.setattr(spread_fitting, "_look", look)
    rows = np.random.default_rng(0).normal(size=(6000, 3))
    UKR(**settings(landmarks=10, max_iter=1)).fit(da.from_array(rows, chunks=(500, 3)))
    assert len(sent) == 12
    assert 300 <= sum(sent) < 500


def test_copies_do_not_leave_the_sample_short(monkeypatch):
    monkeypatch.setattr(estimator, "MOST_ROWS", 300)
    Y = np.tile(ribbon(200), (20, 1))
    wanted = UKR(**settings(landmarks=10)).fit(Y)
    model = UKR(**settings(landmarks=10)).fit(da.from_array(Y, chunks=(777, 3)))
    assert_same(model, wanted, apart_from=OF_ROWS)
    np.testing.assert_array_equal(model.embedding_.compute(), wanted.embedding_)


@pytest.mark.usefixtures("most")
def test_a_file_holds_the_places_of_the_sample(tmp_path):
    Y = ribbon()
    model = UKR(**settings()).fit(da.from_array(Y, chunks=(97, 3)))
    model.annotate(names=[str(j) for j in range(len(Y))], image_shape=(1, 3))
    model.save(tmp_path / "model.twofold")
    for other in (load(tmp_path / "model.twofold"), pickle.loads(pickle.dumps(model))):
        assert isinstance(other.embedding_, np.ndarray)
        everywhere = {tuple(x) for x in model.embedding_.compute().tolist()}
        assert {tuple(x) for x in other.embedding_.tolist()} <= everywhere
        assert len(other.embedding_) == len(other.member_) <= len(Y)
        assert other.notes_.names is None
        assert other.notes_.image_shape == (1, 3)
        np.testing.assert_array_equal(other.transform(Y), model.transform(Y))


def test_new_rows_are_taken_in_beside_the_sample():
    Y = ribbon()
    Y = Y[np.sort(np.unique(Y, axis=0, return_index=True)[1])]
    new = ribbon(50, seed=7)[6:]
    wanted = UKR(**settings()).fit(Y).partial_fit(new)
    model = UKR(**settings()).fit(da.from_array(Y, chunks=(97, 3))).partial_fit(new)
    # Sums over the same rows, in the order of their hashes.
    np.testing.assert_allclose(model.data_, wanted.data_, rtol=1e-6, atol=1e-8)
    assert len(model.embedding_) == len(Y) + len(new)


def test_parts_may_be_empty_and_sizes_unknown():
    Y = ribbon()
    rows = da.from_array(Y, chunks=(97, 3))
    some = rows[da.from_array(Y[:, 2] > 0.5, chunks=97) & (da.arange(700, chunks=97) > 120)]
    wanted = UKR(**settings()).fit(some.compute())
    model = UKR(**settings()).fit(some)
    np.testing.assert_array_equal(model.embedding_.compute(), wanted.embedding_)


def test_models_of_all_rows_load_them(monkeypatch):
    Y = ribbon(60)[6:]
    rows = da.from_array(Y, chunks=(13, 3))
    for make in (
        lambda: UKR(max_iter=3, init="pca"),
        lambda: UKR(**settings(landmarks=10, loss=Huber(trim=3.0))),
        lambda: UNN(random_state=0),
        lambda: KernelPCA(landmarks=20, random_state=0),
    ):
        np.testing.assert_array_equal(make().fit_transform(rows), make().fit_transform(Y))
    monkeypatch.setattr("twofold.tables.chunks.available", lambda: 1000)
    with pytest.raises(MemoryError, match=r"54 rows and 3 columns.*landmarks='auto'"):
        UKR().fit(rows)


@pytest.mark.parametrize(
    ("spoil", "words"),
    [
        (lambda Y: Y.__setitem__(130, np.nan), "first: row 130"),
        (lambda Y: Y.__setitem__((130, 1), 1e200), "first: row 130"),
        (lambda Y: Y.__setitem__((130, 1), np.inf), "rows 97 to 193"),
        (lambda Y: Y.__setitem__((slice(None), 1), np.nan), "olumn"),
    ],
)
def test_wrong_rows_are_named(spoil, words):
    Y = ribbon()
    spoil(Y)
    model = UKR(**settings())
    with pytest.raises(ValueError, match=words):
        model.fit(da.from_array(Y, chunks=(97, 3)))
    assert not hasattr(model, "latent_")


def test_wrong_weights_are_refused():
    rows = da.from_array(ribbon(), chunks=(97, 3))
    with pytest.raises(ValueError, match="each of the 700 rows; got 5"):
        UKR(**settings()).fit(rows, sample_weight=np.ones(5))
    weights = np.ones(700)
    weights[300] = -1
    with pytest.raises(ValueError, match=r"-1.0 for row 300"):
        UKR(**settings()).fit(rows, sample_weight=weights)
    with pytest.raises(ValueError, match=r"non-zero|No row"):
        UKR(**settings()).fit(rows, sample_weight=np.zeros(700))
    with pytest.raises(ValueError, match="no rows"):
        UKR(**settings()).fit(da.zeros((0, 3), chunks=(1, 3)))


def test_rows_that_change_are_noticed():
    rng = np.random.default_rng(0)
    rows = da.from_array(ribbon(), chunks=(97, 3)).map_blocks(
        lambda part: part + rng.normal(size=part.shape), dtype=float, meta=np.empty((0, 0))
    )
    with pytest.raises(ValueError, match=r"Rows \d+ to \d+ of the table of dask changed"):
        UKR(**settings()).fit(rows)


def test_a_tree_merges_neighbours_in_their_order():
    parts = [dask.delayed([number]) for number in range(70)]
    joined = dask_tables.merged(parts, lambda lists: [n for some in lists for n in some])
    assert joined.compute() == list(range(70))
