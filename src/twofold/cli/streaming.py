"""Rows of a table passing through a model, some thousand at a time, and how well it knows them.

A row's result does not depend on the other rows, so tables of any length go through in the memory
of one piece. A row without any value that the model knows gets missing results instead of ending
the command: after a million rows that would help nobody.

The share of variance explained is ``1 - sum ||y - f(g(y))||² / sum ||y - c||²`` over observed
cells, in the units of the model, where c is the centre of the rows the model was fitted to.

Of rows that a model was fitted to the errors say little about new rows. What says more is the error
the fit ended with, for which each row was reconstructed from the others (leave-one-out); as a share
of the variance it is ``objective / (sum_i w_i ||y_i - c||² / sum_i w_i)``, in the same units.
"""

from __future__ import annotations

import heapq
import warnings
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from twofold.checks.rows import RowError
from twofold.cli.arguments import check_output, check_streams, open_model, shown
from twofold.cli.columns import Match, feature_names, find_row_names, latent_names, match_columns
from twofold.cli.console import CommandError, Console, counted, listed
from twofold.cli.describing import is_left_out, is_squared_error, takes_gaps
from twofold.cli.mixed_columns import as_cells, rows_for, texts_of
from twofold.cli.mixed_filling import drawn_or_sure
from twofold.rowwise import center_and_spread
from twofold.tables.reading import open_table
from twofold.tables.writing import open_writer

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from twofold.array_types import BoolArray, FloatArray, IntArray
    from twofold.contract import TwoWayModel
    from twofold.mixed import Mixed
    from twofold.tables.dialect import Dialect
    from twofold.tables.reading import TableSource

# Small enough for a bar that moves, large enough that starting a projection costs nothing.
ROWS_AT_A_TIME = 4096
NUMBERS_AT_A_TIME = 8_000_000
WORST_ROWS = 5
DECIMALS = 6  # in units of a column's spread: scaling and back costs the last digits


@dataclass(frozen=True)
class Piece:
    """Some consecutive rows."""

    frame: pd.DataFrame  # all columns, the model's as numbers or as they are in the file
    Y: FloatArray  # (m, D) the model's columns in its order
    known: BoolArray  # (m,) rows with at least one value
    first: int  # number of the first row, counted from 1
    rows: pd.DataFrame | None = None  # (m, C) for a model of mixed columns, whose features are Y

    def ask(self, method: Callable[[Any], Any], model: TwoWayModel) -> Any:
        """Return what a method of a model says of the rows with values."""
        with warnings.catch_warnings():
            # It was told when the features were made.
            warnings.filterwarnings("ignore", ".*, and counted as missing")
            return method(self.taken_by(model))

    def taken_by(self, model: TwoWayModel) -> Any:
        """Return the rows with values as a model takes them."""
        if self.rows is not None:
            return self.rows[self.known]
        return as_rows(model, self.Y[self.known])

    def spread_out(self, found: pd.DataFrame) -> pd.DataFrame:
        """Return a table of the rows with values as one of all rows."""
        if self.known.all():
            return found
        places = found.set_axis(np.flatnonzero(self.known))
        return places.reindex(range(len(self.known))).set_axis(self.frame.index)

    def apply(self, model: TwoWayModel, method: Callable[[Any], FloatArray]) -> FloatArray:
        """Return a method's result for each row, NaN for rows without values."""
        if not self.known.any():
            return np.full(len(self.Y), np.nan)
        try:
            found = self.ask(method, model)
        except RowError as error:
            raise error.at(self.first + int(np.flatnonzero(self.known)[error.row])) from None
        result: FloatArray = np.full((len(self.Y), *found.shape[1:]), np.nan)
        result[self.known] = found
        return result


@dataclass(frozen=True)
class Stream:
    """A model, and a table to send through it."""

    console: Console
    model: TwoWayModel
    source: TableSource
    match: Match

    @property
    def mixed(self) -> Mixed | None:
        """The model if its columns are no numbers."""
        from twofold.mixed import Mixed

        return self.model if isinstance(self.model, Mixed) else None

    def pieces(self, *, to_fill: bool = False, as_written: bool = False) -> Iterator[Piece]:
        """Yield the rows in pieces, with progress.

        Those `to_fill` may have gaps that the model does not take. Frames of these and of those
        `as_written` are as the file has them.
        """
        n_columns = max(len(self.source.columns), 1)
        # A few rows of a wide table take as much memory as many of a narrow one.
        size = max(1, min(ROWS_AT_A_TIME, NUMBERS_AT_A_TIME // n_columns))
        needs_all = not to_fill and not takes_gaps(self.model)
        done = unknown = 0
        features = self.match.features
        mixed = self.mixed
        numbers = self.source.chunks(size, numbers=[] if mixed else features)
        # Read side by side, as numbers and as they are: both in the memory of one piece.
        pairs: Iterable[tuple[pd.DataFrame, pd.DataFrame]] = (
            zip(numbers, self.source.chunks(size), strict=True)
            if to_fill or (as_written and mixed is None)
            else ((frame, frame) for frame in numbers)
        )
        with self.console.counting_rows(self.source.expected_rows) as advance:
            for table, frame in pairs:
                rows = None if mixed is None else rows_for(mixed, table, self.source, done)
                if mixed is None:
                    Y = table[features].to_numpy(dtype=np.float64)
                else:
                    Y = mixed.features(rows)
                known = ~np.isnan(Y).all(axis=1)
                self._check(Y, known, done, needs_all)
                yield Piece(frame, Y, known, done + 1, rows)
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
        **how: bool,
    ) -> int:
        """Write what `make` makes of each piece, told how text is written; return how many rows."""
        with self.console.warnings_shown(), open_writer(output, like=self.source) as writer:
            for piece in self.pieces(**how):
                writer.write(make(piece, writer.dialect))
        for note in writer.notes:
            self.console.say(note)
        return writer.n_rows

    def _check(self, Y: FloatArray, known: BoolArray, done: int, needs_all: bool) -> None:
        """Raise for the first infinite value, and for the first gap where there must be none."""

        def place(is_bad: BoolArray) -> str:
            row, column = np.argwhere(is_bad)[0]
            names = self.match.features if self.mixed is None else self.mixed.feature_labels()
            return f"in column '{names[column]}' of row {done + row + 1}"

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
    """Open a model and a table that belongs to it; say which columns the model does not know."""
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
        has_names = getattr(getattr(model, "notes_", None), "names", None) is not None
        if finds_names and has_names and not source.has_index:
            console.say("rows without names; --index COL takes a column for them")
    return Stream(console, model, source, match)


def as_rows(model: TwoWayModel, Y: FloatArray) -> Any:
    """Return rows as a model wants them: with names if it was fitted to names."""
    names = feature_names(model)
    return Y if names is None else pd.DataFrame(Y, columns=names)


def free_name(name: str, taken: list[str]) -> str:
    """Return a column name that is not taken."""
    while name in taken:
        name += "_"
    return name


# ---- results of rows ----------------------------------------------------------------------------


def placed(
    stream: Stream, piece: Piece, with_error: bool, with_density: bool
) -> tuple[pd.DataFrame, int]:
    """Return rows on the map as a table, and how many of them lie outside the domain."""
    model, labels = stream.model, stream.match.labels
    q = model.embedding_.shape[1]
    X = piece.apply(model, model.transform)
    if X.ndim == 1:  # no row of the piece has a value
        X = np.full((len(piece.Y), q), np.nan)
    names = latent_names(model, [str(piece.frame.index.name)])
    columns: dict[str, Any] = dict(zip(names, X.T, strict=True))
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


def with_gaps_filled(
    stream: Stream, piece: Piece, whole: FloatArray, written: Dialect | None
) -> pd.DataFrame:
    """Return a piece of the table with ``whole`` (m, D) where cells are missing."""
    # All other cells stay what they are: in a text their characters (127.0, not 127), elsewhere the
    # type of their column. Only where a text goes into a file that writes numbers otherwise do they
    # have to be numbers.
    source, frame = stream.source, piece.frame
    gaps = np.isnan(piece.Y) & ~np.isnan(whole)
    kept = np.where(np.isnan(piece.Y), whole, piece.Y)
    keeps_text = source.dialect and written and source.dialect.decimal == written.decimal
    columns = dict(frame.items())
    for k, name in enumerate(stream.match.features):
        numbers, gap = pd.Series(kept[:, k], index=frame.index), gaps[:, k]
        dtype = frame[name].dtype
        # Whether whole numbers or truth values can have missing cells, in this piece or another.
        may_have_gaps = not isinstance(dtype, np.dtype) or bool(source.rules.numbers)
        if keeps_text and written is not None:
            cells = frame[name].to_numpy(dtype=object, copy=True)
            if gap.any():
                cells[gap] = texts_of(numbers[gap], frame[name], source.rules, written)
            columns[name] = cells
        elif dtype in (np.dtype("f2"), np.dtype("f4")):
            columns[name] = numbers.astype(dtype)
        elif dtype.kind not in "iub" or may_have_gaps:
            columns[name] = numbers
    return pd.DataFrame(columns, index=frame.index)[list(source.columns)]


def denoised_table(
    stream: Stream, piece: Piece, reconstruct: Callable[[Any], Any], written: Dialect | None
) -> pd.DataFrame:
    """Return a piece of a table as the map sees it, written as the cells of the file are."""
    frame, features = piece.frame, stream.match.features
    if piece.rows is None:
        Y = piece.apply(stream.model, reconstruct) if piece.known.any() else piece.Y
        made = pd.DataFrame(Y, columns=features, index=frame.index)
    elif piece.known.any():
        made = piece.spread_out(piece.ask(reconstruct, stream.model))[list(piece.rows)]
    else:
        return frame
    columns = dict(frame.items())
    for name in made:
        columns[name] = as_cells(made[name], frame[name], stream.source, written)
    return pd.DataFrame(columns, index=frame.index)[list(stream.source.columns)]


class Filling:
    """Gaps filled, with intervals at a level, or in several draws."""

    def __init__(self, stream: Stream, level: float | None, draws: int | None, seed: int) -> None:
        self._stream, self._level, self._draws = stream, level, draws
        self._random = np.random.RandomState(seed)
        if level is not None or draws is not None:
            check_noise(stream.model)

    def fill(self, piece: Piece, written: Dialect | None) -> tuple[pd.DataFrame, IntArray]:
        """Return a piece with its gaps filled, and how many there were in each column."""
        if self._stream.mixed is not None:
            return self._filled_cells(self._stream.mixed, piece, written)
        model, none = self._stream.model, np.zeros(piece.Y.shape[1], dtype=int)
        if self._draws is not None:
            tables = self._drawn(piece)
            frames = [with_gaps_filled(self._stream, piece, whole, written) for whole in tables]
            return _numbered(frames), (np.isnan(piece.Y) & ~np.isnan(tables[0])).sum(axis=0)
        if not piece.known.any():
            found = with_gaps_filled(self._stream, piece, piece.Y, written)
            return self._with_intervals(found, piece), none
        whole = piece.apply(model, model.complete)
        found = with_gaps_filled(self._stream, piece, whole, written)
        gaps = (np.isnan(piece.Y) & ~np.isnan(whole)).sum(axis=0)
        return self._with_intervals(found, piece), gaps

    def _filled_cells(
        self, model: Mixed, piece: Piece, written: Dialect | None
    ) -> tuple[pd.DataFrame, IntArray]:
        """Return a piece of a mixed table with its gaps filled, and how many there were."""
        wanted = (self._level, self._draws, self._random)
        frames, counts, sure = drawn_or_sure(self._stream, model, piece, written, wanted)
        found = frames[0] if self._draws is None else _numbered(frames)
        beside = {free_name(name, list(found.columns)): values for name, values in sure.items()}
        found = pd.concat([found, pd.DataFrame(beside, index=piece.frame.index)], axis=1)
        return found, np.array([counts.get(name, 0) for name in self._stream.match.features])

    def _drawn(self, piece: Piece) -> FloatArray:
        """Return the draws (draws, m, D) of a piece; rows without values stay empty."""
        tables = np.repeat(piece.Y[None], self._draws or 1, axis=0)
        if piece.known.any():

            def draw(rows: Any) -> FloatArray:
                found = self._stream.model.complete(
                    rows, n_draws=self._draws, random_state=self._random
                )
                return np.moveaxis(found, 0, 1)

            tables = np.moveaxis(piece.apply(self._stream.model, draw), 1, 0)
        return tables

    def _with_intervals(self, found: pd.DataFrame, piece: Piece) -> pd.DataFrame:
        if self._level is None:
            return found
        ends = np.full((2, *piece.Y.shape), np.nan)
        if piece.known.any():

            def both(rows: Any) -> FloatArray:
                return self._stream.model._gap_intervals(rows, self._level or 0)

            ends = np.moveaxis(piece.apply(self._stream.model, both), 1, 0)
        columns: dict[str, FloatArray] = {}
        for k, name in enumerate(self._stream.match.features):
            columns[free_name(f"{name}_low", list(found.columns))] = ends[0, :, k]
            columns[free_name(f"{name}_high", list(found.columns))] = ends[1, :, k]
        return pd.concat([found, pd.DataFrame(columns, index=found.index)], axis=1)


def _numbered(frames: list[pd.DataFrame]) -> pd.DataFrame:
    """Return draws as one table, with their numbers in a column."""
    name = free_name("draw", list(frames[0].columns))
    return pd.concat([frame.assign(**{name: k}) for k, frame in enumerate(frames, start=1)])


def check_noise(model: TwoWayModel) -> None:
    """Raise unless the model knows what it leaves open."""
    if not model.has_noise():
        raise CommandError(
            "The model keeps none of the rows it was fitted to, so nothing is known about what it "
            "leaves open.",
            "Fit it again, to rows.",
        )


def odd_columns(stream: Stream, piece: Piece) -> dict[str, Any]:
    """Return p-values of rows, and which column stands out, its expected value and by how much.

    What is expected of a category or a date is text.
    """
    model, mixed = stream.model, stream.mixed
    columns = stream.match.features if mixed is None else [c.name for c in mixed.columns_]
    m = len(piece.Y)
    names, deviations = np.full(m, "", dtype=object), np.full(m, np.nan)
    expected = np.full(m, np.nan, dtype=float if mixed is None else object)
    p = piece.apply(model, model.p_values)
    if piece.known.any():
        why = piece.ask(model.explain, model)
        values = why.expected if mixed is None else _plain_values(why.expected[columns])
        for i, row in enumerate(np.flatnonzero(piece.known)):
            most = int(why.features(i, 1)[0])
            names[row], expected[row] = columns[most], values[i, most]
            deviations[row] = why.deviations[i, most]
    return {"p_value": p, "stands_out": names, "expected": expected, "deviations": deviations}


def _plain_values(table: pd.DataFrame) -> NDArray[Any]:
    """Return the values of a mixed table as numbers and text."""
    found = np.empty(table.shape, dtype=object)
    for k, name in enumerate(table):
        values = table[name]
        is_number = pd.api.types.is_numeric_dtype(values)
        found[:, k] = values.astype(float) if is_number else values.astype(str)
    return found


# ---- errors of rows -----------------------------------------------------------------------------


class Tally:
    """Sums of errors, the rows with the largest ones, and how many rows are the model's own."""

    def __init__(self, model: TwoWayModel) -> None:
        self._model = model
        if hasattr(model, "spread_"):
            self._center, self._spread = model.center_, model.spread_
        else:
            self._center, _ = center_and_spread("standard", model.data_, model.weights_)
            self._spread = 1.0
        # Landmarks stand for rows but are none.
        self._known = set() if (model.member_ < 0).all() else set(self._keys(model.data_))
        self._worst: list[tuple[tuple[float, float], int, str, dict[str, Any]]] = []
        self._n_rows = self._n_cells = self._n_own = 0
        self._error = self._variation = 0.0

    def add(self, piece: Piece, errors: FloatArray, reasons: dict[str, Any]) -> None:
        """Count rows with their squared errors (m,), NaN where a row has no values.

        ``reasons`` are what :func:`odd_columns` says of them, if it was asked: then the rows that
        are listed are the least likely ones, else those with the largest errors.
        """
        deviations = (piece.Y - self._center) / self._spread
        self._variation += float(np.nansum(deviations**2))
        self._error += float(np.nansum(errors))
        self._n_rows += int(piece.known.sum())
        self._n_cells += int((~np.isnan(piece.Y)).sum())
        if self._known:
            self._n_own += sum(key in self._known for key in self._keys(piece.Y[piece.known]))
        names = piece.frame.index
        is_named = names.dtype.kind not in "iu"
        p = reasons.get("p_value", np.zeros(len(errors)))
        for k in np.lexsort((-errors, p))[:WORST_ROWS]:  # NaN sorts last
            if not np.isnan(errors[k]):
                number = piece.first + int(k)
                name = str(names[k]) if is_named else f"row {number}"
                about = {key: values[k] for key, values in reasons.items()}
                self._worst.append(((-float(p[k]), float(errors[k])), number, name, about))
        self._worst = heapq.nlargest(WORST_ROWS, self._worst, key=lambda one: one[:2])

    def facts(self) -> dict[str, Any]:
        """Return the figures."""
        worst = [
            {"row": row, "name": name, "error": error, **about}
            for (_, error), row, name, about in self._worst
        ]
        return {
            "rows": self._n_rows,
            "mean_squared_error": self._error / max(self._n_cells, 1),
            "mean_error_of_a_row": self._error / max(self._n_rows, 1),
            "variance_explained": 1 - self._error / self._variation if self._variation else None,
            "worst_rows": worst,
            "rows_of_the_model": self._n_own,
            "leave_one_out_error_share": self._left_out_share() if self._n_own else None,
        }

    def lines(self) -> list[str]:
        """Return the figures in words."""
        facts = self.facts()
        share = facts["variance_explained"]
        explained = "unknown: the rows do not vary" if share is None else f"{100 * share:.4g} %"
        lines = [
            f"rows                 {facts['rows']:,}",
            f"mean squared error   {facts['mean_squared_error']:.6g}",
            f"variance explained   {explained}",
        ]
        if self._worst:
            width = max(len(name) for *_, name, _ in self._worst)
            lines.append("least likely rows:" if self._worst[0][3] else "worst rows:")
            lines += [
                f"  {name:<{width}}  {error:.6g}{_reason_in_words(about)}"
                for (_, error), _, name, about in self._worst
            ]
        return lines

    def about_own_rows(self) -> str:
        """Say how many rows are the model's own, and what that means; "" if none is."""
        if not self._n_own:
            return ""
        verb, share = "is" if self._n_own == 1 else "are", self._left_out_share()
        words = f"{self._n_own:,} of {counted(self._n_rows, 'row')} {verb} the model's own"
        if share is None:
            return f"{words}: new rows may have larger errors"
        return f"{words}; leave-one-out error {100 * share:.3g} % of the variance"

    def _left_out_share(self) -> float | None:
        """Return the leave-one-out error as a share of the variance, None if it is not known."""
        if not is_squared_error(self._model) or not is_left_out(self._model):
            return None
        variance = variance_of_rows(self._model)
        return float(self._model.objective_) / variance if variance else None

    def _keys(self, Y: FloatArray) -> list[bytes]:
        """Return for each row bytes that only equal rows share."""
        rounded = np.round((Y - self._center) / self._spread, DECIMALS) + 0.0  # no negative zero
        return [row.tobytes() for row in np.where(np.isnan(rounded), np.nan, rounded)]


def _reason_in_words(about: dict[str, Any]) -> str:
    """Return how likely a row is and what stands out, "" if that was not asked."""
    if not about:
        return ""
    name, expected, size = about["stands_out"], about["expected"], abs(about["deviations"])
    if isinstance(expected, str):
        return f"  p = {about['p_value']:.3g}: '{name}' is {size:.3g} deviations from {expected}"
    side = "above" if about["deviations"] > 0 else "below"
    return f"  p = {about['p_value']:.3g}: '{name}' is {size:.3g} deviations {side} {expected:.4g}"


def variance_of_rows(model: TwoWayModel, table: FloatArray | None = None) -> float:
    """Return the mean squared distance of rows from their mean, in the units of a model."""
    # Rows are those that its error counts: its own, with what it filled before the fit, or the
    # `table` that was given for a model whose rows are only landmarks.
    description = model.kernel_regression()
    rows: FloatArray = model.data_ if description is None else description.data
    weights: FloatArray = model.weights_
    if table is not None and (model.member_ < 0).all():
        rows, weights = table, np.ones(len(table))
    mean, _ = center_and_spread("standard", rows, weights)
    deviations = (rows - mean) / getattr(model, "spread_", 1.0)
    return float(weights @ np.nansum(deviations**2, axis=1) / weights.sum())
