"""Arguments and options that several commands share."""

from __future__ import annotations

from typing import Annotated

import typer

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
Index = Annotated[
    str | None,
    typer.Option(
        "--index", metavar="COL", help="The column with the names of the rows.", show_default=False
    ),
]
Missing = Annotated[
    list[str] | None,
    typer.Option(
        "--missing",
        metavar="TEXT",
        help="Cells with this text are missing, beside empty cells, NA, NaN, null, ? and -. "
        "Repeatable.",
        show_default=False,
    ),
]
Seed = Annotated[int, typer.Option("--seed", min=0, help="The same seed gives the same result.")]
Quiet = Annotated[bool, typer.Option("--quiet", help="Say nothing but errors.")]
AsJson = Annotated[bool, typer.Option("--json", help="Give the result as one JSON object.")]
