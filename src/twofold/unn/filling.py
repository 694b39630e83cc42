"""Missing entries: filled before the embedding, or on the way (Kramer 2013, sections 5.6-5.9).

Both begin with the complete rows and go on with those of the fewest gaps.

* Repair-and-embed (Algorithm 4): a row gets the mean of its K nearest complete rows, near in the
  columns that it has. From then on it counts as complete.
* Embed-and-repair (Algorithm 5): a row is embedded by what it has, and its gaps get the mean of
  its latent neighbours.

Which of several rows with as few gaps comes first the book leaves open. `repair` goes by their
entries, so that shuffling the table changes nothing; `embed_and_repair` by the order in which they
come, as the embedding itself does. Without a complete row the first one is filled by the means of
the columns.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from twofold.array_types import BoolArray, FloatArray
from twofold.compiled import compiled
from twofold.unn.growing import keep_nearest

if TYPE_CHECKING:  # which imports this
    from twofold.unn.embedding import Embedder


def repair(Y: FloatArray, n_neighbors: int, weights: FloatArray | None = None) -> FloatArray:
    """Return a copy of Y (n, D) whose gaps, NaN, are filled from the K nearest complete rows.

    While there are fewer of these, all are neighbours. Each column has an observed entry. Costs
    O(n² D) at most and no memory beyond a few copies of Y.
    """
    n_gaps = np.isnan(Y).sum(axis=1)
    order = np.lexsort((*np.nan_to_num(Y, nan=-np.inf).T[::-1], n_gaps))
    filled = np.ascontiguousarray(Y[order], dtype=np.float64)
    own = np.ones(len(Y)) if weights is None else np.asarray(weights, dtype=np.float64)[order]
    n_complete = int((n_gaps == 0).sum())
    if n_complete < len(Y):
        means = _column_means(filled, own)
        if n_complete == 0:
            filled[0] = np.where(np.isnan(filled[0]), means, filled[0])
            n_complete = 1
        observed = ~np.isnan(filled)
        k = min(n_neighbors, len(Y))
        _repair_in_order(filled, observed, own, n_complete, k, means)
    back = np.empty_like(filled)
    back[order] = filled
    return back


def embed_and_repair(
    Y: FloatArray, weights: FloatArray, embedder: Embedder, n_known: int = 0
) -> tuple[FloatArray, FloatArray]:
    """Return rows Y (n, D) whose gaps are filled from latent neighbours, and all latent points.

    The embedder comes with `n_known` complete rows. Afterwards it holds the filled rows, too, those
    with the fewest gaps first.
    """
    n_gaps = np.isnan(Y).sum(axis=1)
    order = np.argsort(n_gaps, kind="stable")
    filled, own = Y[order], weights[order]
    n_complete = int((n_gaps == 0).sum())
    if n_complete + n_known == 0:
        filled[0] = np.where(np.isnan(filled[0]), _column_means(filled, own), filled[0])
        n_complete = 1
    embedder.insert(filled[:n_complete], own[:n_complete])
    for j in range(n_complete, len(Y)):
        embedder.insert(filled[j : j + 1], own[j : j + 1])
        gaps = np.isnan(filled[j])
        filled[j, gaps] = embedder.fill(n_known + j)[gaps]
    back, X = np.empty_like(filled), embedder.latent.copy()
    back[order], X[n_known + order] = filled, embedder.latent[n_known:]
    return back, X


def _column_means(Y: FloatArray, weights: FloatArray) -> FloatArray:
    """Return the mean of the observed entries of each column, (D,)."""
    mass = weights[:, None] * ~np.isnan(Y)
    means: FloatArray = (mass * np.nan_to_num(Y)).sum(axis=0) / mass.sum(axis=0)
    return means


@compiled
def _repair_in_order(
    Y: FloatArray,
    observed: BoolArray,
    weights: FloatArray,
    n_complete: int,
    n_neighbors: int,
    means: FloatArray,
) -> None:
    """Fill the rows from ``n_complete`` on, one after the other, from those before them."""
    n, D = Y.shape
    found, sq_dists = np.empty(n_neighbors, dtype=np.int64), np.empty(n_neighbors)
    for i in range(n_complete, n):
        seen = np.flatnonzero(observed[i])
        if seen.size == 0:
            Y[i] = means
            continue
        count = 0
        for j in range(i):
            gap = 0.0
            for s in range(seen.size):
                step = Y[i, seen[s]] - Y[j, seen[s]]
                gap += step * step
            if count < n_neighbors or gap < sq_dists[n_neighbors - 1]:
                count = keep_nearest(found, sq_dists, count, n_neighbors, j, gap)
        mass = 0.0
        for place in range(count):
            mass += weights[found[place]]
        for d in range(D):
            if not observed[i, d]:
                total = 0.0
                for place in range(count):
                    total += weights[found[place]] * Y[found[place], d]
                Y[i, d] = total / mass
