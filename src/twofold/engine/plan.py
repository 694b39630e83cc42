"""Which back end runs the sums: decided from sizes, kernel and where the points lie, and said.

Costs are counted in pairs visited through a list, which take about as long as eight pairs of a
matrix product. So lists pay as soon as fewer than an eighth of all pairs are within reach. Local
polynomials cost far more a pair than either, and pay for every pair that is left out.

Above three dimensions most points that are looked at are not within reach, and to find that out
costs a distance each. Share of the pairs within reach, and ms of CPU time that an evaluation takes
over all pairs and over lists, at points of fits to 36 principal components of 1,500 digits and to
50 of MNIST (``cutoff`` 1e-6, float32):

======== ======== ======== ========= =====
rows     q        in reach all pairs lists
======== ======== ======== ========= =====
1,500    4, end   1.3 %    10        3
1,500    8, end   3.3 %    12        8
1,500    16, end  5.4 %    14        13
5,000    5, start 1.3 %    131       15
5,000    8, start 6.6 %    144       116
5,000    8, end   1.4 %    154       56
10,000   8, end   0.8 %    622       168
======== ======== ======== ========= =====

A grid of nodes costs the same however many points are within reach: a fixed amount for each node
that a point is spread to and read from, and another for each node of the grid. Its sums are only
good to a few times the cutoff, so it has to be twice as fast as an exact sum.
"""

import logging
import math
from dataclasses import dataclass

import numpy as np

from twofold.array_types import FloatArray
from twofold.engine.cells import GRIDDED, CellGrid, candidates_of, corners, grid_for
from twofold.engine.grid import AXES, NODES, count_nodes, spacing_for
from twofold.kernels import Kernel

logger = logging.getLogger(__name__)

PAIR_COST_RATIO = 8
# Of a coordinate of a distance that is taken to find pairs, in pairs of a list.
FINDING_COST = 1 / 250
# Of cells in more than three dimensions before the first pair, likewise.
FIRST_COST = 40_000
# Of a grid, in pairs of a list: a node around a point, and an axis of a node.
SPREAD_COST, NODE_COST, GRID_GAIN = 4, 24, 2
SAMPLED_QUERIES = 256
# References around a query, for each node that it is read from, from which on nodes are quicker.
CROWDED = 3
# Fewer rows than this are done before a grid is built.
SMALL_PROBLEM = 200
# Of fewer rows than this exact sums are quick enough.
MANY = 2_000


@dataclass(frozen=True)
class Plan:
    """The back end for one problem, and why."""

    backend: str
    reason: str


def plan(
    references: FloatArray,
    kernel: Kernel,
    cutoff: float,
    grid: CellGrid | None = None,
    *,
    is_local: bool = False,
    queries: FloatArray | None = None,
) -> Plan:
    """Choose a back end for sums over ``references`` at ``queries``, the references if None.

    ``grid`` is the references' grid, where it is already there; ``is_local`` says whether local
    polynomials are fitted.
    """
    n, q = references.shape
    if n < SMALL_PROBLEM:
        choice = Plan("cpu_dense", f"n = {n} is small")
    else:
        grid = grid_for(references, kernel, cutoff) if grid is None else grid
        share = share_within_reach(grid, kernel, cutoff)
        n_queries = n if queries is None else len(queries)
        costs = {
            "cpu_dense": n_queries * n / (1 if is_local else PAIR_COST_RATIO),
            "cpu_cells": n_queries * n * share,
        }
        if q > GRIDDED:
            costs["cpu_cells"] += FINDING_COST * q * n_queries * _candidates(grid) + FIRST_COST
        if n >= MANY and q <= AXES and kernel.is_exponential and not is_local:
            costs["cpu_grid"] = GRID_GAIN * _cost_on_nodes(references, queries, kernel, cutoff)
        choice = Plan(
            min(costs, key=costs.__getitem__), f"{share:.1%} of all pairs are within reach"
        )
    logger.debug("back end %s: %s", choice.backend, choice.reason)
    return choice


def _cost_on_nodes(
    references: FloatArray, queries: FloatArray | None, kernel: Kernel, cutoff: float
) -> float:
    (n, q), queries = references.shape, references if queries is None else queries
    low, high = corners(references)
    if queries is not references:
        own_low, own_high = corners(queries)
        low, high = np.minimum(low, own_low), np.maximum(high, own_high)
    nodes = count_nodes(low, high, spacing_for(kernel, cutoff))
    return SPREAD_COST * NODES**q * (n + len(queries)) / 2 + NODE_COST * q * nodes


def share_within_reach(grid: CellGrid, kernel: Kernel, cutoff: float) -> float:
    """Estimate which share of the pairs lies within the kernel's reach, from a few rows."""
    q, n = grid.points.shape
    if not math.isfinite(kernel.reach(cutoff)):
        return 1.0
    candidates = _candidates(grid)
    if q > GRIDDED:
        return grid.kept * candidates / n
    if candidates > 0.9 * n:
        return 1.0
    # Share of the points in the cells around a place that lie in the ball around it.
    # Cells are half a radius wide, so that a ball of radius r touches a box of side 2.5 r on
    # average: the shares are 2/2.5, π/2.5² and (4π/3)/2.5³.
    ball_in_cells = {1: 0.8, 2: 0.5, 3: 0.27}[q]
    return float(candidates * ball_in_cells / n)


def _candidates(grid: CellGrid) -> float:
    """Return how many references a first look goes through, on average."""
    n = grid.points.shape[1]
    rows = np.linspace(0, n - 1, min(n, SAMPLED_QUERIES)).astype(np.int64)
    return float(candidates_of(grid, np.ascontiguousarray(grid.points[:, rows].T)).mean())


def is_crowded(grid: CellGrid, kernel: Kernel, cutoff: float) -> bool:
    """Say whether single queries are answered sooner by nodes than by the references around them.

    Nodes must not be many more than the references either: they take memory, too.
    """
    q, n = grid.points.shape
    if q > AXES or not kernel.is_exponential or n < MANY:
        return False
    low, high = grid.points.min(axis=1), grid.points.max(axis=1)
    nodes = count_nodes(low, high, spacing_for(kernel, cutoff))
    around = share_within_reach(grid, kernel, cutoff) * n
    return nodes < n and around > CROWDED * NODES**q
