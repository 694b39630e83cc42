"""Large pages of the explorer: how long they take to write and to open, and how large they are.

    python -m benchmarks.pages [name ...]

A page counts as open when the browser (chromium, without a graphics card) has drawn the map, and as
answering when the row under another place has been drawn. The maps are those of principal axes, not
trained: a page does not care. Seconds are those of the clock.
"""

from __future__ import annotations

import shutil
import sys
import tempfile
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table

from benchmarks.mixed import large_tables
from twofold import UKR, Mixed, Scaled, explorer

ARGUMENTS = ["--no-sandbox", "--use-angle=swiftshader", "--enable-unsafe-swiftshader"]
DRAWN = """() => new Promise((done) => {
  requestAnimationFrame(() => requestAnimationFrame(() => done(true)));
})"""


def model_inside() -> UKR:
    """Return a model that is fitted quickly."""
    return UKR(init="pca", max_iter=0, random_state=0, verbose=False)


def numbers() -> Any:
    """Return a model of 200,000 rows and 30 columns of numbers."""
    return Scaled(model_inside()).fit(large_tables()[1])


def mixed() -> Any:
    """Return a model of 200,000 rows and 30 columns of all kinds."""
    return Mixed(model_inside()).fit(large_tables()[0])


def wide() -> Any:
    """Return a model of 20,000 rows and 784 columns."""
    random = np.random.default_rng(0)
    Y = random.random((20_000, 3)) @ random.normal(size=(3, 784))
    return model_inside().fit((Y + 0.1 * random.normal(size=Y.shape)).astype(np.float32))


PAGES: dict[str, Callable[[], Any]] = {
    "200,000 x 30 numbers": numbers,
    "200,000 x 30 mixed": mixed,
    "20,000 x 784 numbers": wide,
}


def measured(make: Callable[[], Any], browser: Any, folder: Path) -> dict[str, float]:
    """Return megabytes and seconds of a page."""
    model, path = make(), folder / "page.html"
    began = time.perf_counter()
    explorer.write(model, path)
    found = {"MB": path.stat().st_size / 1e6, "written": time.perf_counter() - began}
    page = browser.new_page(viewport={"width": 1200, "height": 800})
    began = time.perf_counter()
    page.goto(path.as_uri())
    page.evaluate("() => window.twofold.ready")
    page.evaluate(DRAWN)
    found["open"] = time.perf_counter() - began
    began = time.perf_counter()
    page.mouse.click(500, 400)
    page.evaluate(DRAWN)
    found["answers"] = time.perf_counter() - began
    page.close()
    return found


def run(names: list[str]) -> None:
    """Print a line for each page."""
    from playwright.sync_api import sync_playwright

    shown = Table("page", "MB", "s to write", "s to open", "s to answer a click")
    with sync_playwright() as driver, tempfile.TemporaryDirectory() as folder:
        browser = driver.chromium.launch(executable_path=shutil.which("chromium"), args=ARGUMENTS)
        for name in names:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                found = measured(PAGES[name], browser, Path(folder))
            shown.add_row(name, *(f"{value:.1f}" for value in found.values()))
    Console().print(shown)


if __name__ == "__main__":
    run(sys.argv[1:] or list(PAGES))
