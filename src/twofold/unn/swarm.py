"""Particle swarm embedding, PSEA (Kramer 2013, Algorithm 9).

A particle starts from the place ``x*`` of the nearest row with a random velocity and keeps its
best place x~:

    v ← v + c₁ r₁ (x~ - x) + c₂ r₂ (x* - x),   x ← x + v,   v ~ N(0, I), r ~ U[0, 1]   (6.14, 6.15)

The start is not among the places it may keep: neighbours of x* reconstruct a row near y* better
than most, and everything would end up on one latent point.
"""

from __future__ import annotations

from twofold.array_types import FloatArray
from twofold.compiled import compiled
from twofold.unn.growing import PointTree
from twofold.unn.regression import Judge, Rows, place_error


@compiled
def fly(
    tree: PointTree,
    rows: Rows,
    i: int,
    origin: FloatArray,
    velocity: FloatArray,
    lots: FloatArray,
    pull: FloatArray,
    judge: Judge,
    best: FloatArray,
) -> float:
    """Write the best place of a particle's ``lots`` (steps, 2) for row i; return its error."""
    x, v = origin.copy(), velocity.copy()
    best[:] = origin
    lowest = 0.0
    for step in range(lots.shape[0]):
        for m in range(x.size):
            v[m] += pull[0] * lots[step, 0] * (best[m] - x[m])
            v[m] += pull[1] * lots[step, 1] * (origin[m] - x[m])
            x[m] += v[m]
        e = place_error(tree, rows, x, i, judge)
        if step == 0 or e < lowest:
            lowest = e
            best[:] = x
    return lowest
