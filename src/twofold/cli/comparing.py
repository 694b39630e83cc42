"""``twofold compare``, which map of a table to trust; ``twofold dimension``, how many it needs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import typer

from twofold.cli import arguments as arg
from twofold.cli.arguments import STANDARD, check_output, check_streams
from twofold.cli.console import Console, UsageError, in_options, write_line
from twofold.cli.fitting import Scale, describe_scaling, kinds_to_use, usual_scale
from twofold.cli.looking import check_format, save_figure, without_windows

if TYPE_CHECKING:
    import pandas as pd

    from twofold.array_types import FloatArray
    from twofold.cli.training_table import TrainingTable
    from twofold.selection import Comparison, DimensionChoice

# Beyond this some of the methods take many minutes.
MANY_ROWS = 5_000
# What people look at first, with headings; the whole table goes to a file or to JSON.
SHOWN = {
    "reconstruction_error": "left open",
    "nlml_per_entry": "nlml",
    "noise_variance": "noise",
    "trustworthiness": "trust",
    "continuity": "continuity",
    "auc": "auc",
    "neighborhood_hit": "label hit",
    "instability": "instability",
    "seconds": "seconds",
}


def compare(
    table: arg.Table,
    methods: arg.Texts = arg.option(
        "A,B,C",
        "Methods: pca, lle, isomap, laplacian, mds, tsne, umap, ukr, unn, kernel_pca, "
        "diffusion_map, psom. By default pca, lle, isomap, laplacian, tsne and ukr.",
        "--with",
    ),
    output: arg.Text = arg.output_option("FILE", "Where the table of scores goes (.csv, …)."),
    plot: arg.Text = arg.option("FILE", "Draw the maps and scores: .pdf, .png or .svg."),
    dimensions: int = typer.Option(2, "--dimensions", "-q", min=1, help="Dimensions of the maps."),
    label: arg.Text = arg.option("COL", "A column of classes: shown, never used to choose."),
    index: arg.Index = None,
    scale: Scale | None = arg.option(None, "Give all columns equal weight, as in 'twofold fit'."),
    kinds: arg.Kinds = None,
    weights: arg.Weights = None,
    neighbors: int = typer.Option(
        15, "--neighbors", "-k", min=2, help="Neighbours that methods and scores use."
    ),
    stability: bool = arg.flag("--stability", "Also fit to bootstrap samples: slow."),
    missing: arg.Missing = None,
    seed: arg.Seed = 0,
    quiet: arg.Quiet = False,
    json: arg.AsJson = False,
) -> None:
    """Compare maps of a table by several methods and say which to trust, and why."""
    console = Console(quiet=quiet, as_json=json)
    names = chosen_methods(methods)
    _check_outputs(table, output, plot, json)
    columns = {"label": [label] if label else None, "index": index, "missing": missing}
    rows, Y = _read_scaled(table, console, dimensions, scale, kinds, weights, columns)
    if len(rows.frame) > MANY_ROWS:
        console.say(f"{len(rows.frame):,} rows take a while; a sample of them may do.")
    from twofold.selection import compare as compare_embeddings

    with console.warnings_shown():
        found = compare_embeddings(
            Y,
            names,
            labels=classes_of(rows, console),
            n_components=dimensions,
            n_neighbors=neighbors,
            stability=stability,
            random_state=seed,
        )
        _write(found, found.table.rename_axis("method"), output, plot)
    _tell(console, found, output)
    facts = {
        "recommended": found.recommended,
        "reason": found.reason,
        "failures": found.failures,
        "notes": found.notes,
        "scores": found.table.reset_index(names="method").to_dict("records"),
    }
    console.finish("", {**facts, "table": output, "picture": plot})


def dimension(
    table: arg.Table,
    most: int | None = arg.option("N", "The largest answer; 10 by default.", "--most", min=1),
    output: arg.Text = arg.output_option("FILE", "Where the table of scores goes (.csv, …)."),
    plot: arg.Text = arg.option("FILE", "Draw gaps and errors: .pdf, .png or .svg."),
    label: arg.Text = arg.option("COL", "A column of classes: left out."),
    index: arg.Index = None,
    scale: Scale | None = arg.option(None, "Give all columns equal weight, as in 'twofold fit'."),
    kinds: arg.Kinds = None,
    weights: arg.Weights = None,
    missing: arg.Missing = None,
    seed: arg.Seed = 0,
    quiet: arg.Quiet = False,
    json: arg.AsJson = False,
) -> None:
    """Say how many dimensions a table has, or that it does not determine that."""
    console = Console(quiet=quiet, as_json=json)
    _check_outputs(table, output, plot, json)
    columns = {"label": [label] if label else None, "index": index, "missing": missing}
    _, Y = _read_scaled(table, console, 1, scale, kinds, weights, columns)
    from twofold.selection import choose_dimension

    with console.warnings_shown():
        found = choose_dimension(Y, max_dimension=most, random_state=seed)
        _write(found, found.scores, output, plot)
    if not console.as_json and output != STANDARD:
        write_line("none" if found.dimension is None else str(found.dimension))
    if not found.confident and found.dimension is not None:
        console.say("this is not certain")
    console.say(found.reason)
    facts = {
        "dimension": found.dimension,
        "confident": found.confident,
        "reason": found.reason,
        "scores": found.scores.reset_index().to_dict("records"),
        "scales": found.scales.reset_index().to_dict("records"),
    }
    console.finish("", {**facts, "table": output, "picture": plot})


def _check_outputs(table: str, output: str | None, plot: str | None, as_json: bool) -> None:
    if output is not None:
        check_streams(output, as_json)
        check_output(output, table, folder_of="the scores")
    if plot is not None:
        check_format(plot)
        check_output(plot, table, folder_of="the picture")


def _read_scaled(
    path: str,
    console: Console,
    q: int,
    scale: Scale | None,
    kinds: list[str] | None,
    weights: list[str] | None,
    columns: dict[str, Any],
) -> tuple[TrainingTable, FloatArray]:
    """Return a table, and its rows as methods see them."""
    from twofold.cli.training_table import read_training_table

    scale = scale or usual_scale(path)
    of_kinds, of_columns = kinds_to_use(kinds, weights, scale, None)
    rows = read_training_table(path, console, q, kinds=of_kinds, **columns)
    describe_scaling(console, scale, rows)
    return rows, scaled_rows(rows, scale, console, of_kinds, of_columns)


def _write(
    found: Comparison | DimensionChoice, scores: pd.DataFrame, output: str | None, plot: str | None
) -> None:
    """Write scores and a picture where they are wanted."""
    from twofold.tables.writing import open_writer

    if output is not None:
        with open_writer(output) as writer:
            writer.write(scores)
    if plot is not None:
        without_windows()
        save_figure(found.plot().get_figure(), plot)


def chosen_methods(texts: list[str] | None) -> tuple[str, ...]:
    """Return the methods that ``--with`` names; commas or several options separate them."""
    from twofold.selection.embedders import EMBEDDERS, USUAL

    given = [name.strip() for text in texts or () for name in text.split(",")]
    names = [name.lower().replace("-", "_") for name in given]  # as --method of 'fit' writes them
    unknown = [name for name in names if name and name not in EMBEDDERS]
    if unknown:
        raise UsageError(
            f"--with has no method '{unknown[0]}'.", f"Choose from {', '.join(EMBEDDERS)}."
        )
    return tuple(dict.fromkeys(name for name in names if name)) or USUAL


def classes_of(rows: TrainingTable, console: Console) -> Any:
    """Return the label column if it holds classes, else None."""
    for name, values in rows.labels.items():
        if values.dtype.kind != "f":
            return values
        console.say(f"'{name}' is an amount, not a class: it is not scored")
    return None


def scaled_rows(
    rows: TrainingTable,
    scale: str,
    console: Console,
    kinds: dict[str, Any] | None = None,
    weights: dict[str, float] | None = None,
) -> FloatArray:
    """Return the rows as methods see them: scaled, and without holes."""
    import numpy as np

    from twofold.latent.starts import fill_for_start
    from twofold.rowwise import center_and_spread

    if rows.is_mixed or weights:
        from twofold.cli.mixed_columns import check_weighed
        from twofold.mixed import scaled_features

        check_weighed(weights or {}, rows.columns, dict(rows.left_out))
        used = {name: kind for name, kind in (kinds or {}).items() if name in rows.columns}
        Y = scaled_features(rows.frame, used or None, weights or None)
    else:
        Y = rows.frame.to_numpy(dtype=np.float64)
    if scale != "none" and not rows.is_mixed and not weights:
        center, spread = center_and_spread(scale, Y, np.ones(len(Y)))
        Y = (Y - center) / spread
    if np.isnan(Y).any():
        console.say("missing cells are filled by principal components, for this comparison only")
        Y = fill_for_start(Y)
    return np.asarray(Y)


def _tell(console: Console, found: Comparison, output: str | None) -> None:
    """Say what was found: the scores as a table, and the reason."""
    for name, why in found.failures.items():
        console.warn(f"{name} gave no map: {why}")
    for name, notes in found.notes.items():
        for note in notes:
            console.say(f"{name}: {in_options(note)}")
    if not console.as_json and output != STANDARD:
        shown = [name for name in SHOWN if name in found.table]
        frame = found.table[shown].rename(columns=SHOWN).rename_axis(columns="method")
        text: str = frame.to_string(float_format=lambda value: f"{value:.3g}", na_rep="nan")
        for line in text.splitlines():
            write_line(line.rstrip())
    console.say()
    console.say(f"recommended: {found.recommended or 'none'}")
    console.say(found.reason)
