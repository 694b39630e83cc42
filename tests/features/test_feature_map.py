from __future__ import annotations

import pickle

import numpy as np
import pytest
from features.test_data_kernels import name_of, rows, wave
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

ON_ROWS = [Linear(), Polynomial(2, 0.5, 1.0), Polynomial(3), RBF(0.3), L1(), Custom(wave)]
on_rows = pytest.mark.parametrize("kernel", ON_ROWS, ids=name_of)


def explicit_features(kernel, Y):
    """Features of all rows of Y, explicit ones where they can be written down."""
    if isinstance(kernel, Linear):
        return oracle.linear_features(Y)
    if kernel == Polynomial(2, 0.5, 1.0):
        return oracle.quadratic_features(Y, 0.5, 1.0)
    if isinstance(kernel, L1):
        return oracle.l1_features(Y, Y)
    return oracle.gram_features(kernel.gram(Y, Y))


def precomputed_cases(Y, Y_new):
    """Return (kernel, training matrix, matrix of new rows, squared distances of all pairs)."""
    D2 = oracle.squared_distances(np.vstack([Y, Y_new]), Y)
    D1 = np.abs(np.vstack([Y, Y_new])[:, None] - Y[None]).sum(axis=2)
    n = len(Y)
    return [
        (Precomputed(), Y @ Y.T, Y_new @ Y.T, D2),
        (PrecomputedDistance(), np.sqrt(D2[:n]), np.sqrt(D2[n:]), D2),
        (PrecomputedDistance(), np.sqrt(D1[:n]), np.sqrt(D1[n:]), D1),
    ]


@on_rows
def test_distances_of_coordinates_are_those_of_features(kernel):
    Y = rows(0, 15)
    phi = explicit_features(kernel, Y)
    Z = FeatureMap.fit(kernel, Y).coordinates
    np.testing.assert_allclose(
        oracle.squared_distances(Z, Z), oracle.squared_distances(phi, phi), atol=1e-9
    )
    np.testing.assert_allclose(Z.mean(axis=0), 0, atol=1e-12)
    widths = (Z**2).sum(axis=0)
    assert (np.diff(widths) <= 1e-9).all()
    np.testing.assert_allclose(Z.T @ Z, np.diag(widths), atol=1e-9 * widths[0])


@on_rows
def test_new_rows_split_into_foot_and_height(kernel):
    Y, Y_new = rows(1, 9, 3), rows(2, 6, 3)
    phi = explicit_features(kernel, np.vstack([Y, Y_new]))
    foot, height = oracle.split(phi[9:], phi[:9])
    features = FeatureMap.fit(kernel, Y)
    Z = features.transform(Y_new)
    np.testing.assert_allclose(
        oracle.squared_distances(Z, features.coordinates),
        oracle.squared_distances(foot, phi[:9]),
        rtol=1e-6,
        atol=1e-8,
    )
    np.testing.assert_allclose(features.outside(Y_new), height, rtol=1e-6, atol=1e-8)


@on_rows
def test_distance_to_a_regressed_point_is_equation_4_64(kernel):
    Y, Y_new = rows(3, 12), rows(4, 5)
    B = np.random.default_rng(5).normal(size=(7, 12))
    B += (1 - B.sum(axis=1, keepdims=True)) / 12
    K, k = kernel.gram(Y, Y), kernel.gram(Y_new, Y)
    expected = kernel.diagonal(Y_new)[:, None] - 2 * k @ B.T + ((B @ K) * B).sum(axis=1)
    features = FeatureMap.fit(kernel, Y)
    found = oracle.squared_distances(features.transform(Y_new), B @ features.coordinates)
    found += features.outside(Y_new)[:, None]
    np.testing.assert_allclose(found, expected, rtol=1e-7, atol=1e-7)


@on_rows
def test_references_are_where_transform_puts_them(kernel):
    Y = rows(6, 40)
    features = FeatureMap.fit(kernel, Y)
    scale = np.abs(features.coordinates).max()
    np.testing.assert_allclose(features.transform(Y), features.coordinates, atol=1e-8 * scale)
    assert features.outside(Y).max() < 1e-9 * scale**2


def test_the_linear_kernel_gives_principal_components():
    Y = rows(7, 30) * [3.0, 2.0, 1.0, 0.1] + 5
    features = FeatureMap.fit(Linear(), Y)
    assert features.coordinates.shape == (30, 4)  # the rank of the data, not of the matrix
    centred = Y - Y.mean(axis=0)
    widths = np.linalg.svd(centred, compute_uv=False)
    np.testing.assert_allclose((features.coordinates**2).sum(axis=0), widths**2, rtol=1e-9)
    assert features.outside(rows(8, 3)).max() < 1e-10
    plane = FeatureMap.fit(Linear(), Y * [1, 1, 0, 0])
    heights = plane.outside(rows(8, 3))
    np.testing.assert_allclose(heights, (rows(8, 3)[:, 2:] ** 2).sum(axis=1), atol=1e-10)


def test_precomputed_matrices_place_rows_as_their_kernel_does():
    Y, Y_new = rows(9, 14), rows(10, 4)
    for kernel, training, new, sq_dists in precomputed_cases(Y, Y_new):
        features = FeatureMap.fit(kernel, training)
        Z = features.coordinates
        np.testing.assert_allclose(oracle.squared_distances(Z, Z), sq_dists[:14], atol=1e-9)
        np.testing.assert_allclose(features.transform(training), Z, atol=1e-8)
        assert features.references.shape == (14, 0)  # the matrix itself is not kept
        found, outside = oracle.squared_distances(features.transform(new), Z), features.outside(new)
        if isinstance(kernel, Precomputed):
            assert np.isnan(outside).all()
            np.testing.assert_allclose(found, sq_dists[14:], atol=1e-9)
        else:
            np.testing.assert_allclose(found + outside[:, None], sq_dists[14:], atol=1e-9)


def test_constants_of_a_conditionally_positive_definite_kernel_do_not_matter():
    Y, Y_new = rows(11, 13), rows(12, 5)
    by_kernel = FeatureMap.fit(L1(), Y)
    D = np.abs(np.vstack([Y, Y_new])[:, None] - Y[None]).sum(axis=2)
    by_distance = FeatureMap.fit(PrecomputedDistance(), np.sqrt(D[:13]))
    np.testing.assert_allclose(by_distance.coordinates, by_kernel.coordinates, atol=1e-9)
    Z = by_distance.transform(np.sqrt(D[13:]))
    np.testing.assert_allclose(Z, by_kernel.transform(Y_new), atol=1e-8)
    np.testing.assert_allclose(
        by_distance.outside(np.sqrt(D[13:])), by_kernel.outside(Y_new), atol=1e-9
    )


@on_rows
@pytest.mark.parametrize("values_at_a_time", [4_000_000, 300])
def test_a_row_is_the_same_alone_and_among_others(kernel, values_at_a_time, monkeypatch):
    monkeypatch.setattr(rowwise, "VALUES_AT_A_TIME", values_at_a_time)
    features = FeatureMap.fit(kernel, rows(13, 71, 5))
    Y = rows(14, 33, 5)
    Z, outside = features.transform(Y), features.outside(Y)
    for part in (slice(0, 1), slice(7, 8), slice(32, 33), slice(2, 9), slice(0, 17)):
        np.testing.assert_array_equal(features.transform(Y[part]), Z[part])
        np.testing.assert_array_equal(features.transform(Y[::-1][part]), Z[::-1][part])
        np.testing.assert_array_equal(features.outside(Y[part]), outside[part])


@on_rows
def test_stored_arrays_restore_the_map_to_the_last_bit(kernel):
    Y, Y_new = rows(15, 20), rows(16, 4)
    first = FeatureMap.fit(kernel, Y)
    again = FeatureMap(
        first.kernel,
        first.references.copy(),
        np.asfortranarray(first.projector),
        first.mean_row.copy(),
        first.mean,
    )
    np.testing.assert_array_equal(again.coordinates, first.coordinates)
    for features in (again, pickle.loads(pickle.dumps(first))):
        np.testing.assert_array_equal(features.transform(Y_new), first.transform(Y_new))
        np.testing.assert_array_equal(features.outside(Y_new), first.outside(Y_new))


def test_gamma_is_chosen_in_fit():
    Y = rows(17, 20)
    assert FeatureMap.fit(RBF(), Y).kernel == RBF().fitted(Y)


@on_rows
def test_float32_rows_give_float32_results_computed_in_float64(kernel):
    Y, Y_new = rows(18, 25).astype(np.float32), rows(19, 6).astype(np.float32)
    single = FeatureMap.fit(kernel, Y)
    double = FeatureMap.fit(kernel, Y.astype(float))
    for found, expected in [
        (single.coordinates, double.coordinates),
        (single.transform(Y_new), double.transform(Y_new.astype(float))),
        (single.outside(Y_new), double.outside(Y_new.astype(float))),
    ]:
        assert found.dtype == np.float32
        assert expected.dtype == np.float64
        np.testing.assert_array_equal(found, expected.astype(np.float32))


def test_inputs_are_left_as_they_are():
    Y, Y_new = rows(20, 10), rows(21, 3)
    D = np.sqrt(oracle.squared_distances(Y, Y))
    for kernel, training, new in [
        (L1(), Y, Y_new),
        (Precomputed(), Y @ Y.T, Y_new @ Y.T),
        (PrecomputedDistance(), D, D[:3]),
    ]:
        training.setflags(write=False)
        new.setflags(write=False)
        features = FeatureMap.fit(kernel, training)
        assert not np.shares_memory(features.references, training)
        features.transform(new)
        features.outside(new)


def test_no_rows_give_no_coordinates():
    features = FeatureMap.fit(L1(), rows(22, 6))
    assert features.transform(np.empty((0, 4))).shape == (0, features.projector.shape[1])
    assert features.outside(np.empty((0, 4))).shape == (0,)


def test_copies_of_a_reference_cost_no_direction():
    Y = rows(23, 8)
    once, twice = (FeatureMap.fit(RBF(0.5), np.repeat(Y, k, axis=0)) for k in (1, 2))
    assert once.projector.shape[1] == twice.projector.shape[1] == 7
    np.testing.assert_allclose(twice.coordinates[::2], twice.coordinates[1::2], atol=1e-9)


def negative_kernel(A, B):
    return -(A @ B.T)


def test_a_kernel_that_is_none_is_refused():
    Y = rows(24, 12)
    for kernel, matrix in [
        (Custom(negative_kernel), Y),
        (Precomputed(), -Y @ Y.T),
        (PrecomputedDistance(), oracle.squared_distances(Y, Y)),
    ]:
        with pytest.raises(ValueError, match=r"not conditionally positive definite.*another"):
            FeatureMap.fit(kernel, matrix)


def test_what_the_message_advises_helps():
    K = -rows(25, 6) @ rows(25, 6).T
    with pytest.raises(ValueError, match="add") as caught:
        FeatureMap.fit(Precomputed(), K)
    amount = float(str(caught.value).split("add ")[1].split(" ")[0])
    FeatureMap.fit(Precomputed(), K + 1.001 * amount * np.eye(6))
    sq_dists = np.diag(K)[:, None] - 2 * K + np.diag(K)
    sq_dists += 2 * 1.001 * amount * (1 - np.eye(6))
    FeatureMap.fit(PrecomputedDistance(), np.sqrt(np.maximum(sq_dists, 0)))


def test_rounding_is_not_taken_for_a_negative_direction():
    Y = rows(26, 50) + 1000
    assert FeatureMap.fit(Linear(), Y).coordinates.shape == (50, 4)
    K = RBF(0.01).gram(Y, Y).astype(np.float32)
    FeatureMap.fit(Precomputed(), K)


def test_wrong_references_are_named():
    K = rows(27, 5) @ rows(27, 5).T
    with pytest.raises(ValueError, match=r"must be symmetric.*differ by up to 1"):
        FeatureMap.fit(Precomputed(), K + np.eye(5, k=1))
    with pytest.raises(ValueError, match=r"square in training.*got shape \(5, 4\)"):
        FeatureMap.fit(Precomputed(), K[:, :4])
    K[1, 2] = np.nan
    for kernel in (Precomputed(), PrecomputedDistance(), L1(), RBF()):
        with pytest.raises(ValueError, match="1 entries are NaN or infinite, first row 1, column"):
            FeatureMap.fit(kernel, K)
    with pytest.raises(ValueError, match="All references have the same feature"):
        FeatureMap.fit(L1(), np.full((5, 2), 0.1))
    with pytest.raises(ValueError, match="All references have the same feature"):
        FeatureMap.fit(RBF(), np.ones((1, 2)))
    with pytest.raises(ValueError, match=r"Polynomial\(degree=3.*overflow.*Scale the data"):
        FeatureMap.fit(Polynomial(3), 1e60 * rows(28, 4))
    with pytest.raises(ValueError, match=r"shape \(n, D\)"):
        FeatureMap.fit(L1(), np.zeros(3))


def test_too_many_references_are_refused_before_any_work():
    message = r"10,001 × 10,001 matrix of 0\.8 GB.*`landmarks=`"
    with pytest.raises(ValueError, match=message):
        FeatureMap.fit(L1(), np.zeros((10_001, 1)))


def test_wrong_new_rows_are_named():
    features = FeatureMap.fit(L1(), rows(29, 6))
    with pytest.raises(ValueError, match="Expected rows with 4 features; got 2"):
        features.transform(np.zeros((3, 2)))
    with pytest.raises(ValueError, match="NaN"):
        features.transform(np.full((1, 4), np.nan))
    features = FeatureMap.fit(Precomputed(), np.eye(4))
    with pytest.raises(ValueError, match=r"with the 4 training rows; got shape \(1, 3\)"):
        features.transform(np.zeros((1, 3)))
