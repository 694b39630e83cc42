"""Places on the map as people name them: by coordinates, by rows, as a grid, at random."""

from __future__ import annotations

import difflib
import itertools
from typing import TYPE_CHECKING

import numpy as np

from twofold.cli.console import CommandError, UsageError, counted, listed

if TYPE_CHECKING:
    from twofold.array_types import FloatArray
    from twofold.contract import TwoWayModel


def parse_place(text: str, model: TwoWayModel, option: str) -> FloatArray:
    """Return the latent point (q,) that text such as ``0.1,-2`` says."""
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


def find_place(text: str, model: TwoWayModel, option: str = "--path") -> FloatArray:
    """Return the latent point of a row or of a place.

    Rows with names go by them, so that ``12`` is never the 12th of rows called 0, 1, 2, ...;
    ``#12`` is. Rows without names go by their numbers from 1.
    """
    notes = getattr(model, "notes_", None)
    names = None if notes is None else notes.names
    n = len(model.embedding_)
    if names is not None:
        rows = np.flatnonzero(names == text)
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
        return parse_place(text, model, option)
    raise CommandError(f"In the model no row is called '{text}'.", _names_like(text, names, n))


def straight_way(model: TwoWayModel, start: str, stop: str, steps: int) -> FloatArray:
    """Return places (steps, q) on the straight way between two rows or places."""
    ends = find_place(start, model), find_place(stop, model)
    t = np.linspace(0, 1, steps)[:, None]
    return (1 - t) * ends[0] + t * ends[1]


def even_grid(model: TwoWayModel, n: int, in_domain: bool, most: int) -> FloatArray:
    """Return n places along each axis of the box around the map, the last axis fastest."""
    q = model.embedding_.shape[1]
    if n**q > most:
        raise UsageError(
            f"--grid {n} means {n**q:,} places in {q} dimensions, more than the {most:,} allowed.",
            f"At most --grid {int(most ** (1 / q))}.",
        )
    low, high = model.embedding_.min(axis=0), model.embedding_.max(axis=0)
    axes = [np.linspace(low[m], high[m], n) for m in range(q)]
    X = np.array(list(itertools.product(*axes)))
    if in_domain:
        X = X[model.in_domain(X)]
        if not len(X):
            raise CommandError(
                "No place of the grid lies where data supports the map.", "Raise --grid."
            )
    return X


def _names_like(text: str, names: object, n: int) -> str:
    if names is None:
        return f"Its rows have no names; use a number from 1 to {n:,}, or a place such as 0.1,0.2."
    known = [str(name) for name in np.asarray(names)]
    close = difflib.get_close_matches(text, known, n=3)
    hint = f"Did you mean {listed(close)}?" if close else f"The first rows are {listed(known, 5)}."
    is_number = text.isdecimal() and 1 <= int(text) <= n
    return f"{hint} '#{text}' is the row with that number, counted from 1." if is_number else hint
