"""Commands that look at a model: info, plot, explore; pictures are drawn without a window."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import typer

from twofold.checks.harmless_text import for_terminal
from twofold.cli import arguments as arg
from twofold.cli.arguments import beside, check_output, open_any_model, open_model
from twofold.cli.columns import label_names, match_columns, shown_feature_names
from twofold.cli.console import CommandError, Console, UsageError, did_you_mean, listed, write_line
from twofold.cli.generating import find_place

if TYPE_CHECKING:
    from twofold.contract import TwoWayModel

Kind = Literal[
    "map", "grid", "path", "magnification", "sensitivity", "importance", "history", "errors", "odd"
]
FORMATS = (".pdf", ".png", ".svg", ".eps", ".jpg", ".jpeg", ".tif", ".tiff", ".webp")
DOTS_PER_INCH = 200
COLORS = ("density", "magnification", "error")
# Levels of one column that are drawn beside each other.
MOST_LEVELS = 12


def info(model: arg.Model, quiet: arg.Quiet = False, json: arg.AsJson = False) -> None:
    """Say what a model is: sizes, columns, scaling, labels, parameters, how the fit went."""
    from twofold.cli.describing import describe, describe_in_lines
    from twofold.model_files import read_model_file

    console = Console(quiet=quiet, as_json=json)
    facts = describe(open_any_model(model), read_model_file(model).versions)
    if not json:
        _write_pairs([("file", model), *describe_in_lines(facts)])
    console.finish("", {"file": model, **facts})


def plot(
    model: arg.Model,
    output: arg.Text = arg.output_option(
        "FILE", "Where the picture goes: .pdf, .png or .svg; by default a .png beside the model."
    ),
    kind: Kind | None = arg.option(None, "What to draw; map if nothing is said."),
    color: arg.Text = arg.option(
        "NAME",
        "Colour the map by a label, a column, 'density', 'magnification' or 'error'; for "
        "sensitivity: the column.",
    ),
    path: tuple[str, str] | None = arg.option(
        "FROM TO",
        "Draw the way between two rows or places (X1,X2), as --kind path. Give the name "
        "of a row, or #12 for the 12th; rows without names are numbered from 1.",
    ),
    steps: int = typer.Option(10, min=2, help="Items on a --path."),
    table: arg.Text = arg.option(
        "TABLE", "For --kind errors and odd: rows to look at; by default those of the model."
    ),
    quiet: arg.Quiet = False,
    json: arg.AsJson = False,
) -> None:
    """Draw a picture of a model for a paper."""
    console = Console(quiet=quiet, as_json=json)
    wanted = kind or ("path" if path else "map")
    if (wanted == "path") != (path is not None):
        raise UsageError(
            "--kind path and --path FROM TO go together.",
            None if path else "For example: --path 1 12",
        )
    if table is not None and wanted not in ("errors", "odd"):
        raise UsageError("--table goes with --kind errors or odd.")
    if color is not None and wanted not in ("map", "sensitivity"):
        raise UsageError(f"--color goes with --kind map or sensitivity, not with {wanted}.")
    target = output or beside(model, f"-{wanted}.png")
    check_format(target)
    two_way = open_model(model, table)
    check_output(target, model, *([table] if table else []), folder_of="the picture")
    with console.warnings_shown():
        without_windows()
        if path is None:
            drawn = _draw(two_way, wanted, color, table, console)
        else:
            from twofold import plots

            drawn = plots.path(two_way, *(find_place(text, two_way) for text in path), steps=steps)
            # Called as the user called them.
            drawn.set_xticks([0, steps - 1], list(path), parse_math=False)
        save_figure(getattr(drawn, "figure", drawn), target)
    console.finish(target, {"picture": target, "kind": wanted})


def explore(
    model: arg.Model,
    output: arg.Text = arg.output_option(
        "FILE", "Where the page goes; by default beside the model, ending in .html."
    ),
    show: bool = arg.flag("--open", "Open the page in the browser afterwards."),
    max_mb: float = typer.Option(20, min=0.1, help="Largest size of the page in megabytes."),
    title: arg.Text = arg.option(None, "What the page is called."),
    quiet: arg.Quiet = False,
    json: arg.AsJson = False,
) -> None:
    """Write a page to walk through the map: one file for any browser, no server needed."""
    console = Console(quiet=quiet, as_json=json)
    target = output or beside(model, ".html")
    if not target.lower().endswith((".html", ".htm")):
        raise UsageError(f"The page needs a name that ends in .html; got '{target}'.")
    two_way = open_model(model)
    check_output(target, model, folder_of="the page")
    from twofold import explorer

    with console.warnings_shown():
        page = explorer.write(two_way, target, title=title or Path(model).stem, max_mb=max_mb)
    size = page.stat().st_size
    console.say(f"one page, {size / 1e6:.1f} MB; it needs no network")
    if show:
        typer.launch(target)
    console.finish(target, {"page": target, "bytes": size})


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


# ---- pictures -----------------------------------------------------------------------------------


def check_format(path: str) -> None:
    """Raise unless the ending of a file name says a format of pictures."""
    if Path(path).suffix.lower() not in FORMATS:
        raise UsageError(
            f"The ending of the file sets the format of a picture; got '{path}'.",
            "Use .pdf or .svg for papers, .png for screens.",
        )


def save_figure(figure: Any, path: str | Path, dpi: float = DOTS_PER_INCH) -> None:
    """Write a figure to a file, whole or not at all, and close it."""
    from matplotlib import pyplot

    from twofold.replacing import replacing

    try:
        with replacing(path) as partial:
            kind = Path(path).suffix[1:].lower()
            figure.savefig(partial, format=kind, dpi=dpi, bbox_inches="tight")
    finally:
        pyplot.close(figure)


def without_windows() -> None:
    """Let matplotlib draw into files only."""
    import matplotlib

    matplotlib.use("Agg")


def _draw(model: TwoWayModel, kind: str, color: arg.Text, table: arg.Text, console: Console) -> Any:
    """Return the axes or the figure of a picture."""
    from twofold import plots

    column = next((column for column in model._mixed_columns() if column.name == color), None)
    own = [] if column is None else [column.features[k] for k in column.shown]
    if kind == "sensitivity" and len(own) > 1:
        if len(own) > MOST_LEVELS:
            console.say(f"the first {MOST_LEVELS} of the {len(own)} levels of '{color}'")
        return plots.sensitivities(model, own[:MOST_LEVELS])
    if len(own) == 1 and (kind == "sensitivity" or color not in label_names(model.as_numbers())):
        color = own[0]
    match kind:
        case "map":
            return plots.latent_map(model, color=_known_color(model.as_numbers(), color))
        case "sensitivity" if color is not None:
            return plots.sensitivity(model, _known_feature(model.as_numbers(), color))
        case "sensitivity":
            return plots.sensitivities(model)
        case "importance":
            return plots.important_features(model)
        case "errors":
            return plots.errors(model, _rows_to_look_at(model, table, console))
        case "odd":
            from twofold.cli.streaming import check_noise

            check_noise(model)
            return plots.odd_rows(model, _rows_to_look_at(model, table, console))
        case _:
            return getattr(plots, kind)(model)


def _known_color(model: TwoWayModel, color: str | None) -> str | int | None:
    """Return what `plots.latent_map` colours by; raise if the model knows no such thing."""
    if color is None or color in label_names(model):
        return color
    if color == "error":
        _check_keeps_rows(model)
    return color if color in COLORS else _known_feature(model, color)


def _known_feature(model: TwoWayModel, name: str) -> str | int:
    """Return a feature's name, or its place for a model whose columns have no names."""
    names = shown_feature_names(model)
    if name in names:
        return name if hasattr(model, "feature_names_in_") else names.index(name)
    known = [*label_names(model), *COLORS, *names]
    raise CommandError(
        f"The model has no label and no column called '{name}'.",
        did_you_mean(name, known) or f"It has {listed(known, 12)}.",
    )


def _rows_to_look_at(model: TwoWayModel, table: str | None, console: Console) -> Any:
    if table is None:
        _check_keeps_rows(model)
        return None
    import numpy as np
    import pandas as pd

    from twofold.cli.streaming import as_rows
    from twofold.plots.row_colors import nameless_row
    from twofold.tables.reading import open_table

    source = open_table(table)
    match = match_columns(model, source.columns, table, source.companions)
    if match.unused:
        console.say(f"not used: {listed(match.unused)}")
    if model._mixed_columns():
        from twofold.cli.mixed_columns import rows_for

        return rows_for(model, source.read(), source)
    Y = source.read(numbers=match.features)[match.features].to_numpy(float)
    known = np.flatnonzero(~np.isnan(Y).all(axis=1))
    rows = as_rows(model, Y[known])
    if len(known) < len(Y) and isinstance(rows, pd.DataFrame):
        rows.index = [nameless_row(int(row)) for row in known]
    return rows


def _check_keeps_rows(model: TwoWayModel) -> None:
    if (model.member_ < 0).all():
        raise CommandError(
            "A model of landmarks does not keep its rows, so their errors are not known.",
            "Give the rows: --kind errors, or odd, with --table TABLE",
        )
