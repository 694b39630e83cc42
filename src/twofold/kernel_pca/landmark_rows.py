"""Rows that stand for others: landmarks that span feature space.

Kernel PCA of n rows costs n² numbers of memory. With l landmarks y_l (centres of k-means, which
serve the Nyström method best: Zhang, Tsang and Kwok 2008) all features are first projected onto
the affine span of the landmarks' features, where they have at most l - 1 coordinates ζ
(:class:`~twofold.features.FeatureMap`, with projector P); then follows ordinary weighted PCA of ζ,
with mean μ and axes V. The axes are ``A = P V`` over the landmarks, and the point with coordinates
x is ``Σ_l α_l Φ(y_l)``, ``α = A x + b``, ``b = 1/l + P μ``, of sum one. With every row a landmark
this is kernel PCA as it is.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.linalg import eigh

from twofold.array_types import FloatArray
from twofold.features.data_kernels import DataKernel
from twofold.features.feature_map import FeatureMap
from twofold.kernel_pca.spectrum import Spectrum, count_kept, fix_signs
from twofold.landmarks import Landmarks
from twofold.landmarks.choice import choose_landmarks
from twofold.neighborhoods.nearest import nearest_rows
from twofold.rowwise import blocks


@dataclass(frozen=True, eq=False)
class LandmarkRows:
    """Landmarks (l, D) and the summed weights (l,) of the rows that each is nearest to."""

    rows: FloatArray
    weights: FloatArray

    @classmethod
    def choose(cls, Y: FloatArray, weights: FloatArray, count: int, seed: int) -> LandmarkRows:
        """Choose a number of landmarks among rows Y (n, D)."""
        rows = choose_landmarks(Y, weights, Landmarks(count), seed)
        owner = nearest_rows(Y, rows, 1)[:, 0]
        summed = np.bincount(owner, weights, minlength=len(rows)).astype(np.float64)
        return cls(rows[summed > 0], summed[summed > 0])

    def decompose(
        self,
        kernel: DataKernel,
        Y: FloatArray,
        weights: FloatArray,
        n_components: int,
        n_further: int = 0,
    ) -> tuple[Spectrum, FloatArray]:
        """Return the axes of all rows Y (n, D) over the landmarks, and b (l,).

        ``n_further`` as in :func:`~twofold.kernel_pca.spectrum.decompose`.
        """
        found = FeatureMap.fit(kernel, self.rows)
        r = found.projector.shape[1]
        shares = weights / weights.sum()
        total, mean = 0.0, np.zeros(r)
        products = np.zeros((r, r))
        for place in blocks(len(Y), r):
            Z = found.transform(Y[place]).astype(np.float64)
            weighted = Z * shares[place, None]
            mean += weighted.sum(axis=0)
            products += weighted.T @ Z
            total += float(shares[place] @ found.outside(Y[place]))
        products -= np.outer(mean, mean)
        total += float(np.trace(products))
        values, V = eigh(products, driver="evd")
        order = np.argsort(-values, kind="stable")[: n_components + n_further]
        noise = np.finfo(float).eps * r * float(values[-1])
        order = order[: count_kept(values[order], n_components, noise)]
        axes = fix_signs(found.projector @ V[:, order])
        base = 1 / len(self.rows) + found.projector @ mean
        K = kernel.gram(self.rows, self.rows)
        mean_row = K @ base
        latent = (K - mean_row) @ axes
        scale = float(weights.sum())
        return Spectrum(
            values[order] * scale, axes, latent, mean_row, float(mean_row @ base), total * scale
        ), base
