"""Tables of dask are answered by such tables, part by part, with the bits of a table in memory."""

from __future__ import annotations

import pickle
import threading

import numpy as np
import pandas as pd
import pytest
from families import FAMILIES

from twofold import UKR, Scaled, compare, explorer, load, plots
from twofold.contract import lazy_answers, uncertain_model
from twofold.noise import noise_model

dask = pytest.importorskip("dask", reason="tables of dask need dask")
da = pytest.importorskip("dask.array")
dd = pytest.importorskip("dask.dataframe", reason="data frames of dask need pyarrow")

NAMES = ["a", "b", "c", "d"]


@pytest.fixture(autouse=True)
def _no_threads():
    with dask.config.set(scheduler="synchronous"):
        yield


def sheet(n: int, seed: int = 0) -> np.ndarray:
    rng = np.random.default_rng(seed)
    t = rng.uniform(-2, 2, size=(n, 2))
    return np.column_stack([t, np.sin(2 * t)]) + 0.05 * rng.normal(size=(n, 4))


def with_gaps(Y: np.ndarray) -> np.ndarray:
    Y = Y.copy()
    Y[::3, 1] = np.nan
    return Y


def assert_bits(found: object, wanted: np.ndarray) -> None:
    computed = np.asarray(found.compute())
    assert (computed.shape, computed.dtype) == (wanted.shape, wanted.dtype)
    np.testing.assert_array_equal(computed, wanted)


@pytest.fixture(
    scope="module",
    params=[pytest.param(f, id=f.name, marks=f.marks) for f in FAMILIES],
)
def model(request):
    return request.param.make().fit(sheet(60))


def test_every_family_answers_arrays_part_by_part(model):
    Y = sheet(23, seed=1)
    X = model.transform(Y)
    asked = {
        "transform": Y,
        "inverse_transform": X,
        "reconstruct": Y,
        "complete": Y if getattr(model, "data_kernel", None) is not None else with_gaps(Y),
        "score_samples": Y,
        "density": X,
    }
    for name, rows in asked.items():
        wanted = getattr(model, name)(rows)
        found = getattr(model, name)(da.from_array(rows, chunks=(10, 1)))
        assert isinstance(found, da.Array)
        assert (found.shape, found.dtype) == (wanted.shape, wanted.dtype), name
        assert_bits(found, wanted)


def test_single_precision_stays_single():
    Y = sheet(60).astype(np.float32)
    model = UKR(random_state=0, max_iter=3).fit(Y)
    rows = da.from_array(with_gaps(Y[:20]), chunks=(7, 4))
    for name in ("transform", "reconstruct", "complete", "score_samples"):
        found = getattr(model, name)(rows)
        assert found.dtype == np.float32
        assert_bits(found, getattr(model, name)(rows.compute()))


@pytest.fixture(scope="module")
def named():
    frame = pd.DataFrame(sheet(60), columns=NAMES)
    return Scaled(UKR(random_state=0, max_iter=3)).fit(frame)


def test_the_types_that_are_told_are_those_of_the_answers():
    Y = sheet(60).astype(np.float32)
    model = UKR(random_state=0, max_iter=3).fit(Y)
    for name in ("log_likelihood", "p_values", "score_samples"):
        found = getattr(model, name)(da.from_array(Y[:20], chunks=(7, 4)))
        assert found.dtype == getattr(model, name)(Y[:20]).dtype
        assert_bits(found, getattr(model, name)(Y[:20]))


def test_names_that_differ_are_warned_of_once(named):
    model, frame = UKR(random_state=0, max_iter=2).fit(sheet(40)), pd.DataFrame(sheet(9))
    rows = dd.from_pandas(frame.set_axis(NAMES, axis=1), npartitions=3)
    with pytest.warns(UserWarning, match="X has feature names"):
        places = model.transform(rows)
    assert_bits(places, model.transform(sheet(9)))  # and no more
    with pytest.warns(UserWarning, match="X does not have valid feature names"):
        places = named.transform(da.from_array(sheet(9), chunks=(3, 4)))
    assert_bits(places, named.transform(frame.set_axis(NAMES, axis=1)))


def test_data_frames_keep_names_and_index(named):
    frame = pd.DataFrame(with_gaps(sheet(20, seed=1)), columns=NAMES, index=np.arange(20) + 100)
    rows = dd.from_pandas(frame, npartitions=3)
    columns = {"transform": ["scaled0", "scaled1"], "reconstruct": NAMES, "complete": NAMES}
    for name, wanted in columns.items():
        found = getattr(named, name)(rows)
        assert list(found.columns) == wanted
        computed = found.compute()
        assert list(computed.columns) == wanted
        assert list(computed.index) == list(frame.index)
        np.testing.assert_array_equal(computed.to_numpy(), np.asarray(getattr(named, name)(frame)))
    scores = named.score_samples(rows)
    assert_bits(scores, named.score_samples(frame))
    assert scores.name == "score_samples"
    back = named.inverse_transform(named.transform(rows))
    assert list(back.columns) == NAMES
    assert_bits(back, named.reconstruct(frame))


@pytest.mark.filterwarnings("ignore:X does not have valid feature names")
def test_deviations_come_as_a_second_table(named):
    frame = pd.DataFrame(with_gaps(sheet(20, seed=1)), columns=NAMES)
    wanted = named.complete(frame, return_std=True)
    array = da.from_array(frame.to_numpy(), chunks=(9, 4))
    for rows in (array, dd.from_pandas(frame, npartitions=2)):
        found = named.complete(rows, return_std=True)
        for part, other in zip(found, wanted, strict=True):
            assert_bits(part, other)
    low, high = named.intervals(dd.from_pandas(frame, npartitions=2), level=0.5)
    assert list(low.columns) == list(high.columns) == NAMES
    assert_bits(high, named.intervals(frame, level=0.5)[1])


def test_nothing_is_computed_before_it_is_asked_for(named):
    def explode(part):
        raise RuntimeError("computed")

    rows = dd.from_pandas(pd.DataFrame(sheet(9), columns=NAMES), npartitions=2)
    rows = rows.map_partitions(explode, meta=rows._meta)
    found = named.complete(rows)
    with pytest.raises(RuntimeError, match="computed"):
        found.compute()


def test_the_model_is_opened_once_for_all_parts(monkeypatch):
    model = UKR(random_state=0, max_iter=2).fit(sheet(40))
    few, many = (
        len(pickle.dumps(dict(model.transform(da.zeros((n, 4), chunks=(5, 4))).dask)))
        for n in (50, 4000)
    )
    assert many - few < 790 * 0.2 * len(pickle.dumps(model))  # not in each of 790 tasks more
    opened = []
    whole = lazy_answers._opened
    monkeypatch.setattr(lazy_answers, "_opened", lambda *a: opened.append(1) or whole(*a))
    model.transform(da.from_array(sheet(40, seed=2), chunks=(5, 4))).compute()
    assert opened == [1]


def test_noise_is_made_once_and_travels(monkeypatch):
    model = UKR(random_state=0, max_iter=2).fit(sheet(40))
    made = []
    monkeypatch.setattr(
        uncertain_model, "make_noise", lambda *a: made.append(1) or noise_model.make_noise(*a)
    )
    rows = da.from_array(with_gaps(sheet(40, seed=2)), chunks=(5, 4))
    model.complete(rows).compute()
    assert made == [1]
    assert "noise_" not in vars(model)  # nothing was made here


def test_parts_may_be_empty_and_sizes_unknown():
    model = UKR(random_state=0, max_iter=2).fit(sheet(40))
    rows = da.from_array(sheet(40, seed=2), chunks=(10, 4))
    some = rows[rows[:, 0] > 1.9]
    wanted = model.transform(some.compute())
    assert len(wanted) < 8
    np.testing.assert_array_equal(model.transform(some).compute(), wanted)
    assert model.score_samples(some).compute().shape == (len(wanted),)


def test_means_of_scores_and_domains_follow(named):
    model = UKR(random_state=0, max_iter=2).fit(sheet(40))
    Y = sheet(30, seed=3)
    rows = da.from_array(Y, chunks=(7, 4))
    assert model.score(rows) == pytest.approx(model.score(Y), rel=1e-12)
    frame = pd.DataFrame(Y, columns=NAMES)
    assert named.score(dd.from_pandas(frame, npartitions=3)) == pytest.approx(named.score(frame))
    inside = model.in_domain(model.transform(rows))
    assert_bits(inside, model.in_domain(model.transform(Y)))


def test_wrong_columns_are_refused_at_once(named):
    model = UKR(random_state=0, max_iter=2).fit(sheet(40))
    with pytest.raises(ValueError, match="3 features"):
        model.transform(da.zeros((10, 3), chunks=(5, 3)))
    with pytest.raises(ValueError, match="latent points with 2 columns"):
        model.density(da.zeros((10, 3), chunks=(5, 3)))
    with pytest.raises(ValueError, match="1 dimension"):
        model.transform(da.zeros(10, chunks=5))
    other = dd.from_pandas(pd.DataFrame(sheet(9), columns=["a", "b", "c", "e"]), npartitions=2)
    with pytest.raises(ValueError, match="feature names"):
        named.transform(other)


def test_other_things_than_numbers_are_refused_at_once(named):
    frame = pd.DataFrame(sheet(9), columns=NAMES).assign(b=pd.array(["red"] * 9, dtype="string"))
    rows = dd.from_pandas(frame, npartitions=2)
    with pytest.raises(ValueError, match="must hold numbers; could not convert 'b'"):
        named.complete(rows)
    with pytest.raises(ValueError, match="must hold numbers"):
        named.density(rows[["a", "b"]])
    with pytest.raises(ValueError, match="Complex data not supported"):
        named.transform(da.zeros((10, 4), chunks=(5, 4), dtype=complex))
    with pytest.raises(ValueError, match="could not convert 'b'"):
        UKR(landmarks=5).fit(rows)


def test_what_cannot_be_done_in_parts_is_refused(named):
    rows = dd.from_pandas(pd.DataFrame(sheet(9), columns=NAMES), npartitions=2)
    with pytest.raises(ValueError, match="n_draws"):
        named.complete(rows, n_draws=2)
    model = UKR(random_state=0, max_iter=2).fit(sheet(40)).set_output(transform="pandas")
    with pytest.raises(ValueError, match="set_output"):
        model.transform(rows)
    K = np.exp(-((sheet(40)[:, None] - sheet(40)) ** 2).sum(2))
    kernels = UKR(data_kernel="precomputed", max_iter=2, init="pca").fit(K)
    with pytest.raises(ValueError, match="precomputed"):
        kernels.transform(da.from_array(K, chunks=(10, 40)))


def test_other_methods_do_not_load_tables_unasked(named):
    rows = dd.from_pandas(pd.DataFrame(sheet(9), columns=NAMES), npartitions=2)
    with pytest.raises(TypeError, match=r"X\.partitions\[0\]\.compute\(\)"):
        named.explain(rows)
    with pytest.raises(TypeError, match="does not take"):
        named.jacobian(named.transform(rows))


def test_new_rows_may_be_a_table_of_dask():
    frame, new = (pd.DataFrame(sheet(40, seed), columns=NAMES) for seed in (0, 1))
    model = UKR(random_state=0, max_iter=2)
    wanted = model.fit(frame).partial_fit(new).latent_
    found = model.fit(frame).partial_fit(dd.from_pandas(new, npartitions=3)).latent_
    np.testing.assert_array_equal(found, wanted)


def test_threads_share_a_model():
    model = UKR(random_state=0, max_iter=2, n_jobs=2).fit(sheet(40))
    Y = sheet(60, seed=1)
    with dask.config.set(scheduler="threads", num_workers=4):
        found = model.reconstruct(da.from_array(Y, chunks=(5, 4))).compute()
    np.testing.assert_array_equal(found, model.reconstruct(Y))


def test_scores_of_rows_among_each_other_are_refused():
    rows = da.from_array(sheet(40), chunks=(10, 4))
    with pytest.raises(TypeError, match=r"dask table.*\[::100\]\.compute"):
        compare(rows, {"own": sheet(40)[:, :2]})
    frame = dd.from_pandas(pd.DataFrame(sheet(40), columns=NAMES), npartitions=2)
    with pytest.raises(TypeError, match=r"sample\(frac=0\.01\)\.compute"):
        compare(frame, {"own": sheet(40)[:, :2]})


def test_pictures_say_how_to_see_a_sample(tmp_path):
    model = UKR(landmarks=20, random_state=0, max_iter=2, init="pca")
    model.fit(da.from_array(sheet(60), chunks=(20, 4)))
    for draw in (plots.latent_map, explorer.show):
        with pytest.raises(TypeError, match=r"`twofold\.load\(path\)`"):
            draw(model)
    model.save(tmp_path / "map.twofold")
    assert isinstance(load(tmp_path / "map.twofold").embedding_, np.ndarray)


def test_rows_at_fault_are_named_within_their_part():
    model = UKR(random_state=0, max_iter=2).fit(sheet(40))
    Y = sheet(20, seed=1)
    Y[13] = np.nan
    with pytest.raises(ValueError, match="first: row 3") as caught:
        model.transform(da.from_array(Y, chunks=(10, 4))).compute()
    assert "within their part" in caught.value.__notes__[0]


def test_callbacks_stay_at_home():
    lock = threading.Lock()  # which cannot be pickled
    model = UKR(random_state=0, max_iter=2, callbacks=[lambda event, lock=lock: False])
    model.fit(sheet(40))
    Y = sheet(10, seed=1)
    assert_bits(model.transform(da.from_array(Y, chunks=(4, 4))), model.transform(Y))
