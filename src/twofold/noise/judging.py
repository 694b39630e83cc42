"""What entries of a row should have been, placed on a map without a say of their own."""

import numpy as np

from twofold.array_types import BoolArray, FloatArray, IntArray

# In how many turns the entries of a row are judged, those of a turn without a say in its place.
MOST_TURNS = 16
# The share of its residual that an entry keeps at least, and of a map's slopes that count as flat.
LEAST_FREE, FLAT = 0.2, 1e-9


def turns_of(observed: BoolArray, groups: IntArray | None) -> IntArray:
    """Return in which turn each observed entry (m, D) is judged, -1 for others.

    Those of one of the groups (D,) take the same turn. What the entries are does not matter.
    """
    first = of_column = np.arange(observed.shape[1])
    if groups is not None:
        _, first, of_column = np.unique(groups, return_index=True, return_inverse=True)
    turns = (observed[:, first].cumsum(axis=1) - 1)[:, of_column] % MOST_TURNS
    return np.where(observed, turns, -1)


def told_by_others(Y: FloatArray, images: FloatArray, J: FloatArray) -> FloatArray:
    """Return images (m, D) of rows Y, of observed entries as the others of their row tell them.

    An entry helps to find the place of its row, so that its image is too near to it. Placed without
    it, to first order, its residual r is ``r / (1 - h)`` with the leverage ``h = J_d (JᵀJ)⁻¹ J_dᵀ``
    of regression (Cook & Weisberg 1982), J (m, D, q) being the derivatives of the map.
    """
    observed = ~np.isnan(Y)
    J = np.where(observed[:, :, None], J, 0)
    A = np.einsum("mdq,mdr->mqr", J, J)
    size = np.einsum("mqq->m", A)
    ridge = np.where(size > 0, FLAT * size, 1)  # where the map is flat no entry has a say
    A += ridge[:, None, None] * np.eye(J.shape[2])
    leverage = np.einsum("mdq,mqd->md", J, np.linalg.solve(A, J.transpose(0, 2, 1)))
    residuals = np.where(observed, Y - images, 0) / np.maximum(1 - leverage, LEAST_FREE)
    return np.where(observed, Y - residuals, images)
