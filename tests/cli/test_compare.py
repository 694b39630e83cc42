"""``twofold compare`` and ``twofold dimension``."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from cli.running import COLUMNS, make_frame, refused, run, run_json, run_well, write_csv

from twofold.cli.comparing import chosen_methods, scaled_rows
from twofold.cli.console import Console, UsageError
from twofold.cli.training_table import TrainingTable
from twofold.datasets import make_random_manifold
from twofold.selection import choose_dimension, compare
from twofold.selection.embedders import EMBEDDERS, USUAL

QUICK = ["--with", "pca,isomap", "-k", "8"]


@pytest.fixture
def untorn(table):
    return [table, "--index", "specimen", *QUICK]


def test_scores_go_to_stdout_and_the_reason_to_stderr(untorn):
    done = run_well("compare", *untorn, "--label", "species")
    lines = done.stdout.splitlines()
    assert lines[0].split()[:2] == ["method", "left"]
    assert {line.split()[0] for line in lines[1:]} == {"pca", "isomap"}
    assert "label hit" in lines[0]
    assert "recommended: " in done.stderr
    assert "every column by its standard deviation" in done.stderr


def test_json_is_what_the_library_says(untorn):
    facts = run_json("compare", *untorn, "--label", "species")
    frame = make_frame()[COLUMNS]
    Y = ((frame - frame.mean()) / frame.std(ddof=0)).to_numpy()
    expected = compare(Y, ["pca", "isomap"], n_neighbors=8)
    assert facts["recommended"] == expected.recommended
    assert facts["reason"] == expected.reason
    assert [row["method"] for row in facts["scores"]] == list(expected.table.index)
    found = [row["nlml_per_entry"] for row in facts["scores"]]
    assert found == pytest.approx(list(expected.table["nlml_per_entry"]), rel=1e-6)


def test_table_and_picture(untorn, tmp_path):
    scores, picture = tmp_path / "scores.csv", tmp_path / "maps.png"
    run_well("compare", *untorn, "-o", scores, "--plot", picture)
    table = pd.read_csv(scores)
    assert set(table["method"]) == {"pca", "isomap"}
    assert {"trustworthiness", "q_global", "seconds"} <= set(table.columns)
    assert picture.read_bytes()[1:4] == b"PNG"


def test_missing_cells_are_filled(tmp_path):
    frame = make_frame()
    frame.loc["beetle03", "width"] = np.nan
    path = write_csv(frame, tmp_path / "holes.csv")
    done = run_well("compare", path, *QUICK)
    assert "filled by principal components" in done.stderr


def test_scaling():
    frame = pd.DataFrame({"a": [0.0, 1.0, 2.0, 5.0], "b": [0.0, 100.0, np.nan, 300.0]})
    rows = TrainingTable(frame, None, {}, [], 0, True)
    Y = scaled_rows(rows, "standard", Console(quiet=True))
    assert not np.isnan(Y).any()
    assert Y[:, 0].std() == pytest.approx(1)
    np.testing.assert_array_equal(scaled_rows(rows, "none", Console(quiet=True))[:, 0], frame["a"])


def test_amounts_are_no_classes(untorn):
    done = run("compare", *untorn, "--label", "mass")
    assert done.exit_code == 0, done.stderr
    assert "'mass' is an amount, not a class" in done.stderr
    assert "label hit" not in done.stdout


def test_a_method_that_fails_is_told(table):
    done = run_well("compare", table, "--with", "tsne,pca", "-q", "4")
    assert "warning: tsne gave no map: t-SNE goes up to 3 dimensions" in done.stderr
    assert [line.split()[0] for line in done.stdout.splitlines()] == ["method", "pca"]


def test_methods_by_name():
    assert chosen_methods(None) == USUAL
    assert chosen_methods(["pca, UKR", "pca"]) == ("pca", "ukr")
    assert chosen_methods(["unn,kernel-pca", "diffusion_map,PSOM"]) == (
        "unn",
        "kernel_pca",
        "diffusion_map",
        "psom",
    )
    with pytest.raises(UsageError, match="no method 'foo'"):
        chosen_methods(["foo"])


@pytest.mark.slow
def test_families_of_the_library_can_be_compared(table):
    done = run_well("compare", table, "--with", "unn,kernel-pca,diffusion-map,psom", "-k", "8")
    methods = {line.split()[0] for line in done.stdout.splitlines()[1:]}
    assert methods == {"unn", "kernel_pca", "diffusion_map", "psom"}
    assert "gave no map" not in done.stderr


def test_help_names_every_method():
    said = "".join(run_well("compare", "--help").stdout.split())
    for name in EMBEDDERS:
        assert name in said


def test_refuses_before_the_work(table, tmp_path):
    assert "no method 'foo'" in refused("compare", table, "--with", "foo", code=2)
    assert "does not exist" in refused("compare", table, "-o", tmp_path / "no" / "s.csv")
    refused("compare", table, "--plot", tmp_path / "maps.doc", code=2)
    assert "--json" in refused("compare", table, "-o", "-", "--json", code=2)


def test_notes_speak_of_options(tmp_path):
    frame = make_frame()[["length", "mass"]]  # of which the mass has a thousand times the spread
    table = write_csv(frame, tmp_path / "units.csv", index=False)
    said = run_well("compare", table, "--with", "pca", "--scale", "none", "-q", "1").stderr
    assert "scale the columns, with --scale standard" in said


def test_dimension_is_the_librarys(tmp_path):
    sheet = pd.DataFrame(make_random_manifold(200, 2, 6, noise=0.03, random_state=0).Y)
    path, picture = write_csv(sheet.add_prefix("c"), tmp_path / "sheet.csv"), tmp_path / "gaps.png"
    done = run_well("dimension", path, "--plot", picture)
    assert done.stdout.split()[-1] == "2"
    assert "direction 2 stands out" in done.stderr
    assert picture.read_bytes()[1:4] == b"PNG"
    Y = np.asarray((sheet - sheet.mean()) / sheet.std(ddof=0))
    expected = choose_dimension(Y, max_dimension=3)
    facts = run_json("dimension", path, "--most", "3")
    assert (facts["dimension"], facts["confident"]) == (2, True)
    found = [row["gap"] for row in facts["scores"]]
    assert found == pytest.approx(list(expected.scores["gap"]), rel=1e-6)


def test_a_cloud_has_no_dimension(tmp_path):
    cloud = pd.DataFrame(np.random.default_rng(0).normal(size=(120, 3)), columns=list("abc"))
    path, scores = write_csv(cloud, tmp_path / "cloud.csv"), tmp_path / "scores.csv"
    done = run_well("dimension", path, "-o", scores)
    assert done.stdout.split() == ["none"]
    assert "No confident answer" in done.stderr
    assert {"dimension", "gap", "linear_error"} <= set(pd.read_csv(scores))
    assert "greater than or equal to 1" in refused("dimension", path, "--most", "0", code=2)


def test_dimension_takes_words(tmp_path):
    sheet = pd.DataFrame(make_random_manifold(150, 1, 4, noise=0.03, random_state=0).Y)
    table = sheet.add_prefix("c").assign(side=np.where(sheet[0] > 0, "up", "down"))
    path = write_csv(table, tmp_path / "words.csv")
    assert "'side'" in run_well("dimension", path).stderr
    facts = run_json("dimension", path, "--kinds", "side=out")
    assert facts["dimension"] == choose_dimension(table, kinds={"side": "out"}).dimension
