"""Tables larger than memory: what is used of them, and the rows in pieces, as often as wanted.

One walk finds the columns of numbers, counts rows and gaps, and collects names and labels; then a
model walks through the rows by itself. Columns are judged by the first rows; a cell further down
that is no number costs one more walk. Mean and variance are those of the pieces, put together
(Chan, Golub & LeVeque 1983).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from twofold.cli.arguments import shown
from twofold.cli.columns import are_default
from twofold.cli.console import CommandError, Console
from twofold.memory import available, readable
from twofold.tables.chunks import CELLS_AT_A_TIME
from twofold.tables.table import NearlyNumbers, NotANumberError

if TYPE_CHECKING:
    from twofold.array_types import FloatArray
    from twofold.contract import TwoWayModel
    from twofold.tables.reading import TableSource

# A table is read, put together, scaled and copied: at its peak a fit holds this many of them.
TABLES_IN_MEMORY = 6


def exceeds_memory(source: TableSource, console: Console) -> bool:
    """Say whether a fit that holds a table needs more memory than there is; if so say it aloud."""
    n_rows, width, there = source.n_rows, len(source.columns), available()
    if n_rows is None:
        next(source.chunks(1))  # from where the first block ends the rest can be told
        n_rows = source.expected_rows()
    if there is None or n_rows is None or TABLES_IN_MEMORY * 8 * n_rows * width <= there:
        return False
    console.say(
        f"{shown(source.path)}: about {n_rows:,} rows and {width:,} columns, "
        f"{readable(8 * n_rows * width)} of numbers; {readable(there)} of memory is free, so the "
        "table is read in pieces"
    )
    return True


class LargeTable:
    """Rows to fit, and what is known about them; none of them is held."""

    def __init__(
        self,
        source: TableSource,
        labels: list[str],
        left_out: list[str],
        as_label: Callable[[pd.Series], Any],
    ) -> None:
        self.source, self._as_label = source, as_label
        self.left_out: list[tuple[str, str]] = []
        self.nearly_numbers: dict[str, NearlyNumbers] = {}
        self.labels: dict[str, Any] = {}
        self.names: Any = None
        self.n_empty = self.n_rows = 0
        self._label_names, self._unwanted = labels, {*labels, *left_out}

    def look_through(self, console: Console, chosen: list[str]) -> None:
        """Find out what a fit needs; ``chosen`` are columns that must be numbers, if any."""
        reasons: dict[str, str] = {}
        self.source.look_for_text(reasons, blocks=1)
        try:
            self._look(console, chosen, reasons)
        except NotANumberError:
            self.source.look_for_text(reasons)
            if set(chosen) & set(reasons):
                raise
            self._look(console, chosen, reasons)

    def _look(self, console: Console, chosen: list[str], reasons: dict[str, str]) -> None:
        wanted = [name for name in self.source.columns if name not in self._unwanted]
        self.columns = chosen or [name for name in wanted if name not in reasons]
        self.left_out = [] if chosen else [(n, reasons[n]) for n in wanted if n in reasons]
        numbers = [*self.columns, *(name for name in self._label_names if name not in reasons)]
        self._sums = _Sums(len(self.columns))
        self._empty_rows: list[int] = []
        notes: list[pd.DataFrame] = []
        names: list[Any] = []
        done = 0
        with console.counting_rows(self.source.expected_rows) as advance:
            for frame in self._frames(numbers):
                Y = frame[self.columns].to_numpy()
                self._check_finite(Y, done)
                known = ~np.isnan(Y).all(axis=1)
                self._empty_rows += (done + np.flatnonzero(~known)).tolist()
                with np.errstate(over="ignore", invalid="ignore"):  # a fit says what is too large
                    self._sums.add(Y[known])
                notes.append(frame.loc[known, self._label_names].copy())
                names.append(frame.index.astype(str).to_numpy()[known])
                done += len(frame)
                advance(len(frame))
        self._keep(notes, names, done)

    def _keep(self, notes: list[pd.DataFrame], names: list[Any], done: int) -> None:
        """Keep what was found; columns without any value take no part."""
        self.n_empty, self.n_rows = len(self._empty_rows), done - len(self._empty_rows)
        self.labels = {
            name: self._as_label(pd.concat([part[name] for part in notes], ignore_index=True))
            for name in self._label_names
        }
        if self.source.has_index:
            self.names = np.concatenate(names)
        empty = self._sums.count == 0
        self.left_out += [
            (name, "it has no value in any row") for name in np.array(self.columns)[empty]
        ]
        self.columns = [n for n, is_empty in zip(self.columns, empty, strict=True) if not is_empty]
        self._sums = self._sums.without(empty)
        self.has_names = not are_default(self.columns)

    def _frames(self, numbers: list[str]) -> Iterator[pd.DataFrame]:
        return self.source.chunks(
            max(1, CELLS_AT_A_TIME // max(1, len(self.source.columns))), numbers=numbers
        )

    def _check_finite(self, Y: FloatArray, done: int) -> None:
        if np.isinf(Y).any():
            row, column = np.argwhere(np.isinf(Y))[0]
            raise CommandError(
                f"{shown(self.source.path)} has infinite values, the first in column "
                f"'{self.columns[column]}' of row {done + row + 1}.",
                "Count them as missing with --missing inf --missing=-inf, or correct the table.",
            )

    def pieces(self) -> Iterator[Any]:
        """Yield the rows that have a value, with names of columns if they have some."""
        for frame in self._frames(self.columns):
            part = frame[self.columns]
            part = part[part.notna().any(axis=1)].reset_index(drop=True)
            yield part if self.has_names else part.to_numpy()

    # ---- as of a table in memory ----------------------------------------------------------------

    @property
    def table(self) -> Any:
        """What a model is fitted to."""
        return _Rows(self)

    @property
    def missing_share(self) -> float:
        """Share of cells that are missing."""
        return float(1 - self._sums.count.sum() / (self.n_rows * len(self.columns)))

    @property
    def constant(self) -> list[str]:
        """Columns with one value only."""
        return [name for name, s in zip(self.columns, self._sums.squares, strict=True) if s == 0]

    @property
    def spreads(self) -> pd.Series:
        """The standard deviations of the columns."""
        free = np.maximum(self._sums.count - 1, 1)
        return pd.Series(np.sqrt(self._sums.squares / free), index=self.columns)

    def row_in_file(self, row: int) -> int:
        """Return the number of a row in the file, from 1."""
        # Each empty row before it shifts it by one.
        empty = np.array(self._empty_rows, dtype=np.int64)
        return row + int((empty - np.arange(len(empty)) <= row).sum()) + 1

    def variance(self, model: TwoWayModel) -> float:
        """Return the mean squared distance of rows from their mean, in the units of a model."""
        scaled = self._sums.squares / np.square(getattr(model, "spread_", 1.0))
        return float(scaled.sum() / self.n_rows)


class _Rows:
    """The rows of a table in pieces, as often as wanted."""

    def __init__(self, table: LargeTable) -> None:
        self._table = table

    def __iter__(self) -> Iterator[Any]:
        return self._table.pieces()


class _Sums:
    """Counts, means and sums of squared deviations of columns, NaN left out."""

    def __init__(self, width: int) -> None:
        self.count, self.mean, self.squares = np.zeros(width), np.zeros(width), np.zeros(width)

    def add(self, Y: FloatArray) -> None:
        """Count rows."""
        there = ~np.isnan(Y)
        count = there.sum(axis=0)
        known = np.where(there, Y, 0.0)
        mean = known.sum(axis=0) / np.maximum(count, 1)
        squares = (np.where(there, Y - mean, 0.0) ** 2).sum(axis=0)
        total = np.maximum(self.count + count, 1)
        gap = np.where(count > 0, mean - self.mean, 0.0)
        self.squares = self.squares + squares + gap**2 * self.count * count / total
        self.mean = self.mean + gap * count / total
        self.count = self.count + count

    def without(self, left_out: Any) -> _Sums:
        """Return the sums of the other columns."""
        others = _Sums(0)
        others.count, others.mean = self.count[~left_out], self.mean[~left_out]
        others.squares = self.squares[~left_out]
        return others
