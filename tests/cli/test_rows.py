from __future__ import annotations

import io
import re

import numpy as np
import pandas as pd
import pytest
from cli.running import COLUMNS, make_frame, refused, run_json, run_well, write_csv

import twofold
from twofold.cli import console, streaming


@pytest.fixture
def fresh(tmp_path):
    """Specimens the model has not seen, in other order of columns and with others beside."""
    frame = make_frame(90).iloc[60:]
    frame = frame[[*reversed(COLUMNS), "species", "comment"]]
    return write_csv(frame, tmp_path / "fresh.csv")


def read(text: str) -> pd.DataFrame:
    return pd.read_csv(io.StringIO(text), index_col=0, float_precision="round_trip")


def test_transform_gives_what_the_model_gives(model, model_file, fresh):
    done = run_well("transform", model_file, fresh, "--index", "specimen")
    found = read(done.stdout)
    rows = make_frame(90).iloc[60:]
    assert list(found.columns) == ["x1", "x2", "species"]
    assert list(found.index) == list(rows.index)
    assert list(found["species"]) == list(rows["species"])
    np.testing.assert_array_equal(found[["x1", "x2"]], model.transform(rows[COLUMNS]))
    assert "not used: 'comment'" in done.stderr


def test_pieces_do_not_matter(model_file, fresh, monkeypatch):
    whole = run_well("transform", model_file, fresh, "--index", "specimen").stdout
    monkeypatch.setattr(streaming, "ROWS_AT_A_TIME", 7)
    assert run_well("transform", model_file, fresh, "--index", "specimen").stdout == whole
    found = run_well("transform", model_file, fresh)
    assert found.stdout == whole
    assert "row names: 'specimen'" in found.stderr


def test_transform_with_error_and_density(model, model_file, fresh, tmp_path):
    path = tmp_path / "places.tsv"
    done = run_well(
        "transform", model_file, fresh, "-o", path, "--error", "--density", "--index", "specimen"
    )
    assert done.stdout == f"{path}\n"
    found = pd.read_csv(path, sep="\t", index_col=0)
    rows = make_frame(90).iloc[60:][COLUMNS]
    X = model.transform(rows)
    np.testing.assert_allclose(found["error"], -model.score_samples(rows), rtol=1e-12)
    np.testing.assert_allclose(found["density"], model.density(X), rtol=1e-12)
    np.testing.assert_array_equal(found["in_domain"], model.in_domain(X).astype(int))


def test_rows_without_values_get_empty_results(model_file, tmp_path):
    frame = make_frame(6)
    frame.loc["beetle02", COLUMNS] = np.nan
    frame.loc["beetle03", "mass"] = np.nan
    path = write_csv(frame, tmp_path / "t.csv")
    done = run_well("transform", model_file, path, "--density", "--error", "--index", "specimen")
    found = read(done.stdout)
    assert found.loc["beetle02", ["x1", "x2", "error", "density"]].isna().all()
    assert found.drop("beetle02")[["x1", "x2"]].notna().all(axis=None)
    assert "warning: 1 row of 6 without any value" in done.stderr
    only = write_csv(frame.loc[["beetle02"]], tmp_path / "only.csv")
    assert (
        read(run_well("transform", model_file, only, "--index", "specimen").stdout)["x1"]
        .isna()
        .all()
    )
    assert run_well("complete", model_file, only).exit_code == 0
    assert run_well("score", model_file, only).exit_code == 0


def test_complete_fills_only_what_is_missing(model, model_file, tmp_path):
    frame = make_frame(20)
    holes = frame.copy()
    holes.loc["beetle02", "mass"] = np.nan
    holes.loc["beetle04", ["length", "width"]] = np.nan
    path, out = write_csv(holes, tmp_path / "holes.csv"), tmp_path / "whole.csv"
    done = run_well("complete", model_file, path, "-o", out, "--report", "--index", "specimen")
    found = pd.read_csv(out, index_col=0)
    assert list(found.columns) == list(frame.columns)
    assert list(found["comment"]) == list(frame["comment"])
    seen = holes[COLUMNS].notna().to_numpy()
    np.testing.assert_array_equal(found[COLUMNS].to_numpy()[seen], frame[COLUMNS].to_numpy()[seen])
    np.testing.assert_allclose(found[COLUMNS], model.complete(holes[COLUMNS]), rtol=1e-12)
    assert "filled 3 cells in 20 rows" in done.stderr
    assert "mass: 1" in done.stderr


def test_complete_keeps_the_way_a_table_is_written(model_file, tmp_path):
    frame = make_frame(8)
    frame.loc["beetle02", "mass"] = np.nan
    path, out = tmp_path / "t.csv", tmp_path / "out.csv"
    path.write_text(frame.to_csv(sep=";", decimal=","))
    run_well("complete", model_file, path, "-o", out, "--index", "specimen")
    before, after = path.read_text().splitlines(), out.read_text().splitlines()
    assert after[0] == before[0]
    assert after[1] == before[1]
    assert re.search(r";-?\d+,\d+$", after[3])


OFFICE = "sep=;\r\nName;Größe;Maß;Note\r\n"


def test_complete_leaves_every_other_cell_as_it_is_written(tmp_path):
    rng = np.random.default_rng(1)
    cells = [
        [f"p{k}", f"{a:.2f}0", f"+{b:.1f}", "007.0"] for k, (a, b) in enumerate(rng.random((30, 2)))
    ]
    cells[4][2] = ""
    cells[7] = ["p7", "NA", "", "1"]  # a row without values stays as it is
    body = "".join(";".join(row).replace(".", ",") + "\r\n" for row in cells)
    path, out = tmp_path / "t.csv", tmp_path / "whole.csv"
    path.write_bytes((OFFICE + body).encode("cp1252"))
    run_well("fit", path, "--drop", "Note", "--max-iter", "2", "-q", "1")
    run_well("complete", tmp_path / "t.twofold", path, "-o", out)
    raw = out.read_bytes()
    assert raw.startswith(b"\xef\xbb\xbfsep=;\r\n")
    before, after = (OFFICE + body).split("\r\n"), raw.decode("utf-8-sig").split("\r\n")
    changed = [k for k, (old, new) in enumerate(zip(before, after, strict=True)) if old != new]
    assert changed == [6]
    assert re.fullmatch(re.escape(before[6][: -len(";007,0")]) + r"\d+,\d+;007,0", after[6])
    run_well("denoise", tmp_path / "t.twofold", path, "-o", out)
    assert [line.split(";")[3] for line in out.read_text("utf-8-sig").splitlines()[2:]] == [
        row[3].replace(".", ",") for row in cells
    ]
    places = tmp_path / "whole.tsv"  # another kind of file has decimal points
    run_well("complete", tmp_path / "t.twofold", path, "-o", places)
    assert float(pd.read_csv(places, sep="\t")["Größe"][0]) == float(cells[0][1])


def test_complete_keeps_the_types_of_parquet(tmp_path):
    frame = make_frame(20).reset_index(drop=True)
    frame["count"] = np.arange(20) % 7
    frame["gaps"] = pd.array(np.arange(20) % 5, dtype="Int64")
    frame["single"] = (np.arange(20) ** 0.5).astype(np.float32)
    frame.loc[3, "gaps"] = pd.NA
    frame.loc[4, "single"] = np.nan
    path, out = tmp_path / "t.parquet", tmp_path / "whole.parquet"
    frame.to_parquet(path)
    run_well("fit", path, "--max-iter", "2", "--drop", "species")
    run_well("complete", tmp_path / "t.twofold", path, "-o", out)
    found = pd.read_parquet(out)
    kinds = found.dtypes.astype(str)
    assert kinds[["count", "gaps", "single", "mass"]].tolist() == [
        "int64", "float64", "float32", "float64",
    ]  # fmt: skip
    pd.testing.assert_series_equal(found["count"], frame["count"])
    assert found.notna().all(axis=None)


def test_score_says_when_rows_are_the_models_own(model_file, table, fresh, tmp_path):
    done = run_well("score", model_file, table)
    words = ["fit", table, "-o", tmp_path / "m.twofold", "--label", "species", "--max-iter", "10"]
    share = run_json(*words)["error_share"]
    expected = f"60 of 60 rows are the model's own; leave-one-out error {100 * share:.3g} %"
    assert expected in done.stderr
    mixed = pd.concat([make_frame(90).iloc[60:], make_frame().iloc[:1]])
    done = run_well("score", model_file, write_csv(mixed, tmp_path / "mixed.csv"))
    assert "1 of 31 rows is the model's own" in done.stderr
    assert "the model's own" not in run_well("score", model_file, fresh).stderr


def test_progress_knows_the_share_of_a_text_file(model_file, tmp_path, monkeypatch):
    monkeypatch.setattr(console, "SECONDS_BETWEEN_LINES", 0.0)
    monkeypatch.setattr(streaming, "ROWS_AT_A_TIME", 5)
    for name in ("t.csv", "t.csv.gz"):
        path = write_csv(make_frame(20), tmp_path / name)
        said = run_well("transform", model_file, path, "-o", tmp_path / "o.csv").stderr
        shares = [int(share) for share in re.findall(r"(\d+) %, \d+ rows, .* s left", said)]
        assert shares == [25, 50, 75, 100]


def test_denoise_replaces_the_columns_of_the_model(model, model_file, fresh):
    done = run_well("denoise", model_file, fresh, "--index", "specimen")
    found, rows = read(done.stdout), make_frame(90).iloc[60:]
    assert list(found.columns) == [*reversed(COLUMNS), "species", "comment"]
    np.testing.assert_allclose(found[COLUMNS], model.reconstruct(rows[COLUMNS]), rtol=1e-12)
    assert "kept as it is: 'comment'" in done.stderr


def test_score_adds_up(model, model_file, fresh, tmp_path, monkeypatch):
    monkeypatch.setattr(streaming, "ROWS_AT_A_TIME", 7)
    out = tmp_path / "errors.csv"
    facts = run_json("score", model_file, fresh, "-o", out, "--index", "specimen")
    rows = make_frame(90).iloc[60:][COLUMNS]
    errors = -model.score_samples(rows)
    assert facts["mean_squared_error"] == pytest.approx(errors.sum() / rows.size)
    scaled = (rows.to_numpy() - model.center_) / model.spread_
    assert facts["variance_explained"] == pytest.approx(1 - errors.sum() / (scaled**2).sum())
    assert [entry["name"] for entry in facts["worst_rows"]] == list(
        rows.index[np.argsort(-errors)[:5]]
    )
    np.testing.assert_allclose(pd.read_csv(out, index_col=0)["error"], errors, rtol=1e-12)
    lines = run_well("score", model_file, fresh).stdout
    assert "variance explained" in lines
    assert "beetle" in lines


def test_score_of_a_plain_model(tmp_path, table):
    path = tmp_path / "plain.twofold"
    options = ["--index", "specimen", "--scale", "none", "--max-iter", "3"]
    run_well("fit", table, "-o", path, *options)
    facts = run_json("score", path, table)
    model, rows = twofold.load(path), make_frame()[COLUMNS]
    around = ((rows - rows.mean()) ** 2).to_numpy().sum()
    assert facts["variance_explained"] == pytest.approx(1 + model.score(rows) * 60 / around)


def test_missing_columns_are_named_with_what_is_close(model_file, tmp_path):
    frame = make_frame(9).rename(columns={"length": "Length", "mass": "weight_g"})
    said = refused("transform", model_file, write_csv(frame, tmp_path / "t.csv"))
    assert "lacks 2 columns that the model needs: 'length', 'mass'" in said
    assert "'Length' for 'length'" in said


def test_columns_by_position_without_names(model, model_file, tmp_path):
    Y = make_frame(9)[COLUMNS].to_numpy()
    np.save(tmp_path / "t.npy", Y)
    out = tmp_path / "x.npy"
    run_well("transform", model_file, tmp_path / "t.npy", "-o", out)
    np.testing.assert_array_equal(np.load(out), model.transform(make_frame(9)[COLUMNS]))
    np.save(tmp_path / "wide.npy", np.column_stack([Y, Y]))
    said = refused("transform", model_file, tmp_path / "wide.npy")
    assert "has 8 columns, but the model was fitted to 4" in said


def test_arrays_hold_no_labels(model, model_file, table, tmp_path):
    out = tmp_path / "x.npy"
    done = run_well("transform", model_file, table, "-o", out)
    assert "numbers only, without 'species'" in done.stderr
    np.testing.assert_array_equal(np.load(out), model.embedding_)


def test_latent_columns_do_not_hide_others(tmp_path):
    frame = make_frame(30).rename(columns={"species": "x1"})
    path = write_csv(frame, tmp_path / "t.csv")
    run_well("fit", path, "--label", "x1", "--max-iter", "2")
    header = run_well("transform", tmp_path / "t.twofold", path).stdout.splitlines()[0]
    assert header == "specimen,latent1,latent2,x1"


def test_bad_cells_name_line_and_column(model_file, tmp_path):
    frame = make_frame(9).astype({"mass": object})
    frame.loc["beetle04", "mass"] = "12 g"
    out = tmp_path / "out.csv"
    out.write_text("old")
    path = write_csv(frame, tmp_path / "t.csv")
    said = refused("transform", model_file, path, "-o", out)
    for word in ("line 6", "mass", "12 g", "hint:"):
        assert word in said
    assert out.read_text() == "old"
    assert sorted(file.name for file in tmp_path.iterdir()) == ["out.csv", "t.csv"]


def test_infinite_cells_are_named(model_file, tmp_path):
    frame = make_frame(9)
    frame.loc["beetle04", "mass"] = np.inf
    said = refused("transform", model_file, write_csv(frame, tmp_path / "t.csv"))
    assert "infinite value in column 'mass' of row 5" in said


def test_confused_arguments(model_file, table, tmp_path):
    assert "The model comes first" in refused("transform", table, model_file, code=2)
    assert "twofold fit" in refused("transform", table, table)
    said = refused("transform", model_file.with_name("betles.twofold"), table)
    assert "Did you mean" in said
    assert "beetles.twofold" in said
    assert "would replace" in refused("complete", model_file, table, "-o", table)
    assert "would replace" in refused("complete", model_file, table, "-o", model_file)
    assert "Add -o FILE" in refused("transform", model_file, table, "--json", code=2)
    out = tmp_path / "out.xls"
    assert "out.xls" in refused("transform", model_file, table, "-o", out)
    damaged = tmp_path / "damaged.twofold"
    damaged.write_bytes(model_file.read_bytes()[:-9])
    assert "truncated" in refused("transform", damaged, table)


def test_json_with_a_file(model_file, table, tmp_path):
    out = tmp_path / "x.parquet"
    facts = run_json("transform", model_file, table, "-o", out, "--density", "--index", "specimen")
    assert facts["output"] == str(out)
    assert facts["rows"] == 60
    assert facts["rows_outside_domain"] == 0
    assert list(pd.read_parquet(out).columns) == ["x1", "x2", "density", "in_domain", "species"]


def test_rows_that_a_model_refuses_are_counted_as_in_the_table(model_file, tmp_path, monkeypatch):
    frame = make_frame(20)
    frame.loc[frame.index[3], COLUMNS] = np.nan
    frame.loc[frame.index[12], "width"] = 1e200
    monkeypatch.setattr(streaming, "ROWS_AT_A_TIME", 7)
    table = write_csv(frame, tmp_path / "far.csv")
    assert "(first: row 13)" in refused("score", model_file, table, "-o", tmp_path / "out.csv")
    assert "(first: row 13)" in refused("fit", table, "--label", "species")


def test_complete_with_intervals_and_draws(model, model_file, tmp_path):
    holes = make_frame(20)
    holes.loc["beetle02", "mass"] = np.nan
    holes.loc["beetle04", ["length", "width"]] = np.nan
    path = write_csv(holes, tmp_path / "holes.csv")
    found = read(run_well("complete", model_file, path, "--intervals", "--level", "0.8").stdout)
    low, high = model.intervals(holes[COLUMNS], 0.8)
    k = COLUMNS.index("mass")
    assert found.loc["beetle02", "mass_low"] == pytest.approx(low[2, k])
    assert found.loc["beetle02", "mass_high"] == pytest.approx(high[2, k])
    assert found["mass_low"].notna().sum() == 1
    draws = read(run_well("complete", model_file, path, "--draws", "3", "--seed", "4").stdout)
    assert len(draws) == 60
    assert draws.loc["beetle04", "width"].nunique() == 3
    assert draws.loc["beetle05", "width"].nunique() == 1
    assert list(draws["draw"].unique()) == [1, 2, 3]
    again = read(run_well("complete", model_file, path, "--draws", "3", "--seed", "4").stdout)
    pd.testing.assert_frame_equal(draws, again)
    told = refused("complete", model_file, path, "--draws", "2", "--intervals", code=2)
    assert "do not go together" in told
    told = refused("complete", model_file, path, "--level", "0.5", code=2)
    assert "give --intervals, too" in told
    told = refused("complete", model_file, path, "--intervals", "--seed", "0", code=2)
    assert "give --draws N, too" in told


@pytest.mark.filterwarnings("default:Intervals cannot be sure")
def test_a_level_that_few_rows_cannot_tell_of_is_said(model_file, tmp_path):
    frame = make_frame(12)
    frame.loc["beetle03", "mass"] = np.nan
    path = write_csv(frame, tmp_path / "holes.csv")
    done = run_well("complete", model_file, path, "--intervals", "--level", "0.999")
    assert done.stderr.count("warning: Intervals cannot be sure to hold 99.9 %") == 1


def test_score_says_why(model, model_file, tmp_path):
    frame = make_frame(12)
    frame.loc["beetle03", "mass"] *= 3
    path = write_csv(frame, tmp_path / "odd.csv")
    done = run_well("score", model_file, path, "--why", "-o", tmp_path / "scores.csv")
    found = pd.read_csv(tmp_path / "scores.csv", index_col=0)
    np.testing.assert_allclose(found["p_value"], model.p_values(frame[COLUMNS]))
    why = model.explain(frame[COLUMNS])
    row = frame.index.get_loc("beetle03")
    most = why.features(row, 1)[0]
    assert found.loc["beetle03", "stands_out"] == COLUMNS[most]
    assert found.loc["beetle03", "expected"] == pytest.approx(why.expected[row, most])
    assert found.loc["beetle03", "p_value"] < 0.05
    assert re.search(r"beetle03 .*p = 0.0.*deviations (above|below)", done.stdout)
    # Listed are the least likely rows, not those with the largest errors.
    facts = run_json("score", model_file, path, "--why")
    least = found["p_value"].sort_values(kind="stable").to_numpy()[:5]
    np.testing.assert_allclose([row["p_value"] for row in facts["worst_rows"]], least)
    assert "least likely rows:" in done.stdout


def test_denoise_with_residuals(model, model_file, tmp_path):
    frame = make_frame(12)
    path = write_csv(frame, tmp_path / "t.csv")
    found = read(run_well("denoise", model_file, path, "--residuals").stdout)
    wanted = model.reconstruct(frame[COLUMNS], use_residuals=True)
    np.testing.assert_allclose(found[COLUMNS], wanted)
