"""The back end ``cpu_dense``: every pair, in blocks of rows, with the sums done by BLAS.

A block of query rows takes its weights ``k`` (rows, n), the product ``A = k V``, the answer
``U = dR/dA`` of the objective, the product ``U Vᵀ`` and the pull on the latent points, while the
block is in cache. Nothing of size n × n is ever kept.
"""

from dataclasses import dataclass

import numpy as np

from twofold.array_types import FloatArray, IntArray
from twofold.compiled import compiled, square
from twofold.engine.cells import Pairs
from twofold.kernels import Kernel

BLOCK_BYTES = 2**21
# The weight of a reference that is out of sight: 0 in float32, nothing in float64, without the
# price of an infinity.
NOTHING = 1e-282


def block_rows(n: int, itemsize: int) -> int:
    """Return how many rows of n weights make a block that stays in cache, within 16 to 512."""
    return int(np.clip(BLOCK_BYTES // (n * itemsize) // 16 * 16, 16, 512))


def weigh_block(
    queries: FloatArray,
    points: FloatArray,
    hidden: IntArray,
    kernel: Kernel,
    cutoff: float,
    out: FloatArray,
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return weights, slopes (rows, n) and shift (rows,) of a block; ``out`` is scratch memory.

    ``points`` is (q, n); ``hidden[j]`` are the references that query j must not see, or -1.
    """
    shift = np.zeros(len(queries), dtype=out.dtype)
    # Weights below cutoff² become exact zeros: numbers next to underflow are slow to multiply.
    limit = far = 0.0
    if kernel.is_exponential:
        limit, far = 2 * kernel.reach(cutoff), kernel.reach(NOTHING)
    hidden = np.ascontiguousarray(hidden)  # one memory layout: the loop is compiled for each
    _squared_distances(queries, points, hidden, kernel.is_exponential, limit, far, out, shift)
    weight, slope = kernel.weigh(out)
    if not kernel.is_exponential:
        row, place = np.nonzero(hidden >= 0)
        unseen = hidden[row, place]
        weight[row, unseen] = slope[row, unseen] = 0
    return weight, slope, shift


@dataclass(frozen=True)
class DenseSums:
    """The sums of a block of rows, and the way back; ``scratch`` is memory for its pairs."""

    weight: FloatArray
    slope: FloatArray
    queries: FloatArray
    points: FloatArray
    V: FloatArray
    scratch: FloatArray

    def values(self) -> FloatArray:
        """Return the sums (rows, C)."""
        return self.weight @ self.V

    def pull(self, U: FloatArray, grad_queries: FloatArray, push: FloatArray) -> None:
        """Carry ``U = dR/dA`` (rows, C) back to queries (rows, q) and references, (q, n)."""
        pull = np.matmul(U, self.V.T, out=self.scratch)
        _pull_block(self.queries, self.points, self.slope, pull, grad_queries, push)


def as_pairs(weight: FloatArray, slope: FloatArray, shift: FloatArray) -> Pairs:
    """Return a block of weights and slopes (rows, n) as a list of all its pairs."""
    rows, n = weight.shape
    first = np.arange(rows + 1) * n
    index = np.tile(np.arange(n, dtype=np.int32), rows)
    return Pairs(first, index, weight.ravel(), slope.ravel(), shift, is_dense=True)


@compiled
def _squared_distances(
    queries: FloatArray,
    points: FloatArray,
    hidden: IntArray,
    is_exponential: bool,
    limit: float,
    far: float,
    s: FloatArray,
    shift: FloatArray,
) -> None:
    n = points.shape[1]
    for j in range(queries.shape[0]):
        for i in range(n):
            s[j, i] = square(points[0, i] - queries[j, 0])
        for m in range(1, queries.shape[1]):
            for i in range(n):
                s[j, i] += square(points[m, i] - queries[j, m])
        if not is_exponential:
            continue
        for i in hidden[j]:
            if i >= 0:
                s[j, i] = np.inf
        nearest = s[j, 0]
        for i in range(1, n):
            nearest = min(nearest, s[j, i])
        # All references are hidden, and weights at an infinite distance are 0.
        if nearest == np.inf:
            continue
        shift[j] = nearest
        for i in range(n):
            s[j, i] = s[j, i] - nearest if s[j, i] <= nearest + limit else far


@compiled
def _pull_block(
    queries: FloatArray,
    points: FloatArray,
    slope: FloatArray,
    pull: FloatArray,
    grad_queries: FloatArray,
    push: FloatArray,
) -> None:
    n, q = points.shape[1], points.shape[0]
    for j in range(queries.shape[0]):
        for i in range(n):
            pull[j, i] *= slope[j, i]
        for m in range(q):
            x, total = queries[j, m], points.dtype.type(0)
            for i in range(n):
                total += pull[j, i] * (points[m, i] - x)
            grad_queries[j, m] += total
            for i in range(n):
                push[m, i] -= pull[j, i] * (points[m, i] - x)
