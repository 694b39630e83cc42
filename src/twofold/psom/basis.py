"""The Lagrange polynomials of one axis with their derivatives, and products of all axes at samples.

Polynomial i is 1 at node i and 0 at the others (Klanke 2007, eq. 3.3),

    l_i(x) = c_i Π_{j≠i} (x - a_j),   c_i = 1 / Π_{j≠i} (a_i - a_j),

with the barycentric weights c_i. The products that leave one node out come from products over the
nodes before and after it, so there is no division by x - a_i and a node needs no special case; the
cost is linear in n. Derivatives use that l_i' is a polynomial through the same nodes,

    l'(x) = l(x) D,   l''(x) = l(x) D D,   D_ij = l_j'(a_i) = (c_j / c_i) / (a_i - a_j),

with the diagonal of D from the vanishing sum of each row. Inside, the nodes are scaled to span
[-1, 1], and factors are doubled: products over many nodes then neither overflow nor vanish.

The design matrix of scattered samples is never written out. Its row i of B (m, N) is the Kronecker
product of what the basis functions of the axes are at sample i. With the axes cut into two groups,
row i is a_i ⊗ b_i, and for coefficients C seen as a matrix between the two groups

    (B C)_i = a_iᵀ C b_i,        Bᵀ r = Σ_i r_i a_i b_iᵀ:

one matrix product for a block of samples, and a sum over the smaller group. The number of
operations is that of the written-out matrix, but all of them run at the speed of a matrix product,
and memory is that of the two groups.
"""

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import ArrayLike

from twofold.array_types import FloatArray
from twofold.compiled import compiled
from twofold.engine.threads import run_tasks, slices


class AxisBasis:
    """Lagrange polynomials through the nodes (n,) of one axis."""

    def __init__(self, nodes: ArrayLike) -> None:
        self.nodes = np.array(nodes, dtype=np.float64)
        self.centre = (self.nodes[0] + self.nodes[-1]) / 2
        self.half = (self.nodes[-1] - self.nodes[0]) / 2
        self.scaled_nodes = (self.nodes - self.centre) / self.half
        n = len(self.nodes)
        # What makes polynomial i one at its own node, found by the very loop that evaluates it.
        products = leave_one_out_products(self.scaled_nodes, self.scaled_nodes)
        self.denominators = np.ascontiguousarray(np.diagonal(products))
        apart = self.scaled_nodes[:, None] - self.scaled_nodes + np.eye(n)
        slopes = self.denominators[:, None] / self.denominators / apart
        np.fill_diagonal(slopes, 0)
        np.fill_diagonal(slopes, -slopes.sum(axis=1))
        self.derivative_matrix = slopes / self.half  # slope of polynomial j at node i

    def values(self, x: ArrayLike) -> FloatArray:
        """Return the polynomials (m, n) at places x (m,)."""
        places = (np.asarray(x, dtype=np.float64) - self.centre) / self.half
        return leave_one_out_products(self.scaled_nodes, places) / self.denominators

    def derivatives(self, x: FloatArray, order: int) -> list[FloatArray]:
        """Return the polynomials and their derivatives up to an order, each (m, n)."""
        parts = [self.values(x)]
        for _ in range(order):
            parts.append(rows_times(parts[-1], self.derivative_matrix))
        return parts


@compiled
def leave_one_out_products(nodes: FloatArray, x: FloatArray) -> FloatArray:
    """Return ``Π_{j≠i} 2 (x_k - a_j)`` (m, n)."""
    n = nodes.size
    products = np.empty((x.size, n))
    for k in range(x.size):
        before = 1.0
        for i in range(n):
            products[k, i] = before
            before *= 2 * (x[k] - nodes[i])
        after = 1.0
        for i in range(n - 1, -1, -1):
            products[k, i] *= after
            after *= 2 * (x[k] - nodes[i])
    return products


@compiled
def rows_times(rows: FloatArray, matrix: FloatArray) -> FloatArray:
    """Return ``rows @ matrix``, each row summed in the same order however many rows there are."""
    out = np.zeros((rows.shape[0], matrix.shape[1]))
    for k in range(rows.shape[0]):
        for i in range(matrix.shape[0]):
            for j in range(matrix.shape[1]):
                out[k, j] += rows[k, i] * matrix[i, j]
    return out


# A block's intermediate array stays in the cache of one core.
ROWS_PER_BLOCK = 256
BLOCKS_PER_TASK = 4


class SampleBasis:
    """Products with the design matrix B (m, N) of scattered samples, rows times factors (m,).

    ``axis_values`` are, of each axis, the basis functions at the samples (m, n).
    """

    def __init__(
        self, axis_values: Sequence[FloatArray], row_factors: FloatArray, n_threads: int = 1
    ) -> None:
        self.n_threads = n_threads
        self.n_rows = len(row_factors)
        split = _split([values.shape[1] for values in axis_values])
        self.left = row_products(axis_values[:split]) * row_factors[:, None]
        self.right = row_products(axis_values[split:]) if split < len(axis_values) else None
        self.tasks = slices(self.n_rows, ROWS_PER_BLOCK * BLOCKS_PER_TASK)

    @property
    def n_columns(self) -> int:
        """Number of coefficients N."""
        return self.left.shape[1] * (1 if self.right is None else self.right.shape[1])

    def times(self, C: FloatArray) -> FloatArray:
        """Return ``B C`` (m, k)."""
        k = C.shape[1]
        if self.right is None:
            matrix = C
        else:
            stacked = C.reshape(self.left.shape[1], self.right.shape[1], k).transpose(0, 2, 1)
            matrix = np.ascontiguousarray(stacked).reshape(self.left.shape[1], -1)

        def rows(task: slice) -> FloatArray:
            return np.concatenate([self._times_block(matrix, at, k) for at in _blocks(task)])

        return np.concatenate(run_tasks(rows, self.tasks, self.n_threads))

    def _times_block(self, matrix: FloatArray, at: slice, k: int) -> FloatArray:
        half = self.left[at] @ matrix
        if self.right is None:
            return half
        return np.einsum("ikf,if->ik", half.reshape(len(half), k, -1), self.right[at])

    def transposed_times(self, r: FloatArray) -> FloatArray:
        """Return ``Bᵀ r`` (N, k)."""
        k = r.shape[1]
        right_size = 1 if self.right is None else self.right.shape[1]

        def part(task: slice) -> FloatArray:
            total = np.zeros((self.left.shape[1], k * right_size))
            for at in _blocks(task):
                total += self.left[at].T @ self._spread(r[at], at)
            return total

        total = added_up(part, self.tasks, self.n_threads, (self.left.shape[1], k * right_size))
        stacked = total.reshape(self.left.shape[1], k, right_size).transpose(0, 2, 1)
        return stacked.reshape(-1, k)

    def _spread(self, r: FloatArray, at: slice) -> FloatArray:
        if self.right is None:
            return r
        return (r[:, :, None] * self.right[at][:, None, :]).reshape(len(r), -1)

    def rows(self, at: slice) -> FloatArray:
        """Return some rows of B, written out."""
        return (
            self.left[at] if self.right is None else row_products([self.left[at], self.right[at]])
        )


def added_up(
    part: Callable[[slice], FloatArray],
    tasks: Sequence[slice],
    n_threads: int,
    shape: tuple[int, int],
) -> FloatArray:
    """Return the sum of the parts of all tasks, added in order whatever the number of threads."""
    total = np.zeros(shape)
    for first in range(0, len(tasks), 8):  # few parts are held at a time
        for some in run_tasks(part, tasks[first : first + 8], n_threads):
            total += some
    return total


def row_products(factors: Sequence[FloatArray]) -> FloatArray:
    """Return the Kronecker product of the factors, row by row."""
    out = factors[0]
    for factor in factors[1:]:
        out = (out[:, :, None] * factor[:, None, :]).reshape(len(out), -1)
    return out


def _split(counts: Sequence[int]) -> int:
    """Return how many axes make the first group: as few as are needed to be the larger one."""
    products = np.cumprod(np.array(counts, dtype=np.float64))
    return int(np.searchsorted(products**2, products[-1]) + 1)


def _blocks(task: slice) -> list[slice]:
    starts = range(task.start, task.stop, ROWS_PER_BLOCK)
    return [slice(at, min(at + ROWS_PER_BLOCK, task.stop)) for at in starts]
