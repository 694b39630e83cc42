"""Every Python block and every command of the docs runs, in order, page by page."""

from __future__ import annotations

import doctest
import importlib
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PAGES = [page for page in sorted((ROOT / "docs").glob("*.md")) if "```python" in page.read_text()]
BLOCK = re.compile(r"```python\n(.*?)```", re.DOTALL)
COMMANDS = re.compile(r"```sh\n(.*?)```", re.DOTALL)
PAGES_OF_COMMANDS = [
    page for page in sorted((ROOT / "docs").glob("*.md")) if "```sh" in page.read_text()
]
SOURCE = ROOT / "src"
MODULES = [
    ".".join(path.relative_to(SOURCE).with_suffix("").parts)
    for path in sorted(SOURCE.rglob("*.py"))
    if any(">>> " in line and "+SKIP" not in line for line in path.read_text().splitlines())
]


# Pages and modules whose examples take seconds; those of single functions run all the same.
LONG = ("first_steps", "how_ukr_works", "plots", "psom", "recipes", "single_cells", "unn")
LONG_MODULES = tuple(
    f"twofold.{name}"
    for name in (
        *("classification.manifold_classifier", "scaled", "ukr.upgrade"),
        *("plots.comparison", "plots.diagnosis", "plots.features", "plots.generated", "plots.maps"),
    )
)


@pytest.mark.parametrize(
    "page",
    [pytest.param(p, marks=[pytest.mark.slow] if p.stem in LONG else []) for p in PAGES],
    ids=lambda page: page.stem,
)
def test_page_runs(page: Path, capsys, tmp_path: Path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    namespace: dict[str, object] = {}
    for block in BLOCK.findall(page.read_text()):
        exec(compile(block, str(page), "exec"), namespace)


@pytest.mark.slow  # a minute of fits; tests/cli runs each command on less
@pytest.mark.parametrize("page", PAGES_OF_COMMANDS, ids=lambda page: page.stem)
def test_commands_run(page: Path, tmp_path: Path):
    folder = Path(sys.executable).parent  # where `twofold` and `python` of these tests are
    environment = {**os.environ, "PATH": f"{folder}{os.pathsep}{os.environ['PATH']}"}
    for block in COMMANDS.findall(page.read_text()):
        done = subprocess.run(
            ["bash", "-euc", block], cwd=tmp_path, env=environment, capture_output=True, text=True
        )
        assert done.returncode == 0, f"{block}\n{done.stderr}"
    assert len(list(tmp_path.iterdir())) >= 5


@pytest.mark.parametrize(
    "name",
    [pytest.param(m, marks=[pytest.mark.slow] if m in LONG_MODULES else []) for m in MODULES],
)
def test_docstring_examples_run(name: str):
    results = doctest.testmod(importlib.import_module(name))
    assert results.attempted > 0
    assert results.failed == 0


def test_links_lead_somewhere():
    for page in [ROOT / "README.md", *(ROOT / "docs").glob("*.md"), ROOT / "CONTRIBUTING.md"]:
        for target in re.findall(r"\]\(([^)#]+?)(?:#[^)]*)?\)", page.read_text()):
            if not target.startswith("http"):
                assert (page.parent / target).exists(), f"{page.name}: {target}"
