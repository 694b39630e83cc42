from __future__ import annotations

import pandas as pd
from cli.running import refused, run_json, run_well

from twofold.standing_out import what_stands_out


def test_what_is_special_at_a_place_a_row_and_a_class(model, model_file, tmp_path):
    x = model.embedding_[5]
    at = ",".join(repr(float(value)) for value in x)
    facts = run_json("explain", model_file, f"--at={at}")
    expected = what_stands_out(model, x.astype(float))
    assert [entry["feature"] for entry in facts["features"]] == list(expected.index)
    row = run_json("explain", model_file, "--row", "beetle05")
    assert row["features"] == facts["features"]
    text = run_well("explain", model_file, "--label", "species=long", "--most", "2").stdout
    assert text.splitlines()[0].split() == ["difference", "here", "there", "spread"]
    assert len(text.splitlines()) == 4
    run_well("explain", model_file, "--row", "beetle05", "--row", "#2", "-o", tmp_path / "t.csv")
    assert len(pd.read_csv(tmp_path / "t.csv")) == 4


def test_what_cannot_be_explained(model_file):
    assert "one of --at, --row and --label" in refused("explain", model_file, code=2)
    assert "no label and no category called 'sort'" in refused(
        "explain", model_file, "--label", "sort=a"
    )
    assert "No row has species = 'x'" in refused("explain", model_file, "--label", "species=x")
    assert "has no row called 'bee'" in refused(
        "explain", model_file, "--row", "bee", "--row", "beetle01"
    )
