"""A pre-image map that is learned: ridge regression from coordinates to rows.

Bakır, Weston and Schölkopf (2004): where training rows have coordinates X (m, r), the map back is
a kernel ridge regression of the rows on these,

    y(x) = Gᵀ h(x) + g0,    h_i(x) = exp(-||x - x_i||² / (2 s²)).

It takes any kernel, needs no search, and gives a smooth surface in data space. The width s and the
ridge have the smallest leave-one-out error, which has a closed form (see
:mod:`~twofold.preimages.press`).
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, replace
from typing import Any, ClassVar
from weakref import WeakKeyDictionary

import numpy as np
from scipy.spatial.distance import pdist, squareform

from twofold.array_types import FloatArray
from twofold.preimages import press
from twofold.preimages.checks import check_positive
from twofold.preimages.coordinates import GaussianCoordinates
from twofold.preimages.points import FeaturePoints, PreImageMethod, PreImages

# The error takes some hundred inverses; this many rows tell width and ridge well enough.
_ROWS_FOR_CHOICE = 300
_NEIGHBOR = 10


@dataclass(frozen=True)
class Learned(PreImageMethod):
    """Kernel ridge regression from coordinates to rows.

    Parameters
    ----------
    scale : float or None
        Width of the Gaussians in units of the coordinates; None for the one of smallest error.
    ridge : float or None
        Number added to the diagonal; None for the one of smallest error.
    """

    scale: float | None = None
    ridge: float | None = None

    name: ClassVar[str] = "learned"
    needs: ClassVar[str] = "coordinates of the training rows"

    def __post_init__(self) -> None:
        for name in ("scale", "ridge"):
            if getattr(self, name) is not None:
                check_positive(name, getattr(self, name))

    def fits(self, kernel: Any) -> str | None:
        """Return why the method fits that kernel, None if it does not."""
        return "only coordinates of the training rows are needed, whatever the kernel"

    def fitted(self, rows: FloatArray, row_coordinates: FloatArray) -> Learned:
        """Return the method with width and ridge chosen from rows (m, D), coordinates (m, r)."""
        if self.scale is not None and self.ridge is not None:
            return self
        step = -(-len(rows) // _ROWS_FOR_CHOICE)
        Y = np.asarray(rows[::step], dtype=np.float64)
        sq_dists = squareform(
            pdist(np.asarray(row_coordinates[::step], dtype=float), "sqeuclidean")
        )
        number = min(_NEIGHBOR, len(Y) - 1)
        unit = float(np.sqrt(np.sort(sq_dists, axis=1)[:, number]).mean()) or 1.0
        if len(Y) < 3 or not np.ptp(Y):  # nothing to be learned from rows left out
            return replace(self, scale=self.scale or unit, ridge=self.ridge or 1e-3)
        chosen = press.choose(press.CoordinatePress(sq_dists, Y), unit, self.scale, self.ridge)
        return replace(self, scale=chosen.scale, ridge=chosen.ridge)

    def find(self, target: FeaturePoints) -> PreImages:
        """Return the pre-images of the points; numbers that are None are chosen first."""
        if target.coordinates is None or target.row_coordinates is None:
            raise ValueError(
                "A learned pre-image map goes from coordinates to rows; pass `coordinates=` of "
                "the points and `row_coordinates=` of the training rows."
            )
        X = target.row_coordinates[:, : target.coordinates.shape[1]]
        back = self._map_back(target.rows, np.ascontiguousarray(X))
        return PreImages.in_closed_form(target, back.values(target.coordinates))

    def _map_back(self, rows: FloatArray, X: FloatArray) -> GaussianCoordinates:
        """Return the regression of rows (m, D) on coordinates (m, r), solved once for the same."""
        seen = hashlib.blake2b(rows.data)
        seen.update(repr(X.shape).encode())
        seen.update(X.data)
        kept = _SOLVED.get(self)
        if kept is not None and kept[0] == seen.digest():
            return kept[1]
        method = self.fitted(rows, X)
        assert method.scale is not None
        assert method.ridge is not None
        # A copy, as the caller's rows may change and the map is kept.
        back = GaussianCoordinates.by_ridge(X.copy(), rows, method.scale, method.ridge)
        _SOLVED[self] = seen.digest(), back
        return back


# The last regression of each method, as long as the method is used: solving it takes O(m³).
_SOLVED: WeakKeyDictionary[Learned, tuple[bytes, GaussianCoordinates]] = WeakKeyDictionary()
