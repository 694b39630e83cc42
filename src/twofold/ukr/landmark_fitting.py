"""Landmark UKR: few landmarks reconstruct many rows (Klanke 2007, section 5.3).

    R(X, Z) = 1/Σω Σ_j ω_j L(f(x_j; Z) - y_j),   f(x; Z) = Ŷᵀ b(x; Z)             (5.22, 5.23)

is minimised over the latent points X of the rows and Z of the landmarks together; a step costs
O(D l n) instead of O(D n²). The way there:

1. the landmark vectors Ŷ are chosen, and an ordinary leave-one-out UKR of these alone gives Z
   (its start is sought together with rows where landmarks are too few to show the manifold);
2. rows are projected onto it, which gives X (at most ``ROWS_PER_LANDMARK`` a landmark take part:
   few landmarks have few degrees of freedom, and more rows would not move them);
3. X and Z are trained together;
4. Ŷ is re-fitted (:mod:`twofold.ukr.adaptation`), rows are projected again, in turns.

The thesis has no cross-validation for landmarks and leaves the strength of a penalty to the user.
Here "loo" hides from each row the landmark it is nearest to in data space (leave-K-out the K
nearest): rows must be reconstructed from the landmarks around their own, so kernels keep
overlapping and no parameter is needed. With penalties all landmarks are seen, as in (5.41).
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from twofold.array_types import FloatArray, IntArray
from twofold.distinct_rows import merge_duplicates
from twofold.landmark_choice import nearest_landmarks
from twofold.landmarks import Landmarks
from twofold.losses import EpsilonInsensitive, Squared
from twofold.optimize import Solution
from twofold.regularization import LeaveOneOut, n_left_out
from twofold.ukr.adaptation import adapt_landmarks
from twofold.ukr.filling import fill_for_start
from twofold.ukr.fitting import Fit, Wishes, fit_points, settle, with_huber_scale
from twofold.ukr.problem import Problem
from twofold.ukr.projection import project
from twofold.ukr.rows import CarriedRows
from twofold.ukr.surface import Surface

ROWS_PER_LANDMARK = 20
# With fewer points than that, rows join the landmarks while a start is sought.
LEAST_TO_EMBED = 500
ADAPTATIONS = 2


@dataclass(frozen=True)
class LandmarkFit:
    """Landmarks with latent points.

    Attributes
    ----------
    fit : Fit
        Its ``X`` are the latent points of the landmarks (l, q).
    values : (l, D) what the landmarks carry
    gamma : smoothness of the adaptation, None without one
    """

    fit: Fit
    values: FloatArray
    gamma: float | None


def fit_landmarks(
    problem: Problem, Y: FloatArray, chosen: FloatArray, landmarks: Landmarks, wishes: Wishes
) -> LandmarkFit:
    """Fit landmarks ``chosen`` (l, D) to the rows Y (n, D) of a problem, NaN where missing."""
    small = _problem_of_landmarks(problem, chosen)
    first = _fit_alone(problem, small, Y, chosen, wishes)
    rows = _spread_rows(len(Y), ROWS_PER_LANDMARK * len(chosen))
    some = problem.restricted_to(rows) if len(rows) < len(Y) else problem
    filled = problem.rows.scaled(fill_for_start(Y)[rows])
    joint = _with_landmarks(some, small.rows, filled, n_left_out(problem.regularization))
    Z = first.X
    X = _project(joint, small.rows, Z)
    joint = _with_scale(joint, np.concatenate([X, Z]))
    solution, violation = _train_together(joint, X, Z, first.solution, wishes)
    Z = solution.X[len(X) :]
    fit = replace(first, X=Z, problem=joint, solution=solution, violation=violation)
    if landmarks.adapt is False or solution.stop_reason.was_wished:
        return LandmarkFit(fit, chosen, None)
    gamma = None if landmarks.adapt is True else float(landmarks.adapt)
    return _adapted(fit, small.rows, solution.X[: len(X)], gamma)


def start_of_landmarks(own: FloatArray, Y: FloatArray, chosen: FloatArray) -> FloatArray:
    """Return a start (l, q) for landmarks from one for the rows Y: the mean over each cell."""
    cell = nearest_landmarks(Y, chosen, 1)[:, 0]
    count = np.bincount(cell, minlength=len(chosen))
    start = np.zeros((len(chosen), own.shape[1]))
    np.add.at(start, cell, own)
    start /= np.maximum(count, 1)[:, None]
    empty = np.flatnonzero(count == 0)
    if len(empty):
        start[empty] = own[nearest_landmarks(chosen[empty], Y, 1)[:, 0]]
    return start


def _spread_rows(n: int, wanted: int) -> IntArray:
    return np.unique(np.linspace(0, n - 1, min(n, wanted)).astype(int))


def _fit_alone(
    problem: Problem, small: Problem, Y: FloatArray, chosen: FloatArray, wishes: Wishes
) -> Fit:
    """Fit the landmarks by themselves, from a start that enough points were embedded for."""
    n_landmarks, missing = len(chosen), LEAST_TO_EMBED - len(chosen)
    own = np.arange(n_landmarks)
    if missing <= 0 or not isinstance(wishes.init, str):
        return fit_points(small, chosen, own, wishes)
    rows = fill_for_start(Y)[_spread_rows(len(Y), missing)].astype(chosen.dtype)
    distinct = merge_duplicates(np.concatenate([chosen, rows]), np.ones(n_landmarks + len(rows)))
    together = _problem_of_landmarks(problem, distinct.Y)
    unmoved = replace(wishes, training=replace(wishes.training, max_iter=0))
    start = fit_points(together, distinct.Y, np.arange(len(distinct.Y)), unmoved)
    Z = start.X[distinct.member[:n_landmarks]]
    fit = fit_points(small, chosen, own, replace(wishes, init=Z))
    return replace(fit, start=start.start, start_unit=start.start_unit)


def _problem_of_landmarks(problem: Problem, chosen: FloatArray) -> Problem:
    """Return the ordinary problem of the landmarks alone."""
    rows = problem.rows
    weights = np.ones(len(chosen))
    carried = CarriedRows(
        chosen.astype(rows.Y.dtype), weights, None, rows.unit, rows.degree, rows.mean
    )
    return replace(
        problem,
        rows=carried,
        weights=weights,
        loss=Squared(),
        regularization=LeaveOneOut(),
        hidden=None,
    )


def _with_landmarks(
    problem: Problem, landmarks: CarriedRows, filled: FloatArray, k: int
) -> Problem:
    """Return the problem of rows, ``filled`` where entries are missing, and landmarks together."""
    centres = landmarks.Y
    if not k <= len(centres) - 2:
        raise ValueError(
            f"Leaving {k} of {len(centres)} landmarks out leaves fewer than two; take more "
            "`landmarks` or a smaller `k`."
        )
    hidden = nearest_landmarks(filled.astype(centres.dtype), centres, k)
    return replace(problem, hidden=hidden, landmarks=landmarks)


def _with_scale(problem: Problem, X: FloatArray) -> Problem:
    loss = problem.loss
    choosing = replace(problem, loss=Squared()) if not isinstance(loss, Squared) else problem
    return with_huber_scale(problem, choosing, X)


def _train_together(
    problem: Problem, X: FloatArray, Z: FloatArray, first: Solution, wishes: Wishes
) -> tuple[Solution, float | None]:
    both = np.concatenate([X, Z])
    if first.stop_reason.was_wished:
        return replace(first, X=both), None
    return settle(problem, both, wishes.training)


def _project(problem: Problem, landmarks: CarriedRows, Z: FloatArray) -> FloatArray:
    """Return the latent points of the problem's rows on the manifold of landmarks at Z."""
    surface = Surface(Z, landmarks, landmarks.weights, problem.engine)
    surface.threshold = surface.default_threshold()
    rows = problem.rows
    Y = rows.unscaled(rows.Y)
    loss = Squared() if isinstance(problem.loss, EpsilonInsensitive) else problem.loss
    if getattr(loss, "delta", 1.0) is None:
        loss = Squared()
    return project(surface, Y, rows.observed, loss).X


def _adapted(fit: Fit, landmarks: CarriedRows, X: FloatArray, gamma: float | None) -> LandmarkFit:
    problem, Z = fit.problem, fit.X
    loss = problem.reconstruction(cross_validated=False).loss
    for turn in range(ADAPTATIONS):
        if turn:
            X = _project(problem, landmarks, Z)
        found = adapt_landmarks(
            problem.rows, problem.weights, landmarks, Z, X, loss, problem.engine, gamma
        )
        gamma = found.gamma
        landmarks = landmarks.with_values(landmarks.unscaled(found.values))
    return LandmarkFit(fit, landmarks.unscaled(landmarks.Y), gamma)
