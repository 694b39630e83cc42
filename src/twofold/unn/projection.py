"""Latent points of new rows, and where the data supports a latent place.

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
from twofold.engine import KernelSums, PreparedReferences
from twofold.engine.threads import run_tasks
from twofold.kernels import get_kernel
from twofold.rowwise import SQUARED_GAP, pair_sums
from twofold.unn.growing import PointTree, find_nearest, keep_nearest
from twofold.unn.regression import Rows, Surface, blocks_of, write_mean

# Kernel weights below this, relative to the largest, are left out of a density.
TOLERANCE = 1e-6
# Distances in memory at a time, for each thread: 32 MB.
VALUES_AT_A_TIME = 2_000_000
MOST_ROWS_AT_A_TIME = 64

IsInside: TypeAlias = Callable[[FloatArray], BoolArray]


class LatentDensity:
    """A Gaussian kernel density over latent points, in units of one kernel at its centre.

    Parameters
    ----------
    X : (n, q) latent points
    weights : (n,)
    unit : (q,) bandwidth along each coordinate
    n_jobs : int or None
    """

    def __init__(
        self, X: FloatArray, weights: FloatArray, unit: FloatArray, n_jobs: int | None
    ) -> None:
        self.unit = unit
        self.engine = KernelSums(get_kernel("gaussian"), TOLERANCE, n_jobs)
        shares = (weights / weights.sum())[:, None]
        self.prepared = PreparedReferences(self.engine, self._in_units(X), shares)

    def at(self, X: FloatArray) -> FloatArray:
        """Return the density (m,), float64."""
        sums = self.prepared.at(self._in_units(X))
        return sums.values[:, 0] * self.engine.kernel.value(sums.shift)

    def _in_units(self, X: FloatArray) -> FloatArray:
        return np.ascontiguousarray(np.asarray(X, dtype=np.float64) / self.unit)


def project(
    surface: Surface, Y: FloatArray, observed: BoolArray | None, inside: IsInside
) -> FloatArray:
    """Return the latent points (m, q) of rows Y (m, D); ``inside`` says which places will do."""
    seen: BoolArray = np.empty((0, 0), dtype=np.bool_) if observed is None else observed
    values = np.ascontiguousarray(Y if observed is None else np.where(observed, Y, 0), dtype=float)
    X = _project(surface, values, seen, anywhere=True)
    outside = ~inside(X)
    if outside.any():
        some = seen[outside] if seen.size else seen
        X[outside] = _project(surface, values[outside], some, anywhere=False)
    return X


def _project(surface: Surface, Y: FloatArray, seen: BoolArray, *, anywhere: bool) -> FloatArray:
    X = np.empty((len(Y), surface.X.shape[1]))
    links = surface.links if anywhere else np.empty((0, 0), dtype=np.int64)
    images = surface.images

    def work(part: slice) -> None:
        some = seen[part] if seen.size else seen
        to_images = _gaps_to_images(images, Y[part], some)
        to_rows = _gaps_to_rows(surface.rows, Y[part], some) if anywhere else to_images
        project_rows(
            surface.tree,
            surface.rows,
            to_images,
            to_rows,
            links,
            surface.n_neighbors,
            Y[part],
            some,
            X[part],
        )

    size = int(np.clip(VALUES_AT_A_TIME // len(images), 1, MOST_ROWS_AT_A_TIME))
    run_tasks(work, blocks_of(len(Y), size), surface.n_threads)
    return X


def _gaps_to_images(images: FloatArray, Y: FloatArray, seen: BoolArray) -> FloatArray:
    """Return the squared distances (m, n) of rows to images, over observed entries."""
    if seen.size:
        return _masked_gaps(Y, seen, images, np.empty((0, 0), dtype=np.bool_), False)
    return pair_sums(Y, images, SQUARED_GAP)


def _gaps_to_rows(rows: Rows, Y: FloatArray, seen: BoolArray) -> FloatArray:
    """Return the squared distances (m, n) of rows, over common entries and scaled up to all."""
    if seen.size or rows.observed.size:
        return _masked_gaps(Y, seen, rows.Y, rows.observed, True)
    return pair_sums(Y, rows.Y, SQUARED_GAP)


@compiled
def _masked_gaps(
    Y: FloatArray, seen: BoolArray, Z: FloatArray, there: BoolArray, is_scaled: bool
) -> FloatArray:
    gaps = np.empty((Y.shape[0], Z.shape[0]))
    for j in range(Y.shape[0]):
        for i in range(Z.shape[0]):
            total, common = 0.0, 0
            for d in range(Y.shape[1]):
                if (seen.size == 0 or seen[j, d]) and (there.size == 0 or there[i, d]):
                    total += (Z[i, d] - Y[j, d]) ** 2
                    common += 1
            if is_scaled:
                total = total * Y.shape[1] / common if common else np.inf
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
    seen: BoolArray,
    X: FloatArray,
) -> None:
    """Write the latent points of rows Y (m, D) into X (m, q); training points without links."""
    n, q = rows.Y.shape[0], X.shape[1]
    near, gaps = np.empty(k, dtype=np.int64), np.empty(k)
    found, sq_dists, f = np.empty(k, dtype=np.int64), np.empty(k), np.empty(Y.shape[1])
    x = np.empty(q)
    nothing = np.empty(0, dtype=np.bool_)
    for j in range(Y.shape[0]):
        mask = seen[j] if seen.size else nothing
        at = np.argmin(to_images[j])
        lowest = to_images[j, at]
        X[j] = tree.X[at]
        if links.size == 0:
            continue
        count = 0
        for i in range(n):
            count = keep_nearest(near, gaps, count, k, i, to_rows[j, i])
        _write_mean_place(tree.X, rows.weights, near, count, x)
        e = _image_gap(tree, rows, x, Y[j], mask, k, found, sq_dists, f)
        if e <= lowest:
            lowest = e
            X[j] = x
        for place in range(count):
            i = near[place]
            for link in range(links.shape[1]):
                for m in range(q):
                    x[m] = 0.5 * (tree.X[i, m] + tree.X[links[i, link], m])
                e = _image_gap(tree, rows, x, Y[j], mask, k, found, sq_dists, f)
                if e < lowest:
                    lowest = e
                    X[j] = x


@compiled
def _image_gap(
    tree: PointTree,
    rows: Rows,
    x: FloatArray,
    y: FloatArray,
    mask: BoolArray,
    k: int,
    found: IntArray,
    sq_dists: FloatArray,
    f: FloatArray,
) -> float:
    count = find_nearest(tree, x, -1, k, found, sq_dists)
    write_mean(rows, found, count, -1, f)
    return _squared_gap(f, y, mask)


@compiled
def _squared_gap(f: FloatArray, y: FloatArray, mask: BoolArray) -> float:
    total = 0.0
    if mask.size == 0:
        for d in range(y.size):
            total += (f[d] - y[d]) ** 2
    else:
        for d in range(y.size):
            if mask[d]:
                total += (f[d] - y[d]) ** 2
    return total


@compiled
def _write_mean_place(
    X: FloatArray, weights: FloatArray, near: IntArray, count: int, x: FloatArray
) -> None:
    x[:] = 0.0
    mass = 0.0
    for place in range(count):
        mass += weights[near[place]]
        for m in range(x.size):
            x[m] += weights[near[place]] * X[near[place], m]
    x /= mass
