"""``twofold fit`` with tables larger than the memory that is free."""

from __future__ import annotations

import numpy as np
import pytest
from cli.running import COLUMNS, make_frame, refused, run, run_json, run_well, write_csv

import twofold
from twofold.ukr import checkpoint as checkpoints

QUICK = ["--max-iter", "3"]


@pytest.fixture
def little_memory(monkeypatch):
    """Let next to no memory be free, and pieces be of a few rows."""
    monkeypatch.setattr("twofold.cli.large_tables.available", lambda: 20_000)
    monkeypatch.setattr("twofold.cli.large_tables.CELLS_AT_A_TIME", 500)


def with_gaps(n: int = 300):
    """Return a table in which row 20 has no value in its number columns, and a cell is missing."""
    frame = make_frame(n)
    frame.iloc[20, 2:] = np.nan
    frame.iloc[30, 3] = np.nan
    frame.index = [f"beetle {k}" for k in range(n)]
    frame.index.name = "specimen"
    return frame


@pytest.fixture
def table(tmp_path):
    return write_csv(with_gaps(), tmp_path / "beetles.csv")


def test_it_says_so_and_comes_to_the_model_of_the_table_in_memory(
    table, tmp_path, little_memory, monkeypatch
):
    options = ["--label", "species", "--index", "specimen", *QUICK]
    done = run_well("fit", table, "-o", tmp_path / "walked", *options)
    assert "about 300 rows" in done.stderr
    assert "20.0 kB of memory is free, so the table is read in pieces" in done.stderr
    assert "landmarks stand for the rows (--landmarks auto)" in done.stderr
    assert "299 rows, 4 columns used: 'length', 'width', 'height', 'mass'" in done.stderr
    assert "left out: 'comment'" in done.stderr
    assert "left out: 1 row without any value" in done.stderr
    assert "missing: 1 cell" in done.stderr
    monkeypatch.setattr("twofold.cli.large_tables.available", lambda: None)
    told = run_well("fit", table, "-o", tmp_path / "held", "--landmarks", "auto", *options).stderr
    assert "pieces" not in told
    walked, held = twofold.load(tmp_path / "walked"), twofold.load(tmp_path / "held")
    assert np.array_equal(walked.embedding_, held.embedding_)
    assert walked.notes_.names.tolist() == held.notes_.names.tolist()
    assert walked.notes_.labels["species"].tolist() == held.notes_.labels["species"].tolist()
    assert walked.feature_names_in_.tolist() == COLUMNS


@pytest.mark.parametrize("scale", ["standard", pytest.param("none", marks=pytest.mark.slow)])
def test_the_facts_are_those_of_the_table_in_memory(
    table, tmp_path, little_memory, scale, monkeypatch
):
    options = ["-o", tmp_path / "model", "--landmarks", 40, "--scale", scale, *QUICK]
    options += ["--label", "species"]
    walked = run_json("fit", table, *options)
    monkeypatch.setattr("twofold.cli.large_tables.available", lambda: None)
    held = run_json("fit", table, *options)
    assert walked.pop("error_share") == pytest.approx(held.pop("error_share"))
    for name in ("seconds", "missing_share"):
        assert walked.pop(name) == pytest.approx(held.pop(name), abs=20)
    left_out = {entry["column"] for entry in walked.pop("columns_left_out")}
    assert left_out >= {entry["column"] for entry in held.pop("columns_left_out")}
    assert walked == held


def test_text_far_down_makes_a_column_text(tmp_path, little_memory):
    frame = make_frame(2000)
    frame["height"] = frame["height"].astype(object)
    frame.iloc[-1, 4] = "tall"
    path = write_csv(frame, tmp_path / "beetles.csv", index=False)
    told = run_json("fit", path, "-o", tmp_path / "model", "--landmarks", "20", *QUICK)
    assert told["columns"] == ["length", "width", "mass"]
    said = refused("fit", path, "-o", tmp_path / "x", "--columns", "length,width,height", *QUICK)
    assert "line 2001, column 'height': 'tall' is not a number" in said


@pytest.mark.parametrize("kind", ["npy", "parquet"])
def test_other_kinds_are_walked_too(tmp_path, little_memory, kind):
    path = tmp_path / f"beetles.{kind}"
    if kind == "npy":
        np.save(path, make_frame(300)[COLUMNS].to_numpy())
    else:
        pytest.importorskip("pyarrow")
        make_frame(300)[COLUMNS].to_parquet(path, index=False)
    done = run_well("fit", path, *QUICK)
    assert "300 rows" in done.stderr
    model = twofold.load(tmp_path / "beetles.twofold")
    assert len(model.embedding_) == 300
    assert hasattr(model, "feature_names_in_") == (kind == "parquet")


def test_columns_without_values_and_infinite_ones_are_named(tmp_path, little_memory):
    frame = make_frame(300)
    frame["empty"] = np.nan
    frame["same"] = 1.0
    path = write_csv(frame, tmp_path / "beetles.csv", index=False)
    done = run_well("fit", path, "--scale", "none", *QUICK)
    assert "left out: 'empty': it has no value in any row" in done.stderr
    assert "the same value in every row: 'same'" in done.stderr
    assert "Column 'mass' varies" in done.stderr
    frame.iloc[250, 3] = np.inf
    write_csv(frame, path, index=False)
    assert "infinite values, the first in column 'width' of row 251" in refused("fit", path)


def test_rows_at_fault_are_those_of_the_file(tmp_path, little_memory):
    frame = with_gaps()
    frame.iloc[100, 3] = 1e200
    path = write_csv(frame, tmp_path / "beetles.csv")
    assert "first: row 101" in refused("fit", path, "--index", "specimen", "--scale", "none")


def test_what_needs_all_rows_is_read_whole(table, tmp_path, little_memory):
    done = run_well("fit", table, "--method", "unn", "-o", tmp_path / "model", "--drop", "specimen")
    assert "pieces" not in done.stderr


def test_too_few_columns_and_wrong_shapes_are_refused(table, little_memory):
    assert "needs at least 5 columns" in refused("fit", table, "--dimensions", "5")
    assert "has 9 pixels" in refused("fit", table, "--image-shape", "3x3")
    assert "no column of numbers" in refused("fit", table, "--drop", ",".join(COLUMNS))


def test_a_killed_fit_goes_on(table, tmp_path, monkeypatch):
    monkeypatch.setattr(checkpoints, "SECONDS", 0.0)
    monkeypatch.setattr(checkpoints, "SHARE", np.inf)
    options = ["--index", "specimen", "--max-iter", "8"]
    run_well("fit", table, "-o", tmp_path / "whole", *options)
    kept = tmp_path / "checkpoint"
    write, times = checkpoints.write_model_file, []

    def killing(path, content):
        write(path, content)
        times.append(path)
        if len(times) == 4:
            raise SystemExit(9)

    monkeypatch.setattr(checkpoints, "write_model_file", killing)
    command = ["fit", table, "-o", tmp_path / "resumed", "--checkpoint", kept, *options]
    assert run(*command).exit_code == 9
    assert kept.exists()
    assert "differs in `max_iter`" in refused(*command[:-1], "9").replace(
        "--max-iter", "`max_iter`"
    )
    run_well(*command)
    assert not kept.exists()
    assert (tmp_path / "resumed").read_bytes() == (tmp_path / "whole").read_bytes()
    assert "--checkpoint goes with --method ukr" in refused(
        "fit", table, "--method", "unn", "--checkpoint", kept, code=2
    )
