"""What is trained: rows, what they are reconstructed from, and what shapes the objective."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from twofold.array_types import FloatArray, IntArray
from twofold.engine import KernelSums
from twofold.losses import Loss, in_unit, rows_of
from twofold.regularization import Regularization
from twofold.ukr.objective import Reconstruction
from twofold.ukr.rows import CarriedRows


@dataclass(frozen=True)
class Problem:
    """A training problem.

    Attributes
    ----------
    rows : CarriedRows
    weights : (n,)
    loss : Loss, for residuals in the unit of the data
    regularization : Regularization
    engine : KernelSums
    hidden : (n, K) references hidden from each row under cross-validation, None for the row itself
    landmarks : CarriedRows or None
        What the rows are reconstructed from, if not from each other. Latent points are then those
        of the rows and below them those of the landmarks.
    """

    rows: CarriedRows
    weights: FloatArray
    loss: Loss
    regularization: Regularization
    engine: KernelSums
    hidden: IntArray | None = None
    landmarks: CarriedRows | None = None

    def reconstruction(self, *, cross_validated: bool) -> Reconstruction:
        """Return the reconstruction error of the rows."""
        hidden = self.hidden
        if hidden is None and self.landmarks is None:
            hidden = np.arange(len(self.weights))[:, None]
        return Reconstruction(
            self.rows,
            self.weights,
            self._loss_and_unit[0],
            self.engine,
            hidden if cross_validated else None,
            self.landmarks,
        )

    @cached_property
    def _loss_and_unit(self) -> tuple[Loss, float]:
        return in_unit(self.loss, self.rows.unit)

    @property
    def error_unit(self) -> float:
        """What an error of 1 inside means in units of the loss."""
        return self._loss_and_unit[1]

    @property
    def point_weights(self) -> FloatArray:
        """Weights of all latent points: of the rows, and the mean of those for each landmark."""
        if self.landmarks is None:
            return self.weights
        mean = self.weights.mean()
        return np.concatenate([self.weights, np.full(len(self.landmarks.Y), mean)])

    def pace(self) -> FloatArray | None:
        """Return how far latent points move in the same time: many rows pull on one landmark."""
        if self.landmarks is None:
            return None
        n, n_landmarks = len(self.weights), len(self.landmarks.Y)
        pace = np.ones((n + n_landmarks, 1))
        pace[n:] = n_landmarks / n
        return pace

    def spread(self) -> float:
        """Return the mean loss of the rows around their mean: what there is to explain."""
        Y = self.rows.Y if self.rows.observed is None else self.rows.Y * self.rows.observed
        losses = self._loss_and_unit[0].value_and_slope(-Y)[0]
        return float((self.weights @ losses) / self.weights.sum())

    def restricted_to(self, numbers: IntArray) -> Problem:
        """Return the same problem on some of the rows."""
        Y = self.rows.unscaled(self.rows.Y[numbers])
        observed = None if self.rows.observed is None else self.rows.observed[numbers]
        weights = self.weights[numbers]
        hidden = self.hidden
        if hidden is not None and self.landmarks is None:
            hidden = nearest_rows(self.rows.Y[numbers], hidden.shape[1])
        elif hidden is not None:
            hidden = hidden[numbers]
        mean = None if self.landmarks is None else self.rows.mean
        rows = CarriedRows(Y, weights, observed, self.rows.unit, self.rows.degree, mean)
        return replace(
            self, rows=rows, weights=weights, hidden=hidden, loss=rows_of(self.loss, numbers)
        )


def nearest_rows(Y: FloatArray, k: int) -> IntArray:
    """Return each row's number and those of its k - 1 nearest others, (n, k) (Klanke 2007, 5.2).

    Y (n, D) is complete. At least two rows must be left to reconstruct from.
    """
    n = len(Y)
    if not k <= n - 2:
        raise ValueError(
            f"Leaving {k} of {n} distinct rows out leaves fewer than two to reconstruct a row "
            f"from; `k` must be at most {n - 2}."
        )
    own = np.arange(n)[:, None]
    if k == 1:
        return own
    # Imported at first use: only leave-K-out searches neighbours in training.
    from twofold.ukr.neighbor_starts import find_neighbors

    return np.concatenate([own, find_neighbors(Y, k - 1).indices], axis=1)
