"""Files that the library reads and writes; so far the files of saved models."""

from twofold.tables.model_file import (
    ModelFile,
    ModelFileError,
    current_versions,
    expect_class,
    read_model_file,
    register_value_type,
    write_model_file,
)

__all__ = [
    "ModelFile",
    "ModelFileError",
    "current_versions",
    "expect_class",
    "read_model_file",
    "register_value_type",
    "write_model_file",
]
