from __future__ import annotations

import numpy as np
import pandas as pd
from cli.running import refused, run_json, run_well

from twofold import UKR, Mixed
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


def test_columns_of_mixed_tables_are_written_in_their_units(tmp_path):
    t = np.linspace(0, 1, 40)
    table = pd.DataFrame({"sold": t > 0.5, "t": t, "took": pd.to_timedelta(t, unit="h")})
    table["bought"] = pd.Timestamp("2020-01-01") + pd.to_timedelta(np.round(100 * t), unit="D")
    table["late"] = table["bought"].dt.tz_localize("UTC").where(t < 0.9)
    file = tmp_path / "m.twofold"
    Mixed(UKR(1, init="pca", max_iter=2)).fit(table).save(file)
    text = run_well("explain", file, "--row", "#40", "--row", "#39").stdout
    assert sum(line.startswith("sold = True") for line in text.splitlines()) == 1
    assert "sold = False" not in text
    assert "2020-04-08" in text
    assert {line.split()[2] for line in text.splitlines() if line.startswith("late")} == {"nan"}
    for name in ("t.csv", "t.parquet"):
        run_well("explain", file, "--row", "#40", "--row", "#39", "-o", tmp_path / name)
    found = pd.read_csv(tmp_path / "t.csv", index_col=0)
    assert found.loc["bought", "here"] == "2020-04-08"
    facts = run_json("explain", file, "--row", "#40", "--row", "#39")
    assert {"2020-04-08"} < {line["here"] for line in facts["features"]}


def test_what_cannot_be_explained(model_file):
    assert "one of --at, --row and --label" in refused("explain", model_file, code=2)
    assert "no label and no category called 'sort'" in refused(
        "explain", model_file, "--label", "sort=a"
    )
    assert "No row has species = 'x'" in refused("explain", model_file, "--label", "species=x")
    assert "has no row called 'bee'" in refused(
        "explain", model_file, "--row", "bee", "--row", "beetle01"
    )
