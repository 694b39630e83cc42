"""The one error that reading and writing tables raises, and packages asked for at first use."""

from __future__ import annotations

import difflib
import importlib
from collections.abc import Iterable
from types import ModuleType


class TableError(ValueError):
    """A table that cannot be read or written.

    Parameters
    ----------
    message : str
        What was expected and what came.
    hint : str, optional
        What to do about it; kept in the attribute ``hint`` and not part of the message.
    """

    def __init__(self, message: str, hint: str | None = None) -> None:
        super().__init__(message)
        self.hint = hint


class NotANumber(TableError):  # noqa: N818 - reads as what it says: a cell that is no number
    """A cell of a number column that is no number; ``column`` names the column."""

    def __init__(self, message: str, hint: str, column: str) -> None:
        super().__init__(message, hint)
        self.column = column


def load_package(module: str, purpose: str) -> ModuleType:
    """Import a module of the optional packages, or say how to install it."""
    try:
        return importlib.import_module(module)
    except ImportError as error:
        package = module.split(".")[0]
        raise TableError(
            f"{purpose} needs the package {package}, which is not installed.",
            "pip install twofold[tables]",
        ) from error


def close_names(name: str, known: Iterable[str]) -> str:
    """Return the known names most like the given one as text, or '' if none is close."""
    by_folded = {other.casefold(): other for other in known}
    close = difflib.get_close_matches(name.casefold(), list(by_folded), n=3, cutoff=0.6)
    return ", ".join(repr(by_folded[folded]) for folded in close)
