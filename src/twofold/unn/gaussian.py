"""Gaussian embedding: random places around the nearest row's (Kramer 2013, Algorithm 10).

    x_l = x* + σ z_l,   z_l ~ N(0, I),   σ = ||y - y*||²,   l = 1..κ              (7.2, 7.3)

``y*`` is the nearest row that is embedded already and ``x*`` its place; the row goes where its
error is lowest. Line 6 of the algorithm has ``σ N(x*, 1)``, which would scale ``x*`` as well.
"""

from __future__ import annotations

from twofold.array_types import FloatArray
from twofold.compiled import compiled
from twofold.unn.growing import PointTree
from twofold.unn.regression import Judge, Rows, place_error


@compiled
def try_places(
    tree: PointTree,
    rows: Rows,
    i: int,
    origin: FloatArray,
    sigma: float,
    Z: FloatArray,
    judge: Judge,
    best: FloatArray,
) -> float:
    """Write the best of the places ``origin + sigma Z`` (κ, q) for row i; return its error."""
    x = best.copy()
    lowest = 0.0
    for place in range(Z.shape[0]):
        for m in range(x.size):
            x[m] = origin[m] + sigma * Z[place, m]
        e = place_error(tree, rows, x, i, judge)
        if place == 0 or e < lowest:
            lowest = e
            best[:] = x
    return lowest
