"""Commands over part files and a scheduler."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time

import numpy as np
import pandas as pd
import pytest
from cli.running import COLUMNS, make_frame, refused, run_json, run_well

import twofold
from twofold import UKR, Mixed, Scaled
from twofold.cli import cluster

distributed = pytest.importorskip("distributed", reason="--scheduler needs dask.distributed")
pytest.importorskip("pyarrow")

# Of sockets that dask leaves to the garbage collector.
pytestmark = pytest.mark.filterwarnings("default")
QUICK = ["--max-iter", "3", "--landmarks", "30"]


@pytest.fixture(scope="module")
def address():
    with distributed.LocalCluster(
        n_workers=2,
        threads_per_worker=1,
        processes=False,
        protocol="tcp",
        dashboard_address=":0",
        memory_limit=0,
    ) as cluster:
        yield cluster.scheduler_address


@pytest.fixture(scope="module")
def frame() -> pd.DataFrame:
    frame = make_frame(300)
    frame.iloc[30, frame.columns.get_loc("width")] = np.nan
    frame.loc[frame.index[40], COLUMNS] = np.nan
    return frame


@pytest.fixture(scope="module")
def parts(frame, tmp_path_factory) -> str:
    folder = tmp_path_factory.mktemp("parts")
    for number in range(3):
        frame.iloc[100 * number : 100 * (number + 1)].to_parquet(folder / f"part-{number}.parquet")
    return str(folder / "*.parquet")


@pytest.fixture(scope="module")
def fitted(parts, address, tmp_path_factory):
    path = tmp_path_factory.mktemp("models") / "beetles.twofold"
    facts = run_json("fit", parts, "-o", path, "--scheduler", address, *QUICK)
    return path, facts


def read(folder) -> pd.DataFrame:
    return pd.concat([pd.read_parquet(path) for path in sorted(folder.glob("*.parquet"))])


def test_a_fit_is_that_of_the_table_in_memory(fitted, frame):
    path, facts = fitted
    assert facts["rows"] == 299  # one has no value
    assert facts["columns"] == COLUMNS
    assert "species" in facts["columns_left_out"]
    rows = frame[COLUMNS].dropna(how="all")
    wanted = Scaled(UKR(random_state=0, max_iter=3, landmarks=30)).fit(rows)
    model = twofold.load(path)
    np.testing.assert_array_equal(model.model_.data_, wanted.model_.data_)
    np.testing.assert_array_equal(model.latent_, wanted.latent_)


def test_rows_are_placed_and_filled_part_by_part(fitted, frame, parts, address, tmp_path):
    path, _ = fitted
    model, there = twofold.load(path), frame[COLUMNS].notna().any(axis=1)
    told = run_well("transform", path, parts, "-o", tmp_path / "places", "--scheduler", address)
    assert "1 row of 300 without any value" in told.stderr
    places = read(tmp_path / "places")
    assert list(places.columns) == ["x1", "x2"]
    assert places.iloc[40].isna().all()
    np.testing.assert_array_equal(places[there.to_numpy()], model.transform(frame[COLUMNS][there]))
    run_well("complete", path, parts, "-o", tmp_path / "filled", "--scheduler", address)
    filled = read(tmp_path / "filled")
    assert list(filled.columns) == list(frame.columns)
    assert len(list((tmp_path / "filled").iterdir())) == 3
    wanted = model.complete(frame[COLUMNS][there])
    np.testing.assert_array_equal(filled[COLUMNS][there.to_numpy()], wanted)
    assert filled["species"].tolist() == frame["species"].tolist()


def test_what_does_not_go_together_is_refused(fitted, parts):
    path, _ = fitted
    where = ["--scheduler", "tcp://127.0.0.1:1"]
    to_file = [*where, "-o", "m.twofold"]
    assert "--label" in refused("fit", parts, "--label", "species", *to_file, code=2)
    assert "unn" in refused("fit", parts, "--method", "unn", *to_file, code=2)
    assert "-o FOLDER" in refused("transform", path, parts, "-o", "out.csv", *where, code=2)
    assert "--error" in refused("transform", path, parts, "--error", *where, code=2)


def test_files_that_are_not_there_are_named(address, tmp_path):
    where = ["-o", tmp_path / "m.twofold", "--scheduler", address]
    told = refused("fit", str(tmp_path / "*.parquet"), *where)
    assert "No file that holds a table matches" in told
    assert ".parquet or .csv" in refused("fit", str(tmp_path / "*.xlsx"), *where, code=2)


def test_a_part_that_lacks_columns_is_named(fitted, frame, parts, address, tmp_path):
    for number in range(3):
        part = frame.iloc[100 * number : 100 * (number + 1)]
        part = part.drop(columns="width") if number == 1 else part[part.columns[::-1]]
        part.to_parquet(tmp_path / f"part-{number}.parquet")
    path, where = str(tmp_path / "*.parquet"), ["--scheduler", address]
    told = refused("fit", path, "-o", tmp_path / "m.twofold", *where, *QUICK)
    assert "part-1.parquet' lacks 1 column of" in told
    assert "'width'" in told
    told = refused("transform", fitted[0], path, "-o", tmp_path / "places", *where)
    assert "part-1.parquet' lacks 1 column of" in told
    (tmp_path / "part-1.parquet").unlink()
    run_well("transform", fitted[0], path, "-o", tmp_path / "places", *where)  # in any order
    wanted = twofold.load(fitted[0]).transform(frame[COLUMNS].iloc[:30])
    np.testing.assert_array_equal(read(tmp_path / "places")[:30], wanted)


def test_a_part_with_text_among_numbers_is_named(fitted, frame, address, tmp_path):
    frame.iloc[:100].to_parquet(tmp_path / "part-0.parquet")
    frame.iloc[100:200].assign(width="wide").to_parquet(tmp_path / "part-1.parquet")
    path, where = str(tmp_path / "*.parquet"), ["--scheduler", address]
    told = refused("transform", fitted[0], path, "-o", tmp_path / "places", *where)
    assert "part-1.parquet' has other types in 1 column of" in told
    assert "'width'" in told


def test_a_file_that_workers_do_not_see_is_named(fitted, parts, address, tmp_path, monkeypatch):
    def unseen(*_):
        raise FileNotFoundError(2, "No such file or directory", "/data/part-0.parquet")

    monkeypatch.setattr(cluster, "_first_unlike", unseen)
    told = refused("transform", fitted[0], parts, "-o", tmp_path / "out", "--scheduler", address)
    assert "A worker does not find a file that is there: /data/part-0.parquet." in told
    assert "the same path" in told


def test_memory_of_one_process_is_refused(fitted, parts):
    where = ["--scheduler", "tcp://127.0.0.1:1"]
    told = refused("transform", fitted[0], parts, "-o", "memory://out", *where, code=2)
    assert "'memory://out' is in the memory of one process" in told
    told = refused("transform", fitted[0], "memory://in/*.parquet", "-o", "out", *where, code=2)
    assert "is in the memory of one process" in told


def test_a_scheduler_without_workers_is_told_of(fitted, parts, tmp_path):
    with (
        distributed.LocalCluster(
            n_workers=0, processes=False, protocol="tcp", dashboard_address=":0"
        ) as empty,
        distributed.Client(empty),
    ):
        threading.Timer(3.0, empty.scale, (1,)).start()
        where = ["-o", tmp_path / "places", "--scheduler", empty.scheduler_address]
        told = run_well("transform", fitted[0], parts, *where).stderr
    assert "waiting for workers: the scheduler has none" in told


def test_results_are_not_mixed_with_older_files(fitted, parts, address):
    told = refused(
        "transform", fitted[0], parts, "-o", parts[: -len("/*.parquet")], "--scheduler", address
    )
    assert "holds .parquet files already" in told


def test_a_pattern_gives_a_model_no_name(parts):
    assert "Add -o MODEL" in refused("fit", parts, "--scheduler", "tcp://127.0.0.1:1", code=2)


def test_mixed_tables_are_placed_and_filled(frame, parts, address, tmp_path):
    names = [*COLUMNS, "species"]
    model = Mixed(UKR(random_state=0, max_iter=2, init="pca")).fit(frame[names].iloc[:30])
    model.save(tmp_path / "mixed.twofold")
    for command, name in (("transform", "places"), ("complete", "filled")):
        where = ["-o", tmp_path / name, "--scheduler", address]
        run_well(command, tmp_path / "mixed.twofold", parts, *where)
    wanted = model.transform(frame[names])
    np.testing.assert_array_equal(read(tmp_path / "places"), wanted)
    filled = model.complete(frame[names])
    pd.testing.assert_frame_equal(read(tmp_path / "filled")[names], filled, check_dtype=False)


def test_parts_go_to_stores_by_their_address(fitted, frame, parts, address, tmp_path):
    path, _ = fitted
    store = (tmp_path / "store").as_uri()
    run_well("transform", path, parts, "-o", store, "--scheduler", address)
    wanted = twofold.load(path).transform(frame[COLUMNS].dropna(how="all"))
    np.testing.assert_array_equal(read(tmp_path / "store").dropna(how="all"), wanted)
    told = refused(
        "transform", path, "nowhere://bucket/*.parquet", "-o", store, "--scheduler", address
    )
    assert "nowhere" in told
    assert "registered to the pandas backend" not in told


def test_workers_of_another_version_are_named(fitted, parts, address, tmp_path, monkeypatch):
    monkeypatch.setattr(cluster, "__version__", "9.9")
    where = ["-o", tmp_path / "places", "--scheduler", address]
    told = refused("transform", fitted[0], parts, *where)
    assert f"has another twofold than this command, 9.9: {twofold.__version__}." in told
    assert "Install the same version" in told


@pytest.mark.slow
def test_workers_without_twofold_are_named(fitted, parts, tmp_path):
    (tmp_path / "twofold").mkdir()
    (tmp_path / "twofold" / "__init__.py").write_text("raise ModuleNotFoundError('no twofold')")
    without = {**os.environ, "PYTHONPATH": str(tmp_path)}
    with distributed.LocalCluster(n_workers=0, dashboard_address=":0", protocol="tcp") as own:
        words = ["worker", own.scheduler_address, "--nthreads", "1", "--no-dashboard"]
        worker = subprocess.Popen(
            [sys.executable, "-m", "dask", *words], env=without, stderr=subprocess.DEVNULL
        )
        try:
            with distributed.Client(own) as client:
                client.wait_for_workers(1, timeout=120)
            where = ["-o", tmp_path / "places", "--scheduler", own.scheduler_address]
            assert "cannot import twofold (no twofold)" in refused(
                "transform", fitted[0], parts, *where
            )
        finally:
            worker.kill()
            worker.wait()


@pytest.mark.slow
def test_a_scheduler_that_is_not_there_is_named(parts, tmp_path):
    told = refused("fit", parts, "-o", tmp_path / "m.twofold", "--scheduler", "tcp://127.0.0.1:1")
    assert "No scheduler answers at 'tcp://127.0.0.1:1'" in told
    assert "--scheduler local" in told


@pytest.mark.slow
def test_a_scheduler_that_is_lost_is_named(fitted, parts, tmp_path, monkeypatch):
    file = tmp_path / "scheduler.json"
    words = ["--port", "0", "--dashboard-address", ":0", "--scheduler-file", str(file)]
    process = subprocess.Popen(
        [sys.executable, "-m", "dask", "scheduler", *words], stderr=subprocess.DEVNULL
    )
    deadline = time.monotonic() + 120
    while not file.exists() and time.monotonic() < deadline:
        time.sleep(0.1)
    look = cluster.check_alike
    # Once the command is connected it waits for workers, of which there are none.
    monkeypatch.setattr(cluster, "check_alike", lambda *a: (process.kill(), look(*a)))
    address = json.loads(file.read_text())["address"]
    told = refused("transform", fitted[0], parts, "-o", tmp_path / "out", "--scheduler", address)
    assert f"The scheduler at '{address}' was lost" in told
    assert "--checkpoint FILE" in told
    process.wait()


@pytest.mark.slow
def test_ctrl_c_cancels_and_says_so(fitted, parts, tmp_path):
    """As on a terminal: every process of the group is interrupted, workers, too."""
    path, _ = fitted
    code = "from twofold.cli import main; main()"
    words = ["transform", path, parts, "-o", tmp_path / "places", "--scheduler", "local"]
    process = subprocess.Popen(
        [sys.executable, "-c", code, *map(str, words)],
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )
    deadline = time.monotonic() + 120
    while not (tmp_path / "places").exists() and time.monotonic() < deadline:
        time.sleep(0.05)
    os.killpg(process.pid, signal.SIGINT)
    told = process.communicate(timeout=120)[1]
    assert process.returncode == 130
    assert told.splitlines()[-1].startswith("error: Interrupted")
    assert "Traceback" not in told
    assert "distributed" not in told
    assert all(file.suffix == ".parquet" for file in (tmp_path / "places").iterdir())
