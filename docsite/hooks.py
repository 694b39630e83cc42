"""What mkdocs calls while it builds: formulas become MathML, links out of ``docs`` become text.

MathML is drawn by the browser itself, so that a page opened from disk needs no script for it.
"""

from __future__ import annotations

import html
import re
from typing import Any

from latex2mathml.converter import convert

FORMULA = re.compile(r'<(span|div) class="arithmatex">\\([(\[])(.*?)\\[)\]]</\1>', re.DOTALL)
# Files of the repository that pages on GitHub can link to, and a site cannot.
OUTSIDE = re.compile(r"\[([^\]]+)\]\((?:\.\./)+([A-Z]+\.md|examples/[\w./]+|CITATION\.cff)[^)]*\)")


def on_page_markdown(markdown: str, **_: Any) -> str:
    """Name files outside of the docs instead of linking to them."""
    return OUTSIDE.sub(r"\1 (`\2`)", markdown)


def on_page_content(content: str, **_: Any) -> str:
    """Replace LaTeX by MathML."""
    return FORMULA.sub(as_mathml, content)


def as_mathml(found: re.Match[str]) -> str:
    """Return one formula, in the line or on its own."""
    display = "block" if found[2] == "[" else "inline"
    return convert(html.unescape(found[3]), display=display)
