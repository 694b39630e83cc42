"""Slopes of a map that neighbouring places agree about, with their standard errors.

A fit puts each row where the rows nearest on the map tell it best, so that they agree on their
noise, too, and the derivative of a narrow regression follows that. Slopes are those of local linear
regression over wider neighbourhoods (Fan & Gijbels 1996): around a place x, the k nearest latent
points x_i at distances d_i count with ``w_i = 1 - (d_i / d_k)²``, and

    (a, J) = argmin Σ w_i ‖y_i - a - J (x_i - x)‖²,   Z_i = (1, x_i - x)
    V[J_d] = σ_d² [(ZᵀWZ)⁻¹ ZᵀW²Z (ZᵀWZ)⁻¹] without its first row and column

with σ_d² the weighted mean square of residuals, over the share of freedom that is left. Of several
k, that is taken which tells hidden entries best: rows are placed on the map by half of their
entries, by a map made without them, and the other half, which had no say in the place, is told by
their neighbours there.
"""

from dataclasses import dataclass

import numpy as np

from twofold.array_types import BoolArray, FloatArray, IntArray
from twofold.neighborhoods.nearest import nearest_rows

SIZES = (15, 30, 60, 120, 240, 480, 960)
# Rows that choose k, and rows that slopes are taken from.
MOST_TRIED, MOST_REFERENCES = 200, 10_000
# Numbers of the rows that are worked on at a time.
AT_A_TIME = 4_000_000
# The ridge of the small systems, where neighbours lie on a line.
RIDGE = 1e-9


@dataclass(frozen=True)
class LocalFits:
    """Values (m, D), slopes (m, D, q) and their standard errors at places."""

    values: FloatArray
    slopes: FloatArray
    errors: FloatArray


@dataclass(frozen=True)
class Trial:
    """Rows ``own`` (m,) as half of their entries place them (m, q), and which are ``hidden``."""

    own: IntArray
    places: FloatArray
    hidden: BoolArray


def half_hidden(n_rows: int, n_columns: int) -> BoolArray:
    """Return which half of the entries of rows to hide."""
    order = np.random.RandomState(0).rand(n_rows, n_columns).argsort(axis=1)
    return np.asarray(order < n_columns // 2)


class LocalSlopes:
    """Slopes around places, of rows (n, D) without gaps that stand at ``places`` (n, q)."""

    def __init__(self, rows: FloatArray, places: FloatArray, trial: Trial) -> None:
        self.rows, self.places = rows, places
        n, q = self.places.shape
        sizes = [k for k in SIZES if 2 * (q + 1) < k < n - 1] or [max(n - 2, 1)]
        self.k = min(sizes, key=lambda k: self._error(k, trial))

    def at(self, X: FloatArray) -> LocalFits:
        """Return values, slopes and errors at places X (m, q)."""
        step = max(1, AT_A_TIME // (self.k * self.rows.shape[1]))
        found = []
        for start in range(0, max(len(X), 1), step):
            part = X[start : start + step]
            near = nearest_rows(part, self.places, min(self.k + 1, len(self.places)))
            found.append(self._fit(part, near))
        return LocalFits(
            *(np.concatenate([getattr(f, name) for f in found]) for name in vars(found[0]))
        )

    def _fit(self, X: FloatArray, near: IntArray) -> LocalFits:
        gaps = self.places[near] - X[:, None]
        squares = (gaps**2).sum(axis=2)
        farthest = np.maximum(squares[:, -1:], np.finfo(np.float64).tiny)
        w = np.maximum(1 - squares / farthest, 1e-6)
        m, k, q = gaps.shape
        Z = np.concatenate([np.ones((m, k, 1)), gaps], axis=2)
        ZW = Z * w[:, :, None]
        A = np.matmul(Z.transpose(0, 2, 1), ZW)
        size = np.einsum("mii->m", A)[:, None, None]
        inverse = np.linalg.inv(A + RIDGE * size * np.eye(q + 1))
        Y = self.rows[near]
        found = np.matmul(inverse, np.matmul(ZW.transpose(0, 2, 1), Y))
        left = Y - np.matmul(Z, found)
        worth = w.sum(axis=1) ** 2 / (w**2).sum(axis=1)
        free = np.maximum(1 - (q + 1) / worth, 1 / worth)[:, None]
        variance = np.matmul(w[:, None], left**2)[:, 0] / w.sum(axis=1)[:, None] / free
        both = np.matmul(ZW.transpose(0, 2, 1), ZW)
        spread = np.einsum("mij,mjk,mki->mi", inverse, both, inverse)[:, 1:]
        errors = np.sqrt(variance[:, :, None] * np.maximum(spread, 0)[:, None])
        return LocalFits(found[:, 0], found[:, 1:].transpose(0, 2, 1), errors)

    def _error(self, k: int, trial: Trial) -> float:
        """Return the squared error of hidden entries told by k neighbours."""
        variances = np.maximum(self.rows.var(axis=0), np.finfo(np.float64).tiny)
        error = 0.0
        for own, place, hidden in zip(trial.own, trial.places, trial.hidden, strict=True):
            near = nearest_rows(place[None], self.places, min(k + 2, len(self.places)))[0]
            near = near[near != own][: k + 1]
            told = self._fit(place[None], near[None]).values[0]
            error += float((((told - self.rows[own]) ** 2) / variances)[hidden].sum())
        return error
