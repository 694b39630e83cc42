"""Landmark UKR: few landmarks reconstruct many rows (Klanke 2007, section 5.3).

    R(X, Z) = 1/Σω Σ_j ω_j L(f(x_j; Z) - y_j),   f(x; Z) = Ŷᵀ b(x; Z)             (5.22, 5.23)

is minimised over the latent points X of the rows and Z of the landmarks together; a step costs
O(D l n) instead of O(D n²). The way there:

1. the landmark vectors Ŷ are chosen, and an ordinary leave-one-out UKR of these alone gives Z
   (its start is sought together with rows where landmarks are too few to show the manifold);
2. each row goes to the mean of the landmarks that are nearest to it in data space, which gives X
   (at most ``ROWS_PER_LANDMARK`` a landmark take part: few landmarks have few degrees of freedom,
   and more rows would not move them). Projecting them costs a third of the whole fit, and training
   ends at the same error;
3. X and Z are trained together. Where more than ``MANY_ROWS`` take part and landmarks are adapted
   afterwards, rows are projected onto the landmarks as they are instead: 2,000 landmarks then leave
   0.264 of the variance of new rows of MNIST, and 0.266 after training (600 landmarks on a noisy
   sheet: 0.0536 and 0.0531, nearer to the sheet by 5 %), with fewer rows on the border;
4. landmarks go to the rim. Landmarks are means of rows, so half of the rows around the outermost
   ones lie beyond all of them and would end in a ring on the border of the domain. Where they do,
   those that pull outwards most (``rᵀJn``, with the residual r and the direction n in which the
   density falls) become landmarks a little outside, in place of those that fewest rows rest on;
5. Ŷ is re-fitted (:mod:`twofold.ukr.adaptation`), rows are projected again, in turns. Of rows that
   were not trained some, ``ROWS_AT_FIRST`` a landmark, are placed for the rim and the first of
   these turns, and all of them anew for the second one, which saves a part of the fit and frees
   rows from where they were at first: 0.245 for new rows of MNIST, not 0.247.

The thesis has no cross-validation for landmarks and leaves the strength of a penalty to the user.
Here "loo" hides from each row the landmark it is nearest to in data space (leave-K-out the K
nearest): rows must be reconstructed from the landmarks around their own, so kernels keep
overlapping and no parameter is needed. With penalties all landmarks are seen, as in (5.41).

An interrupt leaves what there is: while landmarks are chosen, rows at random on their principal
axes; later, landmarks as they were trained.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from scipy.spatial import cKDTree

from twofold.array_types import FloatArray, IntArray
from twofold.contract.distinct_rows import merge_duplicates
from twofold.engine.cells import GRIDDED
from twofold.features import DataKernel, FeatureMap
from twofold.landmarks import Landmarks
from twofold.landmarks.choice import choose_landmarks
from twofold.latent.starts import fill_for_start
from twofold.losses import EpsilonInsensitive, Squared
from twofold.neighborhoods.nearest import nearest_rows
from twofold.optimize import StopReason
from twofold.regularization import LeaveKOut, LeaveOneOut, n_left_out
from twofold.ukr.adaptation import ADAPTATIONS, Adaptation
from twofold.ukr.objective import Problem, spread_rows, typical_spacing
from twofold.ukr.placing import PLACING_NEIGHBORS, PLACING_REACH, place
from twofold.ukr.projection import BORDER_MARGIN, places_of, rough_places_of
from twofold.ukr.starts import Init
from twofold.ukr.surface import CarriedRows, Surface
from twofold.ukr.training import Fit, Training, fit_points, settle, with_huber_scale

# Rows a landmark that take part: 16 and 30 instead leave 0.246 and 0.243 of the variance of new
# rows of MNIST, where 20 leave 0.245.
ROWS_PER_LANDMARK = 20
# Of rows that are not trained so many a landmark come first: with 8 new rows of MNIST are worse by
# 1.5 %, with 5 by 2 %, for 2 and 5 % off the fit; with all they are better by 0.4 %, for a tenth.
ROWS_AT_FIRST = 10
# Of more rows than that, rows and landmarks are not trained together if adaptation does it; if not,
# they get half of the iterations of a fit: on MNIST the other half lowers the error by 0.1 %.
MANY_ROWS = 10_000
# With fewer points than that, rows join the landmarks while a start is sought.
LEAST_TO_EMBED = 500
# While more than this share of the rows ends on the border, so many of the landmarks go there, at
# most as often as that, one kernel width beyond the border and as far from each other. With 500
# landmarks for 15,000 rows in 9 dimensions 3.4, 4.8 and 1.4 % of a curved sheet, of 30 clusters and
# of four factors were on the border without it.
RING, RIM_SHARE, RIM_ROUNDS = 0.005, 0.03, 5
# Fewer landmarks are all needed where they are: 100 on a noisy sheet bring new rows back better by
# 2 % with a rim, but lie 20 % farther from the sheet; of 400 both is within 2 %.
LEAST_WITH_RIM = 200


@dataclass(frozen=True)
class LandmarkFitting:
    """Landmarks that are chosen for rows, and how both are fitted to each other.

    ``pose`` returns the problem of rows, or of their features under a data kernel.
    """

    pose: Callable[[FloatArray], Problem]
    landmarks: Landmarks
    data_kernel: DataKernel | None
    q: int
    training: Training

    def fit(self, Y: FloatArray, weights: FloatArray, init: Init) -> Fit:
        """Fit landmarks to rows Y (n, D) with weights (n,), NaN where missing."""
        self.training.tell("choosing landmarks", 0, 1)
        filled = fill_for_start(Y).astype(Y.dtype)
        try:
            chosen = self._choose(filled, weights)
        except KeyboardInterrupt:
            self.training.journal.close()
            hurried = replace(
                self,
                landmarks=replace(self.landmarks, choice="random", adapt=False),
                training=replace(self.training, max_iter=0),
            )
            chosen = hurried._choose(filled, weights)
            init = init if isinstance(init, np.ndarray) else "pca"
            return _interrupted(hurried._fit_chosen(Y, filled, chosen, init))
        return self._fit_chosen(Y, filled, chosen, init)

    def _choose(self, filled: FloatArray, weights: FloatArray) -> FloatArray:
        training = self.training
        return choose_landmarks(filled, weights, self.landmarks, training.seed, training.n_jobs)

    def _fit_chosen(self, Y: FloatArray, filled: FloatArray, chosen: FloatArray, init: Init) -> Fit:
        """Fit landmarks ``chosen`` (l, D) to rows, ``filled`` where entries are missing."""
        if isinstance(init, np.ndarray):
            init = _start_of_landmarks(init, filled, chosen)
        if self.data_kernel is None:
            fit = self._fit_together(Y, chosen, init)
            assert fit.landmarks is not None
            return replace(fit, landmarks=fit.landmarks.astype(Y.dtype))
        features = FeatureMap.fit(self.data_kernel, chosen)
        fit = self._fit_together(features.transform(Y), features.coordinates, init)
        carried = None if fit.smoothness is None else fit.landmarks
        return replace(fit, features=features, landmarks=chosen, carried=carried)

    def _fit_together(self, Y: FloatArray, chosen: FloatArray, init: Init) -> Fit:
        """Fit landmarks ``chosen`` (l, D) to rows Y (n, D) or features of them."""
        problem, training = self.pose(Y), self.training
        is_many, adapts = len(Y) > MANY_ROWS, self.landmarks.adapt is not False
        if is_trained := not (is_many and adapts and _is_plain(problem)):
            alone, together = training.trials(are_all=True)
            if is_many:
                together = replace(together, max_iter=-(-together.max_iter // 2))
        first = self._fit_alone(problem, Y, chosen, init, alone if is_trained else training)
        if is_trained:
            fit, X = _trained_together(first, problem, fill_for_start(Y), together)
        else:
            problem = replace(problem, landmarks=first.problem.rows)
            few = problem.restricted_to(spread_rows(len(Y), ROWS_AT_FIRST * len(chosen)))
            fit = replace(first, problem=few)
            X = _rough_places(fit)
        fit = replace(fit, landmarks=chosen)
        if not adapts or fit.solution.stop_reason.was_requested:
            return fit
        gamma = None if self.landmarks.adapt is True else float(self.landmarks.adapt)
        try:
            with_rim, X = _with_rim(fit, X) if _has_rim(fit.problem, fit.X) else (fit, X)
            if is_trained:
                return _adapted(with_rim, X, gamma, ADAPTATIONS)
            return _adapted_to_all(problem, _adapted(with_rim, X, gamma, 1), gamma)
        except KeyboardInterrupt:
            training.journal.close()
            return _interrupted(fit)

    def _fit_alone(
        self, problem: Problem, Y: FloatArray, chosen: FloatArray, init: Init, training: Training
    ) -> Fit:
        """Fit the landmarks by themselves, from a start that enough points were embedded for."""
        small, missing = _problem_of_landmarks(problem, chosen), LEAST_TO_EMBED - len(chosen)
        if missing <= 0 or not isinstance(init, str):
            return fit_points(small, chosen, self.q, init, training)
        rows = fill_for_start(Y)[spread_rows(len(Y), missing)].astype(chosen.dtype)
        table = np.concatenate([chosen, rows])
        distinct = merge_duplicates(table, np.ones(len(table)))
        together = _problem_of_landmarks(problem, distinct.Y)
        start = fit_points(together, distinct.Y, self.q, init, replace(training, max_iter=0))
        Z = start.X[distinct.member[: len(chosen)]]
        fit = fit_points(small, chosen, self.q, Z, training)
        return replace(fit, start=start.start, errors=start.errors)


def _start_of_landmarks(own: FloatArray, Y: FloatArray, chosen: FloatArray) -> FloatArray:
    """Return a start (l, q) for landmarks from one for the rows Y: the mean over each cell."""
    cell = nearest_rows(Y, chosen, 1)[:, 0]
    count = np.bincount(cell, minlength=len(chosen))
    start = np.zeros((len(chosen), own.shape[1]))
    np.add.at(start, cell, own)
    start /= np.maximum(count, 1)[:, None]
    empty = np.flatnonzero(count == 0)
    if len(empty):
        start[empty] = own[nearest_rows(chosen[empty], Y, 1)[:, 0]]
    return start


def _interrupted(fit: Fit) -> Fit:
    return replace(fit, solution=replace(fit.solution, stop_reason=StopReason.INTERRUPTED))


def _is_plain(problem: Problem) -> bool:
    """Say whether rows do to landmarks what adaptation does, and nothing besides."""
    return isinstance(problem.loss, Squared) and isinstance(problem.regularization, LeaveOneOut)


def _trained_together(
    first: Fit, problem: Problem, filled: FloatArray, training: Training
) -> tuple[Fit, FloatArray]:
    """Train rows of a problem, ``filled`` where entries are missing, and landmarks together.

    Return the fit, and the places (n, q) of the rows.
    """
    Z = first.X
    joint, X = _with_landmarks(problem, first.problem.rows, problem.rows.scaled(filled), Z)
    both = np.concatenate([X, Z])
    joint = with_huber_scale(joint, replace(joint, loss=Squared()), both)
    if first.solution.stop_reason.was_requested:
        solution, violation = replace(first.solution, X=both), None
    else:
        solution, violation = settle(joint, both, training)
    X, Z = solution.X[: len(X)], solution.X[len(X) :]
    return replace(first, X=Z, problem=joint, solution=solution, violation=violation), X


def _rough_places(fit: Fit) -> FloatArray:
    """Return where rows begin to be projected onto landmarks as they are, (n, q)."""
    rows = fit.problem.rows
    surface = fit.problem.surface(fit.X)
    return rough_places_of(surface, rows.unscaled(rows.Y), rows.observed).astype(fit.X.dtype)


def _problem_of_landmarks(problem: Problem, chosen: FloatArray) -> Problem:
    """Return the ordinary problem of the landmarks alone."""
    rows = problem.rows
    # In the unit and around the mean of the rows: both are trained together afterwards.
    carried = CarriedRows(
        chosen.astype(rows.Y.dtype), np.ones(len(chosen)), None, rows.unit, rows.degree, rows.mean
    )
    return replace(problem, rows=carried, loss=Squared(), regularization=LeaveOneOut(), hidden=None)


def _with_landmarks(
    problem: Problem, landmarks: CarriedRows, filled: FloatArray, Z: FloatArray
) -> tuple[Problem, FloatArray]:
    """Return the problem of rows and landmarks together, and places (n, q) for the rows.

    Rows are ``filled`` where entries are missing, landmarks are at Z (l, q).
    """
    centres, k = landmarks.Y, n_left_out(problem.regularization)
    if not k <= len(centres) - 2:
        raise ValueError(
            f"Leaving {k} of {len(centres)} landmarks out leaves fewer than two; take more "
            "`landmarks` or a smaller `k`."
        )
    rows = filled.astype(centres.dtype)
    count = min(len(centres), max(k, PLACING_NEIGHBORS))
    near = nearest_rows(rows, centres, count, problem.engine.n_threads)
    around = near[:, :PLACING_NEIGHBORS]
    gaps = [np.square(rows - centres[column]).sum(axis=1) for column in around.T]
    distances = np.sqrt(np.stack(gaps, axis=1))
    X = place(Z, distances, around, PLACING_REACH * typical_spacing(Z)).astype(Z.dtype)
    return replace(problem, hidden=near[:, :k], landmarks=landmarks), X


def _has_rim(problem: Problem, Z: FloatArray) -> bool:
    """Say whether landmarks at Z (l, q) may go to the rim.

    A robust loss is for rows that no landmark should be at, penalties and bounds say themselves
    where the manifold ends, and in many dimensions nearly all of it is rim.
    """
    is_free = isinstance(problem.regularization, LeaveOneOut | LeaveKOut)
    is_plain = is_free and isinstance(problem.loss, Squared)
    return is_plain and Z.shape[1] <= GRIDDED and len(Z) >= LEAST_WITH_RIM


def _with_rim(fit: Fit, X: FloatArray) -> tuple[Fit, FloatArray]:
    """Return the fit to rows near X (n, q) with landmarks where many end on the border, and X."""
    # Copies: those of the solution may be kept in a checkpoint.
    problem, X, Z, landmarks = fit.problem, X.copy(), fit.X.copy(), fit.problem.landmarks
    assert landmarks is not None
    values, stays, ring = landmarks.Y.copy(), np.zeros(len(Z), dtype=bool), np.arange(len(X))
    for _ in range(RIM_ROUNDS):
        surface = problem.surface(Z)
        # Later on only those that were on the border are looked at.
        X[ring] = _project(problem.restricted_to(ring), surface, X[ring])
        lowest = surface.threshold * (1 + 10 * BORDER_MARGIN)
        ring = ring[surface.density(X[ring]) < lowest]
        if len(ring) <= RING * len(X):
            break
        load = np.where(stays, np.inf, surface.sparse_basis(X).T @ problem.weights)
        leaving = np.argsort(load, kind="stable")[: math.ceil(RIM_SHARE * len(Z))]
        rows, places = _outermost(problem, surface, ring, X[ring], len(leaving))
        leaving = leaving[: len(places)]
        Z[leaving], values[leaving], stays[leaving] = places, rows, True
        problem = replace(problem, landmarks=landmarks.with_values(landmarks.unscaled(values)))
    return replace(fit, X=Z, problem=problem), X


def _outermost(
    problem: Problem, surface: Surface, ring: IntArray, X: FloatArray, most: int
) -> tuple[FloatArray, FloatArray]:
    """Return those of the rows ``ring`` on the border that pull outwards most, and their places.

    The rows are at X (m, q), and come as they are scaled; places are beyond them.
    """
    f, J, _, rise = surface.look(X)
    length = np.linalg.norm(rise, axis=1, keepdims=True)
    outwards = -rise / np.where(length > 0, length, 1)
    Y = problem.rows.Y[ring]
    if problem.rows.observed is not None:
        Y = np.where(problem.rows.observed[ring], Y, f)
    tangent = (J * outwards[:, :, None]).sum(axis=1)
    steepness = np.linalg.norm(tangent, axis=1)
    pull = ((Y - f) * tangent).sum(axis=1) / np.where(steepness > 0, steepness, np.inf)
    apart, tree = surface.kernel_width, cKDTree(X)
    free, chosen = np.ones(len(X), dtype=bool), list[int]()
    for row in np.argsort(-pull, kind="stable"):
        if free[row] and len(chosen) < most:
            chosen.append(row)
            free[tree.query_ball_point(X[row], apart)] = False
    return Y[chosen], X[chosen] + apart * outwards[chosen]


def _project(problem: Problem, surface: Surface, places: FloatArray) -> FloatArray:
    """Return the latent points of a problem's rows on the manifold of its landmarks.

    They are sought near ``places`` (n, q).
    """
    loss, rows = problem.loss, problem.rows
    if isinstance(loss, EpsilonInsensitive) or getattr(loss, "delta", 1.0) is None:
        loss = Squared()
    Y = rows.unscaled(rows.Y)
    return places_of(surface, Y, rows.observed, loss, places)


def _adapted_to_all(problem: Problem, fit: Fit, gamma: float | None) -> Fit:
    """Return a fit whose landmarks were adapted to few rows with those adapted to all."""
    fit = replace(fit, problem=replace(problem, landmarks=fit.problem.landmarks))
    X = _project(fit.problem, fit.problem.surface(fit.X), _rough_places(fit))
    return _adapted(fit, X, gamma, 1)


def _adapted(fit: Fit, X: FloatArray, gamma: float | None, turns: int) -> Fit:
    """Return the fit with landmark vectors re-fitted to rows at X (n, q), so often."""
    problem, landmarks = fit.problem, fit.problem.landmarks
    assert landmarks is not None
    adaptation = Adaptation(problem, fit.X, X)
    for turn in range(turns):
        # The first time rows are still where training left them.
        if turn:
            X = _project(problem, problem.surface(fit.X), X)
        values, gamma = adaptation.adapt(X, gamma)
        landmarks = landmarks.with_values(landmarks.unscaled(values))
        problem = replace(problem, landmarks=landmarks)
    values = landmarks.unscaled(landmarks.Y)
    return replace(fit, problem=problem, landmarks=values, smoothness=gamma)
