"""What is usual for the rows of a table, and whether its columns have an order.

The page says what stands out at a place or in a selection, in the units of
:mod:`twofold.standing_out`: the standard deviation of each feature over all rows. Mean and
deviation are worked out here, from all rows, because a page may hold the data of some only.
"""

from typing import Any

import numpy as np

from twofold.array_types import FloatArray, IntArray
from twofold.contract import TwoWayModel
from twofold.explorer.stand_in import cover

# Rows taken at a time, so that their doubles take little memory.
ROWS_AT_A_TIME = 4096
# Without rows, f at this many places says what is usual.
PLACES = 2_000
# Columns are compared over at most this many rows, and at most this many pairs of columns.
ROWS_COMPARED, PAIRS_COMPARED = 1_000, 400
# Columns have an order if neighbours are correlated this much more than columns far apart.
CLEARLY_MORE = 0.2


def usual_rows(model: TwoWayModel, data: FloatArray | None) -> dict[str, Any]:
    """Return mean and deviation (D,) of each feature, and whether they are of rows or of f.

    They are of ``data`` (n, D) if given, of the rows that the model keeps if it keeps them all,
    and else of what it generates all over its map.
    """
    member = np.asarray(getattr(model, "member_", np.full(1, -1)))
    own = getattr(model, "data_", None)
    if data is not None:
        table, member, kind = data, np.arange(len(data)), "rows"
    elif own is not None and (member >= 0).all():
        table, kind = own, "rows"
    else:
        X = model.embedding_
        table = model.inverse_transform(X[cover(X, PLACES)])
        member, kind = np.arange(len(table)), "map"
    mean, deviation = _moments(table, np.bincount(member, minlength=len(table)))
    return {"mean": mean, "deviation": deviation, "of": kind}


def _moments(Y: FloatArray, counts: IntArray) -> tuple[FloatArray, FloatArray]:
    """Return mean and deviation of columns over known entries; rows occur ``counts`` times."""
    center = np.nan_to_num(Y[0].astype(np.float64))
    totals = np.zeros((3, Y.shape[1]))  # counts, sums and squares of what lies off the first row
    for start in range(0, len(Y), ROWS_AT_A_TIME):
        part = slice(start, start + ROWS_AT_A_TIME)
        off = Y[part].astype(np.float64) - center
        known = ~np.isnan(off)
        off = np.where(known, off, 0)
        totals += [counts[part] @ powers for powers in (known, off, off**2)]
    total = np.maximum(totals[0], 1)
    mean = totals[1] / total
    variance = np.maximum(totals[2] / total - mean**2, 0)
    # What is left of a constant column is rounding.
    variance[variance <= 1e-12 * totals[2] / total] = 0
    return np.where(totals[0] > 0, mean + center, 0), np.sqrt(variance)


def have_order(Y: FloatArray) -> bool:
    """Say whether neighbouring columns are alike, as in a spectrum, so that a curve makes sense.

    Compared are the mean absolute correlations of neighbours and of columns half the table apart.
    """
    rows: IntArray = np.linspace(0, len(Y) - 1, min(len(Y), ROWS_COMPARED)).astype(int)
    D = Y.shape[1]
    left: IntArray = np.linspace(0, D - 2, min(D - 1, PAIRS_COMPARED)).astype(int)
    Z = Y[rows].astype(np.float64)
    with np.errstate(all="ignore"):
        Z = Z - np.nan_to_num(np.nansum(Z, axis=0) / (~np.isnan(Z)).sum(axis=0))
        Z = np.nan_to_num(Z / np.sqrt(np.nansum(Z**2, axis=0)))
    near, far = (
        np.abs((Z[:, left] * Z[:, (left + step) % D]).sum(axis=0)).mean() for step in (1, D // 2)
    )
    return bool(near > far + CLEARLY_MORE)
