from __future__ import annotations

import numpy as np
import pytest
from oracles import psom as oracle

from twofold.psom.basis import AxisBasis
from twofold.psom.grid import Grid

# Largest sum of absolute values on [-1, 1]: regular, chebyshev.
LEBESGUE = {3: (1.25, 1.67), 5: (2.21, 1.99), 8: (6.93, 2.29), 12: (51.2, 2.54), 20: (5890, 2.87)}


def basis(n, spacing="chebyshev", lo=-1.0, hi=1.0):
    return AxisBasis(Grid.make((n,), spacing, [(lo, hi)]).nodes[0])


def test_values_are_the_product_form():
    nodes = np.array([-1.0, 0.3, 0.5, 4.0])
    x = np.array([-2.0, -1.0, 0.31, 3.9, 6.0])
    expected = [[oracle.lagrange(nodes, i, place) for i in range(4)] for place in x]
    np.testing.assert_allclose(AxisBasis(nodes).values(x), expected, rtol=1e-13, atol=1e-15)


@pytest.mark.parametrize("spacing", ["regular", "chebyshev"])
@pytest.mark.parametrize("n", [2, 8, 40])
def test_values_at_the_nodes_are_the_unit_matrix_exactly(n, spacing):
    found = basis(n, spacing, 2.0, 7.0)
    np.testing.assert_array_equal(found.values(found.nodes), np.eye(n))


def test_no_place_near_a_node_is_special():
    found = basis(9)
    values = found.values([np.nextafter(found.nodes[4], 2), found.nodes[4] + 1e-300])
    np.testing.assert_allclose(values, np.eye(9)[[4, 4]], atol=1e-14)


@pytest.mark.parametrize(("lo", "hi"), [(-1, 1), (0, 1e-6), (-300, 1e5)])
@pytest.mark.parametrize("n", [3, 12, 60, 300])
def test_values_sum_to_one_and_derivatives_to_zero(n, lo, hi):
    found = basis(n, "chebyshev", lo, hi)
    x = np.linspace(lo, hi, 101)
    np.testing.assert_allclose(found.values(x).sum(axis=1), 1, rtol=1e-11)
    slopes = found.derivatives(x, 1)[1]
    size = np.abs(slopes).sum(axis=1)
    np.testing.assert_allclose(slopes.sum(axis=1) / size, 0, atol=1e-11)


def test_polynomials_of_lower_degree_and_their_derivatives_are_exact():
    found = basis(7, "chebyshev", -1.0, 2.0)
    polynomial = np.polynomial.Polynomial([0.3, -1, 2, 0.5, 0, 1, -0.2])
    x = np.linspace(-1.2, 2.2, 50)  # beyond the domain too
    for matrix, truth in [
        (found.values(x), polynomial),
        (found.derivatives(x, 1)[1], polynomial.deriv()),
        (found.derivatives(x, 2)[2], polynomial.deriv(2)),
    ]:
        np.testing.assert_allclose(matrix @ polynomial(found.nodes), truth(x), rtol=0, atol=1e-10)
    np.testing.assert_allclose(
        found.derivative_matrix @ polynomial(found.nodes), polynomial.deriv()(found.nodes)
    )


@pytest.mark.parametrize("n", LEBESGUE)
def test_lebesgue_constants(n):
    x = np.linspace(-1, 1, 20001)
    for spacing, expected in zip(("regular", "chebyshev"), LEBESGUE[n], strict=True):
        largest = np.abs(basis(n, spacing).values(x)).sum(axis=1).max()
        assert largest == pytest.approx(expected, rel=3e-3)
