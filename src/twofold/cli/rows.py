"""Commands that send the rows of a table through a model: transform, complete, denoise, score."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

from twofold.cli.console import Console, counted, listed, write_line
from twofold.cli.files import STANDARD
from twofold.cli.options import (
    AsJson,
    Index,
    Missing,
    Model,
    Quiet,
    Table,
    TableOutput,
    flag,
    output_option,
)

if TYPE_CHECKING:
    import pandas as pd

    from twofold.array_types import FloatArray
    from twofold.cli.streaming import Piece, Stream
    from twofold.tables import Dialect

WORST_ROWS = 5


def transform(
    model: Model,
    table: Table,
    output: TableOutput = STANDARD,
    error: Annotated[
        bool, flag("--error", "Add each row's squared error when it is carried back.")
    ] = False,
    density: Annotated[
        bool,
        flag("--density", "Add how well the data supports the place, and whether it is enough."),
    ] = False,
    index: Index = None,
    missing: Missing = None,
    quiet: Quiet = False,
    json: AsJson = False,
) -> None:
    """Place rows on the map: their coordinates, with names and labels.

    The coordinates are called x1, x2, ..., or latent1, latent2, ... if columns of the model have
    names like x1.
    """
    from twofold.cli.streaming import open_stream

    console = Console(quiet=quiet, as_json=json)
    stream = open_stream(console, model, table, output, index, missing, "not used", True)
    if output.lower().endswith(".npy") and stream.match.labels:
        console.say(f"an .npy file holds numbers only, without {listed(stream.match.labels)}")
        stream.match.labels.clear()
    outside = 0

    def place(piece: Piece, written: Dialect | None) -> pd.DataFrame:
        nonlocal outside
        frame, n_outside = placed(stream, piece, error, density)
        outside += n_outside
        return frame

    facts = {"output": output, "rows": stream.write(output, place)}
    if density:
        facts["rows_outside_domain"] = outside
        of_all = f"{counted(outside, 'row')} of {facts['rows']:,}"
        console.say(f"{of_all} outside of what the data supports")
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
        zip(latent_names(model, [str(piece.frame.index.name)]), X.T, strict=True)
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
        bool, flag("--report", "Say how many cells were filled in each column.")
    ] = False,
    index: Index = None,
    missing: Missing = None,
    quiet: Quiet = False,
    json: AsJson = False,
) -> None:
    """Fill missing cells of the model's columns; every other cell comes back as it was."""
    import numpy as np

    from twofold.cli.streaming import open_stream

    console = Console(quiet=quiet, as_json=json)
    stream = open_stream(console, model, table, output, index, missing, "kept as it is")
    features = stream.match.features
    filled = np.zeros(len(features), dtype=int)

    def fill(piece: Piece, written: Dialect | None) -> pd.DataFrame:
        nonlocal filled
        whole = piece.Y
        if piece.known.any():
            whole = piece.apply(stream.model, stream.model.complete)
            filled += (np.isnan(piece.Y) & ~np.isnan(whole)).sum(axis=0)
        return with_gaps_filled(stream, piece, whole, written)

    done = stream.write(output, fill, to_fill=True)
    console.say(f"filled {counted(int(filled.sum()), 'cell')} in {counted(done, 'row')}")
    per_column = {name: int(n) for name, n in zip(features, filled, strict=True) if n}
    if report:
        for name, count in per_column.items():
            console.say(f"  {name}: {count:,}")
    facts = {"output": output, "rows": done, "filled": int(filled.sum()), "by_column": per_column}
    _finish(console, output, facts)


def with_gaps_filled(
    stream: Stream, piece: Piece, whole: FloatArray, written: Dialect | None
) -> pd.DataFrame:
    """Return a piece of the table with ``whole`` (m, D) where cells are missing.

    All other cells stay what they are: in a text their characters (127.0, not 127), elsewhere the
    type of their column. Only where a text goes into a file that writes numbers otherwise do they
    have to be numbers.
    """
    import numpy as np
    import pandas as pd

    from twofold.tables import number_texts

    source, frame = stream.source, piece.frame
    gaps = np.isnan(piece.Y) & ~np.isnan(whole)
    kept = np.where(np.isnan(piece.Y), whole, piece.Y)
    keeps_text = source.dialect and written and source.dialect.decimal == written.decimal
    columns = dict(frame.items())
    for k, name in enumerate(stream.match.features):
        numbers, gap = pd.Series(kept[:, k], index=frame.index), gaps[:, k]
        dtype = frame[name].dtype
        # Whether a column of whole numbers can have missing cells, in this piece or another.
        may_have_gaps = not isinstance(dtype, np.dtype) or bool(source.rules.numbers)
        if keeps_text and written is not None:
            cells = frame[name].to_numpy(dtype=object, copy=True)
            cells[gap] = number_texts(numbers[gap], written.decimal)
            columns[name] = cells
        elif dtype in (np.dtype("f2"), np.dtype("f4")):
            columns[name] = numbers.astype(dtype)
        elif dtype.kind not in "iu" or may_have_gaps:
            columns[name] = numbers
    return pd.DataFrame(columns, index=frame.index)[list(source.columns)]


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
    import pandas as pd

    from twofold.cli.streaming import open_stream

    console = Console(quiet=quiet, as_json=json)
    stream = open_stream(console, model, table, output, index, missing, "kept as it is")
    features, columns = stream.match.features, list(stream.source.columns)

    def clean(piece: Piece, written: Dialect | None) -> pd.DataFrame:
        made = piece.Y
        if piece.known.any():
            made = piece.apply(stream.model, stream.model.reconstruct)
        others = piece.frame.drop(columns=features)
        frame = pd.DataFrame(made, columns=features, index=others.index)
        return pd.concat([frame, others], axis=1)[columns]

    _finish(console, output, {"output": output, "rows": stream.write(output, clean)})


def score(
    model: Model,
    table: Table,
    output: Annotated[str | None, output_option("FILE", "Write each row's error.")] = None,
    index: Index = None,
    missing: Missing = None,
    quiet: Quiet = False,
    json: AsJson = False,
) -> None:
    """Say how well a model reconstructs rows, and which rows it knows least about."""
    import pandas as pd

    from twofold.cli.scoring import OwnRows, Tally
    from twofold.cli.streaming import open_stream

    console = Console(quiet=quiet, as_json=json)
    stream = open_stream(console, model, table, output, index, missing, "not used", True)
    tally = Tally(stream.model, WORST_ROWS)
    own = OwnRows(stream.model)

    def count(piece: Piece, written: Dialect | None = None) -> pd.DataFrame:
        errors = -piece.apply(stream.model, stream.model.score_samples)
        tally.add(piece, errors)
        own.add(piece.Y[piece.known])
        return pd.DataFrame({"error": errors}, index=piece.frame.index)

    if output is not None:
        stream.write(output, count)
    else:
        with console.warnings_shown():
            for piece in stream.pieces():
                count(piece)
    if own.n_found:
        console.say(own.in_words())
    # With errors on standard output the summary is for the person, not for the pipe.
    show = console.say if output == STANDARD else write_line
    if not console.as_json:
        for line in tally.lines():
            show(line)
    console.finish("", {**tally.facts(), **own.facts(), "output": output})


def _finish(console: Console, output: str, facts: dict[str, Any]) -> None:
    """End a command whose result is a table: name the file, unless it went to standard output."""
    console.finish("" if output == STANDARD else output, facts)
