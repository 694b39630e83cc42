"""How far reconstructed rows are from the rows themselves.

Over the observed entries of Y, with ``ȳ_d`` the mean of the observed entries of column d,

    relative:  Σ (y_id - ŷ_id)² / Σ (y_id - ȳ_d)²       0 perfect, 1 no better than the mean
    absolute:  (1/n) Σ (y_id - ŷ_id)²                   the negative of the models' ``score``
"""

from __future__ import annotations

from typing import Any

import numpy as np

from twofold.metrics.checks import checked_table


def reconstruction_error(Y: Any, Y_hat: Any, *, relative: bool = True) -> float:
    """Return the squared error of reconstructed rows, as a share of the variance.

    Parameters
    ----------
    Y : array-like of shape (n_samples, n_features)
        Data; missing entries (NaN) are left out.
    Y_hat : array-like of shape (n_samples, n_features)
        The same rows as a model gives them back.
    relative : bool
        False: the squared error of a row, mean over rows, in squared units of the data.

    Returns
    -------
    float

    Examples
    --------
    >>> from twofold.metrics import reconstruction_error
    >>> reconstruction_error([[0.0], [2.0], [4.0]], [[0.0], [2.0], [3.0]])  # 1 / (4 + 0 + 4)
    0.125
    """
    Y = checked_table(Y, "Y", allow_missing=True)
    Y_hat = checked_table(Y_hat, "Y_hat", allow_missing=True)
    if Y.shape != Y_hat.shape:
        raise ValueError(f"`Y_hat` must have the shape of `Y`, {Y.shape}; got {Y_hat.shape}.")
    seen = ~np.isnan(Y)
    if not seen.any():
        raise ValueError("`Y` has no observed entry, so there is nothing to compare.")
    if np.isnan(Y_hat[seen]).any():
        row = int(np.flatnonzero((np.isnan(Y_hat) & seen).any(axis=1))[0])
        raise ValueError(f"`Y_hat` is missing where `Y` is observed (first: row {row}).")
    error = float(((Y - Y_hat)[seen] ** 2).sum())
    if not relative:
        return error / len(Y)
    counts = np.maximum(seen.sum(axis=0), 1)
    means = np.where(seen, Y, 0.0).sum(axis=0) / counts
    variance = float(((Y - means)[seen] ** 2).sum())
    if variance == 0:
        raise ValueError(
            "No column of `Y` varies, so there is no variance to take a share of. "
            "Use relative=False."
        )
    return error / variance
