"""The Gaussian of the rows around a place: a manifold's tangent, with what lies across it.

Around a place, the k nearest rows i at distances d_i count with ``w_i ∝ 1 - (d_i / d_k)²``, and

    μ = Σ w_i y_i
    S = (κ S_w + ν c S_0) / (κ + ν),   S_w = Σ w_i (y_i - μ)(y_i - μ)ᵀ + diag Σ w_i v_i

with κ = 1 / Σ w_i² the number of rows this is worth. S_0 is the covariance of the whole table
(:mod:`twofold.noise.factor_model`), shrunk to the size of S_w by c; it counts like ν = D / 2 rows.
v_i are the variances of entries that had been missing and are filled: they are not as sure as
others. With k small μ is the mean of neighbours, with k large S is the covariance of the table:
local regression and the Gaussian are the two ends of it (Cleveland & Devlin 1988).
"""

from collections.abc import Sequence

import numpy as np
from scipy.special import gammaln

from twofold.array_types import FloatArray, IntArray
from twofold.neighborhoods.nearest import RowSearch
from twofold.noise.conditioning import Conditional, Gaussians, condition
from twofold.noise.factor_model import FactorModel

# How many rows the covariance of the whole table counts like, for each column.
ROWS_OF_PRIOR = 0.5
# Rows that are nearer than that are as near as can be.
NEAREST = 1e-2
# Rows worked on at a time: so few that what is made of their neighbours stays in cache.
ROWS_AT_A_TIME = 32


class LocalGaussians:
    """Gaussians around places, from rows (n, D) that stand at ``places`` (n, c).

    Parameters
    ----------
    rows : ndarray of shape (n, D), every entry filled
    doubt : ndarray of shape (n, D)
        Variances of filled entries, 0 for those that were observed.
    places : ndarray of shape (n, c)
        Where rows stand: latent points, or the rows themselves.
    prior : FactorModel
        The Gaussian of the whole table.
    farther : ndarray of shape (n,), default=None
        What is added to squared distances from a row, for places that are not sure.
    """

    def __init__(
        self,
        rows: FloatArray,
        doubt: FloatArray,
        places: FloatArray,
        prior: FactorModel,
        farther: FloatArray | None = None,
    ) -> None:
        self.rows, self.doubt, self.prior = rows, doubt, prior
        # One more coordinate, in which every place asked for is 0: squares of distances add up.
        self.places = places if farther is None else np.column_stack([places, np.sqrt(farther)])
        self._search = RowSearch(self.places)
        self._has_doubt = bool((doubt > 0).any())

    def neighbors(self, places: FloatArray, k: int, own: IntArray | None = None) -> IntArray:
        """Return the k + 1 nearest rows of places (m, c), nearest first, without their own (m,)."""
        if places.shape[1] < self.places.shape[1]:
            places = np.column_stack([places, np.zeros(len(places))])
        if own is None:
            return self._search.nearest(places, min(k + 1, len(self.rows)))
        found = self._search.nearest(places, min(k + 2, len(self.rows)))
        others = found != own[:, None]
        others[others.all(axis=1), -1] = False
        return found[others].reshape(len(found), found.shape[1] - 1)

    def weights(self, places: FloatArray, neighbors: IntArray) -> FloatArray:
        """Return the weights (m, k + 1) of neighbours, the last of which is as far as it goes."""
        return falling_weights(self._squares(places, neighbors))

    def _squares(self, places: FloatArray, neighbors: IntArray) -> FloatArray:
        if places.shape[1] < self.places.shape[1]:
            places = np.column_stack([places, np.zeros(len(places))])
        gaps = self.places[neighbors] - places[:, None]
        return np.asarray(np.einsum("mkc,mkc->mk", gaps, gaps))

    def log_density(self, places: FloatArray, own: IntArray | None, k: int) -> FloatArray:
        """Return the log of the density (m,) of rows at places, as the k nearest tell it."""
        n, q = self.places.shape
        k = min(k, n - 1)
        squares = self._squares(places, self.neighbors(places, k, own))[:, -1]
        log_ball = q / 2 * np.log(np.pi) - gammaln(q / 2 + 1)
        radius = np.log(np.maximum(squares, NEAREST**2)) / 2
        return np.asarray(np.log(k / n) - log_ball - q * radius)

    def conditionals(
        self, Y: FloatArray, places: FloatArray, own: IntArray | None, sizes: Sequence[int]
    ) -> list[Conditional]:
        """Return what the rows around places tell of rows Y (m, D), for each number of them.

        ``own`` (m,) are the numbers of rows that tell nothing of themselves, -1 for others.
        """
        if not sizes:
            return []
        found: list[list[Conditional]] = [[] for _ in sizes]
        for i in range(0, max(len(Y), 1), ROWS_AT_A_TIME):
            part = slice(i, i + ROWS_AT_A_TIME)
            without = None if own is None else own[part]
            neighbors = self.neighbors(places[part], max(sizes), without)
            squares = self._squares(places[part], neighbors)
            for k, parts in zip(sizes, found, strict=True):
                weights = falling_weights(squares[:, : k + 1])
                parts.append(condition(Y[part], self.around(neighbors[:, : k + 1], weights)))
        return [Conditional.joined(parts) for parts in found]

    def around(self, neighbors: IntArray, w: FloatArray) -> Gaussians:
        """Return the Gaussians (m of them) of neighbours with weights, see the module."""
        near = self.rows[neighbors]
        means = np.matmul(w[:, None], near)[:, 0]
        R = np.subtract(near, means[:, None], out=near)
        R *= np.sqrt(w)[:, :, None]
        doubt = np.zeros_like(means)
        if self._has_doubt:
            doubt = np.matmul(w[:, None], self.doubt[neighbors])[:, 0]
        (m, k), D = w.shape, means.shape[1]
        size = (R**2).sum(axis=(1, 2)) + doubt.sum(axis=1)
        worth = 1 / (w**2).sum(axis=1)
        prior = ROWS_OF_PRIOR * D
        local = worth / (worth + prior)
        # Rows that are all equal leave the table's own size, or nothing could be divided by.
        total = self.prior.total_variance()
        scale = (1 - local) * np.maximum(size / total, 1e-6)
        factors = np.empty((m, D, k + self.prior.loadings.shape[1]))
        own, common = factors[:, :, :k], factors[:, :, k:]
        np.multiply(R.transpose(0, 2, 1), np.sqrt(local)[:, None, None], out=own)
        np.multiply(self.prior.loadings, np.sqrt(scale)[:, None, None], out=common)
        return Gaussians(
            means,
            factors,
            local[:, None] * doubt + scale[:, None] * self.prior.variances,
        )


def falling_weights(squares: FloatArray) -> FloatArray:
    """Return weights (m, k + 1) from rising squared distances; the last is as far as it goes."""
    farthest = squares[:, -1:]
    # Where all are equally far, or all there is counts, they count alike.
    flat = squares[:, :1] >= farthest * (1 - 1e-9)
    # Rows as far as the last may seem to lie a rounding error beyond it.
    w = np.where(flat, 1, np.maximum(1 - squares / np.where(farthest > 0, farthest, 1), 0))
    return np.asarray(w / w.sum(axis=1, keepdims=True))
