"""Sums over rows in which no row depends on another, and rows in pieces that bound the memory.

**The promise**: a row gives the same result, to the last bit, alone or among others, in any order
and on any number of threads. What users compare (a row placed twice, a model asked on another
machine's cores) rests on it, and so do searches, which rows leave one by one. Plain matrix products
do not keep it: libraries round an entry by the shapes of the factors, by its place in a ragged
edge, and by the number of threads. Everything that places rows or leads back to them therefore
multiplies through one of two ways, and this is their home:

* **Loops** (`pair_sums`, `own_sums`, `exponentials`, `multiply_rows`): every entry is summed by one
  compiled loop. Differences are taken before they are squared, so that nothing cancels, and weights
  of zero cost nothing. Right for kernel values that are factorised, for sparse weights, and for
  products with few columns.
* **Tiles** (`in_tiles`, `MultipliedRows`, `GaussianRows`, `row_products`, `weighted_sums`): matrix
  products of one shape, ``TILE`` rows at a time, all sizes filled up with zeros to multiples of 16
  (the blocks of matrix libraries divide that), so that no entry lies at a ragged edge. The full
  speed of the library: weights of 2,000 rows on 1,000 others of 64 columns take 12 ms, not 23, but
  those of one row 0.3 ms, not 0.01.

Threads share out rows by :func:`twofold.engine.threads.run_tasks`, in tasks that are cut before
anybody asks how many threads there are.

Memory is bounded by `blocks`: blocks of rows for which what is computed holds
``VALUES_AT_A_TIME`` numbers. The results do not depend on it.

`power_of_two` and `data_unit` are units of the size of data: squares then neither overflow nor
vanish, and dividing by a power of two loses no digit. `center_and_spread` are those of columns.
`fix_signs` chooses between an axis and its opposite, which libraries leave open.
"""

import math
from collections.abc import Callable
from typing import TypeVar

import numpy as np
from numpy.typing import ArrayLike, DTypeLike

from twofold.array_types import BoolArray, FloatArray, IntArray
from twofold.compiled import compiled, square
from twofold.engine.threads import run_tasks, slices

# Numbers in memory at a time, while rows pass by: 32 MB.
VALUES_AT_A_TIME = 4_000_000
PRODUCT, SQUARED_GAP, OVERLAP, GAP = 0, 1, 2, 3  # what is summed over the columns of a pair of rows
# Rows of a tile: enough to keep matrix products busy, few enough to waste on one row.
TILE = 64
_ALIGNED = 16
# Rows of a matrix that stay in the cache while those of another pass by.
_IN_CACHE = 32

Arrays = TypeVar("Arrays", bound=tuple[FloatArray | BoolArray, ...])


def blocks(n: int, values_each: int, *, at_a_time: int | None = None) -> list[slice]:
    """Return slices of n rows, each small enough that its values stay within the bound."""
    bound = VALUES_AT_A_TIME if at_a_time is None else at_a_time
    return slices(n, max(1, bound // max(1, values_each)))


def power_of_two(sizes: ArrayLike) -> FloatArray:
    """Return the powers of two nearest to sizes >= 0, and 1 for those that are 0 or infinite."""
    given = np.asarray(sizes, dtype=np.float64)
    usable = np.where((given > 0) & (given < np.inf), given, 1.0)
    # Within 1022, so that the unit has an inverse.
    return np.asarray(2.0 ** np.clip(np.round(np.log2(usable)), -1022, 1022))


def data_unit(Y: FloatArray) -> float:
    """Return a power of two near the largest deviation of data Y (n, D) from their means."""
    if np.isnan(Y).all():
        return 1.0
    off = Y - np.nanmean(Y.astype(np.float64), axis=0)
    return float(power_of_two(np.nanmax(np.abs(off))))


def same_gaps(known: BoolArray) -> list[IntArray]:
    """Return groups of columns that miss the same rows of a table, known (n, D) or not.

    The first group holds the first column, and so on: groups of one column each are in its order.
    """
    found: dict[bytes, list[int]] = {}
    for d, column in enumerate(np.packbits(known, axis=0).T):
        found.setdefault(column.tobytes(), []).append(d)
    return [np.array(columns) for columns in found.values()]


# ---- loops ---------------------------------------------------------------------------------------


@compiled
def pair_sums(A: FloatArray, B: FloatArray, kind: int) -> FloatArray:
    """Return the sums (m, n) of one kind for rows A (m, D) with rows B (n, D)."""
    sums = np.empty((A.shape[0], B.shape[0]))
    for first in range(0, B.shape[0], _IN_CACHE):
        for j in range(A.shape[0]):
            for i in range(first, min(first + _IN_CACHE, B.shape[0])):
                total = 0.0
                if kind == PRODUCT:
                    for d in range(A.shape[1]):
                        total += A[j, d] * B[i, d]
                elif kind == SQUARED_GAP:
                    for d in range(A.shape[1]):
                        total += square(A[j, d] - B[i, d])
                elif kind == GAP:
                    for d in range(A.shape[1]):
                        total += abs(A[j, d] - B[i, d])
                else:
                    for d in range(A.shape[1]):  # ½(|a| + |b| - |a - b|) without the cancellation
                        low, high = min(A[j, d], B[i, d]), max(A[j, d], B[i, d])
                        total += max(low, 0.0) - min(high, 0.0)
                sums[j, i] = total
    return sums


@compiled
def own_sums(A: FloatArray, kind: int) -> FloatArray:
    """Return ``||a||²`` of each row for products, ``||a||₁`` for overlaps."""
    sums = np.zeros(A.shape[0])
    for j in range(A.shape[0]):
        for d in range(A.shape[1]):
            sums[j] += A[j, d] * A[j, d] if kind == PRODUCT else abs(A[j, d])
    return sums


@compiled
def exponentials(sq_dists: FloatArray, gamma: float) -> FloatArray:
    """Return ``exp(-gamma s)`` of sums (m, n), written over them."""
    for j in range(sq_dists.shape[0]):  # numpy's exp may round by the place in the whole array
        for i in range(sq_dists.shape[1]):
            sq_dists[j, i] = math.exp(-gamma * sq_dists[j, i])
    return sq_dists


def multiply_rows(W: FloatArray, M: FloatArray) -> FloatArray:
    """Return ``W M`` for W (m, n) and M (n, r), float64."""
    return _multiply_rows(float_rows(W), float_rows(M))


def float_rows(A: FloatArray) -> FloatArray:
    """Return A in float64 and C order: one layout, one compiled loop."""
    return np.ascontiguousarray(A, dtype=np.float64)


@compiled
def _multiply_rows(W: FloatArray, M: FloatArray) -> FloatArray:
    m, n = W.shape
    product = np.zeros((m, M.shape[1]))
    for first in range(0, n, _IN_CACHE):
        for j in range(m):
            for i in range(first, min(first + _IN_CACHE, n)):
                weight = W[j, i]
                if weight != 0:
                    for c in range(M.shape[1]):
                        product[j, c] += weight * M[i, c]
    return product


# ---- tiles ---------------------------------------------------------------------------------------


def in_tiles(work: Callable[[slice], Arrays], n: int, n_threads: int) -> list[FloatArray]:
    """Return the arrays that `work` gives for slices of n rows, each put together again.

    There is always one tile, so that no rows give arrays of the right shapes.
    """
    tiles = slices(n, TILE) or [slice(0, 0)]
    parts = run_tasks(work, tiles, n_threads)
    return [np.concatenate(arrays) for arrays in zip(*parts, strict=True)]


def aligned(M: FloatArray, rows: int | None = None, dtype: DTypeLike = np.float64) -> FloatArray:
    """Return M (m, c) with zeros until c is a multiple of 16, and m too, or as large as `rows`."""
    m, c = M.shape
    n_rows = m + -m % _ALIGNED if rows is None else rows
    filled = np.zeros((n_rows, c + -c % _ALIGNED), dtype)
    filled[:m, :c] = M
    return filled


class MultipliedRows:
    """Rows (m, D) that at most ``TILE`` rows at a time are multiplied with."""

    def __init__(self, rows: FloatArray, dtype: DTypeLike = np.float64) -> None:
        self.m, self.D = rows.shape
        self.aligned = aligned(rows, dtype=dtype)

    def products(self, Z: FloatArray) -> FloatArray:
        """Return ``z·y_i`` (n, m) of rows Z (n, D)."""
        return self.padded_products(Z)[:, : self.m]

    def padded_products(self, Z: FloatArray) -> FloatArray:
        """Return the products (n, at least m) as they come, with zeros beyond m."""
        return np.asarray((aligned(Z, TILE, self.aligned.dtype) @ self.aligned.T)[: len(Z)])

    def sums(self, W: FloatArray) -> FloatArray:
        """Return ``Σ_i W_i y_i`` (n, D) for weights W (n, m)."""
        W_aligned = aligned(W, TILE, self.aligned.dtype)
        return np.asarray((W_aligned @ self.aligned)[: len(W), : self.D])


class GaussianRows:
    """Gaussians ``exp(-gamma ||z - y_i||²)`` at rows (m, D).

    All is taken from the mean of these rows, so that a large common offset costs no digits.
    """

    def __init__(self, rows: FloatArray, gamma: float) -> None:
        self.mean, self.gamma = rows.mean(axis=0), gamma
        self.rows = MultipliedRows(rows - self.mean)
        self._half_squares = 0.5 * np.einsum("md,md->m", self.rows.aligned, self.rows.aligned)

    def tile(self, Z: FloatArray, rows: int = TILE) -> tuple[FloatArray, FloatArray]:
        """Return rows Z (n, D) from the mean, and their Gaussians, both padded to a number of rows.

        Columns beyond m hold numbers that a product with zeros takes out.
        """
        centred = aligned(Z - self.mean, rows)
        with np.errstate(over="ignore", invalid="ignore"):
            filled = centred @ self.rows.aligned.T
            W = filled[: len(Z)]
            W -= self._half_squares
            halves = 0.5 * np.einsum("nd,nd->n", centred[: len(Z)], centred[: len(Z)])
            W -= halves[:, None]
        W[~np.isfinite(halves)] = -np.inf  # rows so far away that their squares overflow
        # Rounding may make the squared distance of equal rows a little negative.
        np.minimum(W, 0, out=W)
        W *= 2 * self.gamma
        np.exp(W, out=W)
        return centred, filled

    def values(self, Z: FloatArray) -> FloatArray:
        """Return the Gaussians (n, m) of at most ``TILE`` rows Z (n, D)."""
        return self.tile(Z)[1][: len(Z), : self.rows.m]

    def pull(self, W: FloatArray, Z: FloatArray) -> FloatArray:
        """Return ``Σ_i W_i (y_i - z)`` (n, D) for weights W (n, m)."""
        return np.asarray(self.rows.sums(W) - W.sum(axis=1)[:, None] * (Z - self.mean))


def gaussian_values(A: FloatArray, B: FloatArray, gamma: float, n_threads: int = 1) -> FloatArray:
    """Return ``exp(-gamma ||a - b||²)`` (a, b) of rows."""
    gaussians = GaussianRows(B, gamma)
    return in_tiles(lambda tile: (gaussians.values(A[tile]),), len(A), n_threads)[0]


def row_products(A: FloatArray, B: FloatArray, n_threads: int = 1) -> FloatArray:
    """Return ``a·b`` (a, b) of rows."""
    rows = MultipliedRows(B)
    return in_tiles(lambda tile: (rows.products(A[tile]),), len(A), n_threads)[0]


def weighted_sums(W: FloatArray, rows: FloatArray, n_threads: int = 1) -> FloatArray:
    """Return ``Σ_i W_i y_i`` (n, D) for weights W (n, m) of rows (m, D)."""
    multiplied = MultipliedRows(rows)
    return in_tiles(lambda tile: (multiplied.sums(W[tile]),), len(W), n_threads)[0]


def fix_signs(U: FloatArray) -> FloatArray:
    """Return vectors (m, q) turned so that the largest entry of each is positive."""
    largest = U[np.abs(U).argmax(axis=0), np.arange(U.shape[1])]
    return U * np.where(largest < 0, -1.0, 1.0)


# Turns the distance between the quartiles of normal data into its standard deviation.
QUARTILES_TO_DEVIATION = 0.741301109252801


def center_and_spread(
    how: str, Y: FloatArray, weights: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Return what to subtract from each column of Y (n, D) and what to divide it by.

    A row of weight 2 counts like two rows, in the quartiles, too.
    """
    center, spread = mean_and_deviation(Y, weights)
    if how == "robust":
        Y = Y.astype(np.float64)
        low, center, high = _quartiles(Y, weights[:, None] * ~np.isnan(Y))
        spread = np.where(high > low, QUARTILES_TO_DEVIATION * (high - low), spread)
    return center, np.where(spread > 0, spread, 1)


def mean_and_deviation(Y: FloatArray, weights: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return the weighted mean and standard deviation of each column's observed entries."""
    Y = Y.astype(np.float64)
    seen = weights[:, None] * ~np.isnan(Y)
    total = seen.sum(axis=0)
    # Neither sums nor squares must leave the range of numbers; a power of two loses no digit.
    unit = power_of_two(np.nanmax(np.abs(Y), axis=0))
    scaled = Y / unit
    mean = np.nansum(seen * scaled, axis=0) / total
    deviation = unit * np.sqrt(np.nansum(seen * (scaled - mean) ** 2, axis=0) / total)
    # Rounding leaves a constant column a deviation that is not quite 0.
    return unit * mean, np.where(np.nanmax(Y, axis=0) > np.nanmin(Y, axis=0), deviation, 0)


def _quartiles(Y: FloatArray, seen: FloatArray) -> FloatArray:
    """Return the weighted quartiles (3, D): the first value with such a share at or below it."""
    found = np.empty((3, Y.shape[1]))
    for j, (column, weight) in enumerate(zip(Y.T, seen.T, strict=True)):
        order = np.argsort(column[weight > 0], kind="stable")
        shares = np.cumsum(weight[weight > 0][order])
        place = np.searchsorted(shares, shares[-1] * np.array([0.25, 0.5, 0.75]))
        found[:, j] = column[weight > 0][order][place]
    return found
