"""Choosing landmark vectors: k-means, K-harmonic means or chance; see :mod:`twofold.landmarks`."""

import numpy as np
from scipy.sparse import csr_array
from sklearn.cluster import kmeans_plusplus
from sklearn.exceptions import ConvergenceWarning

from twofold.array_types import FloatArray, IntArray
from twofold.engine.threads import count_threads, run_tasks, single_threaded
from twofold.landmarks import Landmarks
from twofold.landmarks.k_harmonic_means import KHarmonicMeans, ruling_power
from twofold.neighborhoods.distances import Units, block_slices, merge_equal_rows
from twofold.process_settings import without_warnings
from twofold.rowwise import data_unit

# k-means finds its way on this many rows a landmark, then settles on that many: on 60,000 rows in
# 50 dimensions with 500 landmarks it takes a quarter of the time of k-means on all rows until
# nothing moves, for a quantisation error less than 1 % higher.
COARSE_ROWS, FINE_ROWS, MANY = 10, 20, 500
COARSE_PASSES, FINE_PASSES = 10, 10
# More landmarks than ``MANY`` begin as random rows, with fewer passes: of 2,000 on 60,000 rows of
# MNIST that takes a quarter off the whole fit, for an error that is 1 % higher. Two fine passes
# leave a quantisation error that is 1.1 % above that of four, and landmarks are adapted later on.
FEW_COARSE_PASSES, FEW_FINE_PASSES = 3, 2
# A pass of K-harmonic means costs three of k-means, and each row pulls on many centres.
HARMONIC_ROWS, HARMONIC_PASSES = 20, 30


def choose_landmarks(
    Y: FloatArray, weights: FloatArray, landmarks: Landmarks, seed: int, n_jobs: int | None = None
) -> FloatArray:
    """Return distinct landmark vectors (l, D) of complete rows Y (n, D) with weights (n,).

    They are ``landmarks.number(n)``, or all distinct rows if there are fewer. Neither the order of
    the rows nor the number of threads matters.
    """
    n_threads = count_threads(n_jobs)
    count = landmarks.number(len(Y))
    rows, summed = merge_equal_rows(Y, weights)
    if len(rows) <= count:
        return rows
    rng = np.random.default_rng(seed)
    if landmarks.choice == "random":
        return rows[rng.choice(len(rows), count, replace=False, p=summed / summed.sum())]
    # Distances are taken from products: around the mean these lose no digits, and in a unit of
    # their own squares of tiny numbers stay numbers.
    unit, mean = data_unit(rows), rows.mean(axis=0, dtype=np.float64).astype(rows.dtype)
    rows = (rows - mean) / np.asarray(unit, dtype=rows.dtype)
    quantize = _find_means if landmarks.choice == "kmeans" else _find_harmonic_means
    # K-harmonic means warn of centres on the move, which are good enough here.
    with single_threaded(), without_warnings(ConvergenceWarning):
        centres = quantize(rows, summed, count, rng, n_threads)
    # As many rows as k-means has seen show which centres are idle.
    some = rows[rng.permutation(len(rows))[: FINE_ROWS * count]]
    return _replace_idle(centres, some, n_threads) * np.asarray(unit, dtype=rows.dtype) + mean


def _find_means(
    Y: FloatArray, weights: FloatArray, count: int, rng: np.random.Generator, n_threads: int
) -> FloatArray:
    """Return the centres (count, D) of k-means on as many rows as matter."""
    order = rng.permutation(len(Y))
    few, many = order[: COARSE_ROWS * count], order[: FINE_ROWS * count]
    seed = int(rng.integers(2**31))
    passes = (COARSE_PASSES, FINE_PASSES) if count <= MANY else (FEW_COARSE_PASSES, FEW_FINE_PASSES)
    centres = Y[few[:count]]
    if count <= MANY:
        centres = kmeans_plusplus(Y[few], count, sample_weight=weights[few], random_state=seed)[0]
    for rows, most in zip((few, many), passes, strict=True):
        centres = _improve_means(centres, Y[rows], weights[rows], most, n_threads)
    return centres


def _improve_means(
    centres: FloatArray, Y: FloatArray, weights: FloatArray, passes: int, n_threads: int
) -> FloatArray:
    """Return centres (l, D) after some passes of Lloyd's algorithm over rows Y (n, D)."""
    for _ in range(passes):
        owner = _owners(Y, centres, n_threads)
        members = csr_array((weights, (owner, np.arange(len(Y)))), (len(centres), len(Y)))
        mass = members.sum(axis=1)[:, None]
        means = (members @ Y) / np.where(mass > 0, mass, 1)
        # Those without rows stay: they are replaced in the end.
        means = np.where(mass > 0, means, centres).astype(centres.dtype)
        if np.array_equal(means, centres):
            break
        centres = means
    return centres


def _owners(Y: FloatArray, centres: FloatArray, n_threads: int) -> IntArray:
    """Return which centre (n,) is nearest to each row, the first of equal ones, to rounding."""
    owner = np.empty(len(Y), dtype=np.int64)
    doubled, squares = 2 * centres.T, (centres * centres).sum(axis=1)

    def work(rows: slice) -> None:
        owner[rows] = (squares - Y[rows] @ doubled).argmin(axis=1)

    run_tasks(work, block_slices(len(Y), len(centres)), n_threads)
    return owner


def _find_harmonic_means(
    Y: FloatArray, weights: FloatArray, count: int, rng: np.random.Generator, n_threads: int
) -> FloatArray:
    """Return the centres (count, D) of K-harmonic means on as many rows as matter."""
    kept = rng.permutation(len(Y))[: HARMONIC_ROWS * count]
    seed = int(rng.integers(2**31))
    # With the usual 3.5 in 50 dimensions (six that count), centres gathered in the middle and were
    # worse than random rows; with a power that rules they were better than those of k-means.
    p = max(3.5, round(2 * ruling_power(Units.of(Y, weights).apply(Y), weights)) / 2)
    model = KHarmonicMeans(count, p=p, max_iter=HARMONIC_PASSES, random_state=seed)
    return model.fit(Y[kept], sample_weight=weights[kept]).cluster_centers_


def _replace_idle(centres: FloatArray, Y: FloatArray, n_threads: int) -> FloatArray:
    """Put rows far from all centres in the place of centres that no row is nearest to.

    Of equal centres only the first is nearest to anything, so the result has no two alike.
    """
    count = len(centres)
    owner = _owners(Y, centres, n_threads)
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
