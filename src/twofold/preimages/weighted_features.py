"""Rows whose features lie nearest to weighted means of the references' features.

That is what regression in feature space leads back by: for weights b that sum to one, the pre-image
of ``Σ b_i Φ(y_i)`` minimises

    E(y) = k(y, y) - 2 Σ_i b_i k(y, y_i),

the squared distance but for a constant. Weights of local polynomials may be negative.

==============  ============================================================================
kernel          pre-image
==============  ============================================================================
linear, l1      Exact: weighted means and medians
rbf, poly       Gradient, from the weighted mean and from the nearest reference: no reference
                and no weighted mean is ever nearer
any other       the weighted mean of the rows, which regression in data space would give
==============  ============================================================================
"""

from __future__ import annotations

import numpy as np

from twofold.array_types import FloatArray
from twofold.engine.threads import count_threads
from twofold.features import L1, RBF, DataKernel, Linear, Polynomial
from twofold.features.data_kernels import check_rows
from twofold.preimages.exact import Exact
from twofold.preimages.gradient import Gradient
from twofold.preimages.points import FeaturePoints
from twofold.rowwise import weighted_sums

# Weights sum to one but for the rounding of float32 over many of them.
_SUM_TOLERANCE = 1e-3
# Derivatives of the way back are differences of pre-images, so these need many digits.
_DESCENT = Gradient(tol=1e-7)


def weighted_preimages(
    kernel: DataKernel, references: FloatArray, B: FloatArray, n_jobs: int | None = -1
) -> FloatArray:
    """Return rows whose features lie nearest to weighted means of the references' features.

    A row gets the same numbers, to the last bit, alone or among others.

    Parameters
    ----------
    kernel : DataKernel
        The kernel, its numbers chosen.
    references : ndarray of shape (n, D)
        Rows that are averaged.
    B : ndarray of shape (m, n)
        Weights; every row sums to one, single ones may be negative.
    n_jobs : int or None
        Number of threads, -1 for every core.

    Returns
    -------
    ndarray of shape (m, D)
        Pre-images, in the number type of the references. Those of the RBF and polynomial kernels
        are local minima; those of a kernel of the user's are weighted means of the rows.

    Raises
    ------
    ValueError
        For a precomputed kernel, which knows no rows, and for weights that do not fit.

    Examples
    --------
    >>> import numpy as np
    >>> from twofold.features import L1
    >>> from twofold.preimages import weighted_preimages
    >>> Y = np.array([[0.0], [1.0], [10.0]])
    >>> float(weighted_preimages(L1(), Y, np.array([[0.3, 0.4, 0.3]]))[0, 0])
    1.0
    """
    if kernel.is_precomputed:
        raise ValueError(
            "A precomputed kernel has no pre-images: there are no data rows to go back to, only "
            "kernel values. Use a kernel of the rows, or apply the weights to rows of your own."
        )
    rows, weights = check_rows(references), check_rows(B)
    _check_weights(weights, len(rows))
    points = FeaturePoints(kernel, rows, weights, n_jobs=n_jobs)
    if isinstance(kernel, (Linear, L1)):
        found = Exact().minima(points)
    elif isinstance(kernel, (RBF, Polynomial)):
        found = _DESCENT.find(points).Y
    else:
        found = weighted_sums(weights, rows, count_threads(n_jobs))
    return found.astype(np.float32) if np.asarray(references).dtype == np.float32 else found


def _check_weights(B: FloatArray, n: int) -> None:
    if B.shape[1] != n:
        raise ValueError(
            f"`B` must have a weight for each of the {n} references in every row; got shape "
            f"{B.shape}."
        )
    off = np.abs(B.sum(axis=1) - 1)
    if len(off) and off.max() > _SUM_TOLERANCE:
        worst = int(off.argmax())
        raise ValueError(
            f"Every row of `B` must sum to one; row {worst} sums to {B[worst].sum():.6g}. Divide "
            "each row by its sum."
        )
