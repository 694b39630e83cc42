"""The rows a kernel regression carries, with weights and missing entries built in.

The regression is the ratio of two sums of the engine (Nadaraya-Watson, Klanke 2007, eq. 4.18):

    f(x) = Σ_i ω_i m_i y_i F(s_i) / Σ_i ω_i m_i F(s_i)

with weights ω and, entry by entry, ``m = 1`` where y is observed and 0 where it is missing. Where
no row is within reach the mean of the data stands in.
"""

from __future__ import annotations

import numpy as np

from twofold.array_types import BoolArray, FloatArray, IntArray


class CarriedRows:
    """Data rows as columns of the engine: numerators, denominators, and the weights last.

    The weights' own sum is the latent density; without missing entries it is the denominator, too.

    Parameters
    ----------
    Y : (n, D) data, any value where missing
    weights : (n,) positive
    observed : (n, D) True where Y is observed, or None if it is everywhere
    unit : float
        Rows are kept in this unit, so that their squares neither overflow nor vanish.
    """

    def __init__(
        self,
        Y: FloatArray,
        weights: FloatArray,
        observed: BoolArray | None,
        unit: float = 1.0,
    ) -> None:
        self.observed, self.unit = observed, unit
        self.n_features = Y.shape[1]
        omega = weights.astype(Y.dtype)[:, None]
        if observed is None:
            self.mean = (omega * (Y / unit)).sum(axis=0) / omega.sum() * unit
            self.Y = self.scaled(Y)
            self.V = np.concatenate([omega * self.Y, omega], axis=1)
        else:
            known = omega * observed
            total = known.sum(axis=0)
            observed_sum = np.where(observed, known * (Y / unit), 0).sum(axis=0)
            self.mean = observed_sum / np.where(total > 0, total, 1) * unit
            self.Y = np.where(observed, self.scaled(Y), 0).astype(Y.dtype)
            self.V = np.concatenate([known * self.Y, known, omega], axis=1).astype(Y.dtype)
        self.mean = self.mean.astype(Y.dtype)
        self.total = self._denominator(self.V).sum(axis=0)

    def scaled(self, Y: FloatArray) -> FloatArray:
        """Return rows as the regression sees them: centred, in units."""
        return (Y - self.mean) / np.asarray(self.unit, dtype=Y.dtype)

    def unscaled(self, F: FloatArray) -> FloatArray:
        """Return what the regression sees as data."""
        return F * np.asarray(self.unit, dtype=F.dtype) + self.mean

    def regress(self, A: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return f - mean (m, D) and the denominators (m, 1) or (m, D), zero where undefined."""
        numerator, denominator = A[:, : self.n_features], self._denominator(A)
        safe = np.where(denominator > 0, denominator, 1)
        return numerator / safe, denominator

    def mean_of_others(self, numbers: IntArray) -> FloatArray:
        """Return, for some rows, the mean of all the other rows, less the mean of all (m, D)."""
        own = self.V[numbers]
        rest = self.total - self._denominator(own)
        return -own[:, : self.n_features] / np.where(rest > 0, rest, np.inf)

    def jacobian(self, A: FloatArray, dA: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return f - mean (m, D) and its derivative (m, q, D) from sums and their slopes."""
        f, denominator = self.regress(A)
        D = self.n_features
        safe = np.where(denominator > 0, denominator, 1)[:, None, :]
        return f, (dA[:, :, :D] - f[:, None, :] * self._denominator(dA)) / safe

    def _denominator(self, A: FloatArray) -> FloatArray:
        D = self.n_features
        return A[..., D:] if self.observed is None else A[..., D : 2 * D]

    def answer(self, f: FloatArray, denominator: FloatArray, slope: FloatArray) -> FloatArray:
        """Return ``U = dR/dA`` from ``slope = dR/df``; rows out of reach do not answer."""
        E = np.where(denominator > 0, slope, 0) / np.where(denominator > 0, denominator, 1)
        back = -E * f
        if self.observed is None:
            return np.concatenate([E, back.sum(axis=1, keepdims=True)], axis=1)
        return np.concatenate([E, back, np.zeros_like(E[:, :1])], axis=1)


def data_unit(Y: FloatArray) -> float:
    """Return a power of two near the spread of the data: dividing by it loses no digit."""
    centre = np.nanmean(Y.astype(np.float64), axis=0)
    largest = float(np.nanmax(np.abs(Y - centre)))
    return 2.0 ** round(np.log2(largest)) if largest > 0 else 1.0
