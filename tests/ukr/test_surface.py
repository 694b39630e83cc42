from __future__ import annotations

import numpy as np
import pytest
from finite_differences import relative_error
from kernel_cases import ALL_KERNELS, FINITE, SMOOTH, name_of
from oracles import kernel_sums as oracle
from ukr.problems import make_surface, make_table

from twofold.engine import KernelSums
from twofold.kernels import GAUSSIAN, QUARTIC
from twofold.losses import Huber, Squared
from twofold.regularization import LeaveOneOut
from twofold.ukr.objective import Problem
from twofold.ukr.surface import CarriedRows, Surface, in_fewer_coordinates

situations = pytest.mark.parametrize(
    ("weighted", "missing"), [(False, False), (True, False), (True, True)]
)


def places(X, m=30):
    rng = np.random.default_rng(9)
    return X[rng.integers(0, len(X), size=m)] + 0.2 * X.std() * rng.normal(size=(m, X.shape[1]))


@pytest.mark.cover(2)
@situations
@pytest.mark.parametrize("kernel", ALL_KERNELS, ids=name_of)
@pytest.mark.parametrize("q", [1, 2, 4])
def test_regression_and_density_equal_the_oracle(kernel, q, weighted, missing):
    X, Y, weights, observed = make_table(kernel, q, weighted=weighted, missing=missing)
    surface = make_surface(kernel, X, Y, weights, observed)
    Q = places(X)
    f, _ = oracle.regress(kernel, Q, X, Y, None, weights, observed)
    assert relative_error(surface.regress(Q), f) < 1e-9
    assert relative_error(surface.density(Q), oracle.density(kernel, Q, X, weights)) < 1e-9


@situations
@pytest.mark.parametrize("kernel", SMOOTH, ids=name_of)
def test_the_jacobian_equals_the_oracle_and_central_differences(kernel, weighted, missing):
    X, Y, weights, observed = make_table(kernel, weighted=weighted, missing=missing)
    surface = make_surface(kernel, X, Y, weights, observed)
    Q = places(X)
    f, J, density, rise = surface.look(Q)
    np.testing.assert_allclose(f + surface.rows.mean, surface.regress(Q), rtol=1e-12)
    np.testing.assert_allclose(density, surface.density(Q), rtol=1e-12)
    expected = oracle.jacobian(kernel, Q, X, Y, weights, observed).transpose(0, 2, 1)
    assert relative_error(J, expected) < 1e-9
    step = 1e-5 * kernel.half_width()
    for m in range(2):
        move = step * np.eye(2)[m]
        change = (surface.regress(Q + move) - surface.regress(Q - move)) / (2 * step)
        assert relative_error(J[:, m], change) < 1e-6
        change = (surface.density(Q + move) - surface.density(Q - move)) / (2 * step)
        assert relative_error(rise[:, m] * density, change) < 1e-6


def test_widths_belong_to_the_points():
    X, Y, weights, _ = make_table(weighted=True)
    widths = np.random.default_rng(1).uniform(0.5, 2, size=len(X))
    surface = make_surface(GAUSSIAN, X, Y, weights, widths=widths)
    Q = places(X)
    K = weights * GAUSSIAN.value(oracle.squared_distances(Q, X) / widths**2)
    np.testing.assert_allclose(surface.regress(Q), K @ Y / K.sum(axis=1, keepdims=True))
    np.testing.assert_allclose(surface.density(Q), K.sum(axis=1) / weights.sum())


def test_the_domain_holds_what_lies_between_lonely_points():
    # Six kernel widths apart each point has hardly more than itself around it.
    X = 6.0 * np.stack(np.meshgrid(np.arange(6.0), np.arange(6.0)), axis=-1).reshape(-1, 2)
    surface = make_surface(GAUSSIAN, X, np.sin(X), np.ones(len(X)))
    around = np.exp(-0.5 * oracle.squared_distances(X, X)).sum(axis=1) - 1
    assert surface.domain_bound() == pytest.approx(np.quantile(around, 0.05) / len(X))
    assert surface.density(np.array([[3.0, 0.0]]))[0] > surface.domain_bound()
    # Where points crowd, half of the lowest density is the lower one.
    crowded = make_surface(GAUSSIAN, X / 12, np.sin(X), np.ones(len(X)))
    assert crowded.domain_bound() == 0.5 * crowded.lowest_density()
    # Out of reach of each other nothing lies between.
    apart = make_surface(QUARTIC, X, np.sin(X), np.ones(len(X)))
    assert apart.domain_bound() == 0.5 / len(X)


def test_the_surface_stays_within_the_data():
    X, Y, _, _ = make_table()
    f = make_surface(GAUSSIAN, X, Y).regress(5 * places(X, 200))
    assert (f >= Y.min(axis=0) - 1e-12).all()
    assert (f <= Y.max(axis=0) + 1e-12).all()


def test_far_away_the_gaussian_surface_is_the_nearest_row():
    X, Y, _, _ = make_table()
    Q = 1e5 * np.array([[1.0, 0.3], [-0.2, -1.0]])
    nearest = oracle.squared_distances(Q, X).argmin(axis=1)
    surface = make_surface(GAUSSIAN, X, Y)
    np.testing.assert_allclose(surface.regress(Q), Y[nearest], rtol=1e-9)
    np.testing.assert_array_equal(surface.density(Q), 0)
    assert all(np.isfinite(part).all() for part in surface.look(Q))


@pytest.mark.parametrize("kernel", FINITE, ids=name_of)
def test_out_of_reach_the_mean_stands_in(kernel):
    X, Y, weights, _ = make_table(kernel, weighted=True)
    surface = make_surface(kernel, X, Y, weights)
    f, J, density, _ = surface.look(np.full((1, 2), 1e3))
    np.testing.assert_allclose(f + surface.rows.mean, [np.average(Y, axis=0, weights=weights)])
    assert not J.any()
    assert not density.any()


@pytest.mark.parametrize("kernel", ALL_KERNELS, ids=name_of)
def test_training_points_are_well_inside_the_domain(kernel):
    X, Y, weights, _ = make_table(kernel, weighted=True)
    surface = make_surface(kernel, X, Y, weights)
    lowest = oracle.density(kernel, X, X, weights).min()
    assert surface.threshold == pytest.approx(lowest / 2, rel=1e-9)


def test_reconstructions_of_the_training_points():
    X, Y, weights, observed = make_table(weighted=True, missing=True)
    surface = make_surface(GAUSSIAN, X, Y, weights, observed)
    expected = surface.regress(X) - surface.rows.mean
    np.testing.assert_allclose(surface.starting_places.reconstructions, expected, atol=1e-14)


def test_kernel_widths():
    X, Y, _, _ = make_table()
    half = make_surface(GAUSSIAN, X, Y).kernel_width
    assert GAUSSIAN.value(np.array([half**2]))[0] == pytest.approx(0.5)
    half = make_surface(QUARTIC, X, Y).kernel_width
    assert QUARTIC.value(np.array([half**2]))[0] == pytest.approx(0.5, abs=0.02)


# The rows a manifold carries


def test_columns_by_hand():
    Y, weights = np.array([[1.0, 8.0], [4.0, 2.0]]), np.array([1.0, 2.0])
    rows = CarriedRows(Y, weights, None)
    # Means are (1 + 2·4)/3 = 3 and (8 + 2·2)/3 = 4.
    np.testing.assert_allclose(rows.mean, [3, 4])
    np.testing.assert_allclose(rows.V, [[-2, 4, 1], [2, -4, 2]])


def test_columns_with_missing_entries_by_hand():
    Y, weights = np.array([[1.0, np.nan], [4.0, 2.0]]), np.array([1.0, 2.0])
    rows = CarriedRows(Y, weights, np.array([[True, False], [True, True]]))
    np.testing.assert_allclose(rows.mean, [3, 2])
    np.testing.assert_allclose(rows.Y, [[-2, 0], [1, 0]])
    np.testing.assert_allclose(rows.V, [[-2, 0, 1, 0, 1], [2, 0, 2, 2, 2]])


def shared_gaps(n=40):
    """Return rows whose columns 0 and 2 miss the same rows, and columns 1 and 4; their weights."""
    rng = np.random.default_rng(3)
    Y, weights = rng.normal(size=(n, 5)), rng.uniform(0.5, 2, n)
    observed = rng.random((n, 5)) > 0.3
    observed[:, 2], observed[:, 4] = observed[:, 0], observed[:, 1]
    return Y, weights, observed


@pytest.mark.parametrize("degree", [0, 1])
def test_columns_that_miss_the_same_rows_share_a_denominator(degree):
    Y, weights, observed = shared_gaps()
    X = np.random.default_rng(4).normal(size=(len(Y), 2))
    rows = CarriedRows(Y, weights, observed, degree=degree)
    assert [group.tolist() for group in rows.groups] == [[0, 2], [1, 4], [3]]
    assert rows.V.shape[1] == 5 + 3 + 1
    engine = KernelSums(GAUSSIAN, 1e-12)
    together = Surface(X, rows, engine)
    f, J, *_ = together.look(X[:9])
    for d in range(5):
        alone = CarriedRows(Y[:, [d]], weights, observed[:, [d]], degree=degree)
        g, slope, *_ = Surface(X, alone, engine).look(X[:9])
        np.testing.assert_allclose(f[:, d], g[:, 0], rtol=1e-10, atol=1e-12)
        np.testing.assert_allclose(J[:, :, d], slope[:, :, 0], rtol=1e-8, atol=1e-10)


def indicators(n=300):
    """Return indicators of five levels, a number and its double, gaps in both."""
    rng = np.random.default_rng(5)
    numbers = rng.normal(size=(n, 1)) * [1, 2]
    Y = np.hstack([np.eye(5)[rng.integers(0, 5, n)], numbers, rng.normal(size=(n, 1))])
    Y[rng.random(n) < 0.2, :5] = np.nan
    Y[rng.random(n) < 0.2, 5:7] = np.nan
    return Y


def test_columns_that_are_known_together_are_turned_into_what_they_span():
    Y = indicators()
    turned = in_fewer_coordinates(Y, Squared())
    assert turned.shape[1] == 4 + 1 + 1
    for columns, spanned in ((slice(0, 5), slice(0, 4)), (slice(5, 7), slice(4, 5))):
        before, after = Y[:, columns], turned[:, spanned]
        np.testing.assert_array_equal(np.isnan(before[:, 0]), np.isnan(after[:, 0]))
        distances = [((part[:, None] - part) ** 2).sum(axis=2) for part in (before, after)]
        np.testing.assert_allclose(*distances, atol=1e-12)


def test_rows_are_not_turned_for_little_or_where_a_small_column_would_be_lost():
    rng = np.random.default_rng(6)
    full = rng.normal(size=(50, 12))
    assert in_fewer_coordinates(full, Squared()) is full
    full[:, 11] = full[:, 10]  # eleven of twelve
    assert in_fewer_coordinates(full, Squared()) is full
    units = rng.normal(size=(50, 3)) * [1e9, 1, 1]
    assert in_fewer_coordinates(units, Squared()) is units
    assert in_fewer_coordinates(indicators(), Huber(1.0)).shape[1] == 8


def test_training_does_not_notice_the_turn():
    Y = indicators()
    X = np.random.default_rng(7).normal(size=(len(Y), 2))
    engine = KernelSums(GAUSSIAN, 1e-12)
    found = []
    for rows in (Y, in_fewer_coordinates(Y, Squared())):
        problem = Problem.of_rows(rows, np.ones(len(Y)), Squared(), LeaveOneOut(), engine)
        value, slope = problem.reconstruction(cross_validated=True).value_and_grad(X)
        found.append((value * problem.error_unit, slope * problem.error_unit))
    assert found[0][0] == pytest.approx(found[1][0], rel=1e-12)
    np.testing.assert_allclose(found[0][1], found[1][1], rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("missing", [False, True], ids=["complete", "missing"])
def test_the_regression_of_equal_weights_is_the_mean(missing):
    _, Y, weights, observed = make_table(weighted=True, missing=missing)
    rows = CarriedRows(Y, weights, observed)
    f, denominator = rows.regress(rows.V.sum(axis=0, keepdims=True))
    np.testing.assert_allclose(f, 0, atol=1e-13)
    assert (denominator > 0).all()


@pytest.mark.parametrize("missing", [False, True], ids=["complete", "missing"])
def test_one_row_alone_is_reproduced(missing):
    _, Y, weights, observed = make_table(weighted=True, missing=missing)
    rows = CarriedRows(Y, weights, observed)
    f, _ = rows.regress(rows.V)
    seen = np.ones(Y.shape, dtype=bool) if observed is None else observed
    np.testing.assert_allclose((f + rows.mean)[seen], Y[seen])
    np.testing.assert_array_equal(f[~seen], 0)


def test_no_weight_no_answer():
    rows = CarriedRows(np.array([[1.0], [2.0]]), np.ones(2), None)
    f, denominator = rows.regress(np.zeros((1, 2)))
    np.testing.assert_array_equal(f, 0)
    np.testing.assert_array_equal(rows.answer(f, denominator, np.ones((1, 1))), 0)


@pytest.mark.parametrize("gaps", ["none", "own", "shared"])
def test_the_answer_is_the_derivative_by_the_sums(gaps):
    Y, weights, observed = shared_gaps()
    if gaps != "shared":
        _, Y, weights, observed = make_table(weighted=True, missing=gaps == "own")
    rows = CarriedRows(Y, weights, observed)
    rng = np.random.default_rng(1)
    A = rng.uniform(0.1, 1, size=(5, len(Y))) @ rows.V
    slope = rng.normal(size=(5, Y.shape[1]))
    f, denominator = rows.regress(A)
    U = rows.answer(f, denominator, slope)
    for c in range(A.shape[1]):
        move = 1e-6 * np.eye(A.shape[1])[c]
        change = (rows.regress(A + move)[0] - rows.regress(A - move)[0]) / 2e-6
        np.testing.assert_allclose(U[:, c], (slope * change).sum(axis=1), rtol=1e-6, atol=1e-8)


@pytest.mark.parametrize("missing", [False, True], ids=["complete", "missing"])
def test_the_mean_of_the_others(missing):
    _, Y, weights, observed = make_table(weighted=True, missing=missing, n=6)
    rows = CarriedRows(Y, weights, observed)
    seen = np.ones(Y.shape, dtype=bool) if observed is None else observed
    found = rows.mean_without((np.array([4, 1]))[:, None]) + rows.mean
    for place, j in enumerate((4, 1)):
        for d in np.flatnonzero(seen[j]):
            others = [i for i in range(6) if i != j and seen[i, d]]
            expected = np.average(Y[others, d], weights=weights[others])
            assert found[place, d] == pytest.approx(expected)


def test_a_column_seen_once_has_no_others():
    Y, observed = np.array([[1.0, 5.0], [2.0, 0.0]]), np.array([[True, True], [True, False]])
    rows = CarriedRows(Y, np.ones(2), observed)
    np.testing.assert_allclose(
        rows.mean_without((np.array([0, 1]))[:, None]) + rows.mean, [[2, 5], [1, 5]]
    )


def test_single_precision_stays_single():
    _, Y, weights, observed = make_table(GAUSSIAN, weighted=True, missing=True)
    for mask in (None, observed):
        rows = CarriedRows(Y.astype(np.float32), weights, mask)
        assert rows.V.dtype == rows.Y.dtype == rows.mean.dtype == np.float32
        assert rows.regress(rows.V)[0].dtype == np.float32
        assert rows.mean_without((np.arange(3))[:, None]).dtype == np.float32


@pytest.mark.parametrize("q", [1, 2, 5])
@pytest.mark.parametrize("missing", [0.0, 0.4])
def test_distances_and_their_slopes_are_those_of_residuals(q, missing):
    rng = np.random.default_rng(q)
    surface = make_surface(GAUSSIAN, rng.normal(size=(60, q)), rng.normal(size=(60, 4)))
    X, Y = rng.normal(size=(15, q)), rng.normal(size=(15, 4))
    known = (rng.uniform(size=Y.shape) >= missing).astype(float)
    f, J, density, rise = surface.look(X)
    r, J = (f - Y) * known, J * known[:, None]
    expected = (
        (r**2).sum(axis=1),
        np.einsum("iad,id->ia", J, r),
        np.einsum("iad,ibd->iab", J, J),
        density,
        rise,
    )
    found = surface.distances_at(X, Y, known)
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-10, atol=1e-12)


def test_gaps_of_training_rows_and_local_polynomials_need_residuals():
    X, Y, _, observed = make_table(missing=True)
    assert make_surface(GAUSSIAN, X, Y).distances_can_be_taken()
    assert not make_surface(GAUSSIAN, X, Y, observed=observed).distances_can_be_taken()
    local = CarriedRows(Y, np.ones(len(Y)), None, degree=1)
    assert not Surface(X, local, KernelSums(GAUSSIAN, n_jobs=1)).distances_can_be_taken()
