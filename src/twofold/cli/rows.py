"""Commands that send the rows of a table through a model: transform, complete, denoise, score."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from twofold.cli.console import Console, counted, listed, write_line
from twofold.cli.files import STANDARD
from twofold.cli.options import AsJson, Index, Missing, Model, Quiet, Table, TableOutput

if TYPE_CHECKING:
    import pandas as pd

    from twofold.cli.streaming import Piece, Stream

WORST_ROWS = 5


def transform(
    model: Model,
    table: Table,
    output: TableOutput = STANDARD,
    error: Annotated[
        bool,
        typer.Option("--error", help="Add each row's squared error when it is carried back."),
    ] = False,
    density: Annotated[
        bool,
        typer.Option(
            "--density", help="Add how well the data supports the place, and whether it is enough."
        ),
    ] = False,
    index: Index = None,
    missing: Missing = None,
    quiet: Quiet = False,
    json: AsJson = False,
) -> None:
    """Place rows on the map: their coordinates x1, x2, ..., with names and labels."""
    from twofold.cli.streaming import open_stream
    from twofold.tables import open_writer

    console = Console(quiet=quiet, as_json=json)
    stream = open_stream(console, model, table, output, index, missing, "not used")
    if output.lower().endswith(".npy") and stream.match.labels:
        console.say(f"an .npy file holds numbers only, without {listed(stream.match.labels)}")
        stream = stream.without_labels()
    done = outside = 0
    with console.warnings_shown(), open_writer(output, like=stream.source) as writer:
        for piece in stream.pieces():
            frame, n_outside = placed(stream, piece, error, density)
            writer.write(frame)
            done, outside = done + len(frame), outside + n_outside
    console.say_each(writer.notes)
    facts = {"output": output, "rows": done}
    if density:
        facts["rows_outside_domain"] = outside
        console.say(f"{counted(outside, 'row')} of {done:,} outside of what the data supports")
    _finish(console, output, facts)


def placed(
    stream: Stream, piece: Piece, with_error: bool, with_density: bool
) -> tuple[pd.DataFrame, int]:
    """Return rows on the map as a table, and how many of them lie outside the domain."""
    import numpy as np
    import pandas as pd

    from twofold.cli.columns import latent_names
    from twofold.cli.streaming import free_name

    model, labels = stream.model, stream.match.labels
    q = model.embedding_.shape[1]
    X = piece.apply(model, model.transform).reshape(len(piece.Y), -1)
    if X.shape[1] != q:  # no row of the piece has a value
        X = np.full((len(piece.Y), q), np.nan)
    columns: dict[str, Any] = dict(
        zip(latent_names(model, [*labels, str(piece.frame.index.name)]), X.T, strict=True)
    )
    n_outside = 0
    if with_error:
        columns[free_name("error", labels)] = -piece.apply(model, model.score_samples)
    if with_density:
        density = np.full(len(X), np.nan)
        density[piece.known] = model.density(X[piece.known]) if piece.known.any() else []
        inside = density >= model.domain_threshold_
        columns[free_name("density", labels)] = density
        columns[free_name("in_domain", labels)] = inside.astype(int)
        n_outside = int((~inside & piece.known).sum())
    for name in labels:
        columns[name] = piece.frame[name].to_numpy()
    return pd.DataFrame(columns, index=piece.frame.index), n_outside


def complete(
    model: Model,
    table: Table,
    output: TableOutput = STANDARD,
    report: Annotated[
        bool, typer.Option("--report", help="Say how many cells were filled in each column.")
    ] = False,
    index: Index = None,
    missing: Missing = None,
    quiet: Quiet = False,
    json: AsJson = False,
) -> None:
    """Fill missing cells of the model's columns; everything else comes back as it is."""
    import numpy as np

    from twofold.cli.streaming import open_stream
    from twofold.tables import open_writer

    console = Console(quiet=quiet, as_json=json)
    stream = open_stream(console, model, table, output, index, missing, "kept as it is")
    features = stream.match.features
    filled = np.zeros(len(features), dtype=int)
    done = 0
    with console.warnings_shown(), open_writer(output, like=stream.source) as writer:
        for piece in stream.pieces():
            frame = piece.frame.copy()
            if piece.known.any():
                whole = piece.apply(stream.model, stream.model.complete)
                frame[features] = whole
                filled += (np.isnan(piece.Y) & ~np.isnan(whole)).sum(axis=0)
            writer.write(frame[list(stream.source.columns)])
            done += len(frame)
    console.say_each(writer.notes)
    console.say(f"filled {counted(int(filled.sum()), 'cell')} in {counted(done, 'row')}")
    per_column = {name: int(n) for name, n in zip(features, filled, strict=True) if n}
    if report:
        for name, count in per_column.items():
            console.say(f"  {name}: {count:,}")
    facts = {"output": output, "rows": done, "filled": int(filled.sum()), "by_column": per_column}
    _finish(console, output, facts)


def denoise(
    model: Model,
    table: Table,
    output: TableOutput = STANDARD,
    index: Index = None,
    missing: Missing = None,
    quiet: Quiet = False,
    json: AsJson = False,
) -> None:
    """Replace the model's columns by what the map makes of each row."""
    from twofold.cli.streaming import open_stream
    from twofold.tables import open_writer

    console = Console(quiet=quiet, as_json=json)
    stream = open_stream(console, model, table, output, index, missing, "kept as it is")
    done = 0
    with console.warnings_shown(), open_writer(output, like=stream.source) as writer:
        for piece in stream.pieces():
            frame = piece.frame.copy()
            if piece.known.any():
                frame[stream.match.features] = piece.apply(stream.model, stream.model.reconstruct)
            writer.write(frame[list(stream.source.columns)])
            done += len(frame)
    console.say_each(writer.notes)
    _finish(console, output, {"output": output, "rows": done})


def score(
    model: Model,
    table: Table,
    output: Annotated[
        str | None,
        typer.Option(
            "--output", "-o", metavar="FILE", help="Write each row's error.", show_default=False
        ),
    ] = None,
    index: Index = None,
    missing: Missing = None,
    quiet: Quiet = False,
    json: AsJson = False,
) -> None:
    """Say how well a model reconstructs rows, and which rows it knows least about."""
    import contextlib

    import pandas as pd

    from twofold.cli.scoring import Tally
    from twofold.cli.streaming import open_stream
    from twofold.tables import open_writer

    console = Console(quiet=quiet, as_json=json)
    stream = open_stream(console, model, table, output, index, missing, "not used")
    tally = Tally(stream.model, WORST_ROWS)
    writing: Any = open_writer(output, like=stream.source) if output else contextlib.nullcontext()
    with console.warnings_shown(), writing as writer:
        for piece in stream.pieces():
            errors = -piece.apply(stream.model, stream.model.score_samples)
            tally.add(piece, errors)
            if writer is not None:
                writer.write(pd.DataFrame({"error": errors}, index=piece.frame.index))
    facts = tally.facts()
    # With errors on standard output the summary is for the person, not for the pipe.
    show = console.say if output == STANDARD else write_line
    if not console.as_json:
        for line in tally.lines():
            show(line)
    console.finish("", {**facts, "output": output})


def _finish(console: Console, output: str, facts: dict[str, Any]) -> None:
    """End a command whose result is a table: name the file, unless it went to standard output."""
    console.finish("" if output == STANDARD else output, facts)
