"""Rows that no manifold explains are found and left out: ``Huber(trim=...)``.

A robust loss bounds how much an outlier pulls on the latent points, but as a reference it still
bends the regression around itself, and a start that reconstructs outliers well may thread the
manifold through them. So the fit is repeated without the rows whose error is larger than ``trim``
times the median one: reconstruction from the others for rows that took part, projection for those
that did not, which may so come back (the reweighing step of robust regression; Rousseeuw & Leroy
1987, section 4.4).
"""

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from twofold.array_types import BoolArray, FloatArray, IntArray
from twofold.ukr.objective import spread_rows
from twofold.ukr.projection import project
from twofold.ukr.training import Fit

ROUNDS = 2
MOST_ROWS = 1_000


# Fits some of the rows by their numbers; takes `landmarks` (False for none) and `max_iter` as well.
FitRows = Callable[..., Fit]


def fit_trimmed(
    fit_rows: FitRows, Y: FloatArray, trim: float, *, has_landmarks: bool
) -> tuple[Fit, BoolArray]:
    """Fit rows Y (n, D) of which some are outliers; say which took part (n,)."""
    if not has_landmarks:
        return _fit_in_rounds(fit_rows, Y, np.arange(len(Y)), trim)
    # Outliers would get landmarks of their own, so they are found without, on some of the rows.
    some, kept = spread_rows(len(Y), MOST_ROWS), np.ones(len(Y), dtype=bool)
    alone, inside = _fit_in_rounds(fit_rows, Y, some, trim)
    reason = alone.solution.stop_reason
    if reason.was_requested:
        fit = fit_rows(np.flatnonzero(kept), max_iter=0)
        return replace(fit, solution=replace(fit.solution, stop_reason=reason)), kept
    took_part = np.zeros(len(Y), dtype=bool)
    took_part[some[inside]] = True
    kept = _is_explained(alone, Y, took_part, trim)
    return fit_rows(np.flatnonzero(kept)), kept


def _fit_in_rounds(
    fit_rows: FitRows, Y: FloatArray, rows: IntArray, trim: float
) -> tuple[Fit, BoolArray]:
    """Fit some rows, and fit again without those whose error is large; without landmarks."""
    Y, kept = Y[rows], np.ones(len(rows), dtype=bool)
    fit = fit_rows(rows, landmarks=False)
    for _ in range(ROUNDS):
        if fit.solution.stop_reason.was_requested:
            break
        inside = _is_explained(fit, Y, kept, trim)
        if np.array_equal(inside, kept):
            break
        kept = inside
        fit = fit_rows(rows[kept], landmarks=False)
    return fit, kept


def _is_explained(fit: Fit, Y: FloatArray, kept: BoolArray, trim: float) -> BoolArray:
    """Say which rows Y (n, D), of which ``kept`` took part, have an error of no unusual size.

    The size is the root mean squared error of a row's observed entries.
    """
    problem, sizes = fit.problem, np.empty(len(Y))
    R = problem.reconstruction(cross_validated=True).residuals(fit.X)
    sizes[kept] = np.sqrt((R**2).sum(axis=1)) * problem.rows.unit
    if not kept.all():
        observed = ~np.isnan(Y[~kept])
        sizes[~kept] = np.sqrt(project(problem.surface(fit.X), Y[~kept], observed).error)
    sizes /= np.sqrt((~np.isnan(Y)).sum(axis=1))
    return np.asarray(sizes <= trim * np.median(sizes))
