"""How well a model reconstructs rows that come piece by piece.

The share of variance explained is ``1 - sum ||y - f(g(y))||² / sum ||y - c||²`` over observed
cells, in the units of the model, where c is the centre of the rows the model was fitted to.

Of rows that a model was fitted to the errors say little about new rows. What says more is the error
the fit ended with, for which each row was reconstructed from the others (leave-one-out); as a share
of the variance it is ``objective / (sum_i w_i ||y_i - c||² / sum_i w_i)``, in the same units.
"""

from __future__ import annotations

import heapq
from typing import TYPE_CHECKING, Any

import numpy as np

from twofold.cli.console import counted
from twofold.cli.describing import is_left_out, is_squared_error

if TYPE_CHECKING:
    from twofold.array_types import FloatArray
    from twofold.cli.streaming import Piece
    from twofold.contract import TwoWayModel


DECIMALS = 6  # in units of a column's spread: scaling and back costs the last digits


class Tally:
    """Sums of errors, and the ``n_worst`` rows with the largest ones."""

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


class OwnRows:
    """Count the rows of a table that are a model's own."""

    def __init__(self, model: TwoWayModel) -> None:
        self._model = model
        self._center, self._spread = center_and_spread(model)
        # Landmarks stand for rows but are none.
        keeps_rows = not (model.member_ < 0).all()
        self._known = set(self._keys(model.data_)) if keeps_rows else set()
        self.n_found = self._n_seen = 0

    def add(self, Y: FloatArray) -> None:
        """Look at some rows."""
        self._n_seen += len(Y)
        if self._known:
            self.n_found += sum(key in self._known for key in self._keys(Y))

    def error_share(self) -> float | None:
        """Return the leave-one-out error as a share of the variance, None if it is not known."""
        model = self._model
        if not is_squared_error(model) or not is_left_out(model):
            return None
        variance = variance_of_rows(model)
        return float(model.objective_) / variance if variance else None

    def facts(self) -> dict[str, Any]:
        """Return the figures."""
        return {
            "rows_of_the_model": self.n_found,
            "leave_one_out_error_share": self.error_share() if self.n_found else None,
        }

    def in_words(self) -> str:
        """Return a sentence for people."""
        verb = "is" if self.n_found == 1 else "are"
        words = f"{self.n_found:,} of {counted(self._n_seen, 'row')} {verb} the model's own"
        share = self.error_share()
        if share is None:
            return f"{words}: new rows may have larger errors"
        return f"{words}; leave-one-out error {100 * share:.3g} % of the variance"

    def _keys(self, Y: FloatArray) -> list[bytes]:
        """Return for each row bytes that only equal rows share."""
        rounded = np.round((Y - self._center) / self._spread, DECIMALS) + 0.0  # no negative zero
        return [row.tobytes() for row in np.where(np.isnan(rounded), np.nan, rounded)]


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
