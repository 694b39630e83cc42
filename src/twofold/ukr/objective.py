"""What UKR minimises over the latent points (Klanke 2007, eqs. 4.26, 4.34, 5.19, 5.23 and B.12).

    R(X, Z) = 1/Σω Σ_j ω_j L(f(x_j; Z) - y_j)

with ``f`` the regression on the references: all rows themselves (Z = X), or landmarks that stand
for them. Under cross-validation some references are hidden from each row: itself (leave-one-out),
itself and its nearest rows (leave-K-out), or its nearest landmarks.
"""

from __future__ import annotations

import numpy as np

from twofold.array_types import FloatArray, IntArray
from twofold.engine import KernelSums, Respond
from twofold.losses import Loss, rows_of
from twofold.ukr.rows import CarriedRows


class Reconstruction:
    """The reconstruction error of data rows from their latent points, with its gradient.

    Latent points are those of the rows and, with landmarks, those of the landmarks below them.

    Parameters
    ----------
    rows : CarriedRows
    weights : (n,)
    loss : Loss
    engine : KernelSums
    hidden : (n, K) references hidden from each row, or None
    landmarks : CarriedRows or None
        What rows are reconstructed from, if not from each other.
    """

    def __init__(
        self,
        rows: CarriedRows,
        weights: FloatArray,
        loss: Loss,
        engine: KernelSums,
        hidden: IntArray | None = None,
        landmarks: CarriedRows | None = None,
    ) -> None:
        self.rows, self.loss, self.engine, self.hidden = rows, loss, engine, hidden
        self.landmarks = landmarks
        self.references = rows if landmarks is None else landmarks
        self.share = (weights / weights.sum()).astype(rows.Y.dtype)

    def value_and_grad(self, X: FloatArray) -> tuple[float, FloatArray]:
        """Return R(X) and dR/dX, for all latent points."""
        X = X.astype(self.rows.Y.dtype, copy=False)
        n = len(self.share)
        losses, by_query, by_reference = self.engine.evaluate(
            X[:n],
            self.references.V,
            self._respond,
            references=None if self.landmarks is None else X[n:],
            hidden=self.hidden,
            local=self.references.local(X.shape[1]),
        )
        value = float(losses.sum(dtype=np.float64))
        if self.landmarks is None:
            return value, by_query + by_reference
        return value, np.concatenate([by_query, by_reference])

    def value_on(self, X: FloatArray, numbers: IntArray) -> float:
        """Return R(X) over some of the rows only, with all references."""

        def respond(
            places: IntArray, A: FloatArray, shift: FloatArray
        ) -> tuple[FloatArray, FloatArray | None]:
            return self._losses(numbers[places], A)[0], None

        return self._evaluate_on(X, numbers, respond)[0]

    def value_of_sums(self, A: FloatArray, numbers: IntArray) -> float:
        """Return R over some rows whose sums are already there, (rows, C)."""
        losses = self._losses(numbers, A)[0]
        return float(losses.sum(dtype=np.float64) / self.share[numbers].sum(dtype=np.float64))

    def residuals_of(self, X: FloatArray, numbers: IntArray) -> FloatArray:
        """Return the residuals f - y (rows, D) of some rows, 0 where y is missing."""
        residuals = np.empty((len(numbers), self.rows.n_features), dtype=self.rows.Y.dtype)

        def respond(
            places: IntArray, A: FloatArray, shift: FloatArray
        ) -> tuple[FloatArray, FloatArray | None]:
            residuals[places] = self._residuals(numbers[places], A)[0]
            return np.zeros(len(places), dtype=A.dtype), None

        self._evaluate_on(X, numbers, respond)
        return residuals

    def value_and_scale_slope(self, X: FloatArray, numbers: IntArray) -> tuple[float, FloatArray]:
        """Return R(X) over some rows and its derivative by the log scale of each dimension."""

        def respond(
            places: IntArray, A: FloatArray, shift: FloatArray
        ) -> tuple[FloatArray, FloatArray | None]:
            return self._respond(numbers[places], A, shift)

        return self._evaluate_on(X, numbers, respond)

    def _evaluate_on(
        self, X: FloatArray, numbers: IntArray, respond: Respond
    ) -> tuple[float, FloatArray]:
        X = X.astype(self.rows.Y.dtype, copy=False)
        references = X if self.landmarks is None else X[len(self.share) :]
        losses, by_query, by_reference = self.engine.evaluate(
            X[numbers],
            self.references.V,
            respond,
            references=references,
            hidden=None if self.hidden is None else self.hidden[numbers],
            local=self.references.local(X.shape[1]),
        )
        counted = self.share[numbers].sum(dtype=np.float64)
        slope = (by_query * X[numbers]).sum(axis=0) + (by_reference * references).sum(axis=0)
        return float(losses.sum(dtype=np.float64) / counted), slope.astype(np.float64) / counted

    def _respond(
        self, numbers: IntArray, A: FloatArray, shift: FloatArray
    ) -> tuple[FloatArray, FloatArray | None]:
        losses, slope, f, denominator = self._losses(numbers, A)
        return losses, self.references.answer(f, denominator, slope)

    def _losses(
        self, numbers: IntArray, A: FloatArray
    ) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
        residual, f, denominator = self._residuals(numbers, A)
        share = self.share[numbers]
        losses, slope = rows_of(self.loss, numbers).value_and_slope(residual)
        return losses * share, slope * share[:, None], f, denominator

    def _residuals(
        self, numbers: IntArray, A: FloatArray
    ) -> tuple[FloatArray, FloatArray, FloatArray]:
        f, denominator = self.references.regress(A)
        alone = ~(denominator > 0)
        if self.hidden is not None and alone.any():
            # Out of reach of every reference that counts: the mean of those stands in.
            f = np.where(alone, self.references.mean_without(self.hidden[numbers]), f)
        residual = f - self.rows.Y[numbers]
        if self.rows.observed is not None:
            residual *= self.rows.observed[numbers]
        return residual, f, denominator
