"""Where a descent starts, and what it is held against in the end.

A point with a start of its own goes down from there; if it ends farther off than the row whose
feature is nearest, it goes on from that row. Without one it goes down from the weighted mean of the
rows and from the nearest row, and the lower end is kept. So no row is ever nearer than the
pre-image found.
"""

from __future__ import annotations

import numpy as np

from twofold.array_types import FloatArray, IntArray
from twofold.preimages.criteria import Criterion, Look
from twofold.preimages.descent import Descent
from twofold.preimages.points import FeaturePoints, PreImages
from twofold.preimages.tiles import weighted_sums


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
    row_value = criterion.look(row_start, np.arange(len(row_start))).value
    start = target.start
    if start is None:
        start = weighted_sums(target.alpha, target.rows)
    found = Descent(criterion, start, memory, tol, max_iter, row_start).run()
    if restart:
        is_settled = (found.value <= row_value) & (target.start is not None)
        again = np.flatnonzero(~is_settled)
        _go_on(criterion, found, again, row_start[again])
    return PreImages(found.Z, found.status, found.n_iter, target.distances_to(found.Z))


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
        self.length, self.n_threads = criterion.length, criterion.n_threads

    def look_at_tile(self, Z: FloatArray, which: IntArray) -> Look:
        """Return the criterion of at most ``TILE`` rows."""
        return self.criterion.look_at_tile(Z, self.chosen[which])
