"""Rows of a table that a model was fitted to: their errors say little about new rows.

What says more is the error the fit ended with, for which each row was reconstructed from the
others (leave-one-out); as a share of the variance it is ``objective / (sum_i w_i ||y_i - c||² /
sum_i w_i)`` in the units of the model, c the centre of its rows.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from twofold.cli.console import counted
from twofold.cli.describing import is_left_out, is_squared_error
from twofold.cli.scoring import center_and_spread, variance_of_rows

if TYPE_CHECKING:
    from twofold.array_types import FloatArray
    from twofold.contract import TwoWayModel

DECIMALS = 6  # in units of a column's spread: scaling and back costs the last digits


class OwnRows:
    """Count the rows of a table that are a model's own.

    Parameters
    ----------
    model : TwoWayModel
    """

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
