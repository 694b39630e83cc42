"""How well latent neighbours reproduce a row, and how many neighbours an embedding keeps.

The data space reconstruction error (DSRE) of Kramer (2013, eqs. 4.19, 5.4) compares each row with
the mean ``f(x_i)`` of the rows of its K nearest latent points. One name stands for four functions
of the residuals ``r_i = ||f(x_i) - y_i||``, none of which is the printed one:

=============  ==================  ========================
kind           value               book's tables
=============  ==================  ========================
"sum_norm"     Σ r_i               5.1-5.4, 6.1, 6.2
"fro_norm"     sqrt(Σ r_i²) / n    6.3, 7.1-7.3
"mean_norm"    Σ r_i / n           7.4
"squared"      Σ r_i²              the formulas
=============  ==================  ========================

In the tables each point is the first of its own K neighbours. Without it the error is an honest
one: the row itself is left out of what is to reproduce it.

Of latent points at the same distance, the one with the smaller first coordinate comes first, then
the second and so on, then the row that comes first: on a line, left before right.
"""

from __future__ import annotations

import math
from typing import Any, Literal

import numpy as np

from twofold.array_types import FloatArray, IntArray
from twofold.compiled import compiled_in_order
from twofold.metrics.checks import check_neighbors, check_same_rows, checked_table
from twofold.metrics.co_ranking import coranking
from twofold.neighborhoods.nearest import insert_sorted

Kind = Literal["sum_norm", "fro_norm", "mean_norm", "squared"]


def dsre(
    Y: Any,
    X: Any,
    n_neighbors: int = 5,
    *,
    kind: Kind = "sum_norm",
    include_self: bool = True,
) -> float:
    """Return the data space reconstruction error of an embedding.

    Parameters
    ----------
    Y : array-like of shape (n_samples, n_features)
        Data.
    X : array-like of shape (n_samples, n_components)
        Embedding of the same rows.
    n_neighbors : int
        K, the number of latent neighbours whose mean stands for a row.
    kind : {"sum_norm", "fro_norm", "mean_norm", "squared"}
        Which function of the residuals; see the table above.
    include_self : bool
        Whether a point is one of its own K neighbours, as in the book's tables.

    Returns
    -------
    float
        0 is best.

    Examples
    --------
    >>> from twofold.metrics import dsre
    >>> Y = [[0.0], [1.0], [2.0], [3.0]]
    >>> dsre(Y, Y, n_neighbors=2)  # each row but the first is half a step from its mean
    2.0
    >>> dsre(Y, Y, n_neighbors=2, include_self=False)
    3.0
    """
    Y, X = checked_table(Y, "Y"), checked_table(X, "X")
    check_same_rows(Y, "Y", X, "X")
    k = _check_neighbors_among(len(Y), n_neighbors, include_self)
    n_others = k - 1 if include_self else k
    order = np.lexsort(X.T[::-1])  # stable: equal points by row
    Y, X = Y[order], np.ascontiguousarray(X[order])
    is_line = X.shape[1] == 1 and bool((np.diff(X[:, 0]) > 0).all())
    nearest = _neighbors_on_line(X[:, 0], n_others) if is_line else _neighbors(X, n_others)
    sums = Y.copy() if include_self else np.zeros_like(Y)
    for column in nearest.T:
        sums += Y[column]
    squares = ((sums / k - Y) ** 2).sum(axis=1)
    return _of_kind(squares, kind)


def _check_neighbors_among(n: int, n_neighbors: int, include_self: bool) -> int:
    """Return a number of neighbours that each of n rows can have."""
    most = n if include_self else n - 1
    return check_neighbors(n_neighbors, most, "`n_neighbors`, no more than there are rows")


def _of_kind(squares: FloatArray, kind: str) -> float:
    if kind == "squared":
        return float(squares.sum())
    if kind == "sum_norm":
        return float(np.sqrt(squares).sum())
    if kind == "mean_norm":
        return float(np.sqrt(squares).mean())
    if kind == "fro_norm":
        return math.sqrt(squares.sum()) / len(squares)
    raise ValueError(
        f"`kind` must be 'sum_norm', 'fro_norm', 'mean_norm' or 'squared'; got {kind!r}."
    )


@compiled_in_order
def _neighbors(X: FloatArray, k: int) -> IntArray:
    """Return the k nearest other points of each one, (n, k); ties by index."""
    n, q = X.shape
    nearest = np.zeros((n, k), dtype=np.intp)
    distances = np.empty(k)
    for i in range(n if k > 0 else 0):
        distances[:] = np.inf
        for j in range(n):
            gap = 0.0
            for a in range(q):
                gap += (X[i, a] - X[j, a]) ** 2
            if j != i and gap < distances[k - 1]:
                insert_sorted(distances, nearest[i], gap, j)
    return nearest


@compiled_in_order
def _neighbors_on_line(x: FloatArray, k: int) -> IntArray:
    """Return the k nearest other points of each one, (n, k), of rising points; ties left first."""
    n = len(x)
    nearest = np.empty((n, k), dtype=np.intp)
    for i in range(n):
        left, right = i - 1, i + 1
        for place in range(k):
            if right >= n or (left >= 0 and x[i] - x[left] <= x[right] - x[i]):
                nearest[i, place] = left
                left -= 1
            else:
                nearest[i, place] = right
                right += 1
    return nearest


def e_nx(
    Y: Any,
    X: Any,
    n_neighbors: int = 5,
    *,
    include_self: bool = True,
    sample: int | None = None,
    random_state: Any = None,
) -> float:
    """Return the share of the K nearest neighbours that the embedding keeps (Kramer 2013, 4.41).

    Parameters
    ----------
    Y : array-like of shape (n_samples, n_features)
        Data.
    X : array-like of shape (n_samples, n_components)
        Embedding of the same rows.
    n_neighbors : int
        K.
    include_self : bool
        Whether a point is the first of its own K neighbours, as in the book's tables; without it
        the score is Q_NX of Lee and Verleysen (2009).
    sample, random_state
        As in :func:`twofold.metrics.coranking`, which has the curve over all K as well.

    Returns
    -------
    float
        Within [0, 1], 1 is best.
    """
    Y = checked_table(Y, "Y", any_size=True)
    k = _check_neighbors_among(len(Y), n_neighbors, include_self)
    ranks = coranking(Y, X, n_neighbors_max=1, sample=sample, random_state=random_state)
    return float(ranks.e_nx(k) if include_self else ranks.q_nx(k))
