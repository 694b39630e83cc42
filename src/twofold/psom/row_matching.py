"""Best matches of rows in a fitted model."""

from __future__ import annotations

import warnings
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from sklearn.exceptions import ConvergenceWarning

from twofold.array_types import FloatArray
from twofold.psom.best_match import BestMatch, best_match

if TYPE_CHECKING:
    from twofold.psom.estimator import PSOM


def match_rows(
    model: PSOM, Y: FloatArray, component_weights: Any, start: Any, n_starts: int
) -> BestMatch:
    """Return the best matches of rows Y (m, D); a warning counts searches that did not end."""
    W = model._surface
    # Basis functions add up to 1: a shift of values and rows changes nothing but rounding errors.
    level = W.mean(axis=0)
    found = best_match(
        model.grid_,
        W - level,
        Y - level,
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
            stacklevel=4,
        )
    return replace(found, images=found.images + level)
