"""Gaps of mixed tables filled: once, with intervals and probabilities, or in several draws."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from twofold.cli.mixed_columns import are_texts, in_type_of, texts_of

if TYPE_CHECKING:
    from twofold.cli.streaming import Piece, Stream
    from twofold.mixed import Mixed
    from twofold.tables.dialect import Dialect


def with_cells_filled(
    stream: Stream, piece: Piece, made: pd.DataFrame | None, written: Dialect | None
) -> tuple[pd.DataFrame, dict[str, int]]:
    """Return a piece with its gaps as they are in ``made``, and how many were in each column."""
    frame, rows = piece.frame, piece.rows
    if rows is None or made is None:
        return frame, {}
    counts: dict[str, int] = {}
    columns = dict(frame.items())
    for name in rows:
        gaps = rows[name].isna().to_numpy() & piece.known
        counts[str(name)] = int(gaps.sum())
        if not gaps.any():
            continue
        if isinstance(frame[name].dtype, pd.CategoricalDtype):
            columns[name] = made[name]  # may have levels that the file has not
        elif are_texts(frame[name], stream.source):
            cells = frame[name].to_numpy(dtype=object, copy=True)
            cells[gaps] = texts_of(made[name][gaps], frame[name], stream.source.rules, written)
            columns[name] = cells
        else:
            columns[name] = in_type_of(made[name], frame[name]).where(piece.known, frame[name])
    return pd.DataFrame(columns, index=frame.index)[list(stream.source.columns)], counts


def drawn_tables(model: Mixed, piece: Piece, draws: int, random: Any) -> list[pd.DataFrame]:
    """Return tables of a piece, each with its gaps drawn as the noise leaves them open."""

    def draw(rows: pd.DataFrame) -> Any:
        return model.complete(rows, n_draws=draws, random_state=random)

    return [piece.spread_out(table) for table in piece.ask(draw, model)]


def how_sure(model: Mixed, piece: Piece, level: float) -> dict[str, pd.Series]:
    """Return, for gaps alone, both ends of numbers and dates, and how likely filled levels are."""
    rows = piece.rows
    assert rows is not None
    found: dict[str, pd.Series] = {}
    if not piece.known.any():
        return found
    low, high = piece.ask(lambda given: model.intervals(given, level), model)
    _, chances = piece.ask(lambda given: model.complete(given, return_probabilities=True), model)
    ends = piece.spread_out(low), piece.spread_out(high)
    for column in model.columns_:
        if column.name not in rows or not column.features:
            continue
        gaps = rows[column.name].isna().to_numpy()
        if column.name in chances:
            likely = piece.spread_out(chances[column.name]).max(axis=1)
            found[f"{column.name}_probability"] = likely.where(gaps)
        else:
            for part, end in zip(("low", "high"), ends, strict=True):
                found[f"{column.name}_{part}"] = end[column.name].where(gaps)
    return {name: values.set_axis(piece.frame.index) for name, values in found.items()}


def drawn_or_sure(
    stream: Stream,
    model: Mixed,
    piece: Piece,
    written: Dialect | None,
    wanted: tuple[float | None, int | None, np.random.RandomState],
) -> tuple[list[pd.DataFrame], dict[str, int], dict[str, pd.Series]]:
    """Return filled tables, one or several draws, the counts of gaps, and how sure they are."""
    level, draws, random = wanted
    if not piece.known.any():
        return [piece.frame] * (draws or 1), {}, {}
    if draws is not None:
        made = drawn_tables(model, piece, draws, random)
    else:
        made = [piece.spread_out(piece.ask(model.complete, model))]
    pairs = [with_cells_filled(stream, piece, table, written) for table in made]
    sure = {} if level is None else how_sure(model, piece, level)
    return [frame for frame, _ in pairs], pairs[0][1], sure
