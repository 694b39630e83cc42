"""Choosing landmark vectors: k-means, K-harmonic means or chance; see :mod:`twofold.landmarks`."""

from __future__ import annotations

import numpy as np
from sklearn.cluster import KMeans
from sklearn.exceptions import ConvergenceWarning

from twofold.array_types import FloatArray
from twofold.engine.threads import single_threaded
from twofold.landmarks import Landmarks
from twofold.landmarks.k_harmonic_means import KHarmonicMeans
from twofold.neighborhoods.distances import merge_equal_rows
from twofold.neighborhoods.nearest import nearest_rows
from twofold.process_settings import without_warnings

# k-means finds its way on this many rows a landmark, then settles on that many: on 60,000 rows in
# 50 dimensions with 500 landmarks it takes a quarter of the time of k-means on all rows until
# nothing moves, for a quantisation error less than 1 % higher.
COARSE_ROWS, FINE_ROWS = 10, 128
COARSE_PASSES, FINE_PASSES = 10, 20
# A pass of K-harmonic means costs three of k-means, and each row pulls on many centres.
HARMONIC_ROWS, HARMONIC_PASSES = 20, 30


def choose_landmarks(
    Y: FloatArray, weights: FloatArray, landmarks: Landmarks, seed: int
) -> FloatArray:
    """Choose the landmark vectors of a table without missing entries.

    Parameters
    ----------
    Y : (n, D) array
        Rows; their order does not matter.
    weights : (n,) array
        How much each counts; a row of weight 0 is not there.
    landmarks : Landmarks
        How many and how.
    seed : int
        Seed of everything that is drawn. The result is the same for any number of threads.

    Returns
    -------
    (l, D) array
        Distinct vectors in the precision of Y: ``landmarks.number(n)`` of them, or all distinct
        rows if there are fewer.
    """
    count = landmarks.number(len(Y))
    rows, summed = merge_equal_rows(Y, weights)
    if len(rows) <= count:
        return rows
    rng = np.random.default_rng(seed)
    if landmarks.choice == "random":
        return rows[rng.choice(len(rows), count, replace=False, p=summed / summed.sum())]
    quantize = _find_means if landmarks.choice == "kmeans" else _find_harmonic_means
    # One thread: with several, k-means adds up in the order in which they finish. It warns of
    # clusters without rows, which are replaced below.
    with single_threaded(), without_warnings(ConvergenceWarning):
        centres = quantize(rows, summed, count, rng)
    return _replace_idle(centres, rows)


def _find_means(
    Y: FloatArray, weights: FloatArray, count: int, rng: np.random.Generator
) -> FloatArray:
    """Return the centres (count, D) of k-means on as many rows as matter."""
    order = rng.permutation(len(Y))
    few, many = order[: COARSE_ROWS * count], order[: FINE_ROWS * count]
    seed = int(rng.integers(2**31))
    coarse = KMeans(count, n_init=1, max_iter=COARSE_PASSES, random_state=seed)
    start = coarse.fit(Y[few], sample_weight=weights[few]).cluster_centers_
    fine = KMeans(count, init=start, n_init=1, max_iter=FINE_PASSES, random_state=seed)
    return fine.fit(Y[many], sample_weight=weights[many]).cluster_centers_


def _find_harmonic_means(
    Y: FloatArray, weights: FloatArray, count: int, rng: np.random.Generator
) -> FloatArray:
    """Return the centres (count, D) of K-harmonic means on as many rows as matter."""
    kept = rng.permutation(len(Y))[: HARMONIC_ROWS * count]
    seed = int(rng.integers(2**31))
    model = KHarmonicMeans(
        count, p=_harmonic_power(Y, weights), max_iter=HARMONIC_PASSES, random_state=seed
    )
    return model.fit(Y[kept], sample_weight=weights[kept]).cluster_centers_


def _harmonic_power(Y: FloatArray, weights: FloatArray) -> float:
    """Return a power that suits the data: 3.5 up to two dimensions, more for more.

    A sum of ``d^-p`` over centres spread in δ dimensions is ruled by the near ones only if p > δ.
    With the usual 3.5 in 50 dimensions (six that count), centres gathered in the middle and were
    worse than random rows; with δ + 1.5 they were better than those of k-means. For δ stands the
    participation ratio of the variances, (Σ λ)² / Σ λ².
    """
    covariance = np.atleast_2d(np.cov(Y.astype(np.float64), rowvar=False, aweights=weights))
    dimensions = np.trace(covariance) ** 2 / (covariance**2).sum()
    return max(3.5, round(2 * float(dimensions) + 3) / 2)


def _replace_idle(centres: FloatArray, Y: FloatArray) -> FloatArray:
    """Put rows far from all centres in the place of centres that no row is nearest to.

    Of equal centres only the first is nearest to anything, so the result has no two alike.
    """
    count = len(centres)
    owner = nearest_rows(Y, centres, 1)[:, 0]
    kept = centres[np.unique(owner)]
    if len(kept) == count:
        return kept
    gaps = _squared_gaps(Y, centres[owner])
    added = []
    for _ in range(count - len(kept)):
        row = Y[int(gaps.argmax())]
        added.append(row)
        gaps = np.minimum(gaps, _squared_gaps(Y, row))
    return np.concatenate([kept, added])


def _squared_gaps(Y: FloatArray, others: FloatArray) -> FloatArray:
    gaps = np.subtract(Y, others, dtype=np.float64)
    return (gaps * gaps).sum(axis=1)
