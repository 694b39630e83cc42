"""What stands out, selections and links, in a real browser."""

from __future__ import annotations

from functools import partial

import numpy as np
import pandas as pd
import pytest
from explorer.browsing import drag, map_box, on_map, probe, settle
from explorer.test_usual_rows import words

from twofold import UKR, explorer
from twofold.contract.left_open import LeftOpenWarning
from twofold.standing_out import what_stands_out


@pytest.fixture(scope="module")
def model():
    found = words(n=120, D=40)
    side = np.where(found.embedding_[:, 0] < 0, "left", "right")
    months = np.array(["January", "February", "March", "April"])[np.arange(120) % 4]
    dates = pd.Series(pd.date_range("2020-01-01", periods=120))
    return found.annotate(
        names=[f"cell {i:03d}" for i in range(120)],
        labels={"side": side, "month": months, "date": dates},
    )


@pytest.fixture
def open_page(open_page):
    """Open pages wide enough for a map beside the open legend."""
    return partial(open_page, width=1500)


@pytest.fixture(scope="module")
def file(model, tmp_path_factory):
    return explorer.write(model, tmp_path_factory.mktemp("page") / "words.html")


def listed(page, part=".tf-row-section"):
    """Return the features of a list, and their differences."""
    lines = page.locator(f"{part} .tf-special li")
    names = lines.locator(".tf-special-name").all_inner_texts()
    sizes = lines.locator(".tf-special-size").all_inner_texts()
    return names, [float(size.split("\u202f")[0].replace("\u2212", "-")) for size in sizes]


def select(page, rows):
    page.evaluate("(rows) => twofold.setSelection(rows)", list(map(int, rows)))
    settle(page)


def test_the_list_is_that_of_python(model, file, open_page):
    page = open_page(file, fragment="#probe=0.8,-0.6")
    names, sizes = listed(page)
    expected = what_stands_out(model, probe(page))
    assert len(names) == 25
    np.testing.assert_allclose(sizes, expected["difference"][names], atol=0.006)
    np.testing.assert_allclose(np.abs(sizes), expected["difference"].abs()[:25], atol=0.006)
    rows = np.flatnonzero(model.embedding_[:, 1] > 1)
    select(page, rows)
    names, sizes = listed(page, ".tf-selection")
    expected = what_stands_out(model, rows)
    np.testing.assert_allclose(sizes, expected["difference"][names], atol=0.006)
    line = expected.loc[names[0]]
    text = page.locator(".tf-selection .tf-special-values").first.inner_text()
    here, spread, there = (
        float(part.replace("\u2212", "-").split()[-1])
        for part in (text.split(" ± ")[0], text.split(" ± ")[1].split(",")[0], text)
    )
    np.testing.assert_allclose([here, there], line[["here", "there"]], atol=0.01)
    assert spread == pytest.approx(line["spread"], rel=0.06)


@pytest.mark.slow
def test_the_list_is_searched_sorted_and_colours_the_map(model, file, open_page):
    page = open_page(file, fragment="#probe=0.8,-0.6")
    row = page.locator(".tf-row-section")
    row.get_by_label("Find a feature").fill("gene 07")
    assert listed(page)[0] == ["gene 07"]
    row.get_by_role("button", name="gene 07").click()
    settle(page)
    number = list(model.feature_names_in_).index("gene 07")
    assert f"color=feature:{number}" in page.evaluate("() => location.hash")
    row.get_by_label("Find a feature").press("Escape")
    row.get_by_label("Sort by").select_option("lower")
    sizes = listed(page)[1]
    assert sizes[0] < 0
    assert sizes == sorted(sizes)


@pytest.mark.slow
def test_a_second_place_can_be_compared_with(model, file, open_page):
    page = open_page(file, fragment="#probe=1.2,1.0")
    page.keyboard.press("a")
    page.evaluate("() => { location.hash = '#probe=-1,-0.5'; }")
    settle(page)
    page.get_by_label("Compare with", exact=True).select_option("A")
    names, sizes = listed(page)
    expected = what_stands_out(model, np.array([-1, -0.5]), against=np.array([1.2, 1.0]))
    np.testing.assert_allclose(sizes, expected["difference"][names], atol=0.006)


@pytest.mark.slow
def test_selections_are_kept_named_compared_and_colour(model, file, open_page):
    page = open_page(file)
    left, top = (np.flatnonzero(model.embedding_[:, d] < -0.5) for d in (0, 1))
    select(page, left)
    page.get_by_role("button", name="Keep").click()
    # It is seen where it was kept, not below a long list.
    name, scroll = (
        page.locator(part).bounding_box() for part in (".tf-kept input", ".tf-panel-scroll")
    )
    assert scroll["y"] <= name["y"] <= scroll["y"] + scroll["height"] - name["height"]
    page.get_by_label("Name of Group 1").fill("west")
    page.get_by_label("Name of Group 1").press("Enter")
    assert (
        f"Kept selections: west ({len(left)})" in page.locator(".tf-selection").first.inner_text()
    )
    select(page, top)
    page.get_by_label("Compare the selection with").select_option("west")
    names, sizes = listed(page, ".tf-selection")
    expected = what_stands_out(model, top, against=left)
    np.testing.assert_allclose(sizes, expected["difference"][names], atol=0.006)
    page.keyboard.press("Escape")
    page.locator(".tf-panel").get_by_role("button", name=f"{len(left)} rows").click()
    settle(page)
    assert f"{len(left)} rows selected" in page.locator(".tf-selection").first.inner_text()
    page.get_by_role("combobox", name="Colour by").fill("kept")
    page.keyboard.press("Enter")
    settle(page)
    assert page.locator(".tf-legend-scale .tf-category-name").all_inner_texts() == ["west", "none"]
    # A link has them, too.
    other = open_page(file, fragment=page.evaluate("() => location.hash"))
    assert other.get_by_label("Name of west").input_value() == "west"
    assert other.locator(".tf-legend-scale .tf-category-name").all_inner_texts() == ["west", "none"]


def test_a_link_brings_back_filters_selection_colour_and_view(model, file, open_page):
    page = open_page(file, fragment="#probe=0.8,-0.6")
    page.locator(".tf-category", has_text="left").click()
    page.get_by_text("More filters").click()
    page.get_by_role("combobox", name="Filter by").fill("date")
    page.keyboard.press("Enter")
    page.get_by_label("Lowest date").fill("200")
    select(page, [3, 4, 5, 40])
    page.evaluate("() => twofold.map.showPlace([0.5, 0.25], 2)")
    page.wait_for_timeout(400)
    shown = page.locator(".tf-legend-foot p").inner_text()
    assert shown.endswith("of 120 rows shown")
    fragment = page.evaluate("() => location.hash")
    other = open_page(file, fragment=fragment)
    assert other.locator(".tf-legend-foot p").inner_text() == shown
    assert "4 rows selected" in other.locator(".tf-selection").first.inner_text()
    camera = "() => [...twofold.map.camera.center, twofold.map.camera.zoom]"
    np.testing.assert_allclose(other.evaluate(camera), [0.5, 0.25, 2], rtol=1e-5)
    other.wait_for_timeout(400)
    assert other.evaluate("() => location.hash") == fragment


@pytest.mark.slow
def test_an_address_changed_in_an_open_tab_takes_effect(file, open_page):
    page = open_page(file, fragment="#probe=0.8,-0.6")
    page.locator(".tf-category", has_text="left").click()
    page.evaluate("() => { location.hash = '#probe=-1.5,1'; }")
    np.testing.assert_allclose(probe(page), [-1.5, 1])
    page.evaluate("() => twofold.map.showPlace([1, -1], 30)")
    page.evaluate("() => { location.hash = '#probe=-1.5,0.5'; }")
    settle(page)  # the map goes where the probe is
    np.testing.assert_allclose(page.evaluate("() => twofold.map.camera.center"), [-1.5, 0.5])
    # What it does not mention stays.
    assert "filter.label:side=left" in page.evaluate("() => location.hash")
    page.evaluate("() => { location.hash = '#probe=0,0&color=density&view=table'; }")
    settle(page)
    assert "filter" not in page.evaluate("() => location.hash")
    assert page.get_by_role("radio", name="Table").is_checked()


@pytest.mark.slow
def test_what_is_filtered_can_be_selected_and_leaves_as_names(model, file, open_page):
    page = open_page(file)
    page.locator(".tf-category", has_text="left").click()
    page.get_by_role("button", name="Select these").click()
    settle(page)
    with page.expect_download() as waiting:
        page.get_by_role("button", name="Row names").click()
    found = pd.read_csv(waiting.value.path())
    rows = np.flatnonzero(model.embedding_[:, 0] < 0)
    assert found["row"].tolist() == (rows + 1).tolist()
    assert found["name"].tolist() == [f"cell {i:03d}" for i in rows]


@pytest.mark.slow
def test_a_link_is_copied(file, browser):
    context = browser.new_context(permissions=["clipboard-read", "clipboard-write"])
    page = context.new_page()
    page.goto(file.as_uri())
    page.evaluate("() => window.twofold.ready")
    select(page, [1, 2])
    page.get_by_role("button", name="Copy link").click()
    settle(page)
    said = page.locator(".tf-toast").inner_text()
    link = page.locator(".tf-toast input")
    copied = (
        link.input_value()
        if link.count()
        else page.evaluate("() => navigator.clipboard.readText()")
    )
    assert said.startswith(("The link is copied", "Copy this link"))
    assert "rows=" in copied
    context.close()


@pytest.mark.slow
def test_keys_work_after_a_search_and_escape_leaves_the_field(file, open_page):
    page = open_page(file)
    page.keyboard.press("/")
    page.keyboard.type("cell 017")
    page.keyboard.press("Enter")
    settle(page)
    page.keyboard.press("a")
    assert page.locator(".tf-end-text").first.inner_text() == "cell 017"
    page.keyboard.press("/")
    page.keyboard.type("cell")
    page.keyboard.press("Escape")
    assert not page.get_by_role("listbox", name="Search rows").is_visible()
    page.keyboard.press("b")
    assert page.locator(".tf-end-text").last.inner_text() == "cell 017"
    page.get_by_role("radio", name="Table").check()
    page.get_by_placeholder("Part of a name").fill("gene 07")
    page.keyboard.press("Escape")
    page.keyboard.press("v")
    assert not page.get_by_role("radio", name="Table").is_checked()


@pytest.mark.parametrize("box", ["Colour by", "Filter by"])
@pytest.mark.parametrize("way", ["Enter", "click"])
def test_keys_work_after_a_choice(box, way, file, open_page):
    page = open_page(file)
    page.get_by_text("More filters").click()
    field = page.get_by_role("combobox", name=box)
    field.fill("gene 07")
    if way == "Enter":
        page.keyboard.press("Enter")
    else:
        page.get_by_role("option", name="gene 07").click()
    page.keyboard.press("l")
    assert field.input_value() == ("gene 07" if box == "Colour by" else "")
    assert page.locator(".tf-filter-head", has_text="gene 07").count() == (box == "Filter by")
    lasso = page.get_by_role("button", name="Select rows with a lasso")
    assert lasso.get_attribute("aria-pressed") == "true"


def test_letters_are_keys_of_the_page_but_in_text(file, open_page):
    page = open_page(file)
    for rows in (range(10), range(5, 30)):
        select(page, rows)
        page.get_by_role("button", name="Keep").click()
    lasso = page.get_by_role("button", name="Select rows with a lasso")
    against = page.get_by_label("Compare the selection with")

    def is_lasso():
        return lasso.get_attribute("aria-pressed") == "true"

    def has_focus(part):
        return part.evaluate("(node) => node.getRootNode().activeElement === node")

    name = page.get_by_label("Name of Group 1")
    name.fill("")
    name.press_sequentially("All/pals")
    assert name.input_value() == "All/pals"
    assert not is_lasso()
    name.press("Enter")
    assert has_focus(page.locator(".tf-map"))
    page.keyboard.press("l")
    assert is_lasso()
    # Arrows go from option to option, and a letter that begins one is still a key of the page.
    against.focus()
    page.keyboard.press("ArrowDown")
    assert has_focus(against)
    assert against.input_value() == "0"
    page.keyboard.press("l")
    page.keyboard.press("a")
    assert not is_lasso()
    assert against.input_value() == "0"
    page.keyboard.press("Escape")
    assert has_focus(page.locator(".tf-map"))
    assert "25 rows selected" in page.locator(".tf-selection-count").inner_text()
    against.focus()
    against.select_option("Group 2")
    assert has_focus(page.locator(".tf-map"))
    name.fill("nothing")
    name.press("Escape")
    assert name.input_value() == "All/pals"


@pytest.mark.slow
def test_a_tooltip_goes_when_other_points_come_under_it(model, file, open_page):
    page = open_page(file)
    box = map_box(page)
    x, y = page.evaluate(
        "() => twofold.map.camera.toScreen([...twofold.map.positions.slice(0, 2)])"
    )
    page.mouse.move(box["x"] + x, box["y"] + y)
    settle(page)
    assert page.locator(".tf-tip").is_visible()
    page.keyboard.press("/")
    page.keyboard.type("cell 050")
    page.keyboard.press("Enter")
    page.wait_for_timeout(500)
    assert not page.locator(".tf-tip").is_visible()


@pytest.mark.slow
def test_months_and_dates_read_as_such(file, open_page):
    page = open_page(file, fragment="#color=label:month")
    names = page.locator(".tf-legend-scale .tf-category-name").all_inner_texts()
    assert names == ["January", "February", "March", "April"]
    page.evaluate("() => { location.hash = '#color=label:date'; }")
    settle(page)
    ends = page.locator(".tf-legend-scale .tf-range-ends span").all_inner_texts()
    assert ends == ["2020-01-01", "2020-04-29"]


@pytest.mark.slow
def test_a_lasso_selects_and_the_list_appears(file, open_page):
    page = open_page(file)
    page.keyboard.press("l")
    page.mouse.move(*on_map(page, 0.3, 0.2))
    page.mouse.down()
    for place in ((0.8, 0.2), (0.8, 0.6), (0.3, 0.6)):
        page.mouse.move(*on_map(page, *place), steps=4)
    page.mouse.up()
    settle(page)
    assert len(listed(page, ".tf-selection")[0]) == 25
    assert "rows=" in page.evaluate("() => location.hash")
    drag(page, (0.5, 0.5), (0.51, 0.5))
    page.keyboard.press("Escape")
    settle(page)
    assert "rows=" not in page.evaluate("() => location.hash")


def test_a_map_that_leaves_much_open_says_so_beside_the_map(file, open_page, tmp_path):
    assert open_page(file).locator(".tf-warning").count() == 0
    noise = np.random.default_rng(0).normal(size=(60, 20))
    with pytest.warns(LeftOpenWarning):
        model = UKR(1, init="pca", max_iter=3).fit(noise)
    page = open_page(explorer.write(model, tmp_path / "noise.html"))
    note = page.locator(".tf-warning")
    assert note.is_visible()
    assert model.left_open().warning() in note.inner_text()
