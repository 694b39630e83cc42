"""Arguments and options that commands share, and the files they name.

Files are checked before any long work begins.
"""

from __future__ import annotations

import difflib
import os
import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeAlias

import typer

from twofold.cli.console import CommandError, UsageError, listed

if TYPE_CHECKING:
    from twofold.contract import TwoWayModel

STANDARD = "-"
MODEL_SUFFIX = ".twofold"
TABLE_SUFFIXES = (
    *(".csv", ".tsv", ".txt", ".gz", ".parquet", ".xlsx", ".xlsm", ".npy", ".npz", ".h5ad"),
)
Text: TypeAlias = str | None
Texts: TypeAlias = list[str] | None


def option(metavar: str | None, about: str, *flags: str, **more: Any) -> Any:
    """Return an option that is None unless it is given; its flag is the parameter's name."""
    return typer.Option(None, *flags, metavar=metavar, help=about, show_default=False, **more)


def output_option(metavar: str, about: str) -> Any:
    """Return the option for where a result goes."""
    return option(metavar, about, "--output", "-o")


def flag(name: str, about: str) -> Any:
    """Return an option without a value; with its name given there is no --no-... beside it."""
    return typer.Option(False, name, help=about)


Table = Annotated[
    str,
    typer.Argument(
        metavar="TABLE",
        help="Rows to read: .csv .tsv .txt (also .gz), .parquet, .xlsx, .npy, .npz, .h5ad; - for "
        "CSV from standard input. A sheet, layer or embedding follows a colon: book.xlsx:Sheet2, "
        "cells.h5ad:obsm/X_pca.",
        show_default=False,
    ),
]
Model = Annotated[
    str,
    typer.Argument(metavar="MODEL", help="A model that 'twofold fit' wrote.", show_default=False),
]
TableOutput = Annotated[
    str,
    typer.Option(
        "--output",
        "-o",
        metavar="FILE",
        help="Where the table goes; its ending sets the format. - is CSV on standard output.",
    ),
]
_INDEX = "The column with the names of the rows."
_MISSING = (
    "Cells with this text are missing, as are empty cells, NA, N/A, NaN, null, None, ? and -, in "
    "any case. Repeatable."
)
_KINDS = (
    "Set the kind of a column instead of detecting it: number, log, count, robust, category, "
    "date, out, ordered, or an order such as size=small<large. Repeatable."
)
_WEIGHTS = "How much a column counts, such as price=3 for as much as three columns. Repeatable."
Kinds = Annotated[Texts, typer.Option(metavar="COL=KIND", help=_KINDS, show_default=False)]
Weights = Annotated[Texts, typer.Option(metavar="COL=N", help=_WEIGHTS, show_default=False)]
Index = Annotated[Text, typer.Option(metavar="COL", help=_INDEX, show_default=False)]
Missing = Annotated[Texts, typer.Option(metavar="TEXT", help=_MISSING, show_default=False)]
Seed = Annotated[
    int, typer.Option("--seed", min=0, max=2**32 - 1, help="The same seed gives the same result.")
]
Scheduler = Annotated[
    Text,
    typer.Option(
        metavar="ADDRESS",
        help="Spread the rows over a dask cluster, such as tcp://host:8786, or 'local' for worker "
        "processes on this machine; TABLE may be part files, such as 'data/*.parquet'.",
        show_default=False,
    ),
]
Quiet = Annotated[bool, typer.Option("--quiet", help="Show errors only.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print the result as one JSON object.")]


# ---- files --------------------------------------------------------------------------------------


def open_model(path: str, table: str | None = None) -> TwoWayModel:
    """Open a two-way model; ``table`` is what else stands on the command line."""
    model = open_any_model(path, table)
    # A wrong path is told before this import, which takes seconds.
    from twofold.contract import TwoWayModel

    if not isinstance(model, TwoWayModel):
        raise CommandError(
            f"'{path}' holds a {type(model).__name__}, which has no single map to work with.",
            "Fit a map with: twofold fit TABLE",
        )
    return model


def open_any_model(path: str, table: str | None = None) -> Any:
    """Open whatever `twofold.load` opens, with hints for what people mix up."""
    if table is not None and _looks_like_table(path) and table.endswith(MODEL_SUFFIX):
        raise UsageError(
            f"'{path}' is a table, but a model is expected in its place.",
            f"The model comes first: {table} {path}",
        )
    if not Path(path).exists():
        raise CommandError(f"There is no model file '{path}'.", _models_beside(Path(path)))
    if Path(path).is_dir():
        raise CommandError(
            f"'{path}' is a folder, not a model file.", _models_beside(Path(path) / MODEL_SUFFIX)
        )
    if _looks_like_table(path):
        raise CommandError(
            f"'{path}' looks like a table, not like a model.",
            f"Fit a model to it first: twofold fit {path}",
        )
    from twofold import load

    return load(path)


def check_output(path: str, *inputs: str, folder_of: str = "the result") -> None:
    """Raise unless a file can be written there without harm to what is read."""
    if path == STANDARD:
        return
    target = Path(path)
    parent = target.resolve().parent
    if target.is_dir():
        raise CommandError(f"'{path}' is a folder.", f"Name a file in it for {folder_of}.")
    if not parent.is_dir():
        raise CommandError(
            f"The folder '{parent}' does not exist.",
            f"Make it first: mkdir -p {shlex.quote(str(parent))}",
        )
    if not os.access(parent, os.W_OK):
        raise CommandError(
            f"Files cannot be written to '{parent}'.", "Choose another place with -o."
        )
    files = [name if os.path.exists(name) else file_of(name) for name in inputs]
    there = [name for name in files if target.exists() and os.path.exists(name)]
    if any(os.path.samefile(target, name) for name in there):
        raise CommandError(
            f"'{path}' would replace the file that is read.", "Choose another name with -o."
        )


def check_streams(output: str, as_json: bool) -> None:
    """Raise if data and a JSON object would share standard output."""
    if output == STANDARD and as_json:
        raise UsageError(
            "With --json the table needs a file of its own: both would go to standard output.",
            "Add -o FILE.",
        )


def shown(path: str) -> str:
    """Return a path as messages name it."""
    return "standard input" if path == STANDARD else f"'{path}'"


def beside(path: str, suffix: str) -> str:
    """Return the path with another ending, double endings such as ".csv.gz" replaced whole."""
    place = Path(file_of(path))
    stem = Path(place.name.removesuffix(".gz")).stem
    return str(place.parent / f"{stem}{suffix}")


def file_of(path: str) -> str:
    """Return the path of a table's file, without the part of it that is meant."""
    from twofold.tables.parts import split_part

    return split_part(path)[0]


def _looks_like_table(path: str) -> bool:
    return file_of(path.lower()).endswith(TABLE_SUFFIXES) or path == STANDARD


def _models_beside(path: Path) -> str:
    """Say which models there are in the folder, the one most like the name first."""
    folder = path.parent
    found = sorted(file.name for file in folder.glob(f"*{MODEL_SUFFIX}"))
    close = difflib.get_close_matches(path.name, found, n=3, cutoff=0.5)
    if close:
        return f"Did you mean {listed(str(folder / name) for name in close)}?"
    return (
        f"Models in '{folder}': {listed(found)}." if found else "Make one with: twofold fit TABLE"
    )
