"""Stand-ins: a small kernel regression in place of one that is too large or of another kind.

The stand-in goes through values of the model's own f at places x_i that cover the map, and is the
local linear regression between them:

    f̃(x) = Σ_i b_i(x) f(x_i),   weights p(x_i) F(||(x - x_i) ∘ a||² / h_i²),   h_i = c r_i

with the model's density p, its latent scale a, r_i the distance to a near neighbour among the
places, and c the factor that agrees best with the model. There is no noise in f(x_i), so kernels
need only be as wide as the gaps between places. Where places lie evenly and the kernels overlap,
Σ_i p(x_i) F is p(x) times a constant: the total weight is that constant, so that the stand-in has
the density of the model, too.

A model whose domain is a box has no need of that density. Its places are a lattice, all weights and
widths are equal, and the regression is local quadratic.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import cast

import numpy as np
from scipy.spatial import cKDTree

from twofold.array_types import BoolArray, FloatArray, IntArray
from twofold.contract import TwoWayModel
from twofold.engine import (
    Degree,
    FitGroup,
    KernelSums,
    LocalFit,
    PreparedReferences,
    polynomial_terms,
)
from twofold.explorer.domain_box import DomainBox
from twofold.kernel_description import KernelDescription
from twofold.kernels import get_kernel
from twofold.latent_sampling import draw_latent_points

TOLERANCE = 1e-6
N_TRIAL_PLACES = 1_000
# Of the box of these places, in bandwidths: so far may the domain reach beyond the rows.
TRIAL_MARGIN = 1.5
# In units of the gap to a near neighbour: narrower kernels leave holes, wider ones blur.
WIDTH_FACTORS = (0.35, 0.5, 0.7)
LATTICE_FACTORS = (0.5, 0.7)
# The cells of a cover are sized on at most this many points.
MOST_SIZED = 100_000


@dataclass(frozen=True, eq=False)
class StandIn:
    """A kernel regression that stands in for a model's.

    Attributes
    ----------
    description : the regression
    total_weight : what sums of its weights are divided by to be the model's density
    threshold : the density that bounds its domain
    difference : root mean square of f̃ - f over the domain, as a share of the rows' spread
    width_factor : its widths in units of the gaps between references
    """

    description: KernelDescription
    total_weight: float
    threshold: float
    difference: float
    width_factor: float = 1.0


@dataclass(frozen=True, eq=False)
class Trial:
    """What a model answers at random places, for a stand-in to be compared with.

    Attributes
    ----------
    inside : (m, q) places in the domain
    values : (m, D) f there
    density : (m,) p there
    around : (k, q) places in the box around the map, in the domain or not
    is_inside : (k,) which of them are
    spread : root mean square distance of the rows from their mean
    """

    inside: FloatArray
    values: FloatArray
    density: FloatArray
    around: FloatArray
    is_inside: BoolArray
    spread: float


def make_trial(model: TwoWayModel, latent_scale: FloatArray, spread: float) -> Trial:
    """Ask a model about random places; the same ones each time.

    They are spread evenly over the domain, as hands move over it: near rows a stand-in is best.
    Where the domain is a small part of the box around it, places near rows make up the number.
    """
    rng = np.random.RandomState(0)
    X = model.embedding_.astype(np.float64)
    margin = TRIAL_MARGIN / latent_scale
    size = (2 * N_TRIAL_PLACES, X.shape[1])
    around = rng.uniform(X.min(axis=0) - margin, X.max(axis=0) + margin, size)
    is_inside = np.asarray(model.in_domain(around))
    inside = around[is_inside][:N_TRIAL_PLACES]
    lacking = N_TRIAL_PLACES - len(inside)
    if lacking:
        equal = np.ones(len(X))
        more = draw_latent_points(X, equal, lacking, rng, 1 / latent_scale, model.in_domain)
        inside = np.concatenate([inside, more])
    values = model.inverse_transform(inside).astype(np.float64)
    return Trial(inside, values, model.density(inside), around, is_inside, spread)


def make_stand_in(
    model: TwoWayModel,
    latent_scale: FloatArray,
    count: int,
    trial: Trial,
    width_factors: Sequence[float] = WIDTH_FACTORS,
) -> StandIn:
    """Return the best stand-in with at most ``count`` references.

    Parameters
    ----------
    model : TwoWayModel
        Fitted.
    latent_scale : (q,) array
        Factors from latent units to those of the model's kernel.
    count : int
        The most references, at least 2.
    trial : Trial
        What widths are chosen by.
    width_factors : sequence of float
        Widths to choose from, in units of the gaps between references.
    """
    places = _places(model, latent_scale, count)
    gaps = _gaps(places * latent_scale)
    density = np.asarray(model.density(places), dtype=np.float64)
    description = KernelDescription(
        latent=places,
        data=model.inverse_transform(places),
        weights=np.maximum(density, np.finfo(np.float32).tiny),
        widths=gaps,
        kernel="gaussian",
        degree=1,
        tolerance=TOLERANCE,
        latent_scale=latent_scale,
    )
    tried = [
        replace(measured(replace(description, widths=factor * gaps), trial), width_factor=factor)
        for factor in width_factors
    ]
    return min(tried, key=lambda found: found.difference)


def make_box_trial(model: TwoWayModel, box: DomainBox, spread: float) -> Trial:
    """Ask a model about random places of the box that is its domain."""
    inside = box.draw(N_TRIAL_PLACES, np.random.RandomState(0))
    values = model.inverse_transform(inside).astype(np.float64)
    is_inside = np.ones(len(inside), dtype=bool)
    return Trial(inside, values, np.ones(len(inside)), inside, is_inside, spread)


def make_lattice_stand_in(
    model: TwoWayModel,
    box: DomainBox,
    count: int,
    trial: Trial,
    width_factors: Sequence[float] = LATTICE_FACTORS,
) -> StandIn:
    """Return the best stand-in with at most ``count`` references on a lattice.

    Parameters are those of :func:`make_stand_in`. Of degree 2 the difference is a tenth to a
    hundredth of that of degree 1; two places along a side are too few for it.
    """
    places, gap = box.lattice(count)
    values = model.inverse_transform(places)
    tried = []
    for factor in width_factors:
        description = KernelDescription(
            latent=places,
            data=values,
            weights=np.ones(len(places)),
            widths=np.full(len(places), factor * gap),
            kernel="gaussian",
            degree=2 if gap < 1 else 1,
            tolerance=TOLERANCE,
            latent_scale=1 / box.sides,
        )
        tried.append(replace(measured(description, trial), width_factor=factor))
    return min(tried, key=lambda found: found.difference)


def measured(description: KernelDescription, trial: Trial) -> StandIn:
    """Return a regression with its density and domain fitted to a model's, and its difference."""
    f, summed = evaluate(description, np.concatenate([trial.inside, trial.around]))
    n = len(trial.inside)
    squares = np.square(f[:n] - trial.values).sum(axis=1)
    difference = float(np.sqrt(squares.mean())) / (trial.spread or 1.0)
    total = float(np.median(summed[:n] / np.maximum(trial.density, np.finfo(float).tiny)))
    total = total if total > 0 else 1.0
    threshold = _dividing(summed[n:] / total, trial.is_inside, summed[:n] / total)
    return StandIn(description, total, threshold, difference)


def evaluate(description: KernelDescription, X: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return f(x) (m, D) of a regression without missing entries, and Σ_i ω_i F(s_i) (m,)."""
    D, omega = description.data.shape[1], description.weights[:, None]
    mean = description.data.mean(axis=0)
    V = np.concatenate([description.data - mean, np.ones_like(omega), omega], axis=1)
    group = FitGroup(np.arange(D + 1), description.weights)
    degree = cast(Degree, description.degree)
    local = LocalFit(polynomial_terms(degree, X.shape[1]), (group,))
    engine = KernelSums(get_kernel(description.kernel), description.tolerance)
    places = description.latent * description.latent_scale
    prepared = PreparedReferences(engine, places, V, description.widths, local)
    sums = prepared.at(X * description.latent_scale)
    summed = np.where(sums.shift > 0, engine.kernel.value(sums.shift), 1) * sums.values[:, -1]
    constant = sums.values[:, D : D + 1]
    return mean + sums.values[:, :D] / np.where(constant > 0, constant, 1), summed


def _dividing(density: FloatArray, is_inside: BoolArray, of_inside: FloatArray) -> float:
    """Return the density that best divides places inside the domain from those outside."""
    if is_inside.all():
        return float(min(density.min(), of_inside.min()))
    order = np.argsort(density)
    missed = np.concatenate([[0], np.cumsum(is_inside[order])])
    let_in = np.concatenate([np.cumsum(~is_inside[order][::-1])[::-1], [0]])
    best = int(np.argmin(missed + let_in))
    sorted_density = density[order]
    if best in (0, len(order)):
        return float(sorted_density[min(best, len(order) - 1)])
    return float(0.5 * (sorted_density[best - 1] + sorted_density[best]))


def _places(model: TwoWayModel, latent_scale: FloatArray, count: int) -> FloatArray:
    """Return at most ``count`` places (m, q) of the map that cover it evenly."""
    X = np.unique(model.embedding_.astype(np.float64), axis=0)
    if len(X) < 2 * count:
        # Between few rows there is room for more places.
        rng = np.random.RandomState(0)
        bandwidth = 1 / latent_scale
        drawn = draw_latent_points(X, np.ones(len(X)), 2 * count, rng, bandwidth, model.in_domain)
        X = np.concatenate([X, drawn])
    return X[cover(X * latent_scale, count)]


def cover(X: FloatArray, count: int) -> IntArray:
    """Return the numbers of at most ``count`` points that cover the points X (n, q) evenly.

    Space is cut into cells, as small as the number allows; each gives the point nearest to the
    mean of its points.
    """
    if len(X) <= count:
        return np.arange(len(X))
    some = X[np.random.RandomState(0).permutation(len(X))[:MOST_SIZED]]
    low, high = 0.0, float(np.ptp(X, axis=0).max()) or 1.0
    for _ in range(30):
        middle = 0.5 * (low + high)
        too_fine = len(np.unique(_cells(some, middle))) > count
        low, high = (middle, high) if too_fine else (low, middle)
    cell, n_cells = _numbered(_cells(X, high))
    while n_cells > count:
        # Few points of a large table do not show every cell.
        high *= 1.05
        cell, n_cells = _numbered(_cells(X, high))
    size = np.bincount(cell)
    means = np.stack([np.bincount(cell, column) / size for column in X.T], axis=1)
    order = np.lexsort((np.square(X - means[cell]).sum(axis=1), cell))
    return np.sort(order[np.searchsorted(cell[order], np.arange(n_cells))])


def _cells(X: FloatArray, side: float) -> IntArray:
    """Return a number for each point's cell: equal for points of one cell."""
    steps = np.floor((X - X.min(axis=0)) / side).astype(np.int64)
    # A hash of the cell's coordinates; should two cells ever share one, they become one.
    factors = np.random.RandomState(0).randint(1, 2**62, X.shape[1], dtype=np.int64) | 1
    return np.asarray((steps * factors).sum(axis=1))


def _numbered(cells: IntArray) -> tuple[IntArray, int]:
    found, number = np.unique(cells, return_inverse=True)
    return number.ravel(), len(found)


def _gaps(X: FloatArray) -> FloatArray:
    """Return the distance from each point to a near neighbour (m,)."""
    k = min(2 * X.shape[1], len(X) - 1)
    gaps = np.asarray(cKDTree(X).query(X, k=k + 1)[0][:, -1], dtype=np.float64)
    typical = float(np.median(gaps))
    return np.maximum(gaps, 1e-3 * typical if typical > 0 else 1.0)
