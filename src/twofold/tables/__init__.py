"""Tables of several kinds, read and written."""

from twofold.tables.cells import NotANumberError, TableError
from twofold.tables.dialect import Dialect, sniff
from twofold.tables.reading import TableSource, open_table
from twofold.tables.writing import TableWriter, number_texts, open_writer

__all__ = [
    "Dialect",
    "NotANumberError",
    "TableError",
    "TableSource",
    "TableWriter",
    "number_texts",
    "open_table",
    "open_writer",
    "sniff",
]
