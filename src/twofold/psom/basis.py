"""The Lagrange polynomials of one axis, and their derivatives.

Polynomial i is 1 at node i and 0 at the others (Klanke 2007, eq. 3.3),

    l_i(x) = c_i Π_{j≠i} (x - a_j),   c_i = 1 / Π_{j≠i} (a_i - a_j),

with the barycentric weights c_i. The products that leave one node out come from products over the
nodes before and after it, so there is no division by x - a_i and a node needs no special case; the
cost is linear in n. Derivatives use that l_i' is a polynomial through the same nodes,

    l'(x) = l(x) D,   l''(x) = l(x) D D,   D_ij = l_j'(a_i) = (c_j / c_i) / (a_i - a_j),

with the diagonal of D from the vanishing sum of each row. Inside, the nodes are scaled to span
[-1, 1], and factors are doubled: products over many nodes then neither overflow nor vanish.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from twofold.array_types import FloatArray
from twofold.compiled import compiled


class AxisBasis:
    """Lagrange polynomials through the nodes of one axis.

    Attributes
    ----------
    nodes : (n,) increasing
    derivative_matrix : (n, n), slope of polynomial j at node i
    """

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
        self.derivative_matrix = slopes / self.half

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

    def slopes(self, x: ArrayLike) -> FloatArray:
        """Return the first derivatives (m, n) of the polynomials at places x (m,)."""
        return self.derivatives(np.asarray(x, dtype=np.float64), 1)[1]

    def curvatures(self, x: ArrayLike) -> FloatArray:
        """Return the second derivatives (m, n) of the polynomials at places x (m,)."""
        return self.derivatives(np.asarray(x, dtype=np.float64), 2)[2]


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
