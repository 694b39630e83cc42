"""Tables with categories and dates, through all commands."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from cli.running import refused, run_json, run_well

import twofold
from twofold import Mixed, Scaled

N = 90
QUICK = ["--max-iter", "5", "--set", "init=pca"]


def make_table() -> pd.DataFrame:
    rng = np.random.default_rng(0)
    t, u = rng.random((2, N))
    day = pd.Timestamp("2019-02-01") + pd.to_timedelta(np.round(400 * t), unit="D")
    return pd.DataFrame(
        {
            "name": [f"item {k}" for k in range(N)],
            "length": np.round(np.sin(3 * t) + 0.02 * rng.normal(size=N), 4),
            "parts": rng.poisson(5 * u**3),
            "colour": np.array(["blue", "green", "red"])[(3 * t).astype(int)],
            "size": np.array(["small", "large"])[(2 * u).astype(int)],
            "bought": day.strftime("%d.%m.%Y"),
            "remark": [f"a longer remark about number {2 * k // 3}" for k in range(N)],
            "unit": 7,
        }
    )


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    place = tmp_path_factory.mktemp("mixed")
    table = make_table()
    table.to_csv(place / "items.csv", index=False)
    gappy = table.copy().astype(object)
    gappy.loc[::5, "colour"] = ""
    gappy.loc[1::6, "bought"] = "NA"
    gappy.loc[2::7, "length"] = ""
    gappy.to_csv(place / "gappy.csv", index=False)
    run_well("fit", place / "items.csv", "-o", place / "items.twofold", *QUICK)
    return place


def test_categories_and_dates_are_fitted_and_said(folder, tmp_path):
    done = run_well("fit", folder / "items.csv", "-o", tmp_path / "m.twofold", *QUICK)
    assert "row names: 'name'" in done.stderr
    assert "  colour: category (levels without an order): 3 levels" in done.stderr
    assert "  bought: date (its type): elapsed time" in done.stderr
    assert "  parts: count" in done.stderr
    model = twofold.load(tmp_path / "m.twofold")
    assert isinstance(model, Mixed)
    assert {c.name: c.kind for c in model.columns_}["unit"] == "constant"
    facts = run_json("info", tmp_path / "m.twofold")
    assert facts["kinds"]["colour"] == "category (levels without an order): 3 levels"
    assert facts["scale"] == "mixed"
    assert "column 'bought'" in run_well("info", tmp_path / "m.twofold").stdout


def test_kinds_and_weights(folder, tmp_path):
    target = tmp_path / "m.twofold"
    options = ["--kinds", "size=small<large,colour=out", "--weights", "length=4"]
    run_well("fit", folder / "items.csv", "-o", target, *options, *QUICK)
    model = twofold.load(target)
    found = {column.name: column for column in model.columns_}
    assert found["size"].levels == ("small", "large")
    assert found["size"].kind == "ordered"
    assert found["length"].weight == 4
    assert "colour" not in found


def test_numbers_alone_are_scaled_as_before(folder, tmp_path):
    target = tmp_path / "m.twofold"
    drop = ["--drop", "colour", "--drop", "size", "--drop", "bought"]
    done = run_well("fit", folder / "items.csv", "-o", target, *drop, *QUICK)
    assert isinstance(twofold.load(target), Scaled)
    assert "left out: 'unit': the same value in every row" in done.stderr
    # What told nothing is not asked for.
    without = make_table().drop(columns="unit")
    without.to_csv(tmp_path / "without.csv", index=False)
    run_well("transform", target, tmp_path / "without.csv")


def test_gaps_are_filled_in_place(folder, tmp_path):
    target = tmp_path / "filled.csv"
    run_well("complete", folder / "items.twofold", folder / "gappy.csv", "-o", target)
    filled = pd.read_csv(target, dtype=str, keep_default_na=False)
    gappy = pd.read_csv(folder / "gappy.csv", dtype=str, keep_default_na=False)
    truth = make_table().astype(str)
    gone = gappy.isin(["", "NA"])
    assert (filled.where(~gone) == gappy.where(~gone)).to_numpy()[~gone.to_numpy()].all()
    assert not filled.isin(["", "NA"]).any().any()
    assert (filled["colour"] == truth["colour"]).mean() > 0.9
    assert filled["bought"].str.fullmatch(r"\d\d\.\d\d\.20\d\d").all()


def test_parquet_keeps_its_types(folder, tmp_path):
    table = make_table()
    table["bought"] = pd.to_datetime(table["bought"], format="%d.%m.%Y")
    table["colour"] = table["colour"].astype("category")
    table["new"] = np.arange(N) % 3 == 0
    table["price"] = [f"{1000 + 37 * k:,}" for k in range(N)]
    table["whole"] = table["parts"].astype("float64")
    table.to_parquet(tmp_path / "t.parquet")
    run_well("fit", tmp_path / "t.parquet", "-o", tmp_path / "m.twofold", *QUICK)
    gappy = table.copy()
    gappy.loc[::4, "colour"] = gappy.loc[1::4, "price"] = None
    gappy.to_parquet(tmp_path / "gappy.parquet")
    words = [tmp_path / "m.twofold", tmp_path / "gappy.parquet", "-o", tmp_path / "out.parquet"]
    run_well("complete", *words)
    found = pd.read_parquet(tmp_path / "out.parquet")
    assert found["colour"].notna().all()
    assert found.dtypes["bought"].kind == "M"
    assert set(found["colour"]) == {"blue", "green", "red"}
    assert found["new"].dtype == bool
    assert (found["price"] == table["price"])[gappy["price"].notna()].all()
    run_well("denoise", tmp_path / "m.twofold", tmp_path / "t.parquet", "-o", words[-1])
    plain = table.astype({"colour": object})
    assert pd.read_parquet(words[-1]).dtypes.to_dict() == plain.dtypes.to_dict()


def test_parquet_keeps_the_order_of_levels(folder, tmp_path):
    table = make_table().drop(columns=["name", "remark"])
    levels = ["small", "medium", "large"]  # not as the alphabet has them, one without rows
    table["size"] = pd.Categorical(table["size"], levels, ordered=True)
    table["grade"] = pd.Categorical(table["size"], levels, ordered=True)
    table.to_parquet(tmp_path / "t.parquet", row_group_size=20)
    words = ["fit", tmp_path / "t.parquet", "-o", tmp_path / "m.twofold", "--label", "grade"]
    done = run_well(*words, *QUICK)
    own = Mixed(twofold.UKR(max_iter=1, init="pca")).fit(table.drop(columns="grade"))
    (same,) = [c.described() for c in own.columns_ if c.name == "size"]
    assert f"  size: {same}" in done.stderr
    assert same.startswith("ordered (its levels have an order)")
    table.loc[::4, "size"] = None
    table.to_parquet(tmp_path / "gappy.parquet", row_group_size=20)
    for command in ("complete", "denoise"):
        out = tmp_path / f"{command}.parquet"
        run_well(command, tmp_path / "m.twofold", tmp_path / "gappy.parquet", "-o", out)
        found = pd.read_parquet(out)["size"]
        assert found.notna().all()
        assert found.dtype == table["size"].dtype
    fewer = table.assign(size=table["size"].cat.remove_categories("large"))
    fewer.loc[:5] = None  # rows without any value, which stay as they are
    fewer.to_parquet(tmp_path / "fewer.parquet")
    run_well("complete", tmp_path / "m.twofold", tmp_path / "fewer.parquet", "-o", out)
    assert pd.read_parquet(out)["size"].isna().sum() == 6
    out = tmp_path / "made.parquet"
    run_well("generate", tmp_path / "m.twofold", "--grid", 3, "-o", out)
    assert pd.read_parquet(out)["size"].dtype == table["size"].dtype


def test_texts_of_workbooks_are_read_alike_at_every_step(folder, tmp_path):
    pytest.importorskip("openpyxl")
    table = make_table().assign(price=[f"{1000 + 37 * k:,}" for k in range(N)])
    gappy = table.astype(str)
    gappy.loc[::9, "price"], gappy.loc[1::9, "colour"], gappy.loc[2::9, "bought"] = "n/a", "-", "NA"
    path, model, filled = (tmp_path / name for name in ("g.xlsx", "g.twofold", "f.xlsx"))
    gappy.to_excel(path, index=False)
    run_well("fit", path, "-o", model, *QUICK)
    done = run_well("complete", model, path, "-o", filled)
    assert "Unknown" not in done.stderr
    found = pd.read_excel(filled, dtype=str)
    kept = np.arange(N) % 9 != 0
    assert (found["price"] == table["price"])[kept].all()
    assert pd.to_numeric(found["price"].str.replace(",", "")).between(500, 6000).all()
    assert set(found["colour"]) == {"blue", "green", "red"}
    assert found["bought"].str.fullmatch(r"\d\d\.\d\d\.20\d\d").all()


def test_rows_through_the_model(folder, tmp_path):
    model, table = folder / "items.twofold", folder / "items.csv"
    X = pd.read_csv(_written(run_well("transform", model, table)))
    assert list(X)[-2:] == ["x1", "x2"]
    assert len(X) == N
    clean = pd.read_csv(_written(run_well("denoise", model, table)))
    assert list(clean) == list(make_table())
    assert set(clean["colour"]) <= {"blue", "green", "red"}
    made = pd.read_csv(_written(run_well("generate", model, "--samples", 4)))
    assert pd.to_datetime(made["bought"]).dt.year.between(2019, 2020).all()
    assert made["parts"].dtype == np.int64
    assert (made["unit"] == 7).all()
    assert run_json("score", model, table)["rows"] == N


@pytest.mark.parametrize("fitted", ["t.csv", "t.parquet", "t.xlsx", "01.csv"])
def test_truth_values_are_the_same_in_all_files(tmp_path, fitted):
    x = np.random.default_rng(0).random(40).round(6)
    table = pd.DataFrame({"x": x, "b": x > 0.5, "c": np.where(x > 0.3, "u", "v")})
    table.to_csv(tmp_path / "t.csv", index=False)
    table.to_parquet(tmp_path / "t.parquet")
    table.to_excel(tmp_path / "t.xlsx", index=False)
    table.assign(b=table["b"].astype(int)).to_csv(tmp_path / "01.csv", index=False)
    table.assign(b=np.where(x > 0.5, "WAHR", "FALSCH")).to_csv(tmp_path / "de.csv", index=False)
    model = tmp_path / "m.twofold"
    run_well("fit", tmp_path / fitted, "-o", model, *QUICK)
    files = ["t.csv", "t.parquet", "t.xlsx", "01.csv", "de.csv"]
    assert len({run_well("transform", model, tmp_path / name).stdout for name in files}) == 1
    words = [{"True", "False"}] * 3 + [{"1", "0"}, {"WAHR", "FALSCH"}]
    for name, own in zip(files, words, strict=True):
        clean = pd.read_csv(_written(run_well("denoise", model, tmp_path / name)), dtype=str)
        assert set(clean["b"]) == own


def test_truth_values_are_1_and_0_for_a_model_of_numbers(tmp_path):
    x = np.random.default_rng(0).random(40).round(6)
    table = pd.DataFrame({"x": x, "b": x > 0.5})
    table.astype(float).to_csv(tmp_path / "01.csv", index=False)
    table.assign(b=np.where(x > 0.5, "WAHR", "FALSCH")).to_csv(tmp_path / "de.csv", index=False)
    table.to_parquet(tmp_path / "t.parquet", index=False)
    model, filled = tmp_path / "m.twofold", tmp_path / "f.parquet"
    run_well("fit", tmp_path / "01.csv", "-o", model, *QUICK)
    files = ["01.csv", "de.csv", "t.parquet"]
    assert len({run_well("transform", model, tmp_path / name).stdout for name in files}) == 1
    run_well("complete", model, tmp_path / "t.parquet", "-o", filled)
    pd.testing.assert_frame_equal(pd.read_parquet(filled), table)


def test_denoised_cells_are_written_as_they_came(folder, tmp_path):
    table = make_table()[["length", "bought"]]
    table["share"] = [f"{30 + 10 * length:.1f}%" for length in table["length"]]
    table["zip"] = np.where(table["length"] > 0.5, "01067", "10115")
    table["code"] = [f"{k % 7:03d}" for k in range(N)]
    table.to_csv(tmp_path / "t.csv", index=False)
    table.to_excel(tmp_path / "t.xlsx", index=False)
    model = tmp_path / "m.twofold"
    run_well("fit", tmp_path / "t.csv", "-o", model, "--kinds", "zip=category", *QUICK)
    for name in ("t.csv", "t.xlsx"):
        run_well("denoise", model, tmp_path / name, "-o", tmp_path / f"out_{name}")
    sheet = pd.read_excel(tmp_path / "out_t.xlsx", dtype=str)
    for found in (pd.read_csv(tmp_path / "out_t.csv", dtype=str), sheet):
        assert found["bought"].str.fullmatch(r"\d\d\.\d\d\.20\d\d").all()
        assert found["share"].str.fullmatch(r"\d+(\.\d+)?%").all()
        assert set(found["zip"]) == {"01067", "10115"}
        assert found["code"].str.fullmatch(r"00\d(\.\d+)?").any()
    made = run_well("generate", model, "--samples", 20)
    assert set(pd.read_csv(_written(made), dtype=str)["zip"]) == {"01067", "10115"}
    numbers = table.assign(zip=table["zip"].astype("Int64"))
    numbers.to_parquet(tmp_path / "t.parquet")
    same = [run_well("transform", model, tmp_path / n).stdout for n in ("t.csv", "t.parquet")]
    assert same[0] == same[1]
    numbers.assign(zip=numbers["zip"].mask(numbers.index == 3)).to_parquet(tmp_path / "t.parquet")
    run_well("complete", model, tmp_path / "t.parquet", "-o", tmp_path / "f.parquet")
    assert pd.read_parquet(tmp_path / "f.parquet")["zip"].dtype == "Int64"


def test_percentages_stay_such_in_tables_of_numbers(tmp_path):
    table = make_table()[["length", "parts"]]
    table["share"] = [f"{30 + 10 * length:.1f} %" for length in table["length"]]
    table.to_csv(tmp_path / "t.csv", index=False)
    table.loc[::4, "share"] = ""
    table.to_csv(tmp_path / "gaps.csv", index=False)
    run_well("fit", tmp_path / "t.csv", "-o", tmp_path / "m.twofold", *QUICK)
    for command in ("denoise", "complete"):
        done = run_well(command, tmp_path / "m.twofold", tmp_path / "gaps.csv")
        assert pd.read_csv(_written(done))["share"].str.fullmatch(r"\d+(\.\d+)? %").all()


def test_orders_of_numbers_and_truth_values(tmp_path):
    table = make_table()[["length"]].assign(step=np.arange(N) % 3, b=np.arange(N) % 2 == 0)
    table.to_csv(tmp_path / "t.csv", index=False)
    kinds = "step=1<0<2,b=FALSE<TRUE"
    run_well("fit", tmp_path / "t.csv", "-o", tmp_path / "m.twofold", "--kinds", kinds, *QUICK)
    found = {c.name: c for c in twofold.load(tmp_path / "m.twofold").columns_}
    assert found["step"].levels == (1, 0, 2)
    assert found["b"].levels == (False, True)
    run_well("explain", tmp_path / "m.twofold", "--label", "b=TRUE")


@pytest.mark.filterwarnings("default")
def test_a_new_level_is_told(folder, tmp_path):
    table = make_table().head(5)
    table.loc[1, "colour"] = "pink"
    table.to_csv(tmp_path / "new.csv", index=False)
    done = run_well("transform", folder / "items.twofold", tmp_path / "new.csv")
    assert "Unknown to the fit, and counted as missing: colour: 'pink'" in done.stderr


def test_maps_are_compared(folder):
    facts = run_json("compare", folder / "items.csv", "--with", "pca,kernel_pca")
    assert {row["method"] for row in facts["scores"]} == {"pca", "kernel_pca"}


@pytest.mark.parametrize(
    ("options", "code", "message"),
    [
        (["--kinds", "colour"], 2, "--kinds takes names and values such as year=category"),
        (["--kinds", "colour=hue"], 2, "There is no kind 'hue'"),
        (["--kinds", "color=category"], 1, "no such column 'color'"),
        (["--weights", "length=heavy"], 2, "takes numbers; got 'heavy'"),
        (["--weights", "length=0"], 2, "above 0"),
        (["--weights", "lenght=2"], 1, "--weights names 'lenght', which is not fitted"),
        (["--weights", "size=2", "--drop", "size"], 1, "'size', which is not fitted"),
        (["--weights", "remark=2"], 1, "'remark', which is left out: free text"),
        (["--scale", "none", "--weights", "length=2"], 2, "--scale none is for columns of numbers"),
    ],
)
def test_wrong_options(folder, tmp_path, options, code, message):
    said = refused("fit", folder / "items.csv", "-o", tmp_path / "m.twofold", *options, code=code)
    assert message in " ".join(said.split())


def _written(done):
    import io

    return io.StringIO(done.stdout)


def test_gaps_with_intervals_probabilities_and_draws(folder, tmp_path):
    words = ["complete", folder / "items.twofold", folder / "gappy.csv", "-o"]
    run_well(*words, tmp_path / "sure.csv", "--intervals", "--level", "0.8")
    gappy = pd.read_csv(folder / "gappy.csv")
    sure = pd.read_csv(tmp_path / "sure.csv")
    gone = gappy["length"].isna()
    assert sure["length_low"].notna().tolist() == gone.tolist()
    inside = sure["length"].between(sure["length_low"], sure["length_high"])
    assert inside[gone].all()
    assert sure["colour_probability"].notna().tolist() == gappy["colour"].isna().tolist()
    assert sure["colour_probability"].dropna().between(1 / 3 - 1e-9, 1).all()
    low, high = (pd.to_datetime(sure[f"bought_{end}"]) for end in ("low", "high"))
    assert (low <= high)[gappy["bought"].isna()].all()
    run_well(*words, tmp_path / "draws.csv", "--draws", "3", "--seed", "1")
    draws = pd.read_csv(tmp_path / "draws.csv")
    assert len(draws) == 3 * N
    assert draws["draw"].value_counts().to_dict() == {1: N, 2: N, 3: N}
    by_row = draws.groupby("name")["length"].nunique()
    assert set(by_row[gappy["name"][gone]]) == {3}
    assert set(by_row[gappy["name"][~gone]]) == {1}
    assert draws["colour"].isin(["blue", "green", "red"]).all()


def test_what_is_left_out_is_in_the_model(folder):
    facts = run_json("info", folder / "items.twofold")
    assert facts["left_out"]["remark"].startswith("free text")
    assert "left out 'remark'" in run_well("info", folder / "items.twofold").stdout


def test_times_as_clocks_change_are_times(tmp_path):
    table = make_table().drop(columns=["name", "remark"])
    times = pd.date_range("2020-01-01", periods=N // 2, freq="5D7h", tz="Europe/Berlin").repeat(2)
    table["bought"] = times  # written as +01:00 in winter, +02:00 in summer
    table.to_csv(tmp_path / "t.csv", index=False)
    done = run_well("fit", tmp_path / "t.csv", *QUICK)
    assert "  bought: date (its type): elapsed time" in done.stderr
    assert "Warning" not in done.stderr
    model = twofold.load(tmp_path / "t.twofold")
    made = model.reconstruct(model.inverse_transform(model.embedding_))["bought"]
    assert str(made.dtype) == "datetime64[ns, UTC]"
    assert (made.sort_values().iloc[[0, -1]] - times[[0, -1]]).abs().max() < pd.Timedelta(days=60)


def test_a_category_can_be_seen_to_move(folder, tmp_path):
    done = run_well(
        "plot", folder / "items.twofold", "--kind", "sensitivity", "--color", "colour",
        "-o", tmp_path / "p.png",
    )  # fmt: skip
    assert (tmp_path / "p.png").stat().st_size > 10_000
    assert "error" not in done.stderr


@pytest.mark.parametrize(
    ("kind", "color"),
    [("sensitivity", None), ("sensitivity", "bought"), ("sensitivity", "size"), ("odd", None)],
)
def test_pictures_of_columns(folder, tmp_path, kind, color):
    more = [] if color is None else ["--color", color]
    run_well("plot", folder / "items.twofold", "--kind", kind, *more, "-o", tmp_path / "p.png")
    assert (tmp_path / "p.png").stat().st_size > 5_000


def test_odd_rows_of_a_table_can_be_drawn(folder, tmp_path):
    words = ("plot", folder / "items.twofold", "--kind", "odd", "-o", tmp_path / "p.png")
    run_well(*words, "--table", folder / "gappy.csv")
    assert (tmp_path / "p.png").stat().st_size > 5_000


def test_curves_of_a_mixed_table_are_refused(folder, tmp_path):
    words = ("plot", folder / "items.twofold", "--kind", "grid", "-o", tmp_path / "p.png")
    assert "columns have no common unit" in refused(*words)


def test_the_columns_along_a_way_are_drawn(folder, tmp_path):
    words = ("plot", folder / "items.twofold", "--path", "#2", "#9", "-o", tmp_path / "p.svg")
    run_well(*words)
    drawn = (tmp_path / "p.svg").read_text()
    # Text of pictures is shapes; what they say stands in comments.
    for said in ("length", "colour", "green", "bought", "density", "#9"):
        assert f"<!-- {said} -->" in drawn


def test_info_reads_labels_as_people_do(tmp_path):
    table = make_table().drop(columns=["bought", "remark"])
    table["day"] = [f"2020-{k % 12 + 1:02d}-{k % 28 + 1:02d}" for k in range(N)]
    table["month"] = ["Mar", "Jan", "Feb"] * (N // 3)
    table["step"] = [f"step {k % 11}" for k in range(N)]
    table.to_csv(tmp_path / "t.csv", index=False)
    labels = [word for name in ("day", "month", "step") for word in ("--label", name)]
    run_well("fit", tmp_path / "t.csv", *labels, *QUICK)
    said = run_json("info", tmp_path / "t.twofold")["labels"]
    assert said["day"] == "dates from 2020-01-01 to 2020-12-28"
    assert said["month"] == "3 values: 'Jan', 'Feb', 'Mar'"
    assert said["step"].endswith("'step 9', 'step 10'")


@pytest.mark.parametrize("form", ["%d.%m.%Y", "%Y/%m/%d", "%m/%d/%Y"])
def test_labels_are_dates_in_every_format_of_columns(tmp_path, form):
    table = make_table()[["length", "parts"]]
    table["day"] = pd.date_range("2020-01-01", periods=N).strftime(form)
    table.loc[4, "day"] = "NA"
    table.to_csv(tmp_path / "t.csv", index=False)
    run_well("fit", tmp_path / "t.csv", "--label", "day", *QUICK)
    said = run_json("info", tmp_path / "t.twofold")["labels"]["day"]
    assert said == "dates from 2020-01-01 to 2020-03-30"


@pytest.mark.parametrize("gap", ["none", "None", "nan"])
def test_a_category_with_few_known_cells_is_one(tmp_path, gap):
    table = make_table()[["length", "parts"]].assign(how=[gap, gap, "a", gap, "b"] * (N // 5))
    table.to_csv(tmp_path / "t.csv", index=False)
    done = run_well("fit", tmp_path / "t.csv", *QUICK)
    assert "  how: category (levels without an order): 2 levels" in done.stderr


def test_what_is_special_is_told_in_the_units_of_the_table(folder):
    done = run_well("explain", folder / "items.twofold", "--row", "#1", "--most", "30")
    lines = {line.split()[0]: line for line in done.stdout.splitlines()}
    model = twofold.load(folder / "items.twofold")
    here = model.inverse_transform(model.embedding_[:1]).iloc[0]
    said = pd.Timestamp(lines["bought"].split()[2])
    assert abs(said - here["bought"]) <= pd.Timedelta(days=1)
    assert "days" in lines["bought"]
    assert "log" not in done.stdout  # nor "log(1 + parts)"
    assert "e-" not in run_well("explain", folder / "items.twofold", "--row", "#2").stdout
    assert abs(float(lines["parts"].split()[2]) - here["parts"]) <= 0.5
    assert lines["colour"].count("%") == 3
    assert "season" not in done.stdout


def test_ordered_labels_of_parquet_keep_their_order(tmp_path):
    table = make_table()[["length", "parts", "size"]]
    levels = ["low", "fair", "good", "n/a"]
    grades = pd.Series(np.array(levels)[np.arange(N) % 4])
    table["grade"] = grades.astype(pd.CategoricalDtype(levels, ordered=True))
    table.to_parquet(tmp_path / "t.parquet", row_group_size=20)
    run_well("fit", tmp_path / "t.parquet", "-o", tmp_path / "m", "--label", "grade", *QUICK)
    notes = twofold.load(tmp_path / "m").notes_
    assert notes.orders == {"grade": levels[:3]}
    assert notes.labels["grade"].tolist() == grades.replace("n/a", "").tolist()
    facts = run_json("info", tmp_path / "m")
    assert facts["labels"]["grade"] == "3 ordered levels: 'low', 'fair', 'good'"


def test_odd_rows_and_noise_of_mixed_tables(folder, tmp_path):
    table = make_table()
    table.loc[4, "length"] = 9.0
    table.loc[7, "bought"] = "01.02.2031"
    table.to_csv(tmp_path / "odd.csv", index=False)
    model = twofold.load(folder / "items.twofold")
    words = (folder / "items.twofold", tmp_path / "odd.csv")
    done = run_well("score", *words, "--why", "-o", tmp_path / "scores.csv", "--index", "name")
    found = pd.read_csv(tmp_path / "scores.csv", index_col=0)
    assert found.loc["item 4", "stands_out"] == "length"
    assert abs(float(found.loc["item 4", "expected"])) < 1.5
    assert found.loc["item 7", "stands_out"] == "bought"
    assert found.loc["item 7", "expected"] < "2022"
    assert set(found["stands_out"]) <= {c.name for c in model.columns_}
    assert "item 4 " in done.stdout
    rows = run_json("score", *words, "--why", "--index", "name")["worst_rows"]
    assert {"item 4", "item 7"} <= {row["name"] for row in rows}
    run_well("denoise", *words, "--residuals", "-o", tmp_path / "clean.csv")
    run_well("denoise", *words, "-o", tmp_path / "plain.csv")
    own, full = (pd.read_csv(tmp_path / f"{name}.csv")["length"] for name in ("clean", "plain"))
    # With residuals, values move less: to the map and not all the way.
    gap = np.abs(np.array([own, full]) - table["length"].to_numpy()).mean(axis=1)
    assert 0 < gap[0] < gap[1]


def test_points_between_thousands_beside_decimal_commas(tmp_path):
    rng = np.random.default_rng(0)
    names = [
        f"{value:,.2f}".translate(str.maketrans(",.", ".,")) for value in rng.uniform(1e3, 9e4, N)
    ]
    lines = [f"k{k};{name};{rng.integers(9)};{'ab'[k % 2]}" for k, name in enumerate(names)]
    head = "id;revenue;n;grade\n"
    (tmp_path / "r.csv").write_text(head + "\n".join(lines) + "\n")
    target = tmp_path / "m.twofold"
    run_well("fit", tmp_path / "r.csv", "-o", target, *QUICK)
    assert "revenue" in {column.name for column in twofold.load(target).columns_}
    # Here only thousands tell which mark is the decimal one.
    (tmp_path / "gaps.csv").write_text(head + "k0;1.000,00;;a\nk1;2.000,00;3;\n")
    done = run_well("complete", target, tmp_path / "gaps.csv", "-o", tmp_path / "full.csv")
    assert "error" not in done.stderr
    assert (tmp_path / "full.csv").read_text().splitlines()[1].startswith("k0;1.000,00;")


def test_a_cell_that_is_no_number_is_said_with_its_row(folder, tmp_path):
    table = make_table().astype(object)
    table.loc[4, "length"] = "long"
    table.to_csv(tmp_path / "t.csv", index=False)
    said = refused("transform", folder / "items.twofold", tmp_path / "t.csv")
    assert "row 5, column 'length': 'long' is not a number." in said
    assert "--missing long" in said
