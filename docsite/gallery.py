"""Run every script of the gallery and write its page, and six of them as notebooks.

    python -m docsite.gallery

A script is a docstring (title, a blank line, what it shows) and less than 40 lines of code. It runs
in a process of its own; pages and pictures go to ``docs/gallery``, which git ignores. What was made
by the same script, the same library and the same tools is not made again.
"""

from __future__ import annotations

import ast
import hashlib
import os
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import jupytext

ROOT = Path(__file__).parent.parent
SCRIPTS = ROOT / "examples" / "gallery"
TARGET = ROOT / "docs" / "gallery"
NOTEBOOKS = (
    *("digits_map", "walk_between_digits", "fill_a_table"),
    *("upgrade_tsne", "which_picture", "find_odd_rows"),
)


@dataclass(frozen=True)
class Script:
    """A script with what its first lines say."""

    path: Path

    @property
    def name(self) -> str:
        """How its files are called."""
        return self.path.stem

    @property
    def section(self) -> str:
        """The folder it is in, in words."""
        return self.path.parent.name.split("_", 1)[1].replace("_", " ").capitalize()

    @property
    def text(self) -> str:
        """The whole file."""
        return self.path.read_text()

    @property
    def docstring(self) -> str:
        """What it says about itself."""
        return ast.get_docstring(ast.parse(self.text)) or ""

    @property
    def title(self) -> str:
        """The first line of that."""
        return self.docstring.splitlines()[0].rstrip(".")

    @property
    def code(self) -> str:
        """Everything after the docstring."""
        first = ast.parse(self.text).body[0]
        return "\n".join(self.text.splitlines()[first.end_lineno :]).strip() + "\n"


def all_scripts() -> list[Script]:
    """Return the scripts, section by section."""
    return [Script(path) for path in sorted(SCRIPTS.glob("*/*.py"))]


def library_hash() -> str:
    """Return a hash of everything that a picture depends on but its script."""
    tools = [Path(__file__), Path(__file__).with_name("run_script.py")]
    files = [*sorted((ROOT / "src").rglob("*.py")), *tools]
    return hashlib.sha256(b"".join(path.read_bytes() for path in files)).hexdigest()


def run(script: Script, library: str) -> float:
    """Run a script and write its page; return the seconds it took, 0 if nothing had changed."""
    folder = TARGET / script.path.parent.name
    folder.mkdir(parents=True, exist_ok=True)
    stamp = folder / f".{script.name}.sha256"
    key = hashlib.sha256((library + script.text).encode()).hexdigest()
    if stamp.exists() and stamp.read_text() == key:
        return 0.0
    began = time.perf_counter()
    environment = {
        **os.environ,
        **dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"), "1"),
        "PYTHONPATH": os.pathsep.join([str(ROOT), str(ROOT / "src")]),
    }
    command = [sys.executable, "-m", "docsite.run_script", str(script.path), str(folder)]
    with tempfile.TemporaryDirectory() as anywhere:
        done = subprocess.run(
            command, cwd=anywhere, env=environment, capture_output=True, text=True, timeout=300
        )
    if done.returncode:
        raise RuntimeError(f"{script.path} failed:\n{done.stdout}{done.stderr}")
    write_page(script, folder, done.stdout)
    stamp.write_text(key)
    return time.perf_counter() - began


def write_page(script: Script, folder: Path, printed: str) -> None:
    """Write pictures, words, code and output of a script."""
    pictures = sorted(folder.glob(f"{script.name}_[0-9]*.png"))
    words = "\n".join(script.docstring.splitlines()[1:]).strip()
    parts = [f"# {script.title}", words]
    parts += [f"![{script.title}]({picture.name})" for picture in pictures]
    parts += [f"```python\n{script.code.replace('# %%' + chr(10), '')}```"]
    if printed.strip():
        parts += ["It prints", f"```text\n{printed.strip()}\n```"]
    (folder / f"{script.name}.py").write_text(script.text)
    downloads = f"[Download the script]({script.name}.py)"
    if script.name in NOTEBOOKS:
        jupytext.write(as_notebook(script), folder / f"{script.name}.ipynb")
        downloads += f" · [Download the notebook]({script.name}.ipynb)"
    parts += [f"{downloads} · [All examples](../index.md)"]
    (folder / f"{script.name}.md").write_text("\n\n".join(parts) + "\n")


def as_notebook(script: Script) -> object:
    """Return a script as a notebook: its docstring as text, its parts (``# %%``) as cells."""
    words = "\n".join(script.docstring.splitlines()[1:]).strip()
    lines = f"# {script.title}\n\n{words}".splitlines()
    heading = "\n".join(f"# {line}".rstrip() for line in lines)
    code = script.code if script.code.startswith("# %%") else "# %%\n" + script.code
    return jupytext.reads(f"# %% [markdown]\n{heading}\n\n{code}", fmt="py:percent")


def write_index(scripts: list[Script]) -> None:
    """Write the page of thumbnails."""
    folders = {script.name: script.path.parent.name for script in scripts}
    books = ", ".join(f"[{name}]({folders[name]}/{name}.ipynb)" for name in NOTEBOOKS)
    lines = ["# Gallery", "", "Each picture is one short script. Click it to see the code."]
    lines += [f"Six are notebooks as well: {books}."]
    section = ""
    for script in scripts:
        if script.section != section:
            lines += ["</div>"] * bool(section)
            section = script.section
            lines += ["", f"## {section}", "", '<div class="gallery" markdown="0">']
        page = f"{script.path.parent.name}/{script.name}"
        lines += [
            f'<a href="{page}.html"><img src="{page}_thumb.png" alt="" loading="lazy">'
            f"<span>{script.title}</span></a>"
        ]
    (TARGET / "index.md").write_text("\n".join([*lines, "</div>", ""]))


def main() -> None:
    """Run what has changed, as many at a time as there are cores."""
    scripts, library = all_scripts(), library_hash()
    began = time.perf_counter()
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        seconds = list(pool.map(lambda script: run(script, library), scripts))
    write_index(scripts)
    for script, spent in zip(scripts, seconds, strict=True):
        print(f"{spent:6.1f} s  {script.name}")
    computed = os.times().children_user + os.times().children_system
    waited = time.perf_counter() - began
    print(f"{waited:6.1f} s for {len(scripts)} scripts, {computed:.0f} s of computing")


if __name__ == "__main__":
    main()
