"""Fits at known places: data at the nodes, or samples anywhere in the domain.

Rows keep the places they came with. Equal rows at several places, as in data where one answer has
many causes, count once in the model; such a row projects to the first of its places.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
from sklearn.utils import check_array

from twofold.array_types import BoolArray, FloatArray
from twofold.checks.rows import check_missing, checked_weights
from twofold.psom.grid import Grid
from twofold.psom.parameters import check_axes, count_axes, enclose, make_grid
from twofold.psom.scattered import ScatteredFit, fit_scattered
from twofold.psom.smoothing import SmoothGrid, smooth_grid
from twofold.psom.smoothness_choice import Discrepancy
from twofold.psom.units import data_unit

if TYPE_CHECKING:
    from twofold.psom.estimator import PSOM

Fit = TypeVar("Fit", SmoothGrid, ScatteredFit)


@dataclass(frozen=True, eq=False)
class KnownPlaces:
    """A grid, what was fitted on it, and the places X (m, q) and weights (m,) of the rows."""

    grid: Grid
    found: SmoothGrid | ScatteredFit
    X: FloatArray
    weights: FloatArray


def node_rows(model: PSOM, Y: Any) -> Any:
    """Return data of the nodes as rows; arrays of the shape of the grid, then D, are flattened."""
    if np.ndim(Y) <= 2:
        return Y
    array = np.asarray(Y)
    shape = make_grid(model.grid, model.nodes, None).shape
    if array.shape[:-1] != shape:
        raise ValueError(
            f"`Y` must have the shape {shape} of the grid and one axis of features more, or one "
            f"row for each node; got shape {array.shape}."
        )
    return array.reshape(-1, array.shape[-1])


def refuse_infinity(Y: Any) -> None:
    """Raise if data at known places hold infinity; what is no number is left to later checks."""
    if np.iscomplexobj(Y):
        return
    try:
        is_infinite = np.isinf(np.asarray(Y, dtype=np.float64))
    except (TypeError, ValueError):
        return
    if is_infinite.any():
        raise ValueError("`Y` must be finite, or NaN where a value is missing; it holds infinity.")


def fit_at_nodes(model: PSOM, Y: FloatArray) -> KnownPlaces:
    """Return the map of rows Y (N, D) at the nodes of a grid, NaN where missing."""
    grid = make_grid(model.grid, model.nodes, model.bounds)
    check_axes(grid, is_smoothed=model.smoothness is not None or bool(np.isnan(Y).any()))
    is_known: BoolArray = np.logical_not(np.isnan(Y).all(axis=1))
    check_missing(Y[is_known], getattr(model, "feature_names_in_", None))
    unit = data_unit(Y[is_known])
    smoothness = _in_unit(0.0 if model.smoothness is None else model.smoothness, unit)
    found = smooth_grid(grid, Y / unit, smoothness, n_jobs=model.n_jobs)
    weights = np.where(is_known, 1.0, 0.0)
    return KnownPlaces(grid, _out_of_unit(found, unit), grid.places(), weights)


def fit_at_places(model: PSOM, X: Any, Y: FloatArray, sample_weight: Any) -> KnownPlaces:
    """Return the map of rows Y (m, D) at places X (m, q)."""
    places = check_array(X, dtype=np.float64, input_name="X")
    weights = checked_weights(sample_weight, Y)
    q = count_axes(model.grid, model.nodes)
    counted = places[weights > 0]
    bounds = enclose(counted, q) if model.bounds is None else model.bounds
    grid = make_grid(model.grid, model.nodes, bounds)
    _check_inside(counted, grid)
    check_axes(grid, is_smoothed=True)
    check_missing(Y, getattr(model, "feature_names_in_", None))
    unit = data_unit(Y)
    smoothness = _in_unit("gcv" if model.smoothness is None else model.smoothness, unit)
    found = fit_scattered(grid, places, Y / unit, smoothness, weights, n_jobs=model.n_jobs)
    return KnownPlaces(grid, _out_of_unit(found, unit), places, weights)


def _in_unit(smoothness: Any, unit: float) -> Any:
    """Return what a parameter ``smoothness`` means for data divided by a unit."""
    return (
        Discrepancy(smoothness.sigma / unit) if isinstance(smoothness, Discrepancy) else smoothness
    )


def _out_of_unit(found: Fit, unit: float) -> Fit:
    """Return what was fitted to data divided by a unit, in their own."""
    return replace(
        found,
        W=found.W * unit,
        roughness=found.roughness * unit**2,
        squared_error=found.squared_error * unit**2,
    )


def _check_inside(X: FloatArray, grid: Grid) -> None:
    outside = np.flatnonzero(((grid.lo > X) | (grid.hi < X)).any(axis=1))
    if len(outside):
        raise ValueError(
            f"{len(outside)} place(s) of `X` lie outside of `bounds` (first: row {outside[0]}); "
            "widen the bounds, or leave these samples out."
        )
