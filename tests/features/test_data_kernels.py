from __future__ import annotations

import pickle

import numpy as np
import pytest
from oracles import feature_space as oracle

from twofold.features import (
    L1,
    RBF,
    Custom,
    Linear,
    Polynomial,
    Precomputed,
    PrecomputedDistance,
    get_data_kernel,
)


def wave(A, B):
    """A kernel of a user's: positive definite, and with BLAS inside."""
    return np.cos(A) @ np.cos(B).T + 0.5 * np.sin(A) @ np.sin(B).T


ON_ROWS = [
    Linear(),
    Polynomial(2, 0.5, 1.0),
    Polynomial(3),
    Polynomial(1),
    RBF(0.3),
    L1(),
    Custom(wave),
]


def name_of(kernel):
    return type(kernel).__name__


def rows(seed, n, D=4):
    return np.random.default_rng(seed).normal(size=(n, D))


def test_gram_equals_the_formulas():
    A, B = rows(0, 5), rows(1, 7)
    near = {"rtol": 1e-12, "atol": 1e-13}
    np.testing.assert_allclose(Linear().gram(A, B), A @ B.T, **near)
    for numbers in [(3, 1.0, 0.0), (2, 0.5, 1.0), (5, 0.1, 2.0)]:
        expected = oracle.pairs(oracle.polynomial, A, B, *numbers)
        np.testing.assert_allclose(Polynomial(*numbers).gram(A, B), expected, **near)
    np.testing.assert_allclose(RBF(0.3).gram(A, B), oracle.pairs(oracle.rbf, A, B, 0.3), **near)
    np.testing.assert_allclose(L1().gram(A, B), oracle.pairs(oracle.l1, A, B), **near)
    np.testing.assert_allclose(Custom(wave).gram(A, B), wave(A, B), **near)


def test_gram_equals_inner_products_of_explicit_features():
    A, B = rows(2, 6), rows(3, 5)
    P, Q = (oracle.quadratic_features(Y, 0.7, 1.5) for Y in (A, B))
    np.testing.assert_allclose(Polynomial(2, 0.7, 1.5).gram(A, B), P @ Q.T, atol=1e-12)
    corners = np.vstack([A, B])
    P, Q = (oracle.l1_features(Y, corners) for Y in (A, B))
    np.testing.assert_allclose(L1().gram(A, B), P @ Q.T, atol=1e-12)


@pytest.mark.parametrize("kernel", ON_ROWS, ids=name_of)
def test_diagonal_is_that_of_the_gram_matrix(kernel):
    Y = rows(4, 9)
    np.testing.assert_allclose(kernel.diagonal(Y), np.diag(kernel.gram(Y, Y)), rtol=1e-13)


def test_feature_distances_are_those_of_the_table():
    Y = rows(5, 8)
    gaps = Y[:, None] - Y[None]
    D1, D2 = np.abs(gaps).sum(axis=2), (gaps**2).sum(axis=2)
    expected = {
        Linear(): D2,
        L1(): D1,
        RBF(0.2): 2 - 2 * np.exp(-0.2 * D2),
        Polynomial(2, 1.0, 1.0): oracle.squared_distances(
            *[oracle.quadratic_features(Y, 1.0, 1.0)] * 2
        ),
    }
    for kernel, sq_dists in expected.items():
        K, own = kernel.gram(Y, Y), kernel.diagonal(Y)
        np.testing.assert_allclose(own[:, None] - 2 * K + own, sq_dists, atol=1e-11)
    K = PrecomputedDistance().gram(np.sqrt(D1), Y)
    own = PrecomputedDistance().diagonal(np.sqrt(D1))
    np.testing.assert_allclose(own[:, None] - 2 * K + own, D1, atol=1e-12)


@pytest.mark.parametrize("kernel", ON_ROWS, ids=name_of)
@pytest.mark.parametrize("D", [1, 3, 37])
def test_a_row_is_the_same_alone_and_among_others(kernel, D):
    A, B = rows(6, 41, D), rows(7, 67, D)
    K, own = kernel.gram(A, B), kernel.diagonal(A)
    for part in (slice(0, 1), slice(3, 4), slice(5, 12), slice(1, 40), slice(40, 41)):
        np.testing.assert_array_equal(kernel.gram(A[part], B), K[part])
        np.testing.assert_array_equal(kernel.gram(A[::-1][part], B), K[::-1][part])
        np.testing.assert_array_equal(kernel.diagonal(A[part]), own[part])


@pytest.mark.parametrize("kernel", ON_ROWS, ids=name_of)
def test_values_are_float64_whatever_the_rows_are(kernel):
    A, B = rows(8, 4).astype(np.float32), rows(9, 3).astype(np.float32)
    K = kernel.gram(A, np.asfortranarray(B))
    assert K.dtype == np.float64
    np.testing.assert_array_equal(K, kernel.gram(A.astype(float), B.astype(float)))
    assert kernel.gram(A[:0], B).shape == (0, 3)
    assert kernel.diagonal(A[:0]).shape == (0,)


def test_l1_needs_no_cancellation():
    # |1e-9 - 1| is 1 to nine digits, so the formula as written would keep seven digits.
    assert L1().gram(np.array([[1e-9]]), np.array([[1.0]]))[0, 0] == 1e-9
    assert L1().gram(np.array([[-2.0, 3.0]]), np.array([[-5.0, -1.0]]))[0, 0] == 2.0


def test_the_l1_gram_never_holds_a_difference_of_all_pairs():
    import tracemalloc

    A, B = rows(10, 300, 200), rows(11, 300, 200)
    L1().gram(A[:1], B)
    tracemalloc.start()
    L1().gram(A, B)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 4e6  # (300, 300) floats are 0.7 MB, with (300, 300, 200) it would be 144 MB


def test_gamma_is_chosen_from_the_data_and_follows_its_units():
    Y = rows(12, 60)
    sq_dists = oracle.squared_distances(Y, Y)[np.triu_indices(60, 1)]
    chosen = RBF().fitted(Y)
    assert chosen.gamma == pytest.approx(1 / np.median(sq_dists), rel=1e-12)
    assert RBF().fitted(1000 * Y).gamma == pytest.approx(1e-6 * chosen.gamma, rel=1e-9)
    assert RBF(2.0).fitted(Y) == RBF(2.0)
    copies = np.repeat(Y[:5], 20, axis=0)
    assert RBF().fitted(copies).gamma == RBF().fitted(Y[:5]).gamma
    assert RBF().fitted(np.ones((3, 2))).gamma == 1.0


def test_gamma_of_many_rows_is_that_of_a_fixed_draw():
    Y = rows(13, 2500, 2)
    assert RBF().fitted(Y) == RBF().fitted(Y.copy())
    # The squared distance of two rows is 2 χ² with two degrees of freedom: its median is 4 ln 2.
    assert RBF().fitted(Y).gamma == pytest.approx(1 / (4 * np.log(2)), rel=0.1)


@pytest.mark.parametrize("kernel", ON_ROWS, ids=name_of)
def test_other_kernels_are_ready_as_they_are(kernel):
    assert kernel.fitted(rows(14, 5)) is kernel


def test_gamma_must_be_there_before_use():
    with pytest.raises(ValueError, match=r"call `fitted\(Y\)`"):
        RBF().gram(rows(0, 2), rows(0, 2))


def test_names_objects_and_callables():
    for name, kernel in {
        "linear": Linear(),
        "poly": Polynomial(),
        "rbf": RBF(),
        "l1": L1(),
        "precomputed": Precomputed(),
        "precomputed_distance": PrecomputedDistance(),
    }.items():
        assert get_data_kernel(name) == kernel
        assert get_data_kernel(kernel) is kernel
        assert kernel.is_precomputed == name.startswith("precomputed")
        assert pickle.loads(pickle.dumps(kernel)) == kernel
    assert get_data_kernel(wave) == Custom(wave)
    with pytest.raises(ValueError, match=r"one of \['l1', 'laplacian', 'linear', .*got 'gaussian'"):
        get_data_kernel("gaussian")
    for wrong in (7, None, RBF):
        with pytest.raises(TypeError, match="`data_kernel` must be one of"):
            get_data_kernel(wrong)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Polynomial(0), "`degree` must be an integer of at least 1; got 0"),
        (lambda: Polynomial(2.5), "`degree` must be an integer"),
        (lambda: Polynomial(gamma=-1.0), "`gamma` must be a finite number above 0; got -1.0"),
        (lambda: Polynomial(coef0=-0.5), "`coef0` must be a finite number of at least 0; got -0.5"),
        (lambda: RBF(0.0), "`gamma` must be a finite number above 0; got 0.0"),
        (lambda: RBF("auto"), "`gamma` must be a finite number above 0; got 'auto'"),
    ],
)
def test_wrong_numbers_are_named(make, message):
    with pytest.raises(ValueError, match=message):
        make()


def test_wrong_rows_are_named():
    Y = rows(15, 4)
    with pytest.raises(ValueError, match="Expected rows with 4 features; got 3"):
        L1().gram(Y[:, :3], Y)
    with pytest.raises(ValueError, match=r"shape \(n, D\); got shape \(4,\)"):
        Linear().gram(Y[0], Y)
    Y[2, 1] = np.nan
    Y[3, 0] = np.inf
    with pytest.raises(ValueError, match="2 entries are NaN or infinite, first row 2, column 1"):
        RBF(1.0).gram(Y, Y)


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (lambda A, B: B @ A.T, r"must return shape \(5, 2\) for 5 and 2 rows; got shape \(2, 5\)"),
        (lambda A, B: (A * B).sum(), r"must return shape \(5, 2\).*calling it raised"),
        (lambda A, B: np.full((len(A), len(B)), np.nan), "NaN or infinite values"),
        (lambda A, B: A @ (2 * B + 1).T, r"must be symmetric; k\(a, b\) and k\(b, a\) differ"),
    ],
)
def test_a_callable_is_tried_out(function, message):
    with pytest.raises(ValueError, match=message):
        get_data_kernel(function).fitted(rows(16, 30))


def test_a_callable_is_checked_at_every_use():
    def moody(A, B):
        return np.where(A[:, :1] > 2, np.nan, A @ B.T)

    kernel = Custom(moody)
    Y = np.full((3, 2), 1.0)
    kernel.gram(Y, Y)
    with pytest.raises(ValueError, match="NaN or infinite"):
        kernel.gram(3 * Y, Y)


def test_precomputed_rows_are_the_values():
    Y = rows(17, 6)
    K = Linear().gram(Y, Y)
    np.testing.assert_array_equal(Precomputed().gram(K[:2], K), K[:2])
    assert np.isnan(Precomputed().diagonal(K)).all()
    D = np.sqrt(oracle.squared_distances(Y, Y))
    np.testing.assert_allclose(PrecomputedDistance().gram(D[:2], D), -0.5 * D[:2] ** 2)
    assert (PrecomputedDistance().diagonal(D) == 0).all()
    assert PrecomputedDistance().fitted(D.astype(np.float32)) == PrecomputedDistance()


def test_wrong_precomputed_matrices_are_named():
    D = np.abs(rows(18, 6, 6))
    for kernel, name in ((Precomputed(), "kernel values"), (PrecomputedDistance(), "distances")):
        with pytest.raises(ValueError, match=rf"square in training.*{name}.*got shape \(6, 5\)"):
            kernel.fitted(D[:, :5])
        with pytest.raises(ValueError, match=r"with the 6 training rows; got shape \(2, 5\)"):
            kernel.gram(D[:2, :5], D)
    with pytest.raises(ValueError, match=r"diagonal of a distance matrix must be zero; got up to"):
        PrecomputedDistance().fitted(D)
    with pytest.raises(ValueError, match="must not be negative; got -"):
        PrecomputedDistance().gram(-D, D)
