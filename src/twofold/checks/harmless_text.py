"""Texts of strangers, made harmless where a terminal or a spreadsheet program would obey them."""

import re

# Control characters except line ends and tabs, marks that turn the direction of writing round, and
# halves of surrogate pairs, which cannot be written at all.
_OBEYED = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ud800-\udfff]")
_FORMULA = re.compile(r"[=@\t\r]|[+-].*[|!]", re.DOTALL)


def for_terminal(text: str) -> str:
    r"""Return a text in which what a terminal would obey is spelled out, as in ``\u001b[31m``."""
    return _OBEYED.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


def for_spreadsheet(name: str) -> str:
    """Return a name that no spreadsheet program takes for a formula: with ' before it if need be.

    Numbers such as -1 and names such as -log10(p) stay as they are. What a terminal would obey is
    spelled out, for tables are looked at there, too.
    """
    mark = "'" if _FORMULA.match(name) else ""
    return mark + for_terminal(name)
