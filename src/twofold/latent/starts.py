"""Where latent points begin: those a user brings, and rows filled well enough to start from."""

from collections.abc import Callable
from typing import Any

import numpy as np

from twofold.array_types import FloatArray, IntArray

# Squares of such latent points, and of their products with kernel widths, are numbers.
FARTHEST = 1e100

# Of filling the rows of a start: rounds, and components of the model they are filled by.
MOST_ROUNDS, MOST_COMPONENTS = 20, 8

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
    except (TypeError, ValueError, OverflowError) as error:
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
            f"`init` must lie within ±{FARTHEST:g}, where squares do not overflow; it reaches "
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


def fill_for_start(Y: FloatArray) -> FloatArray:
    """Return Y (n, D) with NaN replaced by values of a principal component model.

    Start embeddings need complete rows, and only the start uses these values; the model itself
    never sees them.
    """
    # At most half of what the table could hold: a model of full rank would repeat the guess.
    rank = max(1, min(MOST_COMPONENTS, (min(Y.shape) - 1) // 2))

    def model_of(filled: FloatArray) -> FloatArray:
        mean = filled.mean(axis=0)
        directions = _principal_directions(filled - mean, rank)
        return (filled - mean) @ directions @ directions.T + mean

    return fill_again_and_again(Y, model_of, MOST_ROUNDS)


def _principal_directions(Y: FloatArray, rank: int) -> FloatArray:
    """Return the leading principal directions (D, rank), by the smaller of the two products."""
    n, D = Y.shape
    if n >= D:
        return np.linalg.eigh(Y.T @ Y)[1][:, -rank:]
    values, vectors = np.linalg.eigh(Y @ Y.T)
    # Directions of no variance, rounded to either side of zero, must not be blown up to length 1.
    counted = values[-rank:] > n * np.finfo(values.dtype).eps * max(values[-1], 0)
    inverse = np.where(counted, 1 / np.sqrt(np.where(counted, values[-rank:], 1)), 0)
    return Y.T @ (vectors[:, -rank:] * inverse)
