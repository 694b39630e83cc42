"""How well a few prototypes stand for the data, and whether their map keeps them in order.

With ``c_{i*}`` the prototype nearest to row i,

    E_Q = (1/n) Σ_i ||y_i - c_{i*}||²        (squared; or the mean of the distances themselves)
    E_T = (1/n) Σ_i 1[nearest and second nearest prototype are not adjacent on the map]

(Kramer, "Dimensionality Reduction with Unsupervised Nearest Neighbors", 2013, eqs. 4.37 and 4.38,
whose text says distance where the formula has its square; Kiviluoto, 1996, for E_T.)
"""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np
from scipy.spatial.distance import pdist
from sklearn.neighbors import NearestNeighbors

from twofold.array_types import FloatArray, IntArray
from twofold.metrics.checks import check_same_rows, checked_table


def quantization_error(Y: Any, prototypes: Any, *, squared: bool = True) -> float:
    """Return the mean squared distance of rows to their nearest prototype.

    Parameters
    ----------
    Y : array-like of shape (n_samples, n_features)
        Data.
    prototypes : array-like of shape (n_prototypes, n_features)
        Codebook vectors, cluster centres, landmarks.
    squared : bool
        False: the mean of the distances themselves.

    Returns
    -------
    float

    Examples
    --------
    >>> from twofold.metrics import quantization_error
    >>> quantization_error([[0.0], [2.0], [9.0]], [[0.0], [10.0]])  # (0 + 4 + 1) / 3
    1.6666666666666667
    >>> quantization_error([[0.0], [2.0], [9.0]], [[0.0], [10.0]], squared=False)
    1.0
    """
    Y, prototypes = _checked_codebook(Y, prototypes)
    nearest = _nearest(Y, prototypes, 1)[:, 0]
    squares = ((Y - prototypes[nearest]) ** 2).sum(axis=1)
    return float(squares.mean() if squared else np.sqrt(squares).mean())


def topographic_error(
    Y: Any, prototypes: Any, positions: Any, *, reach: float | None = None
) -> float:
    """Return the share of rows whose two nearest prototypes are not adjacent on the map.

    Parameters
    ----------
    Y : array-like of shape (n_samples, n_features)
        Data.
    prototypes : array-like of shape (n_prototypes, n_features)
        Codebook vectors.
    positions : tuple of ints or array-like of shape (n_prototypes, n_components)
        Where the prototypes lie on the map: their places, or the shape of a regular grid that they
        fill in C order.
    reach : float or None
        Prototypes are adjacent up to this distance on the map. None means the smallest distance of
        two of them: the four neighbours of a square grid, the six of a hexagonal one. On a grid of
        spacing 1 a reach of 1.5 counts diagonal neighbours, too. Give it where places are
        irregular.

    Returns
    -------
    float
        0 is best.

    Examples
    --------
    >>> from twofold.metrics import topographic_error
    >>> line = [[0.0], [1.0], [2.0]]
    >>> topographic_error([[0.4], [1.4]], line, (3,))
    0.0
    >>> topographic_error([[0.4], [1.4]], line, [[0], [2], [1]])  # 0 and 1 are not adjacent
    0.5
    """
    Y, prototypes = _checked_codebook(Y, prototypes)
    if len(prototypes) < 2:
        raise ValueError("A topographic error needs at least 2 prototypes; got 1.")
    places = _places(positions)
    check_same_rows(prototypes, "prototypes", places, "positions")
    if reach is None:
        reach = float(pdist(places).min())
        if reach == 0:
            raise ValueError(
                "Two prototypes have the same position, so the smallest distance says nothing of "
                "the map. Give `reach`."
            )
    elif not 0 < reach < np.inf:
        raise ValueError(f"`reach` must be a positive distance on the map; got {reach!r}.")
    best = _nearest(Y, prototypes, 2)
    gaps = np.linalg.norm(places[best[:, 0]] - places[best[:, 1]], axis=1)
    # Places such as 0.1, 0.2, 0.3 are not equally far apart in the last digit.
    return float((gaps > reach * (1 + 1e-9)).mean())


def _places(positions: Any) -> FloatArray:
    """Return positions on the map as a table; the shape of a grid becomes its nodes."""
    if isinstance(positions, tuple) and all(isinstance(size, int) for size in positions):
        return np.array(list(np.ndindex(positions)), dtype=np.float64).reshape(
            prod(positions), len(positions)
        )
    return checked_table(positions, "positions")


def _checked_codebook(Y: Any, prototypes: Any) -> tuple[FloatArray, FloatArray]:
    Y, prototypes = checked_table(Y, "Y"), checked_table(prototypes, "prototypes")
    if Y.shape[1] != prototypes.shape[1]:
        raise ValueError(
            f"`prototypes` must have the {Y.shape[1]} columns of `Y`; got {prototypes.shape[1]}."
        )
    return Y, prototypes


def _nearest(Y: FloatArray, prototypes: FloatArray, k: int) -> IntArray:
    index = NearestNeighbors(n_neighbors=k).fit(prototypes)
    return np.asarray(index.kneighbors(Y, return_distance=False))
