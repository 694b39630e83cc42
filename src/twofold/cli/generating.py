"""``twofold generate``: data for places on the map."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Annotated, Any

import typer

from twofold.checks.harmless_text import for_spreadsheet
from twofold.cli.console import CommandError, Console, UsageError, counted, listed
from twofold.cli.files import STANDARD, check_output, check_streams, open_model
from twofold.cli.options import AsJson, Model, Quiet, Seed, TableOutput, flag, option

if TYPE_CHECKING:
    import pandas as pd

    from twofold.array_types import FloatArray
    from twofold.contract import TwoWayModel
    from twofold.tables import TableSource

MOST_GRID_POINTS = 10_000_000


def generate(
    model: Model,
    output: TableOutput = STANDARD,
    at: Annotated[list[str] | None, option("X1,X2", "A place on the map. Repeatable.")] = None,
    points: Annotated[
        str | None,
        option(
            "TABLE",
            "A table of places, such as 'twofold transform' writes: columns latent1, latent2, ... "
            "or x1, x2, ...",
        ),
    ] = None,
    grid: Annotated[int | None, option("N", "N places along each axis.", min=2)] = None,
    path: Annotated[
        tuple[str, str] | None,
        option(
            "FROM TO",
            "The straight way between two rows or places (X1,X2). Rows go by their names, or as "
            "#12 for the 12th; without names by numbers from 1.",
        ),
    ] = None,
    steps: Annotated[int, typer.Option(min=2, help="Places on a --path.")] = 20,
    samples: Annotated[
        int | None, option("N", "N new rows, spread like those the model was fitted to.", min=1)
    ] = None,
    seed: Seed = 0,
    only_data: Annotated[
        bool, flag("--only-data", "Leave the coordinates out of the table.")
    ] = False,
    in_domain: Annotated[
        bool, flag("--in-domain", "Only places of a --grid that the data supports.")
    ] = False,
    quiet: Quiet = False,
    json: AsJson = False,
) -> None:
    """Make data for places on the map: single ones, a table, a grid, a path or at random."""
    import numpy as np

    from twofold.cli.places import even_grid, parse_place, straight_way
    from twofold.tables import open_writer

    console = Console(quiet=quiet, as_json=json)
    _check_one_source(at, points, grid, path, samples)
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
            X = even_grid(two_way, grid, in_domain, MOST_GRID_POINTS)
        elif path is not None:
            X = straight_way(two_way, *path, steps)
        else:
            X = two_way.sample_latent(int(samples or 1), seed)
        pieces, expected = _in_pieces(X), X.__len__
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
        _tell_renamed(console, two_way)
    for note in writer.notes:
        console.say(note)
    if outside:
        console.warn(
            f"{counted(outside, 'place')} of {done:,} {'lies' if outside == 1 else 'lie'} where no "
            "data supports the map: the rows made there are guesses."
        )
    facts = {"output": output, "rows": done, "rows_outside_domain": outside}
    console.finish("" if output == STANDARD else output, facts)


def generated(model: TwoWayModel, X: FloatArray, names: Any, only_data: bool) -> pd.DataFrame:
    """Return latent points X (m, q) and their data as a table."""
    import pandas as pd

    from twofold.cli.columns import latent_names, shown_feature_names

    features = shown_feature_names(model)
    data = pd.DataFrame(model.inverse_transform(X), columns=features, index=names)
    if only_data:
        return data
    places = pd.DataFrame(X, columns=latent_names(model), index=names)
    return pd.concat([places, data], axis=1)


def _check_one_source(*given: object) -> None:
    options = ("--at", "--points", "--grid", "--path", "--samples")
    named = [name for name, value in zip(options, given, strict=True) if value not in (None, [])]
    if len(named) != 1:
        raise UsageError(
            f"Say where on the map with exactly one of {', '.join(options)}; got "
            f"{' and '.join(named) or 'none'}.",
            None if named else "For a first look: --grid 10",
        )


def _tell_renamed(console: Console, model: TwoWayModel) -> None:
    """Say which names of the model, which may be a stranger's, would be run by a spreadsheet."""
    from twofold.cli.columns import shown_feature_names

    changed = [name for name in shown_feature_names(model) if for_spreadsheet(name) != name]
    if changed:
        console.say(
            f"written with ' before it, for a spreadsheet would take it for a formula: "
            f"{listed(changed)}"
        )


def _in_pieces(X: FloatArray) -> Iterator[tuple[FloatArray, Any]]:
    from twofold.cli.streaming import ROWS_AT_A_TIME

    for start in range(0, len(X), ROWS_AT_A_TIME):
        yield X[start : start + ROWS_AT_A_TIME], None


def _places_of_table(
    console: Console, model: TwoWayModel, path: str
) -> tuple[Iterator[tuple[FloatArray, Any]], Callable[[], int | None]]:
    """Return the places in a table, piece by piece, and what tells their number if known."""
    import numpy as np

    from twofold.cli.streaming import ROWS_AT_A_TIME
    from twofold.tables import open_table

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
    from twofold.cli.columns import find_columns, latent_names, numbered, shown_feature_names

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
