"""Kernels that vanish beyond a radius: their matrices are sparse, and memory grows with the rows.

Wendland 1995: with ``l = floor(D / 2) + 2`` the polynomial

    k(y, y') = (1 - r)^(l+1) ((l+1) r + 1),    r = ||y - y'|| / radius,  0 for r > 1

is positive definite for rows of up to D columns, and has two derivatives. (A Gaussian that is cut
off at some distance, or after some neighbours, is not positive definite.) The price is its power,
which grows with D: for many columns the kernel is narrow within its radius, and rows are better
reduced by PCA first.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.neighbors import BallTree, KDTree

from twofold.array_types import FloatArray
from twofold.checks.parameters import check_count, check_positive
from twofold.features.data_kernels import DataKernel, check_rows
from twofold.neighborhoods.nearest import neighbor_scale
from twofold.rowwise import SQUARED_GAP, blocks, pair_sums

# Half of the kernel's height is at a third of its radius or so: as wide as the default of "rbf".
SCALES_IN_RADIUS = 3.0
# Coordinates from which on boxes tell less than balls about what is near.
MANY_COLUMNS = 15
# Rows whose neighbours tell how many there are in all.
ROWS_TO_COUNT = 500


@dataclass(frozen=True)
class Wendland(DataKernel):
    """A smooth kernel that is zero beyond a radius.

    Parameters
    ----------
    radius : float or None
        Distance beyond which the kernel is zero; None for three times the mean distance to the
        tenth nearest row.
    dimension : int or None
        Number of columns for which it is positive definite; None for that of the rows.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from twofold import KernelPCA
    >>> from twofold.kernel_pca import Wendland
    >>> KernelPCA(2, kernel=Wendland(2.0)).fit(load_iris().data).embedding_.shape
    (150, 2)
    """

    radius: float | None = None
    dimension: int | None = None

    def __post_init__(self) -> None:
        check_positive("radius", 1.0 if self.radius is None else self.radius)
        check_count("dimension", 1 if self.dimension is None else self.dimension)

    def fitted(self, Y: FloatArray) -> Wendland:
        """Return the kernel with its parameters, chosen from rows Y (m, D) where they are None."""
        Y = check_rows(Y)
        radius = SCALES_IN_RADIUS * neighbor_scale(Y) if self.radius is None else self.radius
        return replace(self, radius=radius, dimension=self.dimension or Y.shape[1])

    def gram(self, A: FloatArray, B: FloatArray) -> FloatArray:
        """Return the kernel values of every pair."""
        return self._values(np.sqrt(pair_sums(check_rows(A), check_rows(B), SQUARED_GAP)))

    def sparse_gram(self, A: FloatArray, B: FloatArray) -> Any:
        """Return the kernel values (a, b) of rows as a scipy.sparse matrix."""
        A, B = check_rows(A), check_rows(B)
        radius, _ = self._numbers()
        near = _tree(B).query_radius(A, radius)
        starts = np.concatenate([[0], np.cumsum([len(found) for found in near])])
        columns = np.concatenate(near) if len(near) else np.empty(0, dtype=np.int64)
        rows = np.repeat(np.arange(len(A)), np.diff(starts))
        values = np.empty(len(columns))
        for part in blocks(len(values), A.shape[1]):
            gaps = A[rows[part]] - B[columns[part]]
            values[part] = self._values(np.sqrt((gaps * gaps).sum(axis=1)))
        K = sparse.csr_matrix((values, columns, starts), shape=(len(A), len(B)))
        K.sort_indices()
        return K

    def count_near(self, Y: FloatArray) -> int:
        """Return about how many pairs of rows Y (m, D) are within the radius."""
        Y = check_rows(Y)
        some = Y[:: -(-len(Y) // ROWS_TO_COUNT)]  # spread evenly, as tables are often sorted
        counts = _tree(Y).query_radius(some, self._numbers()[0], count_only=True)
        return int(np.ceil(counts.mean() * len(Y)))

    def diagonal(self, A: FloatArray) -> FloatArray:
        """Return 1 for every row."""
        return np.ones(len(A))

    def _values(self, lengths: FloatArray) -> FloatArray:
        radius, power = self._numbers()
        r = np.minimum(lengths / radius, 1)
        return np.asarray((1 - r) ** power * (power * r + 1))

    def _numbers(self) -> tuple[float, int]:
        if self.radius is None or self.dimension is None:
            raise ValueError("Numbers of Wendland are None; `fitted(Y)` chooses them from Y.")
        return float(self.radius), int(self.dimension) // 2 + 3


def _tree(Y: FloatArray) -> Any:
    return KDTree(Y) if Y.shape[1] <= MANY_COLUMNS else BallTree(Y)
