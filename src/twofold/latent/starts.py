"""Where latent points begin: those a user brings, and rows filled well enough to start from."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from twofold.array_types import FloatArray, IntArray

# Squares of such latent points, and of their products with kernel widths, are numbers.
FARTHEST = 1e100

FindsPoints = Callable[[FloatArray], FloatArray]


def refuse_class(init: Any) -> None:
    """Raise if a user passed a class for an estimator."""
    if isinstance(init, type):
        raise ValueError(f"`init` must be an estimator, not a class: pass {init.__name__}(...).")


def own_start(init: Any, source: IntArray, q: int, names: str) -> FloatArray | FindsPoints:
    """Return a user's latent points (n, q) of the distinct rows, or what finds those of rows.

    ``source`` (n,) is where each distinct row stands among the rows the user passed, which an array
    follows; ``names`` says which names would have done.
    """
    refuse_class(init)
    if hasattr(init, "fit_transform"):
        return lambda Y: _checked_points(init.fit_transform(Y), (len(Y), q))
    try:
        X = np.asarray(init, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise ValueError(
            f"`init` must be {names}, an array of numbers or an estimator with fit_transform; got "
            f"{type(init).__name__}."
        ) from error
    n_rows = int(source.max()) + 1
    if X.ndim == 2 and X.shape[1] == q and len(X) >= n_rows:
        return _checked_points(X[source], (len(source), q))
    return _checked_points(X, (n_rows, q))


def _checked_points(X: Any, expected: tuple[int, int]) -> FloatArray:
    """Return a user's latent points, or raise if nothing can begin with them."""
    X = np.asarray(X, dtype=np.float64)
    if X.shape != expected:
        raise ValueError(
            f"`init` must give one latent point of {expected[1]} coordinate(s) for each row, shape "
            f"{expected}; got shape {X.shape}."
        )
    if not np.isfinite(X).all():
        raise ValueError("`init` must be finite; it holds NaN or infinity.")
    if np.abs(X).max() > FARTHEST:
        raise ValueError(
            f"`init` must lie within ±{FARTHEST:g}, where squares are numbers; it reaches "
            f"{np.abs(X).max():.3g}. Divide it by a number of its size."
        )
    if np.all(X.std(axis=0) == 0):
        raise ValueError("`init` puts every row in the same place; the gradient is zero there.")
    return X


def fill_again_and_again(
    Y: FloatArray, model_of: Callable[[FloatArray], FloatArray], most: int
) -> FloatArray:
    """Return Y (n, D) with NaN filled by a model of the filled rows, until that changes little.

    ``model_of(filled)`` (n, D) are the rows as a low-rank model has them (iterative imputation),
    asked for ``most`` times.
    """
    missing = np.isnan(Y)
    if not missing.any():
        return Y
    filled = np.where(missing, np.nanmean(Y, axis=0), Y)
    for _ in range(most):
        model = model_of(filled)
        change = np.abs(model[missing] - filled[missing]).max()
        filled[missing] = model[missing]
        if change <= 1e-3 * filled.std():
            break
    return filled
