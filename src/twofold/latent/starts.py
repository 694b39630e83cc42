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
    Y: FloatArray, model_of: Callable[[FloatArray, IntArray], FloatArray], most: int
) -> FloatArray:
    """Return Y (n, D) with NaN filled by a model of the filled rows, until that changes little.

    ``model_of(filled, some)`` are some of the rows, those with gaps, as a low-rank model of all has
    them (iterative imputation), asked for ``most`` times.
    """
    missing = np.isnan(Y)
    some = np.flatnonzero(missing.any(axis=1))
    if not len(some):
        return Y
    filled = np.where(missing, np.nanmean(Y, axis=0), Y)
    little = 1e-3 * filled.std()
    gaps = np.nonzero(missing[some])
    places = some[gaps[0]], gaps[1]
    for _ in range(most):
        found = model_of(filled, some)[gaps]
        change = np.abs(found - filled[places]).max()
        filled[places] = found
        if change <= little:
            break
    return filled


def fill_for_start(Y: FloatArray) -> FloatArray:
    """Return Y (n, D) with NaN replaced by values of a principal component model.

    Start embeddings need complete rows, and only the start uses these values; the model itself
    never sees them.
    """
    # At most half of what the table could hold: a model of full rank would repeat the guess.
    rank = max(1, min(MOST_COMPONENTS, (min(Y.shape) - 1) // 2))
    gaps = np.isnan(Y)
    if not gaps.any():
        return Y

    def model_of(filled: FloatArray, some: IntArray) -> FloatArray:
        mean = filled.mean(axis=0)
        directions = _principal_directions(filled, mean, rank)
        return (filled[some] - mean) @ directions @ directions.T + mean

    # Around their means the rows need not be centred in each round.
    center = np.nanmean(Y, axis=0)
    filled = fill_again_and_again(Y - center, model_of, MOST_ROUNDS)
    return np.where(gaps, filled + center, Y)


def _principal_directions(Y: FloatArray, mean: FloatArray, rank: int) -> FloatArray:
    """Return the leading principal directions (D, rank), by the smaller of the two products."""
    n, D = Y.shape
    if n >= D:
        return np.linalg.eigh(Y.T @ Y - n * np.outer(mean, mean))[1][:, -rank:]
    R = Y - mean
    values, vectors = np.linalg.eigh(R @ R.T)
    # Directions of no variance, rounded to either side of zero, must not be blown up to length 1.
    counted = values[-rank:] > n * np.finfo(values.dtype).eps * max(values[-1], 0)
    inverse = np.where(counted, 1 / np.sqrt(np.where(counted, values[-rank:], 1)), 0)
    return R.T @ (vectors[:, -rank:] * inverse)
