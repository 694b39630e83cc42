from __future__ import annotations

import pandas as pd
import pytest
from cli.running import COLUMNS, refused, run_json, run_well

KINDS = ["map", "grid", "magnification", "sensitivity", "history", "errors"]


def test_info_in_words(model_file):
    said = run_well("info", model_file).stdout
    for words in ("UKR", "4 columns to 2 dimensions", "'length'", "standard", "60, with names"):
        assert words in said
    assert "label 'species'" in said
    assert "2 values: 'long', 'short'" in said
    assert "scikit-learn" in said


def test_info_as_json(model_file):
    facts = run_json("info", model_file)
    assert facts["class"] == "UKR"
    assert facts["scale"] == "standard"
    assert facts["columns"] == COLUMNS
    assert facts["rows"] == 60
    assert facts["dimensions"] == 2
    assert facts["n_iter"] == 10
    assert facts["parameters"]["max_iter"] == "10"
    assert "twofold" in facts["versions"]


def test_info_about_what_is_no_model(table, tmp_path):
    assert "looks like a table" in refused("info", table)
    text = tmp_path / "notes.twofold"
    text.write_text("just some words that are no model at all")
    assert "is not a model file" in refused("info", text)
    assert "is a folder" in refused("info", tmp_path)


@pytest.mark.parametrize("kind", KINDS)
def test_pictures_of_every_kind(model_file, tmp_path, kind):
    path = tmp_path / f"{kind}.png"
    done = run_well("plot", model_file, "-o", path, "--kind", kind)
    assert done.stdout == f"{path}\n"
    assert path.read_bytes().startswith(b"\x89PNG")
    assert [file.name for file in tmp_path.iterdir()] == [path.name]


@pytest.mark.parametrize(("suffix", "start"), [("pdf", b"%PDF"), ("svg", b"<?xml")])
def test_formats_for_papers(model_file, tmp_path, suffix, start):
    path = tmp_path / f"map.{suffix}"
    run_well("plot", model_file, "-o", path, "--color", "mass")
    assert path.read_bytes().startswith(start)


def test_picture_of_a_path_and_of_one_column(model_file, tmp_path):
    path = tmp_path / "way.png"
    run_well("plot", model_file, "-o", path, "--path", "beetle01", "#5", "--steps", 4)
    assert path.exists()
    column = tmp_path / "mass.png"
    run_well("plot", model_file, "-o", column, "--kind", "sensitivity", "--color", "mass")
    assert column.exists()


def test_ends_of_a_path_are_called_as_they_were_asked_for(model_file, tmp_path):
    path = tmp_path / "way.svg"
    run_well("plot", model_file, "-o", path, "--path", "beetle01", "#5")
    page = path.read_text()
    assert "<!-- beetle01 -->" in page
    assert "<!-- #5 -->" in page


def test_errors_of_a_table(model_file, table, tmp_path):
    path = tmp_path / "errors.png"
    done = run_well("plot", model_file, "-o", path, "--kind", "errors", "--table", table)
    assert "not used: 'specimen', 'comment'" in done.stderr
    assert path.exists()


def test_odd_rows_are_called_by_their_places_in_the_table(model_file, table, tmp_path):
    frame = pd.read_csv(table).drop(columns="specimen")
    frame.loc[4] = None
    frame.loc[6, "mass"] *= 30
    frame.to_csv(tmp_path / "odd.csv", index=False)
    path = tmp_path / "odd.svg"
    run_well("plot", model_file, "-o", path, "--kind", "odd", "--table", tmp_path / "odd.csv")
    assert "<!-- row 7, p = " in path.read_text()
    run_well("plot", model_file, "-o", path, "--kind", "odd")
    assert "<!-- beetle" in path.read_text()


def test_pictures_that_cannot_be_drawn(model_file, tmp_path):
    path = tmp_path / "map.png"
    said = refused("plot", model_file, "-o", path, "--color", "maas")
    assert "no column called 'maas'" in said
    assert "'mass'" in said
    assert "sets the format" in refused("plot", model_file, "-o", tmp_path / "map.doc", code=2)
    assert "go together" in refused("plot", model_file, "-o", path, "--kind", "path", code=2)
    assert "--kind errors" in refused("plot", model_file, "-o", path, "--table", "t.csv", code=2)
    said = refused("plot", model_file, "-o", path, "--kind", "grid", "--color", "mass", code=2)
    assert "not with grid" in said
    assert not path.exists()


def test_errors_of_landmarks_need_a_table(table, tmp_path):
    model = tmp_path / "m.twofold"
    run_well("fit", table, "-o", model, "--landmarks", "20", "--max-iter", "2")
    path = tmp_path / "errors.png"
    said = refused("plot", model, "-o", path, "--kind", "errors")
    assert "--table TABLE" in said
    assert "does not keep its rows" in refused("plot", model, "-o", path, "--color", "error")
    run_well("plot", model, "-o", path, "--kind", "errors", "--table", table)
    assert "carried by 20 landmarks" in run_well("info", model).stdout


def test_explorer_lies_beside_the_model(model_file, tmp_path):
    copy = tmp_path / "beetles.twofold"
    copy.write_bytes(model_file.read_bytes())
    done = run_well("explore", copy, "--title", "Beetles & bugs")
    assert done.stdout == f"{tmp_path / 'beetles.html'}\n"
    page = (tmp_path / "beetles.html").read_text()
    assert "Beetles &amp; bugs" in page
    facts = run_json("explore", copy, "-o", tmp_path / "other.html")
    assert facts["bytes"] == (tmp_path / "other.html").stat().st_size


def test_explorer_needs_a_name_for_browsers(model_file, tmp_path):
    assert "ends in .html" in refused("explore", model_file, "-o", tmp_path / "map.txt", code=2)
