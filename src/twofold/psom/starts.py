"""Where learning a map without known places starts.

By default the start is the principal plane (Klanke 2007, eq. 3.42): places are scores divided by
the largest of each axis, so that the box [-1, 1]^q just holds them. Any other coordinates of the
rows will do as well; each axis is shifted and stretched to the box. The annealing then begins with
the smoothness that generalized cross-validation chooses for them: a stiffer map would leave what
they know about the rows.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from twofold.array_types import FloatArray, IntArray
from twofold.engine.threads import single_threaded_blas
from twofold.psom.annealing import ROWS_OF_SCHEDULE
from twofold.psom.grid import Grid
from twofold.psom.scattered import fit_scattered
from twofold.psom.units import data_unit

# An axis along which the rows do not differ still gets this share of the longest one.
LEAST_LENGTH = 1e-3
MOST_FILLINGS = 30


@dataclass(frozen=True, eq=False)
class Start:
    """A start.

    Attributes
    ----------
    X : (n, q) places within the domain
    W : (N, D) node values of an affine map
    most : largest smoothness to begin with, in units of the schedule; None for any
    """

    X: FloatArray
    W: FloatArray
    most: float | None


def find_start(
    init: Any,
    grid: Grid,
    Y: FloatArray,
    weights: FloatArray,
    source: IntArray,
    n_jobs: int | None,
) -> Start:
    """Return the start that a parameter ``init`` asks for.

    Parameters
    ----------
    init : "pca", an array with a row for each row of the user's table, or an estimator
    grid : the grid, on [-1, 1]^q
    Y : (n, D) rows, NaN where missing
    weights : (n,) of the rows
    source : (n,) where the rows stand in the user's table
    n_jobs : number of threads
    """
    filled = fill_by_plane(Y, weights, grid.n_axes)
    if isinstance(init, str):
        check_init(init)
        return _principal_plane(grid, filled, weights)
    own = _own_places(init, filled, grid.n_axes, source)
    low, high = own.min(axis=0), own.max(axis=0)
    if (low == high).any():
        raise ValueError("`init` puts all rows at the same coordinate of an axis; vary each.")
    X = 2 * (own - low) / (high - low) - 1
    roots = np.sqrt(weights)[:, None]
    terms = np.column_stack([np.ones(len(X)), X])
    affine = np.linalg.lstsq(terms * roots, filled * roots, rcond=None)[0]
    W = affine[0] + grid.places() @ affine[1:]
    rows = filled / data_unit(filled)
    chosen = fit_scattered(grid, X, rows, "gcv", weights, n_jobs=n_jobs).smoothness
    return Start(X, W, chosen * ROWS_OF_SCHEDULE / float(weights.sum()))


def check_init(init: Any) -> None:
    """Raise unless a name, or anything else, can be a start."""
    if isinstance(init, type):
        raise ValueError(f"`init` must be an estimator, not a class: pass {init.__name__}(...).")
    if isinstance(init, str) and init != "pca":
        raise ValueError(
            "`init` must be 'pca', an (n_samples, n_components) array or an estimator with "
            f"fit_transform; got {init!r}."
        )


def _principal_plane(grid: Grid, Y: FloatArray, weights: FloatArray) -> Start:
    mean, axes = _axes(Y, weights, grid.n_axes)
    scores = (Y - mean) @ axes.T
    lengths = np.abs(scores).max(axis=0)
    lengths = np.maximum(lengths, LEAST_LENGTH * lengths.max())
    return Start(scores / lengths, mean + (grid.places() * lengths) @ axes, None)


def _axes(Y: FloatArray, weights: FloatArray, q: int) -> tuple[FloatArray, FloatArray]:
    """Return the mean (D,) and the q principal directions (q, D), their signs fixed."""
    shares = weights / weights.sum()
    mean = shares @ Y
    with single_threaded_blas():
        axes = np.linalg.svd(np.sqrt(shares)[:, None] * (Y - mean), full_matrices=False)[2][:q]
    largest = np.abs(axes).argmax(axis=1)
    return mean, axes * np.sign(axes[np.arange(q), largest])[:, None]


def fill_by_plane(Y: FloatArray, weights: FloatArray, q: int) -> FloatArray:
    """Return Y (n, D) with NaN filled from its principal plane, found again and again."""
    missing = np.isnan(Y)
    if not missing.any():
        return Y
    filled = np.where(missing, np.nanmean(Y, axis=0), Y)
    for _ in range(MOST_FILLINGS):
        mean, axes = _axes(filled, weights, q)
        plane = mean + ((filled - mean) @ axes.T) @ axes
        change = np.abs(plane - filled)[missing].max()
        filled[missing] = plane[missing]
        if change <= 1e-3 * filled.std():
            break
    return filled


def _own_places(init: Any, Y: FloatArray, q: int, source: IntArray) -> FloatArray:
    check_init(init)
    if hasattr(init, "fit_transform"):
        X = np.asarray(init.fit_transform(Y), dtype=np.float64)
    else:
        try:
            given = np.asarray(init, dtype=np.float64)
        except (TypeError, ValueError) as error:
            raise ValueError(
                "`init` must be 'pca', an array of numbers or an estimator with fit_transform; "
                f"got {type(init).__name__}."
            ) from error
        X = given[source] if given.ndim == 2 and len(given) > source.max() else given
    if X.shape != (len(Y), q):
        raise ValueError(
            f"`init` must give a place of {q} coordinate(s) for each row; got shape {X.shape}."
        )
    if not np.isfinite(X).all():
        raise ValueError("`init` must be finite; it holds NaN or infinity.")
    return X
