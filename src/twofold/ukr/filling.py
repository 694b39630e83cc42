"""Filling missing entries well enough to start from.

Start embeddings need complete rows. Entries are filled by a principal component model that is
fitted to the filled table again and again (iterative PCA imputation). Only the start uses these
values; the model itself never sees them.
"""

from __future__ import annotations

import numpy as np

from twofold.array_types import FloatArray
from twofold.latent.starts import fill_again_and_again

MOST_ROUNDS = 20
MOST_COMPONENTS = 8


def fill_for_start(Y: FloatArray) -> FloatArray:
    """Return Y (n, D) with NaN replaced by values of a low-rank model."""
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
