"""What mkdocs calls while it builds.

Formulas become MathML, which the browser draws by itself, so that a page opened from disk needs no
script for it. Links out of ``docs`` become text. Roles of docstrings (``:class:``) become links,
and the table of how often parameters are needed moves to the head of their list. The search lists
guides before tables of figures.
"""

from __future__ import annotations

import html
import re
from typing import Any

from latex2mathml.converter import convert

FORMULA = re.compile(r'<(span|div) class="arithmatex">\\([(\[])(.*?)\\[)\]]</\1>', re.DOTALL)
# Files of the repository that pages on GitHub can link to, and a site cannot.
OUTSIDE = re.compile(r"\[([^\]]+)\]\((?:\.\./)+([A-Z]+\.md|examples/[\w./]+|CITATION\.cff)[^)]*\)")
ROLE = re.compile(r":(?:func|class|mod|meth|attr):(?:`|<code>)~?([\w.]+)(?:`|</code>)")
NEED = re.compile(
    r"<table>(?:(?!</table>).)*?parameters of <code>(\w+)</code>.*?</table>", re.DOTALL
)
# Pages of figures and of how things are built: they have every word, and are rarely what is meant.
BEHIND = ("experiments.md", "reproduction.md", "explorer_design.md", "dependability.md")
PARAMETERS = '<p><span class="doc-section-title">Parameters:</span></p>'


def on_page_markdown(markdown: str, page: Any = None, **_: Any) -> str:
    """Name files outside of the docs instead of linking to them; weigh the page for the search."""
    if page is not None:
        page.meta.setdefault("search", {"boost": search_boost(page.file.src_uri)})
    return OUTSIDE.sub(r"\1 (`\2`)", markdown)


def search_boost(path: str) -> float:
    """Return how much a page counts in the search: guides first, tables of figures last."""
    if path in BEHIND:
        return 0.2
    return 1.0 if path.startswith(("api/", "gallery/")) or path.endswith("_in_depth.md") else 3.0


def on_page_content(content: str, **_: Any) -> str:
    """Draw formulas, link names, and put the parameters needed often first."""
    content = FORMULA.sub(as_mathml, content)
    content = ROLE.sub(r'<autoref identifier="\1" optional><code>\1</code></autoref>', content)
    for found in list(NEED.finditer(content)):
        content = move_up(content, found[0], found[1])
    return content


def move_up(content: str, table: str, name: str) -> str:
    """Return a page with a table before the parameters of the entry of that name."""
    entry = re.search(rf'id="twofold(?:\.\w+)*\.{name}"', content)
    if entry is None:
        raise ValueError(f"There is a table of parameters of {name}, but no entry.")
    head = content.index(PARAMETERS, entry.start())
    return content[:head] + table + content[head:].replace(table, "", 1)


def as_mathml(found: re.Match[str]) -> str:
    """Return one formula, in the line or on its own."""
    if found[2] == "[":  # in a box of its own, which scrolls on narrow screens
        formula = convert(html.unescape(found[3]), display="block")
        return f'<div class="formula">{formula}</div>'
    return convert(html.unescape(found[3]), display="inline")
