"""Arguments and options of commands: how they are declared, and those that several share."""

from __future__ import annotations

from typing import Annotated, Any

import typer


def option(metavar: str | None, about: str, *flags: str, **more: Any) -> Any:
    """Return an option that is not there unless it is given; its flag is the parameter's name."""
    return typer.Option(*flags, metavar=metavar, help=about, show_default=False, **more)


def output_option(metavar: str, about: str) -> Any:
    """Return the option for where a result goes."""
    return option(metavar, about, "--output", "-o")


def flag(name: str, about: str) -> Any:
    """Return an option without a value; with its name given there is no --no-... beside it."""
    return typer.Option(name, help=about)


Table = Annotated[
    str,
    typer.Argument(
        metavar="TABLE",
        help="Rows to read: .csv .tsv .txt (also .gz), .parquet, .npy, .npz, .h5ad; - for CSV "
        "from standard input.",
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
        help="Where the table goes; its ending says the format. - is CSV on standard output.",
    ),
]
Index = Annotated[str | None, option("COL", "The column with the names of the rows.", "--index")]
Missing = Annotated[
    list[str] | None,
    option(
        "TEXT",
        "Cells with this text are missing, beside empty cells, NA, NaN, null, ? and -. Repeatable.",
        "--missing",
    ),
]
Seed = Annotated[int, typer.Option("--seed", min=0, help="The same seed gives the same result.")]
Quiet = Annotated[bool, flag("--quiet", "Say nothing but errors.")]
AsJson = Annotated[bool, flag("--json", "Give the result as one JSON object.")]
