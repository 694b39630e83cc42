"""Latent points sorted into square cells, so that near neighbours are found without a search.

The first up to three latent dimensions are cut into cells of one width. Points are kept in the
order of their cells, so the cells beside each other along the last gridded dimension are one
contiguous *run* of points, and a ball around any place is covered by a few runs.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from twofold.array_types import FloatArray, IntArray
from twofold.checks.rows import check_finite_points
from twofold.compiled import compiled

GRIDDED = 3


class CellGrid(NamedTuple):
    """Points in cell order: ``points[:, i]`` is row ``order[i]`` of the array it was built from.

    Attributes
    ----------
    points : (q, n) coordinates, transposed so that loops over points are contiguous
    order : (n,) row of the original array
    starts : (cells + 1,) first point of each cell
    shape : (3,) cells along each gridded dimension, 1 where there is none
    origin : (3,) lower corner
    width : side of a cell
    """

    points: FloatArray
    order: IntArray
    starts: IntArray
    shape: IntArray
    origin: FloatArray
    width: float


def build_grid(X: FloatArray, radius: float) -> CellGrid:
    """Sort points into cells of half the ``radius`` that will be looked for around them.

    A grid never has more than about two cells a point: stray points far away make the cells wider,
    not the grid larger.
    """
    n, q = X.shape
    check_finite_points(X)
    gridded = min(q, GRIDDED) if q <= GRIDDED and np.isfinite(radius) else 0
    shape, origin, width = np.ones(GRIDDED, dtype=np.int64), np.zeros(GRIDDED), 1.0
    if gridded:
        low, high = X.min(axis=0).astype(float), X.max(axis=0).astype(float)
        _check_extent(low, high)
        width = _cell_width(high - low, 0.5 * radius, limit=2 * n + 64)
        # The last gridded dimension is the contiguous one, so dimensions fill from the back.
        shape[-gridded:] = np.floor((high - low) / width).astype(np.int64) + 1
        origin[-gridded:] = low
    cells = _cell_of_points(np.ascontiguousarray(X), gridded, shape, origin, width)
    order, starts = _sort_by_cell(cells, int(shape.prod()))
    return CellGrid(np.ascontiguousarray(X[order].T), order, starts, shape, origin, width)


def _check_extent(low: FloatArray, high: FloatArray) -> None:
    with np.errstate(over="ignore"):
        if not np.isfinite(high - low).all():
            raise ValueError(
                f"Latent points go from {low} to {high}, which is farther than numbers go; divide "
                "the data by a number of their size."
            )


def _cell_width(extent: FloatArray, width: float, limit: int) -> float:
    width = max(width, np.finfo(float).tiny)
    with np.errstate(over="ignore"):  # too many to count is more than the limit
        while np.prod(np.floor(extent / width) + 1.0) > limit:
            width *= 1.25
    return float(width)


@compiled
def _cell_of_points(
    X: FloatArray, gridded: int, shape: IntArray, origin: FloatArray, width: float
) -> IntArray:
    n = X.shape[0]
    cells = np.zeros(n, dtype=np.int64)
    for i in range(n):
        cell = 0
        for m in range(gridded):
            axis = 3 - gridded + m
            step = min(max((X[i, m] - origin[axis]) / width, 0.0), float(shape[axis] - 1))
            cell = cell * shape[axis] + int(step)
        cells[i] = cell
    return cells


@compiled
def _sort_by_cell(cells: IntArray, n_cells: int) -> tuple[IntArray, IntArray]:
    starts = np.zeros(n_cells + 1, dtype=np.int64)
    for cell in cells:
        starts[cell + 1] += 1
    for c in range(n_cells):
        starts[c + 1] += starts[c]
    place = starts[:-1].copy()
    order = np.empty(cells.size, dtype=np.int64)
    for i in range(cells.size):
        order[place[cells[i]]] = i
        place[cells[i]] += 1
    return order, starts


@compiled
def find_cell_span(
    x: FloatArray,
    radius: float,
    shape: IntArray,
    origin: FloatArray,
    width: float,
    span: IntArray,
) -> None:
    """Write the first and the last cell that a ball touches, axis by axis, into ``span`` (6,).

    Coordinates of x must be finite: there is no cell for NaN.
    """
    for axis in range(3):
        last = shape[axis] - 1
        m = x.shape[0] - 3 + axis
        low, high = 0.0, float(last)
        if last > 0 and m >= 0:
            # Clamped as floats: a place far outside has no cell number that fits an integer.
            low = min(max((x[m] - radius - origin[axis]) / width, 0.0), high)
            high = min(max((x[m] + radius - origin[axis]) / width, 0.0), high)
        span[2 * axis] = int(low)
        span[2 * axis + 1] = int(high)
