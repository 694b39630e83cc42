"""Models to look at, and what is done with a page in a real browser."""

from __future__ import annotations

import os
import shutil
from urllib.parse import parse_qs

import numpy as np
import pytest

from twofold import upgrade

OPTIONS = {"n_jobs": 1, "verbose": False}
SIDE = 12
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


def give_up(reason):
    if os.environ.get("TWOFOLD_REQUIRE_BROWSER") == "1":
        pytest.fail(f"{reason}, and TWOFOLD_REQUIRE_BROWSER is 1")
    pytest.skip(reason)


def find_chromium():
    given = os.environ.get("TWOFOLD_CHROMIUM")
    return given or next(
        filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None
    )


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


def paste(page, text):
    """Paste a row, and return what the page says about it."""
    page.get_by_role("button", name="Paste a row").click()
    page.get_by_label("Row", exact=True).fill(text)
    page.get_by_role("button", name="Find its place").click()
    settle(page)
    return page.locator(".tf-notice").inner_text()


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


def map_pixels(page):
    import io

    from matplotlib.image import imread

    shot = page.locator(".tf-map").screenshot()
    return 255 * imread(io.BytesIO(shot))[..., :3]


def coloured(pixels):
    """Count the pixels that are not grey: points are, background and contours are not."""
    return int((np.ptp(pixels, axis=2) > 50).sum())
