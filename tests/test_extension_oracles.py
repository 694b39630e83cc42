"""Facts that the slow references must obey by themselves, before anything is compared with them."""

from __future__ import annotations

import numpy as np
import pytest
from finite_differences import numerical_gradient
from oracles import extensions as oracle

DEGREES = (0, 1, "2-axes", 2)
every_degree = pytest.mark.parametrize("degree", DEGREES)


def gaussian(s):
    return np.exp(-0.5 * s)


def triweight(s):
    return np.maximum(1 - s, 0) ** 3


KERNELS = {"gaussian": gaussian, "triweight": triweight}
every_kernel = pytest.mark.parametrize("F", KERNELS.values(), ids=KERNELS.keys())


def squared(R):
    return (R * R).sum(axis=1)


def references(n=40, q=2, seed=0):
    return np.random.default_rng(seed).uniform(-0.4, 0.4, size=(n, q))


def row_weights(n=40):
    return np.random.default_rng(5).uniform(0.5, 2, size=n)


def test_columns_by_hand():
    deltas = np.array([[2.0, 3.0, 5.0]])
    axes = [1, 2, 3, 5, 4, 9, 25]
    np.testing.assert_array_equal(oracle.design(deltas, 0), [[1]])
    np.testing.assert_array_equal(oracle.design(deltas, 1), [axes[:4]])
    np.testing.assert_array_equal(oracle.design(deltas, "2-axes"), [axes])
    np.testing.assert_array_equal(oracle.design(deltas, 2), [[*axes, 6, 10, 15]])


@every_kernel
@every_degree
@pytest.mark.parametrize("ridge", [0, 1e-3, 10])
def test_weights_sum_to_one(F, degree, ridge):
    b = oracle.local_weights(
        np.array([0.3, -0.2]), references(), row_weights(), [3, 8], degree=degree, F=F, ridge=ridge
    )
    assert b.sum() == pytest.approx(1, abs=1e-11)
    assert not b[[3, 8]].any()


@every_degree
@pytest.mark.parametrize("ridge", [0, 1e-2])
def test_weights_are_those_of_the_normal_equations(degree, ridge):
    Z, omega, x = references(), row_weights(), np.array([0.1, 0.2])
    b = oracle.local_weights(x, Z, omega, degree=degree, F=gaussian, ridge=ridge)
    w = omega * gaussian(((Z - x) ** 2).sum(axis=1))
    w /= w.sum()
    xi = oracle.design(Z - x, degree)
    p = xi.shape[1]
    C = np.zeros((p, p))
    for i in range(len(Z)):
        C += w[i] * np.outer(xi[i], xi[i])
    far = 1 + w @ ((Z - x) ** 2).sum(axis=1)
    C += ridge * np.diag([0.0] + [far] * min(2, p - 1) + [far**2] * (p - 3))
    np.testing.assert_allclose(b, w * (xi @ np.linalg.inv(C)[:, 0]), rtol=1e-8, atol=1e-10)


SLOPES = np.array([[1.0, 0.5], [-2.0, 3.0]])
BENDS = np.array([[4.0, -1.0], [0.7, 2.0]])


def polynomial(X, *, slopes=0.0, bends=0.0, twist=0.0):
    """Two columns: constants, linear terms, squares of the axes, and the product of two axes."""
    values = np.array([2.0, -1.0]) + slopes * (X @ SLOPES) + bends * (X**2 @ BENDS)
    return values + twist * np.column_stack([X[:, 0] * X[:, 1], -3 * X[:, 0] * X[:, 1]])


@every_kernel
@pytest.mark.parametrize(
    ("degree", "terms", "exact"),
    [
        (0, {}, True),
        (0, {"slopes": 1}, False),
        (1, {"slopes": 1}, True),
        (1, {"slopes": 1, "bends": 1}, False),
        ("2-axes", {"slopes": 1, "bends": 1}, True),
        ("2-axes", {"slopes": 1, "bends": 1, "twist": 1}, False),
        (2, {"slopes": 1, "bends": 1, "twist": 1}, True),
    ],
)
def test_polynomials_up_to_the_degree_come_back_exactly(F, degree, terms, exact):
    Z, X = references(), np.array([[0.1, -0.2], [0.35, 0.3], [0.0, 0.05]])
    values, expected = polynomial(Z, **terms), polynomial(X, **terms)
    found = np.array([oracle.regress(x, Z, values, row_weights(), degree=degree, F=F) for x in X])
    off = np.abs(found - expected).max()
    assert off < 1e-11 if exact else off > 1e-3


@every_kernel
def test_degree_0_is_a_weighted_mean(F):
    Z, omega, x = references(), row_weights(), np.array([0.3, 0.1])
    values = np.random.default_rng(1).normal(size=(40, 3))
    total, mean = 0.0, np.zeros(3)
    for i in range(40):
        weight = omega[i] * F(((Z[i] - x) ** 2).sum())
        total += weight
        mean += weight * values[i]
    np.testing.assert_allclose(oracle.regress(x, Z, values, omega, F=F), mean / total, rtol=1e-12)


@pytest.mark.parametrize("degree", [1, "2-axes", 2])
def test_a_strong_ridge_leaves_the_weighted_mean(degree):
    Z, omega, x = references(), row_weights(), np.array([0.3, 0.1])
    values = np.random.default_rng(1).normal(size=(40, 3))
    flat = oracle.regress(x, Z, values, omega, F=gaussian)
    ridged = oracle.regress(x, Z, values, omega, degree=degree, F=gaussian, ridge=1e8)
    np.testing.assert_allclose(ridged, flat, atol=1e-7)


@every_degree
def test_weights_of_rows_count_repetitions(degree):
    Z, values = references(12), np.random.default_rng(1).normal(size=(12, 2))
    repeats = np.array([1, 3, 2] * 4)
    settings = {"degree": degree, "F": gaussian, "ridge": 1e-3}
    x = np.array([0.1, 0.1])
    once = oracle.regress(x, Z, values, repeats, **settings)
    often = oracle.regress(x, Z.repeat(repeats, axis=0), values.repeat(repeats, axis=0), **settings)
    np.testing.assert_allclose(once, often, rtol=1e-9)


@every_kernel
@every_degree
def test_hidden_rows_do_not_matter(F, degree):
    Z, hidden, x = references(), [2, 7, 30], np.array([0.1, 0.2])
    values = np.random.default_rng(1).normal(size=(40, 2))
    settings = {"hidden": hidden, "degree": degree, "F": F}
    before = oracle.regress(x, Z, values, row_weights(), **settings)
    Z[hidden], values[hidden] = 0.123, 1e6
    np.testing.assert_array_equal(oracle.regress(x, Z, values, row_weights(), **settings), before)
    kept = np.setdiff1d(np.arange(40), hidden)
    without = oracle.regress(x, Z[kept], values[kept], row_weights()[kept], degree=degree, F=F)
    np.testing.assert_allclose(before, without, rtol=1e-9)


@every_degree
def test_each_column_comes_from_the_rows_that_have_it(degree):
    rng = np.random.default_rng(1)
    Z, values, observed = references(), rng.normal(size=(40, 2)), rng.random((40, 2)) < 0.7
    x = np.array([0.1, 0.2])
    settings = {"degree": degree, "F": gaussian}
    found = oracle.regress(x, Z, np.where(observed, values, np.nan), observed=observed, **settings)
    for d in range(2):
        rows = observed[:, d]
        alone = oracle.regress(x, Z[rows], values[rows][:, [d]], **settings)
        np.testing.assert_allclose(found[d], alone[0], rtol=1e-9)


def test_out_of_reach_of_all_the_mean_of_what_is_seen_stands_in():
    Z, values = references(5), np.arange(5.0)[:, None]
    settings = {"degree": 2, "F": triweight}
    weights = np.array([1.0, 1, 1, 2, 1])
    found = oracle.regress(np.array([9.0, 9.0]), Z, values, weights, [0, 4], **settings)
    np.testing.assert_allclose(found, [(1 + 2 + 2 * 3) / 4])
    np.testing.assert_array_equal(oracle.regress(Z[0], Z, values, hidden=range(5), **settings), [0])


def test_too_few_references_need_a_ridge():
    Z, x = references(3), np.zeros(2)
    with pytest.raises(np.linalg.LinAlgError, match="too few references"):
        oracle.local_weights(x, Z, degree=2, F=gaussian)
    assert oracle.local_weights(x, Z, degree=2, F=gaussian, ridge=1e-6).sum() == pytest.approx(1)


@every_degree
def test_leaving_one_out_is_a_known_share_of_the_residual(degree):
    # y_i - f_{-i}(x_i) = (y_i - f(x_i)) / (1 - b_ii) without a ridge: two ways to one number.
    Z, values = references(), np.random.default_rng(1).normal(size=(40, 1))
    settings = {"degree": degree, "F": gaussian}
    for i in range(3):
        own = oracle.local_weights(Z[i], Z, **settings)[i]
        full = values[i] - oracle.regress(Z[i], Z, values, **settings)
        left = values[i] - oracle.regress(Z[i], Z, values, hidden=[i], **settings)
        np.testing.assert_allclose(left, full / (1 - own), rtol=1e-8)


def test_objective_by_hand():
    # Far apart, row 0 sees only row 1 and the other way round: residuals 1 and -1, then 3 and -3.
    X, Y = np.array([[0.0], [0.5], [50.0], [50.5]]), np.array([[0.0], [1.0], [4.0], [7.0]])
    own = [[0], [1], [2], [3]]
    settings = {"F": triweight, "hidden_lists": own}
    assert oracle.objective(X, Y, squared, **settings) == pytest.approx((1 + 1 + 9 + 9) / 4)
    weights = np.array([1.0, 1, 3, 3])
    weighted = oracle.objective(X, Y, squared, weights=weights, **settings)
    assert weighted == pytest.approx((1 + 1 + 27 + 27) / 8)
    observed = np.array([[True], [True], [True], [False]])
    # Row 3 is missing and costs nothing; row 2 has nobody in reach: (0 + 1)/2 stands in.
    missing = oracle.objective(X, Y, squared, observed=observed, **settings)
    assert missing == pytest.approx((1 + 1 + 3.5**2) / 4)


def test_objective_on_landmarks_by_hand():
    X, Y = np.array([[0.0], [9.0]]), np.array([[1.0, 0.0], [0.0, 5.0]])
    settings = {
        "references": np.array([[0.1], [-0.1], [9.2]]),
        "reference_values": np.array([[0.0, 0.0], [4.0, 0.0], [0.0, 2.0]]),
        "F": triweight,
    }
    # Row 0 between two landmarks: (2, 0); row 1 at the third: (0, 2).
    assert oracle.objective(X, Y, squared, **settings) == pytest.approx((1 + 9) / 2)
    tilted = oracle.objective(
        X, Y, squared, weights=np.array([3, 1]), reference_weights=np.array([3, 1, 7]), **settings
    )
    assert tilted == pytest.approx((0 + 9) / 4)


@every_degree
def test_objective_does_not_see_what_is_missing(degree):
    rng = np.random.default_rng(2)
    X, Y, observed = references(15), rng.normal(size=(15, 2)), rng.random((15, 2)) < 0.8
    lists = oracle.leave_k_out_lists(Y, 2)
    settings = {"observed": observed, "hidden_lists": lists, "degree": degree, "F": gaussian}
    before = oracle.objective(X, Y, squared, ridge=1e-3, **settings)
    after = oracle.objective(X, np.where(observed, Y, 1e9), squared, ridge=1e-3, **settings)
    assert np.isfinite(before)
    assert before == after


def test_leave_k_out_by_hand():
    Y = np.array([[0.0], [1.0], [3.0], [2.0], [1.0]])
    # Row 3 at 2 is as far from the rows 1, 2 and 4: the first two are taken.
    expected = [[0, 1, 4], [1, 4, 0], [2, 3, 1], [3, 1, 2], [4, 1, 0]]
    np.testing.assert_array_equal(oracle.leave_k_out_lists(Y, 3), expected)
    np.testing.assert_array_equal(oracle.leave_k_out_lists(Y, 1), np.arange(5)[:, None])


@every_kernel
def test_equal_densities_do_not_vary(F):
    angles = np.arange(7) * 2 * np.pi / 7
    circle = 0.5 * np.column_stack([np.cos(angles), np.sin(angles)])
    assert oracle.density_variance(circle, F) < 1e-30
    assert oracle.density_variance(np.vstack([circle, [[0.0, 0.0]]]), F) > 1e-3


def test_density_variance_by_hand():
    # Two rows at one place and one out of reach: densities 2, 2, 1; mean 5/3.
    X = np.array([[0.0], [0.0], [3.0]])
    assert oracle.density_variance(X, triweight) == pytest.approx((1 + 1 + 4) / 27)


def test_roughness_of_two_references_by_hand():
    # Gaussians at -a and a: b_2 is the logistic function σ(2ax), b_1 = 1 - b_2, so that
    # b_2'' = 4a² σ(1-σ)(1-2σ) and M is its square times [[1, -1], [-1, 1]].
    a, samples = 0.8, np.array([[0.3], [-0.7], [1.1]])
    share = 1 / (1 + np.exp(-2 * a * samples[:, 0]))
    bends = 4 * a**2 * share * (1 - share) * (1 - 2 * share)
    M = oracle.roughness(samples, np.array([[-a], [a]]), gaussian)
    np.testing.assert_allclose(M, (bends**2).mean() * np.array([[1, -1], [-1, 1]]), atol=1e-6)


def test_constants_are_not_rough():
    M = oracle.roughness(references(3, seed=1), references(5), gaussian, weights=np.arange(1, 6))
    np.testing.assert_allclose(M, M.T)
    np.testing.assert_allclose(M @ np.ones(5), 0, atol=1e-7)
    eigenvalues = np.linalg.eigvalsh(M)
    assert eigenvalues[0] > -1e-12
    assert eigenvalues[-1] > 1e-3


def test_linear_maps_are_not_rough_where_they_come_back_exactly():
    Z = references(9)
    M = oracle.roughness(references(2, seed=1), Z, gaussian, degree=1)
    assert np.abs(Z.T @ M @ Z).max() < 1e-6 * np.abs(M).max()


def test_mixed_derivatives_count_twice():
    # The roughness of a map does not change when the latent space is turned.
    Z, samples, values = references(6), references(3, seed=1), np.arange(6.0) ** 2
    turn = np.array([[0.6, -0.8], [0.8, 0.6]])
    found = [
        values @ oracle.roughness(samples @ T, Z @ T, gaussian) @ values for T in (np.eye(2), turn)
    ]
    assert found[0] == pytest.approx(found[1], rel=1e-5)


def landmark_case():
    rng = np.random.default_rng(3)
    X, Z = references(20, seed=4), references(5) * 2
    A = np.array([oracle.local_weights(x, Z, F=gaussian) for x in X])
    return A, oracle.roughness(X[:4], Z, gaussian), rng.normal(size=(20, 2)), row_weights(20)


@pytest.mark.parametrize("gamma", [0, 0.3, 20])
def test_adapted_values_are_a_minimum(gamma):
    A, M, Y, omega = landmark_case()

    def penalised(Z):
        return (omega * squared(Y - A @ Z)).sum() + gamma * np.trace(Z.T @ M @ Z)

    Z = oracle.adapt(Y, A, M, gamma, omega)
    assert np.abs(numerical_gradient(penalised, Z)).max() < 1e-6
    assert penalised(Z) < penalised(Z + 0.01)


def test_adaption_finds_what_the_map_can_show():
    A, M, _, _ = landmark_case()
    Z = np.random.default_rng(4).normal(size=(5, 3))
    np.testing.assert_allclose(oracle.adapt(A @ Z, A, M, 0), Z, rtol=1e-7)


def test_a_large_roughness_penalty_leaves_the_weighted_mean():
    A, M, Y, omega = landmark_case()
    Z = oracle.adapt(Y, A, M, 1e12, omega)
    np.testing.assert_allclose(Z, np.tile(np.average(Y, axis=0, weights=omega), (5, 1)), atol=1e-4)
