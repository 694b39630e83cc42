"""The page and the widget in a real browser.

A Chromium is looked for in the environment variable TWOFOLD_CHROMIUM and in the path. Without one,
or without playwright, these tests are skipped; TWOFOLD_REQUIRE_BROWSER=1 makes that an error.
"""

from __future__ import annotations

import numpy as np
import pytest
from explorer.browsing import (
    ARGUMENTS,
    OPTIONS,
    SIDE,
    find_chromium,
    give_up,
    settle,
    smooth_images,
)

from twofold import explorer, upgrade


@pytest.fixture(scope="package")
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
