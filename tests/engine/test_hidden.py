"""Lists of several references that a query must not see, as in leave-K-out."""

from __future__ import annotations

import numpy as np
import pytest
from kernel_cases import name_of
from oracles import extensions as oracle

from twofold.engine import (
    FitGroup,
    KernelSums,
    LocalFit,
    PreparedReferences,
    polynomial_terms,
)
from twofold.engine.local_loops import RIDGE
from twofold.kernels import GAUSSIAN, QUARTIC, TRIWEIGHT

KERNELS = [GAUSSIAN, QUARTIC, TRIWEIGHT]
N, D, Q = 40, 3, 2

backends = pytest.mark.parametrize("backend", ["cpu_dense", "cpu_cells"])
kernels = pytest.mark.parametrize("kernel", KERNELS, ids=name_of)
degrees = pytest.mark.parametrize("degree", [0, 1, 2])


class Table:
    """Rows that are reconstructed from each other, some hidden from some."""

    def __init__(self, kernel, seed=0):
        rng = np.random.default_rng(seed)
        self.kernel = kernel
        side = 2.4 * kernel.half_width()
        self.X = rng.uniform(-side / 2, side / 2, size=(N, Q))
        self.Y = rng.normal(size=(N, D))
        self.omega = rng.uniform(0.5, 2, size=N)

    def carried(self, degree):
        """Return V and how it is fitted; at degree 0 numerators and the denominator."""
        if degree == 0:
            return np.column_stack([self.omega[:, None] * self.Y, self.omega]), None
        group = FitGroup(np.arange(D + 1), self.omega)
        V = np.column_stack([self.Y, np.ones(N)])
        return V, LocalFit(polynomial_terms(degree, Q), (group,))

    def sums(self, hidden, backend, degree=0):
        """Return the sums and the gradients of ``Σ_j ||f_j||²``."""
        A = np.empty((N, D + 1))

        def respond(numbers, sums, shift):
            A[numbers] = sums
            f, denominator = ratio(sums)
            E = 2 * f / np.where(denominator > 0, denominator, 1)
            return (f**2).sum(axis=1), np.column_stack([E, -(E * f).sum(axis=1)])

        V, local = self.carried(degree)
        engine = KernelSums(self.kernel, cutoff=1e-15, n_jobs=1, backend=backend)
        losses, by_query, by_reference = engine.evaluate(
            self.X, V, respond, hidden=hidden, local=local
        )
        return A, losses, by_query, by_reference

    def at(self, places, hidden, degree=0):
        V, local = self.carried(degree)
        engine = KernelSums(self.kernel, cutoff=1e-15, n_jobs=1)
        prepared = PreparedReferences(engine, self.X, V, None, local)
        return prepared.at(places, hidden=hidden, slopes=True)

    def expected(self, lists, degree=0):
        ridge = RIDGE if degree else 0.0
        options = {"degree": degree, "F": self.kernel.value, "ridge": ridge}
        return np.array(
            [
                oracle.regress(x, self.X, self.Y, self.omega, some, **options)
                for x, some in zip(self.X, lists, strict=True)
            ]
        )


def ratio(A):
    denominator = A[:, D:]
    return A[:, :D] / np.where(denominator > 0, denominator, 1), denominator


def padded(lists):
    """Return lists of any length as a table, -1 where they are shorter than the longest."""
    table = np.full((len(lists), max(map(len, lists))), -1)
    for row, some in zip(table, lists, strict=True):
        row[: len(some)] = some
    return table


@pytest.mark.cover(2)
@backends
@degrees
@kernels
@pytest.mark.parametrize("k", [1, 2, 7])
def test_leave_k_out_equals_the_oracle(kernel, degree, k, backend):
    table = Table(kernel)
    lists = oracle.leave_k_out_lists(table.Y, k)
    f = ratio(table.sums(lists, backend, degree)[0])[0]
    np.testing.assert_allclose(f, table.expected(lists, degree), rtol=1e-8, atol=1e-8)


@kernels
@degrees
def test_prepared_references_hide_the_same(kernel, degree):
    table = Table(kernel)
    lists = oracle.leave_k_out_lists(table.Y, 5)
    found = table.at(table.X, lists, degree)
    f = ratio(found.values)[0]
    np.testing.assert_allclose(f, table.expected(lists, degree), rtol=1e-8, atol=1e-8)
    some = np.array([3, 30, 11])
    again = table.at(table.X[some], lists[some], degree)
    np.testing.assert_array_equal(again.values, found.values[some])
    np.testing.assert_array_equal(again.slopes, found.slopes[some])


@backends
@degrees
@kernels
def test_the_gradient_feels_nothing_of_what_is_hidden(kernel, degree, backend):
    # Reference 5 is hidden from everyone: it may carry anything, and is not pulled.
    table = Table(kernel)
    hidden = np.column_stack([np.arange(N), np.full(N, 5)])
    before = table.sums(hidden, backend, degree)
    assert np.abs(before[3][5]).max() < 1e-200  # out of sight is next to nothing, or nothing
    assert np.delete(before[3], 5, axis=0).any(axis=1).all()
    table.Y[5] += 100
    table.omega[5] *= 3
    after = table.sums(hidden, backend, degree)
    for a, b in zip(before, after, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-9, atol=1e-11)


@backends
@degrees
def test_order_padding_and_repetition_change_nothing(degree, backend):
    table = Table(GAUSSIAN)
    rng = np.random.default_rng(1)
    lists = [list(rng.choice(N, size=rng.integers(0, 5), replace=False)) for _ in range(N)]
    once = table.sums(padded(lists), backend, degree)
    f = ratio(once[0])[0]
    np.testing.assert_allclose(f, table.expected(lists, degree), rtol=1e-8, atol=1e-8)
    for other in (
        [[*some, *some] for some in lists],
        [[-1, *reversed(some), -1] for some in lists],
        [[*some, -1, *some[:1]] for some in lists],
    ):
        again = table.sums(padded(other), backend, degree)
        for a, b in zip(once, again, strict=True):
            np.testing.assert_array_equal(a, b)


@degrees
def test_order_padding_and_repetition_in_prepared_references(degree):
    table = Table(GAUSSIAN)
    once = table.at(table.X[:2], np.array([[4, 9, 1], [7, -1, -1]]), degree)
    again = table.at(table.X[:2], np.array([[1, 4, 9, 9, 4, -1], [-1, 7, 7, 7, -1, 7]]), degree)
    np.testing.assert_array_equal(once.values, again.values)
    np.testing.assert_array_equal(once.slopes, again.slopes)


@backends
@kernels
def test_one_number_a_query_is_a_list_of_one(kernel, backend):
    table = Table(kernel)
    flat = table.sums(np.arange(N), backend)
    as_lists = table.sums(np.arange(N)[:, None], backend)
    for a, b in zip(flat, as_lists, strict=True):
        np.testing.assert_array_equal(a, b)


@backends
@kernels
def test_lists_of_nothing_hide_nothing(kernel, backend):
    table = Table(kernel)
    for hidden in (np.full((N, 3), -1), np.full(N, -1)):
        for a, b in zip(table.sums(hidden, backend), table.sums(None, backend), strict=True):
            np.testing.assert_array_equal(a, b)


@backends
@degrees
@kernels
def test_who_sees_nobody_has_no_sums_and_no_gradient(kernel, degree, backend):
    table = Table(kernel)
    hidden = np.full((N, N), -1)
    hidden[8], hidden[:, 0] = np.arange(N), np.arange(N)
    hidden[8, 0] = 0
    A, _, by_query, by_reference = table.sums(hidden, backend, degree)
    assert not A[8].any()
    assert not by_query[8].any()
    others = np.arange(N) != 8
    as_ever = table.sums(np.arange(N), backend, degree)[0]
    np.testing.assert_allclose(A[others], as_ever[others], rtol=1e-12)
    assert (A[others, D] > 0).all()
    for part in (A, by_query, by_reference):
        assert np.isfinite(part).all()
    found = table.at(table.X[[8, 9]], hidden[[8, 9]], degree)
    assert not found.values[0].any()
    assert not found.slopes[0].any()
    assert found.values[1].any()


@backends
def test_the_nearest_that_is_seen_counts_from_far_away(backend):
    # In units of 1e3 the points lie at 0, 1, 2.5 and 4.5; without the two nearest of each.
    table = Table(GAUSSIAN)
    table.X[:] = 1e6 + 1e3 * np.arange(N)[:, None]
    table.X[:4] = 1e3 * np.array([[0.0], [1.0], [2.5], [4.5]])
    hidden = np.full((N, 3), -1)
    hidden[:, 0] = np.arange(N)
    hidden[:4, 1:] = [[1, -1], [0, 2], [1, -1], [2, 1]]
    A = table.sums(hidden, backend)[0]
    np.testing.assert_allclose(ratio(A)[0][:4], table.Y[[2, 3, 3, 0]], rtol=1e-12)
