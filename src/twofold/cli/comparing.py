"""``twofold compare``: several maps of a table side by side, and which of them to trust."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from twofold.cli.console import Console, UsageError, in_options, write_line
from twofold.cli.files import STANDARD, check_output, check_streams
from twofold.cli.options import (
    AsJson,
    Index,
    Missing,
    Quiet,
    Seed,
    Table,
    flag,
    option,
    output_option,
)

if TYPE_CHECKING:
    from twofold.array_types import FloatArray
    from twofold.cli.training_table import TrainingTable
    from twofold.selection import Comparison

# Beyond this some of the methods take many minutes.
MANY_ROWS = 5_000
# What people look at first; the whole table goes to a file or to JSON.
SHOWN = (
    "reconstruction_error",
    "nlml_per_entry",
    "noise_variance",
    "trustworthiness",
    "continuity",
    "auc",
    "neighborhood_hit",
    "instability",
    "seconds",
)
HEADINGS = {
    "reconstruction_error": "left open",
    "nlml_per_entry": "nlml",
    "noise_variance": "noise",
    "trustworthiness": "trust",
    "neighborhood_hit": "label hit",
}


def compare(
    table: Table,
    methods: Annotated[
        list[str] | None,
        option(
            "A,B,C",
            "Methods: pca, lle, isomap, laplacian, mds, tsne, umap, ukr, unn, kernel_pca, "
            "diffusion_map, psom. By default pca, lle, isomap, laplacian, tsne and ukr.",
            "--with",
        ),
    ] = None,
    output: Annotated[
        str | None, output_option("FILE", "Where the table of scores goes (.csv, …).")
    ] = None,
    plot: Annotated[
        str | None, option("FILE", "Draw the maps and scores: .pdf, .png or .svg.")
    ] = None,
    dimensions: Annotated[
        int, typer.Option("--dimensions", "-q", min=1, help="Coordinates of the maps.")
    ] = 2,
    label: Annotated[
        str | None, option("COL", "A column of classes: shown, never used to choose.")
    ] = None,
    index: Index = None,
    scale: Annotated[
        Literal["standard", "robust", "none"],
        typer.Option(help="Let columns count alike, as in 'twofold fit'."),
    ] = "standard",
    neighbors: Annotated[
        int, typer.Option("--neighbors", "-k", min=2, help="Of methods and scores.")
    ] = 15,
    stability: Annotated[bool, flag("--stability", "Also fit to bootstrap samples: slow.")] = False,
    missing: Missing = None,
    seed: Seed = 0,
    quiet: Quiet = False,
    json: AsJson = False,
) -> None:
    """Compare maps of a table by several methods and say which to trust, and why."""
    from twofold.cli.fitting import describe_scaling
    from twofold.cli.training_table import Wanted, read_training_table

    console = Console(quiet=quiet, as_json=json)
    names = chosen_methods(methods)
    _check_targets(output, plot, table, json)
    wanted = Wanted([label] if label else [], [], [], index, missing or [])
    rows = read_training_table(table, wanted, console, dimensions, None)
    describe_scaling(console, scale, rows)
    if len(rows.frame) > MANY_ROWS:
        console.say(f"{len(rows.frame):,} rows take a while; a sample of them may do.")
    from twofold.selection import compare as compare_embeddings

    with console.warnings_shown():
        found = compare_embeddings(
            scaled_rows(rows, scale, console),
            names,
            labels=classes_of(rows, console),
            n_components=dimensions,
            n_neighbors=neighbors,
            stability=stability,
            random_state=seed,
        )
        _write(found, output, plot)
    _tell(console, found, output)
    facts = {
        "recommended": found.recommended,
        "reason": found.reason,
        "failures": found.failures,
        "notes": found.notes,
    }
    table_of_scores = found.table.reset_index(names="method").to_dict("records")
    console.finish("", {**facts, "scores": table_of_scores, "table": output, "picture": plot})


def chosen_methods(texts: list[str] | None) -> tuple[str, ...]:
    """Return the methods that ``--with`` names; commas or several options separate them."""
    from twofold.selection.embedders import EMBEDDERS, USUAL

    given = [name.strip() for text in texts or () for name in text.split(",")]
    names = [name.lower().replace("-", "_") for name in given]  # as --method of 'fit' writes them
    unknown = [name for name in names if name and name not in EMBEDDERS]
    if unknown:
        raise UsageError(
            f"--with knows no method '{unknown[0]}'.", f"Choose from {', '.join(EMBEDDERS)}."
        )
    return tuple(dict.fromkeys(name for name in names if name)) or USUAL


def classes_of(rows: TrainingTable, console: Console) -> Any:
    """Return the label column if it holds classes, else None."""
    for name, values in rows.labels.items():
        if values.dtype.kind != "f":
            return values
        console.say(f"'{name}' is an amount, not a class: it is not scored")
    return None


def scaled_rows(rows: TrainingTable, scale: str, console: Console) -> FloatArray:
    """Return the rows as methods see them: scaled, and without holes."""
    import numpy as np

    from twofold.scaled import center_and_spread
    from twofold.ukr.filling import fill_for_start

    Y = rows.frame.to_numpy(dtype=np.float64)
    if scale != "none":
        center, spread = center_and_spread(scale, Y, np.ones(len(Y)))
        Y = (Y - center) / spread
    if np.isnan(Y).any():
        console.say("missing cells are filled by principal components, for this comparison only")
        Y = fill_for_start(Y)
    return np.asarray(Y)


def _check_targets(output: str | None, plot: str | None, table: str, as_json: bool) -> None:
    """Raise before the work begins if a result could not be written."""
    if output is not None:
        check_streams(output, as_json)
        check_output(output, table, folder_of="the scores")
    if plot is not None:
        from twofold.cli.looking import check_format

        check_format(plot)
        check_output(plot, table, folder_of="the picture")


def _write(found: Comparison, output: str | None, plot: str | None) -> None:
    """Write the files that were asked for."""
    if output is not None:
        from twofold.tables import open_writer

        with open_writer(output) as writer:
            writer.write(found.table.rename_axis("method"))
    if plot is not None:
        from twofold.cli.looking import save_figure, without_windows

        without_windows()
        save_figure(found.plot(), plot)


def _tell(console: Console, found: Comparison, output: str | None) -> None:
    """Say what was found: the scores as a table, and the reason."""
    for name, why in found.failures.items():
        console.warn(f"{name} gave no map: {why}")
    for name, notes in found.notes.items():
        for note in notes:
            console.say(f"{name}: {in_options(note)}")
    if not console.as_json and output != STANDARD:
        for line in score_lines(found):
            write_line(line)
    console.say()
    console.say(f"recommended: {found.recommended or 'none'}")
    console.say(found.reason)


def score_lines(found: Comparison) -> list[str]:
    """Return the scores in columns of text, best first."""
    shown = [name for name in SHOWN if name in found.table]
    frame = found.table[shown].rename(columns=HEADINGS).rename_axis(columns="method")
    text: str = frame.to_string(float_format=lambda value: f"{value:.3g}", na_rep="nan")
    return [line.rstrip() for line in text.splitlines()]
