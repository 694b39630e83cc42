"""The fitted axes in feature space: places on them, and the way from a place back to rows."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from scipy import sparse

from twofold.array_types import FloatArray
from twofold.features.data_kernels import DataKernel
from twofold.kernel_pca.spectrum import place_rows
from twofold.preimages import (
    Exact,
    FeaturePoints,
    Learned,
    LinearCombination,
    PreImageMethod,
    PreImages,
)
from twofold.preimages.coordinates import CoordinateMap
from twofold.process_settings import without_warnings
from twofold.rowwise import multiply_rows

# How far from the training points a search starts, in their sizes: farther off nothing changes.
FARTHEST_POINT = 1e30
# But for methods whose rows go as far as the point does, and one that takes any point.
GROWING = (Exact.name, LinearCombination.name, Learned.name)


@dataclass(frozen=True, eq=False)
class FeatureSpace:
    """The fitted axes in feature space, and the points on them."""

    kernel: Any  # a DataKernel, or one that is made from all rows at once
    rows: FloatArray  # (m, D) that span the space
    axes: FloatArray  # (m, q) coefficients of the axes, columns that sum to zero
    base: FloatArray  # (m,) coefficients of the mean, of sum one
    mean_row: FloatArray  # (m,) kernel values of the rows with the mean
    mean: float  # kernel value of the mean with itself
    latent: FloatArray  # (m, q) coordinates of the rows
    map: CoordinateMap | None = None  # at least q coordinates of any row, where it has a form
    matrix: FloatArray | None = None  # (m, m) kernel values where it is costly to make them again

    def place(self, K: Any) -> FloatArray:
        """Return coordinates (n, q) of rows with kernel values K (n, m), dense or sparse."""
        if sparse.issparse(K):  # columns of the axes sum to zero, so that levels of K drop out
            return np.asarray(K @ self.axes) - self.mean_row @ self.axes
        if not np.isfinite(K).all():
            raise ValueError(
                f"{int((~np.isfinite(K)).any(axis=1).sum())} of {len(K)} rows are so far from the "
                "training rows that their kernel values are no finite numbers. Scale the data, "
                "e.g. by StandardScaler, or leave these rows out."
            )
        return place_rows(K, self.axes, self.base, self.mean_row, self.mean)

    def expand(self, X: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return coefficients α (n, m) of points with coordinates X (n, q), and ``K α`` (n, m).

        For ``K A = X_rows + 1 (mean row)ᵀ A`` no kernel value is needed.
        """
        carried = self.latent + self.mean_row @ self.axes
        alpha = multiply_rows(X, self.axes.T) + self.base
        return alpha, multiply_rows(X, carried.T) + self.mean_row

    def preimages(
        self,
        X: FloatArray,
        method: PreImageMethod,
        n_jobs: int | None,
        start: FloatArray | None = None,
    ) -> PreImages:
        """Return the rows that a method finds for the points with coordinates X (n, q).

        A search starts at the rows ``start`` (n, D), where these are given.
        """
        if method.name not in GROWING:  # squares of squares of points out of all reach stay finite
            sizes = np.abs(X).max(axis=1, keepdims=True)
            reach = FARTHEST_POINT * float(np.abs(self.latent).max())
            X = X * np.minimum(1, reach / np.maximum(sizes, reach))
        alpha, products = self.expand(X)
        # Kernels of two rows are evaluated where they are needed, and a learned map needs none.
        is_needed = not isinstance(self.kernel, DataKernel) and method.name != Learned.name
        return method.find(
            FeaturePoints(
                self.kernel,
                self.rows,
                alpha,
                start=start,
                coordinates=X,
                map=self.map,
                row_coordinates=self.latent,
                gram=self.gram if is_needed else None,
                products=products,
                n_jobs=n_jobs,
            )
        )

    @cached_property
    def gram(self) -> FloatArray:
        """Kernel values (m, m) between the rows, for a kernel that is made from all of them."""
        if self.matrix is not None:
            return self.matrix
        with without_warnings(UserWarning):  # what there is to be told was told by the fit
            return np.asarray(self.kernel.matrix(self.rows))
