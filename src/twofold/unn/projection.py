"""Latent points of new rows.

The book carries a new row to the mean of the latent points of its K nearest rows,

    F(y) = Σ_{j ∈ N_K(y)} w_j x_j / Σ_{j ∈ N_K(y)} w_j                          (Kramer 2013, 5.6)

which may fall between parts of the map that lie far apart. So other places compete with it: the
latent points of these K rows, the mid-points between them and their latent neighbours, and the
training point whose image is nearest. The smallest distance from f(x) to the row's observed
entries wins, F(y) first. Where the winner lies outside of the domain, a training point is taken.

Distances of incomplete rows go over the entries that both have, times D over their number.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

import numpy as np

from twofold.array_types import BoolArray, FloatArray, IntArray
from twofold.compiled import compiled
from twofold.engine.threads import run_tasks
from twofold.rowwise import SQUARED_GAP, blocks, pair_sums
from twofold.unn.growing import PointTree, find_nearest, keep_nearest
from twofold.unn.regression import Surface
from twofold.unn.rows import NOBODY, Rows, squared_gap, write_mean

# Distances in memory at a time, for each thread: 32 MB.
VALUES_AT_A_TIME = 2_000_000
MOST_ROWS_AT_A_TIME = 64

IsInside: TypeAlias = Callable[[FloatArray], BoolArray]


def project(
    surface: Surface, Y: FloatArray, observed: BoolArray | None, inside: IsInside
) -> FloatArray:
    """Return the latent points (m, q) of rows Y (m, D); ``inside`` says which places will do."""
    values = np.ascontiguousarray(Y if observed is None else np.where(observed, Y, 0), dtype=float)
    seen = np.ones((len(Y), 1)) if observed is None else observed.astype(np.float64)
    X = _project(surface, values, seen, anywhere=True)
    outside = ~inside(X)
    if outside.any():
        X[outside] = _project(surface, values[outside], seen[outside], anywhere=False)
    return X


def _project(surface: Surface, Y: FloatArray, seen: FloatArray, *, anywhere: bool) -> FloatArray:
    X = np.empty((len(Y), surface.X.shape[1]))
    links = surface.links if anywhere else np.empty((0, 0), dtype=np.int64)
    images, rows, whole = surface.images, surface.rows, np.ones((len(surface.images), 1))

    def work(part: slice) -> None:
        to_images = _gaps(Y[part], seen[part], images, whole, False)
        to_rows = to_images
        if anywhere:
            to_rows = _gaps(Y[part], seen[part], rows.values, rows.mass, True)
        project_rows(
            surface.tree,
            rows,
            to_images,
            to_rows,
            links,
            surface.n_neighbors,
            Y[part],
            seen[part],
            X[part],
        )

    size = int(np.clip(VALUES_AT_A_TIME // len(images), 1, MOST_ROWS_AT_A_TIME))
    run_tasks(work, blocks(len(Y), 1, at_a_time=size), surface.n_threads)
    return X


def _gaps(
    Y: FloatArray, seen: FloatArray, Z: FloatArray, there: FloatArray, is_scaled: bool
) -> FloatArray:
    """Return the squared distances (m, n) over common entries, scaled up to all if asked for."""
    if seen.shape[1] == there.shape[1] == 1:
        return pair_sums(Y, Z, SQUARED_GAP)
    masks = [np.ascontiguousarray(np.broadcast_to(m, A.shape)) for m, A in ((seen, Y), (there, Z))]
    return _masked_gaps(Y, masks[0], Z, masks[1], is_scaled)


@compiled
def _masked_gaps(
    Y: FloatArray, seen: FloatArray, Z: FloatArray, there: FloatArray, is_scaled: bool
) -> FloatArray:
    gaps = np.empty((Y.shape[0], Z.shape[0]))
    for j in range(Y.shape[0]):
        for i in range(Z.shape[0]):
            total, common = squared_gap(Y[j], seen[j], Z[i], there[i])
            if is_scaled:
                total = total * Y.shape[1] / common if common > 0.0 else np.inf
            gaps[j, i] = total
    return gaps


@compiled
def project_rows(
    tree: PointTree,
    rows: Rows,
    to_images: FloatArray,
    to_rows: FloatArray,
    links: IntArray,
    k: int,
    Y: FloatArray,
    seen: FloatArray,
    X: FloatArray,
) -> None:
    """Write the latent points of rows Y (m, D) into X (m, q); training points without links."""
    n, q = rows.values.shape[0], X.shape[1]
    places = Rows(tree.X, rows.weights.reshape(-1, 1), rows.weights, np.zeros(q))
    near, gaps = np.empty(k, dtype=np.int64), np.empty(k)
    found, sq_dists = np.empty(k, dtype=np.int64), np.empty(k)
    x, f, whole = np.empty(q), np.empty(Y.shape[1]), np.ones(seen.shape[1])
    for j in range(Y.shape[0]):
        at = np.argmin(to_images[j])
        lowest = to_images[j, at]
        X[j] = tree.X[at]
        if links.size == 0:
            continue
        count = 0
        for i in range(n):
            count = keep_nearest(near, gaps, count, k, i, to_rows[j, i])
        write_mean(places, near, count, NOBODY, x)
        for place in range(-1, count * links.shape[1]):
            if place >= 0:  # -1 is F(y)
                i = near[place // links.shape[1]]
                other = links[i, place % links.shape[1]]
                for m in range(q):
                    x[m] = 0.5 * (tree.X[i, m] + tree.X[other, m])
            write_mean(rows, found, find_nearest(tree, x, -1, k, found, sq_dists), NOBODY, f)
            gap, _ = squared_gap(f, whole, Y[j], seen[j])
            if gap < lowest or (place < 0 and gap <= lowest):
                lowest = gap
                X[j] = x
