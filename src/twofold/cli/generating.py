"""``twofold generate``: data for places on the map."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import typer

from twofold.checks.harmless_text import for_spreadsheet
from twofold.cli import arguments as arg
from twofold.cli.arguments import STANDARD, check_output, check_streams, open_model
from twofold.cli.columns import find_columns, latent_names, numbered, shown_feature_names
from twofold.cli.console import CommandError, Console, UsageError, counted, did_you_mean, listed

if TYPE_CHECKING:
    import pandas as pd

    from twofold.array_types import FloatArray
    from twofold.contract import TwoWayModel
    from twofold.tables.reading import TableSource

MOST_GRID_POINTS = 10_000_000


def generate(
    model: arg.Model,
    output: arg.TableOutput = STANDARD,
    at: arg.Texts = arg.option("X1,X2", "A place on the map. Repeatable."),
    points: arg.Text = arg.option(
        "TABLE",
        "A table of places, such as 'twofold transform' writes: columns latent1, latent2, ... "
        "or x1, x2, ...",
    ),
    grid: int | None = arg.option("N", "N places along each axis.", min=2),
    path: tuple[str, str] | None = arg.option(
        "FROM TO",
        "The straight way between two rows or places (X1,X2). Give the name of a row, or "
        "#12 for the 12th; rows without names are numbered from 1.",
    ),
    steps: int = typer.Option(20, min=2, help="Places on a --path."),
    samples: int | None = arg.option(
        "N", "N new rows, spread like those the model was fitted to.", min=1
    ),
    seed: arg.Seed = 0,
    only_data: bool = arg.flag("--only-data", "Leave the coordinates out of the table."),
    in_domain: bool = arg.flag("--in-domain", "Only places of a --grid that the data supports."),
    quiet: arg.Quiet = False,
    json: arg.AsJson = False,
) -> None:
    """Make data for places on the map: single ones, a table, a grid, a path or at random."""
    import numpy as np

    from twofold.cli.streaming import ROWS_AT_A_TIME
    from twofold.tables.writing import open_writer

    console = Console(quiet=quiet, as_json=json)
    _check_one_source(at=at, points=points, grid=grid, path=path, samples=samples)
    check_streams(output, json)
    if in_domain and grid is None:
        raise UsageError("--in-domain goes with --grid.")
    two_way = open_model(model)
    check_output(output, model, *([points] if points else []))
    if points is not None:
        pieces, expected = _places_of_table(console, two_way, points)
    else:
        if at:
            X = np.stack([parse_place(text, two_way, "--at") for text in at])
        elif grid is not None:
            X = even_grid(two_way, grid, in_domain)
        elif path is not None:
            start, stop = (find_place(text, two_way) for text in path)
            t = np.linspace(0, 1, steps)[:, None]
            X = (1 - t) * start + t * stop
        else:
            X = two_way.sample_latent(int(samples or 1), seed)
        starts = range(0, len(X), ROWS_AT_A_TIME)
        pieces = ((X[start : start + ROWS_AT_A_TIME], None) for start in starts)
        expected = X.__len__
    done = outside = 0
    with (
        console.warnings_shown(),
        open_writer(output) as writer,
        console.counting_rows(expected) as advance,
    ):
        for places, names in pieces:
            frame = generated(two_way, places, names, only_data)
            if writer.dialect is not None:
                frame = frame.rename(columns=for_spreadsheet)
            writer.write(frame)
            done += len(places)
            outside += int((~two_way.in_domain(places)).sum())
            advance(len(places))
    if writer.dialect is not None:
        # Names of the model, which may be a stranger's, would be obeyed.
        names = shown_feature_names(two_way)
        if changed := [name for name in names if for_spreadsheet(name) != name]:
            console.say(
                "a ' was put before these names, or their control codes were spelled out, because "
                f"a spreadsheet would run them or a terminal obey them: {listed(changed)}"
            )
    for note in writer.notes:
        console.say(note)
    if outside:
        console.warn(
            f"{counted(outside, 'place')} of {done:,} {'lies' if outside == 1 else 'lie'} where no "
            "data supports the map: the rows made there are guesses."
        )
    console.finish(output, {"output": output, "rows": done, "rows_outside_domain": outside})


def generated(model: TwoWayModel, X: FloatArray, names: Any, only_data: bool) -> pd.DataFrame:
    """Return latent points X (m, q) and their data as a table."""
    import pandas as pd

    made = model.inverse_transform(X)
    if hasattr(made, "to_pandas"):  # a table of another library that the model was fitted to
        made = made.to_pandas()
    values = made.set_axis(names) if isinstance(made, pd.DataFrame) and names is not None else made
    data = pd.DataFrame(values, columns=shown_feature_names(model), index=names)
    if only_data:
        return data
    places = pd.DataFrame(X, columns=latent_names(model), index=names)
    return pd.concat([places, data], axis=1)


def _check_one_source(**sources: object) -> None:
    named = [f"--{name}" for name, value in sources.items() if value not in (None, [])]
    if len(named) != 1:
        raise UsageError(
            f"Say where on the map with exactly one of --{', --'.join(sources)}; got "
            f"{' and '.join(named) or 'none'}.",
            None if named else "For a first look: --grid 10",
        )


def _places_of_table(
    console: Console, model: TwoWayModel, path: str
) -> tuple[Iterator[tuple[FloatArray, Any]], Callable[[], int | None]]:
    """Return the places in a table, piece by piece, and what tells their number if known."""
    import numpy as np

    from twofold.cli.streaming import ROWS_AT_A_TIME
    from twofold.tables.reading import open_table

    source = open_table(path)
    names = _coordinate_columns(model, source)
    unused = [name for name in source.columns if name not in names]
    if unused:
        console.say(f"not used: {listed(unused)}")

    def pieces() -> Iterator[tuple[FloatArray, Any]]:
        done = 0
        for frame in source.chunks(ROWS_AT_A_TIME, numbers=names):
            X = frame[names].to_numpy(dtype=np.float64)
            bad = np.argwhere(~np.isfinite(X))
            if len(bad):
                row, column = bad[0]
                raise CommandError(
                    f"'{path}' has no coordinate in column '{names[column]}' of row "
                    f"{done + row + 1}; a place needs all of them.",
                    "Leave such rows out.",
                )
            yield X, frame.index
            done += len(frame)

    return pieces(), source.expected_rows


def _coordinate_columns(model: TwoWayModel, source: TableSource) -> list[str]:
    """Return the columns of a table that hold coordinates of the map."""
    q = model.embedding_.shape[1]
    is_nameless = source.dialect is None or not source.dialect.has_header
    own, plain = latent_names(model), numbered("x", q)
    for names in (numbered("latent", q), own, plain):
        is_data = set(names) & set(shown_feature_names(model))
        if set(names) <= set(source.columns) and not is_data:
            return names
    if len(source.columns) == q and (is_nameless or not set(plain) & set(source.columns)):
        return list(source.columns)  # places without the names we would give them
    if set(plain) <= set(source.columns):
        raise CommandError(
            f"The columns {plain[0]} to {plain[-1]} of '{source.path}' are data of the model, not "
            "coordinates of the map.",
            f"Call the columns with coordinates {', '.join(own)}.",
        )
    return find_columns(own, source.columns, source.path, "hold the coordinates")


# ---- places as people name them -----------------------------------------------------------------


def parse_place(text: str, model: TwoWayModel, option: str) -> FloatArray:
    """Return the latent point (q,) that text such as ``0.1,-2`` says."""
    import numpy as np

    q = model.embedding_.shape[1]
    example = ",".join(f"{value:.2g}" for value in model.embedding_[0])
    try:
        place = np.array([float(part) for part in text.replace(";", ",").split(",")])
    except ValueError:
        place = np.array([np.nan])
    if len(place) != q or not np.isfinite(place).all():
        raise UsageError(
            f"{option} takes {counted(q, 'coordinate')} with commas between; got '{text}'.",
            f"For example: {option} {example}",
        )
    return place


def find_place(text: str, model: TwoWayModel) -> FloatArray:
    """Return the latent point of a row or of a place."""
    # Rows with names go by them, so that 12 is never the 12th of rows called 0, 1, 2, ...; #12 is.
    # Rows without names go by their numbers from 1.
    names = getattr(getattr(model, "notes_", None), "names", None)
    n = len(model.embedding_)
    if names is not None:
        rows = (names == text).nonzero()[0]
        if len(rows) > 1:
            raise CommandError(
                f"{counted(len(rows), 'row')} are called '{text}'.",
                f"Say which by its number, such as '#{rows[0] + 1}'.",
            )
        if len(rows):
            return model.embedding_[rows[0]]
    number = text.removeprefix("#")
    if number.isdecimal() and (names is None or text.startswith("#")):
        if not 1 <= int(number) <= n:
            raise CommandError(f"There is no row {number}: the model has rows 1 to {n:,}.")
        return model.embedding_[int(number) - 1]
    if "," in text:
        return parse_place(text, model, "--path")
    raise CommandError(f"The model has no row called '{text}'.", _names_like(text, names, n))


def even_grid(model: TwoWayModel, n: int, in_domain: bool) -> FloatArray:
    """Return n places along each axis of the box around the map, the last axis fastest."""
    import numpy as np

    q = model.embedding_.shape[1]
    if n**q > MOST_GRID_POINTS:
        raise UsageError(
            f"--grid {n} means {n**q:,} places in {q} dimensions, more than the "
            f"{MOST_GRID_POINTS:,} allowed.",
            f"At most --grid {int(MOST_GRID_POINTS ** (1 / q))}.",
        )
    low, high = model.embedding_.min(axis=0), model.embedding_.max(axis=0)
    axes = [np.linspace(low[m], high[m], n) for m in range(q)]
    X = np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1).reshape(-1, q)
    if in_domain:
        X = X[model.in_domain(X)]
        if not len(X):
            raise CommandError(
                "No place of the grid lies where data supports the map.", "Raise --grid."
            )
    return X


def _names_like(text: str, names: Any, n: int) -> str:
    if names is None:
        return f"Its rows have no names; use a number from 1 to {n:,}, or a place such as 0.1,0.2."
    known = [str(name) for name in names]
    hint = did_you_mean(text, known) or f"The first rows are {listed(known, 5)}."
    is_number = text.isdecimal() and 1 <= int(text) <= n
    return f"{hint} '#{text}' is the row with that number, counted from 1." if is_number else hint
