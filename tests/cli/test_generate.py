from __future__ import annotations

import io

import numpy as np
import pandas as pd
import pytest
from cli.running import COLUMNS, make_frame, refused, run_json, run_well, write_csv

import twofold


def generate(model_file, *options) -> pd.DataFrame:
    return pd.read_csv(
        io.StringIO(run_well("generate", model_file, *options).stdout), float_precision="round_trip"
    )


def test_single_places(model, model_file):
    found = generate(model_file, "--at", "0.1,-0.2", "--at", "-0.3,0.4")
    assert list(found.columns) == ["x1", "x2", *COLUMNS]
    places = [[0.1, -0.2], [-0.3, 0.4]]
    np.testing.assert_array_equal(found[["x1", "x2"]], places)
    np.testing.assert_allclose(found[COLUMNS], model.inverse_transform(places), rtol=1e-12)
    only = generate(model_file, "--at", "0.1,-0.2", "--only-data")
    assert list(only.columns) == COLUMNS


def test_grid_covers_the_map_and_can_keep_to_the_domain(model, model_file):
    whole = generate(model_file, "--grid", 6)
    assert len(whole) == 36
    np.testing.assert_allclose(whole[["x1", "x2"]].min(), model.embedding_.min(axis=0))
    np.testing.assert_allclose(whole[["x1", "x2"]].max(), model.embedding_.max(axis=0))
    inside = generate(model_file, "--grid", 6, "--in-domain")
    assert len(inside) == model.in_domain(whole[["x1", "x2"]].to_numpy()).sum()


def test_path_between_rows_by_name_number_and_place(model, model_file):
    by_name = generate(model_file, "--path", "beetle02", "beetle07", "--steps", 5)
    by_number = generate(model_file, "--path", "#3", "#8", "--steps", 5)
    pd.testing.assert_frame_equal(by_name, by_number)
    ends = by_name[["x1", "x2"]].to_numpy()[[0, -1]]
    np.testing.assert_allclose(ends, model.embedding_[[2, 7]], rtol=1e-12)
    a, b = (",".join(map(str, end)) for end in model.embedding_[[2, 7]].tolist())
    by_place = generate(model_file, "--path", a, b, "--steps", 5)
    pd.testing.assert_frame_equal(by_place, by_name)


def test_samples_are_those_of_the_model(model, model_file):
    found = generate(model_file, "--samples", 15, "--seed", 4)
    np.testing.assert_allclose(found[COLUMNS], model.sample(15, random_state=4), rtol=1e-9)


def test_places_from_a_table_come_back_as_rows(model, model_file, table, tmp_path):
    places, out = tmp_path / "places.csv", tmp_path / "rows.csv"
    run_well("transform", model_file, table, "-o", places, "--index", "specimen")
    done = run_well("generate", model_file, "--points", places, "-o", out, "--only-data")
    assert "not used:" in done.stderr
    assert "'species'" in done.stderr
    found = pd.read_csv(out)
    expected = model.reconstruct(make_frame()[COLUMNS])
    np.testing.assert_allclose(found[COLUMNS], expected, rtol=1e-9)


def test_places_in_an_array(model, model_file, tmp_path):
    X = model.embedding_[:9]
    np.save(tmp_path / "places.npy", X)
    found = generate(model_file, "--points", tmp_path / "places.npy")
    np.testing.assert_allclose(found[COLUMNS], model.inverse_transform(X), rtol=1e-12)


def test_guesses_are_said(model_file, tmp_path):
    done = run_well("generate", model_file, "--at", "999,999")
    assert "warning: 1 place of 1 lies where no data supports" in done.stderr
    facts = run_json("generate", model_file, "--at", "999,999", "-o", tmp_path / "x.csv")
    assert facts["rows_outside_domain"] == 1


@pytest.mark.slow
def test_models_without_names(tmp_path):
    np.save(tmp_path / "rows.npy", make_frame(30)[COLUMNS].to_numpy())
    run_well("fit", tmp_path / "rows.npy", "--max-iter", "2")
    found = generate(tmp_path / "rows.twofold", "--at", "0,0")
    assert list(found.columns) == ["latent1", "latent2", "x1", "x2", "x3", "x4"]
    assert run_json("info", tmp_path / "rows.twofold")["columns"] == ["x1", "x2", "x3", "x4"]
    picture = tmp_path / "x3.png"
    run_well("plot", tmp_path / "rows.twofold", "-o", picture, "--color", "x3")
    assert picture.exists()


def test_rows_without_names_go_by_numbers(tmp_path):
    np.save(tmp_path / "rows.npy", make_frame(30)[COLUMNS].to_numpy())
    run_well("fit", tmp_path / "rows.npy", "--max-iter", "2")
    found = generate(tmp_path / "rows.twofold", "--path", 1, 30, "--steps", 2)
    X = twofold.load(tmp_path / "rows.twofold").embedding_
    np.testing.assert_allclose(found[["latent1", "latent2"]], X[[0, -1]], rtol=1e-12)


def test_names_that_are_numbers_are_names(tmp_path):
    frame = make_frame(30).reset_index(drop=True)
    path = write_csv(frame, tmp_path / "t.csv")  # called 0 to 29
    run_well("fit", path, "--max-iter", "2")
    found = generate(tmp_path / "t.twofold", "--path", 0, 29, "--steps", 2)
    X = twofold.load(tmp_path / "t.twofold").embedding_
    np.testing.assert_allclose(found[["x1", "x2"]], X[[0, -1]], rtol=1e-12)
    said = refused("generate", tmp_path / "t.twofold", "--path", 0, 30)
    assert "has no row called '30'" in said
    assert "'#30' is the row with that number" in said
    assert "no row called '178'" in refused("generate", tmp_path / "t.twofold", "--path", 178, 1)


def test_coordinates_are_told_from_data_called_alike(tmp_path):
    np.save(tmp_path / "rows.npy", make_frame(30)[COLUMNS].to_numpy())
    run_well("fit", tmp_path / "rows.npy", "--max-iter", "2")
    model, places = tmp_path / "rows.twofold", tmp_path / "places.csv"
    whole = generate(model, "--grid", 3)
    whole.to_csv(places, index=False)
    again = generate(model, "--points", places)
    np.testing.assert_allclose(again, whole, rtol=1e-12)
    data = whole.drop(columns=["latent1", "latent2"])
    data.to_csv(places, index=False)
    said = refused("generate", model, "--points", places)
    assert "x1 to x2" in said
    assert "data of the model" in said
    assert "latent1, latent2" in said
    np.save(tmp_path / "places.npy", whole[["latent1", "latent2"]].to_numpy())
    again = generate(model, "--points", tmp_path / "places.npy")
    np.testing.assert_allclose(again, whole, rtol=1e-12)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ([], "exactly one of --at, --points"),
        (["--grid", "5", "--samples", "3"], "got --grid and --samples"),
        (["--at", "0.1"], "--at takes 2 coordinates"),
        (["--at", "here"], "For example: --at"),
        (["--at", "nan,0"], "--at takes 2 coordinates"),
        (["--grid", "1"], "grid"),
        (["--grid", "100000"], "places in 2 dimensions"),
        (["--samples", "5", "--in-domain"], "--in-domain goes with --grid"),
        (["--path", "beetle01", "0.1,0.2,0.3"], "--path takes 2 coordinates"),
    ],
)
def test_wrong_usage(model_file, options, words):
    assert words in refused("generate", model_file, *options, code=2)


def test_rows_that_are_not_there(model_file, tmp_path, table):
    said = refused("generate", model_file, "--path", "beetel01", "beetle02")
    assert "has no row called 'beetel01'" in said
    assert "'beetle01'" in said
    assert "rows 1 to 60" in refused("generate", model_file, "--path", "#0", "#5")
    said = refused("generate", model_file, "--points", table)
    assert "that hold the coordinates: 'x1', 'x2'" in said
    holes = tmp_path / "holes.csv"
    holes.write_text("x1,x2\n0,1\n2,\n")
    assert "no coordinate in column 'x2' of row 2" in refused(
        "generate", model_file, "--points", holes
    )
