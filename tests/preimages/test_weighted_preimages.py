from __future__ import annotations

import functools

import numpy as np
import pytest
from oracles import feature_space as oracle

from twofold import rowwise
from twofold.features import (
    L1,
    RBF,
    Custom,
    FeatureMap,
    Linear,
    Polynomial,
    Precomputed,
    PrecomputedDistance,
)
from twofold.preimages import weighted_preimages


def wave(A, B):
    return np.cos(A) @ np.cos(B).T


def dot(a, b):
    return float(np.dot(a, b))


def polynomial(degree, gamma, coef0):
    return functools.partial(oracle.polynomial, degree=degree, gamma=gamma, coef0=coef0)


# Kernels whose pre-image is a minimum, with the value of two rows.
MINIMISED = {
    "linear": (Linear(), dot),
    "poly1": (Polynomial(1, 2.0, 1.0), polynomial(1, 2.0, 1.0)),
    "poly2": (Polynomial(2, 0.5, 1.0), polynomial(2, 0.5, 1.0)),
    "poly3": (Polynomial(3), polynomial(3, 1.0, 0.0)),
    "poly3c": (Polynomial(3, 1.0, 1.0), polynomial(3, 1.0, 1.0)),
    "rbf": (RBF(0.4), functools.partial(oracle.rbf, gamma=0.4)),
    "narrow rbf": (RBF(20.0), functools.partial(oracle.rbf, gamma=20.0)),
    "l1": (L1(), oracle.l1),
}
minimised = pytest.mark.parametrize("name", MINIMISED)
KERNELS = [*(kernel for kernel, _ in MINIMISED.values()), Custom(wave)]
all_kernels = pytest.mark.parametrize("kernel", KERNELS, ids=[*MINIMISED, "custom"])


def rows(seed, n=12, D=3):
    return np.random.default_rng(seed).normal(size=(n, D))


def weights(seed, m=6, n=12, *, negative=False):
    """Rows that sum to one: some broad, some on few references, some with negative ones."""
    rng = np.random.default_rng(seed)
    B = rng.dirichlet(np.full(n, 0.3), size=m)
    if negative:
        B = B + 0.15 * rng.normal(size=B.shape)
    return B / B.sum(axis=1, keepdims=True)


@minimised
@pytest.mark.parametrize("negative", [False, True], ids=["positive", "negative"])
def test_no_reference_and_no_weighted_mean_is_nearer(name, negative):
    kernel, value = MINIMISED[name]
    for seed in range(5):
        Y, B = rows(seed), weights(seed + 50, negative=negative)
        found = weighted_preimages(kernel, Y, B)
        assert np.isfinite(found).all()
        for y, b in zip(found, B, strict=True):
            at = oracle.error(value, y, Y, b)
            others = [b @ Y, *Y]
            lowest = min(oracle.error(value, other, Y, b) for other in others)
            assert at <= lowest + 1e-11 * (1 + abs(lowest))


@minimised
def test_nothing_near_the_preimage_is_nearer(name):
    kernel, value = MINIMISED[name]
    Y, B = rows(1), weights(2, negative=True)
    rng = np.random.default_rng(3)
    for y, b in zip(weighted_preimages(kernel, Y, B), B, strict=True):
        at = oracle.error(value, y, Y, b)
        for length in (1e-3, 1e-2):
            moves = rng.normal(size=(30, 3))
            moves *= length / np.linalg.norm(moves, axis=1, keepdims=True)
            assert min(oracle.error(value, y + move, Y, b) for move in moves) >= at - 1e-10


@minimised
def test_the_preimage_of_a_reference_is_that_reference(name):
    kernel, _ = MINIMISED[name]
    Y = rows(4)
    np.testing.assert_allclose(weighted_preimages(kernel, Y, np.eye(12)), Y, rtol=0, atol=1e-12)


def test_rbf_preimage_of_a_reference_is_exact():
    Y = rows(5)
    np.testing.assert_array_equal(weighted_preimages(RBF(0.7), Y, np.eye(12)), Y)


def test_error_is_the_distance_in_feature_space():
    # A place has the lower E exactly if its feature is nearer to the weighted mean of features.
    Y, B = rows(6), weights(7)
    features = FeatureMap.fit(RBF(0.4), Y)
    target = B @ features.coordinates

    def squared_distance(P):
        return ((features.transform(P) - target) ** 2).sum(axis=1) + features.outside(P)

    found, mean = weighted_preimages(RBF(0.4), Y, B), B @ Y
    assert (squared_distance(found) <= squared_distance(mean) + 1e-9).all()
    assert (squared_distance(found) < squared_distance(mean) - 1e-4).any()


def test_weighted_mean_for_linear_and_custom_kernels():
    Y, B = rows(8), weights(9, negative=True)
    for kernel in (Linear(), Custom(wave)):
        np.testing.assert_allclose(weighted_preimages(kernel, Y, B), B @ Y, atol=1e-13)


@pytest.mark.parametrize("negative", [False, True], ids=["positive", "negative"])
def test_weighted_median_against_a_search(negative):
    for seed in range(20):
        Y, B = rows(seed, 9, 2), weights(seed + 30, 4, 9, negative=negative)
        grid = np.linspace(-4, 4, 801)
        found = weighted_preimages(L1(), Y, B)
        for d in range(2):
            places = np.concatenate([grid, Y[:, d]])
            heights = np.abs(places[:, None] - Y[:, d]) @ B.T
            at = (B * np.abs(found[:, d, None] - Y[:, d])).sum(axis=1)
            np.testing.assert_allclose(at, heights.min(axis=0), atol=1e-12)
            assert np.isin(found[:, d], Y[:, d]).all()


def test_weighted_median_by_hand():
    Y = np.array([[0.0, 5.0], [1.0, 4.0], [2.0, 3.0], [3.0, 1.0]])
    B = np.array([[0.1, 0.2, 0.6, 0.1], [0.5, 0.5, 0.0, 0.0], [0.7, -0.1, 0.7, -0.3]])
    # Row 0: over one half of the weight at or below 2, and at or below 3.
    # Row 1: flat between 0 and 1, and between 4 and 5: the lower end.
    # Row 2: Σ b |t - y| is 0.4, 0.8, 1.0, 2.6 at 0, 1, 2, 3, and 0.1, 0.5, 0.7, 3.9 at 5, 4, 3, 1.
    expected = np.array([[2.0, 3.0], [0.0, 4.0], [0.0, 5.0]])
    np.testing.assert_array_equal(weighted_preimages(L1(), Y, B), expected)


def test_rbf_follows_the_heavier_of_two_groups():
    # Wide apart for the kernel, so the mean between them is like nobody.
    Y = np.concatenate([rows(10, 5) * 0.1, rows(11, 7) * 0.1 + 10])
    B = np.full((1, 12), 1 / 12)
    found = weighted_preimages(RBF(1.0), Y, B)[0]
    np.testing.assert_allclose(found, Y[5:].mean(axis=0), atol=0.02)


def test_a_wide_rbf_gives_the_weighted_mean():
    Y, B = rows(12), weights(13)
    np.testing.assert_allclose(weighted_preimages(RBF(1e-7), Y, B), B @ Y, atol=1e-5)


def test_rbf_that_reaches_nothing_stays_where_it_begins():
    # Every kernel value underflows at the mean; the references are then the only places to be.
    Y = np.array([[0.0], [1000.0]])
    found = weighted_preimages(RBF(1.0), Y, np.array([[0.4, 0.6], [0.6, 0.4], [0.5, 0.5]]))
    np.testing.assert_array_equal(found[:2], [[1000.0], [0.0]])
    assert found[2, 0] in (0.0, 1000.0)


def test_rbf_with_cancelling_weights_stays_finite():
    Y = np.array([[0.0], [1e-9], [2.0], [3.0]])
    B = np.array([[1e6, -1e6, 0.5, 0.5], [-3.0, 5.0, -4.0, 3.0]])
    found = weighted_preimages(RBF(1.0), Y, B)
    assert np.isfinite(found).all()
    for y, b in zip(found, B, strict=True):
        value = functools.partial(oracle.rbf, gamma=1.0)
        assert oracle.error(value, y, Y, b) <= oracle.error(value, b @ Y, Y, b) + 1e-9


@minimised
def test_units_do_not_matter(name):
    kernel, _ = MINIMISED[name]
    if isinstance(kernel, Polynomial):
        scaled = Polynomial(kernel.degree, kernel.gamma * 1e6, kernel.coef0)
    else:
        scaled = RBF(kernel.gamma * 1e6) if isinstance(kernel, RBF) else kernel
    Y, B = rows(14), weights(15)
    found, small = weighted_preimages(kernel, Y, B), weighted_preimages(scaled, 1e-3 * Y, B)
    np.testing.assert_allclose(1e3 * small, found, atol=1e-5)


@all_kernels
@pytest.mark.parametrize("D", [1, 5, 17])
def test_a_row_is_the_same_alone_and_among_others(kernel, D):
    Y, B = rows(16, 40, D), weights(17, 19, 40, negative=True)
    B[3] = 0
    B[3, 5] = 1
    found = weighted_preimages(kernel, Y, B)
    for part in (slice(0, 1), slice(3, 4), slice(18, 19), slice(2, 9)):
        np.testing.assert_array_equal(weighted_preimages(kernel, Y, B[part]), found[part])
        np.testing.assert_array_equal(
            weighted_preimages(kernel, Y, B[::-1][part]), found[::-1][part]
        )


@pytest.mark.parametrize("name", ["poly3c", "rbf"])
def test_references_in_small_blocks_give_the_same(name, monkeypatch):
    kernel, _ = MINIMISED[name]
    Y, B = rows(18), weights(19)
    whole = weighted_preimages(kernel, Y, B)
    monkeypatch.setattr(rowwise, "VALUES_AT_A_TIME", 30)
    np.testing.assert_array_equal(weighted_preimages(kernel, Y, B), whole)


@all_kernels
def test_float32_references_give_float32_computed_in_float64(kernel):
    Y, B = rows(20).astype(np.float32), weights(21).astype(np.float32)
    found = weighted_preimages(kernel, Y, B)
    assert found.dtype == np.float32
    expected = weighted_preimages(kernel, Y.astype(float), B.astype(float))
    assert expected.dtype == np.float64
    np.testing.assert_array_equal(found, expected.astype(np.float32))


@all_kernels
def test_inputs_are_left_as_they_are_and_may_be_few(kernel):
    Y, B = rows(22), weights(23)
    Y.setflags(write=False)
    B.setflags(write=False)
    assert weighted_preimages(kernel, Y, B).shape == (6, 3)
    assert weighted_preimages(kernel, Y, B[:0]).shape == (0, 3)
    np.testing.assert_allclose(
        weighted_preimages(kernel, Y[:1], np.ones((2, 1))), Y[[0, 0]], atol=1e-15
    )


def test_what_cannot_be_done_is_said():
    Y, B = rows(24), weights(25)
    for kernel in (Precomputed(), PrecomputedDistance()):
        with pytest.raises(ValueError, match="no pre-images: there are no data rows to go back to"):
            weighted_preimages(kernel, Y, B)
    with pytest.raises(ValueError, match=r"each of the 12 references.*got shape \(6, 11\)"):
        weighted_preimages(L1(), Y, B[:, :11])
    B[4] *= 2
    with pytest.raises(ValueError, match="must sum to one; row 4 sums to 2"):
        weighted_preimages(L1(), Y, B)
    B[0, 0] = np.nan
    with pytest.raises(ValueError, match="NaN"):
        weighted_preimages(L1(), Y, B)
    with pytest.raises(ValueError, match="`gamma` of RBF is None"):
        weighted_preimages(RBF(), Y, weights(25))
