"""What UKR minimises over the latent points (Klanke 2007, eqs. 4.26, 4.34 and B.12).

    R(X) = 1/Σω Σ_j ω_j L(f(x_j; X) - y_j)

with ``f`` the kernel regression on all rows, or, with ``leave_one_out``, on all but row j.
"""

from __future__ import annotations

import numpy as np

from twofold.array_types import FloatArray, IntArray
from twofold.engine import KernelSums, Respond
from twofold.losses import Loss
from twofold.ukr.rows import CarriedRows


class Reconstruction:
    """The reconstruction error of data rows from their latent points, with its gradient.

    Parameters
    ----------
    rows : CarriedRows
    weights : (n,)
    loss : Loss
    engine : KernelSums
    leave_one_out : bool
        Whether a row's own latent point is left out of its regression.
    """

    def __init__(
        self,
        rows: CarriedRows,
        weights: FloatArray,
        loss: Loss,
        engine: KernelSums,
        *,
        leave_one_out: bool,
    ) -> None:
        self.rows, self.loss, self.engine = rows, loss, engine
        self.share = (weights / weights.sum()).astype(rows.Y.dtype)
        self.own = np.arange(len(weights)) if leave_one_out else None

    def value_and_grad(self, X: FloatArray) -> tuple[float, FloatArray]:
        """Return R(X) and dR/dX (n, q)."""
        losses, by_query, by_reference = self.engine.evaluate(
            X.astype(self.rows.Y.dtype, copy=False), self.rows.V, self._respond, own=self.own
        )
        return float(losses.sum(dtype=np.float64)), by_query + by_reference

    def value_on(self, X: FloatArray, numbers: IntArray) -> float:
        """Return R(X) over some of the rows only, all rows being references."""

        def respond(
            places: IntArray, A: FloatArray, shift: FloatArray
        ) -> tuple[FloatArray, FloatArray | None]:
            return self._losses(numbers[places], A)[0], None

        return self._evaluate_on(X, numbers, respond)[0]

    def value_of_sums(self, A: FloatArray, numbers: IntArray) -> float:
        """Return R over some rows whose sums are already there, (rows, C)."""
        losses = self._losses(numbers, A)[0]
        return float(losses.sum(dtype=np.float64) / self.share[numbers].sum(dtype=np.float64))

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
        own = None if self.own is None else numbers
        losses, by_query, by_reference = self.engine.evaluate(
            X[numbers], self.rows.V, respond, references=X, own=own
        )
        counted = self.share[numbers].sum(dtype=np.float64)
        slope = (by_query * X[numbers]).sum(axis=0) + (by_reference * X).sum(axis=0)
        return float(losses.sum(dtype=np.float64) / counted), slope.astype(np.float64) / counted

    def _respond(
        self, numbers: IntArray, A: FloatArray, shift: FloatArray
    ) -> tuple[FloatArray, FloatArray | None]:
        losses, slope, f, denominator = self._losses(numbers, A)
        return losses, self.rows.answer(f, denominator, slope)

    def _losses(
        self, numbers: IntArray, A: FloatArray
    ) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
        f, denominator = self.rows.regress(A)
        y, share = self.rows.Y[numbers], self.share[numbers][:, None]
        alone = ~(denominator > 0)
        if self.own is not None and alone.any():
            # Out of reach of every other row: the mean of the others stands in.
            f = np.where(alone, self.rows.mean_of_others(numbers), f)
        residual = f - y
        if self.rows.observed is not None:
            residual *= self.rows.observed[numbers]
        losses, slope = self.loss.value_and_slope(residual)
        return losses * share[:, 0], slope * share, f, denominator
