"""Rows of a table passing through a model, some thousand at a time.

A row's result does not depend on the other rows, so tables of any length go through in the memory
of one piece. A row without any value that the model knows gets missing results instead of ending
the command: after a million rows that would help nobody.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from twofold.cli.columns import Match, feature_names, find_row_names, match_columns
from twofold.cli.console import CommandError, Console, counted, listed
from twofold.cli.describing import takes_gaps
from twofold.cli.files import check_output, check_streams, open_model, shown
from twofold.tables import open_table, open_writer

if TYPE_CHECKING:
    from twofold.array_types import BoolArray, FloatArray
    from twofold.contract import TwoWayModel
    from twofold.tables import Dialect, TableSource

# Small enough for a bar that moves, large enough that starting a projection costs nothing.
ROWS_AT_A_TIME = 4096
NUMBERS_AT_A_TIME = 8_000_000


@dataclass(frozen=True)
class Piece:
    """Some consecutive rows."""

    frame: pd.DataFrame  # all columns, the model's as numbers or as they are in the file
    Y: FloatArray  # (m, D) the model's columns in its order
    known: BoolArray  # (m,) rows with at least one value
    first: int  # number of the first row, counted from 1

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
                known = ~np.isnan(Y).all(axis=1)
                self._check(Y, known, done, needs_all)
                yield Piece(frame, Y, known, done + 1)
                done += len(frame)
                unknown += int((~known).sum())
                advance(len(frame))
        if unknown:
            self.console.warn(
                f"{counted(unknown, 'row')} of {done:,} without any value in the model's columns: "
                "the results stay empty there."
            )

    def write(
        self,
        output: str,
        make: Callable[[Piece, Dialect | None], pd.DataFrame],
        *,
        to_fill: bool = False,
    ) -> int:
        """Write what is made of each piece, and return how many rows that are.

        ``make`` is told how the text is written, or None if it is no text.
        """
        with self.console.warnings_shown(), open_writer(output, like=self.source) as writer:
            for piece in self.pieces(to_fill=to_fill):
                writer.write(make(piece, writer.dialect))
        for note in writer.notes:
            self.console.say(note)
        return writer.n_rows

    def _check(self, Y: FloatArray, known: BoolArray, done: int, needs_all: bool) -> None:
        """Raise for the first infinite value, and for the first gap where there must be none."""

        def place(is_bad: BoolArray) -> str:
            row, column = np.argwhere(is_bad)[0]
            return f"in column '{self.match.features[column]}' of row {done + row + 1}"

        path = shown(self.source.path)
        if (infinite := np.isinf(Y)).any():
            raise CommandError(
                f"{path} has an infinite value {place(infinite)}.",
                "Count such cells as missing with --missing inf --missing=-inf.",
            )
        if needs_all and (gaps := np.isnan(Y) & known[:, None]).any():
            family = type(getattr(self.model, "model_", self.model)).__name__
            raise CommandError(
                f"{path} has no value {place(gaps)}, and a {family} needs complete rows.",
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
    source = open_table(table, index=index, missing=missing or ())
    for note in source.notes:
        console.say(note)
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
    return pd.DataFrame(Y, columns=names)


def free_name(name: str, taken: list[str]) -> str:
    """Return a column name that is not taken."""
    while name in taken:
        name += "_"
    return name
