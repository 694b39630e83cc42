from __future__ import annotations

import numpy as np
import pytest

from twofold.small_systems import factor, solve_factored


@pytest.mark.parametrize("p", [1, 2, 3, 6])
def test_positive_definite_systems(p):
    rng = np.random.default_rng(p)
    G = rng.normal(size=(p, p + 2))
    A, b = G @ G.T, rng.normal(size=(p, 2))
    L, x = A.copy(), b.copy()
    assert factor(L, 0.0)
    np.testing.assert_allclose(np.tril(L), np.linalg.cholesky(A), rtol=1e-9)
    solve_factored(L, x)
    np.testing.assert_allclose(A @ x, b, atol=1e-8)


def test_only_the_lower_half_is_read():
    A = np.array([[4.0, 99.0], [2.0, 3.0]])
    assert factor(A, 0.0)
    np.testing.assert_allclose(np.tril(A), [[2.0, 0.0], [1.0, np.sqrt(2)]])


@pytest.mark.parametrize("A", [np.diag([1.0, -1.0]), np.zeros((2, 2))])
def test_what_is_not_positive_definite_is_refused(A):
    assert not factor(A.copy(), 0.0)


def test_pivots_are_raised_where_asked():
    A = np.ones((2, 2))  # of rank one: the second pivot would be 0
    assert factor(A, 0.25)
    np.testing.assert_allclose(np.tril(A), [[1.0, 0.0], [1.0, 0.5]])
