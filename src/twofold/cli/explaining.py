"""``twofold explain``: what is special about a place on the map, or about some rows."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import typer

from twofold.cli import arguments as arg
from twofold.cli.arguments import check_output, check_streams, open_model
from twofold.cli.console import CommandError, Console, UsageError, write_line
from twofold.cli.generating import find_place, parse_place

if TYPE_CHECKING:
    from twofold.contract import TwoWayModel


def explain(
    model: arg.Model,
    at: arg.Text = arg.option("X1,X2", "A place on the map."),
    row: arg.Texts = arg.option(
        "ROW", "The place of a row, by its name or number; several are compared with the others."
    ),
    label: arg.Text = arg.option("NAME=VALUE", "All rows with that value of a label or category."),
    against: arg.Text = arg.option("ROW|X1,X2", "Compare with this place, not with all rows."),
    most: int = typer.Option(15, "--most", min=1, help="How many features to list."),
    output: arg.Text = arg.output_option("FILE", "Write all of them to a table."),
    quiet: arg.Quiet = False,
    json: arg.AsJson = False,
) -> None:
    """Say what is special at a place or about some rows: the features farthest from usual."""
    from twofold.standing_out import what_stands_out
    from twofold.tables.writing import open_writer

    console = Console(quiet=quiet, as_json=json)
    if sum(given not in (None, []) for given in (at, row, label)) != 1:
        raise UsageError("Say what to explain with one of --at, --row and --label.")
    two_way = open_model(model)
    if output is not None:
        check_streams(output, json)
        check_output(output, model)
    where = _place_or_rows(two_way, at, row, label)
    other = None if against is None else find_place(against, two_way).astype(float)
    found = what_stands_out(two_way, where, other)
    exact = found.map(_exact)
    if output is not None:
        # Columns of numbers and dates are text, which every kind of file can hold.
        with open_writer(output) as writer:
            is_varied = len(exact.select_dtypes("object").columns) > 0
            writer.write(exact.map(str) if is_varied else exact)
    elif not json:
        written = _as_written(two_way, found).head(most)
        for line in written.to_string().splitlines():
            write_line(line.rstrip())
    features = exact.head(most).reset_index().to_dict("records")
    console.finish("", {"features": features, "output": output})


def _as_written(model: TwoWayModel, found: Any) -> Any:
    """Return the figures as people write them: shares of levels as percentages."""
    import pandas as pd

    levels = {
        title
        for column in model._mixed_columns()
        if hasattr(column, "levels")
        for title in column.titles
    }
    lines = [
        [f"{line[0]:.4g}", *(_text(value, title in levels) for value in line[1:])]
        for title, *line in found.itertuples()
    ]
    return pd.DataFrame(lines, index=found.index, columns=found.columns)


def _text(value: Any, is_share: bool) -> str:
    import pandas as pd

    if is_share:
        # Shares that differ from 0 by rounding alone are 0, which has no sign.
        return f"{round(100 * value, 4) + 0.0:.3g} %"
    if isinstance(value, pd.Timedelta) and abs(value) >= pd.Timedelta(days=1):
        return f"{value / pd.Timedelta(days=1):.3g} days"
    known = _exact(value)
    return f"{known:.4g}" if isinstance(known, float) else str(known)


def _exact(value: Any) -> Any:
    """Return a number, or a date or a duration as text; NaN for none."""
    import pandas as pd

    if isinstance(value, float) or pd.isna(value):
        return float(value) if isinstance(value, float) else float("nan")
    if isinstance(value, pd.Timestamp):
        value = value.tz_localize(None)
    value = value.round("s") if isinstance(value, pd.Timestamp | pd.Timedelta) else value
    return str(value).removesuffix(" 00:00:00").removeprefix("0 days ")


def _place_or_rows(
    model: TwoWayModel, at: str | None, rows: list[str] | None, label: str | None
) -> Any:
    import numpy as np

    if at is not None:
        return parse_place(at, model, "--at")
    if label is not None:
        return _rows_of_label(model, label)
    if len(rows or ()) == 1:
        return find_place((rows or [""])[0], model).astype(float)
    return np.array([_row_number(text, model) for text in rows or ()])


def _row_number(text: str, model: TwoWayModel) -> int:
    """Return the number of a row, from 0, by its name, or by its number from 1."""
    names = getattr(getattr(model, "notes_", None), "names", None)
    known = [] if names is None else [str(name) for name in names]
    if text in known:
        return known.index(text)
    number = text.removeprefix("#")
    if not number.isdecimal() or not 1 <= int(number) <= len(model.embedding_):
        raise CommandError(
            f"The model has no row called '{text}'.", "Numbers count from 1, such as '#12'."
        )
    return int(number) - 1


def _rows_of_label(model: TwoWayModel, label: str) -> Any:
    from twofold.tables.text_types import truth_of

    name, _, value = label.partition("=")
    labels = getattr(getattr(model.as_numbers(), "notes_", None), "labels", {})
    if name not in labels:
        raise CommandError(
            f"The model has no label and no category called '{name}'.",
            f"It has {', '.join(labels)}." if labels else "It has none.",
        )
    chosen = labels[name].astype(str) == value
    if not chosen.any() and truth_of(value) is not None:  # written otherwise in the table
        chosen = labels[name].astype(str) == str(truth_of(value))
    if not chosen.any():
        raise CommandError(f"No row has {name} = '{value}'.")
    return chosen
