"""Pre-images that strayed: the search came to an end, but far from every training row.

Coordinates made of Gaussians vanish far away, so a criterion that counts coordinates alone can
have its minimum where there is no data at all (more often the more columns the rows have). Such an
end is none: its status says so. A row strayed if its nearest training row is farther off than it
was at the start, and more than twice as far as training rows are from their tenth neighbour (the
scale of neighbourhoods throughout Arias 2007).
"""

from __future__ import annotations

import numpy as np

from twofold.array_types import FloatArray, IntArray
from twofold.preimages.points import FeaturePoints, Status
from twofold.rowwise import blocks, row_products

_FAR = 2.0
_NEIGHBOR = 10
# But for the loneliest training rows, and told from some of them.
_USUAL = 0.95
_SAMPLE = 500


def mark_strayed(target: FeaturePoints, start: FloatArray, Z: FloatArray, status: IntArray) -> None:
    """Set the status of rows Z (n, D) that strayed from the data; `start` is where they began."""
    reach = _FAR * _usual_distance(target.rows)
    ended = np.flatnonzero(status < Status.OFF_LEVEL)
    distance = _neighbor_distances(Z[ended], target.rows, 1)
    far = distance > reach
    far[far] &= distance[far] > _neighbor_distances(start[ended[far]], target.rows, 1)
    status[ended[far]] = Status.OUT_OF_REACH


def _usual_distance(rows: FloatArray) -> float:
    """Return how far training rows lie from their tenth neighbour."""
    some = np.unique(np.linspace(0, len(rows) - 1, min(len(rows), _SAMPLE)).astype(int))
    # Each finds itself first.
    number = min(_NEIGHBOR + 1, len(rows))
    return float(np.quantile(_neighbor_distances(rows[some], rows, number), _USUAL))


def _neighbor_distances(Z: FloatArray, rows: FloatArray, number: int) -> FloatArray:
    """Return the distance (n,) of each of Z to the row that is its neighbour of that number."""
    centre = rows.mean(axis=0)  # differences of large squares lose digits
    A, B = Z - centre, rows - centre
    squares = np.einsum("md,md->m", B, B)
    gap = np.einsum("nd,nd->n", A, A)
    for block in blocks(len(Z), len(rows)):
        gaps = squares - 2 * row_products(A[block], B)
        gap[block] += np.partition(gaps, number - 1, axis=1)[:, number - 1]
    return np.sqrt(np.maximum(gap, 0))
