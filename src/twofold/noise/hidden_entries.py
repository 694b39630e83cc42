"""What hidden entries decide: how much each way to fill a column counts.

Entries of the table itself are hidden, in the pattern of its own gaps: a row is hidden where
another one, drawn by lot, has gaps. Ways e fill them with p_e, and with the values y that they had,
the weights of column d minimise

    Σ_hidden in d (Σ_e w_e p_e - y)² + λ s² ‖w - w̄‖²   over w >= 0, Σ_e w_e = 1

(stacking, Breiman 1996), where w̄ are the weights of all columns together and s² the mean square
of p_e - y for the best way: what a column says counts against λ = 20 entries that say what all
do. The mean of a column may be one of the ways. How much it counts says how little the others know
of the table, and is one number for all columns: few entries of one always find some use for it.
"""

import numpy as np
from scipy import optimize

from twofold.array_types import BoolArray, FloatArray, IntArray

# A table without gaps of its own, and one with few, loses this share of its entries.
HIDDEN_SHARE = 0.15
# λ, for columns and for all of them together.
ENTRIES_OF_PRIOR, ENTRIES_OF_ALL = 20.0, 5.0
# Groups of rows by the number of their gaps.
LIKE_GROUPS = 8
# Errors of hidden entries are told with weights that the other two thirds chose.
FOLDS = 3


def entries_to_hide(
    observed: BoolArray, random: np.random.RandomState, groups: IntArray | None = None
) -> BoolArray:
    """Return which observed entries (n, D) to hide; each row and column keeps some.

    Row i loses entries that another one, j, drawn by lot, misses: as many as i then misses no more
    than j does, or one. So what is hidden is asked for as what is missing will be. Entries of one
    group (D,), such as the indicators of a category, are hidden together: one of them would tell
    the others.
    """
    if groups is not None:
        _, first, of_column = np.unique(groups, return_index=True, return_inverse=True)
        return entries_to_hide(observed[:, first], random)[:, of_column]
    n, D = observed.shape
    missing = 1 - observed.mean()
    hidden = observed & (random.rand(n, D) < max(HIDDEN_SHARE - missing, 0))
    if missing > 0:
        other = observed[random.permutation(n)]
        candidates = observed & ~other
        many = np.maximum(other_missing(observed, other), 1)
        order = np.where(candidates, random.rand(n, D), 2.0).argsort(axis=1).argsort(axis=1)
        hidden |= candidates & (order < many[:, None])
    hidden[~(observed & ~hidden).any(axis=1)] = False
    hidden[:, (observed & ~hidden).sum(axis=0) < 2] = False
    return hidden


def other_missing(observed: BoolArray, other: BoolArray) -> IntArray:
    """Return how many entries (n,) more the other rows miss."""
    return np.asarray(observed.sum(axis=1) - other.sum(axis=1))


def likeness(observed: BoolArray, hidden: BoolArray) -> FloatArray:
    """Return how much hidden entries (h,) count, as they come in rows like those of missing ones.

    Rows with as many gaps; weights are the share of missing entries in such rows over that of
    hidden ones (Tibshirani et al. 2019, conformal prediction under covariate shift).
    """
    missing = ~observed
    if not missing.any():
        return np.ones(int(hidden.sum()))
    sizes = missing.sum(axis=1)
    asked = np.repeat(sizes, sizes)
    tried = np.broadcast_to((missing | hidden).sum(axis=1)[:, None], hidden.shape)[hidden]
    edges = np.unique(np.quantile(asked, np.linspace(0, 1, LIKE_GROUPS + 1)))
    wanted = np.bincount(_groups(asked, edges), minlength=len(edges) + 2)
    found = np.bincount(_groups(tried, edges), minlength=len(edges) + 2)
    weights = (wanted / np.maximum(found, 1))[_groups(tried, edges)]
    if weights.sum() == 0:  # no hidden entry is like a missing one
        return np.ones(len(tried))
    return np.asarray(weights * len(weights) / weights.sum())


def _groups(sizes: IntArray, edges: FloatArray) -> IntArray:
    """Return between which edges sizes lie; the first and the last group lie outside."""
    inside = np.searchsorted(edges, sizes, side="left")
    return np.asarray(np.where(sizes < edges[0], len(edges) + 1, inside))


def stacking_weights(
    errors: FloatArray,
    columns: IntArray,
    n_columns: int,
    counts: FloatArray,
    mean_way: int | None = None,
) -> FloatArray:
    """Return the weights (n_columns, E) of ways to fill.

    ``errors`` (m, E) are those of hidden entries, which stand in ``columns`` (m,) and count by
    ``counts`` (m,). ``mean_way`` is the way that fills in the mean of a column, if one does.
    """
    is_other = np.arange(errors.shape[1]) != (-1 if mean_way is None else mean_way)
    start = is_other / is_other.sum()
    counted = errors * np.sqrt(counts)[:, None]
    shared = _simplex_weights(counted, start, ENTRIES_OF_ALL) if len(errors) else start
    found = np.tile(shared, (n_columns, 1))
    left = float(shared[is_other].sum())
    if left == 0 or not len(errors):  # nothing tells more than the mean, or of single columns
        return found
    towards_mean = left * counted[:, is_other] + counted[:, ~is_other] @ shared[~is_other, None]
    prior = shared[is_other] / left
    order = np.argsort(columns, kind="stable")
    those, first = np.unique(columns[order], return_index=True)
    for d, rows in zip(those, np.split(order, first[1:]), strict=True):
        own = _simplex_weights(towards_mean[rows], prior, ENTRIES_OF_PRIOR)
        found[d, is_other] = left * own
    return found


def errors_apart(
    errors: FloatArray,
    columns: IntArray,
    n_columns: int,
    counts: FloatArray,
    mean_way: int | None = None,
) -> FloatArray:
    """Return the errors (m,) of the weighted mean, with weights that other hidden entries chose."""
    left = np.zeros(len(errors))
    fold = np.arange(len(errors)) % FOLDS
    for number in range(FOLDS):
        out = fold == number
        weights = stacking_weights(errors[~out], columns[~out], n_columns, counts[~out], mean_way)
        left[out] = (errors[out] * weights[columns[out]]).sum(axis=1)
    return left


def mean_squares(
    errors: FloatArray, columns: IntArray, n_columns: int, counts: FloatArray
) -> FloatArray:
    """Return the mean squared error (n_columns,) of columns, each a little like that of all."""
    squares = counts * errors**2
    pooled = float(squares.mean()) if len(errors) else 1.0
    pooled = max(pooled, np.finfo(np.float64).tiny)
    summed = np.bincount(columns, squares, n_columns) + ENTRIES_OF_PRIOR * pooled
    return np.asarray(summed / (np.bincount(columns, counts, n_columns) + ENTRIES_OF_PRIOR))


def _simplex_weights(errors: FloatArray, prior: FloatArray, strength: float) -> FloatArray:
    """Return nonnegative weights (E,) of sum 1 with the least squared error, near ``prior``."""
    size = float(np.sqrt((errors**2).mean(axis=0).min()))
    if size == 0:  # a way without any error, which gets it all
        exact = (errors == 0).all(axis=0)
        return np.asarray(exact / exact.sum())
    # Errors are those of weights of sum 1; a heavy line in the system sees to that.
    heavy = 1e3 * np.sqrt(len(errors))
    near = np.sqrt(strength)
    A = np.vstack([errors / size, near * np.eye(len(prior)), np.full((1, len(prior)), heavy)])
    b = np.concatenate([np.zeros(len(errors)), near * prior, [heavy]])
    weights = optimize.nnls(A, b)[0]
    return np.asarray(weights / weights.sum())
