"""What models that lead back by means of latent neighbours have in common."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from twofold.array_types import BoolArray, FloatArray
from twofold.contract import TwoWayModel
from twofold.contract.kernel_description import NearestMeans
from twofold.engine import KernelSums, PreparedReferences
from twofold.engine.threads import count_threads
from twofold.kernels import get_kernel
from twofold.unn.data_range import check_range
from twofold.unn.projection import project
from twofold.unn.regression import Surface

# Kernel weights below this, relative to the largest, are left out of a density.
CUTOFF = 1e-6
# As many as the models take unless told: who has no more rows than that sees it without a warning.
FEW_NEIGHBORS = 5


class NeighborModel(TwoWayModel):
    """A model whose regression is a mean of nearest rows, with a Gaussian latent density."""

    n_neighbors: Any
    n_jobs: int | None
    data_: FloatArray
    weights_: FloatArray
    filled_: FloatArray

    def kernel_regression(self) -> NearestMeans:
        """Return the way back, means of nearest rows, in plain arrays."""
        check_is_fitted(self)
        return NearestMeans(
            latent=self.latent_.astype(np.float64),
            data=self._rows_of_means().astype(np.float64),
            weights=np.asarray(self.weights_, dtype=np.float64),
            widths=None,
            kernel="gaussian",
            degree=0,
            cutoff=CUTOFF,
            latent_scale=1 / np.asarray(self._latent_unit(), dtype=np.float64),
            n_neighbors=int(self.n_neighbors),
            groups=getattr(self, "clusters_", None),
            observed=~np.isnan(self.data_) if hasattr(self, "filled_") else None,
        )

    def _rows_of_means(self) -> FloatArray:
        """Return the rows (n, D) that means are made of, with what was filled in."""
        return getattr(self, "filled_", self.data_)

    def _surface_of(self, X: FloatArray, some: Any = slice(None)) -> Surface:
        """Return the way back from latent points X (n, q), or from some of them."""
        rows, n_threads = self._rows_of_means(), count_threads(self.n_jobs)
        return Surface(X[some], rows[some], self.weights_[some], int(self.n_neighbors), n_threads)

    def _warn_of_many_neighbors(self, n: int) -> None:
        """Say so if all of n distinct rows are neighbours of each: every mean is the same then."""
        if self.n_neighbors >= n and self.n_neighbors > FEW_NEIGHBORS:
            warnings.warn(
                f"n_neighbors={self.n_neighbors} of {n} distinct rows are all of them: the way "
                "back leads to their mean from everywhere. Take fewer neighbours, or more rows.",
                UserWarning,
                stacklevel=2,
            )

    def _check_range(self, Y: FloatArray, *, reset: bool) -> None:
        check_range(Y, differences=reset)

    def _restore(self) -> None:
        self._surface = self._surface_of(self.latent_)
        unit, shares = self._latent_unit(), (self.weights_ / self.weights_.sum())[:, None]
        engine = KernelSums(get_kernel("gaussian"), CUTOFF, self.n_jobs)
        self._space = PreparedReferences(engine, in_units(self.latent_, unit), shares), unit

    def _density(self, X: FloatArray) -> FloatArray:
        references, unit = self._space
        sums = references.at(in_units(X, unit))
        return (sums.values[:, 0] * references.engine.kernel.value(sums.shift)).astype(X.dtype)

    def _project_onto(
        self, surface: Surface, Y: FloatArray, observed: BoolArray | None
    ) -> FloatArray:
        def is_inside(X: FloatArray) -> BoolArray:
            # As the user gets to see them: a place on the border must not fall out by rounding.
            return self._density(X.astype(Y.dtype)) >= self.domain_threshold_

        return project(surface, Y, observed, is_inside)


def in_units(X: FloatArray, unit: FloatArray) -> FloatArray:
    """Return latent points X (n, q) in units (q,)."""
    return np.ascontiguousarray(np.asarray(X, dtype=np.float64) / unit)
