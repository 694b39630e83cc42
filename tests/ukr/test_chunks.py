"""Tables walked in chunks: the same model as from memory, and errors that help."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pandas as pd
import pytest
from same_models import assert_same
from ukr.ribbons import NAMES, ribbon

import twofold.ukr.estimator as estimator
from twofold import UKR, UNN, Scaled
from twofold.contract.distinct_rows import LowestRows, merge_duplicates
from twofold.losses import Huber
from twofold.tables import chunks as tables
from twofold.ukr import checkpoint as checkpoints


class Walk:
    """An iterable that can be walked again and again."""

    def __init__(self, Y: np.ndarray, size: int = 97) -> None:
        self.Y, self.size, self.walks = Y, size, 0

    def __iter__(self):
        self.walks += 1
        for start in range(0, len(self.Y), self.size):
            yield self.Y[start : start + self.size]


def settings(**given: object) -> dict[str, object]:
    return {"landmarks": 40, "random_state": 0, "max_iter": 8, "init": "pca", **given}


def write(kind: str, Y: np.ndarray, folder) -> object:
    if kind in ("npy", "memmap"):
        np.save(folder / "rows.npy", Y)
        path = folder / "rows.npy"
        return path if kind == "npy" else np.load(path, mmap_mode="r")
    frame = pd.DataFrame(Y, columns=NAMES)
    if kind == "csv":
        frame.to_csv(folder / "rows.csv", index=False)
        return str(folder / "rows.csv")
    if kind == "parquet":
        pytest.importorskip("pyarrow")
        frame.to_parquet(folder / "rows.parquet")
        return folder / "rows.parquet"
    if kind == "frames":
        return iter([frame[:333], frame[333:]])
    return Walk(Y) if kind == "walk" else iter(Walk(Y))


@pytest.mark.cover(1)
@pytest.mark.parametrize("kind", ["npy", "memmap", "csv", "parquet", "frames", "walk", "once"])
def test_a_walk_comes_to_the_model_of_the_table_in_memory(tmp_path, most, kind, monkeypatch):
    monkeypatch.setattr(tables, "CELLS_AT_A_TIME", 500)
    Y = ribbon()
    has_names = kind in ("csv", "parquet", "frames")
    whole = UKR(**settings()).fit(pd.DataFrame(Y, columns=NAMES) if has_names else Y)
    model = UKR(**settings()).fit(write(kind, Y, tmp_path))
    assert_same(whole, model)
    assert hasattr(model, "feature_names_in_") == has_names
    assert np.array_equal(
        model.embedding_, model.transform(pd.DataFrame(Y, columns=NAMES) if has_names else Y)
    )


@pytest.mark.parametrize("kind", ["npy", "parquet", "once"])
def test_single_precision_stays(tmp_path, kind):
    Y = ribbon().astype(np.float32)
    model = UKR(**settings()).fit(write(kind, Y, tmp_path))
    assert model.embedding_.dtype == model.data_.dtype == np.float32
    frame = pd.DataFrame(Y, columns=NAMES)
    assert_same(UKR(**settings()).fit(frame if kind == "parquet" else Y), model)


@pytest.mark.cover(1)
@pytest.mark.parametrize("scale", ["standard", "robust"])
def test_scaled_models_walk_too(most, scale):
    Y = ribbon()
    whole = Scaled(UKR(**settings()), how=scale).fit(Y)
    model = Scaled(UKR(**settings()), how=scale).fit(Walk(Y))
    assert np.array_equal(whole.center_, model.center_)
    assert_same(whole.model_, model.model_)


@pytest.mark.cover(1)
@pytest.mark.parametrize(
    "given", [{"landmarks": "auto"}, {"data_kernel": "rbf"}, {"n_components": "auto"}], ids=str
)
def test_other_settings_walk_too(most, given):
    Y = ribbon()[10:]
    assert_same(UKR(**settings(**given)).fit(Y), UKR(**settings(**given)).fit(Walk(Y)))


def test_weights_count_and_rows_of_weight_zero_are_placed(most):
    Y, rng = ribbon(), np.random.default_rng(1)
    weights = rng.integers(0, 4, len(Y)).astype(float)
    weights[:200] = 0  # the first chunks count for nothing
    whole = UKR(**settings()).fit(Y, sample_weight=weights)
    assert_same(whole, UKR(**settings()).fit(Walk(Y), sample_weight=weights))
    assert_same(UKR(**settings()).fit(Y), UKR(**settings()).fit(Walk(Y), sample_weight=1.0))


def test_an_own_start_follows_the_rows(most):
    Y = ribbon()
    start = np.random.default_rng(2).normal(size=(len(Y), 2))
    given = settings(init=start)
    assert_same(UKR(**given).fit(Y), UKR(**given).fit(Walk(Y)))


@pytest.mark.parametrize("given", [{"landmarks": None}, {"loss": Huber(trim=3.0)}], ids=str)
def test_fits_that_need_all_rows_load_them(tmp_path, given):
    Y = ribbon(200)
    model = UKR(**settings(**given)).fit(write("csv", Y, tmp_path))
    whole = UKR(**settings(**given)).fit(pd.DataFrame(Y, columns=NAMES))
    assert_same(whole, model)
    walked = UKR(**settings(**given)).fit(Walk(Y))
    assert np.array_equal(walked.embedding_, whole.embedding_)


def test_other_families_load_them_too(tmp_path):
    Y = ribbon(60)[10:]
    model = UNN(random_state=0).fit(write("npy", Y, tmp_path))
    assert np.array_equal(model.embedding_, UNN(random_state=0).fit_transform(Y))


@pytest.mark.parametrize("kind", ["npy", "csv", "parquet", "once", "walk"])
def test_what_does_not_fit_into_memory_says_how_much_it_is(tmp_path, kind, monkeypatch):
    monkeypatch.setattr(tables, "available", lambda: 60_000)
    table = write(kind, ribbon(), tmp_path)
    with pytest.raises(MemoryError, match=r"about 700 rows and 3 columns.*landmarks='auto'"):
        UKR(landmarks=None).fit(table)
    UKR(**settings()).fit(write(kind, ribbon(), tmp_path))


# ---- the sample -----------------------------------------------------------------------------


@pytest.mark.parametrize("size", [1, 30, 1000])
@pytest.mark.parametrize("most_rows", [1, 50, 10_000])
def test_the_lowest_rows_of_parts_are_those_of_all(size, most_rows):
    rng = np.random.default_rng(0)
    Y = rng.integers(0, 9, size=(400, 2)).astype(float)
    weights = rng.uniform(size=400)
    wanted = merge_duplicates(Y, weights).lowest(most_rows)
    sample = LowestRows(most_rows)
    for start in range(0, 400, size):
        part = slice(start, start + size)
        sample.add(Y[part], weights[part], np.arange(400)[part])
    found = sample.found()
    assert np.array_equal(found.Y, wanted.Y)
    assert np.array_equal(found.weights, wanted.weights)
    assert np.array_equal(found.first, wanted.first)


def test_the_sample_has_no_eye_for_the_data():
    Y = np.random.default_rng(0).normal(size=(20_000, 2)).round(3)
    drawn = merge_duplicates(Y, np.ones(len(Y))).lowest(2_000).Y
    # Four standard errors of a mean of 2,000.
    assert np.abs(drawn.mean(axis=0)).max() < 4 / np.sqrt(2_000)
    assert np.abs(drawn.std(axis=0) - 1).max() < 4 / np.sqrt(4_000)


class Made:
    """A table that is made anew, chunk by chunk, each time it is walked."""

    def __init__(self, n_chunks: int) -> None:
        self.n_chunks = n_chunks

    def __iter__(self):
        rng = np.random.default_rng(0)
        for _ in range(self.n_chunks):
            yield rng.normal(size=(500, 200))


def test_memory_does_not_grow_with_the_table(monkeypatch):
    monkeypatch.setattr(estimator, "MOST_ROWS", 600)
    monkeypatch.setattr("twofold.ukr.landmark_fitting.ROWS_PER_LANDMARK", 5)
    # Placing takes its time and works in blocks.
    monkeypatch.setattr(UKR, "_place", lambda model, Y: np.zeros((len(Y), 2)))
    peaks = []
    for n_chunks in (4, 20, 80):  # once to warm up
        tracemalloc.start()
        model = UKR(**settings(max_iter=2)).fit(Made(n_chunks))
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    assert len(model.embedding_) == 40_000
    # 30,000 rows more are 48 MB, and their latent points 0.7 MB; other samples differ by 5 MB.
    assert peaks[2] - peaks[1] < 10_000_000, peaks


# ---- what can be wrong ----------------------------------------------------------------------


def refused(table: object, said: str, **given: object) -> None:
    """Assert that a table is refused and that the model stays as it was."""
    model = UKR(**settings()).fit(ribbon(120))
    before = dict(model.__dict__)
    with pytest.raises(ValueError, match=said):
        model.fit(table, **given)
    assert model.__dict__ == before


class Ragged(Walk):
    def __iter__(self):
        yield from (self.Y[:100], self.Y[100:200, :2])


@pytest.mark.parametrize("walk", [lambda table: table, iter])
def test_chunks_of_different_widths_are_refused(walk):
    said = "Chunk 1 has 2 columns and those before it have 3; every chunk must hold the same"
    refused(walk(Ragged(ribbon())), said)


@pytest.mark.parametrize(
    ("chunks", "said"),
    [
        ([], r"has no rows; expected chunks \(rows, columns\) of numbers"),
        ([np.empty((0, 3))], "has no rows"),
        ([ribbon(), ribbon()[0]], r"Chunk 1 has shape \(3,\); every chunk must be a table"),
        (["a,b\n", "1,2\n"], "Chunk 0 is text.*pass its path"),
        (
            [ribbon().astype(np.float32), ribbon()],
            "Chunk 1 holds float64 numbers and those before it float32",
        ),
        ([pd.DataFrame({"a": ["x", "y"], "b": [1, 2]})], r"could not convert 'a'"),
        ([pd.DataFrame({"a": [1.0]}), pd.DataFrame({"b": [2.0]})], "other column names"),
        ([np.full((3, 3), np.inf)], "infinity"),
    ],
)
def test_bad_chunks_are_refused(chunks, said):
    refused(iter(chunks), said)


def test_rows_at_fault_are_counted_through_all_chunks():
    Y = ribbon()
    Y[500] = np.nan
    refused(Walk(Y), r"no observed entry \(first: row 500\)")
    weights = np.ones(len(Y))
    weights[100:200] = 0
    refused(Walk(Y), r"first: row 500", sample_weight=weights)
    Y[500] = 1e200
    refused(Walk(Y), r"first: row 500")
    Y[500] = np.inf
    refused(Walk(Y), r"infinity.*chunk 5, rows 485 to 581")


def test_a_column_without_entries_is_named(tmp_path):
    Y = ribbon()
    Y[:, 1] = np.nan
    refused(Walk(Y), r"1 column\(s\) have no observed entry \(first: column 1\)")
    refused(write("csv", Y, tmp_path), "first: column 'b'")


def test_a_column_with_next_to_no_entries_is_named(monkeypatch):
    monkeypatch.setattr(estimator, "MOST_ROWS", 100)
    monkeypatch.setattr("twofold.ukr.landmark_fitting.ROWS_PER_LANDMARK", 2)
    Y = ribbon()
    lowest = merge_duplicates(Y[10:], np.ones(690)).lowest(100)
    Y[:, 1] = np.nan
    Y[300, 1] = 1.0
    assert len(lowest.Y) == 100
    refused(Walk(Y), "Column 1 has so few entries that none of the 100 sampled rows")
    refused(Y, "Column 1 has so few entries that none of the 100 sampled rows")


@pytest.mark.parametrize(("count", "said"), [(600, "rows; got 600"), (900, "of the 700 rows")])
def test_weights_that_are_too_few_or_many_are_refused(count, said):
    refused(Walk(ribbon()), said, sample_weight=np.ones(count))
    refused(Walk(ribbon()), "non-zero", sample_weight=np.zeros(700))


@pytest.mark.parametrize("change", ["longer", "shorter", "other"])
def test_a_table_that_changes_between_walks_is_refused(change):
    Y = ribbon()
    others = {"longer": np.concatenate([Y, Y]), "shorter": Y[:300], "other": Y + 1}

    class Changing(Walk):
        def __iter__(self):
            yield from super().__iter__()
            self.Y = others[change]

    words = {"longer": "more than 700 rows now", "shorter": "300 rows now", "other": "are others"}
    refused(Changing(Y), f"changed while it was fitted to.*{words[change]}")


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("rows.csv", "a,b\n1,2\n3,four\n5,6\n", r"line 3.*'four' is not a number.*usecols"),
        ("rows.csv", "", "is empty"),
        ("rows.csv", "a,b\n", "no rows"),
        ("rows.xls", "", "not a known kind of table.*Save it as .xlsx"),
        ("rows.npy", "text", "damaged or not a .npy file"),
    ],
)
def test_bad_files_are_refused(tmp_path, name, content, said):
    (tmp_path / name).write_text(content)
    refused(tmp_path / name, said)


def test_a_file_that_is_not_there_is_refused(tmp_path):
    refused(tmp_path / "none.csv", "There is no file")


def test_an_interrupt_leaves_the_old_model():
    class Interrupted(Walk):
        def __iter__(self):
            yield self.Y[:100]
            raise KeyboardInterrupt

    model = UKR(**settings()).fit(ribbon(120))
    before = dict(model.__dict__)
    with pytest.raises(KeyboardInterrupt):
        model.fit(Interrupted(ribbon()))
    assert model.__dict__ == before


# ---- checkpoints and progress ---------------------------------------------------------------


def test_rows_that_were_placed_are_not_placed_again(tmp_path, monkeypatch):
    monkeypatch.setattr(checkpoints, "SECONDS", 0.0)
    monkeypatch.setattr(checkpoints, "SHARE", np.inf)
    Y, path = ribbon(), tmp_path / "checkpoint"
    whole = UKR(**settings()).fit(Walk(Y))
    place, placed = UKR._place, []

    def counting(model, rows):
        placed.append(len(rows))
        if len(placed) == 5:
            raise SystemExit
        return place(model, rows)

    monkeypatch.setattr(UKR, "_place", counting)
    with pytest.raises(SystemExit):
        UKR(checkpoint=path, **settings()).fit(Walk(Y))
    assert sum(placed[:4]) == 4 * 97
    resumed = UKR(checkpoint=path, **settings()).fit(iter(Walk(Y)))
    assert_same(whole, resumed)
    assert sum(placed[5:]) <= len(Y) - 4 * 97 + 4096
    assert list(tmp_path.iterdir()) == []


def test_what_can_be_walked_once_is_copied_beside_the_checkpoint(tmp_path, monkeypatch):
    seen, make = [], tables.tempfile.TemporaryFile

    def temporary_file(**how):
        seen.append(how["dir"])
        return make(**how)

    monkeypatch.setattr(tables.tempfile, "TemporaryFile", temporary_file)
    UKR(checkpoint=tmp_path / "checkpoint", **settings()).fit(iter(Walk(ribbon())))
    assert seen == [tmp_path]


def test_progress_counts_rows(capsys, monkeypatch):
    monkeypatch.setattr("twofold.optimize.progress.SECONDS_BEFORE_BAR", 0.0)
    monkeypatch.setattr("twofold.optimize.progress.SECONDS_BETWEEN_LINES", 0.0)
    UKR(verbose=True, **settings()).fit(Walk(ribbon()))
    told = capsys.readouterr().err
    assert "reading rows  row 97" in told
    assert "placing rows  row 700/700" in told
