"""Rows that no manifold explains are found and left out: ``Huber(trim=...)``.

A robust loss bounds how much an outlier pulls on the latent points, but as a reference it still
bends the regression around itself, and a start that reconstructs outliers well may thread the
manifold through them. So the fit is repeated without the rows whose error is larger than ``trim``
times the median one: reconstruction from the others for rows that took part, projection for those
that did not, which may so come back (the reweighing step of robust regression; Rousseeuw & Leroy
1987, section 4.4).
"""

from __future__ import annotations

import numpy as np

from twofold.array_types import BoolArray, FloatArray, IntArray
from twofold.optimize import StopReason
from twofold.ukr.fitting import Wishes
from twofold.ukr.projection import project
from twofold.ukr.rows import CarriedRows
from twofold.ukr.surface import Surface
from twofold.ukr.table_fitting import FittedTable, Settings, fit_table

ROUNDS = 2


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
    table = fit_table(settings, Y, weights, source, n_rows, wishes)
    trim = getattr(settings.loss, "trim", None) or np.inf
    for _ in range(ROUNDS if np.isfinite(trim) else 0):
        if table.fit.solution.stop_reason is StopReason.INTERRUPTED:
            break
        sizes = _error_sizes(table, settings, Y, kept)
        inside = sizes <= trim * np.median(sizes)
        if np.array_equal(inside, kept):
            break
        kept = inside
        table = fit_table(settings, Y[kept], weights[kept], source[kept], n_rows, wishes)
    return table, kept


def _error_sizes(
    table: FittedTable, settings: Settings, Y: FloatArray, kept: BoolArray
) -> FloatArray:
    """Return the root mean squared error of each row's observed entries, (n,)."""
    fit, problem = table.fit, table.fit.problem
    sizes = np.empty(len(Y))
    if settings.landmarks is None:
        error = problem.reconstruction(cross_validated=True)
        R = error.residuals_of(fit.X, np.arange(int(kept.sum())))
        sizes[kept] = np.sqrt((R**2).sum(axis=1)) * problem.rows.unit
        references, projected = problem.rows, ~kept
    else:
        references = CarriedRows(
            table.data, np.ones(len(table.data)), None, problem.rows.unit, settings.degree
        )
        projected = np.ones(len(Y), dtype=bool)
    if projected.any():
        surface = Surface(fit.X, references, references.weights, problem.engine)
        surface.threshold = surface.default_threshold()
        observed = ~np.isnan(Y[projected])
        sizes[projected] = np.sqrt(project(surface, Y[projected], observed).error)
    return sizes / np.sqrt((~np.isnan(Y)).sum(axis=1))
