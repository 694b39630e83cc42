from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from cli.running import COLUMNS, make_frame, refused, run, run_json, run_well, write_csv

import twofold
from twofold.cli.describing import how_it_ended, is_still_improving
from twofold.cli.fitting import parse_image_shape

QUICK = ["--max-iter", "3"]


def test_says_what_is_used_and_writes_only_the_path_to_stdout(table, tmp_path):
    path = tmp_path / "m.twofold"
    done = run_well("fit", table, "-o", path, "--label", "species", "--index", "specimen", *QUICK)
    assert done.stdout == f"{path}\n"
    assert "60 rows, 4 columns used: 'length', 'width', 'height', 'mass'" in done.stderr
    assert "left out: 'comment'" in done.stderr
    assert "left out: 'species'" not in done.stderr
    assert "every column by its standard deviation" in done.stderr
    assert "stopped after 3 iterations (more would" in done.stderr
    assert "leave-one-out error" in done.stderr


def test_model_knows_names_labels_and_columns(model):
    assert list(model.feature_names_in_) == COLUMNS
    assert model.notes_.names[3] == "beetle03"
    assert set(model.notes_.labels["species"]) == {"long", "short"}
    assert isinstance(model, twofold.Scaled)


def test_fits_like_the_library(table, tmp_path):
    path = tmp_path / "m.twofold"
    run_well("fit", table, "-o", path, "--index", "specimen", "--scale", "none", *QUICK)
    expected = twofold.UKR(max_iter=3, random_state=0).fit(make_frame()[COLUMNS])
    found = twofold.load(path)
    assert isinstance(found, twofold.UKR)
    np.testing.assert_array_equal(found.embedding_, expected.embedding_)


def test_default_output_lies_beside_the_table(tmp_path):
    path = write_csv(make_frame(30), tmp_path / "my data.csv.gz")
    done = run_well("fit", path, *QUICK)
    assert done.stdout == f"{tmp_path / 'my data.twofold'}\n"
    assert (tmp_path / "my data.twofold").exists()


def test_json_is_the_whole_stdout(table, tmp_path):
    path = tmp_path / "m.twofold"
    facts = run_json("fit", table, "-o", path, "--label", "species", *QUICK)
    assert facts["model"] == str(path)
    assert facts["rows"] == 60
    assert facts["columns"] == COLUMNS
    assert {entry["column"] for entry in facts["columns_left_out"]} == {"comment"}
    assert facts["iterations"] == 3
    assert facts["stop_reason"] == "max_iter"
    assert 0 < facts["error_share"] < 1
    model = twofold.load(path)
    Y = make_frame()[COLUMNS].to_numpy()
    variance = Y.shape[1]  # standard scaling gives every column a variance of 1
    assert facts["error_share"] == pytest.approx(model.objective_ / variance)


def test_quiet_says_nothing(table, tmp_path):
    done = run_well("fit", table, "-o", tmp_path / "m.twofold", "--quiet", *QUICK)
    assert done.stderr == ""


def test_options_of_all_commands_may_come_first(table, tmp_path):
    done = run_well("--quiet", "--json", "fit", table, "-o", tmp_path / "m.twofold", *QUICK)
    assert done.stderr == ""
    assert done.stdout.startswith("{")


def test_excel_export_of_a_german_office(tmp_path):
    frame = make_frame(30)
    path = tmp_path / "export.csv"
    text = frame.to_csv(sep=";", decimal=",").replace("\n", "\r\n")
    path.write_bytes(b"\xef\xbb\xbf" + text.encode())
    facts = run_json("fit", path, "--index", "specimen", "--label", "species", *QUICK)
    assert facts["columns"] == COLUMNS
    np.testing.assert_allclose(
        twofold.load(facts["model"]).data_.sum(), frame[COLUMNS].to_numpy().sum(), rtol=1e-9
    )


def test_missing_cells_and_empty_rows_and_columns(tmp_path):
    frame = make_frame(40)
    frame.loc["beetle05", COLUMNS] = np.nan
    frame.loc["beetle07", "mass"] = np.nan
    frame["remark"] = np.nan
    path = write_csv(frame, tmp_path / "holes.csv")
    done = run_well("fit", path, "--index", "specimen", "--label", "species", *QUICK)
    assert "left out: 1 row without any value" in done.stderr
    assert "left out: 'remark'" in done.stderr
    assert "missing: 1 cell" in done.stderr
    notes = twofold.load(tmp_path / "holes.twofold").notes_
    assert len(notes.names) == 39
    assert "beetle05" not in notes.names
    assert len(notes.labels["species"]) == 39


@pytest.mark.slow
def test_markers_of_missing_cells_can_be_named(tmp_path):
    frame = make_frame(30).astype({"mass": object})
    frame.loc["beetle03", "mass"] = "n.d."
    path = write_csv(frame, tmp_path / "t.csv")
    before = run_well("fit", path, *QUICK)
    assert "left out: 'mass'" in before.stderr
    assert "n.d." in before.stderr
    facts = run_json("fit", path, "--missing", "n.d.", *QUICK)
    assert "mass" in facts["columns"]
    said = refused("fit", path, "--columns", "length,width,mass")
    assert "mass" in said
    assert "n.d." in said
    assert "--missing" in said


def test_constant_columns_are_said(tmp_path):
    frame = make_frame(30).assign(batch=3.0)
    done = run_well("fit", write_csv(frame, tmp_path / "t.csv"), *QUICK)
    assert "  batch: constant (the same value in every row)" in done.stderr
    assert "5 columns used: 'species', 'length', 'width', 'height', 'mass'\n" in done.stderr
    assert "left out: 'batch': the same value in every row, which comes back" in done.stderr
    numbers = write_csv(frame[[*COLUMNS, "batch"]], tmp_path / "t.csv")
    done = run_well("fit", numbers, *QUICK)
    assert "left out: 'batch': the same value in every row" in done.stderr


def test_a_column_that_counts_rows_is_pointed_at(tmp_path):
    frame = make_frame(30)
    frame.insert(0, "id", np.arange(1, 31))
    numbers = frame[["id", *COLUMNS]]
    done = run_well("fit", write_csv(numbers, tmp_path / "t.csv", index=False), *QUICK)
    assert "warning: Column 'id' counts the rows" in done.stderr
    assert "--index 'id'" in done.stderr
    done = run_well("fit", write_csv(frame, tmp_path / "t.csv", index=False), *QUICK)
    assert "left out: 'id': it counts the rows" in done.stderr
    assert "--index 'id'" in done.stderr


@pytest.mark.slow
def test_the_only_text_that_differs_in_every_row_names_the_rows(table, tmp_path):
    done = run_well("fit", table, "-o", tmp_path / "m.twofold", *QUICK)
    assert "row names: 'specimen'" in done.stderr
    assert "left out: 'specimen'" not in done.stderr
    assert twofold.load(tmp_path / "m.twofold").notes_.names[3] == "beetle03"
    dropped = run_well("fit", table, "-o", tmp_path / "m.twofold", "--drop", "specimen", *QUICK)
    assert "row names" not in dropped.stderr
    twice = make_frame(20).assign(code=[f"c{k}" for k in range(20)])
    done = run_well("fit", write_csv(twice, tmp_path / "t.csv"), *QUICK)
    assert "row names" not in done.stderr
    assert "--index 'specimen' takes it for their names" in done.stderr


@pytest.mark.parametrize("form", ["%Y-%m-%d", "%d.%m.%Y"])
def test_dates_name_no_rows(tmp_path, form):
    frame = make_frame(20).reset_index(drop=True).drop(columns="comment")
    frame["day"] = pd.date_range("2020-01-28", periods=20).strftime(form)
    path = write_csv(frame, tmp_path / "t.csv", index=False)
    done = run_well("fit", path, *QUICK)
    assert "row names" not in done.stderr
    assert "  day: date" in done.stderr
    run_well("fit", path, "--index", "day", *QUICK)
    assert twofold.load(tmp_path / "t.twofold").notes_.names[0] == frame["day"][0]


def test_numbers_written_otherwise_name_no_rows(tmp_path):
    frame = make_frame(20).reset_index(drop=True)
    frame["price"] = [f"1,{100 + 7 * k % 20}" for k in range(20)]
    frame["share"] = [f"{7 * k % 20}.5%" for k in range(20)]
    frame["width"] = [f"{7 * k % 20},5" for k in range(20)]  # unlike the others
    done = run_well("fit", write_csv(frame, tmp_path / "t.csv", index=False), *QUICK)
    assert "'price': '1,100' is read as 1100" in done.stderr
    assert "'share': '0.5%' is read as 0.5" in done.stderr
    assert "left out: 'width': '0,5' has a decimal comma, but the table has a" in done.stderr
    assert "row names" not in done.stderr


@pytest.mark.parametrize("key", ["y", "labels", "target"])
def test_companions_of_a_matrix_are_labels(tmp_path, key):
    Y = make_frame(30)[COLUMNS].to_numpy()
    np.savez(tmp_path / "t.npz", X=Y, **{key: np.arange(30) % 3})
    done = run_well("fit", tmp_path / "t.npz", *QUICK)
    assert f"'{key}' taken as a label: it is not part of X" in done.stderr
    assert "4 columns used: 'x1', 'x2', 'x3', 'x4'\n" in done.stderr
    model = twofold.load(tmp_path / "t.twofold")
    assert model.n_features_in_ == 4
    assert set(model.notes_.labels[key]) == {"0", "1", "2"}
    placed = run_well("transform", tmp_path / "t.twofold", tmp_path / "t.npz").stdout
    assert placed.splitlines()[0] == f"latent1,latent2,{key}"


def test_companions_are_not_needed_and_may_be_columns(tmp_path):
    Y = make_frame(30)[COLUMNS].to_numpy()
    np.savez(tmp_path / "t.npz", X=Y, y=np.arange(30) % 3)
    np.save(tmp_path / "plain.npy", Y)
    run_well("fit", tmp_path / "plain.npy", *QUICK)
    run_well("transform", tmp_path / "plain.twofold", tmp_path / "t.npz")
    facts = run_json("fit", tmp_path / "t.npz", "--columns", "x1,x2,y", *QUICK)
    assert facts["columns"] == ["x1", "x2", "y"]


def test_many_columns_are_shown_by_their_ends(tmp_path):
    wide = np.random.default_rng(0).normal(size=(12, 21))
    np.save(tmp_path / "t.npy", wide)
    said = run_well("fit", tmp_path / "t.npy", *QUICK).stderr
    assert "21 columns used: 'x1', 'x2', 'x3', 'x4', 'x5' ... 'x19', 'x20', 'x21'" in said
    np.save(tmp_path / "t.npy", wide[:, :20])
    assert "'x9', 'x10', 'x11'" in run_well("fit", tmp_path / "t.npy", *QUICK).stderr


def test_single_cells_that_are_no_numbers_are_counted(tmp_path):
    frame = make_frame(80).astype({"mass": object})
    frame.loc["beetle16", "mass"] = "n.b."
    path = write_csv(frame, tmp_path / "t.csv")
    done = run_well("fit", path, *QUICK)
    expected = "left out: 'mass': 1 of 80 cells is not a number, first 'n.b.' in row 17\n"
    assert expected in done.stderr
    assert "--missing n.b." in done.stderr
    said = refused("fit", path, "-q", "4", "--label", "species")
    assert "hint: 'mass' could be used; if it stands for a missing value: --missing n.b." in said


def test_the_other_decimal_mark_is_pointed_at(tmp_path):
    text = make_frame(30).to_csv(sep=";", decimal=",")
    rows = text.splitlines()
    rows[5] = rows[5].rpartition(";")[0] + ";5.5"
    path = tmp_path / "t.csv"
    path.write_text("\n".join(rows) + "\n")
    done = run_well("fit", path, *QUICK)
    assert "left out: 'mass': 1 of 30 cells is not a number, first '5.5' in row 5" in done.stderr
    assert "'5.5' has a decimal point, but the table has a decimal comma" in done.stderr
    assert "has a decimal point" in refused("fit", path, "--columns", "length,mass")


def test_truth_values_are_a_category_or_the_way_out_is_said(tmp_path):
    frame = make_frame(20).assign(alive=np.arange(20) % 2 == 0)
    path = write_csv(frame, tmp_path / "t.csv")
    assert "  alive: category" in run_well("fit", path, *QUICK).stderr
    done = run_well("fit", path, "--scale", "none", *QUICK)
    assert "left out: 'alive': 'True' is not a number; to use true and false" in done.stderr


def test_rows_are_counted_from_1(tmp_path):
    Y = make_frame(20)[COLUMNS].to_numpy(copy=True)
    Y[0, 1] = np.inf
    np.save(tmp_path / "t.npy", Y)
    assert "in column 'x2' of row 1." in refused("fit", tmp_path / "t.npy")


def test_phases_are_said_in_order(table, tmp_path):
    said = run_well("fit", table, "-o", tmp_path / "m.twofold", *QUICK).stderr.splitlines()
    phases = [line for line in said if line in ("reading", "seeking a start", "fitting")]
    assert phases == ["reading", "seeking a start", "fitting"]


@pytest.mark.parametrize(
    ("where", "words"),
    [
        ("twofold.cli.training_table.open_table", "the table was being read"),
        ("twofold.ukr.estimator.UKR.fit", "the search for a start was running"),
    ],
)
def test_an_interrupt_says_what_was_being_done(table, tmp_path, monkeypatch, where, words):
    def press_ctrl_c(*args, **kwargs):
        raise KeyboardInterrupt

    monkeypatch.setattr(where, press_ctrl_c)
    path = tmp_path / "m.twofold"
    said = refused("fit", table, "-o", path, code=130)
    assert f"Interrupted while {words}; nothing to keep yet." in said
    assert not path.exists()


def test_the_end_at_max_iter_says_whether_more_would_help():
    flat = SimpleNamespace(
        history_=np.array([9.0, 3, 2, 1.5, 1.2, 1.1, 1.05, 1.03, 1.02, 1.01, 0.99])
    )
    assert is_still_improving(flat)  # the last tenth is one iteration, which gained 0.02
    flat.history_[-1] = 1.0
    assert not is_still_improving(flat)
    assert how_it_ended("max_iter", 200, False) == (
        "stopped after 200 iterations (more would change little; --max-iter for more)"
    )
    assert "would still improve" in how_it_ended("max_iter", 200, True)
    assert how_it_ended("converged", 1, False) == "1 iteration, converged"


def test_a_few_iterations_do_not_tell_whether_more_would_help():
    assert is_still_improving(SimpleNamespace(history_=np.array([0.75, 0.742, 0.741])))


def test_a_model_does_not_go_to_standard_output(table, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    said = refused("fit", table, "-o", "-", code=2)
    assert "Name a file: -o beetles.twofold" in said
    assert list(tmp_path.iterdir()) == []


def test_pixels_share_a_unit(tmp_path):
    np.save(tmp_path / "t.npy", make_frame(30)[COLUMNS].to_numpy())
    facts = run_json("fit", tmp_path / "t.npy", "--image-shape", "2x2", *QUICK)
    assert facts["scale"] == "none"
    uneven = make_frame(30)[COLUMNS].to_numpy() * [1e4, 1, 1, 1]
    np.save(tmp_path / "uneven.npy", uneven)
    said = run("fit", tmp_path / "uneven.npy", "--image-shape", "2x2", *QUICK).stderr
    assert "scaling: none" in said
    assert "will decide the map" not in said
    said = run("fit", tmp_path / "uneven.npy", "--scale", "none", *QUICK).stderr
    assert "will decide the map" in said
    np.save(tmp_path / "border.npy", make_frame(30)[COLUMNS].to_numpy() * [0, 1, 1, 1])
    said = run_well("fit", tmp_path / "border.npy", "--image-shape", "2x2", *QUICK).stderr
    assert "'x1' (says nothing, but is kept, and rows for the model need it)" in said
    asked = ["--image-shape", "2x2", "--scale", "standard"]
    assert run_json("fit", tmp_path / "t.npy", *asked, *QUICK)["scale"] == "standard"


def test_columns_and_drop(table, tmp_path):
    path = tmp_path / "m.twofold"
    facts = run_json("fit", table, "-o", path, "--columns", "mass, length", *QUICK)
    assert facts["columns"] == ["mass", "length"]
    facts = run_json("fit", table, "-o", path, "--drop", "mass", "--drop", "width", *QUICK)
    assert facts["columns"] == ["species", "length", "height"]


@pytest.mark.parametrize("options", [["--columns", "mass,mass"], ["--columns", "mass"] * 2])
def test_a_column_named_twice(table, tmp_path, options):
    said = refused("fit", table, "-o", tmp_path / "m.twofold", *options, code=2)
    assert "'mass' is named twice" in said
    assert "Name every column once" in said


def test_numbers_as_labels(tmp_path):
    frame = make_frame(30).assign(cluster=np.arange(30) % 3, age=np.arange(30) / 7)
    path = write_csv(frame, tmp_path / "t.csv")
    run_well("fit", path, "--label", "cluster", "--label", "age", *QUICK)
    model = twofold.load(tmp_path / "t.twofold")
    assert sorted(set(model.notes_.labels["cluster"])) == ["0", "1", "2"]
    assert model.notes_.labels["age"].dtype.kind == "f"
    assert list(model.feature_names_in_) == ["species", *COLUMNS]
    run_well("fit", path, "--label", "age", "--columns", "length,mass", *QUICK)
    assert twofold.load(tmp_path / "t.twofold").notes_.labels["age"].dtype.kind == "f"


def test_marks_of_missing_cells_are_no_classes(tmp_path):
    frame = make_frame(30).assign(kind=["a", "b", "n/a", "-", "?", ""] * 5)
    path = write_csv(frame, tmp_path / "t.csv")
    run_well("fit", path, "--label", "kind", *QUICK)
    found = twofold.load(tmp_path / "t.twofold").notes_.labels["kind"]
    assert sorted(set(found)) == ["", "a", "b"]


@pytest.mark.filterwarnings("ignore")  # what anndata warns of is not ours
def test_components_in_an_anndata_file_keep_their_sizes(tmp_path):
    anndata = pytest.importorskip("anndata")
    cells = anndata.AnnData(make_frame(30)[COLUMNS].to_numpy())
    cells.obsm["X_pca"] = cells.X[:, :3] * [100, 10, 1]
    cells.write_h5ad(tmp_path / "c.h5ad")
    for options, scale in ([], "none"), (["--scale", "standard"], "standard"):
        part, model = f"{tmp_path / 'c.h5ad'}:obsm/X_pca", tmp_path / "c.twofold"
        assert run_json("fit", part, "-o", model, *options, *QUICK)["scale"] == scale
    assert run_json("fit", tmp_path / "c.h5ad", *QUICK)["scale"] == "standard"


def test_an_infinite_number_as_a_label(tmp_path):
    frame = make_frame(30).assign(age=[*np.arange(29) / 7, np.inf])
    path = write_csv(frame, tmp_path / "t.csv")
    run_well("fit", path, "--label", "age", *QUICK)
    np.testing.assert_array_equal(
        twofold.load(tmp_path / "t.twofold").notes_.labels["age"], frame["age"]
    )


def test_arrays_have_no_names(tmp_path):
    np.save(tmp_path / "rows.npy", make_frame(30)[COLUMNS].to_numpy())
    run_well("fit", tmp_path / "rows.npy", *QUICK)
    model = twofold.load(tmp_path / "rows.twofold")
    assert not hasattr(model, "feature_names_in_")


def test_standard_input(tmp_path):
    text = make_frame(30).to_csv()
    done = run_well("fit", "-", "-o", tmp_path / "m.twofold", *QUICK, stdin=text)
    assert done.stdout == f"{tmp_path / 'm.twofold'}\n"
    assert "-o MODEL" in refused("fit", "-", code=2)


def test_very_different_units_without_scaling_are_warned_about(table, tmp_path):
    path = tmp_path / "m.twofold"
    done = run_well("fit", table, "-o", path, "--scale", "none", *QUICK)
    assert "warning: Column 'mass' varies" in done.stderr


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--label", "Species"], ["lacks a column that --label names: 'Species'", "'species' for"]),
        (["--columns", "lenght,mass"], ["'lenght'", "'length' for 'lenght'"]),
        (["--drop", "weight"], ["--drop names: 'weight'", "hint:"]),
        (["--index", "specimn"], ["specimn", "specimen"]),
        (
            ["-q", "5", "--drop", "species"],
            ["needs at least 5 columns of numbers", "--dimensions 4"],
        ),
        (["--image-shape", "3x3"], ["has 9 pixels, but 4 columns are used"]),
        (["--columns", "comment,mass"], ["comment", "line 2"]),
    ],
)
def test_what_the_table_does_not_have(table, tmp_path, options, words):
    said = refused("fit", table, "-o", tmp_path / "m.twofold", *options)
    for word in words:
        assert word in said
    assert not (tmp_path / "m.twofold").exists()


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--columns", "mass", "--drop", "width"], "exclude each other"),
        (["--columns", "mass,length", "--label", "mass"], "cannot be a label and a column to fit"),
        (["--landmarks", "many"], "--landmarks must be 'auto' or a number"),
        (["--image-shape", "wide"], "--image-shape must be height x width"),
        (["--degree", "7"], "--degree"),
        (["--nonsense"], "--nonsense"),
        (["-q", "zero"], "--dimensions"),
    ],
)
def test_wrong_usage_ends_with_2(table, tmp_path, options, words):
    assert words in refused("fit", table, "-o", tmp_path / "m.twofold", *options, code=2)


def test_tables_nothing_can_be_fitted_to(tmp_path):
    few = write_csv(make_frame(3), tmp_path / "few.csv")
    assert "needs at least 4 different rows; " in refused("fit", few)
    words = write_csv(make_frame(20)[["comment"]], tmp_path / "words.csv")
    assert "has no column of numbers to fit" in refused("fit", words)
    frame = make_frame(20)
    frame.loc["beetle04", "mass"] = np.inf
    said = refused("fit", write_csv(frame, tmp_path / "inf.csv"), "--index", "specimen")
    assert "'mass' of row beetle04" in said
    wide = pd.DataFrame(np.random.default_rng(0).normal(size=(3, 50))).add_prefix("s")
    said = refused("fit", write_csv(wide, tmp_path / "wide.csv", index=False))
    assert "here, rows are samples" in said


def test_files_that_are_not_there(tmp_path, table):
    said = refused("fit", tmp_path / "nowhere.csv")
    assert "nowhere.csv" in said
    said = refused("fit", table.with_name("beetle.csv"))
    assert "beetles.csv" in said
    assert "does not exist" in refused("fit", table, "-o", tmp_path / "no" / "m.twofold")
    assert "is a folder" in refused("fit", table, "-o", tmp_path)
    assert "would replace the file that is read" in refused("fit", table, "-o", table)
    assert table.read_text() == make_frame().to_csv()


def test_interrupted_fit_keeps_the_best_model(table, tmp_path, monkeypatch):
    from twofold.ukr import estimator

    original = estimator.UKR._training

    def impatient(self, max_iter, bars, seed):
        def press_ctrl_c(event):
            raise KeyboardInterrupt

        return original(self, max_iter, [*bars, press_ctrl_c], seed)

    monkeypatch.setattr(estimator.UKR, "_training", impatient)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("warnings.filters", [])  # warnings are shown, as outside of tests
        done = run("fit", table, "-o", tmp_path / "m.twofold")
    assert done.exit_code == 0, done.stderr
    assert "the best model so far is kept" in done.stderr
    assert twofold.load(tmp_path / "m.twofold").stop_reason_ == "interrupted"


def test_image_shapes():
    assert parse_image_shape("28x28") == (28, 28)
    assert parse_image_shape("8 x 8") == (8, 8)
    assert parse_image_shape("32X32x3") == (32, 32, 3)
    assert parse_image_shape(None) is None


@pytest.mark.filterwarnings("default::twofold.contract.left_open.LeftOpenWarning")
@pytest.mark.parametrize("method", ["ukr", "kernel-pca"])
def test_a_fit_that_leaves_much_open_says_so(method, tmp_path):
    noise = np.random.default_rng(0).normal(size=(60, 20))
    table = tmp_path / "noise.csv"
    pd.DataFrame(noise, columns=[f"c{k}" for k in range(20)]).to_csv(table, index=False)
    done = run_well("fit", table, "-o", tmp_path / "m.twofold", "--method", method)
    assert done.stderr.count("of the variance open: what it generates is an average") == 1
