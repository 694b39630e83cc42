"""The page and the widget in a real browser.

A Chromium is looked for in the environment variable TWOFOLD_CHROMIUM and in the path. Without one,
or without playwright, these tests are skipped; TWOFOLD_REQUIRE_BROWSER=1 makes that an error.
"""

from __future__ import annotations

import os
import re
import shutil
from urllib.parse import parse_qs

import numpy as np
import pytest

from twofold import UKR, explorer, upgrade
from twofold.explorer.page import static_text

OPTIONS = {"n_jobs": 1, "verbose": False}
SIDE = 12
NASTY = "</script><script>alert(1)</script> \"'&<b> {{data}} 😀"
ARGUMENTS = [
    "--no-sandbox",
    "--headless=new",
    "--use-gl=angle",
    "--use-angle=swiftshader",
    "--enable-unsafe-swiftshader",
    "--ignore-gpu-blocklist",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-first-run",
]


# ---- a browser ------------------------------------------------------------------------------


def give_up(reason):
    if os.environ.get("TWOFOLD_REQUIRE_BROWSER") == "1":
        pytest.fail(f"{reason}, and TWOFOLD_REQUIRE_BROWSER is 1")
    pytest.skip(reason)


def find_chromium():
    given = os.environ.get("TWOFOLD_CHROMIUM")
    return given or next(
        filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None
    )


@pytest.fixture(scope="module")
def browser():
    try:
        from playwright.sync_api import sync_playwright
    except ImportError:
        give_up("playwright is not installed")
    path = find_chromium()
    if path is None:
        give_up("no Chromium in the path; TWOFOLD_CHROMIUM may name one")
    with sync_playwright() as driver:
        found = driver.chromium.launch(executable_path=path, args=ARGUMENTS)
        yield found
        found.close()


@pytest.fixture
def open_page(browser):
    """Return a function that opens a file and waits for its map; problems fail the test."""
    contexts, problems = [], []

    def watch(page):
        page.on("pageerror", lambda error: problems.append(str(error)))
        page.on(
            "console", lambda said: problems.append(said.text) if said.type == "error" else None
        )
        page.on("dialog", lambda dialog: problems.append(f"dialog: {dialog.message}"))
        page.on(
            "request",
            lambda request: (
                None
                if request.url.startswith(("file:", "data:", "blob:"))
                else problems.append(f"request: {request.url}")
            ),
        )

    def open_file(path, width=1200, height=800, fragment="", **more):
        context = browser.new_context(viewport={"width": width, "height": height}, **more)
        contexts.append(context)
        page = context.new_page()
        watch(page)
        page.goto(f"{path.as_uri()}{fragment}")
        page.evaluate("() => window.twofold.ready")
        settle(page)
        return page

    yield open_file
    for context in contexts:
        context.close()
    assert not problems


# ---- models ---------------------------------------------------------------------------------


def smooth_images(n, side, q=2, seed=0):
    """Return latent places, and images of a blob whose place and width follow them."""
    rng = np.random.default_rng(seed)
    T = rng.uniform(-1, 1, size=(n, q))
    line = np.linspace(-1, 1, side)
    width = 0.3 + (0.15 * T[:, 2, None, None] if q > 2 else 0)
    row = (line[None, :, None] - 0.6 * T[:, 0, None, None]) ** 2
    column = (line[None, None, :] - 0.6 * T[:, min(1, q - 1), None, None]) ** 2
    Y = np.exp(-(row + column) / (2 * width**2)).reshape(n, -1)
    return T * [5, 3, 4][:q] + 2, Y + 0.01 * rng.normal(size=Y.shape)


@pytest.fixture(scope="module")
def images():
    X, Y = smooth_images(300, SIDE)
    model = upgrade(X, Y, **OPTIONS)
    thirds = np.digitize(X[:, 0], np.quantile(X[:, 0], [1 / 3, 2 / 3]))
    return model.annotate(
        names=[f"blob {i:03d}" for i in range(300)],
        labels={"third": np.array(["left", "middle", "right"])[thirds], "height": X[:, 1]},
        image_shape=(SIDE, SIDE),
    )


@pytest.fixture(scope="module")
def images_file(images, tmp_path_factory):
    return explorer.write(images, tmp_path_factory.mktemp("page") / "images.html")


def places(model, n=50, seed=3, *, inside=True):
    rng = np.random.default_rng(seed)
    X = model.embedding_
    found = rng.uniform(X.min(axis=0), X.max(axis=0), (30 * n, X.shape[1]))
    return found[model.in_domain(found) == inside][:n]


def large_model():
    """Return a model of 20,000 rows and 784 features, with the bandwidth of a tenth of its rows."""
    X, Y = smooth_images(20_000, 28)
    X, Y = X.astype(np.float32), Y.astype(np.float32)
    model = upgrade(X[:2_000], Y[:2_000], **OPTIONS)
    model.data_, model.weights_, model.member_ = Y, np.ones(len(Y)), np.arange(len(Y))
    model.latent_ = model.embedding_ = X
    model._wake()
    model._bound_domain()
    return model


# ---- what is on the page --------------------------------------------------------------------


def generated_at(page, X):
    asked = "(X) => X.map((x) => Array.from(window.twofold.regression.at(x)))"
    return np.array(page.evaluate(asked, X.tolist()))


def picture(page):
    """Return the pixels of the generated image, (side, side)."""
    settle(page)
    return picture_now(page)


def picture_now(page):
    pixels = page.evaluate(
        """() => {
          const canvas = document.querySelector("canvas.tf-row-image");
          const { width, height } = canvas;
          return Array.from(canvas.getContext("2d").getImageData(0, 0, width, height).data);
        }"""
    )
    return np.array(pixels).reshape(-1, 4)[:, 0].reshape(SIDE, SIDE)


def expected_picture(model, x):
    low, high = model.data_.min(), model.data_.max()
    found = 255 * (model.inverse_transform([x])[0] - low) / (high - low)
    return np.clip(found, 0, 255).reshape(SIDE, SIDE)


def settle(page):
    """Wait until what was done has been drawn, and what is looked up at rest has been, too."""
    page.evaluate(
        """async () => {
          const frame = () => new Promise((resolve) => requestAnimationFrame(resolve));
          const rest = () => new Promise((resolve) => setTimeout(resolve, 100));
          for (let round = 0; round < 3; round++) {
            await frame();
            await frame();
            await rest();
          }
        }"""
    )


def probe(page):
    """Return the latent place of the pinned probe, which the address keeps."""
    settle(page)
    fields = parse_qs(page.evaluate("() => location.hash.slice(1)"))
    return np.array([float(value) for value in fields["probe"][0].split(",")])


def map_box(page):
    return page.locator(".tf-map").bounding_box()


def on_map(page, across, down):
    box = map_box(page)
    return box["x"] + across * box["width"], box["y"] + down * box["height"]


def drag(page, start, end, steps=8):
    page.mouse.move(*on_map(page, *start))
    page.mouse.down()
    page.mouse.move(*on_map(page, *end), steps=steps)
    page.mouse.up()


# ---- numbers --------------------------------------------------------------------------------


def gappy_model():
    X, Y = smooth_images(150, 4)
    rng = np.random.default_rng(1)
    Y[rng.random(Y.shape) < 0.1] = np.nan
    weights = rng.uniform(0.5, 2, len(Y))
    return upgrade(X, Y, bandwidth="local", sample_weight=weights, **OPTIONS)


def trained_model():
    _, Y = smooth_images(120, 4)
    return UKR(kernel="quartic", init="pca", max_iter=10, **OPTIONS).fit(np.repeat(Y, 2, axis=0))


MODELS = {
    "degree 0": lambda: upgrade(*smooth_images(150, 6), **OPTIONS),
    "degree 1": lambda: upgrade(*smooth_images(150, 6), degree=1, **OPTIONS),
    "degree 2": lambda: upgrade(*smooth_images(150, 6), degree=2, **OPTIONS),
    "degree 2-axes": lambda: upgrade(*smooth_images(150, 6), degree="2-axes", **OPTIONS),
    "gaps, weights, widths": gappy_model,
    "compact kernel, equal rows": trained_model,
    "one dimension": lambda: upgrade(*smooth_images(60, 4, q=1), **OPTIONS),
    "three dimensions": lambda: upgrade(*smooth_images(200, 4, q=3), **OPTIONS),
}


@pytest.mark.parametrize("kind", MODELS)
def test_the_regression_is_that_of_the_model(kind, open_page, tmp_path):
    model = MODELS[kind]()
    page = open_page(explorer.write(model, tmp_path / "a.html"))
    X = np.concatenate([places(model, 50), places(model, 5, inside=False)])
    step = np.array(page.evaluate("() => window.twofold.atlas.header.quantised.step"))
    # A polynomial's weights may be negative: their absolute values sum to more than one.
    allowed = (3 if "degree" in kind and kind != "degree 0" else 1) * step + 1e-5
    assert (np.abs(generated_at(page, X) - model.inverse_transform(X)) <= allowed).all()
    asked = "(X) => X.map((x) => [twofold.regression.density(x), twofold.regression.inDomain(x)])"
    density, inside = np.array(page.evaluate(asked, X.tolist()), dtype=float).T
    np.testing.assert_allclose(density, model.density(X), rtol=2e-3, atol=1e-9)
    near = np.abs(model.density(X) / model.domain_threshold_ - 1) < 0.01
    np.testing.assert_array_equal(inside[~near], model.in_domain(X)[~near])


def test_a_stand_in_is_as_near_as_it_says(images, open_page, tmp_path):
    whole = explorer.write(images, tmp_path / "a.html")
    data = re.search(r'id="twofold-data">(.*?)</script>', whole.read_text("utf-8"), re.DOTALL)
    limit = whole.stat().st_size - 0.75 * len(data.group(1))
    page = open_page(explorer.write(images, tmp_path / "b.html", max_mb=limit / 1e6))
    about = page.evaluate("() => window.twofold.atlas.header.regression")
    assert not about["exact"]
    X = places(images, 200)
    gaps = generated_at(page, X) - images.inverse_transform(X)
    spread = np.sqrt(images.data_.var(axis=0).sum())
    found = np.sqrt(np.square(gaps).sum(axis=1).mean()) / spread
    assert found == pytest.approx(about["difference"], rel=0.5)
    assert page.get_by_text("a stand-in of").count() >= 1


# ---- hands ----------------------------------------------------------------------------------


def test_dragging_changes_the_generated_image(images, images_file, open_page):
    page = open_page(images_file)
    drag(page, (0.35, 0.5), (0.4, 0.45))
    first, x_first = picture(page), probe(page)
    drag(page, (0.4, 0.45), (0.65, 0.6))
    second, x_second = picture(page), probe(page)
    assert np.abs(first - second).max() > 60
    for found, x in ((first, x_first), (second, x_second)):
        assert np.abs(found - expected_picture(images, x)).max() <= 2
    # To the right on the screen is up in the first coordinate, down is down in the second.
    assert x_second[0] > x_first[0]
    assert x_second[1] < x_first[1]


def test_hovering_shows_too(images_file, open_page):
    page = open_page(images_file)
    page.mouse.move(*on_map(page, 0.35, 0.5))
    settle(page)
    first = picture(page)
    page.mouse.move(*on_map(page, 0.65, 0.5))
    settle(page)
    assert np.abs(first - picture(page)).max() > 60


def test_the_path_from_a_to_b_plays(images, images_file, open_page):
    page = open_page(images_file)
    drag(page, (0.35, 0.5), (0.36, 0.5))
    a = probe(page)
    page.get_by_role("button", name="Set A").click()
    drag(page, (0.65, 0.5), (0.66, 0.5))
    b = probe(page)
    page.get_by_role("button", name="Set B").click()
    play = page.locator(".tf-path").get_by_role("button", name="Play")
    pictures = page.evaluate(
        """async (play) => {
          const canvas = document.querySelector("canvas.tf-row-image");
          const seen = new Set();
          play.click();
          do {
            await new Promise((resolve) => requestAnimationFrame(resolve));
            seen.add(canvas.toDataURL());
          } while (play.textContent.includes("Pause"));
          return seen.size;
        }""",
        play.element_handle(),
    )
    assert pictures > 3
    assert np.abs(picture(page) - expected_picture(images, b)).max() <= 2
    page.get_by_label("Position on the path from A to B").fill("0")
    assert np.abs(picture(page) - expected_picture(images, a)).max() <= 2
    assert page.get_by_text("The whole path lies inside the data.").is_visible()


def test_search_finds_a_row_by_name(images, images_file, open_page):
    page = open_page(images_file)
    page.get_by_role("combobox", name="Search rows").fill("blob 123")
    page.get_by_role("option", name="blob 123").click()
    np.testing.assert_allclose(probe(page), images.embedding_[123], rtol=1e-4)
    assert page.locator(".tf-panel").get_by_text("blob 123").count() >= 1


def test_a_pasted_row_is_put_where_the_model_puts_it(images, images_file, open_page):
    page = open_page(images_file)
    _, new = smooth_images(4, SIDE, seed=9)
    new[3, ::3] = np.nan
    for y in new:
        page.get_by_role("button", name="Paste a row").click()
        text = ",".join("" if np.isnan(value) else f"{value:.6f}" for value in y)
        page.get_by_label("Row", exact=True).fill(text)
        page.get_by_role("button", name="Find its place").click()
        settle(page)
        found = np.nansum((images.inverse_transform([probe(page)])[0] - y) ** 2)
        assert found <= 1.05 * -images.score_samples([y])[0] + 1e-4


def test_a_bad_row_is_refused_with_words(images_file, open_page):
    page = open_page(images_file)
    page.get_by_role("button", name="Paste a row").click()
    page.get_by_label("Row", exact=True).fill("1, 2, three")
    page.get_by_role("button", name="Find its place").click()
    assert "144 values were expected, 3 came" in page.get_by_role("alert").last.inner_text()


def test_filters_hide_points(images_file, open_page):
    page = open_page(images_file)
    page.mouse.move(5, 5)
    settle(page)
    before = map_pixels(page)
    page.locator(".tf-category", has_text="left").click()
    settle(page)
    assert "100 of 300 rows shown" in page.locator(".twofold-explorer").inner_text()
    after = map_pixels(page)
    width = before.shape[1]
    right = slice(int(0.72 * width), int(0.95 * width))
    # Most of what was drawn on the right is gone.
    assert coloured(after[:, right]) < 0.4 * coloured(before[:, right])
    assert coloured(before[:, right]) > 200
    page.locator(".tf-category", has_text="left").click()
    settle(page)
    assert coloured(map_pixels(page)[:, right]) > 0.9 * coloured(before[:, right])


def map_pixels(page):
    import io

    from matplotlib.image import imread

    shot = page.locator(".tf-map").screenshot()
    return 255 * imread(io.BytesIO(shot))[..., :3]


def coloured(pixels):
    """Count the pixels that are not grey: points are, background and contours are not."""
    return int((np.ptp(pixels, axis=2) > 50).sum())


def test_sliders_for_further_dimensions(open_page, tmp_path):
    X, Y = smooth_images(400, SIDE, q=3)
    model = upgrade(X, Y, **OPTIONS)
    page = open_page(explorer.write(model, tmp_path / "a.html", image_shape=(SIDE, SIDE)))
    drag(page, (0.5, 0.5), (0.51, 0.5))
    page.get_by_label("Dimension 3").fill("20")
    low, first = probe(page), picture(page)
    page.get_by_label("Dimension 3").fill("180")
    high, second = probe(page), picture(page)
    np.testing.assert_allclose(low[:2], high[:2], rtol=1e-4)
    assert high[2] - low[2] > 0.7 * np.ptp(X[:, 2])
    assert second.sum() > 1.2 * first.sum()
    assert np.abs(second - expected_picture(model, high)).max() <= 2


def test_arrow_keys_move_the_probe(images_file, open_page):
    page = open_page(images_file)
    drag(page, (0.5, 0.5), (0.51, 0.5))
    start = probe(page)
    host = page.get_by_role("application")
    host.focus()
    host.press("ArrowRight")
    right = probe(page)
    assert right[0] > start[0]
    assert right[1] == pytest.approx(start[1], abs=1e-4)
    host.press("Shift+ArrowRight")
    assert probe(page)[0] - right[0] > 1.5 * (right[0] - start[0])
    host.press("ArrowUp")
    assert probe(page)[1] > right[1]


def test_a_link_opens_the_same_place(images_file, open_page):
    page = open_page(images_file, fragment="#probe=3.5,2.5")
    np.testing.assert_allclose(probe(page), [3.5, 2.5])


# ---- looks ----------------------------------------------------------------------------------


def test_text_of_any_kind_stays_text(images, open_page, tmp_path):
    path = explorer.write(
        images,
        tmp_path / "a.html",
        title=NASTY,
        names=[NASTY] * 300,
        labels={NASTY: [NASTY, "b", "c"] * 100},
    )
    page = open_page(path)
    assert page.title() == NASTY
    assert page.get_by_role("heading", level=1).inner_text() == NASTY
    page.get_by_role("combobox", name="Search rows").fill("</script")
    assert NASTY in page.get_by_role("option").first.inner_text()


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_a_phone_has_no_horizontal_scroll(theme, images_file, open_page):
    page = open_page(images_file, width=375, height=720, color_scheme=theme)
    wide = "() => document.scrollingElement.scrollWidth"
    assert page.evaluate(wide) <= 375
    beyond = page.evaluate(
        """() => [...document.querySelectorAll("button, input, select, h1, canvas")]
          .filter((e) => e.offsetParent && e.getBoundingClientRect().right > 376)
          .map((e) => e.outerHTML.slice(0, 100))"""
    )
    assert not beyond


@pytest.mark.parametrize("width", [375, 1200])
def test_everything_that_can_be_used_has_a_name(width, images_file, open_page):
    page = open_page(images_file, width=width)
    nameless = page.evaluate(
        """() => {
          const textOf = (id) => document.getElementById(id)?.textContent ?? "";
          const nameOf = (e) => [
            e.getAttribute("aria-label"), e.getAttribute("title"), e.textContent,
            ...(e.getAttribute("aria-labelledby") ?? "").split(" ").map(textOf),
            ...[...(e.labels ?? [])].map((label) => label.textContent),
          ].some((text) => text?.trim());
          const usable = "button, input, select, textarea, a, dialog, [role=application]";
          return [...document.querySelectorAll(usable)]
            .filter((e) => !e.closest("[hidden]") && !nameOf(e))
            .map((e) => e.outerHTML.slice(0, 120));
        }"""
    )
    assert not nameless
    assert page.locator("button").count() > 5
    assert page.evaluate("() => document.documentElement.lang") == "en"


@pytest.mark.parametrize("view", ["bars", "curve", "table"])
def test_other_views_are_drawn(view, open_page, tmp_path):
    X, Y = smooth_images(100, 4)
    page = open_page(explorer.write(upgrade(X, Y, **OPTIONS), tmp_path / "a.html", view=view))
    row = page.locator(".tf-row-section")
    drag(page, (0.35, 0.5), (0.36, 0.5))
    settle(page)
    first = row.screenshot()
    drag(page, (0.65, 0.5), (0.66, 0.5))
    settle(page)
    assert row.screenshot() != first


@pytest.mark.slow
def test_a_step_of_a_drag_takes_less_than_a_frame(open_page, tmp_path):
    model = large_model()
    path = explorer.write(model, tmp_path / "a.html", image_shape=(28, 28))
    assert path.stat().st_size <= 20e6
    page = open_page(path)
    steps = page.evaluate(
        """(X) => X.map((x) => {
          const start = performance.now();
          twofold.regression.at(x);
          twofold.regression.density(x);
          return performance.now() - start;
        })""",
        places(model, 100).tolist(),
    )
    assert np.median(steps) < 16


# ---- the widget -----------------------------------------------------------------------------


def test_the_widget_talks_to_python(images, browser):
    pytest.importorskip("anywidget")
    widget = explorer.show(images)
    start = {"header": widget.header, "probe": [3.0, 2.0], "selection": [], "picked": -1}
    context = browser.new_context(viewport={"width": 900, "height": 700})
    page = context.new_page()
    problems = []
    page.on("pageerror", lambda error: problems.append(str(error)))
    page.goto("about:blank")
    page.set_content(
        f"<style>{static_text('style.css')}</style><div id=cell style='height: 640px'></div>"
    )
    page.evaluate(
        """async ([source, start, bytes]) => {
          const url = URL.createObjectURL(new Blob([source], { type: "text/javascript" }));
          const { default: widget } = await import(url);
          const data = new DataView(Uint8Array.from(bytes).buffer);
          const state = { ...start, generated: [], data };
          const listeners = {};
          window.fake = {
            saved: 0,
            get: (name) => state[name],
            set(name, value) {
              state[name] = value;
              (listeners[`change:${name}`] ?? []).forEach((act) => act());
            },
            on: (event, act) => (listeners[event] ??= []).push(act),
            off: (event, act) => { listeners[event] = listeners[event].filter((f) => f !== act); },
            save_changes() { this.saved += 1; },
          };
          window.stop = widget.render({ model: fake, el: document.getElementById("cell") });
        }""",
        [widget._esm, start, list(widget.data)],
    )
    page.wait_for_function("() => fake.saved > 0 && fake.get('generated').length")
    settle(page)
    np.testing.assert_allclose(page.evaluate("() => fake.get('probe')"), [3, 2])
    found = np.array(page.evaluate("() => fake.get('generated')"))
    assert np.abs(found - images.inverse_transform([[3.0, 2.0]])[0]).max() < 1e-3
    page.evaluate("() => fake.set('probe', [2.5, 1.5])")
    settle(page)
    found = np.array(page.evaluate("() => fake.get('generated')"))
    assert np.abs(found - images.inverse_transform([[2.5, 1.5]])[0]).max() < 1e-3
    page.evaluate("() => fake.set('selection', [4, 5])")
    settle(page)
    assert "2 rows" in page.locator(".tf-panel").inner_text()
    drag(page, (0.4, 0.4), (0.45, 0.5))
    settle(page)
    moved = page.evaluate("() => fake.get('probe')")
    assert np.abs(np.array(moved) - [2.5, 1.5]).max() > 0.1
    page.evaluate("() => stop()")
    assert page.locator(".twofold-explorer").count() == 0
    context.close()
    assert not problems
