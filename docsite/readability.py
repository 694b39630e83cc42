"""School grade a reader needs for each page of the docs, by Flesch and Kincaid.

    python -m docsite.readability

Only running text counts: no code, tables, formulas or headings. A name in code is one short word.
"""

from __future__ import annotations

import re
from pathlib import Path

import textstat

DOCS = Path(__file__).parent.parent / "docs"
NOT_SENTENCES = ("|", "#", "![", "!!!", "===")
# Generated from docstrings and scripts, or tables of figures with notes.
NOT_PROSE = ("api/", "gallery/", "experiments.md", "reproduction.md")


def pages() -> dict[str, Path]:
    """Return the pages of prose by their path below ``docs``."""
    found = {path.relative_to(DOCS).as_posix(): path for path in sorted(DOCS.rglob("*.md"))}
    return {name: path for name, path in found.items() if not name.startswith(NOT_PROSE)}


def running_text(markdown: str) -> str:
    """Return the sentences of a page without markup."""
    text = re.sub(r"^(```|~~~).*?^\1\s*$", "", markdown, flags=re.DOTALL | re.MULTILINE)
    text = re.sub(r"\$\$.*?\$\$", "", text, flags=re.DOTALL)
    text = re.sub(r"^---\n.*?^---\n", "", text, count=1, flags=re.DOTALL | re.MULTILINE)
    paragraphs = []
    for block in re.split(r"\n\s*\n|\n(?=\s*(?:[-*]|\d+\.) )", text):
        lines = [line.strip() for line in block.splitlines()]
        kept = [line for line in lines if line and not line.startswith(NOT_SENTENCES)]
        if kept and not block.startswith("    "):
            paragraphs.append(plain(" ".join(kept)))
    return "\n\n".join(paragraphs)


def plain(line: str) -> str:
    """Return a paragraph or list item without marks, ending like a sentence."""
    line = re.sub(r"^(?:[-*]|\d+\.) ", "", line)
    line = re.sub(r"`[^`]+`|\$[^$]+\$", "name", line)
    line = re.sub(r"!?\[([^\]]*)\]\([^)]*\)", r"\1", line)
    line = re.sub(r"<[^>]+>|\*\*|\{[^}]*\}", "", line)
    return line if line.endswith((".", "?", "!", ":")) else line + "."


def grade(markdown: str) -> float:
    """Return the Flesch-Kincaid grade of the running text of a page."""
    return float(textstat.flesch_kincaid_grade(running_text(markdown)))


def main() -> None:
    """Print the grade of every page, the hardest first."""
    grades = {name: grade(path.read_text()) for name, path in pages().items()}
    for name, value in sorted(grades.items(), key=lambda item: -item[1]):
        print(f"{value:5.1f}  {name}")


if __name__ == "__main__":
    main()
