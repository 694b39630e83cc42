"""Choosing landmark vectors: k-means, K-harmonic means or chance; see :mod:`twofold.landmarks`."""

import numpy as np
from sklearn.cluster import KMeans, kmeans_plusplus
from sklearn.exceptions import ConvergenceWarning

from twofold.array_types import FloatArray
from twofold.engine.threads import single_threaded
from twofold.landmarks import Landmarks
from twofold.landmarks.k_harmonic_means import KHarmonicMeans, ruling_power
from twofold.neighborhoods.distances import Units, merge_equal_rows
from twofold.neighborhoods.nearest import nearest_rows
from twofold.process_settings import without_warnings
from twofold.rowwise import data_unit

# k-means finds its way on this many rows a landmark, then settles on that many: on 60,000 rows in
# 50 dimensions with 500 landmarks it takes a quarter of the time of k-means on all rows until
# nothing moves, for a quantisation error less than 1 % higher.
COARSE_ROWS, FINE_ROWS, MANY = 10, 20, 500
COARSE_PASSES, FINE_PASSES = 10, 10
# More landmarks than ``MANY`` begin as random rows, with fewer passes: of 2,000 on 60,000 rows of
# MNIST that takes a quarter off the whole fit, for an error that is 1 % higher.
FEW_COARSE_PASSES, FEW_FINE_PASSES = 3, 4
# A pass of K-harmonic means costs three of k-means, and each row pulls on many centres.
HARMONIC_ROWS, HARMONIC_PASSES = 20, 30


def choose_landmarks(
    Y: FloatArray, weights: FloatArray, landmarks: Landmarks, seed: int
) -> FloatArray:
    """Return distinct landmark vectors (l, D) of complete rows Y (n, D) with weights (n,).

    They are ``landmarks.number(n)``, or all distinct rows if there are fewer. Neither the order of
    the rows nor the number of threads matters.
    """
    count = landmarks.number(len(Y))
    rows, summed = merge_equal_rows(Y, weights)
    if len(rows) <= count:
        return rows
    rng = np.random.default_rng(seed)
    if landmarks.choice == "random":
        return rows[rng.choice(len(rows), count, replace=False, p=summed / summed.sum())]
    # A power of two changes no bit, and squares of tiny numbers stay numbers.
    unit = data_unit(rows)
    rows = rows / unit
    quantize = _find_means if landmarks.choice == "kmeans" else _find_harmonic_means
    # One thread: with several, k-means adds up in the order in which they finish. It warns of
    # clusters without rows, which are replaced below.
    with single_threaded(), without_warnings(ConvergenceWarning):
        centres = quantize(rows, summed, count, rng)
    # As many rows as k-means has seen show which centres are idle.
    return _replace_idle(centres, rows[rng.permutation(len(rows))[: FINE_ROWS * count]]) * unit


def _find_means(
    Y: FloatArray, weights: FloatArray, count: int, rng: np.random.Generator
) -> FloatArray:
    """Return the centres (count, D) of k-means on as many rows as matter."""
    order = rng.permutation(len(Y))
    few, many = order[: COARSE_ROWS * count], order[: FINE_ROWS * count]
    seed = int(rng.integers(2**31))
    passes = (COARSE_PASSES, FINE_PASSES) if count <= MANY else (FEW_COARSE_PASSES, FEW_FINE_PASSES)
    first = Y[few[:count]]
    if count <= MANY:
        first = kmeans_plusplus(Y[few], count, sample_weight=weights[few], random_state=seed)[0]
    coarse = KMeans(count, init=first, n_init=1, max_iter=passes[0], random_state=seed)
    start = coarse.fit(Y[few], sample_weight=weights[few]).cluster_centers_
    fine = KMeans(count, init=start, n_init=1, max_iter=passes[1], random_state=seed)
    return fine.fit(Y[many], sample_weight=weights[many]).cluster_centers_


def _find_harmonic_means(
    Y: FloatArray, weights: FloatArray, count: int, rng: np.random.Generator
) -> FloatArray:
    """Return the centres (count, D) of K-harmonic means on as many rows as matter."""
    kept = rng.permutation(len(Y))[: HARMONIC_ROWS * count]
    seed = int(rng.integers(2**31))
    # With the usual 3.5 in 50 dimensions (six that count), centres gathered in the middle and were
    # worse than random rows; with a power that rules they were better than those of k-means.
    p = max(3.5, round(2 * ruling_power(Units.of(Y, weights).apply(Y), weights)) / 2)
    model = KHarmonicMeans(count, p=p, max_iter=HARMONIC_PASSES, random_state=seed)
    return model.fit(Y[kept], sample_weight=weights[kept]).cluster_centers_


def _replace_idle(centres: FloatArray, Y: FloatArray) -> FloatArray:
    """Put rows far from all centres in the place of centres that no row is nearest to.

    Of equal centres only the first is nearest to anything, so the result has no two alike.
    """
    count = len(centres)
    owner = nearest_rows(Y, centres, 1)[:, 0]
    kept = centres[np.unique(owner)]
    if len(kept) == count:
        return kept
    added: list[FloatArray] = []
    gaps, others = np.full(len(Y), np.inf), centres[owner]
    for _ in range(count - len(kept)):
        gaps = np.minimum(gaps, np.square(np.subtract(Y, others, dtype=np.float64)).sum(axis=1))
        others = Y[int(gaps.argmax())]
        added.append(others)
    return np.concatenate([kept, added])
