"""Embeddings read off neighbours: LLE, Isomap and Laplacian eigenmaps.

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

As kernels, with values for new rows, LLE, Isomap and Laplacian eigenmaps are in
:mod:`twofold.kernel_pca.data_dependent`; what the two have in common is here.
"""

import numpy as np
from scipy.linalg import cho_factor, cho_solve, eigh
from scipy.sparse import csr_array, diags_array, eye_array
from scipy.sparse.csgraph import dijkstra
from scipy.sparse.linalg import LinearOperator, eigsh

from twofold.array_types import FloatArray, IntArray
from twofold.neighborhoods.graphs import linked_rows
from twofold.rowwise import blocks

# Share of the trace added to the local Gram matrices of LLE, which are singular for K > D.
LLE_RIDGE = 1e-3
# Far below the accuracy that a start needs, far above the rounding errors.
_EIGEN_TOLERANCE = 1e-4
N_LANDMARKS = 400


def barycenter_weights(
    Z: FloatArray, Y: FloatArray, neighbors: IntArray, ridge: float = LLE_RIDGE
) -> FloatArray:
    """Return weights (n, K) of sum one that best combine rows Z (n, D) from neighbours in Y."""
    n, K = neighbors.shape
    W = np.empty((n, K))
    for part in blocks(n, K * Y.shape[1]):
        gaps = Y[neighbors[part]] - Z[part, None]
        G = gaps @ gaps.transpose(0, 2, 1)
        trace = np.trace(G, axis1=1, axis2=2)
        G[:, np.arange(K), np.arange(K)] += ridge * np.where(trace > 0, trace, 1)[:, None]
        solved = np.linalg.solve(G, np.ones((len(G), K, 1)))[:, :, 0]
        # wᵀGw with Σ w = 1 has its minimum along G⁻¹ 1.
        W[part] = solved / solved.sum(axis=1, keepdims=True)
    return W


def lle_cost(Y: FloatArray, neighbors: IntArray, ridge: float = LLE_RIDGE) -> csr_array:
    """Return ``(I - W)ᵀ(I - W)`` (n, n) of rows Y (n, D) with neighbours (n, K)."""
    n = len(Y)
    rest = eye_array(n) - linked_rows(barycenter_weights(Y, Y, neighbors, ridge), neighbors, n)
    return csr_array(rest.T @ rest)


def lle(Y: FloatArray, neighbors: IntArray, q: int, random_state: int) -> FloatArray:
    """Return the locally linear embedding (n, q), orthonormal columns with the smoothest first.

    The graph of the neighbours (n, K) of rows Y (n, D) must be connected.
    """
    n = len(Y)
    cost = lle_cost(Y, neighbors).toarray(order="F")
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


def isomap(graph: csr_array, q: int, random_state: int) -> FloatArray:
    """Return the embedding (n, q) by landmark Isomap, columns of falling variance.

    The graph (n, n) of distances is symmetric and connected. Up to ``N_LANDMARKS`` rows are all
    landmarks, else some are drawn. Raises LinAlgError where path lengths have fewer than q
    Euclidean dimensions.
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
    """Return the embedding (n, q) by Laplacian eigenmaps, the smoothest column first.

    The graph (n, n) is symmetric and connected; only its pattern counts.
    """
    adjacency = csr_array((np.ones_like(graph.data), graph.indices, graph.indptr), graph.shape)
    inverse_root = 1.0 / np.sqrt(adjacency.sum(axis=1))
    scaled = diags_array(inverse_root) @ adjacency @ diags_array(inverse_root)
    # The first eigenvector only follows the degrees, and is constant once these are divided out.
    vectors = _top_eigenvectors(scaled, q + 1, random_state)
    X: FloatArray = vectors[:, 1:] * inverse_root[:, None]
    return X


def _top_eigenvectors(
    matrix: csr_array | LinearOperator, n_vectors: int, random_state: int
) -> FloatArray:
    """Return the eigenvectors of the largest eigenvalues, the largest first."""
    # ARPACK would draw a start of its own.
    v0 = np.random.default_rng(random_state).normal(size=matrix.shape[0])
    values, vectors = eigsh(matrix, n_vectors, which="LA", v0=v0, tol=_EIGEN_TOLERANCE)
    return np.ascontiguousarray(vectors[:, np.argsort(-values)])
