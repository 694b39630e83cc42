"""From a linear start: straight on, or through a homotopy, whichever ends lower.

Klanke 2007 (section 4.4.5) never fine-tunes a PCA start that beat the spectral ones, but unfolds it
through falling bounds of the latent density. That is right for data that is folded over the plane
of its principal components and wasteful for data that is not, so both ways are gone and the lower
leave-one-out error wins. The nearly contracted beginning of a homotopy visits all pairs of points;
on large data both ways are therefore gone by some of the rows only, the others are projected onto
what comes out, and all are trained from there.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from twofold.array_types import FloatArray, IntArray
from twofold.optimize import Solution
from twofold.regularization import LeaveKOut, LeaveOneOut
from twofold.ukr.problem import Problem
from twofold.ukr.projection import project
from twofold.ukr.scale import common_scale, scale_each_dimension
from twofold.ukr.surface import Surface
from twofold.ukr.training import Training, train

MOST_ROWS = 2_000


def unfold(problem: Problem, X: FloatArray, training: Training) -> Solution:
    """Train from linear latent points X (n, q), by a homotopy if that ends lower."""
    if getattr(problem.regularization, "homotopy", "none") != "auto":
        return train(problem, X, training)
    assert isinstance(problem.regularization, LeaveOneOut | LeaveKOut)
    n = len(X)
    rows = np.unique(np.linspace(0, n - 1, min(n, MOST_ROWS)).astype(np.int64))
    small = problem if len(rows) == n else problem.restricted_to(rows)
    solution = train(small, X[rows], training)
    if not solution.stop_reason.was_wished:
        detour = replace(small, regularization=replace(problem.regularization, homotopy="density"))
        other = train(detour, X[rows], training)
        if other.value < solution.value or other.stop_reason.was_wished:
            solution = min(solution, other, key=lambda found: found.value)
            solution = replace(solution, stop_reason=other.stop_reason)
    if len(rows) == n:
        return solution
    stopped = solution.stop_reason.was_wished
    placed = _place_all(problem, small, rows, solution.X)
    last = train(problem, placed, replace(training, max_iter=0) if stopped else training)
    return replace(last, stop_reason=solution.stop_reason) if stopped else last


def _place_all(problem: Problem, small: Problem, rows: IntArray, X: FloatArray) -> FloatArray:
    """Project the rows that took no part onto the manifold of those that did, and rescale."""
    surface = Surface(X, small.rows, small.weights, small.engine)
    surface.threshold = surface.default_threshold()
    Y = problem.rows.unscaled(problem.rows.Y)
    placed = project(surface, Y, problem.rows.observed).X
    placed[rows] = X
    error = problem.reconstruction(cross_validated=True)
    return scale_each_dimension(common_scale("unfolded", placed, error), error).X
