"""The sizes by which steps of a search in coordinates are measured."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from twofold.array_types import FloatArray
from twofold.preimages.coordinates import CoordinateMap, GaussianCoordinates

_NEIGHBOR = 10
_ROWS_FOR_SIZES = 500
# A distance that changes by less than this share of itself over one length changes by rounding.
_FLAT = 1e-14


@dataclass(frozen=True)
class CoordinateSizes:
    """How far coordinates reach, in data space and among themselves.

    Parameters
    ----------
    length : float
        Distance in data space over which coordinates change.
    size : float
        Root mean square length of the rows' coordinates.
    """

    length: float
    size: float

    @classmethod
    def of(cls, coordinate_map: CoordinateMap, rows: FloatArray) -> CoordinateSizes:
        """Return the sizes of a map with training rows (m, D)."""
        if isinstance(coordinate_map, GaussianCoordinates):
            length = float(coordinate_map.scale)
        else:
            length = _neighbour_distance(rows)
        X = coordinate_map.values(_some(rows))
        return cls(length, float(np.sqrt((X**2).sum(axis=1).mean())) or 1.0)

    def rate(self, value: FloatArray, gradient: FloatArray) -> FloatArray:
        """Return a guess at the curvature of a squared distance E, 0 where it tells no direction.

        It is the curvature along the residual, ``2 ||Jᵀ u||² = ||∇E||² / (2 E)``, and that of
        coordinates of typical size that change over one length.
        """
        squares = np.einsum("nd,nd->n", gradient, gradient)
        at_least = np.maximum(value, 1e-30 * self.size**2)
        # Far from all rows the map is constant, and nothing tells where to go.
        felt = np.sqrt(squares) * self.length > _FLAT * at_least
        rate = squares / (2 * at_least) + 2 * np.sqrt(at_least) * self.size / self.length**2
        return np.where(felt, rate, 0.0)


def _some(rows: FloatArray) -> FloatArray:
    return rows[:: -(-len(rows) // _ROWS_FOR_SIZES)]


def _neighbour_distance(rows: FloatArray) -> float:
    """Return the mean distance of some rows to their 10th neighbour; 1 if it vanishes."""
    from sklearn.neighbors import NearestNeighbors

    number = min(_NEIGHBOR + 1, len(rows))
    distances, _ = NearestNeighbors(n_neighbors=number).fit(rows).kneighbors(_some(rows))
    return float(distances[:, -1].mean()) or 1.0
