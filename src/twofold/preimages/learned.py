"""A pre-image map that is learned: ridge regression from coordinates to rows.

Bakır, Weston and Schölkopf (2004): where training rows have coordinates X (m, r), the map back is
a kernel ridge regression of the rows on these,

    y(x) = Gᵀ h(x) + g0,    h_i(x) = exp(-||x - x_i||² / (2 s²)).

It takes any kernel, needs no search, and gives a smooth surface in data space. The width s and the
ridge have the smallest leave-one-out error, which has a closed form (see
:mod:`~twofold.preimages.press`). There are two reasons to take a larger ridge, each with the width
that suits it best. Errors of that many rows order nearly equal ridges by chance, so the largest
ridge is taken whose error is at most 2 % larger. And rows left out lie where the
others do, so that the error says nothing about places beside a curve of latent points, where a
tiny ridge lets the map run far away. The ridge is raised until the map stays near the box around
the data at places inside the domain.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import ClassVar
from weakref import WeakKeyDictionary

import numpy as np
from scipy import spatial

from twofold.array_types import FloatArray
from twofold.checks.parameters import check_positive
from twofold.contract.family import DOMAIN_SHARE
from twofold.latent.density import scott_widths
from twofold.preimages import press
from twofold.preimages.coordinates import NEIGHBOR, GaussianCoordinates
from twofold.preimages.points import ClosedForm, FeaturePoints

# Squares of widths down to this, and up to its inverse, are numbers.
SMALLEST_SCALE = 1e-150
# The error takes some hundred inverses; this many rows tell width and ridge well enough.
_ROWS_FOR_CHOICE = 300
# Errors that are larger by this share count as equal, in steps of the ridge by this factor.
_SLACK, _RIDGE_STEP, _LARGEST_RIDGE = 0.02, 10**0.5, 10.0
# How far the map may leave the box around the data, as a share of its diagonal, and at how many of
# the places looked at. With 0.15 pictures of a turning pot come back with half as much more error;
# with 0.25 one in twenty samples of a sinusoid's diffusion map is off by half a range.
_BEYOND, _MOST_PLACES = 0.25, 0.99
# Places for each row, as far as they are inside of the domain.
_PLACES_EACH = 2


@dataclass(frozen=True)
class Learned(ClosedForm):
    """Kernel ridge regression from coordinates to rows.

    Parameters
    ----------
    scale : float or None
        Width of the Gaussians in units of the coordinates; None for the one of smallest error.
    ridge : float or None
        Number added to the diagonal; None for the largest one whose error is close to the smallest
        and with which the map stays near the data.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from twofold import KernelPCA
    >>> from twofold.preimages import Learned
    >>> model = KernelPCA(2, kernel="rbf", preimage=Learned(ridge=0.1)).fit(load_iris().data)
    >>> model.inverse_transform(model.embedding_[:2]).shape
    (2, 4)
    """

    scale: float | None = None
    ridge: float | None = None

    name = "learned"
    needs = "coordinates of the training rows"
    suits: ClassVar = {
        object: "only coordinates of the training rows are needed, whatever the kernel"
    }

    def __post_init__(self) -> None:
        for name in ("scale", "ridge"):
            if getattr(self, name) is not None:
                check_positive(name, getattr(self, name))
        if self.scale is not None and not SMALLEST_SCALE <= self.scale <= 1 / SMALLEST_SCALE:
            raise ValueError(
                f"`scale` must lie between {SMALLEST_SCALE:g} and {1 / SMALLEST_SCALE:g}, so that "
                f"its square is a number; got {self.scale!r}."
            )

    def fitted(self, rows: FloatArray, row_coordinates: FloatArray) -> Learned:
        """Return the method with width and ridge chosen from rows (m, D), coordinates (m, r)."""
        if self.scale is not None and self.ridge is not None:
            return self
        step = -(-len(rows) // _ROWS_FOR_CHOICE)
        Y = np.asarray(rows[::step], dtype=np.float64)
        X = np.asarray(row_coordinates[::step], dtype=np.float64)
        sq_dists = spatial.distance.squareform(spatial.distance.pdist(X, "sqeuclidean"))
        number = min(NEIGHBOR, len(Y) - 1)
        unit = float(np.sqrt(np.sort(sq_dists, axis=1)[:, number]).mean()) or 1.0
        if len(Y) < 3 or not np.ptp(Y):  # nothing to be learned from rows left out
            return replace(self, scale=self.scale or unit, ridge=self.ridge or 1e-3)
        error = press.CoordinatePress(sq_dists, Y)
        chosen = press.choose(error, unit, self.scale, self.ridge)
        if self.ridge is None:
            chosen = _with_larger_ridge(error, chosen, unit, self.scale, _stays_near(X, Y))
        return replace(self, scale=chosen.scale, ridge=chosen.ridge)

    def rows_for(self, target: FeaturePoints) -> FloatArray:
        """Return what the regression gives; parameters that are None are chosen first."""
        if target.coordinates is None or target.row_coordinates is None:
            raise ValueError(
                "A learned pre-image map goes from coordinates to rows; pass `coordinates=` of "
                "the points and `row_coordinates=` of the training rows."
            )
        X = target.row_coordinates[:, : target.coordinates.shape[1]]
        back = self._map_back(target.rows, np.ascontiguousarray(X))
        return back.values(target.coordinates)

    def _map_back(self, rows: FloatArray, X: FloatArray) -> GaussianCoordinates:
        """Return the regression of rows (m, D) on coordinates (m, r), solved once for the same."""
        # By content: a model hands over new arrays of the same numbers with every call.
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


def _stays_near(X: FloatArray, Y: FloatArray) -> Callable[[float, float], bool]:
    """Return whether the map from X (m, r) to Y (m, D) of scale and ridge stays near the data."""
    # It is asked at places drawn from the density of X inside its domain, the same every time.
    # Width and domain are those of models with such a map.
    width = scott_widths(X, np.ones(len(X)))
    centres = X / width
    drawn = np.repeat(centres, _PLACES_EACH, axis=0)
    drawn += np.random.RandomState(0).normal(size=drawn.shape)
    lowest = _density(centres, centres).min()
    inside = width * drawn[_density(drawn, centres) >= DOMAIN_SHARE * lowest]
    low, high = Y.min(axis=0), Y.max(axis=0)
    reach = _BEYOND * float(np.linalg.norm(high - low))

    def stays_near(scale: float, ridge: float) -> bool:
        if not len(inside):
            return True
        found = GaussianCoordinates.by_ridge(X, Y, scale, ridge).values(inside)
        beyond = np.maximum(np.maximum(found - high, low - found), 0)
        return bool(np.mean(np.linalg.norm(beyond, axis=1) <= reach) >= _MOST_PLACES)

    return stays_near


def _density(places: FloatArray, centres: FloatArray) -> FloatArray:
    sq_dists = spatial.distance.cdist(places, centres, "sqeuclidean")
    return np.asarray(np.exp(-0.5 * sq_dists).sum(axis=1))


def _with_larger_ridge(
    error: press.Criterion,
    best: press.Choice,
    unit: float,
    scale: float | None,
    stays_near: Callable[[float, float], bool],
) -> press.Choice:
    """Return the largest ridge of nearly the best error, or the first that stays near the data."""
    chosen, is_near = best, stays_near(best.scale, best.ridge)
    while chosen.ridge * _RIDGE_STEP <= _LARGEST_RIDGE:
        ridge = chosen.ridge * _RIDGE_STEP
        larger = press.choose(error, unit, scale, ridge, first_scales=(chosen.scale,))
        if is_near and larger.value > (1 + _SLACK) * best.value:
            break
        chosen = larger
        is_near = is_near or stays_near(chosen.scale, chosen.ridge)
    return chosen


# The last regression of each method, as long as the method is used: solving it takes O(m³).
_SOLVED: WeakKeyDictionary[Learned, tuple[bytes, GaussianCoordinates]] = WeakKeyDictionary()
