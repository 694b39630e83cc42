"""Commands that look at a model: info, plot, explore."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from twofold.cli.console import Console, UsageError, write_line
from twofold.cli.files import beside, check_output, open_any_model, open_model
from twofold.cli.options import AsJson, Model, Quiet
from twofold.harmless_text import for_terminal

if TYPE_CHECKING:
    from twofold.contract import TwoWayModel

Kind = Literal["map", "grid", "path", "magnification", "sensitivity", "history", "errors"]


def info(model: Model, quiet: Quiet = False, json: AsJson = False) -> None:
    """Say what a model is: sizes, columns, scaling, labels, parameters, how the fit went."""
    from twofold.cli.describing import describe, describe_in_lines
    from twofold.tables import read_model_file

    console = Console(quiet=quiet, as_json=json)
    facts = describe(open_any_model(model), read_model_file(model).versions)
    if not json:
        _write_pairs([("file", model), *describe_in_lines(facts)])
    console.finish("", {"file": model, **facts})


def plot(
    model: Model,
    output: Annotated[
        str | None,
        typer.Option(
            "--output",
            "-o",
            metavar="FILE",
            help="Where the picture goes: .pdf, .png or .svg; by default a .png beside the model.",
            show_default=False,
        ),
    ] = None,
    kind: Annotated[
        Kind | None,
        typer.Option("--kind", help="What to draw; map if nothing is said.", show_default=False),
    ] = None,
    color: Annotated[
        str | None,
        typer.Option(
            "--color",
            metavar="NAME",
            help="Colour the map by a label, a column, 'density', 'magnification' or 'error'; "
            "for sensitivity: the column.",
            show_default=False,
        ),
    ] = None,
    path: Annotated[
        tuple[str, str] | None,
        typer.Option(
            "--path",
            metavar="FROM TO",
            help="Draw the way between two rows or places (X1,X2), as --kind path. Rows go by "
            "their names, or as #12 for the 12th; without names by numbers from 1.",
            show_default=False,
        ),
    ] = None,
    steps: Annotated[int, typer.Option("--steps", min=2, help="Items on a --path.")] = 10,
    table: Annotated[
        str | None,
        typer.Option(
            "--table",
            metavar="TABLE",
            help="For --kind errors: rows to look at; by default those of the model.",
            show_default=False,
        ),
    ] = None,
    quiet: Quiet = False,
    json: AsJson = False,
) -> None:
    """Draw a picture of a model for a paper."""
    from twofold.cli.pictures import Picture, check_format, draw

    console = Console(quiet=quiet, as_json=json)
    wanted = kind or ("path" if path else "map")
    if (wanted == "path") != (path is not None):
        raise UsageError(
            "--kind path and --path FROM TO go together.",
            None if path else "For example: --path 1 12",
        )
    if table is not None and wanted != "errors":
        raise UsageError("--table goes with --kind errors.")
    if color is not None and wanted not in ("map", "sensitivity"):
        raise UsageError(f"--color goes with --kind map or sensitivity, not with {wanted}.")
    target = output or beside(model, f"-{wanted}.png")
    check_format(target)
    two_way = open_model(model, table)
    check_output(target, model, *([table] if table else []), folder_of="the picture")
    with console.warnings_shown():
        draw(two_way, Picture(wanted, color, path, steps, table), target, console)
    console.finish(target, {"picture": target, "kind": wanted})


def explore(
    model: Model,
    output: Annotated[
        str | None,
        typer.Option(
            "--output",
            "-o",
            metavar="FILE",
            help="Where the page goes; by default beside the model, ending in .html.",
            show_default=False,
        ),
    ] = None,
    show: Annotated[
        bool, typer.Option("--open", help="Open the page in the browser afterwards.")
    ] = False,
    max_mb: Annotated[
        float, typer.Option("--max-mb", min=0.1, help="Largest size of the page in megabytes.")
    ] = 20,
    title: Annotated[
        str | None, typer.Option("--title", help="What the page is called.", show_default=False)
    ] = None,
    quiet: Quiet = False,
    json: AsJson = False,
) -> None:
    """Write a page to walk through the map: one file for any browser, no server needed."""
    console = Console(quiet=quiet, as_json=json)
    target = output or beside(model, ".html")
    if not target.lower().endswith((".html", ".htm")):
        raise UsageError(f"The page needs a name that ends in .html; got '{target}'.")
    two_way = open_model(model)
    check_output(target, model, folder_of="the page")
    with console.warnings_shown():
        size = write_page(two_way, target, title or Path(model).stem, max_mb)
    console.say(f"one page, {size / 1e6:.1f} MB; it needs no network")
    if show:
        typer.launch(target)
    console.finish(target, {"page": target, "bytes": size})


def write_page(model: TwoWayModel, path: str, title: str | None, max_mb: float) -> int:
    """Write the explorer of a model and return its size in bytes."""
    from twofold import explorer

    return explorer.write(model, path, title=title, max_mb=max_mb).stat().st_size


def _write_pairs(pairs: list[tuple[str, Any]]) -> None:
    """Write names and values in two columns; the names stand out in a terminal."""
    width = max(len(name) for name, _ in pairs) + 2
    if not sys.stdout.isatty():
        for name, value in pairs:
            write_line(f"{name:<{width}}{value}")
        return
    from rich.console import Console as RichConsole
    from rich.table import Table
    from rich.text import Text

    table = Table.grid(padding=(0, 2))
    for name, value in pairs:
        table.add_row(Text(name, style="bold"), Text(for_terminal(str(value))))
    RichConsole().print(table)
