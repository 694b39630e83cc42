"""Commands that send the rows of a table through a model: transform, complete, denoise, score."""

from __future__ import annotations

from typing import TYPE_CHECKING

from twofold.cli import arguments as arg
from twofold.cli.arguments import STANDARD
from twofold.cli.console import Console, UsageError, counted, listed, write_line

if TYPE_CHECKING:
    import pandas as pd

    from twofold.cli.streaming import Piece
    from twofold.tables.dialect import Dialect


def _check_spread(given: dict[str, object]) -> None:
    """Raise for options that mean nothing where rows are spread over a cluster."""
    refused = [name for name, value in given.items() if value]
    if refused:
        raise UsageError(f"--scheduler does not go with {listed(refused)}.")


def transform(
    model: arg.Model,
    table: arg.Table,
    output: arg.TableOutput = STANDARD,
    error: bool = arg.flag("--error", "Add each row's squared error when it is carried back."),
    density: bool = arg.flag(
        "--density", "Add how well the data supports the place, and whether it is enough."
    ),
    index: arg.Index = None,
    missing: arg.Missing = None,
    scheduler: arg.Scheduler = None,
    quiet: arg.Quiet = False,
    json: arg.AsJson = False,
) -> None:
    """Place rows on the map: their coordinates, with names and labels.

    The coordinates are called x1, x2, ..., or latent1, latent2, ... if columns of the model have
    names like x1.
    """
    from twofold.cli.streaming import open_stream, placed

    console = Console(quiet=quiet, as_json=json)
    if scheduler is not None:
        _check_spread(
            {"--error": error, "--density": density, "--index": index, "--missing": missing}
        )
        from twofold.cli.cluster import transform_parts

        transform_parts(console, model, table, output, scheduler)
        return
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
    console.finish(output, facts)


def complete(
    model: arg.Model,
    table: arg.Table,
    output: arg.TableOutput = STANDARD,
    intervals: bool = arg.flag(
        "--intervals",
        "Add columns NAME_low and NAME_high: the range in which each filled value lies.",
    ),
    level: float | None = arg.option(
        "SHARE",
        "Share of values that --intervals should hold; 0.9 by default.",
        min=0.01,
        max=0.999,
    ),
    draws: int | None = arg.option(
        "N",
        "Write every row N times, filled with values drawn at random from what is likely; a "
        "column 'draw' numbers them.",
        min=1,
    ),
    seed: int | None = arg.option(
        "N", "The same seed gives the same --draws; 0 by default.", min=0, max=2**32 - 1
    ),
    report: bool = arg.flag("--report", "Say how many cells were filled in each column."),
    index: arg.Index = None,
    missing: arg.Missing = None,
    scheduler: arg.Scheduler = None,
    quiet: arg.Quiet = False,
    json: arg.AsJson = False,
) -> None:
    """Fill missing cells of the model's columns; every other cell comes back as it was."""
    import numpy as np

    from twofold.cli.streaming import Filling, open_stream

    console = Console(quiet=quiet, as_json=json)
    if intervals and draws:
        raise UsageError("--intervals and --draws do not go together: draws differ by themselves.")
    if level is not None and not intervals:
        raise UsageError("--level is that of intervals: give --intervals, too.")
    if seed is not None and not draws:
        raise UsageError("--seed is that of draws: give --draws N, too.")
    if scheduler is not None:
        _check_spread(
            {
                "--report": report,
                "--intervals": intervals,
                "--draws": draws,
                "--index": index,
                "--missing": missing,
            }
        )
        from twofold.cli.cluster import complete_parts

        complete_parts(console, model, table, output, scheduler)
        return
    stream = open_stream(console, model, table, output, index, missing, "kept as it is")
    features = stream.match.features
    filled = np.zeros(len(features), dtype=int)
    filling = Filling(stream, (level or 0.9) if intervals else None, draws, seed or 0)

    def fill(piece: Piece, written: Dialect | None) -> pd.DataFrame:
        nonlocal filled
        found, gaps = filling.fill(piece, written)
        filled += gaps
        return found

    done = stream.write(output, fill, to_fill=True) // (draws or 1)
    console.say(f"filled {counted(int(filled.sum()), 'cell')} in {counted(done, 'row')}")
    per_column = {name: int(n) for name, n in zip(features, filled, strict=True) if n}
    if report:
        for name, count in per_column.items():
            console.say(f"  {name}: {count:,}")
    facts = {"output": output, "rows": done, "filled": int(filled.sum()), "by_column": per_column}
    console.finish(output, facts)


def denoise(
    model: arg.Model,
    table: arg.Table,
    output: arg.TableOutput = STANDARD,
    residuals: bool = arg.flag(
        "--residuals",
        "Remove only the noise: move each value towards what the rest of its row and nearby rows "
        "suggest, as far as the noise of the table allows.",
    ),
    index: arg.Index = None,
    missing: arg.Missing = None,
    quiet: arg.Quiet = False,
    json: arg.AsJson = False,
) -> None:
    """Replace the model's columns by what the map makes of each row."""
    from functools import partial

    from twofold.cli.mixed_columns import has_marks
    from twofold.cli.streaming import check_noise, denoised_table, open_stream

    console = Console(quiet=quiet, as_json=json)
    stream = open_stream(console, model, table, output, index, missing, "kept as it is")
    if residuals:
        check_noise(stream.model)
    reconstruct = partial(stream.model.reconstruct, use_residuals=residuals)

    def clean(piece: Piece, written: Dialect | None) -> pd.DataFrame:
        return denoised_table(stream, piece, reconstruct, written)

    as_written = has_marks(stream.source, stream.match.features)
    done = stream.write(output, clean, as_written=as_written)
    console.finish(output, {"output": output, "rows": done})


def score(
    model: arg.Model,
    table: arg.Table,
    output: arg.Text = arg.output_option("FILE", "Write each row's error."),
    why: bool = arg.flag(
        "--why",
        "Add how likely each row is, as the share of the model's rows that are at most as likely "
        "(p_value), and the column that stands out most, with its expected value.",
    ),
    index: arg.Index = None,
    missing: arg.Missing = None,
    quiet: arg.Quiet = False,
    json: arg.AsJson = False,
) -> None:
    """Say how well a model reconstructs rows, and which rows it knows least about."""
    import pandas as pd

    from twofold.cli.streaming import Tally, check_noise, odd_columns, open_stream

    console = Console(quiet=quiet, as_json=json)
    stream = open_stream(console, model, table, output, index, missing, "not used", True)
    tally = Tally(stream.model)
    if why:
        check_noise(stream.model)

    def count(piece: Piece, written: Dialect | None = None) -> pd.DataFrame:
        errors = -piece.apply(stream.model, stream.model.score_samples)
        reasons = odd_columns(stream, piece) if why else {}
        tally.add(piece, errors, reasons)
        return pd.DataFrame({"error": errors, **reasons}, index=piece.frame.index)

    if output is not None:
        stream.write(output, count)
    else:
        with console.warnings_shown():
            for piece in stream.pieces():
                count(piece)
    if about := tally.about_own_rows():
        console.say(about)
    # With errors on standard output the summary is for the person, not for the pipe.
    show = console.say if output == STANDARD else write_line
    if not console.as_json:
        for line in tally.lines():
            show(line)
    console.finish("", {**tally.facts(), "output": output})
