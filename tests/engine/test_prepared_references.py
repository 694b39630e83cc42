from __future__ import annotations

import numpy as np
import pytest
from finite_differences import relative_error
from kernel_cases import ALL_KERNELS, FINITE, SMOOTH, name_of
from oracles.kernel_sums import squared_distances

from twofold.engine import KernelSums, PreparedReferences
from twofold.kernels import GAUSSIAN, QUARTIC


@pytest.fixture
def rng():
    return np.random.default_rng(0)


def prepare(rng, kernel, q=2, n=80, widths=None, dtype=np.float64, cutoff=1e-15, **options):
    X = kernel.half_width() * rng.normal(size=(n, q))
    V = rng.normal(size=(n, 3))
    engine = KernelSums(kernel, cutoff=cutoff, **options)
    return X, V, PreparedReferences(engine, X.astype(dtype), V.astype(dtype), widths)


def true_sums(kernel, sums):
    """Undo the shift of exponential kernels."""
    factor = np.where(sums.shift > 0, kernel.value(sums.shift), 1)
    return sums.values * factor[:, None]


@pytest.mark.parametrize("kernel", ALL_KERNELS, ids=name_of)
@pytest.mark.parametrize("q", [1, 2, 3, 5])
def test_sums_equal_the_formula(rng, kernel, q):
    X, V, references = prepare(rng, kernel, q)
    Q = kernel.half_width() * rng.normal(size=(30, q))
    expected = kernel.value(squared_distances(Q, X)) @ V
    assert relative_error(true_sums(kernel, references.at(Q)), expected) < 1e-12


@pytest.mark.parametrize("kernel", ALL_KERNELS, ids=name_of)
def test_widths_are_bandwidths_of_the_references(rng, kernel):
    widths = rng.uniform(0.3, 4, size=80)
    X, V, references = prepare(rng, kernel, widths=widths)
    Q = 2 * kernel.half_width() * rng.normal(size=(30, 2))
    expected = kernel.value(squared_distances(Q, X) / widths**2) @ V
    assert relative_error(true_sums(kernel, references.at(Q)), expected) < 1e-12


def test_equal_widths_are_a_change_of_unit(rng):
    X, V, references = prepare(rng, GAUSSIAN, widths=np.full(80, 0.5))
    unit = PreparedReferences(references.engine, 2 * X, V)
    Q = rng.normal(size=(10, 2))
    np.testing.assert_allclose(references.at(Q).values, unit.at(2 * Q).values, rtol=1e-12)


def test_one_does_not_see_its_own(rng):
    X, V, references = prepare(rng, GAUSSIAN)
    own = rng.integers(0, 80, size=20)
    K = GAUSSIAN.value(squared_distances(X[own], X))
    K[np.arange(20), own] = 0
    found = references.at(X[own], hidden=own)
    assert relative_error(true_sums(GAUSSIAN, found), K @ V) < 1e-12


@pytest.mark.parametrize("kernel", SMOOTH, ids=name_of)
@pytest.mark.parametrize("wide", [False, True], ids=["one width", "widths"])
def test_slopes_equal_central_differences(rng, kernel, wide):
    widths = rng.uniform(0.5, 2, size=80) if wide else None
    _, _, references = prepare(rng, kernel, widths=widths)
    unit = kernel.half_width()
    Q = unit * rng.normal(size=(20, 2))
    found = references.at(Q, slopes=True)
    # Of rows that are shifted the derivative is taken at the same shift.
    near = found.shift == 0
    assert near.sum() > 10
    step = 1e-5 * unit
    for m in range(2):
        move = step * np.eye(2)[m]
        there, back = references.at(Q[near] + move), references.at(Q[near] - move)
        expected = (true_sums(kernel, there) - true_sums(kernel, back)) / (2 * step)
        assert relative_error(found.slopes[near, m], expected) < 1e-6


def test_slopes_of_shifted_rows_keep_the_ratio(rng):
    # Far outside, f = A₀ / A₁ and its derivative do not feel the shift.
    X, V, references = prepare(rng, GAUSSIAN)
    V[:, 1] = 1
    references = PreparedReferences(references.engine, X, V)

    def ratio(Q):
        values = references.at(Q).values
        return values[:, 0] / values[:, 1]

    Q = np.array([[9.0, 4.0], [-7.0, 8.0]])
    sums = references.at(Q, slopes=True)
    assert (sums.shift > 1).all()
    f = sums.values[:, 0] / sums.values[:, 1]
    slope = (sums.slopes[:, :, 0] - f[:, None] * sums.slopes[:, :, 1]) / sums.values[:, 1:2]
    for m in range(2):
        move = 1e-5 * np.eye(2)[m]
        expected = (ratio(Q + move) - ratio(Q - move)) / 2e-5
        np.testing.assert_allclose(slope[:, m], expected, rtol=1e-6)


@pytest.mark.parametrize("kernel", [GAUSSIAN, QUARTIC], ids=name_of)
@pytest.mark.parametrize("dtype", [np.float64, np.float32], ids=["float64", "float32"])
@pytest.mark.parametrize("wide", [False, True], ids=["one width", "widths"])
def test_a_row_gives_the_same_bits_alone_or_among_others(rng, kernel, dtype, wide):
    widths = rng.uniform(0.5, 2, size=300) if wide else None
    references = prepare(rng, kernel, n=300, widths=widths, dtype=dtype, n_jobs=2)[2]
    Q = (3 * rng.normal(size=(600, 2))).astype(dtype)
    together = references.at(Q, slopes=True)
    assert together.values.dtype == together.slopes.dtype == dtype
    for j in (0, 1, 255, 256, 599):
        alone = references.at(Q[j : j + 1], slopes=True)
        np.testing.assert_array_equal(alone.values[0], together.values[j])
        np.testing.assert_array_equal(alone.slopes[0], together.slopes[j])
        np.testing.assert_array_equal(alone.shift[0], together.shift[j])


@pytest.mark.parametrize("n_jobs", [2, 3])
def test_any_number_of_threads_gives_the_same_bits(n_jobs):
    Q = np.random.default_rng(1).normal(size=(1_000, 2))
    results = [
        prepare(np.random.default_rng(2), GAUSSIAN, n=300, n_jobs=jobs)[2].at(Q, slopes=True)
        for jobs in (1, n_jobs)
    ]
    np.testing.assert_array_equal(results[0].values, results[1].values)
    np.testing.assert_array_equal(results[0].slopes, results[1].slopes)


@pytest.mark.parametrize("kernel", FINITE, ids=name_of)
def test_out_of_reach_there_is_nothing(rng, kernel):
    references = prepare(rng, kernel)[2]
    sums = references.at(np.array([[50.0, 50.0]]), slopes=True)
    assert not sums.values.any()
    assert not sums.slopes.any()


def test_far_away_the_nearest_reference_is_all(rng):
    X, V, references = prepare(rng, GAUSSIAN)
    Q = np.array([[1e5, 3e4]])
    nearest = squared_distances(Q, X).argmin()
    sums = references.at(Q)
    np.testing.assert_allclose(sums.values[0], V[nearest])
    assert sums.shift[0] == pytest.approx(squared_distances(Q, X).min())
