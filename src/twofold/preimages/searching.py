"""Where a descent starts, and what it is held against in the end.

A point with a start of its own goes down from there; if it ends farther off than the row whose
feature is nearest, it goes on from that row. Without one it goes down from the weighted mean of the
rows and from the nearest row, and the lower end is kept. So no row is ever nearer than the
pre-image found.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from twofold.array_types import FloatArray, IntArray
from twofold.preimages.criteria import Criterion, Look
from twofold.preimages.descent import Descent
from twofold.preimages.points import FeaturePoints, PreImages
from twofold.rowwise import weighted_sums


class Ends(NamedTuple):
    """Where descents of n points ended."""

    Z: FloatArray
    value: FloatArray
    status: IntArray
    n_iter: IntArray


def search(
    criterion: Criterion,
    target: FeaturePoints,
    *,
    memory: int,
    tol: float,
    max_iter: int,
    restart: bool = True,
) -> PreImages:
    """Return the ends of descents of a criterion from the start of each point.

    Parameters
    ----------
    criterion : Criterion
        What to minimise.
    target : FeaturePoints
        The points; `start` counts where it is given and within reach of the kernel.
    memory, tol, max_iter
        As in `Descent`.
    restart : bool
        Whether the nearest row is a second start: for points without a start, and for those that
        end farther off than it.
    """
    target = target.with_products()
    row_start = target.rows[target.distances_to_rows().argmin(axis=1)]
    start = target.start
    if start is None:
        start = weighted_sums(target.alpha, target.rows)
    settings = memory, tol, max_iter
    if target.start is None and restart:
        found: Ends | Descent = _from_two_starts(criterion, start, row_start, *settings)
    else:
        found = Descent(criterion, start, *settings, row_start).run()
        if restart:
            row_value = criterion.look(row_start, np.arange(len(row_start))).value
            again = np.flatnonzero(~(found.value <= row_value))
            _go_on(criterion, found, again, row_start[again])
    return PreImages(found.Z, found.status, found.n_iter, target.distances_to(found.Z))


def _from_two_starts(
    criterion: Criterion,
    start: FloatArray,
    other: FloatArray,
    memory: int,
    tol: float,
    max_iter: int,
) -> Ends:
    """Return the lower ends of descents from both starts, which go down side by side."""
    n = len(start)
    both = Descent(
        _Chosen(criterion, np.tile(np.arange(n), 2)),
        np.concatenate([start, other]),
        memory,
        tol,
        max_iter,
        np.concatenate([other, other]),
    ).run()
    place = np.arange(n) + n * ~(both.value[:n] <= both.value[n:])
    n_iter = both.n_iter[:n] + both.n_iter[n:]
    return Ends(both.Z[place], both.value[place], both.status[place], n_iter)


def _go_on(criterion: Criterion, found: Descent, chosen: IntArray, start: FloatArray) -> None:
    """Replace chosen ends by those of descents from other starts where these are lower."""
    if not len(chosen):
        return
    again = Descent(
        _Chosen(criterion, chosen), start, found.memory, found.tol, found.max_iter
    ).run()
    better = ~(found.value[chosen] <= again.value)
    place = chosen[better]
    found.Z[place], found.value[place] = again.Z[better], again.value[better]
    found.status[place] = again.status[better]
    found.n_iter[chosen] += again.n_iter


class _Chosen(Criterion):
    """A criterion of some of its points."""

    def __init__(self, criterion: Criterion, chosen: IntArray) -> None:
        self.criterion, self.chosen = criterion, chosen
        self.length, self.longest = criterion.length, criterion.longest
        self.n_threads = criterion.n_threads

    def look_at_tile(self, Z: FloatArray, which: IntArray) -> Look:
        """Return the criterion of at most ``TILE`` rows."""
        return self.criterion.look_at_tile(Z, self.chosen[which])
