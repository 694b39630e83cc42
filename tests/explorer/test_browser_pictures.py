"""How the map looks, what is written on it and what leaves it as a picture, in a real browser."""

from __future__ import annotations

from xml.etree import ElementTree

import numpy as np
import pandas as pd
import pytest
from explorer.browsing import OPTIONS, coloured, map_pixels, settle, smooth_images
from matplotlib.image import imread

from twofold import explorer, upgrade

SPACE = "{http://www.w3.org/2000/svg}"
WITHOUT_WEBGL = """
  const own = HTMLCanvasElement.prototype.getContext;
  HTMLCanvasElement.prototype.getContext = function (kind, ...more) {
    return kind.startsWith("webgl") ? null : own.call(this, kind, ...more);
  };
"""


def histogram(page, title):
    """Return how high the bars of the rows that pass are, for one filter."""
    path = page.locator(".tf-filter", has_text=title).locator(".tf-histogram-passing")
    return path.get_attribute("d").count("M")


@pytest.mark.slow
def test_histograms_follow_each_other(images_file, open_page):
    page = open_page(images_file)
    page.get_by_text("More filters").click()
    page.get_by_role("combobox", name="Filter by").fill("height")
    page.keyboard.press("Enter")
    all_bars = histogram(page, "height")
    assert all_bars > 20
    counts = page.locator(".tf-legend-scale .tf-count")
    assert counts.all_inner_texts() == ["100", "100", "100"]
    page.get_by_label("Lowest height").fill("330")
    settle(page)
    # Its own filter leaves a histogram as it is; the others see it.
    assert histogram(page, "height") == all_bars
    assert all(0 < int(count) < 50 for count in counts.all_inner_texts())
    page.locator(".tf-category", has_text="left").click()
    settle(page)
    assert histogram(page, "height") <= all_bars
    names = page.evaluate("() => twofold.map.names.map((name) => name.text)")
    assert names == ["left"]


@pytest.mark.slow
def test_names_of_classes_are_where_their_rows_are(images, images_file, open_page):
    page = open_page(images_file)
    names = page.evaluate("() => twofold.map.names")
    assert {name["text"] for name in names} == {"left", "middle", "right"}
    for name in names:
        rows = images.notes_.labels["third"] == name["text"]
        low, high = images.embedding_[rows, 0].min(), images.embedding_[rows, 0].max()
        assert low <= name["x"] <= high
    page.get_by_text("Points and names").click()
    page.get_by_label("Names of classes on the map").uncheck()
    settle(page)
    assert page.evaluate("() => twofold.map.names") == []


@pytest.mark.slow
def test_size_and_opacity_of_points(images_file, open_page):
    page = open_page(images_file)
    page.mouse.move(5, 5)
    page.get_by_text("Points and names").click()
    page.get_by_label("Names of classes on the map").uncheck()
    settle(page)
    before = coloured(map_pixels(page))
    page.get_by_label("Size", exact=True).fill("10")
    settle(page)
    assert coloured(map_pixels(page)) > 2 * before
    page.get_by_label("Size", exact=True).fill("0")
    page.get_by_label("Opacity").fill("-20")
    settle(page)
    assert coloured(map_pixels(page)) < 0.6 * before


@pytest.mark.slow
def test_few_rows_in_view_are_pictures(images_file, open_page):
    page = open_page(images_file)
    assert page.evaluate("() => twofold.map.tagCount") == 3  # the names of the classes
    page.evaluate("() => twofold.map.showPlace([...twofold.map.positions.slice(0, 2)], 5)")
    settle(page)
    assert 5 < page.evaluate("() => twofold.map.tagCount") <= 160


@pytest.mark.slow
def test_many_classes_are_folded_with_a_count(open_page, tmp_path):
    X, Y = smooth_images(260, 4)
    letters = np.array(list("ABCDEFGHIJKLMNOPQRSTUVWXYZ"))[np.arange(260) % 26]
    model = upgrade(X, Y, **OPTIONS).annotate(labels={"letter": letters})
    page = open_page(explorer.write(model, tmp_path / "a.html"))
    names = page.locator(".tf-category-name:visible")
    assert names.count() == 16
    page.get_by_role("button", name="Show all 26 classes").click()
    assert names.count() == 26
    page.get_by_role("button", name="Show fewer").click()
    assert names.count() == 16


@pytest.mark.slow
def test_the_map_leaves_as_png_and_svg(images_file, open_page):
    page = open_page(images_file)
    menu = page.locator(".tf-picture-menu")
    menu.locator("summary").click()
    with page.expect_download() as waiting:
        menu.get_by_role("button", name="PNG").click()
    # Twice as fine as the screen, and the screen is as it was.
    picture = imread(waiting.value.path())
    screen = page.evaluate("() => [twofold.map.camera.height, twofold.map.camera.width]")
    assert picture.shape[0] == 2 * screen[0]
    beside = picture[:, 2 * screen[1] :, :3]
    # The key: dots of three classes, and their names in ink on white.
    assert 200 < coloured(255 * beside) < 1_000
    assert 60 < beside.shape[1] < 600
    np.testing.assert_array_equal(beside[-1], 1)
    assert coloured(255 * picture[:, : 2 * screen[1], :3]) > 2 * coloured(map_pixels(page)) > 1_000
    assert not menu.get_by_role("button", name="PNG").is_visible()
    menu.locator("summary").click()
    with page.expect_download() as waiting:
        menu.get_by_role("button", name="SVG").click()
    found = ElementTree.parse(waiting.value.path())
    assert len(found.findall(f"{SPACE}g[@fill-opacity]/{SPACE}circle")) == 300
    assert [text.text for text in found.findall(f"{SPACE}text")] == ["left", "middle", "right"]
    key = found.find(f"{SPACE}g[@class='key']")
    words = [text.text for text in key.findall(f"{SPACE}text")]
    assert words == ["third", "left", "middle", "right"]
    own = page.locator(".tf-legend-scale .tf-swatch")
    colours = [own.nth(k).evaluate("(dot) => dot.style.background") for k in range(3)]
    assert [dot.get("fill") for dot in key.findall(f"{SPACE}circle")] == colours
    assert all(path.get("d").startswith("M") for path in found.findall(f".//{SPACE}path")[:1])
    assert len(found.findall(f"{SPACE}path[@clip-path]")) == 1
    clip = found.find(f"{SPACE}clipPath/{SPACE}path")
    assert clip.get("d") == found.find(f"{SPACE}path").get("d")


def key_of_picture(page):
    """Return what the colours of a saved map mean, an element of its SVG file."""
    page.locator(".tf-picture-menu summary").click()
    with page.expect_download() as waiting:
        page.get_by_role("button", name="SVG").click()
    return ElementTree.parse(waiting.value.path()).find(f"{SPACE}g[@class='key']")


def test_a_saved_map_has_a_key_of_what_is_seen(images_file, open_page):
    page = open_page(images_file)
    page.locator(".tf-category", has_text="left").click()
    settle(page)
    assert [text.text for text in key_of_picture(page).findall(f"{SPACE}text")] == ["third", "left"]
    page.evaluate("() => { location.hash = '#color=label:height'; }")
    settle(page)
    found = key_of_picture(page)
    ends = page.locator(".tf-legend-scale .tf-range-ends span").all_inner_texts()
    assert [text.text for text in found.findall(f"{SPACE}text")] == ["height", *ends]
    low, high = (float(text.get("y")) for text in found.findall(f"{SPACE}text")[1:])
    assert low > high
    assert len(found.findall(f".//{SPACE}stop")) == 9
    page.evaluate("() => { location.hash = '#color=none'; }")
    settle(page)
    assert key_of_picture(page) is None


def test_rows_without_a_class_or_number_have_a_key_and_a_filter(open_page, tmp_path):
    X, Y = smooth_images(80, 4)
    side = np.where(np.arange(80) < 20, "", np.where(np.arange(80) < 50, "left", "right"))
    height = np.where(np.arange(80) < 7, np.nan, X[:, 1])
    model = upgrade(X, Y, **OPTIONS).annotate(labels={"side": side, "height": height})
    file = explorer.write(model, tmp_path / "a.html")
    page = open_page(file)
    assert page.locator(".tf-legend-scale .tf-count").all_inner_texts() == ["30", "30", "20"]
    names = page.locator(".tf-legend-scale .tf-category-name").all()
    assert len({name.bounding_box()["height"] for name in names}) == 1
    bars = page.locator(".tf-legend-scale .tf-category-bar").all()
    widths = np.array([bar.bounding_box()["width"] for bar in bars])
    assert np.ptp(widths / [30, 30, 20]) < 0.1
    assert [text.text for text in key_of_picture(page).findall(f"{SPACE}text")][-1] == "missing"
    page.locator(".tf-category", has_text="missing").click()
    settle(page)
    other = open_page(file, fragment=page.evaluate("() => location.hash"))
    for one in (page, other):
        assert "20 of 80 rows shown" in one.locator(".tf-legend-foot").inner_text()
    page.evaluate("() => { location.hash = '#color=label:height'; }")
    settle(page)
    assert page.locator(".tf-missing").inner_text() == "missing 7"
    assert [text.text for text in key_of_picture(page).findall(f"{SPACE}text")][-1] == "missing"


@pytest.mark.slow
def test_without_webgl_points_are_drawn_all_the_same(images_file, browser):
    context = browser.new_context(viewport={"width": 1200, "height": 800})
    context.add_init_script(WITHOUT_WEBGL)
    page = context.new_page()
    problems = []
    page.on("pageerror", lambda error: problems.append(str(error)))
    page.goto(images_file.as_uri())
    page.evaluate("() => window.twofold.ready")
    page.mouse.move(5, 5)
    settle(page)
    before = coloured(map_pixels(page))
    assert before > 2_000
    page.locator(".tf-category", has_text="left").click()
    settle(page)
    assert coloured(map_pixels(page)) < 0.6 * before
    page.locator(".tf-category", has_text="left").click()
    page.evaluate("() => twofold.setSelection([1, 2, 3])")
    settle(page)
    assert coloured(map_pixels(page)) < 0.6 * before
    context.close()
    assert not problems


@pytest.mark.slow
def test_two_maps_share_selection_colour_and_pointer(images, open_page, tmp_path):
    other = images.embedding_[:, ::-1] * [1, -1]
    page = open_page(
        explorer.write(images, tmp_path / "a.html", beside={"turned": other}), width=1400
    )
    assert page.get_by_text("turned", exact=True).is_visible()
    second = page.locator(".tf-second-map")
    box = second.bounding_box()
    page.keyboard.press("l")
    page.mouse.move(box["x"] + 0.2 * box["width"], box["y"] + 0.3 * box["height"])
    page.mouse.down()
    for across, down in ((0.8, 0.3), (0.8, 0.45), (0.2, 0.45)):
        page.mouse.move(box["x"] + across * box["width"], box["y"] + down * box["height"], steps=4)
    page.mouse.up()
    settle(page)
    assert "rows selected" in page.locator(".tf-selection").first.inner_text()
    # A row found on one map is ringed on the other.
    hovered = "() => twofold.map.hoveredRow"
    for step in range(40):
        page.mouse.move(box["x"] + (0.3 + 0.01 * step) * box["width"], box["y"] + box["height"] / 2)
        page.wait_for_timeout(20)
        if page.evaluate(hovered) >= 0:
            break
    assert page.evaluate(hovered) >= 0


@pytest.mark.slow
def test_a_lasso_goes_from_the_second_map(images, open_page, tmp_path):
    page = open_page(explorer.write(images, tmp_path / "a.html", beside={"x": images.embedding_}))
    second = page.locator(".tf-second-map")
    box = second.bounding_box()
    page.keyboard.press("Escape")
    page.mouse.move(5, 5)
    settle(page)
    before = second.screenshot()
    for _ in range(5):  # Chromium left about every third one where it was
        page.keyboard.press("l")
        for number, (across, down) in enumerate(((0.3, 0.4), (0.6, 0.4), (0.6, 0.6), (0.3, 0.6))):
            page.mouse.move(
                box["x"] + across * box["width"], box["y"] + down * box["height"], steps=5
            )
            if number == 0:
                page.mouse.down()
        page.mouse.up()
        settle(page)
        page.mouse.move(5, 5)
        page.keyboard.press("Escape")
        settle(page)
        assert second.screenshot() == before


@pytest.mark.slow
def test_a_selection_leaves_with_the_digits_of_the_table(open_page, tmp_path):
    X, Y = smooth_images(60, 3)
    Y = np.round(10 * Y, 2)
    page = open_page(explorer.write(upgrade(X, Y, **OPTIONS), tmp_path / "a.html"))
    page.evaluate("() => twofold.setSelection([3, 8, 20])")
    settle(page)
    with page.expect_download() as waiting:
        page.get_by_role("button", name="Download CSV").click()
    found = pd.read_csv(waiting.value.path())
    np.testing.assert_array_equal(found.iloc[:, 4:].to_numpy(), Y[[3, 8, 20]])


@pytest.mark.slow
@pytest.mark.parametrize("width", [390, 1440])
@pytest.mark.parametrize("view", ["special", "table", "bars"])
def test_nothing_in_the_panel_is_cut_off(width, view, open_page, tmp_path):
    X, Y = smooth_images(60, 3)
    names = [f"a rather_long.name of feature number {k:03d}" for k in range(9)]
    model = upgrade(X, pd.DataFrame(Y, columns=names), **OPTIONS)
    model.annotate(names=[f"specimen-of-the-collection-{k:05d}" for k in range(60)])
    made = explorer.write(
        model, tmp_path / "a.html", view=view, title="Specimens of a collection, 2024"
    )
    page = open_page(made, width=width, height=844)
    cut = page.evaluate(
        """() => [...document.querySelectorAll(".tf-panel :is(span, td, th, p, button, dd), h1")]
          .filter((e) => e.offsetParent && e.scrollWidth > e.clientWidth + 1 && e.clientWidth > 0)
          .filter((e) => getComputedStyle(e).overflowX !== "visible" && !e.closest(".tf-hidden"))
          .map((e) => e.outerHTML.slice(0, 120))"""
    )
    assert not cut


def seen_in(page, part, frame):
    """Say whether all of a part can be seen in a frame that cuts off what is beyond it."""
    inside = """([part, frame]) => {
      const box = (query) => document.querySelector(query).getBoundingClientRect();
      const [a, b] = [box(part), box(frame)];
      return a.top >= b.top && a.bottom <= b.bottom + 1 && a.left >= b.left && a.right <= b.right;
    }"""
    return page.evaluate(inside, [part, frame])


@pytest.fixture(scope="module")
def letters_file(tmp_path_factory):
    X, Y = smooth_images(130, 4)
    model = upgrade(X, Y, **OPTIONS).annotate(
        labels={"letter": list("abcdefghijklmnopqrstuvwxyz") * 5}
    )
    return explorer.write(model, tmp_path_factory.mktemp("page") / "letters.html")


@pytest.mark.parametrize("height", [800, 520])
def test_a_long_legend_stays_on_the_map(height, letters_file, open_page):
    filters = "&".join(f"filter.feature:{j}=-1..3" for j in (3, 4, 5))
    page = open_page(letters_file, 1280, height, f"#color=label:letter&{filters}")
    card = page.locator(".tf-legend-card")
    if card.get_attribute("open") is None:
        card.locator("summary").first.click()
    assert seen_in(page, ".tf-legend-card", ".tf-map-area")
    assert seen_in(page, ".tf-legend .tf-select", ".tf-legend-card")
    assert seen_in(page, ".tf-legend-foot", ".tf-legend-card")
    # What does not fit is scrolled to, and its list of suggestions is not cut off.
    last = page.locator(".tf-filter").last
    last.scroll_into_view_if_needed()
    assert seen_in(page, ".tf-filter:last-child", ".tf-legend-scroll")
    page.get_by_role("combobox", name="Filter by").click()
    assert seen_in(page, ".tf-legend-scroll .tf-suggestions", ".tf-map-area")
    page.get_by_role("option", name="Density").click()
    assert page.locator(".tf-filter").count() == 3 + 1


@pytest.mark.slow
@pytest.mark.parametrize(("width", "note"), [(1280, ".tf-folded-note"), (390, ".tf-map-note")])
def test_a_page_of_filtered_rows_says_so_where_the_legend_is_folded(
    width, note, letters_file, open_page
):
    page = open_page(letters_file, width, 800, "#color=label:letter&filter.label:letter=a")
    if width > 720:
        assert not page.locator(note).is_visible()  # the open legend says so
        page.locator(".tf-legend-card > summary").click()
    assert page.locator(note).inner_text() == "5 of 130 rows shown"
    page.evaluate("() => { location.hash = '#color=density'; }")
    settle(page)
    assert not page.locator(note).is_visible()


@pytest.mark.slow
def test_the_help_opens_at_its_title(images_file, open_page):
    page = open_page(images_file, 1280, 500)
    page.keyboard.press("?")
    assert seen_in(page, ".tf-help h2", ".tf-help")


@pytest.mark.slow
def test_two_maps_of_a_phone_fill_the_width_and_end_where_the_panel_begins(open_page, tmp_path):
    X, Y = smooth_images(60, 4)
    path = explorer.write(
        upgrade(X, Y, **OPTIONS), tmp_path / "a.html", beside={"turned": X[:, ::-1]}
    )
    page = open_page(path, 390, 844)
    camera = "(({ scale, extent }) => extent.map((side) => side * scale))(twofold.map.camera)"
    assert max(page.evaluate(camera)) > 160
    second, panel = (page.locator(part).bounding_box() for part in (".tf-second-map", ".tf-panel"))
    assert second["y"] + second["height"] <= panel["y"] + 1
    assert second["height"] > 100


@pytest.mark.slow
def test_long_names_that_begin_alike_are_told_apart(open_page, tmp_path):
    X, Y = smooth_images(60, 4)
    names = [f"a_name_of_many_letters_that_all_features_share_{j}" for j in range(16)]
    path = explorer.write(
        upgrade(X, pd.DataFrame(Y, columns=names), **OPTIONS), tmp_path / "a.html"
    )
    page = open_page(path)
    field = page.get_by_role("combobox", name="Colour by")
    field.fill("share_7")
    option = page.get_by_role("option", name=names[7])
    assert option.evaluate("(item) => item.scrollWidth <= item.clientWidth")
    option.click()
    assert field.get_attribute("title") == names[7]
