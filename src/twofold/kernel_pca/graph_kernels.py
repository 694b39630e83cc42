"""Kernels made from graphs of nearest neighbours: LLE, Isomap and maximum variance unfolding.

See :mod:`~twofold.kernel_pca.data_dependent` for their formulas.
"""

from __future__ import annotations

import importlib
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse
from scipy.sparse.csgraph import dijkstra
from scipy.sparse.linalg import eigsh

from twofold.array_types import FloatArray
from twofold.features.data_kernels import check_rows
from twofold.kernel_pca.from_all_rows import DataDependentKernel, KernelValues
from twofold.kernel_pca.neighbors import (
    combining_weights,
    neighbor_distances,
    neighbor_graph,
    other_neighbors,
    rigid_pairs,
)
from twofold.landmark_choice import nearest_landmarks
from twofold.number_checks import check_count, check_positive
from twofold.process_settings import without_warnings

# Squared distances between neighbours may be missed by so much of their mean in MVU.
MOST_EXCESS = 1e-3


@dataclass(frozen=True)
class LLE(DataDependentKernel):
    """Locally linear embedding as a kernel.

    Parameters
    ----------
    n_neighbors : int
        Rows that a row is combined from; all others if there are fewer.
    regularization : float
        Share of the trace added to the diagonal where weights are solved for.
    """

    n_neighbors: int = 10
    regularization: float = 1e-3

    def __post_init__(self) -> None:
        check_count("n_neighbors", self.n_neighbors)
        check_positive("regularization", self.regularization)

    def matrix(self, Y: FloatArray) -> FloatArray:
        """Return ``c I - (I - W)ᵀ(I - W)``."""
        return self._sparse(check_rows(Y)).toarray()

    def extended(self, Y: FloatArray) -> KernelValues:
        """Return combinations of the kernel values of neighbours."""
        Y = check_rows(Y)
        k = min(self.n_neighbors, len(Y) - 1)
        return _Combined(Y, self._sparse(Y), k, self.regularization)

    def _sparse(self, Y: FloatArray) -> Any:
        m = len(Y)
        neighbors = other_neighbors(Y, self.n_neighbors)
        W = combining_weights(Y, Y, neighbors, self.regularization)
        k = neighbors.shape[1]
        rest = sparse.eye(m, format="csr") - sparse.csr_matrix(
            (W.ravel(), neighbors.ravel(), np.arange(0, m * k + 1, k)), shape=(m, m)
        )
        M = (rest.T @ rest).tocsr()
        return sparse.csr_matrix(_largest_eigenvalue(M) * sparse.eye(m, format="csr") - M)


@dataclass(frozen=True, eq=False)
class _Combined:
    """Kernel values of new rows, combined from those of their neighbours."""

    rows: FloatArray
    K: Any
    n_neighbors: int
    regularization: float

    def values(self, Z: FloatArray) -> FloatArray:
        Z = check_rows(Z)
        neighbors = nearest_landmarks(Z, self.rows, self.n_neighbors)
        W = combining_weights(Z, self.rows, neighbors, self.regularization)
        n, k = W.shape
        picked = sparse.csr_matrix(
            (W.ravel(), neighbors.ravel(), np.arange(0, n * k + 1, k)), shape=(n, len(self.rows))
        )
        return np.asarray((picked @ self.K).toarray())


@dataclass(frozen=True)
class Isomap(DataDependentKernel):
    """Distances along the graph of nearest neighbours as a kernel.

    Parameters
    ----------
    n_neighbors : int
        Rows that a row is linked to; all others if there are fewer.
    """

    n_neighbors: int = 10

    def __post_init__(self) -> None:
        check_count("n_neighbors", self.n_neighbors)

    def matrix(self, Y: FloatArray) -> FloatArray:
        """Return ``-½ d²`` of distances along the graph."""
        K = dijkstra(neighbor_graph(check_rows(Y), self.n_neighbors), directed=False)
        return np.asarray(-0.5 * K * K)

    def extended(self, Y: FloatArray) -> KernelValues:
        """Return ``-½ d²``, the first step leading to a neighbour."""
        Y = check_rows(Y)
        k = min(self.n_neighbors, len(Y) - 1)
        return _AlongGraph(Y, neighbor_graph(Y, self.n_neighbors, quiet=True), k)


@dataclass(frozen=True, eq=False)
class _AlongGraph:
    """Kernel values of new rows from distances along the graph of old ones."""

    rows: FloatArray
    graph: Any
    n_neighbors: int

    def values(self, Z: FloatArray) -> FloatArray:
        Z = check_rows(Z)
        neighbors = nearest_landmarks(Z, self.rows, self.n_neighbors)
        steps = neighbor_distances(Z, self.rows, neighbors)
        used, place = np.unique(neighbors, return_inverse=True)
        along = dijkstra(self.graph, directed=False, indices=used)
        place = place.reshape(neighbors.shape)
        d = np.full((len(Z), len(self.rows)), np.inf)
        for j in range(self.n_neighbors):
            np.minimum(d, steps[:, j : j + 1] + along[place[:, j]], out=d)
        return np.asarray(-0.5 * d * d)


@dataclass(frozen=True)
class MVU(DataDependentKernel):
    """Maximum variance unfolding: the widest spread that keeps distances between neighbours.

    Solved by cvxpy (``pip install "twofold[sdp]"``): seconds for 50 rows, and out of reach beyond
    a few hundred, where ``n_landmarks`` helps.

    Parameters
    ----------
    n_neighbors : int
        Rows whose distances to a row, and to each other, are kept.
    """

    n_neighbors: int = 5

    def __post_init__(self) -> None:
        check_count("n_neighbors", self.n_neighbors)

    def matrix(self, Y: FloatArray) -> FloatArray:
        """Return the solution of ``max tr K`` under the distances, K ≽ 0 and ΣK = 0."""
        cvxpy = _load_cvxpy()
        Y = check_rows(Y)
        rigid = np.stack(rigid_pairs(other_neighbors(Y, self.n_neighbors)))
        # Parts that hang together by nothing would drift apart without end.
        linked = np.sort(np.stack(neighbor_graph(Y, self.n_neighbors).nonzero()), axis=0)
        first, second = np.unique(np.hstack([rigid, linked]), axis=1)
        gaps = ((Y[first] - Y[second]) ** 2).sum(axis=1)
        unit = float(gaps.mean())
        K = cvxpy.Variable((len(Y), len(Y)), PSD=True)
        own = cvxpy.diag(K)
        # As bounds: equations leave the solver no room, and the widest spread reaches them anyway.
        kept = own[first] + own[second] - 2 * K[first, second] <= gaps / unit
        problem = cvxpy.Problem(cvxpy.Maximize(cvxpy.trace(K)), [kept, cvxpy.sum(K) == 0])
        with without_warnings(UserWarning):  # about accuracy, which is looked at below
            problem.solve(solver="CLARABEL")
        excess = np.inf if K.value is None else float(np.max(kept.violation()))
        if excess > MOST_EXCESS:
            raise ValueError(
                f"The semidefinite programme of MVU ended as {problem.status!r}, distances missed "
                f"by {excess:.2g}. Take another `n_neighbors` than {self.n_neighbors}."
            )
        return np.asarray(0.5 * unit * (K.value + K.value.T))


def _largest_eigenvalue(M: Any) -> float:
    start = np.random.RandomState(0).uniform(size=M.shape[0])
    return float(eigsh(M, 1, which="LA", return_eigenvectors=False, v0=start)[0])


def _load_cvxpy() -> Any:
    try:
        return importlib.import_module("cvxpy")
    except ImportError as error:
        raise ImportError(
            "Maximum variance unfolding solves a semidefinite programme with cvxpy, which is not "
            'installed. Run pip install "twofold[sdp]", or use kernel="isomap", which also keeps '
            "distances between neighbours."
        ) from error
