"""What hidden entries decide: how much each way to fill a column counts.

Entries of the table itself are hidden, in the pattern of its own gaps: a row is hidden where
another one, drawn by lot, has gaps. Ways e fill them with p_e, and with the values y that they had,
the weights of column d minimise

    Σ_hidden in d (Σ_e w_e p_e - y)² + λ s² ‖w - w̄‖²   over w >= 0, Σ_e w_e = 1

(stacking, Breiman 1996), where w̄ are the weights of all columns together and s² the mean square
of p_e - y for the best way: what a column says counts against λ = 20 entries that say what all
do.
"""

import numpy as np
from scipy.optimize import nnls

from twofold.array_types import BoolArray, FloatArray, IntArray

# A table without gaps of its own, and one with few, loses this share of its entries.
HIDDEN_SHARE = 0.15
# λ, for columns and for all of them together.
ENTRIES_OF_PRIOR, ENTRIES_OF_ALL = 20.0, 5.0


def entries_to_hide(
    observed: BoolArray, random: np.random.RandomState, groups: IntArray | None = None
) -> BoolArray:
    """Return which observed entries (n, D) to hide; each row and column keeps some.

    Those of one group (D,), such as the indicators of a category, are hidden together: one of them
    would tell the others.
    """
    if groups is not None:
        _, first, of_column = np.unique(groups, return_index=True, return_inverse=True)
        return entries_to_hide(observed[:, first], random)[:, of_column]
    n, D = observed.shape
    missing = 1 - observed.mean()
    hidden = observed & (random.rand(n, D) < max(HIDDEN_SHARE - missing, 0))
    if missing > 0:
        # Of a table that is half gaps, hardly anything would be left to fill rows from.
        chosen = random.rand(n) < min(1, HIDDEN_SHARE / missing)
        hidden |= observed & ~observed[random.permutation(n)] & chosen[:, None]
    hidden[~(observed & ~hidden).any(axis=1)] = False
    hidden[:, (observed & ~hidden).sum(axis=0) < 2] = False
    return hidden


def stacking_weights(errors: FloatArray, columns: IntArray, n_columns: int) -> FloatArray:
    """Return the weights (n_columns, E) of ways to fill.

    ``errors`` (m, E) are those of hidden entries, which stand in ``columns`` (m,).
    """
    alike = np.full(errors.shape[1], 1 / errors.shape[1])
    shared = _simplex_weights(errors, alike, ENTRIES_OF_ALL) if len(errors) else alike
    found = np.tile(shared, (n_columns, 1))
    for d in np.unique(columns):
        found[d] = _simplex_weights(errors[columns == d], shared, ENTRIES_OF_PRIOR)
    return found


def mean_squares(errors: FloatArray, columns: IntArray, n_columns: int) -> FloatArray:
    """Return the mean squared error (n_columns,) of columns, each a little like that of all."""
    pooled = float((errors**2).mean()) if len(errors) else 1.0
    pooled = max(pooled, np.finfo(np.float64).tiny)
    summed = np.bincount(columns, errors**2, n_columns) + ENTRIES_OF_PRIOR * pooled
    return np.asarray(summed / (np.bincount(columns, minlength=n_columns) + ENTRIES_OF_PRIOR))


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
    weights = nnls(A, b)[0]
    return np.asarray(weights / weights.sum())
