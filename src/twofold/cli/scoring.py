"""How well a model reconstructs rows that come piece by piece.

The share of variance explained is ``1 - sum ||y - f(g(y))||² / sum ||y - c||²`` over observed
cells, in the units of the model, where c is the centre of the rows the model was fitted to.
"""

from __future__ import annotations

import heapq
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from twofold.array_types import FloatArray
    from twofold.cli.streaming import Piece
    from twofold.contract import TwoWayModel


class Tally:
    """Sums of errors, and the rows with the largest ones.

    Parameters
    ----------
    model : TwoWayModel
    n_worst : int
        How many rows to remember.
    """

    def __init__(self, model: TwoWayModel, n_worst: int) -> None:
        self._center, self._spread = center_and_spread(model)
        self._n_worst = n_worst
        self._worst: list[tuple[float, int, str]] = []
        self._n_rows = self._n_cells = 0
        self._error = self._variation = 0.0

    def add(self, piece: Piece, errors: FloatArray) -> None:
        """Count rows with their squared errors (m,), NaN where a row has no values."""
        deviations = (piece.Y - self._center) / self._spread
        self._variation += float(np.nansum(deviations**2))
        self._error += float(np.nansum(errors))
        self._n_rows += int(piece.known.sum())
        self._n_cells += int((~np.isnan(piece.Y)).sum())
        names = piece.frame.index
        is_named = names.dtype.kind not in "iu"
        for k in np.argsort(-errors)[: self._n_worst]:  # NaN sorts last
            if not np.isnan(errors[k]):
                number = piece.first + int(k)
                name = str(names[k]) if is_named else f"row {number}"
                self._worst.append((float(errors[k]), number, name))
        self._worst = heapq.nlargest(self._n_worst, self._worst)

    def facts(self) -> dict[str, Any]:
        """Return the figures."""
        n = max(self._n_rows, 1)
        return {
            "rows": self._n_rows,
            "mean_squared_error": self._error / max(self._n_cells, 1),
            "mean_error_of_a_row": self._error / n,
            "variance_explained": 1 - self._error / self._variation if self._variation else None,
            "worst_rows": [
                {"row": number, "name": name, "error": error} for error, number, name in self._worst
            ],
        }

    def lines(self) -> list[str]:
        """Return the figures in words."""
        facts = self.facts()
        share = facts["variance_explained"]
        explained = "unknown: the rows do not vary" if share is None else f"{100 * share:.4g} %"
        lines = [
            f"rows                 {facts['rows']:,}",
            f"mean squared error   {facts['mean_squared_error']:.6g}",
            f"variance explained   {explained}",
        ]
        if self._worst:
            lines += ["worst rows:"]
            width = max(len(name) for *_, name in self._worst)
            lines += [f"  {name:<{width}}  {error:.6g}" for error, _, name in self._worst]
        return lines


def variance_of_rows(model: TwoWayModel, table: FloatArray | None = None) -> float:
    """Return the mean squared distance of rows from their mean, in the units of a model.

    Rows are those that its error counts: its own, with what it filled before the fit, or the
    ``table`` that was given for a model whose rows are only landmarks.
    """
    description = model.kernel_regression()
    rows: FloatArray = model.data_ if description is None else description.data
    weights: FloatArray = model.weights_
    if table is not None and (model.member_ < 0).all():
        rows, weights = table, np.ones(len(table))
    deviations = (rows - _weighted_mean(rows, weights)) / getattr(model, "spread_", 1.0)
    return float(weights @ np.nansum(deviations**2, axis=1) / weights.sum())


def _weighted_mean(rows: FloatArray, weights: FloatArray) -> FloatArray:
    """Return the mean (D,) of rows over their observed entries."""
    seen = weights[:, None] * ~np.isnan(rows)
    return np.asarray(np.nansum(seen * rows, axis=0) / seen.sum(axis=0))


def center_and_spread(model: TwoWayModel) -> tuple[FloatArray, Any]:
    """Return the centre of the rows a model was fitted to, and what it divides columns by."""
    if hasattr(model, "spread_"):
        return model.center_, model.spread_
    return _weighted_mean(model.data_, model.weights_), 1.0
