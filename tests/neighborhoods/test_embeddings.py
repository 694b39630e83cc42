"""Embeddings of neighbours, each against a reference."""

from __future__ import annotations

import numpy as np
from oracles.sheets import curved_sheet
from scipy.linalg import subspace_angles
from scipy.spatial.distance import pdist
from sklearn.manifold import Isomap, locally_linear_embedding, spectral_embedding

from twofold.neighborhoods.embeddings import (
    N_LANDMARKS,
    barycenter_weights,
    isomap,
    laplacian_eigenmaps,
    lle,
)
from twofold.neighborhoods.graphs import find_neighbors


def test_weights_combine_a_row_from_its_neighbours():
    # 1 lies a quarter of the way from 0 to 4; with hardly any ridge the weights say so.
    Y = np.array([[0.0], [4.0]])
    found = barycenter_weights(np.array([[1.0]]), Y, np.array([[0, 1]]), ridge=1e-12)
    np.testing.assert_allclose(found, [[0.75, 0.25]], atol=1e-9)
    # A row that coincides with all its neighbours takes them alike.
    equal = barycenter_weights(np.zeros((1, 1)), np.zeros((3, 1)), np.array([[0, 1, 2]]))
    np.testing.assert_allclose(equal, 1 / 3)


def test_weights_are_the_same_alone_and_among_others():
    Y = curved_sheet(60)
    neighbors = find_neighbors(Y, 5).indices
    alone = [barycenter_weights(Y[i : i + 1], Y, neighbors[i : i + 1]) for i in range(60)]
    np.testing.assert_array_equal(np.concatenate(alone), barycenter_weights(Y, Y, neighbors))


def test_isomap_equals_the_reference_with_all_rows_as_landmarks():
    Y = curved_sheet(N_LANDMARKS // 2)
    X = isomap(find_neighbors(Y, 8).symmetric_graph(8), 2, random_state=0)
    expected = Isomap(n_neighbors=8, eigen_solver="dense").fit_transform(Y)
    np.testing.assert_allclose(pdist(X), pdist(expected), atol=1e-8)


def test_isomap_with_landmarks_is_close_to_the_whole():
    Y = curved_sheet(2 * N_LANDMARKS)
    X = isomap(find_neighbors(Y, 8).symmetric_graph(8), 2, random_state=0)
    expected = Isomap(n_neighbors=8).fit_transform(Y)
    assert np.corrcoef(pdist(X), pdist(expected))[0, 1] > 0.999


def test_lle_spans_the_reference():
    Y = curved_sheet(200)
    X = lle(Y, find_neighbors(Y, 10).indices, 3, random_state=0)
    expected, _ = locally_linear_embedding(
        Y, n_neighbors=10, n_components=3, eigen_solver="dense", reg=1e-3
    )
    assert subspace_angles(X, expected).max() < 1e-3
    np.testing.assert_allclose(X.mean(axis=0), 0, atol=1e-10)


def test_lle_leaves_the_constant_vector_out_when_q_is_almost_n():
    Y = np.random.default_rng(0).normal(size=(8, 6))
    X = lle(Y, find_neighbors(Y, 7).indices, 5, random_state=0)
    np.testing.assert_allclose(X.sum(axis=0), 0, atol=1e-8)


def test_laplacian_eigenmaps_span_the_reference():
    graph = find_neighbors(curved_sheet(200), 8).symmetric_graph(8)
    X = laplacian_eigenmaps(graph, 3, random_state=0)
    pattern = graph.copy()
    pattern.data[:] = 1
    expected = spectral_embedding(pattern, n_components=3, random_state=0)
    assert subspace_angles(X, expected).max() < 1e-2
