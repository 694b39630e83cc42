"""Which back end runs the sums: decided from sizes, kernel and where the points lie, and said.

Visiting a pair through a list costs about as much as eight pairs of a matrix product, so the list
pays as soon as fewer than an eighth of all pairs are within reach. Local polynomials cost far more
a pair than either, and pay for every pair that is left out.
"""

import logging
import math
from dataclasses import dataclass

import numpy as np

from twofold.array_types import FloatArray
from twofold.engine.cells import GRIDDED, CellGrid, candidates_of, grid_for
from twofold.kernels import Kernel

logger = logging.getLogger(__name__)

PAIR_COST_RATIO = 8
SAMPLED_QUERIES = 256
# Fewer rows than this are done before a grid is built.
SMALL_PROBLEM = 200


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
) -> Plan:
    """Choose between ``cpu_dense`` and ``cpu_cells`` for sums over all pairs of ``references``.

    ``grid`` is the references' grid, where it is already there; ``is_local`` says whether local
    polynomials are fitted.
    """
    n, q = references.shape
    if q > GRIDDED:
        choice = Plan("cpu_dense", f"q = {q} is above {GRIDDED}: cells no longer separate points")
    elif n < SMALL_PROBLEM:
        choice = Plan("cpu_dense", f"n = {n} is small")
    else:
        grid = grid_for(references, kernel, cutoff) if grid is None else grid
        share = share_within_reach(grid, kernel, cutoff)
        backend = "cpu_cells" if share * (1 if is_local else PAIR_COST_RATIO) < 1 else "cpu_dense"
        choice = Plan(backend, f"{share:.1%} of all pairs are within reach")
    logger.debug("back end %s: %s", choice.backend, choice.reason)
    return choice


def share_within_reach(grid: CellGrid, kernel: Kernel, cutoff: float) -> float:
    """Estimate which share of the pairs lies within the kernel's reach, from a few rows."""
    q, n = grid.points.shape
    if not math.isfinite(kernel.reach(cutoff)):
        return 1.0
    rows = np.linspace(0, n - 1, min(n, SAMPLED_QUERIES)).astype(np.int64)
    queries = np.ascontiguousarray(grid.points[:, rows].T)
    candidates = candidates_of(grid, queries, kernel, cutoff).mean()
    if candidates > 0.9 * n:
        return 1.0
    # Share of the points in the cells around a place that lie in the ball around it.
    # Cells are half a radius wide, so that a ball of radius r touches a box of side 2.5 r on
    # average: the shares are 2/2.5, π/2.5² and (4π/3)/2.5³.
    ball_in_cells = {1: 0.8, 2: 0.5, 3: 0.27}[q]
    return float(candidates * ball_in_cells / n)
