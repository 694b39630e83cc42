"""What a page answers, and what hands do with it, in a real browser."""

from __future__ import annotations

import re

import numpy as np
import pytest
from explorer.browsing import (
    OPTIONS,
    SIDE,
    coloured,
    drag,
    expected_picture,
    generated_at,
    map_pixels,
    on_map,
    picture,
    places,
    probe,
    settle,
    smooth_images,
)

from twofold import UKR, explorer, upgrade


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


@pytest.mark.slow
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


@pytest.mark.slow
def test_a_stand_in_is_as_near_as_it_says(images, open_page, tmp_path):
    whole = explorer.write(images, tmp_path / "a.html")
    data = re.search(r'id="twofold-data">(.*?)</script>', whole.read_text("utf-8"), re.DOTALL)
    limit = whole.stat().st_size - 0.9 * len(data.group(1))
    page = open_page(explorer.write(images, tmp_path / "b.html", max_mb=limit / 1e6))
    about = page.evaluate("() => window.twofold.atlas.header.regression")
    assert not about["exact"]
    X = places(images, 200)
    gaps = generated_at(page, X) - images.inverse_transform(X)
    spread = np.sqrt(images.data_.var(axis=0).sum())
    found = np.sqrt(np.square(gaps).sum(axis=1).mean()) / spread
    assert found == pytest.approx(about["difference"], rel=0.5)
    assert page.get_by_text("a stand-in of").count() >= 1


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


@pytest.mark.slow
def test_hovering_shows_too(images_file, open_page):
    page = open_page(images_file)
    page.mouse.move(*on_map(page, 0.35, 0.5))
    settle(page)
    first = picture(page)
    page.mouse.move(*on_map(page, 0.65, 0.5))
    settle(page)
    assert np.abs(first - picture(page)).max() > 60


@pytest.mark.slow
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
    assert pictures >= 2  # as many as the machine has time to draw
    assert np.abs(picture(page) - expected_picture(images, b)).max() <= 2
    page.get_by_label("Position on the path from A to B").fill("0")
    assert np.abs(picture(page) - expected_picture(images, a)).max() <= 2
    assert page.get_by_text("The whole path lies inside the data.").is_visible()


@pytest.mark.slow
def test_search_finds_a_row_by_name(images, images_file, open_page):
    page = open_page(images_file)
    page.get_by_role("combobox", name="Search rows").fill("blob 123")
    page.get_by_role("option", name="blob 123").click()
    np.testing.assert_allclose(probe(page), images.embedding_[123], rtol=1e-4)
    assert page.locator(".tf-panel").get_by_text("blob 123").count() >= 1


@pytest.mark.slow
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


@pytest.mark.slow
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


@pytest.mark.slow
def test_hidden_rows_are_not_offered_as_nearest(images, images_file, open_page):
    page = open_page(images_file, fragment="#probe=-2.5,2")
    offered = (
        "() => [...document.querySelectorAll('.tf-neighbor')].map((e) => Number(e.dataset.row))"
    )
    assert len(page.evaluate(offered)) == 6
    page.locator(".tf-category", has_text="right").click()
    settle(page)
    column = images.notes_.labels["third"]
    found = page.evaluate(offered)
    assert set(column[found]) == {"right"}
    distance = np.linalg.norm(images.embedding_ - [-2.5, 2], axis=1)
    distance[column != "right"] = np.inf
    assert found == np.argsort(distance)[:6].tolist()


@pytest.mark.slow
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


@pytest.mark.slow
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


@pytest.mark.slow
def test_a_link_opens_the_same_place(images_file, open_page):
    page = open_page(images_file, fragment="#probe=3.5,2.5")
    np.testing.assert_allclose(probe(page), [3.5, 2.5])
