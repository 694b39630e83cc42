"""Stand-ins: a small kernel regression in place of one that is too large or of another kind.

The stand-in goes through values of the model's own f at places x_i that cover the map, and is the
local linear regression between them:

    f̃(x) = Σ_i b_i(x) f(x_i),   weights p(x_i) F(||(x - x_i) ∘ a||² / h_i²),   h_i = c r_i

with the model's density p, its latent scale a, r_i the distance to a near neighbour among the
places, and c the factor that agrees best with the model. There is no noise in f(x_i), so kernels
need only be as wide as the gaps between places. Where places lie evenly and the kernels overlap,
Σ_i p(x_i) F is p(x) times a constant: the total weight is that constant, so that the stand-in has
the density of the model, too.

A model that was given its places on a grid trusts the whole box around it, and its density is the
same everywhere inside; what is asked of it is only ``in_domain`` and ``density``, so it may be
wrapped in others. The stand-in of such a model lies on a lattice that fills the box: all weights
and widths are equal, and the regression is local quadratic.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import cast

import numpy as np
from scipy.spatial import cKDTree

from twofold.array_types import BoolArray, FloatArray, IntArray
from twofold.contract import TwoWayModel
from twofold.contract.kernel_description import KernelDescription
from twofold.engine import (
    Degree,
    FitGroup,
    KernelSums,
    LocalFit,
    PreparedReferences,
    polynomial_terms,
)
from twofold.kernels import get_kernel
from twofold.latent.density import draw_latent_points

CUTOFF = 1e-6
N_TRIAL_PLACES = 1_000
# Of the box of these places, in bandwidths: so far may the domain reach beyond the rows.
TRIAL_MARGIN = 1.5
# In units of the gap to a near neighbour: narrower kernels leave holes, wider ones blur.
WIDTH_FACTORS: Sequence[float] = (0.35, 0.5, 0.7)
LATTICE_FACTORS: Sequence[float] = (0.5, 0.7)
# The cells of a cover are sized on at most this many points.
MOST_SIZED = 100_000
# How often the spread of the rows is doubled to look for a side, and halved to find it.
DOUBLINGS, HALVINGS = 10, 50
# Random places that decide whether it is one; those nearer to a side than this share are ignored.
N_PROBES, NEAR = 4_000, 1e-6
# In more dimensions a lattice of some thousand places is too coarse.
MOST_DIMENSIONS = 6


@dataclass(frozen=True, eq=False)
class StandIn:
    """A kernel regression that stands in for a model's."""

    description: KernelDescription
    total_weight: float  # what sums of its weights are divided by to be the model's density
    threshold: float  # the density that bounds its domain
    difference: float  # root mean square of f̃ - f over the domain, as a share of the rows' spread
    width_factor: float = 1.0  # its widths in units of the gaps between references


@dataclass(frozen=True, eq=False)
class Trial:
    """What a model answers at random places, for a stand-in to be compared with."""

    inside: FloatArray  # (m, q) places in the domain
    values: FloatArray  # (m, D) f there
    density: FloatArray  # (m,) p there
    around: FloatArray  # (k, q) places in the box around the map, in the domain or not
    is_inside: BoolArray  # (k,) which of them are
    spread: float  # root mean square distance of the rows from their mean


def make_trial(
    model: TwoWayModel, latent_scale: FloatArray, spread: float, box: DomainBox | None = None
) -> Trial:
    """Ask a model about random places; the same ones each time.

    They are spread evenly over the domain, which ``box`` may be, as hands move over it: near rows a
    stand-in is best. Where the domain is a small part of the box around it, places near rows make
    up the number.
    """
    rng = np.random.RandomState(0)
    if box is not None:
        inside = around = box.draw(N_TRIAL_PLACES, rng)
        is_inside = np.ones(len(inside), dtype=bool)
    else:
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
    density = model.density(inside) if box is None else np.ones(len(inside))
    return Trial(inside, values, density, around, is_inside, spread)


def make_stand_in(
    model: TwoWayModel,
    latent_scale: FloatArray,
    count: int,
    trial: Trial,
    width_factors: Sequence[float] = (),
    box: DomainBox | None = None,
) -> StandIn:
    """Return the best stand-in with at most ``count`` references, at least 2.

    ``latent_scale`` (q,) are factors from latent units to those of the model's kernel, and
    ``width_factors`` the widths to choose from, in units of the gaps between references. In a
    ``box`` references lie on a lattice.
    """
    if box is None:
        places, degree = _places(model, latent_scale, count), 1
        density = np.asarray(model.density(places), dtype=np.float64)
        weights = np.maximum(density, np.finfo(np.float32).tiny)
        gaps, factors = _gaps(places * latent_scale), WIDTH_FACTORS
    else:
        places, gap = box.lattice(count)
        weights, latent_scale = np.ones(len(places)), 1 / box.sides
        gaps, factors = gap * weights, LATTICE_FACTORS
        # Of degree 2 the difference is a tenth to a hundredth of that of degree 1; two places along
        # a side are too few for it.
        degree = 2 if gap < 1 else 1
    data = model.inverse_transform(places)
    described = (places, data, weights, gaps, "gaussian", degree, CUTOFF, latent_scale)
    tried = []
    for factor in width_factors or factors:
        scaled = replace(KernelDescription(*described), widths=factor * gaps)
        tried.append(replace(measured(scaled, trial), width_factor=factor))
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
    sums, lowered = kernel_sums(description, V, X, local)
    constant = sums[:, D : D + 1]
    return mean + sums[:, :D] / np.where(constant > 0, constant, 1), lowered * sums[:, -1]


def kernel_sums(
    description: KernelDescription, V: FloatArray, X: FloatArray, local: LocalFit | None = None
) -> tuple[FloatArray, FloatArray]:
    """Return Σ_i F(s_i - t) V_i (m, k) of a regression's kernel, and F(t) (m,).

    The shift t keeps sums far from all references from vanishing; times F(t) they are Σ F(s_i) V_i.
    """
    engine = KernelSums(get_kernel(description.kernel), description.cutoff)
    places = description.latent.astype(np.float64) * description.latent_scale
    prepared = PreparedReferences(engine, places, V, description.widths, local)
    sums = prepared.at(X * description.latent_scale)
    return sums.values, np.where(sums.shift > 0, engine.kernel.value(sums.shift), 1)


def _dividing(density: FloatArray, is_inside: BoolArray, of_inside: FloatArray) -> float:
    """Return the density that best divides places inside the domain from those outside."""
    if is_inside.all():
        return float(min(density.min(), of_inside.min()))
    # Cut behind each place of rising density: places inside before the cut are missed, places
    # outside behind it are let in.
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
    # The number of cells falls as their side grows, so that bisection finds the side.
    for _ in range(30):
        middle = 0.5 * (low + high)
        too_fine = len(np.unique(_cells(some, middle))) > count
        low, high = (middle, high) if too_fine else (low, middle)
    found, cell = np.unique(_cells(X, high), return_inverse=True)
    while len(found) > count:  # few points of a large table do not show every cell
        high *= 1.05
        found, cell = np.unique(_cells(X, high), return_inverse=True)
    size = np.bincount(cell)
    means = np.stack([np.bincount(cell, column) / size for column in X.T], axis=1)
    order = np.lexsort((np.square(X - means[cell]).sum(axis=1), cell))
    return np.sort(order[np.searchsorted(cell[order], np.arange(len(found)))])


def _cells(X: FloatArray, side: float) -> IntArray:
    """Return a number for each point's cell: equal for points of one cell."""
    steps = np.floor((X - X.min(axis=0)) / side).astype(np.int64)
    # A hash of the cell's coordinates; should two cells ever share one, they become one.
    factors = np.random.RandomState(0).randint(1, 2**62, X.shape[1], dtype=np.int64) | 1
    return np.asarray((steps * factors).sum(axis=1))


def _gaps(X: FloatArray) -> FloatArray:
    """Return the distance from each point to a near neighbour (m,)."""
    k = min(2 * X.shape[1], len(X) - 1)
    gaps = np.asarray(cKDTree(X).query(X, k=k + 1)[0][:, -1], dtype=np.float64)
    typical = float(np.median(gaps))
    return np.maximum(gaps, 1e-3 * typical if typical > 0 else 1.0)


# ---- boxes: domains whose border is known exactly ----------------------------------------------


@dataclass(frozen=True, eq=False)
class DomainBox:
    """The domain ``low ≤ x ≤ high``, (q,) each."""

    low: FloatArray
    high: FloatArray

    @property
    def sides(self) -> FloatArray:
        """Lengths (q,) of its sides."""
        return self.high - self.low

    def holds(self, X: FloatArray, slack: float = 0.0) -> BoolArray:
        """Say which points (m, q) lie inside, with a share of each side added all around."""
        margin = slack * self.sides
        return np.asarray(((self.low - margin <= X) & (self.high + margin >= X)).all(axis=1))

    def draw(self, n: int, rng: np.random.RandomState, slack: float = 0.0) -> FloatArray:
        """Return random points (n, q) of the box, widened by a share of its sides."""
        margin = slack * self.sides
        return rng.uniform(self.low - margin, self.high + margin, (n, len(self.low)))

    def lattice(self, count: int) -> tuple[FloatArray, float]:
        """Return at most ``count`` points, corners included, and their distance in sides.

        At least two along each side, however few are asked for.
        """
        q = len(self.low)
        steps = max(2, int(count ** (1 / q) + 1e-9))
        along = np.linspace(0.0, 1.0, steps)
        unit = np.stack(np.meshgrid(*[along] * q, indexing="ij"), axis=-1).reshape(-1, q)
        return self.low + unit * self.sides, 1 / (steps - 1)


def find_box(model: TwoWayModel) -> DomainBox | None:
    """Return the box that is a model's domain, with one density inside; None for other domains."""
    X = model.embedding_.astype(np.float64)
    middle = 0.5 * (X.min(axis=0) + X.max(axis=0))
    reach = 0.5 * np.ptp(X, axis=0)
    if X.shape[1] > MOST_DIMENSIONS or not (reach > 0).all():
        return None
    if len(np.unique(model.density(X))) > 1:
        return None
    # How far the domain goes both ways along each axis, in half spreads of the rows.
    signs = np.concatenate([-np.eye(len(middle)), np.eye(len(middle))])
    inside, outside = 0.0 * signs.sum(axis=1), np.full(len(signs), 2.0**DOUBLINGS)

    def at(lengths: FloatArray) -> BoolArray:
        return np.asarray(model.in_domain(middle + signs * lengths[:, None] * reach))

    if not at(inside).all() or at(outside).any():
        return None
    for _ in range(HALVINGS):
        half = 0.5 * (inside + outside)
        is_in = at(half)
        inside, outside = np.where(is_in, half, inside), np.where(is_in, outside, half)
    lower, upper = np.split(inside, 2)
    box = DomainBox(middle - lower * reach, middle + upper * reach)
    return box if (box.sides > 0).all() and _is_domain(box, model) else None


def _is_domain(box: DomainBox, model: TwoWayModel) -> bool:
    """Say whether a box and a model agree about random places in and around it."""
    rng = np.random.RandomState(0)
    probes = np.concatenate([box.draw(N_PROBES, rng), box.draw(N_PROBES, rng, slack=0.2)])
    held = box.holds(probes)
    clear = box.holds(probes, -NEAR) | ~box.holds(probes, NEAR)
    if (model.in_domain(probes) != held)[clear].any():
        return False
    return len(np.unique(model.density(probes[held & clear]))) == 1
