"""What every kind of file provides, and what the kinds share."""

from __future__ import annotations

import difflib
import importlib
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator
from types import ModuleType
from typing import TYPE_CHECKING

import pandas as pd

from twofold.tables.cells import CellRules, TableError, with_numbers

if TYPE_CHECKING:
    from twofold.tables.dialect import Dialect

# Frames that nobody wishes otherwise have about so many cells: eight bytes each, 64 MB.
CHUNK_CELLS = 8_000_000
# What unpacks to more than this, and to this many times its own size, is no data.
LARGE_BYTES, MOST_PACKED = 1 << 30, 200


class Table(ABC):
    """An opened file: names, and blocks of rows with all columns."""

    names: tuple[str, ...]  # of all columns
    own_index: str | None = None  # what the file itself calls its index, "" if that has no name
    companions: tuple[str, ...] = ()  # columns that the file keeps beside its matrix
    n_rows: int | None = None  # None while it is not known
    share_read = 0.0  # of the bytes of a text, by the last block
    dialect: Dialect | None = None  # how a text is written

    def __init__(self, name: str, rules: CellRules) -> None:
        self.notes: list[str] = []  # sentences worth telling the user
        self.rules = rules
        self._name = name

    @abstractmethod
    def blocks(self, numbers: frozenset[str], rows: int | None) -> Iterator[pd.DataFrame]:
        """Yield frames in order; ``numbers`` as float64, ``rows`` the wish for their length."""


class TypedTable(Table):
    """A file whose columns have types."""

    def blocks(self, numbers: frozenset[str], rows: int | None) -> Iterator[pd.DataFrame]:
        """Yield frames; see `Table`."""
        done = 0
        for frame in self._frames(rows or max(1, CHUNK_CELLS // max(1, len(self.names)))):

            def place(row: int, start: int = done) -> str:
                return f"'{self._name}', row {start + row + 1}"

            done += len(frame)
            yield with_numbers(frame, numbers, self.rules, place)

    @abstractmethod
    def _frames(self, rows: int) -> Iterator[pd.DataFrame]:
        """Yield frames of so many rows, with the types of the file."""


def close_names(name: str, known: Iterable[str]) -> str:
    """Return the known names most like the given one as text, or '' if none is close."""
    by_folded = {other.casefold(): other for other in known}
    close = difflib.get_close_matches(name.casefold(), list(by_folded), n=3, cutoff=0.6)
    return ", ".join(repr(by_folded[folded]) for folded in close)


def load_package(module: str, purpose: str) -> ModuleType:
    """Import a module of the optional packages, or say how to install it."""
    try:
        return importlib.import_module(module)
    except ImportError as error:
        raise TableError(
            f"{purpose} needs the package {module.split('.')[0]}, which is not installed.",
            "pip install twofold[tables]",
        ) from error
