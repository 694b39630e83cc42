"""Files that the library reads and writes: tables of several kinds, and saved models."""

from twofold.tables.cells import NotANumberError, TableError
from twofold.tables.dialect import Dialect, sniff
from twofold.tables.model_file import (
    ModelFile,
    ModelFileError,
    current_versions,
    expect_class,
    read_model_file,
    register_value_type,
    state_of,
    write_model_file,
)
from twofold.tables.reading import TableSource, open_table
from twofold.tables.replacing import replacing
from twofold.tables.writing import TableWriter, number_texts, open_writer

__all__ = [
    "Dialect",
    "ModelFile",
    "ModelFileError",
    "NotANumberError",
    "TableError",
    "TableSource",
    "TableWriter",
    "current_versions",
    "expect_class",
    "number_texts",
    "open_table",
    "open_writer",
    "read_model_file",
    "register_value_type",
    "replacing",
    "sniff",
    "state_of",
    "write_model_file",
]
