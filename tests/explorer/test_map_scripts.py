"""The scripts of the map that need no browser, run in node, and the library they come with."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from twofold.explorer.page import explorer_widget, library_text, page_text
from twofold.explorer.payload import Payload

ROOT = Path(__file__).resolve().parents[2]
STATIC = ROOT / "src" / "twofold" / "explorer" / "static"
ASSERTIONS = Path(__file__).with_name("map_scripts.test.mjs")
NODE = shutil.which("node")


@pytest.mark.slow
@pytest.mark.skipif(
    NODE is None, reason="node is not installed: the scripts of the map were not run"
)
def test_map_scripts() -> None:
    assert NODE is not None
    found = subprocess.run(
        [NODE, "--test", str(ASSERTIONS)],
        env={**os.environ, "TWOFOLD_STATIC": str(STATIC)},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert found.returncode == 0, found.stdout + found.stderr


def test_the_library_offers_what_the_points_are_drawn_with() -> None:
    used = set(re.findall(r"TwofoldPoints\.(\w+)", (STATIC / "point_layer.js").read_text()))
    assert used
    # A bundle keeps the names of what it offers, each with a function that gives it.
    library = (STATIC / "vendor" / "twgl.js").read_text()
    assert used == set(re.findall(r"\b(\w+):\(\)=>\w+[,}]", library)) - {"get"}


def test_pages_carry_the_library_below_its_licence_and_before_the_scripts() -> None:
    page = page_text(Payload({"title": "a"}, b""))
    licence = (STATIC / "vendor" / "twgl.LICENSE.txt").read_text().strip()
    assert licence.startswith("Copyright 2019 Gregg Tavares")
    assert "*/" not in licence
    assert page.index(licence) < page.index("var TwofoldPoints=") < page.index("class PointLayer")
    assert page.count("var TwofoldPoints=") == 1


def test_the_widget_carries_the_library_below_its_licence_and_before_the_scripts() -> None:
    pytest.importorskip("anywidget")
    module = explorer_widget()._esm
    assert module.startswith(library_text())
    assert module.index("var TwofoldPoints=") < module.index("class PointLayer")
