"""Rows that stand for others: landmarks that span feature space, and nearest neighbours.

Neighbours make scales and graphs, and an incomplete row finds its latent point from theirs.

Kernel PCA of n rows costs n² numbers of memory. With l landmarks y_l (centres of k-means, which
serve the Nyström method best: Zhang, Tsang and Kwok 2008) all features are first projected onto
the affine span of the landmarks' features, where they have at most l - 1 coordinates ζ
(:class:`~twofold.features.FeatureMap`, with projector P); then follows ordinary weighted PCA of ζ,
with mean μ and axes V. The axes are ``A = P V`` over the landmarks, and the point with coordinates
x is ``Σ_l α_l Φ(y_l)``, ``α = A x + b``, ``b = 1/l + P μ``, of sum one. With every row a landmark
this is kernel PCA as it is.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse
from scipy.linalg import eigh
from scipy.sparse.csgraph import connected_components
from scipy.spatial.distance import pdist, squareform

from twofold.array_types import BoolArray, FloatArray, IntArray
from twofold.features.data_kernels import RBF, DataKernel, Laplacian, check_rows
from twofold.features.feature_map import FeatureMap
from twofold.kernel_pca.spectrum import Spectrum, check_rank, fix_signs
from twofold.landmark_choice import choose_landmarks, nearest_landmarks
from twofold.landmarks import Landmarks
from twofold.preimages import press
from twofold.preimages.coordinates import GaussianCoordinates

# Arias 2007 takes the mean distance to the 10th neighbour for a width throughout.
NEIGHBOR_FOR_SCALE = 10
# Neighbours whose latent points an incomplete row starts from, and damped steps from each.
STARTS, STEPS = 3, 12
# Rows whose neighbourhoods are solved at a time: bounds the memory for their differences.
ROWS_AT_A_TIME = 256
# Numbers in memory at a time while rows are placed among landmarks: 32 MB.
VALUES_AT_A_TIME = 4_000_000


@dataclass(frozen=True, eq=False)
class LandmarkRows:
    """Landmarks (l, D) and the summed weights (l,) of the rows that each is nearest to."""

    rows: FloatArray
    weights: FloatArray

    @classmethod
    def choose(cls, Y: FloatArray, weights: FloatArray, count: int, seed: int) -> LandmarkRows:
        """Choose so many landmarks of rows Y (n, D)."""
        rows = choose_landmarks(Y, weights, Landmarks(count), seed)
        owner = nearest_landmarks(Y, rows, 1)[:, 0]
        summed = np.bincount(owner, weights, minlength=len(rows)).astype(np.float64)
        return cls(rows[summed > 0], summed[summed > 0])

    def decompose(
        self, kernel: DataKernel, Y: FloatArray, weights: FloatArray, n_components: int
    ) -> tuple[Spectrum, FloatArray]:
        """Return the axes of all rows Y (n, D) over the landmarks, and b (l,)."""
        found = FeatureMap.fit(kernel, self.rows)
        r = found.projector.shape[1]
        shares = weights / weights.sum()
        size = max(1, VALUES_AT_A_TIME // r)
        places = [slice(start, start + size) for start in range(0, len(Y), size)]
        total, mean = 0.0, np.zeros(r)
        products = np.zeros((r, r))
        for place in places:
            Z = found.transform(Y[place]).astype(np.float64)
            weighted = Z * shares[place, None]
            mean += weighted.sum(axis=0)
            products += weighted.T @ Z
            total += float(shares[place] @ found.outside(Y[place]))
        products -= np.outer(mean, mean)
        total += float(np.trace(products))
        values, V = eigh(products, driver="evd")
        order = np.argsort(-values, kind="stable")[:n_components]
        check_rank(values[order], n_components, np.finfo(float).eps * r * float(values[-1]))
        axes = fix_signs(found.projector @ V[:, order])
        base = 1 / len(self.rows) + found.projector @ mean
        K = kernel.gram(self.rows, self.rows)
        mean_row = K @ base
        latent = (K - mean_row) @ axes
        scale = float(weights.sum())
        return Spectrum(
            values[order] * scale, axes, latent, mean_row, float(mean_row @ base), total * scale
        ), base


def neighbor_scale(Y: FloatArray, n: int = NEIGHBOR_FOR_SCALE, *, order: int = 2) -> float:
    """Return the mean distance of rows Y (m, D) to their n-th nearest other (Arias 2007, 2.34).

    With ``order`` 1 it is the city-block distance to that row.
    """
    Y = check_rows(Y)
    n = min(n, len(Y) - 1)
    last = Y[nearest_landmarks(Y, Y, n + 1)[:, n]]
    scale = float(np.linalg.norm(Y - last, order, axis=1).mean())
    if not 0 < scale < math.inf:
        raise ValueError(
            f"The mean distance to the {n}th neighbour is {scale}, which is no width for a kernel. "
            "Scale the data, or give the kernel a width."
        )
    return scale


def with_numbers(kernel: Any, Y: FloatArray) -> Any:
    """Return the kernel ready for rows Y (m, D), widths by the tenth neighbour where not given."""
    if isinstance(kernel, RBF) and kernel.gamma is None:
        return RBF(0.5 / neighbor_scale(Y) ** 2)
    if isinstance(kernel, Laplacian) and kernel.gamma is None:
        return Laplacian(1 / neighbor_scale(Y, order=1))
    return kernel if kernel.is_precomputed else kernel.fitted(Y)


def other_neighbors(Y: FloatArray, k: int) -> IntArray:
    """Return the k nearest others (m, k) of each row of Y (m, D), fewer if there are fewer."""
    m = len(Y)
    found = nearest_landmarks(Y, Y, min(k, m - 1) + 1)
    others = found != np.arange(m)[:, None]
    others[others.all(axis=1), -1] = False  # as many equal rows, one of which stands for itself
    return found[others].reshape(m, -1)


def neighbor_graph(Y: FloatArray, k: int) -> Any:
    """Return the sparse matrix of distances to the k nearest others; raise if it falls apart."""
    neighbors = other_neighbors(Y, k)
    m, k = neighbors.shape
    lengths = neighbor_distances(Y, Y, neighbors).ravel()
    graph = sparse.csr_matrix(
        (lengths, neighbors.ravel(), np.arange(0, m * k + 1, k)), shape=(m, m)
    )
    parts = int(connected_components(graph, directed=False)[0])
    if parts > 1:
        raise ValueError(
            f"With n_neighbors={k} the rows fall into {parts} parts without a way from one to the "
            "other. Raise `n_neighbors`, or fit the parts one by one."
        )
    return graph


def combining_weights(
    Z: FloatArray, Y: FloatArray, neighbors: IntArray, regularization: float
) -> FloatArray:
    """Return weights (n, k) of sum one that best combine rows Z (n, D) from neighbours in Y."""
    W = np.empty(neighbors.shape)
    k = neighbors.shape[1]
    for start in range(0, len(Z), ROWS_AT_A_TIME):
        place = slice(start, start + ROWS_AT_A_TIME)
        gaps = Y[neighbors[place]] - Z[place, None]
        G = gaps @ gaps.transpose(0, 2, 1)
        trace = np.trace(G, axis1=1, axis2=2)
        ridge = regularization * np.where(trace > 0, trace, 1)
        G[:, np.arange(k), np.arange(k)] += ridge[:, None]
        solved = np.linalg.solve(G, np.ones((len(G), k, 1)))[:, :, 0]
        W[place] = solved / solved.sum(axis=1, keepdims=True)
    return W


def neighbor_distances(Z: FloatArray, Y: FloatArray, neighbors: IntArray) -> FloatArray:
    """Return the distances (n, k) of rows Z (n, D) to their neighbours in Y."""
    found = np.empty(neighbors.shape)
    for j in range(neighbors.shape[1]):
        gaps = Z - Y[neighbors[:, j]]
        found[:, j] = np.sqrt((gaps * gaps).sum(axis=1))
    return found


def rigid_pairs(neighbors: IntArray) -> tuple[IntArray, IntArray]:
    """Return the pairs (first, second) of rows that are neighbours, or neighbours of one row."""
    together = np.column_stack([np.arange(len(neighbors)), neighbors])
    first, second = np.triu_indices(together.shape[1], 1)
    pairs = np.sort(
        np.stack([together[:, first].ravel(), together[:, second].ravel()], axis=1), axis=1
    )
    distinct = np.unique(pairs, axis=0)
    return distinct[:, 0], distinct[:, 1]


def extend_by_ridge(Y: FloatArray, X: FloatArray) -> GaussianCoordinates:
    """Return coordinates of any row by kernel ridge regression of X (m, q) at rows Y (m, D).

    Scale and ridge have the smallest leave-one-out error of the coordinates.
    """
    Y = check_rows(Y)
    error = press.CoordinatePress(squareform(pdist(Y, "sqeuclidean")), X)
    chosen = press.choose(error, neighbor_scale(Y))
    return GaussianCoordinates.by_ridge(Y, X, chosen.scale, chosen.ridge)


def place_incomplete(
    Y: FloatArray,
    known: FloatArray,
    latent: FloatArray,
    regress: Callable[[FloatArray], FloatArray],
    inside: Callable[[FloatArray], BoolArray],
) -> FloatArray:
    """Return latent points (n, q) whose images are nearest to the observed entries of rows.

    Damped Gauss-Newton steps from the latent points of the training rows that are nearest in the
    observed entries; a step is taken if it lowers the error and ends inside the domain.

    Parameters
    ----------
    Y : (n, D) array
        Rows; NaN marks what is missing.
    known, latent : (m, D) and (m, q) arrays
        Training rows and their latent points.
    regress : function
        Carries latent points to rows.
    inside : function
        Says which latent points the data supports.
    """
    starts = min(STARTS, len(known))
    chosen = [np.argsort(np.nansum((known - y) ** 2, axis=1), kind="stable")[:starts] for y in Y]
    X = latent[np.concatenate(chosen)].astype(np.float64)
    wanted = np.repeat(Y, starts, axis=0)
    step = 1e-3 * latent.std(axis=0, dtype=np.float64)

    def residuals(X: FloatArray) -> FloatArray:
        gaps = regress(X) - wanted
        return np.where(np.isnan(gaps), 0, gaps)

    R = residuals(X)
    error, damping = (R * R).sum(axis=1), np.full(len(X), 1e-3)
    for _ in range(STEPS):
        J = np.stack([(residuals(X + s) - R) / s.sum() for s in np.diag(step)], axis=2)
        trial = X - _damped_step(J, R, damping)
        R_trial = residuals(trial)
        error_trial = (R_trial * R_trial).sum(axis=1)
        better = (error_trial < error) & inside(trial)
        X[better], R[better], error[better] = trial[better], R_trial[better], error_trial[better]
        damping = np.where(better, damping / 3, np.minimum(10 * damping, 1e6))
    best = error.reshape(-1, starts).argmin(axis=1)
    return X.reshape(len(Y), starts, -1)[np.arange(len(Y)), best]


def _damped_step(J: FloatArray, R: FloatArray, damping: FloatArray) -> FloatArray:
    """Return ``(JᵀJ + damping mean(diag JᵀJ) I)⁻¹ Jᵀ r`` (n, q) for J (n, D, q) and R (n, D)."""
    q = J.shape[2]
    A = J.transpose(0, 2, 1) @ J
    level = np.trace(A, axis1=1, axis2=2) / q
    A[:, np.arange(q), np.arange(q)] += (damping * np.where(level > 0, level, 1))[:, None]
    return np.linalg.solve(A, J.transpose(0, 2, 1) @ R[:, :, None])[:, :, 0]
