"""Numbers to colour rows by: how dense the map is at a row, and how much it stretches there."""

from __future__ import annotations

import math
import sys
from contextlib import nullcontext

import numpy as np

from twofold.array_types import FloatArray
from twofold.contract import TwoWayModel
from twofold.optimize import Event, ProgressBar

# Derivatives are worked out for so many rows at a time that they take about this many bytes.
PIECE_BYTES = 2**25


def row_facts(model: TwoWayModel) -> dict[str, FloatArray]:
    """Return ``density`` and ``magnification`` at the latent point of each row, (n,) each.

    On a terminal a line on standard error says how far it is, if it takes long.
    """
    X = model.embedding_
    n, size = len(X), max(1, PIECE_BYTES // (8 * X.shape[1] * model.n_features_in_))
    facts: dict[str, FloatArray] = {"density": np.empty(n), "magnification": np.empty(n)}
    steps = range(0, n, size)
    with ProgressBar() if sys.stderr.isatty() else nullcontext() as bar:
        for number, start in enumerate(steps, start=1):
            part = slice(start, start + size)
            facts["density"][part] = model.density(X[part])
            with np.errstate(over="ignore"):  # of data in very small units, say
                facts["magnification"][part] = model.magnification(X[part])
            if bar is not None:
                bar(Event(number, len(steps), math.nan, X[:0], 0.0, "measuring the map"))
    return facts
