"""Numbers to colour rows by: how dense the map is at a row, and how much it stretches there.

Derivatives of f cost as much as the table is wide. Where those at all rows would take too long,
they are worked out at places that cover the map, and a row has the mean of the places around it:

    log g(x) = Σ_k w_k log g(x_k) / Σ_k w_k,   w_k = 1 / ||(x - x_k) ∘ a||²

over the nearest places, with the model's latent scale a. This happens where kernels are wide
compared with the gaps between rows, so that g changes little from row to row.
"""

import math
import sys
from contextlib import nullcontext

import numpy as np
from scipy.spatial import cKDTree

from twofold.array_types import FloatArray
from twofold.contract import TwoWayModel
from twofold.contract.kernel_description import KernelDescription
from twofold.explorer.stand_in import cover, kernel_sums
from twofold.kernels import get_kernel
from twofold.optimize import Event, ProgressBar

# Derivatives are computed for blocks of rows that take about this many bytes.
PIECE_BYTES = 2**25
# All derivatives may take about this many products, two or three seconds; at this many places
# they are always computed.
PRODUCTS, LEAST_PLACES = 4e9, 2_000
# Weighing a reference takes as long as this many products.
PRODUCTS_OF_WEIGHT = 40
# Local polynomials take about this many times as long as means.
POLYNOMIAL_FACTOR = 4
NEIGHBORS = 4
SAMPLED_ROWS = 200


def row_facts(model: TwoWayModel) -> tuple[dict[str, FloatArray], int | None]:
    """Return density and magnification (n,) at the latent points of rows, and at how many places.

    The number of places is None where all rows were measured. On a terminal a line on standard
    error says how far it is, if it takes long.
    """
    X = model.embedding_.astype(np.float64)
    description = model.kernel_regression()
    if description is None:
        density = model.density(X)
    else:  # without the sums of rows, which cost as much as the table is wide
        omega = description.weights.astype(np.float64)
        sums, lowered = kernel_sums(description, omega[:, None], X)
        density = lowered * sums[:, 0] / omega.sum()
    most = _affordable_places(model, description)
    if len(X) <= most:
        return {"density": density, "magnification": _magnification(model, X)}, None
    scale = latent_scale(model, description)
    places = X[cover(X * scale, most)]
    found = _interpolated(places * scale, _magnification(model, places), X * scale)
    return {"density": density, "magnification": found}, len(places)


def latent_scale(model: TwoWayModel, description: KernelDescription | None) -> FloatArray:
    """Return the factors (q,) from latent units to bandwidths of the model's density."""
    if description is not None:
        scale = np.asarray(description.latent_scale, dtype=np.float64)
    else:
        scale = 1 / np.asarray(model.latent_unit(), dtype=np.float64)
    return np.broadcast_to(scale, model.embedding_.shape[1:])


def _affordable_places(model: TwoWayModel, description: KernelDescription | None) -> int:
    """Return at how many places derivatives can be worked out in good time."""
    if description is None:
        return LEAST_PLACES
    places = description.latent.astype(np.float64) * description.latent_scale
    some = places[:: -(-len(places) // SAMPLED_ROWS)]
    reach = get_kernel(description.kernel).reach(description.cutoff)
    width = 1.0 if description.widths is None else float(np.median(description.widths))
    # Some kernels reach everywhere.
    radius = min(width * math.sqrt(reach), float(np.ptp(places, axis=0).sum()) + 1)
    in_reach = cKDTree(places).query_ball_point(some, radius, return_length=True)
    products = model.n_features_in_ * (1 + places.shape[1]) + PRODUCTS_OF_WEIGHT
    each = max(1.0, float(np.mean(in_reach))) * products
    if description.degree != 0:
        each *= POLYNOMIAL_FACTOR
    return max(LEAST_PLACES, int(PRODUCTS / each))


def _magnification(model: TwoWayModel, X: FloatArray) -> FloatArray:
    """Return how much the map stretches at places, piece by piece."""
    size = max(1, PIECE_BYTES // (8 * X.shape[1] * model.n_features_in_))
    steps = range(0, len(X), size)
    found = np.empty(len(X))
    with ProgressBar() if sys.stderr.isatty() else nullcontext() as bar:
        for number, start in enumerate(steps, start=1):
            part = slice(start, start + size)
            with np.errstate(over="ignore"):  # of data in very small units, say
                found[part] = model.magnification(X[part])
            if bar is not None:
                bar(Event(number, len(steps), math.nan, X[:0], 0.0, "measuring the map"))
    return found


def _interpolated(places: FloatArray, values: FloatArray, X: FloatArray) -> FloatArray:
    """Return values at points X (n, q), from those known at places; see the formula above."""
    known = np.isfinite(values) & (values > 0)
    if not known.any():
        return np.zeros(len(X))
    k = min(NEIGHBORS, int(known.sum()))
    distance, near = cKDTree(places[known]).query(X, k=k)
    distance, near = distance.reshape(-1, k), near.reshape(-1, k)
    # A row at a place has its value.
    weights = 1 / np.maximum(np.square(distance), np.finfo(float).tiny * 1e100)
    logs = np.log(values[known])[near]
    return np.asarray(np.exp((weights * logs).sum(axis=1) / weights.sum(axis=1)))
