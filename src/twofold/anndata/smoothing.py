"""Means of cells around places of a map, weighted as the model itself weighs its rows.

y(x) = Σ_i w_i(x) y_i,    w_i(x) = F(s_i) / Σ_j F(s_j),    s_i = ||(x - x_i) / h||²
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from sklearn.utils import gen_batches

from twofold.array_types import FloatArray
from twofold.contract import TwoWayModel
from twofold.contract.kernel_description import NearestMeans
from twofold.kernels import Kernel, get_kernel
from twofold.ukr import NadarayaWatson

_PLACES_AT_ONCE = 512
# Cells that count less than this share of the nearest one do not count.
_LEAST_WEIGHT = 1e-9


class Smoother:
    """The kernel regression of anything on the places of cells, as wide as the model's own."""

    def __init__(self, model: TwoWayModel, places: Any) -> None:
        self._places = np.asarray(places, dtype=np.float64)
        self._kernel, self._scale = _kernel_of(model)

    def means(self, X: Any, values: Any) -> FloatArray:
        """Return weighted means (m, c) of values (n, c), dense or sparse, at places X (m, q)."""
        found = [W @ values for W in self._weights(X)]
        return np.concatenate([np.asarray(part, dtype=np.float64) for part in found])

    def standard_errors(self, X: Any, values: Any) -> FloatArray:
        """Return how unsure the means (m, c) of values (n, c) at places X (m, q) are.

        That is √(σ² Σ w²) with σ² = Σ w (y - ȳ)² + Σ w² · v: the variance of the cells around the
        place and, the fewer these are, the more of the variance v of all cells.
        """
        square = values.multiply(values) if hasattr(values, "multiply") else values**2
        sums = np.concatenate([(W**2).sum(axis=1) for W in self._weights(X)])[:, None]
        means, overall = self.means(X, values), np.asarray(values.mean(axis=0)).ravel()
        around = np.maximum(self.means(X, square) - means**2, 0)
        variance = np.maximum(np.asarray(square.mean(axis=0)).ravel() - overall**2, 0)
        return np.sqrt((around + sums * variance) * sums)

    def _weights(self, X: Any) -> Iterator[FloatArray]:
        """Yield weights (rows, n) that add up to 1, some places at a time."""
        X = np.asarray(X, dtype=np.float64)
        for rows in gen_batches(len(X), _PLACES_AT_ONCE):
            apart = (X[rows, None, :] - self._places[None]) * self._scale
            s = (apart**2).sum(axis=2)
            # Far from all cells the nearest ones count, and weights stay in the range of numbers.
            nearest = s.min(axis=1, keepdims=True)
            W = self._kernel.value(s - nearest if self._kernel.is_exponential else s)
            W = np.where(W.sum(axis=1, keepdims=True) > 0, W, (s == nearest).astype(np.float64))
            least = _LEAST_WEIGHT * W.max(axis=1, keepdims=True)
            W = np.where(least <= W, W, 0)  # 1e-277 of a gene is none
            yield W / W.sum(axis=1, keepdims=True)


def _kernel_of(model: TwoWayModel) -> tuple[Kernel, FloatArray]:
    """Return kernel and scale (q,) of the model's way back, or of one found by leave-one-out."""
    described = model.kernel_regression()
    is_mean = described is not None and described.widths is None and described.degree == 0
    if described is not None and is_mean and not isinstance(described, NearestMeans):
        return get_kernel(described.kernel), described.latent_scale
    X, Y = model.latent_, model.data_
    gaps = np.isnan(Y)
    found = NadarayaWatson().fit(X, np.where(gaps, model.inverse_transform(X), Y))
    return get_kernel(found.kernel), 1 / found.bandwidth_
