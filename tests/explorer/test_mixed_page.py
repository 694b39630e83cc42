"""A mixed table in the page: levels with probabilities, amounts and dates as people write them."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from explorer.browsing import paste, probe, settle

from twofold import UKR, Mixed, Scaled, explorer
from twofold.explorer.page import find_payload
from twofold.mixed import UnknownLevelWarning
from twofold.standing_out import what_stands_out


@pytest.fixture(scope="module")
def table() -> pd.DataFrame:
    rng = np.random.default_rng(0)
    t, u = rng.random((2, 60))
    sizes = np.array(["small", "medium", "large"])
    return pd.DataFrame(
        {
            "price": np.exp(6 * t),
            "colour": np.array(["blue", "green", "red"])[(3 * t).astype(int)],
            "size": pd.Categorical(sizes[(3 * u).astype(int)], sizes, ordered=True),
            "bought": pd.Timestamp("2020-01-01") + pd.to_timedelta(np.round(300 * t), unit="D"),
            "parts": rng.poisson(4 * u**3),
        }
    )


@pytest.fixture(scope="module")
def model(table) -> Mixed:
    return Mixed(UKR(init="pca", max_iter=2, random_state=0)).fit(table)


def test_the_header_tells_columns_from_features(model):
    header = find_payload(
        model, None, 20, **dict.fromkeys(("data", "labels", "names"), None), view="auto"
    ).header
    assert header["view"] == "columns"
    columns = {column["name"]: column for column in header["columns"]}
    assert columns["colour"]["levels"] == ["blue", "green", "red"]
    assert columns["size"]["kind"] == "ordered"
    assert columns["bought"]["kind"] == "date"
    assert [form["form"] for form in header["forms"]][:2] == ["log", "hidden"]
    assert len(header["forms"]) == len(header["features"]) == header["model"]["n_features"]
    assert list(header["rows"]["labels"]) == ["colour", "size"]


def test_a_survey_begins_with_what_is_special(tmp_path):
    answers = np.random.default_rng(0).integers(0, 3, (40, 20)).astype(str)
    table = pd.DataFrame(answers).add_prefix("answer ")
    survey = Mixed(UKR(init="pca", max_iter=1, random_state=0)).fit(table)
    facts = dict.fromkeys(("data", "labels", "names"), None)
    assert find_payload(survey, None, 20, **facts, view="auto").header["view"] == "special"


def test_only_mixed_tables_have_columns(table, tmp_path):
    numbers = Scaled(UKR(init="pca", max_iter=2)).fit(table[["price", "parts"]])
    with pytest.raises(ValueError, match=r"for a model of a mixed table, twofold\.Mixed"):
        explorer.write(numbers, tmp_path / "a.html", view="columns")


def test_levels_amounts_and_dates_under_the_probe(model, open_page, tmp_path):
    x = model.embedding_[7].astype(np.float64)
    fragment = "#probe=" + ",".join(f"{value:.6f}" for value in x)
    page = open_page(explorer.write(model, tmp_path / "a.html"), fragment=fragment)
    row, P = model.inverse_transform([probe(page)], return_probabilities=True)

    def text(column, part):
        return page.locator(f'[data-column="{column}"] {part}').first.inner_text()

    assert text("colour", ".tf-bar-value") == row["colour"][0]
    shares = page.locator('[data-column="colour"] .tf-level-share').all_inner_texts()
    found = [int(share.split("\u202f")[0]) for share in shares]
    np.testing.assert_allclose(found, 100 * P["colour"].iloc[0], atol=1)
    assert page.locator('[data-column="size"] .tf-level-name').all_inner_texts() == list(P["size"])
    assert float(text("price", ".tf-bar-value").replace(",", "")) == pytest.approx(
        row["price"][0], rel=2e-3
    )
    off = pd.Timestamp(text("bought", ".tf-bar-value")) - row["bought"][0]
    assert abs(off) <= pd.Timedelta(days=1)
    assert int(text("parts", ".tf-bar-value")) == row["parts"][0]


def test_what_stands_out_is_that_of_python(kinds_model, open_page, tmp_path):
    page = open_page(
        explorer.write(kinds_model, tmp_path / "m.html", view="special"), fragment="#probe=0.1,-0.2"
    )
    expected = what_stands_out(kinds_model, probe(page))
    lines = page.locator(".tf-row-section .tf-special li")
    names = lines.locator(".tf-special-name").all_inner_texts()
    assert sorted(names) == sorted(expected.index)
    sizes = lines.locator(".tf-special-size").all_inner_texts()
    found = [float(size.split("\u202f")[0].replace("\u2212", "-")) for size in sizes]
    np.testing.assert_allclose(found, expected["difference"][names], atol=0.02)


def test_a_long_tooltip_stays_on_the_map_of_a_phone(table, open_page, tmp_path):
    model = Mixed(UKR(init="pca", max_iter=2)).fit(table)
    names = [f"an item with a rather long name of its own, number {k}" for k in range(len(table))]
    model.annotate(names=names)
    page = open_page(explorer.write(model, tmp_path / "m.html"), width=390, height=844)
    map_area = page.locator(".tf-map").bounding_box()
    seen = 0
    for x, y in page.evaluate(
        """() => Array.from({ length: 20 }, (_, k) =>
          twofold.map.camera.toScreen([...twofold.map.positions.slice(2 * k, 2 * k + 2)]))"""
    ):
        page.mouse.move(map_area["x"] + x, map_area["y"] + y)
        page.wait_for_timeout(50)
        tip = page.locator(".tf-tip")
        if tip.is_visible():
            box, seen = tip.bounding_box(), seen + 1
            assert box["x"] >= 0
            assert box["x"] + box["width"] <= 390
    assert seen > 3


def test_levels_colour_and_filter(model, open_page, tmp_path):
    page = open_page(explorer.write(model, tmp_path / "a.html"))
    settle(page)
    names = page.locator(".tf-legend-scale .tf-category-name").all_inner_texts()
    assert names == ["blue", "green", "red"]
    page.locator(".tf-legend-scale .tf-category").first.click()
    settle(page)
    n_blue = int(model.as_numbers().notes_.labels["colour"].tolist().count("blue"))
    assert f"{n_blue} of 60 rows shown" in page.locator(".tf-legend-foot").inner_text()


def test_a_date_is_a_date_on_the_colour_scale(model, open_page, tmp_path):
    number = model.feature_labels().index("bought")
    page = open_page(
        explorer.write(model, tmp_path / "a.html"), fragment=f"#color=feature:{number}"
    )
    settle(page)
    ends = page.locator(".tf-legend-scale .tf-range-ends span").all_inner_texts()
    assert len(ends) == 2
    assert all(end.startswith("2020-") for end in ends)


def test_generated_dates_are_those_of_the_model(open_page, tmp_path):
    rng = np.random.default_rng(0)
    t, u, v = rng.random((3, 300))
    year, hour = 2019 + (4 * v).astype(int), 6 + np.round(16 * u)
    since = pd.to_timedelta(np.round(360 * t), unit="D") + pd.to_timedelta(hour, unit="h")
    table = pd.DataFrame({"warmth": t, "light": t**2, "noise": u, "traffic": u**2})
    table["at"] = pd.to_datetime(year, format="%Y") + since
    model = Mixed(UKR(init="pca", max_iter=5, random_state=0)).fit(table)
    assert len(model.columns_[-1].periods) == 2
    page = open_page(explorer.write(model, tmp_path / "a.html"))
    elapsed = model.as_numbers().inverse_transform(model.embedding_[::60])[:, 4]
    off = []
    for x, days in zip(model.embedding_[::60], elapsed, strict=True):
        page.evaluate("(x) => twofold.setProbe(x)", x.tolist())
        settle(page)
        with page.expect_download() as waiting:
            page.get_by_role("button", name="Download the generated row as CSV").click()
        found = pd.read_csv(waiting.value.path(), parse_dates=["at"])["at"][0]
        text = f"{found:%Y-%m-%d %H:%M}"
        page.get_by_role("radio", name="Columns").check()
        assert page.locator('[data-column="at"] .tf-bar-value').inner_text() == text
        page.get_by_role("radio", name="Table").check()
        shown = page.locator(".tf-value-cell").last.inner_text()
        assert shown.split()[:2] == text.split()
        expected = model.inverse_transform([x])["at"][0]
        assert abs(found - expected) <= pd.Timedelta(hours=1)
        off.append(abs(expected - pd.Timestamp(days, unit="D")))
    assert max(off) > pd.Timedelta(days=30)


PERIODS = ("W", "W-WED", "M", "2M", "Q", "Q-JAN", "Y-MAR", "3D", "h")


def test_generated_dates_keep_to_days_of_the_calendar_and_times_of_day(open_page, tmp_path):
    rng = np.random.default_rng(0)
    t, u = rng.random((2, 200))
    days = pd.Timestamp("2015-01-01") + pd.to_timedelta(np.round(1500 * t), unit="D")
    table = pd.DataFrame({"warmth": t, "light": u, "traffic": u**2})
    table["month"] = pd.Series(days).dt.to_period("M").dt.end_time.dt.normalize()
    table["year"] = pd.Series(days).dt.to_period("Y").dt.start_time
    for freq in PERIODS:
        table[freq] = pd.Series(days).dt.to_period(freq)
    table["night"] = days + pd.to_timedelta(np.round(150 * u - 75), unit="min")
    model = Mixed(UKR(init="pca", max_iter=5, random_state=0)).fit(table)
    page = open_page(explorer.write(model, tmp_path / "a.html"))
    page.get_by_role("radio", name="Columns").check()
    for x in model.embedding_[::40]:
        page.evaluate("(x) => twofold.setProbe(x)", x.tolist())
        settle(page)
        row = model.inverse_transform([x]).iloc[0]
        for name, form in (
            ("month", "%Y-%m-%d"),
            ("year", "%Y-%m-%d"),
            ("night", "%Y-%m-%d %H:%M"),
        ):
            found = page.locator(f'[data-column="{name}"] .tf-bar-value').inner_text()
            late = abs(pd.Timestamp(found) - row[name])
            least = pd.Timedelta(1 if name == "night" else 0, unit="min")
            assert late <= least, (found, f"{row[name]:{form}}")
        for freq in PERIODS:
            found = page.locator(f'[data-column="{freq}"] .tf-bar-value').inner_text()
            assert found == f"{row[freq].start_time:%Y-%m-%d}"


def test_the_row_leaves_as_a_row_of_the_table(model, open_page, tmp_path):
    fragment = "#probe=" + ",".join(f"{value:.6f}" for value in model.embedding_[7])
    page = open_page(explorer.write(model, tmp_path / "a.html"), fragment=fragment)
    row = model.inverse_transform([probe(page)])
    with page.expect_download() as waiting:
        page.get_by_role("button", name="Download the generated row as CSV").click()
    found = pd.read_csv(waiting.value.path())
    assert list(found) == list(row)
    assert found["colour"][0] == row["colour"][0]
    assert found["price"][0] == pytest.approx(row["price"][0], rel=2e-3)
    assert found["bought"][0].startswith("2020-")
    assert found["parts"][0] == row["parts"][0]


def test_joined_rare_levels_are_not_shown_as_one_of_them(open_page, tmp_path):
    rng = np.random.default_rng(0)
    t = rng.random(60)
    town = np.where(np.arange(60) < 50, "big", [f"village {k}" for k in range(60)])
    table = pd.DataFrame({"size": t, "height": t**2, "town": town})
    model = Mixed(UKR(init="pca", max_iter=2, random_state=0)).fit(table)
    shown = model.as_numbers().notes_.labels["town"]
    assert set(shown) == {"big", "one of 10 rare levels"}
    page = open_page(explorer.write(model, tmp_path / "a.html"))
    settle(page)
    page.evaluate("twofold.setSelection([0, 55])")
    page.wait_for_timeout(100)
    with page.expect_download() as waiting:
        page.get_by_role("button", name="Download CSV").click()
    assert list(pd.read_csv(waiting.value.path())["town"]) == ["big", "one of 10 rare levels"]


def test_a_selection_leaves_with_the_values_of_the_table(open_page, tmp_path):
    rng = np.random.default_rng(0)
    t = rng.random(80)
    start = pd.Timestamp("2020-01-01")
    table = pd.DataFrame(
        {
            "price": np.round(np.exp(6 * t + 1), 2),
            "mass": np.round(1e6 * t + 1_234_567, 3),
            "views": rng.poisson(3e6 * t**4),
            "hour": start + pd.to_timedelta(np.round(9_000 * t), unit="h"),
            "second": start + pd.to_timedelta(np.round(3e7 * t), unit="s"),
            "day": start + pd.to_timedelta(np.round(900 * t), unit="D"),
        }
    )
    table.loc[5, ["hour", "second"]] = start  # midnight
    table.loc[3, "price"] = np.nan
    table.loc[4, "hour"] = pd.NaT
    model = Mixed(UKR(init="pca", max_iter=2, random_state=0)).fit(table)
    model.annotate(labels={"score": np.round(1e4 * t, 2), "bought": table["second"].to_numpy()})
    page = open_page(explorer.write(model, tmp_path / "a.html"))
    page.evaluate("twofold.setSelection(Array.from({ length: 80 }, (_, i) => i))")
    settle(page)
    with page.expect_download() as waiting:
        page.get_by_role("button", name="Download CSV").click()
    text = pd.read_csv(waiting.value.path(), dtype=str)
    for name in ("price", "mass", "views"):
        np.testing.assert_array_equal(text[name].astype(float), table[name], err_msg=name)
    np.testing.assert_array_equal(text["score"].astype(float), np.round(1e4 * t, 2))
    for name, length in {"hour": 16, "second": 19, "day": 10}.items():
        assert (pd.to_datetime(text[name]) == table[name])[table[name].notna()].all(), name
        assert set(text[name].dropna().str.len()) == {length}
    assert text["bought"].tolist() == text["second"].tolist()
    assert text["hour"][5] == "2020-01-01 00:00"


def test_values_of_rows_and_ends_of_scales_are_those_of_the_table(open_page, tmp_path):
    rng = np.random.default_rng(0)
    t = rng.random(80)
    start = pd.Timestamp("2020-01-01 08:00")
    table = pd.DataFrame(
        {
            "rain": np.where(t < 0.1, 0, np.round(68.2 * t, 4)),
            "price": np.round(np.exp(9 * t), 2),
            "hour": start + pd.to_timedelta(np.round(9_000 * t), unit="h"),
            "second": start + pd.to_timedelta(np.round(3e7 * t), unit="s"),
        }
    )
    model = Mixed(UKR(init="pca", max_iter=2, random_state=0)).fit(table)
    file = explorer.write(model, tmp_path / "a.html")

    def ends(name):
        return table[name].min(), table[name].max()

    number = model.feature_labels().index("second")
    place = ",".join(map(str, model.embedding_[7]))
    page = open_page(file, fragment=f"#probe={place}&color=feature:{number}")
    for name, form in {"hour": "%Y-%m-%d %H:%M", "second": "%Y-%m-%d %H:%M:%S"}.items():
        text = page.locator(f'[data-column="{name}"] .tf-bar-range').inner_text()
        low, high = (end.strftime(form) for end in ends(name))
        assert text == f"{low} to {high} · beside: {table[name][7].strftime(form)}"
    assert page.locator('[data-column="rain"] .tf-bar-range').inner_text().startswith("0 to ")
    keyed = page.locator(".tf-legend-scale .tf-range-ends span").all_inner_texts()
    assert keyed == [f"{end:%Y-%m-%d %H:%M:%S}" for end in ends("second")]
    asked = "(j) => ((z) => [Math.min(...z), Math.max(...z)])(twofold.atlas.feature(j))"
    assert tuple(page.evaluate(asked, 0)) == ends("rain")
    np.testing.assert_allclose(np.exp(page.evaluate(asked, 1)), ends("price"), rtol=1e-7)


@pytest.fixture(scope="module")
def all_kinds() -> pd.DataFrame:
    """Return a table with a column of every kind, and types with spellings of their own."""
    rng = np.random.default_rng(1)
    n = 240
    t, u = rng.random((2, n))
    sizes = ["small", "medium", "large"]
    towns = np.where(np.arange(n) % 40 < 37, np.where(t < 0.5, "Ulm, old", "Bonn"), "hamlet")
    start = pd.Timestamp("2019-01-01")
    return pd.DataFrame(
        {
            "mass": 20 * t + 3 * u,
            "price": np.exp(6 * t),
            "parts": rng.poisson(9 * u**3),
            "gain": np.sinh(8 * (t - 0.5)),
            "town": [f"{town} {k}" if town == "hamlet" else town for k, town in enumerate(towns)],
            "size": pd.Categorical(np.array(sizes)[(3 * u).astype(int)], sizes, ordered=True),
            "stars": (1 + 4 * u).astype(int),
            "sold": t > 0.6,
            "bought": start + pd.to_timedelta(np.round(1_200 * t * 1_440), unit="min"),
            "sent": (start + pd.to_timedelta(np.round(800 * u * 24), unit="h")).tz_localize(
                "Europe/Berlin", ambiguous=True, nonexistent="shift_forward"
            ),
            "took": pd.to_timedelta(np.round(9e5 * (t + u)), unit="s"),
            "country": "DE",
            "note": [f"a note of its own, number {k}" for k in range(n)],
        }
    )


@pytest.fixture(scope="module")
def kinds_model(all_kinds) -> Mixed:
    kinds = {"price": "log", "parts": "count", "gain": "robust", "stars": "category"}
    model = UKR(init="pca", max_iter=10, random_state=0, n_jobs=1)
    return Mixed(model, kinds=kinds, weights={"price": 2}).fit(all_kinds)


def pasted(page):
    """Return the features that the page made of what was pasted, NaN where missing."""
    found = page.evaluate("Array.from(twofold.pasted.values, (z) => Number.isNaN(z) ? null : z)")
    return np.array(found, dtype=np.float64)


def test_a_pasted_row_of_all_kinds_is_put_where_transform_puts_it(
    all_kinds, kinds_model, open_page, tmp_path
):
    kinds = {column.name: column.kind for column in kinds_model.columns_}
    assert set(kinds.values()) >= {"number", "log", "count", "robust", "category", "ordered"}
    assert {"date", "constant"} <= set(kinds.values())
    assert "note" in kinds_model.left_out_
    page = open_page(explorer.write(kinds_model, tmp_path / "a.html"))
    rows = all_kinds.iloc[[3, 38, 117]].copy()  # the second is of a rare town
    rows["mass"] += 0.5  # a row of the table is left where it is
    rows.iloc[1, [0, 5, 8]] = np.nan, np.nan, pd.NaT
    for k in range(3):
        row = rows.iloc[[k]]
        said = paste(page, row.to_csv(index=False))
        assert 'Skipped: "note".' in said
        assert "Counted as missing" not in said
        F = kinds_model.features(row)[0]
        np.testing.assert_allclose(pasted(page), F, rtol=1e-9, atol=1e-9)
        x = kinds_model.transform(row)[0]
        np.testing.assert_allclose(probe(page), x, atol=0.02 * np.ptp(kinds_model.embedding_))


def test_what_the_fit_has_not_seen_is_missing_and_said_to_be(
    all_kinds, kinds_model, open_page, tmp_path
):
    page = open_page(explorer.write(kinds_model, tmp_path / "a.html"))
    row = all_kinds.iloc[[7]].drop(columns=["note", "country"]).astype(object)
    row.iloc[0, [1, 4]] = -3.0, "Atlantis"
    with pytest.warns(UnknownLevelWarning):
        x, F = kinds_model.transform(row)[0], kinds_model.features(row)[0]
    said = paste(page, row.to_csv(index=False, header=False, sep=";"))
    assert 'Counted as missing: price "-3.0", which is not above 0; ' in said
    assert 'town "Atlantis", which is none of its levels.' in said
    np.testing.assert_allclose(pasted(page), F, rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(probe(page), x, atol=0.02 * np.ptp(kinds_model.embedding_))
    beside = page.locator('[data-column="town"] .tf-column-other').inner_text()
    assert "beside" not in beside


def test_a_row_may_be_pasted_in_parts_and_in_other_spellings(kinds_model, open_page, tmp_path):
    page = open_page(explorer.write(kinds_model, tmp_path / "a.html"))
    lines = [
        "Stars=2.0",
        "SOLD=TRUE",
        "town=Ulm, old",
        "bought=2020/2/29 6:30",
        "took=1 day 01:00:00",
    ]
    said = paste(page, "\n".join([*lines, "sent=2020-07-01T08:00:00Z"]))
    assert "Counted as missing" not in said
    values = {
        "stars": 2,
        "sold": True,
        "town": "Ulm, old",
        "bought": pd.Timestamp("2020-02-29 06:30"),
        "took": pd.Timedelta("25h"),
        "sent": pd.Timestamp("2020-07-01 10:00", tz="Europe/Berlin"),
    }
    row = pd.DataFrame({c.name: [values.get(c.name)] for c in kinds_model.columns_})
    row["sent"] = pd.to_datetime(row["sent"]).dt.tz_convert("Europe/Berlin")
    np.testing.assert_allclose(pasted(page), kinds_model.features(row)[0], rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("width", [390, 1200])
def test_a_table_with_times_leaves_room_for_names(kinds_model, open_page, tmp_path, width):
    fragment = "#probe=" + ",".join(f"{value:.6f}" for value in kinds_model.embedding_[7])
    path = explorer.write(kinds_model, tmp_path / "a.html")
    page = open_page(path, width=width, fragment=fragment)
    page.get_by_role("radio", name="Table").check(force=True)
    settle(page)
    box, table, name = page.evaluate(
        """() => [".tf-table-scroll", ".tf-table-scroll table", ".tf-table-scroll th"].map(
          (part) => document.querySelector(part).scrollWidth)"""
    )
    assert table <= box
    assert name >= 100


def test_means_on_a_scale_of_their_own_are_called_typical(model, open_page, tmp_path):
    page = open_page(explorer.write(model, tmp_path / "a.html", view="special"))
    page.evaluate("twofold.setSelection([0, 1, 2, 3])")
    settle(page)
    for part in (".tf-row-section", ".tf-selection"):
        lines = page.locator(f"{part} .tf-special li").all_inner_texts()
        typical = {line.split("\n")[0] for line in lines if "typically" in line}
        assert "price" in typical
        assert not typical & {"colour = red", "bought"}


def test_the_widget_generates_rows_of_the_table(kinds_model):
    pytest.importorskip("anywidget")
    widget, seen = explorer.show(kinds_model), []
    widget.observe(lambda change: seen.append(change["new"]), names="generated")
    x = kinds_model.embedding_[:2]
    features = [row.tolist() for row in kinds_model.as_numbers().inverse_transform(x)]
    for row in features:
        widget.set_state({"generated": row})  # as the page sends it
    wanted = kinds_model.inverse_transform(x)
    pd.testing.assert_frame_equal(pd.concat(seen, ignore_index=True), wanted)
    assert widget.get_state("generated") == {"generated": features[1]}
    plain = explorer.show(kinds_model.as_numbers())
    plain.set_state({"generated": features[0]})
    assert plain.generated == features[0]
