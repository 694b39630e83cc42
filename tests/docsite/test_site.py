"""The site as it is built: reference, gallery, notebooks, reading ease, whole pages."""

from __future__ import annotations

import importlib
import inspect
import os
import re
import shutil
import statistics
import subprocess
import sys
from pathlib import Path

import pytest
from explorer.browsing import ARGUMENTS, find_chromium, give_up

import twofold

ROOT = Path(__file__).parent.parent.parent
DOCS = ROOT / "docs"
PUBLIC = [
    *("twofold", *(f"twofold.{name}" for name in twofold._MODULES)),
    *("twofold.ukr", "twofold.unn", "twofold.psom", "twofold.kernel_pca", "twofold.preimages"),
    *("twofold.classification", "twofold.contract", "twofold.filling", "twofold.mixed"),
    "twofold.odd_rows",
]
# Rooms of the library, described by ARCHITECTURE.md and for those who change it.
ROOMS = {"twofold.cli", "twofold.engine", "twofold.noise"}
ENTRY = re.compile(r"^::: (\S+)", re.MULTILINE)
GROUPS = re.compile(r"parameters of `(\w+)` \|\n\|---\|---\|\n((?:\| \w+ \|.*\n)+)")
API_TEXT = "\n".join(page.read_text() for page in sorted((DOCS / "api").glob("*.md")))


def resolve(path: str) -> object:
    home, name = path.rsplit(".", 1)
    return getattr(importlib.import_module(home), name)


def public_things() -> dict[str, object]:
    found = {}
    for home in PUBLIC:
        module = importlib.import_module(home)
        for name in module.__all__:
            thing = getattr(module, name)
            if not inspect.ismodule(thing):
                found[f"{home}.{name}"] = thing
    return found


THINGS = public_things()
DOCUMENTED = [resolve(path) for path in ENTRY.findall(API_TEXT)]


def is_documented(thing: object) -> bool:
    return any(thing is other for other in DOCUMENTED)


def test_every_package_with_public_names_is_looked_at():
    source = ROOT / "src"
    homes = {
        ".".join(path.relative_to(source).with_suffix("").parts).removesuffix(".__init__")
        for path in source.rglob("*.py")
        if re.search(r"^__all__ = ", path.read_text(), re.MULTILINE)
    }
    assert homes == set(PUBLIC) | ROOMS


def test_the_reference_has_every_public_name():
    assert [name for name, thing in THINGS.items() if not is_documented(thing)] == []


def test_every_entry_of_the_reference_has_an_example():
    described = [it for it in DOCUMENTED if inspect.isclass(it) or inspect.isroutine(it)]
    assert len(described) > 150
    lacking = [it.__name__ for it in described if "Examples\n" not in (it.__doc__ or "")]
    assert lacking == []
    assert [it.__name__ for it in described if "+SKIP" in it.__doc__] == []


def test_constants_are_in_an_example_of_their_module():
    for name, thing in THINGS.items():
        if not (inspect.isclass(thing) or inspect.isroutine(thing)):
            home, short = name.rsplit(".", 1)
            examples = inspect.getdoc(importlib.import_module(home))
            assert re.search(rf"^>>> .*\b{short}\b", examples, re.MULTILINE), name


def test_parameters_are_grouped_by_need():
    grouped = {
        name: re.findall(r"`(\w+)`", "".join(line.split("|")[2] for line in rows.splitlines()))
        for name, rows in GROUPS.findall(API_TEXT)
    }
    assert {"UKR", "UNN", "PSOM", "KernelPCA", "DiffusionMap", "ManifoldImputer"} <= set(grouped)
    for name, parameters in grouped.items():
        thing = next(thing for path, thing in THINGS.items() if path.endswith(f".{name}"))
        assert sorted(parameters) == sorted(inspect.signature(thing).parameters), name


def test_every_page_has_a_place_in_the_navigation():
    navigation = (ROOT / "mkdocs.yml").read_text().split("\nnav:")[1]
    pages = {path.relative_to(DOCS).as_posix() for path in DOCS.rglob("*.md")}
    written = {page for page in pages if not page.startswith("gallery/")}
    assert {page for page in written if page not in navigation} == set()


def test_the_front_page_names_the_version():
    assert f"version {twofold.__version__};" in (DOCS / "index.md").read_text()


def test_scripts_of_the_gallery_are_short():
    scripts = sorted((ROOT / "examples" / "gallery").glob("*/*.py"))
    assert len(scripts) >= 20
    lengths = {path.name: len(path.read_text().splitlines()) for path in scripts}
    assert {name: length for name, length in lengths.items() if length >= 40} == {}


def test_pages_are_easy_to_read():
    readability = pytest.importorskip("docsite.readability", reason="needs the extra [docs]")
    pages = readability.pages()
    grades = {name: readability.grade(path.read_text()) for name, path in pages.items()}
    hard = {name: g for name, g in grades.items() if g > 12 and not name.startswith("concepts/")}
    assert hard == {}
    assert statistics.median(grades.values()) < 9


def test_words_count_and_code_does_not():
    readability = pytest.importorskip("docsite.readability", reason="needs the extra [docs]")
    easy = "The cat sat on the mat. The dog ran."
    hard = "Heterogeneous multidimensional characterisations necessitate interpretability."
    assert readability.grade(easy) < 3 < 15 < readability.grade(hard)
    noise = f"# {hard}\n\n```python\n{hard}\n```\n\n| {hard} |\n|---|\n\n{easy}"
    assert readability.grade(noise) == readability.grade(easy)


def test_notebooks_have_the_code_of_their_scripts():
    gallery = pytest.importorskip("docsite.gallery", reason="needs the extra [docs]")
    scripts = {script.name: script for script in gallery.all_scripts()}
    assert len(gallery.NOTEBOOKS) == 6
    for name in gallery.NOTEBOOKS:
        cells = gallery.as_notebook(scripts[name])["cells"]
        code = [cell["source"] for cell in cells if cell["cell_type"] == "code"]
        assert len(code) > 1
        assert "\n".join(code).split() == scripts[name].code.replace("# %%\n", "").split()


@pytest.mark.slow  # every script of the gallery runs; one test, as workers share the gallery
@pytest.mark.filterwarnings("default")  # those of the kernel that runs notebooks are not ours
def test_the_site_is_built_whole(tmp_path):
    pytest.importorskip("mkdocs", reason="needs the extra [docs]")
    build(tmp_path)
    check_pages(tmp_path)
    check_reference(tmp_path)
    check_gallery(tmp_path)
    check_notebooks(tmp_path)


def build(site: Path) -> None:
    """Do what `make docs` does."""
    environment = {**os.environ, "NO_MKDOCS_2_WARNING": "1"}
    for command in (["docsite.gallery"], ["mkdocs", "build", "--strict", "-q", "-d", str(site)]):
        done = subprocess.run(
            [sys.executable, "-m", *command],
            cwd=ROOT,
            env=environment,
            capture_output=True,
            text=True,
        )
        assert done.returncode == 0, done.stdout + done.stderr


def check_pages(site: Path) -> None:
    pages = list(site.rglob("*.html"))
    assert len(pages) > 80
    for page in pages:
        text = page.read_text()
        loaded = re.findall(r"<(?:script|link|img|iframe)\b[^>]*(?:https?:)?//[^>]*>", text)
        assert [tag for tag in loaded if 'rel="canonical"' not in tag] == [], page.name
        assert "arithmatex" not in text, f"{page.name} has a formula that was not drawn"
    assert (site / "search" / "search_index.js").exists()


def check_reference(site: Path) -> None:
    """A name may also be that of a module, which the reference would show instead."""
    for page in sorted((DOCS / "api").glob("*.md")):
        entries = [resolve(path) for path in ENTRY.findall(page.read_text())]
        described = [it for it in entries if inspect.isclass(it) or inspect.isroutine(it)]
        text = (site / "api" / f"{page.stem}.html").read_text()
        assert text.count('doc-section-title">Examples:') == len(described), page.name


def check_gallery(site: Path) -> None:
    from docsite.gallery import all_scripts

    index = (site / "gallery" / "index.html").read_text()
    for script in all_scripts():
        folder = site / "gallery" / script.path.parent.name
        assert (folder / f"{script.name}.html").exists()
        assert (folder / f"{script.name}_thumb.png").stat().st_size > 2000
        assert f"{script.path.parent.name}/{script.name}.html" in index


def check_notebooks(site: Path) -> None:
    import nbclient
    import nbformat

    books = sorted((site / "gallery").rglob("*.ipynb"))
    assert len(books) == 6
    for book in books:
        notebook = nbformat.read(book, as_version=4)
        nbclient.NotebookClient(notebook, timeout=300, kernel_name="python3").execute()
        outputs = [kind for cell in notebook.cells for kind in cell.get("outputs", [])]
        assert any("image/png" in output.get("data", {}) for output in outputs), book.name


@pytest.mark.slow
def test_pages_opened_from_disk_find_words_and_ask_nobody(tmp_path):
    pytest.importorskip("mkdocs", reason="needs the extra [docs]")
    playwright = pytest.importorskip("playwright.sync_api")
    chromium = find_chromium() or give_up("no Chromium in the path; TWOFOLD_CHROMIUM may name one")
    site = small_site(tmp_path)
    with playwright.sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=chromium, args=ARGUMENTS)
        page = browser.new_page()
        asked = []
        page.on("request", lambda request: asked.append(request.url))
        page.goto((site / "concepts" / "ukr.html").as_uri())
        assert page.locator("math").count() >= 3
        page.focus("input.md-search__input")
        ready = page.locator(".md-search-result__meta", has_text="Type to start")
        ready.wait_for(state="attached")
        page.keyboard.type("kernel")
        page.wait_for_selector(".md-search-result__item", state="attached")
        assert page.locator(".md-search-result__item").count() >= 3
        browser.close()
    assert [url for url in asked if not url.startswith(("file:", "data:", "blob:"))] == []


def small_site(folder: Path) -> Path:
    """Build the concept pages alone, with the settings of the whole site."""
    for name in ("concepts", "images", "assets"):
        shutil.copytree(DOCS / name, folder / "docs" / name)
    settings = (ROOT / "mkdocs.yml").read_text().split("\nnav:")[0]
    settings = settings.replace("hooks: [", f"hooks: [{ROOT}/")
    (folder / "mkdocs.yml").write_text(settings)
    done = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "-q", "--no-strict", "-d", str(folder / "site")],
        cwd=folder,
        env={**os.environ, "NO_MKDOCS_2_WARNING": "1"},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return folder / "site"
