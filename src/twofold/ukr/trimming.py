"""Rows that no manifold explains are found and left out: ``Huber(trim=...)``.

A robust loss bounds how much an outlier pulls on the latent points, but as a reference it still
bends the regression around itself, and a start that reconstructs outliers well may thread the
manifold through them. So the fit is repeated without the rows whose error is larger than ``trim``
times the median one: reconstruction from the others for rows that took part, projection for those
that did not, which may so come back (the reweighing step of robust regression; Rousseeuw & Leroy
1987, section 4.4).
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from twofold.array_types import BoolArray, FloatArray, IntArray
from twofold.ukr.fitting import Wishes
from twofold.ukr.projection import project
from twofold.ukr.surface import Surface
from twofold.ukr.table_fitting import FittedTable, Settings, fit_table

ROUNDS = 2
MOST_ROWS = 1_000


def fit_trimmed(
    settings: Settings,
    Y: FloatArray,
    weights: FloatArray,
    source: IntArray,
    n_rows: int,
    wishes: Wishes,
) -> tuple[FittedTable, BoolArray]:
    """Fit a table as `fit_table` does; return also which rows took part (n,)."""
    kept = np.ones(len(Y), dtype=bool)
    trim = getattr(settings.loss, "trim", None)
    if trim is None:
        return fit_table(settings, Y, weights, source, n_rows, wishes), kept
    if settings.landmarks is None:
        return _fit_in_rounds(settings, Y, weights, source, n_rows, wishes, trim)
    # Outliers would get landmarks of their own, so they are found without, on some of the rows.
    some = np.unique(np.linspace(0, len(Y) - 1, min(len(Y), MOST_ROWS)).astype(int))
    alone = replace(settings, landmarks=None)
    picked = replace(wishes, init=_init_of(wishes.init, source, some))
    inner = np.arange(len(some))
    table, inside = _fit_in_rounds(alone, Y[some], weights[some], inner, len(some), picked, trim)
    reason = table.fit.solution.stop_reason
    if reason.was_wished:
        wishes = replace(wishes, training=replace(wishes.training, max_iter=0))
    else:
        mask = np.zeros(len(Y), dtype=bool)
        mask[some[inside]] = True
        sizes = _error_sizes(table, Y, mask)
        kept = sizes <= trim * np.median(sizes)
    found = fit_table(settings, Y[kept], weights[kept], source[kept], n_rows, wishes)
    if reason.was_wished:
        solution = replace(found.fit.solution, stop_reason=reason)
        found = replace(found, fit=replace(found.fit, solution=solution))
    return found, kept


def _init_of(init: Any, source: IntArray, some: IntArray) -> Any:
    """Return the part of a start that belongs to some of the rows."""
    if isinstance(init, str) or hasattr(init, "fit_transform"):
        return init
    return np.asarray(init)[source[some]]


def _fit_in_rounds(
    settings: Settings,
    Y: FloatArray,
    weights: FloatArray,
    source: IntArray,
    n_rows: int,
    wishes: Wishes,
    trim: float,
) -> tuple[FittedTable, BoolArray]:
    """Fit rows, and fit again without those whose error is large."""
    kept = np.ones(len(Y), dtype=bool)
    table = fit_table(settings, Y, weights, source, n_rows, wishes)
    for _ in range(ROUNDS):
        if table.fit.solution.stop_reason.was_wished:
            break
        sizes = _error_sizes(table, Y, kept)
        inside = sizes <= trim * np.median(sizes)
        if np.array_equal(inside, kept):
            break
        kept = inside
        table = fit_table(settings, Y[kept], weights[kept], source[kept], n_rows, wishes)
    return table, kept


def _error_sizes(table: FittedTable, Y: FloatArray, kept: BoolArray) -> FloatArray:
    """Return the root mean squared error of each row's observed entries, (n,)."""
    fit, problem = table.fit, table.fit.problem
    sizes = np.empty(len(Y))
    error = problem.reconstruction(cross_validated=True)
    R = error.residuals_of(fit.X, np.arange(int(kept.sum())))
    sizes[kept] = np.sqrt((R**2).sum(axis=1)) * problem.rows.unit
    if not kept.all():
        surface = Surface(fit.X, problem.rows, problem.weights, problem.engine)
        surface.threshold = surface.default_threshold()
        observed = ~np.isnan(Y[~kept])
        sizes[~kept] = np.sqrt(project(surface, Y[~kept], observed).error)
    return sizes / np.sqrt((~np.isnan(Y)).sum(axis=1))
