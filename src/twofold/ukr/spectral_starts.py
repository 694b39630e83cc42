"""Spectral embeddings over a shared neighbour table: LLE, Isomap, Laplacian eigenmaps.

*LLE* (Roweis and Saul, Science 2000): weights w that minimise sum_i ||y_i - sum_j w_ij y_j||^2
over the K neighbours of each row, rows of W summing to one; the embedding is the bottom
eigenvectors of M = (I - W)^T (I - W) next to the constant one. M + c 1 1^T sends the constant
vector to the other end of the spectrum, and one dense Cholesky factor of it turns the bottom into
the top of the inverse, which a few Lanczos steps find. With high-dimensional data the sparse
factor of M is nearly full, so the dense one is several times faster.

*Isomap* (Tenenbaum, de Silva and Langford, Science 2000) in its landmark form (de Silva and
Tenenbaum, "Sparse multidimensional scaling using landmark points", 2004): squared shortest-path
lengths D2 from m landmarks to all rows, classical scaling of the landmarks, B = V diag(w) V^T
with B the doubly centred -D2/2, and every row placed at -1/2 diag(w)^{-1/2} V^T (d2 - mean d2).
A landmark lands where classical scaling puts it. The cost grows with m n, not with n^2.

*Laplacian eigenmaps* (Belkin and Niyogi, Neural Computation 2003): top eigenvectors of
D^{-1/2} A D^{-1/2} next to the trivial one, divided by sqrt(degree), for the 0/1 adjacency A.
"""

from __future__ import annotations

import numpy as np
from scipy.linalg import cho_factor, cho_solve, eigh
from scipy.sparse import csr_array, diags_array, eye_array
from scipy.sparse.csgraph import dijkstra
from scipy.sparse.linalg import LinearOperator, eigsh

from twofold.array_types import FloatArray, IntArray

# Relative weight of the ridge on the local Gram matrices of LLE, which are singular for K > D.
_LLE_RIDGE = 1e-3
# Floats in one batch of local differences: 32 MB.
_LLE_BATCH = 4_000_000
# Far below the accuracy that a start needs, far above the rounding errors.
_EIGEN_TOLERANCE = 1e-4
N_LANDMARKS = 400


def lle(Y: FloatArray, neighbors: IntArray, q: int, random_state: int) -> FloatArray:
    """Embed by locally linear embedding.

    Parameters
    ----------
    Y : ndarray of shape (n, D)
        Data.
    neighbors : ndarray of shape (n, K)
        Row numbers of the neighbours of each row; their graph must be connected.
    q : int
        Number of latent dimensions.
    random_state : int
        Seed of the Lanczos start vector.

    Returns
    -------
    ndarray of shape (n, q)
        Orthonormal columns, the smoothest first.
    """
    n, n_neighbors = neighbors.shape
    weights = _barycenter_weights(Y, neighbors)
    row_starts = np.arange(0, n * n_neighbors + 1, n_neighbors)
    residual = eye_array(n) - csr_array(
        (weights.ravel(), neighbors.ravel(), row_starts), shape=(n, n)
    )
    cost = (residual.T @ residual).toarray(order="F")
    # No eigenvalue is above the trace, so this sends the constant vector to the top.
    trace = float(np.trace(cost))
    cost += trace / n
    # The shift keeps the matrix positive definite when the data lie on a plane.
    cost[np.diag_indices(n)] += 1e-13 * trace
    factor = cho_factor(cost, lower=True, overwrite_a=True, check_finite=False)
    inverse = LinearOperator(
        (n, n), matvec=lambda v: cho_solve(factor, v, check_finite=False), dtype=np.float64
    )
    return _top_eigenvectors(inverse, q, random_state)


def _barycenter_weights(Y: FloatArray, neighbors: IntArray) -> FloatArray:
    """Return the (n, K) affine weights that best rebuild each row from its neighbours."""
    n, n_neighbors = neighbors.shape
    weights = np.empty((n, n_neighbors))
    batch = max(1, _LLE_BATCH // (n_neighbors * Y.shape[1]))
    diagonal = np.arange(n_neighbors)
    for start in range(0, n, batch):
        rows = slice(start, start + batch)
        differences = Y[neighbors[rows]] - Y[rows, None, :]
        gram = differences @ differences.transpose(0, 2, 1)
        trace = np.trace(gram, axis1=1, axis2=2)
        gram[:, diagonal, diagonal] += _LLE_RIDGE * trace[:, None]
        ones = np.ones((len(gram), n_neighbors, 1))
        weights[rows] = np.linalg.solve(gram, ones)[:, :, 0]
    weights /= weights.sum(axis=1, keepdims=True)
    return weights


def isomap(graph: csr_array, q: int, random_state: int) -> FloatArray:
    """Embed by landmark Isomap.

    Parameters
    ----------
    graph : csr_array of shape (n, n)
        Symmetric and connected graph of distances.
    q : int
        Number of latent dimensions.
    random_state : int
        Seed of the choice of landmarks; all rows are landmarks up to ``N_LANDMARKS`` rows.

    Returns
    -------
    ndarray of shape (n, q)
        Columns of falling variance.

    Raises
    ------
    numpy.linalg.LinAlgError
        If the path lengths have fewer than q Euclidean dimensions.
    """
    n = graph.shape[0]
    m = min(n, N_LANDMARKS)
    landmarks = np.sort(np.random.default_rng(random_state).choice(n, size=m, replace=False))
    # The graph is symmetric already; "directed" spares scipy the look at its transpose.
    sq_paths = dijkstra(graph, directed=True, indices=landmarks) ** 2
    between = sq_paths[:, landmarks]
    means = between.mean(axis=0)
    gram = -0.5 * (between - means - means[:, None] + means.mean())
    values, vectors = eigh(gram, subset_by_index=[m - q, m - 1])
    if values[0] <= 1e-10 * values[-1]:
        raise np.linalg.LinAlgError(f"path lengths have fewer than {q} Euclidean dimensions")
    X = -0.5 * (sq_paths - means[:, None]).T @ (vectors / np.sqrt(values))
    return np.ascontiguousarray(X[:, ::-1])


def laplacian_eigenmaps(graph: csr_array, q: int, random_state: int) -> FloatArray:
    """Embed by Laplacian eigenmaps of the unweighted graph.

    Parameters
    ----------
    graph : csr_array of shape (n, n)
        Symmetric and connected graph; only its pattern counts.
    q : int
        Number of latent dimensions.
    random_state : int
        Seed of the Lanczos start vector.

    Returns
    -------
    ndarray of shape (n, q)
        The smoothest column first.
    """
    adjacency = csr_array((np.ones_like(graph.data), graph.indices, graph.indptr), graph.shape)
    inverse_root = 1.0 / np.sqrt(adjacency.sum(axis=1))
    scaled = diags_array(inverse_root) @ adjacency @ diags_array(inverse_root)
    vectors = _top_eigenvectors(scaled, q + 1, random_state)
    X: FloatArray = vectors[:, 1:] * inverse_root[:, None]
    return X


def _top_eigenvectors(
    matrix: csr_array | LinearOperator, n_vectors: int, random_state: int
) -> FloatArray:
    """Return the eigenvectors of the largest eigenvalues, the largest first."""
    v0 = np.random.default_rng(random_state).normal(size=matrix.shape[0])
    values, vectors = eigsh(matrix, n_vectors, which="LA", v0=v0, tol=_EIGEN_TOLERANCE)
    return np.ascontiguousarray(vectors[:, np.argsort(-values)])
