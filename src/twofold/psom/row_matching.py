"""Best matches of rows in a fitted model."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from twofold.array_types import FloatArray
from twofold.psom.best_match import BestMatch, best_match
from twofold.table_checks import check_missing

if TYPE_CHECKING:
    from twofold.psom.estimator import PSOM


def match_rows(
    model: PSOM, Y: FloatArray, component_weights: Any, start: Any, n_starts: int, depth: int
) -> BestMatch:
    """Return the best matches of rows Y (m, D).

    A warning counts searches that did not end; the user called ``depth`` calls up.
    """
    found = best_match(
        model.grid_,
        model._surface,
        Y,
        component_weights=component_weights,
        start=start,
        n_starts=n_starts,
        local=model.local,
        max_iter=model.max_iter,
        n_jobs=model.n_jobs,
    )
    lost = int((~found.converged).sum())
    if lost:
        warnings.warn(
            f"The search for the best match did not converge for {lost} of {len(Y)} rows; raise "
            "`max_iter`, or look at `best_match(...).converged`.",
            ConvergenceWarning,
            stacklevel=depth + 1,
        )
    return found


def check_searched(Y: FloatArray, component_weights: Any) -> None:
    """Raise if there is a row of Y (m, D) of which nothing is searched for."""
    check_missing(Y, columns=False)
    if component_weights is None:
        return
    weights = np.asarray(component_weights, dtype=np.float64)
    # Weights of a wrong shape are told of by the search itself.
    if weights.shape not in ((), Y.shape[1:], Y.shape):
        return
    rows = np.flatnonzero(~((weights > 0) & ~np.isnan(Y)).any(axis=1))
    if len(rows):
        raise ValueError(
            f"{len(rows)} row(s) have nothing to search for (first: row {rows[0]}): every entry is "
            "NaN or has `component_weights` 0. Give weight to an observed entry."
        )
