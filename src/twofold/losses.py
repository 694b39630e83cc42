"""Losses of a residual ``r = f - y``, row by row, unreduced.

A loss is any object with ``value_and_slope(R)``: for residuals (rows, D) it returns the loss of
each row (rows,) and its derivative by the residual (rows, D). Missing entries arrive as residual
zero and must cost nothing. A loss that is a frozen dataclass can be saved with a model.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from twofold.array_types import FloatArray


class Loss(Protocol):
    """What an objective asks of a loss."""

    def value_and_slope(self, R: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return the loss of each row and its derivative by the residual."""
        ...


@dataclass(frozen=True)
class Squared:
    """``L(r) = ||r||²`` (Klanke 2007, eq. 4.26)."""

    def value_and_slope(self, R: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return ``||r||²`` and ``2 r``."""
        return (R * R).sum(axis=1), 2 * R
