"""Projection of data rows onto the manifold: ``g(y) = argmin_x L(f(x) - y)`` within the domain.

Starts are training points whose reconstructions lie nearest to y (Klanke 2007, section 4.4.4), a
few of them in different regions of the latent space. Of very many training points some stand for
all, no two of them in one small cell of the latent space; they are found in the nearest groups,
cells that are wider, since what lies side by side on the map mostly does so in the data.

In up to three dimensions the derivative of the regression at all these points is known before, so
that each foretells the error after a first step from there. The starts that promise most, in
different regions, are tried, all at once and only while they promise nearly as much as the best: a
row is looked at 13 times on 2,000 landmarks of MNIST and 14 times on all 60,000 rows, where starts
chosen by distance took 24 looks, and ends at the same error.

In more than three dimensions training points are three to four bandwidths apart, each on a plateau
of the regression that steps hardly leave. There fewer starts are taken, and each goes to the mean
of the training points around it whose reconstructions are near, too, if that is better. Of held-out
rows that lowers the error by 6 % at q = 5 (1,500 digits), 10 % at q = 8 (10,000 rows of MNIST) and
21 % at q = 16 (digits), in two thirds of the time.

Each start is improved by Levenberg-Marquardt steps with the Jacobian of the regression

    J_f(x) = Σ_i π_i (y_i - f)(x_i - x)ᵀ,   π_i = -2F'(s_i) / Σ_k F(s_k)

(at degree 0). For a loss other than the squared one entries are reweighed by ``L'(r) / 2r`` in each
step. A step that leaves the domain ends on its border, and one that does not lower the error is
shortened.
"""

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from twofold.array_types import BoolArray, FloatArray, IntArray
from twofold.compiled import compiled, compiled_in_order, compiled_into_callers, square
from twofold.engine.cells import GRIDDED
from twofold.engine.sums import MANY_QUERIES
from twofold.engine.threads import run_tasks, slices
from twofold.losses import Loss, Squared, in_unit
from twofold.neighborhoods.nearest import insert_sorted, k_smallest
from twofold.optimize.levenberg_marquardt import (
    LeastSquares,
    NormalEquations,
    Residuals,
    levenberg_marquardt,
)
from twofold.rowwise import TILE
from twofold.small_systems import factor, solve_factored
from twofold.ukr.devices import is_projected_on_device
from twofold.ukr.surface import Surface

SQUARED = Squared()
# Twice as many find a place that is 0.1 to 0.5 % better (digits, USPS, oil flow), for more time.
N_STARTS = 4
# Near reconstructions among which starts are chosen: by distance, and by what they promise, for
# which of 2,000 landmarks 8 to 48 are equally good.
N_NEAREST, N_FORESEEN = 48, 16
# The damping of the step that a start is judged by: of each coordinate, and what is added to all.
FORESEEN_DAMPING, ADDED_DAMPING = 0.1, 1e-3
# Groups that are searched: of 60,000 MNIST images a thirtieth; the error of new rows is 0.3 %
# above that of a search through all places.
N_GROUPS = 64
# Above three dimensions: starts, training points that take part in each, and how far they reach, in
# typical distances between neighbours. 8 to 16 points and one to three starts differ by 2 %.
FEW_STARTS, N_AROUND, AROUND = 3, 16, 2.0
MAX_STEPS = 25
STEP_TOLERANCE = 1e-5
# Steps go on while they lower the error by this share; in more than three dimensions the many small
# ones between plateaus add up to 1 %, in fewer to 0.03 %.
DECREASE_TOLERANCE, DECREASE_TOLERANCE_BEYOND = 5e-4, 1e-4
# Newton's steps back to the border of the domain, and how far inside of it they aim (a logarithm).
BORDER_STEPS, BORDER_MARGIN = 3, 1e-3
# A step back of more kernel widths than this comes from a slope that is flat, and leads nowhere.
FARTHEST_BORDER = 1e4
# Rows that advance together, with all their starts: what they need stays in cache.
ROWS_AT_A_TIME = 4096


def project(
    surface: Surface,
    Y: FloatArray,
    observed: BoolArray | None,
    loss: Loss = SQUARED,
    places: FloatArray | None = None,
) -> LeastSquares:
    """Project rows Y (m, D), of which entries may be unobserved, onto a surface.

    ``loss`` is for residuals in the unit of the data, and so is the error (m,). Rows that are
    known to lie near ``places`` (m, q) are searched for from there alone.
    """
    loss, error_unit = in_unit(loss, surface.rows.unit)
    if places is None:
        surface.prepare_projection()  # before there are threads

    def work(rows: slice) -> LeastSquares:
        gaps = None if observed is None else observed[rows]
        near = None if places is None else places[rows]
        return _project_some(surface, Y[rows], gaps, loss, near)

    some = slices(len(Y), ROWS_AT_A_TIME) or [slice(0)]
    parts = run_tasks(work, some, surface.engine.n_threads)
    found = LeastSquares.joined(parts)
    dtype = surface.rows.Y.dtype
    with np.errstate(over="ignore"):
        error = found.error.astype(dtype) * error_unit
    return replace(found, X=found.X.astype(dtype), error=error)


def places_of(
    surface: Surface,
    Y: FloatArray,
    observed: BoolArray | None,
    loss: Loss = SQUARED,
    places: FloatArray | None = None,
) -> FloatArray:
    """Return the latent places (m, q) of rows as `project` finds them; many of them on a device."""
    if len(Y) < MANY_QUERIES or not is_projected_on_device(surface, loss):
        return project(surface, Y, observed, loss, places).X
    from twofold.ukr.gpu_projection import project_on_device

    return project_on_device(surface, Y, observed, loss, places)


def rough_places_of(surface: Surface, Y: FloatArray, observed: BoolArray | None) -> FloatArray:
    """Return the training points (m, q) whose reconstructions are nearest: where rows would start.

    It takes a quarter of the time of `project`.
    """
    surface.prepare_projection()

    def work(rows: slice) -> FloatArray:
        some, known = _as_carried(surface, Y[rows], None if observed is None else observed[rows])
        return _starts(surface, some, known, np.inf)[0][:, 0]

    some = slices(len(Y), ROWS_AT_A_TIME) or [slice(0)]
    return np.concatenate(run_tasks(work, some, surface.engine.n_threads))


def _as_carried(
    surface: Surface, Y: FloatArray, observed: BoolArray | None
) -> tuple[FloatArray, FloatArray | None]:
    """Return rows scaled like the surface's own, 0 where unknown, and 1 where they are known."""
    Y = surface.rows.scaled(Y).astype(surface.rows.Y.dtype)
    if observed is None:
        return Y, None
    return np.where(observed, Y, 0).astype(Y.dtype), observed.astype(Y.dtype)


def _project_some(
    surface: Surface,
    Y: FloatArray,
    observed: BoolArray | None,
    loss: Loss,
    places: FloatArray | None,
) -> LeastSquares:
    Y, known = _as_carried(surface, Y, observed)
    if places is None:
        starts, seen = _starts(surface, Y, known, getattr(loss, "delta", np.inf))
    else:
        starts, seen = places[:, None], None
    n_starts = starts.shape[1]
    is_low = surface.X.shape[1] <= GRIDDED
    # A row so far away that its distance overflows stays at its start; nothing else comes of it.
    with np.errstate(over="ignore", invalid="ignore"):
        return levenberg_marquardt(
            _look_of(surface, Y, known, loss, n_starts),
            starts.reshape(-1, starts.shape[2]),
            scale=surface.kernel_width,
            n_starts=n_starts,
            max_iter=MAX_STEPS,
            step_tolerance=STEP_TOLERANCE,
            gradient_tolerance=0.0,
            decrease_tolerance=DECREASE_TOLERANCE if is_low else DECREASE_TOLERANCE_BEYOND,
            seen=seen if isinstance(loss, Squared) else None,
        ).best_of(n_starts)


def _look_of(
    surface: Surface, Y: FloatArray, known: FloatArray | None, loss: Loss, n_starts: int
) -> Callable[[FloatArray, IntArray], Residuals | NormalEquations]:
    """Return what the search asks at places of starts, of which each row Y (m, D) has some."""

    def look(X: FloatArray, rows: IntArray) -> Residuals:
        X, f, J, density = _look_inside(surface, X.astype(Y.dtype))
        owner, inside, places = rows // n_starts, density >= surface.threshold, X.astype(np.float64)
        residual = f - Y[owner]
        if isinstance(loss, Squared):
            weights = None if known is None else known[owner]
            return Residuals(residual, J, weights, inside=inside, places=places)
        if known is not None:
            residual *= known[owner]
        error, slope = loss.value_and_slope(residual)
        weights = np.where(residual == 0, 0, slope / np.where(residual == 0, 1, 2 * residual))
        return Residuals(residual, J, weights.astype(Y.dtype), error, inside, places)

    def look_closely(X: FloatArray, rows: IntArray) -> NormalEquations:
        own = Y[rows // n_starts]
        counted = np.ones_like(Y[:1]) if known is None else known[rows // n_starts]

        def take_distances(X: FloatArray, some: IntArray | slice) -> tuple[FloatArray, ...]:
            return surface.distances_at(X, own[some], counted if known is None else counted[some])

        X, *found, density, _ = _move_inside(surface, X.astype(Y.dtype), take_distances)
        inside, places = density >= surface.threshold, X.astype(np.float64)
        return NormalEquations(found[0], found[1], found[2], inside, places)

    is_plain = isinstance(loss, Squared) and surface.distances_can_be_taken()
    return look_closely if is_plain else look


def _look_inside(
    surface: Surface, X: FloatArray
) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
    """Return places, f, its derivative and the density there; places outside are moved in."""
    X, f, J, density, _ = _move_inside(surface, X, lambda X, _: surface.look(X))
    return X, f, J, density


def _move_inside(
    surface: Surface,
    X: FloatArray,
    look: Callable[[FloatArray, IntArray | slice], tuple[FloatArray, ...]],
) -> tuple[FloatArray, ...]:
    """Return places and what a look at them shows, density and its rise last.

    Places outside of the domain are moved in. They go up the slope of the logarithm of the
    density, by Newton's steps to its border: a row whose nearest place is on the border slides
    along it. ``look`` is told places and which of all they are.
    """
    seen = look(X, slice(None))
    density, rise = seen[-2:]
    for _ in range(BORDER_STEPS):
        out = np.flatnonzero((density < surface.threshold) & (density > 0))
        steepness = (rise[out] ** 2).sum(axis=1)
        lacking = np.log(surface.threshold / density[out]) + BORDER_MARGIN
        leads = lacking < FARTHEST_BORDER * surface.kernel_width * np.sqrt(steepness)
        out, steepness, lacking = out[leads], steepness[leads], lacking[leads]
        if not len(out):
            break
        step = (lacking / steepness)[:, None] * rise[out]
        X = X.copy()
        X[out] += step.astype(X.dtype)
        for part, there in zip(seen, look(X[out], out), strict=True):
            part[out] = there
    return X, *seen


def _starts(
    surface: Surface, Y: FloatArray, known: FloatArray | None, bound: float
) -> tuple[FloatArray, NormalEquations | None]:
    """Return a few places for each row, (m, k, q), and what squared errors show there, if known.

    Entries farther off than ``bound`` count linearly, as in Huber's loss.
    """
    places, q = surface.starting_places, surface.X.shape[1]
    m, n_starts = len(Y), min(N_STARTS if q <= GRIDDED else FEW_STARTS, len(places.X))
    if places.slopes is None:
        return _starts_by_distance(surface, Y, known, bound, n_starts), None
    found = np.empty((m, n_starts), dtype=np.int64)
    error, gradient = np.empty((m, n_starts)), np.empty((m, n_starts, q))
    curvature = np.empty((m, n_starts, q, q))
    there = places.X, places.reconstructions, places.slopes

    def work(rows: slice) -> None:
        _, near, known_there = _nearest_places(surface, Y, known, bound, rows)
        into = found[rows], error[rows], gradient[rows], curvature[rows]
        _foresee(near, there, Y[rows], known_there, bound, surface.kernel_width, into)

    run_tasks(work, slices(m, TILE), surface.engine.n_threads)
    seen = error.ravel(), gradient.reshape(-1, q), curvature.reshape(-1, q, q)
    return places.X[found], NormalEquations(*seen)


def _nearest_places(
    surface: Surface, Y: FloatArray, known: FloatArray | None, bound: float, rows: slice
) -> tuple[FloatArray, IntArray, FloatArray]:
    """Return distances to what is compared first, near places, and what is known of some rows."""
    places, Y = surface.starting_places, Y[rows]
    known_there = np.ones_like(Y) if known is None else known[rows]
    if np.isfinite(bound):
        distance = _bounded_distances(Y, known_there, places.centres, bound)
    else:
        distance = places.distances(Y, None if known is None else known_there)
    count = min(N_NEAREST if places.slopes is None else N_FORESEEN, len(places.X))
    near = np.empty((len(distance), count), dtype=np.int64)
    if places.groups is None:
        _nearest(distance, near)
    else:
        members = places.groups, places.reconstructions
        _nearest_in_groups(distance, *members, Y, known_there, bound, near)
    return distance, near, known_there


def _starts_by_distance(
    surface: Surface, Y: FloatArray, known: FloatArray | None, bound: float, n_starts: int
) -> FloatArray:
    """Return places (m, k, q) near reconstructions, or means around them, in many dimensions."""
    places, separation = surface.starting_places, surface.kernel_width**2
    X, q = places.X, places.X.shape[1]
    found = np.empty((len(Y), n_starts), dtype=np.int64)
    means = np.empty((len(Y), n_starts, q), dtype=Y.dtype)
    reach = (AROUND * places.spacing) ** 2
    lengths = np.zeros(len(Y)) if np.isfinite(bound) else np.square(Y, dtype=np.float64).sum(axis=1)

    def work(rows: slice) -> None:
        distance, near, _ = _nearest_places(surface, Y, known, bound, rows)
        _choose_apart(near, X, separation, found[rows])
        _mean_around(distance, lengths[rows], X, found[rows], reach, means[rows])

    run_tasks(work, slices(len(Y), TILE), surface.engine.n_threads)
    # A mean that is no better than the point it was drawn from gives way to it.
    inside, f, _, density = _look_inside(surface, means.reshape(-1, q))
    counted = 1 if known is None else known[:, None]
    gaps = counted * (f.reshape(*found.shape, -1) - Y[:, None])
    gaps_there = counted * (places.reconstructions[found] - Y[:, None])
    is_better = np.square(gaps).sum(axis=2) < np.square(gaps_there).sum(axis=2)
    is_better &= density.reshape(found.shape) >= surface.threshold
    return np.where(is_better[:, :, None], inside.reshape(means.shape), X[found])


@compiled
def _bounded_distances(Y: FloatArray, known: FloatArray, F: FloatArray, bound: float) -> FloatArray:
    """Return Huber's loss times 2δ of all differences: their squares up to the bound."""
    distances = np.zeros((Y.shape[0], F.shape[0]), dtype=F.dtype)
    limit = F.dtype.type(bound)
    for j in range(Y.shape[0]):
        for i in range(F.shape[0]):
            distances[j, i] = _bounded_distance(Y[j], known[j], F[i], limit)
    return distances


@compiled_into_callers
def _bounded_distance(
    y: FloatArray, known: FloatArray, f: FloatArray, bound: np.floating
) -> np.floating:
    total = f.dtype.type(0)
    for d in range(y.size):
        off = abs(f[d] - y[d]) * known[d]
        inner = min(off, bound)
        total += inner * (off + (off - inner))
    return total


@compiled_into_callers
def _squared_distance(y: FloatArray, f: FloatArray) -> np.floating:
    total = f.dtype.type(0)
    for d in range(y.size):
        total += square(f[d] - y[d])
    return total


@compiled
def _nearest(distances: FloatArray, near: IntArray) -> None:
    """Write the places of the smallest distances (m, n) to near (m, k)."""
    least = np.empty(near.shape[1])
    for j in range(near.shape[0]):
        k_smallest(distances[j], near[j], least)


@compiled
def _nearest_in_groups(
    distances: FloatArray,
    groups: IntArray,
    F: FloatArray,
    Y: FloatArray,
    known: FloatArray,
    bound: float,
    near: IntArray,
) -> None:
    """Write the nearest places F (n, D) of the groups at small distances (m, groups) to near."""
    k = near.shape[1]
    limit = F.dtype.type(bound)
    n_groups = min(N_GROUPS, groups.size - 1)
    some, least_there, least = np.empty(n_groups, dtype=np.int64), np.empty(n_groups), np.empty(k)
    for j in range(near.shape[0]):
        k_smallest(distances[j], some, least_there)
        # Distances are most of the work here, and mostly plain ones.
        is_plain = bound == np.inf and known[j].min() > 0
        least[:] = np.inf
        near[j] = groups[some[0]]
        for group in some:
            for i in range(groups[group], groups[group + 1]):
                if is_plain:
                    distance = float(_squared_distance(Y[j], F[i]))
                else:
                    distance = float(_bounded_distance(Y[j], known[j], F[i], limit))
                if distance < least[k - 1]:
                    insert_sorted(least, near[j], distance, i)


@compiled
def _foresee(
    near: IntArray,
    there: tuple[FloatArray, FloatArray, FloatArray],
    Y: FloatArray,
    known: FloatArray,
    bound: float,
    width: float,
    into: tuple[IntArray, FloatArray, FloatArray, FloatArray],
) -> None:
    """Write the places near (m, k) from which a step promises most, in different regions.

    ``there`` are all places, the regression and its derivative; what goes ``into`` arrays are
    numbers, and error, gradient and curvature of the squares. Where regions are too few, errors
    are infinite. No step is longer than ``width``.
    """
    X, F, J = there
    found, error, gradient, curvature = into
    k, q, n_starts = near.shape[1], X.shape[1], found.shape[1]
    r, H, step = np.empty(Y.shape[1], Y.dtype), np.empty((q, q)), np.empty((q, 1))
    errors, promised, ends = np.empty(k), np.empty(k), np.empty((k, q))
    slopes, curvatures = np.empty((k, q)), np.empty((k, q, q))
    limit = Y.dtype.type(bound)
    for j in range(near.shape[0]):
        for c in range(k):
            i = near[j, c]
            for d in range(r.size):
                r[d] = min(max((F[i, d] - Y[j, d]) * known[j, d], -limit), limit)
            errors[c] = _weighed_product(r, r, known[j])
            largest = 0.0
            for a in range(q):
                slopes[c, a] = _weighed_product(J[i, a], r, known[j])
                step[a, 0] = -slopes[c, a]
                for b in range(a + 1):
                    curvatures[c, a, b] = _weighed_product(J[i, a], J[i, b], known[j])
                    curvatures[c, b, a] = curvatures[c, a, b]
                    H[a, b] = curvatures[c, a, b]
                largest = max(largest, H[a, a])
            for a in range(q):
                H[a, a] += FORESEEN_DAMPING * H[a, a] + ADDED_DAMPING * largest
            length = 0.0
            if factor(H, 0.0):
                solve_factored(H, step)
                for a in range(q):
                    length += square(step[a, 0])
            share = min(1.0, width / np.sqrt(length)) if 0 < length < np.inf else 0.0
            promised[c] = errors[c]
            for a in range(q):
                step[a, 0] = share * step[a, 0] if share > 0 else 0.0
                ends[c, a] = X[i, a] + step[a, 0]
            for a in range(q):
                promised[c] += 2 * slopes[c, a] * step[a, 0]
                for b in range(q):
                    promised[c] += step[a, 0] * curvatures[c, a, b] * step[b, 0]
        for n in range(n_starts):
            best = 0
            for c in range(k):
                if promised[c] < promised[best]:
                    best = c
            found[j, n] = near[j, best]
            error[j, n] = errors[best] if promised[best] < np.inf else np.inf
            for a in range(q):
                gradient[j, n, a] = slopes[best, a]
                for b in range(q):
                    curvature[j, n, a, b] = curvatures[best, a, b]
            for c in range(k):
                s = 0.0
                for a in range(q):
                    s += square(ends[c, a] - ends[best, a])
                if not s > square(width):
                    promised[c] = np.inf


@compiled_into_callers
def _weighed_product(a: FloatArray, b: FloatArray, weights: FloatArray) -> float:
    total = 0.0
    for d in range(a.size):
        total += np.float64(a[d]) * np.float64(b[d]) * np.float64(weights[d])
    return total


@compiled
def _choose_apart(near: IntArray, X: FloatArray, separation: float, found: IntArray) -> None:
    """Write places near (m, k), the nearest first, that lie apart in the latent space to found."""
    for j in range(near.shape[0]):
        n_found = 0
        for i in near[j]:
            apart = True
            for c in range(n_found):
                s = 0.0
                for m in range(X.shape[1]):
                    s += square(X[i, m] - X[found[j, c], m])
                apart = apart and s > separation
            if apart and n_found < found.shape[1]:
                found[j, n_found] = i
                n_found += 1
        # Too few regions: a start again is cheaper than another number of starts for some rows.
        for c in range(n_found, found.shape[1]):
            found[j, c] = near[j, 0]


@compiled_in_order
def _mean_around(
    distances: FloatArray,
    missing: FloatArray,
    X: FloatArray,
    found: IntArray,
    reach: float,
    means: FloatArray,
) -> None:
    """Write, for each place found (m, k), the mean of those of small distances around it.

    ``missing`` (m,) is what the distances lack to be none below 0. The weight of a place falls with
    its distance d and the squared gap s to the one found: ``1 / (d² (1 + (s / reach)²))``.
    """
    k = min(N_AROUND, X.shape[0])
    near, least = np.empty(k, dtype=np.int64), np.empty(k)
    for j in range(found.shape[0]):
        k_smallest(distances[j], near, least)
        for c in range(found.shape[1]):
            own = distances[j, found[j, c]] + missing[j]
            total = 0.0
            means[j, c] = 0
            for i in near:
                s = 0.0
                for m in range(X.shape[1]):
                    s += square(X[i, m] - X[found[j, c], m])
                off = max(distances[j, i] + missing[j], 1e-12 * missing[j])
                # Nothing is known about rows so far away that distances are not numbers.
                weight = square(own / off) / (1 + square(s / reach)) if 0 < off < np.inf else 0.0
                total += weight
                for m in range(X.shape[1]):
                    means[j, c, m] += weight * (X[i, m] - X[found[j, c], m])
            for m in range(X.shape[1]):
                step = means[j, c, m] / total if 0 < total < np.inf else 0.0
                means[j, c, m] = X[found[j, c], m] + step
