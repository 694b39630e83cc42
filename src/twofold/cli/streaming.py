"""Rows of a table passing through a model, some thousand at a time.

A row's result does not depend on the other rows, so tables of any length go through in the memory
of one piece. A row without any value that the model knows gets missing results instead of ending
the command: after a million rows that would help nobody.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from twofold.cli.columns import Match, feature_names, match_columns
from twofold.cli.console import CommandError, Console, counted, listed
from twofold.cli.describing import takes_gaps
from twofold.cli.files import check_output, check_streams, open_model, shown
from twofold.cli.row_names import find_row_names
from twofold.tables import open_table

if TYPE_CHECKING:
    import pandas as pd

    from twofold.array_types import BoolArray, FloatArray
    from twofold.contract import TwoWayModel
    from twofold.tables import TableSource

# Small enough for a bar that moves, large enough that starting a projection costs nothing.
ROWS_AT_A_TIME = 4096
NUMBERS_AT_A_TIME = 8_000_000


@dataclass(frozen=True)
class Piece:
    """Some consecutive rows.

    Attributes
    ----------
    frame : all columns of the table, the model's as numbers or as they are in the file
    Y : (m, D) the model's columns in its order
    known : (m,) rows with at least one value
    first : number of the first row, counted from 1
    """

    frame: pd.DataFrame
    Y: FloatArray
    known: BoolArray
    first: int

    def apply(self, model: TwoWayModel, method: Callable[[Any], FloatArray]) -> FloatArray:
        """Return a method's result for each row, NaN for rows without values."""
        found = method(as_rows(model, self.Y[self.known])) if self.known.any() else None
        width = () if found is None else found.shape[1:]
        result: FloatArray = np.full((len(self.Y), *width), np.nan)
        if found is not None:
            result[self.known] = found
        return result


@dataclass(frozen=True)
class Stream:
    """A model, and a table to send through it."""

    console: Console
    model: TwoWayModel
    source: TableSource
    match: Match

    def pieces(self, *, to_fill: bool = False) -> Iterator[Piece]:
        """Yield the rows piece by piece, with progress, and report rows without values.

        With ``to_fill`` rows may have gaps whatever the model is, and all columns of the frames are
        as they are in the file.
        """
        n_columns = max(len(self.source.columns), 1)
        size = max(1, min(ROWS_AT_A_TIME, NUMBERS_AT_A_TIME // n_columns))
        needs_all = not to_fill and not takes_gaps(self.model)
        done = unknown = 0
        features = self.match.features
        numbers = self.source.chunks(size, numbers=features)
        # Read side by side, as numbers and as they are: both in the memory of one piece.
        pairs: Iterable[tuple[pd.DataFrame, pd.DataFrame]] = (
            zip(numbers, self.source.chunks(size), strict=True)
            if to_fill
            else ((frame, frame) for frame in numbers)
        )
        with self.console.counting_rows(self.source.expected_rows) as advance:
            for table, frame in pairs:
                Y = table[features].to_numpy(dtype=np.float64)
                self._check_finite(Y, done)
                known = ~np.isnan(Y).all(axis=1)
                if needs_all:
                    self._check_complete(Y, known, done)
                yield Piece(frame, Y, known, done + 1)
                done += len(frame)
                unknown += int((~known).sum())
                advance(len(frame))
        if unknown:
            self.console.warn(
                f"{counted(unknown, 'row')} of {done:,} without any value in the model's columns: "
                "the results stay empty there."
            )

    def without_labels(self) -> Stream:
        """Return the same rows, their labels not looked at."""
        return replace(self, match=replace(self.match, labels=[]))

    def _check_finite(self, Y: FloatArray, done: int) -> None:
        infinite = np.argwhere(np.isinf(Y))
        if len(infinite):
            row, column = infinite[0]
            raise CommandError(
                f"{shown(self.source.path)} has an infinite value in column "
                f"'{self.match.features[column]}' of row {done + row + 1}.",
                "Count such cells as missing with --missing inf --missing=-inf.",
            )

    def _check_complete(self, Y: FloatArray, known: BoolArray, done: int) -> None:
        gaps = np.argwhere(np.isnan(Y) & known[:, None])
        if len(gaps):
            row, column = gaps[0]
            family = type(getattr(self.model, "model_", self.model)).__name__
            raise CommandError(
                f"{shown(self.source.path)} has no value in column "
                f"'{self.match.features[column]}' of row {done + row + 1}, and a {family} needs "
                "complete rows.",
                "Fill the empty cells first, with: twofold complete",
            )


def open_stream(
    console: Console,
    model_path: str,
    table: str,
    output: str | None,
    index: str | None,
    missing: list[str] | None,
    fate_of_others: str,
    finds_names: bool = False,
) -> Stream:
    """Open a model and a table that belongs to it; say which columns the model does not know.

    With ``finds_names`` a column that can only hold the names of the rows is taken for them.
    """
    if output is not None:
        check_streams(output, console.as_json)
    model = open_model(model_path, table)
    if output is not None:
        check_output(output, table, model_path)
    source = open_table(table, index=index, missing=tuple(missing or ()))
    console.say_each(source.notes)
    match = match_columns(model, source.columns, table, source.companions)
    name = find_row_names(source, match.unused) if finds_names else None
    if name is not None:
        source.take_index(name)
        match.unused.remove(name)
        console.say(f"row names: '{name}'")
    if match.unused:
        console.say(f"{fate_of_others}: {listed(match.unused)}")
        notes = getattr(model, "notes_", None)
        has_names = notes is not None and notes.names is not None
        if finds_names and has_names and not source.has_index:
            console.say("rows without names; --index COL takes a column for them")
    return Stream(console, model, source, match)


def as_rows(model: TwoWayModel, Y: FloatArray) -> Any:
    """Return rows as a model wants them: with names if it was fitted to names."""
    names = feature_names(model)
    if names is None:
        return Y
    import pandas as pd

    return pd.DataFrame(Y, columns=names)


def free_name(name: str, taken: list[str]) -> str:
    """Return a column name that is not taken."""
    while name in taken:
        name += "_"
    return name
