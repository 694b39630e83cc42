"""Every Python block, command and docstring example of the docs runs, in order, page by page."""

from __future__ import annotations

import doctest
import importlib
import os
import re
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
DOCS = ROOT / "docs"
ALL_PAGES = [
    page for page in sorted(DOCS.rglob("*.md")) if page.relative_to(DOCS).parts[0] != "gallery"
]
BLOCK = re.compile(r"^( *)```python[^\n]*\n(.*?)^\1```", re.DOTALL | re.MULTILINE)
COMMANDS = re.compile(r"```sh\n(.*?)```", re.DOTALL)
PAGES = [page for page in ALL_PAGES if BLOCK.search(page.read_text())]
PAGES_OF_COMMANDS = [page for page in ALL_PAGES if COMMANDS.search(page.read_text())]
SOURCE = ROOT / "src"
MODULES = [
    ".".join(path.relative_to(SOURCE).with_suffix("").parts)
    for path in sorted(SOURCE.rglob("*.py"))
    if any(">>> " in line and "+SKIP" not in line for line in path.read_text().splitlines())
]

# Pages that run within about half a second stay in the default run; all others are slow.
SHORT = ("cluster", "explorer")
LONG_MODULES = tuple(
    f"twofold.{name}"
    for name in (
        *("classification.manifold_classifier", "scaled", "ukr.upgrade"),
        *("plots.comparison", "plots.diagnosis", "plots.features", "plots.generated", "plots.maps"),
    )
)


@pytest.fixture(autouse=True)
def closed_figures():
    """Close what a page or an example drew: many in one process are too many for matplotlib."""
    yield
    if "matplotlib.pyplot" in sys.modules:
        sys.modules["matplotlib.pyplot"].close("all")


def name_of(page: Path) -> str:
    return page.relative_to(DOCS).with_suffix("").as_posix()


@pytest.mark.parametrize(
    "page",
    [pytest.param(p, marks=[] if p.stem in SHORT else [pytest.mark.slow]) for p in PAGES],
    ids=name_of,
)
def test_page_runs(page: Path, capsys, tmp_path: Path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    namespace: dict[str, object] = {}
    for _, block in BLOCK.findall(page.read_text()):
        exec(compile(textwrap.dedent(block), str(page), "exec"), namespace)


@pytest.mark.slow  # a minute of fits; tests/cli runs each command on less
@pytest.mark.parametrize("page", PAGES_OF_COMMANDS, ids=name_of)
def test_commands_run(page: Path, tmp_path: Path):
    folder = Path(sys.executable).parent  # where `twofold` and `python` of these tests are
    environment = {**os.environ, "PATH": f"{folder}{os.pathsep}{os.environ['PATH']}"}
    for block in COMMANDS.findall(page.read_text()):
        done = subprocess.run(
            ["bash", "-euc", block], cwd=tmp_path, env=environment, capture_output=True, text=True
        )
        assert done.returncode == 0, f"{block}\n{done.stderr}"
    assert len(list(tmp_path.iterdir())) >= 3


@pytest.mark.parametrize(
    "name",
    [pytest.param(m, marks=[pytest.mark.slow] if m in LONG_MODULES else []) for m in MODULES],
)
def test_docstring_examples_run(name: str):
    results = doctest.testmod(importlib.import_module(name))
    assert results.attempted > 0
    assert results.failed == 0


def test_links_lead_somewhere():
    for page in [ROOT / "README.md", *ALL_PAGES, ROOT / "CONTRIBUTING.md"]:
        text = re.sub(r"```.*?```", "", page.read_text(), flags=re.DOTALL)
        for target in re.findall(r"\]\(([^)#]+?)(?:#[^)]*)?\)", text):
            # the gallery is made by `make docs`, whose build checks links to it
            if not target.startswith("http") and "gallery/" not in target:
                assert (page.parent / target).exists(), f"{page.name}: {target}"
