"""Intervals of missing entries by a quantile regression forest (Meinshausen 2006), as a peer.

For every column with gaps, extremely randomised trees learn it from the others, filled; a missing
entry is seen as the observed ones that share its leaves, and its intervals are their quantiles.
"""

from __future__ import annotations

import numpy as np
from sklearn.ensemble import ExtraTreesRegressor

N_TREES, LEAST_IN_LEAF = 50, 5
LEVELS = np.linspace(0.5, 0.99, 50)


def leaf_weights(trees: ExtraTreesRegressor, known: np.ndarray, asked: np.ndarray) -> np.ndarray:
    """Return how much each known row counts for each row asked for, (m, n)."""
    weights = np.zeros((len(asked), len(known)))
    for here, there in zip(trees.apply(known).T, trees.apply(asked).T, strict=True):
        together = there[:, None] == here[None]
        weights += together / together.sum(axis=1, keepdims=True)
    return weights / N_TREES


def forest_quantiles(filled: np.ndarray, gaps: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return low and high ends of all levels, (levels, gaps), in the order of ``Y[gaps]``."""
    ends = np.zeros((2, len(LEVELS), *filled.shape))
    shares = np.concatenate([(1 - LEVELS) / 2, (1 + LEVELS) / 2])
    for d in np.flatnonzero(gaps.any(axis=0)):
        asked, others = gaps[:, d], np.delete(filled, d, axis=1)
        trees = ExtraTreesRegressor(N_TREES, min_samples_leaf=LEAST_IN_LEAF, random_state=0)
        trees.fit(others[~asked], filled[~asked, d])
        order = np.argsort(filled[~asked, d])
        rising = np.cumsum(leaf_weights(trees, others[~asked], others[asked])[:, order], axis=1)
        values = filled[~asked, d][order]
        for i, row in zip(np.flatnonzero(asked), rising, strict=True):
            found = values[np.minimum(np.searchsorted(row, shares), len(values) - 1)]
            ends[:, :, i, d] = found.reshape(2, -1)
    return ends[0][:, gaps], ends[1][:, gaps]


def width_that_covers(
    filled: np.ndarray, Y: np.ndarray, gaps: np.ndarray, covered: float
) -> tuple[float, float]:
    """Return what 90 % intervals hold, and the mean width of those that hold ``covered``.

    The level is chosen with the hidden values in sight, in favour of the peer.
    """
    low, high = forest_quantiles(filled, gaps)
    held = ((low <= Y[gaps]) & (high >= Y[gaps])).mean(axis=1)
    width = (high - low).mean(axis=1)
    return float(np.interp(0.9, LEVELS, held)), float(np.interp(covered, held, width))
