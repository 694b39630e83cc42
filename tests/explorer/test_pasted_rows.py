"""Rows that are pasted, paths that play, and rows that a filter hides, in a real browser."""

from __future__ import annotations

import numpy as np
import pytest
from explorer.browsing import OPTIONS, drag, paste, probe, settle
from sklearn.datasets import load_wine

from twofold import UKR, Scaled, explorer


@pytest.fixture(scope="module")
def wine():
    return load_wine()


@pytest.fixture(scope="module")
def wine_model(wine):
    return Scaled(UKR(init="pca", max_iter=20, random_state=0, **OPTIONS)).fit(wine.data)


@pytest.fixture
def wine_page(wine, wine_model, open_page, tmp_path):
    labels = {"class": wine.target_names[wine.target]}
    return open_page(explorer.write(wine_model, tmp_path / "wine.html", labels=labels))


@pytest.mark.slow
def test_rows_of_a_scaled_model_are_put_where_transform_puts_them(wine, wine_model, wine_page):
    rng = np.random.default_rng(0)
    pairs = rng.integers(len(wine.data), size=(8, 2))
    rows = wine.data[pairs].mean(axis=1)
    rows[-2:, [0, 12]] = np.nan
    found = []
    for y in rows:
        said = paste(wine_page, ",".join(map(str, y)))
        off = wine_model.inverse_transform([probe(wine_page)])[0] - y
        found.append(np.sqrt(np.nansum((off / wine_model.spread_) ** 2)))
        assert "in units of each feature's spread" in said
        assert float(said.split("error ")[1].split(",")[0]) == pytest.approx(found[-1], rel=0.02)
    best = np.sqrt(-wine_model.score_samples(rows))
    assert (found <= 1.05 * best).all()


@pytest.mark.slow
def test_a_line_of_the_table_is_read_and_what_is_skipped_is_said(wine, wine_model, wine_page):
    y = wine.data[7]
    line = ";".join(["wine 8", *(str(value).replace(".", ",") for value in y), "class_0"])
    assert 'Skipped: "wine 8", "class_0".' in paste(wine_page, line)
    assert wine_model.in_domain([probe(wine_page)]).all()
    off = (wine_model.inverse_transform([probe(wine_page)])[0] - y) / wine_model.spread_
    assert np.square(off).sum() <= 1.05 * -wine_model.score_samples([y])[0]


@pytest.mark.slow
def test_what_is_near_follows_a_path_that_plays(images_file, open_page):
    page = open_page(images_file)
    drag(page, (0.35, 0.5), (0.36, 0.5))
    page.get_by_role("button", name="Set A").click()
    drag(page, (0.65, 0.5), (0.66, 0.5))
    page.get_by_role("button", name="Set B").click()
    settle(page)
    play = page.locator(".tf-path").get_by_role("button", name="Play")
    nearest, beside = page.evaluate(
        """async (play) => {
          const nearest = new Set();
          const beside = new Set();
          play.click();
          while (play.textContent.includes("Pause")) {
            await new Promise((resolve) => requestAnimationFrame(resolve));
            nearest.add(document.querySelector(".tf-neighbor").dataset.row);
            beside.add(document.querySelectorAll(".tf-figure")[1].innerText);
          }
          return [nearest.size, beside.size];
        }""",
        play.element_handle(),
    )
    assert nearest > 3
    assert beside > 3


@pytest.mark.slow
def test_a_row_that_the_filter_hides_is_said_to_be_hidden(images, images_file, open_page):
    page = open_page(images_file)
    row = int(np.flatnonzero(images.notes_.labels["third"] == "left")[0])
    page.locator(".tf-category", has_text="right").click()
    page.get_by_role("combobox", name="Search rows").fill(f"blob {row:03d}")
    page.get_by_role("option", name=f"blob {row:03d}").click()
    settle(page)
    words = page.get_by_text(f"blob {row:03d} is hidden by the filter.")
    assert words.is_visible()
    page.locator(".tf-category", has_text="right").click()
    settle(page)
    assert words.count() == 0


def test_a_pasted_row_is_told_how_usual_it_is_and_why(wine, wine_model, wine_page):
    usual = paste(wine_page, ",".join(map(str, wine.data[7])))
    share = float(usual.split(" % of the model's rows lie as far")[0].split()[-1])
    assert 1 <= share <= 100
    odd = wine.data[7].copy()
    odd[4] *= 3  # magnesium
    said = paste(wine_page, ",".join(map(str, odd)))
    assert "Farther from the map than any row" in said or "% of the model's rows" in said
    assert "What stands out: feature 5 " in said
    assert " above " in said.split("feature 5")[1].split(";")[0]


def test_the_table_says_how_far_rows_lie_from_the_map(wine, wine_model, open_page, tmp_path):
    path = explorer.write(wine_model, tmp_path / "wine.html", view="table")
    page = open_page(path)
    settle(page)
    texts = page.locator(".tf-value-cell .tf-cell-range").all_inner_texts()
    found = [float(text.replace(",", "").lstrip("± ")) for text in texts]
    np.testing.assert_allclose(found, wine_model.left_open().features, rtol=0.1)
